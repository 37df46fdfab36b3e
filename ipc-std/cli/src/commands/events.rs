//! `events`: shows the events of a process or of a trace.
mod output;

use core::cell::RefCell;
use core::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

use dotnet_ipc_sans_io::syntax::only_arg::OnlyArg;
use ipc_proto::Guid;
use ipc_std::{Client, TraceReader, TraceSession};
use memmap2::Mmap;
use nettrace::{BytesOrder, End, EventAssembler, EventOrder, Metadata, ReadOptions, TraceClock, Value};
use nettrace_analysis::names::Names;

use self::output::{EventOutput, FlushingReader};
use crate::args::process_arg::ProcessArg;
use crate::args::symbol_args::SymbolArgs;
use crate::args::time_range_args::report_skipped;
use crate::args::until_event;
use crate::args::zone_args::ZoneArgs;
use crate::events::field::{self, FieldCondition};
use crate::events::lines::ShownEvent;
use crate::events::native_path::NativePath;
use crate::events::stack_names::StackNames;
use crate::events::summary::EventSummary;
use crate::input::source::{self, Source};
use crate::input::trace_file;
use crate::output::bulk_stdout::BulkStdout;
use crate::output::dates::Dates;
use crate::output::stdout::to_stdout;
use crate::process::connection_args::ConnectionArgs;
use crate::process::target::Target;
use crate::process::trace_target::{TraceTarget, TraceTargetArgs};
use crate::recording::args::{SessionArgs, SessionPlan};
use crate::recording::part_args::{PartArgs, TracePart};
use crate::recording::rundown;
use crate::recording::session::{self, LiveEvents, LiveSession};
use crate::recording::summary::{RecordedAmount, lost_warning};
use crate::run::{Failure, Globals, Kind};
use crate::text::printable::printable_name;

/// Show the events of a process as they happen, or of a trace
#[derive(Debug, clap::Args)]
#[command(mut_arg("timeout", |arg| arg.help("Give up after DURATION when starting the session, and again when ending it [default: 10s, 2m]")))]
#[command(mut_arg("symbols", |arg| arg.requires("stacks")))]
#[command(after_help = include_str!("events.txt"))]
pub(crate) struct Args {
    #[command(flatten)]
    target: TraceTargetArgs,
    /// Show only the events of a provider, or only the one with this ID or name; repeatable
    #[arg(long, value_name = "PROVIDER[/EVENT]", value_parser = OnlyArg::parse)]
    only: Vec<OnlyArg>,
    #[command(flatten)]
    process: ProcessArg,
    /// Show only events with such a field; repeatable: all conditions must hold. OP is =, !=, <, <=, >, >= or ~ (contains)
    #[arg(long = "where", value_name = "FIELD OP VALUE", value_parser = FieldCondition::parse)]
    conditions: Vec<FieldCondition>,
    /// Show only these fields of each event, separated by tabs; repeatable, or separated by commas
    #[arg(long, value_name = "FIELD", value_delimiter = ',', conflicts_with_all = ["count_by", "hist", "stacks"])]
    columns: Vec<String>,
    /// Show how many events have each value of this field, at the end, instead of the events
    #[arg(long, value_name = "FIELD", conflicts_with_all = ["hist", "stacks"])]
    count_by: Option<String>,
    /// Show how many events have a number of each size in this field, at the end, instead of the events
    #[arg(long, value_name = "FIELD", conflicts_with = "stacks")]
    hist: Option<String>,
    /// End with this event; repeatable: with the first of them
    #[arg(long, value_name = "PROVIDER[/EVENT]", value_parser = OnlyArg::parse)]
    until: Vec<OnlyArg>,
    #[command(flatten)]
    part: PartArgs,
    #[command(flatten)]
    zone: ZoneArgs,
    /// Sort the events by time, instead of showing them in the order of the trace, thread by thread
    #[arg(long)]
    ordered: bool,
    /// Show the stacks of events with the names of methods; sorts the events of a file by time
    #[arg(long)]
    stacks: bool,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let target = args.target.target(args.is_about_sessions())?;
    let (name, part) = (target.to_string(), args.part.part(target, globals)?);
    match target {
        TraceTarget::File(file) => show_file(file, args, part, globals),
        TraceTarget::Process(target) => show_process(target, &name, args, part, globals),
    }
}

impl Args {
    /// Returns the summary to show instead of the events.
    fn summary(&self) -> Option<EventSummary> {
        let counts = self.count_by.as_deref().map(EventSummary::counts);
        counts.or_else(|| self.hist.as_deref().map(EventSummary::histogram))
    }

    /// Returns whether there is an option that only applies to a process.
    fn is_about_sessions(&self) -> bool {
        self.session.is_used() || self.session.live.no_resume || self.connection.wire_log.is_wanted()
    }
}

