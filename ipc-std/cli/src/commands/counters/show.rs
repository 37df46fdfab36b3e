//! `Show`: shows samples, and notes what is missing.
use core::ops::ControlFlow;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::Path;

use nettrace_analysis::counters::{Measurement, OwnedSample, System};

use crate::counters::condition::Condition;
use crate::counters::lines::series_name;
use crate::counters::output::Output;
use crate::counters::problems::Problems;
use crate::counters::report::{OwnedInstrument, Process, Report};
use crate::counters::series_filter::SeriesFilter;
use crate::counters::watch::Watch;
use crate::output::dates::NO_DATE;
use crate::output::direct_stdout::cannot_write;
use crate::output::output_file::already_exists;
use crate::run::{Failure, Globals, Kind};
use crate::text::printable::printable_name;

/// Where samples come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Trace {
        /// Whether only a part of the trace is read.
        is_part: bool,
    },
    Process,
    AllProcesses,
}

/// Shows samples until the end.
pub(super) struct Show<'a> {
    pub(super) globals: &'a Globals,
    pub(super) output: Output,
    /// The file of the output; `None` for standard output.
    file: Option<&'a Path>,
    pub(super) origin: Origin,
    pub(super) watches: Vec<Watch>,
    problems: Problems,
    /// The series that are shown: all if empty.
    only: Vec<SeriesFilter>,
    /// The series that the user named, and no sample and no instrument matches so far.
    pub(super) missing: Vec<SeriesFilter>,
    /// The series that the user named, and whose instruments exist, but have no sample so far.
    silent: Vec<SeriesFilter>,
    /// Some of the series of a trace that are not shown.
    others: BTreeSet<String>,
    /// Whether it was noted what knows the numbers of requests and of connections.
    notes_levels: (bool, bool),
    /// Whether there can be several processes.
    has_many: bool,
    /// Whether an instrument has begun.
    has_instruments: bool,
    /// Whether another session reads the meters of a process, which may report what is missing.
    has_other_session: bool,
    pub(super) samples: u64,
    /// The condition of `--until` that holds, and so ends the command.
    pub(super) held: Option<String>,
    /// The result of the last write. An error ends the command.
    pub(super) written: io::Result<()>,
}

/// The maximum number of series that a message names.
const MAX_OTHERS: usize = 5;
const LIST_HINT: &str = "`dotnet-ipc counters list PID` shows the counters of a process";
const RECORD_HINT: &str = "record them with `dotnet-ipc counters PID`, or a trace with --provider 'System.Runtime:0:4:EventCounterIntervalSec=1'";

impl<'a> Show<'a> {
    pub(super) fn new(
        globals: &'a Globals,
        output: Output,
        file: Option<&'a Path>,
        origin: Origin,
        until: &[Condition],
    ) -> Self {
        Self {
            globals,
            output,
            file,
            origin,
            watches: until.iter().cloned().map(Watch::new).collect(),
            problems: Problems::default(),
            only: Vec::new(),
            missing: Vec::new(),
            silent: Vec::new(),
            others: BTreeSet::new(),
            notes_levels: (false, false),
            has_many: origin == Origin::AllProcesses,
            has_instruments: false,
            has_other_session: false,
            samples: 0,
            held: None,
            written: Ok(()),
        }
    }

    /// Sets the series that the user named, and those that are shown.
    pub(super) fn only(self, named: Vec<SeriesFilter>, shown: Vec<SeriesFilter>) -> Self {
        // Without tags, only the selected series arrive.
        let has_tags = !named.iter().all(SeriesFilter::has_no_tags);
        Self { missing: named, only: if has_tags { shown } else { Vec::new() }, ..self }
    }

    /// Shows a report. Breaks if no more reports are wanted.
    pub(super) fn report(&mut self, process: &Process, report: Report) -> ControlFlow<()> {
        match report {
            Report::SeveralProcesses => {
                self.has_many = true;
                self.output.show_processes();
            }
            Report::Sample(sample) if self.is_shown(&sample) => return self.sample(process, &sample),
            // Some series that are not shown, for the message if no other one comes.
            Report::Sample(sample) | Report::Unselected(sample) => {
                if self.samples == 0 && self.others.len() < MAX_OTHERS {
                    self.others.insert(series_name(&sample, &[]));
                }
            }
            Report::Begin(instrument) => self.begin(process, *instrument),
            Report::End(prefix) => self.output.ended(process, Some(&prefix)),
            Report::Problem(problem) => self.problem(process, &problem),
            Report::OtherSession(problem) => {
                self.has_other_session = true;
                self.problem(process, &problem);
            }
            Report::Published(_) | Report::EnumerationComplete | Report::Ended(_) => {}
        }
        ControlFlow::Continue(())
    }

