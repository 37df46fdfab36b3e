//! [`Violation`]: the names of the rules for the values of requests. `check.rs` applies the rules.
use crate::HResult;
use crate::sentences::sentences;

/// Declares the rules: the name, the code of the runtime's refusal, the sentence.
macro_rules! violations {
    ($($name:ident, $hresult:ident, $sentence:literal;)*) => {
        sentences! {
            /// A rule that runtimes apply to the values of a request, in addition to its layout.
            /// [`InvalidValue`](crate::InvalidValue) adds the path of the value that breaks the rule.
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
            #[non_exhaustive]
            pub enum Violation {
                $(#[doc = concat!($sentence, ": `", stringify!($hresult), "`.")] $name = $sentence,)*
            }
        }

        impl Violation {
            /// Every rule.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the code with which a runtime refuses a request that breaks the rule.
            #[must_use]
            pub const fn hresult(self) -> HResult {
                match self { $(Self::$name => HResult::$hresult,)* }
            }
        }
    };
}
violations! {
    BufferSize, BAD_ENCODING, "the buffer has 0 MB";
    Format, BAD_ENCODING, "the format is neither 0 nor 1";
    SessionType, BAD_ENCODING, "the session type is neither 0 nor 1";
    SessionBufferMode, BAD_ENCODING, "the buffer mode is neither 0 nor 1";
    ProviderCount, BAD_ENCODING, "the number of providers is not 1 to 1000";
    ProviderLevel, BAD_ENCODING, "the level of a provider is above 5";
    ProviderName, BAD_ENCODING, "a provider has no name";
    NoTracepoint, BAD_ENCODING, "a provider has no tracepoint";
    TracepointSetName, BAD_ENCODING, "the tracepoint of a set has no name";
    TracepointNameLength, FAIL, "the name of a tracepoint makes its format longer than 512 bytes";
    DuplicateEventId, FAIL, "an event id occurs twice";
    DumpType, FAIL, "the dump type is not 1 to 4";
    ProfilerPath, FAIL, "the profiler has no path";
    VariableName, INVALID_ARG, "the environment variable has no name";
    PerfMapType, INVALID_ARG, "the perf map type is not 1, 2 or 3";
    StartupHookPath, INVALID_ARG, "the startup hook has no path";
}
impl core::error::Error for Violation {}
