//! Whole numbers of JSON.
use serde::{Serialize, Serializer};

use crate::text::printable::integer;

/// A whole number; as text if JavaScript would round it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Integer(pub(crate) u64);

impl Serialize for Integer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        integer(self.0).serialize(serializer)
    }
}
