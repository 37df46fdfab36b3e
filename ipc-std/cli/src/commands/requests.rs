//! `requests`: the HTTP requests that a program receives and sends.
mod json;

use std::io::{self, Write};

use indicatif::HumanCount;
use nettrace_analysis::Durations;
use nettrace_analysis::requests::{
    FoldedPath, OwnMethod, RequestGroup, RequestSummary, Requests, RouteDurations,
};
use serde::Serialize;

use self::json::{FinishedRow, InFlightRow, OutgoingRow, RouteRow};
use crate::args::frame_args::NameArgs;
use crate::args::zone_args::ZoneArgs;
use crate::output::dates::{DateField, Dates};
use crate::output::rows::milliseconds;
use crate::output::stdout::{json_to_stdout, show_next, to_stdout};
use crate::output::tables::write_more;
use crate::process::trace_target::{TraceTarget, TraceTargetArgs};
use crate::recording::analysis_input::{AnalysisArgs, InputRead, Needs};
use crate::run::{Failure, Globals, Kind};
use crate::text::columns::{cut_middle, terminal_width};
use crate::text::function_name::FunctionName;
use crate::text::printable::printable_name;

/// Show the HTTP requests of a process or of a trace: in flight, finished and outgoing
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("requests.txt"))]
pub(crate) struct Args {
    #[command(flatten)]
    target: TraceTargetArgs,
    /// Show N lines of each table
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Do not record in which methods requests wait
    #[arg(long)]
    no_waits: bool,
    #[command(flatten)]
    names: NameArgs,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    analysis: AnalysisArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    args.analysis.part.check_no_threads("a request can move from thread to thread")?;
    let zone = args.zone.zone()?;
    let input = args.analysis.input(&args.target, globals)?;
    let requests = Requests::default().of_part(input.part.part()).with_own_code(args.names.own_code());
    let (summary, InputRead { lost, start, result: read, .. }) = input.analyse(
        Needs::of_requests(!args.no_waits),
        requests,
        &args.names.symbols,
        Requests::names_mut,
        globals,
    )?;
    let report = RequestReport { summary, top: args.top, lost, dates: Dates::new(zone, start) };
    if globals.json {
        json_to_stdout(&report.to_json())?;
    } else {
        to_stdout(|out| report.write(out))?;
    }
    report.dates.report(globals);
    report.remarks(input.target).iter().for_each(|remark| globals.note(remark));
    read?;
    report.check(input.target)?;
    // A request in flight that waits in no asynchronous method runs or blocks a thread.
    if input.is_live() && report.in_flight().any(|group| group.methods.is_empty()) {
        show_next(&format!("dotnet-ipc stack {}", input.target.argument()), globals)?;
    }
    Ok(())
}

/// The report as JSON.
#[derive(Serialize)]
struct RequestsRow<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    start: DateField,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: DateField,
    in_flight: Vec<InFlightRow<'r>>,
    finished: Vec<FinishedRow<'r>>,
    outgoing: Vec<OutgoingRow<'r>>,
    routes: Vec<RouteRow<'r>>,
    totals: TotalsRow,
    began_before: BeganBeforeRow,
    without_activity: u64,
    dropped: u64,
    dropped_methods: u64,
    lost: u64,
}

#[derive(Serialize)]
struct TotalsRow {
    in_flight: u64,
    finished: u64,
    outgoing_in_flight: u64,
    outgoing_finished: u64,
}

#[derive(Serialize)]
struct BeganBeforeRow {
    incoming: u64,
    outgoing: u64,
}

struct RequestReport {
    summary: RequestSummary,
    top: usize,
    /// The number of events that the runtime dropped.
    lost: u64,
    dates: Dates,
}

impl RequestReport {
    fn is_empty(&self) -> bool {
        self.summary.groups.is_empty() && self.summary.routes.is_empty()
    }

