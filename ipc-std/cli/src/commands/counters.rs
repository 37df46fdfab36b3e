//! `counters`: counters and metrics of processes, and of traces.
use core::ops::ControlFlow;
use core::time::Duration;
use std::collections::BTreeSet;
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use dotnet_ipc_syntax::durations;
use dotnet_ipc_syntax::http_hosts::{self, AllowedHosts, ServerAddress};
use nettrace_analysis::counters::{
    CounterConfig, ExponentialConfig, Measurement, OwnedSample, Selection, System,
};

use crate::args::process_arg::ProcessArg;
use crate::args::socket_path;
use crate::args::time_range_args::TimeRangeArgs;
use crate::counters::condition::{self, Condition, Watch};
use crate::counters::feed::{self, Feed, Next, OwnedInstrument, Process, Report};
use crate::counters::http_server;
use crate::counters::lines::{LineFormat, SampleLines, series_name};
use crate::counters::output::{Output, Prometheus, SampleStdout};
use crate::counters::problems::Problems;
use crate::counters::prometheus::Exposition;
use crate::counters::series_filter::SeriesFilter;
use crate::counters::table::Table;
use crate::counters::text_file::TextFile;
use crate::output::direct_stdout::{cannot_write, unbuffered_stdout};
use crate::output::failure::{Failure, Kind};
use crate::output::full_screen::{self, FullScreen};
use crate::output::globals::Globals;
use crate::output::live_stdout::LiveStdout;
use crate::output::output_file::already_exists;
use crate::output::printable::printable_name;
use crate::process::connection_args::ConnectionArgs;
use crate::process::process_name;
use crate::process::target::Target;
use crate::process::trace_target;
use crate::process::wire_log::WireLog;

mod list;
mod schedule;

use schedule::{Schedule, is_due};

/// Show counters and metrics of processes as they change, or of a trace
#[derive(Debug, clap::Args)]
#[command(mut_arg("timeout", |arg| arg.help("Give up after DURATION when starting a session, and again when ending it [default: 10s, 2m]")))]
#[command(after_help = include_str!("counters.txt"))]
pub(crate) struct Args {
    /// A process ID or a trace, or `list` and a process ID; then counters
    #[arg(value_name = "PID|FILE|COUNTER")]
    operands: Vec<String>,
    /// Name of the process, or its unique beginning, instead of a process ID
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Path of the runtime's diagnostic socket, instead of a process ID
    #[arg(long, value_name = "PATH", conflicts_with = "name", value_parser = socket_path::parser())]
    socket: Option<PathBuf>,
    /// All processes, also those that start later
    #[arg(long, conflicts_with_all = ["name", "socket"])]
    all: bool,
    /// Read PID|FILE as a file even if it is a number
    #[arg(long, conflicts_with_all = ["name", "socket", "all"])]
    file: bool,
    /// Time between two samples [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    interval: Option<Duration>,
    /// End after DURATION
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    duration: Option<Duration>,
    /// End when this holds; repeatable, the first one that holds counts
    #[arg(long, value_name = "CONDITION", value_parser = condition::parse)]
    until: Vec<Condition>,
    /// Write CSV with the columns of dotnet-counters
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write the text format of Prometheus, or OTLP as lines of JSON
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = ["csv", "json"])]
    format: Option<ExportFormat>,
    /// Write the text format of Prometheus to FILE after each interval, replacing it in one step; - is standard output
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["csv", "json", "serve"])]
    output: Option<PathBuf>,
    /// Serve the text format of Prometheus at http://ADDRESS/metrics, as 127.0.0.1:9184
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["csv", "json"], value_parser = http_hosts::parse_address)]
    serve: Option<ServerAddress>,
    /// Answer requests that name the server NAME, besides IP addresses, localhost and the name in ADDRESS; repeatable
    #[arg(long, value_name = "NAME", requires = "serve", value_parser = http_hosts::parse_name)]
    allow_host: Vec<String>,
    /// Number of series of meters that a process reports at most [default: 1000]
    #[arg(long, value_name = "N")]
    max_time_series: Option<u32>,
    /// Number of series of histograms that a process reports at most [default: 10]
    #[arg(long, value_name = "N")]
    max_histograms: Option<u32>,
    /// Request histograms with buckets, since .NET 10; another session of meters then cannot run
    #[arg(long)]
    exponential_histograms: bool,
    #[command(flatten)]
    process: ProcessArg,
    #[command(flatten)]
    times: TimeRangeArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// A format for other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExportFormat {
    Prometheus,
    OtlpJson,
}

