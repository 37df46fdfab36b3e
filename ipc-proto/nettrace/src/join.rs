//! What joins records with earlier ones: maps by id, lost events, the order of time.
pub(crate) mod backing;
pub(crate) mod id_map;
pub(crate) mod loss;
pub(crate) mod order;
pub(crate) mod store;
