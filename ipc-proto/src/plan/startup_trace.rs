//! [`StartupTrace`]: a trace that a process records of itself, as the environment variables that request it.
use core::fmt;

use super::lost_feature::LostFeature;
use super::runtime::{Flavour, Runtime};
use super::trace::{DEFAULT_RUNDOWN, Providers, TraceConfig};
use crate::InvalidValue;
use crate::command::check;
use crate::types::{Format, SessionBufferMode, StreamingProvider};

/// A trace that a process records of itself, from its start to its end, without a client.
///
/// A runtime reads environment variables at its start. If they request a trace, the runtime starts a session with the
/// same settings as those of a request, and writes the stream to a file. A mistake in a value has no message: the
/// process then runs without a trace. [`variables`](Self::variables) therefore refuses settings that lead to no file, or
/// to another trace than the configured one.
///
/// | variable, after `DOTNET_` | value | read by |
/// |---|---|---|
/// | `EnableEventPipe` | `1` | all |
/// | `EventPipeOutputPath` | [`output_path`](Self::output_path) | all |
/// | `EventPipeConfig` | the providers, as `name:keywords:level:arguments`, joined by `,`; no form of quoting | all |
/// | `EventPipeCircularMB` | the size of the buffer; hexadecimal, decimal for Mono | all |
/// | `EventPipeOutputStreaming` | `1` for [`streaming`](Self::streaming), else `0`. The default differs: 1 for CoreCLR 11, 0 for NativeAOT | all |
/// | `EventPipeRundown` | `0` for no rundown | CoreCLR, Mono; NativeAOT has no rundown |
/// | `EventPipeEnableStackwalk` | `0` for events without stacks | all |
/// | `EventPipeBufferingMode` | `1` for blocking | since .NET 11; others drop events |
/// | `EventPipeThreadSamplingRate` | the interval of the sampler in milliseconds; hexadecimal for CoreCLR 10, else decimal | since .NET 10 |
/// | `EventPipeProcNumbers` | `1` for processors in events | CoreCLR on Windows |
///
/// The runtimes are .NET 8 and later. Their children inherit the variables, and so record traces too.
///
/// ```
/// use ipc_proto::plan::{Runtime, StartupTrace, TraceConfig};
/// use ipc_proto::types::{EventLevel, Provider};
///
/// let (name, arguments) = ("My-App".into(), "EventCounterIntervalSec=1".into());
/// let providers = [Provider { keywords: 0xf1, level: EventLevel::INFORMATIONAL, name, arguments }];
/// let trace = StartupTrace::new(TraceConfig::new(&providers), "/traces/{pid}.nettrace");
/// let variables = trace.variables(&Runtime::default())?.map(|v| format!("{}={}", v.name, v.value));
/// assert_eq!(variables.collect::<Vec<_>>(), [
///     "DOTNET_EnableEventPipe=1",
///     "DOTNET_EventPipeOutputPath=/traces/{pid}.nettrace",
///     "DOTNET_EventPipeConfig=My-App:f1:4:EventCounterIntervalSec=1",
///     "DOTNET_EventPipeCircularMB=100",
///     "DOTNET_EventPipeOutputStreaming=1",
/// ]);
/// # Ok::<(), ipc_proto::plan::StartupTraceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartupTrace<'a> {
    /// The session.
    pub config: TraceConfig<'a>,
    /// The path of the file, absolute or relative to the working directory of the process. The runtime replaces each
    /// [`PROCESS_ID`](Self::PROCESS_ID). It replaces an existing file, creates no directory, and writes no file if the
    /// directory does not exist.
    pub output_path: &'a str,
    /// Whether the runtime writes events to the file while the process runs. Otherwise the runtime writes them when the
    /// process exits: those that fit into the buffer, and none if the process is killed.
    pub streaming: bool,
    /// The time between two samples of a thread in milliseconds, 1 to 999,999; `None` for the default of the runtime.
    /// The interval also applies to the sessions of clients.
    pub sampling_interval_ms: Option<u32>,
    /// Whether events have the number of their processor.
    pub processor_numbers: bool,
}

/// An environment variable of a [`StartupTrace`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartupVariable<'a> {
    /// The name, with the prefix `DOTNET_`.
    pub name: &'static str,
    /// The value. Its `Display` writes the text.
    pub value: StartupValue<'a>,
}