    fn begin(&mut self, process: &Process, instrument: OwnedInstrument) {
        let OwnedInstrument { meter, name, has_long_details, .. } = &instrument;
        if *has_long_details {
            let name = format!("{}/{}", printable_name(meter), printable_name(name));
            let why = "its tags and those of its meter are left out, because they have more than 512 bytes";
            self.problem(process, &format!("{name}: {why}"));
        }
        self.has_instruments = true;
        self.watches.iter_mut().for_each(|watch| watch.exists(meter, name));
        let has_it = |one: &SeriesFilter| {
            one.has_no_tags() && one.selection.contains(System::Meter, (&**meter).into(), (&**name).into())
        };
        let missing = core::mem::take(&mut self.missing).into_iter();
        let (found, missing): (Vec<_>, Vec<_>) = missing.partition(has_it);
        self.missing = missing;
        self.silent.extend(found);
        self.output.instrument(process, instrument);
    }

    fn is_shown(&self, sample: &OwnedSample) -> bool {
        self.only.is_empty() || self.only.iter().any(|one| one.contains(sample))
    }

    fn sample(&mut self, process: &Process, sample: &OwnedSample) -> ControlFlow<()> {
        self.samples = self.samples.saturating_add(1);
        for named in [&mut self.missing, &mut self.silent] {
            named.retain(|one| !one.contains(sample));
        }
        if self.samples == 1 && sample.unix_nanoseconds.is_none() {
            self.note(&format!("{NO_DATE}, and so its samples have none"));
        }
        if let Measurement::UpDownCounter { since_start: true, .. } = sample.measurement {
            self.note_level(&sample.name);
        }
        let written = self.output.sample(process, sample);
        self.check_written(written)?;
        let mut watches = self.watches.iter_mut();
        self.held =
            watches.find_map(|watch| watch.holds(process, sample).then(|| watch.condition().to_string()));
        if self.held.is_some() {
            return ControlFlow::Break(());
        }
        if self.watches.iter_mut().any(Watch::take_limit_note) {
            self.note(
                "--until watches the first 10,000 series of a counter in a process, and 100,000 of all",
            );
        }
        ControlFlow::Continue(())
    }

