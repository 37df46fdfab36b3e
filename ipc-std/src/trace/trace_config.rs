use ipc_proto::plan::{self, TraceStep, TraceWishes};
use ipc_proto::types::{
    EventFilter, Format, Provider, SessionBufferMode, SessionConfig, SessionConfig6, SessionId,
    StreamingProvider, StreamingSession, StreamingSession6,
};
use ipc_proto::{
    Array, CollectTracing2, CollectTracing3, CollectTracing4, CollectTracing5, CollectTracing6, Command,
};

use crate::connection::Connection;
use crate::error::Error;
use crate::error::check;
use crate::stream::Stream;

/// The configuration of a tracing session. Every runtime supports the values of [`new`](Self::new).
///
/// ```
/// use ipc_proto::types::{EventLevel, Provider, SessionBufferMode};
/// use ipc_std::TraceConfig;
///
/// let providers = [Provider {
///     keywords: 1,
///     level: EventLevel::VERBOSE,
///     name: "Microsoft-Windows-DotNETRuntime".into(),
///     arguments: "".into(),
/// }];
/// let config = TraceConfig { buffer_mode: SessionBufferMode::BLOCK, ..TraceConfig::new(&providers) };
/// assert_eq!(config.buffer_mb, 256);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceConfig<'a> {
    /// The size of the runtime's buffer in MB; not 0.
    pub buffer_mb: u32,
    /// The keywords of the rundown, which ends the stream and describes the methods at the addresses in stacks; 0 for
    /// no rundown.
    pub rundown_keyword: u64,
    /// Whether events have stacks.
    pub stackwalk: bool,
    /// What the runtime does when its buffer is full.
    pub buffer_mode: SessionBufferMode,
    /// The providers to enable: 1 to 1,000.
    pub providers: &'a [Provider<'a>],
    /// The event filter of each provider, in the same order. Providers after the last filter have none.
    pub filters: &'a [EventFilter<'a>],
}

impl<'a> TraceConfig<'a> {
    /// The keywords of the rundown that runtimes write by default.
    pub const DEFAULT_RUNDOWN: u64 = plan::DEFAULT_RUNDOWN;

    /// Returns the configuration that Microsoft's tools use for these providers: 256 MB, the default rundown, stacks,
    /// and events dropped when the buffer is full.
    #[must_use]
    pub const fn new(providers: &'a [Provider<'a>]) -> Self {
        Self {
            buffer_mb: 256,
            rundown_keyword: Self::DEFAULT_RUNDOWN,
            stackwalk: true,
            buffer_mode: SessionBufferMode::DROP,
            providers,
            filters: &[],
        }
    }

    /// Returns the features that decide which command carries this configuration.
    #[must_use]
    pub fn wishes(&self) -> TraceWishes {
        TraceWishes {
            rundown_keyword: self.rundown_keyword,
            stackwalk: self.stackwalk,
            event_filters: self.filters.iter().any(|filter| *filter != EventFilter::ALL),
            buffer_mode: self.buffer_mode,
            user_events: false,
        }
    }

    fn streaming_providers(&self) -> Vec<StreamingProvider<'a>> {
        let filters = self.filters.iter().copied().chain(core::iter::repeat(EventFilter::ALL));
        let with_filter = |(provider, filter): (&Provider<'a>, _)| {
            let Provider { keywords, level, name, arguments } = *provider;
            StreamingProvider { keywords, level, name, arguments, filter }
        };
        self.providers.iter().zip(filters).map(with_filter).collect()
    }

    /// Sends the command of this step, with everything that it carries.
    pub(super) fn start(
        &self,
        connection: &mut Connection<Stream>,
        step: &TraceStep,
    ) -> Result<SessionId, Error> {
        let TraceWishes { rundown_keyword, stackwalk, buffer_mode: session_buffer_mode, .. } = step.wishes;
        let (buffer_mb, format, rundown) = (self.buffer_mb, Format::NET_TRACE, rundown_keyword != 0);
        let providers = Array::from(self.providers);
        match step.command {
            CollectTracing6::CODE => {
                let providers = self.streaming_providers();
                let providers = Array::from(providers.as_slice());
                let session = StreamingSession6 {
                    buffer_mb,
                    format,
                    rundown_keyword,
                    stackwalk,
                    providers,
                    session_buffer_mode,
                };
                call(connection, &CollectTracing6 { session: SessionConfig6::Streaming(session) })
            }
            CollectTracing5::CODE => {
                let providers = self.streaming_providers();
                let providers = Array::from(providers.as_slice());
                let session = StreamingSession { buffer_mb, format, rundown_keyword, stackwalk, providers };
                call(connection, &CollectTracing5 { session: SessionConfig::Streaming(session) })
            }
            CollectTracing4::CODE => call(
                connection,
                &CollectTracing4 { buffer_mb, format, rundown_keyword, stackwalk, providers },
            ),
            CollectTracing3::CODE => {
                call(connection, &CollectTracing3 { buffer_mb, format, rundown, stackwalk, providers })
            }
            _ => call(connection, &CollectTracing2 { buffer_mb, format, rundown, providers }),
        }
    }
}

/// Sends a command that starts a session, after a check of its values.
fn call<C>(connection: &mut Connection<Stream>, command: &C) -> Result<SessionId, Error>
where
    C: for<'r> Command<Response<'r> = SessionId>,
{
    check(command)?;
    connection.call(command)
}
