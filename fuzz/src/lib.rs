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
mod split;
pub mod wire;

use std::{fs, path::PathBuf};

pub use conversation::conversation;
pub use message::message;
pub use nettrace::{events, metadata, nettrace, payload, rewrite};
pub use port::{monitor, port_config};
pub use split::split;

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

/// The files of a folder of `testdata/`, in the order of their names.
#[must_use]
pub fn testdata(folder: &str) -> Vec<Vector> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata")).join(folder);
    let files =
        fs::read_dir(&folder).expect("the folder exists").map(|entry| entry.expect("it lists").path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "hex")).collect();
    files.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a text file");
        Vector { bytes: unhex(&text), path, text }
    };
    files.into_iter().map(read).collect()
}

/// The bytes of a file of `testdata/`: pairs of hex digits, comments from `#` to the end of the line.
fn unhex(text: &str) -> Vec<u8> {
    let digits = text.lines().filter_map(|line| line.split('#').next()).flat_map(str::split_whitespace);
    digits.map(|pair| u8::from_str_radix(pair, 16).expect("two hex digits")).collect()
}
