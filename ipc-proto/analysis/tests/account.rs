//! Tests of the account of the time of a recording.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports a fault by a panic"
)]

mod runtime_events;

use nettrace_analysis::Analysis as _;
use nettrace_analysis::account::{Account, Measure, ThreadRole, ThreadState, TimeAccount, Windows};

use crate::runtime_events::{Written, each_event, numbers, utf16};

const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
const SECOND: u64 = 1_000_000_000;

const POOL: u64 = 0x1000;
const ENTER: u64 = 0x2000;
const PAY: u64 = 0x3000;
const GET_INTEGER: u64 = 0x4000;
const GET_STRING: u64 = 0x5000;
const MAIN: u64 = 0x6000;
const RETHROW: u64 = 0x7000;

fn account(trace: &mut Written, end: u64) -> Account {
    for (start, type_name, method) in [
        (POOL, "System.Threading.ThreadPoolWorkQueue", "Dispatch"),
        (ENTER, "System.Threading.Monitor", "Enter_Slowpath"),
        (PAY, "Shop.Orders", "Pay"),
        (GET_INTEGER, "Shop.Repo`1[System.Int32]", "Get"),
        (GET_STRING, "Shop.Repo`1[System.String]", "Get"),
        (MAIN, "Startup@", "main@"),
        (RETHROW, "System.Runtime.ExceptionServices.ExceptionDispatchInfo", "Throw"),
    ] {
        let mut row = [start, 1, start].map(u64::to_le_bytes).concat();
        row.extend(numbers(&[0x100, 0, 0]));
        row.extend([utf16(type_name), utf16(method), utf16("void ()")].concat());
        trace.event_of(RUNDOWN, end, 1, (144, 1), &row);
    }
    let mut account = TimeAccount::default();
    each_event(&trace.bytes(), |event| account.event(event));
    account.finish()
}

fn sample(trace: &mut Written, time: u64, thread: u64, is_managed: bool, stack: &[u64]) {
    let kind = numbers(&[if is_managed { 2 } else { 1 }]);
    let stack: Vec<_> = stack.iter().map(|start| start + 1).collect();
    trace.event_of(SAMPLER, time, thread, (0, 0), &kind).stack(&stack);
}

#[test]
fn states_roles_and_blame() {
    let mut trace = Written::new();
    for step in 0..100 {
        let time = step * SECOND / 10;
        sample(&mut trace, time, 1, false, &[MAIN]);
        // The instances of a generic method are one.
        sample(&mut trace, time + 1, 2, true, &[if step % 2 == 0 { GET_INTEGER } else { GET_STRING }, POOL]);
        match step {
            0..60 => sample(&mut trace, time + 2, 3, true, &[PAY, POOL]),
            _ => sample(&mut trace, time + 2, 3, false, &[ENTER, PAY, POOL]),
        }
    }
    let account = account(&mut trace, 10 * SECOND);
    assert_eq!((account.processes(), account.times()), (vec![0], (0, 10_000_000_000)));
    let states = account.last_states(0);
    let roles: Vec<_> = states.iter().map(|of| (account.role(of.thread), of.state)).collect();
    assert_eq!(
        roles,
        [
            (ThreadRole::Main, ThreadState::Native),
            (ThreadRole::Pool, ThreadState::Runs),
            (ThreadRole::Pool, ThreadState::Lock)
        ]
    );
    let [main, _, waiting] = states.as_slice() else { panic!("{states:?}") };
    assert_eq!((main.has_changed, main.since), (false, 0));
    assert_eq!((waiting.has_changed, waiting.since), (true, 6_000_000_002));

    let rows: Vec<_> = account.rows(0, Measure::Samples).collect();
    assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), 300);
    let blame = account.blame(rows.iter().map(|row| (row.stack, row.running)));
    let method = blame.method.unwrap();
    assert_eq!((method.name, method.share), ("Shop.Repo`1.Get", 0.625));
    assert_eq!((blame.total, blame.innermost[1].name), (160, "Shop.Orders.Pay"));
    assert_eq!(account.thread_samples(0).values().sum::<u64>(), 300);
}

#[test]
fn events_with_labels() {
    let mut trace = Written::new();
    trace.describe("Microsoft-Windows-DotNETRuntime", (80, 1), "ExceptionThrown", &["ExceptionType"]);
    for (time, stack) in [(1, [PAY + 1, POOL + 1]), (2, [RETHROW + 1, PAY + 1])] {
        trace.event(time * SECOND, 3, (80, 1), &utf16("System.FormatException")).stack(&stack);
    }
    // Thread 3 waits for lock 7 for six seconds, and from then on for lock 8 to the end.
    let start = |lock: u64| [vec![0; 3], [lock, lock, 0].map(u64::to_le_bytes).concat()].concat();
    trace.event(3 * SECOND, 3, (81, 2), &start(7)).stack(&[ENTER + 1, PAY + 1]);
    trace.event(9 * SECOND, 3, (91, 1), &[0; 11]);
    trace.event(9 * SECOND, 3, (81, 2), &start(8)).stack(&[ENTER + 1, PAY + 1]);
    let account = account(&mut trace, 10 * SECOND);

    let thrown: Vec<_> = account.rows(0, Measure::Exceptions).collect();
    assert!(thrown.iter().all(|row| row.label == "System.FormatException"), "{thrown:?}");
    assert_eq!(thrown.iter().filter(|row| row.place.is_rethrow).count(), 1);

    let sum = |lock: &str| -> u64 {
        let rows = account.rows(0, Measure::Contention).filter(|row| row.label == lock);
        rows.map(|row| row.waiting).sum()
    };
    assert_eq!((sum("7"), sum("8")), (6 * SECOND, SECOND));
    // The time of a long wait is in all windows of it.
    let windows = account.rows(0, Measure::Contention).map(|row| row.window).max().unwrap();
    assert!((20..Windows::COUNT).contains(&windows), "{windows}");
    let thread = thrown[0].thread;
    assert_eq!(account.open_wait(thread), Some(9_000_000_000));
}

/// The windows become longer with the recording, and nothing is lost.
#[test]
fn a_long_recording() {
    let mut trace = Written::new();
    (0..1_000).for_each(|step| sample(&mut trace, step * 60 * SECOND, 3, true, &[PAY, POOL]));
    let account = account(&mut trace, 60_000 * SECOND);
    let rows: Vec<_> = account.rows(0, Measure::Samples).collect();
    assert_eq!(rows.iter().map(|row| row.running).sum::<u64>(), 1_000);
    assert!(rows.iter().all(|row| row.window < Windows::COUNT), "{rows:?}");
    let last = rows.iter().max_by_key(|row| row.last).unwrap();
    assert_eq!((last.last, account.dropped()), (59_940_000_000_000, 0));
    let start = account.windows().start(last.window);
    assert!(start <= last.first && last.first - start <= account.windows().length() as i64);
}