/// What the operands of the command name.
#[derive(Debug)]
enum Subject<'a> {
    File(&'a Path),
    Process(Target<'a>),
    All,
}

/// The counters of a process that are shown if the user names none.
const DEFAULT: &str = "System.Runtime";

/// The first operand of `counters list PID`.
const LIST: &str = "list";

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let is_list = args.operands.first().is_some_and(|first| first == LIST);
    let operands = args.operands.get(usize::from(is_list)..).unwrap_or_default();
    let (subject, counters) = args.subject(operands)?;
    let mut series = Vec::new();
    for text in counters {
        let parsed = text.parse::<SeriesFilter>();
        series.push(parsed.map_err(|e| Failure::new(Kind::Usage, format!("{text:?}: {e}")))?);
    }
    let is_file = matches!(subject, Subject::File(_));
    if !is_file && args.process.is_given() {
        let message = "--process selects one process of a trace, and a session has only one";
        return Err(Failure::new(Kind::Usage, message));
    }
    if !is_file && args.times.is_used() {
        let message = "--from and --to select a part of a trace, not of a session";
        return Err(Failure::new(Kind::Usage, message).with_hint("--duration ends the session"));
    }
    let selections =
        |series: &[SeriesFilter]| series.iter().map(|one| one.selection.clone()).collect::<Vec<_>>();
    if is_list {
        let Subject::Process(target) = subject else {
            return Err(Failure::new(
                Kind::Usage,
                "`counters list` requires a process ID, --name or --socket",
            ));
        };
        if !series.iter().all(SeriesFilter::has_no_tags) {
            return Err(Failure::new(
                Kind::Usage,
                "`counters list` shows counters, which are selected without tags",
            ));
        }
        let (wire_log, timeouts) = (args.connection.wire_log.open()?, args.connection.timeout.timeouts());
        let config = |selections| args.config(selections);
        let connect = || Ok((args.process(target), target.client(timeouts, &wire_log)?));
        list::run(config, connect, timeouts, selections(&series), globals)?;
        return wire_log.check();
    }
    let named = series.clone();
    // Without selections, a file shows all its counters, not only those of the conditions. From a process, only the
    // counters of the conditions are requested.
    if !(is_file && series.is_empty()) {
        series.extend(args.until.iter().flat_map(Condition::series).cloned());
    }
    let selections = selections(&series);
    match subject {
        Subject::File(file) => {
            if args.is_about_sessions() {
                return Err(trace_target::options_do_not_apply(file));
            }
            let show = Show::new(args, globals, args.output(false, false, globals)?);
            let mut show = show.only(named, series).of_file();
            let read =
                feed::read_file(file, &selections, &args.process, args.times.part(), |process, report| {
                    show.report(process, report)
                });
            show.finish_file(read)
        }
        Subject::Process(target) => {
            let wire_log = args.connection.wire_log.open()?;
            let config = args.config(selections);
            // The feed handles signals from here on, so that a signal restores the terminal, which the output changes
            // next.
            let mut feed = Feed::new(config, args.connection.timeout.timeouts(), globals)?;
            let client = target.client(args.connection.timeout.timeouts(), &wire_log)?;
            let show = Show::new(args, globals, args.output(false, true, globals)?).only(named, series);
            feed.add(args.process(target), client)?;
            Live::new(show, feed).run(&wire_log)
        }
        Subject::All => {
            let wire_log = args.connection.wire_log.open()?;
            let mut feed = Feed::new(args.config(selections), args.connection.timeout.timeouts(), globals)?;
            let show = Show::new(args, globals, args.output(true, true, globals)?).only(named, series);
            feed.follow_all(wire_log.observer());
            Live::new(show, feed).run(&wire_log)
        }
    }
}

