//! Tests of the locks for which threads wait.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports a fault by a panic"
)]

mod runtime_events;

use nettrace_analysis::locks::{ContendedLock, LockReport, Locks, OwnerWait, WaitTimes};
use nettrace_analysis::{Analysis as _, WaitKind};

use crate::runtime_events::{Written, each_event, numbers, path};

const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
const EXTERNAL: u32 = 1;
const MANAGED: u32 = 2;

/// The addresses of methods that [`named`] names.
const ENTER: u64 = 0x1000;
const TRANSFER: u64 = 0x2000;
const POST: u64 = 0x3000;
const TASK_WAIT: u64 = 0x4000;
const MAIN: u64 = 0x5000;

/// Returns a trace that names the methods.
fn named() -> Written {
    let mut trace = Written::new();
    let text =
        |text: &str| -> Vec<u8> { text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect() };
    for (start, type_name, method) in [
        (ENTER, "System.Threading.Monitor", "Enter"),
        (TRANSFER, "Shop.Ledger", "Transfer"),
        (POST, "Shop.Ledger", "PostBooking"),
        (TASK_WAIT, "System.Threading.Tasks.Task", "Wait"),
        (MAIN, "Program", "Main"),
    ] {
        let mut row = [start, 1, start].map(u64::to_le_bytes).concat();
        row.extend(numbers(&[0x100, 0, 0]));
        row.extend([text(type_name), text(method), text("void ()")].concat());
        trace.event_of(RUNDOWN, 1, 1, (144, 1), &row);
    }
    trace
}

/// Returns the payload of a ContentionStart.
fn start(lock: u64, owner: u64) -> Vec<u8> {
    let mut payload = vec![0; 3];
    payload.extend([lock, lock + 1, owner].map(u64::to_le_bytes).concat());
    payload
}

/// Returns the payload of a ContentionStop.
fn stop(nanoseconds: f64) -> Vec<u8> {
    let mut payload = vec![0; 3];
    payload.extend(nanoseconds.to_le_bytes());
    payload
}

/// Adds a row of a thread: its number and its id.
fn thread(trace: &mut Written, time: u64, number: u32, id: u32) {
    let mut row = vec![0; 16];
    row.extend(numbers(&[0, number, id]));
    trace.event_of(RUNDOWN, time, 1, (159, 0), &row);
}

/// Adds the version of the runtime.
fn version(trace: &mut Written, time: u64, version: u16) {
    let row = [0_u16, 2, 10, 0, 12, 0, version, 0].map(u16::to_le_bytes).concat();
    trace.event_of(RUNDOWN, time, 1, (187, 0), &row);
}

fn report(trace: &mut Written) -> LockReport {
    report_of(&trace.bytes())
}

fn report_of(trace: &[u8]) -> LockReport {
    let mut locks = Locks::default();
    each_event(trace, |event| locks.event(event));
    locks.finish()
}

fn times(lock: &ContendedLock) -> (u64, u64, u64) {
    let WaitTimes { count, total, longest } = lock.waits;
    (count, total, longest)
}

fn owner(lock: &ContendedLock) -> Option<u64> {
    lock.owner.as_ref()?.thread.as_ref().map(|thread| thread.id)
}

#[test]
fn waits_of_a_lock() {
    let mut trace = named();
    for (time, id, length) in [(1_000, 21, 500), (2_000, 22, 300)] {
        trace.event(time, id, (81, 2), &start(0xa0, 23)).stack(&[ENTER, TRANSFER, MAIN]);
        trace.event(time + length, id, (91, 1), &stop(1.0));
    }
    trace.event(3_000, 21, (81, 2), &start(0xa0, 0)).stack(&[ENTER, POST]);
    trace.event(3_000, 22, (81, 2), &start(0xb0, 0)).stack(&[ENTER, POST]);
    trace.event(3_001, 22, (91, 1), &stop(1.0));
    trace.event(5_000, 30, (10, 4), &[]);
    let report = report(&mut trace);
    let [first, second] = &report.locks[..] else { panic!("{report:?}") };
    // The last wait counts up to the end.
    assert_eq!((first.id, first.object, times(first)), (Some(0xa0), Some(0xa1), (3, 2_800, 2_000)));
    assert_eq!((second.id, times(second)), (Some(0xb0), (1, 1, 1)));
    let methods: Vec<_> =
        first.methods.iter().map(|of| (of.method.as_deref().unwrap(), of.is_own, of.waits.total)).collect();
    let names = ["PostBooking()", "Transfer()"].map(|name| format!("ManagedModule!Shop.Ledger.{name}"));
    assert_eq!(methods, [(&*names[0], true, 2_000), (&*names[1], true, 800)]);
    // The runtime did not know the owner when the last wait began.
    assert_eq!((first.waiting.len(), first.waiting[0].thread.id, first.waiting[0].time), (1, 21, 2_000));
    assert_eq!(first.owner, None);
    assert!(second.waiting.is_empty() && second.owner.is_none());
    assert_eq!((report.span, report.cycles.len(), report.dropped, report.without_stack), (5_000, 0, 0, 0));
}

