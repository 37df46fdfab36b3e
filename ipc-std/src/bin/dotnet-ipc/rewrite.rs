//! `rewrite`: a trace anew, with less in it or in another format.
use core::time::Duration;
use std::ffi::OsStr;
#[cfg(unix)]
use std::fs::Permissions;
use std::fs::{self, File};
use std::io::{self, ErrorKind, IsTerminal, Write};
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ipc_proto::nettrace::{
    End, Only as Keep, Rewrite, RewriteOptions, RewriteSpace, Rewritten, Slot, Step, Trace, Version,
};
use ipc_std::{StepReader, TraceClock};
use serde_json::json;
use tempfile::NamedTempFile;

use crate::events::Only;
use crate::failure::{Failure, Kind};
use crate::output::{json_to_stderr, json_to_stdout, to_stderr, unbuffered_stdout};
use crate::source::{self, Source};
use crate::{Globals, durations, signals};

/// Write a trace anew: some of its events, in another format, without command lines
#[derive(Debug, clap::Args)]
#[command(after_help = "\
T is a time since the trace began (90s, 00:01:30, 1.5), or a point in time as in
2026-11-20T21:45:13Z; both ends belong to what is kept. Losses stay what they were:
the numbers of events close up where some are left out, not where some were lost.

--strip-command-line empties the fields that hold the command line of the program.
What else its events say of people and places stays: --only leaves that out.

A trace that is cut or damaged becomes a whole one of what is good in it, and the
exit status tells: 7, 6. In any other failure FILE stays as it was.

Examples:
  dotnet-ipc rewrite app.nettrace -o gc.nettrace --only Microsoft-Windows-DotNETRuntime
  dotnet-ipc rewrite app.nettrace -o minute.nettrace --from 00:10:00 --to 00:11:00
  dotnet-ipc rewrite app.nettrace -o - --strip-command-line | xz > app.nettrace.xz
  dotnet-ipc rewrite old.netperf -o new.nettrace --format 4")]
pub(crate) struct Args {
    /// The trace; `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where to; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Keep only the events of a provider, or only that one of them; may be repeated
    #[arg(long, value_name = "PROVIDER[/ID]", value_parser = Only::parse)]
    only: Vec<Only>,
    /// Leave out what was before
    #[arg(long, value_name = "T", value_parser = Time::parse)]
    from: Option<Time>,
    /// Leave out what was after
    #[arg(long, value_name = "T", value_parser = Time::parse)]
    to: Option<Time>,
    /// Version to write, 4 or 6 [default: that of the trace; 4 for a version 3]
    #[arg(long, value_name = "4|6", value_parser = parse_format)]
    format: Option<Version>,
    /// Empty the fields that hold the command line
    #[arg(long)]
    strip_command_line: bool,
}

fn parse_format(text: &str) -> Result<Version, String> {
    match text {
        "4" => Ok(Version::V4),
        "6" => Ok(Version::V6),
        _ => Err("4 and 6 can be written".to_owned()),
    }
}

/// A point in time.
#[derive(Debug, Clone, Copy)]
enum Time {
    SinceStart(Duration),
    At(SystemTime),
}

impl Time {
    fn parse(text: &str) -> Result<Self, String> {
        if let Ok(time) = humantime::parse_rfc3339_weak(text) {
            return Ok(Self::At(time));
        }
        let duration = durations::parse(text).map(Self::SinceStart);
        duration.map_err(|e| format!("{e}, nor a time such as 2026-11-20T21:45:13Z"))
    }

    /// Since the trace began.
    fn nanoseconds(self, clock: &TraceClock) -> i64 {
        let narrow = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        match self {
            Self::SinceStart(duration) => narrow(duration),
            Self::At(time) => match time.duration_since(clock.start()) {
                Ok(since) => narrow(since),
                Err(before) => narrow(before.duration()).saturating_neg(),
            },
        }
    }
}

