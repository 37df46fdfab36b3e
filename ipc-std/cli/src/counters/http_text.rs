//! The text that the clients of `counters --serve` receive.
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::prometheus::exposition::Exposition;
use crate::run::threads::lock;

/// The newest text, and older ones that clients still receive. All clients that ask between two changes share a text.
pub(super) struct HttpText {
    exposition: Arc<Mutex<Exposition>>,
    newest: Arc<str>,
    /// The changes of the exposition that the newest text contains.
    changes: u64,
    /// When another text can be built.
    next: Instant,
    /// Texts that clients still receive.
    older: VecDeque<Arc<str>>,
}

/// The minimum time between two texts, so that clients cannot have a text built for each sample of an interval.
const TEXT_TIME: Duration = Duration::from_millis(100);
/// The time between two texts is at least this many times that of building one.
const TEXT_SHARE: u32 = 4;
/// The maximum length of all texts but the newest in bytes.
const OLDER_LIMIT: usize = 64 << 20;

impl HttpText {
    pub(super) fn new(exposition: Arc<Mutex<Exposition>>) -> Self {
        Self { exposition, newest: "".into(), changes: 0, next: Instant::now(), older: VecDeque::new() }
    }

    /// Returns the text with all changes, or with those until a moment ago.
    pub(super) fn newest(&mut self) -> Arc<str> {
        let begin = Instant::now();
        if begin >= self.next {
            let exposition = lock(&self.exposition);
            if exposition.changes() != self.changes {
                self.changes = exposition.changes();
                let text = exposition.text().into();
                self.older.push_back(core::mem::replace(&mut self.newest, text));
                let (now, built) = (Instant::now(), begin.elapsed());
                self.next = now.checked_add(TEXT_TIME.max(built.saturating_mul(TEXT_SHARE))).unwrap_or(now);
            }
        }
        Arc::clone(&self.newest)
    }

    /// Removes the oldest text if older ones are too long in all. Its clients are too slow.
    pub(super) fn take_excess(&mut self) -> Option<Arc<str>> {
        self.older.retain(|text| Arc::strong_count(text) > 1);
        let length = self.older.iter().fold(0_usize, |length, text| length.saturating_add(text.len()));
        if length > OLDER_LIMIT { self.older.pop_front() } else { None }
    }
}