impl Args {
    /// Returns the subject, and the operands that name counters.
    fn subject<'a>(&'a self, operands: &'a [String]) -> Result<(Subject<'a>, &'a [String]), Failure> {
        if self.all {
            return Ok((Subject::All, operands));
        }
        if self.name.is_some() || self.socket.is_some() {
            let target = Target::new(self.socket.as_deref(), self.name.as_deref(), 0);
            return Ok((Subject::Process(target), operands));
        }
        let Some((first, rest)) = operands.split_first() else {
            let message = "a process ID, a file, --name, --socket or --all is required";
            return Err(Failure::new(Kind::Usage, message));
        };
        let process_id = if self.file { None } else { trace_target::process_id(first)? };
        let subject = match process_id {
            Some(process_id) => Subject::Process(Target::ProcessId(process_id)),
            None => Subject::File(Path::new(first)),
        };
        Ok((subject, rest))
    }

    /// Returns where the samples go.
    fn output(&self, has_all: bool, is_live: bool, globals: &Globals) -> Result<Output, Failure> {
        let stdout = || -> Result<SampleStdout, Failure> {
            Ok(BufWriter::new(if is_live {
                Box::new(LiveStdout::begin()?)
            } else {
                Box::new(unbuffered_stdout()?)
            }))
        };
        let is_prometheus = self.format == Some(ExportFormat::Prometheus);
        if !is_prometheus && (self.output.is_some() || (self.serve.is_some() && self.format.is_some())) {
            let message = "--output requires --format prometheus, and --serve serves no other format";
            return Err(Failure::new(Kind::Usage, message));
        }
        let exposition = || Arc::new(Mutex::new(Exposition::default()));
        if let Some(address) = &self.serve {
            let exposition = exposition();
            let hosts = AllowedHosts::new(self.allow_host.iter().chain([&address.host]).cloned());
            let address = http_server::serve(address, hosts, Arc::clone(&exposition))?;
            globals.note(&format!("serving http://{address}/metrics"));
            return Ok(Output::Prometheus(exposition, Prometheus::Served));
        }
        Ok(match (self.format, self.file()) {
            (Some(ExportFormat::Prometheus), Some(path)) => {
                let file = TextFile::new(path, &self.connection.wire_log.overwrite, is_live)?;
                Output::Prometheus(exposition(), Prometheus::File(file))
            }
            (Some(ExportFormat::Prometheus), None) => {
                Output::Prometheus(exposition(), Prometheus::Stdout(stdout()?))
            }
            (Some(ExportFormat::OtlpJson), _) => Output::Otlp(Box::default(), stdout()?),
            (None, _) => {
                let style = match (self.csv, globals.json) {
                    (true, _) => LineFormat::Csv,
                    (_, true) => LineFormat::Json,
                    _ => LineFormat::Text,
                };
                if is_live && style == LineFormat::Text && full_screen::is_available() {
                    let (sender, keys) = mpsc::channel();
                    let take = move |key: Option<_>| key.is_none_or(|key| sender.send(key).is_ok());
                    return Ok(Output::Table(Box::new(Table::new(has_all)), FullScreen::enter(take)?, keys));
                }
                Output::SampleLines(SampleLines::new(style, stdout()?, has_all))
            }
        })
    }

    /// Returns whether there is an option that only applies to a process.
    fn is_about_sessions(&self) -> bool {
        let has_times =
            self.interval.is_some() || self.duration.is_some() || self.connection.timeout.given().is_some();
        let has_limits = self.max_time_series.is_some() || self.max_histograms.is_some();
        has_times || has_limits || self.exponential_histograms || self.connection.wire_log.is_wanted()
    }

    fn interval(&self) -> Duration {
        self.interval.unwrap_or_else(|| CounterConfig::default().interval)
    }

    /// Returns the path of `--output`, unless it is `-`, which means standard output.
    fn file(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| path.as_os_str() != "-")
    }

    /// Returns when to end. Prometheus text on standard output is written once, and is complete after two intervals.
    fn end(&self) -> Option<Duration> {
        const INTERVALS: u32 = 2;
        let is_once =
            self.format == Some(ExportFormat::Prometheus) && self.file().is_none() && self.serve.is_none();
        let once = || self.interval().saturating_mul(INTERVALS).saturating_add(Duration::from_millis(500));
        self.duration.or_else(|| (is_once && self.until.is_empty()).then(once))
    }

    fn process(&self, target: Target<'_>) -> Process {
        match target {
            Target::ProcessId(id) => {
                Process { id: Some(id.into()), name: process_name::system_name(id).unwrap_or_default() }
            }
            Target::Name(name) => Process { id: None, name: name.to_owned() },
            Target::Socket(_) => Process { id: None, name: String::new() },
        }
    }

    fn config(&self, mut selections: Vec<Selection>) -> CounterConfig {
        if selections.is_empty() {
            selections.extend(DEFAULT.parse());
        }
        let defaults = CounterConfig::default();
        CounterConfig {
            selections,
            interval: self.interval(),
            max_time_series: self.max_time_series.unwrap_or(defaults.max_time_series),
            max_histograms: self.max_histograms.unwrap_or(defaults.max_histograms),
            exponential_histograms: self.exponential_histograms.then(ExponentialConfig::default),
            ..defaults
        }
    }
}

