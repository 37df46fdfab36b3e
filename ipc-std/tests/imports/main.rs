//! Files of a package do not import each other in a circle, nor do its rooms: the files and folders beside its root. A file
//! imports only from its own layer and from those below, and none imports from the file that lists the files of its folder.
//!
//! A name that a module exports again counts for the file that defines it: `use crate::Error` is an import of
//! `error.rs`. Modules under `#[cfg(test)]` do not count.
//!
//! A name is one type in a package, private types included, so that a reader learns it once.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports an unexpected state by a panic"
)]

mod graph;
mod modules;
mod packages;
mod page;
mod type_names;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::graph::{Graph, room};
use crate::modules::find_files;
use crate::packages::PACKAGES;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Returns the imports of the package with this root.
fn graph(root: &str) -> Graph {
    Graph::read(&repository().join(root))
}

/// Adds the folders of the packages below a folder.
fn find_packages(folder: &Path, packages: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let is_source = !["target", "node_modules"].iter().any(|name| entry.ends_with(name));
        if entry.is_dir() && !entry.is_symlink() && is_source {
            packages.extend(entry.join("Cargo.toml").exists().then(|| entry.clone()));
            find_packages(&entry, packages);
        }
    }
}

#[test]
fn every_package_is_checked() {
    let mut packages = BTreeSet::new();
    find_packages(repository(), &mut packages);
    // Its source is that of the package above it, with a feature.
    assert!(packages.remove(&repository().join("ipc-proto/c/analysis")));
    let package = |root: &str| {
        let root = repository().join(root);
        root.ancestors().find(|folder| folder.join("Cargo.toml").exists()).unwrap().to_owned()
    };
    assert_eq!(PACKAGES.iter().map(|(root, _)| package(root)).collect::<BTreeSet<_>>(), packages);
}

/// A file that no module names is not compiled, so that nothing else would notice it. Modules named `tests` are not read.
#[test]
fn every_file_is_a_module() {
    let (mut files, mut modules) = (BTreeSet::new(), BTreeSet::new());
    for (root, _) in PACKAGES.iter().filter(|(root, _)| root.contains("/src/")) {
        let folder = repository().join(root).parent().unwrap().to_owned();
        find_files(&folder, &mut files);
        modules.extend(graph(root).uses.into_keys().map(|file| folder.join(file)));
    }
    files.retain(|file| !file.iter().any(|part| part == "tests" || part == "tests.rs"));
    let unnamed: Vec<_> = files.difference(&modules).collect();
    assert!(unnamed.is_empty(), "{unnamed:?}");
}

/// Describes all circles; empty if there is none.
fn circles(mut graph: Graph) -> String {
    let mut circles = String::new();
    while let Some(circle) = graph.circle() {
        circles += &format!("{}\n", graph.describe(&circle));
        // Without the last step of this circle, other circles may remain.
        graph.remove_use(&circle[circle.len() - 2], &circle[0]);
    }
    circles
}

#[test]
fn no_package_has_a_circle() {
    for (root, _) in PACKAGES {
        let files = graph(root);
        assert_eq!(circles(files.of_rooms()), "", "the rooms of {root}");
        assert_eq!(circles(files), "", "the files of {root}");
    }
}

#[test]
fn no_import_leads_up() {
    for (root, layers) in PACKAGES.iter().filter(|(_, layers)| !layers.is_empty()) {
        let graph = graph(root);
        let rooms: BTreeSet<&str> = graph.uses.keys().map(|file| room(file)).collect();
        let listed: BTreeSet<&str> = layers.concat().into_iter().collect();
        assert_eq!(rooms, listed, "{root}: the files and folders, and those in its layers");
        let layer = |file: &Path| layers.iter().position(|layer| layer.contains(&room(file)));
        let mut up = String::new();
        for (file, uses) in &graph.uses {
            for (used, path) in uses.iter().filter(|(used, _)| layer(used) > layer(file)) {
                up += &format!("{} uses {}: {path}\n", file.display(), used.display());
            }
        }
        assert!(up.is_empty(), "{root}:\n{up}");
    }
}

#[test]
fn no_file_imports_the_hub_above_it() {
    let mut up = String::new();
    for (root, _) in PACKAGES {
        for (file, uses) in &graph(root).uses {
            let is_above = |used: &PathBuf| {
                let folder =
                    if used.ends_with("mod.rs") { used.parent().unwrap() } else { &used.with_extension("") };
                file != used && file.starts_with(folder)
            };
            for (used, path) in uses.iter().filter(|(used, _)| is_above(used)) {
                up += &format!("{root}: {} uses {}: {path}\n", file.display(), used.display());
            }
        }
    }
    assert_eq!(up, "");
}

#[test]
fn a_name_is_one_type_in_a_package() {
    let repeated = PACKAGES.iter().map(|(root, _)| {
        let names = type_names::repeated(repository().join(root).parent().unwrap());
        names.lines().map(|name| format!("{root}: {name}\n")).collect::<String>()
    });
    assert_eq!(repeated.collect::<String>(), "");
}

