//! The description of a kind of event, which borrows from the trace.
#[cfg(feature = "clr")]
use crate::clr::{Layouts, describe};
use crate::describe::field::Fields;
use crate::describe::metadata::Metadata;
use crate::error::DecodeError;
use crate::join::label_digest::LabelDigest;
use crate::parse::trace::Version;

/// A description, and what the fields of a single event depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Description<'a> {
    pub(crate) metadata: Metadata<'a>,
    /// The record of the stream.
    pub(crate) record: &'a [u8],
    /// The versions of an event of the runtime.
    #[cfg(feature = "clr")]
    layouts: Layouts,
}

impl<'a> Description<'a> {
    pub(crate) fn decode(version: Version, record: &'a [u8], pointer_size: u32) -> Result<Self, DecodeError> {
        let metadata = Metadata::decode(version, record)?;
        #[cfg(feature = "clr")]
        let (layouts, metadata) = (Layouts::of(&metadata), describe(metadata, pointer_size));
        #[cfg(not(feature = "clr"))]
        let _ = pointer_size;
        Ok(Self {
            metadata,
            record,
            #[cfg(feature = "clr")]
            layouts,
        })
    }

    /// Returns the fields of an event. They are not those of the description if the version of an event of the runtime
    /// is a label, or unknown.
    #[cfg(feature = "clr")]
    pub(crate) fn fields(
        &self,
        labels: Option<&LabelDigest>,
        pointer_size: u32,
        payload: &[u8],
    ) -> Fields<'a> {
        let described = self.metadata.fields;
        if self.layouts.is_empty() {
            return described;
        }
        let label = labels.and_then(|labels| labels.version);
        let version = described.is_empty().then_some(self.metadata.version);
        self.layouts.fields_of(label, version, pointer_size, payload).unwrap_or(described)
    }

    #[cfg(not(feature = "clr"))]
    pub(crate) const fn fields(&self, _: Option<&LabelDigest>, _: u32, _: &[u8]) -> Fields<'a> {
        self.metadata.fields
    }
}
