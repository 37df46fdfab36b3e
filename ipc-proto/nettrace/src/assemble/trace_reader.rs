//! `TraceReader`: whole events of a trace from any `Read`.
use core::task::Poll;
use std::io::{self, Read};

use crate::assemble::assembler_step::AssemblerStep;
use crate::assemble::event_assembler::EventAssembler;
use crate::assemble::record_reader::read_uninterrupted;
use crate::assemble::trace_event::TraceEvent;
use crate::join::loss::Losses;
use crate::parse::end::End;
use crate::parse::parser::Limits;
use crate::parse::time_filter::TimeFilter;
use crate::parse::trace::Trace;

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
/// assert_eq!((trace.end(), trace.lost()), (Some(End::Complete), 0));
/// # Ok(())
/// # }
/// ```
///
/// A field can be read by its name: `event.field("Payload.Mean")`, see [`TraceEvent::field`].
///
/// Events come in the order of the stream: events of one thread are in the order of time, events of two threads may not
/// be. [`in_order`](Self::in_order) sorts them, and [`by_segment`](Self::by_segment) does so faster for a file. Without
/// these and [`by_block`](Self::by_block), an event is returned as soon as its bytes have arrived: nothing is read
/// while an event can be returned. All complete events of a cut or damaged trace are returned, and [`end`](Self::end)
/// states how the trace ended. [`EventAssembler`] describes the memory that a reader takes.
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
/// | an error, because the peer does not close the connection | the error is returned; the call can be repeated, and [`end`](Self::end) is known |
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
        Self::with_limits(reader, Limits::default())
    }

    /// Creates a reader with other limits of what the stream may request.
    pub fn with_limits(reader: R, limits: Limits) -> Self {
        Self { reader, assembler: EventAssembler::new(limits), is_read: false }
    }

    /// Returns events in the order of time from now on, as [`EventAssembler::in_order`] does. Call it before the first
    /// event is requested.
    ///
    /// Events that wait for their turn take up to `limit` bytes. [`EventAssembler::ORDER_LIMIT`] is enough for all
    /// traces of runtimes that were measured.
    #[must_use]
    pub fn in_order(mut self, limit: usize) -> Self {
        self.assembler = self.assembler.in_order(limit);
        self
    }

    /// Returns the events of [`in_order`](Self::in_order) in less time, but later: for files, see
    /// [`EventAssembler::by_segment`]. Call it before the first event is requested, instead of `in_order`.
    #[must_use]
    pub fn by_segment(mut self, limit: usize) -> Self {
        self.assembler = self.assembler.by_segment(limit);
        self
    }

    /// Returns events in the order of the stream in less time, but later: for files, see [`EventAssembler::by_block`].
    /// Call it before the first event is requested, instead of `in_order`.
    #[must_use]
    pub fn by_block(mut self) -> Self {
        self.assembler = self.assembler.by_block();
        self
    }

    /// Reads `bytes`, which are the whole trace, in place, instead of those of the reader, which is not read: see
    /// [`EventAssembler::of_bytes`]. Call it after the method that chooses the order.
    #[must_use]
    pub fn of_bytes(mut self, bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        (self.assembler, self.is_read) = (self.assembler.of_bytes(bytes), true);
        self
    }

    /// Makes the reader store no stacks, which saves memory and time. Its events have no stacks then.
    #[must_use]
    pub fn without_stacks(mut self) -> Self {
        self.assembler = self.assembler.without_stacks();
        self
    }

    /// Skips, from now on, the blocks whose stated range of times is outside of the ticks `from` to `to`, as
    /// [`EventAssembler::skip_outside`] does.
    pub fn skip_outside(&mut self, from: u64, to: u64) {
        self.assembler.skip_outside(from, to);
    }

    /// Returns the filter of [`skip_outside`](Self::skip_outside), which counts the skipped blocks.
    #[must_use]
    pub const fn times(&self) -> Option<&TimeFilter> {
        self.assembler.times()
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

    /// Returns the record of the trace's first block, which is known with the first event at the latest.
    #[must_use]
    pub fn trace(&self) -> Option<Trace<'_>> {
        self.assembler.trace()
    }

    /// Returns how the trace ended, which is known after the last event at the latest.
    #[must_use]
    pub const fn end(&self) -> Option<End> {
        self.assembler.end()
    }

    /// Returns how many events the runtime did not record. A loss is known with the next event of the same thread, or at
    /// a sequence point.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.assembler.lost()
    }

    /// Returns all lost events, with those before the first event of their thread.
    #[must_use]
    pub const fn losses(&self) -> Losses {
        self.assembler.losses()
    }

    /// Returns how many events the runtime dropped before the first event of their thread. [`lost`](Self::lost) does
    /// not count these events: see [`LossCounter`](crate::LossCounter).
    #[must_use]
    pub const fn lost_at_start(&self) -> u64 {
        self.assembler.lost_at_start()
    }

    /// Returns how many events came after a younger event although they should have come [in order](Self::in_order).
    #[must_use]
    pub fn late(&self) -> u64 {
        self.assembler.late()
    }

    /// Returns whether the memory was not enough to return all events [in order](Self::in_order): see
    /// [`EventAssembler::exceeded_limit`].
    #[must_use]
    pub fn exceeded_limit(&self) -> bool {
        self.assembler.exceeded_limit()
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

    /// Returns the event that was returned last, again.
    #[must_use]
    pub fn event(&self) -> Option<TraceEvent<'_>> {
        self.assembler.event()
    }

    /// Reads up to the next event, or up to the end.
    #[inline]
    fn advance(&mut self) -> io::Result<()> {
        loop {
            match self.assembler.step() {
                AssemblerStep::Event => return Ok(()),
                AssemblerStep::More => {
                    let n = read_uninterrupted(&mut self.reader, self.assembler.space())?;
                    self.assembler.advance(n);
                    self.is_read = n == 0;
                }
                AssemblerStep::End(End::Complete) => return self.read_end(),
                AssemblerStep::End(_) => return Ok(()),
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