/// The test itself detects each kind of type, wherever the type is defined.
#[test]
fn every_kind_of_type_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("windows")).unwrap();
    write("lib.rs", "struct Found; struct State; #[cfg(unix)] struct Unix; #[cfg(windows)] struct Windows;");
    for (text, is_found) in [
        ("struct Found;", true),
        ("enum Found {}", true),
        ("union Found { a: u8 }", true),
        ("trait Found {}", true),
        ("type Found = u8;", true),
        ("mod m { struct Found; }", true),
        ("fn f() { struct Found; }", true),
        ("impl T for S { fn f() { struct Found; } }", true),
        ("#[cfg(unix)] struct Found;", true),
        ("#[cfg(unix)] struct Unix;", true),
        ("#[cfg(not(windows))] struct Unix;", true),
        ("#[cfg(not(unix))] struct Unix;", false),
        ("#[cfg(unix)] struct Windows;", false),
        ("#[cfg(unix)] mod m { struct Windows; }", false),
        ("struct State;", false),
        ("trait T { type Found; } impl T for S { type Found = u8; }", false),
        ("#[cfg(test)] mod tests { struct Found; }", false),
        ("fn found(found: Found) -> Found { found }", false),
    ] {
        write("a.rs", text);
        assert_eq!(type_names::repeated(folder.path()).is_empty(), !is_found, "{text}");
    }
    write("a.rs", "");
    write("windows/a.rs", "struct Unix;");
    assert_eq!(type_names::repeated(folder.path()), "");
    write("windows/a.rs", "struct Found;");
    assert!(type_names::repeated(folder.path()).starts_with("Found: "));
}

/// The test itself detects each way to import from another file.
#[test]
fn every_kind_of_import_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let uses = |text: &str| {
        write("lib.rs", "mod a; mod b; pub mod c; pub use b::{self, B as Renamed}; pub(crate) use c::*;");
        write("a.rs", text);
        write("b.rs", "pub struct B; pub mod inner { pub fn f() {} }");
        write(
            "c.rs",
            "macro_rules! make { ($($x:item)*) => { $($x)* } } make! { pub struct Made } pub fn c() {} \
             pub const ALL: [u8; 0] = [];",
        );
        let graph = Graph::read(&folder.path().join("lib.rs"));
        graph.uses[Path::new("a.rs")].keys().map(|file| file.display().to_string()).collect::<Vec<_>>()
    };
    for (text, expected) in [
        ("use crate::{b::{inner::f}, c::c};", &["b.rs", "c.rs"][..]),
        ("use crate::Renamed;", &["b.rs"]),
        ("use crate::c; fn f() { c::c() }", &["c.rs"]),
        ("use crate::b; fn f() { b::inner::f() }", &["b.rs"]),
        ("fn f() { super::b::inner::f() }", &["b.rs"]),
        ("fn f(x: &crate::Made) {}", &["c.rs"]),
        ("use super::*; fn f() { ALL }", &["c.rs"]),
        ("mod m { use super::super::ALL; }", &["c.rs"]),
        ("make! { fn x() {} }", &["c.rs"]),
        ("pub use crate::c::c; pub use crate::b; // c", &[]),
        ("pub use crate::c::c; fn f() { c() }", &["c.rs"]),
        ("#[cfg(test)] mod tests { use crate::b::B; }", &[]),
        ("#[cfg(test)] fn f() { crate::b::inner::f() }", &[]),
        ("struct S { #[arg(value_parser = crate::b::inner::f)] x: u8 }", &["b.rs"]),
        ("fn f() { format!(\"{}\", crate::b::inner::f()) }", &["b.rs"]),
        ("/// [`crate::b::B`]\nfn f() { \"crate::b::B\"; }", &[]),
    ] {
        assert_eq!(uses(text), expected, "{text}");
    }
    write("lib.rs", "macro_rules! list { ($($m:ident)*) => { $(mod $m;)* } } list! { a b other }");
    write("a.rs", "");
    write("b.rs", "");
    let files = Graph::read(&folder.path().join("lib.rs")).uses.into_keys();
    assert_eq!(files.collect::<Vec<_>>(), ["a.rs", "b.rs", "lib.rs"].map(PathBuf::from));
    write("lib.rs", "mod a; mod b; mod c;");
    write("a.rs", "use crate::b::B; pub fn f() {}");
    write("b.rs", "use crate::c::c; pub struct B;");
    write("c.rs", "pub fn c() { crate::a::f() }");
    let graph = Graph::read(&folder.path().join("lib.rs"));
    assert_eq!(graph.circle().unwrap().len(), 4);
    assert!(graph.describe(&graph.circle().unwrap()).contains("c.rs uses a.rs: crate::a::f"));
}