/// Two threads that wait for each other, and a third one that waits for one of them.
fn deadlock(numbers: [u64; 2]) -> Written {
    let mut trace = named();
    trace.event(1_000, 29_533, (81, 2), &start(0xa0, numbers[1])).stack(&[ENTER, POST, TRANSFER]);
    trace.event(2_000, 29_534, (81, 2), &start(0xb0, numbers[0])).stack(&[ENTER, POST, TRANSFER]);
    trace.event(2_500, 29_535, (81, 2), &start(0xb0, numbers[0])).stack(&[ENTER, TRANSFER]);
    trace.event(9_000, 1_000, (10, 4), &[]);
    trace
}

#[test]
fn threads_that_wait_for_each_other() {
    let report = report(&mut deadlock([29_533, 29_534]));
    let [cycle] = &report.cycles[..] else { panic!("{report:?}") };
    let threads: Vec<_> = cycle.threads.iter().map(|of| (of.thread.id, of.lock)).collect();
    assert_eq!((threads, cycle.time), (vec![(29_533, Some(0xa0)), (29_534, Some(0xb0))], 7_000));
    assert_eq!(report.locks.iter().map(owner).collect::<Vec<_>>(), [Some(29_533), Some(29_534)]);
    assert_eq!(report.locks[0].owner.as_ref().unwrap().waits_for, Some(OwnerWait::Lock(0xa0)));
}

/// CoreCLR 11 and NativeAOT state managed numbers, which are ids of threads only by the rows of threads.
#[test]
fn numbers_are_no_ids() {
    // Each way in which a trace shows that owners are managed numbers.
    for way in 0..4 {
        let mut trace = deadlock([5, 6]);
        match way {
            0 => version(&mut trace, 9_500, 11),
            1 => _ = trace.event_of(RUNDOWN, 9_500, 1, (146, 1), &[]),
            2 => _ = trace.event(3_000, 6, (81, 2), &start(0xc0, 6)),
            _ => {}
        }
        let report = report(&mut trace);
        assert_eq!(report.cycles, [], "{way}");
        let [first, second, ..] = &report.locks[..] else { panic!("{report:?}") };
        assert_eq!((owner(first), owner(second)), (None, None), "{way}");
        assert_eq!(second.owner.as_ref().unwrap().number, if second.id == Some(0xa0) { 6 } else { 5 });
    }
    let mut trace = deadlock([5, 6]);
    version(&mut trace, 9_500, 11);
    thread(&mut trace, 9_501, 5, 29_533);
    thread(&mut trace, 9_502, 6, 29_534);
    assert_eq!(report(&mut trace).cycles[0].threads.len(), 2);
    // A number that is also the id of a thread is still a number.
    let mut trace = deadlock([29_533, 29_534]);
    version(&mut trace, 9_500, 11);
    assert_eq!(report(&mut trace).cycles, []);
    // CoreCLR 10 states ids.
    let mut trace = deadlock([29_533, 29_534]);
    version(&mut trace, 9_500, 10);
    thread(&mut trace, 9_501, 29_533, 1);
    assert_eq!(report(&mut trace).cycles.len(), 1);
}

