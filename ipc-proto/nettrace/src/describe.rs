//! The content of a metadata record: the names of an event, its fields and their types.
mod field;
mod metadata;
mod scalar;
mod shape;

pub use self::field::{ArrayKind, Element, Field, FieldIter, FieldType, Fields};
pub(crate) use self::field::{Format, MAX_DEPTH, Type, code, compound, name_and_type, skip_to_v2};
pub use self::metadata::{Attributes, Metadata};
pub use self::scalar::Scalar;
pub use self::shape::{FieldShape, ShapeKind};