    /// Returns what is not known, in sentences.
    fn remarks(&self, target: TraceTarget<'_>) -> Vec<String> {
        let RequestSummary {
            ends_without_start: [incoming, outgoing],
            without_activity,
            dropped,
            dropped_methods,
            ..
        } = self.summary;
        let mut remarks = Vec::new();
        if incoming > 0 || outgoing > 0 {
            remarks.push(format!(
                "requests that began before the recording and ended in it: {incoming} received, {outgoing} sent; others \
                 may still be in flight, and are not known"
            ));
        }
        if without_activity > 0 && !self.is_empty() {
            remarks.push(format!(
                "events of requests without an activity id: {without_activity}; {WHY_NO_ACTIVITY}"
            ));
        }
        if self.lost > 0 && self.summary.groups.iter().any(|group| group.in_flight > 0) {
            remarks.push("a request whose end is among the lost events seems to be in flight".to_owned());
        }
        if dropped > 0 {
            remarks.push(format!(
                "requests beyond the limits of the analysis, which are not counted: {dropped}"
            ));
        }
        if dropped_methods > 0 {
            remarks.push("methods can be missing: there was no room for all stacks".to_owned());
        }
        if self.is_empty() && without_activity == 0 && incoming == 0 && outgoing == 0 {
            remarks.push(match target {
                TraceTarget::Process(_) => format!(
                    "{target} began to receive or send no HTTP request, and requests from before the recording are not \
                     known; record for longer with --duration; a program that was compiled ahead of time reports \
                     none, unless it was built with EventSourceSupport"
                ),
                TraceTarget::File(_) => format!(
                    "{target} has no HTTP request that began in it, and earlier ones are not known; `dotnet-ipc \
                     requests --help` has the providers that record requests"
                ),
            });
        }
        remarks
    }

    /// Fails if there are events of requests, but none of them can be connected.
    fn check(&self, target: TraceTarget<'_>) -> Result<(), Failure> {
        if self.is_empty() && self.summary.without_activity > 0 {
            let what = format!("{target}: the events of requests have no activity ids");
            return Err(Failure::new(Kind::NothingFound, what).with_hint(WHY_NO_ACTIVITY));
        }
        Ok(())
    }

    fn in_flight(&self) -> impl Iterator<Item = &RequestGroup> {
        self.summary.incoming().filter(|group| group.in_flight > 0)
    }

    /// Returns the kinds of incoming requests with finished ones, the most frequent first.
    fn finished(&self) -> Vec<&RequestGroup> {
        let mut finished: Vec<_> =
            self.summary.incoming().filter(|group| group.durations.count() > 0).collect();
        finished.sort_by_key(|group| core::cmp::Reverse(group.durations.count()));
        finished
    }

