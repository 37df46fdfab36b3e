//! The types of the objects that were allocated.
use core::cmp::Reverse;
use std::collections::HashMap;

use nettrace_analysis::call_tree::{CallTree, Entry, Order};
use nettrace_analysis::names::{FrameId, Names};
use nettrace_analysis::samples::UNKNOWN_TYPE;
use serde::Serialize;

use crate::output::integer::Integer;

/// The heaviest types, and the functions that allocate most of their objects.
#[derive(Serialize)]
pub(super) struct TypeRows<'s> {
    pub(super) types: Vec<TypeRow<'s>>,
    pub(super) type_functions: Vec<TypeRow<'s>>,
    /// The number of all types.
    #[serde(skip)]
    pub(super) all: usize,
}

/// A type of objects, or a function that allocates objects of a type.
#[derive(Serialize)]
pub(super) struct TypeRow<'s> {
    #[serde(rename = "type")]
    pub(super) type_name: Option<&'s str>,
    pub(super) bytes: Integer,
    pub(super) count: u64,
    pub(super) share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function: Option<&'s str>,
}

impl<'s> TypeRows<'s> {
    /// Returns up to `len` rows of trees of bytes and of events, in which types are the innermost frames.
    pub(super) fn new(tree: &CallTree, counts: &CallTree, names: &'s Names, len: usize) -> Self {
        type EventCounts = HashMap<FrameId, u64>;
        let row = |type_frame, function: Option<FrameId>, bytes, counts: &EventCounts| TypeRow {
            type_name: Some(names.text(type_frame)).filter(|name| *name != UNKNOWN_TYPE),
            bytes: Integer(bytes),
            count: counts.get(&function.unwrap_or(type_frame)).copied().unwrap_or_default(),
            share: tree.share(bytes),
            function: function.map(|frame| names.text(frame)),
        };
        let counted = |entries: Vec<Entry>, weight: fn(Entry) -> u64| -> EventCounts {
            entries.into_iter().map(|entry| (entry.frame, weight(entry))).collect()
        };
        let of_types = counted(counts.top(Order::Exclusive), |entry| entry.exclusive);
        let mut top = tree.top(Order::Exclusive);
        top.retain(|entry| entry.exclusive > 0);
        let (mut types, mut type_functions) = (Vec::new(), Vec::new());
        for Entry { frame, exclusive, .. } in top.iter().take(len).copied() {
            types.push(row(frame, None, exclusive, &of_types));
            let of_callers = counted(counts.callers(frame), |caller| caller.inclusive);
            let callers = tree.callers(frame).into_iter();
            type_functions.extend(callers.map(|of| row(frame, Some(of.frame), of.inclusive, &of_callers)));
        }
        type_functions.sort_by_key(|row| Reverse(row.bytes.0));
        type_functions.truncate(len);
        Self { types, type_functions, all: top.len() }
    }
}
