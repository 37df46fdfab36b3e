use core::fmt;

use super::Finding;
use crate::endpoint::split_once;
use crate::plan::Flavour;
use crate::wire::{hex_digit, number};

/// A variable of the environment that a runtime reads at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Variable {
    /// The ports beside the default one, as [`Port::list`] reads them.
    DiagnosticPorts,
    /// A number: anything but 0 makes the default port keep the runtime from running.
    DefaultDiagnosticPortSuspend,
    /// A number: 0 switches all diagnostics off.
    EnableDiagnostics,
    /// A number: 0 switches the ports off; from .NET 8 on.
    EnableDiagnosticsIpc,
}

impl Variable {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::DiagnosticPorts,
        Self::DefaultDiagnosticPortSuspend,
        Self::EnableDiagnostics,
        Self::EnableDiagnosticsIpc,
    ];

    /// Its name: `DOTNET_` and so on.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DiagnosticPorts => "DOTNET_DiagnosticPorts",
            Self::DefaultDiagnosticPortSuspend => "DOTNET_DefaultDiagnosticPortSuspend",
            Self::EnableDiagnostics => "DOTNET_EnableDiagnostics",
            Self::EnableDiagnosticsIpc => "DOTNET_EnableDiagnostics_IPC",
        }
    }

    /// Its name of old, which some runtimes still look at: `COMPlus_` and so on.
    #[must_use]
    pub const fn old_name(self) -> &'static str {
        match self {
            Self::DiagnosticPorts => "COMPlus_DiagnosticPorts",
            Self::DefaultDiagnosticPortSuspend => "COMPlus_DefaultDiagnosticPortSuspend",
            Self::EnableDiagnostics => "COMPlus_EnableDiagnostics",
            Self::EnableDiagnosticsIpc => "COMPlus_EnableDiagnostics_IPC",
        }
    }
}

/// What a runtime makes of its environment: which ports it has, and which of them it waits for.
///
/// | | CoreCLR | Mono | NativeAOT |
/// |---|---|---|---|
/// | looks at | `DOTNET_`, then `COMPlus_` | `DOTNET_`; for what switches diagnostics off `COMPlus_` too | `DOTNET_` |
/// | an empty value | is as none | is a value | is as none |
/// | numbers are | hexadecimal, up to the first character that is no digit | decimal, likewise; 0 if there is no digit | hexadecimal, at most 16 digits and nothing else |
/// | no number | is as no value | is 0 | is as no value |
///
/// ```
/// use ipc_proto::plan::Flavour;
/// use ipc_proto::port::Config;
///
/// let environment = |name: &str| match name {
///     "DOTNET_DiagnosticPorts" => Some("/run/first,nosuspend;/run/second"),
///     "DOTNET_DefaultDiagnosticPortSuspend" => Some("1"),
///     _ => None,
/// };
/// let config = Config::read(Flavour::CoreClr, environment);
/// assert!(config.is_enabled() && config.default_port_suspends());
/// let ports: Vec<_> = config.ports().map(|port| (port.address(), port.suspends())).collect();
/// assert_eq!(ports, [("/run/second", true), ("/run/first", false)]);
/// let findings: Vec<String> = config.findings().map(|finding| finding.to_string()).collect();
/// assert_eq!(findings, [
///     "\"/run/second\" says neither suspend nor nosuspend, so that the program does not start until it is resumed \
///      there: add ,suspend or ,nosuspend"
/// ]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config<'a> {
    pub(super) flavour: Flavour,
    ports: Given<'a>,
    suspend: Given<'a>,
    enable: Given<'a>,
    enable_ipc: Given<'a>,
}

/// What the environment has under both names of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Given<'a> {
    pub(super) new: Option<&'a str>,
    pub(super) old: Option<&'a str>,
}

impl<'a> Config<'a> {
    /// Looks up all names of every [`Variable`], as this kind of runtime would.
    pub fn read(flavour: Flavour, lookup: impl Fn(&str) -> Option<&'a str>) -> Self {
        let given = |variable: Variable| Given {
            // The runtimes other than Mono cannot tell an empty variable from none.
            new: lookup(variable.name()).filter(|value| flavour == Flavour::Mono || !value.is_empty()),
            old: lookup(variable.old_name()).filter(|value| flavour == Flavour::Mono || !value.is_empty()),
        };
        Self {
            flavour,
            ports: given(Variable::DiagnosticPorts),
            suspend: given(Variable::DefaultDiagnosticPortSuspend),
            enable: given(Variable::EnableDiagnostics),
            enable_ipc: given(Variable::EnableDiagnosticsIpc),
        }
    }

