//! The nodes that stand for roots, whose names are in brackets.
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use ipc_proto::wire::to_u32;

use crate::heap::graph::{Graph, Root, RootKind};
use crate::heap::type_table::HeapType;

/// The flags of a root: pinning, and of counted references.
const PINNING: u32 = 1;
const COUNTED: u32 = 8;

const STATIC: &str = "[static var ";
/// How many bytes of the name of a type the name of its static variable has: each of its variables repeats it.
const MAX_NAME: usize = 512;

/// What the nodes of roots above an object state about its root.
#[derive(Debug, Clone, Copy)]
pub(super) struct RootPath {
    pub(super) kind: RootKind,
    pub(super) flags: u32,
    /// The place of the type whose name is that of a static variable.
    pub(super) field: Option<usize>,
}

impl RootPath {
    pub(super) const START: Self = Self { kind: RootKind::Other, flags: 0, field: None };

    /// Returns the path with a node of this type at its end.
    pub(super) fn with(self, name: &str, type_place: usize) -> Self {
        let of = |kind| Self { kind, ..self };
        match name {
            "[static vars]" => of(RootKind::Static),
            "[thread static vars]" => of(RootKind::ThreadStatic),
            "[local vars]" => of(RootKind::Stack),
            "[finalizer Handles]" => of(RootKind::Finalizer),
            "[pinning Handles]" => Self { kind: RootKind::Handle, flags: PINNING, ..self },
            "[strong Handles]" | "[Dependent Handles]" => of(RootKind::Handle),
            _ if name.starts_with("[COM/") || name.starts_with("[CCW ") => of(RootKind::Com),
            _ if name.starts_with(STATIC) => Self { field: Some(type_place), ..self },
            _ => self,
        }
    }
}

/// Returns the static variable of a node of this name: `TYPE.FIELD`.
pub(super) fn static_field(name: &str) -> Option<&str> {
    name.strip_prefix(STATIC)?.strip_suffix(']')
}

/// Returns the name of a type in a file, where `<>` of the compiler's own names is `[]`.
pub(super) fn written_name(of_type: &HeapType) -> String {
    match of_type.raw_name {
        Some(_) => of_type.name().replace("<>", "[]"),
        None => format!("UNKNOWN 0x{:x}", of_type.id),
    }
}

/// Returns the name of a type as the runtime has it. Only an array has `[]` after a name.
pub(super) fn read_name(written: &str) -> String {
    let mut name = String::with_capacity(written.len());
    for (place, part) in written.split("[]").enumerate() {
        if place > 0 {
            let is_array = !name.is_empty() && !name.ends_with(['+', '.', '<', ',']);
            name.push_str(if is_array { "[]" } else { "<>" });
        }
        name.push_str(part);
    }
    name
}

/// Returns whether a type is that of nodes for roots.
pub(super) fn is_root_type(name: &str, module: Option<&str>) -> bool {
    name.starts_with('[') && !name.starts_with("[RCW ") && module.is_none_or(str::is_empty)
}

/// Returns the beginning of a text that is too long.
pub(super) fn cut(mut text: String, max: usize) -> String {
    let end = (0..=max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or_default());
    text
}

/// A node that stands for roots.
#[derive(Debug)]
pub(super) struct RootNode {
    pub(super) name: String,
    /// The numbers of nodes: of objects as in the graph, and of other roots after them.
    pub(super) children: Vec<u32>,
}

/// Makes the nodes for the roots of a graph. The first one is the root of all.
pub(super) fn root_nodes(graph: &Graph) -> Vec<RootNode> {
    let mut tree = RootTree { first: graph.len(), nodes: Vec::new(), known: BTreeMap::new() };
    tree.nodes.push(RootNode { name: "[.NET Roots]".to_owned(), children: Vec::new() });
    tree.child(0, "[static vars]");
    let types: BTreeMap<u64, String> = if graph.roots().iter().any(|root| root.field.is_some()) {
        graph.types().iter().map(|of_type| (of_type.id, cut(written_name(of_type), MAX_NAME))).collect()
    } else {
        BTreeMap::new()
    };
    for root in graph.roots() {
        let Some(node) = graph.at(root.address).filter(|_| root.flags & 2 == 0) else { continue };
        let mut place = tree.group(root);
        if let Some(field) = root.field.as_deref() {
            let name = match types.get(&root.id) {
                Some(name) => format!("{STATIC}{name}.{field}]"),
                // Of a file that was read, the field has the name of its type.
                None if root.id == 0 => format!("{STATIC}{field}]"),
                None => format!("{STATIC}Type(0x{:x}).{field}]", root.id),
            };
            place = tree.child(place, &name);
        }
        if let Some(group) = tree.nodes.get_mut(place) {
            group.children.push(node);
        }
    }
    // The group of objects of COM is always there.
    tree.child(0, "[COM/WinRT Objects]");
    tree.nodes
}

struct RootTree {
    /// The number of the first node.
    first: u32,
    nodes: Vec<RootNode>,
    /// The places of nodes by that of the node above and the name.
    known: BTreeMap<(usize, String), usize>,
}

impl RootTree {
    /// Returns the place of the node to which a root belongs.
    fn group(&mut self, root: &Root) -> usize {
        let other = match root.kind {
            RootKind::Static => return self.child(0, "[static vars]"),
            RootKind::ThreadStatic => return self.child(0, "[thread static vars]"),
            RootKind::Stack => return self.child(0, "[local vars]"),
            RootKind::Com => return self.child(0, "[COM/WinRT Objects]"),
            _ if root.flags & COUNTED != 0 => "[COM/WinRT Objects]",
            RootKind::Finalizer => "[finalizer Handles]",
            RootKind::Handle if root.flags == PINNING => "[pinning Handles]",
            RootKind::Handle => "[strong Handles]",
            RootKind::Conditional => "[Dependent Handles]",
            RootKind::Other => "[other Handles]",
        };
        let others = self.child(0, "[other roots]");
        self.child(others, other)
    }

    /// Returns the place of the node of this name below another one.
    fn child(&mut self, parent: usize, name: &str) -> usize {
        let next = self.nodes.len();
        let place = *self.known.entry((parent, name.to_owned())).or_insert(next);
        if place == next {
            self.nodes.push(RootNode { name: name.to_owned(), children: Vec::new() });
            let number = self.first.saturating_add(to_u32(place));
            if let Some(parent) = self.nodes.get_mut(parent) {
                parent.children.push(number);
            }
        }
        place
    }
}
