//! [`Config`]: the diagnostic ports of a runtime, from the environment variables that it reads at startup.
use super::{Port, PortType};
use crate::plan::Flavour;
use crate::wire::{hex_digit, number};

/// Declares the variables, each with its name without the prefix.
macro_rules! variables {
    ($($(#[$meta:meta])* $variable:ident = $name:literal,)*) => {
        /// An environment variable that a runtime reads at startup.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Variable { $($(#[$meta])* $variable,)* }

        impl Variable {
            /// All variables.
            pub const ALL: [Self; 4] = [$(Self::$variable),*];

            /// Returns the name of the variable, with the prefix `DOTNET_`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variable => concat!("DOTNET_", $name),)* }
            }

            /// Returns the old name of the variable, with the prefix `COMPlus_`, which some runtimes still read.
            #[must_use]
            pub const fn old_name(self) -> &'static str {
                match self { $(Self::$variable => concat!("COMPlus_", $name),)* }
            }
        }
    };
}
variables! {
    /// The ports other than the default port: see [`Port::list`].
    DiagnosticPorts = "DiagnosticPorts",
    /// A number: unless it is 0, the default port suspends the runtime.
    DefaultDiagnosticPortSuspend = "DefaultDiagnosticPortSuspend",
    /// A number: 0 disables all diagnostics.
    EnableDiagnostics = "EnableDiagnostics",
    /// A number: 0 disables the ports. Since .NET 8.
    EnableDiagnosticsIpc = "EnableDiagnostics_IPC",
}

/// A runtime's diagnostic ports, as its environment configures them.
///
/// | | CoreCLR | Mono | NativeAOT |
/// |---|---|---|---|
/// | reads | `DOTNET_`, then `COMPlus_` | `DOTNET_`; for `EnableDiagnostics` and `EnableDiagnostics_IPC` also `COMPlus_` | `DOTNET_` |
/// | an empty value | counts as unset | is a value | counts as unset |
/// | numbers are | hexadecimal, up to the first other character | decimal, up to the first other character; 0 without a digit | hexadecimal, at most 16 digits and no other character |
/// | another text | counts as unset | is 0 | counts as unset |
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
///     "\"/run/second\" has neither suspend nor nosuspend, so the program does not start until it is resumed there: \
///      add ,suspend or ,nosuspend"
/// ]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config<'a> {
    pub(super) flavour: Flavour,
    /// Whether the runtime is known to run on Windows, where an address is the name of a pipe.
    pub(super) is_on_windows: bool,
    /// Whether the runtime is known to run on a phone, where an address is a host and its TCP port.
    pub(super) is_on_phone: bool,
    /// The values, in the order of [`Variable::ALL`].
    given: [Given<'a>; 4],
}

/// The values of a variable under its two names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Given<'a> {
    pub(super) new: Option<&'a str>,
    pub(super) old: Option<&'a str>,
}

impl<'a> Config<'a> {
    /// Looks up both names of every [`Variable`], for this kind of runtime.
    pub fn read(flavour: Flavour, lookup: impl Fn(&str) -> Option<&'a str>) -> Self {
        // Other runtimes than Mono treat an empty variable as unset.
        let value = |name| lookup(name).filter(|value| flavour == Flavour::Mono || !value.is_empty());
        let given =
            |variable: Variable| Given { new: value(variable.name()), old: value(variable.old_name()) };
        Self { flavour, is_on_windows: false, is_on_phone: false, given: Variable::ALL.map(given) }
    }

    /// States that the runtime runs on Windows: an address is the name of a pipe, so that no [finding](Self::findings) is
    /// about paths.
    ///
    /// ```
    /// use ipc_proto::plan::Flavour;
    /// use ipc_proto::port::Config;
    ///
    /// let ports = |name: &str| (name == "DOTNET_DiagnosticPorts").then_some("monitor,nosuspend");
    /// let config = Config::read(Flavour::CoreClr, ports);
    /// assert_eq!((config.findings().count(), config.on_windows().findings().count()), (1, 0));
    /// ```
    #[must_use]
    pub const fn on_windows(self) -> Self {
        Self { is_on_windows: true, ..self }
    }

