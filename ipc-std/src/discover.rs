//! Finds runtimes, and says why not.
//!
//! A runtime listens at a socket in its own `$TMPDIR`, or in `/tmp`, under a name that tells its process and when that
//! started. Whoever asks may have another `TMPDIR`, another user, another root; the process may be in a container,
//! the socket may be left of one that is gone, or be somebody else's trap. [`find`] and [`list`] know all that, and what
//! keeps a runtime from being asked is a [`Reason`].
//!
//! | where is looked | on |
//! |---|---|
//! | `$TMPDIR`, or `/tmp` | Unix |
//! | the `TMPDIR` of the process, as it sees it: through `/proc/PID/root`, for the id in its own PID namespace | Linux |
//! | `~/Library/Group Containers/*` | macOS |
//! | `\\.\pipe\`, where a name is gone with its process | Windows |
//!
//! ```no_run
//! use ipc_std::discover;
//!
//! match discover::find(4242) {
//!     Ok(found) => println!("{} listens at {}", found.process_id, found.path.display()),
//!     Err(why) => println!("{why}"), // process 4242 cannot be asked: ...
//! }
//! ```
use core::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Instant;

use crate::client::is_unknown;
use crate::{Client, Error, Observer, ProcessInfo, Timeouts};

mod reason;
#[cfg(unix)]
mod stale;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub use reason::{Denied, Reason, Signs, Why};
#[cfg(unix)]
pub use stale::{Stale, stale};
pub use system::directory;

use system::Candidate;

/// A runtime that was asked, and is what its socket's name says.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Found {
    /// The process, as it is seen from here.
    pub process_id: u32,
    /// The process, as it sees itself: in a container, another id than out here.
    pub local_process_id: u32,
    /// Its socket. Through `/proc/PID/root` where the process sees other files than we do.
    pub path: PathBuf,
    /// Whether it is `dotnet-dsrouter`'s: what it says is of a runtime on another device.
    pub router: bool,
    /// What it says of itself; `None` from .NET Core 3, which has no command for it.
    pub info: Option<ProcessInfo>,
    client: Client,
}

impl Found {
    /// The way to it, with default deadlines.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }
}

/// The runtime in a process, asked who it is; by [`Timeouts::call`] at its default.
///
/// [`Client::for_process`] finds the same without asking. [`search`] tells what was tried.
///
/// # Errors
/// Every reason that there is.
pub fn find(process_id: u32) -> Result<Found, Why> {
    let timeouts = Timeouts::default();
    search(process_id, &timeouts).ask(&timeouts, None)
}

/// Everything that looks like a runtime, by process id: every socket, and every process that has a runtime in its memory;
/// all asked at the same time who they are, by [`Timeouts::call`] at its default.
///
/// A process that vanishes while it is looked at is a row, or none, and harms no other. What may hide some, only
/// [`search_all`] tells.
///
/// ```no_run
/// for row in ipc_std::discover::list() {
///     match row {
///         Ok(found) => println!("{}: {}", found.process_id, found.path.display()),
///         Err(why) => println!("{why}"),
///     }
/// }
/// ```
#[must_use]
pub fn list() -> Vec<Result<Found, Why>> {
    let timeouts = Timeouts::default();
    let mut rows = Vec::new();
    let ask = |mut search: Search| (search.process_id(), search.ask(&timeouts, None));
    ask_all(search_all(&timeouts).0, ask, |row| rows.push(row));
    rows.sort_by_key(|(process_id, _)| *process_id);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Has `ask` called with many searches, 64 at the same time so that there are descriptors for all, and hands over what
/// comes of each as soon as it is there.
///
/// ```no_run
/// use ipc_std::{Timeouts, discover};
///
/// let timeouts = Timeouts::default();
/// let (searches, in_the_way) = discover::search_all(&timeouts);
/// for reason in in_the_way {
///     println!("{reason}"); // /tmp/mine cannot be looked at: No such file or directory (os error 2)
/// }
/// discover::ask_all(searches, |mut search| search.ask(&timeouts, None), |row| match row {
///     Ok(found) => println!("{}: {}", found.process_id, found.path.display()),
///     Err(why) => println!("{why}"),
/// });
/// ```
pub fn ask_all<T: Send>(searches: Vec<Search>, ask: impl Fn(Search) -> T + Sync, mut each: impl FnMut(T)) {
    /// One that is slow holds up one of so many.
    const AT_ONCE: usize = 64;
    let threads = searches.len().min(AT_ONCE);
    let searches = Mutex::new(searches.into_iter());
    let work = |tell: mpsc::Sender<T>| loop {
        let next = searches.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some(search) = next else { return };
        // There is somebody to tell as long as there is something to tell of.
        let _ = tell.send(ask(search));
    };
    std::thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let (work, mut started) = (&work, false);
        for _ in 0..threads {
            let tell = tell.clone();
            started |= std::thread::Builder::new().spawn_scoped(scope, move || work(tell)).is_ok();
        }
        if !started {
            // Where no thread can be had, this one does it.
            work(tell.clone());
        }
        drop(tell);
        told.into_iter().for_each(&mut each);
    });
}