impl Args {
    fn options<'o>(&self, only: &'o [Keep<'o>], trace: &Trace<'_>) -> RewriteOptions<'o> {
        let clock = TraceClock::new(trace);
        let (version, strip_command_line) = (self.format, self.strip_command_line);
        let mut options = RewriteOptions { only, version, strip_command_line, ..RewriteOptions::default() };
        if let Some(from) = self.from {
            // The tick behind the last one before it.
            let before = from.nanoseconds(&clock).saturating_sub(1);
            options.from = clock.ticks(before).saturating_add(1);
        }
        if let Some(to) = self.to {
            options.to = clock.ticks(to.nanoseconds(&clock));
        }
        options
    }
}

/// Two records as long as a reader takes them, with what goes around them. Most of it is never touched, which takes no
/// memory.
const BUFFER: usize = 0x200_2000;
/// Slots for metadata records and for threads. Runtimes have some hundred of each, a whole machine some ten thousand.
const SLOTS: usize = 1 << 18;
/// Slots for activities, or for lists of labels between two sequence points.
const LABELS: usize = 1 << 16;

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let only: Vec<Keep<'_>> = args.only.iter().map(Only::keep).collect();
    let mut steps = StepReader::new(Source::open(&args.file)?);
    let mut output = Output::open(&args.output)?;
    let mut buffer = vec![0; BUFFER];
    let (mut metadata, mut threads) = (vec![Slot::default(); SLOTS], vec![Slot::default(); SLOTS]);
    let mut labels = vec![Slot::default(); LABELS];
    let mut space = Some(RewriteSpace {
        buffer: &mut buffer,
        metadata: &mut metadata,
        threads: &mut threads,
        labels: &mut labels,
    });
    let mut rewrite: Option<Rewrite<'_>> = None;
    let failed = |e| Failure::new(Kind::Other, format!("the trace cannot be written anew: {e}"));
    let end = loop {
        let step = steps.next_step();
        // Which ticks --from and --to are only this tells.
        if let Step::Trace(trace) = &step {
            if let Some(space) = space.take() {
                rewrite = Some(Rewrite::new(args.options(&only, trace), space).map_err(failed)?);
            }
        }
        if let Some(rewrite) = &mut rewrite {
            while let Some(bytes) = rewrite.step(&step).map_err(failed)? {
                output.write(bytes)?;
            }
        }
        if output.closed {
            return Ok(());
        }
        match step {
            Step::More { .. } => {
                if let Err(e) = steps.read_more() {
                    return Err(steps.get_ref().failed(&e));
                }
            }
            Step::End(end) => break end,
            _ => {}
        }
    };
    let name = steps.get_ref().name().to_string();
    let Some(mut rewrite) = rewrite else {
        // There is nothing good in it, and nothing to put in the place of what was there.
        return source::check(end, name);
    };
    while let Some(bytes) = rewrite.finish().map_err(failed)? {
        output.write(bytes)?;
    }
    if output.closed {
        return Ok(());
    }
    let rewritten = *rewrite.so_far();
    let bytes = output.keep()?;
    remark(&rewritten, globals);
    summarize(&rewritten, bytes, args, end, globals)?;
    source::check(end, name)
}

/// What the other version cannot say.
fn remark(rewritten: &Rewritten, globals: &Globals) {
    let Rewritten { descriptions, labels, label_lists, thread_entries, pairs, .. } = *rewritten;
    for (count, what) in [
        (descriptions, "descriptions of events lost fields"),
        (labels, "labels are lost"),
        (thread_entries, "names of threads and the like are lost"),
        (pairs, "things that the trace says of itself are lost"),
    ] {
        if count > 0 {
            globals.output.note(&format!("{count} {what}: the format has no place for them"));
        }
    }
    if label_lists > 0 {
        globals.output.note(&format!("{label_lists} lists of labels are lost: there was no room for them"));
    }
}

