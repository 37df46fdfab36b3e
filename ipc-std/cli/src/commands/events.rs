//! `events`: shows the events of a process or of a trace.
use core::cell::RefCell;
use core::ops::RangeInclusive;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ipc_proto::nettrace::{End, EventAssembler, Metadata, TraceEvent};
use ipc_std::{Timeouts, TraceReader, TraceSession};

use crate::event_line::Lines;
use crate::failure::{Failure, Kind};
use crate::globals::Globals;
use crate::only_arg::OnlyArg;
use crate::recording::session::{self, LiveSession};
use crate::recording::{self, SessionArgs, SessionPlan, TICK};
use crate::socket_path;
use crate::source::{self, Source};
use crate::stdout::unbuffered_stdout;
use crate::target::Target;
use crate::time_range_args::{TimeRangeArgs, report_skipped};
use crate::timeout_args::TimeoutArgs;
use crate::wire_log::WireLogArgs;

/// Show the events of a process as they happen, or of a trace
#[derive(Debug, clap::Args)]
#[command(mut_arg("timeout", |arg| arg.help("Give up after DURATION when starting the session, and again when ending it [default: 10s, 2m]")))]
#[command(after_help = "\
A number is a process ID, anything else a file; --file makes a number a file.
The events of a process are shown until Ctrl-C, the end of --duration, or its
exit: those of --profile, --provider and --clr-events [default: --profile
dotnet-common], without rundown. The other options for sessions do not apply to
files.

T is a time since the start of the trace (90s, 00:01:30, 1.5), or a date such
as 2026-11-20T21:45:13Z. Events at exactly T are shown. Blocks that state other
times are skipped, and their lost events are not counted. Traces of format 3
and 6 are read whole.

