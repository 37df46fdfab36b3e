//! The events of the runtime that the analyses read, by their numbers.
use nettrace::{Str, TraceEvent};

/// Defines [`RuntimeEvent`] by rows of a provider and the ids and names of its events.
macro_rules! runtime_events {
    ($($provider:ident: $($id:literal $name:ident,)*)*) => {
        /// An event of the runtime that an analysis of this crate reads, by the name in the runtime's manifest.
        ///
        /// ```
        /// use nettrace_analysis::{KnownProvider, RuntimeEvent};
        ///
        /// let event = RuntimeEvent::new(KnownProvider::Runtime, 143);
        /// assert_eq!(event, Some(RuntimeEvent::MethodLoadVerbose));
        /// assert_eq!(RuntimeEvent::MethodDCStartVerbose.id(), 143); // of the rundown
        /// assert_eq!(RuntimeEvent::new(KnownProvider::UniversalSystem, 143), None);
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum RuntimeEvent {
            $($(
                #[doc = concat!("Event ", $id, " of [`KnownProvider::", stringify!($provider), "`].")]
                $name,
            )*)*
        }

        impl RuntimeEvent {
            /// Returns the event of this id of a provider.
            #[must_use]
            pub const fn new(provider: KnownProvider, event_id: u32) -> Option<Self> {
                Some(match (provider, event_id) {
                    $($((KnownProvider::$provider, $id) => Self::$name,)*)*
                    _ => return None,
                })
            }

            /// Returns the id of the event, which has a meaning only together with its provider.
            #[must_use]
            pub const fn id(self) -> u32 {
                match self {
                    $($(Self::$name => $id,)*)*
                }
            }
        }
    };
}

runtime_events! {
    Runtime:
        1 GCStart, 2 GCEnd, 3 GCRestartEEEnd, 4 GCHeapStats, 8 GCSuspendEEEnd, 9 GCSuspendEEBegin,
        10 GCAllocationTick, 14 GCFinalizersBegin, 15 BulkType, 16 GCBulkRootEdge,
        17 GCBulkRootConditionalWeakTableElementEdge, 18 GCBulkNode, 19 GCBulkEdge, 20 GCSampledObjectAllocationHigh,
        32 GCSampledObjectAllocationLow, 35 GCTriggered, 36 GCBulkRootCCW, 38 GCBulkRootStaticVar, 70 ThreadCreating, 71 ThreadRunning, 80 ExceptionThrown, 81 ContentionStart, 85 ThreadCreated,
        90 ContentionLockCreated, 91 ContentionStop, 141 MethodLoad, 143 MethodLoadVerbose, 144 MethodUnloadVerbose,
        145 MethodJittingStarted, 152 ModuleLoad, 187 RuntimeInformationStart, 250 ExceptionCatchStart,
        251 ExceptionCatchStop, 252 ExceptionFinallyStart, 253 ExceptionFinallyStop, 254 ExceptionFilterStart,
        255 ExceptionFilterStop, 256 ExceptionThrownStop, 301 WaitHandleWaitStart, 302 WaitHandleWaitStop,
        303 AllocationSampled,
    Rundown:
        143 MethodDCStartVerbose, 144 MethodDCEndVerbose, 146 DCEndComplete, 153 ModuleDCStart, 154 ModuleDCEnd,
        159 ThreadDC, 187 RuntimeInformationDCStart,
    SampleProfiler:
        0 ThreadSample,
}

impl RuntimeEvent {
    /// Returns which of these events an event is, if it is one.
    #[must_use]
    pub fn of(event: &TraceEvent<'_>) -> Option<Self> {
        let description = event.description()?;
        Self::new(KnownProvider::of(description.provider())?, description.event_id())
    }
}

/// A provider whose events an analysis of this crate reads.
///
/// The id of an event has a meaning only together with its provider: 152 is ModuleLoad of [`Runtime`](Self::Runtime),
/// and DomainModuleDCEnd of [`Rundown`](Self::Rundown).
///
/// ```
/// use nettrace_analysis::KnownProvider;
///
/// let provider = KnownProvider::of("Microsoft-Windows-DotNETRuntime".into());
/// assert_eq!(provider, Some(KnownProvider::Runtime));
/// assert_eq!(KnownProvider::of("System.Runtime".into()), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KnownProvider {
    /// `Microsoft-Windows-DotNETRuntime`: garbage collector, compiler, loader, exceptions, locks, and more.
    Runtime,
    /// `Microsoft-Windows-DotNETRuntimeRundown`: what exists at the end of a session, methods and modules for example.
    Rundown,
    /// `Microsoft-DotNETCore-SampleProfiler`: the stack of each thread, again and again.
    SampleProfiler,
    /// `Universal.System`: processes, mappings and symbols, in traces of the operating system (V6).
    UniversalSystem,
    /// `Universal.Events`: samples of the processor and switches of threads, in traces of the operating system (V6).
    UniversalEvents,
}

impl KnownProvider {
    const ALL: [(Self, &'static str); 5] = [
        (Self::SampleProfiler, "Microsoft-DotNETCore-SampleProfiler"),
        (Self::Runtime, "Microsoft-Windows-DotNETRuntime"),
        (Self::Rundown, "Microsoft-Windows-DotNETRuntimeRundown"),
        (Self::UniversalEvents, "Universal.Events"),
        (Self::UniversalSystem, "Universal.System"),
    ];

    /// Returns the provider of this name.
    #[must_use]
    pub fn of(name: Str<'_>) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known)| is_name(name, known));
        found.map(|(provider, _)| *provider)
    }

    /// Returns the name of the provider.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(provider, _)| *provider == self).map_or("", |(_, name)| name)
    }
}

/// Returns whether a provider has this name, which is ASCII. The lengths are compared first, because they mostly
/// differ, and every event is compared.
pub(crate) fn is_name(provider: Str<'_>, name: &str) -> bool {
    let len = match provider {
        Str::Utf16(bytes) => bytes.len() / 2,
        Str::Utf8(bytes) => bytes.len(),
    };
    len == name.len() && provider == name
}