    /// Whether the runtime has any ports, the default one included.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.disabled_by().is_none()
    }

    /// The variable that switches the ports off, under the name by which the runtime reads it, and its value.
    ///
    /// ```
    /// use ipc_proto::plan::Flavour;
    /// use ipc_proto::port::Config;
    ///
    /// let config = Config::read(Flavour::CoreClr, |name| (name == "COMPlus_EnableDiagnostics").then_some("0x0"));
    /// assert_eq!(config.disabled_by(), Some(("COMPlus_EnableDiagnostics", "0x0")));
    /// ```
    #[must_use]
    pub fn disabled_by(&self) -> Option<(&'static str, &'a str)> {
        [Variable::EnableDiagnostics, Variable::EnableDiagnosticsIpc]
            .into_iter()
            .find(|variable| self.number(*variable) == Some(0))
            .and_then(|variable| self.value(variable))
    }

    /// Whether the default port, which the runtime listens at, keeps it from running.
    #[must_use]
    pub fn default_port_suspends(&self) -> bool {
        let suspend = self.number(Variable::DefaultDiagnosticPortSuspend).unwrap_or(0);
        self.is_enabled() && suspend & u64::from(u32::MAX) != 0
    }

    /// The ports that the runtime has beside the default one, in its order: the last of the list comes first.
    ///
    /// One that says `listen` is not among them for CoreCLR, which ignores it. The others honour it where they have no
    /// default port, as on phones.
    pub fn ports(&self) -> impl Iterator<Item = Port<'a>> + use<'a> {
        let Self { flavour, .. } = *self;
        let value = if self.is_enabled() { self.port_list() } else { "" };
        Port::list(value).filter(move |port| port.is_opened_by(flavour))
    }

    /// Everything that somebody probably did not mean: first of the variables, then of the ports as they are written.
    ///
    /// It takes the longer the more ports there are, with their square. A runtime does not mind any of it.
    pub fn findings(&self) -> impl Iterator<Item = Finding<'a>> + use<'a> {
        Finding::of(*self)
    }

    /// The list of ports, if the runtime finds one.
    pub(super) fn port_list(&self) -> &'a str {
        self.value(Variable::DiagnosticPorts).map_or("", |(_, value)| value)
    }

    pub(super) const fn given(&self, variable: Variable) -> Given<'a> {
        match variable {
            Variable::DiagnosticPorts => self.ports,
            Variable::DefaultDiagnosticPortSuspend => self.suspend,
            Variable::EnableDiagnostics => self.enable,
            Variable::EnableDiagnosticsIpc => self.enable_ipc,
        }
    }

    /// Whether this kind of runtime looks at the name of old.
    pub(super) const fn reads_old_name(&self, variable: Variable) -> bool {
        match self.flavour {
            Flavour::CoreClr => true,
            Flavour::Mono => matches!(variable, Variable::EnableDiagnostics | Variable::EnableDiagnosticsIpc),
            Flavour::NativeAot => false,
        }
    }

    /// The value that the runtime sees, and under which name.
    pub(super) fn value(&self, variable: Variable) -> Option<(&'static str, &'a str)> {
        let Given { new, old } = self.given(variable);
        match (new, old) {
            (Some(value), _) => Some((variable.name(), value)),
            (None, Some(value)) if self.reads_old_name(variable) => Some((variable.old_name(), value)),
            _ => None,
        }
    }

    /// The number that the runtime sees.
    pub(super) fn number(&self, variable: Variable) -> Option<u64> {
        let (_, text) = self.value(variable)?;
        match self.flavour {
            Flavour::CoreClr => leading_number(text, 16).map(u64::from),
            Flavour::Mono => Some(leading_number(text, 10).unwrap_or(0).into()),
            Flavour::NativeAot => number(text.as_bytes(), 16).filter(|_| text.len() <= 16),
        }
    }
}

/// The number at the front of a text, as C's `strtoul` reads it.
fn leading_number(text: &str, base: u8) -> Option<u32> {
    let text = text.trim_start_matches(|c| matches!(c, ' ' | '\t'..='\r'));
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_digit = |byte: &u8| hex_digit(*byte).is_some_and(|digit| digit < base);
    let digits = match unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        Some(digits) if base == 16 && digits.as_bytes().first().is_some_and(is_digit) => digits,
        _ => unsigned,
    };
    let len = digits.as_bytes().iter().take_while(|byte| is_digit(byte)).count();
    let number = u32::try_from(number(digits.as_bytes().get(..len)?, base)?).ok()?;
    Some(if text.starts_with('-') { number.wrapping_neg() } else { number })
}

/// A port of a runtime, as a part of `DOTNET_DiagnosticPorts` has it.
///
/// ```text
/// list := port (";" port)*
/// port := address ("," tag)*
/// tag  := "connect" | "listen" | "suspend" | "nosuspend"
/// ```
///
/// As runtimes read it: what is empty between two separators is not there; blanks are characters like others; tags are
/// in any case, and what is none of them is ignored; of tags that exclude each other the first counts. A port connects
/// and suspends unless it says otherwise. Section "Diagnostic Ports" of the specification (errata: it says neither that
/// empty parts vanish, nor what becomes of other words; and runtimes without a default port do take `listen`).
///
/// Its `Display` is the value for a child process that is to call a monitor; join several with `;`.
///
/// ```
/// use ipc_proto::port::{Port, PortType, Variable};
///
/// let port = Port::connect("/run/monitor", true)?;
/// let (name, value) = (Variable::DiagnosticPorts.name(), port.to_string());
/// assert_eq!((name, &value[..]), ("DOTNET_DiagnosticPorts", "/run/monitor,suspend"));
/// assert!(Port::list(&value).eq([port]));
///
/// let ports: Vec<_> = Port::list(";;/a,NoSuspend,suspend;,/b,, listen,;,,").collect();
/// assert_eq!((ports[0].address(), ports[0].suspends()), ("/b", true));
/// assert_eq!(ports[0].port_type(), PortType::Connect); // " listen" is no tag
/// assert_eq!((ports[1].address(), ports[1].suspends()), ("/a", false));
/// assert_eq!(ports.len(), 2);
/// # Ok::<(), ipc_proto::port::PortAddressError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Port<'a> {
    // Not public, so that there is none that cannot be written.
    address: &'a str,
    port_type: PortType,
    suspend: bool,
}

