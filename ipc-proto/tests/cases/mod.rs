//! The number of cases of a property.
use proptest::prelude::ProptestConfig;

/// Returns a configuration with `times` the default number of cases, or that of `PROPTEST_CASES`.
pub(crate) fn cases(times: u32) -> ProptestConfig {
    let cases = ProptestConfig::default().cases.saturating_mul(times);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}
