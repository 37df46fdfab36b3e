//! A function for each command, which writes its request. They come from the table of commands of `ipc_proto`; the types
//! in this module have the names that the table uses.
use core::marker::PhantomData;

use ipc_proto::wire::Writer;
use ipc_proto::{Code, CommandInfo, Encode, Request, types};

use crate::memory;
use crate::status::{Failure, Outcome, Status, report};
use crate::text::Text;

/// A value in the layout of C that has a wire form.
pub(crate) trait Argument {
    /// Checks the value.
    ///
    /// # Safety
    /// The pointers in the value are valid, as its documentation states.
    unsafe fn check(&self) -> Result<(), Failure>;

    /// Writes the value, which was checked.
    ///
    /// # Safety
    /// As `check`, which has returned `Ok`.
    unsafe fn write(&self, w: &mut Writer<'_>);
}

/// Implements [`Argument`] for values without pointers.
macro_rules! plain {
    ($($ty:ty)*) => {$(
        impl Argument for $ty {
            unsafe fn check(&self) -> Result<(), Failure> {
                Ok(())
            }
            unsafe fn write(&self, w: &mut Writer<'_>) {
                self.encode(w);
            }
        }
    )*};
}
plain! { u16 u32 u64 bool }

impl Argument for Text<'_> {
    unsafe fn check(&self) -> Result<(), Failure> {
        // SAFETY: the caller vouches for the text.
        unsafe { Text::check(self) }.map(|_| ())
    }
    unsafe fn write(&self, w: &mut Writer<'_>) {
        // SAFETY: the caller vouches for the text.
        if let Ok(text) = unsafe { Text::check(self) } {
            text.encode(w);
        }
    }
}

/// A list: `count` items, in memory of the caller. `items` can be null if there are none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Array<'a, T> {
    /// The first item.
    pub items: *const T,
    /// The number of items.
    pub count: usize,
    /// The owner of the items.
    pub owner: PhantomData<&'a T>,
}

impl<T> Array<'_, T> {
    pub(crate) const fn new(items: *const T, count: usize) -> Self {
        Self { items, count, owner: PhantomData }
    }
}

impl<T: Argument> Argument for Array<'_, T> {
    unsafe fn check(&self) -> Result<(), Failure> {
        // SAFETY: the caller vouches for the items.
        let items = unsafe { memory::slice(self.items, self.count) }?;
        // SAFETY: the caller vouches for the items.
        items.iter().try_for_each(|item| unsafe { item.check() })
    }
    unsafe fn write(&self, w: &mut Writer<'_>) {
        u32::try_from(self.count).unwrap_or(u32::MAX).encode(w);
        // SAFETY: the caller vouches for the items.
        let items = unsafe { memory::slice(self.items, self.count) }.unwrap_or_default();
        // SAFETY: the caller vouches for the items.
        items.iter().for_each(|item| unsafe { item.write(w) });
    }
}

/// Declares a struct whose wire form is that of its fields, in order.
macro_rules! arguments {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $ty:ty,)* })*) => {$(
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct $name<'a> {
            $($(#[$field_meta])* pub $field: $ty,)*
        }
        impl Argument for $name<'_> {
            unsafe fn check(&self) -> Result<(), Failure> {
                $(
                    // SAFETY: the caller vouches for the fields.
                    unsafe { self.$field.check() }?;
                )*
                Ok(())
            }
            unsafe fn write(&self, w: &mut Writer<'_>) {
                $(
                    // SAFETY: the caller vouches for the fields.
                    unsafe { self.$field.write(w) };
                )*
            }
        }
    )*};
}
arguments! {
    /// A provider to enable. A session has 1 to 1,000 of them: runtimes refuse others.
    Provider {
        /// Groups of events, one bit each; the provider defines them.
        keywords: u64,
        /// The verbosity: one of `DIPC_LEVEL_*`.
        level: EventLevel,
        /// The name of the provider; not empty.
        name: Text<'a>,
        /// Settings for the provider: `key=value` joined by `;`. Can be null.
        arguments: Text<'a>,
    }
    /// A filter of the events of a provider by their ids. All zeros: no filter.
    EventFilter {
        /// Whether the ids select the events to send, or those not to send.
        enable: bool,
        /// The ids.
        event_ids: Array<'a, u32>,
    }
    /// A provider of a stream with a filter.
    StreamingProvider {
        /// As in `dipc_provider`.
        keywords: u64,
        /// As in `dipc_provider`.
        level: EventLevel,
        /// As in `dipc_provider`.
        name: Text<'a>,
        /// As in `dipc_provider`.
        arguments: Text<'a>,
        /// The filter of its events.
        filter: EventFilter<'a>,
    }
    /// The events for one tracepoint.
    TracepointSet {
        /// The name of the tracepoint; not empty.
        tracepoint_name: Text<'a>,
        /// The ids of the events.
        event_ids: Array<'a, u32>,
    }
    /// The tracepoints for the events of a provider. At least one field must not be null or empty.
    TracepointConfig {
        /// The tracepoint for events that are in no set; if it is null, those events are not written.
        default_tracepoint_name: Text<'a>,
        /// The tracepoints for sets of events.
        sets: Array<'a, TracepointSet<'a>>,
    }
    /// A provider whose events are written to `user_events`.
    UserEventsProvider {
        /// As in `dipc_provider`.
        keywords: u64,
        /// As in `dipc_provider`.
        level: EventLevel,
        /// As in `dipc_provider`.
        name: Text<'a>,
        /// As in `dipc_provider`.
        arguments: Text<'a>,
        /// The filter of its events.
        filter: EventFilter<'a>,
        /// The tracepoints for its events.
        tracepoints: TracepointConfig<'a>,
    }
}

