//! The parser with a window of its own, which grows. It returns single records; `EventAssembler` joins them into
//! events.
use alloc::vec::Vec;
use core::ops::{ControlFlow, Range};

use ipc_proto::wire::steps;

#[cfg(feature = "std")]
use crate::assemble::read::read_uninterrupted;
use crate::assemble::whole_bytes::{WholeBytes, bytes_of};
use crate::parse::{Event, Limits, Parser, Record, Version};

/// A [`Parser`] that owns its window: bytes go in as they arrive, records come out.
///
/// Readers of files and of sockets, blocking or not, can share this type. It decides how large the window is, keeps
/// unread bytes in the window, and returns every record as the stream has it. [`EventAssembler`](crate::EventAssembler)
/// is built on this type, and returns events with the records to which they refer.
///
/// ```
/// use nettrace::{End, Limits, ParserBuf, Record};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-net10-lab-small.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut input = &bytes[..];
/// let mut records = ParserBuf::new(Limits::default());
/// let mut stacks = 0;
/// let end = loop {
///     match records.next_record() {
///         Record::More { .. } => {
///             let n = std::io::Read::read(&mut input, records.space())?;
///             records.advance(n);
///         }
///         Record::Stack(_) => stacks += 1,
///         Record::End(end) => break end,
///         _ => {}
///     }
/// };
/// assert_eq!((stacks, end), (26, End::Complete));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ParserBuf {
    parser: Parser,
    /// All bytes of the stream, if they are in memory already.
    whole: Option<WholeBytes>,
    /// The memory of the window, which is from `start` to `end` of it or of `whole`.
    buf: Vec<u8>,
    start: usize,
    end: usize,
    /// Whether the end of the input was reported.
    is_closed: bool,
}

/// The length of the window, unless a record needs more.
const WINDOW: usize = 256 << 10;

/// Unread bytes move to the start of the window if at least `RATIO` times as many read bytes precede them.
const RATIO: usize = 4;

