//! Names of methods by the rows of the runtime and by perf maps: the time for which a name is valid, its length, and
//! its spelling.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test states what it expects by unwrapping it"
)]
mod runtime_events;

use nettrace_analysis::names::{AddressId, Names};

use crate::runtime_events::{Written, each_event};

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// Passes an event of the runtime.
fn event(names: &mut Names, id: (u32, u32), payload: &[u8]) {
    each_event(&Written::new().event(1, 1, id, payload).bytes(), |event| names.event(event));
}

/// Returns the row of a method of module 7.
fn method(start: u64, size: u32, name: &str) -> Vec<u8> {
    let mut row: Vec<u8> = [1, 7, start].iter().flat_map(|number: &u64| number.to_le_bytes()).collect();
    row.extend([size, 0, 8].iter().flat_map(|number| number.to_le_bytes()));
    row.extend(["Shop.Cart", name, "instance void  (int32)"].map(utf16).concat());
    row
}

/// MethodLoadVerbose.
fn load(names: &mut Names, start: u64, size: u32, name: &str) {
    event(names, (143, 1), &method(start, size, name));
}

/// MethodUnloadVerbose.
fn unload(names: &mut Names, start: u64, size: u32, name: &str) {
    event(names, (144, 1), &method(start, size, name));
}

/// ModuleLoad, of module 7.
fn load_module(names: &mut Names, path: &str, native_path: &str) {
    let mut row: Vec<u8> = [7_u64, 1, 0].iter().flat_map(|number| number.to_le_bytes()).collect();
    row.extend([path, native_path].map(utf16).concat());
    event(names, (152, 2), &row);
}

fn text(names: &mut Names, address: AddressId) -> String {
    let frame = names.frame(address);
    names.text(frame).into()
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
    // Another module gets the id.
    load_module(&mut names, "/shop/Other.ni.dll", "/shop/Other.ni.dll");
    load(&mut names, 0x2000, 0x10, "Add");
    let other = names.address(0, 0x2000);
    assert_eq!(text(&mut names, other), "Other!Shop.Cart.Add(int32)");
    assert_eq!(text(&mut names, address), "Shop.App!Shop.Cart.Add(int32)");
}

#[test]
fn an_address_has_the_name_of_its_time() {
    let mut names = Names::default();
    load_module(&mut names, "/shop.dll", "");
    load(&mut names, 0x1000, 0x20, "First");
    let first = names.address(0, 0x1010);
    unload(&mut names, 0x1000, 0x20, "First");
    // After the unload, the address has no name for a while.
    let nothing = names.address(0, 0x1018);
    assert_eq!(text(&mut names, nothing), "?!?");
    load(&mut names, 0x1000, 0x10, "Second");
    // New code replaces the old one without an unload.
    let second = names.address(0, 0x1008);
    load(&mut names, 0x1008, 0x10, "Third");
    let third = names.address(0, 0x1008);
    let texts = [first, second, third].map(|address| text(&mut names, address));
    let expected = ["First", "Second", "Third"].map(|name| format!("shop!Shop.Cart.{name}(int32)"));
    assert_eq!(texts, expected);
    assert_ne!(second, third);
    // The same row again, as the rundown has it, changes nothing.
    load(&mut names, 0x1008, 0x10, "Third");
    assert_eq!(names.address(0, 0x1008), third);
}

#[test]
fn a_return_address_can_be_the_end_of_the_code() {
    let mut names = Names::default();
    load(&mut names, 0x1000, 0x10, "Throw");
    let [end, after] = [0x1010, 0x1011].map(|ip| names.address(0, ip));
    assert_eq!(text(&mut names, end), "ManagedModule!Shop.Cart.Throw(int32)");
    assert_eq!(text(&mut names, after), "?!?");
    // If other code begins at the address, the address has the name of that code.
    load(&mut names, 0x1010, 0x10, "Next");
    assert_eq!(text(&mut names, end), "ManagedModule!Shop.Cart.Next(int32)");
    let top = names.address(0, u64::MAX);
    assert_eq!(text(&mut names, top), "?!?");
    load(&mut names, u64::MAX - 4, 0x10, "Last");
    assert_eq!(names.address(0, u64::MAX), top);
}