    /// States that the runtime runs on a phone (Android, iOS, tvOS): an address is a [host and its TCP
    /// port](super::NetworkAddress), there is no default port, and ports with the tag `listen` are opened.
    ///
    /// ```
    /// use ipc_proto::plan::Flavour;
    /// use ipc_proto::port::Config;
    ///
    /// let ports = |name: &str| (name == "DOTNET_DiagnosticPorts").then_some("*:9000,listen,nosuspend");
    /// let config = Config::read(Flavour::CoreClr, ports);
    /// assert_eq!((config.ports().count(), config.on_phone().ports().count()), (0, 1));
    /// ```
    #[must_use]
    pub const fn on_phone(self) -> Self {
        Self { is_on_phone: true, ..self }
    }

    /// Returns whether the runtime has any port, including the default port.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.disabled_by().is_none()
    }

    /// Returns the name and the value of the variable that disables the ports.
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

    /// Returns whether the default port, at which the runtime listens, suspends the runtime.
    #[must_use]
    pub fn default_port_suspends(&self) -> bool {
        let suspend = self.number(Variable::DefaultDiagnosticPortSuspend).unwrap_or(0);
        self.is_enabled() && !self.is_on_phone && suspend & u64::from(u32::MAX) != 0
    }

    /// Returns the ports other than the default port, in the runtime's order: the last port of the list comes first.
    ///
    /// CoreCLR ignores ports with the tag `listen`, except [on a phone](Self::on_phone). Other runtimes open them if they
    /// have no default port (on phones).
    pub fn ports(&self) -> impl Iterator<Item = Port<'a>> + use<'a> {
        let config = *self;
        let value = if self.is_enabled() { self.port_list() } else { "" };
        Port::list(value).filter(move |port| config.opens(port))
    }

    pub(super) fn opens(&self, port: &Port<'_>) -> bool {
        let connects = port.port_type() == PortType::Connect;
        connects || self.is_on_phone || self.flavour != Flavour::CoreClr
    }

    /// Returns the list of ports; empty if the variable is unset.
    pub(super) fn port_list(&self) -> &'a str {
        self.value(Variable::DiagnosticPorts).map_or("", |(_, value)| value)
    }

    pub(super) fn given(&self, variable: Variable) -> Given<'a> {
        self.given.get(variable as usize).copied().unwrap_or_default()
    }

    /// Returns whether this kind of runtime reads the old name of the variable.
    pub(super) const fn reads_old_name(&self, variable: Variable) -> bool {
        match self.flavour {
            Flavour::CoreClr => true,
            Flavour::Mono => matches!(variable, Variable::EnableDiagnostics | Variable::EnableDiagnosticsIpc),
            Flavour::NativeAot => false,
        }
    }

    /// Returns the value of the variable that the runtime reads, with the name, new or old, that has the value.
    pub(super) fn value(&self, variable: Variable) -> Option<(&'static str, &'a str)> {
        let Given { new, old } = self.given(variable);
        match (new, old) {
            (Some(value), _) => Some((variable.name(), value)),
            (None, Some(value)) if self.reads_old_name(variable) => Some((variable.old_name(), value)),
            _ => None,
        }
    }

    /// Returns the number that the runtime reads from the value of the variable.
    pub(super) fn number(&self, variable: Variable) -> Option<u64> {
        let (_, text) = self.value(variable)?;
        match self.flavour {
            Flavour::CoreClr => leading_number(text, 16).map(u64::from),
            Flavour::Mono => Some(leading_number(text, 10).unwrap_or(0).into()),
            Flavour::NativeAot => number(text.as_bytes(), 16).filter(|_| text.len() <= 16),
        }
    }
}

/// Parses the number at the front of a text as C's `strtoul` does.
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
