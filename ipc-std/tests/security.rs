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

/// Returns whether a check that is named in backticks exists: a stage, a test, a fuzzed property, or a lint of a
/// library.
fn exists(check: &str) -> bool {
    if let Some(stage) = check.strip_prefix(".ci/run ") {
        return text(".ci/run").contains(&format!("\n    \"{stage} "));
    }
    if let Some((file, test)) = check.split_once("::") {
        let has = |package| text(&format!("{package}/tests/{file}.rs")).contains(&format!("fn {test}()"));
        let packages = ["ipc-proto", "ipc-proto/analysis", "ipc-std", "ipc-std/cli", "fuzz"];
        return packages.into_iter().any(has);
    }
    let lint = |package| text(&format!("{package}/src/lib.rs")).contains(&format!("#![{check}]"));
    lint("ipc-proto")
        || lint("ipc-std")
        || repository().join(format!("fuzz/fuzz_targets/{check}.rs")).exists()
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
