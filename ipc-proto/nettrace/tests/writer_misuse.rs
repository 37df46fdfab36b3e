//! Every stream of a writer has its header first, and an error leaves only its record out.
#![allow(clippy::unwrap_used, reason = "a test states what it expects by unwrapping it")]

mod steps;

use nettrace::{
    End, Event, Record, Rewrite, RewriteOptions, RewriteSpace, Slot, Stack, Trace, TraceWriter, Version,
    WriteError,
};
use steps::picked;

/// The compiler refuses a writer without a header, and a record after the end: see the documentation of `TraceWriter`.
#[test]
fn the_header_comes_first() {
    for version in [Version::V4, Version::V6] {
        let trace = Trace { process_id: Some(7), ..Trace::new(version) };
        let mut buf = [0; 4096];
        let writer = TraceWriter::new(&trace, &mut buf).unwrap();
        let stream = writer.finish();
        let (found, end) =
            picked(
                &stream,
                |step| if let Record::Trace(trace) = step { Some(trace.process_id) } else { None },
            );
        assert_eq!((&found[..], end), (&[Some(7)][..], End::Complete), "{version}");
    }
}

#[test]
fn a_rewrite_ignores_records_before_the_header() {
    for trace in [None, Some(Trace { process_id: Some(7), ..Trace::new(Version::V4) })] {
        let (mut buffer, mut metadata, mut threads) = ([0; 2000], [Slot::default(); 8], [Slot::default(); 8]);
        let space = RewriteSpace {
            buffer: &mut buffer,
            metadata: &mut metadata,
            threads: &mut threads,
            labels: &mut [],
        };
        let mut rewrite = Rewrite::new(RewriteOptions::default(), space).unwrap();
        let event = Record::Event(Event { payload: &[7; 100], ..Event::default() });
        for _ in 0..100 {
            assert!(rewrite.record(&event).unwrap().is_empty());
        }
        let mut stream = Vec::new();
        for record in trace.map(Record::Trace).into_iter().chain([event]) {
            stream.extend_from_slice(&rewrite.record(&record).unwrap());
        }
        let mut end = rewrite.finish();
        while let Some(bytes) = end.next_bytes().unwrap() {
            stream.extend_from_slice(&bytes);
        }
        if trace.is_none() {
            assert_eq!(stream, []);
            continue;
        }
        let (events, end) = picked(&stream, |step| matches!(step, Record::Event(_)).then_some(()));
        assert_eq!((events.len(), end), (1, End::Complete));
    }
}

/// An event that is too long is left out, and no byte of another event is.
#[test]
fn an_error_leaves_the_stream_valid() {
    for version in [Version::V4, Version::V6] {
        let (mut buf, mut stream, mut refused) = ([0; 1000], Vec::new(), 0);
        let mut writer = TraceWriter::new(&Trace::new(version), &mut buf).unwrap();
        for sequence in 1..=100 {
            let event = Event { sequence, capture_thread: 1, payload: &[7; 20], ..Event::default() };
            stream.extend_from_slice(&writer.event(&event).unwrap());
            // An event of another thread begins a block, but not if it is refused.
            let long = Event { payload: &[7; 500], capture_thread: sequence.into(), ..event };
            match writer.event(&long) {
                Err(WriteError::BufferTooSmall { needed }) => refused += u32::from(needed > 1000),
                other => panic!("{other:?}"),
            }
            let long = Stack { id: sequence, bytes: &[7; 500] };
            match writer.stack(&long) {
                Err(WriteError::BufferTooSmall { needed }) => refused += u32::from(needed > 1000),
                other => panic!("{other:?}"),
            }
            let short = Stack { id: sequence, bytes: &[7; 5] };
            stream.extend_from_slice(&writer.stack(&short).unwrap());
        }
        stream.extend_from_slice(&writer.finish());
        let (found, end) = picked(&stream, |step| match step {
            Record::Event(event) => Some(event.sequence),
            Record::Stack(stack) => Some(stack.id + 1000),
            _ => None,
        });
        let (events, stacks): (Vec<_>, Vec<_>) = found.into_iter().partition(|number| *number < 1000);
        assert!(events.into_iter().eq(1..=100), "{version}");
        assert!(stacks.into_iter().eq(1001..=1100), "{version}");
        assert_eq!((refused, end), (200, End::Complete));
    }
}
