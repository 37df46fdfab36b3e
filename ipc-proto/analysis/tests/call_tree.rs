//! Thread time against the output of `dotnet-trace report topN` (see testdata/README.md), the clocks, and the views of
//! a tree.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test states what it expects by unwrapping it"
)]
mod runtime_events;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use nettrace::{AssemblerStep, EventAssembler, EventOrder, ReadOptions};
use nettrace_analysis::Analysis as _;
use nettrace_analysis::OwnCode;
use nettrace_analysis::call_tree::{CallTree, Entry, NodeId, Order, ThreadTree, folded_stack, old_waits};
use nettrace_analysis::samples::{Clock, Samples};

use crate::runtime_events::{Written, each_event};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/analysis").join(name)
}

fn read(trace: &Path, clocks: &[Clock]) -> Samples {
    let mut assembler = EventAssembler::new(EventOrder::BY_TIME, ReadOptions::default());
    assembler.push(&std::fs::read(trace).unwrap());
    let mut samples = Samples::new(clocks.iter().cloned());
    while let AssemblerStep::Event(event) = assembler.step() {
        samples.event(&event);
    }
    samples
}

/// A row of dotnet-trace: the name, and the inclusive and the exclusive share.
type Row = (String, f64, f64);

/// Reads the table of dotnet-trace, in which a long name continues on the next line after 70 characters.
fn rows(path: &Path) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines().skip(1) {
        let mut words = line.rsplitn(3, '%');
        let (_, Some(exclusive), Some(rest)) = (words.next(), words.next(), words.next()) else {
            rows.last_mut().unwrap().0.push_str(line.trim());
            continue;
        };
        let (name, inclusive) = rest.trim().rsplit_once(' ').unwrap();
        let name = name.split_once(". ").unwrap().1.trim();
        let share = |text: &str| text.trim().parse().unwrap();
        rows.push((name.to_owned(), share(inclusive), share(exclusive)));
    }
    rows
}

/// Returns the part of a name that dotnet-trace shows: the last two parts that are separated by dots, and the
/// arguments.
fn shown(name: &str) -> String {
    if name == "?!?" {
        return "Missing Symbol".to_owned();
    }
    let (function, arguments) = name.split_at(name.find('(').unwrap_or(name.len()));
    let mut parts: Vec<_> = function.rsplitn(3, '.').take(2).collect();
    parts.reverse();
    // The table of dotnet-trace has lost the spaces at the end of a line, so `check` compares names without spaces.
    parts.join(".") + arguments
}

/// Returns whether a row of dotnet-trace is not a function.
fn is_other(name: &str) -> bool {
    ["Threads", "(Non-Activities)", "(Activities)"].contains(&name)
        || ["Activity ", "EventData: "].iter().any(|start| name.starts_with(start))
}

fn check(trace: &Path, expected: &Path, order: Order) {
    let mut samples = read(trace, &[Clock::ThreadTime]);
    let tree = CallTree::new(&mut samples, &Clock::ThreadTime, |_, weight| weight.total());
    let spaceless = |name: &str| name.replace(' ', "");
    let name = |entry: &Entry| samples.names().text(entry.frame);
    // dotnet-trace drops functions that have one of these words in their names.
    let is_kept = |entry: &Entry| !["Process", "ROOT"].iter().any(|part| name(entry).contains(part));
    let row = |entry: Entry| {
        let shares = [tree.share(entry.inclusive), tree.share(entry.exclusive)];
        (spaceless(&shown(name(&entry))), shares)
    };
    let top: Vec<_> = tree.top(order).into_iter().filter(is_kept).map(row).collect();
    let expected: Vec<_> = rows(expected).into_iter().filter(|row| !is_other(&row.0)).collect();
    assert!(!expected.is_empty());
    for ((name, inclusive, exclusive), (_, at_place)) in expected.iter().zip(&top) {
        let is_near = |a: f64, b: f64| (a - b).abs() <= 0.0151;
        // The same name can be shown for several functions, so one of them must match.
        let found = top.iter().any(|(of_ours, [ours_inclusive, ours_exclusive])| {
            *of_ours == spaceless(name)
                && is_near(*ours_inclusive, *inclusive)
                && is_near(*ours_exclusive, *exclusive)
        });
        assert!(found, "{trace:?}: {name} {inclusive} {exclusive}: {:#?}", &top[..30.min(top.len())]);
        // The order is the same, except for shares that are equal to two decimals.
        let (ours, theirs) = match order {
            Order::Exclusive | Order::Own => (at_place[1], exclusive),
            Order::Inclusive => (at_place[0], inclusive),
        };
        assert!(is_near(ours, *theirs), "{trace:?}: {name} {theirs}, at its place {ours}");
    }
}