    /// Stores the result of a write. Breaks if it failed.
    pub(super) fn check_written(&mut self, written: io::Result<()>) -> ControlFlow<()> {
        self.written = written;
        if self.written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn problem(&mut self, process: &Process, problem: &str) {
        if self.problems.is_new(process, problem) {
            self.note(&format!("{}{problem}", self.prefix(process)));
        }
    }

    /// Notes what the output does not have because of its limits.
    pub(super) fn note_left_out(&mut self) {
        if let Some(left_out) = self.output.left_out() {
            self.note(&left_out);
        }
    }

    pub(super) fn note(&mut self, note: &str) {
        if !self.output.note(note) {
            self.globals.note(note);
        }
    }

    /// Notes once for requests and once for connections what knows how many there are: their up-down counters do not.
    fn note_level(&mut self, name: &str) {
        let (shows, is_noted) = if name.ends_with("_requests") {
            ("`dotnet-ipc requests PID` shows requests in flight", &mut self.notes_levels.0)
        } else if name.ends_with("_connections") {
            ("`ss -tnp`, on Windows `netstat -ano`, shows connections", &mut self.notes_levels.1)
        } else {
            return;
        };
        if !core::mem::replace(is_noted, true) {
            self.note(&format!("{shows}; {} counts from the start of the session", printable_name(name)));
        }
    }

    /// Returns the beginning of notes about a process. It is empty if there is only one.
    pub(super) fn prefix(&self, process: &Process) -> String {
        match process.id {
            Some(id) if self.has_many && process.name.is_empty() => format!("process {id}: "),
            Some(id) if self.has_many => format!("process {id} {}: ", printable_name(&process.name)),
            _ => String::new(),
        }
    }

    /// Notes the counters that no process reports, after the first intervals.
    pub(super) fn note_missing(&mut self) {
        // A process without any sample may be suspended, which only the end of its session shows.
        if self.samples == 0 {
            return self.note("no sample so far");
        }
        if self.has_other_session {
            return;
        }
        for series in core::mem::take(&mut self.missing) {
            self.note(&format!("no process reports {series}"));
        }
    }

    /// Notes at the end which of the counters that the user named were not shown, if others were.
    pub(super) fn note_absent(&mut self) {
        if self.samples == 0 || self.held.is_some() {
            return;
        }
        // The other session is the reason, which was noted.
        if !self.has_other_session {
            for series in core::mem::take(&mut self.missing) {
                self.globals.note(&self.missing_text(series));
            }
        }
        for series in core::mem::take(&mut self.silent) {
            self.globals.note(&format!("{series} exists, and nothing was measured"));
        }
    }

    fn cannot_write(&self, e: &io::Error) -> Failure {
        match self.file {
            Some(path) if e.kind() == ErrorKind::AlreadyExists => already_exists(path),
            Some(path) => Failure::io(format_args!("cannot write {}", path.display()), e),
            None => cannot_write(e),
        }
    }

    /// Fails if a condition can never hold: at any time if it asks for what its counters do not have, and after the
    /// first intervals if no process reports them.
    pub(super) fn check_possible(&self, is_after_first_intervals: bool) -> Result<(), Failure> {
        for watch in &self.watches {
            let missing = watch.missing().filter(|_| is_after_first_intervals);
            let (kind, why) = match (watch.contradiction(), missing) {
                (Some(why), _) => (Kind::Usage, why.to_owned()),
                (None, Some(series)) => (Kind::NothingFound, self.missing_text(series)),
                (None, None) => continue,
            };
            let failure = Failure::new(kind, format!("'{}' can never hold: {why}", watch.condition()));
            return Err(failure.with_hint(LIST_HINT));
        }
        Ok(())
    }

    fn missing_text(&self, series: impl core::fmt::Display) -> String {
        let owner = match self.origin {
            Origin::Trace { .. } => "the trace has no counter",
            _ if self.has_other_session => "this session does not report",
            Origin::Process | Origin::AllProcesses => "no process reports",
        };
        format!("{owner} {series}")
    }

    /// Returns the failure of a command that has shown nothing.
    pub(super) fn nothing_found(&self) -> Failure {
        let names: Vec<String> = self.missing.iter().map(ToString::to_string).collect();
        let others: Vec<&str> = self.others.iter().map(String::as_str).collect();
        let message = match self.origin {
            _ if !names.is_empty() => self.missing_text(names.join(", ")),
            Origin::Trace { is_part: true } => "this part of the trace has no samples".to_owned(),
            // An instrument exists before its first measurement.
            _ if self.has_instruments => "nothing was measured: the instruments have no samples".to_owned(),
            Origin::Trace { .. } => "the trace has no counters".to_owned(),
            Origin::Process | Origin::AllProcesses => "no sample arrived".to_owned(),
        };
        Failure::new(Kind::NothingFound, message).with_hint(match self.origin {
            _ if !others.is_empty() => format!("there is {}", others.join(", ")),
            Origin::Process | Origin::AllProcesses => LIST_HINT.to_owned(),
            Origin::Trace { is_part: true } => "without --from and --to the whole trace is read".to_owned(),
            Origin::Trace { .. } => RECORD_HINT.to_owned(),
        })
    }

    pub(super) fn finish_trace(mut self, read: Result<(), Failure>) -> Result<(), Failure> {
        if read.is_err() || self.held.is_some() || self.written.is_err() {
            return self.finish(read);
        }
        let mut result = self.check_possible(true);
        self.note_absent();
        if self.samples == 0 && result.is_ok() {
            result = Err(self.nothing_found());
        }
        self.finish(result)
    }

    /// Ends the output. Fails if writing failed, if the samples ended with a failure, or if no condition of `--until`
    /// held.
    pub(super) fn finish(mut self, failed: Result<(), Failure>) -> Result<(), Failure> {
        self.note_left_out();
        let written = core::mem::replace(&mut self.written, Ok(())).and_then(|()| self.output.finish());
        let is_unwanted = written.as_ref().is_err_and(|e| e.kind() == ErrorKind::BrokenPipe);
        if !is_unwanted {
            written.map_err(|e| self.cannot_write(&e))?;
        }
        if let Some(held) = self.held {
            self.globals.note(&format!("'{held}' holds"));
            return Ok(());
        }
        if self.watches.is_empty() {
            // The reader of the pipe wants no more.
            return if is_unwanted { Ok(()) } else { failed };
        }
        let conditions: Vec<String> =
            self.watches.iter().map(|watch| format!("'{}'", watch.condition())).collect();
        let conditions = conditions.join(" or ");
        if is_unwanted {
            let message = format!("{conditions} did not hold before the reader of the output ended");
            return Err(Failure::new(Kind::Timeout, message).without_hint());
        }
        failed?;
        Err(Failure::new(Kind::Timeout, format!("{conditions} did not hold")).without_hint())
    }
}
