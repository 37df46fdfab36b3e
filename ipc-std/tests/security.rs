//! Checks that each check that SECURITY.md names exists.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports a fault by a panic"
)]

use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap_or_default()
}

/// Returns whether a Rust file below a folder has a path that ends with `name` and contains `text`.
fn has_file(folder: &Path, name: &Path, text: &str) -> bool {
    let Ok(entries) = folder.read_dir() else { return false };
    entries.map(|entry| entry.unwrap().path()).any(|path| {
        (path.ends_with(name) && std::fs::read_to_string(&path).is_ok_and(|content| content.contains(text)))
            || has_file(&path, name, text)
    })
}

/// Returns whether a check that is named in backticks exists: a stage, a test, a fuzzed property, a file of tests of the
/// npm package, or a lint of a library.
fn exists(check: &str) -> bool {
    if let Some(stage) = check.strip_prefix(".ci/run ") {
        return repository().join(".ci/stages").join(stage).is_file();
    }
    if let Some((file, test)) = check.split_once("::") {
        let (file, test) = (format!("{file}.rs"), format!("fn {test}("));
        let packages = [
            "ipc-proto",
            "ipc-proto/nettrace",
            "ipc-proto/analysis",
            "ipc-std",
            "ipc-std/async",
            "ipc-std/discover",
            "ipc-std/testkit",
            "ipc-std/cli",
            "fuzz",
            "fuzz/std",
        ];
        let folders =
            packages.iter().flat_map(|package| [format!("{package}/src"), format!("{package}/tests")]);
        return folders
            .map(|folder| repository().join(folder))
            .any(|folder| has_file(&folder, Path::new(&file), &test));
    }
    if check.ends_with(".test.mjs") {
        return repository().join("ipc-proto/wasm/tests").join(check).is_file();
    }
    let lint = |package| text(&format!("{package}/src/lib.rs")).contains(&format!("#![{check}]"));
    lint("ipc-proto")
        || lint("ipc-std")
        || ["fuzz", "fuzz/std"]
            .iter()
            .any(|package| repository().join(format!("{package}/fuzz_targets/{check}.rs")).exists())
}

#[test]
fn every_promise_has_checks() {
    let security = text("SECURITY.md");
    let (_, promised) = security.split_once("## What is promised").unwrap();
    let (promised, _) = promised.split_once("\n## ").unwrap();
    let rows: Vec<&str> = promised.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 10, "{rows:?}");
    for row in rows {
        let (_, checks) = row.trim_end_matches(" |").rsplit_once(" | ").unwrap();
        // Every second piece is in backticks.
        let checks: Vec<&str> = checks.split('`').skip(1).step_by(2).collect();
        assert!(!checks.is_empty(), "no check is named: {row}");
        for check in checks {
            assert!(exists(check), "the check {check} does not exist");
        }
    }
}
