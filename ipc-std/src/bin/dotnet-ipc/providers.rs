//! Which providers a trace switches on: `--profile` and `--provider`.
use core::str::FromStr;
use std::borrow::Cow;

use clap::ValueEnum;
use ipc_proto::types::{EventFilter, EventLevel, Provider, SessionBufferMode};
use ipc_std::TraceConfig;

use crate::failure::{Failure, Kind};

/// A provider to switch on, as [`Provider`], but with its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selected {
    name: Cow<'static, str>,
    keywords: u64,
    level: EventLevel,
    arguments: Cow<'static, str>,
}

impl Selected {
    pub(crate) fn to_provider(&self) -> Provider<'_> {
        let Self { name, keywords, level, arguments } = self;
        Provider {
            keywords: *keywords,
            level: *level,
            name: name.as_ref().into(),
            arguments: arguments.as_ref().into(),
        }
    }

    /// Whether it has this name, whose case dotnet-trace does not look at either.
    fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Has this one switch on what `other` does too.
    fn add(&mut self, other: &Self) -> Result<(), Failure> {
        self.keywords |= other.keywords;
        self.level = more_verbose(self.level, other.level);
        match (self.arguments.is_empty(), other.arguments.is_empty()) {
            (false, false) => {
                let message = format!("the provider {} is given arguments twice", self.name);
                return Err(Failure::new(Kind::Usage, message).with_hint("give them in one --provider"));
            }
            (true, _) => self.arguments.clone_from(&other.arguments),
            (false, true) => {}
        }
        Ok(())
    }
}

/// The level that lets more events through: 0 lets through all of them.
fn more_verbose(a: EventLevel, b: EventLevel) -> EventLevel {
    if [a, b].contains(&EventLevel::LOG_ALWAYS) { EventLevel::LOG_ALWAYS } else { a.max(b) }
}

/// `NAME[:KEYWORDS[:LEVEL[:ARGS]]]`.
impl FromStr for Selected {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(4, ':');
        let mut part = || parts.next().unwrap_or_default();
        let (name, keywords, level, arguments) = (part(), part(), part(), part());
        if name.is_empty() {
            return Err("a provider needs a name".to_owned());
        }
        Ok(Self {
            name: name.to_owned().into(),
            keywords: parse_keywords(keywords)?,
            level: parse_level(level)?,
            arguments: arguments.to_owned().into(),
        })
    }
}

pub(crate) fn parse_keywords(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    // The standard library would take a sign.
    let unsigned = Some(digits).filter(|digits| !digits.starts_with('+'));
    let parsed = unsigned.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let keywords = if text.is_empty() { Some(u64::MAX) } else { parsed };
    keywords.ok_or_else(|| format!("the keywords {text:?} are not hexadecimal, such as 0x8003"))
}

fn parse_level(text: &str) -> Result<EventLevel, String> {
    const NAMES: [(&str, EventLevel); 6] = [
        ("logalways", EventLevel::LOG_ALWAYS),
        ("critical", EventLevel::CRITICAL),
        ("error", EventLevel::ERROR),
        ("warning", EventLevel::WARNING),
        ("informational", EventLevel::INFORMATIONAL),
        ("verbose", EventLevel::VERBOSE),
    ];
    if text.is_empty() {
        return Ok(EventLevel::INFORMATIONAL);
    }
    let named =
        NAMES.iter().find(|(name, level)| name.eq_ignore_ascii_case(text) || level.0.to_string() == text);
    named
        .map(|(_, level)| *level)
        .ok_or_else(|| format!("{text:?} is no level: {} or 0 to 5", NAMES.map(|(name, _)| name).join(", ")))
}

/// Which events of a provider, by their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventIds {
    name: String,
    /// Whether these are the ones to send, or the ones not to.
    enable: bool,
    ids: Vec<u32>,
}

/// `NAME=+1,2` or `NAME=-1,2`.
impl FromStr for EventIds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad =
            || format!("{text:?} is not NAME=+ID,ID for these events only, or NAME=-ID,ID for all others");
        let (name, ids) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(bad)?;
        let (enable, ids) = match (ids.strip_prefix('+'), ids.strip_prefix('-')) {
            (Some(ids), _) => (true, ids),
            (_, Some(ids)) => (false, ids),
            _ => return Err(bad()),
        };
        let id = |id: &str| Some(id).filter(|id| !id.starts_with('+'))?.parse().ok();
        let mut ids: Vec<u32> = ids.split(',').map(id).collect::<Option<_>>().ok_or_else(bad)?;
        // Runtimes refuse one that stands twice, or end.
        ids.sort_unstable();
        ids.dedup();
        Ok(Self { name: name.to_owned(), enable, ids })
    }
}

