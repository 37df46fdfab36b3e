//! Whole events from bytes that arrive in pieces, in the order of the stream or of time.
use alloc::vec::Vec;

use ipc_proto::wire::copy;

use crate::assemble::assembler_step::AssemblerStep;
use crate::assemble::segment_buf::SegmentBuf;
use crate::assemble::stream_assembler::StreamAssembler;
use crate::assemble::trace_event::TraceEvent;
use crate::assemble::whole_bytes::WholeBytes;
use crate::catalog::catalog::Catalog;
use crate::join::id_map::Slot;
use crate::join::loss::{Counter, LossCounter, Losses};
use crate::parse::end::End;
use crate::parse::parser::Limits;
use crate::parse::time_filter::TimeFilter;
use crate::parse::trace::Trace;
use crate::segments::segment_core::SegmentStep;

/// Reads the events of a trace, each with its description, its stack and its thread, from bytes that arrive in pieces
/// of any size.
///
/// An assembler does no I/O. Bytes go in with [`push`](Self::push), or with [`space`](Self::space) and
/// [`advance`](Self::advance), which copy nothing. `ipc_std::TraceReader` is this type with a blocking reader. An
/// asynchronous reader is the same loop with an `await`:
///
/// ```
/// use nettrace::{End, EventAssembler, Limits, AssemblerStep};
/// # struct Socket<'a>(core::slice::Chunks<'a, u8>);
/// # impl<'a> Socket<'a> {
/// #     async fn receive(&mut self) -> std::io::Result<Option<&'a [u8]>> { Ok(self.0.next()) }
/// # }
///
/// async fn print_events(socket: &mut Socket<'_>) -> std::io::Result<(usize, Option<End>)> {
///     let mut assembler = EventAssembler::new(Limits::default());
///     let mut events = 0;
///     loop {
///         match assembler.step() {
///             AssemblerStep::Event => {
///                 let Some(event) = assembler.event() else { continue };
///                 let Some(metadata) = event.metadata() else { continue };
///                 println!("{} ns: {} {}", event.nanoseconds(), metadata.provider, metadata.name);
///                 events += 1;
///             }
///             AssemblerStep::More => match socket.receive().await? {
///                 Some(piece) => assembler.push(piece),
///                 None => assembler.advance(0),
///             },
///             AssemblerStep::End(end) => return Ok((events, Some(end))),
///         }
///     }
/// }
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-net10-lab-small.nettrace");
/// # let bytes = std::fs::read(path)?;
/// # let mut socket = Socket(bytes.chunks(100));
/// # let mut future = core::pin::pin!(print_events(&mut socket));
/// # let mut context = core::task::Context::from_waker(core::task::Waker::noop());
/// # let core::task::Poll::Ready(read) = future.as_mut().poll(&mut context) else { panic!() };
/// # assert_eq!(read?, (142, Some(End::Complete)));
/// # use core::future::Future;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Events come in the order of the stream, which is the order of time for each thread, but not between threads;
/// [`in_order`](Self::in_order) and [`by_segment`](Self::by_segment) sort them. An event is returned as soon as its bytes
/// have arrived. All complete events of a cut or damaged trace are returned, and [`AssemblerStep::End`] states how the
/// trace ended.
///
/// # Memory
/// * The window: 256 KiB, or up to twice [`Limits::record`] if a record needs that.
/// * Stacks and label lists are stored up to the next sequence point, in up to 32 MiB. If there is no room for another
///   stack or list, all stored ones are removed, and events that refer to them have no stack or labels.
/// * All descriptions of a stream take up to 32 MiB, because each keeps its [kind](TraceEvent::kind), and threads (V6) up
///   to another 32 MiB at a time. A description or a thread that does not fit is skipped, and its events have the
///   earlier one of their id, or none.
/// * [`in_order`](Self::in_order) and [`by_segment`](Self::by_segment) have limits of their own.
#[derive(Debug)]
pub struct EventAssembler {
    limits: Limits,
    omits_stacks: bool,
    assembler: Assembler,
}

/// The assembler for the order in which events are returned.
#[derive(Debug)]
enum Assembler {
    Stream(StreamAssembler),
    Segments(SegmentBuf),
}

impl EventAssembler {
    /// A limit for [`in_order`](Self::in_order) that is enough for the traces that runtimes were seen to write: 16 MiB.
    pub const ORDER_LIMIT: usize = 16 << 20;