/// Declares the names that the table has for numbers, and their values, which are those of `ipc_proto`.
macro_rules! numbers {
    ($($(#[$meta:meta])* $name:ident { $($(#[$value_meta:meta])* $constant:ident = $value:literal $variant:ident,)* })*) => {$(
        $(#[$meta])*
        pub type $name = u32;
        $($(#[$value_meta])* pub const $constant: u32 = $value;)*
        const _: () = assert!($(types::$name::$variant.0 == $constant)&&*);
    )*};
}
numbers! {
    /// The verbosity of a provider: one of `DIPC_LEVEL_*`.
    EventLevel {
        /// All events, regardless of their level.
        DIPC_LEVEL_LOG_ALWAYS = 0 LOG_ALWAYS,
        /// Critical errors.
        DIPC_LEVEL_CRITICAL = 1 CRITICAL,
        /// Errors.
        DIPC_LEVEL_ERROR = 2 ERROR,
        /// Warnings.
        DIPC_LEVEL_WARNING = 3 WARNING,
        /// Information; the default of most tools.
        DIPC_LEVEL_INFORMATIONAL = 4 INFORMATIONAL,
        /// All events, including details.
        DIPC_LEVEL_VERBOSE = 5 VERBOSE,
    }
    /// The format of a stream: one of `DIPC_FORMAT_*`.
    Format {
        /// NetPerf, the old format.
        DIPC_FORMAT_NET_PERF = 0 NET_PERF,
        /// NetTrace.
        DIPC_FORMAT_NET_TRACE = 1 NET_TRACE,
    }
    /// The content of a dump: one of `DIPC_DUMP_*`.
    DumpType {
        /// Threads and modules.
        DIPC_DUMP_NORMAL = 1 NORMAL,
        /// Threads, modules and the managed heap.
        DIPC_DUMP_WITH_HEAP = 2 WITH_HEAP,
        /// As normal, without personal data.
        DIPC_DUMP_TRIAGE = 3 TRIAGE,
        /// All memory.
        DIPC_DUMP_FULL = 4 FULL,
    }
    /// Options of the dump writer: any of `DIPC_DUMP_FLAG_*`, or 0.
    DumpFlags {
        /// The dump writer logs to the target's console.
        DIPC_DUMP_FLAG_LOGGING = 1 LOGGING_ENABLED,
        /// The dump writer logs more.
        DIPC_DUMP_FLAG_VERBOSE_LOGGING = 2 VERBOSE_LOGGING_ENABLED,
        /// The dump writer also writes a crash report.
        DIPC_DUMP_FLAG_CRASH_REPORT = 4 CRASH_REPORT_ENABLED,
        /// The dump writer writes only a crash report.
        DIPC_DUMP_FLAG_CRASH_REPORT_ONLY = 8 CRASH_REPORT_ONLY_ENABLED,
    }
    /// The files to write for `perf`: one of `DIPC_PERF_MAP_*`.
    PerfMapType {
        /// Both files.
        DIPC_PERF_MAP_ALL = 1 ALL,
        /// `jit-PID.dump`.
        DIPC_PERF_MAP_JIT_DUMP = 2 JIT_DUMP,
        /// `perf-PID.map`.
        DIPC_PERF_MAP_PERF_MAP = 3 PERF_MAP,
    }
    /// The runtime's behaviour when the buffer of a session is full: one of `DIPC_BUFFER_MODE_*`.
    SessionBufferMode {
        /// The runtime drops events.
        DIPC_BUFFER_MODE_DROP = 0 DROP,
        /// The runtime blocks the threads that raise events.
        DIPC_BUFFER_MODE_BLOCK = 1 BLOCK,
    }
}

/// A GUID in .NET's order: the first three groups of its text are little-endian numbers.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Guid {
    /// The bytes.
    pub bytes: [u8; 16],
}

impl From<ipc_proto::Guid> for Guid {
    fn from(guid: ipc_proto::Guid) -> Self {
        Self { bytes: guid.0 }
    }
}
impl Argument for Guid {
    unsafe fn check(&self) -> Result<(), Failure> {
        Ok(())
    }
    unsafe fn write(&self, w: &mut Writer<'_>) {
        w.bytes(&self.bytes);
    }
}

/// Bytes for a profiler. `data` can be null if there are none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ClientData<'a> {
    /// The first byte.
    pub data: *const u8,
    /// The number of bytes.
    pub len: usize,
    /// The owner of the bytes.
    pub owner: PhantomData<&'a ()>,
}

impl<'a> ClientData<'a> {
    pub(crate) const fn new(data: &'a [u8]) -> Self {
        Self { data: data.as_ptr(), len: data.len(), owner: PhantomData }
    }
}

impl Argument for ClientData<'_> {
    unsafe fn check(&self) -> Result<(), Failure> {
        // SAFETY: the caller vouches for the bytes.
        unsafe { memory::slice(self.data, self.len) }.map(|_| ())
    }
    unsafe fn write(&self, w: &mut Writer<'_>) {
        // SAFETY: the caller vouches for the bytes.
        let data = unsafe { memory::slice(self.data, self.len) };
        types::ClientData(data.unwrap_or_default()).encode(w);
    }
}

/// A session that streams.
pub const DIPC_SESSION_TYPE_STREAMING: u32 = 0;
/// A session that writes to `user_events`, on Linux.
pub const DIPC_SESSION_TYPE_USER_EVENTS: u32 = 1;

/// The kind of session. A session that writes to `user_events` has `rundown_keyword` and `user_events_providers` only.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SessionConfig<'a> {
    /// One of `DIPC_SESSION_TYPE_*`.
    pub session_type: u32,
    /// Size of the runtime's buffer in MB; not 0.
    pub buffer_mb: u32,
    /// Format of the stream.
    pub format: Format,
    /// Whether events have stacks.
    pub stackwalk: bool,
    /// Keywords of the rundown provider; 0 for no rundown.
    pub rundown_keyword: u64,
    /// The providers of a session that streams.
    pub providers: Array<'a, StreamingProvider<'a>>,
    /// The providers of a session that writes to `user_events`.
    pub user_events_providers: Array<'a, UserEventsProvider<'a>>,
}

