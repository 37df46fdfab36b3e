//! The part of a trace that an analysis counts.
use alloc::collections::BTreeSet;
use core::ops::RangeInclusive;

use nettrace::{TraceClock, TraceEvent};

/// A point in time of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceTime {
    /// Nanoseconds from the start of the trace.
    SinceStart(i64),
    /// Nanoseconds since 1970 in UTC.
    Unix(i128),
}

impl TraceTime {
    /// Returns the nanoseconds from the start of the trace; `None` for a date if the trace states none.
    fn nanoseconds(self, clock: &TraceClock) -> Option<i64> {
        match self {
            Self::SinceStart(nanoseconds) => Some(nanoseconds),
            Self::Unix(time) => {
                let since = time.saturating_sub(clock.unix_start()?);
                Some(i64::try_from(since).unwrap_or(if since < 0 { i64::MIN } else { i64::MAX }))
            }
        }
    }
}

/// The part of a trace that an analysis counts: the events from one time to another, of some threads. The default is
/// the whole trace.
///
/// An analysis takes all events of the trace, whatever the part is, because an event of any time can name code, threads
/// and counters. It counts what is in the part:
///
/// | thing | is in the part if |
/// |---|---|
/// | an event, a sample, a sample of a counter | its time is; both ends belong to the part |
/// | time of a thread, a wait for a lock | as far as it overlaps the part |
/// | a garbage collection | it overlaps the part; threads do not matter |
/// | a compilation | its start is |
/// | a request | its end is, or it is in flight at the end of the part; threads do not matter |
///
/// ```
/// use nettrace_analysis::nettrace::{AssemblerStep, BytesOrder, EventAssembler, ReadOptions};
/// use nettrace_analysis::samples::{Clock, Samples};
/// use nettrace_analysis::{Analysis, Part, TraceTime};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/analysis/net31-sampled.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::of_bytes(bytes, BytesOrder::Time, ReadOptions::default());
/// let beginning = Part::default().until(TraceTime::SinceStart(1_000_000_000));
/// let mut samples = Samples::new([Clock::Wall]).of_part(beginning);
/// while let AssemblerStep::Event(event) = assembler.step() {
///     samples.event(&event);
/// }
/// # assert!((2_000..3_000).contains(&samples.samples()), "{}", samples.samples());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    from: Option<TraceTime>,
    to: Option<TraceTime>,
    threads: Option<BTreeSet<(u64, Option<u64>)>>,
    bounds: Bounds,
}

/// The times by the clock of the trace, once an event was seen; before, all times.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bounds {
    is_known: bool,
    ticks: RangeInclusive<u64>,
    first: i64,
    last: i64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { is_known: false, ticks: 0..=u64::MAX, first: i64::MIN, last: i64::MAX }
    }
}

impl Part {
    /// Leaves out the events before a time.
    #[must_use]
    pub fn since(self, from: TraceTime) -> Self {
        Self { from: Some(from), ..self }
    }

    /// Leaves out the events after a time.
    #[must_use]
    pub fn until(self, to: TraceTime) -> Self {
        Self { to: Some(to), ..self }
    }

    /// Leaves out all threads but these, by the operating system's ids. With an index, which is that of
    /// [`TraceEvent::thread_index`], other threads with the same id are left out too.
    #[must_use]
    pub fn of_threads(self, threads: BTreeSet<(u64, Option<u64>)>) -> Self {
        Self { threads: Some(threads), ..self }
    }

    /// Returns whether the part is the whole trace.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.threads.is_none()
    }

    /// Returns the times of the part, in ticks of the clock of a trace.
    #[must_use]
    pub fn ticks(&self, clock: &TraceClock) -> RangeInclusive<u64> {
        ticks(self.from, self.to, clock)
    }

    /// Returns whether a thread is in the part, by its id and its index.
    #[must_use]
    pub fn has_thread(&self, id: u64, index: u64) -> bool {
        let has =
            |threads: &BTreeSet<_>| threads.contains(&(id, None)) || threads.contains(&(id, Some(index)));
        self.threads.as_ref().is_none_or(has)
    }

    pub(crate) fn has_thread_of(&self, event: &TraceEvent<'_>) -> bool {
        self.threads.is_none() || self.has_thread(event.thread_id(), event.thread_index())
    }

    /// Returns whether an event is in the part: its time and its thread are.
    pub fn includes(&mut self, event: &TraceEvent<'_>) -> bool {
        self.is_whole() || (self.has_ticks(event.clock(), event.timestamp()) && self.has_thread_of(event))
    }

    /// Returns whether a time of the trace is in the part, in ticks of its clock.
    pub fn has_ticks(&mut self, clock: &TraceClock, ticks: u64) -> bool {
        (self.from.is_none() && self.to.is_none()) || self.bounds(clock).ticks.contains(&ticks)
    }

    /// Returns the times of the part in nanoseconds from the start of the trace. They are known after the first event.
    const fn times(&self) -> (i64, i64) {
        (self.bounds.first, self.bounds.last)
    }

    /// Returns whether a point in time is in the part.
    pub(crate) fn has_time(&self, nanoseconds: i64) -> bool {
        let (first, last) = self.times();
        (first..=last).contains(&nanoseconds)
    }

    /// Returns the part of an interval that is in the part of the trace: its start and its end, in nanoseconds from the
    /// start of the trace. The times of the part are known once an event was passed to this part.
    #[must_use]
    pub fn overlap(&self, start: i64, end: i64) -> Option<(i64, i64)> {
        let (first, last) = self.times();
        let (start, end) = (start.max(first), end.min(last));
        (start <= end).then_some((start, end))
    }

    fn bounds(&mut self, clock: &TraceClock) -> &Bounds {
        let Self { from, to, bounds, .. } = self;
        if !bounds.is_known {
            let (first, last) = times(*from, *to, clock);
            *bounds = Bounds { is_known: true, ticks: ticks(*from, *to, clock), first, last };
        }
        bounds
    }
}

/// Returns the times from one to another, in ticks of the clock of a trace.
fn ticks(from: Option<TraceTime>, to: Option<TraceTime>, clock: &TraceClock) -> RangeInclusive<u64> {
    let (first, last) = times(from, to, clock);
    // Rounded up, to the first tick at or after the time: `ticks` alone rounds down.
    let first = from.map_or(0, |_| clock.ticks(first.saturating_sub(1)).saturating_add(1));
    first..=to.map_or(u64::MAX, |_| clock.ticks(last))
}

/// Returns the times from one to another in nanoseconds from the start of the trace. No time is between dates if the
/// trace states none.
fn times(from: Option<TraceTime>, to: Option<TraceTime>, clock: &TraceClock) -> (i64, i64) {
    let first = from.map_or(Some(i64::MIN), |from| from.nanoseconds(clock));
    let last = to.map_or(Some(i64::MAX), |to| to.nanoseconds(clock));
    first.zip(last).unwrap_or((i64::MAX, i64::MIN))
}
