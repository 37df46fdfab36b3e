//! `UniqueLabels`: which details a series shows, so that no two series look the same in an output.
use core::hash::BuildHasher;
use std::collections::BTreeMap;
use std::hash::RandomState;
use std::sync::Arc;

use nettrace_analysis::counters::OwnedSample;

use super::report::Process;
use super::series_details::{Detail, details};
use super::shares::Shares;

/// The details that each series shows. A series keeps them, and no other series of its process gets its labels, even
/// after its end.
pub(super) struct UniqueLabels {
    /// The size is the approximate memory in bytes.
    processes: Shares<ProcessLabels>,
    hasher: RandomState,
    key: String,
}

impl Default for UniqueLabels {
    fn default() -> Self {
        let processes = Shares::new(Self::LIMIT, Self::LIMIT / Self::SHARE);
        Self { processes, hasher: RandomState::new(), key: String::new() }
    }
}

/// The series of a process.
#[derive(Default)]
struct ProcessLabels {
    /// The details and the label of each series, by its key.
    series: BTreeMap<String, (Shown, Arc<str>)>,
    /// The hashes of labels in use, and the hashes of the details of their series.
    taken: BTreeMap<u64, Vec<u64>>,
}

/// Which of its details a series shows, as bits in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shown(u16);

impl Shown {
    const ALL: Self = Self(u16::MAX);

    pub(super) const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns the details that a series shows. For most series there are none.
    pub(super) fn details(self, sample: &OwnedSample) -> Vec<Detail<'_>> {
        if self.is_none() { Vec::new() } else { self.of(&details(sample)) }
    }

    fn of<'s>(self, details: &[Detail<'s>]) -> Vec<Detail<'s>> {
        let numbered = (0..u16::BITS).zip(details);
        numbered.filter(|(n, _)| self.0 & (1 << n) != 0).map(|(_, detail)| detail.clone()).collect()
    }
}

impl UniqueLabels {
    /// The memory in bytes, enough for about 200,000 series. Further ones show all their details.
    const LIMIT: usize = 64 << 20;
    /// The part of the memory that a process can take: one in this many.
    const SHARE: usize = 4;
    /// The memory of a series and of a process in bytes, in addition to their texts.
    const ENTRY: usize = 256;
    const PROCESS: usize = 1_024;

    /// Returns which details a series shows, and its label with them. `label` returns the label with some details; it is
    /// called only for a new series.
    pub(super) fn of_series(
        &mut self,
        process: &Process,
        sample: &OwnedSample,
        label: impl Fn(&[Detail<'_>]) -> String,
    ) -> (Shown, Arc<str>) {
        let Self { processes, hasher, key } = self;
        key.clear();
        sample.push_series_key(key);
        let own = processes.get(process);
        if let Some(known) = own.and_then(|own| own.series.get(&**key)) {
            return known.clone();
        }
        let all = details(sample);
        let label = |shown: Shown| label(&shown.of(&all));
        let is_taken = |label: &u64| own.is_some_and(|own| own.taken.contains_key(label));
        let hash = |shown: Shown| hasher.hash_one(label(shown));
        let own_details: Vec<u64> = all.iter().map(|detail| hasher.hash_one(detail)).collect();
        // Nothing, then each detail on its own that the other series does not have, then more and more of them.
        let nothing = hash(Shown::default());
        let other = own.and_then(|own| own.taken.get(&nothing));
        let differs =
            |n: &usize| other.zip(own_details.get(*n)).is_some_and(|(other, own)| !other.contains(own));
        let one = (0..own_details.len()).filter(differs).map(|n| 1 << n);
        let several = (2..=own_details.len()).map(|n| !(u16::MAX << n));
        let mut choices = one.chain(several).map(Shown);
        let shown = match other {
            None => Shown::default(),
            Some(_) => choices.find(|shown| !is_taken(&hash(*shown))).unwrap_or(Shown::ALL),
        };
        let text: Arc<str> = label(shown).into();
        let of_process = if own.is_none() { process.name.len().saturating_add(Self::PROCESS) } else { 0 };
        let added = [key.len(), text.len(), of_process].into_iter().fold(Self::ENTRY, usize::saturating_add);
        let Some(own) = processes.reserve(process, added) else {
            return (Shown::ALL, label(Shown::ALL).into());
        };
        own.taken.insert(hasher.hash_one(&*text), own_details);
        own.series.insert(key.clone(), (shown, Arc::clone(&text)));
        (shown, text)
    }

    /// Removes the series of a process that has ended.
    pub(super) fn remove(&mut self, process: &Process) {
        self.processes.remove(process);
    }
}
