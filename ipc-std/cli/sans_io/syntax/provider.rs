//! Providers of a recording: `NAME[:KEYWORDS[:LEVEL[:ARGS]]]`.
use core::str::FromStr;
use std::borrow::Cow;

use ipc_proto::types::{EventLevel, Provider};
use nettrace::Metadata;

use super::keywords;

/// A provider to enable: an owned [`Provider`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSpec {
    pub name: Cow<'static, str>,
    pub keywords: u64,
    pub level: EventLevel,
    pub arguments: Cow<'static, str>,
}

impl ProviderSpec {
    /// Returns a provider of the tool's own tables.
    pub const fn new(name: &'static str, keywords: u64, level: EventLevel, arguments: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), keywords, level, arguments: Cow::Borrowed(arguments) }
    }

    pub fn to_provider(&self) -> Provider<'_> {
        let Self { name, keywords, level, arguments } = self;
        Provider {
            keywords: *keywords,
            level: *level,
            name: name.as_ref().into(),
            arguments: arguments.as_ref().into(),
        }
    }

    /// Returns whether the provider has this name. Like dotnet-trace, ignores the case.
    pub fn is_named(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Returns whether keywords and level enable an event of the provider, by the rule of the runtime.
    pub const fn enables(&self, event: &Metadata<'_>) -> bool {
        let is_level = self.level.0 == EventLevel::LOG_ALWAYS.0 || event.level <= self.level.0;
        is_level && (event.keywords == 0 || event.keywords & self.keywords != 0)
    }

    /// Adds the keywords, the level and the arguments of `other`, a provider of the same name.
    fn merge(&mut self, other: &Self) -> Result<(), String> {
        self.keywords |= other.keywords;
        self.level = more_verbose(self.level, other.level);
        match (self.arguments.is_empty(), other.arguments.is_empty()) {
            (false, false) => {
                return Err(format!(
                    "the provider {} has arguments twice: give all of them in one --provider",
                    self.name
                ));
            }
            (true, _) => self.arguments.clone_from(&other.arguments),
            (false, true) => {}
        }
        Ok(())
    }
}

/// Adds `provider` to `providers`, merged with one of the same name.
pub fn add(providers: &mut Vec<ProviderSpec>, provider: &ProviderSpec) -> Result<(), String> {
    match providers.iter_mut().find(|other| other.is_named(&provider.name)) {
        Some(other) => other.merge(provider),
        None => {
            providers.push(provider.clone());
            Ok(())
        }
    }
}

/// Returns the level that enables more events. [`EventLevel::LOG_ALWAYS`], 0, enables all.
fn more_verbose(a: EventLevel, b: EventLevel) -> EventLevel {
    if [a, b].contains(&EventLevel::LOG_ALWAYS) { EventLevel::LOG_ALWAYS } else { a.max(b) }
}

impl FromStr for ProviderSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(4, ':');
        let mut part = || parts.next().unwrap_or_default();
        let (name, keywords, level, arguments) = (part(), part(), part(), part());
        if name.is_empty() {
            return Err(format!("a provider needs a name: write NAME{text} for {text:?}"));
        }
        Ok(Self {
            name: name.to_owned().into(),
            keywords: keywords::parse(name, keywords)?,
            level: if level.is_empty() { EventLevel::INFORMATIONAL } else { parse_level(level)? },
            arguments: arguments.to_owned().into(),
        })
    }
}

/// Parses a level: its number or its name.
pub fn parse_level(text: &str) -> Result<EventLevel, String> {
    const NAMES: [(&str, EventLevel); 6] = [
        ("logalways", EventLevel::LOG_ALWAYS),
        ("critical", EventLevel::CRITICAL),
        ("error", EventLevel::ERROR),
        ("warning", EventLevel::WARNING),
        ("informational", EventLevel::INFORMATIONAL),
        ("verbose", EventLevel::VERBOSE),
    ];
    let is_named =
        |(name, level): &&(&str, EventLevel)| name.eq_ignore_ascii_case(text) || level.0.to_string() == text;
    NAMES.iter().find(is_named).map(|(_, level)| *level).ok_or_else(|| {
        format!("unknown level {text:?}: use {} or 0 to 5", NAMES.map(|(name, _)| name).join(", "))
    })
}

/// The value of one `--provider`: providers separated by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderList(pub Vec<ProviderSpec>);

