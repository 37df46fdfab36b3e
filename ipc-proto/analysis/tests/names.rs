//! Names of frames, against the names of TraceLog (see testdata/README.md), and stacks by name.
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
    AssemblerStep, Event, EventAssembler, EventOrder, Fields, Metadata, ReadOptions, Scalar, Trace,
    TraceEvent, TraceWriter, Version,
};
use nettrace_analysis::names::{Names, NativeSymbol};
use nettrace_analysis::{KnownProvider, StackId, Stacks};

use crate::runtime_events::Written;

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/analysis").join(name)
}

fn for_each_event(bytes: &[u8], in_order: bool, mut f: impl FnMut(&TraceEvent<'_>)) {
    let order = if in_order { EventOrder::BY_TIME } else { EventOrder::Stream };
    let mut assembler = EventAssembler::new(order, ReadOptions::default());
    assembler.push(bytes);
    while let AssemblerStep::Event(event) = assembler.step() {
        f(&event);
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

/// Methods that differ only in module or arguments are one frame, and unknown frames stay unknown.
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

/// Returns the row of a method.
fn method(start: u64, name: &str) -> Vec<u8> {
    let mut payload: Vec<u8> = [1, 7, start].iter().flat_map(|number: &u64| number.to_le_bytes()).collect();
    payload.extend([0x10_u32, 0, 8].iter().flat_map(|number| number.to_le_bytes()));
    let texts = ["", name, "void ()"].map(|text| text.encode_utf16().chain([0]).collect::<Vec<u16>>());
    payload.extend(texts.concat().iter().flat_map(|unit| unit.to_le_bytes()));
    payload
}

/// Dynamic methods: the addresses of one method are used again for another method.
#[test]
fn equal_stacks_of_different_code() {
    const LOAD: (u32, u32) = (143, 1);
    const UNLOAD: (u32, u32) = (144, 1);
    const THROWN: (u32, u32) = (80, 1);
    let mut trace = Written::new();
    trace.event(1, 1, LOAD, &method(0x1000, "First"));
    trace.event(2, 1, THROWN, &[]).stack(&[0x1004]);
    trace.event(3, 1, THROWN, &[]).stack(&[0x1004]);
    trace.event(4, 1, UNLOAD, &method(0x1000, "First"));
    trace.event(5, 1, LOAD, &method(0x1000, "Second"));
    trace.event(6, 1, THROWN, &[]).stack(&[0x1004]);
    // A load at other boundaries replaces the code, too, without an unload.
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
        let text = match *name {
            "ProcessMapping" => "FileName",
            "ProcessMappingMetadata" => "SymbolMetadata",
            _ => "Name",
        };
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
        // The record of a kernel whose table of symbols is empty.
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

/// A file of native code is loaded with another distance between its addresses and its offsets than in its symbols.
#[test]
fn native_code_has_the_names_of_its_symbols() {
    let mapping = |id, start, metadata| {
        let place = [("StartAddress", start), ("EndAddress", start + 0xfff), ("FileOffset", 0x2000)];
        [&[("Id", id), ("MetadataId", metadata)][..], &place].concat()
    };
    let described = r#"{"type":"ELF","build_id":"ABcd","p_vaddr":"0x5d10","p_offset":8192}"#;
    let rows: [Row<'_>; 5] = [
        ("ProcessMapping", &mapping(1, 0x10_0000, 7), "/usr/lib/libshop.so"),
        ("ProcessMappingMetadata", &[("Id", 7)], described),
        ("ProcessMapping", &mapping(2, 0x20_0000, 9), "/usr/lib/libother.so"),
        ("ProcessMappingMetadata", &[("Id", 9)], r#"{"type":"PE","name":"other"}"#),
        (
            "ProcessSymbol",
            &[("MappingId", 1), ("StartAddress", 0x10_0000), ("EndAddress", 0x10_000f)],
            "start",
        ),
    ];
    let mut names = Names::default();
    for_each_event(&system_trace(&rows), false, |event| names.event(event));
    let ips = [0x10_0004, 0x10_0104, 0x10_0120, 0x10_0f00, 0x20_0000, 0x30_0000];
    let addresses = ips.map(|ip| names.address(0, ip));
    let images = names.native_images();
    let [image] = &images[..] else { panic!("{images:?}") };
    assert_eq!((&*image.path, &*image.build_id, image.is_relative), ("/usr/lib/libshop.so", "abcd", false));
    assert_eq!(image.wanted, [0x5103, 0x5104, 0x511f, 0x5120, 0x5eff, 0x5f00].into());
    let symbol = |start, name: &str| NativeSymbol { start, size: 0x20, name: name.into() };
    names.native_symbols(image, &[symbol(0x5100, "shop_total"), symbol(u64::MAX, "far")]);
    let frames = addresses.map(|address| names.frame(address));
    let texts = frames.map(|frame| names.text(frame));
    let shop = "libshop.so!shop_total";
    assert_eq!(texts, ["libshop.so!start", shop, shop, "libshop.so!?", "libother.so!?", "?!?"]);
    assert!(!names.is_own(frames[1]) && names.native_images().is_empty());
    // Later addresses are new.
    let address = names.address(0, 0x10_0ff8);
    let images = names.native_images();
    names.native_symbols(&images[0], &[symbol(0x5ff8, "S_P_CoreLib_System_Math__Abs")]);
    let frame = names.frame(address);
    assert_eq!(names.text(frame), "System.Private.CoreLib!System.Math.Abs");
}

/// A program that was compiled ahead of time is a module without an assembly, whose id is its address. Other bytes follow
/// its path.
#[test]
fn a_native_program_has_the_names_of_its_symbols() {
    const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
    let text = |text: &str| text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let mut module: Vec<u8> = [0x55_0000_u64, 0].iter().flat_map(|number| number.to_le_bytes()).collect();
    module.extend([2, 0, 0, 0, 0, 0, 0, 0]);
    module.extend([text(""), text("/srv/Shop.Web\u{56f1}\u{84f2}"), vec![0; 2]].concat());
    module.extend([vec![0; 20], text("NULL"), vec![0; 20], text(""), text("0E28")].concat());
    let mut trace = Written::new();
    trace.event_of(RUNDOWN, 1, 1, (154, 3), &module);
    let mut names = Names::default();
    for_each_event(&trace.bytes(), false, |event| names.event(event));
    let address = names.address(0, 0x55_1004);
    names.address(0, 0x54_0000);
    let images = names.native_images();
    let [image] = &images[..] else { panic!("{images:?}") };
    assert_eq!((&*image.path, &*image.build_id, image.is_relative), ("/srv/Shop.Web", "0e28", true));
    assert_eq!(image.wanted, [0x1003, 0x1004].into());
    names.native_symbols(
        image,
        &[NativeSymbol { start: 0x1000, size: 8, name: "Shop_Web_Shop_Cart__Total".into() }],
    );
    let frame = names.frame(address);
    assert_eq!((names.text(frame), names.is_own(frame)), ("Shop.Web!Shop.Cart.Total", true));
}

/// The event ids of the rundown at the start of a session are one less than the ids of the rundown at its end. A
/// rundown names modules after their methods.
#[test]
fn a_rundown_names_methods_and_modules() {
    const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
    let mut module: Vec<u8> = [7_u64, 1].iter().flat_map(|number| number.to_le_bytes()).collect();
    module.extend([0; 8]);
    module.extend("/shop/Shop.dll".encode_utf16().chain([0, 0]).flat_map(u16::to_le_bytes));
    for (methods, modules) in [((143, 1), (153, 2)), ((144, 1), (154, 2))] {
        let mut trace = Written::new();
        trace.event(1, 1, (80, 1), &[]).stack(&[0x1004]);
        trace.event_of(RUNDOWN, 2, 1, methods, &method(0x1000, "Total"));
        trace.event_of(RUNDOWN, 3, 1, modules, &module);
        let named = named_stacks(&trace.bytes(), true);
        assert_eq!(named, [("shop!Total()".to_owned(), 1)].into(), "{methods:?}");
    }
}
