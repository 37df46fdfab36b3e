//! `stack`: the stacks of a process, now.
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Instant;

use ipc_proto::nettrace::{End, TraceEvent};
use ipc_proto::types::{EventLevel, Provider};
use ipc_std::{Client, TraceConfig, TraceReader};
use nettrace_analysis::KnownProvider;
use nettrace_analysis::names::{FrameId, Names};
use serde_json::json;

use crate::failure::{Failure, Kind};
use crate::globals::Globals;
use crate::printable::{json_line, printable_name};
use crate::stdout::to_stdout;
use crate::target::{Target, TargetArgs};
use crate::timeout_args::TimeoutArgs;
use crate::wire_log::WireLogArgs;
use crate::{recording, source};

/// Show what each managed thread of a process does now: its stack, innermost method first
#[derive(Debug, clap::Args)]
#[command(mut_arg("timeout", |arg| arg.help("Give up after DURATION when starting a session, and again when ending it [default: 10s, 2m]")))]
#[command(after_help = "\
The runtime stops all threads for about a millisecond to record their stacks,
and then sends the names of all methods: some megabytes. The program runs on
meanwhile. A suspended runtime has no threads yet, and is not resumed.

\"[outside managed code]\" means that the thread waits, or runs native code that
the method below it has called. Threads without managed code are not shown.
\"?!?\" is code that the runtime does not name, such as its host.

With --json, a line is a thread: {\"thread_id\", \"thread_name\", \"state\",
\"frames\"}. The state is \"managed\" or \"external\". The operating system has the
name; it is null with --name and --socket, and where it is not known.

Examples:
  dotnet-ipc stack 4242
  dotnet-ipc stack 4242 --watch
  dotnet-ipc stack --name Shop --json | jq -r '.frames[0]' | sort | uniq -c")]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
    /// Show the stacks again each second, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Show methods without module and arguments
    #[arg(long)]
    short: bool,
    #[command(flatten)]
    timeout: TimeoutArgs,
    #[command(flatten)]
    wire_log: WireLogArgs,
}

/// The time from one `--watch` to the next.
const INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let wire_log = args.wire_log.open()?;
    let sampler = Sampler {
        client: args.target.client(args.timeout.timeouts(), &wire_log)?,
        process_id: match args.target.target() {
            Target::ProcessId(process_id) => Some(process_id),
            Target::Name(_) | Target::Socket(_) => None,
        },
        globals,
    };
    let mut rundown: Option<Rundown> = None;
    loop {
        let began = Instant::now();
        // Without the rundown it is faster, but a method that was compiled since then has no name.
        let later = match &mut rundown {
            Some(rundown) => rundown.lasting_frames(sampler.sample(None)?),
            None => None,
        };
        match (later, &rundown) {
            (Some(stacks), Some(rundown)) => show(&stacks, &rundown.lasting, args, globals)?,
            _ => {
                let rundown = rundown.insert(Rundown::default());
                let stacks = sampler.sample(Some(rundown))?;
                let stacks = rundown.frames(stacks);
                show(&stacks, &rundown.all, args, globals)?;
            }
        }
        wire_log.check()?;
        if !args.watch {
            return Ok(());
        }
        thread::sleep(INTERVAL.saturating_sub(began.elapsed()));
    }
}

/// What a thread did when it was sampled. Its frames are addresses, or named.
struct Stack<F> {
    thread_id: u64,
    thread_name: Option<String>,
    is_managed: bool,
    /// The innermost first.
    frames: Vec<F>,
}

/// Records the stacks of a process.
struct Sampler<'g> {
    client: Client,
    /// The process of the command line, if it has one.
    process_id: Option<u32>,
    globals: &'g Globals,
}

