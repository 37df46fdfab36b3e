//! `TraceReader`: whole events of a trace from any `Read`.
use core::task::Poll;
use std::io::{self, Read};

use crate::assemble::event_assembler::EventAssembler;
use crate::assemble::event_assembler::EventOrder;
use crate::assemble::read::read_uninterrupted;
use crate::assemble::trace_event::TraceEvent;
use crate::catalog::TraceSummary;
use crate::parse::End;
use crate::segments::ReadOptions;

/// Reads the events of a trace, each with its description, its stack and its thread: from a file, from a
/// `TraceSession` of `ipc_std` that is still recording, or from any other reader.
///
/// A `TraceReader` is an [`EventAssembler`] together with the reader of its bytes. An asynchronous program uses the
/// [`EventAssembler`] alone.
///
/// ```
/// use nettrace::{End, Item, TraceReader};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace"))?;
/// let file = std::fs::File::open("gen-net10-lab-small.nettrace")?;
/// let mut trace = TraceReader::new(file);
/// let mut longest = 0;
/// while let Some(event) = trace.next_event()? {
///     let Some(metadata) = event.metadata() else { continue };
///     if metadata.provider != "Lab-Workload" {
///         continue;
///     }
///     println!("{} ns: {} on thread {}", event.nanoseconds(), metadata.name, event.thread_id());
///     for item in event.values() {
///         if let Item::Value { name, value } = item {
///             println!("    {name} = {value:?}");
///         }
///     }
///     longest = longest.max(event.stack().count());
/// }
/// assert!(longest > 0);
/// let summary = trace.summary();
/// assert_eq!((summary.end, summary.losses.lost), (Some(End::Complete), 0));
/// # Ok(())
/// # }
/// ```
///
/// A field can be read by its name: `event.field("Payload.Mean")`, see [`TraceEvent::field`].
///
/// Events come in the order of the stream: events of one thread are in the order of time, events of two threads may not
/// be. An event is returned as soon as its bytes have arrived: nothing is read while an event can be returned. For another
/// [order](EventOrder), or without stacks, give the reader [an assembler](Self::with_assembler). All complete events of a
/// cut or damaged trace are returned, and [`summary`](Self::summary) states how the trace ended and what was lost.
/// [`EventAssembler`] describes the memory that a reader takes.
///
/// An error of the reader loses nothing. If a session was silent for too long, the error has the kind
/// [`TimedOut`](io::ErrorKind::TimedOut), and the next event can be requested again.
///
/// # The end of the reader
/// A complete trace ends with a mark, after which a runtime closes the connection. A session learns that it is over
/// only when its end is read. So one more read follows the mark, before `None` is returned:
///
/// | that read returns | what happens |
/// |---|---|
/// | no bytes | `TraceSession::end` is known, and likewise the end of any other session that is the reader |
/// | a byte, because other data follows the trace | the byte is dropped, with all bytes after the mark that were read before; nothing else is read |
/// | an error, because the peer does not close the connection | the error is returned; the call can be repeated, and [`end`](TraceSummary::end) is known |
///
/// This last read has the deadlines of the `TraceSession`. A reader without a deadline blocks
/// until its peer closes. No event waits for the last read: the last event was returned before. After a trace that is
/// cut off or damaged, there is no such read.
#[derive(Debug)]
pub struct TraceReader<R> {
    reader: R,
    assembler: EventAssembler,
    /// Whether no read is needed after the end mark: the reader has ended, or a byte followed the trace.
    is_read: bool,
}

impl<R: Read> TraceReader<R> {
    /// Creates a reader that starts with the first byte of a trace, and returns events in the order of the stream.
    /// `reader` needs no buffer of its own.
    pub fn new(reader: R) -> Self {
        Self::with_assembler(reader, EventAssembler::new(EventOrder::Stream, ReadOptions::default()))
    }

