//! Parts of traces: the events that belong to a part, that two parts together are the whole, and that a cut keeps all
//! names.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_wrap,
    clippy::indexing_slicing,
    reason = "a test states what it expects by unwrapping it"
)]

mod runtime_events;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use nettrace_analysis::gc::Collections;
use nettrace_analysis::jit::Compilations;
use nettrace_analysis::samples::{Clock, Samples, Waits};
use nettrace_analysis::{Analysis as _, Part, TraceTime};

use crate::runtime_events::{Written, each_event, numbers, path};

const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";

/// Returns the part between two times, in nanoseconds from the start of the trace.
fn between(from: i64, to: i64) -> Part {
    Part::default().since(TraceTime::SinceStart(from)).until(TraceTime::SinceStart(to))
}

fn of_threads(threads: &[u64]) -> Part {
    Part::default().of_threads(threads.iter().map(|id| (*id, None)).collect())
}

fn read(trace: &[u8], clocks: &[Clock], part: Part) -> Samples {
    let mut samples = Samples::new(clocks.iter().cloned()).of_part(part);
    each_event(trace, |event| samples.event(event));
    samples.finish_with(&mut |_, _| {});
    samples
}

/// A thread and the names of its stack, the innermost first.
type Place = (u64, Vec<String>);

/// Returns what each stack of each thread weighs, and the number of events that a clock has counted.
fn weights(samples: &mut Samples, clock: &Clock) -> (BTreeMap<Place, u64>, u64) {
    let found: Vec<_> = samples.weights(clock).collect();
    let mut weights = BTreeMap::new();
    for (thread, stack, weight) in found {
        let addresses: Vec<_> = samples.stacks().addresses(stack).collect();
        let names = samples.names_mut();
        let frames = addresses.into_iter().map(|address| {
            let frame = names.frame(address);
            names.text(frame).to_owned()
        });
        let key = (thread.number() as u64, frames.collect());
        *weights.entry(key).or_default() += weight.total();
    }
    let of_id = weights.into_iter().filter(|(_, weight)| *weight > 0);
    let of_id = of_id.map(|((thread, frames), weight)| {
        let thread = samples.threads()[usize::try_from(thread).unwrap()].id;
        ((thread, frames), weight)
    });
    (of_id.collect(), samples.count(clock))
}

const CLOCKS: [Clock; 9] = [
    Clock::Cpu,
    Clock::Wall,
    Clock::ThreadTime,
    Clock::SampledTime,
    Clock::AllocatedTypes,
    Clock::Exceptions,
    Clock::Contention,
    Clock::AllEvents,
    Clock::Allocations,
];

fn recorded() -> impl Iterator<Item = (String, Vec<u8>)> {
    let files = ["analysis", "nettrace"].into_iter().flat_map(|folder| fs::read_dir(path(folder)).unwrap());
    let files = files.map(|file| file.unwrap().path()).filter(|path| path.extension().unwrap() == "nettrace");
    files.map(|path| (path.display().to_string(), fs::read(path).unwrap()))
}

/// The weights and the numbers of events of two parts together are those of the part that has both. Bytes of sampled
/// allocations are rounded in each part.
#[test]
fn two_parts_together() {
    let (mut checked, mut cuts) = (0, 0);
    for (name, trace) in recorded() {
        let mut times = BTreeSet::new();
        each_event(&trace, |event| _ = times.insert(event.nanoseconds()));
        let all: Vec<i64> = times.iter().copied().collect();
        // A time without an event, so that no event is in both parts.
        let cut = |share: usize| {
            let time = all[(all.len() - 1) * share / 8];
            (time..).find(|time| !times.contains(time)).unwrap()
        };
        let [a, b, c] = [cut(1), cut(4), cut(7)];
        let [mut first, mut second, mut both] =
            [(a, b), (b, c), (a, c)].map(|(from, to)| read(&trace, &CLOCKS, between(from, to)));
        assert_eq!(first.samples() + second.samples(), both.samples(), "{name}");
        for clock in &CLOCKS {
            let ((mut sum, first), (second, more)) =
                (weights(&mut first, clock), weights(&mut second, clock));
            second.into_iter().for_each(|(key, weight)| *sum.entry(key).or_default() += weight);
            let (both, count) = weights(&mut both, clock);
            checked += usize::from(!both.is_empty());
            let is_rounded = matches!(clock, Clock::Allocations | Clock::AllocatedTypes);
            if is_rounded {
                assert!(sum.keys().eq(both.keys()), "{name}, {clock:?}");
            } else {
                assert_eq!(sum, both, "{name}, {clock:?}");
            }
            if *clock != Clock::Contention {
                assert_eq!(first + more, count, "{name}, {clock:?}");
            }
        }
        cuts += 1;
    }
    assert!(cuts > 10 && checked > 30, "{checked} clocks of {cuts} traces");
}

