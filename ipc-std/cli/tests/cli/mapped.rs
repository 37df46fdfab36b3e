//! Tests of `--map`: a trace that is read in place has the same results.
use std::fs;
use std::path::Path;

use crate::tool::run;

/// Runs commands on a trace with and without `--map`.
fn check(file: &str) {
    for args in [
        &["report", file][..],
        &["report", file, "--event", "all", "--json"],
        &["events", file],
        &["events", file, "--json", "--stacks"],
        &["events", file, "--ordered"],
        &["events", file, "--from", "1ms"],
        &["convert", file, "-o", "-", "--format", "folded"],
        &["gc", file, "--json"],
        &["jit", file, "--json"],
        &["locks", file, "--json"],
        &["stats", file, "--digest"],
        &["stats", file, "--json", "--from", "1ms"],
        &["rewrite", file, "-o", "-"],
        &["rewrite", file, "-o", "-", "--from", "1ms", "--to", "20ms"],
    ] {
        let [read, mapped] = [run(args), run(&[args, &["--map"]].concat())];
        assert!(read.status.is_some_and(|status| status != 2), "{args:?}: {}", read.stderr);
        assert_eq!((mapped.status, mapped.stderr), (read.status, read.stderr), "{args:?}");
        assert!(mapped.stdout == read.stdout, "{args:?}: the output differs");
    }
}

#[test]
fn mapped_traces_have_the_same_results() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/nettrace");
    let traces = [
        "gen-net10-small-mixed.nettrace",
        "gen-net10-lab-v3-small.netperf",
        "gen-v6-onecollect-small.nettrace",
        "synth-bad-block.nettrace",
    ];
    for name in traces {
        check(folder.join(name).to_str().unwrap());
    }
    let temporary = tempfile::tempdir().unwrap();
    let cut = temporary.path().join("cut.nettrace");
    let bytes = fs::read(folder.join(traces[0])).unwrap();
    for len in [0, 10, bytes.len() / 2] {
        fs::write(&cut, &bytes[..len]).unwrap();
        check(cut.to_str().unwrap());
    }
}
