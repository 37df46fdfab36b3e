//! Checks that each link of a page to a file of this repository leads to one.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// Collects the pages below a folder. What the folder `target` and hidden folders contain is not part of the repository.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !name.starts_with('.') && !["target", "node_modules"].contains(&name) {
            pages(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

#[test]
fn every_link_leads_to_a_file() {
    let mut found = Vec::new();
    pages(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut found);
    assert!(found.len() > 10, "{found:?}");
    let mut dead = Vec::new();
    for page in found {
        let text = fs::read_to_string(&page).unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
        for link in links.map(|link| link.split('#').next().unwrap_or_default()) {
            // Other links are addresses, places on the page, or items of the documentation.
            let is_file = link.contains('/') || [".md", ".rs", ".txt"].iter().any(|end| link.ends_with(end));
            if is_file && !link.contains(':') && !page.parent().unwrap().join(link).exists() {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}