#[test]
fn thread_time_is_that_of_dotnet_trace() {
    for name in ["net10-startup", "net31-sampled"] {
        for (order, suffix) in [(Order::Exclusive, "topn"), (Order::Inclusive, "topn-inclusive")] {
            check(&testdata(&format!("{name}.nettrace")), &testdata(&format!("{name}.{suffix}.txt")), order);
        }
    }
}

/// Each clock counts the events that the trace has of its kind.
#[test]
fn clocks() {
    let provider = || "Microsoft-DotNETCore-SampleProfiler".to_owned();
    let events = Clock::Events { provider: provider(), event_id: None };
    let none = Clock::Events { provider: provider(), event_id: Some(1) };
    let clocks =
        [Clock::Cpu, Clock::Wall, Clock::AllEvents, Clock::Allocations, Clock::Exceptions, events, none];
    let mut samples = read(&testdata("net10-startup.nettrace"), &clocks);
    let totals = clocks.each_ref().map(|clock| {
        let tree = CallTree::new(&mut samples, clock, |_, weight| weight.total());
        (samples.count(clock), tree.total())
    });
    // The numbers of samples of both kinds and of events with a stack are from `net10-startup.stacks.json`.
    assert_eq!(totals[0], (16, 16));
    assert_eq!(totals[1], (2122, 2122));
    assert_eq!(totals[2].1, 2250);
    assert_eq!(totals[3], (0, 0));
    assert_eq!(totals[5], (2122, 2122));
    assert_eq!(totals[6], (0, 0));
    let running: u64 = samples.weights(&Clock::Wall).map(|(_, _, weight)| weight.running).sum();
    assert_eq!((running, samples.dropped(), samples.samples()), (16, 0, 2122));
    // Every thread that was sampled has a number, and the trees of the threads add up to the whole tree.
    let all = CallTree::new(&mut samples, &Clock::Wall, |_, weight| weight.total());
    let of_threads: u64 = (0..samples.threads().len())
        .map(|number| {
            let tree = CallTree::new(&mut samples, &Clock::Wall, |thread, weight| {
                if thread.number() == number { weight.total() } else { 0 }
            });
            tree.total()
        })
        .sum();
    assert_eq!(of_threads, all.total());
}

/// The folded stacks of a tree.
fn folded(samples: &Samples, tree: &CallTree) -> Vec<(Vec<String>, u64)> {
    let mut text = String::new();
    tree.write_folded(samples.names(), &mut text).unwrap();
    let stack = |line: &str| {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        (stack.split(';').map(str::to_owned).collect(), weight.parse().unwrap())
    };
    text.lines().map(stack).collect()
}

/// Returns for each name the weight of the stacks in which `f` finds the name.
fn sums<'s>(
    stacks: &'s [(Vec<String>, u64)],
    f: impl Fn(&'s [String]) -> BTreeSet<&'s str>,
) -> BTreeMap<&'s str, u64> {
    let mut sums = BTreeMap::new();
    for (stack, weight) in stacks {
        f(stack).into_iter().for_each(|name| *sums.entry(name).or_default() += weight);
    }
    sums
}

