//! Whole events from bytes that arrive in pieces, in the order of the stream or of time.
use core::ops::Range;

use crate::assemble::context::{References, StreamContext};
use crate::assemble::event_queue::EventQueue;
use crate::assemble::parser_buf::ParserBuf;
use crate::assemble::stream_event::StreamEvent;
use crate::assemble::trace_event::TraceEvent;
use crate::catalog::{TraceLog, TraceSummary};
use crate::parse::{End, Event, Record, SequencePoint};
use crate::segments::ReadOptions;

/// Joins the records of a stream, and returns each event as soon as its bytes have arrived, or as soon as it is certain
/// that no older event follows.
#[derive(Debug)]
pub(crate) struct StreamAssembler {
    records: ParserBuf,
    context: StreamContext,
    log: TraceLog,
    /// The events that wait, if events are returned in the order of time.
    queue: Option<EventQueue>,
    /// A sequence point that takes effect when the queue is empty.
    passed: Option<SequencePoint>,
    /// The event that was found last.
    current: Current,
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

impl StreamAssembler {
    /// Creates an assembler of events in the order of time if there is a limit for those that wait.
    pub(crate) fn new(options: ReadOptions, limit: Option<usize>) -> Self {
        Self {
            records: ParserBuf::new(options.limits),
            context: StreamContext::new(options.stacks),
            log: TraceLog::default(),
            queue: limit.map(EventQueue::new),
            passed: None,
            current: Current::None,
        }
    }

    /// Skips the blocks whose stated range is outside of these ticks.
    pub(crate) fn skip_outside(&mut self, from: u64, to: u64) {
        self.log.times = Some(self.context.catalog.time_filter(from, to));
    }

    #[inline]
    pub(crate) const fn end(&self) -> Option<End> {
        self.log.end
    }

    /// Finds the next event in the bytes that have arrived. Returns whether there is one.
    #[inline]
    pub(crate) fn find(&mut self) -> bool {
        if self.queue.is_some() { self.find_in_time() } else { self.find_in_stream() }
    }

    #[inline]
    pub(crate) fn event(&self) -> Option<TraceEvent<'_>> {
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
        Some(TraceEvent::of_stream(StreamEvent { header, context: &self.context, references }))
    }

    pub(crate) fn space(&mut self) -> &mut [u8] {
        self.current = Current::None;
        self.records.space()
    }

    pub(crate) fn advance(&mut self, n: usize) {
        self.records.advance(n);
    }

    /// Returns what is known about the trace.
    pub(crate) fn summary(&self) -> TraceSummary<'_> {
        let late = self.queue.as_ref().map_or(0, EventQueue::late);
        let exceeded_limit = self.queue.as_ref().is_some_and(EventQueue::exceeded_limit);
        self.log.summary(&self.context.catalog, late, exceeded_limit)
    }

    #[inline]
    fn find_in_stream(&mut self) -> bool {
        let (event, references) = loop {
            match self.records.next_record() {
                Record::Event(event) => {
                    self.log.event(&event);
                    break (event, self.context.refer(&event));
                }
                record => {
                    self.current = Current::None;
                    if self.log.skips(&record) {
                        self.records.skip_block();
                        continue;
                    }
                    match record {
                        Record::More { .. } => return false,
                        Record::End(end) => {
                            self.log.end = Some(end);
                            return false;
                        }
                        record => self.context.store(&record),
                    }
                    // No event waits, so no event refers to retired values.
                    self.context.catalog.drop_retired();
                    if let Record::SequencePoint(point) = record {
                        self.context.pass(&point);
                    }
                }
            }
        };
        let (header, lengths) = (event.without_payload(), (event.payload.len(), event.stack.len()));
        self.current = Current::read(&self.records, header, lengths, references);
        true
    }

    fn find_in_time(&mut self) -> bool {
        self.current = Current::None;
        let Self { records, context, log, queue: Some(queue), .. } = self else {
            return false;
        };
        'released: loop {
            if let Some(place) = queue.pop() {
                self.current = Current::Popped(place);
                return true;
            }
            if queue.is_empty() {
                context.catalog.drop_retired();
            }
            if let Some(point) = self.passed.take() {
                context.pass(&point);
            }
            if log.end.is_some() {
                return false;
            }
            let record = loop {
                let event = match records.next_event() {
                    Some(event) => event,
                    None => match records.next_record() {
                        Record::Event(event) => event,
                        record => break record,
                    },
                };
                log.event(&event);
                let references = context.refer(&event);
                if event.sorted && queue.pass(event.timestamp) {
                    let (header, lengths) =
                        (event.without_payload(), (event.payload.len(), event.stack.len()));
                    self.current = Current::read(records, header, lengths, references);
                    return true;
                }
                queue.push(&event, references);
                if queue.is_released() {
                    continue 'released;
                }
            };
            if log.skips(&record) {
                records.skip_block();
                continue;
            }
            match record {
                Record::More { .. } => return false,
                Record::End(end) => {
                    log.end = Some(end);
                    queue.release_all();
                }
                Record::SequencePoint(point) => {
                    self.passed = Some(point);
                    queue.release_all();
                }
                record => context.store(&record),
            }
        }
    }
}
