//! SECURITY.md names checks that there are.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what it expects by failing"
)]

use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap_or_default()
}

/// Whether the repository has what stands there between backticks: a stage, a test, a property, or a lint of a library.
fn is_there(check: &str) -> bool {
    if let Some(stage) = check.strip_prefix(".ci/run ") {
        return text(".ci/run").contains(&format!("\n    \"{stage} "));
    }
    if let Some((file, test)) = check.split_once("::") {
        let has = |package| text(&format!("{package}/tests/{file}.rs")).contains(&format!("fn {test}()"));
        return has("ipc-proto") || has("ipc-std");
    }
    let lint = |package| text(&format!("{package}/src/lib.rs")).contains(&format!("#![{check}]"));
    lint("ipc-proto")
        || lint("ipc-std")
        || repository().join(format!("fuzz/fuzz_targets/{check}.rs")).exists()
}

#[test]
fn every_promise_has_its_checks() {
    let security = text("SECURITY.md");
    let (_, promised) = security.split_once("## What is promised").unwrap();
    let (promised, _) = promised.split_once("\n## ").unwrap();
    let rows: Vec<&str> = promised.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 10, "{rows:?}");
    for row in rows {
        let (_, checks) = row.trim_end_matches(" |").rsplit_once(" | ").unwrap();
        // Between backticks is every second piece.
        let checks: Vec<&str> = checks.split('`').skip(1).step_by(2).collect();
        assert!(!checks.is_empty(), "nothing checks: {row}");
        for check in checks {
            assert!(is_there(check), "there is no check {check}");
        }
    }
}
