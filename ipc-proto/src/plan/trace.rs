//! [`TraceConfig`], the wish for a trace; [`TraceStep`], a command that starts a trace; [`Providers`], their providers.
use core::fmt;

use super::lost_feature::{LostFeature, LostFeatures};
use super::runtime::Runtime;
use super::step::{PlanStep, first_known};
use crate::command::check;
use crate::sentences::sentences;
use crate::types::{
    EventFilter, EventLevel, Format, Provider, SessionBufferMode, SessionConfig, SessionConfig6, SessionId,
    StreamingProvider, UserEventsSession,
};
use crate::wire::{Writer, to_u32};
use crate::{
    Array, Code, CollectTracing2, CollectTracing3, CollectTracing4, CollectTracing5, CollectTracing6,
    Command, Encode, InvalidValue, Request,
};

/// The keywords of the rundown that runtimes send if the command does not select keywords.
pub const DEFAULT_RUNDOWN: u64 = 0x8002_0139;

/// The configuration of a session that streams, for the client that requests it and for the server that receives it.
///
/// Every runtime supports the values of [`new`](Self::new). A client sends the [first step](Self::first_step) and,
/// while the runtime does not know the command, the next older step. [`PlanStep::lost_features`] returns the features
/// that a step lacks. A server converts each request for such a session, CollectTracing to CollectTracing6, with
/// [`TryFrom`].
///
/// ```
/// use ipc_proto::plan::{PlanStep, Runtime, TraceConfig};
/// use ipc_proto::types::{EventLevel, Provider, SessionBufferMode};
/// use ipc_proto::{Parsed, Message, encode};
///
/// let providers = [Provider {
///     keywords: 1,
///     level: EventLevel::VERBOSE,
///     name: "Microsoft-Windows-DotNETRuntime".into(),
///     arguments: "".into(),
/// }];
/// let config = TraceConfig { stackwalk: false, ..TraceConfig::new(&providers) };
/// let step = config.first_step(&Runtime::default());
/// let mut buf = [0; 256];
/// let bytes = encode(step.code(), &step, &mut buf)?;
///
/// let Parsed::Complete { value: message, .. } = Message::parse(bytes)? else { unreachable!() };
/// let received = TraceConfig::try_from(&message.request()?)?;
/// assert_eq!(received, config);
/// assert!(received.includes("Microsoft-Windows-DotNETRuntime", 1, EventLevel::ERROR, 80));
/// assert!(!received.includes("Microsoft-Windows-DotNETRuntime", 2, EventLevel::ERROR, 80));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceConfig<'a> {
    /// The size of the runtime's buffer in MB; not 0.
    pub buffer_mb: u32,
    /// The format of the stream.
    pub format: Format,
    /// The keywords of the rundown, which ends the stream and describes the methods at the addresses in stacks; 0 for
    /// no rundown.
    pub rundown_keyword: u64,
    /// Whether events have stacks.
    pub stackwalk: bool,
    /// The runtime's behaviour when its buffer is full.
    pub buffer_mode: SessionBufferMode,
    /// The providers to enable, 1 to 1,000, each with the filter of its events.
    pub providers: Providers<'a>,
}

impl<'a> TraceConfig<'a> {
    /// Returns the configuration that Microsoft's tools use for these providers: 256 MB, NetTrace, the default rundown,
    /// stacks, and events dropped when the buffer is full.
    #[must_use]
    pub fn new(providers: impl Into<Providers<'a>>) -> Self {
        Self {
            buffer_mb: 256,
            format: Format::NET_TRACE,
            rundown_keyword: DEFAULT_RUNDOWN,
            stackwalk: true,
            buffer_mode: SessionBufferMode::DROP,
            providers: providers.into(),
        }
    }

    /// Returns the oldest command with all features of the configuration; for a runtime older than this command, the
    /// newest that it can know. As in Microsoft's client: more runtimes know an older command, so fewer refuse it.
    ///
    /// ```
    /// use ipc_proto::plan::{PlanStep, Providers, Runtime, TraceConfig};
    /// use ipc_proto::types::SessionBufferMode;
    ///
    /// let config = TraceConfig { buffer_mode: SessionBufferMode::BLOCK, ..TraceConfig::new(Providers::NONE) };
    /// let net_10 = Runtime { version: Some(10), ..Runtime::default() };
    /// assert_eq!(config.first_step(&net_10).code().0, 0x0203); // .NET 10 cannot block
    /// ```
    #[must_use]
    pub fn first_step(&self, runtime: &Runtime) -> TraceStep<'a> {
        first_known(TraceStep { config: *self, lost_features: LostFeatures::default() }, runtime)
    }

    /// Returns whether the session receives an event: one of its providers has this name and
    /// [includes](StreamingProvider::includes) the event. The provider `*` with all keywords and the level
    /// [`VERBOSE`](EventLevel::VERBOSE) includes all events of all providers, whatever its filter is.
    ///
    /// A server calls `includes` once for each kind of event, not for each event.
    #[must_use]
    pub fn includes(&self, provider: &str, keywords: u64, level: EventLevel, event_id: u32) -> bool {
        self.providers.iter().any(|p| {
            let is_all = p.name == "*" && p.keywords == u64::MAX && p.level == EventLevel::VERBOSE;
            is_all || (p.name == provider && p.includes(keywords, level, event_id))
        })
    }

    /// Returns whether the rundown at the end of the session has an event with these keywords.
    #[must_use]
    pub const fn includes_rundown(&self, keywords: u64) -> bool {
        self.rundown_keyword != 0 && (keywords == 0 || keywords & self.rundown_keyword != 0)
    }

    /// Returns the oldest command with all features of the configuration.
    fn oldest_command(&self) -> Code {
        if self.buffer_mode != SessionBufferMode::DROP {
            CollectTracing6::CODE
        } else if self.providers.have_filters() {
            CollectTracing5::CODE
        } else if !matches!(self.rundown_keyword, 0 | DEFAULT_RUNDOWN) {
            CollectTracing4::CODE
        } else if !self.stackwalk {
            CollectTracing3::CODE
        } else {
            CollectTracing2::CODE
        }
    }
}

