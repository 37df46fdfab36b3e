use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::call_tree::{CallTree, Entry, Order};
use crate::names::{FrameId, Names};

/// A type of objects, or a function that allocates objects of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeRow<'n> {
    /// The name of the type; [`UNKNOWN_TYPE`](crate::samples::UNKNOWN_TYPE) if no event has it.
    pub type_name: &'n str,
    /// The function that allocates.
    pub function: Option<&'n str>,
    /// The allocated bytes.
    pub bytes: u64,
    /// The number of the events.
    pub count: u64,
}

/// The types of objects, and the functions that allocate objects of these types; the heaviest first.
#[derive(Debug, Clone)]
pub struct TypeRows<'n> {
    /// The number of all types.
    pub all: usize,
    /// The first types.
    pub types: Vec<TypeRow<'n>>,
    /// The first functions for them.
    pub functions: Vec<TypeRow<'n>>,
}

impl<'n> TypeRows<'n> {
    /// Returns the first `len` rows of trees of bytes and of events, in which types are the innermost frames.
    pub(super) fn new(tree: &CallTree, counts: &CallTree, names: &'n Names, len: usize) -> Self {
        let weights = |entries: Vec<Entry>, weight: fn(Entry) -> u64| -> BTreeMap<FrameId, u64> {
            entries.into_iter().map(|entry| (entry.frame, weight(entry))).collect()
        };
        let count_of = |counts: &BTreeMap<_, _>, frame| counts.get(&frame).copied().unwrap_or_default();
        let of_types = weights(counts.top(Order::Exclusive), |entry| entry.exclusive);
        let mut top = tree.top(Order::Exclusive);
        top.retain(|entry| entry.exclusive > 0);
        let (mut types, mut functions) = (Vec::new(), Vec::new());
        for entry in top.iter().take(len) {
            let type_name = names.text(entry.frame);
            let count = count_of(&of_types, entry.frame);
            types.push(TypeRow { type_name, function: None, bytes: entry.exclusive, count });
            let of_callers = weights(counts.callers(entry.frame), |caller| caller.inclusive);
            functions.extend(tree.callers(entry.frame).into_iter().map(|caller| TypeRow {
                type_name,
                function: Some(names.text(caller.frame)),
                bytes: caller.inclusive,
                count: count_of(&of_callers, caller.frame),
            }));
        }
        functions.sort_by_key(|row| Reverse(row.bytes));
        functions.truncate(len);
        Self { all: top.len(), types, functions }
    }
}
