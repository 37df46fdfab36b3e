//! The tagged values of objects.
use crate::parse::parser::parser::{Parser, State};
use crate::parse::parser::stop::Stop;
use crate::parse::parser::tags::tag;
use crate::parse::trace::Version;

impl Parser {
    /// Returns the tag that objects begin with.
    pub(super) fn begin_tag(&self) -> u8 {
        if self.version == Version::V3 { tag::BEGIN_OBJECT } else { tag::BEGIN_PRIVATE_OBJECT }
    }

    /// Skips one tagged value, or the end of the object. Tagged values follow the body of an object, and are the whole
    /// content of an object of an unknown name.
    pub(super) fn object_tail(&mut self, window: &[u8]) -> Result<(), Stop> {
        let rest = self.seek(window, self.tail.offset())?;
        if self.tail.step(rest)? {
            self.take(1);
            self.state = State::Between;
        }
        Ok(())
    }

    /// Skips to an offset of the stream. Returns the rest of the window from that offset, which is not empty.
    fn seek<'w>(&mut self, window: &'w [u8], offset: u64) -> Result<&'w [u8], Stop> {
        let rest = self.rest_of_window(window);
        let ahead = usize::try_from(offset.saturating_sub(self.offset())).unwrap_or(usize::MAX);
        self.take(ahead.min(rest.len()));
        rest.get(ahead..).filter(|rest| !rest.is_empty()).ok_or(Stop::More(1))
    }
}
