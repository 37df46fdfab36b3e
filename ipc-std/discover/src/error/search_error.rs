//! `SearchError`: the reasons of a search, the most important first.
use core::fmt;

use super::kind::ErrorKind;
use super::reason::Reason;

/// The reasons why the runtime of a process cannot be used, the most important first.
///
/// The text of the error is a sentence that says what to do.
#[derive(Debug, Clone)]
pub struct SearchError {
    process_id: u32,
    reasons: Vec<Reason>,
}

impl SearchError {
    /// Sorts the reasons.
    #[must_use]
    pub fn new(process_id: u32, reasons: impl Iterator<Item = Reason>) -> Self {
        let mut reasons: Vec<_> = reasons.collect();
        // The sort is stable: of two reasons with the same rank, the reason of the likelier socket comes first.
        reasons.sort_by_key(Reason::rank);
        Self { process_id, reasons }
    }

    /// Returns the process id, in the PID namespace of this process.
    #[must_use]
    pub const fn process_id(&self) -> u32 {
        self.process_id
    }

    /// Returns all reasons, the most important first.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// Returns the kind of the most important reason.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.reasons.first().map_or(ErrorKind::NotFound, Reason::kind)
    }
}

impl fmt::Display for SearchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [Reason::Unanswered { error, .. }, ..] = self.reasons.as_slice() {
            // The error of an unanswered request names the process, so no prefix is needed.
            return error.fmt(f);
        }
        write!(f, "process {} cannot be used: ", self.process_id)?;
        match self.reasons.as_slice() {
            [] => f.write_str("it was not searched"),
            // A single reason; or a reason that explains why there is no socket, so that `NoSocket` adds nothing.
            [reason]
            | [
                reason @ (Reason::DiagnosticsOff { .. }
                | Reason::TmpdirTooLong { .. }
                | Reason::NoTmpdir { .. }
                | Reason::Unwritable { .. }
                | Reason::Unresponsive { .. }
                | Reason::Hidden),
                Reason::NoSocket { .. },
                ..,
            ] => reason.fmt(f),
            // Further reasons rarely add information.
            [first, second, ..] => write!(f, "{first}; {second}"),
        }
    }
}
impl core::error::Error for SearchError {}
