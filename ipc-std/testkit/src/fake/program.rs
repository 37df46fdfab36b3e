//! The program of a fake runtime.

/// The events of the fake program, repeated: a second of a program on .NET 10 with the events of its own sources,
/// collections, exceptions, counters, one in twenty samples, and the rundown of its modules.
pub(super) const RECORDING: &[u8] = include_bytes!("program.nettrace");
