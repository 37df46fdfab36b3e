//! `CounterStream`: counters of a process as samples, live.
use core::hash::{BuildHasher, Hasher};
use core::task::Poll;
use std::hash::RandomState;
use std::io;

use ipc_proto::Guid;
use nettrace_analysis::counters::{CounterConfig, CounterEvent, CounterPlan, CounterReader};

use crate::client::Client;
use crate::error::Error;
use crate::trace::TraceSession;
use ipc_proto::plan::TraceConfig;
use nettrace::{EventAssembler, EventOrder, ReadOptions, TraceReader};

/// Reads counters and metrics of a process as samples, live.
///
/// ```no_run
/// use ipc_std::Client;
/// use nettrace_analysis::counters::{CounterConfig, CounterEvent};
///
/// let selections = vec!["System.Runtime".parse()?, "My.Meter".parse()?];
/// let config = CounterConfig { selections, ..CounterConfig::default() };
/// let mut counters = Client::for_process(4242)?.start_counters(&config)?;
/// while let Some(event) = counters.next_event()? {
///     if let CounterEvent::Sample(sample) = event {
///         println!("{} {} [{}] = {:?} {}", sample.provider, sample.name, sample.tag_text, sample.value(), sample.unit);
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// This is a [`TraceReader`] over a [`TraceSession`] whose providers a [`CounterPlan`] has selected, and a
/// [`CounterReader`] of its events. The session has no stacks and no rundown: its stream has about 300 bytes for each
/// series and interval. To end the session, [stop](TraceSession::stop) the [`session`](Self::session), or use its
/// [`stopper`](TraceSession::stopper) on another thread, and read to the end. Dropping the stream does both.
#[derive(Debug)]
pub struct CounterStream {
    trace: TraceReader<TraceSession>,
    counters: CounterReader,
    plan: CounterPlan,
    runtime_version: Option<u8>,
}

impl Client {
    /// Starts a session for counters and metrics: requests the version of the runtime, plans the providers, and enables
    /// them. The client id [`NIL`](Guid::NIL) is replaced by a random one.
    ///
    /// # Errors
    /// [`Error::CounterPlan`] for a configuration that cannot be planned, and the errors of
    /// [`start_tracing`](Self::start_tracing).
    pub fn start_counters(&self, config: &CounterConfig) -> Result<CounterStream, Error> {
        let runtime_version = self.describe_runtime()?.version;
        let client_id = if config.client_id == Guid::NIL { random() } else { config.client_id };
        let plan = CounterPlan::new(&CounterConfig { client_id, ..config.clone() }, runtime_version)?;
        CounterStream::start(self, plan, runtime_version)
    }
}

impl CounterStream {
    /// The buffer of the runtime in MB, as dotnet-counters requests it.
    const BUFFER_MB: u32 = 10;

    fn start(client: &Client, plan: CounterPlan, runtime_version: Option<u8>) -> Result<Self, Error> {
        let providers: Vec<_> = plan.providers.iter().map(|provider| provider.provider()).collect();
        let session = client.start_tracing(&TraceConfig {
            buffer_mb: Self::BUFFER_MB,
            rundown_keyword: 0,
            stackwalk: false,
            ..TraceConfig::new(&providers)
        })?;
        let options = ReadOptions { stacks: false, ..ReadOptions::default() };
        let trace = TraceReader::with_assembler(session, EventAssembler::new(EventOrder::Stream, options));
        Ok(Self { trace, counters: plan.reader(), plan, runtime_version })
    }

    /// Returns the next event of a counter, an instrument or the session; `None` after the last event.
    ///
    /// # Errors
    /// As [`TraceReader::next_event`]. The call can be repeated.
    pub fn next_event(&mut self) -> io::Result<Option<CounterEvent<'_>>> {
        // A loop cannot return the event that it borrows, so the event is taken again after the loop.
        while let Some(event) = self.trace.next_event()? {
            if self.counters.has_event(&event) {
                break;
            }
        }
        Ok(self.trace.event().and_then(|event| self.counters.event(&event)))
    }

    /// Returns the next event if its bytes are available. Returns `Pending` if they are not and the session is
    /// [nonblocking](TraceSession::set_nonblocking). After the last event it returns `Ready(None)`.
    ///
    /// # Errors
    /// As [`TraceReader::poll_next_event`].
    pub fn poll_next_event(&mut self) -> io::Result<Poll<Option<CounterEvent<'_>>>> {
        loop {
            match self.trace.poll_next_event()? {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(None) => return Ok(Poll::Ready(None)),
                Poll::Ready(Some(event)) if self.counters.has_event(&event) => break,
                Poll::Ready(Some(_)) => {}
            }
        }
        Ok(Poll::Ready(self.trace.event().and_then(|event| self.counters.event(&event))))
    }

    /// Returns the plan of the session: its providers and why they were selected.
    #[must_use]
    pub const fn plan(&self) -> &CounterPlan {
        &self.plan
    }

    /// Returns the major version of the runtime; `None` if the runtime does not report a version.
    #[must_use]
    pub const fn runtime_version(&self) -> Option<u8> {
        self.runtime_version
    }

    /// Returns the reader of the trace, which counts lost events and knows how the trace ended.
    #[must_use]
    pub const fn trace(&self) -> &TraceReader<TraceSession> {
        &self.trace
    }

    /// Returns the session.
    #[must_use]
    pub const fn session(&self) -> &TraceSession {
        self.trace.get_ref()
    }

    /// Returns the session, to make it [nonblocking](TraceSession::set_nonblocking), or to
    /// [read](TraceSession::poll_read) the answer to its Stop after the last event.
    pub const fn session_mut(&mut self) -> &mut TraceSession {
        self.trace.get_mut()
    }
}

/// Returns a random value that is not a secret.
fn random() -> Guid {
    let [a, b] = [(); 2].map(|()| RandomState::new().build_hasher().finish());
    Guid(((u128::from(a) << u64::BITS) | u128::from(b)).to_le_bytes())
}
