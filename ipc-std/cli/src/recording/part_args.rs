//! `--from`, `--to` and `--thread`: a part of a trace.
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nettrace::{Trace, TraceClock, TraceEvent};
use nettrace_analysis::Analysis as _;
use nettrace_analysis::Part;
use nettrace_analysis::samples::{Clock, Samples};

use crate::args::time_range_args::TimeRangeArgs;
use crate::input::source::Source;
use crate::input::trace_file;
use crate::output::dates::NO_DATE;
use crate::process::trace_target::TraceTarget;
use crate::run::{Failure, Globals, Kind};
use crate::text::printable::printable_name;

/// `--from`, `--to` and `--thread`: the part of a trace to read.
#[derive(Debug, clap::Args)]
pub(crate) struct PartArgs {
    #[command(flatten)]
    times: TimeRangeArgs,
    /// Only the events of this thread, by its ID or its name; repeatable
    #[arg(long, value_name = "NAME|ID")]
    thread: Vec<ThreadArg>,
}

/// A value of `--thread`.
#[derive(Debug, Clone)]
enum ThreadArg {
    Id(u64),
    Name(String),
}

impl FromStr for ThreadArg {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(id) => Ok(Self::Id(id)),
            // Every name would have this text.
            Err(_) if text.is_empty() => Err("a name or an ID is required"),
            Err(_) => Ok(Self::Name(text.to_owned())),
        }
    }
}

impl PartArgs {
    /// Fails if there are threads, for a command that shows the whole process.
    pub(crate) fn check_no_threads(&self, why: &str) -> Result<(), Failure> {
        if self.thread.is_empty() {
            return Ok(());
        }
        Err(Failure::usage(format!("--thread does not apply: {why}"))
            .with_hint("`report --thread` shows what a thread does"))
    }

    /// Returns the part of a trace or of the recording of a process. A trace is read for the names of its threads, if
    /// one is named. Fails if no thread has the name.
    pub(crate) fn part(&self, target: TraceTarget<'_>, globals: &Globals) -> Result<TracePart, Failure> {
        let part = self.times.part();
        if self.thread.is_empty() {
            return Ok(TracePart::new(part));
        }
        let has_name = self.thread.iter().any(|thread| matches!(thread, ThreadArg::Name(_)));
        let names = if has_name { names_of(target, globals)? } else { BTreeMap::new() };
        let mut ids = BTreeSet::new();
        for thread in &self.thread {
            match thread {
                ThreadArg::Id(id) => _ = ids.insert((*id, None)),
                ThreadArg::Name(name) => {
                    let threads = named(name, &names, target)?;
                    ids.extend(threads.into_iter().map(|(id, index)| (id, Some(index))));
                }
            }
        }
        Ok(TracePart { threads: Some(self.threads_text()), ..TracePart::new(part.of_threads(ids)) })
    }

    fn threads_text(&self) -> String {
        let text = |thread: &ThreadArg| match thread {
            ThreadArg::Id(id) => id.to_string(),
            ThreadArg::Name(name) => printable_name(name),
        };
        self.thread.iter().map(text).collect::<Vec<_>>().join(" or ")
    }
}

/// The operating system's id of a thread, and its index.
type ThreadKey = (u64, u64);

/// Returns the names of the threads of a trace.
fn names_of(target: TraceTarget<'_>, globals: &Globals) -> Result<BTreeMap<ThreadKey, String>, Failure> {
    let failure = |message: &str| {
        let failure = Failure::usage(message.to_owned());
        failure.with_hint("use its ID, which `report --threads` shows, or write a trace to a file first")
    };
    match target {
        TraceTarget::Process(_) => Err(failure("the name of a thread is known only after the recording")),
        TraceTarget::File(file) if !Source::open(file)?.is_regular() => {
            Err(failure("the name of a thread follows its events, so the trace must be a file"))
        }
        TraceTarget::File(file) => read_names(file, globals),
    }
}

/// Reads a whole trace for the names of its threads. The next reader reports where the trace is truncated or corrupt.
fn read_names(file: &Path, globals: &Globals) -> Result<BTreeMap<ThreadKey, String>, Failure> {
    let mut trace = trace_file::open(file, true, globals)?;
    // Each event with a stack is weighed, because its stack can show the purpose of its thread.
    let mut samples = Samples::new([Clock::AllEvents]);
    loop {
        match trace.next_event() {
            Ok(Some(event)) => samples.event(&event),
            Ok(None) => break,
            Err(e) => return Err(trace.get_ref().failed(&e)),
        }
    }
    let roles = samples.thread_roles();
    let names = samples.threads().iter().zip(roles).filter_map(|(thread, roles)| {
        let name = if thread.name.is_empty() { roles.name()? } else { &thread.name };
        Some(((thread.id, thread.index), name.to_owned()))
    });
    Ok(names.collect())
}