/// Shows samples until the end.
struct Show<'a> {
    args: &'a Args,
    globals: &'a Globals,
    output: Output,
    watches: Vec<Watch>,
    problems: Problems,
    /// The series that are shown: all if empty.
    only: Vec<SeriesFilter>,
    /// The series that the user named, and no sample and no instrument matches so far.
    missing: Vec<SeriesFilter>,
    /// The series that the user named, and whose instruments exist, but have no sample so far.
    silent: Vec<SeriesFilter>,
    /// Some of the series of a trace that are not shown.
    others: BTreeSet<String>,
    /// Whether it was noted what knows the numbers of requests and of connections.
    notes_levels: (bool, bool),
    /// Whether the samples come from a trace.
    is_file: bool,
    /// Whether there can be several processes.
    has_many: bool,
    /// Whether an instrument has begun.
    has_instruments: bool,
    samples: u64,
    /// The condition of `--until` that holds, and so ends the command.
    held: Option<String>,
    /// The result of the last write. An error ends the command.
    written: Result<(), io::Error>,
}

/// The maximum number of series that a message names.
const MAX_OTHERS: usize = 5;
const LIST_HINT: &str = "`dotnet-ipc counters list PID` shows the counters of a process";
const RECORD_HINT: &str = "record them with `dotnet-ipc counters PID`, or a trace with --provider 'System.Runtime:0:4:EventCounterIntervalSec=1'";

impl<'a> Show<'a> {
    fn new(args: &'a Args, globals: &'a Globals, output: Output) -> Self {
        Self {
            args,
            globals,
            output,
            watches: args.until.iter().cloned().map(Watch::new).collect(),
            problems: Problems::default(),
            only: Vec::new(),
            missing: Vec::new(),
            silent: Vec::new(),
            others: BTreeSet::new(),
            notes_levels: (false, false),
            is_file: false,
            has_many: args.all,
            has_instruments: false,
            samples: 0,
            held: None,
            written: Ok(()),
        }
    }

