//! [`Finding`], a probable mistake in the environment of a runtime, and the checks that find the mistakes.
use core::fmt::{self, Write};

use super::config::Given;
use super::diagnostic_port::{Split, tokens};
use super::tool_port::without_scheme;
use super::{Config, Port, PortType, Tag, Variable};
use crate::plan::Flavour;

/// A probable mistake in a runtime's environment, from [`Config::findings`]. Its `Display` is a sentence for the author
/// of the environment: how the runtime reads a text, and the text to write instead. It quotes at most 200 characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finding<'a> {
    /// The variable is set under both names, to different values. The old name is ignored.
    Shadowed(Variable),
    /// The variable is set under a name that this runtime does not read.
    Unread(Variable, Flavour),
    /// The value of a variable is neither 0 nor 1, or this runtime reads it as another number.
    Number {
        /// The variable's name.
        name: &'static str,
        /// The value of the variable.
        value: &'a str,
        /// The number that the runtime reads; `None` if the variable counts as unset.
        read: Option<u64>,
        /// Whether the runtime reads hexadecimal numbers.
        hexadecimal: bool,
    },
    /// Ports are requested, but disabled.
    Disabled {
        /// The name of the variable that disables the ports.
        name: &'static str,
        /// The value of the variable.
        value: &'a str,
    },
    /// A list of ports without a port.
    NoPorts {
        /// The variable's name.
        name: &'static str,
        /// The value of the variable.
        value: &'a str,
    },
    /// A port that contains only commas, which the runtime counts as failed.
    OnlyCommas {
        /// The text of the port.
        port: &'a str,
    },
    /// An unknown tag.
    UnknownTag {
        /// The text of the port.
        port: &'a str,
        /// The unknown tag.
        tag: &'a str,
        /// The tag that differs only by blanks, or by one letter that is wrong, missing, additional or swapped.
        meant: Option<Tag>,
    },
    /// Two tags that exclude each other.
    Conflict {
        /// The text of the port.
        port: &'a str,
        /// The tag that counts.
        wins: Tag,
        /// The tag that is ignored.
        loses: Tag,
    },
    /// A tag where the address must be.
    TagForAddress {
        /// The text of the port.
        port: &'a str,
        /// The tag.
        tag: Tag,
    },
    /// An address that begins or ends with blanks.
    Blanks {
        /// The address, including the blanks.
        address: &'a str,
    },
    /// An address in a form that only tools accept.
    Scheme {
        /// The address.
        address: &'a str,
        /// The address in the form that a runtime reads.
        meant: &'a str,
    },
    /// A path that is relative to the working directory. Not [on Windows](Config::on_windows).
    Relative {
        /// The address.
        address: &'a str,
    },
    /// A path that is too long for a Unix socket, on macOS and perhaps on Linux. Not [on Windows](Config::on_windows).
    TooLong {
        /// The address.
        address: &'a str,
    },
    /// A port with the tag `listen`.
    Listen {
        /// The address.
        address: &'a str,
        /// The kind of runtime.
        flavour: Flavour,
    },
    /// An address that is also the address of one of the 32 previous ports.
    SameAddress {
        /// The address.
        address: &'a str,
    },
    /// A port that suspends the runtime by default.
    Suspends {
        /// The address.
        address: &'a str,
    },
}

/// The longest path of a Unix socket in bytes, without its NUL.
const LONGEST_ON_LINUX: usize = 107;
const LONGEST_ON_MACOS: usize = 103;

const WRITE_A_PORT: &str = "write ADDRESS,suspend or ADDRESS,nosuspend";