#[test]
fn names_have_a_limit() {
    let mut names = Names::default();
    load_module(&mut names, &"\u{e9}".repeat(20_000), "");
    load(&mut names, 0x1000, 0x10, "Add");
    let long = "m".repeat(20_000);
    assert!(names.perf_map_line(0, &format!("1010 10 int32 [{long}] Add()")));
    load(&mut names, 0x2000, 0x10, &long);
    let [add, other, method] = [0x1000, 0x1010, 0x2000].map(|ip| names.address(0, ip));
    let [method, label] = [method, names.label(&long)].map(|address| text(&mut names, address).len());
    assert_eq!((method, label), ("\u{e9}".len() * 127 + "!".len() + 4096, 4096));
    let addresses = [add, other];
    let texts = addresses.map(|address| text(&mut names, address));
    let expected =
        [format!("{}!Shop.Cart.Add(int32)", "\u{e9}".repeat(127)), format!("{}!Add()", &long[..255])];
    assert_eq!(texts, expected);
}

/// Code that was compiled before the session has no other row.
#[test]
fn an_unload_names_code() {
    let mut names = Names::default();
    let before = names.address(0, 0x1004);
    unload(&mut names, 0x1000, 0x10, "Freed");
    let after = names.address(0, 0x1004);
    assert_eq!(text(&mut names, before), "ManagedModule!Shop.Cart.Freed(int32)");
    assert_eq!(text(&mut names, after), "?!?");
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
    // A row of the trace takes precedence over the perf map.
    load(&mut names, 0x1030, 0x10, "Known");
    assert!(names.perf_map_line(0, "1038 10 other"));
    let addresses = [0x1001, 0x1011, 0x1021, 0x1039].map(|ip| names.address(0, ip));
    let texts = addresses.map(|address| text(&mut names, address));
    let expected = ["app!Shop.Cart::Total(int32[])", "?!stub<1> GenerateLookupStub", "app!Shop.Cart::Add()"];
    assert_eq!(texts[..3], expected);
    assert_eq!(texts[3], "ManagedModule!Shop.Cart.Known(int32)");
    // The perf map names only addresses that have no name.
    assert!(names.perf_map_line(0, "1000 80 outer"));
    let addresses = [0x1001, 0x1039, 0x1040, 0x1047, 0x1050].map(|ip| names.address(0, ip));
    let texts = addresses.map(|address| text(&mut names, address));
    let expected = ["app!Shop.Cart::Total(int32[])", "ManagedModule!Shop.Cart.Known(int32)", "?!other"];
    assert_eq!(texts[..3], expected);
    assert_eq!(texts[3..], ["?!other", "?!outer"]);
    // The perf map of one process names no addresses of another one.
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
        let address = names.address(0, 0x1000);
        assert_eq!(text(&mut names, address), name);
    }
}

#[test]
fn file_names() {
    for (path, module) in [
        ("/a/b.dll", "b"),
        ("C:\\x\\y.z.EXE", "y.z"),
        ("name", "name"),
        // The name of a dynamic assembly is not a path.
        ("Dynamic.Proxy", "Dynamic.Proxy"),
        ("/a/libc.so.6", "libc.so.6"),
        ("[kernel.kallsyms]", "[kernel.kallsyms]"),
        ("", "ManagedModule"),
    ] {
        let mut names = Names::default();
        load_module(&mut names, path, "");
        load(&mut names, 0x1000, 0x10, "Add");
        let address = names.address(0, 0x1000);
        assert_eq!(text(&mut names, address), format!("{module}!Shop.Cart.Add(int32)"));
    }
}

