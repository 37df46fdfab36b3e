//! `--process`: one process of a trace of several.
use core::cell::Cell;
use core::fmt;

use nettrace::TraceEvent;

use crate::run::{Failure, Kind};

/// `--process`: the process whose events are read.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ProcessArg {
    /// Only the events of this process, in a trace of several processes
    #[arg(long = "process", value_name = "PID")]
    id: Option<u64>,
    /// Whether an event of the process was read.
    #[arg(skip)]
    is_found: Cell<bool>,
}

impl ProcessArg {
    pub(crate) const fn is_given(&self) -> bool {
        self.id.is_some()
    }

    /// Returns whether the event is one of the process.
    pub(crate) fn includes(&self, event: &TraceEvent<'_>) -> bool {
        self.includes_id(|| event.process_id())
    }

    /// Returns whether an event of the process with the ID that `process_id` returns is one of the process.
    pub(crate) fn includes_id(&self, process_id: impl FnOnce() -> Option<u64>) -> bool {
        let is_included = self.id.is_none_or(|id| process_id() == Some(id));
        self.is_found.set(self.is_found.get() || is_included);
        is_included
    }

    /// Fails if the trace has no event of the process.
    pub(crate) fn check(&self, name: impl fmt::Display) -> Result<(), Failure> {
        match self.id.filter(|_| !self.is_found.get()) {
            Some(id) => Err(Failure::new(Kind::NothingFound, format!("{name}: no event of process {id}"))
                .with_hint(format!("`dotnet-ipc stats {name}` lists the processes of the trace"))),
            None => Ok(()),
        }
    }
}
