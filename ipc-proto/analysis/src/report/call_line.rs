use alloc::vec::Vec;

use crate::call_tree::{CallTree, Entry, NodeId};

/// A line of a tree of calls: a function below its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLine {
    /// The number of callers.
    pub depth: usize,
    /// The columns by which the line is indented: a chain of calls without a fork stays in its column.
    pub indent: usize,
    /// Whether the function is one of several callees, or a root.
    pub is_branch: bool,
    /// The function, with its weights in this place.
    pub entry: Entry,
}

/// Returns up to `limit` lines, of calls that have at least one percent, and whether there are more.
pub(super) fn call_lines(tree: &CallTree, limit: usize) -> (Vec<CallLine>, bool) {
    // The names of a deep tree would otherwise be beyond the edge of a terminal.
    const MAX_INDENT: usize = 60;
    let visible = |node| {
        let mut children = tree.children(node);
        children.retain(|(_, entry)| tree.share(entry.inclusive) >= 1.0);
        children.reverse();
        children
    };
    let line = |entry, depth, indent, is_branch| CallLine { depth, indent, is_branch, entry };
    let mut lines = Vec::new();
    let roots = visible(NodeId::ROOT).into_iter();
    let mut left: Vec<_> = roots.map(|(node, entry)| (node, line(entry, 0, 0, true))).collect();
    while let Some((node, caller)) = left.pop() {
        if lines.len() == limit {
            return (lines, true);
        }
        lines.push(caller);
        let children = visible(node);
        let forks = children.len() > 1;
        let CallLine { depth, indent, .. } = caller;
        let indent = if forks { indent.saturating_add(2).min(MAX_INDENT) } else { indent };
        let depth = depth.saturating_add(1);
        left.extend(children.into_iter().map(|(node, entry)| (node, line(entry, depth, indent, forks))));
    }
    (lines, false)
}
