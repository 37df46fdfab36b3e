//! `TraceReader` over the recorded traces: whole, in pieces, with errors between them, cut, damaged, in order.
#![cfg(feature = "std")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test asserts what it expects"
)]

use core::time::Duration;
use std::io::{self, ErrorKind, Read};
use std::time::SystemTime;

use nettrace::{
    Corruption, End, EventAssembler, EventOrder, Limits, Parser, ParserBuf, ReadOptions, Record, TraceEvent,
    TraceReader, Truncation, system_time,
};

/// Returns name, bytes and expected numbers of each trace.
fn traces() -> Vec<(String, Vec<u8>, serde_json::Value)> {
    let parsed = |trace: &ipc_testdata::RecordedTrace| {
        (trace.name.to_owned(), trace.bytes.to_vec(), serde_json::from_str(trace.expected).unwrap())
    };
    ipc_testdata::TRACES.iter().map(parsed).collect()
}

fn trace(name: &str) -> Vec<u8> {
    traces().into_iter().find(|(of, ..)| of.starts_with(name)).unwrap().1
}

/// Returns an event and everything that it refers to as text.
fn text_of(event: &TraceEvent<'_>) -> String {
    let header = event.header().without_payload();
    let values: Vec<_> = event.values().collect();
    let stack: Vec<u64> = event.stack().collect();
    let (thread, activity) = (event.thread_id(), (event.activity_id(), event.related_activity_id()));
    let labels: Vec<_> = event.labels().collect();
    let about = event.metadata().map(|m| (m.provider.to_string(), m.event_id, m.version, m.name.to_string()));
    let payload = event.payload();
    let time = event.nanoseconds();
    format!("{time} {about:?} {values:?} {thread} {activity:?} {labels:?} {stack:?} {header:?} {payload:?}")
}

/// Returns the number of lost events as Microsoft's reader counts them.
fn lost_events<R: Read>(trace: &TraceReader<R>) -> u64 {
    let losses = trace.summary().losses;
    losses.lost - losses.at_start
}

fn in_order<R: Read>(reader: R, limit: usize) -> TraceReader<R> {
    let assembler = EventAssembler::new(EventOrder::Time { limit }, ReadOptions::default());
    TraceReader::with_assembler(reader, assembler)
}

/// Returns all events, and how often reading timed out.
fn read<R: Read>(trace: &mut TraceReader<R>) -> (Vec<String>, usize) {
    let (mut events, mut timeouts) = (Vec::new(), 0);
    loop {
        match trace.next_event() {
            Ok(Some(event)) => events.push(text_of(&event)),
            Ok(None) => break,
            Err(e) if e.kind() == ErrorKind::TimedOut => timeouts += 1,
            Err(e) => panic!("{e}"),
        }
    }
    assert!(trace.next_event().unwrap().is_none());
    (events, timeouts)
}

/// A reader that returns `piece` bytes at a time, and all `errors` before each piece.
struct Pieces<'a> {
    bytes: &'a [u8],
    piece: usize,
    errors: &'a [ErrorKind],
    turn: usize,
    /// The length of the largest buffer.
    largest: usize,
}

impl<'a> Pieces<'a> {
    fn new(bytes: &'a [u8], piece: usize, errors: &'a [ErrorKind]) -> Self {
        Self { bytes, piece, errors, turn: 0, largest: 0 }
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.largest = self.largest.max(buf.len());
        let turn = self.turn % (self.errors.len() + 1);
        self.turn += 1;
        match self.errors.get(turn) {
            Some(kind) => Err((*kind).into()),
            None => {
                let n = self.piece.min(buf.len());
                self.bytes.read(&mut buf[..n])
            }
        }
    }
}