    fn to_json(&self) -> RequestsRow<'_> {
        let [incoming, outgoing] = self.summary.ends_without_start;
        let (start, end) = self.summary.times;
        RequestsRow {
            start: self.dates.field(Some(start)),
            end: self.dates.field(Some(end)),
            in_flight: self
                .in_flight()
                .take(self.top)
                .map(|group| json::in_flight(group, self.oldest(group)))
                .collect(),
            finished: self.finished().into_iter().take(self.top).map(json::finished).collect(),
            outgoing: self
                .summary
                .outgoing()
                .take(self.top)
                .map(|group| json::sent(group, self.oldest(group)))
                .collect(),
            routes: self.summary.routes.iter().take(self.top).map(json::route).collect(),
            totals: TotalsRow {
                in_flight: in_flight_of(self.summary.incoming()),
                finished: finished_of(self.summary.incoming()),
                outgoing_in_flight: in_flight_of(self.summary.outgoing()),
                outgoing_finished: finished_of(self.summary.outgoing()),
            },
            began_before: BeganBeforeRow { incoming, outgoing },
            without_activity: self.summary.without_activity,
            dropped: self.summary.dropped,
            dropped_methods: self.summary.dropped_methods,
            lost: self.lost,
        }
    }

    /// Returns the date at which the oldest request in flight began, if dates are wanted.
    fn oldest(&self, group: &RequestGroup) -> DateField {
        let start = group.oldest.map(|age| self.summary.times.1.saturating_sub_unsigned(age));
        self.dates.field(start)
    }

    /// Returns the name of a kind of requests, with its process if the trace has several.
    fn named(&self, group: &RequestGroup, name: &str) -> String {
        let are_several = self.summary.groups.iter().any(|other| other.process_id != group.process_id);
        match group.process_id.filter(|_| are_several) {
            Some(id) => format!("[{id}] {name}"),
            None => name.to_owned(),
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let width = terminal_width().unwrap_or(usize::MAX);
        let counts = |groups: &mut dyn Iterator<Item = &RequestGroup>| {
            let groups: Vec<_> = groups.collect();
            let in_flight = in_flight_of(groups.iter().copied());
            let finished = finished_of(groups.iter().copied());
            (!groups.is_empty()).then_some((HumanCount(in_flight), HumanCount(finished)))
        };
        let incoming = counts(&mut self.summary.incoming())
            .map(|(in_flight, finished)| format!("{in_flight} requests in flight, {finished} finished"));
        let outgoing = counts(&mut self.summary.outgoing())
            .map(|(in_flight, finished)| format!("outgoing: {in_flight} in flight, {finished} finished"));
        let parts: Vec<_> = incoming.into_iter().chain(outgoing).collect();
        if !parts.is_empty() {
            writeln!(out, "{}", parts.join("; "))?;
        }
        if let Some((start, end)) =
            self.dates.of(self.summary.times.0).zip(self.dates.of(self.summary.times.1))
        {
            writeln!(out, "from {start} to {end}")?;
        }
        self.write_in_flight(width, out)?;
        self.write_finished(width, out)?;
        self.write_routes(width, out)?;
        self.write_outgoing(width, out)
    }

    fn write_in_flight(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        const INDENT: usize = 22;
        let groups: Vec<_> = self.in_flight().collect();
        if groups.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{:>9} {:>10}  IN FLIGHT", "REQUESTS", "OLDEST ms")?;
        for group in groups.iter().take(self.top) {
            let name = self.named(group, &incoming_name(group));
            let (name, oldest) = (cut_middle(&name, width.saturating_sub(INDENT)), group.oldest);
            writeln!(out, "{:>9} {:>10}  {name}", group.in_flight, whole(oldest.unwrap_or_default()))?;
            if let Some(start) = self.oldest(group).flatten() {
                writeln!(out, "{:INDENT$}the oldest began at {start}", "")?;
            }
            write_methods(["waits", "in"], &group.methods, INDENT, width, out)?;
        }
        write_more(groups.len(), self.top, "", out)
    }

    fn write_finished(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        const INDENT: usize = 54;
        let groups = self.finished();
        if groups.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{:>9} {PERCENTILES} {:>8} {:>6}  FINISHED", "REQUESTS", "MAX ms", "FAILED")?;
        for group in groups.iter().take(self.top) {
            let RequestGroup { durations, failed, .. } = group;
            let name = self.named(group, &incoming_name(group));
            let name = cut_middle(&name, width.saturating_sub(INDENT));
            writeln!(out, "{:>9} {} {failed:>6}  {name}", durations.count(), times(durations, true))?;
        }
        write_more(groups.len(), self.top, "", out)
    }

    fn write_routes(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        const INDENT: usize = 38;
        let routes = &self.summary.routes;
        if routes.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{:>9} {PERCENTILES}  ROUTE, by http.server.request.duration", "REQUESTS")?;
        for RouteDurations { method, route, durations, .. } in routes.iter().take(self.top) {
            let [method, route] = [method.as_str(), route.as_deref().unwrap_or("(none)")].map(printable_name);
            let name = cut_middle(&format!("{method} {route}"), width.saturating_sub(INDENT));
            writeln!(out, "{:>9} {}  {name}", durations.count(), times(durations, false))?;
        }
        write_more(routes.len(), self.top, "", out)
    }

    fn write_outgoing(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        const INDENT: usize = 12;
        let groups: Vec<_> = self.summary.outgoing().collect();
        if groups.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\n{:>9} {PERCENTILES} {:>8} {:>6} {:>9}  OUTGOING",
            "REQUESTS", "MAX ms", "FAILED", "IN FLIGHT"
        )?;
        for group in groups.iter().take(self.top) {
            let RequestGroup { durations, failed, server_errors, in_flight, .. } = group;
            let (failed, times) = (failed.saturating_add(*server_errors), times(durations, true));
            writeln!(out, "{:>9} {times} {failed:>6} {in_flight:>9}", durations.count())?;
            let name = format!("{}{}", printable_name(&group.origin), shown(&group.path));
            let name = cut_middle(&self.named(group, &name), width.saturating_sub(INDENT));
            writeln!(out, "{:INDENT$}{name}", "")?;
            write_methods(["sent", "by"], &group.methods, INDENT, width, out)?;
            if let Some(oldest) = group.oldest {
                let since =
                    self.oldest(group).flatten().map_or_else(String::new, |start| format!(", since {start}"));
                writeln!(out, "{:INDENT$}in flight for up to {} ms{since}", "", whole(oldest))?;
            }
        }
        write_more(groups.len(), self.top, "", out)
    }
}

