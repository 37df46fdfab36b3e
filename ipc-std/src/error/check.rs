use ipc_proto::Command;

use super::Error;

/// Fails with [`Error::Invalid`] if runtimes refuse a value of the command, or if some end because of it.
pub(crate) fn check<C: Command>(command: &C) -> Result<(), Error> {
    command.check().map_err(|violation| Error::Invalid { command: C::CODE, violation })
}