#[test]
fn whole_in_pieces_and_in_order() {
    for (name, bytes, expected) in traces() {
        let mut reader = TraceReader::new(&bytes[..]);
        let (whole, _) = read(&mut reader);
        assert_eq!(whole.len() as u64, expected["events"].as_u64().unwrap(), "{name}");
        assert_eq!(lost_events(&reader), expected["dropped_strict"].as_u64().unwrap(), "{name}");
        assert_eq!(reader.summary().late, 0);
        let (end, lost) = (reader.summary().end.unwrap(), lost_events(&reader));
        match expected["end"].as_str().unwrap() {
            "null tag" | "EndOfStream" if expected["error"].is_null() => {
                assert_eq!(end, End::Complete, "{name}")
            }
            "null tag" => assert!(matches!(end, End::Corrupt { offset: 0x1734, .. }), "{name}: {end}"),
            _ => assert!(
                matches!(end, End::Truncated { offset, .. } if offset == bytes.len() as u64),
                "{name}: {end}"
            ),
        }
        let trace = reader.summary().trace.unwrap();
        assert_eq!(u64::from(trace.version.number()), expected["version"].as_u64().unwrap());
        assert_eq!(trace.frequency, expected["trace"]["freq"].as_u64().unwrap());
        assert_eq!(
            trace.pairs.count(),
            expected["trace"]["kv"].as_object().map_or(0, |kv| kv.len()),
            "{name}"
        );

        let mut events: Vec<String> = Vec::new();
        for (piece, errors) in [
            (1, &[][..]),
            (7, &[ErrorKind::Interrupted]),
            (1000, &[ErrorKind::TimedOut]),
            (4096, &[ErrorKind::TimedOut, ErrorKind::Interrupted, ErrorKind::TimedOut]),
        ] {
            let mut reader = TraceReader::new(Pieces::new(&bytes, piece, errors));
            let (read, timeouts) = read(&mut reader);
            assert!(read == whole, "{name} in pieces of {piece}");
            assert_eq!((reader.summary().end, lost_events(&reader)), (Some(end), lost), "{name}");
            assert_eq!(timeouts > 0, errors.contains(&ErrorKind::TimedOut));
            events = read;
        }

        let mut reader = in_order(Pieces::new(&bytes, 100, &[ErrorKind::TimedOut]), 16 << 20);
        let mut last = i64::MIN;
        let mut ordered = Vec::new();
        loop {
            match reader.next_event() {
                Ok(Some(event)) => {
                    assert!(event.nanoseconds() >= last, "{name}");
                    last = event.nanoseconds();
                    ordered.push(text_of(&event));
                }
                Ok(None) => break,
                Err(_) => {}
            }
        }
        assert_eq!(
            (reader.summary().end, lost_events(&reader), reader.summary().late),
            (Some(end), lost, 0),
            "{name}"
        );
        // Sorted events keep the stack and the thread of their place in the stream. Events of the same time keep their
        // order.
        events.sort_by_key(|text| text.split(' ').next().unwrap().parse::<i64>().unwrap());
        assert!(ordered == events, "{name}");
    }
}

/// Events are returned as soon as their bytes have arrived.
#[test]
fn complete_events_do_not_wait() {
    for name in ["gen-net8-aot-lab-small", "synth-v6-all", "synth-v5-corners", "synth-cut"] {
        let bytes = trace(name);
        let step = if bytes.len() > 2000 { 37 } else { 1 };
        let (whole, _) = read(&mut TraceReader::new(&bytes[..]));
        for len in (0..=bytes.len()).step_by(step) {
            let mut parser = Parser::new(Limits::default());
            let mut there = 0;
            let end = loop {
                match parser.next(&bytes[..len]) {
                    Record::Event(_) => there += 1,
                    Record::More { .. } => break parser.finish(&bytes[..len]),
                    Record::End(end) => break end,
                    _ => {}
                }
            };

            /// A reader that returns everything at once, then fails.
            struct Once<'a>(&'a [u8]);
            impl Read for Once<'_> {
                fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                    if self.0.is_empty() { Err(ErrorKind::TimedOut.into()) } else { self.0.read(buf) }
                }
            }
            let mut reader = TraceReader::new(Once(&bytes[..len]));
            let mut events = Vec::new();
            while let Ok(Some(event)) = reader.next_event() {
                events.push(text_of(&event));
            }
            assert_eq!(events.len(), there, "{name} {len}");
            assert!(whole.starts_with(&events), "{name} {len}");

            // A trace that is cut after these bytes has the same events.
            let mut reader = TraceReader::new(&bytes[..len]);
            let (cut, _) = read(&mut reader);
            assert!(cut == events, "{name} {len}");
            assert_eq!(reader.summary().end, Some(end), "{name} {len}");
            // In the order of time, the events that wait to be sorted are returned, too.
            let mut reader = in_order(&bytes[..len], 1 << 20);
            assert_eq!(read(&mut reader).0.len(), there, "{name} {len}");
        }
    }
}

#[test]
fn empty_and_foreign() {
    let mut reader = TraceReader::new(&[][..]);
    assert!(reader.next_event().unwrap().is_none());
    let truncated = End::Truncated { offset: 0, reason: Truncation::Header };
    assert_eq!((reader.summary().end, reader.summary().trace), (Some(truncated), None));
    let mut reader = TraceReader::new(&b"PK\x03\x04 an archive"[..]);
    assert!(reader.next_event().unwrap().is_none());
    assert_eq!(reader.summary().end, Some(End::Corrupt { offset: 0, reason: Corruption::NotNetTrace }));
}

