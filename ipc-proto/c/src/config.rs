//! The runtime's role: the diagnostic ports that its environment configures.
use core::cell::Cell;
use core::ffi::{c_char, c_void};
use core::ptr;

use ipc_proto::port::{
    Config as ProtoConfig, Finding as ProtoFinding, Port as ProtoPort, PortList, PortType, Tag,
};

use crate::facts;
use crate::memory::{self, Utf8Buffer};
use crate::place::{Opaque, place, shared};
use crate::status::{Failure, Outcome, Status, report};
use crate::text::{DIPC_TEXT_NULL, Text};

/// The runtime connects to a monitor at the address.
pub const DIPC_PORT_CONNECT: u32 = 0;
/// The runtime listens at the address.
pub const DIPC_PORT_LISTEN: u32 = 1;

/// A runtime's diagnostic ports, as its environment configures them. In memory of the caller; set it to zeros or
/// initialise it before another function receives it. It does not change after `dipc_config_init`, so threads can use it
/// at the same time. It can be moved and copied with `memcpy`.
#[repr(C)]
pub struct Config {
    /// The state.
    pub opaque: [u64; 18],
}

// SAFETY: no other type has this tag.
unsafe impl Opaque for Config {
    type Content = ProtoConfig<'static>;
    const TAG: u64 = 0x6470_6363_9a75_e705;
}

/// A function that returns the value of an environment variable in UTF-8, or a null text if the variable is not set. The
/// name ends with a NUL, and is valid only during the call. The function must return: no `longjmp`, no C++ exception.
pub type Lookup = Option<unsafe extern "C" fn(context: *mut c_void, name: *const c_char) -> Text<'static>>;

/// A diagnostic port of a runtime, other than the default one.
#[repr(C)]
pub struct Port<'a> {
    /// The path of the socket, or the name of the pipe.
    pub address: Text<'a>,
    /// One of `DIPC_PORT_*`.
    pub port_type: u32,
    /// Whether the runtime does not start until it is resumed through this port.
    pub suspends: bool,
}

/// A mistake that this version of the header does not have.
pub const DIPC_FINDING_OTHER: u32 = 0;
/// The variable `name` is set under both names to different values, and `part`, the old name, is ignored.
pub const DIPC_FINDING_SHADOWED: u32 = 1;
/// This runtime does not read the variable `name`: `meant` is the name that it reads.
pub const DIPC_FINDING_UNREAD: u32 = 2;
/// The value `text` of `name` is neither 0 nor 1, or is read as another number, or counts as unset.
pub const DIPC_FINDING_NUMBER: u32 = 3;
/// Ports are requested, but disabled by the value `text` of `name`.
pub const DIPC_FINDING_DISABLED: u32 = 4;
/// The list `text` in `name` contains no port.
pub const DIPC_FINDING_NO_PORTS: u32 = 5;
/// The port `text` contains only commas, and counts as failed.
pub const DIPC_FINDING_ONLY_COMMAS: u32 = 6;
/// `part` of the port `text` is not a tag and is ignored; `meant` is the tag that it resembles, or null.
pub const DIPC_FINDING_UNKNOWN_TAG: u32 = 7;
/// The tag `part` of the port `text` is ignored, because the first of two that exclude each other counts.
pub const DIPC_FINDING_CONFLICT: u32 = 8;
/// The tag `part` of the port `text` is in the place of the address, and is read as one.
pub const DIPC_FINDING_TAG_FOR_ADDRESS: u32 = 9;
/// The address `text` begins or ends with blanks, which count.
pub const DIPC_FINDING_BLANKS: u32 = 10;
/// The address `text` has a form that only tools accept; `meant` is the one for a runtime.
pub const DIPC_FINDING_SCHEME: u32 = 11;
/// The address `text` is a path relative to the working directory.
pub const DIPC_FINDING_RELATIVE: u32 = 12;
/// The address `text` is too long for a Unix socket, on macOS and perhaps on Linux.
pub const DIPC_FINDING_TOO_LONG: u32 = 13;
/// The port with the address `text` listens, which only some runtimes do, and only on systems without a default port.
pub const DIPC_FINDING_LISTEN: u32 = 14;
/// The address `text` is that of another port before it.
pub const DIPC_FINDING_SAME_ADDRESS: u32 = 15;
/// The port with the address `text` suspends the runtime by default.
pub const DIPC_FINDING_SUSPENDS: u32 = 16;

/// A probable mistake in a runtime's environment. Texts that a kind does not have are null.
#[repr(C)]
pub struct Finding<'a> {
    /// One of `DIPC_FINDING_*`.
    pub kind: u32,
    /// The name of a variable.
    pub name: Text<'a>,
    /// The value, the port or the address with the mistake.
    pub text: Text<'a>,
    /// The wrong part of that text.
    pub part: Text<'a>,
    /// What was probably meant.
    pub meant: Text<'a>,
}

