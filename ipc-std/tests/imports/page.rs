//! Checks that the table of layers in ARCHITECTURE.md is that of the test.
use crate::packages::{Layers, PACKAGES};
use crate::repository;

/// Returns the row of a package: its layers, without the root, which is always the last.
fn row(root: &str, layers: Layers) -> String {
    let manifest = repository().join(root).ancestors().nth(2).unwrap().join("Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).unwrap();
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).unwrap().replace('"', "`");
    let layer = |files: &&[&str]| files.iter().map(|file| format!("`{file}`")).collect::<Vec<_>>().join(", ");
    let (_, layers) = layers.split_last().unwrap();
    format!("| {name} | {} |", layers.iter().map(layer).collect::<Vec<_>>().join(" · "))
}

#[test]
fn the_page_has_the_layers() {
    let page = std::fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    let (_, table) = page.split_once("| package | layers, the lowest first |\n|---|---|\n").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let layered = PACKAGES.iter().filter(|(_, layers)| !layers.is_empty());
    let rows = layered.map(|(root, layers)| row(root, layers)).collect::<Vec<_>>().join("\n");
    assert_eq!(table, rows, "the table in ARCHITECTURE.md must be:\n{rows}\n");
}