With --json, a line is {\"time_ns\", \"thread_id\", \"provider\", \"id\", \"version\",
\"name\", \"level\", \"opcode\", \"keywords\", \"processor\", \"activity_id\",
\"related_activity_id\", \"stack\", \"fields\"}: nanoseconds since the start of the
trace; keywords and the addresses of the stack, leaf first, are hexadecimal
strings; null is a value that the event does not have. An event without a
description has \"payload\", its bytes in base64, instead of \"fields\". Bytes
after the last field are \"rest\"; if a field does not fit, \"error\" describes
why. A second field of the same name is \"name#2\". Byte arrays are base64,
infinite numbers are strings. \"cut\": true marks a line without all parts: a
name has 256 characters at most, a stack 256 addresses, and the fields 4 KiB
and 64 bytes for each byte of the payload.

Examples:
  dotnet-ipc events 4242
  dotnet-ipc events 4242 --provider System.Net.Http
  dotnet-ipc events 4242 --profile gc-verbose --duration 10s --json
  dotnet-ipc events app.nettrace --only System.Net.Http/1 --ordered
  dotnet-ipc events app.nettrace --from 00:10:00 --to 00:10:05
  xz -dc app.nettrace.xz | dotnet-ipc events - --json | jq .fields")]
pub(crate) struct Args {
    /// A process ID, or a trace; `-` for standard input
    #[arg(value_name = "PID|FILE", required_unless_present_any = ["name", "socket"], conflicts_with_all = ["name", "socket"])]
    target: Option<PathBuf>,
    /// Name of the process, or its unique beginning, instead of a process ID
    #[arg(long, value_name = "NAME", conflicts_with = "socket")]
    name: Option<String>,
    /// Path of the runtime's diagnostic socket, instead of a process ID
    #[arg(long, value_name = "PATH", value_parser = socket_path::parser())]
    socket: Option<PathBuf>,
    /// Read PID|FILE as a file even if it is a number
    #[arg(long, conflicts_with_all = ["name", "socket"])]
    file: bool,
    /// Show only the events of a provider, or only the one with this ID; repeatable
    #[arg(long, value_name = "PROVIDER[/ID]", value_parser = OnlyArg::parse)]
    only: Vec<OnlyArg>,
    #[command(flatten)]
    times: TimeRangeArgs,
    /// Sort the events by time, instead of showing them in the order of the trace, thread by thread
    #[arg(long)]
    ordered: bool,
    /// Record the stacks of events of a process, for --json
    #[arg(long)]
    stacks: bool,
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    timeout: TimeoutArgs,
    #[command(flatten)]
    wire_log: WireLogArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    match (&args.target, args.process_id()) {
        (Some(file), None) => show_file(file, args, globals),
        (_, process_id) => show_process(process_id.transpose()?, args, globals),
    }
}

impl Args {
    /// Returns the process ID, if the target is one.
    fn process_id(&self) -> Option<Result<u32, Failure>> {
        let digits = self.target.as_ref()?.to_str().filter(|target| !self.file && is_number(target))?;
        let not_found = |_| Failure::new(Kind::NotFound, format!("there is no process {digits}"));
        Some(digits.parse().map_err(not_found))
    }

    /// Returns whether there is an option that only applies to a process.
    fn is_about_sessions(&self) -> bool {
        self.session.is_used() || self.session.no_resume || self.stacks || self.wire_log.is_wanted()
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn show_file(file: &Path, args: &Args, globals: &Globals) -> Result<(), Failure> {
    if args.is_about_sessions() {
        let message = format!("{} is a file, so options for sessions do not apply", file.display());
        return Err(Failure::new(Kind::Usage, message)
            .with_hint("use them with a process ID or --socket, or filter the file with --only"));
    }
    let source = Source::open(file)?;
    let name = source.name().to_string();
    let output = Output::new(globals)?;
    let mut events = Events::new(source, args, None, &output);
    let end = loop {
        match events.show_next() {
            Ok(Some(end)) => break Ok(end),
            Ok(None) => {}
            Err(e) => break Err(events.source().failed(&e)),
        }
        if output.borrow().is_closed() {
            break Ok(End::Complete);
        }
    };
    output.borrow_mut().finish()?;
    if let lost @ 1.. = events.trace.lost().saturating_add(events.trace.lost_at_start()) {
        globals
            .note(&format!("{lost} events were lost when the trace was recorded: the event buffer was full"));
    }
    events.report(globals);
    source::check(end?, name)
}

fn show_process(process_id: Option<u32>, args: &Args, globals: &Globals) -> Result<(), Failure> {
    let plan = args.session.live_plan(args.stacks)?;
    let wire_log = args.wire_log.open()?;
    let timeouts = Timeouts { silence: TICK, ..args.timeout.timeouts() };
    let client = Target::new(args.socket.as_deref(), args.name.as_deref(), process_id.unwrap_or_default())
        .client(timeouts, &wire_log)?;
    let output = Output::new(globals)?;

    let LiveSession { session, resumed, .. } = session::start(client, &plan, None, globals)?;
    let mut events = Events::new(session, args, Some(&plan), &output);
    let mut end = None;
    let read = loop {
        let shown = match end {
            None => events.show_next(),
            // The session must still end, also after a corrupt trace.
            Some(_) => match events.source().read(&mut [0; 4096]) {
                Ok(0) => break Ok(()),
                other => other.map(|_| None),
            },
        };
        match shown {
            Ok(None) => {}
            Ok(found) => end = found,
            Err(e) => {
                if let Err(e) = recording::read_failure(events.source(), e) {
                    break Err(e);
                }
            }
        }
        // The session ends properly also when no more events can be shown.
        if output.borrow().is_closed() || matches!(end, Some(End::Corrupt { .. })) {
            events.source().stop();
        }
    };
    let written = output.borrow_mut().finish();
    let (lost, at_start) = (events.trace.lost(), events.trace.lost_at_start());
    if let Some(warning) = recording::lost_warning(lost, at_start, events.read, plan.args.buffer) {
        globals.note(&warning);
    }
    events.report(globals);
    resumed.and(written).and(read)?;
    let session = events.source();
    check_end(end, session, plan.args.no_resume)?;
    session::report_end(session, globals);
    wire_log.check()
}

/// Fails if the events of a process have no end.
fn check_end(end: Option<End>, session: &TraceSession, no_resume: bool) -> Result<(), Failure> {
    match end {
        Some(End::Truncated { .. }) => {
            recording::check_resumed(session, no_resume)?;
            Err(Failure::new(Kind::Gone, "events incomplete: the process exited while recording"))
        }
        end => source::check(end.unwrap_or(End::Complete), "the runtime"),
    }
}

/// The events of a trace, and the output that shows them.
struct Events<'a, R> {
    trace: TraceReader<FlushingReader<R>>,
    only: &'a [OnlyArg],
    time_args: TimeRangeArgs,
    /// The ticks of the events to show, once the clock of the trace is known.
    times: Option<RangeInclusive<u64>>,
    /// The session of a process, which shows only the providers that it enables.
    plan: Option<&'a SessionPlan<'a>>,
    /// The number of events that were read.
    read: u64,
}

impl<'a, R: Read> Events<'a, R> {
    fn new(
        reader: R,
        args: &'a Args,
        plan: Option<&'a SessionPlan<'a>>,
        output: &Rc<RefCell<Output>>,
    ) -> Self {
        let reader = FlushingReader { reader, output: Rc::clone(output) };
        let mut trace = TraceReader::new(reader);
        if !output.borrow().lines.shows_stacks() || (plan.is_some() && !args.stacks) {
            trace = trace.without_stacks();
        }
        if args.ordered {
            trace = trace.in_order(EventAssembler::ORDER_LIMIT);
        }
        Self { trace, only: &args.only, time_args: args.times, times: None, plan, read: 0 }
    }

    /// Reads the next event, and shows it unless it is filtered out. Returns the end of the trace instead of an event.
    fn show_next(&mut self) -> io::Result<Option<End>> {
        let output = Rc::clone(&self.trace.get_ref().output);
        if let (Some(times), None, true) = (&self.times, self.trace.times(), self.time_args.is_used()) {
            self.trace.skip_outside(*times.start(), *times.end());
        }
        let Some(event) = self.trace.next_event()? else { return Ok(self.trace.end()) };
        self.read = self.read.saturating_add(1);
        let times = self.times.get_or_insert_with(|| self.time_args.ticks(event.clock()));
        if !times.contains(&event.header.timestamp) {
            return Ok(None);
        }
        let metadata = event.metadata();
        let is_shown = match (&metadata, self.only, self.plan) {
            (Some(metadata), [], Some(plan)) => plan.enables(&metadata.provider.to_string()),
            (_, [], _) => true,
            (Some(metadata), only, _) => only.iter().any(|only| only.includes(metadata)),
            (None, _, _) => false,
        };
        if is_shown {
            output.borrow_mut().add(&event, metadata.as_ref());
        }
        Ok(None)
    }

    /// Reports events that could not be sorted, or may be missing.
    fn report(&self, globals: &Globals) {
        if let Some(times) = self.trace.times() {
            report_skipped(times, globals);
        }
        if let late @ 1.. = self.trace.late() {
            globals.note(&format!("{late} events are out of order: sorting them needs too much memory"));
        }
    }

    const fn source(&mut self) -> &mut R {
        &mut self.trace.get_mut().reader
    }
}

/// A reader that flushes the output before each read, so that all events are visible while it waits.
struct FlushingReader<R> {
    reader: R,
    output: Rc<RefCell<Output>>,
}

impl<R: Read> Read for FlushingReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.output.borrow_mut().flush();
        self.reader.read(buf)
    }
}

