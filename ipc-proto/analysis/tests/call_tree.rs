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

use nettrace::{AssemblerStep, EventAssembler, Limits};
use nettrace_analysis::call_tree::{CallTree, Entry, NodeId, Order};
use nettrace_analysis::samples::{Clock, Samples};

use crate::runtime_events::{Written, each_event};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/analysis").join(name)
}

fn read(trace: &Path, clocks: &[Clock]) -> Samples {
    let mut assembler = EventAssembler::new(Limits::default()).in_order(EventAssembler::ORDER_LIMIT);
    assembler.push(&std::fs::read(trace).unwrap());
    let mut samples = Samples::new(clocks.iter().cloned());
    while let AssemblerStep::Event = assembler.step() {
        samples.event(&assembler.event().unwrap());
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

/// Returns whether a row of dotnet-trace is no function.
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
            Order::Exclusive => (at_place[1], exclusive),
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
    assert_eq!(wall.difference(names, &wall, names), []);
    let changes = wall.difference(names, &cpu, names);
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

/// The innermost frame of a stack is the method that throws, waits, sends or allocates, not the runtime's code for it.
#[test]
fn origins_of_events() {
    let methods = [
        ("App.Program", "Run"),                                   // 0x100
        ("System.Runtime.EH", "RhThrowEx"),                       // 0x200
        ("System.Runtime.EH", "DispatchEx"),                      // 0x300
        ("System.Threading.Monitor", "Enter"),                    // 0x400
        ("System.Threading.Lock", "TryEnterSlow"),                // 0x500
        ("System.Diagnostics.Tracing.EventSource", "WriteEvent"), // 0x600
        ("System.String", "FastAllocateString"),                  // 0x700
        ("System.Threading.LockCookie", "NoLock"),                // 0x800
        ("System.Runtime.EHOther", "NoException"),                // 0x900
    ];
    let of_types = Clock::AllocatedTypes;
    let events = |provider: &str, event_id| Clock::Events { provider: provider.to_owned(), event_id };
    let runtime = "Microsoft-Windows-DotNETRuntime";
    let run = "App!App.Program.Run()";
    for (clock, id, stack, leaf, left_out) in [
        (Clock::Exceptions, 80, &[0x300, 0x200, 0x100][..], run, 2),
        (events(runtime, Some(80)), 80, &[0x300, 0x200, 0x100], run, 2),
        (Clock::Contention, 81, &[0x600, 0x500, 0x400, 0x100], run, 3),
        (Clock::Allocations, 10, &[0x700, 0x100], run, 1),
        (of_types, 10, &[0x700, 0x100], "?", 1),
        (events("My-Source", None), 1, &[0x600, 0x100], run, 1),
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