/// All views of a tree are sums over its stacks.
#[test]
fn views_of_a_tree() {
    let mut samples = read(&testdata("net10-startup.nettrace"), &[Clock::Wall]);
    let tree = CallTree::new(&mut samples, &Clock::Wall, |_, weight| weight.total());
    let stacks = folded(&samples, &tree);
    assert_eq!(stacks.iter().map(|(_, weight)| weight).sum::<u64>(), tree.total());
    let name = |frame| samples.names().text(frame);

    let inclusive = sums(&stacks, |stack| stack.iter().map(String::as_str).collect());
    let exclusive = sums(&stacks, |stack| stack.last().map(String::as_str).into_iter().collect());
    let top = tree.top(Order::Inclusive);
    assert!(top.is_sorted_by_key(|entry| core::cmp::Reverse(entry.inclusive)));
    assert_eq!(top.len(), inclusive.len());
    for entry in &top {
        assert_eq!(entry.inclusive, inclusive[name(entry.frame)]);
        assert_eq!(entry.exclusive, exclusive.get(name(entry.frame)).copied().unwrap_or_default());
    }
    for entry in &top {
        // Stacks begin with the outermost call.
        let of_frame = |stack: &[String]| stack.iter().position(|frame| frame == name(entry.frame));
        let callers = sums(&stacks, |stack| {
            of_frame(stack)
                .and_then(|at| stack.get(at.checked_sub(1)?))
                .map(String::as_str)
                .into_iter()
                .collect()
        });
        let callees = sums(&stacks, |stack| {
            of_frame(stack).and_then(|at| stack.get(at + 1)).map(String::as_str).into_iter().collect()
        });
        for (entries, expected) in
            [(tree.callers(entry.frame), callers), (tree.callees(entry.frame), callees)]
        {
            let entries: BTreeMap<_, _> = entries.iter().map(|e| (name(e.frame), e.inclusive)).collect();
            assert_eq!(entries, expected, "{}", name(entry.frame));
        }
    }

    // The tree from its root: a node weighs as much as its callees and itself together.
    let mut nodes = vec![(NodeId::ROOT, tree.total(), 0)];
    let mut sum = 0;
    while let Some((node, inclusive, exclusive)) = nodes.pop() {
        let children = tree.children(node);
        assert!(children.is_sorted_by_key(|(_, entry)| core::cmp::Reverse(entry.inclusive)));
        let calls: u64 = children.iter().map(|(_, entry)| entry.inclusive).sum();
        assert_eq!(inclusive, exclusive + calls);
        nodes.extend(children.iter().map(|(node, entry)| (*node, entry.inclusive, entry.exclusive)));
        sum += exclusive;
    }
    assert_eq!(sum, tree.total());
    assert!(tree.unnamed_share(samples.names()) < 2.0);
}

#[test]
fn differences() {
    let mut samples = read(&testdata("net10-startup.nettrace"), &[Clock::Cpu, Clock::Wall]);
    let [cpu, wall] = [Clock::Cpu, Clock::Wall]
        .map(|clock| CallTree::new(&mut samples, &clock, |_, weight| weight.total()));
    let names = samples.names();
    assert_eq!(wall.difference(names, &wall, names, Order::Exclusive), []);
    let changes = wall.difference(names, &cpu, names, Order::Exclusive);
    let [more, less] = [0, 1].map(|i| changes.iter().map(|change| change.exclusive[i]).sum::<f64>());
    assert!((more - less).abs() < 1e-6 && more > 50.0);
    assert!(changes.is_sorted_by(|a, b| {
        let [a, b] = [a, b].map(|change| (change.exclusive[1] - change.exclusive[0]).abs());
        a >= b
    }));
}

/// Returns a trace with methods of two libraries at the addresses 0x100, 0x200 and so on, each of 0x100 bytes.
fn with_methods(methods: &[(&str, &str)]) -> Written {
    let utf16 =
        |text: &str| -> Vec<u8> { text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect() };
    let mut trace = Written::new();
    for (module, path) in [(1_u64, "/x/System.Private.CoreLib.dll"), (2, "/x/App.dll")] {
        let numbers = [&module.to_le_bytes()[..], &[0; 16]].concat();
        trace.event(0, 1, (152, 1), &[numbers, utf16(path), utf16("")].concat());
    }
    for (number, (of, name)) in (1_u64..).zip(methods) {
        let module = if of.starts_with("System.") { 1 } else { 2 };
        let numbers = [number, module, number << 8].map(u64::to_le_bytes).concat();
        let sizes = [0x100_u32, 0, 0].map(u32::to_le_bytes).concat();
        trace.event(0, 1, (143, 1), &[numbers, sizes, utf16(of), utf16(name), utf16("()")].concat());
    }
    trace
}