    /// Sets the series that the user named, and those that are shown.
    fn only(self, named: Vec<SeriesFilter>, shown: Vec<SeriesFilter>) -> Self {
        // Without tags, only the selected series arrive.
        let has_tags = !named.iter().all(SeriesFilter::has_no_tags);
        Self { missing: named, only: if has_tags { shown } else { Vec::new() }, ..self }
    }

    fn of_file(self) -> Self {
        Self { is_file: true, ..self }
    }

    /// Shows a report. Breaks if no more reports are wanted.
    fn report(&mut self, process: &Process, report: Report) -> ControlFlow<()> {
        match report {
            Report::SeveralProcesses => {
                self.has_many = true;
                self.output.show_processes();
                ControlFlow::Continue(())
            }
            Report::Sample(sample) if self.is_shown(&sample) => self.sample(process, &sample),
            Report::Sample(sample) | Report::Unselected(sample) => {
                self.other(&sample);
                ControlFlow::Continue(())
            }
            Report::Begin(instrument) => {
                let OwnedInstrument { meter, name, has_long_details, .. } = &*instrument;
                if *has_long_details {
                    let name = format!("{}/{}", printable_name(meter), printable_name(name));
                    let why =
                        "its tags and those of its meter are left out, because they have more than 512 bytes";
                    self.problem(process, format!("{name}: {why}"));
                }
                self.has_instruments = true;
                self.watches.iter_mut().for_each(|watch| watch.exists(meter, name));
                self.missing.retain(|one| {
                    let has_it = one.selection.contains(System::Meter, (&**meter).into(), (&**name).into());
                    let is_found = has_it && one.has_no_tags();
                    if is_found {
                        self.silent.push(one.clone());
                    }
                    !is_found
                });
                self.output.instrument(*instrument);
                ControlFlow::Continue(())
            }
            Report::End(prefix) => {
                self.output.ended(process, Some(&prefix));
                ControlFlow::Continue(())
            }
            Report::Problem(problem) => {
                self.problem(process, problem);
                ControlFlow::Continue(())
            }
            Report::Published(_) | Report::EnumerationComplete | Report::Ended(_) => {
                ControlFlow::Continue(())
            }
        }
    }

    fn is_shown(&self, sample: &OwnedSample) -> bool {
        self.only.is_empty() || self.only.iter().any(|one| one.contains(sample))
    }

    /// Notes a series that is not shown, for the message if no other one comes.
    fn other(&mut self, sample: &OwnedSample) {
        if self.samples == 0 && self.others.len() < MAX_OTHERS {
            self.others.insert(series_name(sample, &[]));
        }
    }

    fn sample(&mut self, process: &Process, sample: &OwnedSample) -> ControlFlow<()> {
        self.samples = self.samples.saturating_add(1);
        for named in [&mut self.missing, &mut self.silent] {
            if !named.is_empty() {
                named.retain(|one| !one.contains(sample));
            }
        }
        if let Measurement::UpDownCounter { since_start: true, .. } = sample.measurement {
            self.note_level(&sample.name);
        }
        if let Err(e) = self.output.sample(process, sample) {
            self.written = Err(e);
            return ControlFlow::Break(());
        }
        for watch in &mut self.watches {
            if watch.holds(process, sample) {
                self.held = Some(watch.condition().to_string());
                return ControlFlow::Break(());
            }
        }
        if self.watches.iter_mut().any(Watch::take_limit_note) {
            self.note(
                "--until watches the first 10,000 series of a counter in a process, and 100,000 of all",
            );
        }
        ControlFlow::Continue(())
    }

    fn problem(&mut self, process: &Process, problem: String) {
        if self.problems.is_new(process, &problem) {
            self.note(&format!("{}{problem}", self.prefix(process)));
        }
    }

