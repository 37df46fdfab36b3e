//! Names of frames, against those that TraceLog has: testdata/README.md.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test states what it expects by unwrapping it"
)]
mod runtime_events;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nettrace::{
    Event, EventAssembler, Fields, Limits, Metadata, Progress, Scalar, Trace, TraceEvent, TraceWriter,
    Version,
};
use nettrace_analysis::names::{AddressId, Names};
use nettrace_analysis::{KnownProvider, StackId, Stacks};

use crate::runtime_events::{Written, each_event};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/analysis").join(name)
}

fn for_each_event(bytes: &[u8], in_order: bool, mut f: impl FnMut(&TraceEvent<'_>)) {
    let mut assembler = EventAssembler::new(Limits::default());
    if in_order {
        assembler = assembler.in_order(EventAssembler::ORDER_LIMIT);
    }
    assembler.push(bytes);
    while let Progress::Event = assembler.advance() {
        f(&assembler.event().unwrap());
    }
}

/// MethodILToNativeMap of the runtime, which TraceLog leaves out.
fn is_il_map(event: &TraceEvent<'_>) -> bool {
    event.metadata().is_some_and(|metadata| {
        KnownProvider::of(metadata.provider) == Some(KnownProvider::Runtime) && metadata.event_id == 190
    })
}

/// The stacks of all events by name, root first, and how many events have each.
fn named_stacks(bytes: &[u8], in_order: bool) -> BTreeMap<String, u64> {
    let (mut names, mut stacks) = (Names::default(), Stacks::default());
    let mut events: BTreeMap<StackId, u64> = BTreeMap::new();
    for_each_event(bytes, in_order, |event| {
        names.event(event);
        let stack = stacks.of(event, &mut names);
        if stack != StackId::EMPTY && !is_il_map(event) {
            *events.entry(stack).or_default() += 1;
        }
    });
    let mut named: BTreeMap<String, u64> = BTreeMap::new();
    for (stack, count) in events {
        let mut frames: Vec<_> = stacks.addresses(stack).map(|address| names.frame(address)).collect();
        frames.reverse();
        let frames: Vec<_> = frames.iter().map(|frame| in_lower_case(names.text(*frame))).collect();
        *named.entry(frames.join(";")).or_default() += count;
    }
    assert_eq!((names.dropped(), stacks.cut()), (0, 0));
    named
}

/// TraceLog prints some names of modules in lower case.
fn in_lower_case(frame: &str) -> String {
    let (module, method) = frame.split_once('!').unwrap();
    format!("{}!{method}", module.to_lowercase())
}

fn check(trace: &Path, stacks: &Path) {
    let bytes = std::fs::read(trace).unwrap();
    let expected: serde_json::Value = serde_json::from_slice(&std::fs::read(stacks).unwrap()).unwrap();
    let expected = expected["stacks"].as_object().unwrap().iter();
    let expected: BTreeMap<_, _> = expected
        .map(|(stack, n)| {
            let frames: Vec<_> = stack.split(';').map(in_lower_case).collect();
            (frames.join(";"), n.as_u64().unwrap())
        })
        .collect();
    for in_order in [true, false] {
        let named = named_stacks(&bytes, in_order);
        let missing: Vec<_> = expected.iter().filter(|(stack, n)| named.get(*stack) != Some(n)).collect();
        let other: Vec<_> = named.iter().filter(|(stack, n)| expected.get(*stack) != Some(n)).collect();
        assert!(missing.is_empty() && other.is_empty(), "{trace:?}: {missing:#?}\n\n{other:#?}");
    }
}

#[test]
fn every_stack_has_the_names_of_tracelog() {
    for name in ["net10-startup", "net31-sampled", "net10-precompiled", "v6-symbols"] {
        check(&testdata(&format!("{name}.nettrace")), &testdata(&format!("{name}.stacks.json")));
    }
}

/// Methods that differ in module or arguments only are one frame, and what is unknown stays as it is.
#[test]
fn short_names() {
    let mut names = Names::default();
    for line in [
        "1000 10 A.B(int32) [one]",
        "2000 10 int32 [one] A::B(int32)[Tier1]",
        "3000 10 int32 [two] A::B()[Tier0]",
    ] {
        names.perf_map_line(0, line);
    }
    let addresses = [0x1000, 0x2000, 0x3000, 0x4000].map(|ip| names.address(0, ip));
    let label = names.label("EventName: a!b(c)/d");
    let full = addresses.map(|address| names.frame(address));
    names.shorten();
    let frames = addresses.map(|address| names.frame(address));
    assert_eq!(frames.map(|frame| names.text(frame)), ["A.B", "A::B", "A::B", "?!?"]);
    assert_eq!(frames[1], frames[2]);
    assert_ne!(full[1], full[2]);
    assert_eq!(frames.map(|frame| names.is_named(frame)), [true, true, true, false]);
    let label = names.frame(label);
    assert_eq!(names.text(label), "EventName: a!b(c)/d");
}

const LOAD: (u32, u32) = (143, 1);
const UNLOAD: (u32, u32) = (144, 1);

/// Returns the row of a method.
fn method(start: u64, name: &str) -> Vec<u8> {
    row(&[1, 7, start], &[0x10, 0, 8], &["", name, "void ()"])
}

/// Dynamic methods: the addresses of one are used again for another one.
#[test]
fn equal_stacks_of_different_code() {
    const THROWN: (u32, u32) = (80, 1);
    let mut trace = Written::new();
    trace.event(1, 1, LOAD, &method(0x1000, "First"));
    trace.event(2, 1, THROWN, &[]).stack(&[0x1004]);
    trace.event(3, 1, THROWN, &[]).stack(&[0x1004]);
    trace.event(4, 1, UNLOAD, &method(0x1000, "First"));
    trace.event(5, 1, LOAD, &method(0x1000, "Second"));
    trace.event(6, 1, THROWN, &[]).stack(&[0x1004]);
    // Without an unload, a load at other boundaries replaces it too.
    trace.event(7, 1, LOAD, &method(0xff8, "Third"));
    trace.event(8, 1, THROWN, &[]).stack(&[0x1004]);
    let named = named_stacks(&trace.bytes(), true);
    let expected = [("First", 2), ("Second", 1), ("Third", 1)];
    assert_eq!(named, expected.map(|(name, count)| (format!("managedmodule!{name}()"), count)).into());
}

/// A mapping or a symbol of a trace of the system.
type Row<'a> = (&'a str, &'a [(&'a str, u64)], &'a str);

