//! Where runtimes are looked for on Unix.
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::Instant;

use ipc_proto::{RouterSocketName, SocketName};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::{Denied, Reason, Search, Signs, Step, Target, What, unreadable};
use crate::procfs::Mounts;
use crate::{Client, Credentials, Error, Timeouts, sys};
#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::{procfs, sys::Links};
#[cfg(any(target_os = "linux", target_os = "android"))]
use ipc_proto::{plan::Flavour, port::Config};

/// Where runtimes with our environment make their sockets: `$TMPDIR`, or `/tmp`.
#[must_use]
pub fn directory() -> PathBuf {
    or_tmp(std::env::var_os("TMPDIR").as_deref())
}

fn or_tmp(tmpdir: Option<&OsStr>) -> PathBuf {
    PathBuf::from(tmpdir.filter(|dir| !dir.is_empty()).unwrap_or_else(|| OsStr::new("/tmp")))
}

/// A name that says whose socket it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Name {
    Runtime(SocketName),
    Router(RouterSocketName),
}

impl Name {
    pub(super) fn parse(name: &OsStr) -> Option<Self> {
        let name = name.to_str()?;
        name.parse().map(Self::Runtime).or_else(|_| name.parse().map(Self::Router)).ok()
    }
    pub(super) const fn process_id(self) -> u32 {
        match self {
            Self::Runtime(name) => name.process_id,
            Self::Router(name) => name.process_id,
        }
    }
    /// When its process started, in what such a name has for it.
    pub(super) const fn key(self) -> u64 {
        match self {
            Self::Runtime(name) => name.disambiguation_key,
            Self::Router(name) => name.start_seconds,
        }
    }
    pub(super) const fn is_router(self) -> bool {
        matches!(self, Self::Router(_))
    }
    /// Whether it is of a process that started then, by the system's table of processes.
    pub(super) fn is_of(self, started: u64) -> bool {
        match self {
            // A runtime that could not find out writes 0.
            Self::Runtime(name) => [0, started].contains(&name.disambiguation_key),
            Self::Router(name) => sys::seconds_of(started).is_none_or(|seconds| {
                /// The clock may have been set since, and who computes it may round.
                const LEEWAY: u64 = 60;
                seconds.abs_diff(name.start_seconds) <= LEEWAY
            }),
        }
    }
    pub(super) fn to_os(self) -> OsString {
        match self {
            Self::Runtime(name) => name.to_text().as_str().into(),
            Self::Router(name) => name.to_text().as_str().into(),
        }
    }
}

/// A directory that is looked into. It stays the same whatever becomes of its path.
#[derive(Debug, Clone)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    /// Whether the path leads there only for as long as the process lives through which it was found.
    foreign: bool,
    opened: Arc<Opened>,
}

/// One directory, whatever paths lead there.
#[derive(Debug)]
pub(super) struct Opened {
    descriptor: Arc<OwnedFd>,
    identity: (u64, u64),
    entries: OnceLock<Result<Vec<Entry>, Errno>>,
}

/// What has a name that says whose it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) name: Name,
    modified: (i64, i64),
    is_socket: bool,
    owner: u32,
}

