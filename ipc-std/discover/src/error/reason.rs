//! Why a process or a socket cannot be used, with what to do about it.
use core::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::denied::Denied;
use super::kind::ErrorKind;
use crate::sys::Credentials;

/// A reason why a process or a socket cannot be used. Its text is a clause about "it", the process.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// There is no process with this id, or it ended during the search.
    #[error("there is no such process")]
    NoProcess,
    /// The process has ended, and its parent has not read its exit status yet.
    #[error("it has ended, and its parent has not read its exit status yet")]
    Ended,
    /// The id belongs to a thread of another process.
    #[error("it is a thread of process {process_id}: use that process id")]
    Thread {
        /// The process that has the thread.
        process_id: u32,
    },
    /// The `TMPDIR` of the process does not exist, so its runtime could not make a socket.
    #[error(
        "its TMPDIR {tmpdir} does not exist, so the runtime cannot make its socket: create the directory and \
         restart the process"
    )]
    NoTmpdir {
        /// The directory, as the process sees it.
        tmpdir: PathBuf,
    },
    /// The `TMPDIR` of the process was removed or renamed after its runtime had made a socket there.
    #[error(
        "its TMPDIR {tmpdir} was removed or renamed after the runtime had made its socket there: use the new path \
         of the socket, or restart the process"
    )]
    TmpdirGone {
        /// The directory, as the process sees it.
        tmpdir: PathBuf,
    },
    /// The process could not make a socket in its `TMPDIR`.
    #[error(
        "its runtime cannot make its socket in {tmpdir}: {obstacle}; make room in a writable directory there, or \
         set TMPDIR to one, and restart the process"
    )]
    Unwritable {
        /// The directory, as this process sees it.
        tmpdir: PathBuf,
        /// The state of the directory that prevents new files.
        obstacle: Obstacle,
    },
    /// A variable in the environment of the process switches its diagnostics off.
    #[error(
        "its diagnostics are switched off by {variable}={value} in its environment: restart it without that"
    )]
    DiagnosticsOff {
        /// The variable's name.
        variable: &'static str,
        /// The variable's value.
        value: String,
    },
    /// No socket has the name of the process.
    #[error("it has no diagnostic socket in {}{}", listed(searched), signs.explanation())]
    NoSocket {
        /// The directories that were searched.
        searched: Vec<PathBuf>,
        /// Whether the process has a runtime.
        signs: Signs,
    },
    /// The `TMPDIR` of the process is too long for the path of a socket, so its runtime could not make a socket.
    #[error("its TMPDIR {tmpdir} is too long for a socket: restart it with one of at most {limit} bytes")]
    TmpdirTooLong {
        /// The directory, as the process sees it.
        tmpdir: PathBuf,
        /// The longest possible directory, in bytes.
        limit: usize,
    },
    /// A file or directory could not be read.
    #[error("{path} cannot be read: {denied}")]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The reason.
        denied: Denied,
    },
    /// A file system did not respond in time.
    #[error("the file system of {path} does not respond: check its server")]
    Unresponsive {
        /// The path on that file system.
        path: PathBuf,
    },
    /// A process with this id exists, but the system hides everything else about it.
    #[error(
        "the system hides it, for example because /proc is mounted with hidepid: run as its user or as root"
    )]
    Hidden,
    /// The socket belongs to a user who does not own the process. The search did not connect to the socket.
    #[error(
        "{path} belongs to user {owner}, but the process to user {user_id}: it was not connected to, check who \
         made it"
    )]
    Foreign {
        /// The socket.
        path: PathBuf,
        /// The user who owns the socket.
        owner: u32,
        /// The user of the process.
        user_id: u32,
    },
    /// The operating system denied access to the socket.
    #[error("no permission to connect to {path}: {denied}")]
    Permission {
        /// The socket.
        path: PathBuf,
        /// The reason.
        denied: Denied,
    },
    /// No process listens at the socket of this process.
    #[error(
        "no process listens at {path}: the runtime is ending or has closed its port; restart the process"
    )]
    NoListener {
        /// The socket.
        path: PathBuf,
    },
    /// No process listens at the socket, which an earlier process with this id made.
    #[error("no process listens at {path}, {}: remove it", maker(*key, *started))]
    Stale {
        /// The socket.
        path: PathBuf,
        /// The start time of the earlier process, as in the socket's name.
        key: u64,
        /// The start time of the current process with this id; `None` if there is no such process or its start time is
        /// unknown.
        started: Option<u64>,
    },
    /// Another process listens at the socket. Nothing was sent to it.
    #[error("another process listens at {path}: {peer}; nothing was sent to it, check what it is")]
    Impostor {
        /// The socket.
        path: PathBuf,
        /// The process that listens.
        peer: Credentials,
    },
    /// The process that made the socket has ended, and another process that inherited its listener accepts connections.
    /// Nothing was sent to that process.
    #[error(
        "another process has inherited the listener of {path}, {}; nothing was sent: end the process that \
         inherited it, and then remove the socket", maker(*key, *started)
    )]
    Inherited {
        /// The socket.
        path: PathBuf,
        /// The start time of the process that made the socket, as in the socket's name.
        key: u64,
        /// The start time of the current process with its id; `None` if there is no such process.
        started: Option<u64>,
    },
    /// The runtime that listens at the socket reports another process id.
    #[error(
        "the runtime that listens at {path} reports process id {reported} instead of {expected}: check what it is"
    )]
    OtherProcess {
        /// The socket.
        path: PathBuf,
        /// The id that the runtime reported.
        reported: u64,
        /// The process id that the runtime should have, in its own PID namespace.
        expected: u32,
    },
    /// Runtimes in several other PID namespaces have this process id.
    #[error(
        "runtimes in several other PID namespaces have this id, at {other} and {path}: choose one by its socket"
    )]
    Ambiguous {
        /// The path of the socket of one such runtime.
        path: PathBuf,
        /// The path of the socket of another such runtime.
        other: PathBuf,
    },
    /// The file has the name of a socket, but is not a socket.
    #[error("{path} has the name of its socket, but is none: remove it and restart the process")]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// The socket disappeared during the search.
    #[error("{path} disappeared during the search: the process is ending")]
    Vanished {
        /// The socket.
        path: PathBuf,
    },
    /// The path is too long to connect to, and this system has no shorter path to the socket.
    #[error("the path of its socket is longer than {limit} bytes: {path}; restart it with a shorter TMPDIR")]
    PathTooLong {
        /// The socket.
        path: PathBuf,
        /// The longest possible path, in bytes.
        limit: usize,
    },
    /// A process listens at the socket, but did not identify itself.
    #[error("{error}")]
    Unanswered {
        /// The socket.
        path: PathBuf,
        /// The kind of the error.
        kind: ErrorKind,
        /// The error of the request for process information: an `Error` of `ipc-std`.
        error: Arc<dyn core::error::Error + Send + Sync>,
    },
}