fn show_file(file: &Path, args: &Args, part: TracePart, globals: &Globals) -> Result<(), Failure> {
    let source = Source::open(file)?;
    let name = source.name().to_string();
    let names = match args.stacks {
        true if source.is_regular() => Some(StackNames::of_file(file, &args.symbols, globals)?),
        true => Some(StackNames::default()),
        false => None,
    };
    // Only a regular file is read with output in the background: lines from a pipe must be visible as soon as possible.
    let output = EventOutput::new(BulkStdout::open(source.is_regular())?, args.zone.zone()?, globals);
    // Blocks outside of a part of the trace are skipped from the first event on, so that event must come soon.
    let may_delay = source.is_regular() && part.is_whole();
    let bytes = if may_delay { source.map(globals)? } else { None };
    let input = match bytes {
        Some(bytes) => EventInput::Bytes(bytes),
        None if may_delay => EventInput::File,
        None => EventInput::Live,
    };
    let mut events = Events::new(source, input, args, part, None, names, &output);
    let end = loop {
        match events.show_next() {
            Ok(Some(end)) => break Ok(end),
            Ok(None) => {}
            Err(e) => break Err(events.source().failed(&e)),
        }
        if events.has_ended || output.borrow().is_closed() {
            break Ok(End::Complete);
        }
    };
    events.finish(&output, globals)?;
    trace_file::report_lost(&events.trace, globals);
    events.report(globals);
    let end = end?;
    // After the reader of the output has closed the pipe, an error of the trace is not a failure: it is chance whether
    // the closed pipe is noticed before that error.
    if !output.borrow().is_closed() {
        source::check(end, &name)?;
    }
    events.check_until()?;
    events.check_found(name)
}

fn show_process(
    target: Target<'_>,
    name: &str,
    args: &Args,
    part: TracePart,
    globals: &Globals,
) -> Result<(), Failure> {
    let plan = args.session.live_plan(args.stacks)?;
    plan.check_until(&args.until)?;
    let (client, wire_log) = args.connection.session_client(target)?;
    let output = EventOutput::new(BulkStdout::live()?, args.zone.zone()?, globals);
    let LiveSession { session, resumption, notes: _notes, .. } =
        session::start(client.clone(), &plan, None, globals)?;
    // The names are read after the session has started, so that no method is compiled in between.
    let names = match args.stacks {
        true if plan.can_ask_for_names(&session, globals) => Some(names_of(&client)?),
        true => Some(StackNames::default()),
        false => None,
    };
    let mut events = Events::new(session, EventInput::Live, args, part, Some(&plan), names, &output);
    let (end, read) = session::read_events(&mut events);
    let written = events.finish(&output, globals);
    let bytes = events.source().received();
    let blocks = plan.blocks(events.source());
    let recorded = RecordedAmount { events: events.read, bytes, buffer_mb: plan.buffer_mb, blocks };
    if let Some(warning) = lost_warning(trace_file::loss_report(&events.trace), &recorded) {
        globals.note(&warning);
    }
    events.report(globals);
    resumption.check().and(written).and(read)?;
    let session = events.source();
    session::check_end(end, session, plan.no_resume, target.process_id())?;
    session::report_end(session, globals);
    wire_log.check()?;
    events.check_until()?;
    events.check_found(name)
}

/// Returns whether an event is the start or the end of a request that a program receives or sends.
fn is_request(metadata: &Metadata<'_>) -> bool {
    let is_named = || metadata.name == "RequestStart" || metadata.name == "RequestStop";
    (metadata.provider == "Microsoft.AspNetCore.Hosting" || metadata.provider == "System.Net.Http")
        && is_named()
}

/// Returns the names of the methods that a process has now.
fn names_of(client: &Client) -> Result<StackNames, Failure> {
    let mut names = Names::default();
    rundown::read(client, |event| names.event(event))?;
    Ok(StackNames::of_process(names))
}

/// How the bytes of a trace are available.
enum EventInput {
    /// All of them are in memory.
    Bytes(Mmap),
    /// They are read, and events may be returned some time later.
    File,
    /// They are read, and each event is returned as soon as possible.
    Live,
}

