//! `DumpOutcome`: how a dump was written.
use ipc_proto::Code;
use ipc_proto::plan::{LostFeatures, PlanStep};

/// How a dump was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DumpOutcome {
    /// The command that the runtime executed.
    pub command: Code,
    /// The parts of the configuration that this command cannot carry.
    pub lost_features: LostFeatures,
}

impl DumpOutcome {
    /// Returns the outcome of the command that the runtime has carried out.
    pub fn of(command: &impl PlanStep) -> Self {
        Self { command: command.code(), lost_features: command.lost_features() }
    }
}
