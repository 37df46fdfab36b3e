//! The codec reads and writes integers in one way: through byteorder, or by `Encode` and `Decode`, which use byteorder.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the Rust files in a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn integers_are_read_and_written_through_byteorder() {
    let all = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/wire"));
    assert!(all.len() > 10, "{all:?}");
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            for other in ["from_le_bytes", "to_le_bytes", "from_ne_bytes", "to_ne_bytes"] {
                // A word of the machine, by which a text is checked, is not an integer of the protocol.
                let is_found = line.replace("usize::from_ne_bytes", "").contains(other);
                assert!(!is_found, "{}: {line}", path.display());
            }
        }
    }
}
