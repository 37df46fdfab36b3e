//! Records in the bodies of blocks.
use ipc_proto::wire::Reader;

use crate::encoding::{Varint32, Varint64};
use crate::error::{DecodeError, DecodeErrorKind};
use crate::parse::block::TimeRange;
use crate::parse::event::{Blob, BlobReader, Event};
use crate::parse::label::{LabelList, Labels};
use crate::parse::parser::parser::{Body, Parser, Record, State};
use crate::parse::parser::stop::Stop;
use crate::parse::parser::tags::Tags;
use crate::parse::prefetch::{AHEAD, prefetch};
use crate::parse::sequence_point::{SequencePoint, ThreadSequence};
use crate::parse::stack::Stack;
use crate::parse::thread::Thread;
use crate::parse::trace::{Trace, Version};

impl Parser {
    /// Returns the next record of a block's body; `rest` is the unread part of the body in the window.
    pub(super) fn record<'w>(&mut self, rest: &'w [u8]) -> Result<Option<Record<'w>>, Stop> {
        if self.skip > 0 {
            let n = self.skip.min(rest.len());
            self.take(n);
            self.skip = self.skip.wrapping_sub(n);
            return if self.skip > 0 { Err(Stop::More(1)) } else { Ok(None) };
        }
        let done = self.left() == 0;
        match self.body {
            Body::Rest if done => self.body_done(),
            Body::Events
            | Body::Mixed
            | Body::Metadata
            | Body::Rows
            | Body::Threads
            | Body::RemovedThreads
                if done =>
            {
                self.body_done();
            }
            Body::Stacks { count: 0, .. }
            | Body::ThreadSequences { count: 0 }
            | Body::LabelLists { count: 0, .. }
            | Body::Rest => self.skip_block(),
            Body::Events | Body::Mixed | Body::Metadata => return self.next_blob(rest),
            _ => return self.next_non_blob_record(rest),
        }
        Ok(None)
    }

    /// Reads the next blob of a block that is not over.
    pub(super) fn next_blob<'w>(&mut self, rest: &'w [u8]) -> Result<Option<Record<'w>>, Stop> {
        let ahead = rest.get(..AHEAD).unwrap_or(rest);
        let end = self.at.saturating_add(ahead.len());
        let blob = self.blobs.next(rest, self.left());
        let result = self.blob(blob);
        if self.body == Body::Events && self.blobs.is_quick() {
            prefetch(ahead);
            self.quick = end;
        }
        result
    }

    fn body_done(&mut self) {
        self.body = Body::Rest;
        self.tail = Tags::new(self.offset(), self.limits.block);
        self.state = if self.version == Version::V6 { State::Between } else { State::Tail };
    }

    fn blob<'w>(&mut self, blob: Blob<'w>) -> Result<Option<Record<'w>>, Stop> {
        match blob {
            Blob::Whole(event, used) => {
                self.take(used);
                let metadata = match self.body {
                    Body::Mixed => event.metadata_id == 0,
                    body => body == Body::Metadata,
                };
                Ok(Some(if metadata { Record::Metadata(event) } else { Record::Event(event) }))
            }
            Blob::More { used, needed } => {
                self.take(used);
                if needed > self.left() {
                    return Err(Stop::Bad(DecodeErrorKind::UnexpectedEnd));
                }
                Err(self.more(needed))
            }
            Blob::Bad(error) => Err(Stop::Bad(error)),
        }
    }

    /// Returns a reader of the next `n` bytes of the block.
    fn want<'w>(&self, rest: &'w [u8], n: usize) -> Result<Reader<'w>, Stop> {
        if n > self.left() {
            return Err(Stop::Bad(DecodeErrorKind::UnexpectedEnd));
        }
        rest.get(..n).map(Reader::new).ok_or_else(|| self.more(n))
    }

    #[cold]
    #[inline(never)]
    fn more(&self, needed: usize) -> Stop {
        if u32::try_from(needed).is_ok_and(|needed| needed <= self.limits.record) {
            return Stop::More(needed);
        }
        Stop::Bad(DecodeErrorKind::TooLong)
    }

    /// Reads a record without a length field, of at most `len` bytes.
    fn try_read<'w, T>(
        &self,
        rest: &'w [u8],
        len: usize,
        read: impl FnOnce(&mut Reader<'w>) -> Result<T, DecodeError>,
    ) -> Result<(T, usize), Stop> {
        let mut r = Reader::new(rest);
        match read(&mut r) {
            Ok(value) => Ok((value, r.offset())),
            Err(DecodeError { kind: DecodeErrorKind::UnexpectedEnd, .. }) if rest.len() < self.left() => {
                Err(self.more(len.min(self.left())))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the next row without its size.
    fn row<'w>(&self, rest: &'w [u8]) -> Result<&'w [u8], Stop> {
        let len: u16 = self.want(rest, 2)?.read()?;
        let mut r = self.want(rest, usize::from(len).wrapping_add(2))?;
        r.bytes(2)?;
        Ok(r.rest())
    }

    /// Returns the next stack if the window holds all of it. This is a fast path: a stream can have as many stacks as
    /// events.
    pub(super) fn stack<'w>(&mut self, window: &'w [u8]) -> Option<Stack<'w>> {
        let Body::Stacks { id, count } = self.body else { return None };
        let (len, rest) = self.rest(window).split_first_chunk::<4>()?;
        let bytes = rest.get(..usize::try_from(u32::from_le_bytes(*len)).ok()?)?;
        self.body = Body::Stacks { id: id.wrapping_add(1), count: count.checked_sub(1)? };
        self.take(bytes.len().wrapping_add(4));
        Some(Stack { id, bytes })
    }

    /// Returns the next record that is not a blob.
    fn next_non_blob_record<'w>(&mut self, rest: &'w [u8]) -> Result<Option<Record<'w>>, Stop> {
        let v6 = self.version == Version::V6;
        let (record, used, next) = match self.body {
            Body::Trace => {
                let body = self.want(rest, self.left())?.rest();
                let trace =
                    if v6 { Trace::block(self.minor, body) } else { Trace::object(self.version, body) }?;
                (Some(Record::Trace(trace)), body.len(), Body::Rest)
            }
            Body::Header { metadata } => {
                let mut r = self.want(rest, 20)?;
                let (size, flags): (u16, u16) = (r.read()?, r.read()?);
                let size = usize::from(size);
                let Some(more) = size.checked_sub(20) else {
                    return Err(Stop::Bad(DecodeErrorKind::BadSize));
                };
                if size > self.left() {
                    return Err(Stop::Bad(DecodeErrorKind::UnexpectedEnd));
                }
                self.skip = more;
                self.blobs = BlobReader::new(self.version, flags & 1 != 0);
                let times = if metadata { None } else { TimeRange::new(r.read()?, r.read()?) };
                (times.map(Record::TimeRange), 20, Body::Blobs { metadata })
            }
            Body::Blobs { metadata } => (None, 0, if metadata { Body::Metadata } else { Body::Events }),
            Body::RowsHeader => {
                let size: u16 = self.want(rest, 2)?.read()?;
                let size = usize::from(size);
                if size.wrapping_add(2) > self.left() {
                    return Err(Stop::Bad(DecodeErrorKind::UnexpectedEnd));
                }
                self.skip = size;
                (None, 2, Body::Rows)
            }
            Body::Rows => {
                let payload = self.row(rest)?;
                let record = Record::Metadata(Event { payload, ..Event::default() });
                (Some(record), payload.len().wrapping_add(2), self.body)
            }
            Body::StacksHeader => {
                prefetch(rest);
                let mut r = self.want(rest, 8)?;
                (None, 8, Body::Stacks { id: r.read()?, count: r.read()? })
            }
            Body::Stacks { id, count } => {
                let len: u32 = self.want(rest, 4)?.read()?;
                let len = usize::try_from(len).unwrap_or(usize::MAX).saturating_add(4);
                let mut r = self.want(rest, len)?;
                r.bytes(4)?;
                let next = Body::Stacks { id: id.wrapping_add(1), count: count.wrapping_sub(1) };
                (Some(Record::Stack(Stack { id, bytes: r.rest() })), len, next)
            }
            Body::SequencePoint => {
                let len = if v6 { 16 } else { 12 };
                let mut r = self.want(rest, len)?;
                let timestamp = r.read()?;
                let flags = if v6 { r.read()? } else { 0 };
                let threads = r.read()?;
                let point = SequencePoint { timestamp, flags, threads };
                (Some(Record::SequencePoint(point)), len, Body::ThreadSequences { count: threads })
            }
            Body::ThreadSequences { count } => {
                let next = Body::ThreadSequences { count: count.wrapping_sub(1) };
                let (row, used) = if v6 {
                    self.try_read(rest, 15, thread_sequence)?
                } else {
                    let mut r = self.want(rest, 12)?;
                    (ThreadSequence { thread: r.read()?, sequence: r.read()? }, 12)
                };
                (Some(Record::ThreadSequence(row)), used, next)
            }
            Body::Threads => {
                let row = self.row(rest)?;
                (Some(Record::Thread(Thread::row(row)?)), row.len().wrapping_add(2), self.body)
            }
            Body::RemovedThreads => {
                let (row, used) = self.try_read(rest, 15, thread_sequence)?;
                (Some(Record::RemoveThread(row)), used, self.body)
            }
            Body::LabelListsHeader => {
                let mut r = self.want(rest, 8)?;
                (None, 8, Body::LabelLists { id: r.read()?, count: r.read()?, checked: 0 })
            }
            Body::LabelLists { id, count, mut checked } => {
                // A label list has no length field, so the needed length is a guess.
                let guess = rest.len().saturating_mul(2).max(64);
                let list = self.try_read(rest, guess, |r| Labels::list(r, &mut checked));
                self.body = Body::LabelLists { id, count, checked };
                let (labels, used) = list?;
                let (id_of_next, count) = (id.wrapping_add(1), count.wrapping_sub(1));
                let next = Body::LabelLists { id: id_of_next, count, checked: 0 };
                (Some(Record::LabelList(LabelList { id, labels })), used, next)
            }
            Body::Events | Body::Mixed | Body::Metadata | Body::Rest => (None, 0, self.body),
        };
        self.take(used);
        self.body = next;
        Ok(record)
    }
}

fn thread_sequence(r: &mut Reader<'_>) -> Result<ThreadSequence, DecodeError> {
    Ok(ThreadSequence { thread: r.read::<Varint64>()?.0, sequence: r.read::<Varint32>()?.0 })
}
