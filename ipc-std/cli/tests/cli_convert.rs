//! `dotnet-ipc convert`.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod tool;
mod traces;

use std::fs;
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;
use tempfile::TempDir;

use crate::tool::{run, run_with};
use crate::traces::{analysed, path};

/// Returns the total of all stacks by `report`.
fn total(trace: &str, clock: &str) -> u64 {
    run(&["report", trace, clock, "--json"]).well().json()["total"].as_u64().unwrap()
}

/// Returns a number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| core::str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

#[test]
fn the_suffix_decides_the_format() {
    let directory = TempDir::new().unwrap();
    let trace = analysed("net10-startup.nettrace");
    let total = total(&trace, "--wall");
    let converted = |name: &str| {
        let file = directory.path().join(name).to_str().unwrap().to_owned();
        let ran = run(&["convert", &trace, "-o", &file, "--wall"]);
        assert!(ran.status == Some(0) && ran.stderr.starts_with("Wrote "), "{ran:?}");
        run(&["convert", &trace, "-o", &file, "--wall"]).fails(1, "exists already");
        let ran = run(&["convert", &trace, "-o", &file, "--wall", "--overwrite", "--json"]).well();
        let bytes = fs::read(&file).unwrap();
        assert_eq!(ran.json()["bytes"], bytes.len());
        bytes
    };

    let graph = String::from_utf8(converted("x.svg")).unwrap();
    assert!(graph.starts_with("<?xml") && graph.trim_end().ends_with("</svg>"));
    assert!(
        graph.contains("net10-startup.nettrace") && graph.contains(&format!("({} samples", grouped(total)))
    );

    let folded = String::from_utf8(converted("x.folded")).unwrap();
    let weights = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
    assert_eq!(weights.sum::<u64>(), total);

    let file: Value = serde_json::from_slice(&converted("x.speedscope.json")).unwrap();
    assert_eq!(file["name"], trace);
    let profiles = file["profiles"].as_array().unwrap();
    assert_eq!(profiles.iter().map(|profile| profile["endValue"].as_u64().unwrap()).sum::<u64>(), total);

    let mut profile = Vec::new();
    GzDecoder::new(converted("x.pb.gz").as_slice()).read_to_end(&mut profile).unwrap();
    // The sample type, and an empty string: the beginning of the first piece.
    assert!(profile.starts_with(b"\x0a\x04\x08\x01\x10\x02\x32\x00"), "{:?}", &profile[..8]);
    for text in ["samples", "count", "thread_id", "System.Private.CoreLib"] {
        assert!(profile.windows(text.len()).any(|window| window == text.as_bytes()), "{text}");
    }
}

#[test]
fn standard_output_needs_a_format() {
    let trace = analysed("net31-sampled.nettrace");
    run(&["convert", &trace, "-o", "-"]).fails(2, "states no format");
    run(&["convert", &trace, "-o", "x.txt"]).fails(2, "choose --format");
    let ran = run(&["convert", &trace, "-o", "-", "--format", "folded", "--thread-time"]);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(ran.stderr.ends_with(" to standard output\n"));
    let sum: u64 =
        ran.text().lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    assert_eq!(sum, total(&trace, "--thread-time"));
}

#[test]
fn a_trace_without_stacks_is_not_converted() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("x.folded");
    let output = file.to_str().unwrap();
    let trace = analysed("net10-collections.nettrace");
    run(&["convert", &trace, "-o", output]).fails(1, "--profile dotnet-sampled-thread-time");
    run(&["convert", &trace, "-o", output, "--exceptions"]).fails(1, "--clr-events exception");
    run_with(&["convert", "-", "-o", output], Vec::new()).fails(6, "the trace is empty");
    run(&["convert", &path("nothing"), "-o", output]).fails(1, "cannot read");
    assert!(!file.exists());
    // What a cut trace has is converted.
    let trace = fs::read(analysed("net31-sampled.nettrace")).unwrap();
    let ran = run_with(&["convert", "-", "-o", output, "--wall"], &trace[..trace.len() - 10_000]);
    assert_eq!(ran.status, Some(6), "{ran:?}");
    assert!(!fs::read_to_string(file).unwrap().is_empty());
}