/// Looks for the runtime in a process. Nobody is connected to yet.
///
/// Half of [`Timeouts::call`] is the deadline for file systems that do not answer: what such a one holds is not looked
/// into further, and is [`Reason::Unresponsive`].
#[must_use]
pub fn search(process_id: u32, timeouts: &Timeouts) -> Search {
    system::look(process_id, timeouts)
}

/// Looks for everything that looks like a runtime, by process id. Nobody is connected to yet. All have the one deadline that
/// [`search`] has.
///
/// The second is why these may not be all: what is in the way of looking into [`directory`], or a group container of macOS.
/// The runtimes whose sockets are there may be found all the same, where processes tell of themselves.
#[must_use]
pub fn search_all(timeouts: &Timeouts) -> (Vec<Search>, Vec<Reason>) {
    system::look_around(timeouts)
}

/// What was looked at, in search of one runtime.
///
/// ```no_run
/// use ipc_std::{Timeouts, discover};
///
/// let timeouts = Timeouts::default();
/// let mut search = discover::search(4242, &timeouts);
/// let found = search.ask(&timeouts, None);
/// for step in search.steps() {
///     println!("{step}");
/// }
/// println!("{}", found?.path.display());
/// # Ok::<(), discover::Why>(())
/// ```
#[derive(Debug)]
pub struct Search {
    process_id: u32,
    steps: Vec<Step>,
    /// The sockets that may be it, the likeliest first.
    candidates: Vec<Candidate>,
    /// Who has to listen there, if the process is seen.
    target: Option<Target>,
}

/// Who has to be at the other end of a socket that was found by process id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) process_id: u32,
    /// The user of the process, if that is known.
    #[cfg(unix)]
    pub(crate) user_id: Option<u32>,
}

/// One thing that was looked at, and what is wrong with it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Step {
    /// What was looked at.
    pub what: What,
    /// Why it is no way to the runtime; `None` if all is well with it.
    pub reason: Option<Reason>,
}

/// What was looked at, and what was seen.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum What {
    /// The process.
    Process {
        /// As it is seen from here.
        process_id: u32,
        /// As it sees itself.
        local_process_id: u32,
        /// Its user, if that is told.
        user_id: Option<u32>,
        /// When it started, as its socket's name has it, if that is told.
        started: Option<u64>,
    },
    /// The environment that the process was started with.
    Environment {
        /// Its `TMPDIR`.
        tmpdir: Option<PathBuf>,
    },
    /// A directory where the socket might be.
    Directory {
        /// Which one.
        path: PathBuf,
        /// How many sockets there have the name of this process.
        sockets: usize,
    },
    /// What the process has in its memory.
    Memory {
        /// Signs of a runtime.
        signs: Signs,
    },
    /// A socket, and who listens at it.
    Socket {
        /// Which one.
        path: PathBuf,
    },
}

impl Search {
    /// The process, as it is seen from here; of a socket whose process is not seen, as its name has it.
    #[must_use]
    pub const fn process_id(&self) -> u32 {
        self.process_id
    }