/// The events of a trace, and the output that shows them.
struct Events<'a, R> {
    trace: TraceReader<FlushingReader<R>>,
    args: &'a Args,
    /// For each condition, whether events had its field.
    condition_fields: Vec<FieldUse>,
    /// Whether an event of `--until` was read.
    has_ended: bool,
    /// For each column, whether events had it.
    column_fields: Vec<FieldUse>,
    /// Counts the events instead of showing them.
    summary: Option<EventSummary>,
    /// The part of the trace to show.
    part: TracePart,
    /// The plan of the session with a process. Events of providers that the plan does not enable are not shown.
    plan: Option<&'a SessionPlan<'a>>,
    /// The names of methods, for `--stacks`.
    names: Option<StackNames>,
    native_path: NativePath,
    /// The number of events that were read.
    read: u64,
    /// The number of events that were shown or counted.
    shown: u64,
    /// The number of events without a description while `--only` selects events by their descriptions.
    undescribed: u64,
    /// Whether the start or the end of a request was shown that has no activity id.
    lacks_activities: bool,
}

impl<'a, R: Read> Events<'a, R> {
    fn new(
        reader: R,
        input: EventInput,
        args: &'a Args,
        part: TracePart,
        plan: Option<&'a SessionPlan<'a>>,
        names: Option<StackNames>,
        output: &Rc<RefCell<EventOutput>>,
    ) -> Self {
        let reader = FlushingReader { reader, output: Rc::clone(output) };
        // The address of a method can belong to another method later. So names need the events in the order of time.
        let sorts = args.ordered || (names.is_some() && plan.is_none());
        // The stacks of a process are dropped unless `--stacks` asks for them: only old runtimes send them then.
        let shows_addresses = output.borrow().lines.shows_addresses() && plan.is_none();
        let options = ReadOptions { stacks: names.is_some() || shows_addresses, ..ReadOptions::default() };
        let assembler = match (input, sorts) {
            (EventInput::Bytes(bytes), true) => EventAssembler::of_bytes(bytes, BytesOrder::Time, options),
            (EventInput::Bytes(bytes), false) => EventAssembler::of_bytes(bytes, BytesOrder::Stream, options),
            (EventInput::File, true) => EventAssembler::new(EventOrder::BY_SEGMENT, options),
            (EventInput::File, false) => EventAssembler::new(EventOrder::Block, options),
            (EventInput::Live, true) => EventAssembler::new(EventOrder::BY_TIME, options),
            (EventInput::Live, false) => EventAssembler::new(EventOrder::Stream, options),
        };
        let trace = TraceReader::with_assembler(reader, assembler);
        Self {
            trace,
            args,
            condition_fields: vec![FieldUse::Unused; args.conditions.len()],
            has_ended: false,
            column_fields: vec![FieldUse::Unused; args.columns.len()],
            summary: args.summary(),
            part,
            plan,
            names,
            native_path: NativePath::default(),
            read: 0,
            shown: 0,
            undescribed: 0,
            lacks_activities: false,
        }
    }

    /// Reads the next event, and shows it unless it is filtered out. Returns the end of the trace instead of an event.
    fn show_next(&mut self) -> io::Result<Option<End>> {
        let (args, output) = (self.args, Rc::clone(&self.trace.get_ref().output));
        // With `--stacks` no block is skipped: a skipped event can have the name of a method.
        if self.names.is_none() && self.trace.summary().time_filter.is_none() {
            if let Some(times) = self.trace.summary().trace.and_then(|trace| self.part.ticks(&trace)) {
                self.trace.skip_outside(*times.start(), *times.end());
            }
        }
        let Some(event) = self.trace.next_event()? else { return Ok(self.trace.summary().end) };
        self.read = self.read.saturating_add(1);
        if let Some(names) = &mut self.names {
            names.event(&event);
        }
        let metadata = event.metadata();
        // Before any filter, because the events of a module and of its process can be filtered apart.
        let payload = &*self.native_path.payload(metadata.as_ref(), event.payload());
        if !self.part.includes(&event) {
            return Ok(None);
        }
        let is_shown = match (&metadata, &*args.only, self.plan) {
            (Some(metadata), [], Some(plan)) => plan.enables(metadata),
            (_, [], _) => true,
            (Some(metadata), only, _) => only.iter().any(|only| only.includes(metadata)),
            (None, only, _) => {
                self.undescribed = self.undescribed.saturating_add((!only.is_empty()).into());
                false
            }
        };
        let is_shown = is_shown && args.process.includes(&event);
        let mut conditions = args.conditions.iter().zip(&mut self.condition_fields);
        let is_shown = is_shown
            && conditions.all(|(condition, field)| {
                let holds = condition.holds(&event, metadata.as_ref(), payload);
                field.add(holds.is_some());
                holds == Some(true)
            });
        let is_shown = is_shown && !self.has_ended;
        self.shown = self.shown.saturating_add(is_shown.into());
        let is_request = is_shown && !self.lacks_activities && metadata.as_ref().is_some_and(is_request);
        self.lacks_activities |= is_request && event.activity_id() == Guid::NIL;
        match &mut self.summary {
            _ if !is_shown => {}
            Some(summary) => summary.add(&event, metadata.as_ref(), payload),
            None if !args.columns.is_empty() => {
                let date = output.borrow().lines.date(&event);
                let date = date.as_deref().map(|date| Value::Text(date.into()));
                let value = |name: &String| {
                    let value = field::value(&event, metadata.as_ref(), payload, name);
                    value.or_else(|| date.filter(|_| name == "time"))
                };
                let values: Vec<_> = args.columns.iter().map(value).collect();
                let fields = self.column_fields.iter_mut().zip(&values);
                fields.for_each(|(field, value)| field.add(value.is_some()));
                output.borrow_mut().add_columns(&values, &args.columns);
            }
            None => {
                let stack = self.names.as_mut().map(StackNames::stack);
                let metadata = metadata.as_ref();
                output.borrow_mut().add(ShownEvent { event: &event, metadata, payload, stack });
            }
        }
        self.has_ended |= metadata.is_some_and(|metadata| args.until.iter().any(|it| it.includes(&metadata)));
        Ok(None)
    }

