//! Whole events from bytes that arrive in pieces, in the order of the stream or of time.
use alloc::vec::Vec;
use core::ops::Range;

use crate::assemble::assembler_step::AssemblerStep;
use crate::assemble::context::{References, StreamContext};
use crate::assemble::event_queue::EventQueue;
use crate::assemble::parser_buf::ParserBuf;
use crate::assemble::stream_event::StreamEvent;
use crate::catalog::catalog::Catalog;
use crate::join::id_map::Slot;
use crate::join::loss::{Counter, LossCounter};
use crate::parse::end::End;
use crate::parse::event::Event;
use crate::parse::parser::{Limits, Record};
use crate::parse::sequence_point::SequencePoint;
use crate::parse::time_filter::TimeFilter;

/// Joins the records of a stream, and returns each event as soon as its bytes have arrived, or as soon as it is certain
/// that no older event follows.
#[derive(Debug)]
pub(crate) struct StreamAssembler {
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

impl StreamAssembler {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            records: ParserBuf::new(limits),
            context: StreamContext::new(),
            loss: LossCounter::default(),
            times: None,
            queue: None,
            passed: None,
            current: Current::None,
            end: None,
        }
    }

    /// Returns events in the order of time from now on.
    pub(crate) fn sort(&mut self, limit: usize) {
        self.queue = Some(EventQueue::new(limit));
    }

    /// Stores no stacks from now on.
    pub(crate) const fn omit_stacks(&mut self) {
        self.context.omit_stacks();
    }

    /// Skips the blocks whose stated range is outside of these ticks.
    pub(crate) fn skip_outside(&mut self, from: u64, to: u64) {
        self.times = Some(self.context.catalog.time_filter(from, to));
    }

    pub(crate) const fn times(&self) -> Option<&TimeFilter> {
        self.times.as_ref()
    }

    /// Finds the next event in the bytes that have arrived.
    #[inline]
    pub(crate) fn step(&mut self) -> AssemblerStep {
        if self.queue.is_some() { self.step_in_time() } else { self.step_in_stream() }
    }

    #[inline]
    pub(crate) fn event(&self) -> Option<StreamEvent<'_>> {
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
        Some(StreamEvent { header, context: &self.context, references })
    }

    pub(crate) fn space(&mut self) -> &mut [u8] {
        self.current = Current::None;
        self.records.space()
    }

    pub(crate) fn advance(&mut self, n: usize) {
        self.records.advance(n);
    }

    pub(crate) const fn catalog(&self) -> &Catalog {
        &self.context.catalog
    }

    pub(crate) const fn end(&self) -> Option<End> {
        self.end
    }

    pub(crate) const fn loss(&self) -> &LossCounter<Vec<Slot<Counter>>> {
        &self.loss
    }

    /// Returns how many events came after a younger one although they are sorted.
    pub(crate) fn late(&self) -> u64 {
        self.queue.as_ref().map_or(0, EventQueue::late)
    }

    /// Returns whether the memory for waiting events was not enough to sort all of them.
    pub(crate) fn exceeded_limit(&self) -> bool {
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
                    self.context.catalog.drop_retired();
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
                context.catalog.drop_retired();
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
