//! `Descriptions`: the texts by which programs describe their instruments.
use std::collections::BTreeMap;

use super::report::{OwnedInstrument, Process};
use super::shares::Shares;

/// The descriptions of instruments of each process by meter and name.
pub(super) struct Descriptions(Shares<BTreeMap<(String, String), String>>);

impl Default for Descriptions {
    fn default() -> Self {
        Self(Shares::new(Self::MAX, Self::MAX_OF_PROCESS))
    }
}

impl Descriptions {
    /// The maximum number of descriptions, of all processes and of one, and the maximum length in bytes of each with its
    /// names.
    const MAX: usize = 10_000;
    const MAX_OF_PROCESS: usize = 1_250;
    const MAX_LEN: usize = 1_000;

    pub(super) fn add(&mut self, process: &Process, instrument: OwnedInstrument) {
        let OwnedInstrument { meter, name, description, .. } = instrument;
        let len =
            [&meter, &name].into_iter().fold(description.len(), |sum, text| sum.saturating_add(text.len()));
        let key = (meter, name);
        let is_new = self.0.get(process).is_none_or(|own| !own.contains_key(&key));
        if let Some(own) = (len <= Self::MAX_LEN).then(|| self.0.reserve(process, is_new.into())).flatten() {
            own.insert(key, description);
        }
    }

    /// Removes the descriptions of a process that has ended.
    pub(super) fn remove(&mut self, process: &Process) {
        self.0.remove(process);
    }

    /// Returns a description; empty if there is none.
    pub(super) fn get(&self, process: &Process, provider: &str, name: &str) -> &str {
        let own = self.0.get(process);
        own.and_then(|own| own.get(&(provider.to_owned(), name.to_owned()))).map_or("", |text| text)
    }
}