impl Sampler<'_> {
    /// How long the runtime samples. It needs a millisecond, .NET 11 ten, and more on a busy machine.
    const DURATIONS: [Duration; 3] =
        [Duration::from_millis(30), Duration::from_millis(300), Duration::from_secs(3)];
    /// The keywords Loader, Jit, NGen and ForceEndRundown: methods and modules without maps of their instructions.
    const RUNDOWN: u64 = 0x138;
    const MAX_THREADS: usize = 1 << 14;
    /// Runtimes record at most 100.
    const MAX_FRAMES: usize = 256;

    /// Returns the stack of each thread, with the names of methods in `rundown` if there is one.
    fn sample(&self, mut rundown: Option<&mut Rundown>) -> Result<Vec<Stack<u64>>, Failure> {
        for duration in Self::DURATIONS {
            let stacks = self.sample_for(duration, rundown.as_deref_mut())?;
            if !stacks.is_empty() {
                return Ok(stacks);
            }
        }
        let failure = Failure::new(Kind::Other, "the runtime sent no stacks");
        Err(failure.with_hint("a program that was compiled ahead of time sends them since .NET 10"))
    }

    fn sample_for(
        &self,
        duration: Duration,
        mut rundown: Option<&mut Rundown>,
    ) -> Result<Vec<Stack<u64>>, Failure> {
        let providers = [Provider {
            keywords: 0,
            level: EventLevel::INFORMATIONAL,
            name: KnownProvider::SampleProfiler.name().into(),
            arguments: "".into(),
        }];
        let session = self.client.start_tracing(&TraceConfig {
            rundown_keyword: if rundown.is_some() { Self::RUNDOWN } else { 0 },
            ..TraceConfig::new(&providers)
        })?;
        let stopper = session.stopper();
        thread::sleep(duration);
        stopper.stop();
        let mut trace = TraceReader::new(session);
        let mut stacks: BTreeMap<u64, Stack<u64>> = BTreeMap::new();
        loop {
            let event = match trace.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(e) => {
                    recording::read_failure(trace.get_ref(), e)?;
                    continue;
                }
            };
            if let Some(rundown) = &mut rundown {
                rundown.event(&event);
            }
            let has_room = stacks.len() < Self::MAX_THREADS;
            if let Some(is_managed) = sampled(&event).filter(|_| has_room) {
                let thread_id = event.thread_id();
                stacks.entry(thread_id).or_insert_with(|| Stack {
                    thread_id,
                    thread_name: None,
                    is_managed,
                    frames: event.stack().take(Self::MAX_FRAMES).collect(),
                });
            }
        }
        if let lost @ 1.. = trace.lost().saturating_add(trace.lost_at_start()) {
            self.globals.note(&format!("{lost} events were lost, so that threads or names may be missing"));
        }
        let is_here = trace.trace().is_some_and(|trace| trace.process_id == self.process_id);
        match trace.end() {
            Some(End::Truncated { offset: 0, .. }) if trace.get_ref().stop_error().is_none() => {
                let failure = Failure::new(Kind::Other, "the runtime is suspended: it has no threads yet");
                return Err(failure.with_hint("start the program with `dotnet-ipc resume`"));
            }
            Some(End::Truncated { .. }) => return Err(Failure::new(Kind::Gone, "the process exited")),
            end => source::check(end.unwrap_or(End::Complete), "the runtime")?,
        }
        let mut stacks: Vec<_> = stacks.into_values().collect();
        if let (true, Some(process_id)) = (is_here, self.process_id) {
            stacks.iter_mut().for_each(|stack| stack.thread_name = thread_name(process_id, stack.thread_id));
        }
        Ok(stacks)
    }
}

/// Returns whether the thread of a sample runs managed code; `None` for other events.
fn sampled(event: &TraceEvent<'_>) -> Option<bool> {
    const EXTERNAL: [u8; 4] = [1, 0, 0, 0];
    const MANAGED: [u8; 4] = [2, 0, 0, 0];
    if KnownProvider::of(event.metadata()?.provider)? != KnownProvider::SampleProfiler {
        return None;
    }
    match *event.header.payload.first_chunk()? {
        EXTERNAL => Some(false),
        MANAGED => Some(true),
        _ => None,
    }
}

