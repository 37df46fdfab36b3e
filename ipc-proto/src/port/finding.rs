use core::fmt::{self, Write};

use super::config::{Given, Split, tokens};
use super::tool_port::without_scheme;
use super::{Config, Port, PortType, Tag, Variable};
use crate::plan::Flavour;

/// Something in a runtime's environment that somebody probably did not mean. Its `Display` is the sentence for whoever
/// wrote it: what the runtime makes of it, and what to write instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finding<'a> {
    /// The variable is set under both names, to different values, and the old one is not looked at.
    Shadowed(Variable),
    /// The variable is set under a name that this runtime does not look at.
    Unread(Variable, Flavour),
    /// A number that is neither 0 nor 1, or not where this runtime reads it.
    Number {
        /// The variable's name.
        name: &'static str,
        /// Its value.
        value: &'a str,
        /// The number that the runtime sees; `None` if it takes the variable for not set.
        read: Option<u64>,
        /// Whether it reads hexadecimal numbers.
        hexadecimal: bool,
    },
    /// Ports are asked for, and switched off.
    Disabled {
        /// The name of the variable that does so.
        name: &'static str,
        /// Its value.
        value: &'a str,
    },
    /// A list of ports without a port.
    NoPorts {
        /// The variable's name.
        name: &'static str,
        /// Its value.
        value: &'a str,
    },
    /// A port that is nothing but commas, which the runtime counts as failed.
    OnlyCommas {
        /// The port, as it is written.
        port: &'a str,
    },
    /// A tag that is none.
    UnknownTag {
        /// The port, as it is written.
        port: &'a str,
        /// What is no tag.
        tag: &'a str,
        /// The one that it looks like: but for blanks, and for one letter that is wrong, missing, too much, or swapped.
        meant: Option<Tag>,
    },
    /// Two tags that exclude each other.
    Conflict {
        /// The port, as it is written.
        port: &'a str,
        /// The one that counts.
        wins: Tag,
        /// The one that does not.
        loses: Tag,
    },
    /// A tag where the address should be.
    TagForAddress {
        /// The port, as it is written.
        port: &'a str,
        /// The tag.
        tag: Tag,
    },
    /// An address that begins or ends with blanks.
    Blanks {
        /// The address, blanks and all.
        address: &'a str,
    },
    /// An address as only tools take it.
    Scheme {
        /// The address.
        address: &'a str,
        /// What a runtime takes.
        meant: &'a str,
    },
    /// A path that depends on where the program runs.
    Relative {
        /// The address.
        address: &'a str,
    },
    /// A path that is too long for a Unix socket, on macOS if not on Linux.
    TooLong {
        /// The address.
        address: &'a str,
    },
    /// A port that says `listen`.
    Listen {
        /// The address.
        address: &'a str,
        /// The kind of runtime.
        flavour: Flavour,
    },
    /// An address that is there before.
    SameAddress {
        /// The address.
        address: &'a str,
    },
    /// A port that suspends the runtime without saying so.
    Suspends {
        /// The address.
        address: &'a str,
    },
}

/// The longest path of a Unix socket in bytes: without the NUL, for which there must be room too.
const LONGEST_ON_LINUX: usize = 107;
const LONGEST_ON_MACOS: usize = 103;