impl Argument for SessionConfig<'_> {
    unsafe fn check(&self) -> Result<(), Failure> {
        match self.session_type {
            // SAFETY: the caller vouches for the providers.
            DIPC_SESSION_TYPE_STREAMING => unsafe { self.providers.check() },
            // SAFETY: the caller vouches for the providers.
            DIPC_SESSION_TYPE_USER_EVENTS => unsafe { self.user_events_providers.check() },
            _ => Err(Status::InvalidArgument.into()),
        }
    }
    unsafe fn write(&self, w: &mut Writer<'_>) {
        self.session_type.encode(w);
        if self.session_type == DIPC_SESSION_TYPE_USER_EVENTS {
            self.rundown_keyword.encode(w);
            // SAFETY: the caller vouches for the providers.
            unsafe { self.user_events_providers.write(w) };
            return;
        }
        self.buffer_mb.encode(w);
        self.format.encode(w);
        self.rundown_keyword.encode(w);
        self.stackwalk.encode(w);
        // SAFETY: the caller vouches for the providers.
        unsafe { self.providers.write(w) };
    }
}

/// As `dipc_session_config`, but a stream has a buffer mode.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SessionConfig6<'a> {
    /// The session.
    pub session: SessionConfig<'a>,
    /// The behaviour when the buffer of a stream is full.
    pub session_buffer_mode: SessionBufferMode,
}

impl Argument for SessionConfig6<'_> {
    unsafe fn check(&self) -> Result<(), Failure> {
        // SAFETY: the caller vouches for the session.
        unsafe { self.session.check() }
    }
    unsafe fn write(&self, w: &mut Writer<'_>) {
        // SAFETY: the caller vouches for the session.
        unsafe { self.session.write(w) };
        if self.session.session_type == DIPC_SESSION_TYPE_STREAMING {
            self.session_buffer_mode.encode(w);
        }
    }
}

