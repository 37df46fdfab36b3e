//! What tells series apart that have the same names and tags.
use std::borrow::Cow;

use nettrace_analysis::counters::OwnedSample;

/// A detail of a series, with its name in conditions and in outputs.
pub(super) type Detail = (&'static str, String);

/// Returns the details of a series that it has, in the order in which outputs prefer them.
pub(super) fn details(sample: &OwnedSample) -> Vec<Detail> {
    let instrument = sample.details.as_deref().cloned().unwrap_or_default();
    let instance = if sample.instance > 0 { sample.instance.to_string() } else { String::new() };
    let mut details = vec![
        ("meter_version", sample.provider_version.clone()),
        ("unit", sample.unit.clone()),
        ("instrument_tags", instrument.instrument_tag_text),
        ("meter_tags", instrument.meter_tag_text),
        ("original_name", sample.name.clone()),
        ("original_tags", sample.tag_text.clone()),
        ("kind", sample.measurement.kind().to_owned()),
        ("system", sample.system.name().to_owned()),
        ("meter_scope_hash", instrument.meter_scope_hash),
        ("instrument_id", sample.instrument_id.map(|id| id.to_string()).unwrap_or_default()),
        ("instance", instance),
    ];
    details.retain(|(_, text)| !text.is_empty());
    details
}

/// A tag of a series: name and value.
pub(super) type Tag<'s> = (Cow<'s, str>, Cow<'s, str>);

/// Returns all tags of a series: its own, those of the instrument, and those of the meter.
pub(super) fn all_tags(sample: &OwnedSample) -> impl Iterator<Item = Tag<'_>> {
    let details = sample.details.iter();
    let further = details.flat_map(|details| details.instrument_tags().chain(details.meter_tags()));
    sample.tags().chain(further)
}

/// Returns all tags of a series as texts `name=value`. A second tag of the same name is `name#2`.
pub(super) fn tag_texts(sample: &OwnedSample) -> Vec<String> {
    unique(all_tags(sample)).into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}

/// Makes the names of tags unique.
pub(super) fn unique<'s>(tags: impl Iterator<Item = Tag<'s>>) -> Vec<(String, String)> {
    /// Up to this number of tags, names are made unique. That takes time in proportion to the square of the number.
    const MAX_UNIQUE: usize = 64;
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, value) in tags {
        let (mut unique, mut suffix) = (name.clone().into_owned(), 2_u32);
        while found.len() < MAX_UNIQUE && found.iter().any(|(known, _)| *known == unique) {
            unique = format!("{name}#{suffix}");
            suffix = suffix.saturating_add(1);
        }
        found.push((unique, value.into_owned()));
    }
    found
}