/// Writes rows of `Universal.System`, in which numbers have eight bytes.
fn system_trace(rows: &[Row<'_>]) -> Vec<u8> {
    let (mut buf, mut trace) = (vec![0; TraceWriter::BUFFER], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    for (id, (name, numbers, _)) in (1..).zip(rows) {
        let fields: Vec<_> = numbers.iter().map(|(name, _)| (*name, Scalar::UInt64)).collect();
        let text = if *name == "ProcessMapping" { "FileName" } else { "Name" };
        let fields = [&fields[..], &[(text, Scalar::Utf16String)]].concat();
        let mut space = [0; 512];
        let mut metadata = Metadata::new(id, "Universal.System", 0, name);
        metadata.fields = Fields::build(&fields, &mut space).unwrap();
        trace.extend_from_slice(&writer.describe(&metadata).unwrap());
    }
    for (id, (_, numbers, text)) in (1..).zip(rows) {
        let mut payload: Vec<u8> = numbers.iter().flat_map(|(_, number)| number.to_le_bytes()).collect();
        payload.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        let event = Event { metadata_id: id, sequence: id, payload: &payload, ..Event::default() };
        trace.extend_from_slice(&writer.event(&event).unwrap());
    }
    trace.extend_from_slice(&writer.finish());
    trace
}

#[test]
fn mappings_and_symbols() {
    let at = |start, end| [("StartAddress", start), ("EndAddress", end)];
    let mapping = |id, start, end| [&[("Id", id), ("FileOffset", 0x300)][..], &at(start, end)].concat();
    let symbol = |id, start, end| [&[("MappingId", id)][..], &at(start, end)].concat();
    let rows: [Row<'_>; 6] = [
        ("ProcessMapping", &mapping(1, 0x1000, 0x1fff), "/usr/lib/libc.so.6"),
        ("ProcessMapping", &mapping(2, 0x3000, 0x3fff), "/memfd:doublemapper (deleted)"),
        ("ProcessSymbol", &symbol(1, 0x1100, 0x11ff), "malloc"),
        ("ProcessSymbol", &symbol(2, 0x3100, 0x31ff), "stub"),
        ("ProcessSymbol", &symbol(9, 0x5100, 0x51ff), "elsewhere"),
        // A kernel without a table of symbols.
        ("ProcessSymbol", &symbol(1, 0, u64::MAX), "kernel"),
    ];
    let mut names = Names::default();
    for_each_event(&system_trace(&rows), false, |event| names.event(event));
    for (ip, name, place) in [
        (0xfff, "?!?", None),
        (0x1000, "libc.so.6!?", Some(("libc.so.6", 0x300))),
        (0x1fff, "libc.so.6!?", Some(("libc.so.6", 0x12ff))),
        (0x2000, "?!?", None),
        (0x1100, "libc.so.6!malloc", Some(("libc.so.6", 0x400))),
        (0x11ff, "libc.so.6!malloc", Some(("libc.so.6", 0x4ff))),
        // The return address of a call that is the end of malloc.
        (0x1200, "libc.so.6!malloc", Some(("libc.so.6", 0x500))),
        (0x1201, "libc.so.6!?", Some(("libc.so.6", 0x501))),
        (0x3000, "?!?", None),
        (0x3100, "unknown!stub", None),
        (0x5100, "?!elsewhere", None),
        (0x9000, "?!?", None),
    ] {
        let address = names.address(0, ip);
        let frame = names.frame(address);
        assert_eq!((names.text(frame), names.place(address)), (name, place), "{ip:x}");
    }
}

/// The rundown at the start of a session has the ids of the one at its end, less 1. It names modules after their methods.
#[test]
fn a_rundown_names_methods_and_modules() {
    const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
    let module = row(&[7, 1], &[0, 0], &["/shop/Shop.dll", ""]);
    for (methods, modules) in [((143, 1), (153, 2)), ((144, 1), (154, 2))] {
        let mut trace = Written::new();
        trace.event(1, 1, (80, 1), &[]).stack(&[0x1004]);
        trace.event_of(RUNDOWN, 2, 1, methods, &method(0x1000, "Total"));
        trace.event_of(RUNDOWN, 3, 1, modules, &module);
        let named = named_stacks(&trace.bytes(), true);
        assert_eq!(named, [("shop!Total()".to_owned(), 1)].into(), "{methods:?}");
    }
}

/// Returns a payload of numbers, and of texts as UTF-16 with NUL.
fn row(ids: &[u64], numbers: &[u32], texts: &[&str]) -> Vec<u8> {
    let ids = ids.iter().flat_map(|id| id.to_le_bytes());
    let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
    let units = texts.iter().flat_map(|text| text.encode_utf16().chain([0]));
    ids.chain(numbers).chain(units.flat_map(u16::to_le_bytes)).collect()
}

/// Returns the row of a method of module 7.
fn cart_method(start: u64, size: u32, name: &str) -> Vec<u8> {
    row(&[1, 7, start], &[size, 0, 8], &["Shop.Cart", name, "instance void  (int32)"])
}

/// Takes an event of the runtime.
fn take(names: &mut Names, id: (u32, u32), payload: &[u8]) {
    each_event(&Written::new().event(1, 1, id, payload).bytes(), |event| names.event(event));
}

fn load(names: &mut Names, start: u64, size: u32, name: &str) {
    take(names, LOAD, &cart_method(start, size, name));
}

fn unload(names: &mut Names, start: u64, size: u32, name: &str) {
    take(names, UNLOAD, &cart_method(start, size, name));
}

fn load_module(names: &mut Names, path: &str, native_path: &str) {
    take(names, (152, 2), &row(&[7, 1], &[0, 0], &[path, native_path]));
}

fn text(names: &mut Names, address: AddressId) -> String {
    let frame = names.frame(address);
    names.text(frame).into()
}

/// Returns the name of what is at an address now.
fn text_at(names: &mut Names, ip: u64) -> String {
    let address = names.address(0, ip);
    text(names, address)
}

#[test]
fn a_module_names_earlier_methods() {
    let mut names = Names::default();
    load(&mut names, 0x1000, 0x10, "Add");
    let address = names.address(0, 0x1008);
    assert_eq!(text(&mut names, address), "ManagedModule!Shop.Cart.Add(int32)");
    load_module(&mut names, "C:\\shop\\Shop.App.dll", "");
    assert_eq!(text(&mut names, address), "Shop.App!Shop.Cart.Add(int32)");
    let frame = names.frame(address);
    assert_eq!(names.short(frame), "Shop.Cart.Add");
    assert!(names.is_named(frame));
    // The id is used again.
    load_module(&mut names, "/shop/Other.ni.dll", "/shop/Other.ni.dll");
    load(&mut names, 0x2000, 0x10, "Add");
    assert_eq!(text_at(&mut names, 0x2000), "Other!Shop.Cart.Add(int32)");
    assert_eq!(text(&mut names, address), "Shop.App!Shop.Cart.Add(int32)");
}

#[test]
fn an_address_has_the_name_of_its_time() {
    let mut names = Names::default();
    load_module(&mut names, "/shop.dll", "");
    load(&mut names, 0x1000, 0x20, "First");
    let first = names.address(0, 0x1010);
    unload(&mut names, 0x1000, 0x20, "First");
    // Nothing is there for a while.
    assert_eq!(text_at(&mut names, 0x1018), "?!?");
    load(&mut names, 0x1000, 0x10, "Second");
    // Replaced without an unload.
    let second = names.address(0, 0x1008);
    load(&mut names, 0x1008, 0x10, "Third");
    let third = names.address(0, 0x1008);
    let texts = [first, second, third].map(|address| text(&mut names, address));
    assert_eq!(texts, ["First", "Second", "Third"].map(|name| format!("shop!Shop.Cart.{name}(int32)")));
    assert_ne!(second, third);
    // The same row again, as the rundown has it, changes nothing.
    load(&mut names, 0x1008, 0x10, "Third");
    assert_eq!(names.address(0, 0x1008), third);
}

#[test]
fn a_return_address_can_be_the_end_of_the_code() {
    let mut names = Names::default();
    load(&mut names, 0x1000, 0x10, "Throw");
    assert_eq!(text_at(&mut names, 0x1010), "ManagedModule!Shop.Cart.Throw(int32)");
    assert_eq!(text_at(&mut names, 0x1011), "?!?");
    // Unless other code begins there.
    load(&mut names, 0x1010, 0x10, "Next");
    assert_eq!(text_at(&mut names, 0x1010), "ManagedModule!Shop.Cart.Next(int32)");
    let top = names.address(0, u64::MAX);
    assert_eq!(text(&mut names, top), "?!?");
    load(&mut names, u64::MAX - 4, 0x10, "Last");
    assert_eq!(names.address(0, u64::MAX), top);
}

/// Code that was compiled before the session has no other row.
#[test]
fn an_unload_names_code() {
    let mut names = Names::default();
    let before = names.address(0, 0x1004);
    unload(&mut names, 0x1000, 0x10, "Freed");
    assert_eq!(text_at(&mut names, 0x1004), "?!?");
    assert_eq!(text(&mut names, before), "ManagedModule!Shop.Cart.Freed(int32)");
}

#[test]
fn names_have_a_limit() {
    let mut names = Names::default();
    load_module(&mut names, &"\u{e9}".repeat(10_000), "");
    load(&mut names, 0x1000, 0x10, "Add");
    let long = "m".repeat(20_000);
    assert!(names.perf_map_line(0, &format!("1010 10 int32 [{long}] Add()")));
    load(&mut names, 0x2000, 0x10, &long);
    assert_eq!(text_at(&mut names, 0x2000).len(), "\u{e9}".len() * 127 + "!".len() + 4096);
    let label = names.label(&long);
    assert_eq!(text(&mut names, label).len(), 4096);
    assert_eq!(text_at(&mut names, 0x1000), format!("{}!Shop.Cart.Add(int32)", "\u{e9}".repeat(127)));
    assert_eq!(text_at(&mut names, 0x1010), format!("{}!Add()", &long[..255]));
}

#[test]
fn addresses_are_forgotten_and_names_remain() {
    let mut names = Names::default();
    load(&mut names, 0x1000, 0x10, "Stays");
    for i in 0..300 {
        load(&mut names, 0x2000, 0x10, &format!("Dynamic{i}"));
        for ip in [0x2000, 0x2008] {
            assert_eq!(text_at(&mut names, ip), format!("ManagedModule!Shop.Cart.Dynamic{i}(int32)"));
        }
        if i % 100 == 0 {
            names.forget_addresses();
        }
    }
    names.forget_addresses();
    let texts = [0x1000, 0x2004, 0x3000].map(|ip| text_at(&mut names, ip));
    let [stays, last] = ["Stays", "Dynamic299"].map(|name| format!("ManagedModule!Shop.Cart.{name}(int32)"));
    assert_eq!(texts, [stays, last, "?!?".to_owned()]);
}

#[test]
fn memory_has_a_limit() {
    let mut names = Names::default();
    let long = "m".repeat(4096);
    for i in 0..Names::LIMIT / long.len() + 3 {
        names.perf_map_line(0, &format!("{:x} 10 {long}", 0x1000 + i * 0x10));
    }
    assert_eq!(names.dropped(), 3);
    for ip in 0..Names::ADDRESSES as u64 {
        names.address(0, ip);
    }
    let mut label = || {
        let label = names.label("EventName: A/B");
        let text = text(&mut names, label);
        names.forget_addresses();
        text
    };
    assert_eq!([label(), label()], ["?!?", "EventName: A/B"]);
}

#[test]
fn perf_maps() {
    let mut names = Names::default();
    assert!(names.perf_map_line(0, "1000 10 int32 [app] Shop.Cart::Total(int32[])[OptimizedTier1]\n"));
    assert!(names.perf_map_line(0, "1010 10 stub<1> GenerateLookupStub"));
    assert!(names.perf_map_line(0, "1020 10 [app] Shop.Cart::Add()"));
    for line in ["", "1000", "x 10 name", "1000 10"] {
        assert!(!names.perf_map_line(0, line), "{line}");
    }
    // The trace's own row counts.
    load(&mut names, 0x1030, 0x10, "Known");
    assert!(names.perf_map_line(0, "1038 10 other"));
    let texts = [0x1001, 0x1011, 0x1021, 0x1039].map(|ip| text_at(&mut names, ip));
    let expected = ["app!Shop.Cart::Total(int32[])", "?!stub<1> GenerateLookupStub", "app!Shop.Cart::Add()"];
    assert_eq!(texts[..3], expected);
    assert_eq!(texts[3], "ManagedModule!Shop.Cart.Known(int32)");
    // Only the addresses without a name get one.
    assert!(names.perf_map_line(0, "1000 80 outer"));
    let texts = [0x1001, 0x1039, 0x1040, 0x1047, 0x1050].map(|ip| text_at(&mut names, ip));
    let expected = ["app!Shop.Cart::Total(int32[])", "ManagedModule!Shop.Cart.Known(int32)", "?!other"];
    assert_eq!(texts[..3], expected);
    assert_eq!(texts[3..], ["?!other", "?!outer"]);
    // Of another process nothing is known.
    let other = names.address(1, 0x1001);
    assert_eq!(text(&mut names, other), "?!?");
}

#[test]
fn symbols_of_compiled_code() {
    for (symbol, name) in [
        ("void [Shop] Shop.Cart::Add(int32[])[Tier0]", "Shop!Shop.Cart::Add(int32[])"),
        ("class [System.Runtime]System.String [Shop] Cart::Name()", "Shop!Cart::Name()"),
        ("value class List`1<class [A]B> [Shop] Cart::All()[PreJIT]", "Shop!Cart::All()"),
        ("[Shop] Cart::New()[Optimized Tier1]", "Shop!Cart::New()"),
        ("void [Shop, Version=1.0] Cart::New()", "Shop, Version=1.0!Cart::New()"),
        ("foo(int) [clone .cold.1]", "?!foo(int) [clone .cold.1]"),
        ("operator new[] (unsigned long)", "?!operator new[] (unsigned long)"),
        ("void [] Cart::New()[Tier0]", "?!void [] Cart::New()[Tier0]"),
        ("void [Shop] [Tier0]", "?!void [Shop] [Tier0]"),
    ] {
        let mut names = Names::default();
        assert!(names.perf_map_line(0, &format!("1000 10 {symbol}")));
        assert_eq!(text_at(&mut names, 0x1000), name);
    }
}

#[test]
fn modules_have_the_names_of_their_files() {
    for (path, module) in [
        ("/a/b.dll", "b"),
        ("C:\\x\\y.z.EXE", "y.z"),
        ("name", "name"),
        // The name of a dynamic assembly is no file.
        ("Dynamic.Proxy", "Dynamic.Proxy"),
        ("/a/libc.so.6", "libc.so.6"),
        ("[kernel.kallsyms]", "[kernel.kallsyms]"),
    ] {
        let mut names = Names::default();
        load_module(&mut names, path, "");
        load(&mut names, 0x1000, 0x10, "Add");
        assert_eq!(text_at(&mut names, 0x1000), format!("{module}!Shop.Cart.Add(int32)"));
    }
}
