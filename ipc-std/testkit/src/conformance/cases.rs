//! All cases, from the file `cases.jsonl`.
use super::case::{Case, version_of};

/// The cases. `testdata/conformance/cases.jsonl` is a link to this file, because a copy would become outdated.
const CASES: &str = include_str!("cases.jsonl");

/// The kinds of runtimes whose answers are in the cases, without those of single-file programs, which
/// [`Case::seen`] includes.
pub const KINDS: &[&str] =
    &["net11", "net10", "net9", "net8", "net11-aot", "net10-aot", "net9-aot", "net8-aot", "net31"];

/// Returns the newest version of .NET that the cases were tried with. What ends a newer runtime is not known.
///
/// ```
/// assert!(ipc_testkit::conformance::newest_version() >= 11);
/// ```
#[must_use]
pub fn newest_version() -> u8 {
    let kinds = cases().into_iter().flat_map(|case| case.observed.into_keys());
    kinds.filter_map(|kind| version_of(&kind)).max().unwrap_or(0)
}

/// Returns all cases, in the order in which to try them.
#[must_use]
pub fn cases() -> Vec<Case> {
    CASES.lines().filter_map(|line| line.parse().ok()).collect()
}
