use core::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Paths;
use crate::{Credentials, Error, ErrorKind};

/// Why a process cannot be asked: every reason that there is, the most telling first.
///
/// As text it is a sentence that says what to do.
#[derive(Debug, Clone)]
pub struct Why {
    process_id: u32,
    reasons: Vec<Reason>,
}

/// One reason why a process, or a socket, cannot be asked. As text it is a part of a sentence, about "it": the process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Reason {
    /// There is no process with this id; or no more, if it ended while it was looked for.
    NoProcess,
    /// The process has ended, and its parent has not asked yet how.
    Ended,
    /// It is the id of a thread of another process.
    Thread {
        /// That process.
        process_id: u32,
    },
    /// The `TMPDIR` of the process is not there, so that its runtime could not make a socket in it.
    NoTmpdir {
        /// The directory, as the process has it.
        tmpdir: PathBuf,
    },
    /// A variable in the environment of the process switches its diagnostics off.
    DiagnosticsOff {
        /// Its name.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// No socket has the name of the process.
    NoSocket {
        /// Where one was looked for.
        looked_in: Vec<PathBuf>,
        /// Whether it has a runtime at all.
        signs: Signs,
    },
    /// The `TMPDIR` of the process is too long for a socket in it, so that its runtime could not make one.
    TmpdirTooLong {
        /// The directory, as the process has it.
        tmpdir: PathBuf,
        /// The longest that would do, in bytes.
        limit: usize,
    },
    /// Something could not be looked at.
    Unreadable {
        /// What.
        path: PathBuf,
        /// Whose it is and who we are.
        denied: Denied,
    },
    /// Looking at something took too long: its file system does not answer.
    Unresponsive {
        /// What.
        path: PathBuf,
    },
    /// There is a process with this id, but nothing more is told of it.
    Hidden,
    /// The socket was made by somebody who has nothing to do with the process. Nobody connected to it.
    Foreign {
        /// The socket.
        path: PathBuf,
        /// Who made it.
        owner: u32,
        /// The user of the process.
        user_id: u32,
    },
    /// We may not connect to the socket.
    Permission {
        /// The socket.
        path: PathBuf,
        /// Whose it is and who we are.
        denied: Denied,
    },
    /// Nobody listens at the socket of this very process.
    NoListener {
        /// The socket.
        path: PathBuf,
    },
    /// Nobody listens at a socket that an earlier process with this id made.
    Stale {
        /// The socket.
        path: PathBuf,
        /// When that process started, as the name of the socket has it.
        key: u64,
        /// When the process with this id started that is there now; `None` if there is none, or it is not known.
        started: Option<u64>,
    },
    /// Somebody else listens at the socket. Nothing was sent to them.
    Impostor {
        /// The socket.
        path: PathBuf,
        /// Who it is.
        peer: Credentials,
    },
    /// The runtime that listens there says it is another process.
    OtherProcess {
        /// The socket.
        path: PathBuf,
        /// The id that it has, as it says.
        told: u64,
        /// The id that it should have, in its own PID namespace.
        expected: u32,
    },
    /// It has the name of a socket, and is none.
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// The socket was there, and is no more.
    Vanished {
        /// The socket.
        path: PathBuf,
    },
    /// The path is too long to connect to, and this system has no way around that.
    PathTooLong {
        /// The socket.
        path: PathBuf,
        /// The longest that would do, in bytes.
        limit: usize,
    },
    /// Somebody listens there, and did not say who they are.
    Unanswered {
        /// The socket.
        path: PathBuf,
        /// What came in place of an answer.
        error: Arc<Error>,
    },
}

/// Signs of a runtime in the memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signs {
    /// It cannot be looked at.
    Unknown,
    /// There are none, as in a NativeAOT program, whose runtime is a part of it.
    Absent,
    /// A runtime is loaded.
    Loaded,
    /// A runtime is loaded, and has made a socket: newer ones leave a sign of that, .NET 10 among them.
    Listening,
}

/// Why the operating system says no.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denied {
    /// What is in the way: the file itself, or a directory above it.
    pub by: PathBuf,
    /// The user whose it is, if that is known.
    pub owner: Option<u32>,
    /// Its permissions, if they are known.
    pub mode: Option<u32>,
    /// The user that we are, where users have numbers.
    pub own_user: Option<u32>,
    /// The operating system's number of the error.
    pub errno: i32,
}

impl Why {
    pub(crate) fn new(process_id: u32, reasons: impl Iterator<Item = Reason>) -> Self {
        let mut reasons: Vec<_> = reasons.collect();
        // It sorts stably: of equals, the likelier socket's comes first.
        reasons.sort_by_key(Reason::rank);
        Self { process_id, reasons }
    }