impl fmt::Display for Finding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Shadowed(variable) => {
                let (name, old_name) = (variable.name(), variable.old_name());
                write!(f, "{old_name} is ignored while {name} is set: unset one of them")
            }
            Self::Unread(variable, flavour) => {
                let (runtime, name, old_name) = (name_of(flavour), variable.name(), variable.old_name());
                write!(f, "{runtime} does not read {old_name}: set {name}")
            }
            Self::Number { name, value, read, hexadecimal } => {
                write!(f, "{name}={} is ", Quoted(value))?;
                match read {
                    None => f.write_str("not a hexadecimal number and counts as unset")?,
                    Some(read) if hexadecimal => write!(f, "read as the hexadecimal number {read:#x}")?,
                    Some(read) => write!(f, "read as the number {read}")?,
                }
                f.write_str(": write 0 or 1")
            }
            Self::Disabled { name, value } => {
                write!(f, "{name}={} disables all diagnostic ports, and suspends nothing: ", Quoted(value))?;
                f.write_str("unset it, or write 1")
            }
            Self::NoPorts { name, value } => {
                write!(f, "{name}={} contains no port: unset it, or {WRITE_A_PORT}", Quoted(value))
            }
            Self::OnlyCommas { port } => {
                let port = Quoted(port);
                write!(f, "{port} has no address and counts as a failed port: {WRITE_A_PORT}, or remove it")
            }
            Self::UnknownTag { port, tag, meant } => {
                write!(f, "{} in {} is not a tag and is ignored: ", Quoted(tag), Quoted(port))?;
                match meant {
                    Some(meant) => write!(f, "write {meant}"),
                    None => f.write_str(
                        "the tags are connect, listen, suspend and nosuspend; an address cannot contain a comma",
                    ),
                }
            }
            Self::Conflict { port, wins, loses } => {
                let port = Quoted(port);
                write!(
                    f,
                    "{port} has both {wins} and {loses}, and the first, {wins}, counts: remove one of them"
                )
            }
            Self::TagForAddress { port, tag } => {
                let port = Quoted(port);
                write!(
                    f,
                    "{tag} in {port} is in the place of the address and is read as one: write ADDRESS,{tag}"
                )
            }
            Self::Blanks { address } => {
                let (address, bare) = (Quoted(address), Quoted(address.trim()));
                write!(f, "the blanks around {address} are part of the address: write {bare}")
            }
            Self::Scheme { address, meant } => {
                let (address, meant) = (Quoted(address), Quoted(meant));
                write!(
                    f,
                    "{address} is an address for tools; a runtime reads all of it as the path: write {meant}"
                )
            }
            Self::Relative { address } => write!(
                f,
                "{address} is relative to the program's working directory (on Windows it is the name of a pipe): write \
                 an absolute path",
                address = Quoted(address)
            ),
            Self::TooLong { address } => {
                let (len, linux) = (address.len(), address.len() > LONGEST_ON_LINUX);
                let limits = if linux { "Linux takes 107, macOS 103" } else { "macOS takes 103" };
                write!(
                    f,
                    "{address} is too long for a Unix socket, with {len} bytes ({limits}): choose a shorter path",
                    address = Quoted(address)
                )
            }
            Self::Listen { address, flavour: Flavour::CoreClr } => write!(
                f,
                "CoreCLR ignores {address} because of the tag listen: remove listen to make the runtime connect, or \
                 remove the port, as the runtime listens at its default port anyway",
                address = Quoted(address)
            ),
            Self::Listen { address, flavour } => write!(
                f,
                "{} listens at {address} only on systems without a default port, for example phones, and ignores it \
                 elsewhere: remove listen to make the runtime connect",
                name_of(flavour),
                address = Quoted(address)
            ),
            Self::SameAddress { address } => write!(
                f,
                "{address} occurs twice and becomes two ports, each of which must be resumed: remove one of them",
                address = Quoted(address)
            ),
            Self::Suspends { address } => write!(
                f,
                "{address} has neither suspend nor nosuspend, so the program does not start until it is resumed there: \
                 add ,suspend or ,nosuspend",
                address = Quoted(address)
            ),
        }
    }
}

/// A text in quotes, on one line; of a long text, its beginning and its length. Not `{:?}`, whose code can panic.
struct Quoted<'a>(&'a str);

/// The largest number of quoted characters. Each unknown tag of a port quotes the port: without a limit, the total
/// length of the sentences would grow with the square of the port's length.
const QUOTED: usize = 200;

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        let mut chars = self.0.chars();
        for c in chars.by_ref().take(QUOTED) {
            if c.is_control() || matches!(c, '"' | '\\') {
                c.escape_default().try_for_each(|c| f.write_char(c))?;
            } else {
                f.write_char(c)?;
            }
        }
        if chars.as_str().is_empty() {
            f.write_str("\"")
        } else {
            write!(f, "…\" ({} bytes)", self.0.len())
        }
    }
}

const fn name_of(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::CoreClr => "CoreCLR",
        Flavour::Mono => "Mono",
        Flavour::NativeAot => "NativeAOT",
    }
}

