//! Files of a package do not import each other in a circle, and those of ipc-std import only from their own layer and
//! those below.
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
mod tokens;

use std::path::{Path, PathBuf};

use crate::graph::Graph;

/// The layers of ipc-std, the lowest first. A file imports from its own layer and from those above it in this list.
const LAYERS: [&[&str]; 9] = [
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
        "step_reader",
        "record_reader",
        "trace_reader",
    ],
    &["counter_stream"],
    &["fake", "conformance"],
    &["lib"],
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the circles of the package with this root; empty if there is none.
fn circles(root: &str) -> String {
    let mut circles = String::new();
    let mut graph = Graph::read(&repository().join(root));
    assert!(graph.uses.len() > 20, "{root} has {} files", graph.uses.len());
    while let Some(circle) = graph.circle() {
        circles += &format!("{}\n", graph.describe(&circle));
        // There may be others without its last step.
        graph.remove_use(&circle[circle.len() - 2], &circle[0]);
    }
    circles
}

#[test]
fn ipc_proto_has_no_circle() {
    assert_eq!(circles("ipc-proto/src/lib.rs"), "");
}

#[test]
fn ipc_std_has_no_circle() {
    assert_eq!(circles("ipc-std/src/lib.rs"), "");
}

#[test]
fn the_tool_has_no_circle() {
    assert_eq!(circles("ipc-std/cli/src/main.rs"), "");
}

#[test]
fn no_import_of_ipc_std_leads_up() {
    let graph = Graph::read(&repository().join("ipc-std/src/lib.rs"));
    let layer = |file: &Path| {
        let first = file.components().next().unwrap().as_os_str().to_str().unwrap();
        let name = first.strip_suffix(".rs").unwrap_or(first);
        let layer = LAYERS.iter().position(|layer| layer.contains(&name));
        layer.unwrap_or_else(|| panic!("{} is in no layer", file.display()))
    };
    let mut up = String::new();
    for (file, uses) in &graph.uses {
        for (used, path) in uses {
            if layer(used) > layer(file) {
                up += &format!("{} uses {}: {path}\n", file.display(), used.display());
            }
        }
    }
    assert!(up.is_empty(), "{up}");
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
