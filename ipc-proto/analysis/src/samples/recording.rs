//! The weights by one clock, and the machine that drives the clock.
use nettrace::EventSelector;

use super::Clock;
use super::allocations::Allocations;
use super::contention::Contention;
use super::idle_waits::{IdleStacks, IdleWaits};
use super::interval::{Interval, Taken};
use super::interval::{Weight, Weights};
use super::seen_event::{PROCESSOR_SAMPLE, SeenEvent};
use super::thread_time::ThreadTime;
use crate::stacks::WaitingStacks;
use crate::trace::elapsed;
use crate::{Part, RuntimeEvent, StackId};

/// Returns whether an event starts a wait of a clock; `None` if it does not end one either.
fn is_start_of(clock: &Clock, event: &SeenEvent<'_>) -> Option<bool> {
    match (event.kind.of_runtime?, clock) {
        (RuntimeEvent::ContentionStart, Clock::Contention)
        | (RuntimeEvent::WaitHandleWaitStart, Clock::Waits) => Some(true),
        (RuntimeEvent::ContentionStop, Clock::Contention)
        | (RuntimeEvent::WaitHandleWaitStop, Clock::Waits) => Some(false),
        _ => None,
    }
}

/// The weights by one clock.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) clock: Clock,
    pub(super) meter: Meter,
    pub(super) weights: Weights,
    /// The weights by AllocationTicks, which count for processes without sampled allocations.
    pub(super) ticks: Weights,
    pub(super) count: u64,
    /// The nanoseconds off the processor that no weight has yet: `Wall` counts them in samples.
    rest: u64,
}

/// The method by which a clock weighs events.
#[derive(Debug)]
pub(super) enum Meter {
    /// Each event by itself.
    Each,
    ThreadTime(ThreadTime),
    Allocations(Allocations),
    Contention(Contention),
}

impl Recording {
    /// How many pairs of a thread and a stack a clock has at most.
    pub(super) const ENTRIES: usize = 1 << 20;

    pub(super) fn new(clock: Clock) -> Self {
        let meter = match &clock {
            Clock::ThreadTime => Meter::ThreadTime(ThreadTime::new(true)),
            Clock::SampledTime => Meter::ThreadTime(ThreadTime::new(false)),
            Clock::Allocations => Meter::Allocations(Allocations::new(false)),
            Clock::AllocatedTypes => Meter::Allocations(Allocations::new(true)),
            Clock::Contention | Clock::Waits => Meter::Contention(Contention::default()),
            _ => Meter::Each,
        };
        Self { clock, meter, weights: Weights::new(), ticks: Weights::new(), count: 0, rest: 0 }
    }

    /// Takes an event, and calls `each` with the interval that it adds.
    pub(super) fn event(&mut self, event: &mut SeenEvent<'_>, each: &mut dyn FnMut(&Clock, &Interval)) {
        // A time can overlap the part of the trace that is weighed.
        let has_duration = matches!(self.meter, Meter::ThreadTime(_) | Meter::Contention(_));
        if !event.is_inside && !has_duration {
            return;
        }
        let taken = match &mut self.meter {
            Meter::Each => self.weigh(event),
            Meter::ThreadTime(meter) => meter.event(event),
            Meter::Allocations(meter) => meter.event(event),
            Meter::Contention(meter) => meter.event(event, is_start_of(&self.clock, event)),
        };
        let Some(Taken { count, interval }) = taken else { return };
        self.count = self.count.saturating_add(count);
        if let Some(interval) = interval {
            self.add(&interval, event.dropped, each);
        }
    }