/// Replaced code takes no memory if no address of it was seen, or if the addresses were forgotten.
#[test]
fn replaced_code_takes_no_memory() {
    let mut trace = Written::new();
    for i in 0..10_000 {
        trace.event(i, 1, (143, 1), &method(0x2000, 0x10, &format!("Dynamic{i}")));
    }
    let trace = trace.bytes();
    for is_seen in [false, true] {
        let (mut names, mut count) = (Names::default(), 0);
        load(&mut names, 0x1000, 0x10, "Stays");
        each_event(&trace, |event| {
            names.event(event);
            if is_seen {
                // Two addresses in each method have the same name.
                let texts = [0x2000, 0x2008].map(|ip| names.address(0, ip)).map(|id| text(&mut names, id));
                assert_eq!(texts, [(); 2].map(|()| format!("ManagedModule!Shop.Cart.Dynamic{count}(int32)")));
            }
            count += 1;
            if is_seen && count % 100 == 0 {
                names.forget_addresses();
            }
        });
        // The debug output has everything that is stored. The texts of all code alone would be 280,000 bytes.
        let stored = format!("{names:?}").len();
        assert!(stored < 200_000, "{stored}");
        let addresses = [0x1000, 0x2004, 0x3000].map(|ip| names.address(0, ip));
        let texts = addresses.map(|address| text(&mut names, address));
        let [stays, last] =
            ["Stays", "Dynamic9999"].map(|name| format!("ManagedModule!Shop.Cart.{name}(int32)"));
        assert_eq!(texts, [stays, last, "?!?".to_owned()]);
    }
}

/// The ids of addresses in replaced code change, and those of addresses near it do not.
#[test]
fn neighbours_of_replaced_code() {
    let mut names = Names::default();
    load(&mut names, 0x2000, 4, "First");
    load(&mut names, 0x2004, 0x1c, "Second");
    let seen: Vec<_> = (0x2000..0x2010).map(|ip| (ip, names.address(0, ip), names.address(1, ip))).collect();
    load(&mut names, 0x2000, 4, "Third");
    for (ip, before, of_other_process) in seen {
        let [old, new] = if ip < 0x2004 { ["First", "Third"] } else { ["Second"; 2] };
        let after = names.address(0, ip);
        assert_eq!(after == before, old == new, "{ip:x}");
        let texts = [before, after].map(|address| text(&mut names, address));
        assert_eq!(texts, [old, new].map(|name| format!("ManagedModule!Shop.Cart.{name}(int32)")));
        assert_eq!(names.address(1, ip), of_other_process);
    }
}

#[test]
fn memory_has_a_limit() {
    let mut names = Names::default();
    let long = "m".repeat(4096);
    let fit = Names::LIMIT / long.len();
    for i in 0..fit + 3 {
        names.perf_map_line(0, &format!("{:x} 10 {long}", 0x1000 + i * 0x10));
    }
    assert_eq!(names.dropped(), 3);
    for ip in 0..Names::ADDRESSES as u64 {
        names.address(0, ip);
    }
    for address in [names.address(0, u64::MAX), names.label("EventName: A/B")] {
        assert_eq!(text(&mut names, address), "?!?");
    }
}

/// The names of rows are stored as they are, until they need much memory; a long row always becomes text.
#[test]
fn rows_in_each_form_have_the_same_names() {
    // More than 16 MiB of rows.
    const METHODS: u64 = 30_000;
    let filler = "m".repeat(300);
    let name = |i: u64| format!("{filler}{i}");
    let mut trace = Written::new();
    for i in 0..METHODS {
        trace.event(i, 1, (143, 1), &method(0x1000 + i * 0x10, 0x10, &name(i)));
    }
    let mut names = Names::default();
    each_event(&trace.bytes(), |event| names.event(event));
    let last = METHODS - 1;
    for i in [0, last] {
        let address = names.address(0, 0x1000 + i * 0x10);
        assert_eq!(text(&mut names, address), format!("ManagedModule!Shop.Cart.{}(int32)", name(i)));
        load(&mut names, 0x1000 + i * 0x10, 0x10, &name(i));
        assert_eq!(names.address(0, 0x1000 + i * 0x10), address, "the same row changes nothing");
    }
    for len in [4000, 5000] {
        let mut names = Names::default();
        load(&mut names, 0x1000, 0x10, &"n".repeat(len));
        let address = names.address(0, 0x1000);
        let expected = format!("Shop.Cart.{}(int32)", "n".repeat(len));
        let expected = format!("ManagedModule!{}", expected.get(..4096).unwrap_or(&expected));
        assert_eq!(text(&mut names, address), expected);
        load(&mut names, 0x1000, 0x10, &"n".repeat(len));
        assert_eq!(names.address(0, 0x1000), address, "the same row changes nothing");
    }
}