/// The value of a [`StartupVariable`]. Its `Display` writes the text, which contains no NUL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartupValue<'a>(ValueRepr<'a>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueRepr<'a> {
    Text(&'a str),
    Decimal(u32),
    Hexadecimal(u32),
    Providers(Providers<'a>),
}

/// The reason why no environment variables request a [`StartupTrace`]. Its `Display` is a sentence for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartupTraceError {
    /// A value that no session can have.
    Value(InvalidValue),
    /// The format is not NetTrace.
    Format,
    /// A provider filters events by their ids.
    EventFilters,
    /// The keywords of the rundown are neither 0 nor [`DEFAULT_RUNDOWN`].
    RundownKeyword,
    /// The name or the arguments of a provider contain a character that ends them, which is `,`, `:` or NUL, or a lone
    /// surrogate, which is not a character.
    ProviderText {
        /// The position of the provider in the list; 0 for the first.
        provider: usize,
    },
    /// The path of the file is empty or contains a NUL.
    OutputPath,
    /// The runtime is too old to block.
    Blocking,
    /// Blocking without [`streaming`](StartupTrace::streaming).
    BlockingWithoutStreaming,
    /// The interval of the sampler is not 1 to 999,999 ms.
    SamplingInterval,
    /// The runtime is too old for another interval of the sampler.
    FixedSamplingInterval,
    /// The version of the runtime is unknown, and runtimes of different versions read different numbers.
    UnknownVersion,
}

impl fmt::Display for StartupTraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value(invalid) => return invalid.fmt(f),
            Self::Format => "a process records itself in the format NetTrace only",
            Self::EventFilters => "environment variables cannot filter events by id",
            Self::RundownKeyword => {
                "environment variables cannot select a rundown by keywords: only the default rundown, or none"
            }
            Self::ProviderText { provider } => {
                return write!(
                    f,
                    "providers[{provider}]: DOTNET_EventPipeConfig has no form of quoting, so the name and the \
                     arguments of a provider cannot contain a comma, a colon, a NUL or a lone surrogate"
                );
            }
            Self::OutputPath => "the path of the file is empty, or contains a NUL",
            Self::Blocking => return LostFeature::Blocking.fmt(f),
            Self::BlockingWithoutStreaming => {
                "a runtime that blocks must write to the file while the process runs, or it records nothing"
            }
            Self::SamplingInterval => "the interval of the sampler must be 1 to 999,999 ms",
            Self::FixedSamplingInterval => "another interval of the sampler needs .NET 10",
            Self::UnknownVersion => {
                "CoreCLR 10 reads an interval of 10 ms or more as another number than other runtimes: the version of \
                 the runtime must be known"
            }
        })
    }
}
impl core::error::Error for StartupTraceError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Value(invalid) => Some(invalid),
            _ => None,
        }
    }
}

impl<'a> StartupTrace<'a> {
    /// The part of a path that a runtime replaces with the id of its process.
    pub const PROCESS_ID: &'static str = "{pid}";

    /// Returns a trace with this configuration, which the runtime writes to the file while the process runs.
    #[must_use]
    pub const fn new(config: TraceConfig<'a>, output_path: &'a str) -> Self {
        Self { config, output_path, streaming: true, sampling_interval_ms: None, processor_numbers: false }
    }

