//! [`Clock::ThreadTime`](super::Clock::ThreadTime) and [`Clock::SampledTime`](super::Clock::SampledTime):
//! the time of threads.
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use nettrace::{MetadataBuf, Str, TraceEvent};

use super::interval::{Interval, Taken};
use super::seen_event::{PROCESSOR_SAMPLE, SeenEvent};
use crate::event::{is_name, push_text};
use crate::{KnownProvider, RuntimeEvent, StackId};

/// The state of a clock of the time of threads.
#[derive(Debug)]
pub(super) struct ThreadTime {
    /// Whether the events of event sources count too.
    has_sources: bool,
    /// The last events of each thread, by its number.
    states: Vec<TimeState>,
}

/// The last events of a thread.
#[derive(Debug, Clone, Copy, Default)]
struct TimeState {
    /// The last event that shows that the thread ran.
    running: Option<(i64, StackId)>,
    /// The last event, if it shows that the thread does not run.
    waiting: Option<(i64, StackId)>,
    /// Whether the last event shows that the thread runs.
    is_running: bool,
}

impl ThreadTime {
    pub(super) const fn new(has_sources: bool) -> Self {
        Self { has_sources, states: Vec::new() }
    }

    pub(super) fn clear(&mut self) {
        self.states.clear();
    }

    /// Takes an event. Returns the stack in which its thread was up to this event.
    pub(super) fn event(&mut self, event: &mut SeenEvent<'_>) -> Option<Taken> {
        if event.kind.provider == Some(KnownProvider::UniversalEvents) {
            return of_processor(event);
        }
        let (runs, has_label) = match event.kind.provider {
            Some(KnownProvider::SampleProfiler) => (event.sample()?.running > 0, false),
            // Each of these shows that the thread runs.
            Some(_) => match event.kind.of_runtime? {
                RuntimeEvent::GCAllocationTick
                | RuntimeEvent::GCSampledObjectAllocationHigh
                | RuntimeEvent::GCSampledObjectAllocationLow => (true, false),
                _ => return None,
            },
            None if self.has_sources && is_event_source(event.event, event.kind.event_id) => (false, true),
            None => return None,
        };
        let (thread, mut stack) = event.place()?;
        if has_label {
            stack = event.labelled(stack, |label| push_label(label, event.event));
        }
        if thread.number() >= self.states.len() {
            self.states.resize(thread.number().saturating_add(1), TimeState::default());
        }
        let state = self.states.get_mut(thread.number())?;
        let (time, was_running) = (event.event.nanoseconds(), state.is_running);
        let since = state.advance(time, stack, runs);
        let interval = since.map(|(start, stack)| Interval::between(thread, stack, start, time, was_running));
        let interval = interval.and_then(|interval| event.inside(interval));
        Some(Taken { count: event.is_inside.into(), interval })
    }
}

impl TimeState {
    /// Takes an event of the thread. Returns the stack in which the thread was up to this event, and the start.
    const fn advance(&mut self, time: i64, stack: StackId, runs: bool) -> Option<(i64, StackId)> {
        let since = if self.is_running { self.running } else { self.waiting };
        self.is_running = runs;
        if runs {
            self.running = Some((time, stack));
            self.waiting = None;
        } else {
            self.waiting = Some((time, stack));
        }
        since
    }
}

/// Returns the time for which a sample of the processor stands, or the time off the processor that a switch of threads
/// ends: both are up to the event.
fn of_processor(event: &mut SeenEvent<'_>) -> Option<Taken> {
    let (end, switch) = (event.event.nanoseconds(), event.switch());
    let start = match switch {
        Some(start) => start,
        None => end.saturating_sub_unsigned(event.sample()?.running.saturating_mul(PROCESSOR_SAMPLE)),
    };
    let (thread, stack) = event.place()?;
    let interval = event.inside(Interval::between(thread, stack, start, end, switch.is_none()));
    Some(Taken { count: event.is_inside.into(), interval })
}

/// Returns whether an event comes from an event source whose events show what a thread does.
fn is_event_source(event: &TraceEvent<'_>, event_id: u32) -> bool {
    const OTHERS: [&str; 3] = [
        "Microsoft-Windows-DotNETRuntimePrivate",
        "Microsoft-Windows-DotNETRuntimeStress",
        "System.Threading.Tasks.TplEventSource",
    ];
    // A manifest describes other events, so it shows nothing about the thread.
    let is_manifest = event_id == 0xfffe;
    let provider = event.description().map_or(Str::EMPTY, MetadataBuf::provider);
    if is_name(provider, "System.Diagnostics.Eventing.FrameworkEventSource") {
        return matches!(event_id, 140..=143);
    }
    !is_manifest && !OTHERS.iter().any(|other| is_name(provider, other))
}

/// Writes the frame of an event.
fn push_label(label: &mut String, event: &TraceEvent<'_>) {
    label.push_str("EventName: ");
    let (provider, name) = event.description().map(|it| (it.provider(), it.name())).unwrap_or_default();
    push_text(label, provider);
    label.push('/');
    push_event_name(label, name);
}

/// Writes the name of an event with its opcode apart, as `Work/Start` for `WorkStart`.
fn push_event_name(to: &mut String, name: Str<'_>) {
    let start = to.len();
    push_text(to, name);
    for opcode in ["Start", "Stop"] {
        let len = to.len().saturating_sub(opcode.len());
        let is_suffix = to.get(len..).is_some_and(|end| end.eq_ignore_ascii_case(opcode));
        if is_suffix && len > start {
            to.truncate(len);
            // Writing to a string cannot fail.
            let _ = write!(to, "/{opcode}");
            return;
        }
    }
}
