//! Which method of the program causes some events.
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::method_table::MethodNumber;
use super::place::Place;

/// A method of the program, and how much of the events is in it and below it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct BlamedMethod<'a> {
    /// The name in the source, without type arguments.
    pub name: &'a str,
    /// The share of the events, between 0 and 1.
    pub share: f64,
}

/// The methods of the program that cause some events.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Blame<'a> {
    /// The weight of all events, also of those without a method of the program.
    pub total: u64,
    /// The deepest method that is in the stacks of more than half of the weight; `None` if there is no such method.
    pub method: Option<BlamedMethod<'a>>,
    /// The innermost methods, the heaviest first.
    pub innermost: Vec<BlamedMethod<'a>>,
}

impl<'a> Blame<'a> {
    /// Finds the methods by the places of the events and their weights. A method of `entry_points` is below everything
    /// that a program does, so it counts only where it is the innermost.
    pub(super) fn new<'p>(
        rows: &[(&'p Place, u64)],
        entry_points: &[MethodNumber],
        name: impl Fn(MethodNumber) -> &'a str,
    ) -> Self {
        let total = rows.iter().fold(0_u64, |sum, (_, weight)| sum.saturating_add(*weight));
        let mut inclusive: BTreeMap<MethodNumber, u64> = BTreeMap::new();
        let mut innermost: BTreeMap<MethodNumber, u64> = BTreeMap::new();
        let add = |to: &mut BTreeMap<MethodNumber, u64>, method: MethodNumber, weight: u64| {
            let sum = to.entry(method).or_default();
            *sum = sum.saturating_add(weight);
        };
        let mut seen = Vec::new();
        for (place, weight) in rows {
            seen.clear();
            seen.extend_from_slice(&place.own);
            seen.sort_unstable();
            seen.dedup();
            let first = place.own.first();
            let counts = |method: &&MethodNumber| first == Some(*method) || !entry_points.contains(method);
            seen.iter().filter(counts).for_each(|method| add(&mut inclusive, *method, *weight));
            first.into_iter().for_each(|method| add(&mut innermost, *method, *weight));
        }
        let is_most = |weight: u64| weight > total / 2;
        let mut deepest: BTreeMap<MethodNumber, u64> = BTreeMap::new();
        for (place, weight) in rows {
            let is_common = |method: &&MethodNumber| inclusive.get(method).is_some_and(|of| is_most(*of));
            place
                .own
                .iter()
                .find(is_common)
                .into_iter()
                .for_each(|method| add(&mut deepest, *method, *weight));
        }
        let named = |(method, weight): (MethodNumber, u64)| BlamedMethod {
            name: name(method),
            share: weight as f64 / total.max(1) as f64,
        };
        let method = deepest.into_iter().max_by_key(|(_, weight)| *weight);
        let method = method.and_then(|(method, _)| Some((method, *inclusive.get(&method)?))).map(named);
        let mut innermost: Vec<_> = innermost.into_iter().map(named).collect();
        innermost.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.name.cmp(b.name)));
        Self { total, method, innermost }
    }
}
