//! The details that distinguish series with the same names and tags.
use std::borrow::Cow;
use std::collections::BTreeMap;

use nettrace_analysis::counters::OwnedSample;

/// A detail of a series, with its name in conditions and in outputs.
pub(super) type Detail<'s> = (&'static str, Cow<'s, str>);

/// Returns the details of a series that it has, in the order in which outputs prefer them.
pub(super) fn details(sample: &OwnedSample) -> Vec<Detail<'_>> {
    let (mut instrument_tags, mut meter_tags, mut meter_scope_hash) = ("", "", "");
    if let Some(details) = sample.details.as_deref() {
        instrument_tags = &details.instrument_tag_text;
        meter_tags = &details.meter_tag_text;
        meter_scope_hash = &details.meter_scope_hash;
    }
    let number = |number: Option<u32>| number.map_or_else(String::new, |number| number.to_string()).into();
    let mut details: Vec<Detail<'_>> = vec![
        ("meter_version", (&sample.provider_version).into()),
        ("unit", (&sample.unit).into()),
        ("instrument_tags", instrument_tags.into()),
        ("meter_tags", meter_tags.into()),
        ("original_name", (&sample.name).into()),
        ("original_tags", (&sample.tag_text).into()),
        ("kind", sample.measurement.kind().into()),
        ("system", sample.system.name().into()),
        ("meter_scope_hash", meter_scope_hash.into()),
        ("instrument_id", number(sample.instrument_id)),
        ("instance", number(Some(sample.instance).filter(|instance| *instance > 0))),
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

/// Returns the tags of a series, and those of its instrument.
pub(super) fn point_tags(sample: &OwnedSample) -> impl Iterator<Item = Tag<'_>> {
    let of_instrument = sample.details.iter().flat_map(|details| details.instrument_tags());
    sample.tags().chain(of_instrument)
}

/// Returns all tags of a series as texts `name=value`. A second tag of the same name is `name#2`.
pub(super) fn tag_texts(sample: &OwnedSample) -> Vec<String> {
    unique(all_tags(sample)).into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}

/// Makes the names of tags unique.
pub(super) fn unique<'s>(tags: impl Iterator<Item = Tag<'s>>) -> Vec<(String, String)> {
    let mut names = UniqueNames::new('#');
    tags.map(|(name, value)| (names.unique(name.into_owned()), value.into_owned())).collect()
}

/// Makes names unique by numbers after them: the second `a` is `a#2`. The work is in proportion to the names, because no
/// number is tried twice after the same name.
pub(super) struct UniqueNames {
    separator: char,
    /// All names so far, each with the next number to try after it.
    next: BTreeMap<String, u32>,
}

impl UniqueNames {
    const FIRST: u32 = 2;

    pub(super) const fn new(separator: char) -> Self {
        Self { separator, next: BTreeMap::new() }
    }

    /// Returns a name that was not returned before: this one if possible.
    pub(super) fn unique(&mut self, name: String) -> String {
        let mut unique = name.clone();
        while self.next.contains_key(&unique) {
            let next = self.next.entry(name.clone()).or_insert(Self::FIRST);
            unique = format!("{name}{}{next}", self.separator);
            *next = next.saturating_add(1);
        }
        self.next.insert(unique.clone(), Self::FIRST);
        unique
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names = UniqueNames::new('#');
        let found: Vec<String> =
            ["a", "b", "a", "a#2", "a", "a#2", "a#2#2"].map(|name| names.unique(name.to_owned())).into();
        assert_eq!(found, ["a", "b", "a#2", "a#2#2", "a#3", "a#2#3", "a#2#2#2"]);
    }

    /// A hundred thousand equal names, and as many that already end with the numbers, would take hours if each of them
    /// tried all numbers.
    #[test]
    fn many_equal_names() {
        const NAMES: usize = 100_000;
        let mut names = UniqueNames::new('_');
        let numbered = (0..NAMES).map(|n| format!("a_{n}"));
        let all = numbered.chain((0..NAMES).map(|_| "a".to_owned()));
        let found: BTreeSet<String> = all.map(|name| names.unique(name)).collect();
        assert_eq!(found.len(), 2 * NAMES);
    }
}
