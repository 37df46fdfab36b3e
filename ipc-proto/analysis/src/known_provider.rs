use ipc_proto::nettrace::Str;

/// A provider whose events an analysis of this crate reads.
///
/// Ids of events are those of their provider: 152 is ModuleLoad of [`Runtime`](Self::Runtime), and DomainModuleDCEnd of
/// [`Rundown`](Self::Rundown).
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
    /// `Microsoft-DotNETCore-SampleProfiler`: the stack of each thread, about once a millisecond.
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
        let found = Self::ALL.iter().find(|(_, known)| is_ascii(name, known));
        found.map(|(provider, _)| *provider)
    }

    /// Returns the name of the provider.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(provider, _)| *provider == self).map_or("", |(_, name)| name)
    }
}

/// Returns whether a text is this one, which is ASCII.
///
/// The comparison of [`Str`] decodes the characters of both, which takes ten times as long; analyses compare for each
/// event.
pub(crate) fn is_ascii(text: Str<'_>, ascii: &str) -> bool {
    match text {
        Str::Utf8(bytes) => bytes == ascii.as_bytes(),
        Str::Utf16(units) => {
            units.len() / 2 == ascii.len()
                && units.chunks_exact(2).zip(ascii.bytes()).all(|(unit, byte)| unit == [byte, 0])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        for (units, is_same) in
            [(&b"G\0C\0"[..], true), (b"G\0C\0!", true), (b"G\0", false), (b"G\0C\x01", false), (b"", false)]
        {
            assert_eq!(is_ascii(Str::Utf16(units), "GC"), is_same, "{units:?}");
            assert_eq!(Str::Utf16(units) == "GC", is_same, "{units:?}");
        }
        assert!(is_ascii("GC".into(), "GC") && !is_ascii("G".into(), "GC"));
    }
}
