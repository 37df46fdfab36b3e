//! Standard error of a command with sessions: [`SessionOutput`] writes it.
use std::io::{self, Write};

use super::session_output::{Batches, PATIENCE, Refusal, SessionOutput, StalledOutput};
use crate::run::Failure;
use crate::run::stderr::note_line;
use crate::text::terminal_text::TerminalText;

/// Standard error that a thread writes. A reader that takes nothing delays no session.
#[derive(Debug)]
pub(crate) struct LiveStderr {
    is_json: bool,
    output: SessionOutput<()>,
}

impl LiveStderr {
    /// Starts the thread. With `is_json`, notes are objects.
    pub(crate) fn begin(is_json: bool) -> Result<Self, Failure> {
        let write = |batches: &mut Batches| {
            let mut stderr = TerminalText::new(io::stderr());
            while let Some(lines) = batches.next() {
                // A failure is ignored, because there is no other place to report it.
                let _ = stderr.write_all(lines);
            }
        };
        Ok(Self { is_json, output: SessionOutput::spawn("stderr", write)? })
    }

    /// Writes a line. Fails if too many bytes wait.
    pub(crate) fn write(&self, line: &str) -> Result<(), Failure> {
        match self.output.pass(format!("{line}\n").as_bytes()) {
            Err(Refusal::Stalled(stalled)) => Err(cannot_write(stalled)),
            // The thread ends early only by a panic, whose message is on standard error.
            Err(Refusal::Ended) | Ok(()) => Ok(()),
        }
    }

    /// Writes a remark, which is neither a result nor an error. Fails if too many bytes wait.
    pub(crate) fn note(&self, note: &str) -> Result<(), Failure> {
        self.write(&note_line(self.is_json, note))
    }

    /// Waits until everything is written. After a failure, standard error takes no report of it, either.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.output.finish(Some(PATIENCE)).map_err(cannot_write)
    }
}

fn cannot_write(stalled: StalledOutput) -> Failure {
    Failure::io("cannot write to standard error", &stalled.into())
}
