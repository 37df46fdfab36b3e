//! Clocks that need events of several kinds, with traces that the tests write.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test states what it expects by unwrapping it"
)]

mod runtime_events;

use nettrace::{Event, Metadata, Pairs, Trace, TraceWriter, Version};
use nettrace_analysis::Analysis as _;
use nettrace_analysis::call_tree::CallTree;
use nettrace_analysis::samples::{Clock, Samples, Unit, Weight};

use crate::runtime_events::{Written, each_event, numbers};

fn read(trace: &[u8], clocks: &[Clock]) -> Samples {
    let mut samples = Samples::new(clocks.iter().cloned());
    each_event(trace, |event| samples.event(event));
    samples
}

fn weights(samples: &Samples, clock: &Clock) -> Vec<(u64, Weight)> {
    let threads = samples.threads();
    samples.weights(clock).map(|(thread, _, weight)| (threads[thread.number()].id, weight)).collect()
}

/// A lock that two threads wait for at the same time, and waits whose start or end is not in the trace.
#[test]
fn contention() {
    let [start, stop] = [&[0, 0, 0][..], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]];
    let mut trace = Written::new();
    trace.event(5, 3, (91, 1), stop);
    for (time, thread) in [(1000, 1), (1100, 2)] {
        trace.event(time, thread, (81, 1), start);
    }
    for (time, thread) in [(1500, 2), (3000, 1)] {
        trace.event(time, thread, (91, 1), stop);
    }
    // The end of a wait is lost, and the next one has not ended.
    trace.event(3500, 1, (81, 1), start).event(4000, 1, (81, 1), start).event(4700, 2, (80, 1), &[]);
    // The rundown begins when the recording ends.
    for time in [5000, 9000] {
        trace.event_of("Microsoft-Windows-DotNETRuntimeRundown", time, 1, (144, 1), &[]);
    }
    let mut samples = read(&trace.bytes(), &[Clock::Contention]);
    let waited = |waiting, count| Weight { running: 0, waiting, count };
    assert_eq!(weights(&samples, &Clock::Contention), [(1, waited(2000, 1)), (2, waited(400, 1))]);
    assert_eq!(samples.count(&Clock::Contention), 4);
    let mut intervals = Vec::new();
    samples.finish_with(&mut |_, interval| intervals.push((interval.start, interval.weight)));
    assert_eq!(intervals, [(4000, waited(1000, 1))]);
    assert_eq!(weights(&samples, &Clock::Contention), [(1, waited(3000, 2)), (2, waited(400, 1))]);
    let waits = samples.waits(&Clock::Contention);
    assert_eq!((waits.open, waits.without_end, waits.without_start), (1, 1, 1));
    let tree = CallTree::new(&mut samples, &Clock::Contention, |_, weight| weight.total());
    assert_eq!((tree.total(), Clock::Contention.unit()), (3400, Unit::Nanoseconds));
    // The sample has no stack, so the tree has no frame.
    assert_eq!(tree.top(Default::default()), []);
}

/// Waits on WaitHandles are apart from waits for locks.
#[test]
fn waits_on_handles() {
    let mut trace = Written::new();
    trace.event(1000, 1, (301, 0), &[0; 11]).event(1100, 2, (81, 1), &[0, 0, 0]);
    trace.event(1600, 2, (91, 1), &[0; 11]).event(3000, 1, (302, 0), &[0; 2]).event(
        3100,
        1,
        (302, 0),
        &[0; 2],
    );
    let samples = read(&trace.bytes(), &[Clock::Waits, Clock::Contention]);
    let waited = |waiting| Weight { running: 0, waiting, count: 1 };
    assert_eq!(weights(&samples, &Clock::Waits), [(1, waited(2000))]);
    assert_eq!(weights(&samples, &Clock::Contention), [(2, waited(500))]);
    assert_eq!(samples.waits(&Clock::Waits).without_start, 1);
    assert_eq!(samples.waits(&Clock::Contention), Default::default());
}