/// The filter of each provider, none if there are none at all.
pub(crate) fn filters<'a>(
    selected: &[Selected],
    named: &'a [EventIds],
) -> Result<Vec<EventFilter<'a>>, Failure> {
    let mut filters = if named.is_empty() { Vec::new() } else { vec![EventFilter::ALL; selected.len()] };
    for EventIds { name, enable, ids } in named {
        let mut of = selected.iter().zip(&mut filters).filter(|(provider, _)| provider.is_called(name));
        let filter = match of.next() {
            Some((_, filter)) if *filter == EventFilter::ALL => filter,
            found => {
                let fault = if found.is_some() { "is given event ids twice" } else { "is not recorded" };
                return Err(Failure::new(Kind::Usage, format!("the provider {name} {fault}")));
            }
        };
        *filter = EventFilter { enable: *enable, event_ids: ids.as_slice().into() };
    }
    Ok(filters)
}

/// What happens when the runtime's buffer is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Buffering {
    /// Events are lost
    Drop,
    /// The program is held up (.NET 11)
    Block,
}

impl From<Buffering> for SessionBufferMode {
    fn from(buffering: Buffering) -> Self {
        match buffering {
            Buffering::Drop => Self::DROP,
            Buffering::Block => Self::BLOCK,
        }
    }
}

/// What dotnet-trace has under these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// Collections, loading, compilation, exceptions, threads: little of each
    DotnetCommon,
    /// A sample of every managed thread's stack, about every 10 ms
    DotnetSampledThreadTime,
    /// Garbage collections and a sample of allocations
    GcVerbose,
    /// Garbage collections only, at the lowest cost
    GcCollect,
    /// Commands of ADO.NET and Entity Framework
    Database,
}

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// What brings the commands of databases from a `DiagnosticSource` into the trace.
const DATABASE: &str = "FilterAndPayloadSpecs=\"\
    SqlClientDiagnosticListener/System.Data.SqlClient.WriteCommandBefore@Activity1Start:\
    -Command;Command.CommandText;ConnectionId;Operation;Command.Connection.ServerVersion;\
    Command.CommandTimeout;Command.CommandType;Command.Connection.ConnectionString;\
    Command.Connection.Database;Command.Connection.DataSource;Command.Connection.PacketSize\r\n\
    SqlClientDiagnosticListener/System.Data.SqlClient.WriteCommandAfter@Activity1Stop:\r\n\
    Microsoft.EntityFrameworkCore/Microsoft.EntityFrameworkCore.Database.Command.CommandExecuting@Activity2Start:\
    -Command.CommandText;Command;ConnectionId;IsAsync;Command.Connection.ClientConnectionId;\
    Command.Connection.ServerVersion;Command.CommandTimeout;Command.CommandType;\
    Command.Connection.ConnectionString;Command.Connection.Database;Command.Connection.DataSource;\
    Command.Connection.PacketSize\r\n\
    Microsoft.EntityFrameworkCore/Microsoft.EntityFrameworkCore.Database.Command.CommandExecuted@Activity2Stop:\"";

impl Profile {
    const DEFAULT: [Self; 2] = [Self::DotnetCommon, Self::DotnetSampledThreadTime];

    const fn providers(self) -> &'static [Selected] {
        const fn provider(
            name: &'static str,
            keywords: u64,
            level: EventLevel,
            arguments: &'static str,
        ) -> Selected {
            Selected { name: Cow::Borrowed(name), keywords, level, arguments: Cow::Borrowed(arguments) }
        }
        const INFORMATIONAL: EventLevel = EventLevel::INFORMATIONAL;
        const VERBOSE: EventLevel = EventLevel::VERBOSE;
        match self {
            Self::DotnetCommon => const { &[provider(RUNTIME, 0x10_0003_801d, INFORMATIONAL, "")] },
            Self::DotnetSampledThreadTime => {
                const { &[provider("Microsoft-DotNETCore-SampleProfiler", 0xf000_0000_0000, INFORMATIONAL, "")] }
            }
            Self::GcVerbose => const { &[provider(RUNTIME, 0x8003, VERBOSE, "")] },
            Self::GcCollect => {
                const {
                    &[
                        provider(RUNTIME, 1, INFORMATIONAL, ""),
                        provider("Microsoft-Windows-DotNETRuntimePrivate", 1, INFORMATIONAL, ""),
                    ]
                }
            }
            Self::Database => {
                const {
                    &[
                        provider("System.Threading.Tasks.TplEventSource", 0x80, INFORMATIONAL, ""),
                        provider("Microsoft-Diagnostics-DiagnosticSource", 3, VERBOSE, DATABASE),
                    ]
                }
            }
        }
    }

    const fn rundown_keyword(self) -> u64 {
        match self {
            Self::GcCollect => 1,
            _ => TraceConfig::DEFAULT_RUNDOWN,
        }
    }
}