impl Directory {
    /// Opens one by our own path.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Self::new(sys::open_directory(path)?, path, false)
    }

    fn new(descriptor: OwnedFd, path: &Path, foreign: bool) -> io::Result<Self> {
        let identity = identity(&rustix::fs::fstat(&descriptor)?);
        let opened = Opened { descriptor: Arc::new(descriptor), identity, entries: OnceLock::new() };
        Ok(Self { path: path.to_owned(), foreign, opened: Arc::new(opened) })
    }

    /// What in it has a name that says whose it is; an error if it cannot be listed. It is looked at once.
    pub(super) fn entries(&self) -> Result<&[Entry], Errno> {
        let entries = self.opened.entries.get_or_init(|| {
            let mut entries = Vec::new();
            for entry in rustix::fs::Dir::read_from(self.descriptor())? {
                let name = Name::parse(OsStr::from_bytes(entry?.file_name().to_bytes()));
                entries.extend(name.and_then(|name| self.entry(name)));
            }
            Ok(entries)
        });
        entries.as_deref().map_err(|e| *e)
    }

    /// What has this name, unless there is nothing any more.
    fn entry(&self, name: Name) -> Option<Entry> {
        let stat = self.stat(&name.to_os()).ok()?;
        let is_socket = FileType::from_raw_mode(stat.st_mode) == FileType::Socket;
        Some(Entry { name, modified: modified(&stat), is_socket, owner: stat.st_uid })
    }

    pub(super) fn stat(&self, name: &OsStr) -> Result<rustix::fs::Stat, Errno> {
        rustix::fs::statat(self.descriptor(), name, AtFlags::SYMLINK_NOFOLLOW)
    }

    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.opened.descriptor
    }

    pub(super) fn pinned(&self, name: Name) -> sys::Pinned {
        sys::Pinned { directory: Arc::clone(&self.opened.descriptor), name: name.to_os() }
    }

    fn is(&self, other: &Self) -> bool {
        self.opened.identity == other.opened.identity
    }
}

/// What tells a file from any other.
#[allow(
    clippy::useless_conversion,
    clippy::unnecessary_cast,
    reason = "its types are not the same everywhere"
)]
pub(super) fn identity(stat: &rustix::fs::Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// When a file was changed; of a socket, when it was made. Numbers of files are used again at once.
#[allow(clippy::unnecessary_cast, reason = "its types are not the same everywhere")]
pub(super) fn modified(stat: &rustix::fs::Stat) -> (i64, i64) {
    (stat.st_mtime as i64, stat.st_mtime_nsec as i64)
}

/// A socket that may be a process's.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    /// The process in its name.
    pub(super) local_process_id: u32,
    pub(super) router: bool,
    /// Whether its name says that it is of this very process, and not of an earlier one.
    pub(super) is_its_own: bool,
    /// Whether its name tells exactly when this process started, and not only nothing else.
    pub(super) is_exact: bool,
    entry: Entry,
    directory: Directory,
    /// When the process started that is there now.
    started: Option<u64>,
}

impl Candidate {
    fn new(directory: &Directory, entry: Entry, started: Option<u64>) -> Self {
        let name = entry.name;
        Self {
            path: directory.path.join(name.to_os()),
            local_process_id: name.process_id(),
            router: name.is_router(),
            is_its_own: started.is_none_or(|started| name.is_of(started)),
            is_exact: !name.is_router() && started == Some(name.key()),
            entry,
            directory: directory.clone(),
            started,
        }
    }

    /// Why nobody is to be asked there: it was made by somebody who is neither the process's user, nor root, nor us.
    pub(super) fn objection(&self, target: Option<Target>) -> Option<Reason> {
        let owner = self.entry.owner;
        let user_id = target?.user_id?;
        let good = [user_id, 0, sys::own_user()].contains(&owner);
        (!good).then(|| Reason::Foreign { path: self.path.clone(), owner, user_id })
    }

    /// The way to who listens there.
    pub(super) fn client(&self, process_id: u32, target: Option<Target>) -> Client {
        let pinned = self.directory.foreign.then(|| self.directory.pinned(self.entry.name));
        Client::found(process_id, self.path.clone(), pinned, target)
    }

    /// What it means for the search that this came of asking there.
    pub(super) fn reason(&self, error: Error) -> Reason {
        let path = self.path.clone();
        match error {
            Error::NoListener { .. } if self.is_its_own && self.started.is_some() => {
                Reason::NoListener { path }
            }
            Error::NoListener { .. } => {
                Reason::Stale { path, key: self.entry.name.key(), started: self.started }
            }
            Error::NoSuchPath { .. } if self.entry.is_socket => Reason::Vanished { path },
            Error::NoSuchPath { .. } => Reason::NotASocket { path },
            Error::Permission { denied, .. } => Reason::Permission { path, denied },
            Error::Impostor { peer, .. } => Reason::Impostor { path, peer },
            Error::PathTooLong { limit, .. } => Reason::PathTooLong { path, limit },
            error => Reason::Unanswered { path, error: Arc::new(error) },
        }
    }
}