    /// Writes the summary, if there is one.
    fn finish(&self, output: &RefCell<EventOutput>, globals: &Globals) -> Result<(), Failure> {
        output.borrow_mut().finish()?;
        let Some(summary) = &self.summary else { return Ok(()) };
        to_stdout(|out| summary.write(out, globals))?;
        summary.report(globals);
        Ok(())
    }

    /// Reports events that could not be sorted, or may be missing, and fields that no event has.
    fn report(&self, globals: &Globals) {
        let conditions = self.args.conditions.iter().map(FieldCondition::field).zip(&self.condition_fields);
        let columns = self.args.columns.iter().map(String::as_str).zip(&self.column_fields);
        for (name, _) in conditions.chain(columns).filter(|(_, field)| **field == FieldUse::Missing) {
            globals.note(&format!("no event has the field {}", printable_name(name)));
        }
        if let undescribed @ 1.. = self.undescribed {
            globals
                .note(&format!("{undescribed} events have no description, so that --only cannot find them"));
        }
        if self.lacks_activities {
            globals.note(
                "requests have no activity ids, which connect their events: add --provider \
                 System.Threading.Tasks.TplEventSource:80, or use `dotnet-ipc requests`",
            );
        }
        if let Some(times) = self.trace.summary().time_filter {
            report_skipped(times, globals);
        }
        if let Some(trace) = self.trace.summary().trace {
            let zone = self.trace.get_ref().output.borrow().lines.zone.clone();
            Dates::new(zone, TraceClock::new(&trace).unix_start()).report(globals);
        }
        trace_file::report_late(&self.trace, globals);
    }

    /// Fails if no event of `--until` was read.
    fn check_until(&self) -> Result<(), Failure> {
        let is_closed = self.trace.get_ref().output.borrow().is_closed();
        until_event::check_arrival(&self.args.until, self.has_ended, is_closed)
    }

    /// Fails if the arguments name events, and none was found. A reader that closed the pipe wants no failure.
    fn check_found(&self, name: impl fmt::Display) -> Result<(), Failure> {
        if self.shown > 0 || self.trace.get_ref().output.borrow().is_closed() {
            return Ok(());
        }
        self.args.process.check(&name)?;
        let has_skipped = self.trace.summary().time_filter.is_some_and(|times| times.skipped_blocks() > 0);
        // The times of blocks that were skipped are not known.
        let part = self.part.check(&name);
        part.map_err(|failure| if has_skipped { failure.without_hint() } else { failure })?;
        let options = [("--only", self.args.only.is_empty()), ("--where", self.args.conditions.is_empty())];
        let used: Vec<_> =
            options.iter().filter(|(_, is_empty)| !is_empty).map(|(option, _)| *option).collect();
        if used.is_empty() {
            return Ok(());
        }
        Err(Failure::new(Kind::NothingFound, format!("{name}: no event is one of {}", used.join(" and "))))
    }

    const fn source(&mut self) -> &mut R {
        &mut self.trace.get_mut().reader
    }
}

impl LiveEvents for Events<'_, TraceSession> {
    fn advance(&mut self) -> io::Result<Option<End>> {
        self.show_next()
    }

    fn is_done(&self) -> bool {
        self.has_ended || self.trace.get_ref().output.borrow().is_closed()
    }

    fn session(&mut self) -> &mut TraceSession {
        self.source()
    }
}

/// Whether events had a field that was looked up in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldUse {
    /// No event was searched for the field.
    Unused,
    /// Events were searched, but none had the field.
    Missing,
    Found,
}

impl FieldUse {
    /// Adds an event.
    fn add(&mut self, is_found: bool) {
        *self = if is_found || *self == Self::Found { Self::Found } else { Self::Missing };
    }
}