impl FromStr for ProviderList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut providers, mut rest) = (Vec::new(), Some(text));
        while let Some(text) = rest {
            let (provider, after) = split_first(text);
            providers.push(provider.parse()?);
            rest = after;
        }
        Ok(Self(providers))
    }
}

/// Splits the first provider off a list.
///
/// dotnet-trace splits at every comma. Here, a comma within ARGS separates providers only if it is outside quotation
/// marks and followed by `NAME:`, so that `Metrics=A,B` remains one argument; or by `:`, since a provider without a name is
/// an error and no argument.
fn split_first(text: &str) -> (&str, Option<&str>) {
    let (mut colons, mut is_quoted) = (0_u32, false);
    for (at, c) in text.char_indices() {
        let in_arguments = colons >= 3;
        match c {
            ':' => colons = colons.saturating_add(1),
            '"' if in_arguments => is_quoted = !is_quoted,
            ',' => {
                let (provider, comma) = text.split_at(at);
                let after = comma.get(1..).unwrap_or_default();
                if !in_arguments || (!is_quoted && begins_with_provider(after)) {
                    return (provider, Some(after));
                }
            }
            _ => {}
        }
    }
    (text, None)
}

/// Returns whether `NAME:` begins the text.
fn begins_with_provider(text: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    text.split_once(':').is_some_and(|(name, _)| name.chars().all(is_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(name: &'static str, keywords: u64, level: u32, arguments: &'static str) -> ProviderSpec {
        ProviderSpec::new(name, keywords, EventLevel(level), arguments)
    }

    #[test]
    fn parts_of_a_provider() {
        for (text, expected) in [
            ("A", provider("A", u64::MAX, 4, "")),
            ("A:10", provider("A", 0x10, 4, "")),
            ("A:0xFf:5", provider("A", 0xff, 5, "")),
            ("A::Verbose", provider("A", u64::MAX, 5, "")),
            ("A:0:logAlways:", provider("A", 0, 0, "")),
            ("A:::X=1:2;Y=\"a,b\"", provider("A", u64::MAX, 4, "X=1:2;Y=\"a,b\"")),
            (
                "Microsoft-Windows-DotNETRuntime:gc+exception:verbose",
                provider("Microsoft-Windows-DotNETRuntime", 0x8001, 5, ""),
            ),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in
            ["", ":1", "A:xyz", "A:0x", "A:+1", "A:-1", "A:12345678901234567", "A:1:6", "A:1:loud", "A:1:+4"]
        {
            assert!(text.parse::<ProviderSpec>().is_err(), "{text}");
        }
    }

    #[test]
    fn commas_separate_providers() {
        let all = u64::MAX;
        for (text, expected) in [
            ("A,B", vec![provider("A", all, 4, ""), provider("B", all, 4, "")]),
            ("A:1:5,B:2", vec![provider("A", 1, 5, ""), provider("B", 2, 4, "")]),
            ("A:::X=a,b;Y=c", vec![provider("A", all, 4, "X=a,b;Y=c")]),
            ("A:::X=\"a,B:1\"", vec![provider("A", all, 4, "X=\"a,B:1\"")]),
            ("A:::X=a,B:1:2:Y=b,c", vec![provider("A", all, 4, "X=a"), provider("B", 1, 2, "Y=b,c")]),
            ("A:1:4:X=\"a,b\",B:2", vec![provider("A", 1, 4, "X=\"a,b\""), provider("B", 2, 4, "")]),
        ] {
            assert_eq!(text.parse(), Ok(ProviderList(expected)), "{text}");
        }
        for text in ["", ",", "A,", ",A", "A,,B", "A:1,B:loud", "A:1:5:F=\"Q\",:2:2:k=v,B:3:3", "A:::X=a,:1"]
        {
            assert!(text.parse::<ProviderList>().is_err(), "{text}");
        }
    }

    #[test]
    fn providers_of_one_name_are_merged() {
        let mut providers = Vec::new();
        add(&mut providers, &provider("A", 1, 5, "")).unwrap();
        add(&mut providers, &provider("a", 2, 0, "X=1")).unwrap();
        assert_eq!(providers, [provider("A", 3, 0, "X=1")]);
        assert!(add(&mut providers, &provider("A", 2, 5, "X=1")).is_err());
    }
}
