//! The labels of a series.
use core::fmt::Write;

use nettrace_analysis::counters::OwnedSample;

use crate::counters::report::Process;
use crate::counters::series_details::{Detail, UniqueNames, point_tags};
use crate::text::printable::NAME_LIMIT;

/// The labels of a series.
pub(super) struct Labels {
    pub(super) text: String,
    /// Whether the series has more tags than labels.
    pub(super) has_more: bool,
}

/// Returns the labels of a series: its provider and process, the tags of its meter with a prefix, its own tags and those
/// of its instrument, and the details.
pub(super) fn labels(process: &Process, sample: &OwnedSample, details: &[Detail<'_>]) -> Labels {
    let mut text = format!("otel_scope_name=\"{}\"", label_text(&sample.provider));
    if let Some(id) = process.id {
        let _ = write!(text, ",process_id=\"{id}\"");
    }
    if !process.name.is_empty() {
        let _ = write!(text, ",process_name=\"{}\"", label_text(&process.name));
    }
    let mut names = UniqueNames::new('_');
    for reserved in ["otel_scope_name", "process_id", "process_name", "quantile", "le"] {
        names.unique(reserved.to_owned());
    }
    let mut label = |name: String, value: &str| {
        let _ = write!(text, ",{}=\"{}\"", names.unique(name), label_text(value));
    };
    let of_meter = sample.details.iter().flat_map(|details| details.meter_tags());
    let mut tags = of_meter
        .map(|(name, value)| (format!("otel_scope_{}", label_name(&name)), value))
        .chain(point_tags(sample).map(|(name, value)| (label_name(&name), value)));
    tags.by_ref().take(MAX_LABELS).for_each(|(name, value)| label(name, &value));
    for (name, value) in details {
        let name = if *name == "meter_version" { "otel_scope_version" } else { name };
        label(name.to_owned(), value);
    }
    Labels { has_more: tags.next().is_some(), text }
}

/// The maximum number of tags that become labels. Prometheus itself refuses more labels by default.
pub(super) const MAX_LABELS: usize = 64;

fn label_name(name: &str) -> String {
    let name: String =
        name.chars().take(NAME_LIMIT).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    // Names that begin with two underscores are Prometheus' own.
    let name = name.trim_start_matches('_');
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("tag_{name}");
    }
    name.to_owned()
}

fn label_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
