//! `events`: what a program does, event by event, as it happens or from a trace.
use core::cell::RefCell;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ipc_proto::nettrace::{End, Metadata, Only as Keep};
use ipc_std::{Timeouts, TraceEvent, TraceReader, TraceSession};

use crate::event_line::Lines;
use crate::failure::{Failure, Kind};
use crate::live::{self, Live};
use crate::output::unbuffered_stdout;
use crate::recording::{self, Options, TICK};
use crate::source::{self, Source};
use crate::wire_log::LogFile;
use crate::{Globals, runtime};

/// Show what a program does, event by event: live, or from a trace
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A process is traced until Ctrl-C, the end of --duration, or its own; the options of
`trace` say what. A number is a process id, --file makes it a file.

With --json a line is {\"time_ns\", \"thread_id\", \"provider\", \"id\", \"version\", \"name\",
\"activity_id\", \"fields\": {…}}: nanoseconds since the trace began, null for what an
event does not have. An event that nothing describes has its bytes, \"payload\", in
base64, in place of fields. What the fields leave over of the bytes is \"rest\"; if that
is because they do not fit, \"error\" tells why. A second field of one name is called
\"name#2\". Byte arrays are base64, infinite numbers strings.

Examples:
  dotnet-ipc events 4242 --only System.Net.Http --provider System.Net.Http
  dotnet-ipc events 4242 --profile gc-verbose --duration 10s --json
  dotnet-ipc events app.nettrace --only Microsoft-Windows-DotNETRuntime/1 --ordered
  xz -dc app.nettrace.xz | dotnet-ipc events - --json | jq .fields")]
pub(crate) struct Args {
    /// A process id, or a trace; `-` for standard input
    #[arg(value_name = "PID|FILE", required_unless_present = "socket", conflicts_with = "socket")]
    target: Option<PathBuf>,
    /// Path of the runtime's diagnostic socket, in place of a process id
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Take PID|FILE for a file, even if it is a number
    #[arg(long, conflicts_with = "socket")]
    file: bool,
    /// Show only the events of a provider, or only that one of them; may be repeated
    #[arg(long, value_name = "PROVIDER[/ID]", value_parser = Only::parse)]
    only: Vec<Only>,
    /// In the order of time. Otherwise as they stand in the trace: thread by thread, a piece at a time
    #[arg(long)]
    ordered: bool,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    wire_log: LogFile,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    match (&args.target, args.process_id()) {
        (Some(file), None) => of_file(file, args, globals),
        (_, process_id) => of_process(process_id.transpose()?, args, globals),
    }
}

impl Args {
    /// The process id that the target is, if it is one.
    fn process_id(&self) -> Option<Result<u32, Failure>> {
        let digits = self.target.as_ref()?.to_str().filter(|target| !self.file && is_number(target))?;
        let no_id = |_| Failure::new(Kind::NotFound, format!("there is no process {digits}"));
        Some(digits.parse().map_err(no_id))
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Events to show, or to keep.
#[derive(Debug, Clone)]
pub(crate) struct Only {
    provider: String,
    event_id: Option<u32>,
}

impl Only {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (provider, event_id) = match text.split_once('/') {
            None => (text, None),
            Some((provider, id)) => {
                (provider, Some(id.parse().map_err(|_| "the id behind the / is not a number")?))
            }
        };
        if provider.is_empty() {
            return Err("a provider's name is missing".to_owned());
        }
        Ok(Self { provider: provider.to_owned(), event_id })
    }

    /// As the library has it.
    pub(crate) fn keep(&self) -> Keep<'_> {
        Keep { provider: &self.provider, event_id: self.event_id }
    }
}

fn of_file(file: &Path, args: &Args, globals: &Globals) -> Result<(), Failure> {
    if args.options.are_about_traces() || args.options.no_resume || args.wire_log.is_wanted() {
        let message = format!("{} is a file: there is nothing to trace", file.display());
        return Err(Failure::new(Kind::Usage, message)
            .with_hint("--wire-log and the options of `trace` are for a process id, or --socket"));
    }
    let source = Source::open(file)?;
    let name = source.name().to_string();
    let output = Output::new(globals)?;
    let mut events = Events::new(source, args, &output);
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
    events.remark(globals);
    source::check(end?, name)
}

fn of_process(process_id: Option<u32>, args: &Args, globals: &Globals) -> Result<(), Failure> {
    let wishes = args.options.wishes()?;
    let wire_log = args.wire_log.open()?;
    let timeouts = Timeouts { silence: TICK, ..globals.limits.timeouts() };
    let client = runtime::client(args.socket.as_deref(), process_id, timeouts, &wire_log)?;
    let output = Output::new(globals)?;

    let Live { session, resumed, .. } = live::start(client, &wishes, None, globals)?;
    let mut events = Events::new(session, args, &output);
    let mut end = None;
    let read = loop {
        let shown = match end {
            None => events.show_next(),
            // The runtime has more to say, if only that this is all.
            Some(_) => match events.source().read(&mut [0; 4096]) {
                Ok(0) => break Ok(()),
                other => other.map(|_| None),
            },
        };
        match shown {
            Ok(None) => {}
            Ok(found) => end = found,
            Err(e) => {
                if let Err(e) = recording::broken(events.source(), e) {
                    break Err(e);
                }
            }
        }
        // Nobody reads on, or nobody can: it is ended properly all the same.
        if output.borrow().is_closed() || matches!(end, Some(End::Corrupt { .. })) {
            events.source().stop();
        }
    };
    let written = output.borrow_mut().finish();
    events.remark(globals);
    resumed.and(written).and(read)?;
    let session = events.source();
    check_end(end, session, args.options.no_resume)?;
    live::remark_end(session, globals);
    wire_log.check()
}

/// Whether all of the trace has come.
fn check_end(end: Option<End>, session: &TraceSession, no_resume: bool) -> Result<(), Failure> {
    match end {
        Some(End::Truncated { .. }) => {
            recording::never_ran(session, no_resume)?;
            let message = "the events are cut off: the runtime went away in the middle of them";
            Err(Failure::new(Kind::Gone, message))
        }
        end => source::check(end.unwrap_or(End::Complete), "the runtime"),
    }
}

/// Events on their way from a trace to the output.
struct Events<'a, R> {
    trace: TraceReader<Reading<R>>,
    only: &'a [Only],
}