/// A command that starts a session, with the part of the configuration that the command supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceStep<'a> {
    config: TraceConfig<'a>,
    lost_features: LostFeatures,
}

impl<'a> TraceStep<'a> {
    /// Returns the configuration that the runtime will use: without the features that the command lacks.
    #[must_use]
    pub const fn config(&self) -> &TraceConfig<'a> {
        &self.config
    }
}

impl Encode for TraceStep<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        let TraceConfig { buffer_mb, format, rundown_keyword, stackwalk, buffer_mode, providers } =
            self.config;
        let code = self.code();
        let is_union = matches!(code, CollectTracing5::CODE | CollectTracing6::CODE);
        if is_union {
            0u32.encode(w); // the type of a session that streams
        }
        buffer_mb.encode(w);
        format.encode(w);
        match code {
            CollectTracing2::CODE | CollectTracing3::CODE => (rundown_keyword != 0).encode(w),
            _ => rundown_keyword.encode(w),
        }
        if code != CollectTracing2::CODE {
            stackwalk.encode(w);
        }
        providers.encode(is_union, w);
        if code == CollectTracing6::CODE {
            buffer_mode.encode(w);
        }
    }
}

impl PlanStep for TraceStep<'_> {
    type Response<'r> = SessionId;

    fn code(&self) -> Code {
        self.config.oldest_command()
    }

    fn check(&self) -> Result<(), InvalidValue> {
        let TraceConfig { buffer_mb, format, buffer_mode, providers, .. } = self.config;
        check::check(|place| {
            check::streaming(buffer_mb, format, buffer_mode, providers.len(), providers.iter(), place)
        })
    }

    fn lost_features(&self) -> LostFeatures {
        self.lost_features
    }

    /// Returns the step for the same configuration without the feature that only this command has.
    fn older(&self) -> Option<Self> {
        let mut config = self.config;
        let loss = match self.code() {
            CollectTracing6::CODE => {
                config.buffer_mode = SessionBufferMode::DROP;
                LostFeature::Blocking
            }
            CollectTracing5::CODE => {
                config.providers = config.providers.without_filters();
                LostFeature::EventFilters
            }
            CollectTracing4::CODE => {
                config.rundown_keyword = DEFAULT_RUNDOWN;
                LostFeature::RundownKeyword
            }
            CollectTracing3::CODE => {
                config.stackwalk = true;
                LostFeature::Stackwalk
            }
            _ => return None,
        };
        Some(Self { config, lost_features: self.lost_features.with(loss) })
    }
}

/// The providers of a session: of the caller or of a message, with or without filters.
#[derive(Clone, Copy)]
pub struct Providers<'a>(ProvidersRepr<'a>);

#[derive(Clone, Copy)]
enum ProvidersRepr<'a> {
    Plain(Array<'a, Provider<'a>>),
    Filtered(Array<'a, StreamingProvider<'a>>),
    /// Providers whose filters are ignored.
    Unfiltered(Array<'a, StreamingProvider<'a>>),
}

impl<'a> Providers<'a> {
    /// No providers. Runtimes refuse a session without a provider.
    pub const NONE: Self = Self(ProvidersRepr::Plain(Array::EMPTY));

