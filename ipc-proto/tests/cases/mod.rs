//! How much a property is tried.
use proptest::prelude::ProptestConfig;

/// As many cases as by default, or as `PROPTEST_CASES` says, `times` over.
pub(crate) fn cases(times: u32) -> ProptestConfig {
    let cases = ProptestConfig::default().cases.saturating_mul(times);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}
