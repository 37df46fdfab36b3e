//! The properties with random input.
#![allow(clippy::arithmetic_side_effects, reason = "a property that does not hold panics")]
use ipc_std_fuzz::{
    analysis_work, collections, conformance_case, counters, gcdump, heap, http_exchange, names, options,
    proc_files, profiles, socket_names, trace_reader, wire_log,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Bytes, or text of the characters that the parsers know.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let text = "[0-9a-fA-FxX+:,=/#.|\"{}\\[\\] smhd_-]{0,60}".prop_map(String::into_bytes);
    prop_oneof![vec(any::<u8>(), 0..200), text]
}

/// A part of a request of HTTP.
fn http_part() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&[u8]> = vec![
        b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.0\n\n",
        b"HEAD / HTTP/1.1\r\n",
        b"GET http://[::1]:1/metrics?x HTTP/1.1\r\n",
        b"OPTIONS * HTTP/1.1\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"Host: localhost\r\n",
        b"Host: b\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 99999999999999999999\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"X: y\r\n",
        b"\r\n",
        b"\n",
        b"\r",
    ];
    let known = prop::sample::select(known).prop_map(<[u8]>::to_vec);
    let long = (0..3000_usize).prop_map(|n| vec![b'x'; n]);
    prop_oneof![8 => known, 1 => vec(any::<u8>(), 0..20), 1 => long]
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
    fn heap_holds(bytes in vec(any::<u8>(), 0..400)) {
        heap(&bytes);
    }

    #[test]
    fn gcdump_holds(bytes in vec(prop_oneof![any::<u8>(), 0..16_u8], 0..200)) {
        gcdump(&bytes);
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
    fn http_exchange_holds(sizes in vec(any::<u8>(), 8), parts in vec(http_part(), 0..20)) {
        http_exchange(&[sizes, parts.concat()].concat());
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