/// Samples by one clock, of stacks of methods, the innermost first, each by its place in a list.
fn sampled(methods: &[(&str, &str)], clock: &Clock, (id, version): (u32, u32), stacks: &[&[u64]]) -> Samples {
    let mut trace = with_methods(methods);
    let provider =
        if id == 0 { "Microsoft-DotNETCore-SampleProfiler" } else { "Microsoft-Windows-DotNETRuntime" };
    for (time, stack) in (10_u64..).zip(stacks) {
        let stack: Vec<u64> = stack.iter().map(|place| ((place + 1) << 8) + 1).collect();
        let payload = [&[2, 0, 0, 0][..], &[1; 14], &[0; 30]].concat();
        trace.event_of(provider, time, 1, (id, version), &payload).stack(&stack);
    }
    let mut samples = Samples::new([clock.clone()]);
    each_event(&trace.bytes(), |event| samples.event(event));
    samples
}

/// Returns the names of the frames of the heaviest path of a tree.
fn path<'s>(samples: &'s Samples, tree: &CallTree) -> Vec<&'s str> {
    let first = |node| tree.children(node).first().copied();
    let path = core::iter::successors(first(NodeId::ROOT), |(node, _)| first(*node));
    path.map(|(_, entry)| samples.names().short(entry.frame)).collect()
}

/// A stack counts for the innermost method of the program, and such methods come first if others weigh as much.
#[test]
fn own_code() {
    let methods = [
        ("App.Program", "Main"),
        ("System.Text.Regex", "Match"),
        ("App.Names", "IsValid"),
        ("System.String", "Concat"),
    ];
    // Main > Match > IsValid > Concat, Main > Concat, Match, and IsValid > Match.
    let stacks: &[&[u64]] = &[&[3, 2, 1, 0], &[3, 2, 1, 0], &[3, 0], &[1], &[1, 2]];
    let mut samples = sampled(&methods, &Clock::Cpu, (0, 0), stacks);
    let tree = CallTree::new(&mut samples, &Clock::Cpu, |_, weight| weight.total());
    let names = samples.names();
    let rows = |order| {
        let row = |entry: Entry| (names.short(entry.frame), entry.exclusive, entry.inclusive, entry.own);
        tree.top(order).into_iter().map(row).collect::<Vec<_>>()
    };
    let main = ("App.Program.Main", 0, 3, 1);
    let concat = ("System.String.Concat", 3, 3, 0);
    let is_valid = ("App.Names.IsValid", 0, 3, 3);
    let matches = ("System.Text.Regex.Match", 2, 4, 0);
    assert_eq!(rows(Order::Own), [is_valid, main, matches, concat]);
    assert_eq!(rows(Order::Exclusive), [concat, matches, main, is_valid]);
    assert_eq!(rows(Order::Inclusive), [matches, main, is_valid, concat]);
    assert_eq!((tree.total(), tree.not_own()), (5, 1));
    assert_eq!(tree.common_own(), None);
    let own = tree.top(Order::Own).iter().filter(|entry| entry.is_own).count();
    assert_eq!(own, 2);
    // A short name has lost the module, by which alone a method is one of the framework.
    for is_short in [false, true] {
        let mut samples = Samples::new([Clock::Cpu]);
        samples.names_mut().set_own_code(OwnCode::new(["App.Names".to_owned()]));
        if is_short {
            samples.names_mut().shorten();
        }
        let mut trace = with_methods(&methods);
        trace
            .event_of("Microsoft-DotNETCore-SampleProfiler", 10, 1, (0, 0), &[2, 0, 0, 0])
            .stack(&[0x401, 0x301, 0x101]);
        each_event(&trace.bytes(), |event| samples.event(event));
        let tree = CallTree::new(&mut samples, &Clock::Cpu, |_, weight| weight.total());
        let own: Vec<_> = tree.top(Order::Own).into_iter().filter(|entry| entry.is_own).collect();
        assert_eq!(
            own.iter().map(|entry| samples.names().short(entry.frame)).collect::<Vec<_>>(),
            ["App.Names.IsValid"]
        );
    }
}

/// The method that has most stacks in common is the innermost such method of the program, also if it only calls others.
#[test]
fn common_own_code() {
    let methods = [
        ("App.Program", "Main"),
        ("App.Page", "Render"),
        ("App.Page", "Scale"),
        ("App.Page", "Decode"),
        ("System.String", "Concat"),
    ];
    for (stacks, common) in [
        (&[&[4, 2, 1, 0][..], &[2, 1, 0], &[3, 1, 0], &[4, 3, 1], &[4]][..], Some("App.Page.Render")),
        (&[&[4, 2, 1, 0], &[2, 1, 0]], Some("App.Page.Scale")),
        (&[&[1, 0], &[1, 0]], Some("App.Page.Render")),
        (&[&[2, 0], &[3, 0], &[1], &[1]], None),
        (&[&[4], &[4]], None),
    ] {
        let mut samples = sampled(&methods, &Clock::Cpu, (0, 0), stacks);
        let tree = CallTree::new(&mut samples, &Clock::Cpu, |_, weight| weight.total());
        let found = tree.common_own().map(|entry| samples.names().short(entry.frame));
        assert_eq!(found, common, "{stacks:?}");
    }
}