impl<'a, R: Read> Events<'a, R> {
    fn new(reader: R, args: &'a Args, output: &Rc<RefCell<Output>>) -> Self {
        let trace = TraceReader::new(Reading { reader, output: Rc::clone(output) }).without_stacks();
        let trace = if args.ordered { trace.in_order(TraceReader::<R>::HELD) } else { trace };
        Self { trace, only: &args.only }
    }

    /// Shows the next event, if it is to be shown; or gives the end.
    fn show_next(&mut self) -> io::Result<Option<End>> {
        let output = Rc::clone(&self.trace.get_ref().output);
        let Some(event) = self.trace.next_event()? else { return Ok(self.trace.end()) };
        let metadata = event.metadata();
        let shows = |metadata| self.only.iter().any(|only| only.keep().keeps(metadata));
        if self.only.is_empty() || metadata.as_ref().is_some_and(shows) {
            output.borrow_mut().add(&event, metadata.as_ref());
        }
        Ok(None)
    }

    /// Tells what the events themselves do not.
    fn remark(&self, globals: &Globals) {
        match self.trace.lost() {
            0 => {}
            lost => globals.output.note(&format!("{lost} events were lost: the runtime's buffer was full")),
        }
        match self.trace.late() {
            0 => {}
            late => globals.output.note(&format!("{late} events are not in order: too many had to be held")),
        }
    }

    const fn source(&mut self) -> &mut R {
        &mut self.trace.get_mut().reader
    }
}

/// What is read, with an output that shows all there is before anything is waited for.
struct Reading<R> {
    reader: R,
    output: Rc<RefCell<Output>>,
}

impl<R: Read> Read for Reading<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.output.borrow_mut().flush();
        self.reader.read(buf)
    }
}

/// Standard output, without the buffer that Rust's has, which is made for lines.
struct Output {
    lines: Lines,
    stdout: io::Result<File>,
}

impl Output {
    /// When to write, at the latest.
    const FULL: usize = 64 << 10;

    fn new(globals: &Globals) -> Result<Rc<RefCell<Self>>, Failure> {
        let stdout = unbuffered_stdout().map_err(|e| cannot_write(&e))?;
        Ok(Rc::new(RefCell::new(Self { lines: Lines::new(globals.output.json), stdout: Ok(stdout) })))
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

    /// Whether nothing can be written any longer.
    const fn is_closed(&self) -> bool {
        self.stdout.is_err()
    }

    /// Writes the rest. Whoever has closed the output has seen enough, which is no error.
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
