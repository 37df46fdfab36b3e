//! `Descriptions`: the texts by which programs describe their instruments.
use std::collections::BTreeMap;

use super::report::{OwnedInstrument, Process};

/// The descriptions of instruments of each process by meter and name.
#[derive(Default)]
pub(super) struct Descriptions {
    processes: BTreeMap<Process, BTreeMap<(String, String), String>>,
    len: usize,
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
        let own = self.processes.get(process).map_or(0, BTreeMap::len);
        if self.len < Self::MAX && own < Self::MAX_OF_PROCESS && len <= Self::MAX_LEN {
            let own = self.processes.entry(process.clone()).or_default();
            self.len = self.len.saturating_add(usize::from(own.insert((meter, name), description).is_none()));
        }
    }

    /// Removes the descriptions of a process that has ended.
    pub(super) fn remove(&mut self, process: &Process) {
        let removed = self.processes.remove(process).map_or(0, |own| own.len());
        self.len = self.len.saturating_sub(removed);
    }

    /// Returns a description; empty if there is none.
    pub(super) fn get(&self, process: &Process, provider: &str, name: &str) -> &str {
        let own = self.processes.get(process);
        own.and_then(|own| own.get(&(provider.to_owned(), name.to_owned()))).map_or("", |text| text)
    }
}
