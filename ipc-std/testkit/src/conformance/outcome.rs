//! The results of cases: of cases that ran, and of cases that did not.
use core::fmt;

use super::difference::Difference;

/// The result of a case without a [`Difference`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a case that was not tried has not passed"]
pub enum Outcome {
    /// The server gave the right answer.
    Passed,
    /// The case says nothing about the server.
    NotTried(NotTried),
}

/// Why a case was not tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotTried {
    /// The case has a [half-close](crate::conformance::Case::half_close), or a
    /// [descriptor](crate::conformance::Case::descriptor), and the transport has none: a pipe, a transport with a thread.
    HalfClose,
    /// The server did not answer before, to two requests, one after the other.
    Silent,
}

impl fmt::Display for NotTried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HalfClose => "the transport cannot close one direction, or sends no descriptor",
            Self::Silent => "the server does not answer any more",
        })
    }
}

/// The results of many cases, by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "it has the differences"]
#[non_exhaustive]
pub struct Report {
    /// The cases with the right answer.
    pub passed: Vec<String>,
    /// The wrong answers.
    pub differences: Vec<Difference>,
    /// The cases that were not tried.
    pub not_tried: Vec<(String, NotTried)>,
}

/// Writes a line for each difference, and the numbers.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, differences, not_tried } = self;
        differences.iter().try_for_each(|difference| writeln!(f, "{difference}"))?;
        write!(f, "{} passed, {} differences", passed.len(), differences.len())?;
        for reason in [NotTried::HalfClose, NotTried::Silent] {
            let cases = not_tried.iter().filter(|(_, why)| *why == reason).count();
            if cases > 0 {
                write!(f, "; {cases} not tried: {reason}")?;
            }
        }
        Ok(())
    }
}
