//! Keywords of a provider: hexadecimal, or for the runtime's own provider by name.
use super::unsigned::unsigned;

/// The provider of the runtime's own events.
pub const RUNTIME_PROVIDER: &str = "Microsoft-Windows-DotNETRuntime";

/// The runtime's provider of internal events.
pub const PRIVATE_PROVIDER: &str = "Microsoft-Windows-DotNETRuntimePrivate";

/// Garbage collections; allocations at level verbose.
pub const GC: u64 = 0x1;
pub const GC_HANDLE: u64 = 0x2;
pub const ASSEMBLY_LOADER: u64 = 0x4;
/// Modules.
pub const LOADER: u64 = 0x8;
/// Compilations; their starts at level verbose.
pub const JIT: u64 = 0x10;
/// Precompiled methods.
pub const NGEN: u64 = 0x20;
/// Of the rundown only: without the maps of instructions.
pub const FORCE_END_RUNDOWN: u64 = 0x100;
pub const CONTENTION: u64 = 0x4000;
pub const EXCEPTION: u64 = 0x8000;
pub const THREADING: u64 = 0x1_0000;
pub const WAIT_HANDLE: u64 = 0x400_0000_0000;
pub const JITTED_METHOD_IL_TO_NATIVE_MAP: u64 = 0x2_0000;
/// A collection at the start of the session.
pub const HEAP_COLLECT: u64 = 0x80_0000;
/// A heap snapshot: collections, types with names, objects, and a collection at the start of the session.
pub const HEAP_SNAPSHOT: u64 = GC | HEAP_COLLECT | 0x118_0000;
pub const COMPILATION: u64 = 0x10_0000_0000;
/// Allocations that are drawn at random, since .NET 10.
pub const ALLOCATION_SAMPLING: u64 = 0x800_0000_0000;
/// All keywords but those that make the runtime walk its heap or its methods, or report each allocation.
pub const MODERATE: u64 = !0x3f0_00c0;

/// Names and values of the runtime's keywords. The names are those of dotnet-trace's `--clrevents`, the values those of
/// the runtime's manifest (ClrEtwAll.man). `fusion` and `managedheadcollect` are older names that dotnet-trace accepts.
pub const CLR_KEYWORDS: [(&str, u64); 42] = [
    ("gc", GC),
    ("gchandle", GC_HANDLE),
    ("assemblyloader", ASSEMBLY_LOADER),
    ("fusion", ASSEMBLY_LOADER),
    ("loader", LOADER),
    ("jit", JIT),
    ("ngen", NGEN),
    ("startenumeration", 0x40),
    ("endenumeration", 0x80),
    ("security", 0x400),
    ("appdomainresourcemanagement", 0x800),
    ("jittracing", 0x1000),
    ("interop", 0x2000),
    ("contention", CONTENTION),
    ("exception", EXCEPTION),
    ("threading", THREADING),
    ("jittedmethodiltonativemap", JITTED_METHOD_IL_TO_NATIVE_MAP),
    ("overrideandsuppressngenevents", 0x4_0000),
    ("type", 0x8_0000),
    ("gcheapdump", 0x10_0000),
    ("gcsampledobjectallocationhigh", 0x20_0000),
    ("gcheapsurvivalandmovement", 0x40_0000),
    ("managedheapcollect", HEAP_COLLECT),
    ("gcheapcollect", HEAP_COLLECT),
    ("managedheadcollect", HEAP_COLLECT),
    ("gcheapandtypenames", 0x100_0000),
    ("gcsampledobjectallocationlow", 0x200_0000),
    ("perftrack", 0x2000_0000),
    ("stack", 0x4000_0000),
    ("threadtransfer", 0x8000_0000),
    ("debugger", 0x1_0000_0000),
    ("monitoring", 0x2_0000_0000),
    ("codesymbols", 0x4_0000_0000),
    ("eventsource", 0x8_0000_0000),
    ("compilation", COMPILATION),
    ("compilationdiagnostic", 0x20_0000_0000),
    ("methoddiagnostic", 0x40_0000_0000),
    ("typediagnostic", 0x80_0000_0000),
    ("jitinstrumentationdata", 0x100_0000_0000),
    ("profiler", 0x200_0000_0000),
    ("waithandle", WAIT_HANDLE),
    ("allocationsampling", ALLOCATION_SAMPLING),
];

/// Parses the KEYWORDS of a provider: hexadecimal, or for the runtime's provider names joined by `+`. No text means all
/// keywords.
pub fn parse(provider: &str, text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(u64::MAX);
    }
    if let Ok(keywords) = parse_hex(text) {
        return Ok(keywords);
    }
    if !provider.eq_ignore_ascii_case(RUNTIME_PROVIDER) {
        return Err(format!(
            "the keywords {text:?} are not hexadecimal, such as 0x8003; names are known only for {RUNTIME_PROVIDER}"
        ));
    }
    parse_names(text)
}

/// Parses names of the runtime's keywords, joined by `+`: `gc+jit`.
pub fn parse_names(text: &str) -> Result<u64, String> {
    text.split('+').try_fold(0, |keywords, name| {
        let found = CLR_KEYWORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, keyword)| keywords | keyword).ok_or_else(|| {
            format!("unknown keyword {name:?}: use names such as gc+jit (`dotnet-ipc list-profiles` shows all) or hexadecimal")
        })
    })
}

/// Parses hexadecimal keywords, with or without `0x`.
pub fn parse_hex(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let keywords = unsigned(digits).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    keywords.ok_or_else(|| format!("the keywords {text:?} are not hexadecimal, such as 0x8003"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_hexadecimal() {
        for (text, expected) in [
            ("", u64::MAX),
            ("8003", 0x8003),
            ("0x8003", 0x8003),
            ("gc", 1),
            ("gc+jit+exception", 0x8011),
            ("GC+AllocationSampling", 0x800_0000_0001),
            // dotnet-trace's profile dotnet-common.
            (
                "gc+assemblyloader+loader+jit+exception+threading+jittedmethodiltonativemap+compilation",
                0x10_0003_801d,
            ),
        ] {
            assert_eq!(parse("microsoft-windows-dotnetruntime", text), Ok(expected), "{text}");
        }
        for text in ["gc+", "+gc", "gc+nothing", "gc jit", "0x", "0x10000000000000000", "+1"] {
            assert!(parse(RUNTIME_PROVIDER, text).is_err(), "{text}");
        }
        let error = parse("System.Runtime", "gc").unwrap_err();
        assert!(error.contains("not hexadecimal") && error.contains(RUNTIME_PROVIDER), "{error}");
    }

    #[test]
    fn a_name_is_not_hexadecimal() {
        for (name, _) in CLR_KEYWORDS {
            assert!(parse_hex(name).is_err(), "{name}");
        }
    }
}
