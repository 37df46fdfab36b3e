//! `--symbols`: the names of types and code of NativeAOT, and of native code, from the symbols of programs.
use std::fs;
use std::path::Path;

use nettrace::{Event, Fields, Metadata, Scalar, Stack, Trace, TraceWriter, Version};
use tempfile::TempDir;

use crate::tool::{Ran, run, run_with};
use crate::traces::{path, put, utf16};

/// The build id of `net11-aot-linux.dbg`, which has the symbols of all types of the snapshot and of five functions.
const BUILD_ID: &str = "0e28593a110399f343913571333a1d767d4a36ed";

fn snapshot() -> String {
    path("../heap/net11-aot-linux.nettrace")
}

fn symbols() -> String {
    path("../heap/net11-aot-linux.dbg")
}

fn heap(symbols: &Path) -> Ran {
    run(&["heap", &snapshot(), "--json", "--symbols", symbols.to_str().unwrap()])
}

#[test]
fn types_have_the_names_of_their_symbols() {
    let output = heap(symbols().as_ref()).well();
    assert_eq!(output.stderr, "");
    let output = output.json();
    let types = output["types"].as_array().unwrap();
    let known = fs::read_to_string(path("../heap/known-counts.json")).unwrap();
    let known: serde_json::Value = serde_json::from_str(&known).unwrap();
    for (name, count) in known.as_object().unwrap() {
        let found = types.iter().find(|of| of["name"] == **name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(
            (&found["count"], &found["module"], &found["own"]),
            (count, &"Workload".into(), &true.into())
        );
    }
    let names: Vec<_> = types.iter().map(|of| of["name"].as_str().unwrap()).collect();
    assert!(names.len() == 599 && !names.iter().any(|name| name.contains("(0x")), "{names:?}");
    let plain: Vec<_> = names.iter().filter(|name| name.starts_with('_')).collect();
    assert!(plain.len() == 20 && plain.iter().all(|name| name.starts_with("__GCStaticEEType_")), "{plain:?}");
    let generic = "System.Collections.Generic.Dictionary<System.String,LabHeap.Entry>";
    assert!(names.contains(&generic) && names.contains(&"LabHeap.Build+<>c__DisplayClass21_0"), "{names:?}");

    let without = run(&["heap", &snapshot()]);
    assert!(without.stderr.contains("--symbols reads them from the .dbg"), "{}", without.stderr);
}

#[test]
fn symbols_are_searched_by_build_id() {
    let folder = TempDir::new().unwrap();
    let is_named = |folder: &Path| heap(folder).text().contains("LabHeap.Node");
    let none = heap(folder.path());
    assert!(
        none.status == Some(8) && none.stderr.contains("has no file with the symbols"),
        "{}",
        none.stderr
    );
    assert!(none.stderr.contains(BUILD_ID), "{}", none.stderr);
    fs::write(folder.path().join("readme.txt"), "no symbols").unwrap();
    let file = folder.path().join("any.name");
    fs::copy(symbols(), &file).unwrap();
    assert!(is_named(folder.path()));
    let (begin, rest) = BUILD_ID.split_at(2);
    for parent in [folder.path().join(".build-id").join(begin), folder.path().join(begin)] {
        fs::create_dir_all(&parent).unwrap();
        let by_id = parent.join(format!("{rest}.debug"));
        fs::rename(&file, &by_id).unwrap();
        assert!(is_named(folder.path()));
        fs::rename(&by_id, &file).unwrap();
    }
}

#[test]
fn other_files_are_refused() {
    let folder = TempDir::new().unwrap();
    let place = folder.path().join("file");
    let good = fs::read(symbols()).unwrap();
    let id = good.windows(4).position(|bytes| *bytes == [0x0e, 0x28, 0x59, 0x3a]).unwrap();
    let mut other = good.clone();
    other[id] = 0xff;
    let mut broken = good.clone();
    broken[0x28..0x30].fill(0xee);
    let elf = |bytes: &[u8]| bytes.to_vec();
    for (bytes, status, text) in [
        (other, 8, "has the symbols of another program: its build ID is \\\"ff28593a"),
        (broken, 1, "cannot read"),
        (elf(&good[..4]), 1, "cannot read"),
        (elf(b"Microsoft C/C++ MSF 7.00\r\n"), 5, "is a PDB"),
        (elf(b"MZ\x90"), 5, "is a program of Windows, whose symbols are in a PDB"),
        (elf(b"\xcf\xfa\xed\xfe"), 5, "is a file of macOS"),
        (elf(b""), 5, "is no ELF file"),
    ] {
        fs::write(&place, bytes).unwrap();
        let output = heap(&place);
        assert_eq!(output.status, Some(status), "{}", output.stderr);
        assert!(output.stderr.contains(text), "{}", output.stderr);
    }
    let bundle = folder.path().join("Shop.dSYM");
    fs::create_dir(&bundle).unwrap();
    assert!(heap(&bundle).stderr.contains("is a dSYM of macOS"));
    assert_eq!(heap(&folder.path().join("none")).status, Some(1));
}

/// The place of the program in memory.
const BASE: u64 = 0x5555_0000_0000;
/// Addresses of the functions `Workload_LabHeap_Build__Grow` and `_ZN3WKS7gc_heap11set_gc_doneEv`.
const CODE: [u64; 2] = [0x33_efc4, 0x18_ee10];

/// The id and the name of an event, its fields and its payload.
type Row<'a> = (u32, &'a str, &'a [(&'a str, Scalar)], Vec<u8>);

