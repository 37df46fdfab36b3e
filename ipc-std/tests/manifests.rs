//! Checks the entries that manifests repeat, because a package outside of the workspace cannot inherit them, and the
//! entries that published packages inherit.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

/// Returns the lines of a file of the repository, without spaces at their ends.
fn lines(path: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap();
    text.lines().map(|line| line.trim().to_owned()).collect()
}

/// Returns the line of the workspace that begins with the key.
fn of_workspace(key: &str) -> String {
    lines("Cargo.toml").into_iter().find(|line| line.starts_with(&format!("{key} = "))).unwrap()
}

/// They are built from a clone only, and need no address.
#[test]
fn packages_outside_of_the_workspace_repeat_its_metadata_and_are_not_published() {
    for package in ["ipc-proto/c", "ipc-proto/c/analysis", "ipc-proto/wasm"] {
        let manifest = lines(&format!("{package}/Cargo.toml"));
        for line in ["version", "edition", "rust-version", "license"].map(of_workspace) {
            assert!(manifest.contains(&line), "{package} lacks `{line}`");
        }
        assert!(manifest.contains(&"publish = false".to_owned()), "{package} is published");
    }
    assert!(lines("ipc-proto/proof/Cargo.toml").contains(&"publish = false".to_owned()));
}

#[test]
fn all_versions_are_that_of_the_workspace() {
    let version = of_workspace("version").strip_prefix("version = ").unwrap().to_owned();
    for line in lines("Cargo.toml").iter().filter(|line| line.contains("path = ")) {
        assert!(line.contains(&format!("version = {version}")), "Cargo.toml: {line}");
    }
    let line = format!("\"version\": {version},");
    assert!(lines("ipc-proto/wasm/package.json").contains(&line), "package.json");
    let lock = lines("ipc-proto/wasm/package-lock.json");
    assert_eq!(lock.iter().filter(|other| **other == line).count(), 2, "package-lock.json: {line}");
}

/// `.ci/run package` checks the keys that each has of its own.
#[test]
fn published_packages_inherit_what_they_share() {
    let members = of_workspace("members");
    let mut published = 0;
    for folder in members.split('"').skip(1).step_by(2) {
        let manifest = lines(&format!("{folder}/Cargo.toml"));
        if manifest.contains(&"publish = false".to_owned()) {
            continue;
        }
        published += 1;
        for key in ["version", "edition", "rust-version", "license", "repository", "keywords"] {
            let line = format!("{key}.workspace = true");
            assert!(manifest.contains(&line), "{folder} lacks `{line}`");
        }
    }
    assert!(published > 3, "{members}");
}