    /// Notes what the output does not have because of its limits.
    fn note_left_out(&mut self) {
        if let Some(left_out) = self.output.left_out() {
            self.note(&left_out);
        }
    }

    fn note(&mut self, note: &str) {
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
    fn prefix(&self, process: &Process) -> String {
        match process.id {
            Some(id) if self.has_many && process.name.is_empty() => format!("process {id}: "),
            Some(id) if self.has_many => format!("process {id} {}: ", printable_name(&process.name)),
            _ => String::new(),
        }
    }

    /// Notes the counters that no process reports, after the first intervals.
    fn note_missing(&mut self) {
        // A process without any sample may be suspended, which only the end of its session shows.
        if self.samples == 0 {
            return self.note("no sample so far");
        }
        for series in core::mem::take(&mut self.missing) {
            self.note(&format!("no process reports {series}"));
        }
    }

    /// Notes at the end which of the counters that the user named were not shown, if others were.
    fn note_absent(&mut self) {
        if self.samples == 0 || self.held.is_some() {
            return;
        }
        for series in core::mem::take(&mut self.missing) {
            self.globals.note(&self.missing_text(series));
        }
        for series in core::mem::take(&mut self.silent) {
            self.globals.note(&format!("{series} exists, and nothing was measured"));
        }
    }

    fn cannot_write(&self, e: &io::Error) -> Failure {
        match self.args.file() {
            Some(path) if e.kind() == ErrorKind::AlreadyExists => already_exists(path),
            Some(path) => Failure::io(format_args!("cannot write {}", path.display()), e),
            None => cannot_write(e),
        }
    }

    /// Fails if a condition can never hold: at any time if its counters lack the number that it compares, and after the
    /// first intervals if no process reports them.
    fn check_possible(&self, is_after_first_intervals: bool) -> Result<(), Failure> {
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
        let owner = if self.is_file { "the trace has no counter" } else { "no process reports" };
        format!("{owner} {series}")
    }

    /// Returns the failure of a command that has shown nothing.
    fn nothing_found(&self) -> Failure {
        let names: Vec<String> = self.missing.iter().map(ToString::to_string).collect();
        let others: Vec<&str> = self.others.iter().map(String::as_str).collect();
        let others = others.join(", ");
        let message = match (names.is_empty(), self.is_file) {
            (false, _) => self.missing_text(names.join(", ")),
            (true, true) if self.args.times.is_used() => "this part of the trace has no samples".to_owned(),
            // An instrument exists before its first measurement.
            (true, _) if self.has_instruments => {
                "nothing was measured: the instruments have no samples".to_owned()
            }
            (true, true) => "the trace has no counters".to_owned(),
            (true, false) => "no sample arrived".to_owned(),
        };
        let failure = Failure::new(Kind::NothingFound, message);
        match (others.is_empty(), self.is_file) {
            (false, _) => failure.with_hint(format!("there is {others}")),
            (true, false) => failure.with_hint(LIST_HINT),
            (true, true) if self.args.times.is_used() => {
                failure.with_hint("without --from and --to the whole trace is read")
            }
            (true, true) => failure.with_hint(RECORD_HINT),
        }
    }

    fn finish_file(mut self, read: Result<(), Failure>) -> Result<(), Failure> {
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
    fn finish(mut self, failed: Result<(), Failure>) -> Result<(), Failure> {
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

/// The loop that shows the samples of processes until the end.
struct Live<'a> {
    show: Show<'a>,
    feed: Feed,
    schedule: Schedule,
    /// How the session of the only process ended.
    ended: Result<(), Failure>,
    /// The failure if a condition can never hold.
    possible: Result<(), Failure>,
    /// Whether a key ended the command.
    is_quit: bool,
}

impl<'a> Live<'a> {
    fn new(show: Show<'a>, feed: Feed) -> Self {
        let args = show.args;
        let mut schedule = Schedule::new(args.interval(), show.output.pace(args.interval()), args.end());
        if args.all {
            // With `--all` no counter is reported as missing: a process that has it can still start.
            schedule.first = None;
        }
        Self { show, feed, schedule, ended: Ok(()), possible: Ok(()), is_quit: false }
    }

    fn run(mut self, wire_log: &WireLog) -> Result<(), Failure> {
        while self.step()?.is_continue() {}
        // Sessions can take long to stop, so the usual screen returns first. It also shows the messages that follow.
        full_screen::restore();
        let stopped = self.feed.end();
        let checked = self.feed.check();
        let Self { mut show, ended, possible, is_quit, .. } = self;
        if let (Some(_), Err(failure)) = (&show.held, &checked) {
            show.globals.note(failure.message());
        }
        if possible.is_ok() {
            show.note_absent();
        }
        let mut result = ended;
        if show.samples == 0 && result.is_ok() {
            // The end of the session states why there were no samples, for example that the runtime is suspended.
            result = stopped;
        }
        result = result.and(possible).and(checked);
        let is_empty = show.samples == 0 && show.written.is_ok() && !is_quit;
        // With `--all` there may be no process.
        let is_named = !show.args.all || !show.missing.is_empty();
        if is_empty && is_named && show.watches.is_empty() && result.is_ok() {
            result = Err(show.nothing_found());
        }
        show.finish(result)?;
        wire_log.check()
    }

    /// Takes the next report, or acts at a time of the schedule. Breaks at the end.
    fn step(&mut self) -> Result<ControlFlow<()>, Failure> {
        let flow = match self.feed.next(self.schedule.next())? {
            Next::Report(process, Report::Ended(ended)) => {
                self.end_of_process(&process, ended);
                ControlFlow::Continue(())
            }
            Next::Report(process, report) => {
                let flow = self.show.report(&process, report);
                if self.show.samples > 0 {
                    self.schedule.end_waiting();
                }
                flow
            }
            Next::Deadline => self.deadline(),
            Next::Finished => ControlFlow::Break(()),
        };
        if flow.is_break() {
            return Ok(flow);
        }
        if !self.show.watches.is_empty() && !self.show.args.all {
            self.possible = self.show.check_possible(false);
            if self.possible.is_err() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let flushed = self.show.output.flush();
        Ok(self.written(flushed))
    }

    fn end_of_process(&mut self, process: &Process, ended: Result<(), Failure>) {
        if ended.is_err() {
            self.show.output.ended(process, None);
            self.show.watches.iter_mut().for_each(|watch| watch.remove(process));
        }
        match ended {
            Err(failure) if self.show.args.all => {
                let prefix = self.show.prefix(process);
                self.show.note(&format!("{prefix}{failure}"));
            }
            ended => self.ended = ended,
        }
    }

    fn deadline(&mut self) -> ControlFlow<()> {
        let now = Instant::now();
        if is_due(&mut self.schedule.end, now) {
            // The first samples come after one interval.
            match self.schedule.wait_for_samples(now).filter(|_| self.show.samples == 0) {
                Some(end) => self.schedule.end = Some(end),
                None => self.feed.stop(),
            }
        }
        if is_due(&mut self.schedule.first, now) {
            self.possible = self.show.check_possible(true);
            if self.possible.is_err() {
                return ControlFlow::Break(());
            }
            self.show.note_missing();
        }
        if is_due(&mut self.schedule.tick, now) {
            self.schedule.tick = now.checked_add(self.schedule.pace);
            self.show.note_left_out();
            self.is_quit = self.show.output.keys();
            if self.is_quit {
                return ControlFlow::Break(());
            }
            let written = self.show.output.tick();
            return self.written(written);
        }
        ControlFlow::Continue(())
    }

    /// Breaks if the output failed.
    fn written(&mut self, written: io::Result<()>) -> ControlFlow<()> {
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => {
                self.show.written = Err(e);
                ControlFlow::Break(())
            }
        }
    }
}
