use super::{Rewrite, RewriteError};
use crate::nettrace::TraceBytes;

/// The end of a result, which [`Rewrite::finish`] returns.
///
/// ```text
/// let mut end = rewrite.finish();
/// while let Some(bytes) = end.next_bytes()? {
///     out.write_all(&bytes)?;
/// }
/// ```
#[derive(Debug)]
#[must_use = "without its bytes the stream has no end"]
pub struct RewriteEnd<'s> {
    pub(super) rewrite: Rewrite<'s>,
}

impl RewriteEnd<'_> {
    /// Returns the next bytes of the result, and `None` after the last ones.
    ///
    /// # Errors
    /// If the buffer has no room for the rest.
    pub fn next_bytes(&mut self) -> Result<Option<TraceBytes<'_>>, RewriteError> {
        self.rewrite.writer.lend_nothing();
        self.rewrite.close()?;
        Ok(Some(self.rewrite.writer.lent()).filter(|bytes| !bytes.is_empty()))
    }
}
