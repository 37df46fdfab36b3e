//! The session that `top` shows: a thread reads its events, and sends a period each second.
use core::time::Duration;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Instant;

use dotnet_ipc_sans_io::syntax::keywords;
use dotnet_ipc_sans_io::syntax::provider::ProviderSpec;
use ipc_proto::types::EventLevel;
use ipc_std::{Client, TraceConfig, TraceReader, TraceSession};
use nettrace::{End, EventAssembler, EventOrder, ReadOptions};
use nettrace_analysis::Analysis as _;
use nettrace_analysis::KnownProvider;
use nettrace_analysis::live::Live;

use super::message::{Message, Period};
use crate::args::frame_args::FrameArgs;
use crate::input::trace_file;
use crate::process::cpu_usage::CpuTime;
use crate::recording::rundown;
use crate::recording::session_failure::{
    NO_THREADS, check_stream, exited, is_suspended, read_failure, suspended,
};
use crate::run::Failure;
use crate::run::threads::spawn;

/// The length of a period.
const PERIOD: Duration = Duration::from_secs(1);
/// A last period that is shorter is not shown, unless it is the only one. The sums since the start are shown anyway,
/// because they must count all events.
const HALF: Duration = Duration::from_millis(500);

/// Starts the session.
///
/// The session has no event filter. With a filter that leaves out other events of the collector, .NET 10 sends no
/// allocations after the first collection.
pub(super) fn start(client: &Client) -> Result<TraceSession, Failure> {
    let keywords = keywords::GC | keywords::LOADER | keywords::JIT | keywords::NGEN | keywords::EXCEPTION;
    let providers = [
        ProviderSpec::new(KnownProvider::SampleProfiler.name(), 0, EventLevel::INFORMATIONAL, ""),
        // .NET 10 sends names of methods only at this level, and allocations have it on all runtimes.
        ProviderSpec::new(KnownProvider::Runtime.name(), keywords, EventLevel::VERBOSE, ""),
    ];
    let providers = providers.each_ref().map(ProviderSpec::to_provider);
    let config = TraceConfig { rundown_keyword: 0, ..TraceConfig::new(&providers) };
    Ok(client.start_tracing(&config)?)
}

/// Reads the names of the process, and then the session, on a thread of its own. Its last message is
/// [`Message::Ended`].
pub(super) fn read_in_background(
    client: Client,
    session: TraceSession,
    live: Live,
    process_id: Option<u32>,
    messages: SyncSender<Message>,
    since_start: bool,
    frames: FrameArgs,
) -> Result<(), Failure> {
    let reader = spawn("reader", move || {
        let stopper = session.stopper();
        let assembler = EventAssembler::new(EventOrder::BY_TIME, ReadOptions::default());
        let mut reader = Reader {
            trace: TraceReader::with_assembler(session, assembler),
            live,
            lost: 0,
            cpu: [None; 2],
            process_id,
            messages,
            since_start,
            frames,
        };
        // The names are read after the session has begun, so that no method is compiled in between.
        let named = rundown::read(&client, |row| reader.live.names_mut().event(row));
        reader.cpu = [process_id.and_then(CpuTime::of); 2];
        match named {
            // An error means that the tool is ending: there is no receiver.
            Ok(()) => _ = reader.messages.send(Message::Named),
            Err(_) => stopper.stop(),
        }
        let read = reader.read();
        // The main thread receives messages until this one.
        let _ = reader.messages.send(Message::Ended(named.and(read)));
    });
    reader.map(drop)
}

struct Reader {
    trace: TraceReader<TraceSession>,
    live: Live,
    /// The number of events that were lost before the current period.
    lost: u64,
    /// The CPU time of the process at the start of the period and of the session, if this system shows it.
    cpu: [Option<CpuTime>; 2],
    /// The process of the command line, if it has one.
    process_id: Option<u32>,
    messages: SyncSender<Message>,
    /// Whether the sums since the start are shown.
    since_start: bool,
    frames: FrameArgs,
}

impl Reader {
    /// Reads up to the end of the session.
    fn read(&mut self) -> Result<(), Failure> {
        /// The clock is read once for this many events.
        const EVENTS: u32 = 64;
        let (mut began, mut count) = (Instant::now(), 0_u32);
        let mut is_first = true;
        loop {
            match self.trace.next_event() {
                Ok(Some(event)) => {
                    self.live.event(&event);
                    count = count.wrapping_add(1);
                    if count % EVENTS != 0 {
                        continue;
                    }
                }
                Ok(None) => break,
                Err(e) => read_failure(self.trace.get_ref(), e)?,
            }
            let elapsed = began.elapsed();
            if elapsed < PERIOD {
                continue;
            }
            if self.live.has_events() {
                let period = self.next_period();
                let [_, lost] = period.lost;
                if self.send(Message::Period(period)) {
                    self.lost = lost;
                }
                is_first = false;
                began = Instant::now();
            } else {
                self.send(Message::Silent(elapsed, self.is_suspended()));
            }
        }
        if self.live.has_events() && (is_first || self.since_start || began.elapsed() >= HALF) {
            // Unlike `self.send`, this waits until the main thread has room. The session has ended, so no event is lost.
            let last = self.next_period();
            let _ = self.messages.send(Message::Period(last));
        }
        let session = self.trace.get_ref();
        match self.trace.summary().end {
            Some(End::Complete | End::Truncated { .. }) if !session.is_stopping() => Err(exited()),
            Some(End::Complete) if self.live.total().samples.total() == 0 && self.is_suspended() => {
                Err(suspended(NO_THREADS))
            }
            end => check_stream(end, session, Err(suspended(NO_THREADS))),
        }
    }

    fn next_period(&mut self) -> Box<Period> {
        // A failure is ignored: the period can have only addresses that `--symbols` has no symbols for.
        let _ = self.frames.names.symbols.name_native(self.live.names_mut());
        let last = self.live.next_period();
        let lost = trace_file::lost(&self.trace);
        let process_id = self.trace.summary().trace.and_then(|trace| trace.process_id);
        // The system can know another process by the id that the runtime has in its own container.
        let local = self.process_id.filter(|id| process_id == Some(*id));
        let now = local.and_then(CpuTime::of);
        let cores = self.cpu.map(|earlier| now?.cores_since(&earlier?));
        let [of_period, _] = &mut self.cpu;
        *of_period = now;
        let mut period = Period {
            last,
            total: self.live.total(),
            lost: [lost.saturating_sub(self.lost), lost],
            cores,
            process_id,
            is_suspended: false,
        };
        period.is_suspended = period.has_no_samples() && self.is_suspended();
        Box::new(period)
    }

    /// Returns whether the runtime is suspended, if it has sent no samples.
    fn is_suspended(&self) -> bool {
        is_suspended(self.trace.get_ref(), self.process_id)
    }

    /// Sends a message, unless the queue is full. Waiting would delay the reading of the session, which would then lose
    /// events. Nothing is missing from the sums since the start, which are in the next period, too. Returns `false` if
    /// the queue was full.
    fn send(&self, message: Message) -> bool {
        !matches!(self.messages.try_send(message), Err(TrySendError::Full(_)))
    }
}