impl<'a> Finding<'a> {
    const fn new(kind: u32, name: &'a str, text: &'a str) -> Self {
        let name = if name.is_empty() { Text::NULL } else { Text::utf8(name) };
        Self { kind, name, text: Text::utf8(text), part: Text::NULL, meant: Text::NULL }
    }

    fn of(finding: ProtoFinding<'a>) -> Self {
        match finding {
            ProtoFinding::Shadowed(variable) => Self {
                text: Text::NULL,
                part: Text::utf8(variable.old_name()),
                ..Self::new(DIPC_FINDING_SHADOWED, variable.name(), "")
            },
            ProtoFinding::Unread(variable, _) => Self {
                text: Text::NULL,
                meant: Text::utf8(variable.name()),
                ..Self::new(DIPC_FINDING_UNREAD, variable.old_name(), "")
            },
            ProtoFinding::Number { name, value, .. } => Self::new(DIPC_FINDING_NUMBER, name, value),
            ProtoFinding::Disabled { name, value } => Self::new(DIPC_FINDING_DISABLED, name, value),
            ProtoFinding::NoPorts { name, value } => Self::new(DIPC_FINDING_NO_PORTS, name, value),
            ProtoFinding::OnlyCommas { port } => Self::new(DIPC_FINDING_ONLY_COMMAS, "", port),
            ProtoFinding::UnknownTag { port, tag, meant } => Self {
                part: Text::utf8(tag),
                meant: Text::optional(meant.map(Tag::name)),
                ..Self::new(DIPC_FINDING_UNKNOWN_TAG, "", port)
            },
            ProtoFinding::Conflict { port, loses, .. } => {
                Self { part: Text::utf8(loses.name()), ..Self::new(DIPC_FINDING_CONFLICT, "", port) }
            }
            ProtoFinding::TagForAddress { port, tag } => {
                Self { part: Text::utf8(tag.name()), ..Self::new(DIPC_FINDING_TAG_FOR_ADDRESS, "", port) }
            }
            ProtoFinding::Blanks { address } => Self::new(DIPC_FINDING_BLANKS, "", address),
            ProtoFinding::Scheme { address, meant } => {
                Self { meant: Text::utf8(meant), ..Self::new(DIPC_FINDING_SCHEME, "", address) }
            }
            ProtoFinding::Relative { address } => Self::new(DIPC_FINDING_RELATIVE, "", address),
            ProtoFinding::TooLong { address } => Self::new(DIPC_FINDING_TOO_LONG, "", address),
            ProtoFinding::Listen { address, .. } => Self::new(DIPC_FINDING_LISTEN, "", address),
            ProtoFinding::SameAddress { address } => Self::new(DIPC_FINDING_SAME_ADDRESS, "", address),
            ProtoFinding::Suspends { address } => Self::new(DIPC_FINDING_SUSPENDS, "", address),
            _ => Self { text: Text::NULL, ..Self::new(DIPC_FINDING_OTHER, "", "") },
        }
    }
}

/// A function that receives the probable mistakes. A finding is valid only during the call, its texts as long as those of
/// the config. It must return: no `longjmp`, no C++ exception.
pub type VisitFinding = Option<unsafe extern "C" fn(context: *mut c_void, finding: *const Finding<'_>)>;

/// Longer than the name of any variable.
const NAME_SIZE: usize = 64;

/// Reads the variables.
///
/// # Safety
/// The function can be called with the context, and returns texts that are valid for as long as the result.
unsafe fn read(flavour: u32, lookup: Lookup, context: *mut c_void) -> Result<ProtoConfig<'static>, Failure> {
    let flavour = facts::flavour(flavour)?.ok_or(Status::InvalidArgument)?;
    let Some(lookup) = lookup else { return Err(Status::NullPointer.into()) };
    let value_of = |name: &str| -> Result<Option<&'static str>, Failure> {
        let mut terminated = [0; NAME_SIZE];
        let mut out = Utf8Buffer::new(&mut terminated);
        name.chars().for_each(|c| out.push(c));
        out.finish()?;
        // SAFETY: the caller vouches for the function and its context.
        let value = unsafe { lookup(context, terminated.as_ptr().cast()) };
        // SAFETY: the caller vouches for the text.
        let text = unsafe { value.str() }?;
        Ok((value.form != DIPC_TEXT_NULL).then_some(text))
    };
    let failure = Cell::new(None);
    let config = ProtoConfig::read(flavour, |name| match value_of(name) {
        Ok(value) => value,
        Err(error) => {
            failure.set(Some(error));
            None
        }
    });
    failure.get().map_or(Ok(config), Err)
}

