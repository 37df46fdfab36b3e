//! The samples of threads that are CPU time, and its causes.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test states what it expects by unwrapping it"
)]
mod runtime_events;

use nettrace_analysis::Analysis as _;
use nettrace_analysis::call_tree::{CallTree, Order, ThreadTree};
#[cfg(feature = "firefox")]
use nettrace_analysis::formats::{TimeProfile, Timeline};
use nettrace_analysis::live::Live;
use nettrace_analysis::names::Names;
use nettrace_analysis::samples::{Clock, Samples, ThreadRoles, Weight};

use crate::runtime_events::{Written, each_event};

const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
const EXTERNAL: u32 = 1;
const MANAGED: u32 = 2;

/// Methods at the addresses 0x100, 0x200 and so on.
const METHODS: [&str; 14] = [
    "[Shop] Shop.Cart.Total()",                                      // 0x100
    "[System.Private.CoreLib] System.Threading.Thread.Sleep(int32)", // 0x200
    "[System.Private.CoreLib] System.Threading.Thread.<PollGC>g__PollGCWorker|67_0()", // 0x300
    "[System.Private.CoreLib] System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart()", // 0x400
    "[System.Private.CoreLib] System.Threading.LowLevelLifoSemaphore.Wait(int32,bool)", // 0x500
    "[System.Private.CoreLib] System.Threading.LowLevelSpinWaiter.Wait(int32,int32,bool)", // 0x600
    "[System.Private.CoreLib] System.Threading.LowLevelLifoSemaphore.WaitForSignal(int32)", // 0x700
    "[System.Private.CoreLib] System.Diagnostics.Tracing.EventPipeEventProvider.Callback(int)", // 0x800
    "[System.Private.CoreLib] System.Diagnostics.Tracing.ManifestBuilder.CreateManifest()", // 0x900
    "[System.Net.Sockets] System.Net.Sockets.SocketAsyncEngine.EventLoop()", // 0xa00
    "[System.Private.CoreLib] System.Threading.Monitor.Enter_Slowpath(class System.Object)", // 0xb00
    "[Shop] Shop.Thread.Sleep(int32)",                               // 0xc00
    "[System.Private.CoreLib] System.Threading.LowLevelLifoSemaphore.Block(int32)", // 0xd00
    "[System.Private.CoreLib] System.Threading.LowLevelLifoSemaphore.WaitSlow(int32)", // 0xe00
];

fn name(names: &mut Names) {
    for (start, method) in (1..).zip(METHODS) {
        assert!(names.perf_map_line(0, &format!("{:x} 100 {method}", start << 8)));
    }
}

/// Returns a trace of samples, each with its thread and its stack, the innermost method first.
fn trace(samples: &[(u64, u32, &[u64])]) -> Vec<u8> {
    let mut trace = Written::new();
    for (time, (thread, kind, stack)) in (1..).zip(samples) {
        let stack: Vec<_> = stack.iter().map(|method| method + 1).collect();
        trace.event_of(SAMPLER, time, *thread, (0, 0), &kind.to_le_bytes()).stack(&stack);
    }
    trace.bytes()
}

/// Reads a trace whose names are known only at its end.
fn read(trace: &[u8], clocks: &[Clock]) -> Samples {
    let mut samples = Samples::new(clocks.iter().cloned());
    each_event(trace, |event| samples.event(event));
    name(samples.names_mut());
    samples.finish_with(&mut |_, _| {});
    samples
}

/// The samples of a program with threads that run, wait and spin.
const MIXED: [(u64, u32, &[u64]); 12] = [
    (1, MANAGED, &[0x100]),
    (1, MANAGED, &[0x300, 0x100]),
    (1, EXTERNAL, &[0x100]),
    // A method of the program does not count as a method of the library, whatever its name.
    (1, MANAGED, &[0xc00, 0x100]),
    (2, MANAGED, &[0x200, 0x100]),
    (2, MANAGED, &[0x300, 0x200, 0x100]),
    (2, EXTERNAL, &[0x200, 0x100]),
    (3, MANAGED, &[0x600, 0x500, 0x400]),
    (3, MANAGED, &[0x500, 0x400]),
    (3, MANAGED, &[0x700, 0x500, 0x400]),
    (4, MANAGED, &[0xa00]),
    (4, MANAGED, &[0xb00, 0x100]),
];

/// A thread that wakes while the runtime is stopped for a sample is in managed code, but has not run.
#[test]
fn threads_that_wait_do_not_run() {
    let trace = trace(&MIXED);
    let clocks = [Clock::Cpu, Clock::Wall, Clock::ThreadTime];
    let mut samples = read(&trace, &clocks);
    let tree = CallTree::new(&mut samples, &Clock::Cpu, |_, weight| weight.total());
    let top = tree.top(Order::Inclusive);
    let names: Vec<_> = top.iter().map(|entry| samples.names().short(entry.frame)).collect();
    assert_eq!((tree.total(), samples.count(&Clock::Cpu), samples.samples()), (5, 5, 12));
    assert_eq!((names[0], top[0].inclusive), ("Shop.Cart.Total", 3));
    assert!(!names.iter().any(|name| name.starts_with("System.Threading.Thread.Sleep")), "{names:?}");

    let wall = samples.weights(&Clock::Wall).fold(Weight::default(), |sum, (_, _, weight)| Weight {
        running: sum.running + weight.running,
        waiting: sum.waiting + weight.waiting,
        count: sum.count + weight.count,
    });
    assert_eq!(wall, Weight { running: 5, waiting: 7, count: 12 });
    assert_eq!(samples.rounds(), 4);
    // Thread time has the rule of dotnet-trace, which knows no methods that wait.
    let ran: u64 = samples.weights(&Clock::ThreadTime).map(|(_, _, weight)| weight.running).sum();
    assert_eq!(ran, 7);

    let threads = ThreadTree::new(&mut samples, &clocks);
    assert_eq!(threads.weights(0).iter().map(|row| row.exclusive).sum::<u64>(), 5);
}