/// What came of it, in a line.
fn summarize(
    rewritten: &Rewritten,
    bytes: u64,
    args: &Args,
    end: End,
    globals: &Globals,
) -> Result<(), Failure> {
    let Rewritten { events, kept, command_lines, .. } = *rewritten;
    let is_stdout = is_stdout(&args.output);
    if !globals.output.json {
        let stripped = match command_lines {
            0 => String::new(),
            n => format!(", {n} without their command line"),
        };
        let file = if is_stdout { "standard output".to_owned() } else { args.output.display().to_string() };
        to_stderr(&format!("{kept} of {events} events{stripped}, {bytes} bytes, to {file}"));
        return Ok(());
    }
    let summary = json!({
        "file": args.output.to_string_lossy(),
        "bytes": bytes,
        "events": events,
        "kept": kept,
        "command_lines": command_lines,
        "complete": end == End::Complete,
    });
    if is_stdout {
        json_to_stderr(&summary);
        return Ok(());
    }
    json_to_stdout(&summary)
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Where the trace goes.
struct Output {
    name: String,
    bytes: u64,
    /// Whoever reads the pipe has seen enough, which is no error.
    closed: bool,
    to: To,
}

enum To {
    /// Under a name of its own until it is whole, then under this one.
    File(NamedTempFile, PathBuf),
    /// Standard output, a pipe, a device.
    Stream(File),
}

impl Output {
    fn open(path: &Path) -> Result<Self, Failure> {
        if is_stdout(path) {
            if io::stdout().is_terminal() {
                return Err(Failure::new(Kind::Usage, "a trace is not for a terminal")
                    .with_hint("give a file, or a pipe"));
            }
            let name = "standard output".to_owned();
            let stdout = unbuffered_stdout().map_err(|e| cannot_write(&name, &e))?;
            return Ok(Self { name, bytes: 0, closed: false, to: To::Stream(stdout) });
        }
        let name = path.display().to_string();
        let to = Self::place(path).map_err(|e| cannot_write(&name, &e))?;
        if let To::File(file, _) = &to {
            let temporary = file.path().to_owned();
            signals::handle(move |signal| {
                // Whether it is still there or has its final name by now.
                let _ = fs::remove_file(&temporary);
                signals::obey(signal);
            })?;
        }
        Ok(Self { name, bytes: 0, closed: false, to })
    }

    fn place(path: &Path) -> io::Result<To> {
        let there = match fs::metadata(path) {
            Ok(there) if !there.is_file() => return Ok(To::Stream(File::options().write(true).open(path)?)),
            Ok(there) => Some(there.permissions()),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        // Not to put a file in the place of a link, which may lead to what is not there yet. It leads in no circle, or
        // there would be another error.
        let mut path = path.to_owned();
        while let Ok(target) = fs::read_link(&path) {
            path.pop();
            path.push(target);
        }
        if there.is_some() {
            // That it may not be written is to be told now.
            File::options().write(true).open(&path)?;
        }
        let folder =
            path.parent().filter(|folder| *folder != Path::new("")).unwrap_or_else(|| Path::new("."));
        let mut prefix = path.file_name().unwrap_or_else(|| OsStr::new("trace")).to_owned();
        prefix.push(".");
        let mut builder = tempfile::Builder::new();
        // A new file gets what the mask leaves of this.
        #[cfg(unix)]
        builder.permissions(Permissions::from_mode(if there.is_some() { 0o600 } else { 0o666 }));
        let file = builder.prefix(&prefix).tempfile_in(folder)?;
        if let Some(permissions) = there {
            file.as_file().set_permissions(permissions)?;
        }
        Ok(To::File(file, path))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let file = match &mut self.to {
            To::File(file, _) => file.as_file_mut(),
            To::Stream(file) => file,
        };
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        match file.write_all(bytes) {
            Err(e) if e.kind() == ErrorKind::BrokenPipe => self.closed = true,
            result => result.map_err(|e| cannot_write(&self.name, &e))?,
        }
        Ok(())
    }

    /// It is whole. Gives its length.
    fn keep(self) -> Result<u64, Failure> {
        if let To::File(file, path) = self.to {
            file.persist(path).map_err(|e| cannot_write(&self.name, &e.error))?;
        }
        Ok(self.bytes)
    }
}

fn cannot_write(name: &str, e: &io::Error) -> Failure {
    Failure::io(format_args!("cannot write {name}"), e)
}
