//! The property of the work of all analyses: it is proportional to the bytes of the trace.
use allocation_counter::measure;
use ipc_proto::wire::steps;
use nettrace_analysis::Analysis as _;
use nettrace_analysis::account::{Measure, TimeAccount};
use nettrace_analysis::call_tree::{CallTree, NodeId, Order, ThreadTree};
use nettrace_analysis::counters::CounterReader;
use nettrace_analysis::formats::{Profile, TimeProfile, Timeline};
use nettrace_analysis::gc::Collections;
use nettrace_analysis::heap::{GcdumpInfo, Snapshots};
use nettrace_analysis::jit::Compilations;
use nettrace_analysis::live::Live;
use nettrace_analysis::locks::Locks;
use nettrace_analysis::requests::Requests;
use nettrace_analysis::samples::{Clock, Samples};

use super::repeated_events::repeated_events;
use super::traces::{clocks, each_event, report_of, samples_of};

/// Checks that the work and the memory of each analysis, and of each format of a file, are at most proportional to the
/// bytes of the trace.
///
/// Bytes that begin like a trace are the trace itself. Other bytes describe a trace in which everything is repeated,
/// see `repeated_events.rs`. The work is counted in steps and in allocated bytes.
pub fn analysis_work(bytes: &[u8]) {
    let is_trace = [&b"Nettrace"[..], b"\x14\0\0\0!"].iter().any(|magic| bytes.starts_with(magic));
    if is_trace {
        check(bytes);
    } else {
        check(&repeated_events(bytes));
    }
}

fn check(trace: &[u8]) {
    for (name, analysis) in ANALYSES {
        check_work(name, trace, analysis);
    }
}

/// Checks the work and the memory for bytes.
pub(super) fn check_work(name: &str, bytes: &[u8], analysis: impl Fn(&[u8])) {
    let before = steps::counted();
    let allocated = measure(|| analysis(bytes));
    let taken = steps::counted() - before;
    let limit = |free: u64, per_byte: u64| free + per_byte * bytes.len() as u64;
    let len = bytes.len();
    assert!(taken <= limit(FREE_STEPS, STEPS), "{name}: {taken} steps for {len} bytes");
    let total = allocated.bytes_total;
    assert!(total <= limit(FREE_BYTES, ALLOCATED), "{name}: {total} bytes were allocated for {len} bytes");
    let peak = allocated.bytes_max;
    assert!(peak <= limit(FREE_BYTES, MEMORY), "{name}: {peak} bytes of memory for {len} bytes");
}

/// The steps, the bytes that are allocated in all, and those that are allocated at the same time, for each byte of the
/// trace.
const STEPS: u64 = 20;
const ALLOCATED: u64 = 300;
const MEMORY: u64 = 150;
const FREE_STEPS: u64 = 20_000;
const FREE_BYTES: u64 = 2 << 20;

type AnalysisWork = fn(&[u8]);

/// The analyses and the formats of files, but for folded stacks, whose lines repeat whole names.
const ANALYSES: [(&str, AnalysisWork); 16] = [
    ("call trees", |trace| {
        let mut samples = samples_of(trace);
        for clock in clocks() {
            let tree = CallTree::of_origins(&mut samples, &clock, |_, weight| weight.total());
            let top = tree.top(Order::Own);
            _ = (tree.common_own(), tree.unnamed_share(samples.names()), tree.children(NodeId::ROOT));
            if let Some(entry) = top.first() {
                _ = (tree.callers(entry.frame), tree.callees(entry.frame));
            }
        }
    }),
    ("short names", |trace| {
        let mut samples = samples_of(trace);
        samples.names_mut().shorten();
        _ = CallTree::new(&mut samples, &Clock::Wall, |_, weight| weight.total());
        _ = (samples.cpu_causes(), samples.thread_roles());
    }),
    ("difference", |trace| {
        let (mut new, mut old) = (samples_of(trace), samples_of(trace));
        let trees =
            [&mut new, &mut old].map(|of| CallTree::folded(of, &Clock::Wall, |_, weight| weight.running));
        _ = trees[0].difference(new.names(), &trees[1], old.names(), Order::Exclusive);
    }),
    ("thread tree", |trace| _ = ThreadTree::folded(&mut samples_of(trace), &clocks())),
    ("speedscope and pprof", |trace| {
        let mut samples = samples_of(trace);
        let profile = Profile::new(&mut samples, &Clock::Wall, |_, weight| weight.total());
        profile.write_speedscope("x", &mut String::new()).expect("a string takes all");
        let mut file = Vec::new();
        _ = profile.write_pprof(None, |bytes| {
            file.extend_from_slice(bytes);
            Ok::<(), core::convert::Infallible>(())
        });
    }),
    ("speedscope in the order of time", |trace| {
        timeline(trace, |profile| {
            profile.write_speedscope("x", &mut String::new()).expect("a string takes all");
        });
    }),
    ("chromium", |trace| {
        timeline(trace, |profile| {
            profile.write_chromium("x", 1, &mut String::new()).expect("a string takes all");
        });
    }),
    ("firefox", |trace| timeline(trace, |profile| _ = profile.to_firefox("x", 1, None))),
    ("collections", |trace| _ = report_of(trace, Collections::default())),
    ("compilations", |trace| _ = report_of(trace, Compilations::default())),
    ("locks", |trace| _ = report_of(trace, Locks::default())),
    ("account of time", |trace| {
        let account = report_of(trace, TimeAccount::default());
        for process in account.processes() {
            _ = (account.thread_samples(process), account.last_states(process));
            let rows = account.rows(process, Measure::Samples);
            _ = account.blame(rows.map(|row| (row.stack, row.count)));
        }
    }),
    ("requests", |trace| _ = report_of(trace, Requests::default())),
    ("heap snapshots", |trace| {
        for snapshot in report_of(trace, Snapshots::default()) {
            _ = (snapshot.graph.rows(), snapshot.graph.reachable());
            _ = snapshot
                .graph
                .write_gcdump(&GcdumpInfo::default(), |_| Ok::<(), core::convert::Infallible>(()));
        }
    }),
    ("periods of a live analysis", |trace| {
        let (mut live, mut count) = (Live::default(), 0_u32);
        each_event(trace, false, |event| {
            live.event(event);
            count += 1;
            if count % 1000 == 0 {
                _ = live.next_period();
            }
        });
        _ = (live.next_period(), live.total());
    }),
    ("counters", |trace| {
        let mut reader = CounterReader::new();
        each_event(trace, true, |event| _ = reader.event(event));
    }),
];

fn timeline(trace: &[u8], write: fn(&TimeProfile<'_>)) {
    let (mut samples, mut timeline) = (Samples::new([Clock::ThreadTime]), Timeline::new(Clock::ThreadTime));
    each_event(trace, true, |event| {
        samples.event_with(event, &mut |clock, interval| timeline.add(clock, interval));
    });
    samples.finish_with(&mut |clock, interval| timeline.add(clock, interval));
    write(&TimeProfile::new(&mut samples, timeline));
}
