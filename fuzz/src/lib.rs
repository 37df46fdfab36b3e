//! Properties of `ipc-proto` that hold for all bytes.
//!
//! Each property is a function of any bytes that panics where it does not hold. It runs three ways: under a fuzzer
//! (`fuzz_targets/`), with random input as a test (`ipc-proto/tests/properties.rs`), and over the files of
//! `testdata/` and small damages to them (`tests/smoke.rs`).
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "a property that does not hold panics"
)]
mod assemble;
mod connect_port;
mod conversation;
mod fallback;
mod hostile;
mod legacy;
mod made_up;
mod message;
mod monitor;
mod nettrace;
mod observe;
mod payload_writer;
mod plan;
mod port;
mod reading;
mod repetition;
mod rewrite;
mod session;
mod split;
mod stores;
mod targets;
mod trace;
mod unknown;
mod user_events;
pub mod wire;
mod work;

use std::{fs, path::PathBuf};

pub use assemble::assemble;
pub use connect_port::connect_port;
pub use conversation::conversation;
pub use fallback::fallback;
pub use hostile::hostile;
pub use legacy::legacy;
pub use message::message;
pub use monitor::monitor;
pub use nettrace::{events, metadata, nettrace, payload};
pub use observe::observe;
pub use plan::plan;
pub use port::port_config;
pub use rewrite::rewrite;
pub use session::session;
pub use split::split;
pub use stores::stores;
pub use targets::{assert_stored_inputs_hold, assert_targets_are, holds};
pub use trace::trace;
pub use user_events::user_events;
pub use work::work;

/// A property: a function that panics if the property does not hold for these bytes.
pub type Property = fn(&[u8]);

macro_rules! properties {
    ($($name:ident)*) => {
        /// Every property with its name. Its fuzz target has the same name.
        pub const PROPERTIES: &[(&str, Property)] = &[$((stringify!($name), $name)),*];
    };
}
properties! {
    assemble connect_port conversation events fallback hostile legacy message metadata monitor nettrace observe payload
    plan port_config rewrite session split stores trace user_events work
}

/// A file of `testdata/`.
#[derive(Debug)]
pub struct Vector {
    /// The path of the file.
    pub path: PathBuf,
    /// The text of the file, with its comments.
    pub text: String,
    /// The bytes that the text stands for.
    pub bytes: Vec<u8>,
}

/// A trace of `testdata/nettrace/`.
#[derive(Debug)]
pub struct RecordedTrace {
    /// The path of the file.
    pub path: PathBuf,
    /// The name of the file.
    pub name: String,
    /// The content of the file.
    pub bytes: Vec<u8>,
    /// The numbers that an independent reader counted in the trace, as JSON.
    pub expected: String,
}

/// The traces of `testdata/nettrace/`, in the order of their names.
#[must_use]
pub fn traces() -> Vec<RecordedTrace> {
    let read = |path: PathBuf| {
        let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
        let expected = fs::read_to_string(format!("{}.json", path.display())).expect("it lies beside");
        RecordedTrace { bytes: fs::read(&path).expect("a file"), path, name, expected }
    };
    let traces: Vec<_> = files("nettrace", &["nettrace", "netperf"]).into_iter().map(read).collect();
    assert!(traces.len() >= 17, "there are more");
    traces
}

fn in_testdata(folder: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata")).join(folder)
}

/// Returns the files of a folder of `testdata/` whose names have one of these endings, in the order of their names.
fn files(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let files = fs::read_dir(in_testdata(folder))
        .expect("the folder exists")
        .map(|entry| entry.expect("it lists").path());
    let is_one = |path: &PathBuf| extensions.iter().any(|e| path.extension().is_some_and(|of| of == *e));
    let mut files: Vec<_> = files.filter(is_one).collect();
    files.sort();
    files
}

/// The files of hex in a folder of `testdata/`, in the order of their names.
#[must_use]
pub fn testdata(folder: &str) -> Vec<Vector> {
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a text file");
        Vector { bytes: unhex(&text), path, text }
    };
    files(folder, &["hex"]).into_iter().map(read).collect()
}

/// Returns the inputs that fuzzing has kept for a target, in `testdata/corpus/`: one for each line.
#[must_use]
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let file = in_testdata(&format!("corpus/{target}.txt"));
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let byte = |line: &str, at| u8::from_str_radix(&line[at..at + 2], 16).expect("two hex digits");
    text.lines().map(|line| (0..line.len()).step_by(2).map(|at| byte(line, at)).collect()).collect()
}

/// Returns the inputs for which a target has failed, in `testdata/regressions/`, in the order of the names.
#[must_use]
pub fn regressions(target: &str) -> Vec<Vector> {
    let folder = format!("regressions/{target}");
    if in_testdata(&folder).exists() { testdata(&folder) } else { Vec::new() }
}

/// The bytes of a file of `testdata/`: pairs of hex digits, comments from `#` to the end of the line.
fn unhex(text: &str) -> Vec<u8> {
    let digits = text.lines().filter_map(|line| line.split('#').next()).flat_map(str::split_whitespace);
    digits.map(|pair| u8::from_str_radix(pair, 16).expect("two hex digits")).collect()
}
