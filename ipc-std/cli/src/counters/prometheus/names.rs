//! The names of families.
//!
//! They follow the rules of OpenTelemetry for Prometheus. Dots become underscores, the unit is a suffix, and the name
//! of a value that only grows ends with `_total`. Bytes and seconds are the only units of sizes and times. Names that
//! the conventions of Prometheus reserve get another ending, so that `promtool check metrics` accepts them.
use nettrace_analysis::counters::{OwnedSample, System};

use crate::text::printable::NAME_LIMIT;

/// Makes a text a valid name: it cannot start with a digit.
pub(super) fn valid(mut name: String) -> String {
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name
}

/// Returns the name of a family.
pub(super) fn metric_name(sample: &OwnedSample, unit: &str, kind: &str) -> String {
    let own = words(&sample.name);
    let mut name = valid(match sample.system {
        System::Meter => own,
        // Names of event counters are short, and unique only within their provider.
        System::EventCounter => format!("dotnet_{}_{own}", words(&sample.provider)),
    });
    let suffix = match unit {
        "B" => "bytes".to_owned(),
        "s" => "seconds".to_owned(),
        "%" => "percent".to_owned(),
        "1" if kind == "gauge" => "ratio".to_owned(),
        "" | "1" => String::new(),
        // Annotations, such as `{request}`, are for people and do not become a suffix.
        unit if unit.starts_with('{') || unit.len() > MAX_SUFFIX => String::new(),
        unit if unit.eq_ignore_ascii_case("count") => String::new(),
        unit => words(unit),
    };
    if !suffix.is_empty() && !name.split('_').any(|word| word == suffix) {
        name = format!("{name}_{suffix}");
    }
    // The conventions reserve the names of types, and some endings.
    let types = ["counter", "gauge", "summary", "histogram", "gaugehistogram", "untyped", "info"];
    let words = name.split('_').enumerate();
    let words = words.map(|(n, word)| if n > 0 && types.contains(&word) { "value" } else { word });
    let name = words.collect::<Vec<_>>().join("_");
    let stem = name.strip_suffix("_total").filter(|stem| !stem.is_empty()).unwrap_or(&name);
    if kind == "counter" {
        return format!("{stem}_total");
    }
    if kind == "untyped" {
        return format!("{stem}_since_start");
    }
    for (reserved, ending) in [("_count", "_current"), ("_sum", "_amount"), ("_bucket", "_buckets")] {
        if let Some(stem) = stem.strip_suffix(reserved) {
            return format!("{stem}{ending}");
        }
    }
    stem.to_owned()
}

/// Longer units do not become part of a name.
const MAX_SUFFIX: usize = 32;

/// Returns a text as words in lower case that underscores join.
pub(super) fn words(text: &str) -> String {
    let mut words = String::new();
    let mut last = '_';
    for c in text.chars().take(NAME_LIMIT) {
        let is_word = c.is_ascii_alphanumeric();
        // camelCase has a new word at each capital letter after a small one.
        let begins = c.is_ascii_uppercase() && (last.is_ascii_lowercase() || last.is_ascii_digit());
        if (!is_word || begins) && !words.ends_with('_') && !words.is_empty() {
            words.push('_');
        }
        if is_word {
            words.push(c.to_ascii_lowercase());
        }
        last = c;
    }
    let words = words.trim_end_matches('_');
    if words.is_empty() { "unnamed".to_owned() } else { words.to_owned() }
}