    /// Creates a reader with an assembler that is new, which has the order of the events and other options. If the
    /// assembler has [the bytes](EventAssembler::of_bytes) of the whole trace, `reader` is not read.
    ///
    /// ```
    /// use nettrace::{EventAssembler, EventOrder, ReadOptions, TraceReader};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace"))?;
    /// let file = std::fs::File::open("gen-net10-lab-small.nettrace")?;
    /// let options = ReadOptions { stacks: false, ..ReadOptions::default() };
    /// let mut trace = TraceReader::with_assembler(file, EventAssembler::new(EventOrder::BY_SEGMENT, options));
    /// let mut last = i64::MIN;
    /// while let Some(event) = trace.next_event()? {
    ///     assert!(event.nanoseconds() >= last && event.stack().len() == 0);
    ///     last = event.nanoseconds();
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn with_assembler(reader: R, assembler: EventAssembler) -> Self {
        let is_read = assembler.has_whole_trace();
        Self { reader, assembler, is_read }
    }

    /// Skips, from now on, the blocks whose stated range of times is outside of the ticks `from` to `to`, as
    /// [`EventAssembler::skip_outside`] does.
    pub fn skip_outside(&mut self, from: u64, to: u64) {
        self.assembler.skip_outside(from, to);
    }

    /// Returns the next event. After the last event, every call returns `None`.
    ///
    /// # Errors
    /// Returns the reader's error. The call can then be repeated.
    #[inline]
    pub fn next_event(&mut self) -> io::Result<Option<TraceEvent<'_>>> {
        self.advance()?;
        Ok(self.assembler.event())
    }

    /// Returns the next event if its bytes are available. Returns `Pending` if the reader returns an error of kind
    /// [`WouldBlock`](io::ErrorKind::WouldBlock), as a nonblocking `TraceSession` does; no bytes
    /// are lost then. After the last event it returns `Ready(None)`.
    ///
    /// Buffered events are returned without reading. So call this method until it returns `Pending`, before you wait
    /// for the reader.
    ///
    /// # Errors
    /// As [`next_event`](Self::next_event).
    pub fn poll_next_event(&mut self) -> io::Result<Poll<Option<TraceEvent<'_>>>> {
        match self.advance() {
            Ok(()) => Ok(Poll::Ready(self.assembler.event())),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(Poll::Pending),
            Err(e) => Err(e),
        }
    }

    /// Returns what is known about the trace, as far as it was read.
    #[must_use]
    #[inline]
    pub fn summary(&self) -> TraceSummary<'_> {
        self.assembler.summary()
    }

    /// Returns the reader.
    #[must_use]
    pub const fn get_ref(&self) -> &R {
        &self.reader
    }

    /// Returns the reader. Bytes that the caller reads from the reader are missing in the trace, unless its end was
    /// reached.
    pub const fn get_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Returns the reader. Bytes that were read from it and not used yet are dropped, including bytes after the end
    /// mark.
    pub fn into_inner(self) -> R {
        self.reader
    }

    /// Returns the event that was returned last, again. A loop cannot return an event that it has looked at, because it
    /// still borrows it; so it breaks, and its function returns this.
    #[must_use]
    pub fn event(&self) -> Option<TraceEvent<'_>> {
        self.assembler.event()
    }

    /// Reads up to the next event, or up to the end.
    #[inline]
    fn advance(&mut self) -> io::Result<()> {
        loop {
            if self.assembler.find() {
                return Ok(());
            }
            match self.assembler.end() {
                None => {
                    let n = read_uninterrupted(&mut self.reader, self.assembler.space())?;
                    self.assembler.advance(n);
                    self.is_read = n == 0;
                }
                Some(End::Complete) => return self.read_end(),
                Some(_) => return Ok(()),
            }
        }
    }

    /// Reads the end of the reader, which follows the end mark of the trace.
    #[cold]
    fn read_end(&mut self) -> io::Result<()> {
        if !self.is_read {
            read_uninterrupted(&mut self.reader, &mut [0])?;
            self.is_read = true;
        }
        Ok(())
    }
}