/// Directories that were opened before, in one look around, and how long to wait for any.
#[derive(Debug, Clone)]
struct Places {
    opened: Arc<Mutex<Vec<Directory>>>,
    /// Where file systems are mounted, for us.
    mounts: Arc<Mounts>,
    deadline: Instant,
}

/// The sockets in a directory with the name of a process, and why that may not be all of them; or why it is not known.
type Looked = Result<(Directory, Vec<Candidate>, Option<Reason>), Reason>;

/// A directory that is being looked into.
///
/// That may take for ever: a file system whose server is gone lets everybody wait who only asks for a name, and no call has
/// a deadline. What nobody but the kernel answers for is looked into directly: by our own mounts, on a file system of a kind
/// that is known to be local, and without a link on the way. All else is looked into by a thread, which is waited for by a
/// deadline and left alone then.
enum Looking {
    Done(Looked),
    Aside(mpsc::Receiver<Looked>),
}

/// One place where the socket of a process may be.
struct Place {
    path: PathBuf,
    looking: Looking,
}

impl Looking {
    fn aside(path: &Path, look: impl FnOnce() -> Looked + Send + 'static) -> Self {
        let (tell, told) = mpsc::sync_channel(1);
        let thread = thread::Builder::new().spawn(move || {
            // Nobody may be waiting any more.
            let _ = tell.send(look());
        });
        match thread {
            Ok(_) => Self::Aside(told),
            Err(e) => Self::Done(Err(unreadable(path, &e))),
        }
    }
}

impl Place {
    /// What is there, if that is known in time.
    fn look(self, deadline: Instant) -> (PathBuf, Looked) {
        let looked = match self.looking {
            Looking::Done(looked) => looked,
            Looking::Aside(told) => {
                let left = deadline.saturating_duration_since(Instant::now());
                told.recv_timeout(left)
                    .unwrap_or_else(|_| Err(Reason::Unresponsive { path: self.path.clone() }))
            }
        };
        (self.path, looked)
    }
}

/// Whose sockets are looked for.
#[derive(Debug, Clone, Copy)]
struct Sought {
    local_process_id: u32,
    started: Option<u64>,
}

impl Places {
    fn new(timeouts: &Timeouts) -> Self {
        let now = Instant::now();
        // The other half is for asking.
        let deadline = now.checked_add(timeouts.call.div_f32(2.0)).unwrap_or(now);
        Self { opened: Arc::default(), mounts: Arc::new(Mounts::own()), deadline }
    }

    fn opened(&self) -> MutexGuard<'_, Vec<Directory>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of it already, if the same was opened before: it is listed once, and keeps the path by which it was
    /// found now.
    fn keep(&self, directory: Directory) -> Directory {
        let mut opened = self.opened();
        if let Some(same) = opened.iter().find(|opened| opened.is(&directory)) {
            return Directory { opened: Arc::clone(&same.opened), ..directory };
        }
        opened.push(directory.clone());
        directory
    }

    /// Those where our own runtimes make their sockets.
    fn own(&self, sought: Sought) -> Vec<Place> {
        let paths = [directory()].into_iter().chain(group_containers());
        let place = |path: PathBuf| {
            let look = {
                let (places, path) = (self.clone(), path.clone());
                move || match Directory::open(&path) {
                    Ok(opened) => Ok(sockets_of(places.keep(opened), sought)),
                    Err(e) => Err(unreadable(&path, &e)),
                }
            };
            // Links in our own TMPDIR are ours.
            let is_local = path.is_absolute() && self.mounts.is_local(&path);
            let looking = if is_local { Looking::Done(look()) } else { Looking::aside(&path, look) };
            Place { path, looking }
        };
        paths.map(place).collect()
    }
}

/// Where sandboxed programs make theirs.
#[cfg(target_os = "macos")]
fn group_containers() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let containers = home.and_then(|home| std::fs::read_dir(home.join("Library/Group Containers")).ok());
    containers.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