/// Reads the environment of a runtime of the known kind `flavour`, one of `DIPC_FLAVOUR_*`. `lookup` is called with `context` for
/// both names of each variable, `DOTNET_DiagnosticPorts` and `COMPlus_DiagnosticPorts` for example. What it returns is not
/// copied: it must stay valid and unchanged as long as the config or a text of it is used.
///
/// Returns `DIPC_STATUS_INVALID_ARGUMENT` for another number, or for a value that is not UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_config_init(
    config: *mut Config,
    flavour: u32,
    lookup: Lookup,
    context: *mut c_void,
) -> Status {
    // SAFETY: the caller vouches for the function.
    let outcome = unsafe { read(flavour, lookup, context) }.and_then(|content| -> Outcome {
        // SAFETY: the caller vouches for the pointer.
        unsafe { place(config, content) }.map(|()| 0)
    });
    // SAFETY: `detail` is null.
    unsafe { report(outcome, ptr::null_mut()) }
}

/// Returns the size of a `dipc_config` in bytes: that of the header which the library was compiled with.
#[unsafe(no_mangle)]
pub extern "C" fn dipc_config_size() -> usize {
    size_of::<Config>()
}

/// Returns whether the runtime has any ports, including the default one; false if `config` is not initialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_config_is_enabled(config: *const Config) -> bool {
    // SAFETY: the caller vouches for the pointer.
    unsafe { shared(config) }.is_ok_and(ProtoConfig::is_enabled)
}

/// Returns whether the default port, at which the runtime listens, suspends the runtime; false if `config` is not
/// initialised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_config_default_port_suspends(config: *const Config) -> bool {
    // SAFETY: the caller vouches for the pointer.
    unsafe { shared(config) }.is_ok_and(ProtoConfig::default_port_suspends)
}

/// Stores the port with this index in `port`. Ports have the runtime's order: the last of the list comes first. The default
/// port is not one of them. The address is valid as long as the value that the config was read from.
///
/// Returns `DIPC_STATUS_NOT_FOUND` if there are not so many ports.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_config_port(
    config: *const Config,
    index: usize,
    port: *mut Port<'_>,
) -> Status {
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { shared(config) }.and_then(|config| -> Outcome {
        let Some(found) = config.ports().nth(index) else { return Err(Status::NotFound.into()) };
        let found = Port {
            address: Text::utf8(found.address()),
            port_type: match found.port_type() {
                PortType::Connect => DIPC_PORT_CONNECT,
                PortType::Listen => DIPC_PORT_LISTEN,
            },
            suspends: found.suspends(),
        };
        // SAFETY: the caller vouches for the pointer.
        unsafe { memory::store::<Port<'_>>(port.cast(), found) }.map(|()| 0)
    });
    // SAFETY: `detail` is null.
    unsafe { report(outcome, ptr::null_mut()) }
}

/// Passes every probable mistake in the variables to `visit`, with `context`: first those of the variables, then those of
/// the ports in the order of the text. None is an error for a runtime.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_config_findings(
    config: *const Config,
    visit: VisitFinding,
    context: *mut c_void,
) -> Status {
    // SAFETY: the caller vouches for the pointer.
    let outcome = unsafe { shared(config) }.and_then(|config| -> Outcome {
        let Some(visit) = visit else { return Err(Status::NullPointer.into()) };
        config.findings().for_each(|finding| {
            // SAFETY: the caller vouches for the function and its context.
            unsafe { visit(context, &Finding::of(finding)) }
        });
        Ok(0)
    });
    // SAFETY: `detail` is null.
    unsafe { report(outcome, ptr::null_mut()) }
}

/// The monitor's role: writes the value of `DOTNET_DiagnosticPorts` with which a runtime connects to this address into
/// `text`, as UTF-8 with a NUL at the end. `address` is in UTF-8: the path of a socket, or the name of a pipe without
/// `\\.\pipe\`. If `suspends`, the runtime does not start until it is resumed. `others`, in UTF-8, is the value that the
/// environment of the runtime has already, or null: the runtime also connects to its ports, except to one with the same
/// address.
///
/// `len` receives the number of bytes without the NUL. If `size` is too small, `text` receives the characters that fit
/// and a NUL, `len` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`. It returns
/// `DIPC_STATUS_INVALID_ARGUMENT` for an address that a list of ports cannot contain: it is empty, or has a `;`, a `,` or a
/// NUL; and for a text that is not UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_port_text(
    address: Text<'_>,
    suspends: bool,
    others: Text<'_>,
    text: *mut c_char,
    size: usize,
    len: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the address.
    let outcome = unsafe { address.str() }.and_then(|address| {
        let Ok(port) = ProtoPort::connect(address, suspends) else {
            return Err(Status::InvalidArgument.into());
        };
        // SAFETY: the caller vouches for the text.
        let others = unsafe { others.str() }?;
        // SAFETY: the caller vouches for the buffer.
        unsafe { memory::store_text(text, size, PortList::new(&[port]).followed_by(others)) }
    });
    // SAFETY: the caller vouches for `len`.
    unsafe { report(outcome, len) }
}
