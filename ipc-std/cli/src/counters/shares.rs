//! `Shares`: values for processes, within a limit for all and one for each.
use std::collections::BTreeMap;

use super::report::Process;

/// A value for each process, with its size. A process has a share of the room, and gives it back at its end.
#[derive(Debug)]
pub(super) struct Shares<T> {
    processes: BTreeMap<Process, Share<T>>,
    size: usize,
    /// The maximum sizes of all processes together, and of one.
    limit: usize,
    share: usize,
}

#[derive(Debug, Default)]
struct Share<T> {
    stored: T,
    size: usize,
}

impl<T: Default> Shares<T> {
    pub(super) const fn new(limit: usize, share: usize) -> Self {
        Self { processes: BTreeMap::new(), size: 0, limit, share }
    }

    pub(super) fn get(&self, process: &Process) -> Option<&T> {
        self.processes.get(process).map(|share| &share.stored)
    }

    pub(super) fn get_mut(&mut self, process: &Process) -> Option<&mut T> {
        self.processes.get_mut(process).map(|share| &mut share.stored)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Process, &T)> {
        self.processes.iter().map(|(process, share)| (process, &share.stored))
    }

    /// Returns the value of a process, to which the caller adds a part of this size. Returns `None` if there is
    /// no room for it.
    pub(super) fn reserve(&mut self, process: &Process, added: usize) -> Option<&mut T> {
        let own = self.processes.get(process).map_or(0, |share| share.size).saturating_add(added);
        let all = self.size.saturating_add(added);
        if all > self.limit || own > self.share {
            return None;
        }
        self.size = all;
        let share = self.processes.entry(process.clone()).or_default();
        share.size = own;
        Some(&mut share.stored)
    }

    /// Changes the size of a part of a value. Returns whether there is room for it.
    pub(super) fn resize(&mut self, process: &Process, before: usize, after: usize) -> bool {
        let Some(share) = self.processes.get_mut(process) else { return false };
        for size in [&mut self.size, &mut share.size] {
            *size = size.saturating_sub(before).saturating_add(after);
        }
        self.size <= self.limit && share.size <= self.share
    }

    /// Removes and returns the value of a process.
    pub(super) fn remove(&mut self, process: &Process) -> Option<T> {
        let share = self.processes.remove(process)?;
        self.size = self.size.saturating_sub(share.size);
        Some(share.stored)
    }

    #[cfg(test)]
    pub(super) const fn size(&self) -> usize {
        self.size
    }
}
