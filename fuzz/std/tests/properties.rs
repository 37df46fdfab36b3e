//! The properties with random input.
#![allow(clippy::arithmetic_side_effects, reason = "a property that does not hold panics")]
use ipc_std_fuzz::{
    analysis_work, collections, conformance_case, counters, names, options, proc_files, profiles,
    socket_names, trace_reader, wire_log,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Bytes, or text of the characters that the parsers know.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let text = "[0-9a-fA-FxX+:,=/#.|\"{}\\[\\] smhd_-]{0,60}".prop_map(String::into_bytes);
    prop_oneof![vec(any::<u8>(), 0..200), text]
}

/// A description of a trace of the runtime, many of whose events have stacks.
fn description() -> impl Strategy<Value = Vec<u8>> {
    let event = (prop_oneof![any::<u8>(), 0..7_u8], vec(any::<u8>(), 0..20))
        .prop_map(|(kind, parts)| [&[kind][..], &parts].concat());
    (any::<u8>(), vec(event, 0..60)).prop_map(|(choice, events)| [&[choice][..], &events.concat()].concat())
}

/// A description of a trace in which everything is repeated.
fn parts() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 1..60)
}

/// A description of pieces, and a trace with a part of it replaced.
fn trace() -> impl Strategy<Value = Vec<u8>> {
    let traces: Vec<&[u8]> =
        ipc_testdata::TRACES.iter().map(|trace| trace.bytes).filter(|bytes| bytes.len() < 20_000).collect();
    (vec(any::<u8>(), 8), any::<prop::sample::Index>(), any::<prop::sample::Index>(), vec(any::<u8>(), 0..3))
        .prop_map(move |(schedule, trace, at, damage)| {
            let mut bytes = trace.get(&traces).to_vec();
            let at = at.index(bytes.len());
            bytes.splice(at..(at + damage.len()).min(bytes.len()), damage);
            [schedule, bytes].concat()
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn names_holds(bytes in description()) {
        names(&bytes);
    }

    #[test]
    fn collections_holds(bytes in description()) {
        collections(&bytes);
    }

    #[test]
    fn counters_holds(bytes in description()) {
        counters(&bytes);
    }

    #[test]
    fn profiles_holds(bytes in description()) {
        profiles(&bytes);
    }

    #[test]
    fn conformance_case_holds(bytes in input()) {
        conformance_case(&bytes);
    }

    #[test]
    fn options_holds(bytes in input()) {
        options(&bytes);
    }

    #[test]
    fn proc_files_holds(bytes in input()) {
        proc_files(&bytes);
    }

    #[test]
    fn socket_names_holds(bytes in prop_oneof![input(), "[0-9]{1,12}-[0-9]{1,21}".prop_map(String::into_bytes)]) {
        socket_names(&bytes);
    }

    #[test]
    fn wire_log_holds(bytes in input()) {
        wire_log(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn analysis_work_holds(bytes in parts()) {
        analysis_work(&bytes);
    }

    #[test]
    fn trace_reader_holds(bytes in trace()) {
        trace_reader(&bytes);
    }
}