    /// Returns the variables for such a runtime. An unknown kind of runtime counts as [`Flavour::CoreClr`].
    ///
    /// # Errors
    /// If the variables cannot express the trace, or a runtime would record nothing: see [`StartupTraceError`].
    pub fn variables(
        &self,
        runtime: &Runtime,
    ) -> Result<impl Iterator<Item = StartupVariable<'a>> + Clone + use<'a>, StartupTraceError> {
        self.check(runtime)?;
        let Self { config, output_path, streaming, sampling_interval_ms, processor_numbers } = *self;
        let is_mono = runtime.flavour == Some(Flavour::Mono);
        let size = if is_mono { ValueRepr::Decimal } else { ValueRepr::Hexadecimal };
        let interval = if reads_hexadecimal(runtime) { ValueRepr::Hexadecimal } else { ValueRepr::Decimal };
        let yes = Some(ValueRepr::Decimal(1));
        let no = Some(ValueRepr::Decimal(0));
        let variables = [
            ("DOTNET_EnableEventPipe", yes),
            ("DOTNET_EventPipeOutputPath", Some(ValueRepr::Text(output_path))),
            ("DOTNET_EventPipeConfig", Some(ValueRepr::Providers(config.providers))),
            ("DOTNET_EventPipeCircularMB", Some(size(config.buffer_mb))),
            ("DOTNET_EventPipeOutputStreaming", if streaming { yes } else { no }),
            ("DOTNET_EventPipeRundown", no.filter(|_| config.rundown_keyword == 0)),
            ("DOTNET_EventPipeEnableStackwalk", no.filter(|_| !config.stackwalk)),
            ("DOTNET_EventPipeBufferingMode", yes.filter(|_| config.buffer_mode == SessionBufferMode::BLOCK)),
            ("DOTNET_EventPipeThreadSamplingRate", sampling_interval_ms.map(interval)),
            ("DOTNET_EventPipeProcNumbers", yes.filter(|_| processor_numbers)),
        ];
        let variables = variables.into_iter();
        Ok(variables.filter_map(|(name, value)| {
            value.map(|value| StartupVariable { name, value: StartupValue(value) })
        }))
    }

    fn check(&self, runtime: &Runtime) -> Result<(), StartupTraceError> {
        let Self { config, output_path, streaming, sampling_interval_ms, .. } = self;
        let TraceConfig { buffer_mb, format, rundown_keyword, buffer_mode, providers, .. } = *config;
        let streaming_rules = |place: &mut _| {
            check::streaming(buffer_mb, format, buffer_mode, providers.len(), providers.iter(), place)
        };
        check::check(streaming_rules).map_err(StartupTraceError::Value)?;
        if format != Format::NET_TRACE {
            return Err(StartupTraceError::Format);
        }
        if providers.have_filters() {
            return Err(StartupTraceError::EventFilters);
        }
        if !matches!(rundown_keyword, 0 | DEFAULT_RUNDOWN) {
            return Err(StartupTraceError::RundownKeyword);
        }
        if let Some(provider) = providers.iter().position(|provider| !is_expressible(&provider)) {
            return Err(StartupTraceError::ProviderText { provider });
        }
        if output_path.is_empty() || output_path.bytes().any(|byte| byte == 0) {
            return Err(StartupTraceError::OutputPath);
        }
        if buffer_mode == SessionBufferMode::BLOCK {
            if !streaming {
                return Err(StartupTraceError::BlockingWithoutStreaming);
            }
            if runtime.version.is_some_and(|version| version < 11) {
                return Err(StartupTraceError::Blocking);
            }
        }
        match sampling_interval_ms {
            None => Ok(()),
            Some(0 | 1_000_000..) => Err(StartupTraceError::SamplingInterval),
            Some(_) if runtime.version.is_some_and(|version| version < 10) => {
                Err(StartupTraceError::FixedSamplingInterval)
            }
            Some(10..) if runtime.version.is_none() && runtime.may_be_coreclr() => {
                Err(StartupTraceError::UnknownVersion)
            }
            Some(_) => Ok(()),
        }
    }
}

/// Returns whether the runtime reads the interval of the sampler as a hexadecimal number.
fn reads_hexadecimal(runtime: &Runtime) -> bool {
    runtime.version == Some(10) && runtime.may_be_coreclr()
}

/// Returns whether `DOTNET_EventPipeConfig` can contain the name and the arguments of a provider.
fn is_expressible(provider: &StreamingProvider<'_>) -> bool {
    let is_allowed = |c: Result<char, _>| c.is_ok_and(|c| !matches!(c, ',' | ':' | '\0'));
    [provider.name, provider.arguments].iter().all(|text| char::decode_utf16(text.units()).all(is_allowed))
}

impl fmt::Display for StartupValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ValueRepr::Text(text) => f.write_str(text),
            ValueRepr::Decimal(number) => write!(f, "{number}"),
            ValueRepr::Hexadecimal(number) => write!(f, "{number:x}"),
            ValueRepr::Providers(providers) => {
                let mut separator = "";
                for StreamingProvider { keywords, level, name, arguments, .. } in providers.iter() {
                    f.write_str(core::mem::replace(&mut separator, ","))?;
                    write!(f, "{name}:{keywords:x}:{}", level.0)?;
                    if !arguments.is_empty() {
                        write!(f, ":{arguments}")?;
                    }
                }
                Ok(())
            }
        }
    }
}
