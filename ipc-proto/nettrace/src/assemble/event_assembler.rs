//! Whole events from bytes that arrive in pieces, in the order of the stream or of time.
use ipc_proto::wire::copy;

use crate::assemble::segment_buf::SegmentBuf;
use crate::assemble::stream_assembler::StreamAssembler;
use crate::assemble::trace_event::TraceEvent;
use crate::assemble::whole_bytes::WholeBytes;
use crate::catalog::TraceSummary;
use crate::parse::End;
use crate::segments::ReadOptions;

/// Reads the events of a trace, each with its description, its stack and its thread, from bytes that arrive in pieces
/// of any size.
///
/// An assembler does no I/O. Bytes go in with [`push`](Self::push) up to [`finish`](Self::finish), or with
/// [`space`](Self::space) and [`advance`](Self::advance), which copy nothing. `TraceReader` is this type with a blocking
/// reader. An asynchronous reader is the same loop with an `await`:
///
/// ```
/// use nettrace::{AssemblerStep, End, EventAssembler, EventOrder, ReadOptions};
/// # struct Socket<'a>(core::slice::Chunks<'a, u8>);
/// # impl<'a> Socket<'a> {
/// #     async fn receive(&mut self) -> std::io::Result<Option<&'a [u8]>> { Ok(self.0.next()) }
/// # }
///
/// async fn print_events(socket: &mut Socket<'_>) -> std::io::Result<(usize, End)> {
///     let mut assembler = EventAssembler::new(EventOrder::Stream, ReadOptions::default());
///     let mut events = 0;
///     loop {
///         match assembler.step() {
///             AssemblerStep::Event(event) => {
///                 let Some(metadata) = event.metadata() else { continue };
///                 println!("{} ns: {} {}", event.nanoseconds(), metadata.provider, metadata.name);
///                 events += 1;
///             }
///             AssemblerStep::More => match socket.receive().await? {
///                 Some(piece) => assembler.push(piece),
///                 None => assembler.finish(),
///             },
///             AssemblerStep::End(end) => return Ok((events, end)),
///         }
///     }
/// }
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-net10-lab-small.nettrace");
/// # let bytes = std::fs::read(path)?;
/// # let mut socket = Socket(bytes.chunks(100));
/// # let mut future = core::pin::pin!(print_events(&mut socket));
/// # let mut context = core::task::Context::from_waker(core::task::Waker::noop());
/// # let core::task::Poll::Ready(read) = future.as_mut().poll(&mut context) else { panic!() };
/// # assert_eq!(read?, (142, End::Complete));
/// # use core::future::Future;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// [`EventOrder`] is the choice between the order of the stream and of time, and between speed and delay. All complete
/// events of a cut or damaged trace are returned. [`AssemblerStep::End`] states how the trace ended, and
/// [`summary`](Self::summary) what was lost.
///
/// # Memory
/// * The window: 256 KiB, or up to twice [`Limits::record`](crate::Limits::record) if a record needs that.
/// * Stacks and label lists are stored up to the next sequence point, in up to 32 MiB. If there is no room for another
///   stack or list, all stored ones are removed, and events that refer to them have no stack or labels.
/// * All descriptions of a stream take up to 32 MiB, because each keeps its [kind](TraceEvent::kind), and threads (V6) up
///   to another 32 MiB at a time. A description or a thread that does not fit is skipped, and its events have the
///   earlier one of their id, or none.
/// * The orders other than [`EventOrder::Stream`] need memory of their own.
#[derive(Debug)]
pub struct EventAssembler(Assembler);

/// The assembler for the order in which events are returned.
#[derive(Debug)]
enum Assembler {
    Stream(StreamAssembler),
    Segments(SegmentBuf),
}

/// Does the same with either assembler.
macro_rules! either {
    ($assembler:expr, $either:ident => $result:expr) => {
        match $assembler {
            Assembler::Stream($either) => $result,
            Assembler::Segments($either) => $result,
        }
    };
}

impl EventAssembler {
    /// Creates an assembler that starts with the first byte of a stream.
    #[must_use]
    pub fn new(order: EventOrder, options: ReadOptions) -> Self {
        /// The limit of a buffer that only has the stacks and label lists up to the next sequence point.
        const BLOCK_LIMIT: usize = 64 << 20;
        Self(match order {
            EventOrder::Stream => Assembler::Stream(StreamAssembler::new(options, None)),
            EventOrder::Time { limit } => Assembler::Stream(StreamAssembler::new(options, Some(limit))),
            EventOrder::Block => Assembler::Segments(SegmentBuf::new(options, false, BLOCK_LIMIT)),
            EventOrder::Segment { limit } => Assembler::Segments(SegmentBuf::new(options, true, limit)),
        })
    }