/// A payload: its fields, which were checked.
pub(crate) struct Payload<'f>(&'f [&'f dyn Argument]);

impl<'f> Payload<'f> {
    /// Checks the fields.
    ///
    /// # Safety
    /// The pointers in the fields are valid as long as the payload exists, as their documentation states.
    pub(crate) unsafe fn new(fields: &'f [&'f dyn Argument]) -> Result<Self, Failure> {
        // SAFETY: the caller vouches for the fields.
        fields.iter().try_for_each(|field| unsafe { field.check() })?;
        Ok(Self(fields))
    }
}

impl Encode for Payload<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        // SAFETY: `new` has checked the fields, and its caller vouches for their pointers.
        self.0.iter().for_each(|field| unsafe { field.write(w) });
    }
}

/// Writes a request.
///
/// # Safety
/// All pointers point to what the documentation says.
unsafe fn build(code: u16, fields: &[&dyn Argument], buf: *mut u8, size: usize, len: *mut usize) -> Status {
    // SAFETY: the caller vouches for the fields.
    let outcome = unsafe { Payload::new(fields) }.and_then(|payload| -> Outcome {
        // SAFETY: the caller vouches for the buffer.
        let buf = unsafe { memory::slice_mut(buf, size) }?;
        Ok(ipc_proto::encode(Code(code), &payload, buf)?.len())
    });
    // SAFETY: the caller vouches for `len`.
    unsafe { report(outcome, len) }
}

macro_rules! commands {
    ($([
        $code:literal $name:ident / $specification_name:ident since $since:literal:
        $request:ty { $($field:ident: $ty:ty,)* }
        -> $response_name:ident: $response:ty, then $then:ident
    ])*) => {
        /// The code of each command.
        #[repr(u16)]
        pub enum Command {
            $(
                #[doc = concat!(" `", stringify!($specification_name), "` in the specification; since .NET ", stringify!($since), ".")]
                $name = $code,
            )*
        }

        $(
            #[doc = concat!(
                " Writes the request `", stringify!($name), "` (`", stringify!($code), "`, since .NET ", stringify!($since),
                ") into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the \
                 length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see \
                 `dipc_check`."
            )]
            #[allow(non_snake_case, reason = "the table has names of types only")]
            #[allow(clippy::extra_unused_lifetimes, reason = "not every command has a text")]
            #[unsafe(export_name = concat!("dipc_build_", stringify!($name)))]
            pub unsafe extern "C" fn $name<'a>(
                buf: *mut u8,
                size: usize,
                len: *mut usize,
                $($field: $ty,)*
            ) -> Status {
                // SAFETY: the caller vouches for the pointers.
                unsafe { build($code, &[$(&$field,)*], buf, size, len) }
            }
        )*
    };
}
ipc_proto::for_each_command!(commands);

/// A row of the table of commands.
#[repr(C)]
pub struct CommandRow {
    /// The code.
    pub code: u16,
    /// The first major version of .NET with this command.
    pub since: u8,
    /// The name, as in Microsoft's client.
    pub name: Text<'static>,
    /// The name in the specification.
    pub specification_name: Text<'static>,
}

/// Stores the command with this index in `row`, in the order of their codes from index 0 on.
///
/// Returns `DIPC_STATUS_NOT_FOUND` if there are not so many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_command_at(index: usize, row: *mut CommandRow) -> Status {
    // SAFETY: the caller vouches for the pointer.
    unsafe { store_row(Request::ALL.get(index), row) }
}

/// Stores the command with this code in `row`.
///
/// Returns `DIPC_STATUS_NOT_FOUND` if the code is unknown.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_command_find(code: u16, row: *mut CommandRow) -> Status {
    // SAFETY: the caller vouches for the pointer.
    unsafe { store_row(CommandInfo::find(Code(code)), row) }
}

/// Stores a row.
///
/// # Safety
/// `row` points to space for a row.
unsafe fn store_row(info: Option<&CommandInfo>, row: *mut CommandRow) -> Status {
    let Some(info) = info else { return Status::NotFound };
    let found = CommandRow {
        code: info.code.0,
        since: info.since,
        name: Text::utf8(info.name),
        specification_name: Text::utf8(info.specification_name),
    };
    // SAFETY: the caller vouches for the row.
    match unsafe { memory::store(row, found) } {
        Ok(()) => Status::Ok,
        Err(failure) => failure.status,
    }
}
