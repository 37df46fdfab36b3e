//! A snapshot of a process: the session that makes the runtime write it.
use core::time::Duration;
use std::io;
use std::time::Instant;

use dotnet_ipc_sans_io::syntax::keywords::{self, RUNTIME_PROVIDER};
use dotnet_ipc_sans_io::syntax::provider::ProviderSpec;
use ipc_proto::types::EventLevel;
use ipc_std::{Client, TraceConfig, TraceReader, TraceSession};
use nettrace::{End, EventAssembler, EventOrder, ReadOptions};
use nettrace_analysis::Analysis as _;
use nettrace_analysis::heap::{HeapSnapshot, Snapshots};

use crate::input::trace_file;
use crate::process::connection_args::ConnectionArgs;
use crate::process::target::Target;
use crate::recording::args::LiveArgs;
use crate::recording::progress::Progress;
use crate::recording::session::{self, LiveEvents, LiveSession};
use crate::recording::stopped_session;
use crate::recording::summary::{RecordedAmount, lost_warning};
use crate::run::signals;
use crate::run::{Failure, Globals, Kind};

/// The first version of .NET whose sessions can wait for the tool, so that nothing is lost.
const BLOCKS: u32 = 11;
/// The buffer of the runtime in MB, where it can wait for the tool.
const BLOCKING_BUFFER: u32 = 64;
/// The buffer of older runtimes in MB, which drop events when it is full.
const DROPPING_BUFFER: u32 = 256;
/// How long a collection may take before its first object.
const PATIENCE: Duration = Duration::from_secs(10);

/// Takes a snapshot of a process.
pub(super) fn collect(
    target: Target<'_>,
    buffer: Option<u32>,
    connection: &ConnectionArgs,
    globals: &Globals,
) -> Result<Vec<HeapSnapshot>, Failure> {
    let (client, wire_log) = connection.session_client(target)?;
    let version = client.process_info()?.clr_product_version.to_string();
    let major: Option<u32> = version.split('.').next().and_then(|major| major.parse().ok());
    let default = if major.is_some_and(|major| major >= BLOCKS) { BLOCKING_BUFFER } else { DROPPING_BUFFER };
    // A runtime that waits for the tool answers no other request until its objects are read, not even ResumeRuntime.
    let live = LiveArgs { duration: None, buffer: buffer.unwrap_or(default), no_resume: true };
    let spec = ProviderSpec::new(RUNTIME_PROVIDER, keywords::HEAP_SNAPSHOT, EventLevel::VERBOSE, "");
    let plan = live.plan(vec![spec]).with_snapshot();
    forget_types(&client)?;
    let LiveSession { session, started, resumed, stopping, notes: _notes } =
        session::start(client, &plan, None, globals)?;
    let progress = Progress::of("objects", started, None, stopping);
    let options = ReadOptions { stacks: false, ..ReadOptions::default() };
    let trace = TraceReader::with_assembler(session, EventAssembler::new(EventOrder::BY_TIME, options));
    let patience = connection.timeout.given().unwrap_or(PATIENCE);
    let mut events =
        SnapshotEvents { trace, snapshots: Snapshots::default(), events: 0, progress, started, patience };
    let (end, read) = session::read_events(&mut events);
    let SnapshotEvents { trace, snapshots, events, progress, .. } = events;
    progress.finish();
    // The recording has ended, so from here on a signal ends the tool.
    signals::handle(|_| false)?;
    let session = trace.get_ref();
    let blocks = plan.blocks(session);
    let recorded = RecordedAmount { events, bytes: session.received(), buffer_mb: plan.buffer_mb, blocks };
    if let Some(warning) = lost_warning(trace_file::loss_report(&trace), &recorded) {
        globals.note(&warning);
    }
    resumed.and(read)?;
    let snapshots = snapshots.finish();
    if snapshots.is_empty() {
        session::check_end(end, session, true, target.process_id())?;
        return Err(no_snapshot(major));
    }
    session::report_end(session, globals);
    wire_log.check()?;
    Ok(snapshots)
}

fn no_snapshot(major: Option<u32>) -> Failure {
    let failure = Failure::new(Kind::NothingFound, "the runtime started no collection for a heap snapshot");
    match major {
        Some(8 | 9) => failure.with_hint(
            "a program that .NET 8 or 9 compiled ahead of time never does; compile it with .NET 10 or newer",
        ),
        _ => failure.with_hint("try again with a longer --timeout"),
    }
}

/// Makes the runtime describe all types again: it describes each one once, until a session ends.
fn forget_types(client: &Client) -> Result<(), Failure> {
    let spec = ProviderSpec::new("Microsoft-DotNETCore-EventPipe", 0, EventLevel::CRITICAL, "");
    let providers = [spec.to_provider()];
    let session = client.start_tracing(&TraceConfig::new(&providers))?;
    session.stop();
    stopped_session::read(trace_file::without_stacks(session), |_| {})
}

struct SnapshotEvents {
    trace: TraceReader<TraceSession>,
    snapshots: Snapshots,
    events: u64,
    progress: Progress,
    started: Instant,
    /// How long the first object may take.
    patience: Duration,
}

impl LiveEvents for SnapshotEvents {
    fn advance(&mut self) -> io::Result<Option<End>> {
        let Some(event) = self.trace.next_event()? else { return Ok(self.trace.summary().end) };
        self.snapshots.event(&event);
        self.events = self.events.saturating_add(1);
        let (bytes, lost) = (self.trace.get_ref().received(), trace_file::lost(&self.trace));
        self.progress.update(bytes, self.snapshots.objects(), lost);
        Ok(None)
    }

    /// The session ends with the snapshot. The names of modules follow.
    fn is_done(&self) -> bool {
        self.snapshots.has_ended()
            || (self.snapshots.objects() == 0 && self.started.elapsed() >= self.patience)
    }

    fn session(&mut self) -> &mut TraceSession {
        self.trace.get_mut()
    }
}
