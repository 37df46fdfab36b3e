//! The bytes that a writer returns to its caller.
use core::ops::Deref;

/// Bytes of a stream that the caller of a [`TraceWriter`](crate::TraceWriter) or a [`Rewrite`](crate::Rewrite)
/// must output before it writes the next record.
///
/// Most calls return no bytes, because the writer collects records in its buffer. Many sinks accept an empty slice. A
/// caller for which an empty write is expensive can check for one:
///
/// ```
/// # use nettrace::{Event, TraceWriter, WriteError};
/// fn write(writer: &mut TraceWriter<'_>, event: &Event<'_>, packets: &mut Vec<Vec<u8>>) -> Result<(), WriteError> {
///     let bytes = writer.event(event)?;
///     if !bytes.is_empty() {
///         packets.push(bytes.to_vec());
///     }
///     Ok(())
/// }
/// ```
///
/// Without these bytes the stream is not valid, so the compiler warns if they are ignored:
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # use nettrace::{Event, TraceWriter, WriteError};
/// fn write(writer: &mut TraceWriter<'_>, event: &Event<'_>) -> Result<(), WriteError> {
///     writer.event(event)?;
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use = "these bytes are a part of the stream: output them before the next record"]
pub struct TraceBytes<'w>(pub(crate) &'w [u8]);

impl Deref for TraceBytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0
    }
}

impl AsRef<[u8]> for TraceBytes<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0
    }
}