/// Returns the name that the operating system has for a thread. Linux stores 15 bytes of it.
#[cfg(target_os = "linux")]
fn thread_name(process_id: u32, thread_id: u64) -> Option<String> {
    let name = std::fs::read(format!("/proc/{process_id}/task/{thread_id}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
}

#[cfg(not(target_os = "linux"))]
const fn thread_name(_process_id: u32, _thread_id: u64) -> Option<String> {
    None
}

/// The names of a process when it was asked for them.
#[derive(Default)]
struct Rundown {
    all: Names,
    /// The names without those of dynamic methods, whose addresses can have other code at any time.
    lasting: Names,
    /// The addresses without a name.
    nameless: BTreeSet<u64>,
}

impl Rundown {
    /// The flag of a method that is freed when nothing refers to it.
    const DYNAMIC: u64 = 1;

    fn event(&mut self, event: &TraceEvent<'_>) {
        self.all.event(event);
        let flags = event.field("MethodFlags").and_then(|flags| flags.as_u64()).unwrap_or_default();
        // The runtime's own stubs for calls of native code are dynamic too, but stay.
        let name = event.field("MethodName").and_then(|name| name.as_str());
        let is_stub = name.is_some_and(|name| name.chars().take(7).eq("IL_STUB".chars()));
        if flags & Self::DYNAMIC == 0 || is_stub {
            self.lasting.event(event);
        }
    }

    /// Names the stacks that were sampled with the rundown, by `all`.
    fn frames(&mut self, stacks: Vec<Stack<u64>>) -> Vec<Stack<FrameId>> {
        let Self { all, nameless, .. } = self;
        let mut name = |ip| {
            let address = all.address(0, ip);
            let frame = all.frame(address);
            if !all.is_named(frame) {
                nameless.insert(ip);
            }
            frame
        };
        stacks.into_iter().map(|stack| stack.map(&mut name)).collect()
    }

    /// Names stacks that were sampled later, by `lasting`. `None` if the name of an address is not known.
    fn lasting_frames(&mut self, stacks: Vec<Stack<u64>>) -> Option<Vec<Stack<FrameId>>> {
        let Self { lasting, nameless, .. } = self;
        let mut is_known = true;
        let mut name = |ip| {
            let address = lasting.address(0, ip);
            let frame = lasting.frame(address);
            is_known &= lasting.is_named(frame) || nameless.contains(&ip);
            frame
        };
        let stacks = stacks.into_iter().map(|stack| stack.map(&mut name)).collect();
        is_known.then_some(stacks)
    }
}

impl Stack<u64> {
    fn map(self, name: impl FnMut(u64) -> FrameId) -> Stack<FrameId> {
        let Self { thread_id, thread_name, is_managed, frames } = self;
        Stack { thread_id, thread_name, is_managed, frames: frames.into_iter().map(name).collect() }
    }
}

fn show(stacks: &[Stack<FrameId>], names: &Names, args: &Args, globals: &Globals) -> Result<(), Failure> {
    let name =
        |frame: &FrameId| printable_name(if args.short { names.short(*frame) } else { names.text(*frame) });
    to_stdout(|out| {
        for (number, stack) in stacks.iter().enumerate() {
            let Stack { thread_id, thread_name, is_managed, frames } = stack;
            if globals.json {
                let line = json!({
                    "thread_id": thread_id,
                    "thread_name": thread_name,
                    "state": if *is_managed { "managed" } else { "external" },
                    "frames": frames.iter().map(name).collect::<Vec<_>>(),
                });
                writeln!(out, "{}", json_line(&line))?;
                continue;
            }
            if number > 0 {
                writeln!(out)?;
            }
            match thread_name {
                Some(name) => writeln!(out, "Thread {thread_id} ({})", printable_name(name))?,
                None => writeln!(out, "Thread {thread_id}")?,
            }
            if !is_managed {
                writeln!(out, "    [outside managed code]")?;
            }
            frames.iter().try_for_each(|frame| writeln!(out, "    {}", name(frame)))?;
        }
        if args.watch && !globals.json {
            writeln!(out, "\n---\n")?;
        }
        Ok(())
    })
}
