//! The state that a reader keeps of earlier records: values by id, sequence numbers (to count lost events), and events
//! that wait to be sorted by time.
mod backing;
mod id_map;
#[cfg(feature = "alloc")]
mod label_digest;
mod loss;
mod order;
mod store;

pub use self::backing::Backing;
pub use self::id_map::{IdMap, Slot, StoreFull};
#[cfg(feature = "alloc")]
pub(crate) use self::label_digest::{ByteRange, LabelDigest};
pub use self::loss::{Counter, LossCounter, Losses};
pub use self::order::{Held, Order};
pub use self::store::{Store, StoredRange};