/// Standard output, without the line buffer of [`io::Stdout`].
struct Output {
    lines: Lines,
    stdout: io::Result<File>,
}

impl Output {
    /// The length at which lines are written.
    const FULL: usize = 64 << 10;

    fn new(globals: &Globals) -> Result<Rc<RefCell<Self>>, Failure> {
        let stdout = unbuffered_stdout().map_err(|e| cannot_write(&e))?;
        Ok(Rc::new(RefCell::new(Self { lines: Lines::new(globals.json), stdout: Ok(stdout) })))
    }

    fn add(&mut self, event: &TraceEvent<'_>, metadata: Option<&Metadata<'_>>) {
        self.lines.add(event, metadata);
        if self.lines.bytes.len() >= Self::FULL {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if let (Ok(stdout), false) = (&mut self.stdout, self.lines.bytes.is_empty()) {
            if let Err(e) = stdout.write_all(&self.lines.bytes) {
                self.stdout = Err(e);
            }
        }
        self.lines.bytes.clear();
    }

    /// Returns whether writing has failed.
    const fn is_closed(&self) -> bool {
        self.stdout.is_err()
    }

    /// Writes the remaining lines. A reader that closed the pipe wants no more, which is no error.
    fn finish(&mut self) -> Result<(), Failure> {
        self.flush();
        match &self.stdout {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(cannot_write(e)),
            _ => Ok(()),
        }
    }
}

fn cannot_write(e: &io::Error) -> Failure {
    Failure::io("cannot write to standard output", e)
}
