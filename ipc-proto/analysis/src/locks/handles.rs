//! The waits on WaitHandles: events of .NET 9 and newer.
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::frames::{Frames, StackMethod};
use super::lock_report::{WaitTimes, WaitingMethod};
use crate::samples::ThreadNumber;
use crate::trace::elapsed;
use crate::{StackId, WaitKind};

/// The waits of threads on WaitHandles.
#[derive(Debug, Default)]
pub(super) struct HandleWaits {
    /// The start of the wait of each thread.
    open: BTreeMap<ThreadNumber, (i64, StackId)>,
    /// The waits that have ended.
    waits: BTreeMap<StackId, WaitTimes>,
}

impl HandleWaits {
    pub(super) fn start(&mut self, thread: ThreadNumber, time: i64, stack: StackId) {
        self.open.insert(thread, (time, stack));
    }

    pub(super) fn stop(&mut self, thread: ThreadNumber, time: i64) {
        if let Some((start, stack)) = self.open.remove(&thread) {
            self.waits.entry(stack).or_default().add(elapsed(start, time));
        }
    }

    /// Returns the methods of the program that wait for something else than a lock, and the waits without such a method.
    /// Waits that have not ended last up to `end`.
    pub(super) fn finish(mut self, end: i64, frames: &mut Frames<'_>) -> (Vec<WaitingMethod>, WaitTimes) {
        for (start, stack) in core::mem::take(&mut self.open).into_values() {
            self.waits.entry(stack).or_default().add(elapsed(start, end));
        }
        let (mut methods, mut others) = (BTreeMap::<_, WaitTimes>::new(), WaitTimes::default());
        for (stack, times) in self.waits {
            let stack = frames.stack(stack);
            match &stack.method {
                // A wait for a lock has other events.
                _ if matches!(stack.wait, Some((WaitKind::Lock, _))) => {}
                Some(StackMethod { name, is_own: true }) => {
                    methods.entry(name.clone()).or_default().merge(times);
                }
                _ => others.merge(times),
            }
        }
        let method = |(name, waits)| WaitingMethod { method: Some(name), is_own: true, waits };
        let mut methods: Vec<_> = methods.into_iter().map(method).collect();
        methods.sort_by_key(|method| Reverse((method.waits.total, method.waits.count)));
        (methods, others)
    }
}
