//! The methods of the program in the stacks of requests.
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use ipc_proto::wire::to_u32;

use crate::names::{Names, source_name};
use crate::{StackId, Stacks};

/// The methods of the program in stacks, each stack once.
pub(super) struct OwnStacks<'a> {
    stacks: &'a Stacks,
    names: &'a mut Names,
    /// The methods of each stack, the innermost first.
    known: BTreeMap<StackId, Vec<u32>>,
    /// The names of the methods by their numbers.
    pub(super) methods: Vec<String>,
    ids: BTreeMap<String, u32>,
}

impl<'a> OwnStacks<'a> {
    pub(super) fn new(stacks: &'a Stacks, names: &'a mut Names) -> Self {
        Self { stacks, names, known: BTreeMap::new(), methods: Vec::new(), ids: BTreeMap::new() }
    }

    /// Returns the methods of the program in a stack, the innermost first.
    pub(super) fn of(&mut self, stack: StackId) -> &[u32] {
        let Self { stacks, names, known, methods, ids } = self;
        known.entry(stack).or_insert_with(|| {
            let mut found = Vec::new();
            for address in stacks.addresses(stack) {
                let frame = names.frame(address);
                if !names.is_own(frame) {
                    continue;
                }
                let name = source_name(names.short(frame));
                let id = ids.get(&name).copied().unwrap_or_else(|| {
                    let id = to_u32(methods.len());
                    methods.push(name.clone());
                    ids.insert(name, id);
                    id
                });
                // An asynchronous method that starts has two frames.
                if found.last() != Some(&id) {
                    found.push(id);
                }
            }
            found
        })
    }

    /// Returns the innermost method of the program of these operations, by their stacks in the order of time: the last
    /// one that called no other one.
    pub(super) fn innermost(&mut self, operations: &[StackId]) -> Option<u32> {
        // The methods that called an operation.
        let mut callers = Vec::new();
        let mut last = Vec::new();
        for stack in operations {
            if let Some((method, calling)) = self.of(*stack).split_first() {
                last.push(*method);
                callers.extend(calling.iter().copied().filter(|caller| caller != method));
            }
        }
        callers.sort_unstable();
        last.into_iter().rev().find(|method| callers.binary_search(method).is_err())
    }
}
