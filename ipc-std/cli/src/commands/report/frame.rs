//! The functions of a report, and the lines of its tree of calls.
use nettrace_analysis::call_tree::{CallTree, Change, Entry, NodeId, Order};
use nettrace_analysis::names::Names;
use serde::Serialize;

/// A function. Shares are in percent.
#[derive(Serialize)]
pub(super) struct FunctionRow<'s> {
    pub(super) name: &'s str,
    exclusive: f64,
    inclusive: f64,
    own_share: f64,
    pub(super) own: bool,
    #[serde(flatten)]
    before: Option<SharesBefore>,
    /// The two shares that the text shows.
    #[serde(skip)]
    pub(super) columns: [f64; 2],
}

/// The shares in an older recording.
#[derive(Serialize)]
struct SharesBefore {
    exclusive_before: f64,
    inclusive_before: f64,
    own_share_before: f64,
}

impl<'s> FunctionRow<'s> {
    /// Returns the row of a function, of which the text shows two weights.
    pub(super) fn new(tree: &CallTree, names: &'s Names, entry: &Entry, columns: [u64; 2]) -> Self {
        Self {
            name: names.text(entry.frame),
            exclusive: tree.share(entry.exclusive),
            inclusive: tree.share(entry.inclusive),
            own_share: tree.share(entry.own),
            own: entry.is_own,
            before: None,
            columns: columns.map(|weight| tree.share(weight)),
        }
    }

    /// Returns the row of a function whose shares differ, of which the text shows those before and after.
    pub(super) fn changed(change: &Change<'s>, order: Order) -> Self {
        let [exclusive_before, exclusive] = change.exclusive;
        let [inclusive_before, inclusive] = change.inclusive;
        let [own_share_before, own_share] = change.own;
        let before = Some(SharesBefore { exclusive_before, inclusive_before, own_share_before });
        let columns = change.shares(order);
        Self { name: change.name, exclusive, inclusive, own_share, own: change.is_own, before, columns }
    }
}

/// A line of the tree.
#[derive(Serialize)]
pub(super) struct CallRow<'s> {
    #[serde(flatten)]
    pub(super) frame: FunctionRow<'s>,
    depth: usize,
    /// The columns by which the line is indented: a chain of calls without a fork stays in its column.
    #[serde(skip)]
    pub(super) indent: usize,
    /// Whether the function is one of several callees, or a root.
    #[serde(skip)]
    pub(super) is_branch: bool,
}

/// Returns up to `limit` lines, of calls that have at least one percent, and whether there are more.
pub(super) fn calls<'s>(tree: &CallTree, names: &'s Names, limit: usize) -> (Vec<CallRow<'s>>, bool) {
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
        let frame = FunctionRow::new(tree, names, &entry, [entry.inclusive, entry.exclusive]);
        lines.push(CallRow { frame, depth, indent, is_branch });
        let children = visible(node);
        let forks = children.len() > 1;
        let indent = if forks { indent.saturating_add(2).min(MAX_INDENT) } else { indent };
        let depth = depth.saturating_add(1);
        left.extend(children.into_iter().map(|child| (child, depth, indent, forks)));
    }
    (lines, false)
}
