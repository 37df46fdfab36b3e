//! What must hold for `ipc-proto` whatever the bytes.
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
    reason = "a property says that it does not hold by panicking"
)]
mod conversation;
mod message;
mod nettrace;
mod port;
mod session;
mod split;
mod user_events;
pub mod wire;

use std::{fs, path::PathBuf};

pub use conversation::conversation;
pub use message::message;
pub use nettrace::{events, metadata, nettrace, payload, rewrite};
pub use port::{monitor, port_config};
pub use session::session;
pub use split::split;
pub use user_events::user_events;

/// A file of `testdata/`.
#[derive(Debug)]
pub struct Vector {
    /// Where it lies.
    pub path: PathBuf,
    /// Its text, comments and all.
    pub text: String,
    /// The bytes that it stands for.
    pub bytes: Vec<u8>,
}

/// A trace of `testdata/nettrace/`.
#[derive(Debug)]
pub struct RecordedTrace {
    /// Where it lies.
    pub path: PathBuf,
    /// The name of its file.
    pub name: String,
    /// All of it.
    pub bytes: Vec<u8>,
    /// What an independent reader counted in it: JSON.
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

/// The files of a folder of `testdata/` whose names end so, in the order of their names.
fn files(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata")).join(folder);
    let files =
        fs::read_dir(&folder).expect("the folder exists").map(|entry| entry.expect("it lists").path());
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

/// The bytes of a file of `testdata/`: pairs of hex digits, comments from `#` to the end of the line.
fn unhex(text: &str) -> Vec<u8> {
    let digits = text.lines().filter_map(|line| line.split('#').next()).flat_map(str::split_whitespace);
    digits.map(|pair| u8::from_str_radix(pair, 16).expect("two hex digits")).collect()
}
