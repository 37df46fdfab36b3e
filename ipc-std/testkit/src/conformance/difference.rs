//! How an answer differs from the expected one.
use core::fmt;

/// The right answer that an answer is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Against<'a> {
    /// The expected answer of a careful server.
    Expected,
    /// The answers of real runtimes of this kind, one of [`KINDS`](crate::conformance::KINDS), including those of
    /// single-file programs. If the answer is [unpredictable](crate::conformance::Case::is_unpredictable_for),
    /// any answer is right.
    Observed(&'a str),
}

/// An answer that differs from the right one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The name of the case.
    pub case: String,
    /// A description of the right answer.
    pub expected: String,
    /// A description of the received answer.
    pub answered: String,
}

/// Writes the difference in one line.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, got {}", self.case, self.expected, self.answered)
    }
}
impl core::error::Error for Difference {}