/// Frames that only carry threads and continuations become one; the innermost frame stays.
#[test]
fn folded_frames() {
    const BOX: &str = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1[System.__Canon,App.Cart+<AddAsync>d__1]";
    let methods = [
        ("System.Threading.Thread", "StartCallback"),
        ("System.Threading.PortableThreadPool+WorkerThread", "WorkerThreadStart"),
        ("System.Threading.ThreadPoolWorkQueue", "Dispatch"),
        (BOX, "MoveNext"),
        ("System.Threading.ExecutionContext", "RunInternal"),
        ("App.Cart+<AddAsync>d__1", "MoveNext"),
        ("System.Threading.Tasks.Task`1[System.Int32]", "TrySetResult"),
        ("System.Net.Http.HttpClient+<<SendAsync>g__Core|83_0>d`1[System.__Canon]", "MoveNext"),
        ("System.Threading.Tasks.Task+DelayPromise", "CompleteTimedOut"),
        ("System.Threading.Tasks.Task", "Wait"),
        ("System.Linq.Enumerable+ListWhereIterator`1[System.__Canon]", "MoveNext"),
        ("System.Net.Sockets.SocketAsyncEngine", "EventLoop"),
        ("System.Environment", "CallEntryPoint"),
    ];
    let folded = "[threads and async]";
    let [cart, wait] = ["App.Cart+<AddAsync>d__1.MoveNext", "System.Threading.Tasks.Task.Wait"];
    for (stack, expected) in [
        (&[9, 5, 4, 3, 2, 1, 0][..], &[folded, cart, wait][..]),
        (&[9, 5, 4, 3, 6, 5, 2, 0], &[folded, cart, folded, cart, wait]),
        (&[9, 7, 6, 5, 0], &[folded, cart, folded, wait]),
        (&[9, 8, 0], &[folded, wait]),
        // The innermost frame, and frames of other purposes.
        (&[2, 1, 0], &[folded, "System.Threading.ThreadPoolWorkQueue.Dispatch"]),
        (&[0], &["System.Threading.Thread.StartCallback"]),
        (&[5, 9, 0], &[folded, wait, cart]),
        // .NET 11 calls Main by a method.
        (&[9, 5, 12], &[folded, cart, wait]),
        (&[5, 10], &["System.Linq.Enumerable+ListWhereIterator`1[System.__Canon].MoveNext", cart]),
        (&[5, 11], &["System.Net.Sockets.SocketAsyncEngine.EventLoop", cart]),
    ] {
        let clock = Clock::Cpu;
        let mut samples = sampled(&methods, &clock, (0, 0), &[stack]);
        let tree = CallTree::folded(&mut samples, &clock, |_, weight| weight.total());
        assert_eq!(path(&samples, &tree), expected, "{stack:?}");
        let tree = CallTree::of_origins(&mut samples, &clock, |_, weight| weight.total());
        assert_eq!(path(&samples, &tree), expected, "{stack:?}");
        let whole = CallTree::new(&mut samples, &clock, |_, weight| weight.total());
        assert_eq!(path(&samples, &whole).len(), stack.len());
        let stack = samples.weights(&clock).next().unwrap().1;
        let addresses: Vec<_> = samples.stacks().addresses(stack).collect();
        let frames: Vec<_> =
            addresses.into_iter().map(|address| samples.names_mut().frame(address)).collect();
        let frames = folded_stack(samples.names(), &frames);
        let frames: Vec<_> = frames.iter().rev().map(|frame| samples.names().short(*frame)).collect();
        assert_eq!(frames, expected);
        let tree = ThreadTree::folded(&mut samples, &[clock]);
        let frames: Vec<_> = tree.calls().map(|(_, frame)| samples.names().short(frame)).collect();
        assert_eq!(frames, expected);
    }
    // A stack that ends in the middle of another one, and the rules of other tools.
    let stacks: &[&[u64]] = &[&[9, 2, 1, 0], &[1, 0], &[2, 1, 0], &[2, 1, 0]];
    let mut samples = sampled(&methods, &Clock::Cpu, (0, 0), stacks);
    let tree = CallTree::folded(&mut samples, &Clock::Cpu, |_, weight| weight.total());
    let name = |entry: &Entry| (samples.names().short(entry.frame), entry.exclusive, entry.inclusive);
    let rows: Vec<_> = tree.top(Order::Exclusive).iter().map(name).collect();
    assert_eq!(
        rows,
        [
            ("System.Threading.ThreadPoolWorkQueue.Dispatch", 2, 2),
            ("System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart", 1, 1),
            (wait, 1, 1),
            (folded, 0, 4),
        ]
        .map(|row| row)
    );
    let clock = Clock::ThreadTime;
    let mut samples = sampled(&methods, &clock, (0, 0), &[&[9, 2, 1, 0], &[9, 2, 1, 0]]);
    let tree = CallTree::folded(&mut samples, &clock, |_, weight| weight.total());
    assert!(tree.top(Order::Inclusive).iter().all(|entry| samples.names().text(entry.frame) != folded));
}