    /// The process, as it is seen from here.
    #[must_use]
    pub const fn process_id(&self) -> u32 {
        self.process_id
    }

    /// Every reason, the most telling first.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.reasons.first().map_or(ErrorKind::NotFound, Reason::kind)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [Reason::Unanswered { error, .. }, ..] = self.reasons.as_slice() {
            // It says itself who it is about.
            return error.fmt(f);
        }
        write!(f, "process {} cannot be asked: ", self.process_id)?;
        match self.reasons.as_slice() {
            [] => f.write_str("it was not looked at"),
            // The second only guesses what the first knows.
            [reason]
            | [
                reason @ (Reason::DiagnosticsOff { .. }
                | Reason::TmpdirTooLong { .. }
                | Reason::NoTmpdir { .. }
                | Reason::Unresponsive { .. }
                | Reason::Hidden),
                Reason::NoSocket { .. },
                ..,
            ] => reason.fmt(f),
            // The others are rarely news.
            [first, second, ..] => write!(f, "{first}; {second}"),
        }
    }
}
impl core::error::Error for Why {}

impl Reason {
    /// A word for it, the same for ever: the tool's JSON has it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NoProcess => "no_process",
            Self::Ended => "ended",
            Self::Thread { .. } => "thread",
            Self::NoTmpdir { .. } => "no_tmpdir",
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
            Self::OtherProcess { .. } => "other_process",
            Self::NotASocket { .. } => "not_a_socket",
            Self::Vanished { .. } => "vanished",
            Self::PathTooLong { .. } => "path_too_long",
            Self::Unanswered { .. } => "unanswered",
        }
    }

    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoListener { .. } | Self::Stale { .. } => ErrorKind::NoListener,
            Self::Permission { .. } | Self::Hidden => ErrorKind::Permission,
            Self::Unresponsive { .. } => ErrorKind::Timeout,
            Self::Unreadable { denied, .. } if denied.is_permission() => ErrorKind::Permission,
            Self::Unanswered { error, .. } => error.kind(),
            _ => ErrorKind::NotFound,
        }
    }

    /// The socket that it is about, or the file.
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
            | Self::OtherProcess { path, .. }
            | Self::NotASocket { path }
            | Self::Vanished { path }
            | Self::PathTooLong { path, .. }
            | Self::Unanswered { path, .. } => Some(path),
            Self::TmpdirTooLong { tmpdir, .. } | Self::NoTmpdir { tmpdir } => Some(tmpdir),
            Self::NoProcess
            | Self::Ended
            | Self::Thread { .. }
            | Self::Hidden
            | Self::DiagnosticsOff { .. }
            | Self::NoSocket { .. } => None,
        }
    }

    /// How much it tells; the least is the most.
    const fn rank(&self) -> u8 {
        match self {
            Self::NoProcess | Self::Ended | Self::Thread { .. } => 0,
            Self::Unanswered { .. } => 1,
            Self::Permission { .. } => 2,
            Self::Impostor { .. } | Self::Foreign { .. } | Self::OtherProcess { .. } => 3,
            Self::PathTooLong { .. } => 4,
            Self::NoListener { .. } | Self::NotASocket { .. } | Self::Vanished { .. } => 5,
            Self::DiagnosticsOff { .. } => 6,
            Self::TmpdirTooLong { .. } | Self::NoTmpdir { .. } => 7,
            Self::Unreadable { .. } | Self::Unresponsive { .. } | Self::Hidden => 8,
            Self::Stale { .. } => 9,
            Self::NoSocket { .. } => 10,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProcess => f.write_str("there is no such process"),
            Self::Ended => f.write_str("it has ended, and waits for its parent to ask how"),
            Self::Thread { process_id } => write!(f, "it is a thread of process {process_id}: ask that"),
            Self::NoTmpdir { tmpdir } => write!(
                f,
                "its TMPDIR {} does not exist, where a runtime cannot make its socket: make it, and start the \
                 process again",
                tmpdir.display()
            ),
            Self::DiagnosticsOff { variable, value } => write!(
                f,
                "its diagnostics are switched off by {variable}={value} in its environment: start it without that"
            ),
            Self::NoSocket { looked_in, signs } => {
                write!(f, "it has no diagnostic socket in {}", Paths(looked_in))?;
                f.write_str(match signs {
                    Signs::Unknown if cfg!(windows) => {
                        ": it is no .NET process, its diagnostics are switched off \
                         (DOTNET_EnableDiagnostics=0), or it has only just started"
                    }
                    Signs::Unknown => {
                        ": it is no .NET process, its diagnostics are switched off \
                         (DOTNET_EnableDiagnostics=0), or it has another TMPDIR"
                    }
                    Signs::Absent => {
                        ", and no .NET runtime is seen in its memory: it is no .NET process; or it was compiled ahead \
                         of time, and has no diagnostics, is starting or ending just now, or its socket was deleted"
                    }
                    Signs::Loaded => {
                        ", although a .NET runtime is loaded: it is starting or ending just now, its \
                         diagnostics are switched off, or the socket was deleted, which only a new start mends"
                    }
                    Signs::Listening => {
                        ", although it made one: somebody deleted it, which only a new start of the process mends"
                    }
                })
            }
            Self::TmpdirTooLong { tmpdir, limit } => write!(
                f,
                "its TMPDIR {} is too long to make a socket in: start it with one of at most {limit} bytes",
                tmpdir.display()
            ),
            Self::Unreadable { path, denied } => {
                write!(f, "{} cannot be looked at: {denied}", path.display())
            }
            Self::Unresponsive { path } => write!(
                f,
                "looking into {} took too long: its file system does not answer, see who is to answer for it",
                path.display()
            ),
            Self::Hidden => f.write_str(
                "it is hidden from us, as where /proc is mounted with hidepid: be its user, or root",
            ),
            Self::Foreign { path, owner, user_id } => write!(
                f,
                "{} was made by user {owner}, and the process is user {user_id}'s: nobody connected there, see who \
                 they are",
                path.display()
            ),
            Self::Permission { path, denied } => {
                write!(f, "no permission to connect to {}: {denied}", path.display())
            }
            Self::NoListener { path } => write!(
                f,
                "nobody listens at {}: its runtime is ending, or has closed its port; start it again",
                path.display()
            ),
            Self::Stale { path, key, started: Some(started) } => write!(
                f,
                "nobody listens at {}, which is left of an earlier process with this id (started at {key}, this one \
                 at {started}): remove it",
                path.display()
            ),
            Self::Stale { path, started: None, .. } => write!(
                f,
                "nobody listens at {}, which is left of a process that is gone: remove it",
                path.display()
            ),
            Self::Impostor { path, peer } => {
                let path = path.display();
                write!(
                    f,
                    "somebody else listens at {path}: {peer}; nothing was sent to them, see who they are"
                )
            }
            Self::OtherProcess { path, told, expected } => write!(
                f,
                "who listens at {} says it is process {told}, not {expected}: see who that is",
                path.display()
            ),
            Self::NotASocket { path } => write!(
                f,
                "{} has the name of its socket, but is none: remove it, and start the process again",
                path.display()
            ),
            Self::Vanished { path } => {
                write!(f, "{} was there, and is no more: it is ending just now", path.display())
            }
            Self::PathTooLong { path, limit } => write!(
                f,
                "the path of its socket is longer than {limit} bytes, which cannot be connected to: {}; start it \
                 with a shorter TMPDIR",
                path.display()
            ),
            Self::Unanswered { error, .. } => error.fmt(f),
        }
    }
}

