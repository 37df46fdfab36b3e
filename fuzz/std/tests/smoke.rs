//! The properties over stored inputs, each also with a byte changed or the end cut off.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test may panic"
)]
use std::fs;

use ipc_fuzz::{Property, holds};
use ipc_std_fuzz::{
    analysis_work, collections, conformance_case, counters, gcdump, heap, http_exchange, names, options,
    proc_files, profiles, socket_names, trace_reader, wire_log,
};

/// Every property with its name. Its fuzz target has the same name.
const PROPERTIES: [(&str, Property); 14] = [
    ("analysis_work", analysis_work),
    ("collections", collections),
    ("conformance_case", conformance_case),
    ("counters", counters),
    ("gcdump", gcdump),
    ("heap", heap),
    ("http_exchange", http_exchange),
    ("names", names),
    ("options", options),
    ("proc_files", proc_files),
    ("profiles", profiles),
    ("socket_names", socket_names),
    ("trace_reader", trace_reader),
    ("wire_log", wire_log),
];

/// The inputs that fuzzing has found, and inputs that once failed.
#[test]
fn stored_inputs_hold() {
    ipc_fuzz::assert_stored_inputs_hold(&PROPERTIES);
}

/// At most 40 inputs of each property, from the shortest to the longest, cut off and with a changed byte. At most 4 of
/// the property that needs half a second for each.
#[test]
fn damaged_inputs_hold() {
    for (name, property) in PROPERTIES {
        let inputs = ipc_testdata::corpus(name);
        let most = if name == "analysis_work" { 4 } else { 40 };
        for (input, line) in inputs.iter().zip(1..).step_by(inputs.len().div_ceil(most)) {
            for at in (0..input.len()).step_by(1 + input.len() / 40) {
                let place = format!("testdata/corpus/{name}.txt, line {line}, byte {at}");
                assert!(holds(property, &input[..at]), "{place}, cut");
                for flip in [0x01, 0x04, 0x80] {
                    let mut input = input.to_vec();
                    input[at] ^= flip;
                    assert!(holds(property, &input), "{place} ^ {flip}");
                }
            }
        }
    }
}

#[test]
fn every_case_is_valid() {
    let text =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/conformance/cases.jsonl"));
    let text = text.unwrap();
    assert!(text.lines().count() > 500);
    text.lines().for_each(|line| conformance_case(line.as_bytes()));
}

/// Whole traces, in pieces with every kind of error.
#[test]
fn traces_are_read_in_pieces() {
    for trace in ipc_testdata::TRACES.iter().filter(|trace| trace.bytes.len() < 100_000) {
        trace_reader(&[&[0x1f, 0x27, 0x30, 0x0f, 0x02, 0x11, 0x00, 0x0f], trace.bytes].concat());
    }
}

/// Each property is a fuzz target, and each fuzz target is a property.
#[test]
fn every_property_is_a_target() {
    ipc_fuzz::assert_targets_are(&PROPERTIES, env!("CARGO_MANIFEST_DIR"), "ipc_std_fuzz");
}

/// A stored input has the name of a property, because otherwise no test would read it.
#[test]
fn stored_inputs_have_the_name_of_a_property() {
    let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
    for folder in ["corpus", "regressions"] {
        for found in fs::read_dir(format!("{testdata}/{folder}")).unwrap() {
            let found = found.unwrap().path();
            let name = found.file_stem().unwrap();
            let mut properties = ipc_fuzz::PROPERTIES.iter().chain(&PROPERTIES);
            assert!(properties.any(|(property, _)| name == *property), "{}", found.display());
        }
    }
}