/// A thread waits from before the recording if all its samples are in a lock, and no event has the wait.
#[test]
fn waits_from_before_the_recording() {
    let methods = [
        ("App.Program", "Run"),                            // 0x100
        ("System.Threading.Monitor", "Enter_Slowpath"),    // 0x200
        ("System.Threading.Lock", "TryEnterSlow"),         // 0x300
        ("System.Threading.WaitHandle", "WaitOneNoCheck"), // 0x400
        ("System.Threading.Monitor", "Wait"),              // 0x500
        ("System.Threading.SemaphoreSlim", "Wait"),        // 0x600
    ];
    let mut trace = with_methods(&methods);
    let mut sample = |time, thread, stack: &[u64]| {
        trace
            .event_of("Microsoft-DotNETCore-SampleProfiler", time, thread, (0, 0), &[1, 0, 0, 0])
            .stack(stack);
    };
    // Threads 1 and 2 wait for a lock, 3 got it, 4 and 5 wait for something else, 6 runs, and 7 began to wait later.
    let stacks: [(u64, &[u64]); 7] = [
        (1, &[0x201, 0x101]),
        (2, &[0x401, 0x301, 0x101]),
        (3, &[0x201, 0x101]),
        (4, &[0x501, 0x101]),
        (5, &[0x501, 0x601, 0x101]),
        (6, &[0x101]),
        (7, &[0x201, 0x101]),
    ];
    for time in [10, 20] {
        stacks.iter().for_each(|(thread, stack)| sample(time, *thread, stack));
    }
    sample(30, 3, &[0x101]);
    trace.event(5, 7, (81, 1), &[0; 3]).stack(&[0x201, 0x101]);
    let mut samples = Samples::new([Clock::Wall, Clock::Contention]);
    each_event(&trace.bytes(), |event| samples.event(event));
    samples.finish_with(&mut |_, _| {});
    let old: Vec<_> =
        old_waits(&mut samples).iter().map(|thread| samples.threads()[thread.number()].id).collect();
    assert_eq!(old, [1, 2]);
}

