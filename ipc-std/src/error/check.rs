use ipc_proto::{Command, InvalidValue};

use super::Error;

/// Fails with [`Error::Invalid`] if runtimes refuse a value of the command, or if some end because of it.
pub(crate) fn check<C: Command>(command: &C) -> Result<(), Error> {
    command.check().map_err(|InvalidValue { violation, place }| Error::Invalid {
        command: C::CODE,
        violation,
        place,
    })
}
