//! The check of a command before it is sent.
use ipc_proto::InvalidValue;
use ipc_proto::plan::PlanStep;

use super::error::Error;

/// Fails with [`Error::Invalid`] if runtimes refuse a value of the command, or if the value ends the process of some
/// runtimes.
pub(crate) fn check(command: &impl PlanStep) -> Result<(), Error> {
    command.check().map_err(|InvalidValue { violation, place }| Error::Invalid {
        command: command.code(),
        violation,
        place,
    })
}
