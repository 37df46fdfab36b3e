//! The pages of the repository.
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Collects the pages below a folder. What the folder `target` and hidden folders contain is not part of the repository.
fn collect(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !name.starts_with('.') && !["target", "node_modules"].contains(&name) {
            collect(&path, found);
        } else if name.ends_with(".md") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
}

/// Returns the pages, each with its text.
pub(crate) fn pages() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    collect(repository(), &mut found);
    assert!(found.len() > 10, "{found:?}");
    found
}

/// Returns the lines of a page that are not in blocks of code.
pub(crate) fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Returns the headings of a page.
pub(crate) fn headings(page: &str) -> impl Iterator<Item = &str> {
    prose(page).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim())
}