#[test]
fn an_owner_that_went_away_makes_no_cycle() {
    let mut trace = deadlock([29_533, 29_534]);
    // Another thread acquires the lock for which one of them waits.
    trace.event(3_000, 29_536, (81, 2), &start(0xa0, 29_534)).stack(&[ENTER, POST]);
    trace.event(3_100, 29_536, (91, 1), &stop(1.0));
    let report = report(&mut trace);
    assert_eq!(report.cycles, []);
    let lock = report.locks.iter().find(|lock| lock.id == Some(0xa0)).unwrap();
    assert_eq!(owner(lock), Some(29_536));
}

/// Adds rounds of samples of threads.
fn sample(trace: &mut Written, times: &[u64], threads: &[(u64, u32, &[u64])]) {
    for time in times {
        for (place, (id, kind, stack)) in (0..).zip(threads) {
            trace.event_of(SAMPLER, time + place, *id, (0, 0), &kind.to_le_bytes()).stack(stack);
        }
    }
}

#[test]
fn waits_from_before_the_recording() {
    let mut trace = named();
    let waiting: &[u64] = &[ENTER, POST, TRANSFER];
    let threads = [
        (11, EXTERNAL, waiting),
        (12, EXTERNAL, &[ENTER, TRANSFER][..]),
        (13, EXTERNAL, waiting),
        (14, EXTERNAL, &[TASK_WAIT, MAIN]),
        // These do not wait, or not all the time.
        (15, MANAGED, waiting),
        (16, EXTERNAL, &[TRANSFER]),
        (17, EXTERNAL, waiting),
        (18, EXTERNAL, waiting),
    ];
    sample(&mut trace, &[1_000, 2_000, 3_000], &threads);
    sample(&mut trace, &[2_500], &[(17, EXTERNAL, &[POST, TRANSFER])]);
    trace.event(2_600, 18, (91, 1), &stop(7_000_000.0));
    // A thread that began later.
    sample(&mut trace, &[2_700, 2_800], &[(19, EXTERNAL, &[TASK_WAIT, MAIN])]);
    trace.event(4_000, 20, (81, 2), &start(0xa0, 11)).stack(&[ENTER, TRANSFER]);
    let report = report(&mut trace);
    let groups: Vec<_> = report
        .waiting_before
        .iter()
        .map(|of| (of.kind, of.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), of.stack.len()))
        .collect();
    assert_eq!(
        groups,
        [(WaitKind::Lock, vec![11, 13], 2), (WaitKind::Lock, vec![12], 1), (WaitKind::Task, vec![14], 1)]
    );
    assert_eq!(report.ended, WaitTimes { count: 1, total: 7_000_000, longest: 7_000_000 });
    // The owner of the lock waits since before the recording: perhaps a deadlock, but no cycle is known.
    let [lock] = &report.locks[..] else { panic!("{report:?}") };
    assert!(lock.owner_is_stuck() && report.cycles.is_empty());
    assert_eq!(lock.owner.as_ref().unwrap().stack.len(), 3);
    assert_eq!(report.sampled_threads, 9);
}

#[test]
fn methods_that_hold_a_lock() {
    let mut trace = named();
    trace.event(1_000, 21, (81, 2), &start(0xa0, 22)).stack(&[ENTER, TRANSFER]);
    sample(&mut trace, &[1_100, 1_200], &[(22, EXTERNAL, &[POST]), (23, MANAGED, &[TRANSFER])]);
    trace.event(2_000, 21, (91, 1), &stop(1.0));
    // Without a thread that waits, a sample shows nothing.
    sample(&mut trace, &[2_100], &[(22, EXTERNAL, &[MAIN])]);
    // A thread that waits for the lock again does not hold it.
    trace.event(3_000, 24, (81, 2), &start(0xa0, 22)).stack(&[ENTER, TRANSFER]);
    trace.event(3_001, 22, (81, 2), &start(0xa0, 0)).stack(&[ENTER, POST]);
    sample(&mut trace, &[3_100], &[(22, EXTERNAL, &[ENTER, POST])]);
    // The thread that ends its wait is the owner.
    trace.event(3_200, 24, (91, 1), &stop(1.0));
    sample(&mut trace, &[3_300], &[(24, MANAGED, &[TRANSFER])]);
    // A thread that has returned to the caller of the method that locks has released the lock.
    trace.event(3_350, 21, (81, 2), &start(0xa0, 24)).stack(&[ENTER, TRANSFER, MAIN]);
    sample(&mut trace, &[3_360], &[(24, EXTERNAL, &[TASK_WAIT, MAIN])]);
    let report = report(&mut trace);
    let [lock] = &report.locks[..] else { panic!("{report:?}") };
    let held: Vec<_> = lock.held_in.iter().map(|of| (&*of.method, of.samples)).collect();
    let names = ["PostBooking()", "Transfer()"].map(|name| format!("ManagedModule!Shop.Ledger.{name}"));
    assert_eq!(held, [(&*names[0], 2), (&*names[1], 1)]);
    assert_eq!((lock.held_samples, owner(lock)), (3, Some(24)));
}