/// Returns a trace of a sample with a stack at [`CODE`], in which one event describes the program.
fn trace(provider: &str, events: &[Row<'_>]) -> Vec<u8> {
    let (mut buf, mut trace) = (vec![0; 64 << 10], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    put!(trace, writer.describe(&Metadata::new(1, "Microsoft-DotNETCore-SampleProfiler", 0, "")));
    for (metadata_id, (event_id, name, fields, _)) in (2..).zip(events) {
        let mut space = [0; 512];
        let mut metadata = Metadata::new(metadata_id, provider, *event_id, name);
        metadata.fields = Fields::build(fields, &mut space).unwrap();
        put!(trace, writer.describe(&metadata));
    }
    let bytes: Vec<u8> = CODE.iter().flat_map(|address| (BASE + address).to_le_bytes()).collect();
    put!(trace, writer.stack(&Stack { id: 1, bytes: &bytes }));
    let managed = 2_u32.to_le_bytes().to_vec();
    let rows = events.iter().map(|(.., payload)| payload);
    for (number, payload) in (1..).zip([&managed].into_iter().chain(rows)) {
        let event = Event {
            metadata_id: number,
            sequence: number,
            thread: 1,
            stack_id: 1,
            payload,
            ..Event::default()
        };
        put!(trace, writer.event(&event));
    }
    trace.extend_from_slice(&writer.finish());
    trace
}

fn report(trace: &[u8]) -> String {
    let named = run_with(&["report", "-", "--tree", "--symbols", &symbols()], trace).well();
    assert!(!run_with(&["report", "-", "--tree"], trace).well().text().contains("Grow"));
    named.into_text()
}

/// Returns a trace of the program at a path.
fn native_program(path: &str) -> Vec<u8> {
    trace("Microsoft-Windows-DotNETRuntimeRundown", &[module(154, path)])
}

/// Returns the event that describes the program at a path.
fn module(event_id: u32, path: &str) -> Row<'static> {
    let start = [BASE.to_le_bytes(), [0; 8], [2, 0, 0, 0, 0, 0, 0, 0]].concat();
    let paths = [utf16(""), utf16(path), vec![0; 2]].concat();
    let pdb = [vec![0; 20], utf16("")].concat();
    (event_id, "", &[], [start, paths, pdb.clone(), pdb, utf16(&BUILD_ID.to_uppercase())].concat())
}

#[test]
fn code_of_a_native_program_has_the_names_of_its_symbols() {
    let text = report(&native_program("/no/such/Workload"));
    assert!(text.contains("Workload!LabHeap.Build.Grow"), "{text}");
    assert!(text.contains("Workload!_ZN3WKS7gc_heap11set_gc_doneEv"), "{text}");
}

#[test]
fn every_command_names_the_frames_of_stacks() {
    let wait: Row<'_> = (81, "", &[], vec![0; 3]);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("x.nettrace");
    fs::write(&file, trace("Microsoft-Windows-DotNETRuntime", &[module(152, "/no/such/Workload"), wait]))
        .unwrap();
    let file = file.to_str().unwrap();
    for command in [
        &["events", file, "--stacks"][..],
        &["locks", file, "--json"],
        &["flame", file, "-o", "-", "--format", "folded"],
        &["report", file, "--tree", "--event", "Microsoft-Windows-DotNETRuntime/81"],
    ] {
        assert!(!run(command).text().contains("Grow"), "{command:?}");
        let named = run(&[command, &["--symbols", &symbols()]].concat());
        assert!(named.text().contains("Workload!LabHeap.Build.Grow"), "{command:?}: {named:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_trace_uses_only_files_of_its_build_id() {
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("Workload");
    let trace = native_program(program.to_str().unwrap());
    let is_named = || {
        run_with(&["report", "-", "--tree"], &*trace).well().text().contains("Workload!LabHeap.Build.Grow")
    };
    assert!(!is_named());
    // Reading a pipe would block.
    let made = std::process::Command::new("mkfifo").arg(&program).status().unwrap();
    assert!(made.success() && !is_named());
    let symbols = fs::read(symbols()).unwrap();
    let beside = folder.path().join("Workload.dbg");
    fs::write(&beside, &symbols).unwrap();
    assert!(is_named());
    let mut other = symbols;
    let id = other.windows(4).position(|bytes| *bytes == [0x0e, 0x28, 0x59, 0x3a]).unwrap();
    other[id] = 0;
    fs::write(&beside, other).unwrap();
    assert!(!is_named());
}

#[test]
fn mapped_native_code_has_the_names_of_its_symbols() {
    const NUMBERS: [&str; 5] = ["Id", "StartAddress", "EndAddress", "FileOffset", "MetadataId"];
    let numbers =
        |numbers: &[u64]| -> Vec<u8> { numbers.iter().flat_map(|number| number.to_le_bytes()).collect() };
    // The code is one page further in memory than in the file, as the program's headers state.
    let place = numbers(&[1, BASE + 0x17_9000, BASE + 0x3b_efff, 0x17_8000, 7]);
    let mapping = [place, utf16("/no/such/Workload")].concat();
    let elf = format!(r#"{{"type":"ELF","build_id":"{BUILD_ID}","p_vaddr":1547536,"p_offset":1543440}}"#);
    let metadata = [numbers(&[7]), utf16(&elf)].concat();
    let of_mapping =
        NUMBERS.map(|name| (name, Scalar::UInt64)).into_iter().chain([("FileName", Scalar::Utf16String)]);
    let of_mapping: Vec<_> = of_mapping.collect();
    let of_metadata = [("Id", Scalar::UInt64), ("SymbolMetadata", Scalar::Utf16String)];
    let events: [Row<'_>; 2] =
        [(3, "ProcessMapping", &of_mapping, mapping), (5, "ProcessMappingMetadata", &of_metadata, metadata)];
    let text = report(&trace("Universal.System", &events));
    assert!(text.contains("Workload!LabHeap.Build.Grow"), "{text}");
    assert!(text.contains("Workload!_ZN3WKS7gc_heap11set_gc_doneEv"), "{text}");
}
