//! A snapshot of a process: the session that makes the runtime write it.
use core::time::Duration;
use std::io;
use std::time::Instant;

use dotnet_ipc_sans_io::syntax::keywords::{self, RUNTIME_PROVIDER};
use dotnet_ipc_sans_io::syntax::provider::ProviderSpec;
use ipc_proto::types::EventLevel;
use ipc_std::{Client, TraceReader, TraceSession};
use nettrace::{End, EventAssembler, EventOrder, ReadOptions};
use nettrace_analysis::counters::{CounterConfig, CounterEvent, Selection, System};
use nettrace_analysis::heap::{HeapSnapshot, Snapshots};
use nettrace_analysis::{Analysis as _, KnownProvider};

use crate::input::trace_file;
use crate::output::output_file::OverwriteArgs;
use crate::process::connection_args::ConnectionArgs;
use crate::process::memory;
use crate::process::target::Target;
use crate::recording::args::LiveArgs;
use crate::recording::progress::Progress;
use crate::recording::rundown;
use crate::recording::session::{self, LiveEvents, LiveSession};
use crate::recording::session_failure::{is_suspended, read_failure, suspended};
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
/// How long the next objects may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The size of a heap in MB from which on it is recorded only with `--force`.
const LARGE: u32 = 4_000;
/// How long a runtime may take to report the size of its heap.
const SIZE_PATIENCE: Duration = Duration::from_secs(1);

/// The options of a snapshot of a process.
#[derive(Debug, clap::Args)]
pub(super) struct CollectionArgs {
    /// Size of the runtime's event buffer in MB, in the memory of the process [default: 64 since .NET 11, else 256]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..))]
    buffer: Option<u32>,
    /// Stop the program for a snapshot even if its heap has more than 4 GB
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// The snapshots of a process or a trace, and a failure if its end is missing.
pub(super) type Collected = (Vec<HeapSnapshot>, Result<(), Failure>);

impl CollectionArgs {
    /// Returns whether there is an option that does not apply to a file.
    pub(super) const fn is_used(&self) -> bool {
        self.buffer.is_some() || self.force || self.connection.is_used()
    }

    /// Returns the options of a file that exists.
    pub(super) const fn overwrite(&self) -> &OverwriteArgs {
        &self.connection.wire_log.overwrite
    }

    /// Takes a snapshot of a process, and says before what it costs.
    pub(super) fn collect(&self, target: Target<'_>, globals: &Globals) -> Result<Collected, Failure> {
        let Self { connection, .. } = self;
        let (client, wire_log) = connection.session_client(target)?;
        let version = client.process_info()?.clr_product_version.to_string();
        let major: Option<u32> = version.split('.').next().and_then(|major| major.parse().ok());
        // Each of the sessions can take as long as `--timeout` states.
        let client = client.with_deadline(None);
        self.check_size(&client, target)?;
        let buffer = self.buffer(major, target, globals);
        // A suspended runtime has no objects yet, and takes no snapshot after it is resumed.
        let live = LiveArgs { duration: None, buffer, no_resume: true };
        let spec = ProviderSpec::new(RUNTIME_PROVIDER, keywords::HEAP_SNAPSHOT, EventLevel::VERBOSE, "");
        let plan = live.plan(vec![spec]).with_snapshot();
        forget_types(&client, major, target.process_id())?;
        let LiveSession { session, started, resumption, stopping, notes: _notes } =
            session::start(client, &plan, None, globals)?;
        let progress = Progress::of("objects", started, None, stopping);
        let options = ReadOptions { stacks: false, ..ReadOptions::default() };
        let trace = TraceReader::with_assembler(session, EventAssembler::new(EventOrder::BY_TIME, options));
        let patience = connection.timeout.given().unwrap_or(PATIENCE);
        let mut events = SnapshotEvents {
            trace,
            snapshots: Snapshots::default(),
            events: 0,
            progress,
            arrived: started,
            patience,
        };
        let (end, read) = session::read_events(&mut events);
        let SnapshotEvents { trace, snapshots, events, progress, .. } = events;
        progress.finish();
        // The recording has ended, so from here on a signal ends the tool.
        signals::handle(|_| false)?;
        let session = trace.get_ref();
        let (bytes, blocks) = (session.received(), plan.blocks(session));
        let recorded = RecordedAmount { events, bytes, buffer_mb: plan.buffer_mb, blocks };
        if let Some(warning) = lost_warning(trace_file::loss_report(&trace), &recorded) {
            globals.note(&warning);
        }
        if let Some(enough) = enough_mb(bytes, events, trace_file::lost(&trace)).filter(|_| !blocks) {
            globals.note(&format!("--buffer {enough} has room for all events of this snapshot"));
        }
        let snapshots = snapshots.finish();
        let check = || {
            resumption.check().and(read)?;
            session::check_end(end, session, true, target.process_id())?;
            if !snapshots.is_empty() {
                session::report_end(session, globals);
            }
            wire_log.check()
        };
        let read = check();
        if snapshots.is_empty() {
            return Err(read.err().unwrap_or_else(|| no_snapshot("try again with a longer --timeout")));
        }
        Ok((snapshots, read))
    }

