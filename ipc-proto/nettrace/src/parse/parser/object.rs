//! The rest of objects, and objects of unknown names.
use crate::parse::end::{Corruption, End};
use crate::parse::parser::stop::Stop;
use crate::parse::parser::tags::{Type, expect_tags, tag};
use crate::parse::parser::{Parser, State};
use crate::parse::trace::Version;

impl Parser {
    /// Returns the tag that objects begin with.
    pub(super) fn begin_tag(&self) -> u8 {
        if self.version == Version::V3 { tag::BEGIN_OBJECT } else { tag::BEGIN_PRIVATE_OBJECT }
    }

    /// Skips one tagged value after the body of a known object, or the end of the object.
    pub(super) fn object_tail(&mut self, window: &[u8]) -> Result<(), Stop> {
        let rest = self.seek(window, self.tail.offset())?;
        if self.tail.step(rest, self.limits.block)? {
            self.take(1);
            self.state = State::Between;
        }
        Ok(())
    }

    /// Skips a part of an object of an unknown name.
    pub(super) fn unknown_object(&mut self, window: &[u8]) -> Result<(), Stop> {
        let mut unknown = self.unknown;
        let Some(reading) = unknown.next() else {
            // Both readings are refuted.
            let offset = self.block.offset;
            let corrupt = End::Corrupt { offset, reason: Corruption::Object };
            self.end(if unknown.is_last { End::Complete } else { corrupt });
            return Ok(());
        };
        let Some(tags) = reading else { return Ok(()) };
        let rest = self.seek(window, tags.offset())?;
        match tags.step(rest, self.limits.block) {
            Ok(false) => {}
            Ok(true) => match self.continuation(rest.get(1..).unwrap_or_default()) {
                Ok(true) => {
                    self.take(1);
                    self.state = State::Between;
                    return Ok(());
                }
                Ok(false) => {
                    *reading = None;
                    unknown.is_last = true;
                }
                Err(stop @ Stop::More(_)) => return Err(stop.after(1)),
                Err(_) => *reading = None,
            },
            Err(stop @ Stop::More(_)) => return Err(stop),
            Err(_) => *reading = None,
        }
        self.unknown = unknown;
        Ok(())
    }

    /// Checks that an object can end before `rest`: another object or the end mark follows. Returns whether it is an
    /// object.
    fn continuation(&self, rest: &[u8]) -> Result<bool, Stop> {
        if rest.first() == Some(&tag::NULL_REFERENCE) {
            return Ok(false);
        }
        let begin = self.begin_tag();
        expect_tags(rest, 0, &[begin, begin, tag::NULL_REFERENCE])?;
        Type::parse(rest.get(3..).unwrap_or_default()).map(|_| true).map_err(|stop| stop.after(3))
    }

    /// Skips to an offset of the stream. Returns the rest of the window from there, which is not empty.
    fn seek<'w>(&mut self, window: &'w [u8], offset: u64) -> Result<&'w [u8], Stop> {
        let rest = self.rest_of_window(window);
        let ahead = usize::try_from(offset.saturating_sub(self.offset())).unwrap_or(usize::MAX);
        self.take(ahead.min(rest.len()));
        rest.get(ahead..).filter(|rest| !rest.is_empty()).ok_or(Stop::More(1))
    }
}
