//! Kinds of errors, for programs.
/// The kinds of errors of this package, and of `ipc-std`, which connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such process, socket or path.
    NotFound,
    /// A socket at which no process listens.
    NoListener,
    /// Access to a socket or a process was denied.
    Permission,
    /// A deadline passed.
    Timeout,
    /// The runtime refused the command.
    Refused,
    /// The runtime does not know the command.
    Unsupported,
    /// The peer violated the protocol.
    Protocol,
    /// The runtime went away before the command was finished.
    Gone,
    /// A value that runtimes refuse; nothing was sent.
    Invalid,
    /// The caller cancelled the call.
    Cancelled,
    /// An I/O error in this process.
    Io,
}