/// Who connects to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PortType {
    /// The owner of the port connects.
    Connect,
    /// The owner of the port listens.
    Listen,
}

/// A word behind the address of a [`Port`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tag {
    /// The runtime connects, as it does by default.
    Connect,
    /// The runtime listens.
    Listen,
    /// The runtime does not run until it is resumed by this port, as by default.
    Suspend,
    /// The runtime does not wait for this port.
    NoSuspend,
}

impl Tag {
    pub(super) const ALL: [Self; 4] = [Self::Connect, Self::Listen, Self::NoSuspend, Self::Suspend];

    /// The word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Listen => "listen",
            Self::Suspend => "suspend",
            Self::NoSuspend => "nosuspend",
        }
    }

    pub(super) fn parse(token: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tag| tag.name().eq_ignore_ascii_case(token))
    }
}
impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl<'a> Port<'a> {
    /// A port that leads to a monitor at this address: the path of a Unix socket; on Windows the bare name of a pipe, to
    /// which the runtime adds `\\.\pipe\`.
    ///
    /// # Errors
    /// If the address cannot be written in a list of ports: if it is empty, or has a `;`, a `,` or a NUL in it.
    pub fn connect(address: &'a str, suspend: bool) -> Result<Self, PortAddressError> {
        if address.is_empty() || address.contains([';', ',', '\0']) {
            return Err(PortAddressError);
        }
        Ok(Self { address, port_type: PortType::Connect, suspend })
    }

    /// The ports of a value of `DOTNET_DiagnosticPorts`, in the runtime's order: the last comes first.
    ///
    /// Those that a runtime would ignore for saying `listen` are here too. What has no address is not.
    pub fn list(value: &'a str) -> impl Iterator<Item = Self> + use<'a> {
        Split::new(value, b';').rev().filter_map(Self::parse)
    }

    /// What stands between two `;`; `None` if it is nothing but commas.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut tokens = tokens(text);
        let mut port = Self { address: tokens.next()?, port_type: PortType::Connect, suspend: true };
        // From the last to the first, so that the first has the last word.
        for tag in tokens.rev().filter_map(Tag::parse) {
            match tag {
                Tag::Connect => port.port_type = PortType::Connect,
                Tag::Listen => port.port_type = PortType::Listen,
                Tag::Suspend => port.suspend = true,
                Tag::NoSuspend => port.suspend = false,
            }
        }
        Some(port)
    }

    /// Where the monitor is.
    #[must_use]
    pub const fn address(&self) -> &'a str {
        self.address
    }

    /// Who connects.
    #[must_use]
    pub const fn port_type(&self) -> PortType {
        self.port_type
    }

    /// Whether the runtime does not run until it is resumed by this port.
    #[must_use]
    pub const fn suspends(&self) -> bool {
        self.suspend
    }

    pub(super) fn is_opened_by(&self, flavour: Flavour) -> bool {
        self.port_type == PortType::Connect || flavour != Flavour::CoreClr
    }
}

impl fmt::Display for Port<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.address)?;
        if self.port_type == PortType::Listen {
            f.write_str(",listen")?;
        }
        f.write_str(if self.suspend { ",suspend" } else { ",nosuspend" })
    }
}

/// What commas separate, as C's `strtok` sees it.
pub(super) fn tokens(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    Split::new(text, b',').filter(|token| !token.is_empty())
}

/// `str::split`, in which the compiler cannot see that it never panics.
#[derive(Clone)]
pub(super) struct Split<'a> {
    rest: Option<&'a str>,
    separator: u8,
}

impl<'a> Split<'a> {
    /// The separator is ASCII.
    pub(super) const fn new(text: &'a str, separator: u8) -> Self {
        Self { rest: Some(text), separator }
    }
}

impl<'a> Iterator for Split<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest.take()?;
        let Some((part, rest)) = split_once(rest, self.separator) else { return Some(rest) };
        self.rest = Some(rest);
        Some(part)
    }
}
impl DoubleEndedIterator for Split<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        let Some(at) = rest.bytes().rposition(|byte| byte == self.separator) else { return Some(rest) };
        self.rest = rest.get(..at);
        rest.get(at.saturating_add(1)..)
    }
}

/// An address that cannot be written in a list of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortAddressError;

impl fmt::Display for PortAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "DOTNET_DiagnosticPorts cannot carry an empty address, nor a ';', ',' or NUL: choose another",
        )
    }
}
impl core::error::Error for PortAddressError {}