/// Signs of a runtime in the memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signs {
    /// The memory map cannot be read.
    Unknown,
    /// No mapped file is a runtime. A NativeAOT program also has this sign: its runtime is linked into the program.
    Absent,
    /// A runtime is loaded. Whether it listens is unknown: it is older than .NET 11, or does not show its version.
    Loaded,
    /// A runtime of .NET 11 or newer is loaded, and has no sign that it listens.
    NotListening,
    /// A runtime has made its socket. Runtimes of .NET 11 leave this sign, NativeAOT among them, and late ones of
    /// .NET 10.
    Listening,
}

impl Reason {
    /// Returns a stable identifier for the reason, such as `no_socket`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NoProcess => "no_process",
            Self::Ended => "ended",
            Self::Thread { .. } => "thread",
            Self::NoTmpdir { .. } => "no_tmpdir",
            Self::TmpdirGone { .. } => "tmpdir_gone",
            Self::Unwritable { .. } => "unwritable",
            Self::DiagnosticsOff { .. } => "diagnostics_off",
            Self::NoSocket { .. } => "no_socket",
            Self::TmpdirTooLong { .. } => "tmpdir_too_long",
            Self::Unreadable { .. } => "unreadable",
            Self::Unresponsive { .. } => "unresponsive",
            Self::Hidden => "hidden",
            Self::Foreign { .. } => "foreign",
            Self::Permission { .. } => "permission",
            Self::NoListener { .. } => "no_listener",
            Self::Stale { .. } => "stale",
            Self::Impostor { .. } => "impostor",
            Self::Inherited { .. } => "inherited",
            Self::OtherProcess { .. } => "other_process",
            Self::Ambiguous { .. } => "ambiguous",
            Self::NotASocket { .. } => "not_a_socket",
            Self::Vanished { .. } => "vanished",
            Self::PathTooLong { .. } => "path_too_long",
            Self::Unanswered { .. } => "unanswered",
        }
    }

    /// Returns the kind of error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoListener { .. } | Self::Stale { .. } => ErrorKind::NoListener,
            Self::Permission { .. } | Self::Hidden => ErrorKind::Permission,
            Self::Unresponsive { .. } => ErrorKind::Timeout,
            Self::Unreadable { denied, .. } if denied.is_permission() => ErrorKind::Permission,
            Self::Unanswered { kind, .. } => *kind,
            _ => ErrorKind::NotFound,
        }
    }

    /// Returns the socket, file or directory of the reason.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Unreadable { path, .. }
            | Self::Unresponsive { path }
            | Self::Foreign { path, .. }
            | Self::Permission { path, .. }
            | Self::NoListener { path }
            | Self::Stale { path, .. }
            | Self::Impostor { path, .. }
            | Self::Inherited { path, .. }
            | Self::OtherProcess { path, .. }
            | Self::Ambiguous { path, .. }
            | Self::NotASocket { path }
            | Self::Vanished { path }
            | Self::PathTooLong { path, .. }
            | Self::Unanswered { path, .. } => Some(path),
            Self::TmpdirTooLong { tmpdir, .. }
            | Self::NoTmpdir { tmpdir }
            | Self::TmpdirGone { tmpdir }
            | Self::Unwritable { tmpdir, .. } => Some(tmpdir),
            Self::NoProcess
            | Self::Ended
            | Self::Thread { .. }
            | Self::Hidden
            | Self::DiagnosticsOff { .. }
            | Self::NoSocket { .. } => None,
        }
    }

    /// Returns the rank of the reason in the order of importance; 0 is the most important.
    pub(super) const fn rank(&self) -> u8 {
        match self {
            Self::NoProcess | Self::Ended | Self::Thread { .. } | Self::Ambiguous { .. } => 0,
            Self::Unanswered { .. } => 1,
            Self::Permission { .. } => 2,
            Self::Impostor { .. }
            | Self::Inherited { .. }
            | Self::Foreign { .. }
            | Self::OtherProcess { .. } => 3,
            Self::PathTooLong { .. } => 4,
            Self::NoListener { .. } | Self::NotASocket { .. } | Self::Vanished { .. } => 5,
            Self::DiagnosticsOff { .. } => 6,
            Self::TmpdirTooLong { .. }
            | Self::NoTmpdir { .. }
            | Self::TmpdirGone { .. }
            | Self::Unwritable { .. } => 7,
            Self::Unreadable { .. } | Self::Unresponsive { .. } | Self::Hidden => 8,
            Self::Stale { .. } => 9,
            Self::NoSocket { .. } => 10,
        }
    }
}