/// The innermost frame of a stack is the method that throws, waits, sends or allocates, not the runtime's code for it.
#[test]
fn origins_of_events() {
    let methods = [
        ("App.Program", "Run"),                                           // 0x100
        ("System.Runtime.EH", "RhThrowEx"),                               // 0x200
        ("System.Runtime.EH", "DispatchEx"),                              // 0x300
        ("System.Threading.Monitor", "Enter"),                            // 0x400
        ("System.Threading.Lock", "TryEnterSlow"),                        // 0x500
        ("System.Diagnostics.Tracing.EventSource", "WriteEvent"),         // 0x600
        ("System.String", "FastAllocateString"),                          // 0x700
        ("System.Threading.LockCookie", "NoLock"),                        // 0x800
        ("System.Runtime.EHOther", "NoException"),                        // 0x900
        ("System.Threading.Thread", "StartCore"),                         // 0xa00
        ("System.Threading.Thread", "Start"),                             // 0xb00
        ("System.Net.Http.HttpTelemetry", "RequestStart"),                // 0xc00
        ("System.Diagnostics.DiagnosticListener", "Write"),               // 0xd00
        ("System.Number", "ThrowFormatException"),                        // 0xe00
        ("App.ShopEventSource", "Order"),                                 // 0xf00
        ("System.Runtime.ExceptionServices.InternalCalls", "RhpSfiInit"), // 0x1000
    ];
    let of_types = Clock::AllocatedTypes;
    let events = |provider: &str, event_id| Clock::Events { provider: provider.to_owned(), event_id };
    let runtime = "Microsoft-Windows-DotNETRuntime";
    let run = "App!App.Program.Run()";
    for (clock, id, stack, leaf, left_out) in [
        (Clock::Exceptions, 80, &[0x300, 0x200, 0x100][..], run, 2),
        (events(runtime, Some(80)), 80, &[0x300, 0x200, 0x100], run, 2),
        (Clock::Exceptions, 80, &[0x1000, 0x300, 0x200, 0x100], run, 3),
        (Clock::Contention, 81, &[0x600, 0x500, 0x400, 0x100], run, 3),
        (Clock::Allocations, 10, &[0x700, 0x100], run, 1),
        (of_types, 10, &[0x700, 0x100], "?", 1),
        (events("My-Source", None), 1, &[0x600, 0x100], run, 1),
        (events(runtime, Some(70)), 70, &[0xa00, 0xb00, 0x100], run, 2),
        (events("My-Source", Some(1)), 1, &[0x600, 0xc00, 0x100], run, 2),
        (events("My-Source", None), 1, &[0x600, 0xd00, 0x100], run, 2),
        (Clock::Exceptions, 80, &[0x300, 0xe00, 0x100], run, 2),
        // The program's own event source.
        (events("My-Source", None), 1, &[0x600, 0xf00, 0x100], "App!App.ShopEventSource.Order()", 1),
        // A frame between others stays, and so does the code of another purpose.
        (Clock::Exceptions, 80, &[0x100, 0x200, 0x100], run, 0),
        (
            Clock::Exceptions,
            80,
            &[0x400, 0x100],
            "System.Private.CoreLib!System.Threading.Monitor.Enter()",
            0,
        ),
        (
            Clock::Contention,
            81,
            &[0x800, 0x100],
            "System.Private.CoreLib!System.Threading.LockCookie.NoLock()",
            0,
        ),
        (
            Clock::Exceptions,
            80,
            &[0x900, 0x100],
            "System.Private.CoreLib!System.Runtime.EHOther.NoException()",
            0,
        ),
        // A stack without other frames stays whole.
        (Clock::Exceptions, 80, &[0x300, 0x200], "System.Private.CoreLib!System.Runtime.EH.DispatchEx()", 0),
        (
            Clock::AllEvents,
            80,
            &[0x300, 0x200, 0x100],
            "System.Private.CoreLib!System.Runtime.EH.DispatchEx()",
            0,
        ),
    ] {
        let mut trace = with_methods(&methods);
        let provider = if id == 1 { "My-Source" } else { runtime };
        let stack: Vec<u64> = stack.iter().map(|address| address + 1).collect();
        let payload = [&[1; 18][..], &[0; 30]].concat();
        trace.event_of(provider, 10, 1, (id, 1), &payload).stack(&stack);
        trace.event(30, 1, (91, 1), &[0; 11]);
        let mut samples = Samples::new([clock.clone()]);
        each_event(&trace.bytes(), |event| samples.event(event));
        let tree = CallTree::of_origins(&mut samples, &clock, |_, weight| weight.total());
        let top = tree.top(Order::Exclusive);
        assert_eq!(samples.names().text(top[0].frame), leaf, "{clock:?} {stack:x?}");
        assert_eq!(
            (top[0].exclusive, tree.left_out().len()),
            (tree.total(), left_out),
            "{clock:?} {stack:x?}"
        );
        let whole = CallTree::new(&mut samples, &clock, |_, weight| weight.total());
        assert_eq!((whole.total(), whole.left_out().len()), (tree.total(), 0));
        if clock == Clock::AllocatedTypes {
            let callers = tree.callers(top[0].frame);
            assert_eq!(callers.iter().map(|of| samples.names().text(of.frame)).collect::<Vec<_>>(), [run]);
        }
    }
}
