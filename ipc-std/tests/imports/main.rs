//! Files of a package do not import each other in a circle, and import only from their own layer and from those below.
//!
//! A name that a module exports again counts for the file that defines it: `use crate::Error` is an import of
//! `error.rs`. Modules under `#[cfg(test)]` do not count.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports an unexpected state by a panic"
)]

mod graph;
mod modules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::graph::Graph;

/// The packages, by the roots of their sources, and the layers of those that have some: files and folders beside the root,
/// the lowest first. A file imports from its own layer and from those above it in the list.
const IPC_PROTO: (&str, &[&[&str]]) = ("ipc-proto/src/lib.rs", &[]);
const IPC_STD: (&str, &[&[&str]]) = (
    "ipc-std/src/lib.rs",
    &[
        &["sys", "drive"],
        &["timeouts", "error", "observer", "environment", "process_info"],
        &["transport"],
        &["connection"],
        &["client"],
        &[
            "async_client",
            "hazard",
            "trace",
            "user_events",
            "discover",
            "monitor",
            "server",
            "record_reader",
            "trace_reader",
        ],
        &["counter_stream"],
        &["lib"],
    ],
);
const TESTKIT: (&str, &[&[&str]]) =
    ("ipc-std/testkit/src/lib.rs", &[&["profile", "sys"], &["replay"], &["fake", "conformance"], &["lib"]]);
const ANALYSIS: (&str, &[&[&str]]) = (
    "ipc-proto/analysis/src/lib.rs",
    &[
        &["durations", "event_fields", "known_provider", "place", "rows"],
        &["names"],
        &["frames", "stacks"],
        &["samples"],
        &["call_tree", "counters", "gc", "jit"],
        &["formats", "live"],
        &["lib"],
    ],
);
const TOOL: (&str, &[&[&str]]) = (
    "ipc-std/cli/src/main.rs",
    &[
        &["output"],
        &["input"],
        &["args"],
        &["process"],
        &["recording"],
        &["stacks"],
        &["events", "counters"],
        &["commands"],
        &["main"],
    ],
);

/// Returns the imports of the package with this root.
fn graph(root: &str) -> Graph {
    let graph = Graph::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(root));
    assert!(graph.uses.len() > 20, "{root} has {} files", graph.uses.len());
    graph
}

/// Returns the circles of a package; empty if there is none.
fn circles(root: &str) -> String {
    let mut circles = String::new();
    let mut graph = graph(root);
    while let Some(circle) = graph.circle() {
        circles += &format!("{}\n", graph.describe(&circle));
        // There may be others without its last step.
        graph.remove_use(&circle[circle.len() - 2], &circle[0]);
    }
    circles
}

#[test]
fn no_package_has_a_circle() {
    for (root, _) in [IPC_PROTO, IPC_STD, TESTKIT, ANALYSIS, TOOL] {
        assert_eq!(circles(root), "", "{root}");
    }
}

/// Returns the name of the file or of the folder beside the root that a file is, or is in.
fn room(file: &Path) -> &str {
    let first = file.components().next().unwrap().as_os_str().to_str().unwrap();
    first.strip_suffix(".rs").unwrap_or(first)
}

#[test]
fn no_import_leads_up() {
    for (root, layers) in [IPC_STD, TESTKIT, ANALYSIS, TOOL] {
        let graph = graph(root);
        let rooms: BTreeSet<&str> = graph.uses.keys().map(|file| room(file)).collect();
        assert_eq!(
            rooms,
            layers.iter().copied().flatten().copied().collect(),
            "{root}: the files, and the layers"
        );
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
fn no_file_of_the_tool_imports_the_hub_above_it() {
    for (file, uses) in &graph(TOOL.0).uses {
        let is_above = |used: &PathBuf| used.ends_with("mod.rs") && file.starts_with(used.parent().unwrap());
        assert_eq!(uses.keys().find(|used| is_above(used)), None, "{}", file.display());
    }
}

/// A room of the tool that uses another one is not used by it.
#[test]
fn no_rooms_of_the_tool_have_a_circle() {
    let mut rooms: BTreeMap<PathBuf, BTreeMap<PathBuf, String>> = BTreeMap::new();
    for (file, uses) in graph(TOOL.0).uses {
        let other = uses.into_iter().filter(|(used, _)| room(used) != room(&file));
        let other = other.map(|(used, path)| (room(&used).into(), path));
        rooms.entry(room(&file).into()).or_default().extend(other);
    }
    let rooms = Graph { uses: rooms };
    assert_eq!(rooms.circle().map(|circle| rooms.describe(&circle)), None);
}

/// The test itself notices each way to import from another file.
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
    write("a.rs", "use crate::b::B; pub fn f() {}");
    write("b.rs", "use crate::c::c; pub struct B;");
    write("c.rs", "pub fn c() { crate::a::f() }");
    let graph = Graph::read(&folder.path().join("lib.rs"));
    assert_eq!(graph.circle().unwrap().len(), 4);
    assert!(graph.describe(&graph.circle().unwrap()).contains("c.rs uses a.rs: crate::a::f"));
}
