//! `Recording`: a recorded trace, prepared for a replay.
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use nettrace::{
    Event, Limits, Metadata, Parser, Record, Rewrite, RewriteError, RewriteOptions, RewriteSpace, Slot,
    Trace, Version,
};

/// The provider of the rundown.
pub(super) const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
/// The provider of the event `ProcessInfo`.
pub(super) const EVENT_PIPE: &str = "Microsoft-DotNETCore-EventPipe";

/// A decoded recording of a program, for a [`Replay`](super::Replay), whose documentation has an example with a session.
///
/// ```
/// use ipc_testkit::{Recording, Replay};
///
/// let file = []; // of a trace; what is not one has no events
/// let stream = Recording::in_v4(&file, &mut Replay::buffer(file.len()))?;
/// let recording = Recording::read(&stream);
/// # let _ = recording;
/// # Ok::<(), nettrace::RewriteError>(())
/// ```
#[derive(Debug)]
pub struct Recording<'a> {
    pub(crate) trace: Trace<'a>,
    /// The kinds of events.
    pub(crate) kinds: Vec<Metadata<'a>>,
    /// The events in order of time.
    pub(crate) events: Vec<Recorded<'a>>,
    /// The events of the rundown, in the order of time.
    pub(crate) rundown: Vec<Recorded<'a>>,
    /// The number of events that each capture thread lost after its last event.
    pub(crate) lost: BTreeMap<u64, u32>,
    /// Nanoseconds from the first event to the last.
    pub(crate) length: u64,
}

/// An event of a recording.
#[derive(Debug)]
pub(crate) struct Recorded<'a> {
    /// Nanoseconds since the first event.
    pub(crate) at: u64,
    /// The index in [`Recording::kinds`].
    pub(crate) kind: usize,
    pub(crate) event: Event<'a>,
    pub(crate) stack: &'a [u8],
    /// The number of events that the capture thread lost before this event.
    pub(crate) lost: u32,
}

