//! `RecordReader`: records of a trace from any `Read`.
use core::ops::ControlFlow;
use std::io::{self, ErrorKind, Read};

use crate::assemble::parser_buf::ParserBuf;
use crate::parse::event::Event;
use crate::parse::parser::{Limits, Record};
use crate::parse::trace::Version;

/// Reads a trace record by record: a [`ParserBuf`] and the reader of its bytes.
///
/// [`TraceReader`](crate::TraceReader) returns events with everything that they refer to. This type returns every
/// record of the stream, in its order. `R` is a file, a `TraceSession` of `ipc_std`, or any other reader,
/// with or without a buffer.
///
/// ```
/// use nettrace::{End, Record, RecordReader};
///
/// # fn main() -> std::io::Result<()> {
/// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace"))?;
/// let file = std::fs::File::open("gen-net10-lab-small.nettrace")?;
/// let mut records = RecordReader::new(file);
/// let (mut stacks, mut events) = (0, 0);
/// let end = loop {
///     match records.next_record() {
///         Record::More { .. } => records.read_more()?,
///         Record::Stack(_) => stacks += 1,
///         Record::Event(_) => events += 1,
///         Record::End(end) => break end,
///         _ => {}
///     }
/// };
/// assert_eq!((stacks, events, end), (26, 142, End::Complete));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RecordReader<R> {
    reader: R,
    records: ParserBuf,
}

impl<R: Read> RecordReader<R> {
    /// Creates a reader that starts with the first byte of a stream. Nothing is read before
    /// [`read_more`](Self::read_more).
    pub fn new(reader: R) -> Self {
        Self::with_limits(reader, Limits::default())
    }

    /// Creates a reader with other limits. [`ParserBuf::new`] describes the memory that a reader takes.
    pub fn with_limits(reader: R, limits: Limits) -> Self {
        Self { reader, records: ParserBuf::new(limits) }
    }

    /// Reads `bytes`, which are the whole trace, in place, instead of those of the reader: see [`ParserBuf::of_bytes`].
    /// Call it first. No record is then a [`Record::More`], so there is no need to call [`read_more`](Self::read_more).
    #[must_use]
    pub fn of_bytes(mut self, bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        self.records = self.records.of_bytes(bytes);
        self
    }

    /// Returns the next record, or [`Record::More`] if its bytes have not been read. After the end of the input, the
    /// last record is a [`Record::End`], which is repeated.
    #[inline]
    pub fn next_record(&mut self) -> Record<'_> {
        self.records.next_record()
    }

    /// Passes the next events of the block to `take`, until it breaks, as
    /// [`Parser::try_for_each_event`](crate::Parser::try_for_each_event) does: faster than record by record. Also
    /// returns if the next record is not an event, or if its bytes have not been read.
    ///
    /// ```
    /// use core::ops::ControlFlow;
    /// use nettrace::{End, Record, RecordReader};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace"))?;
    /// let file = std::fs::File::open("gen-net10-lab-small.nettrace")?;
    /// let mut records = RecordReader::new(file);
    /// let mut events = 0;
    /// let end = loop {
    ///     let _ = records.try_for_each_event(|_| {
    ///         events += 1;
    ///         ControlFlow::<()>::Continue(())
    ///     });
    ///     match records.next_record() {
    ///         Record::More { .. } => records.read_more()?,
    ///         Record::End(end) => break end,
    ///         _ => {}
    ///     }
    /// };
    /// assert_eq!((events, end), (142, End::Complete));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn try_for_each_event<B>(
        &mut self,
        take: impl FnMut(&Event<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.records.try_for_each_event(take)
    }

    /// Reads once. At the end of the input, [`next_record`](Self::next_record) returns the end.
    ///
    /// # Errors
    /// Returns the reader's error, except [`Interrupted`](ErrorKind::Interrupted), which is retried. No bytes are lost:
    /// after a timeout the call can be repeated.
    pub fn read_more(&mut self) -> io::Result<()> {
        let n = read_uninterrupted(&mut self.reader, self.records.space())?;
        self.records.advance(n);
        Ok(())
    }

    /// Skips the remaining records of this block: its bytes are read, but not parsed.
    pub fn skip_block(&mut self) {
        self.records.skip_block();
    }

    /// Returns the layout of the stream; V4 until the first block states it.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.records.version()
    }

    /// Returns the name of the object that [`Record::Block`] was just returned for, as
    /// [`Parser::object_name`](crate::Parser::object_name) does.
    #[must_use]
    pub fn object_name(&self) -> Option<&[u8]> {
        self.records.object_name()
    }

    /// Returns the offset in the stream of the next record.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.records.offset()
    }

    /// Returns the reader.
    #[must_use]
    pub const fn get_ref(&self) -> &R {
        &self.reader
    }

    /// Returns the reader. Bytes that the caller reads from the reader are missing in the trace.
    pub const fn get_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Returns the reader. Bytes that were read from it and not used yet are dropped.
    pub fn into_inner(self) -> R {
        self.reader
    }
}

/// Reads once, and again after each [`Interrupted`](ErrorKind::Interrupted).
pub(crate) fn read_uninterrupted(reader: &mut impl Read, space: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(space) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