#[cfg(not(target_os = "macos"))]
const fn group_containers() -> [PathBuf; 0] {
    []
}

pub(super) fn look(process_id: u32, timeouts: &Timeouts) -> Search {
    let places = Places::new(timeouts);
    Looker::new(process_id, &places).finish(&places).0
}

/// Looks for the runtime in one process. Its own directory may be looked into meanwhile.
struct Looker {
    search: Search,
    /// `None` if there is no process, or none that goes on.
    seen: Option<Seen>,
    theirs: Option<Place>,
}

impl Looker {
    fn new(process_id: u32, places: &Places) -> Self {
        let mut search = Search { process_id, steps: Vec::new(), candidates: Vec::new(), target: None };
        let seen = Seen::new(process_id, &mut search);
        let theirs = seen.as_ref().and_then(|seen| seen.place(places, &mut search));
        Self { search, seen, theirs }
    }

    /// What came of it. Also tells whether it looks like a runtime at all.
    fn finish(self, places: &Places) -> (Search, bool) {
        let Self { mut search, seen, theirs } = self;
        let Some(seen) = seen else { return (search, false) };
        let (process_id, user_id) = (search.process_id, seen.user_id);
        search.target = Some(Target { process_id, user_id });

        let mut looked_in = Vec::new();
        let mut visited: Vec<Directory> = Vec::new();
        let mut is_unknown = false;
        let mut ours = None;
        let all = theirs.into_iter().chain(core::iter::from_fn(|| {
            // Only if they are needed: a temporary directory may have many files.
            ours.get_or_insert_with(|| places.own(seen.sought()).into_iter()).next()
        }));
        for place in all {
            let (path, looked) = place.look(places.deadline);
            let (directory, mut found, reason) = match looked {
                Ok((directory, ..)) if visited.iter().any(|visited| visited.is(&directory)) => continue,
                Ok(looked) => looked,
                // What ended while we looked explains nothing, which is told in the end.
                Err(_) if !seen.is_still_there() => continue,
                Err(reason) => {
                    is_unknown |= matches!(reason, Reason::Unresponsive { .. });
                    search.note(What::Directory { path, sockets: 0 }, reason);
                    continue;
                }
            };
            let what = What::Directory { path: directory.path.clone(), sockets: found.len() };
            search.steps.push(Step { what, reason });
            looked_in.push(directory.path.clone());
            visited.push(directory);
            search.candidates.append(&mut found);
            if search.candidates.iter().any(|candidate| candidate.is_exact) {
                break;
            }
        }
        order(&mut search.candidates);
        if !search.candidates.is_empty() {
            return (search, true);
        }
        let signs = seen.signs();
        // What ended while we looked explains nothing.
        let reason =
            if seen.is_still_there() { Reason::NoSocket { looked_in, signs } } else { Reason::NoProcess };
        search.note(What::Memory { signs }, reason);
        (search, is_unknown || matches!(signs, Signs::Loaded | Signs::Listening))
    }
}

/// The sockets in a directory with the name of a process, and why that may not be all of them.
fn sockets_of(directory: Directory, sought: Sought) -> (Directory, Vec<Candidate>, Option<Reason>) {
    let Sought { local_process_id, started } = sought;
    let mut reason = None;
    let is_its = |entry: &&Entry| entry.name.process_id() == local_process_id;
    let entries: Vec<_> = match directory.entries() {
        Ok(entries) => entries.iter().filter(is_its).copied().collect(),
        Err(e) => {
            reason = Some(unreadable(&directory.path, &e.into()));
            // What cannot be listed may still be looked into for a name that is known.
            let name = |disambiguation_key| {
                Name::Runtime(SocketName { process_id: local_process_id, disambiguation_key })
            };
            started.and_then(|started| directory.entry(name(started))).into_iter().collect()
        }
    };
    let found: Vec<_> = entries.into_iter().map(|entry| Candidate::new(&directory, entry, started)).collect();
    // It was found all the same.
    if found.iter().any(|found| found.is_its_own) {
        reason = None;
    }
    (directory, found, reason)
}