    /// Creates an assembler of `bytes`, which are a whole trace, and are read in place: those of a mapped file, for
    /// example. Bytes that arrive nevertheless are ignored.
    ///
    /// ```
    /// use nettrace::{AssemblerStep, BytesOrder, EventAssembler, ReadOptions};
    ///
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-net10-lab-small.nettrace");
    /// let bytes = std::fs::read(path)?;
    /// let mut assembler = EventAssembler::of_bytes(bytes, BytesOrder::Time, ReadOptions::default());
    /// let (mut events, mut last) = (0, i64::MIN);
    /// while let AssemblerStep::Event(event) = assembler.step() {
    ///     assert!(event.nanoseconds() >= last);
    ///     (events, last) = (events + 1, event.nanoseconds());
    /// }
    /// assert_eq!(events, 142);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// Nothing arrives, so an order that waits for bytes is refused when the program is compiled:
    ///
    /// ```compile_fail,E0308
    /// use nettrace::{EventAssembler, EventOrder, ReadOptions};
    ///
    /// EventAssembler::of_bytes(b"", EventOrder::BY_TIME, ReadOptions::default());
    /// ```
    #[must_use]
    pub fn of_bytes(
        bytes: impl AsRef<[u8]> + Send + Sync + 'static,
        order: BytesOrder,
        options: ReadOptions,
    ) -> Self {
        let sorts = order == BytesOrder::Time;
        Self(Assembler::Segments(SegmentBuf::of_bytes(WholeBytes::new(bytes), options, sorts)))
    }

    /// Skips, from now on, each block of events whose stated range has no time from tick `from` to tick `to`, if the
    /// range can be trusted: see [`TimeFilter`](crate::TimeFilter). The events of the other blocks are returned, so
    /// compare the time of each. The events of skipped blocks do not count as [lost](TraceSummary::losses), nor do
    /// events that were lost between skipped blocks.
    ///
    /// [`TraceEvent::clock`] of the first event, or of any other, converts times to ticks.
    pub fn skip_outside(&mut self, from: u64, to: u64) {
        either!(&mut self.0, assembler => assembler.skip_outside(from, to));
    }

    /// Returns the next event in the bytes that have arrived.
    #[inline]
    pub fn step(&mut self) -> AssemblerStep<'_> {
        if self.find() {
            if let Some(event) = self.event() {
                return AssemblerStep::Event(event);
            }
        }
        self.end().map_or(AssemblerStep::More, AssemblerStep::End)
    }

    /// Returns whether the bytes of the whole trace are in memory.
    #[cfg(feature = "std")]
    pub(crate) const fn has_whole_trace(&self) -> bool {
        matches!(&self.0, Assembler::Segments(segments) if segments.has_whole_trace())
    }

    /// Finds the next event in the bytes that have arrived. Returns whether there is one; if not, and there is no
    /// [end](Self::end) yet, it needs more bytes.
    #[inline]
    pub(crate) fn find(&mut self) -> bool {
        either!(&mut self.0, assembler => assembler.find())
    }

    #[inline]
    pub(crate) const fn end(&self) -> Option<End> {
        either!(&self.0, assembler => assembler.end())
    }

    /// Returns the event that was found last; `None` if none was found, or if [`space`](Self::space) was called since.
    #[inline]
    pub(crate) fn event(&self) -> Option<TraceEvent<'_>> {
        either!(&self.0, assembler => assembler.event())
    }

    /// Returns space for the next bytes of the stream, which is never empty.
    pub fn space(&mut self) -> &mut [u8] {
        either!(&mut self.0, assembler => assembler.space())
    }

    /// Reports that the first `n` bytes of [`space`](Self::space) were filled. As with [`Read`], 0 bytes are the end of
    /// the input. A number that is larger than the space counts as the whole space.
    ///
    /// [`Read`]: https://doc.rust-lang.org/std/io/trait.Read.html
    pub fn advance(&mut self, n: usize) {
        either!(&mut self.0, assembler => assembler.advance(n));
    }

    /// Appends the next bytes of the stream. An empty slice changes nothing; [`finish`](Self::finish) reports the end.
    pub fn push(&mut self, mut bytes: &[u8]) {
        loop {
            let space = self.space();
            let n = space.len().min(bytes.len());
            if n == 0 {
                return;
            }
            copy(space, bytes);
            self.advance(n);
            bytes = bytes.get(n..).unwrap_or_default();
        }
    }

    /// Reports the end of the input. [`step`](Self::step) then returns the events that have waited, and
    /// [`AssemblerStep::End`], which states whether the trace was complete.
    pub fn finish(&mut self) {
        self.advance(0);
    }

    /// Returns what is known about the trace, as far as it was read.
    #[must_use]
    #[inline]
    pub fn summary(&self) -> TraceSummary<'_> {
        either!(&self.0, assembler => assembler.summary())
    }
}

