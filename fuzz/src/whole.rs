//! The property of a reader of a whole trace: it returns the events of an assembler, in the same order.
use nettrace::{EventAssembler, EventOrder, ReadOptions, Record, WholeTrace};

use crate::assembled::{Assembled, SeenEvent, read};
use crate::work::parse;

/// Checks that a reader of the whole trace and an assembler that sorts return the same events, losses and end.
///
/// While an event waits in an assembler, a damaged trace can assign the id of its stack or of its labels again. The
/// reader returns what the event referred to when it was read, as an assembler that does not sort.
pub(crate) fn whole(bytes: &[u8]) {
    let once = || [bytes.len().max(1)].into_iter().cycle();
    let assembler = |order| EventAssembler::new(order, ReadOptions::default());
    let whole = read_whole(bytes);
    let sorted = read(assembler(EventOrder::BY_TIME), bytes, once());
    assert_eq!(whole.numbers, sorted.numbers);
    let pieces = read(assembler(EventOrder::BY_SEGMENT), bytes, [97, 1000, 30_011].into_iter().cycle());
    assert!(pieces == whole, "the events by segment differ from those of the whole trace");
    let limited = read(assembler(EventOrder::Segment { limit: 2000 }), bytes, [300, 7].into_iter().cycle());
    assert_eq!((limited.events.len(), limited.numbers), (whole.events.len(), whole.numbers.clone()));
    if !whole.exceeded_limit && !sorted.exceeded_limit {
        let is_same = |(one, other): (&SeenEvent, &SeenEvent)| one.header == other.header;
        assert!(
            whole.events.len() == sorted.events.len() && whole.events.iter().zip(&sorted.events).all(is_same),
            "the order differs from that of the assembler"
        );
        assert_eq!(whole.late, sorted.late);
    }
    if traces(bytes) == 1 {
        let stream = read(assembler(EventOrder::Stream), bytes, once());
        let by_block = read(assembler(EventOrder::Block), bytes, [997, 64].into_iter().cycle());
        assert!(stream == by_block, "the events by block differ from those of the stream");
        let mut events = stream.events;
        let mut other = whole.events;
        events.sort_unstable();
        other.sort_unstable();
        assert!(events == other, "the events differ from those of the assembler");
    }
}

/// Returns the number of records that state the clock of the trace; a valid trace has one.
fn traces(bytes: &[u8]) -> usize {
    let mut traces = 0;
    parse(bytes, |record, _| traces += usize::from(matches!(record, Record::Trace(_))));
    traces
}

fn read_whole(bytes: &[u8]) -> Assembled {
    let mut trace = WholeTrace::new(bytes, ReadOptions::default());
    let mut seen = Assembled::default();
    // The description of each kind.
    let mut kinds: Vec<Option<String>> = Vec::new();
    while let Some(segment) = trace.next_segment() {
        let events = segment.events();
        assert!(events.len() > 0, "a segment without events");
        let len = events.len();
        assert_eq!(events.map(|event| seen.events.push(SeenEvent::of(&event))).count(), len);
        for event in segment.events() {
            let kind = event.kind() as usize;
            if kind >= kinds.len() {
                kinds.resize(kind + 1, None);
            }
            let description = || format!("{:?}", event.description());
            if kinds[kind].is_none() {
                kinds[kind] = Some(description());
            } else if seen.events.len() % 16 == 0 {
                assert_eq!(kinds[kind], Some(description()), "kind {kind} changed");
            }
            let fields = event.metadata().map(|metadata| metadata.fields.values(event.payload()));
            assert!(fields.is_none_or(|mut values| values.next() == event.values().next()));
        }
    }
    assert!(trace.next_segment().is_none(), "events after the end");
    let summary = trace.summary();
    (seen.late, seen.exceeded_limit) = (summary.late, summary.exceeded_limit);
    let end = summary.end.expect("the trace was read to its end");
    seen.numbers = format!("{end} {:?} {:?}", summary.losses, summary.trace);
    seen
}
