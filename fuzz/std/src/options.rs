//! The property of the little languages of the tool's options.
use dotnet_ipc_sans_io::syntax::event_ids::EventIds;
use dotnet_ipc_sans_io::syntax::only_arg::OnlyArg;
use dotnet_ipc_sans_io::syntax::provider::{self, ProviderList, ProviderSpec};
use dotnet_ipc_sans_io::syntax::{durations, hex, keywords};

/// Checks the little languages of the tool's options: durations, `--only`, `--provider`, `--event-ids`, keywords,
/// levels and hexadecimal digits. If an accepted text is written again from its meaning, the new text has the same
/// meaning. Refusals have a reason.
pub fn options(bytes: &[u8]) {
    let text = &*String::from_utf8_lossy(bytes);
    let refused = |reason: String| assert!(!reason.is_empty());
    match durations::parse(text) {
        Ok(duration) => {
            let written = humantime::format_duration(duration).to_string();
            assert_eq!(durations::parse(&written), Ok(duration), "{text:?} as {written:?}");
            assert!(!text.starts_with(['+', '-']), "{text:?}");
        }
        Err(reason) => refused(reason),
    }
    match OnlyArg::parse(text) {
        Ok(only) => {
            let written = only.to_string();
            // Zeros before a number mean nothing.
            let digits = text.rsplit_once('/').map_or("", |(_, digits)| digits);
            assert!(written == text || digits.starts_with('0'), "{text:?} as {written:?}");
        }
        Err(reason) => refused(reason),
    }
    match text.parse::<ProviderList>() {
        Ok(ProviderList(providers)) => {
            assert!(providers.len() <= text.len());
            assert!(providers.iter().map(|provider| provider.name.len()).sum::<usize>() <= text.len());
            for provider in providers {
                let written = write(&provider);
                assert_eq!(written.parse(), Ok(ProviderList(vec![provider])), "{text:?} as {written:?}");
            }
        }
        Err(reason) => refused(reason),
    }
    match text.parse::<EventIds>() {
        Ok(ids) => assert!(text.contains('='), "{ids:?}"),
        Err(reason) => assert!(reason.contains(&format!("{text:?}")), "{reason}"),
    }
    match keywords::parse_hex(text) {
        Ok(keywords) => assert_eq!(keywords::parse_hex(&format!("{keywords:#x}")), Ok(keywords)),
        Err(reason) => assert!(reason.contains(&format!("{text:?}")), "{reason}"),
    }
    if let Err(reason) = keywords::parse_names(text) {
        assert!(text.split('+').any(|name| reason.contains(&format!("{name:?}"))), "{reason}");
    }
    match provider::parse_level(text) {
        Ok(level) => assert_eq!(provider::parse_level(&level.0.to_string()), Ok(level)),
        Err(reason) => assert!(reason.contains(&format!("{text:?}")), "{reason}"),
    }
    digits(text, bytes);
}

/// Hexadecimal digits give their bytes; a refusal names the word that is not hexadecimal, from its beginning.
fn digits(text: &str, bytes: &[u8]) {
    for written in [hex::hex(bytes), hex::spaced(bytes)] {
        assert_eq!(hex::parse(&written).as_deref(), Ok(bytes));
    }
    match hex::parse(text) {
        Ok(parsed) => {
            let significant = text.lines().map(|line| line.split('#').next().unwrap_or_default());
            let digits = significant.flat_map(str::chars).filter(char::is_ascii_hexdigit).count();
            assert!(parsed.len() * 2 <= digits, "{text:?}");
        }
        Err(reason) => {
            let shown = |word: &str| format!("{:?}", word.chars().take(40).collect::<String>());
            let mut words = text.split(|c: char| c.is_whitespace() || ":|,#".contains(c));
            assert!(words.any(|word| reason.contains(&shown(word))), "{reason}");
        }
    }
}

/// Returns the text of a provider with all its parts.
fn write(provider: &ProviderSpec) -> String {
    let ProviderSpec { name, keywords, level, arguments } = provider;
    format!("{name}:{keywords:x}:{}:{arguments}", level.0)
}