impl<'a> Recording<'a> {
    /// Converts V6 to V4: threads get the numbers of the system, events their activity ids, and the losses of ended
    /// threads are in the records of V4. Other versions are returned as they are.
    ///
    /// # Errors
    /// If a record does not fit the [buffer](super::Replay::buffer), or cannot be converted.
    pub fn in_v4<'s>(stream: &'s [u8], buffer: &mut [u8]) -> Result<Cow<'s, [u8]>, RewriteError> {
        let (mut metadata, mut threads, mut labels) = (0usize, BTreeSet::new(), 0usize);
        let mut parser = Parser::new(Limits::default());
        loop {
            match parser.next(stream) {
                Record::Trace(trace) if trace.version != Version::V6 => return Ok(Cow::Borrowed(stream)),
                Record::Metadata(_) => metadata = metadata.saturating_add(1),
                Record::Event(event) => drop(threads.insert(event.capture_thread)),
                Record::Thread(thread) => drop(threads.insert(thread.index)),
                Record::ThreadSequence(row) | Record::RemoveThread(row) => drop(threads.insert(row.thread)),
                Record::LabelList(_) => labels = labels.saturating_add(1),
                Record::More { .. } | Record::End(_) => break,
                _ => {}
            }
        }
        // The number of slots must be a power of two, and an eighth of the slots stays free.
        let slots = |count: usize| count.saturating_add(count / 7).saturating_add(2).next_power_of_two();
        let space = RewriteSpace {
            buffer,
            metadata: &mut vec![Slot::default(); slots(metadata)],
            threads: &mut vec![Slot::default(); slots(threads.len())],
            labels: &mut vec![Slot::default(); slots(labels)],
        };
        let options = RewriteOptions { version: Some(Version::V4), ..RewriteOptions::default() };
        let (mut rewrite, mut out) = (Rewrite::new(options, space)?, Vec::new());
        let mut parser = Parser::new(Limits::default());
        loop {
            let step = parser.next(stream);
            out.extend_from_slice(&rewrite.record(&step)?);
            if matches!(step, Record::More { .. } | Record::End(_)) {
                break;
            }
        }
        let mut end = rewrite.finish();
        while let Some(bytes) = end.next_bytes()? {
            out.extend_from_slice(&bytes);
        }
        Ok(Cow::Owned(out))
    }

    /// Reads the valid prefix of a V3 or V4 stream. The events that describe the recorded process are omitted.
    #[must_use]
    pub fn read(stream: &'a [u8]) -> Self {
        let mut recording = Self {
            trace: Trace::new(Version::V4),
            kinds: Vec::new(),
            events: Vec::new(),
            rundown: Vec::new(),
            lost: BTreeMap::new(),
            length: 0,
        };
        let (mut kinds, mut stacks) = (BTreeMap::new(), BTreeMap::new());
        let mut counted = BTreeMap::new();
        let mut parser = Parser::new(Limits::default());
        loop {
            match parser.next(stream) {
                Record::Trace(trace) => recording.trace = trace,
                Record::Metadata(record) => {
                    if let Ok(kind) = Metadata::decode(parser.version(), record.payload) {
                        kinds.insert(kind.id, recording.kinds.len());
                        recording.kinds.push(kind);
                    }
                }
                Record::Stack(stack) => drop(stacks.insert(stack.id, stack.bytes)),
                Record::Event(event) => {
                    let capture_thread = recording.capture_thread(&event);
                    let before = counted.insert(capture_thread, event.sequence);
                    let lost = before.map_or(0, |before| gap(before, event.sequence.wrapping_sub(1)));
                    recording.lost.remove(&capture_thread);
                    let stack = stacks.get(&event.stack_id).copied().unwrap_or(event.stack);
                    if let Some(kind) = kinds.get(&event.metadata_id) {
                        let event = Event { capture_thread, ..event };
                        recording.push(Recorded { at: event.timestamp, kind: *kind, event, stack, lost });
                    }
                }
                Record::ThreadSequence(row) => {
                    let lost = counted.get(&row.thread).map_or(0, |before| gap(*before, row.sequence));
                    recording.lost.insert(row.thread, lost);
                }
                Record::SequencePoint(_) => stacks.clear(),
                Record::More { .. } | Record::End(_) => break,
                _ => {}
            }
        }
        recording.normalize();
        recording
    }

    /// Returns the capture thread of an event. V3 has no field for it, so there it is the thread of the event.
    fn capture_thread(&self, event: &Event<'_>) -> u64 {
        if self.trace.version == Version::V3 { event.thread } else { event.capture_thread }
    }

    fn push(&mut self, recorded: Recorded<'a>) {
        let provider = self.kinds.get(recorded.kind).map(|kind| kind.provider).unwrap_or_default();
        if provider == RUNDOWN {
            self.rundown.push(recorded);
        } else if provider != EVENT_PIPE {
            self.events.push(recorded);
        }
    }

    /// Converts ticks to nanoseconds since the first event, and sorts the events.
    fn normalize(&mut self) {
        let frequency = u128::from(self.trace.frequency.max(1));
        let first = self.events.iter().map(|event| event.at).min().unwrap_or_default();
        for event in self.events.iter_mut().chain(&mut self.rundown) {
            let ticks = u128::from(event.at.saturating_sub(first));
            let nanoseconds = ticks.saturating_mul(1_000_000_000).checked_div(frequency);
            event.at = nanoseconds.and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX);
        }
        self.events.sort_by_key(|event| event.at);
        self.rundown.sort_by_key(|event| event.at);
        self.length = self.events.last().map_or(0, |event| event.at);
    }
}

/// Returns how many sequence numbers were skipped. A thread that counts from the beginning again has skipped none.
const fn gap(before: u32, now: u32) -> u32 {
    let gap = now.wrapping_sub(before);
    if gap >= 1 << 31 { 0 } else { gap }
}
