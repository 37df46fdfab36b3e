//! `Descriptions`: the texts by which programs describe their instruments.
use std::collections::BTreeMap;

use super::report::OwnedInstrument;

/// The descriptions of instruments by meter and name.
#[derive(Default)]
pub(super) struct Descriptions(BTreeMap<(String, String), String>);

impl Descriptions {
    /// The maximum number of descriptions, and the maximum length in bytes of each with its names.
    const MAX: usize = 10_000;
    const MAX_LEN: usize = 1_000;

    pub(super) fn add(&mut self, instrument: OwnedInstrument) {
        let OwnedInstrument { meter, name, description, .. } = instrument;
        let len =
            [&meter, &name].into_iter().fold(description.len(), |sum, text| sum.saturating_add(text.len()));
        if self.0.len() < Self::MAX && len <= Self::MAX_LEN {
            self.0.insert((meter, name), description);
        }
    }

    /// Returns a description; empty if there is none.
    pub(super) fn get(&self, provider: &str, name: &str) -> &str {
        self.0.get(&(provider.to_owned(), name.to_owned())).map_or("", |text| text)
    }
}