#[test]
fn older_and_incomplete_events() {
    let mut trace = named();
    // Before .NET 8, an event states neither lock nor owner.
    trace.event(1_000, 21, (81, 1), &[0; 3]).stack(&[ENTER, TRANSFER]);
    trace.event(1_500, 21, (91, 1), &[0; 3]);
    // The end of a wait was lost, and a start.
    trace.event(2_000, 22, (81, 1), &[0; 3]);
    trace.event(3_000, 22, (81, 1), &[]);
    trace.event(3_100, 22, (91, 1), &stop(f64::NAN));
    trace.event(3_200, 22, (91, 1), &[]);
    let report = report(&mut trace);
    let [lock] = &report.locks[..] else { panic!("{report:?}") };
    assert_eq!((lock.id, times(lock), lock.waiting.len()), (None, (3, 600, 500), 0));
    assert_eq!((report.without_end, report.without_stack, report.ended.count), (1, 2, 0));
    assert_eq!(lock.methods.iter().filter(|of| of.method.is_none()).count(), 1);
    assert_eq!(report_of(&named().bytes()).locks, []);
}

#[test]
fn processes_have_their_own_locks() {
    let mut trace = Written::new();
    for process in [100, 200] {
        trace.process(process).event(1_000, 7, (81, 2), &start(0xa0, 8));
        trace.event(1_100 + process, 8, (81, 2), &start(0xb0, if process == 100 { 7 } else { 0 }));
    }
    let report = report(&mut trace);
    assert_eq!(report.locks.len(), 4);
    assert_eq!(report.cycles.iter().map(|cycle| cycle.process_id).collect::<Vec<_>>(), [Some(100)]);
}

/// The memory has limits, whatever the trace states.
#[test]
fn limits() {
    let mut trace = Written::new();
    for id in 0..Locks::LOCKS as u64 + 10 {
        trace.event(id, 1, (81, 2), &start(id + 1, 9));
    }
    let first = report(&mut trace);
    assert_eq!((first.locks.len(), first.dropped), (Locks::LOCKS, 10));
    let mut trace = Written::new();
    for id in 0..Locks::THREADS as u64 + 10 {
        trace.event(id, id, (81, 2), &start(1, 0));
    }
    let second = report(&mut trace);
    assert_eq!((second.locks[0].waiting.len(), second.dropped), (Locks::THREADS, 10));
}

/// A recorded program of .NET 10 whose threads lock two objects in both orders.
#[test]
fn a_recorded_deadlock() {
    let trace = std::fs::read(path("analysis/net10-locks.nettrace")).unwrap();
    let report = report_of(&trace);
    let [cycle] = &report.cycles[..] else { panic!("{report:?}") };
    assert_eq!(cycle.threads.iter().map(|of| of.thread.id).collect::<Vec<_>>(), [9893, 9896]);
    assert!(cycle.time > 2_000_000_000 && cycle.time < report.span);
    assert_eq!(report.locks.iter().map(|lock| lock.waits.count).collect::<Vec<_>>(), [3, 3, 2, 2]);
    // Each owner is in the cycle, and waits for the other lock.
    let [first, second, ..] = &report.locks[..] else { panic!("{report:?}") };
    for (lock, other) in [(first, second), (second, first)] {
        let owner = lock.owner.as_ref().unwrap();
        assert_eq!(owner.waits_for, Some(OwnerWait::Lock(other.id.unwrap())));
        assert!(cycle.threads.iter().any(|of| Some(&of.thread) == owner.thread.as_ref()));
    }
    assert_eq!((report.sampled_threads, report.without_stack), (0, 0));
}