    /// What was looked at so far, in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The likeliest socket, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.candidates.first().map(|candidate| &*candidate.path)
    }

    /// Asks who listens at the sockets found, one after the other until it is the one looked for, all of them by
    /// [`Timeouts::call`], of which each has its share. Each is a further step.
    ///
    /// # Errors
    /// Every reason that there is.
    pub fn ask(&mut self, timeouts: &Timeouts, observer: Option<&Observer>) -> Result<Found, Why> {
        let begin = Instant::now();
        let mut others = self.candidates.len();
        for candidate in &self.candidates {
            let what = What::Socket { path: candidate.path.clone() };
            // One who accepts and says nothing, or does not accept, is not to keep the others from being asked.
            let left = timeouts.call.saturating_sub(begin.elapsed());
            let call = left.checked_div(others.try_into().unwrap_or(u32::MAX)).unwrap_or(left);
            others = others.saturating_sub(1);
            if let Some(reason) = candidate.objection(self.target) {
                self.steps.push(Step { what, reason: Some(reason) });
                continue;
            }
            let client = candidate.client(self.process_id, self.target);
            let asked = client
                .clone()
                .with_timeouts(Timeouts { call, ..*timeouts })
                .with_observer(observer.cloned())
                .process_info();
            let info = match asked {
                Ok(info) => Ok(Some(info)),
                Err(e) if is_unknown(&e) => Ok(None),
                Err(e) => Err(candidate.reason(e)),
            };
            let mismatch = |info: &Option<ProcessInfo>| {
                let told = info.as_ref()?.process_id;
                (!candidate.router && told != u64::from(candidate.local_process_id)).then(|| {
                    let path = candidate.path.clone();
                    Reason::OtherProcess { path, told, expected: candidate.local_process_id }
                })
            };
            let info = info.and_then(|info| mismatch(&info).map_or(Ok(info), Err));
            self.steps.push(Step { what, reason: info.as_ref().err().cloned() });
            if let Ok(info) = info {
                let Candidate { local_process_id, ref path, router, .. } = *candidate;
                let (process_id, path) = (self.process_id, path.clone());
                return Ok(Found { process_id, local_process_id, path, router, info, client });
            }
        }
        Err(self.why())
    }

    /// The way to the runtime, with these deadlines. Nobody is asked who it is where one socket has exactly the name of the
    /// process, and no other might be it; else all are, as by [`ask`](Self::ask).
    ///
    /// # Errors
    /// [`Error::Undiscovered`].
    pub fn client(mut self, timeouts: &Timeouts) -> Result<Client, Error> {
        let target = self.target;
        let mut own = self.candidates.iter().filter(|own| own.is_its_own && own.objection(target).is_none());
        let client = match (own.next(), own.next()) {
            (Some(own), None) if own.is_exact => own.client(self.process_id, target),
            _ => self.ask(timeouts, None)?.client,
        };
        Ok(client.with_timeouts(*timeouts))
    }

    /// Why it is not found, by what was looked at so far.
    fn why(&self) -> Why {
        Why::new(self.process_id, self.steps.iter().filter_map(|step| step.reason.clone()))
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Reason {
    Reason::Unreadable { path: path.to_owned(), denied: Denied::new(path, error) }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.what, &self.reason) {
            (what, None) => what.fmt(f),
            // These say what they are about.
            (What::Memory { .. } | What::Socket { .. }, Some(reason))
            | (_, Some(reason @ (Reason::Unreadable { .. } | Reason::Unresponsive { .. }))) => reason.fmt(f),
            (what, Some(reason)) => write!(f, "{what}: {reason}"),
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { process_id, local_process_id, user_id, started } => {
                write!(f, "process {process_id}")?;
                if let Some(user_id) = user_id {
                    write!(f, " of user {user_id}")?;
                }
                if let Some(started) = started {
                    write!(f, ", started at {started}")?;
                }
                if local_process_id != process_id {
                    write!(f, ", in a PID namespace where it is process {local_process_id}")?;
                }
                Ok(())
            }
            Self::Environment { tmpdir: Some(tmpdir) } => {
                write!(f, "its environment has TMPDIR={}", tmpdir.display())
            }
            Self::Environment { tmpdir: None } => f.write_str("its environment has no TMPDIR"),
            Self::Directory { path, sockets: 0 } => write!(f, "no socket of it in {}", path.display()),
            Self::Directory { path, sockets: 1 } => write!(f, "a socket of it in {}", path.display()),
            Self::Directory { path, sockets } => write!(f, "{sockets} sockets of it in {}", path.display()),
            Self::Memory { signs } => signs.fmt(f),
            Self::Socket { path } => write!(f, "who listens at {} is asked", path.display()),
        }
    }
}
