use std::collections::BTreeMap;

use ipc_proto::nettrace::{Event, Limits, Metadata, Parser, SequencePoint, Step, Trace, Version};

/// Who tells of methods and modules at the end of a session.
pub(super) const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
/// Who tells of the process.
pub(super) const EVENT_PIPE: &str = "Microsoft-DotNETCore-EventPipe";

/// What a program did while it was traced.
pub(super) struct Recording<'a> {
    pub(super) trace: Trace<'a>,
    /// Each kind of event.
    pub(super) kinds: Vec<Metadata<'a>>,
    /// In order of time.
    pub(super) events: Vec<Recorded<'a>>,
    /// The rundown, in the same order.
    pub(super) rundown: Vec<Recorded<'a>>,
    /// Events that each capture thread lost behind its last one.
    pub(super) lost: BTreeMap<u64, u32>,
    /// Nanoseconds from the first event to the last.
    pub(super) length: u64,
}

/// An event of a recording.
pub(super) struct Recorded<'a> {
    /// Nanoseconds since the first one.
    pub(super) at: u64,
    /// Of the recording's kinds.
    pub(super) kind: usize,
    pub(super) event: Event<'a>,
    pub(super) stack: &'a [u8],
    /// Events that its capture thread lost before it.
    pub(super) lost: u32,
}

impl<'a> Recording<'a> {
    /// Reads a stream of any version, as far as it can be read. What tells of the process that it was is left out.
    pub(super) fn read(stream: &'a [u8]) -> Self {
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
                Step::Trace(trace) => recording.trace = trace,
                Step::Metadata(record) => {
                    if let Ok(kind) = Metadata::decode(parser.version(), record.payload) {
                        kinds.insert(kind.id, recording.kinds.len());
                        recording.kinds.push(kind);
                    }
                }
                Step::Stack(stack) => drop(stacks.insert(stack.id, stack.bytes)),
                Step::Event(event) => {
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
                Step::ThreadSequence(row) => {
                    let lost = counted.get(&row.thread).map_or(0, |before| gap(*before, row.sequence));
                    recording.lost.insert(row.thread, lost);
                }
                Step::SequencePoint(point) => {
                    stacks.clear();
                    if point.flags & SequencePoint::FLUSH_METADATA != 0 {
                        kinds.clear();
                    }
                }
                Step::More { .. } | Step::End(_) => break,
                _ => {}
            }
        }
        recording.count_from_the_first();
        recording
    }

    /// V3 does not say which thread recorded an event.
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

    /// Makes nanoseconds of ticks, and puts the events in order.
    fn count_from_the_first(&mut self) {
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

/// How far a thread counted on without an event; one that counts anew has lost none.
const fn gap(before: u32, now: u32) -> u32 {
    let gap = now.wrapping_sub(before);
    if gap >= 1 << 31 { 0 } else { gap }
}
