//! `Search`: the search for the runtime of one process, step by step.
use core::fmt;
use std::path::{Path, PathBuf};

use crate::candidate::Candidate;
use crate::deadline::Deadline;
use crate::error::{Reason, SearchError, Signs};
use crate::target::Target;

/// The steps and results of the search for one runtime.
///
/// ```
/// use core::time::Duration;
///
/// let search = ipc_discover::search(std::process::id(), Duration::from_secs(10));
/// for step in search.steps() {
///     println!("{step}");
/// }
/// println!("{}", search.error()); // process 4242 cannot be used: it has no diagnostic socket in /tmp, and ...
/// ```
#[derive(Debug)]
pub struct Search {
    pub(crate) process_id: u32,
    pub(crate) steps: Vec<SearchStep>,
    /// The possible sockets of the runtime, the likeliest first.
    pub(crate) candidates: Vec<Candidate>,
    /// The process that must listen, if it is visible.
    pub(crate) target: Option<Target>,
    pub(crate) deadline: Deadline,
}

/// An object that was inspected, and the reason why it does not lead to the runtime.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SearchStep {
    /// The object.
    pub subject: SearchSubject,
    /// The reason; `None` if nothing is wrong with the object.
    pub reason: Option<Reason>,
}

/// An object that was inspected, with the result.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SearchSubject {
    /// The process.
    Process {
        /// The process id in the PID namespace of this process.
        process_id: u32,
        /// The process id in its own PID namespace.
        local_process_id: u32,
        /// The user of the process, if known.
        user_id: Option<u32>,
        /// The start time in the unit of the socket's name, if known.
        started: Option<u64>,
    },
    /// The environment with which the process was started.
    Environment {
        /// The value of `TMPDIR`.
        tmpdir: Option<PathBuf>,
    },
    /// A directory in which the socket may be.
    Directory {
        /// The directory.
        path: PathBuf,
        /// The number of sockets in the directory with the name of this process.
        sockets: usize,
    },
    /// The memory map of the process.
    Memory {
        /// The signs of a runtime in the memory.
        signs: Signs,
    },
    /// A socket, at which the runtime was asked for its process information.
    Socket {
        /// The socket.
        path: PathBuf,
    },
}

impl Search {
    pub(crate) const fn new(process_id: u32, deadline: Deadline) -> Self {
        Self { process_id, steps: Vec::new(), candidates: Vec::new(), target: None, deadline }
    }

    /// Returns the process id in the PID namespace of this process; for a socket of an invisible process, the id in the
    /// name of the socket.
    #[must_use]
    pub const fn process_id(&self) -> u32 {
        self.process_id
    }

    /// Returns the steps so far, in order.
    #[must_use]
    pub fn steps(&self) -> &[SearchStep] {
        &self.steps
    }

    /// Returns the likeliest socket, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.candidates.first().map(|candidate| &*candidate.path)
    }

    /// Returns the process that the search found; `None` if it found only sockets. Also `None` if the names of all
    /// sockets contradict the start time of the process: the runtime may be in another PID namespace. Only
    /// the process that accepts a connection is certain.
    #[must_use]
    pub fn visible_process_id(&self) -> Option<u32> {
        let is_possible = self.candidates.is_empty() || self.candidates.iter().any(|own| own.is_its_own);
        self.target.map(|target| target.process_id).filter(|_| is_possible)
    }

    /// Returns the possible sockets of the runtime, the likeliest first.
    #[must_use]
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Returns the process that must listen, if it is visible. Otherwise the search found only sockets with its id in
    /// their names.
    #[must_use]
    pub const fn target(&self) -> Option<Target> {
        self.target
    }

    /// Returns the deadline of the search and of the connections that follow it.
    #[must_use]
    pub const fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Returns the socket whose name proves that it belongs to the process, if no other socket can be the process's.
    #[must_use]
    pub fn proven(&self) -> Option<&Candidate> {
        let mut own =
            self.candidates.iter().filter(|own| own.is_its_own && own.objection(self.target).is_none());
        match (own.next(), own.next()) {
            (Some(own), None) if own.is_exact => Some(own),
            _ => None,
        }
    }

    /// Adds a step, as a caller does that has connected to a candidate.
    pub fn note(&mut self, subject: SearchSubject, reason: impl Into<Option<Reason>>) {
        self.steps.push(SearchStep { subject, reason: reason.into() });
    }

    /// Returns all reasons of all steps.
    #[must_use]
    pub fn error(&self) -> SearchError {
        SearchError::new(self.process_id, self.steps.iter().filter_map(|step| step.reason.clone()))
    }
}

impl fmt::Display for SearchStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.subject, &self.reason) {
            (subject, None) => subject.fmt(f),
            // The sentences of these reasons name the file, the socket or the process themselves.
            (SearchSubject::Memory { .. } | SearchSubject::Socket { .. }, Some(reason))
            | (_, Some(reason @ (Reason::Unreadable { .. } | Reason::Unresponsive { .. }))) => reason.fmt(f),
            (subject, Some(reason)) => write!(f, "{subject}: {reason}"),
        }
    }
}

impl fmt::Display for SearchSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { process_id, local_process_id, user_id, started } => {
                write!(f, "process {process_id}")?;
                if let Some(user_id) = user_id {
                    write!(f, " of user {user_id}")?;
                }
                if let Some(started) = started {
                    let unit = if cfg!(any(target_os = "linux", target_os = "android")) {
                        "clock ticks after boot"
                    } else {
                        "seconds after 1970"
                    };
                    write!(f, ", started {started} {unit}")?;
                }
                if local_process_id != process_id {
                    write!(f, ", has id {local_process_id} in its own PID namespace")?;
                }
                Ok(())
            }
            Self::Environment { tmpdir: Some(tmpdir) } => {
                write!(f, "its environment has TMPDIR={}", tmpdir.display())
            }
            Self::Environment { tmpdir: None } => f.write_str("its environment has no TMPDIR"),
            Self::Directory { path, sockets } => {
                let number = match sockets {
                    0 => "no socket".to_owned(),
                    1 => "1 socket".to_owned(),
                    sockets => format!("{sockets} sockets"),
                };
                write!(f, "{number} with its process id in {}", path.display())
            }
            Self::Memory { signs } => signs.fmt(f),
            Self::Socket { path } => write!(f, "requested process information at {}", path.display()),
        }
    }
}