/// Bytes after the end mark are not part of the trace. Only one of them is read, to find out whether the reader ends.
#[test]
fn bytes_after_the_end() {
    let bytes = trace("gen-net10-lab-small");
    let mut source = Pieces::new(&bytes, bytes.len(), &[]);
    let mut reader = TraceReader::new(&mut source);
    assert_eq!(read(&mut reader).0.len(), 142);
    assert_eq!(source.turn, 2, "the first bytes contain the end mark");
    let longer = [&bytes[..], b"whatever"].concat();
    let mut reader = TraceReader::new(&longer[..]);
    assert_eq!((read(&mut reader).0.len(), reader.summary().end), (142, Some(End::Complete)));
    // The next trace begins in the next piece.
    let mut source = Pieces::new(&longer, bytes.len(), &[]);
    let mut reader = TraceReader::new(&mut source);
    assert_eq!((read(&mut reader).0.len(), reader.summary().end), (142, Some(End::Complete)));
    assert_eq!((source.turn, source.bytes), (2, &b"hatever"[..]));
}

/// After the end of a trace that is cut off or damaged, nothing more is read.
#[test]
fn only_a_complete_trace_is_read_beyond_its_end() {
    let bytes = trace("gen-net10-lab-small");
    let mut damaged = bytes.clone();
    damaged[3] = 0;
    for (bytes, turns) in [(&bytes[..bytes.len() - 1], 2), (&damaged[..], 1)] {
        let mut source = Pieces::new(bytes, bytes.len(), &[]);
        let mut reader = TraceReader::new(&mut source);
        read(&mut reader);
        assert_ne!(reader.summary().end, Some(End::Complete));
        assert_eq!(source.turn, turns);
    }
}

/// A peer that does not close the connection after the end mark: the error of the reader is returned, and all events
/// are there.
#[test]
fn a_reader_that_does_not_end() {
    let bytes = trace("gen-net10-lab-small");
    for kind in [ErrorKind::TimedOut, ErrorKind::WouldBlock] {
        /// A reader that returns everything, then fails.
        struct Open<'a>(&'a [u8], ErrorKind);
        impl Read for Open<'_> {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                if self.0.is_empty() { Err(self.1.into()) } else { self.0.read(buf) }
            }
        }
        let mut reader = TraceReader::new(Open(&bytes, kind));
        for _ in 0..142 {
            assert!(reader.next_event().unwrap().is_some());
        }
        for _ in 0..3 {
            assert_eq!(reader.next_event().unwrap_err().kind(), kind);
            assert_eq!(reader.summary().end, Some(End::Complete), "the end of the trace is known");
        }
        assert_eq!(
            reader.poll_next_event().is_ok_and(|poll| poll.is_pending()),
            kind == ErrorKind::WouldBlock
        );
    }
}

#[test]
fn times() {
    let bytes = trace("gen-net10-lab-small");
    let mut reader = TraceReader::new(&bytes[..]);
    let event = reader.next_event().unwrap().unwrap();
    let (nanoseconds, time) = (event.nanoseconds(), system_time(event.unix_nanoseconds().unwrap()).unwrap());
    let expected = traces().into_iter().find(|(name, ..)| name == "gen-net10-lab-small.nettrace").unwrap().2;
    let ticks = expected["ts_range"][0].as_i64().unwrap() - expected["trace"]["qpc"].as_i64().unwrap();
    assert_eq!(nanoseconds, ticks, "the first event is the oldest, and its clock has nanoseconds");
    let sync: Vec<u64> =
        expected["trace"]["sync_utc"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    let start = time - Duration::from_nanos(nanoseconds.unsigned_abs());
    let since = start.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    // 20,000 days after 1970-01-01 is 2024-10-04.
    assert_eq!((sync[0], sync[1]), (2026, 11), "{sync:?}");
    let days = 20_000 + 27 + 30 + 31 + 365 + 304 + sync[3];
    let seconds = (sync[4] * 60 + sync[5]) * 60 + sync[6];
    assert_eq!(since, Duration::from_secs(days * 86_400 + seconds) + Duration::from_millis(sync[7]));
}

/// A block has a record of 15 MB, of which 1 MB arrives. The window grows with the bytes that arrive.
#[test]
fn the_window_grows_with_the_bytes() {
    let mut bytes = b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0".to_vec();
    bytes.extend([44, 0, 0, 1]);
    bytes.extend([0; 44]);
    bytes.extend([0, 0, 0xf0, 5]);
    bytes.extend([1, 0, 0, 0, 1, 0, 0, 0]);
    bytes.extend(0x00ef_ff00_u32.to_le_bytes());
    bytes.extend(vec![0; 1_000_000]);
    let mut source = Pieces::new(&bytes, 1000, &[]);
    let mut records = ParserBuf::new(Limits::default());
    let mut more = 0;
    let end = loop {
        match records.next_record() {
            Record::More { .. } => {
                more += 1;
                records.read_from(&mut source).unwrap();
            }
            Record::End(end) => break end,
            _ => {}
        }
    };
    assert!(matches!(end, End::Truncated { reason: Truncation::Block { have: 1_000_012, .. }, .. }), "{end}");
    assert!(more >= 1000);
    assert!(source.largest <= 2_000_000, "{}", source.largest);
}