/// Why a process cannot make files in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Obstacle {
    /// The file system is mounted read-only.
    #[error("its file system is mounted read-only")]
    ReadOnly,
    /// The file system has no free inodes.
    #[error("its file system has no free inodes")]
    NoInodes,
    /// The file system has no free space for users.
    #[error("its file system is full")]
    Full,
    /// The mode of the directory excludes the user of the process.
    #[error("it is not writable for user {user_id} (owner {owner}, mode {mode:04o})")]
    Mode {
        /// The user of the process.
        user_id: u32,
        /// The owner of the directory.
        owner: u32,
        /// The permissions of the directory.
        mode: u32,
    },
}

/// Joins the paths of directories for a sentence.
fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" or ")
}

/// Returns a clause about the process that made a socket.
fn maker(key: u64, started: Option<u64>) -> String {
    started.map_or_else(
        || "whose process has ended".to_owned(),
        |started| {
            format!("which an earlier process with this id made (started at {key}, this one at {started})")
        },
    )
}

impl Signs {
    /// Explains why a process with these signs has no socket.
    const fn explanation(self) -> &'static str {
        match self {
            Self::Unknown if cfg!(windows) => {
                ": it is not a .NET process, its diagnostics are switched off (DOTNET_EnableDiagnostics=0), or it has \
                 only just started"
            }
            Self::Unknown => {
                ": it is not a .NET process, its diagnostics are switched off (DOTNET_EnableDiagnostics=0), or it has \
                 another TMPDIR"
            }
            Self::Absent => {
                ", and no .NET runtime in its memory: it is not a .NET process, it was compiled ahead of time \
                 without diagnostics, it is starting or ending, or its socket was deleted"
            }
            Self::Loaded => {
                ", although a .NET runtime is loaded (before .NET 11 it is unknown whether that listens): it is \
                 starting or ending, its diagnostics are switched off, its socket is in another TMPDIR, or it was \
                 deleted and the process must be restarted"
            }
            Self::NotListening => {
                ", and its runtime does not listen: it is starting or ending, or its diagnostics are switched off and \
                 the process must be restarted with them"
            }
            Self::Listening => {
                ", although it made one and listens: its socket is in another TMPDIR or was deleted; connect by the \
                 path of the socket, or the process must be restarted"
            }
        }
    }
}

impl fmt::Display for Signs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "its memory map cannot be read",
            Self::Absent => "there is no runtime in its memory",
            Self::Loaded => "a runtime is loaded",
            Self::NotListening => "a runtime is loaded and does not listen",
            Self::Listening => "a runtime is loaded and has made a socket",
        })
    }
}