/// The next thing to do with an [`EventAssembler`](crate::EventAssembler).
#[derive(Debug, Clone, Copy)]
pub enum AssemblerStep<'a> {
    /// The next event. It borrows from the assembler.
    Event(TraceEvent<'a>),
    /// The next event needs more bytes than have arrived. [`push`](crate::EventAssembler::push) them, or report by
    /// [`finish`](crate::EventAssembler::finish) that there are none.
    More,
    /// There are no more events.
    End(End),
}

/// The order in which an [`EventAssembler`](crate::EventAssembler) returns the events of bytes that arrive, and when.
///
/// | variant | events come | an event is returned | memory |
/// |---|---|---|---|
/// | [`Stream`](Self::Stream) | as in the stream | as soon as its bytes have arrived | no event waits |
/// | [`Time`](Self::Time) | by time | as soon as no older event can follow | copies of the events that wait: up to `limit` |
/// | [`Block`](Self::Block) | as in the stream | with some thousand others, or at the end of the bytes that have arrived | a buffer with the stacks and label lists up to the next sequence point |
/// | [`Segment`](Self::Segment) | by time | after the next sequence point, or when the bytes that have arrived end with a sorted event | a buffer with all bytes up to the next sequence point, and 36 bytes for each event: up to `limit` |
///
/// The first two are for live streams. The last two take less time, because nothing is copied, but return events later:
/// they are for traces that are complete, such as files. The order of the stream is that of time for each thread, but not
/// between threads. Events of the same time are always in the order of the stream.
///
/// If sorting would exceed `limit`, events are returned early: [`late`](crate::TraceSummary::late) counts those that
/// should have come before one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EventOrder {
    /// The order of the stream, immediately.
    #[default]
    Stream,
    /// The order of time, as soon as it is certain.
    ///
    /// A sorted event does not wait if no other event does. If more memory were needed, all waiting events are returned
    /// first.
    Time {
        /// The most bytes of the events that wait; 2 GiB at most.
        limit: usize,
    },
    /// The order of the stream, block by block.
    Block,
    /// The order of time, segment by segment: mostly the events between two sequence points.
    ///
    /// The buffer has 4 MiB, or up to one and a half times the bytes of the largest segment, of `limit`, or of
    /// [`Limits::record`](crate::Limits::record). Its pages are used as far as bytes arrive. A change of an event's
    /// thread or processor takes 48 bytes more, one of its activities 80, and a stack 36 bytes besides its bytes in the
    /// buffer.
    ///
    /// Once the buffer has `limit` bytes, the events before the newest sorted event are returned, or else all. If stacks
    /// and label lists take more than half of it then, all are removed, and events that refer to them have none.
    Segment {
        /// The length in bytes from which on the buffer does not grow before events are returned.
        limit: usize,
    },
}

impl EventOrder {
    /// [`Time`](Self::Time) with a limit that is enough for the traces that runtimes were seen to write: 16 MiB.
    pub const BY_TIME: Self = Self::Time { limit: 16 << 20 };

    /// [`Segment`](Self::Segment) with a limit that is enough for the traces that runtimes were seen to write: 64 MiB.
    pub const BY_SEGMENT: Self = Self::Segment { limit: 64 << 20 };
}

/// The order in which an [`EventAssembler`](crate::EventAssembler) returns the events of a trace that is in memory as a
/// whole. There is nothing to wait for, so an order has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytesOrder {
    /// The order of the stream, as [`EventOrder::Block`] has it.
    Stream,
    /// The order of time, as [`EventOrder::Segment`] has it.
    Time,
}
