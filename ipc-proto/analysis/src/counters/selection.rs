//! `Selection`, which counters and instruments a reader returns, and the text form of a selection.
use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use nettrace::Str;

/// A selection of counters and instruments: all of a provider, or one of them.
///
/// The text form is `PROVIDER` or `PROVIDER/NAME`. The prefix `EventCounters\` or `Meters\` selects only one of the
/// systems. A provider that ends with `*` stands for all providers with that beginning. Case is ignored, as by the
/// runtime.
///
/// ```
/// use nettrace_analysis::counters::{Selection, System};
///
/// let selection: Selection = "EventCounters\\System.Runtime/cpu-usage".parse().unwrap();
/// assert_eq!(selection.provider, "System.Runtime");
/// assert_eq!(selection.name.as_deref(), Some("cpu-usage"));
/// assert_eq!(selection.system, Some(System::EventCounter));
/// assert_eq!(selection.to_string(), "EventCounters\\System.Runtime/cpu-usage");
/// assert!("".parse::<Selection>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selection {
    /// The name of the event source or of the meter.
    pub provider: String,
    /// The name of the counter or of the instrument; all of the provider if `None`.
    pub name: Option<String>,
    /// The system; both if `None`.
    pub system: Option<System>,
}

impl Selection {
    /// Returns whether the selection contains this counter or instrument.
    #[must_use]
    pub fn contains(&self, system: System, provider: Str<'_>, name: Str<'_>) -> bool {
        self.system.is_none_or(|wanted| wanted == system)
            && self.contains_provider(provider)
            && self.name.as_deref().is_none_or(|wanted| equals(name, wanted))
    }

    /// Returns whether counters of this provider can be in the selection.
    pub(super) fn contains_provider(&self, provider: Str<'_>) -> bool {
        match self.provider.strip_suffix('*') {
            None => equals(provider, &self.provider),
            Some(prefix) => {
                let mut units = provider.units();
                prefix.encode_utf16().all(|unit| units.next().is_some_and(|other| same(unit, other)))
            }
        }
    }
}

fn equals(text: Str<'_>, wanted: &str) -> bool {
    let mut units = text.units();
    wanted.encode_utf16().all(|unit| units.next().is_some_and(|other| same(unit, other)))
        && units.next().is_none()
}

/// Returns whether two units are equal without regard to the case of ASCII letters.
fn same(unit: u16, other: u16) -> bool {
    let lower = |unit: u16| if (0x41..=0x5a).contains(&unit) { unit | 0x20 } else { unit };
    lower(unit) == lower(other)
}

const PREFIXES: [(&str, System); 2] =
    [("EventCounters\\", System::EventCounter), ("Meters\\", System::Meter)];

impl FromStr for Selection {
    type Err = ParseSelectionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let prefixed =
            PREFIXES.iter().find_map(|(prefix, system)| Some((text.strip_prefix(prefix)?, Some(*system))));
        let (text, system) = prefixed.unwrap_or((text, None));
        let (provider, name) = match text.split_once('/') {
            Some((provider, name)) => (provider, Some(name)),
            None => (text, None),
        };
        // The arguments of a session cannot contain separators, and no provider has one in its name.
        let is_bad = |text: &str| text.is_empty() || text.contains(is_separator);
        if is_bad(provider) || name.is_some_and(is_bad) {
            return Err(ParseSelectionError);
        }
        Ok(Self { provider: provider.to_owned(), name: name.map(str::to_owned), system })
    }
}

/// Returns whether a character ends a name in the arguments of a session.
pub(super) fn is_separator(c: char) -> bool {
    matches!(c, ',' | ';' | '"' | '\\' | '=') || c.is_control()
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, name, system } = self;
        let prefix = PREFIXES.iter().find(|(_, known)| Some(*known) == *system);
        f.write_str(prefix.map_or("", |(prefix, _)| prefix))?;
        f.write_str(provider)?;
        match name {
            Some(name) => write!(f, "/{name}"),
            None => Ok(()),
        }
    }
}

/// A text is not a [`Selection`]: it has no provider, or characters that end a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseSelectionError;

impl fmt::Display for ParseSelectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "counters are selected by PROVIDER or PROVIDER/NAME, without commas, semicolons and quotes",
        )
    }
}

impl core::error::Error for ParseSelectionError {}

/// The system that a sample comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum System {
    /// An event counter of an event source.
    EventCounter,
    /// An instrument of a meter of System.Diagnostics.Metrics.
    Meter,
}

impl System {
    /// Returns the name in machine formats: `event_counter` or `meter`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EventCounter => "event_counter",
            Self::Meter => "meter",
        }
    }
}