/// .NET 11 has other methods in which idle threads of the pool spin and wait.
#[test]
fn idle_threads_of_net11() {
    let idle: [(u64, u32, &[u64]); 3] =
        [(1, MANAGED, &[0xe00, 0x400]), (2, MANAGED, &[0xd00, 0xe00, 0x400]), (3, MANAGED, &[0x100])];
    let mut samples = read(&trace(&idle), &[Clock::Cpu]);
    let causes = samples.cpu_causes();
    assert_eq!((causes.total, causes.pool_spin), (2, 1));
    assert_eq!(samples.count(&Clock::Cpu), 2);
}

#[cfg(feature = "firefox")]
#[test]
fn files_in_the_order_of_time() {
    let (mut samples, mut timeline) = (Samples::new([Clock::Cpu]), Timeline::new(Clock::Cpu));
    each_event(&trace(&MIXED), |event| {
        samples.event_with(event, &mut |clock, interval| timeline.add(clock, interval));
    });
    name(samples.names_mut());
    samples.finish_with(&mut |_, _| {});
    let file = TimeProfile::new(&mut samples, timeline).to_firefox("app", 0, None).to_string();
    assert!(file.contains("Shop.Cart.Total") && !file.contains("WaitForSignal"), "{file}");
}

#[test]
fn periods_of_a_live_view() {
    let mut live = Live::default();
    name(live.names_mut());
    each_event(&trace(&MIXED), |event| live.event(event));
    let period = live.next_period();
    assert_eq!((period.samples.running, period.samples.waiting, period.causes.pool_spin), (5, 7, 2));
    let sleeper = period.threads.iter().find(|thread| thread.id == 2).unwrap();
    assert_eq!((sleeper.samples.running, sleeper.samples.waiting), (0, 3));
    assert_eq!(live.total().causes, period.causes);
}

/// Samples of the processor show only threads that run.
#[test]
fn samples_of_the_processor() {
    let mut trace = Written::new();
    trace.describe("Universal.Events", (1, 0), "cpu", &[]);
    trace.process(0).event_of("Universal.Events", 1, 1, (1, 0), &[]).stack(&[0x201, 0x101]);
    let mut samples = read(&trace.bytes(), &[Clock::Cpu, Clock::Wall]);
    let tree = CallTree::new(&mut samples, &Clock::Cpu, |_, weight| weight.total());
    assert_eq!((tree.total(), samples.rounds(), samples.tells_running()), (1, 0, true));
}

#[test]
fn causes() {
    let trace = trace(&[
        (1, MANAGED, &[0x100]),
        (1, MANAGED, &[0x100, 0x900, 0x800]),
        (1, MANAGED, &[0x900, 0x100]),
        (3, MANAGED, &[0x600, 0x500, 0x400]),
        (3, MANAGED, &[0x700, 0x500, 0x400]),
        (3, MANAGED, &[0x100, 0x400]),
    ]);
    for clocks in [&[Clock::Cpu][..], &[Clock::Wall], &[Clock::Wall, Clock::Cpu]] {
        let causes = read(&trace, clocks).cpu_causes();
        assert_eq!((causes.total, causes.pool_spin, causes.session), (5, 1, 2), "{clocks:?}");
    }
}

/// All samples of a program that was compiled ahead of time are outside managed code, and it names no methods.
#[test]
fn compiled_ahead_of_time() {
    let clocks = [Clock::Cpu, Clock::Wall];
    let external = trace(&[(1, EXTERNAL, &[0x100]), (2, EXTERNAL, &[0x5000])]);
    assert!(read(&external, &clocks).tells_running());
    let unnamed = [(1, EXTERNAL, &[0x5000][..]), (2, EXTERNAL, &[0x6000])];
    assert!(!read(&trace(&unnamed), &clocks).tells_running());
    let managed = [unnamed[0], (2, MANAGED, &[0x6000])];
    assert!(read(&trace(&managed), &clocks).tells_running());
    assert!(read(&trace(&[]), &clocks).tells_running());
}

/// On Linux, a thread has the name of its creator.
#[test]
fn names_of_threads() {
    let trace = trace(&[(1, EXTERNAL, &[0x500, 0x400]), (2, EXTERNAL, &[0x200, 0x100])]);
    let mut samples = read(&trace, &[Clock::Wall]);
    let roles = samples.thread_roles();
    let has =
        |roles: &ThreadRoles| [".NET TP Worker", ".NET Timer", "Heartbeat"].map(|name| roles.has_name(name));
    assert_eq!(roles.iter().map(has).collect::<Vec<_>>(), [[true, false, true], [false, false, true]]);
}
