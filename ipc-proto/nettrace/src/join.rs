//! What joins records with earlier ones: tables by id, lost events, the order of time.
pub(crate) mod loss;
pub(crate) mod order;
pub(crate) mod store;
pub(crate) mod table;
