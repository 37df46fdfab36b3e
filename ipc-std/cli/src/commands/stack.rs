//! `stack`: shows the stacks of a process at this moment.
mod groups;
mod rundown;
mod rundown_cache;
mod sampler;
mod shown_frames;
mod thread_stack;

use core::time::Duration;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Instant;

use ipc_std::{Client, ErrorKind};
use nettrace_analysis::account::ThreadState;
use nettrace_analysis::names::{FrameId, Names};
use serde::Serialize;

use self::rundown::Rundown;
use self::rundown_cache::CachedRundown;
use self::sampler::{Recorded, Sampler};
use self::shown_frames::ShownFrames;
use self::thread_stack::Stack;
use crate::args::frame_args::FrameArgs;
use crate::output::integer::Integer;
use crate::output::live_stdout::LiveStdout;
use crate::output::stdout::{show_next, to_open_stdout};
use crate::process::connection_args::ConnectionArgs;
use crate::process::target::TargetArgs;
use crate::recording::session_failure::exited;
use crate::run::signals;
use crate::run::{Failure, Globals, Kind};
use crate::text::columns::terminal_width;
use crate::text::printable::json_line;

/// Show what each managed thread of a process does now: its stack, innermost method first
#[derive(Debug, clap::Args)]
#[command(mut_arg("timeout", |arg| arg.help("Give up after DURATION when starting a session, and again when ending it [default: 10s, 2m]")))]
#[command(after_help = include_str!("stack.txt"))]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
    /// Show the stacks again each second, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Show threads with the same stack as one entry [default: for more than 20 threads as text]
    #[arg(long, conflicts_with = "no_group")]
    group: bool,
    /// Show each thread, however many there are
    #[arg(long)]
    no_group: bool,
    /// Neither use nor store names in the cache folder
    #[arg(long)]
    no_cache: bool,
    /// Show methods without module and arguments
    #[arg(long)]
    short: bool,
    #[command(flatten)]
    frames: FrameArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// With more threads, text shows groups.
const UNGROUPED: usize = 20;

/// The time between two outputs of `--watch`.
const INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (client, wire_log) = args.connection.client(args.target.target())?;
    // With `--watch`, each sample has the timeouts of a session.
    let client = if args.watch { client.with_deadline(None) } else { client };
    let sampler = Sampler { client, process_id: args.target.target().process_id(), globals };
    let cached = if args.no_cache { None } else { cached_rundown(&sampler.client)? };
    let mut rundown = cached.as_ref().and_then(|cached| {
        let mut recorded = Recorded::read(cached.open()?)?;
        let stacks = recorded.take_stacks();
        finish(&mut recorded.rundown, stacks, args).ok()?;
        Some(recorded.rundown)
    });
    let mut watch = StackWatch::default();
    loop {
        let began = Instant::now();
        let sample = |with_rundown| sampler.sample(with_rundown).map_err(|failure| watch.explain(failure));
        // Without a rundown the sample is faster. But a method that was compiled since the last rundown has no name
        // then.
        let mut unmanaged = None;
        let later = match &mut rundown {
            Some(rundown) => {
                let mut recorded = sample(false)?;
                unmanaged = recorded.unmanaged;
                rundown.later(recorded.take_stacks())
            }
            None => None,
        };
        let is_open = match (later, &rundown) {
            (Some(stacks), Some(rundown)) => {
                watch.begin(args)?;
                show(&stacks, unmanaged, &rundown.names, args, globals)?
            }
            _ => {
                let mut recorded = sample(true)?;
                let stacks = recorded.take_stacks();
                let trace = recorded.trace.take();
                let rundown = rundown.insert(recorded.rundown);
                let stacks = finish(rundown, stacks, args)?;
                watch.begin(args)?;
                let is_open = show(&stacks, recorded.unmanaged, &rundown.names, args, globals)?;
                if let (Some(cached), Some(trace)) = (&cached, trace) {
                    // A failure is ignored, because the cache only saves time.
                    let _ = cached.replace(&trace);
                }
                is_open
            }
        };
        wire_log.check()?;
        if !is_open || watch.is_over(INTERVAL.saturating_sub(began.elapsed())) {
            return Ok(());
        }
    }
}

/// Names the stacks that were sampled with a rundown.
fn finish(
    rundown: &mut Rundown,
    stacks: Vec<Stack<u64>>,
    args: &Args,
) -> Result<Vec<Stack<FrameId>>, Failure> {
    args.frames.prepare(&mut rundown.names);
    for ip in stacks.iter().flat_map(|stack| &stack.frames) {
        rundown.names.address(0, *ip);
    }
    args.frames.names.symbols.name_native(&mut rundown.names)?;
    Ok(rundown.finish(stacks))
}