/// The likeliest first: that of this very process, then the newest. A router's counts before all others if it is not
/// older than its process's own, and not at all without one: as Microsoft's client has it.
fn order(candidates: &mut Vec<Candidate>) {
    candidates.sort_by_key(|candidate| {
        let own = (!candidate.is_exact, !candidate.is_its_own);
        (candidate.router, own, core::cmp::Reverse(candidate.entry.modified))
    });
    let own = candidates.first().filter(|own| !own.router).map(|own| own.entry.modified);
    candidates
        .retain(|candidate| !candidate.router || own.is_some_and(|own| candidate.entry.modified >= own));
    candidates.sort_by_key(|candidate| !(candidate.router && candidate.is_its_own));
}

impl Denied {
    /// Why what is at this path was refused.
    pub(crate) fn new(path: &Path, error: &io::Error) -> Self {
        use std::os::unix::fs::MetadataExt;
        // If the file itself may not be looked at, it is the directory that hides it.
        let seen = path.ancestors().find_map(|path| Some((path, path.metadata().ok()?)));
        let by = seen.as_ref().map_or(path, |(by, _)| by).to_owned();
        let metadata = seen.map(|(_, metadata)| metadata);
        Self {
            by,
            owner: metadata.as_ref().map(MetadataExt::uid),
            mode: metadata.as_ref().map(|metadata| metadata.mode() & 0o7777),
            own_user: Some(sys::own_user()),
            errno: error.raw_os_error().unwrap_or_default(),
        }
    }
}

impl Target {
    /// Whether it is this process that listens at the other end; else who it is.
    pub(crate) fn check(&self, socket: &sys::Socket) -> Result<(), Credentials> {
        socket.credentials().filter(|peer| !self.is(peer)).map_or(Ok(()), Err)
    }

    fn is(&self, peer: &Credentials) -> bool {
        let is_user = [Some(0), Some(sys::own_user()), self.user_id].contains(&Some(peer.user_id));
        // Linux tells the process, or 0 for one that is out of sight, which what has a folder in /proc is not.
        let untold = peer.process_id == 0 && !cfg!(any(target_os = "linux", target_os = "android"));
        match untold {
            true => is_user,
            // Whose a process is that is hidden from us, is not known: its id decides alone.
            false => peer.process_id == self.process_id && (is_user || self.user_id.is_none()),
        }
    }
}

impl Search {
    fn note(&mut self, what: What, reason: impl Into<Option<Reason>>) {
        self.steps.push(Step { what, reason: reason.into() });
    }
}

/// A process, as far as the system tells of it.
#[derive(Debug)]
struct Seen {
    process_id: u32,
    local_process_id: u32,
    started: Option<u64>,
    user_id: Option<u32>,
    /// Where there is such a thing, and it is told.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    process: Option<Arc<procfs::Process>>,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Seen {
    /// `None` if there is no process, or none that goes on; the search knows then.
    fn new(process_id: u32, search: &mut Search) -> Option<Self> {
        let opened = procfs::Process::open(process_id);
        let read = opened.as_ref().ok().map(|process| (process.entry(), process.status()));
        let (entry, status) = match read {
            Some((entry, status)) => (entry.ok(), status.ok()),
            None => (None, None),
        };
        let started = entry.map(|entry| entry.started);
        let user_id = status.map(|status| status.user_id);
        let local_process_id = status.and_then(|status| status.local_process_id).unwrap_or(process_id);
        let reason = match (&opened, entry) {
            (_, Some(entry)) if entry.has_ended => Some(Reason::Ended),
            (_, Some(_)) => {
                let leader = status.and_then(|status| status.leader);
                let leader = leader.filter(|leader| *leader != process_id);
                leader.map(|process_id| Reason::Thread { process_id })
            }
            // A process that is hidden from us, and not one that is gone.
            (opened, None) if sys::process_exists(process_id) => match opened {
                Err(e) if e.raw_os_error() == Some(Errno::ACCESS.raw_os_error()) => {
                    Some(unreadable(Path::new(&format!("/proc/{process_id}")), e))
                }
                _ => Some(Reason::Hidden),
            },
            _ => Some(Reason::NoProcess),
        };
        let goes_on = !matches!(reason, Some(Reason::NoProcess | Reason::Ended | Reason::Thread { .. }));
        search.note(What::Process { process_id, local_process_id, user_id, started }, reason);
        let process = opened.ok().map(Arc::new);
        goes_on.then_some(Self { process_id, local_process_id, started, user_id, process })
    }