impl fmt::Display for Finding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Shadowed(variable) => {
                let (name, old_name) = (variable.name(), variable.old_name());
                write!(f, "{old_name} is not looked at while {name} is set: unset one of them")
            }
            Self::Unread(variable, flavour) => {
                let (who, name, old_name) = (name_of(flavour), variable.name(), variable.old_name());
                write!(f, "{who} does not look at {old_name}: write {name}")
            }
            Self::Number { name, value, read: None, .. } => {
                write!(
                    f,
                    "{name}={value} is no hexadecimal number and counts as not set: write 0 or 1",
                    value = Quoted(value)
                )
            }
            Self::Number { name, value, read: Some(read), hexadecimal: true } => {
                write!(
                    f,
                    "{name}={value} is read as the hexadecimal number {read:#x}: write 0 or 1",
                    value = Quoted(value)
                )
            }
            Self::Number { name, value, read: Some(read), hexadecimal: false } => {
                write!(f, "{name}={value} is read as the number {read}: write 0 or 1", value = Quoted(value))
            }
            Self::Disabled { name, value } => write!(
                f,
                "{name}={value} switches all ports off, and nothing waits for them: unset it, or write 1",
                value = Quoted(value)
            ),
            Self::NoPorts { name, value } => write!(
                f,
                "{name}={value} has no port in it: unset it, or write ADDRESS,suspend or ADDRESS,nosuspend",
                value = Quoted(value)
            ),
            Self::OnlyCommas { port } => write!(
                f,
                "{port} has no address, and counts as a port that failed: write ADDRESS,suspend or \
                 ADDRESS,nosuspend, or leave it out",
                port = Quoted(port)
            ),
            Self::UnknownTag { port, tag, meant: Some(meant) } => {
                write!(
                    f,
                    "{tag} in {port} is no tag, and is ignored: write {meant}",
                    tag = Quoted(tag),
                    port = Quoted(port)
                )
            }
            Self::UnknownTag { port, tag, meant: None } => write!(
                f,
                "{tag} in {port} is no tag, and is ignored: tags are connect, listen, suspend and nosuspend; \
                 no address has a comma",
                tag = Quoted(tag),
                port = Quoted(port)
            ),
            Self::Conflict { port, wins, loses } => write!(
                f,
                "{port} says both {wins} and {loses}, and the first, {wins}, counts: leave one out",
                port = Quoted(port)
            ),
            Self::TagForAddress { port, tag } => write!(
                f,
                "{tag} in {port} stands in the place of the address, and is taken for one: write ADDRESS,{tag}",
                port = Quoted(port)
            ),
            Self::Blanks { address } => {
                let bare = address.trim();
                write!(
                    f,
                    "the blanks around {address} are a part of the address: write {bare}",
                    address = Quoted(address),
                    bare = Quoted(bare)
                )
            }
            Self::Scheme { address, meant } => write!(
                f,
                "{address} is an address as tools take it, of which the runtime takes all for the path: write {meant}",
                address = Quoted(address),
                meant = Quoted(meant)
            ),
            Self::Relative { address } => write!(
                f,
                "{address} is looked for in the program's working directory, but on Windows, where it is the name of a \
                 pipe: write the path from / on",
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
                "CoreCLR ignores {address}, because it says listen: leave listen out if it is to connect, or leave all \
                 of it out, as it listens at its default port anyway",
                address = Quoted(address)
            ),
            Self::Listen { address, flavour } => write!(
                f,
                "{} listens at {address} only where it has no default port, as on phones, and ignores it elsewhere: \
                 leave listen out if it is to connect",
                name_of(flavour),
                address = Quoted(address)
            ),
            Self::SameAddress { address } => write!(
                f,
                "{address} is there twice, and becomes two ports, each with a resume of its own: leave one out",
                address = Quoted(address)
            ),
            Self::Suspends { address } => write!(
                f,
                "{address} says neither suspend nor nosuspend, so that the program does not start until it is resumed \
                 there: add ,suspend or ,nosuspend",
                address = Quoted(address)
            ),
        }
    }
}

/// A text in quotes, on one line. Not `{:?}`, for core's may panic.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            if c.is_control() || matches!(c, '"' | '\\') {
                c.escape_default().try_for_each(|c| f.write_char(c))?;
            } else {
                f.write_char(c)?;
            }
        }
        f.write_str("\"")
    }
}

const fn name_of(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::CoreClr => "CoreCLR",
        Flavour::Mono => "Mono",
        Flavour::NativeAot => "a program compiled by NativeAOT",
    }
}

