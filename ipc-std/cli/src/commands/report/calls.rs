//! The calls of a report, from the root.
use nettrace_analysis::call_tree::{CallTree, NodeId};
use nettrace_analysis::names::Names;
use serde::Serialize;

use super::frame::Frame;

/// A line of the tree.
#[derive(Serialize)]
pub(super) struct Call<'s> {
    #[serde(flatten)]
    pub(super) frame: Frame<'s>,
    depth: usize,
    /// The columns by which the line is indented: a chain of calls without a fork stays in its column.
    #[serde(skip)]
    pub(super) indent: usize,
    /// Whether the function is one of several callees, or a root.
    #[serde(skip)]
    pub(super) is_branch: bool,
}

/// Returns up to `limit` lines, of calls that have at least one percent, and whether there are more.
pub(super) fn calls<'s>(tree: &CallTree, names: &'s Names, limit: usize) -> (Vec<Call<'s>>, bool) {
    // The maximum indentation in columns: the names of a deep tree would otherwise be beyond the edge of the
    // terminal.
    const MAX_INDENT: usize = 60;
    let visible = |node| {
        let mut children = tree.children(node);
        children.retain(|(_, entry)| tree.share(entry.inclusive) >= 1.0);
        children.reverse();
        children
    };
    let mut lines = Vec::new();
    let roots = visible(NodeId::ROOT).into_iter();
    let mut left: Vec<_> = roots.map(|child| (child, 0, 0, true)).collect();
    while let Some(((node, entry), depth, indent, is_branch)) = left.pop() {
        if lines.len() == limit {
            return (lines, true);
        }
        let frame = Frame::new(tree, names, &entry, [entry.inclusive, entry.exclusive]);
        lines.push(Call { frame, depth, indent, is_branch });
        let children = visible(node);
        let forks = children.len() > 1;
        let indent = if forks { indent.saturating_add(2).min(MAX_INDENT) } else { indent };
        let depth = depth.saturating_add(1);
        left.extend(children.into_iter().map(|child| (child, depth, indent, forks)));
    }
    (lines, false)
}