    /// Returns the number of providers.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.0 {
            ProvidersRepr::Plain(providers) => providers.len(),
            ProvidersRepr::Filtered(providers) | ProvidersRepr::Unfiltered(providers) => providers.len(),
        }
    }

    /// Returns whether there is no provider.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the providers. A provider without a filter has [`EventFilter::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = StreamingProvider<'a>> + Clone + use<'a> {
        let (plain, filtered, keep) = match self.0 {
            ProvidersRepr::Plain(providers) => (providers, Array::EMPTY, true),
            ProvidersRepr::Filtered(providers) => (Array::EMPTY, providers, true),
            ProvidersRepr::Unfiltered(providers) => (Array::EMPTY, providers, false),
        };
        let filtered = filtered.iter().map(move |provider| match keep {
            true => provider,
            false => StreamingProvider { filter: EventFilter::ALL, ..provider },
        });
        plain.iter().map(StreamingProvider::from).chain(filtered)
    }

    /// Returns whether any provider filters events by id.
    pub(super) fn have_filters(&self) -> bool {
        match self.0 {
            ProvidersRepr::Filtered(providers) => providers.iter().any(|p| p.filter != EventFilter::ALL),
            ProvidersRepr::Plain(_) | ProvidersRepr::Unfiltered(_) => false,
        }
    }

    const fn without_filters(self) -> Self {
        match self.0 {
            ProvidersRepr::Filtered(providers) => Self(ProvidersRepr::Unfiltered(providers)),
            ProvidersRepr::Plain(_) | ProvidersRepr::Unfiltered(_) => self,
        }
    }

    fn encode(self, with_filters: bool, w: &mut Writer<'_>) {
        match self.0 {
            ProvidersRepr::Plain(providers) if !with_filters => return providers.encode(w),
            ProvidersRepr::Filtered(providers) if with_filters => return providers.encode(w),
            _ => {}
        }
        to_u32(self.len()).encode(w);
        for StreamingProvider { keywords, level, name, arguments, filter } in self.iter() {
            Provider { keywords, level, name, arguments }.encode(w);
            if with_filters {
                filter.encode(w);
            }
        }
    }
}

/// Providers compare by content, in every form.
impl PartialEq for Providers<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}
impl Eq for Providers<'_> {}
impl fmt::Debug for Providers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

macro_rules! providers_of {
    ($($provider:ident => $repr:ident),*) => {$(
        impl<'a> From<Array<'a, $provider<'a>>> for Providers<'a> {
            fn from(providers: Array<'a, $provider<'a>>) -> Self {
                Self(ProvidersRepr::$repr(providers))
            }
        }
        impl<'a> From<&'a [$provider<'a>]> for Providers<'a> {
            fn from(providers: &'a [$provider<'a>]) -> Self {
                Array::from(providers).into()
            }
        }
        impl<'a, const N: usize> From<&'a [$provider<'a>; N]> for Providers<'a> {
            fn from(providers: &'a [$provider<'a>; N]) -> Self {
                Array::from(providers).into()
            }
        }
        #[cfg(feature = "alloc")]
        impl<'a> From<&'a alloc::vec::Vec<$provider<'a>>> for Providers<'a> {
            fn from(providers: &'a alloc::vec::Vec<$provider<'a>>) -> Self {
                Array::from(providers.as_slice()).into()
            }
        }
    )*};
}
providers_of!(Provider => Plain, StreamingProvider => Filtered);

sentences! {
    /// The request starts no session of the kind of the target type: a stream, or `user_events`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct NotTracing = "the request starts no session of this kind";
}
impl core::error::Error for NotTracing {}

/// Converts a request, CollectTracing to CollectTracing6, that starts a session with a stream, for servers.
impl<'a> TryFrom<&Request<'a>> for TraceConfig<'a> {
    type Error = NotTracing;

    fn try_from(request: &Request<'a>) -> Result<Self, NotTracing> {
        let rundown = |rundown| if rundown { DEFAULT_RUNDOWN } else { 0 };
        let config = |buffer_mb, format, rundown_keyword, stackwalk, providers: Providers<'a>| Self {
            buffer_mb,
            format,
            rundown_keyword,
            stackwalk,
            ..Self::new(providers)
        };
        Ok(match *request {
            Request::CollectTracing(c) => {
                config(c.buffer_mb, c.format, DEFAULT_RUNDOWN, true, c.providers.into())
            }
            Request::CollectTracing2(c) => {
                config(c.buffer_mb, c.format, rundown(c.rundown), true, c.providers.into())
            }
            Request::CollectTracing3(c) => {
                config(c.buffer_mb, c.format, rundown(c.rundown), c.stackwalk, c.providers.into())
            }
            Request::CollectTracing4(c) => {
                config(c.buffer_mb, c.format, c.rundown_keyword, c.stackwalk, c.providers.into())
            }
            Request::CollectTracing5(CollectTracing5 { session: SessionConfig::Streaming(s) }) => {
                config(s.buffer_mb, s.format, s.rundown_keyword, s.stackwalk, s.providers.into())
            }
            Request::CollectTracing6(CollectTracing6 { session: SessionConfig6::Streaming(s) }) => Self {
                buffer_mode: s.session_buffer_mode,
                ..config(s.buffer_mb, s.format, s.rundown_keyword, s.stackwalk, s.providers.into())
            },
            _ => return Err(NotTracing),
        })
    }
}

/// Converts a CollectTracing5 or CollectTracing6 that starts a session of `user_events`, for servers.
impl<'a> TryFrom<&Request<'a>> for UserEventsSession<'a> {
    type Error = NotTracing;

    fn try_from(request: &Request<'a>) -> Result<Self, NotTracing> {
        match *request {
            Request::CollectTracing5(CollectTracing5 { session: SessionConfig::UserEvents(session) })
            | Request::CollectTracing6(CollectTracing6 { session: SessionConfig6::UserEvents(session) }) => {
                Ok(session)
            }
            _ => Err(NotTracing),
        }
    }
}
