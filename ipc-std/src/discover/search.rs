//! `Search`: the search for the runtime of one process, step by step.
use core::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ipc_proto::plan::Explanation;

use super::found::Found;
use super::system::Candidate;
use crate::client::Client;
use crate::error::{Error, Phase, Reason, SearchError, Signs};
use crate::observer::Observer;
use crate::process_info::ProcessInfo;
use crate::timeouts::{Deadline, Timeouts};
use crate::transport::Target;

/// The steps and results of the search for one runtime.
///
/// ```no_run
/// use core::time::Duration;
/// use ipc_std::discover;
///
/// let mut search = discover::search(4242, Duration::from_secs(10));
/// let found = search.identify(None);
/// for step in search.steps() {
///     println!("{step}");
/// }
/// println!("{}", found?.path.display());
/// # Ok::<(), discover::SearchError>(())
/// ```
#[derive(Debug)]
pub struct Search {
    pub(super) process_id: u32,
    pub(super) steps: Vec<SearchStep>,
    /// The possible sockets of the runtime, the likeliest first.
    pub(super) candidates: Vec<Candidate>,
    /// The process that must listen, if it is visible.
    pub(super) target: Option<Target>,
    pub(super) deadline: Deadline,
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
    pub(super) const fn new(process_id: u32, deadline: Deadline) -> Self {
        Self { process_id, steps: Vec::new(), candidates: Vec::new(), target: None, deadline }
    }

    pub(super) fn note(&mut self, subject: SearchSubject, reason: impl Into<Option<Reason>>) {
        self.steps.push(SearchStep { subject, reason: reason.into() });
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
    /// [`Found::listener`] is certain.
    #[must_use]
    pub fn visible_process_id(&self) -> Option<u32> {
        let is_possible = self.candidates.is_empty() || self.candidates.iter().any(|own| own.is_its_own);
        self.target.map(|target| target.process_id).filter(|_| is_possible)
    }

    /// Returns whether the search found the process, and not only a socket with its id in the name.
    pub(super) const fn has_process(&self) -> bool {
        self.target.is_some()
    }

    /// Requests the process information at each socket until the right process answers, before the deadline of the
    /// search. Every socket gets an equal share of the time, and becomes a step.
    ///
    /// # Errors
    /// All reasons of all steps.
    pub fn identify(&mut self, observer: Option<&Observer>) -> Result<Found, SearchError> {
        self.identify_by(self.deadline.end, observer)
    }

    /// As [`identify`](Self::identify), before `deadline` and before the deadline of the search.
    pub(super) fn identify_by(
        &mut self,
        deadline: Instant,
        observer: Option<&Observer>,
    ) -> Result<Found, SearchError> {
        let deadline = self.deadline.limited(deadline);
        let mut remaining = self.candidates.len();
        // The runtime of an invisible process. A second such runtime, in another PID namespace, can have the same id:
        // then the result is ambiguous.
        let mut invisible: Option<Found> = None;
        for candidate in &self.candidates {
            let subject = SearchSubject::Socket { path: candidate.path.clone() };
            let (end, sockets) = (deadline.end, u32::try_from(remaining).unwrap_or(u32::MAX));
            let left = end.saturating_duration_since(Instant::now());
            let call = left.checked_div(sockets).unwrap_or(left);
            remaining = remaining.saturating_sub(1);
            let identified = match candidate.objection(self.target) {
                Some(reason) => Err(reason),
                None if call.is_zero() => Err(candidate.reason(timed_out(self.process_id, deadline))),
                None => {
                    let client = candidate.client(self.process_id, self.target);
                    let timeouts = Timeouts { call, ..Timeouts::default() };
                    let timed = client.clone().with_timeouts(timeouts).with_observer(observer.cloned());
                    identify(candidate, &timed).map(|identified| (identified, client))
                }
            };
            let mut reason = identified.as_ref().err().cloned();
            if let Ok((identified, client)) = identified {
                let Candidate { local_process_id, ref path, router, .. } = *candidate;
                let (process_id, path) = (self.process_id, path.clone());
                let listener = client.connector().process_id();
                let (info, refusal) = (identified.clone().ok(), identified.err());
                let found =
                    Found { process_id, listener, local_process_id, path, router, info, refusal, client };
                if listener.is_some() {
                    self.steps.push(SearchStep { subject, reason });
                    return Ok(found);
                }
                match &invisible {
                    Some(Found { path: other, .. }) => {
                        reason = Some(Reason::Ambiguous { path: found.path, other: other.clone() });
                    }
                    None => invisible = Some(found),
                }
            }
            self.steps.push(SearchStep { subject, reason });
        }
        let is_ambiguous = |step: &SearchStep| matches!(step.reason, Some(Reason::Ambiguous { .. }));
        match invisible {
            Some(found) if !self.steps.iter().any(is_ambiguous) => Ok(found),
            _ => {
                let reasons = self.steps.iter().filter_map(|step| step.reason.clone());
                Err(SearchError::new(self.process_id, reasons))
            }
        }
    }

    /// Returns a client of the runtime with these deadlines. Nothing is sent if the name of exactly one socket proves
    /// that the socket belongs to the process. Otherwise the sockets are [identified](Self::identify).
    ///
    /// # Errors
    /// [`Error::Undiscovered`].
    pub fn client(mut self, timeouts: &Timeouts) -> Result<Client, Error> {
        let target = self.target;
        let mut own = self.candidates.iter().filter(|own| own.is_its_own && own.objection(target).is_none());
        let client = match (own.next(), own.next()) {
            (Some(own), None) if own.is_exact => own.client(self.process_id, target),
            _ => self.identify(None)?.client,
        };
        Ok(client.with_timeouts(*timeouts))
    }
}

/// Requests the process information of the runtime at a socket, and checks its process id. Also returns why a runtime
/// cannot report it, so that the id cannot be checked.
fn identify(candidate: &Candidate, client: &Client) -> Result<Result<ProcessInfo, Explanation>, Reason> {
    match client.process_info() {
        Ok(ProcessInfo { process_id: reported, .. })
            if !candidate.router && reported != u64::from(candidate.local_process_id) =>
        {
            let path = candidate.path.clone();
            Err(Reason::OtherProcess { path, reported, expected: candidate.local_process_id })
        }
        Ok(info) => Ok(Ok(info)),
        Err(e) => match e.explanation() {
            Some(why @ (Explanation::Older { .. } | Explanation::InfoTooLong)) => Ok(Err(why)),
            _ => Err(candidate.reason(e)),
        },
    }
}

/// Returns the error of a socket that the deadline leaves no time for.
fn timed_out(process_id: u32, deadline: Deadline) -> Error {
    Error::Timeout {
        peer: format!("process {process_id}"),
        phase: Phase::Connecting,
        command: None,
        after: deadline.begin.elapsed(),
        sent: 0,
        received: 0,
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
