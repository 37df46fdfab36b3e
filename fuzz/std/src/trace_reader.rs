//! The property of `TraceReader`: the same events for pieces of any size.
use core::task::Poll;
use std::io::{self, ErrorKind, Read};

use nettrace::{End, EventAssembler, EventOrder, Limits, Losses, ReadOptions, TraceEvent, TraceReader};

/// Checks that a `TraceReader` returns the same events and the same end for pieces of any size, and that errors of its
/// reader lose nothing. The first bytes of the input choose the pieces and the errors, the others are the trace.
pub fn trace_reader(bytes: &[u8]) {
    let (schedule, trace) = bytes.split_at(bytes.len().min(8));
    let (expected, ..) = read(limited(trace), usize::MAX);
    let pieces = Pieces { rest: trace, schedule, calls: 0, bytes: 0 };
    // Every call returns a byte, or one of at most seven errors before the next byte; then the end.
    let most = 8 * (trace.len() + 2);
    let (events, pieces) = read(limited(pieces), most);
    assert_eq!(events, expected);
    assert!(pieces.bytes <= trace.len());
}

fn limited<R: Read>(reader: R) -> TraceReader<R> {
    let limits = Limits { block: 1 << 16, ..Limits::default() };
    let options = ReadOptions { limits, ..ReadOptions::default() };
    TraceReader::with_assembler(reader, EventAssembler::new(EventOrder::Stream, options))
}

/// The result of a reader for a trace: its events, its end, and the lost events.
type Outcome = (Vec<String>, Option<End>, Losses);

/// Reads all events, and returns the reader's source.
fn read<R: Read>(mut reader: TraceReader<R>, most: usize) -> (Outcome, R) {
    let (mut events, mut errors) = (Vec::new(), 0);
    loop {
        // Both functions read the same events.
        let ready =
            if errors % 2 == 0 { reader.next_event().map(Poll::Ready) } else { reader.poll_next_event() };
        match ready {
            Ok(Poll::Ready(Some(event))) => events.push(describe(&event)),
            Ok(Poll::Ready(None)) => break,
            Ok(Poll::Pending) => errors += 1,
            Err(error) => {
                assert!([ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()), "{error}");
                errors += 1;
            }
        }
        assert!(errors <= most, "no progress");
    }
    assert!(reader.next_event().expect("the end is no error").is_none());
    let summary = reader.summary();
    assert!(summary.end.is_some());
    let outcome = (events, summary.end, summary.losses);
    (outcome, reader.into_inner())
}

fn describe(event: &TraceEvent<'_>) -> String {
    let metadata =
        event.metadata().map(|metadata| (metadata.id, metadata.event_id, metadata.name.to_string()));
    let stack: Vec<_> = event.stack().collect();
    format!("{:?} {metadata:?} {stack:?} {} {:?}", event.nanoseconds(), event.thread_id(), event.payload())
}

/// A reader of pieces, with errors between them.
struct Pieces<'a> {
    rest: &'a [u8],
    /// One entry for each call, from the beginning again after the last: the low half is the length of the piece, the
    /// high half an error.
    schedule: &'a [u8],
    calls: usize,
    bytes: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let step = self.schedule.get(self.calls % 8).copied().unwrap_or(0xf);
        self.calls += 1;
        assert!(!buf.is_empty(), "space for a byte");
        // One call of eight has no error, so that every reader makes progress.
        if self.calls % 8 != 0 {
            match step >> 4 {
                1 => return Err(ErrorKind::Interrupted.into()),
                2 => return Err(ErrorKind::WouldBlock.into()),
                3 => return Err(ErrorKind::TimedOut.into()),
                _ => {}
            }
        }
        let piece =
            [usize::from(step & 0xf) * 7 + 1, buf.len(), self.rest.len()].into_iter().min().unwrap_or(0);
        let (piece, rest) = self.rest.split_at(piece);
        buf[..piece.len()].copy_from_slice(piece);
        (self.rest, self.bytes) = (rest, self.bytes + piece.len());
        Ok(piece.len())
    }
}
