//! The traces that the examples in the documentation of `TraceWriter` and `Rewrite` write.
//!
//! The documentation includes the files of `examples/`, and this test calls the same functions. If the variable
//! `DOTNET_IPC_TRACE_READER` names a program, `PROGRAM dump FILE` must accept each trace: it prints a JSON object with
//! the numbers `events` and `lost` and the string or null `error`. A program that uses Microsoft's TraceEvent can do
//! this.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test asserts what it expects"
)]
#![allow(dead_code, reason = "the examples have a main function")]

#[path = "../examples/fixed_memory.rs"]
mod fixed_example;
#[path = "../examples/rewrite_trace.rs"]
mod rewrite_example;
#[path = "../examples/write_trace.rs"]
mod write_example;

use std::collections::HashSet;
use std::process::Command;

use nettrace::{
    CalendarTime, End, EventSelector, InvalidTrace, Limits, LossCounter, Metadata, Parser, Record, Slot,
    Trace, Version,
};

/// Checks a trace with `Trace::check`, with the parser, and with the program if there is one.
#[track_caller]
fn assert_valid(name: &str, bytes: &[u8], events: usize) {
    let mut slots = [Slot::default(); 64];
    let mut loss = LossCounter::new(&mut slots);
    let mut parser = Parser::new(Limits::default());
    let (mut found, mut threads, mut descriptions) = (0, HashSet::new(), HashSet::new());
    let end = loop {
        let record = parser.next(bytes);
        loss.record(&record);
        match record {
            Record::Trace(trace) => assert_eq!(trace.check(), Ok(()), "{name}: {trace:?}"),
            Record::Metadata(record) => {
                let record = Metadata::decode(parser.version(), record.payload).unwrap();
                descriptions.insert(record.id);
            }
            Record::Thread(thread) => drop(threads.insert(thread.index)),
            Record::Event(event) => {
                found += 1;
                assert!(descriptions.contains(&event.metadata_id), "{name}: {event:?}");
                let known = |thread| parser.version() != Version::V6 || threads.contains(thread);
                assert!(known(&event.thread) && known(&event.capture_thread), "{name}: {event:?}");
            }
            Record::More { .. } => break parser.finish(bytes),
            Record::End(end) => break end,
            _ => {}
        }
    };
    assert_eq!((end, found, loss.lost_after_start()), (End::Complete, events, 0), "{name}");

    let Some(reader) = std::env::var_os("DOTNET_IPC_TRACE_READER") else { return };
    let file = std::env::temp_dir().join(format!("{name}-{}.nettrace", std::process::id()));
    std::fs::write(&file, bytes).unwrap();
    let output = Command::new(reader).arg("dump").arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let printed: serde_json::Value =
        serde_json::from_str(&printed).unwrap_or_else(|e| panic!("{name}: {e}: {output:?}"));
    assert_eq!(
        (&printed["error"], printed["events"].as_u64(), printed["lost"].as_u64()),
        (&serde_json::Value::Null, u64::try_from(events).ok(), Some(0)),
        "{name}: {printed}"
    );
}

#[test]
fn the_example_of_the_writer_writes_a_valid_trace() {
    for version in [Version::V4, Version::V6] {
        let mut out = Vec::new();
        write_example::write_trace(version, &mut out).unwrap();
        assert_valid(&format!("write_trace-{version}"), &out, 1000);
    }
}

#[test]
fn the_example_of_rewrite_writes_a_valid_trace() {
    let source = include_bytes!("../../../testdata/nettrace/gen-net10-lab-small.nettrace");
    let only = [EventSelector { provider: "Lab-Workload", event_id: None, event_name: None }];
    assert_valid("rewrite_trace", &rewrite_example::rewrite_trace(source, &only).unwrap(), 135);
    assert_valid("rewrite_trace-all", &rewrite_example::rewrite_trace(source, &[]).unwrap(), 142);
}

#[test]
fn the_example_in_fixed_memory_reads_real_traces() {
    let small = &include_bytes!("../../../testdata/nettrace/gen-net10-lab-small.nettrace")[..];
    let mixed = &include_bytes!("../../../testdata/nettrace/gen-net10-small-mixed.nettrace")[..];
    let mut memory = fixed_example::Memory::new();
    for (trace, events) in [(small, 142), (mixed, 406)] {
        let (found, with_stack, loss, end) = fixed_example::read_trace(trace, &mut memory).unwrap();
        assert_eq!((found, loss.lost_after_start(), loss.untracked(), end), (events, 0, 0, End::Complete));
        assert!(with_stack > 100, "{with_stack}");
    }
}

#[test]
fn a_trace_is_valid_unless_a_reader_would_refuse_it() {
    for version in [Version::V3, Version::V4, Version::V6] {
        let valid = Trace::new(version);
        let never = CalendarTime { month: 0, ..CalendarTime::default() };
        for (trace, expected) in [
            (valid, Ok(())),
            (Trace { pointer_size: 4, ..valid }, Ok(())),
            (Trace { sync_time: never, ..valid }, Err(InvalidTrace::SyncTime)),
            (Trace { frequency: 0, ..valid }, Err(InvalidTrace::Frequency)),
            (Trace { pointer_size: 0, ..valid }, Err(InvalidTrace::PointerSize)),
        ] {
            assert_eq!(trace.check(), expected);
        }
    }
}