const WHY_NO_ACTIVITY: &str = "the ids connect the start and the end of a request: record them with \
                               `--provider System.Threading.Tasks.TplEventSource:88`, or use `dotnet-ipc requests PID`";

const PERCENTILES: &str = "  P50 ms   P95 ms   P99 ms";

/// Returns percentiles, and with `has_longest` the longest duration, as cells of a table.
fn times(durations: &Durations, has_longest: bool) -> String {
    let percentiles = [500, 950, 990].map(|share| durations.quantile(share));
    let times = percentiles.into_iter().chain(has_longest.then(|| durations.longest()));
    let is_empty = durations.count() == 0;
    let cell = |time| if is_empty { "-".to_owned() } else { time_cell(time) };
    times.map(|time| format!("{:>8}", cell(time))).collect::<Vec<_>>().join(" ")
}

/// Returns a time in milliseconds with at most eight characters.
fn time_cell(nanoseconds: u64) -> String {
    let time = milliseconds(nanoseconds);
    if time < 1_000.0 { format!("{time:.3}") } else { format!("{time:.0}") }
}

fn whole(nanoseconds: u64) -> String {
    format!("{:.0}", milliseconds(nanoseconds))
}

fn incoming_name(group: &RequestGroup) -> String {
    format!("{} {}", printable_name(&group.method), shown(&group.path))
}

fn shown(path: &FoldedPath) -> String {
    printable_name(&path.text)
}

/// Writes the two methods with the most requests, each on a line of its own, after a verb and a preposition.
fn write_methods(
    [verb, preposition]: [&str; 2],
    methods: &[OwnMethod],
    indent: usize,
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    const SHOWN: usize = 2;
    for OwnMethod { name, count, .. } in methods.iter().take(SHOWN) {
        let start = if methods.len() > 1 { count.to_string() } else { verb.to_owned() };
        let start = format!("{start} {preposition} ");
        let room = width.saturating_sub(indent).saturating_sub(start.len());
        writeln!(out, "{:indent$}{start}{}", "", FunctionName::new(name, true).fit(room))?;
    }
    Ok(())
}

fn in_flight_of<'a>(groups: impl Iterator<Item = &'a RequestGroup>) -> u64 {
    groups.fold(0, |sum, group| sum.saturating_add(group.in_flight))
}

fn finished_of<'a>(groups: impl Iterator<Item = &'a RequestGroup>) -> u64 {
    groups.fold(0, |sum, group| sum.saturating_add(group.durations.count()))
}