/// A thread runs for 100 ms; another one is off the processor for 900 ms, and is sampled nine times.
#[test]
fn time_off_the_processor() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/analysis/v6-switches.nettrace");
    let samples = read(&std::fs::read(path).unwrap(), &[Clock::Cpu, Clock::Wall, Clock::ThreadTime]);
    let sums = |clock| {
        let weights = weights(&samples, &clock).into_iter();
        weights.map(|(thread, weight)| (thread, weight.running, weight.waiting)).collect::<Vec<_>>()
    };
    assert_eq!(sums(Clock::Cpu), [(11, 100, 0), (12, 9, 0)]);
    assert_eq!(sums(Clock::Wall), [(11, 100, 0), (12, 9, 900)]);
    assert_eq!(sums(Clock::ThreadTime), [(11, 100_000_000, 0), (12, 9_000_000, 900_000_000)]);
    assert_eq!((samples.count(&Clock::Wall), samples.samples()), (1009, 109));
}

/// The same thread in two processes waits twice.
#[test]
fn waits_of_two_processes() {
    let mut trace = Written::new();
    trace.process(100).event(1000, 7, (81, 1), &[0, 0, 0]);
    trace.process(200).event(1100, 7, (81, 1), &[0, 0, 0]);
    trace.process(100).event(1500, 7, (91, 1), &[0; 11]);
    trace.process(200).event(3100, 7, (91, 1), &[0; 11]);
    let samples = read(&trace.bytes(), &[Clock::Contention]);
    let totals: Vec<u64> =
        weights(&samples, &Clock::Contention).into_iter().map(|(_, weight)| weight.total()).collect();
    assert_eq!((totals, samples.waits(&Clock::Contention)), (vec![500, 2000], Default::default()));
}

