use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::unix::{Directory, Name, identity, modified};
use crate::sys;

/// A socket that is proven to be of no use to anybody: the process in its name is gone, or is another one by now, and
/// nobody listens there. See [`stale`].
#[derive(Debug)]
pub struct Stale {
    /// The process that made it, in its own PID namespace.
    pub process_id: u32,
    /// The socket.
    pub path: PathBuf,
    /// Whether it is `dotnet-dsrouter`'s.
    pub router: bool,
    /// The user whose it is.
    pub owner: u32,
    /// Whether it may be removed: by its owner, or root.
    pub removable: bool,
    /// What else the same process left there: the pipes that it had for debuggers.
    pub pipes: Vec<PathBuf>,
    name: Name,
    directory: Directory,
    /// Which file it was, and when it was made.
    file: ((u64, u64), (i64, i64)),
}

/// The sockets in a directory that are proven stale, by process id.
///
/// A runtime that crashes or is killed leaves its socket behind, and no other ever removes it.
///
/// ```no_run
/// use ipc_std::discover;
///
/// for stale in discover::stale(&discover::directory())? {
///     println!("{}", stale.path.display());
///     stale.remove()?;
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// That nobody listens is proven only by the system where the runtime would: not on a file system that others share over a
/// network or that a program serves, and not in the layer of a container, where a socket is another one than the container's
/// own of the same name.
///
/// # Errors
/// If the directory cannot be listed; one of kind `Unsupported` if it lies on a file system where nothing can be proven.
pub fn stale(directory: &Path) -> io::Result<Vec<Stale>> {
    let directory = Directory::open(directory)?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if !sys::is_local(directory.descriptor())? {
        let message =
            "it lies on a file system that others share, where somebody may listen who is not seen from here";
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    let entries = directory.entries()?.iter();
    let mut stale: Vec<_> = entries.filter_map(|entry| Stale::prove(&directory, entry.name)).collect();
    stale.sort_by(|a, b| (a.process_id, &a.path).cmp(&(b.process_id, &b.path)));
    Ok(stale)
}

impl Stale {
    fn prove(directory: &Directory, name: Name) -> Option<Self> {
        let stat = directory.stat(&name.to_os()).ok()?;
        let owner = stat.st_uid;
        let own_user = sys::own_user();
        let stale = Self {
            process_id: name.process_id(),
            path: directory.path.join(name.to_os()),
            router: name.is_router(),
            owner,
            removable: own_user == 0 || own_user == owner,
            pipes: Vec::new(),
            name,
            directory: directory.clone(),
            file: (identity(&stat), modified(&stat)),
        };
        stale.is_proven().ok()?.then(|| Self { pipes: stale.pipes(), ..stale })
    }

    /// Whether all of it is so now.
    fn is_proven(&self) -> io::Result<bool> {
        let stat = self.directory.stat(&self.name.to_os())?;
        if (identity(&stat), modified(&stat)) != self.file
            || FileType::from_raw_mode(stat.st_mode) != FileType::Socket
        {
            return Ok(false);
        }
        let is_gone = match sys::process_entry(self.process_id) {
            Some(entry) => !self.name.is_of(entry.started),
            None => !sys::process_exists(self.process_id),
        };
        // The process may be in another PID namespace, where it has the id of its name: it may listen all the same.
        Ok(is_gone && nobody_listens(&self.directory, self.name) && !self.is_listed())
    }

    /// Whether the kernel knows a socket that was bound by this path: through another layer of the same file system it is
    /// another one for whoever connects, and somebody listens all the same.
    fn is_listed(&self) -> bool {
        // Others have no such list, or not for everybody.
        let Ok(list) = std::fs::read("/proc/net/unix") else { return false };
        let name = self.name.to_os();
        // The path may be another one there: a name has process and time in it.
        list.split(|byte| *byte == b'\n').any(|line| {
            let path = line.iter().position(|byte| *byte == b'/').and_then(|start| line.get(start..));
            path.is_some_and(|path| Path::new(OsStr::from_bytes(path)).file_name() == Some(&*name))
        })
    }

    /// The pipes for debuggers of the same process. Nobody has opened them who is not proven gone.
    fn pipes(&self) -> Vec<PathBuf> {
        let Name::Runtime(name) = self.name else { return Vec::new() };
        let names = ["in", "out"]
            .map(|end| format!("clr-debug-pipe-{}-{}-{end}", name.process_id, name.disambiguation_key));
        let there = names.into_iter().filter(|name| self.is_pipe(name.as_ref()));
        there.map(|name| self.directory.path.join(name)).collect()
    }

    /// Whether there is a pipe of this name, of the same user as the socket.
    fn is_pipe(&self, name: &OsStr) -> bool {
        let stat = self.directory.stat(name);
        stat.is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::Fifo && stat.st_uid == self.owner
        })
    }

    /// Removes it, and the pipes, if it is still proven to be stale. Gives what was removed: nothing if it is not, or if
    /// somebody else was faster.
    ///
    /// # Errors
    /// If it may not be removed.
    pub fn remove(&self) -> io::Result<Vec<PathBuf>> {
        if !self.is_proven().or_else(gone)? {
            return Ok(Vec::new());
        }
        let mut removed = Vec::new();
        for path in [&self.path].into_iter().chain(&self.pipes) {
            let Some(name) = path.file_name() else { continue };
            // It may be another file by now.
            if *path != self.path && !self.is_pipe(name) {
                continue;
            }
            match rustix::fs::unlinkat(self.directory.descriptor(), name, AtFlags::empty()) {
                Ok(()) => removed.push(path.clone()),
                Err(Errno::NOENT) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(removed)
    }
}

fn gone(error: io::Error) -> io::Result<bool> {
    if error.kind() == io::ErrorKind::NotFound { Ok(false) } else { Err(error) }
}

/// Whether it is refused to connect. A runtime sees no more of this than somebody who connects and says nothing.
fn nobody_listens(directory: &Directory, name: Name) -> bool {
    let path = if cfg!(any(target_os = "linux", target_os = "android")) {
        directory.pinned(name).path()
    } else {
        directory.path.join(name.to_os())
    };
    let connected = sys::Address::new(&path).and_then(|address| sys::Socket::connect_at_once(&address));
    connected.is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
}