impl<'a> Config<'a> {
    /// Returns all probable mistakes: first of the variables, then of the ports in their textual order.
    ///
    /// The time is proportional to the length of the variables: a port is compared with at most 32 other ports. None of
    /// the mistakes is an error for a runtime.
    pub fn findings(&self) -> impl Iterator<Item = Finding<'a>> + use<'a> {
        // The iterator computes each finding on demand: a list of all findings would need a large stack frame.
        let config = *self;
        let of_names = Variable::ALL.into_iter().flat_map(move |variable| {
            [of_name, of_value].into_iter().filter_map(move |check| check(&config, variable))
        });
        let of_switches = [of_switches].into_iter().filter_map(move |check| check(&config));
        let mut next = 0usize;
        let parts = Split::new(config.port_list(), b';').filter_map(move |text| {
            let start = next;
            next = start.saturating_add(text.len()).saturating_add(1);
            (!text.is_empty()).then_some((start, text))
        });
        let of_ports = parts.flat_map(move |(start, text)| {
            let written = WrittenPort { config, text, start, port: Port::parse(text) };
            unknown_tags(text).chain(PORT_CHECKS.iter().filter_map(move |check| check(&written)))
        });
        of_names.chain(of_switches).chain(of_ports)
    }
}

fn of_name<'a>(config: &Config<'a>, variable: Variable) -> Option<Finding<'a>> {
    let Given { new, old } = config.given(variable);
    match (new, old) {
        (_, None) => None,
        (Some(new), Some(old)) if new == old => None,
        _ if !config.reads_old_name(variable) => Some(Finding::Unread(variable, config.flavour)),
        (None, _) => None,
        _ => Some(Finding::Shadowed(variable)),
    }
}

fn of_value<'a>(config: &Config<'a>, variable: Variable) -> Option<Finding<'a>> {
    let (name, value) = config.value(variable)?;
    let read = config.number(variable);
    let number = match config.flavour {
        Flavour::CoreClr => value.strip_prefix("0x").unwrap_or(value),
        Flavour::Mono | Flavour::NativeAot => value,
    };
    let plain = !value.is_empty() && matches!(number.trim_start_matches('0'), "" | "1");
    let hexadecimal = config.flavour != Flavour::Mono;
    match variable {
        Variable::DiagnosticPorts => {
            let nothing = !value.is_empty() && value.bytes().all(|byte| byte == b';');
            nothing.then_some(Finding::NoPorts { name, value })
        }
        _ if plain && read.is_some() => None,
        _ => Some(Finding::Number { name, value, read, hexadecimal }),
    }
}

/// Checks whether one variable disables the ports that another variable requests.
fn of_switches<'a>(config: &Config<'a>) -> Option<Finding<'a>> {
    let suspends = config.number(Variable::DefaultDiagnosticPortSuspend).is_some_and(|number| number != 0);
    let asked = suspends || Port::list(config.port_list()).next().is_some();
    let (name, value) = config.disabled_by()?;
    asked.then_some(Finding::Disabled { name, value })
}

fn unknown_tags(text: &str) -> impl Iterator<Item = Finding<'_>> {
    let unknown = tokens(text).skip(1).filter(|tag| Tag::parse(tag).is_none());
    unknown.map(move |tag| Finding::UnknownTag { port: text, tag, meant: meant(tag) })
}

/// Returns the tag that an unknown tag probably means.
fn meant(token: &str) -> Option<Tag> {
    let token = token.trim().as_bytes();
    Tag::ALL.into_iter().find(|tag| is_one_edit_away(token, tag.name().as_bytes()))
}

/// Returns whether `a` and `b` differ at most in one letter: wrong, missing, additional, or swapped with the next.
fn is_one_edit_away(a: &[u8], b: &[u8]) -> bool {
    let same = |(x, y): &(&u8, &u8)| x.eq_ignore_ascii_case(y);
    let front = a.iter().zip(b).take_while(same).count();
    let (a, b) = (a.get(front..).unwrap_or_default(), b.get(front..).unwrap_or_default());
    let back = a.iter().rev().zip(b.iter().rev()).take_while(same).count();
    let (a, b) = (without_last(a, back), without_last(b, back));
    match (a, b) {
        ([] | [_], [] | [_]) => true,
        ([a, b], [c, d]) => a.eq_ignore_ascii_case(d) && b.eq_ignore_ascii_case(c),
        _ => false,
    }
}

fn without_last(bytes: &[u8], n: usize) -> &[u8] {
    bytes.get(..bytes.len().saturating_sub(n)).unwrap_or_default()
}

/// The largest number of ports that a port is compared with. Without a limit, the time would grow with the square.
const COMPARED: usize = 32;