/// The providers of these profiles and those named one by one, and the rundown that goes with them.
///
/// What is named by itself is as it is named; profiles fill in the others. Without any there are the default profiles.
pub(crate) fn select(profiles: &[Profile], named: &[Selected]) -> Result<(Vec<Selected>, u64), Failure> {
    let profiles = if profiles.is_empty() && named.is_empty() { &Profile::DEFAULT } else { profiles };
    let mut selected = Vec::new();
    for provider in named {
        add(&mut selected, provider)?;
    }
    for provider in profiles.iter().flat_map(|profile| profile.providers()) {
        if !named.iter().any(|named| named.is_called(&provider.name)) {
            add(&mut selected, provider)?;
        }
    }
    let rundown = profiles.iter().map(|profile| profile.rundown_keyword()).reduce(|all, one| all | one);
    Ok((selected, rundown.unwrap_or(TraceConfig::DEFAULT_RUNDOWN)))
}

fn add(selected: &mut Vec<Selected>, provider: &Selected) -> Result<(), Failure> {
    match selected.iter_mut().find(|selected| selected.is_called(&provider.name)) {
        Some(selected) => selected.add(provider),
        None => {
            selected.push(provider.clone());
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(name: &'static str, keywords: u64, level: u32, arguments: &'static str) -> Selected {
        Selected { name: name.into(), keywords, level: EventLevel(level), arguments: arguments.into() }
    }

    #[test]
    fn providers_as_they_are_written() {
        for (text, expected) in [
            ("A", provider("A", u64::MAX, 4, "")),
            ("A:10", provider("A", 0x10, 4, "")),
            ("A:0xFf:5", provider("A", 0xff, 5, "")),
            ("A::Verbose", provider("A", u64::MAX, 5, "")),
            ("A:0:logAlways:", provider("A", 0, 0, "")),
            ("A:::X=1:2;Y=\"a,b\"", provider("A", u64::MAX, 4, "X=1:2;Y=\"a,b\"")),
            ("A,B", provider("A,B", u64::MAX, 4, "")),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in
            ["", ":1", "A:xyz", "A:0x", "A:+1", "A:-1", "A:12345678901234567", "A:1:6", "A:1:loud", "A:1:+4"]
        {
            assert!(text.parse::<Selected>().is_err(), "{text}");
        }
    }

    #[test]
    fn event_ids_as_they_are_written() {
        let ids = |enable, ids: &[u32]| EventIds { name: "A=B".to_owned(), enable, ids: ids.to_vec() };
        assert_eq!("A=B=+2,1,2".parse(), Ok(ids(true, &[1, 2])));
        assert_eq!("A=B=-7".parse(), Ok(ids(false, &[7])));
        for text in ["", "A", "A=", "A=1", "A=+", "A=+1,", "A=+x", "=+1", "A=++1", "A=+4294967296"] {
            assert!(text.parse::<EventIds>().is_err(), "{text}");
        }
    }

    #[test]
    fn filters_belong_to_providers() {
        let selected = [provider("A", 1, 5, ""), provider("B", 1, 5, "")];
        let named = ["b=-3".parse().unwrap()];
        let filters = filters(&selected, &named).unwrap();
        assert_eq!(filters, [EventFilter::ALL, EventFilter { enable: false, event_ids: (&[3]).into() }]);
        assert_eq!(super::filters(&selected, &[]).unwrap(), []);
        for named in [&["C=+1"][..], &["A=+1", "a=+2"]] {
            let named: Vec<EventIds> = named.iter().map(|text| text.parse().unwrap()).collect();
            assert!(super::filters(&selected, &named).is_err());
        }
    }

    #[test]
    fn what_is_named_by_itself_overrides_a_profile() {
        let named = [provider("microsoft-windows-dotnetruntime", 1, 3, "")];
        let (selected, rundown) = select(&Profile::DEFAULT, &named).unwrap();
        assert_eq!(selected[0], named[0]);
        assert_eq!(selected[1..], *Profile::DotnetSampledThreadTime.providers());
        assert_eq!(rundown, TraceConfig::DEFAULT_RUNDOWN);
        assert_eq!(select(&[], &named).unwrap().0, named);
    }

    #[test]
    fn profiles_join_what_they_have_in_common() {
        let (selected, rundown) = select(&[Profile::GcCollect, Profile::GcVerbose], &[]).unwrap();
        assert_eq!(selected[0], provider(RUNTIME, 0x8003, 5, ""));
        assert_eq!(selected.len(), 2);
        assert_eq!(rundown, TraceConfig::DEFAULT_RUNDOWN | 1);
    }

    #[test]
    fn a_provider_named_twice() {
        let (selected, _) = select(&[], &[provider("A", 1, 5, ""), provider("a", 2, 0, "X=1")]).unwrap();
        assert_eq!(selected, [provider("A", 3, 0, "X=1")]);
        assert!(select(&[], &[provider("A", 1, 5, "X=1"), provider("A", 2, 5, "X=1")]).is_err());
    }
}
