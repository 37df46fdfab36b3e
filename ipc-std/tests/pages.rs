//! Checks the pages of the repository: their lengths, their headings, their words, and the table of stages.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

mod page;

use crate::page::{headings, pages, repository};

#[test]
fn the_first_pages_are_short() {
    for (page, limit) in [("README.md", 150), ("CONTRIBUTING.md", 125), ("ARCHITECTURE.md", 170)] {
        let lines = fs::read_to_string(repository().join(page)).unwrap().lines().count();
        assert!(lines <= limit, "{page} has {lines} lines, and its limit is {limit}");
    }
}

/// A topic is on one page, so no heading is on two pages. Only the changelog repeats its headings, with each version.
#[test]
fn no_heading_is_on_two_pages() {
    let mut first = BTreeMap::new();
    let mut twice = Vec::new();
    for (page, text) in pages().into_iter().filter(|(page, _)| !page.ends_with("CHANGELOG.md")) {
        for heading in headings(&text) {
            if let Some(other) = first.insert(heading.to_lowercase(), page.clone()) {
                twice.push(format!("{heading}: {} and {}", other.display(), page.display()));
            }
        }
    }
    assert!(twice.is_empty(), "{twice:#?}");
}

/// A package can come from another registry or from a folder, so no page names a registry.
#[test]
fn no_page_names_the_host_of_a_registry() {
    for (page, text) in pages() {
        for host in ["crates.io", "npmjs.com", "pypi.org", "nuget.org"] {
            assert!(!text.contains(host), "{} names {host}", page.display());
        }
    }
}

/// Returns the row of a stage: its name, and the lines at the top of its file.
fn row(stage: &Path) -> (usize, String) {
    let text = fs::read_to_string(stage).unwrap();
    let property = |name: &str| text.lines().find_map(|line| line.strip_prefix(&format!("# {name}: ")));
    let (order, runs) = match property("runs").unwrap() {
        "always" => (0, "always"),
        "all" => (2, "`.ci/run all`"),
        _ => (1, "after a change"),
    };
    let name = stage.file_name().unwrap().to_str().unwrap();
    let (about, needs) = (property("about").unwrap(), property("needs").unwrap_or_default());
    (order, format!("| `{name}` | {about} | {runs} | {needs} |"))
}

/// `BLESS=1 cargo test -p ipc-std --test pages` rewrites the table.
#[test]
fn contributing_has_every_stage() {
    let path = repository().join("CONTRIBUTING.md");
    let page = fs::read_to_string(&path).unwrap();
    let (_, table) = page.split_once("| stage | checks | runs | needs |\n|---|---|---|---|\n").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let stages = fs::read_dir(repository().join(".ci/stages")).unwrap();
    let mut rows: Vec<_> = stages.map(|stage| row(&stage.unwrap().path())).collect();
    rows.sort();
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, page.replace(table, &rows.join("\n"))).unwrap();
    } else {
        assert_eq!(table, rows.join("\n"), "BLESS=1 rewrites the table in CONTRIBUTING.md");
    }
}
