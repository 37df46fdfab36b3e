//! Recorded traces, generated traces and rewritten ones, beside Microsoft's TraceEvent.
//!
//! `DOTNET_IPC_TRACE_EVENT` names a program that reads with TraceEvent: `PROGRAM dump FILE` prints an object with the
//! numbers `events` and `lost`, and an `error` or null. Without the variable, nothing is compared.
#![cfg(feature = "alloc")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test asserts what it expects"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use ipc_proto::Guid;
use nettrace::{
    End, Event, EventSelector, Label, Limits, LossCounter, Metadata, Parser, Record, Rewrite, RewriteOptions,
    RewriteSpace, SequencePoint, Slot, Stack, ThreadEntry, ThreadSequence, Trace, TraceBytes, TraceWriter,
    Version, WriteError,
};
use serde_json::Value;

/// Events, lost events as Microsoft's reader counts them, numbers that went back, and the end.
fn read(bytes: &[u8]) -> (u64, u64, u64, End) {
    let (mut parser, mut loss, mut events) = (Parser::new(Limits::default()), LossCounter::default(), 0);
    let end = loop {
        let record = parser.next(bytes);
        loss.record(&record);
        match record {
            Record::Event(_) => events += 1,
            Record::End(end) => break end,
            Record::More { .. } => break parser.finish(bytes),
            _ => {}
        }
    };
    (events, loss.lost_after_start(), loss.went_back(), end)
}

fn rewritten(bytes: &[u8], options: RewriteOptions<'_>) -> Vec<u8> {
    let mut buffer = vec![0; TraceWriter::BUFFER];
    let (mut metadata, mut threads) = (vec![Slot::default(); 4096], vec![Slot::default(); 4096]);
    let mut labels = vec![Slot::default(); 4096];
    let space = RewriteSpace {
        buffer: &mut buffer,
        metadata: &mut metadata,
        threads: &mut threads,
        labels: &mut labels,
    };
    let mut rewrite = Rewrite::new(options, space).unwrap();
    let (mut parser, mut result) = (Parser::new(Limits::default()), Vec::new());
    loop {
        let record = match parser.next(bytes) {
            Record::More { .. } => Record::End(parser.finish(bytes)),
            record => record,
        };
        result.extend_from_slice(&rewrite.record(&record).unwrap());
        if let Record::End(_) = record {
            break;
        }
    }
    let mut end = rewrite.finish();
    while let Some(bytes) = end.next_bytes().unwrap() {
        result.extend_from_slice(&bytes);
    }
    result
}

/// Random numbers of a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % limit
    }
}

/// Returns a valid trace of a seed: threads that lose events, stacks, activities, and sequence points. V3 has events
/// with stacks only.
fn generated(seed: u64, version: Version) -> Vec<u8> {
    const THREADS: u64 = 4;
    let (mut random, mut buffer, mut out) = (Random(seed), vec![0; TraceWriter::BUFFER], Vec::new());
    let mut put = |bytes: Result<TraceBytes<'_>, WriteError>| out.extend_from_slice(&bytes.unwrap());
    let mut trace = Trace::new(version);
    trace.process_id = Some(42);
    let mut writer = TraceWriter::new(&trace, &mut buffer).unwrap();
    for id in 1..=3 {
        put(writer.describe(&Metadata::new(id, "Demo", id, "Tick")));
    }
    let mut sequences = [0u32; THREADS as usize];
    if version == Version::V6 {
        for thread in 0..THREADS {
            put(writer.thread(thread, [ThreadEntry::ThreadId(100 + thread)]));
        }
    }
    let mut timestamp = 1000;
    for _ in 0..=random.below(3) {
        if version != Version::V3 {
            put(writer.stack(&Stack { id: 1, bytes: &[7; 16] }));
        }
        if version == Version::V6 {
            put(writer.label_list(1, [Label::ActivityId(Guid([3; 16])), Label::Text("k".into(), "v".into())]));
        }
        for _ in 0..random.below(40) {
            let thread = random.below(THREADS);
            let lost = if random.below(5) == 0 { random.below(9) as u32 } else { 0 };
            let sequence = &mut sequences[thread as usize];
            *sequence += lost + 1;
            timestamp += random.below(50);
            let event = Event {
                metadata_id: 1 + random.below(3) as u32,
                sequence: *sequence,
                capture_thread: thread,
                thread,
                timestamp,
                stack_id: random.below(2) as u32,
                label_list: if version == Version::V6 { random.below(2) as u32 } else { 0 },
                sorted: true,
                payload: &[5; 20][..random.below(20) as usize],
                stack: &[7; 16][..8 * random.below(3) as usize],
                ..Event::default()
            };
            put(writer.event(&event));
        }
        if version == Version::V3 {
            continue;
        }
        put(writer.sequence_point(&SequencePoint { timestamp, ..SequencePoint::default() }));
        for (thread, sequence) in (0..).zip(&mut sequences) {
            *sequence += random.below(2) as u32;
            put(writer.thread_sequence(&ThreadSequence { thread, sequence: *sequence }));
        }
    }
    put(Ok(writer.finish()));
    out
}

/// Compares the counts of a trace with those of TraceEvent.
fn compare(program: &Path, file: &Path, name: &str, bytes: &[u8]) {
    fs::write(file, bytes).unwrap();
    let output = Command::new(program).arg("dump").arg(file).output().unwrap();
    let theirs: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{name}: {e} {output:?}"));
    let (events, lost, went_back, end) = read(bytes);
    assert_eq!(end, End::Complete, "{name}");
    assert_eq!((&theirs["events"], &theirs["error"]), (&Value::from(events), &Value::Null), "{name}");
    // TraceEvent takes a number that went back for two billion lost events. Traces that were made by hand have more
    // numbers that no runtime writes.
    if went_back == 0 && !name.starts_with("synth-") {
        assert_eq!(theirs["lost"], lost, "{name}");
    }
}

#[test]
fn equal_to_trace_event() {
    let Some(program) = env::var_os("DOTNET_IPC_TRACE_EVENT").map(PathBuf::from) else {
        eprintln!("DOTNET_IPC_TRACE_EVENT is not set: nothing is compared with TraceEvent");
        return;
    };
    let file = env::temp_dir().join(format!("dotnet-ipc-trace-event-{}.nettrace", std::process::id()));
    let mut sources: Vec<(String, Vec<u8>)> = Vec::new();
    for seed in 0..20 {
        for version in [Version::V3, Version::V4, Version::V6] {
            let bytes = generated(seed, version);
            compare(&program, &file, &format!("seed {seed}, {version}"), &bytes);
            sources.push((format!("seed {seed}, {version}"), bytes));
        }
    }
    // TraceEvent cannot read some of the traces that are damaged or made by hand, but it reads all copies.
    sources.extend(ipc_testdata::TRACES.iter().map(|trace| (trace.name.to_owned(), trace.bytes.to_vec())));
    let only = [EventSelector { provider: "Demo", event_id: Some(1), event_name: None }];
    for (name, bytes) in &sources {
        for version in [Version::V4, Version::V6] {
            for (only, strip_command_line) in [(&[][..], false), (&[], true), (&only, false)] {
                let version = Some(version);
                let options =
                    RewriteOptions { only, version, strip_command_line, ..RewriteOptions::default() };
                let copy = rewritten(bytes, options);
                assert_eq!(copy.is_empty(), bytes.is_empty(), "{name}");
                compare(&program, &file, &format!("{name} as {options:?}"), &copy);
            }
        }
    }
    fs::remove_file(file).unwrap();
}