    /// Weighs an event by itself.
    fn weigh(&mut self, event: &mut SeenEvent<'_>) -> Option<Taken> {
        const ONE: Weight = Weight::new(1, true);
        let weight = match &self.clock {
            Clock::Cpu => event.sample().filter(|weight| weight.running > 0)?,
            Clock::Exceptions if event.is(RuntimeEvent::ExceptionThrown) => ONE,
            Clock::Exceptions => return None,
            Clock::Events { provider, event_id } => {
                let selector = EventSelector { provider, event_id: *event_id, event_name: None };
                selector.keeps(&event.event.metadata()?).then_some(ONE)?
            }
            Clock::AllEvents => ONE,
            _ => match event.switch() {
                Some(start) => self.off_processor(elapsed(start, event.event.nanoseconds()))?,
                None => event.sample()?,
            },
        };
        let (thread, stack) = event.place()?;
        if self.clock == Clock::AllEvents && stack == StackId::EMPTY {
            return None;
        }
        let interval = Interval::at(thread, stack, event.event.nanoseconds(), weight);
        // A time off the processor counts as many samples as it weighs.
        Some(Taken { count: weight.waiting.max(1), interval: Some(interval) })
    }

    /// Returns the weight of a time off the processor, in samples. The rest counts with the next time, so that many short
    /// times are not lost.
    fn off_processor(&mut self, duration: u64) -> Option<Weight> {
        let time = self.rest.saturating_add(duration);
        self.rest = time % PROCESSOR_SAMPLE;
        Some(Weight::new(time / PROCESSOR_SAMPLE, false)).filter(|weight| weight.waiting > 0)
    }

    /// Adds a weight, if there is room for it.
    fn add(&mut self, interval: &Interval, dropped: &mut u64, each: &mut dyn FnMut(&Clock, &Interval)) {
        each(&self.clock, interval);
        let is_full = self.weights.len().saturating_add(self.ticks.len()) >= Self::ENTRIES;
        let weights = if interval.is_tick { &mut self.ticks } else { &mut self.weights };
        let key = (interval.thread, interval.stack);
        if is_full && !weights.contains_key(&key) {
            *dropped = dropped.saturating_add(1);
        } else {
            weights.entry(key).or_default().add(interval.weight);
        }
    }

    /// Adds the waits that have not ended, up to the end of the recording in nanoseconds.
    pub(super) fn finish(
        &mut self,
        end: i64,
        part: &Part,
        dropped: &mut u64,
        each: &mut dyn FnMut(&Clock, &Interval),
    ) {
        let Meter::Contention(contention) = &mut self.meter else { return };
        for Taken { count, interval } in contention.open_waits(end, part) {
            self.count = self.count.saturating_add(count);
            interval.iter().for_each(|interval| self.add(interval, dropped, each));
        }
    }

    /// Makes the samples whose innermost method waits those of waiting threads: `Cpu` has only threads that run.
    pub(super) fn separate_waits(&mut self, waiting: &mut WaitingStacks<'_>) {
        let Self { weights, count, .. } = self;
        match self.clock {
            Clock::Cpu => weights.retain(|(_, stack), weight| {
                let waits = waiting.has(*stack);
                *count = count.saturating_sub(if waits { weight.count } else { 0 });
                !waits
            }),
            Clock::Wall => {
                for (_, weight) in weights.iter_mut().filter(|((_, stack), _)| waiting.has(*stack)) {
                    weight.waiting = weight.waiting.saturating_add(core::mem::take(&mut weight.running));
                }
            }
            _ => {}
        }
    }

    /// Moves the waits of threads that have nothing to do to `idle`.
    pub(super) fn separate_idle_waits(&mut self, stacks: &IdleStacks, idle: &mut IdleWaits) {
        let Self { weights, count, .. } = self;
        weights.retain(|(_, stack), weight| {
            let is_idle = stacks.take(*stack, *weight, idle);
            *count = count.saturating_sub(if is_idle { weight.count } else { 0 });
            !is_idle
        });
    }

    /// Removes all weights and the state of all threads.
    pub(super) fn clear(&mut self) {
        self.weights.clear();
        self.ticks.clear();
        (self.count, self.rest) = (0, 0);
        match &mut self.meter {
            Meter::Each => {}
            Meter::ThreadTime(meter) => meter.clear(),
            Meter::Allocations(meter) => meter.unknown = 0,
            Meter::Contention(meter) => *meter = Contention::default(),
        }
    }
}
