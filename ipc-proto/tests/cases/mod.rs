//! The number of cases of a property test.
use proptest::prelude::ProptestConfig;

/// Returns a configuration with `times` as many cases as `PROPTEST_CASES` or else the default.
pub(crate) fn cases(times: u32) -> ProptestConfig {
    let cases = ProptestConfig::default().cases.saturating_mul(times);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}