    /// A limit for [`by_segment`](Self::by_segment) that is enough for the traces that runtimes were seen to write:
    /// 64 MiB.
    pub const SEGMENT_LIMIT: usize = 64 << 20;

    /// Creates an assembler that starts with the first byte of a stream, and returns events in the order of the stream.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, omits_stacks: false, assembler: Assembler::Stream(StreamAssembler::new(limits)) }
    }

    /// Returns events in the order of time, and events of the same time in the order of the stream. Call it first.
    ///
    /// Events wait, in up to `limit` bytes ([`ORDER_LIMIT`](Self::ORDER_LIMIT); 2 GiB at most), until it is certain that
    /// no older one follows. A sorted event does not wait if no other event does. If more memory were needed, all
    /// waiting events are returned first, and [`late`](Self::late) counts the events that should have come before one of
    /// them.
    #[must_use]
    pub fn in_order(mut self, limit: usize) -> Self {
        if let Assembler::Stream(stream) = &mut self.assembler {
            stream.sort(limit);
        }
        self
    }

    /// Returns the events of [`in_order`](Self::in_order) in less time, but later: for traces that are complete, such as
    /// files. Call it first.
    ///
    /// Events are returned when the next sequence point was read, or when the bytes that have arrived end with a sorted
    /// event. Nothing is copied until then: the bytes of the trace wait in a buffer. Once it has `limit` bytes
    /// ([`SEGMENT_LIMIT`](Self::SEGMENT_LIMIT)), the events before the newest sorted event are returned, or else all,
    /// and [`late`](Self::late) counts the events that should have come before one of them.
    ///
    /// # Memory
    /// * The buffer: 4 MiB, or up to one and a half times the bytes of the largest segment, of `limit`, or of
    ///   [`Limits::record`]. Its pages are used as far as bytes arrive.
    /// * An event that waits takes 36 bytes, a change of its thread or processor 48 bytes more, one of its activities 80,
    ///   and a stack 36 bytes besides its bytes in the buffer.
    /// * If stacks and label lists take more than half of the buffer at its limit, all are removed, and events that refer
    ///   to them have no stack or labels.
    #[must_use]
    pub fn by_segment(mut self, limit: usize) -> Self {
        self.assembler = Assembler::Segments(self.segments(limit));
        self
    }

    /// Returns events in the order of the stream in less time, but later: for traces that are complete, such as files.
    /// Call it first.
    ///
    /// Events are returned when some thousand of them were read, or at the end of the bytes that have arrived. The memory
    /// is that of [`by_segment`](Self::by_segment) without the events: a buffer with the stacks and label lists up to
    /// the next sequence point.
    #[must_use]
    pub fn by_block(mut self) -> Self {
        let mut segments = self.segments(Self::SEGMENT_LIMIT);
        segments.core.keep_order();
        self.assembler = Assembler::Segments(segments);
        self
    }

    /// Reads `bytes`, which are a whole trace, in place, instead of bytes that arrive: a mapped file, for example. Call
    /// it first, after the method that chooses the order: [`by_block`](Self::by_block), or else events come
    /// [by segment](Self::by_segment). Bytes that arrive nevertheless are ignored.
    #[must_use]
    pub fn of_bytes(mut self, bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        let mut segments = match self.assembler {
            Assembler::Segments(segments) => segments,
            Assembler::Stream(_) => self.segments(Self::SEGMENT_LIMIT),
        };
        segments.read_whole(WholeBytes::new(bytes));
        self.assembler = Assembler::Segments(segments);
        self
    }

    fn segments(&self, limit: usize) -> SegmentBuf {
        let mut segments = SegmentBuf::new(self.limits, limit);
        if self.omits_stacks {
            segments.core.omit_stacks();
        }
        segments
    }

    /// Stores no stacks: events have none, and memory and time are saved.
    #[must_use]
    pub const fn without_stacks(mut self) -> Self {
        self.omits_stacks = true;
        match &mut self.assembler {
            Assembler::Stream(stream) => stream.omit_stacks(),
            Assembler::Segments(segments) => segments.core.omit_stacks(),
        }
        self
    }

    /// Skips, from now on, each block of events whose stated range has no time from tick `from` to tick `to`, if the
    /// range can be trusted: see [`TimeFilter`]. The events of the other blocks are returned, so compare the time of
    /// each. The events of skipped blocks do not count as [lost](Self::lost), nor do events that were lost between
    /// skipped blocks.
    ///
    /// [`TraceEvent::clock`] of the first event, or of any other, converts times to ticks.
    pub fn skip_outside(&mut self, from: u64, to: u64) {
        match &mut self.assembler {
            Assembler::Stream(stream) => stream.skip_outside(from, to),
            Assembler::Segments(segments) => segments.core.skip_outside(from, to),
        }
    }

    /// Returns the filter of [`skip_outside`](Self::skip_outside), which counts the blocks that were skipped so far.
    #[must_use]
    pub const fn times(&self) -> Option<&TimeFilter> {
        match &self.assembler {
            Assembler::Stream(stream) => stream.times(),
            Assembler::Segments(segments) => segments.core.times(),
        }
    }

    /// Finds the next event in the bytes that have arrived.
    #[inline]
    pub fn step(&mut self) -> AssemblerStep {
        match &mut self.assembler {
            Assembler::Stream(stream) => stream.step(),
            Assembler::Segments(segments) => match segments.step() {
                SegmentStep::Segment => AssemblerStep::Event,
                SegmentStep::More => AssemblerStep::More,
                SegmentStep::End(end) => AssemblerStep::End(end),
            },
        }
    }

    /// Returns the event that [`step`](Self::step) has just found; `None` if it found none, or if
    /// [`space`](Self::space) or [`push`](Self::push) was called since.
    #[must_use]
    #[inline]
    pub fn event(&self) -> Option<TraceEvent<'_>> {
        match &self.assembler {
            Assembler::Stream(stream) => stream.event().map(TraceEvent::of_stream),
            Assembler::Segments(segments) => segments.event().map(TraceEvent::of_segment),
        }
    }

    /// Returns space for the next bytes of the stream, which is never empty.
    pub fn space(&mut self) -> &mut [u8] {
        match &mut self.assembler {
            Assembler::Stream(stream) => stream.space(),
            Assembler::Segments(segments) => segments.space(),
        }
    }

    /// Reports that the first `n` bytes of [`space`](Self::space) were filled; 0 bytes are the end of the input. A
    /// number that is larger than the space counts as the whole space.
    pub fn advance(&mut self, n: usize) {
        match &mut self.assembler {
            Assembler::Stream(stream) => stream.advance(n),
            Assembler::Segments(segments) => segments.advance(n),
        }
    }

    /// Appends the next bytes of the stream. An empty slice changes nothing.
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

    /// Returns the record of the trace's first block, which is known with the first event at the latest.
    #[must_use]
    pub fn trace(&self) -> Option<Trace<'_>> {
        self.catalog().trace()
    }

    const fn catalog(&self) -> &Catalog {
        match &self.assembler {
            Assembler::Stream(stream) => stream.catalog(),
            Assembler::Segments(segments) => segments.core.catalog(),
        }
    }

    const fn loss(&self) -> &LossCounter<Vec<Slot<Counter>>> {
        match &self.assembler {
            Assembler::Stream(stream) => stream.loss(),
            Assembler::Segments(segments) => segments.core.loss(),
        }
    }

    /// Returns how the trace ended, once its last event was returned.
    #[must_use]
    pub const fn end(&self) -> Option<End> {
        match &self.assembler {
            Assembler::Stream(stream) => stream.end(),
            Assembler::Segments(segments) => segments.core.end(),
        }
    }

    /// Returns how many events the runtime did not record. A loss is known with the next event of the same thread, or at
    /// a sequence point.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.loss().lost()
    }

    /// Returns all lost events, with those before the first event of their thread.
    #[must_use]
    pub const fn losses(&self) -> Losses {
        self.loss().losses()
    }

    /// Returns how many events the runtime dropped before the first one of their thread, which [`lost`](Self::lost)
    /// does not count. See [`LossCounter`].
    #[must_use]
    pub const fn lost_at_start(&self) -> u64 {
        self.loss().lost_at_start()
    }

    /// Returns how many events came after a younger one although they should have come [in order](Self::in_order).
    #[must_use]
    pub fn late(&self) -> u64 {
        match &self.assembler {
            Assembler::Stream(stream) => stream.late(),
            Assembler::Segments(segments) => segments.core.late(),
        }
    }

    /// Returns whether the memory for waiting events was not enough to return all events [in order](Self::in_order).
    /// Otherwise, events are [late](Self::late) because their clock went back, or their writer marked them wrongly.
    #[must_use]
    pub fn exceeded_limit(&self) -> bool {
        match &self.assembler {
            Assembler::Stream(stream) => stream.exceeded_limit(),
            Assembler::Segments(segments) => segments.core.exceeded_limit(),
        }
    }
}
