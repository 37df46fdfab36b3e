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
    pub(super) fn of(config: Config<'a>) -> impl Iterator<Item = Self> + use<'a> {
        let list = config.port_list();
        let variables = Variable::ALL.into_iter().flat_map(move |variable| of_variable(&config, variable));
        let ports = Split::new(list, b';').enumerate().filter(|(_, text)| !text.is_empty());
        variables.chain(of_switches(&config)).chain(ports.flat_map(move |(index, text)| {
            let earlier = Split::new(list, b';').take(index);
            let port = Port::parse(text);
            let nothing = port.is_none().then_some(Finding::OnlyCommas { port: text });
            let port = port.map(|port| of_port(&config, text, port, earlier));
            nothing.into_iter().chain(unknown_tags(text)).chain(port.into_iter().flatten().flatten())
        }))
    }
}

fn of_variable<'a>(config: &Config<'a>, variable: Variable) -> impl Iterator<Item = Finding<'a>> + use<'a> {
    let Given { new, old } = config.given(variable);
    let name = match (new, old) {
        (_, None) => None,
        (Some(new), Some(old)) if new == old => None,
        _ if !config.reads_old_name(variable) => Some(Finding::Unread(variable, config.flavour)),
        (None, _) => None,
        _ => Some(Finding::Shadowed(variable)),
    };
    let value = config.value(variable).and_then(|(name, value)| {
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
    });
    [name, value].into_iter().flatten()
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

fn of_port<'a>(
    config: &Config<'a>,
    text: &'a str,
    port: Port<'a>,
    mut earlier: impl Iterator<Item = &'a str>,
) -> [Option<Finding<'a>>; 10] {
    let (flavour, address) = (config.flavour, port.address());
    let scheme = without_scheme(address).map(|meant| Finding::Scheme { address, meant });
    let tag = Tag::parse(address.trim()).map(|tag| Finding::TagForAddress { port: text, tag });
    // On phones an address is a host and its port.
    let path = scheme.is_none() && tag.is_none() && !(flavour == Flavour::Mono && address.contains(':'));
    let blanks = address.trim() != address;
    let relative = path && !address.trim_start().starts_with('/');
    let listens = port.port_type() == PortType::Listen;
    let twice = earlier.any(|other| tokens(other).next() == Some(address));
    let says = |tag: &str| matches!(Tag::parse(tag), Some(Tag::Suspend | Tag::NoSuspend));
    let suspends = config.is_enabled() && port.is_opened_by(flavour) && !tokens(text).skip(1).any(says);
    [
        tag,
        scheme,
        blanks.then_some(Finding::Blanks { address }),
        relative.then_some(Finding::Relative { address }),
        (path && address.len() > LONGEST_ON_MACOS).then_some(Finding::TooLong { address }),
        twice.then_some(Finding::SameAddress { address }),
        conflict(text, [Tag::Connect, Tag::Listen]),
        listens.then_some(Finding::Listen { address, flavour }),
        conflict(text, [Tag::Suspend, Tag::NoSuspend]),
        suspends.then_some(Finding::Suspends { address }),
    ]
}

/// Which of two tags counts, if a port has both.
fn conflict<'a>(text: &'a str, tags: [Tag; 2]) -> Option<Finding<'a>> {
    let mut said = tokens(text).skip(1).filter_map(Tag::parse).filter(|tag| tags.contains(tag));
    let wins = said.next()?;
    let loses = said.find(|tag| *tag != wins)?;
    Some(Finding::Conflict { port: text, wins, loses })
}