    /// The directory where a runtime with the environment of the process makes its socket.
    fn place(&self, places: &Places, search: &mut Search) -> Option<Place> {
        let process = self.process.as_ref()?;
        let environment = match process.environment() {
            Ok(environment) => environment,
            // It has no memory: it belongs to the kernel, or has ended by now.
            Err(e) if e.raw_os_error() == Some(Errno::SRCH.raw_os_error()) || !self.is_still_there() => {
                search.note(What::Environment { tmpdir: None }, None);
                return None;
            }
            Err(e) => {
                let path = PathBuf::from(format!("/proc/{}/environ", self.process_id));
                search.note(What::Environment { tmpdir: None }, unreadable(&path, &e));
                return None;
            }
        };
        let tmpdir = environment.variable("TMPDIR");
        let directory = or_tmp(tmpdir);
        let reason = diagnostics_off(&environment).or_else(|| {
            let name = SocketName {
                process_id: self.local_process_id,
                disambiguation_key: self.started.unwrap_or_default(),
            };
            let name = name.to_text().as_str().len();
            let limit = sys::LONGEST_PATH.saturating_sub(name).saturating_sub(1);
            (directory.as_os_str().len() > limit)
                .then(|| Reason::TmpdirTooLong { tmpdir: directory.clone(), limit })
        });
        search.note(What::Environment { tmpdir: tmpdir.map(PathBuf::from) }, reason);
        let anchor = if directory.is_absolute() { "root" } else { "cwd" };
        let below = directory.strip_prefix("/").unwrap_or(&directory);
        let through = Path::new("/proc").join(self.process_id.to_string()).join(anchor).join(below);
        let is_ours = process.mounts().is_ok_and(|mounts| mounts == *places.mounts);
        let theirs =
            Theirs { process: Arc::clone(process), directory, through, is_ours, sought: self.sought() };
        if is_ours && places.mounts.is_local(&theirs.directory) {
            match theirs.open(Links::None) {
                Err(e) if e.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {}
                opened => {
                    let looking = Looking::Done(theirs.look(opened, places));
                    return Some(Place { path: theirs.path(), looking });
                }
            }
        }
        let (path, through, places) = (theirs.path(), theirs.through.clone(), places.clone());
        let look = move || theirs.look(theirs.open(Links::Followed), &places);
        Some(Place { path, looking: Looking::aside(&through, look) })
    }

    fn signs(&self) -> Signs {
        let Some(Ok(maps)) = self.process.as_deref().map(procfs::Process::maps) else {
            return Signs::Unknown;
        };
        let mut signs = Signs::Absent;
        for line in maps.split(|byte| *byte == b'\n') {
            let name = line.iter().position(|byte| *byte == b'/').and_then(|start| line.get(start..));
            let name = name.unwrap_or_default();
            let has = |part: &[u8]| name.windows(part.len()).any(|window| window == part);
            if has(b"/memfd:dotnet_ipc_created") {
                return Signs::Listening;
            }
            // The last is what a program in a single file shows.
            if [&b"/libcoreclr.so"[..], b"/libmonosgen", b"/memfd:doublemapper"].into_iter().any(has) {
                signs = Signs::Loaded;
            }
        }
        signs
    }

    fn is_still_there(&self) -> bool {
        match &self.process {
            Some(process) => process.entry().is_ok_and(|entry| !entry.has_ended),
            None => sys::process_exists(self.process_id),
        }
    }
}

