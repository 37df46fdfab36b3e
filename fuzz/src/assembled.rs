//! The events of a reader, in a form that compares two readers.
use ipc_proto::wire::to_u32;
use nettrace::{AssemblerStep, EventAssembler, Str, TimeFilter, TraceEvent};

use crate::reading::of_event;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SeenEvent {
    pub(crate) timestamp: u64,
    pub(crate) header: Vec<u8>,
    /// The records that the event refers to.
    pub(crate) context: Vec<u8>,
}

impl SeenEvent {
    pub(crate) fn of(event: &TraceEvent<'_>) -> Self {
        let header = event.header();
        let mut context = Vec::new();
        let mut add = |part: &[u8]| context.extend_from_slice(part);
        if let Some(metadata) = event.metadata() {
            for Str::Utf8(text) | Str::Utf16(text) in [metadata.provider, metadata.name] {
                add(text);
            }
            add(&metadata.keywords.to_le_bytes());
            let fields = to_u32(metadata.fields.len());
            let numbers = [metadata.id, metadata.event_id, metadata.version, metadata.level, fields];
            numbers.iter().for_each(|number| add(&number.to_le_bytes()));
            add(&[metadata.opcode.unwrap_or(0xff)]);
        }
        event.stack().for_each(|frame| add(&frame.to_le_bytes()));
        add(event.labels().as_bytes());
        add(event.thread().map_or(b"no thread", |thread| thread.entries.as_bytes()));
        add(&event.thread_id().to_le_bytes());
        for id in [event.known_thread_id(), event.process_id(), event.span_id()] {
            add(&id.unwrap_or(u64::MAX).to_le_bytes());
        }
        add(&event.trace_id().unwrap_or_default());
        add(&event.activity_id().0);
        add(&event.related_activity_id().0);
        add(&event.nanoseconds().to_le_bytes());
        add(&event.unix_nanoseconds().unwrap_or(i128::MIN).to_le_bytes());
        Self { timestamp: header.timestamp, header: of_event(&header), context }
    }
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Assembled {
    pub(crate) events: Vec<SeenEvent>,
    pub(crate) late: u64,
    pub(crate) exceeded_limit: bool,
    /// The number of skipped blocks.
    pub(crate) skipped: u64,
    /// The end, the number of lost events, and the trace.
    pub(crate) numbers: String,
}

pub(crate) fn read(
    mut assembler: EventAssembler,
    mut bytes: &[u8],
    mut sizes: impl Iterator<Item = usize>,
) -> Assembled {
    let mut seen = Assembled::default();
    loop {
        match assembler.step() {
            AssemblerStep::Event(event) => seen.events.push(SeenEvent::of(&event)),
            AssemblerStep::More => {
                let n = sizes.next().unwrap_or(1).min(bytes.len());
                let (now, later) = bytes.split_at(n);
                if n % 2 == 1 {
                    assembler.push(now);
                    bytes = later;
                } else {
                    let space = assembler.space();
                    let n = space.len().min(n);
                    space[..n].copy_from_slice(&now[..n]);
                    assembler.advance(n);
                    bytes = &bytes[n..];
                }
            }
            AssemblerStep::End(end) => {
                assert!(matches!(assembler.step(), AssemblerStep::End(again) if again == end));
                let summary = assembler.summary();
                assert_eq!(summary.end, Some(end));
                (seen.late, seen.exceeded_limit) = (summary.late, summary.exceeded_limit);
                seen.skipped = summary.time_filter.map_or(0, TimeFilter::skipped_blocks);
                seen.numbers = format!("{end} {:?} {:?}", summary.losses, summary.trace);
                return seen;
            }
        }
    }
}