/// Returns the threads of this name, or else those with this text in their names.
fn named(
    name: &str,
    names: &BTreeMap<ThreadKey, String>,
    target: TraceTarget<'_>,
) -> Result<BTreeSet<ThreadKey>, Failure> {
    const SHOWN: usize = 5;
    let wanted = name.to_lowercase();
    let with = |is_wanted: &dyn Fn(&str) -> bool| -> BTreeSet<ThreadKey> {
        let found = names.iter().filter(|(_, name)| is_wanted(&name.to_lowercase()));
        found.map(|(id, _)| *id).collect()
    };
    let exact = with(&|name| name == wanted);
    let found = if exact.is_empty() { with(&|name| name.contains(&wanted)) } else { exact };
    if !found.is_empty() {
        return Ok(found);
    }
    let message = format!("{target}: no thread is named {}", printable_name(name));
    let known: BTreeSet<String> = names.values().map(|name| printable_name(name)).collect();
    let known = known.into_iter().take(SHOWN).collect::<Vec<_>>().join(", ");
    let known = if known.is_empty() { "this trace names none".to_owned() } else { format!("known: {known}") };
    Err(Failure::new(Kind::NothingFound, message).with_hint(format!(
        "use its ID; a trace of version 4 names only threads whose purpose its events show, such as .NET TP Worker \
         and .NET Finalizer; {known}"
    )))
}

/// The part of a trace that a command reads, and the events of it that exist.
#[derive(Debug, Clone, Default)]
pub(crate) struct TracePart {
    part: Part,
    /// The threads of the part as the user wrote them.
    threads: Option<String>,
    /// Whether there was an event of the threads, and one in the part.
    has_threads: bool,
    is_found: bool,
    /// The first and the last time of an event, in nanoseconds from the start of the trace.
    times: Option<(i64, i64)>,
    /// Whether the trace states no date that exists, so that its times cannot be compared with dates.
    lacks_date: bool,
}

impl TracePart {
    fn new(part: Part) -> Self {
        Self { part, ..Self::default() }
    }

    /// Returns the part for an analysis, which takes all events.
    pub(crate) fn part(&self) -> Part {
        self.part.clone()
    }

    pub(crate) const fn is_whole(&self) -> bool {
        self.part.is_whole()
    }

    /// Returns the times of the part in ticks of a trace; `None` if it has all times.
    pub(crate) fn ticks(&self, trace: &Trace<'_>) -> Option<RangeInclusive<u64>> {
        Some(self.part.ticks(&TraceClock::new(trace))).filter(|ticks| *ticks != (0..=u64::MAX))
    }

    /// Returns whether an event is in the part.
    pub(crate) fn includes(&mut self, event: &TraceEvent<'_>) -> bool {
        self.includes_at(event.clock(), event.timestamp(), || (event.thread_id(), event.thread_index()))
    }

    /// Returns whether a time of a thread is in the part.
    pub(crate) fn contains(&mut self, clock: &TraceClock, ticks: u64, (id, index): ThreadKey) -> bool {
        self.part.has_thread(id, index) && self.part.has_ticks(clock, ticks)
    }

    /// Returns whether an event at this time, of the thread that `thread` returns, is in the part.
    pub(crate) fn includes_at(
        &mut self,
        clock: &TraceClock,
        ticks: u64,
        thread: impl FnOnce() -> ThreadKey,
    ) -> bool {
        if self.is_whole() {
            return true;
        }
        let has_thread = self.threads.is_none() || {
            let (id, index) = thread();
            self.part.has_thread(id, index)
        };
        self.has_threads |= has_thread;
        let is_inside = has_thread && self.part.has_ticks(clock, ticks);
        self.is_found |= is_inside;
        if !self.is_found {
            let time = clock.nanoseconds(ticks);
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
            self.lacks_date = clock.unix_start().is_none();
        }
        is_inside
    }

    /// Takes the time of the last sequence point: a wait or a request can last up to it.
    pub(crate) fn extend_to(&mut self, nanoseconds: i64) {
        self.times = self.times.map(|(first, last)| (first, last.max(nanoseconds)));
    }

    /// Fails if the part is outside of the trace, or if the trace has no event of its threads.
    pub(crate) fn check(&self, name: impl fmt::Display) -> Result<(), Failure> {
        if self.is_whole() || self.is_found {
            return Ok(());
        }
        let failure = |message: String| Failure::new(Kind::NothingFound, message);
        if let Some(threads) = self.threads.as_ref().filter(|_| !self.has_threads) {
            return Err(failure(format!("{name}: no event of thread {threads}"))
                .with_hint("`report --threads` lists the threads that were sampled"));
        }
        // Without an event, the part can still have a time that began before.
        let Some((first, last)) =
            self.times.filter(|(first, last)| self.part.overlap(*first, *last).is_none())
        else {
            return Ok(());
        };
        let seconds = |time: i64| time as f64 / 1e9;
        let of = self.threads.as_ref().map_or_else(String::new, |threads| format!(" of thread {threads}"));
        let why = if self.lacks_date { format!(", and {NO_DATE}") } else { String::new() };
        Err(failure(format!("{name}: no event{of} between --from and --to{why}")).with_hint(format!(
            "the events are from {:.3} s to {:.3} s since the start of the trace",
            seconds(first),
            seconds(last)
        )))
    }
}