/// A port of the list with its text, for the checks.
struct WrittenPort<'a> {
    config: Config<'a>,
    text: &'a str,
    /// The offset of the port in the list.
    start: usize,
    port: Option<Port<'a>>,
}

type PortCheck = for<'a> fn(&WrittenPort<'a>) -> Option<Finding<'a>>;

/// The checks of a port, in the order of their findings.
static PORT_CHECKS: [PortCheck; 11] =
    [commas, tag, scheme, blanks, relative, too_long, same_address, types, listen, suspension, suspends];

impl<'a> WrittenPort<'a> {
    fn address(&self) -> Option<&'a str> {
        self.port.map(|port| port.address())
    }

    /// Returns the address if it can be a path.
    fn path(&self) -> Option<&'a str> {
        // Mono runs on phones, where an address is a host and its TCP port.
        let host = |address: &str| self.config.flavour == Flavour::Mono && address.contains(':');
        let is_path = |address: &&str| !host(address) && scheme(self).is_none() && tag(self).is_none();
        let Config { is_on_windows, is_on_phone, .. } = self.config;
        self.address().filter(|_| !is_on_windows && !is_on_phone).filter(is_path)
    }
}

fn commas<'a>(written: &WrittenPort<'a>) -> Option<Finding<'a>> {
    written.port.is_none().then_some(Finding::OnlyCommas { port: written.text })
}

fn tag<'a>(written: &WrittenPort<'a>) -> Option<Finding<'a>> {
    Tag::parse(written.address()?.trim()).map(|tag| Finding::TagForAddress { port: written.text, tag })
}

fn scheme<'a>(written: &WrittenPort<'a>) -> Option<Finding<'a>> {
    let address = written.address()?;
    without_scheme(address).map(|meant| Finding::Scheme { address, meant })
}

fn blanks<'a>(written: &WrittenPort<'a>) -> Option<Finding<'a>> {
    let address = written.address()?;
    (address.trim() != address).then_some(Finding::Blanks { address })
}

fn relative<'a>(written: &WrittenPort<'a>) -> Option<Finding<'a>> {
    let address = written.path()?;
    (!address.trim_start().starts_with('/')).then_some(Finding::Relative { address })
}

fn too_long<'a>(written: &WrittenPort<'a>) -> Option<Finding<'a>> {
    let address = written.path()?;
    (address.len() > LONGEST_ON_MACOS).then_some(Finding::TooLong { address })
}

fn same_address<'a>(written: &WrittenPort<'a>) -> Option<Finding<'a>> {
    let address = written.address()?;
    let before = written.config.port_list().get(..written.start).unwrap_or_default();
    let mut recent = Split::new(before, b';').rev().filter(|text| !text.is_empty()).take(COMPARED);
    let twice = recent.any(|other| tokens(other).next() == Some(address));
    twice.then_some(Finding::SameAddress { address })
}

fn types<'a>(written: &WrittenPort<'a>) -> Option<Finding<'a>> {
    conflict(written.text, [Tag::Connect, Tag::Listen])
}

fn listen<'a>(written: &WrittenPort<'a>) -> Option<Finding<'a>> {
    let (port, flavour) = (written.port?, written.config.flavour);
    let is_ignored = port.port_type() == PortType::Listen && !written.config.is_on_phone;
    is_ignored.then_some(Finding::Listen { address: port.address(), flavour })
}

fn suspension<'a>(written: &WrittenPort<'a>) -> Option<Finding<'a>> {
    conflict(written.text, [Tag::Suspend, Tag::NoSuspend])
}

fn suspends<'a>(written: &WrittenPort<'a>) -> Option<Finding<'a>> {
    let WrittenPort { config, text, port, .. } = written;
    let port = (*port)?;
    let is_explicit = |tag: &str| matches!(Tag::parse(tag), Some(Tag::Suspend | Tag::NoSuspend));
    let suspends = config.is_enabled() && config.opens(&port) && !tokens(text).skip(1).any(is_explicit);
    suspends.then_some(Finding::Suspends { address: port.address() })
}

/// Returns a finding if the text of a port has both of `tags`, which exclude each other.
fn conflict<'a>(text: &'a str, tags: [Tag; 2]) -> Option<Finding<'a>> {
    let mut found = tokens(text).skip(1).filter_map(Tag::parse).filter(|tag| tags.contains(tag));
    let wins = found.next()?;
    let loses = found.find(|tag| *tag != wins)?;
    Some(Finding::Conflict { port: text, wins, loses })
}