/// A part from before the first event to the last one is the whole trace, whether its times are dates or not.
#[test]
fn the_whole_trace() {
    for (name, trace) in recorded() {
        let (mut times, mut start) = (Vec::new(), 0);
        each_event(&trace, |event| {
            times.push(event.nanoseconds());
            start = event.clock().unix_start().unwrap();
        });
        times.sort_unstable();
        // A sample of the processor and a switch of threads stand for the time before them.
        let (from, to) = (times[0] - 10_000_000_000, times[times.len() - 1]);
        let date = |time: i64| TraceTime::Unix(start + i128::from(time));
        let mut whole = read(&trace, &CLOCKS, Part::default());
        for part in [between(from, to), Part::default().since(date(from)).until(date(to))] {
            let mut part = read(&trace, &CLOCKS, part);
            assert_eq!(
                (part.samples(), part.waits(&Clock::Contention)),
                (whole.samples(), whole.waits(&Clock::Contention)),
                "{name}"
            );
            for clock in &CLOCKS {
                assert_eq!(weights(&mut part, clock), weights(&mut whole, clock), "{name}, {clock:?}");
            }
        }
    }
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// Returns the row of a method at an address.
fn method(start: u64, name: &str) -> Vec<u8> {
    let ids = [1_u64, 42, start].into_iter().flat_map(|id| id.to_le_bytes());
    let mut payload: Vec<u8> =
        ids.chain(0x100_u32.to_le_bytes()).chain([0; 4]).chain(8_u32.to_le_bytes()).collect();
    payload.extend([utf16("Shop.Cart"), utf16(name), utf16("instance void  ()")].concat());
    payload.extend([0; 10]);
    payload
}

/// Names of any time are used: those of a load before the part, and those of the rundown after it.
#[test]
fn no_cut_costs_names() {
    let mut trace = Written::new();
    trace.event(10, 7, (143, 2), &method(0x1000, "Early"));
    for time in (100..1_000).step_by(100) {
        trace.event_of(SAMPLER, time, 7, (0, 0), &numbers(&[2])).stack(&[0x1010, 0x2010]);
    }
    trace.event_of(RUNDOWN, 2_000, 7, (144, 1), &method(0x2000, "Late"));
    let mut samples = read(&trace.bytes(), &[Clock::Cpu, Clock::AllEvents], between(300, 500));
    let frames = ["ManagedModule!Shop.Cart.Early()", "ManagedModule!Shop.Cart.Late()"].map(str::to_owned);
    assert_eq!(weights(&mut samples, &Clock::Cpu), ([((7, frames.to_vec()), 3)].into(), 3));
    // The rows that name code are events of other times, so they do not count.
    assert_eq!(samples.count(&Clock::AllEvents), 3);
    assert_eq!(samples.samples(), 3);
}

/// A wait counts as far as it overlaps the part: one that contains it, begins before it, ends after it or has no end.
#[test]
fn waits_overlap() {
    let mut trace = Written::new();
    let start = |trace: &mut Written, time, thread| _ = trace.event(time, thread, (81, 1), &[0; 3]);
    let stop = |trace: &mut Written, time, thread| _ = trace.event(time, thread, (91, 1), &[0; 11]);
    start(&mut trace, 100, 1);
    start(&mut trace, 150, 2);
    start(&mut trace, 200, 3);
    stop(&mut trace, 250, 3);
    stop(&mut trace, 1_200, 2);
    start(&mut trace, 1_700, 3);
    start(&mut trace, 1_800, 4);
    stop(&mut trace, 1_900, 5);
    stop(&mut trace, 2_300, 3);
    stop(&mut trace, 3_000, 1);
    stop(&mut trace, 3_100, 5);
    start(&mut trace, 3_200, 6);
    stop(&mut trace, 4_000, 9);
    let trace = trace.bytes();
    let mut samples = read(&trace, &[Clock::Contention], between(1_000, 2_000));
    let expected = [(1, 1_000), (2, 200), (3, 300), (4, 200)].map(|(thread, time)| ((thread, vec![]), time));
    assert_eq!(weights(&mut samples, &Clock::Contention), (expected.into(), 4));
    let Waits { open, without_end, without_start, .. } = samples.waits(&Clock::Contention);
    // The end of thread 5 within the part has no start. The wait of thread 6 begins later.
    assert_eq!((open, without_end, without_start), (1, 0, 1));

    let mut samples = read(&trace, &[Clock::Contention], of_threads(&[2, 3]));
    let expected = [(2, 1_050), (3, 650)].map(|(thread, time)| ((thread, vec![]), time));
    assert_eq!(weights(&mut samples, &Clock::Contention), (expected.into(), 3));
}

/// A sample counts for its thread only.
#[test]
fn samples_of_threads() {
    let mut trace = Written::new();
    for time in 1..=100 {
        trace.event_of(SAMPLER, time * 10, time % 4, (0, 0), &numbers(&[2])).stack(&[0x1000]);
    }
    let trace = trace.bytes();
    for (threads, count) in [(&[1][..], 25), (&[1, 3], 50), (&[9], 0), (&[], 0)] {
        let samples = read(&trace, &[Clock::Cpu], of_threads(threads));
        assert_eq!((samples.count(&Clock::Cpu), samples.samples()), (count, count), "{threads:?}");
    }
    let samples = read(&trace, &[Clock::Cpu], between(500, 1_000).of_threads([(2, None)].into()));
    assert_eq!(samples.count(&Clock::Cpu), 13);
}

/// A collection is in a part that it overlaps, from its pause on. One without an end lasts up to the end of the trace.
#[test]
fn collections_overlap() {
    let mut trace = Written::new();
    for (time, number) in [(1_000, 1), (2_000, 2)] {
        trace.event(time, 1, (9, 1), &numbers(&[1, number])).event(time + 100, 1, (8, 1), &[0; 2]);
        trace.event(time + 200, 1, (1, 2), &numbers(&[number, 0, 0, 0]));
        trace.event(time + 300, 1, (2, 1), &numbers(&[number, 0])).event(time + 400, 1, (4, 2), &[0; 110]);
        trace.event(time + 500, 1, (3, 1), &[0; 2]);
    }
    trace.event(3_000, 1, (9, 1), &numbers(&[1, 3])).event(3_050, 1, (8, 1), &[0; 2]);
    trace.event(3_100, 1, (1, 2), &numbers(&[3, 0, 0, 0])).event(9_000, 2, (80, 1), &[]);
    let trace = trace.bytes();
    let found = |part: Part| {
        let (mut collections, mut found) = (Collections::default().of_part(part), Vec::new());
        each_event(&trace, |event| {
            collections.event(event);
            found.extend(core::iter::from_fn(|| collections.pop()));
        });
        let report = collections.finish();
        found.extend(report.collections);
        let numbers: Vec<u32> = found.iter().map(|collection| collection.number).collect();
        (numbers, report.statistics.all.count, report.statistics.span, report.open_suspensions.len())
    };
    assert_eq!(found(Part::default()), (vec![1, 2, 3], 2, 8_000, 1));
    for (from, to, numbers, complete, open) in [
        (0, 999, vec![], 0, 0),
        (0, 1_000, vec![1], 1, 0),
        (1_250, 1_260, vec![1], 1, 0),
        (1_500, 1_999, vec![1], 1, 0),
        (1_501, 1_999, vec![], 0, 0),
        (1_500, 2_000, vec![1, 2], 2, 0),
        (5_000, 6_000, vec![3], 0, 1),
    ] {
        let span = (to.min(9_000) - from.max(1_000)).max(0) as u64;
        assert_eq!(found(between(from, to)), (numbers, complete, span, open), "{from} to {to}");
    }
    // Threads do not matter.
    assert_eq!(found(of_threads(&[77])).0, [1, 2, 3]);
}

/// A compilation is in the part in which it starts, on its thread.
#[test]
fn compilations_start() {
    let mut trace = Written::new();
    let started = |name: &str| {
        let ids = [1_u64, 42].iter().flat_map(|id| id.to_le_bytes());
        let mut payload: Vec<u8> = ids.chain([0; 8]).collect();
        payload.extend([utf16("Shop.Cart"), utf16(name), utf16("instance void  ()")].concat());
        payload.extend([0; 2]);
        payload
    };
    for (time, thread, name) in [(1_000, 1, "A"), (1_100, 2, "B"), (2_000, 1, "C")] {
        trace.event(time, thread, (145, 1), &started(name));
        trace.event(time + 500, thread, (143, 2), &method(0x1000 * time, name));
    }
    trace.event(4_000, 3, (143, 2), &method(0x9000, "WithoutStart"));
    let trace = trace.bytes();
    let found = |part: Part| {
        let (mut compilations, mut found) = (Compilations::default().of_part(part), Vec::new());
        each_event(&trace, |event| {
            compilations.event(event);
            found.extend(core::iter::from_fn(|| compilations.pop()));
        });
        let report = compilations.finish();
        found.extend(report.compilations);
        assert_eq!(report.statistics.all.count, found.len() as u64);
        let name = |method: &str| method.trim_start_matches("Shop.Cart.").trim_end_matches("()").to_owned();
        found.iter().map(|compilation| name(&compilation.method)).collect::<Vec<_>>()
    };
    assert_eq!(found(Part::default()), ["A", "B", "C", "WithoutStart"]);
    assert_eq!(found(between(1_001, 2_000)), ["B", "C"]);
    assert_eq!(found(between(1_200, 1_900)), Vec::<String>::new());
    assert_eq!(found(between(4_000, 5_000)), ["WithoutStart"]);
    assert_eq!(found(of_threads(&[1, 3])), ["A", "C", "WithoutStart"]);
    assert_eq!(found(between(0, 1_500).of_threads([(2, None)].into())), ["B"]);
}