impl<'a> Finding<'a> {
    // Nothing is found before it is asked for, and no iterator keeps what it has not yet given: the frames are small.
    pub(super) fn of(config: Config<'a>) -> impl Iterator<Item = Self> + use<'a> {
        let of_names = Variable::ALL.into_iter().flat_map(move |variable| {
            [of_name, of_value].into_iter().filter_map(move |check| check(&config, variable))
        });
        let of_switches = [of_switches].into_iter().filter_map(move |check| check(&config));
        let parts = Split::new(config.port_list(), b';').enumerate().filter(|(_, text)| !text.is_empty());
        let of_ports = parts.flat_map(move |(index, text)| {
            let written = Written { config, text, index, port: Port::parse(text) };
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

/// Whether what is asked for is switched off.
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

/// The tag that this was probably to be.
fn meant(token: &str) -> Option<Tag> {
    let token = token.trim();
    Tag::ALL.into_iter().find(|tag| is_one_edit_away(token.as_bytes(), tag.name().as_bytes()))
}

/// Whether one letter, or none, is wrong, missing, too much, or swapped with the next.
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

/// A port as it is written, at its place in the list.
struct Written<'a> {
    config: Config<'a>,
    text: &'a str,
    index: usize,
    port: Option<Port<'a>>,
}

type PortCheck = for<'a> fn(&Written<'a>) -> Option<Finding<'a>>;

/// In the order in which they are told.
static PORT_CHECKS: [PortCheck; 11] =
    [commas, tag, scheme, blanks, relative, too_long, same_address, types, listen, suspension, suspends];

impl<'a> Written<'a> {
    fn address(&self) -> Option<&'a str> {
        self.port.map(|port| port.address())
    }

    /// Its address, if that can be a path at all.
    fn path(&self) -> Option<&'a str> {
        // On phones an address is a host and its port.
        let host = |address: &str| self.config.flavour == Flavour::Mono && address.contains(':');
        self.address().filter(|address| !host(address) && scheme(self).is_none() && tag(self).is_none())
    }
}

fn commas<'a>(written: &Written<'a>) -> Option<Finding<'a>> {
    written.port.is_none().then_some(Finding::OnlyCommas { port: written.text })
}

fn tag<'a>(written: &Written<'a>) -> Option<Finding<'a>> {
    Tag::parse(written.address()?.trim()).map(|tag| Finding::TagForAddress { port: written.text, tag })
}

fn scheme<'a>(written: &Written<'a>) -> Option<Finding<'a>> {
    let address = written.address()?;
    without_scheme(address).map(|meant| Finding::Scheme { address, meant })
}

fn blanks<'a>(written: &Written<'a>) -> Option<Finding<'a>> {
    let address = written.address()?;
    (address.trim() != address).then_some(Finding::Blanks { address })
}

fn relative<'a>(written: &Written<'a>) -> Option<Finding<'a>> {
    let address = written.path()?;
    (!address.trim_start().starts_with('/')).then_some(Finding::Relative { address })
}

fn too_long<'a>(written: &Written<'a>) -> Option<Finding<'a>> {
    let address = written.path()?;
    (address.len() > LONGEST_ON_MACOS).then_some(Finding::TooLong { address })
}

fn same_address<'a>(written: &Written<'a>) -> Option<Finding<'a>> {
    let address = written.address()?;
    let mut earlier = Split::new(written.config.port_list(), b';').take(written.index);
    let twice = earlier.any(|other| tokens(other).next() == Some(address));
    twice.then_some(Finding::SameAddress { address })
}

fn types<'a>(written: &Written<'a>) -> Option<Finding<'a>> {
    conflict(written.text, [Tag::Connect, Tag::Listen])
}

fn listen<'a>(written: &Written<'a>) -> Option<Finding<'a>> {
    let (port, flavour) = (written.port?, written.config.flavour);
    (port.port_type() == PortType::Listen).then_some(Finding::Listen { address: port.address(), flavour })
}

fn suspension<'a>(written: &Written<'a>) -> Option<Finding<'a>> {
    conflict(written.text, [Tag::Suspend, Tag::NoSuspend])
}

fn suspends<'a>(written: &Written<'a>) -> Option<Finding<'a>> {
    let Written { config, text, port, .. } = written;
    let port = (*port)?;
    let says = |tag: &str| matches!(Tag::parse(tag), Some(Tag::Suspend | Tag::NoSuspend));
    let suspends =
        config.is_enabled() && port.is_opened_by(config.flavour) && !tokens(text).skip(1).any(says);
    suspends.then_some(Finding::Suspends { address: port.address() })
}

/// Which of two tags counts, if a port has both.
fn conflict<'a>(text: &'a str, tags: [Tag; 2]) -> Option<Finding<'a>> {
    let mut said = tokens(text).skip(1).filter_map(Tag::parse).filter(|tag| tags.contains(tag));
    let wins = said.next()?;
    let loses = said.find(|tag| *tag != wins)?;
    Some(Finding::Conflict { port: text, wins, loses })
}
