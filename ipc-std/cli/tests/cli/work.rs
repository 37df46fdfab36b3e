//! The output of the tool for a trace, and the memory that it needs, are in proportion to the trace.
use std::fs;

use nettrace::{Event, Metadata, Stack, Trace, TraceWriter, Version};
use tempfile::TempDir;

use crate::help::commands;
use crate::memory::drained;
use crate::tool::tool;
use crate::traces::put;

/// The commands that read a trace, with each kind of their output.
const READERS: &[&[&str]] = &[
    &["counters"],
    &["diagnose"],
    &["diagnose", "--json"],
    &["events"],
    &["events", "--json"],
    &["flame", "-o", "-", "--thread-time", "--format", "chromium"],
    &["flame", "-o", "-", "--thread-time", "--format", "firefox"],
    &["flame", "-o", "-", "--wall", "--format", "folded"],
    &["flame", "-o", "-", "--wall", "--format", "html"],
    &["flame", "-o", "-", "--wall", "--format", "pprof"],
    &["flame", "-o", "-", "--wall", "--format", "speedscope"],
    &["flame", "-o", "-", "--thread-time", "--format", "speedscope"],
    &["gc"],
    &["heap"],
    &["jit"],
    &["locks"],
    &["report"],
    &["report", "--json", "--wall"],
    &["report", "--wall", "--threads", "--tree"],
    &["requests"],
    &["rewrite", "-o", "-"],
    &["stats"],
    &["stats", "--json"],
];

/// The commands that read no trace.
const OTHERS: &[&str] = &[
    "attach-profiler",
    "clean",
    "completions",
    "conformance",
    "decode",
    "demo",
    "dump",
    "env",
    "eventpipe-env",
    "fake-runtime",
    "find",
    "info",
    "list-profiles",
    "monitor",
    "perf-map",
    "ps",
    "resume",
    "set-env",
    "stack",
    "startup-hook",
    "startup-profiler",
    "top",
    "trace",
];

/// Returns a trace with methods of long names and without modules, a sample in each of many stacks, and many samples in
/// a long stack.
fn hostile(size: u64) -> Vec<u8> {
    let (mut buf, mut trace) = (vec![0; TraceWriter::BUFFER], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    for (id, provider, event_id) in
        [(1, "Microsoft-Windows-DotNETRuntime", 143), (2, "Microsoft-DotNETCore-SampleProfiler", 0)]
    {
        put!(trace, writer.describe(&Metadata::new(id, provider, event_id, "")));
    }
    let utf16 = |text: &str| text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    for method in 0..4_u64 {
        let mut numbers: Vec<u8> =
            [1, 7, 0x10_0000 * (method + 1)].into_iter().flat_map(u64::to_le_bytes).collect();
        numbers.extend([0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0]); // the size of the code, token and flags
        let name = format!("{method}{}", "N.".repeat(200));
        let row = [numbers, utf16(&name), utf16("Run"), utf16("void ()")].concat();
        let sequence = u32::try_from(method + 1).unwrap();
        let event = Event { metadata_id: 1, sequence, payload: &row, ..Event::default() };
        put!(trace, writer.event(&event));
    }
    let samples = 150 * size;
    for number in 0..samples {
        let method = |place: u64| 1 + ((number >> (place % 10)) ^ place) % 4;
        let address = |place: u64| 0x10_0000 * method(place) + (number * 977 + place * 31) % 0x10_0000;
        let frames = if number == 0 { 4000 * size } else { 60 };
        let bytes: Vec<u8> = (0..frames).flat_map(|place| address(place).to_le_bytes()).collect();
        put!(trace, writer.stack(&Stack { id: u32::try_from(number + 1).unwrap(), bytes: &bytes }));
    }
    for number in 0..20 * samples {
        let stack = if number < samples { number + 1 } else { 1 };
        let event = Event {
            metadata_id: 2,
            sequence: u32::try_from(number + 5).unwrap(),
            timestamp: number * 1000,
            stack_id: u32::try_from(stack).unwrap(),
            payload: &[2, 0, 0, 0],
            ..Event::default()
        };
        put!(trace, writer.event(&event));
    }
    trace.extend_from_slice(&writer.finish());
    trace
}

#[test]
fn outputs_and_memory_are_in_proportion_to_the_trace() {
    let folder = TempDir::new().unwrap();
    let files = [1, 4].map(|size| {
        let (file, trace) = (folder.path().join(format!("{size}.nettrace")), hostile(size));
        fs::write(&file, &trace).unwrap();
        (file, trace.len())
    });
    for args in READERS {
        let [(small, small_peak), (large, large_peak)] = files.each_ref().map(|(file, _)| {
            let args = [*args, &[file.to_str().unwrap()]].concat();
            drained(tool(&args).spawn().unwrap())
        });
        assert!(large <= 5 * small + (64 << 10), "{args:?}: {small} and {large} bytes of output");
        // A small output needs no memory that the test sees.
        let more = u64::try_from(files[1].1 - files[0].1).unwrap();
        assert!(
            small_peak == 0 || large_peak <= small_peak + 100 * more + (8 << 20),
            "{args:?}: {small_peak} and {large_peak} bytes of memory for {more} more bytes"
        );
    }
}

/// A command that is added is in one of the lists.
#[test]
fn every_command_that_reads_a_trace_is_measured() {
    let mut all: Vec<&str> = READERS.iter().map(|args| args[0]).chain(OTHERS.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    let mut commands = commands();
    commands.sort_unstable();
    assert_eq!(all, commands);
}
