//! Whole events from bytes that arrive in pieces, in the order of the stream or of time.
use alloc::vec::Vec;
use core::ops::Range;

use crate::assemble::context::{References, StreamContext};
use crate::assemble::event_queue::EventQueue;
use crate::assemble::parser_buf::ParserBuf;
use crate::assemble::trace_event::TraceEvent;
use crate::join::id_map::Slot;
use crate::join::loss::{Counter, LossCounter, Losses};
use crate::parse::end::End;
use crate::parse::event::Event;
use crate::parse::parser::{Limits, Record};
use crate::parse::sequence_point::SequencePoint;
use crate::parse::time_filter::TimeFilter;
use crate::parse::trace::Trace;

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
/// [`in_order`](Self::in_order) sorts them. An event is returned as soon as its bytes have arrived. All complete events
/// of a cut or damaged trace are returned, and [`AssemblerStep::End`] states how the trace ended.
///
/// # Memory
/// * The window: 256 KiB, or up to twice [`Limits::record`] if a record needs that.
/// * Stacks and label lists are stored up to the next sequence point, in up to 32 MiB. If there is no room for another
///   stack or list, all stored ones are removed, and events that refer to them have no stack or labels.
/// * Descriptions take up to 32 MiB, and threads (V6) up to another 32 MiB. A description or a thread that does not fit
///   is skipped, and its events have none.
/// * [`in_order`](Self::in_order) has a limit of its own.
#[derive(Debug)]
pub struct EventAssembler {
    records: ParserBuf,
    context: StreamContext,
    loss: LossCounter<Vec<Slot<Counter>>>,
    /// The filter of blocks by their times, if there is one.
    times: Option<TimeFilter>,
    /// The events that wait, if events are returned in the order of time.
    queue: Option<EventQueue>,
    /// A sequence point that takes effect when the queue is empty.
    passed: Option<SequencePoint>,
    /// The event that was found last.
    current: Current,
    end: Option<End>,
}

/// The event that was found last.
#[derive(Debug)]
enum Current {
    None,
    /// An event in the window: its header, and the ranges of its payload and its stack in the window.
    Read {
        header: Event<'static>,
        payload: Range<usize>,
        stack: Range<usize>,
        references: References,
    },
    /// An event that has waited, by its index in the queue.
    Popped(usize),
}

impl Current {
    /// Returns the event that the parser returned last, with the lengths of its payload and its stack.
    #[inline]
    fn read(
        records: &ParserBuf,
        header: Event<'static>,
        (payload, stack): (usize, usize),
        references: References,
    ) -> Self {
        let (payload, stack) = records.event_ranges(payload, stack);
        Self::Read { header, payload, stack, references }
    }
}

/// The next thing to do with an [`EventAssembler`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssemblerStep {
    /// [`EventAssembler::event`] returns the next event.
    Event,
    /// The next event needs more bytes than have arrived.
    More,
    /// There are no more events.
    End(End),
}

impl EventAssembler {
    /// A limit for [`in_order`](Self::in_order) that is enough for the traces that runtimes were seen to write: 16 MiB.
    pub const ORDER_LIMIT: usize = 16 << 20;