impl fmt::Display for Signs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "its memory cannot be looked at",
            Self::Absent => "no runtime is seen in its memory",
            Self::Loaded => "a runtime is loaded",
            Self::Listening => "a runtime is loaded, and has made a socket",
        })
    }
}

impl Denied {
    /// Whether it is for lack of permission, and not for another error.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        io::Error::from_raw_os_error(self.errno).kind() == io::ErrorKind::PermissionDenied
    }

    /// What to do about it.
    #[must_use]
    pub fn advice(&self) -> String {
        match self.owner {
            Some(owner) if self.own_user != Some(owner) && owner != 0 => format!("be user {owner}, or root"),
            _ if cfg!(windows) => "be the user who runs the process, or an administrator".to_owned(),
            _ if self.own_user != Some(0) => "be the user who runs the process, or root".to_owned(),
            _ => "a namespace or a security module is in the way: be outside of it".to_owned(),
        }
    }
}

/// `/x belongs to user 0 with mode 0600, and we are user 1000: Permission denied (os error 13); be user 0, or root`
impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = io::Error::from_raw_os_error(self.errno);
        if !self.is_permission() {
            return error.fmt(f);
        }
        let Some(own_user) = self.own_user else { return write!(f, "{error}; {}", self.advice()) };
        match (self.owner, self.mode) {
            (Some(owner), Some(mode)) => {
                write!(f, "{} belongs to user {owner} with mode {mode:04o}, and we", self.by.display())?;
            }
            (Some(owner), None) => write!(f, "{} belongs to user {owner}, and we", self.by.display())?,
            (None, _) => f.write_str("we")?,
        }
        write!(f, " are user {own_user}: {error}; {}", self.advice())
    }
}
