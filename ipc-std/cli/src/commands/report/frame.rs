//! The functions of a report.
use nettrace_analysis::call_tree::{CallTree, Change, Entry, Order};
use nettrace_analysis::names::Names;
use serde::Serialize;

/// A function. Shares are in percent.
#[derive(Serialize)]
pub(super) struct Frame<'s> {
    pub(super) name: &'s str,
    exclusive: f64,
    inclusive: f64,
    own_share: f64,
    pub(super) own: bool,
    #[serde(flatten)]
    before: Option<Before>,
    /// The two shares that the text shows.
    #[serde(skip)]
    pub(super) columns: [f64; 2],
}

/// The shares in an older recording.
#[derive(Serialize)]
struct Before {
    exclusive_before: f64,
    inclusive_before: f64,
    own_share_before: f64,
}

impl<'s> Frame<'s> {
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
        let before = Some(Before { exclusive_before, inclusive_before, own_share_before });
        let columns = change.shares(order);
        Self { name: change.name, exclusive, inclusive, own_share, own: change.is_own, before, columns }
    }
}
