//! `trace`: records what a program does, into a file.
use core::time::Duration;
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};
use ipc_std::{Timeouts, TraceSession};
use serde_json::json;

use crate::failure::{self, Failure};
use crate::live::{self, Live};
use crate::output::{json_to_stderr, json_to_stdout, to_stderr};
use crate::recording::{self, Destination, Options, TICK};
use crate::{Globals, runtime, wire_log};

/// Record what a program does, as a .nettrace file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A trace ends complete: with --duration, Ctrl-C, SIGTERM or SIGHUP the runtime is
asked to stop, and what it then still writes is waited for. A second signal ends
the tool at once. A runtime that is suspended at its start is resumed. What a
runtime is too old for is left out, with a note.

Examples:
  dotnet-ipc trace 4242 -o app.nettrace
  dotnet-ipc trace 4242 -o gc.nettrace --profile gc-verbose --duration 1m30s
  dotnet-ipc trace 4242 -o http.nettrace --provider System.Net.Http::verbose
  dotnet-ipc trace 4242 -o - --duration 5s --provider \\
      'System.Runtime:0:4:EventCounterIntervalSec=1' | xz > counters.xz
  dotnet-ipc trace 4242 -o starts.nettrace --provider System.Net.Http \\
      --event-ids System.Net.Http=+1,2 --buffering block")]
pub(crate) struct Args {
    #[command(flatten)]
    target: runtime::Target,
    /// Where to; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    wire_log: wire_log::LogFile,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let wishes = args.options.wishes()?;
    let wire_log = args.wire_log.open()?;
    let timeouts = Timeouts { silence: TICK, ..globals.limits.timeouts() };
    let client = args.target.client(timeouts, &wire_log)?;
    let mut file = Destination::open(&args.output)?;

    let live = live::start(client, &wishes, Some(&file), globals).inspect_err(|_| file.abandon())?;
    let Live { mut session, started, resumed } = live;
    let progress = progress();
    let recorded = recording::record(&mut session, &mut file, |session| {
        progress.set_position(session.received());
    });
    progress.finish_and_clear();
    let elapsed = started.elapsed();
    let complete = session.is_complete() && recorded.is_ok();
    summarize(&session, &file, elapsed, complete, globals)?;
    resumed.and(recorded)?;
    recording::check_end(&session, args.options.no_resume, &file)?;
    live::remark_end(&session, globals);
    wire_log.check()
}

/// What came of it, in a line.
fn summarize(
    session: &TraceSession,
    file: &Destination,
    elapsed: Duration,
    complete: bool,
    globals: &Globals,
) -> Result<(), Failure> {
    let bytes = session.received();
    let seconds = elapsed.as_secs_f64();
    if !globals.output.json {
        let command = failure::name_of(session.command());
        to_stderr(&format!("{bytes} bytes in {seconds:.1} s ({command}) to {file}"));
        return Ok(());
    }
    let summary = json!({
        "file": file.path.to_string_lossy(),
        "bytes": bytes,
        "seconds": seconds,
        "complete": complete,
        "session_id": session.session_id(),
        "command": failure::name_of(session.command()),
    });
    if file.is_stdout() {
        json_to_stderr(&summary);
        return Ok(());
    }
    json_to_stdout(&summary)
}

/// Shows how it goes, if standard error is a terminal.
fn progress() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {bytes} in {elapsed}, Ctrl-C ends it") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(TICK);
    bar
}
