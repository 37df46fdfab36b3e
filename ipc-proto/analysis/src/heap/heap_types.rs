//! The table of a snapshot: what fills the heap, by type.
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use ipc_proto::wire::to_usize;

use super::graph::Graph;
use crate::OwnCode;
use crate::names::{file_name, module_name};

/// The objects of all types of one name in one module.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapTypeRow {
    /// The name of the type: see [`HeapType::name`](super::HeapType::name).
    pub name: String,
    /// The file of the module, without its folder; `None` if it is not known.
    pub module: Option<String>,
    /// The number of objects.
    pub count: u64,
    /// The bytes of all objects, without what they refer to.
    pub bytes: u64,
    /// The size of the largest object in bytes.
    pub largest: u64,
    /// The bytes of the objects of at least [`LARGE_OBJECT`](super::LARGE_OBJECT) bytes.
    pub large: u64,
    /// Whether the type belongs to the program.
    pub is_own: bool,
}

impl Graph {
    /// Returns a row for each name of a type in each module, in the order of names. The work is linear in the number of
    /// objects, and that of [`rows`](Self::rows).
    #[must_use]
    pub fn type_rows(&self, own: &OwnCode) -> Vec<HeapTypeRow> {
        let mut rows = BTreeMap::new();
        for row in self.rows() {
            let Some(of_type) = self.types().get(to_usize(row.type_place)) else { continue };
            let module = of_type.module.as_deref().filter(|path| !path.is_empty()).map(file_name);
            let name = of_type.name();
            let stem = module.map_or("", module_name);
            // A symbol as it is names a type of the runtime.
            let is_named = |raw: &str| !(raw.is_empty() || of_type.is_native() && raw.starts_with('_'));
            let is_own =
                of_type.raw_name.as_deref().is_some_and(is_named) && own.owns(&format!("{stem}!{name}"));
            let module = module.map(ToOwned::to_owned);
            let none = |(name, module)| HeapTypeRow {
                name,
                module,
                count: 0,
                bytes: 0,
                largest: 0,
                large: 0,
                is_own,
            };
            let key = (name, module);
            let known = rows.entry(key.clone()).or_insert_with(|| none(key));
            known.count = known.count.saturating_add(row.count);
            known.bytes = known.bytes.saturating_add(row.bytes);
            known.largest = known.largest.max(row.largest);
            known.large = known.large.saturating_add(row.large);
        }
        rows.into_values().collect()
    }
}
