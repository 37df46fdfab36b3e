//! What a reader remembers of earlier records: values by id, sequence numbers (to count lost events), and events that
//! wait to be sorted by time.
pub(crate) mod backing;
#[cfg(feature = "alloc")]
pub(crate) mod byte_range;
pub(crate) mod id_map;
#[cfg(feature = "alloc")]
pub(crate) mod label_digest;
pub(crate) mod loss;
pub(crate) mod order;
pub(crate) mod store;