impl ParserBuf {
    /// Creates a parser of a stream from its first byte on.
    ///
    /// The window starts with 256 KiB. It does not grow beyond twice [`Limits::record`], nor beyond twice the bytes
    /// that arrived, whatever length a record claims to have.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { parser: Parser::new(limits), whole: None, buf: Vec::new(), start: 0, end: 0, is_closed: false }
    }

    /// Creates a parser of `bytes`, which are a whole stream, and are read in place: those of a mapped file, for example.
    /// No record is a [`Record::More`]. Bytes that arrive nevertheless are ignored.
    ///
    /// ```
    /// use nettrace::{End, Limits, ParserBuf, Record};
    ///
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-net10-lab-small.nettrace");
    /// let bytes = std::fs::read(path)?;
    /// let mut records = ParserBuf::of_bytes(bytes, Limits::default());
    /// let mut stacks = 0;
    /// let end = loop {
    ///     match records.next_record() {
    ///         Record::Stack(_) => stacks += 1,
    ///         Record::End(end) => break end,
    ///         _ => {}
    ///     }
    /// };
    /// assert_eq!((stacks, end), (26, End::Complete));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn of_bytes(bytes: impl AsRef<[u8]> + Send + Sync + 'static, limits: Limits) -> Self {
        let whole = WholeBytes::new(bytes);
        Self { end: whole.len(), whole: Some(whole), is_closed: true, ..Self::new(limits) }
    }

    /// Returns the next record, or [`Record::More`] if its bytes have not arrived.
    ///
    /// After the end of the input, the last record is a [`Record::End`], which is repeated.
    #[inline]
    pub fn next_record(&mut self) -> Record<'_> {
        let is_closed = self.is_closed;
        let (parser, window) = self.parser_and_window();
        match parser.next(window) {
            Record::More { .. } if is_closed => Record::End(parser.finish(window)),
            record => record,
        }
    }

    /// Passes the next events of the block to `take`, until it breaks, as [`Parser::try_for_each_event`] does. Also
    /// returns if the next record is not an event, or if its bytes have not arrived.
    ///
    /// ```
    /// use core::ops::ControlFlow;
    /// use nettrace::{End, Limits, ParserBuf, Record};
    ///
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-net10-lab-small.nettrace");
    /// # let bytes = std::fs::read(path)?;
    /// let mut records = ParserBuf::new(Limits::default());
    /// records.push(&bytes);
    /// let mut events = 0;
    /// let end = loop {
    ///     let _ = records.try_for_each_event(|_| {
    ///         events += 1;
    ///         ControlFlow::<()>::Continue(())
    ///     });
    ///     match records.next_record() {
    ///         Record::More { .. } => records.finish(),
    ///         Record::End(end) => break end,
    ///         _ => {}
    ///     }
    /// };
    /// assert_eq!((events, end), (142, End::Complete));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[inline]
    pub fn try_for_each_event<B>(
        &mut self,
        take: impl FnMut(&Event<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let (parser, window) = self.parser_and_window();
        parser.try_for_each_event(window, take)
    }

    /// Returns the next record if it is an event that the fast path can read, as [`Parser::next_event`] does.
    #[inline(always)]
    pub(crate) fn next_event(&mut self) -> Option<Event<'_>> {
        let (parser, window) = self.parser_and_window();
        parser.next_event(window)
    }

    /// Returns space for the next bytes of the stream, which is never empty.
    pub fn space(&mut self) -> &mut [u8] {
        if self.whole.is_some() {
            self.buf.resize(WINDOW, 0);
            return &mut self.buf;
        }
        self.make_room();
        self.buf.get_mut(self.end..).unwrap_or_default()
    }

    /// Reports that the first `n` bytes of [`space`](Self::space) were filled. As with [`Read`], 0 bytes are the end of
    /// the input. A number that is larger than the space counts as the whole space.
    ///
    /// [`Read`]: https://doc.rust-lang.org/std/io/trait.Read.html
    pub fn advance(&mut self, n: usize) {
        if self.whole.is_some() {
            return;
        }
        self.is_closed = n == 0;
        // The caller cannot have filled more than the space that it was lent.
        self.end = self.end.saturating_add(n).min(self.buf.len());
    }

    /// Reports the end of the input: [`next_record`](Self::next_record) returns a [`Record::End`] instead of
    /// [`Record::More`].
    pub fn finish(&mut self) {
        self.advance(0);
    }

    /// Reads the next bytes of the stream from `reader`, once, and returns their number; 0 at the end of the input.
    ///
    /// ```
    /// use nettrace::{End, Limits, ParserBuf, Record};
    ///
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-net10-lab-small.nettrace");
    /// let mut file = std::fs::File::open(path)?;
    /// let mut records = ParserBuf::new(Limits::default());
    /// let mut events = 0;
    /// let end = loop {
    ///     match records.next_record() {
    ///         Record::More { .. } => _ = records.read_from(&mut file)?,
    ///         Record::Event(_) => events += 1,
    ///         Record::End(end) => break end,
    ///         _ => {}
    ///     }
    /// };
    /// assert_eq!((events, end), (142, End::Complete));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the reader's error, except [`Interrupted`](std::io::ErrorKind::Interrupted), which is retried. No bytes
    /// are lost: after a timeout the call can be repeated.
    #[cfg(feature = "std")]
    pub fn read_from(&mut self, reader: &mut impl std::io::Read) -> std::io::Result<usize> {
        let n = read_uninterrupted(reader, self.space())?;
        self.advance(n);
        Ok(n)
    }

    /// Appends all of `bytes`, the next bytes of the stream. An empty slice changes nothing; [`finish`](Self::finish) reports the
    /// end.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.space();
            let n = space.len().min(bytes.len());
            let (now, later) = bytes.split_at_checked(n).unwrap_or((bytes, &[]));
            steps::count(n);
            if let Some(space) = space.get_mut(..n) {
                space.copy_from_slice(now);
            }
            self.advance(n);
            bytes = later;
        }
    }

    /// Skips the remaining records of this block, as [`Parser::skip_block`] does.
    pub fn skip_block(&mut self) {
        self.parser.skip_block();
    }

    /// Returns the layout of the stream; V4 until the first block states it.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.parser.version()
    }

    /// Returns the name of the object whose [`Record::Block`] was the last record, as [`Parser::object_name`] does.
    #[must_use]
    pub fn object_name(&self) -> Option<&[u8]> {
        self.parser.object_name(self.window())
    }

    /// Returns the offset in the stream of the next record.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.parser.offset()
    }

    /// Returns the bytes that were received and not released, the last record among them.
    pub(crate) fn window(&self) -> &[u8] {
        bytes_of(self.whole.as_ref(), &self.buf).get(self.start..self.end).unwrap_or_default()
    }

    /// Returns the parser, to change it, and its window.
    #[inline(always)]
    fn parser_and_window(&mut self) -> (&mut Parser, &[u8]) {
        let Self { parser, whole, buf, start, end, .. } = self;
        (parser, bytes_of(whole.as_ref(), buf).get(*start..*end).unwrap_or_default())
    }

    /// Returns the ranges in the window of payload and stack of the event that [`next_record`](Self::next_record)
    /// returned last, from their lengths.
    #[inline]
    pub(crate) fn event_ranges(&self, payload: usize, stack: usize) -> (Range<usize>, Range<usize>) {
        self.parser.event_ranges(payload, stack)
    }

    fn make_room(&mut self) {
        self.start = self.start.saturating_add(self.parser.release()).min(self.end);
        let unread = self.end.saturating_sub(self.start);
        // Few unread bytes are cheap to move to the front. Then the start of the window is used again, and its end
        // stays untouched.
        let is_cheap = unread <= self.start / RATIO;
        if self.start > 0 && (is_cheap || self.buf.len().saturating_sub(self.end) < WINDOW / 2) {
            steps::count(unread);
            self.buf.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end.saturating_sub(self.start));
        }
        if self.buf.is_empty() {
            // The operating system supplies zero pages on first use, so a short trace does not touch most of the
            // buffer.
            self.buf = alloc::vec![0; WINDOW];
        } else if self.end == self.buf.len() {
            steps::count(self.end.saturating_mul(2));
            self.buf.resize(self.end.saturating_mul(2), 0);
        }
    }
}