    /// Returns the size of the event buffer in MB: at most half of what the memory limit of the container leaves.
    fn buffer(&self, major: Option<u32>, target: Target<'_>, globals: &Globals) -> u32 {
        let default =
            if major.is_some_and(|major| major >= BLOCKS) { BLOCKING_BUFFER } else { DROPPING_BUFFER };
        let wanted = self.buffer.unwrap_or(default);
        let left = target.process_id().and_then(memory::left_by_limit);
        let most = left.map_or(u32::MAX, |bytes| u32::try_from(bytes >> 21).unwrap_or(u32::MAX).max(1));
        let (buffer, why) = match wanted <= most {
            true => (wanted, ""),
            false => (most, ", half of what the memory limit of its container leaves"),
        };
        globals.note(&format!(
            "a heap snapshot stops the program for a full collection, and until all objects are written; the event \
             buffer takes up to {buffer} MB of the memory of the process{why}"
        ));
        buffer
    }

    /// Fails if the heap is so large that a snapshot stops the program for long.
    fn check_size(&self, client: &Client, target: Target<'_>) -> Result<(), Failure> {
        // A heap is mostly smaller than the memory of its process, which the system shows at once.
        let resident = target.process_id().and_then(memory::resident);
        if self.force || resident.is_some_and(|bytes| bytes / 1_000_000 <= LARGE.into()) {
            return Ok(());
        }
        let Some(size) = heap_size(client)?.filter(|size| *size > LARGE.into()) else { return Ok(()) };
        let size = size / 1000.0;
        let text = format!("the heap has {size:.1} GB, so a snapshot would stop the program for long");
        Err(Failure::new(Kind::Danger, text).with_hint("pass --force to take it anyway"))
    }
}

/// Returns the size of the heap in MB, as the runtime counts it; `None` if the runtime sends no counter.
fn heap_size(client: &Client) -> Result<Option<f64>, Failure> {
    let system = Some(System::EventCounter);
    let selection =
        Selection { provider: "System.Runtime".to_owned(), name: Some("gc-heap-size".to_owned()), system };
    let interval = Duration::from_millis(100);
    let config = CounterConfig { selections: vec![selection], interval, ..CounterConfig::default() };
    let mut counters = client.start_counters(&config)?;
    let started = Instant::now();
    while started.elapsed() < SIZE_PATIENCE {
        match counters.next_event() {
            Ok(Some(CounterEvent::Sample(sample))) => return Ok(sample.value()),
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(e) => read_failure(counters.session(), e)?,
        }
    }
    Ok(None)
}

/// Returns the size of a buffer with room for all events, if events were lost: a power of two, a quarter larger than the
/// events, because threads do not fill their parts.
fn enough_mb(bytes: u64, events: u64, lost: u64) -> Option<u64> {
    let all = u128::from(bytes).saturating_mul(u128::from(events.saturating_add(lost)));
    let needed = all.checked_div(events.into())?.saturating_mul(5) / (4 << 20);
    let needed = u64::try_from(needed).ok()?;
    (lost > 0).then(|| needed.saturating_add(1).next_power_of_two())
}

fn no_snapshot(hint: &str) -> Failure {
    Failure::new(Kind::NothingFound, "the runtime started no collection for a heap snapshot").with_hint(hint)
}

/// Makes the runtime describe all types again: it describes each one once, until a session ends. Fails for a program that
/// .NET 8 or 9 compiled ahead of time, which has no rundown and records no heap, and for a suspended runtime.
fn forget_types(client: &Client, major: Option<u32>, process_id: Option<u32>) -> Result<(), Failure> {
    let mut trace = trace_file::without_stacks(rundown::start(client, rundown::MODULES)?);
    let mut has_rundown = false;
    stopped_session::read(&mut trace, |event| {
        let provider = event.metadata().and_then(|metadata| KnownProvider::of(metadata.provider));
        has_rundown |= provider == Some(KnownProvider::Rundown);
    })?;
    if is_suspended(trace.get_ref(), process_id) {
        return Err(suspended("has no objects"));
    }
    match major {
        Some(8 | 9) if !has_rundown => Err(no_snapshot(
            "a program that .NET 8 or 9 compiled ahead of time never does; compile it with .NET 10 or newer",
        )),
        _ => Ok(()),
    }
}

struct SnapshotEvents {
    trace: TraceReader<TraceSession>,
    snapshots: Snapshots,
    events: u64,
    progress: Progress,
    /// When the last objects arrived.
    arrived: Instant,
    /// How long the next objects may take.
    patience: Duration,
}

impl LiveEvents for SnapshotEvents {
    fn advance(&mut self) -> io::Result<Option<End>> {
        let Some(event) = self.trace.next_event()? else { return Ok(self.trace.summary().end) };
        let before = self.snapshots.objects();
        self.snapshots.event(&event);
        if self.snapshots.objects() != before {
            self.arrived = Instant::now();
        }
        self.events = self.events.saturating_add(1);
        let (bytes, lost) = (self.trace.get_ref().received(), trace_file::lost(&self.trace));
        self.progress.update(bytes, self.snapshots.objects(), lost);
        Ok(None)
    }

    /// The session ends with the snapshot. The names of modules follow.
    fn is_done(&self) -> bool {
        self.snapshots.has_ended() || self.arrived.elapsed() >= self.patience
    }

    fn session(&mut self) -> &mut TraceSession {
        self.trace.get_mut()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_buffer_with_room_for_all_events() {
        assert_eq!(super::enough_mb(100 << 20, 1000, 0), None);
        assert_eq!(super::enough_mb(0, 0, 5), None);
        assert_eq!(super::enough_mb(100 << 20, 1000, 1), Some(128));
        assert_eq!(super::enough_mb(100 << 20, 1000, 3000), Some(512));
        assert_eq!(super::enough_mb(1, 1, 1), Some(1));
    }
}
