//! The bytes of a whole trace, which a reader reads in place.
use alloc::boxed::Box;
use core::fmt;

/// All bytes of a trace, which the caller has in memory.
pub(crate) struct WholeBytes(Box<dyn AsRef<[u8]> + Send + Sync>);

impl fmt::Debug for WholeBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

impl WholeBytes {
    pub(crate) fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Box::new(bytes))
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes().len()
    }

    fn bytes(&self) -> &[u8] {
        let Self(bytes) = self;
        (**bytes).as_ref()
    }
}

/// Returns the bytes in which the window of a reader is: those of the whole trace, or those of its buffer.
#[inline]
pub(crate) fn bytes_of<'a>(whole: Option<&'a WholeBytes>, buf: &'a [u8]) -> &'a [u8] {
    match whole {
        None => buf,
        Some(whole) => whole.bytes(),
    }
}