/// The state of `--watch`, which begins when the first stacks are shown.
#[derive(Debug, Default)]
struct StackWatch {
    /// Receives the first signal.
    signal: Option<Receiver<()>>,
}

impl StackWatch {
    /// Begins `--watch`, if the option is given. Before that, the first signal ends the tool; from then on, only the
    /// second one.
    fn begin(&mut self, args: &Args) -> Result<(), Failure> {
        if args.watch && self.signal.is_none() {
            let (sender, signal) = mpsc::sync_channel(1);
            signals::handle(move |_| sender.try_send(()).is_ok())?;
            self.signal = Some(signal);
            LiveStdout::begin()?;
        }
        Ok(())
    }

    /// Waits until the next stacks are due. Returns `true` if there are none: without `--watch`, or after a signal.
    fn is_over(&self, pause: Duration) -> bool {
        let next = |signal: &Receiver<()>| signal.recv_timeout(pause) == Err(RecvTimeoutError::Timeout);
        !self.signal.as_ref().is_some_and(next)
    }

    /// Returns why there are no stacks. A process that had some before, and does not listen now or ends the connection,
    /// has exited.
    fn explain(&self, failure: Failure) -> Failure {
        match failure.kind() {
            Kind::NotFound | Kind::NoListener | Kind::Gone if self.signal.is_some() => exited(),
            _ => failure,
        }
    }
}

/// Returns the place of the process in the cache; `None` for runtimes before .NET 5, which have no cookie. Fails if the
/// runtime does not answer in time: the session would only wait for as long again.
fn cached_rundown(client: &Client) -> Result<Option<CachedRundown>, Failure> {
    let Some(folder) = rundown_cache::folder() else { return Ok(None) };
    match client.process_info() {
        Ok(info) => Ok(Some(CachedRundown::new(folder, info.process_id, info.runtime_cookie))),
        Err(e) if e.kind() == ErrorKind::Timeout => Err(e.into()),
        Err(_) => Ok(None),
    }
}

/// A thread as JSON.
#[derive(Serialize)]
struct ThreadStackRow<'s> {
    thread_id: Integer,
    thread_name: Option<&'s str>,
    state: &'static str,
    frames: Vec<String>,
    own: Vec<bool>,
}

/// Writes the stacks. Returns whether the reader wants the next ones.
fn show(
    stacks: &[Stack<FrameId>],
    unmanaged: Option<usize>,
    names: &Names,
    args: &Args,
    globals: &Globals,
) -> Result<bool, Failure> {
    let width = terminal_width().unwrap_or(usize::MAX);
    let shown = ShownFrames { names, is_raw: args.frames.raw, is_short: args.short, width };
    let is_grouped = args.group || !(args.no_group || globals.json) && stacks.len() > UNGROUPED;
    let is_open = to_open_stdout(|out| {
        if is_grouped {
            groups::write(stacks, &shown, globals.json, out)?;
        }
        for (number, stack) in stacks.iter().enumerate().filter(|_| !is_grouped) {
            if globals.json {
                let (frames, own) = shown.to_json(&stack.frames);
                let line = ThreadStackRow {
                    thread_id: Integer(stack.thread_id),
                    thread_name: stack.own_name(names),
                    state: if stack.runs(names) { "managed" } else { "external" },
                    frames,
                    own,
                };
                writeln!(out, "{}", json_line(&line))?;
                continue;
            }
            if number > 0 {
                writeln!(out)?;
            }
            writeln!(out, "Thread {}", stack.thread(names))?;
            shown.write(stack.runs(names), &stack.frames, out)?;
        }
        if let (Some(count @ 1..), false) = (unmanaged, globals.json) {
            let threads =
                if count == 1 { "1 other thread has" } else { &format!("{count} other threads have") };
            writeln!(out, "\n{threads} no managed code")?;
        }
        if args.watch && !globals.json {
            writeln!(out, "\n---\n")?;
        }
        Ok(())
    })?;
    let waits = |stack: &Stack<FrameId>| stack.state(names) == ThreadState::Lock;
    if !args.watch && stacks.iter().any(waits) {
        show_next(&format!("dotnet-ipc locks {}", args.target.target().argument()), globals)?;
    }
    Ok(is_open)
}