/// A directory as a process has it.
#[cfg(any(target_os = "linux", target_os = "android"))]
struct Theirs {
    process: Arc<procfs::Process>,
    directory: PathBuf,
    /// The way there for us, as long as the process lives.
    through: PathBuf,
    /// Whether it has the same file systems at the same places as we have.
    is_ours: bool,
    sought: Sought,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Theirs {
    /// The path that everybody knows, where that leads there.
    fn path(&self) -> PathBuf {
        let known = self.is_ours && self.directory.is_absolute();
        if known { self.directory.clone() } else { self.through.clone() }
    }

    fn open(&self, links: Links) -> io::Result<Directory> {
        let descriptor = self.process.open_directory(&self.directory, links)?;
        let opened = Directory::new(descriptor, &self.path(), self.path() == self.through)?;
        if !opened.foreign || !self.directory.is_absolute() {
            return Ok(opened);
        }
        // What is the same directory from here has the path that everybody knows.
        match rustix::fs::stat(&self.directory) {
            Ok(ours) if identity(&ours) == opened.opened.identity => {
                Ok(Directory { path: self.directory.clone(), foreign: false, ..opened })
            }
            _ => Ok(opened),
        }
    }

    fn look(&self, opened: io::Result<Directory>, places: &Places) -> Looked {
        match opened {
            Ok(opened) => Ok(sockets_of(places.keep(opened), self.sought)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(Reason::NoTmpdir { tmpdir: self.directory.clone() })
            }
            Err(e) => Err(unreadable(&self.through, &e)),
        }
    }
}

/// What the runtime reads in its environment before it makes a socket. Of what kind it is does not show yet: CoreCLR takes
/// more for a 0 than the others.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn diagnostics_off(environment: &procfs::Environ) -> Option<Reason> {
    let config = Config::read(Flavour::CoreClr, |name| environment.variable(name)?.to_str());
    let (variable, value) = config.disabled_by()?;
    Some(Reason::DiagnosticsOff { variable, value: value.to_owned() })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl Seen {
    fn new(process_id: u32, search: &mut Search) -> Option<Self> {
        let entry = sys::process_entry(process_id);
        let started = entry.map(|entry| entry.started);
        let user_id = entry.and_then(|entry| entry.user_id);
        let reason = match entry {
            Some(entry) if entry.has_ended => Some(Reason::Ended),
            None if !sys::process_exists(process_id) => Some(Reason::NoProcess),
            _ => None,
        };
        let goes_on = reason.is_none();
        let local_process_id = process_id;
        search.note(What::Process { process_id, local_process_id, user_id, started }, reason);
        goes_on.then_some(Self { process_id, local_process_id, started, user_id })
    }

    /// What the environment of another process is, is not told here.
    fn place(&self, _: &Places, _: &mut Search) -> Option<Place> {
        None
    }

    fn signs(&self) -> Signs {
        Signs::Unknown
    }

    fn is_still_there(&self) -> bool {
        sys::process_exists(self.process_id)
    }
}

impl Seen {
    const fn sought(&self) -> Sought {
        Sought { local_process_id: self.local_process_id, started: self.started }
    }
}

/// Every process, and every socket that is of none of them; and why that may not be all.
pub(super) fn look_around(timeouts: &Timeouts) -> (Vec<Search>, Vec<Reason>) {
    let places = Places::new(timeouts);
    let mut in_the_way = Vec::new();
    // First, so that what we know by our own path keeps it.
    for own in places.own(Sought { local_process_id: 0, started: None }) {
        match own.look(places.deadline).1 {
            Ok((.., reason)) => in_the_way.extend(reason),
            Err(reason) => in_the_way.push(reason),
        }
    }
    let mut searches: Vec<Search> = Vec::new();
    // All are begun before any is waited for: they have one deadline.
    let lookers: Vec<_> =
        processes(&places).into_iter().map(|process_id| Looker::new(process_id, &places)).collect();
    for looker in lookers {
        let (search, looks_like_one) = looker.finish(&places);
        if looks_like_one {
            searches.push(search);
        }
    }
    let key = |candidate: &Candidate| (candidate.directory.opened.identity, candidate.entry.name);
    let all = |searches: &[Search], which: fn(&&Candidate) -> bool| -> HashSet<_> {
        searches.iter().flat_map(|search| &search.candidates).filter(which).map(key).collect()
    };
    // A socket of one process is not left of another that has the same id in another PID namespace.
    let claimed = all(&searches, |candidate| candidate.is_its_own);
    for search in &mut searches {
        let local = |candidate: &Candidate| candidate.local_process_id == search.process_id;
        if !search.candidates.first().is_some_and(local) {
            // In a PID namespace, without a /proc of its own, a runtime finds out when another process started.
            continue;
        }
        search.candidates.retain(|candidate| candidate.is_its_own || !claimed.contains(&key(candidate)));
    }
    let taken = all(&searches, |_| true);
    for directory in places.opened().iter() {
        // What is not listed yet is not answered for.
        let entries = directory.opened.entries.get().and_then(|entries| entries.as_deref().ok());
        for entry in entries.unwrap_or_default() {
            if !taken.contains(&(directory.opened.identity, entry.name)) {
                searches.push(look_at_socket(directory, *entry));
            }
        }
    }
    searches.sort_by_key(Search::process_id);
    (searches, in_the_way)
}

/// A socket that is of no process that was found to have it.
fn look_at_socket(directory: &Directory, found: Entry) -> Search {
    let process_id = found.name.process_id();
    let entry = sys::process_entry(process_id).filter(|_| !directory.foreign);
    let candidate = Candidate::new(directory, found, entry.map(|entry| entry.started));
    // Of a process that is seen it is to be, where it has its name; of one that is not seen, anybody's.
    let target = entry
        .filter(|_| candidate.is_its_own)
        .map(|entry| Target { process_id, user_id: entry.user_id.or_else(|| owner_of(process_id)) });
    let what = What::Directory { path: directory.path.clone(), sockets: 1 };
    let steps = vec![Step { what, reason: None }];
    Search { process_id, steps, candidates: vec![candidate], target }
}

/// The user of a process, by its folder in `/proc`.
fn owner_of(process_id: u32) -> Option<u32> {
    rustix::fs::stat(format!("/proc/{process_id}")).ok().map(|stat| stat.st_uid)
}

/// The processes there are; where they are not told, those that sockets are named after.
fn processes(places: &Places) -> Vec<u32> {
    let proc = if cfg!(any(target_os = "linux", target_os = "android")) {
        std::fs::read_dir("/proc").ok()
    } else {
        None
    };
    let ids =
        proc.into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut ids: Vec<u32> = ids.collect();
    if ids.is_empty() {
        let opened = places.opened();
        let entries = opened.iter().filter_map(|place| place.opened.entries.get()?.as_deref().ok()).flatten();
        ids = entries.map(|entry| entry.name.process_id()).filter(|id| sys::process_exists(*id)).collect();
        ids.sort_unstable();
        ids.dedup();
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process has one user while it listens and may have another later; it takes a privilege to make that happen.
    #[test]
    fn who_listens_has_the_id_and_the_user() {
        let peer = |process_id, user_id| Credentials { process_id, user_id, group_id: 0 };
        let target = |user_id| Target { process_id: 42, user_id };
        let (own, theirs, nobody) = (sys::own_user(), 1_234_567, 1_234_568);
        for user_id in [0, own, theirs] {
            assert!(target(Some(theirs)).is(&peer(42, user_id)), "{user_id}");
            assert!(!target(Some(theirs)).is(&peer(43, user_id)), "{user_id}");
        }
        assert!(!target(Some(theirs)).is(&peer(42, nobody)));
        assert!(target(None).is(&peer(42, nobody)));
        assert!(!target(None).is(&peer(43, own)));
        let is_linux = cfg!(any(target_os = "linux", target_os = "android"));
        assert_eq!(target(Some(theirs)).is(&peer(0, theirs)), !is_linux);
        assert!(!target(Some(theirs)).is(&peer(0, nobody)));
    }
}
