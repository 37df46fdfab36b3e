//! The providers whose events the analyses read.
use nettrace::Str;

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