    /// Creates an assembler that starts with the first byte of a stream, and returns events in the order of the stream.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            records: ParserBuf::new(limits),
            context: StreamContext::default(),
            loss: LossCounter::default(),
            times: None,
            queue: None,
            passed: None,
            current: Current::None,
            end: None,
        }
    }

    /// Returns events in the order of time from now on, and events of the same time in the order of the stream. Call it
    /// before the first [`step`](Self::step).
    ///
    /// Events wait, in up to `limit` bytes ([`ORDER_LIMIT`](Self::ORDER_LIMIT)), until it is certain that no older one
    /// follows. A sorted event does not wait if no other event does. Descriptions and threads that were replaced while
    /// events wait take up to an eighth of `limit` in addition. If more memory were needed, all waiting events are
    /// returned first, and [`late`](Self::late) counts the events that should have come before one of them.
    #[must_use]
    pub fn in_order(mut self, limit: usize) -> Self {
        self.queue = Some(EventQueue::new(limit));
        self
    }

    /// Stores no stacks: events have none, and memory and time are saved.
    #[must_use]
    pub const fn without_stacks(mut self) -> Self {
        self.context.omit_stacks();
        self
    }

    /// Skips, from now on, each block of events whose stated range has no time from tick `from` to tick `to`, if the
    /// range can be trusted: see [`TimeFilter`]. The events of the other blocks are returned, so compare the time of
    /// each. The events of skipped blocks do not count as [lost](Self::lost), nor do events that were lost between
    /// skipped blocks.
    ///
    /// [`TraceEvent::clock`] of the first event, or of any other, converts times to ticks.
    pub fn skip_outside(&mut self, from: u64, to: u64) {
        let mut times = TimeFilter::new(from, to);
        if let Some(trace) = self.context.trace() {
            times.record(&Record::Trace(trace));
        }
        self.times = Some(times);
    }

    /// Returns the filter of [`skip_outside`](Self::skip_outside), which counts the blocks that were skipped so far.
    #[must_use]
    pub const fn times(&self) -> Option<&TimeFilter> {
        self.times.as_ref()
    }

    /// Finds the next event in the bytes that have arrived.
    #[inline]
    pub fn step(&mut self) -> AssemblerStep {
        if self.queue.is_some() { self.step_in_time() } else { self.step_in_stream() }
    }

    /// Returns the event that [`step`](Self::step) has just found; `None` if it found none, or if
    /// [`space`](Self::space) or [`push`](Self::push) was called since.
    #[must_use]
    #[inline]
    pub fn event(&self) -> Option<TraceEvent<'_>> {
        let (header, references) = match &self.current {
            Current::None => return None,
            Current::Read { header, payload, stack, references } => {
                let bytes = self.records.window();
                let [payload, stack] =
                    [payload, stack].map(|range| bytes.get(range.clone()).unwrap_or_default());
                (Event { payload, stack, ..*header }, *references)
            }
            Current::Popped(place) => {
                let queue = self.queue.as_ref()?;
                (queue.event(*place)?, queue.references(*place)?)
            }
        };
        Some(TraceEvent::new(header, &self.context, references))
    }

    /// Returns space for the next bytes of the stream, which is never empty.
    pub fn space(&mut self) -> &mut [u8] {
        self.current = Current::None;
        self.records.space()
    }

    /// Reports that the first `n` bytes of [`space`](Self::space) were filled; 0 bytes are the end of the input. A
    /// number that is larger than the space counts as the whole space.
    pub fn advance(&mut self, n: usize) {
        self.records.advance(n);
    }

    /// Appends the next bytes of the stream. An empty slice changes nothing.
    pub fn push(&mut self, bytes: &[u8]) {
        self.current = Current::None;
        self.records.push(bytes);
    }

    /// Returns the record of the trace's first block, which is known with the first event at the latest.
    #[must_use]
    pub fn trace(&self) -> Option<Trace<'_>> {
        self.context.trace()
    }

    /// Returns how the trace ended, once its last byte was read.
    #[must_use]
    pub const fn end(&self) -> Option<End> {
        self.end
    }

    /// Returns how many events the runtime did not record. A loss is known with the next event of the same thread, or at
    /// a sequence point.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.loss.lost()
    }

    /// Returns all lost events, with those before the first event of their thread.
    #[must_use]
    pub const fn losses(&self) -> Losses {
        self.loss.losses()
    }

    /// Returns how many events the runtime dropped before the first one of their thread, which [`lost`](Self::lost)
    /// does not count. See [`LossCounter`](crate::LossCounter).
    #[must_use]
    pub const fn lost_at_start(&self) -> u64 {
        self.loss.lost_at_start()
    }

    /// Returns how many events came after a younger one although they should have come [in order](Self::in_order).
    #[must_use]
    pub fn late(&self) -> u64 {
        self.queue.as_ref().map_or(0, EventQueue::late)
    }

    /// Returns whether the memory for waiting events was not enough to return all events [in order](Self::in_order).
    /// Otherwise, events are [late](Self::late) because their clock went back, or their writer marked them wrongly.
    #[must_use]
    pub fn exceeded_limit(&self) -> bool {
        self.queue.as_ref().is_some_and(EventQueue::exceeded_limit)
    }

    #[inline]
    fn step_in_stream(&mut self) -> AssemblerStep {
        let (event, references) = loop {
            match self.records.next_record() {
                Record::Event(event) => {
                    self.loss.event(&event);
                    if let Some(times) = &mut self.times {
                        times.event(&event);
                    }
                    break (event, self.context.refer(&event));
                }
                record => {
                    self.current = Current::None;
                    if self.times.as_mut().is_some_and(|times| times.record(&record)) {
                        self.records.skip_block();
                        self.loss.resync();
                        continue;
                    }
                    if let Some(step) = Self::store(&mut self.context, &mut self.loss, &record) {
                        if let AssemblerStep::End(end) = step {
                            self.end = Some(end);
                        }
                        return step;
                    }
                    // No event waits, so no event refers to retired values.
                    self.context.drop_retired();
                    if let Record::SequencePoint(point) = record {
                        self.context.pass(&point);
                    }
                }
            }
        };
        let (header, lengths) = (event.without_payload(), (event.payload.len(), event.stack.len()));
        self.current = Current::read(&self.records, header, lengths, references);
        AssemblerStep::Event
    }

    fn step_in_time(&mut self) -> AssemblerStep {
        self.current = Current::None;
        let Self { records, context, loss, times, queue: Some(queue), .. } = self else {
            return AssemblerStep::More;
        };
        'released: loop {
            if let Some(place) = queue.pop() {
                self.current = Current::Popped(place);
                return AssemblerStep::Event;
            }
            if queue.is_empty() {
                context.drop_retired();
            }
            if let Some(point) = self.passed.take() {
                context.pass(&point);
            }
            if let Some(end) = self.end {
                return AssemblerStep::End(end);
            }
            let record = loop {
                let event = match records.next_event() {
                    Some(event) => event,
                    None => match records.next_record() {
                        Record::Event(event) => event,
                        record => break record,
                    },
                };
                loss.event(&event);
                if let Some(times) = times {
                    times.event(&event);
                }
                let references = context.refer(&event);
                if event.sorted && queue.pass(event.timestamp) {
                    let (header, lengths) =
                        (event.without_payload(), (event.payload.len(), event.stack.len()));
                    self.current = Current::read(records, header, lengths, references);
                    return AssemblerStep::Event;
                }
                queue.push(&event, references);
                if queue.is_released() {
                    continue 'released;
                }
            };
            if times.as_mut().is_some_and(|times| times.record(&record)) {
                records.skip_block();
                loss.resync();
                continue;
            }
            match Self::store(context, loss, &record) {
                Some(AssemblerStep::End(end)) => {
                    self.end = Some(end);
                    queue.release_all();
                }
                Some(step) => return step,
                None => {
                    if let Record::SequencePoint(point) = record {
                        self.passed = Some(point);
                        queue.release_all();
                    } else if context.retired() > queue.limit() / 8 {
                        queue.release_early();
                    }
                }
            }
        }
    }

    /// Stores a record that is not an event, and returns `None`. Returns the step if `record` is `More` or `End`.
    fn store(
        context: &mut StreamContext,
        loss: &mut LossCounter<Vec<Slot<Counter>>>,
        record: &Record<'_>,
    ) -> Option<AssemblerStep> {
        match record {
            Record::More { .. } => Some(AssemblerStep::More),
            Record::End(end) => Some(AssemblerStep::End(*end)),
            record => {
                loss.record(record);
                context.store(record);
                None
            }
        }
    }
}
