//! The objects of a snapshot.
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use ipc_proto::wire::to_u32;

/// The objects by the order of arrival, a column a fact.
#[derive(Debug, Clone, Default)]
pub(super) struct NodeColumns {
    pub(super) addresses: Vec<u64>,
    pub(super) types: Vec<u32>,
    /// The sizes; `u32::MAX` if the size is in `large`.
    pub(super) sizes: Vec<u32>,
    pub(super) large: BTreeMap<u32, u64>,
    /// The number of references; in a graph, the place of the first one.
    pub(super) edges: Vec<u64>,
}

impl NodeColumns {
    pub(super) fn push(&mut self, address: u64, bytes: u64, of_type: u32, edges: u64) {
        let size = u32::try_from(bytes).unwrap_or(u32::MAX);
        if size == u32::MAX {
            self.large.insert(to_u32(self.addresses.len()), bytes);
        }
        self.addresses.push(address);
        self.types.push(of_type);
        self.sizes.push(size);
        self.edges.push(edges);
    }
}
