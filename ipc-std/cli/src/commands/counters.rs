//! `counters`: counters and metrics of processes, and of traces.
mod list;
mod live;
mod schedule;
mod show;

use core::time::Duration;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use dotnet_ipc_sans_io::http::allowed_hosts::{self, AllowedHosts, ServerAddress};
use dotnet_ipc_sans_io::syntax::durations;
use nettrace_analysis::counters::{CounterConfig, ExponentialConfig, Selection};

use self::live::Live;
use self::schedule::Schedule;
use self::show::{Origin, Show};
use crate::args::process_arg::ProcessArg;
use crate::args::socket_path;
use crate::args::time_range_args::TimeRangeArgs;
use crate::args::zone_args::ZoneArgs;
use crate::counters::condition::{self, Condition};
use crate::counters::feed::Feed;
use crate::counters::http_server;
use crate::counters::lines::{LineFormat, SampleLines};
use crate::counters::output::{Output, Prometheus, SampleStdout};
use crate::counters::prometheus::exposition::Exposition;
use crate::counters::report::Process;
use crate::counters::series_filter::SeriesFilter;
use crate::counters::table::Table;
use crate::counters::text_file::TextFile;
use crate::counters::trace_reports::read_file;
use crate::output::direct_stdout::unbuffered_stdout;
use crate::output::live_stdout::LiveStdout;
use crate::process::connection_args::ConnectionArgs;
use crate::process::process_name;
use crate::process::target::Target;
use crate::process::trace_target;
use crate::run::{Failure, Globals};
use crate::terminal::full_screen::{self, FullScreen};

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
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["csv", "json"], value_parser = allowed_hosts::parse_address)]
    serve: Option<ServerAddress>,
    /// Answer requests that name the server NAME, besides IP addresses, localhost and the name in ADDRESS; repeatable
    #[arg(long, value_name = "NAME", requires = "serve", value_parser = allowed_hosts::parse_name)]
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
    zone: ZoneArgs,
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
    Trace(&'a Path),
    Process(Target<'a>),
    AllProcesses,
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
        series.push(parsed.map_err(|e| Failure::usage(format!("{text:?}: {e}")))?);
    }
    let is_trace = matches!(subject, Subject::Trace(_));
    if !is_trace && args.process.is_given() {
        return Err(Failure::usage("--process selects one process of a trace, and a session has only one"));
    }
    if !is_trace && args.times.is_used() {
        return Err(Failure::usage("--from and --to select a part of a trace, not of a session")
            .with_hint("--duration ends the session"));
    }
    let selections =
        |series: &[SeriesFilter]| series.iter().map(|one| one.selection.clone()).collect::<Vec<_>>();
    let timeouts = args.connection.timeout.timeouts();
    if is_list {
        let Subject::Process(target) = subject else {
            return Err(Failure::usage("`counters list` requires a process ID, --name or --socket"));
        };
        if !series.iter().all(SeriesFilter::has_no_tags) {
            return Err(Failure::usage("`counters list` shows counters, which are selected without tags"));
        }
        let wire_log = args.connection.wire_log.open()?;
        let config = |selections| args.config(selections);
        let connect = || Ok((process(target), target.client(timeouts, &wire_log)?));
        list::run(config, connect, timeouts, selections(&series), globals)?;
        return wire_log.check();
    }
    let named = series.clone();
    // Without selections, a file shows all its counters, not only those of the conditions. From a process, only the
    // counters of the conditions are requested.
    if !(is_trace && series.is_empty()) {
        series.extend(args.until.iter().flat_map(Condition::series).cloned());
    }
    let selections = selections(&series);
    let show =
        |output, origin| Show::new(globals, output, args.file(), origin, &args.until).only(named, series);
    let target = match subject {
        Subject::Trace(file) => {
            if args.is_about_sessions() {
                return Err(trace_target::options_do_not_apply(file));
            }
            let origin = Origin::Trace { is_part: args.times.is_used() };
            let mut show = show(args.output(false, false, globals)?, origin);
            let read = read_file(file, &selections, &args.process, args.times.part(), |process, report| {
                show.report(process, report)
            });
            return show.finish_trace(read);
        }
        Subject::Process(target) => Some(target),
        Subject::AllProcesses => None,
    };
    let wire_log = args.connection.wire_log.open()?;
    // The feed handles signals from here on, so that a signal restores the terminal, which the output changes next.
    let mut feed = Feed::new(args.config(selections), timeouts, globals)?;
    let client = target.map(|target| target.client(timeouts, &wire_log)).transpose()?;
    let output = args.output(args.all, true, globals)?;
    let schedule = Schedule::new(args.interval(), output.pace(args.interval()), args.end());
    let origin = match target.zip(client) {
        Some((target, client)) => {
            feed.add(process(target), client)?;
            Origin::Process
        }
        None => {
            feed.follow_all(wire_log.observer());
            Origin::AllProcesses
        }
    };
    Live::new(show(output, origin), feed, schedule).run(&wire_log)
}

/// Returns the process, as far as the command line and the system describe it.
fn process(target: Target<'_>) -> Process {
    match target {
        Target::ProcessId(id) => {
            Process { id: Some(id.into()), name: process_name::system_name(id).unwrap_or_default() }
        }
        Target::Name(name) => Process { id: None, name: name.to_owned() },
        Target::Socket(_) => Process { id: None, name: String::new() },
    }
}

impl Args {
    /// Returns the subject, and the operands that name counters.
    fn subject<'a>(&'a self, operands: &'a [String]) -> Result<(Subject<'a>, &'a [String]), Failure> {
        if self.all {
            return Ok((Subject::AllProcesses, operands));
        }
        if self.name.is_some() || self.socket.is_some() {
            let target = Target::new(self.socket.as_deref(), self.name.as_deref(), 0);
            return Ok((Subject::Process(target), operands));
        }
        let Some((first, rest)) = operands.split_first() else {
            return Err(Failure::usage("a process ID, a file, --name, --socket or --all is required"));
        };
        let process_id = if self.file { None } else { trace_target::process_id(first)? };
        let subject = match process_id {
            Some(process_id) => Subject::Process(Target::ProcessId(process_id)),
            None => Subject::Trace(Path::new(first)),
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
            return Err(Failure::usage(message));
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
                Output::SampleLines(SampleLines::new(style, stdout()?, self.zone.zone()?, has_all))
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
