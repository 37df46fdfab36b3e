//! [`Encode`]: values that are written as bytes.
use super::Writer;

/// A value with a wire form.
///
/// ```
/// use ipc_proto::{Encode, Text};
/// assert_eq!(Text::from("abc").encoded_len(), 4 + 2 * 4);
/// assert_eq!(Text::NULL.encoded_len(), 4);
/// ```
pub trait Encode {
    /// Appends the wire form to `w`. Encoding cannot fail: `w` counts the bytes that do not fit.
    fn encode(&self, w: &mut Writer<'_>);

    /// Returns the length of the wire form in bytes.
    fn encoded_len(&self) -> usize {
        let mut w = Writer::new(&mut []);
        self.encode(&mut w);
        w.len()
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    fn encode(&self, w: &mut Writer<'_>) {
        (**self).encode(w);
    }
}