/// V6: the header names the process of the trace, whether its threads state it or not.
#[test]
fn the_header_names_the_process() {
    for (key, value) in [("ProcessName", "Shop"), ("CommandLine", "dotnet /opt/Shop.dll x")] {
        let (mut buf, mut bytes) = (vec![0; TraceWriter::BUFFER], Vec::new());
        let pair = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        let pairs = [pair(key), pair(value)].concat();
        let trace =
            Trace { process_id: Some(5), pairs: Pairs::from_bytes(&pairs), ..Trace::new(Version::V6) };
        let mut writer = TraceWriter::new(&trace, &mut buf).unwrap();
        bytes.extend_from_slice(&writer.describe(&Metadata::new(1, "A", 1, "")).unwrap());
        bytes.extend_from_slice(
            &writer.event(&Event { metadata_id: 1, sequence: 1, ..Event::default() }).unwrap(),
        );
        bytes.extend_from_slice(&writer.finish());
        let samples = read(&bytes, &[Clock::Cpu]);
        let names = [0, 5, 6].map(|process| samples.process_name(process));
        assert_eq!(names, [Some("Shop"), Some("Shop"), None], "{key}");
    }
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// AllocationTick of version 4.
fn tick(amount: u64, of: &str) -> Vec<u8> {
    let mut payload = vec![0; 10];
    payload[..4].copy_from_slice(&amount.to_le_bytes()[..4]);
    payload.extend_from_slice(&amount.to_le_bytes());
    payload.extend_from_slice(&[0; 8]);
    payload.extend(utf16(of));
    payload.extend_from_slice(&[0; 20]);
    payload
}

/// AllocationSampled.
fn sampled(size: u64, of: &str) -> Vec<u8> {
    let mut payload = vec![0; 4 + 2 + 8];
    payload.extend(utf16(of));
    payload.extend_from_slice(&[0; 8]);
    payload.extend_from_slice(&size.to_le_bytes());
    payload.extend_from_slice(&[0; 8]);
    payload
}

/// A sampled object stands for its size divided by the probability that one of its bytes is drawn.
#[test]
fn sampled_allocations() {
    let mut trace = Written::new();
    for (time, size) in (1..).zip([24, 102_400, 10_000_000, 1 << 60]) {
        trace.event(time, time, (303, 0), &sampled(size, "A"));
    }
    // An object without a size, and a row without its end.
    trace.event(9, 9, (303, 0), &sampled(0, "A")).event(10, 9, (303, 0), &[0; 20]);
    let samples = read(&trace.bytes(), &[Clock::Allocations]);
    let found: Vec<u64> =
        weights(&samples, &Clock::Allocations).into_iter().map(|(_, weight)| weight.running).collect();
    // The first is 102,411.50, the second is about 102,400 / (1 - 1/e). Fractions are carried over.
    assert_eq!(found, [102_412, 161_993, 10_000_000, 1 << 60]);
    assert_eq!((samples.count(&Clock::Allocations), samples.unknown(&Clock::Allocations)), (4, 2));
    let mut trace = Written::new();
    (1..=6).for_each(|time| _ = trace.event(time, 1, (303, 0), &sampled(24, "A")));
    let samples = read(&trace.bytes(), &[Clock::Allocations]);
    assert_eq!(weights(&samples, &Clock::Allocations)[0].1.running, 614_469);
}

/// Sampled allocations of a process replace its ticks, also those before them. Another process has only ticks.
#[test]
fn sampled_allocations_replace_ticks() {
    let mut trace = Written::new();
    trace.process(100).event(1, 7, (10, 4), &tick(100_000, "A"));
    trace.process(200).event(2, 7, (10, 4), &tick(300_000, "B"));
    trace.process(100).event(3, 7, (303, 0), &sampled(10_000_000, "A"));
    trace.process(100).event(4, 7, (10, 4), &tick(100_000, "A"));
    trace.process(200).event(5, 7, (10, 4), &tick(300_000, "B"));
    let clocks = [Clock::Allocations, Clock::AllocatedTypes];
    let mut samples = read(&trace.bytes(), &clocks);
    for clock in &clocks {
        let mut found: Vec<(u64, u64)> =
            weights(&samples, clock).into_iter().map(|(_, weight)| (weight.running, weight.count)).collect();
        found.sort_unstable();
        assert_eq!(found, [(600_000, 2), (10_000_000, 1)]);
        assert_eq!(samples.count(clock), 3);
    }
    let tree = CallTree::new(&mut samples, &Clock::AllocatedTypes, |_, weight| weight.total());
    let names = samples.names();
    let top = tree.top(Default::default());
    let top: Vec<_> = top.iter().map(|entry| (names.text(entry.frame), entry.exclusive)).collect();
    assert_eq!(top, [("A", 10_000_000), ("B", 600_000)]);
}

/// The layout of an AllocationTick is known without its version: later versions only add fields.
#[test]
fn ticks_of_unknown_versions() {
    let mut trace = Written::new();
    trace.event(1, 1, (10, 0), &tick(5 << 32, "A")).event(2, 2, (10, 1), &numbers(&[100_000, 0, 0]));
    trace.event(3, 3, (10, 99), &tick(7, "")).event(4, 4, (10, 4), &[1, 2]);
    let mut samples = read(&trace.bytes(), &[Clock::AllocatedTypes]);
    let found: Vec<u64> =
        weights(&samples, &Clock::AllocatedTypes).into_iter().map(|(_, weight)| weight.running).collect();
    assert_eq!((found, samples.unknown(&Clock::AllocatedTypes)), (vec![5 << 32, 100_000, 7], 1));
    let tree = CallTree::new(&mut samples, &Clock::AllocatedTypes, |_, weight| weight.total());
    let top = tree.top(Default::default());
    assert_eq!(top.iter().map(|of| samples.names().text(of.frame)).collect::<Vec<_>>(), ["A", "?"]);
}

/// A process has the name of its program: from its command line, or from the operating system.
#[test]
fn names_of_processes() {
    for (command_line, name) in [
        ("/opt/app/Shop --secret x", Some("Shop")),
        ("dotnet exec --roll-forward x /opt/app/Shop.dll 1", Some("Shop")),
        ("\"C:\\Program Files\\dotnet\\dotnet.EXE\" \"C:\\My App\\Shop.DLL\"", Some("Shop")),
        ("/usr/bin/dotnet --info", Some("dotnet")),
        ("C:\\Shop.exe", Some("Shop")),
        ("", None),
    ] {
        let mut trace = Written::new();
        let payload = [utf16(command_line), utf16("Linux"), utf16("x64")].concat();
        trace.describe("Microsoft-DotNETCore-EventPipe", (1, 1), "ProcessInfo", &["CommandLine"]);
        trace.event_of("Microsoft-DotNETCore-EventPipe", 1, 1, (1, 1), &payload);
        let samples = read(&trace.bytes(), &[Clock::Cpu]);
        assert_eq!(samples.process_name(0), name, "{command_line}");
    }
}

#[test]
fn allocations_and_exceptions() {
    let mut trace = Written::new();
    trace.event(1, 1, (10, 4), &tick(5 << 32, "A")).event(2, 1, (10, 4), &tick(100_000, "B")).event(
        3,
        2,
        (80, 1),
        &[0; 24],
    );
    let clocks = [Clock::Allocations, Clock::Exceptions, Clock::ThreadTime];
    let samples = read(&trace.bytes(), &clocks);
    let ran = |running, count| Weight { running, waiting: 0, count };
    assert_eq!(weights(&samples, &clocks[0]), [(1, ran((5 << 32) + 100_000, 2))]);
    assert_eq!(weights(&samples, &clocks[1]), [(2, ran(1, 1))]);
    // An allocation shows that the thread runs.
    assert_eq!(weights(&samples, &clocks[2]), [(1, ran(1, 1))]);
}

/// Events that show that a thread runs, that it is in a stack, or nothing. Each event is 10 ns after the event before.
#[test]
fn events_of_thread_time() {
    const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
    const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
    const FRAMEWORK: &str = "System.Diagnostics.Eventing.FrameworkEventSource";
    let runs = [Weight { running: 10, waiting: 0, count: 1 }; 2];
    let waits = [Weight { running: 0, waiting: 10, count: 1 }, Weight::default()];
    let none = [Weight::default(); 2];
    for (provider, id, payload, expected) in [
        (SAMPLER, 0, 2, runs),
        (SAMPLER, 0, 1, [waits[0]; 2]),
        // Another event of the sampler is not a sample.
        (SAMPLER, 1, 2, none),
        // AllocationTick, and both kinds of sampled allocations.
        (RUNTIME, 10, 0, runs),
        (RUNTIME, 20, 0, runs),
        (RUNTIME, 32, 0, runs),
        (RUNTIME, 33, 0, none),
        // An event of an event source counts if its events show what a thread does. Sampled time ignores it.
        ("My-Source", 7, 0, waits),
        ("My-Source", 0xfffe, 0, none),
        (FRAMEWORK, 139, 0, none),
        (FRAMEWORK, 140, 0, waits),
        (FRAMEWORK, 143, 0, waits),
        (FRAMEWORK, 144, 0, none),
        ("System.Threading.Tasks.TplEventSource", 7, 0, none),
        ("Microsoft-Windows-DotNETRuntimePrivate", 10, 0, none),
    ] {
        let mut trace = Written::new();
        for time in [10, 20] {
            trace.event_of(provider, time, 1, (id, 0), &u32::to_le_bytes(payload)).stack(&[0x1000]);
        }
        let clocks = [Clock::ThreadTime, Clock::SampledTime];
        let samples = read(&trace.bytes(), &clocks);
        let found = clocks.map(|clock| {
            let weights = weights(&samples, &clock);
            weights.first().map_or_else(Weight::default, |(_, weight)| *weight)
        });
        assert_eq!(found, expected, "{provider}/{id}");
    }
}

#[test]
fn threads_have_the_names_of_their_use() {
    let created = |flags: u32, id: u32| {
        let mut payload = vec![0; 16];
        [flags, 0, id].iter().for_each(|number| payload.extend_from_slice(&number.to_le_bytes()));
        payload
    };
    let mut trace = Written::new();
    for (flags, id) in [(0, 1), (2, 2), (4, 3)] {
        trace.event(u64::from(id), 1, (85, 0), &created(flags, id));
    }
    // The finalizer thread writes GCFinalizersBegin.
    trace.event(8, 4, (14, 1), &[0; 2]).event(8, 3, (14, 1), &[0; 2]);
    trace.event(9, 1, (85, 0), &[0; 20]).event(10, 1, (80, 1), &[]);
    let samples = read(&trace.bytes(), &[Clock::Exceptions]);
    let names: Vec<_> = samples.threads().iter().map(|thread| (thread.id, thread.name.as_str())).collect();
    assert_eq!(names, [(2, ".NET Finalizer"), (3, ".NET ThreadPool"), (4, ".NET Finalizer"), (1, "")]);
}
