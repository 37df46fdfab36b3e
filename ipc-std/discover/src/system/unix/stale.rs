//! `stale` and `Stale`: sockets that are proven to be left over.
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use crate::deadline::Deadline;
use crate::directory::{Directory, FileIdentity, FileTime, identity, modified};
use crate::endpoint_name::EndpointName;
use crate::sys;

/// A socket that is proven to be left over: the process in its name has ended, and no process listens. See [`stale`].
#[derive(Debug)]
pub struct Stale {
    /// The id of the process that made the socket, in its own PID namespace.
    pub process_id: u32,
    /// The socket.
    pub path: PathBuf,
    /// Whether the socket belongs to `dotnet-dsrouter`.
    pub router: bool,
    /// The user who owns the socket.
    pub owner: u32,
    /// Whether this user can remove the socket: the owner and root can.
    pub removable: bool,
    /// The other files that the same process left in the directory: its pipes for debuggers.
    pub pipes: Vec<PathBuf>,
    name: EndpointName,
    directory: Directory,
    file: (FileIdentity, FileTime),
}

/// Returns the sockets in a directory that are proven to be left over, sorted by process id.
///
/// A runtime that crashes or is killed does not remove its socket, and no other program removes it. If another process
/// has inherited its listener, that process listens: the socket is left over when that process has ended too.
///
/// ```no_run
/// for stale in ipc_discover::stale(&ipc_discover::directory())? {
///     println!("{}", stale.path.display());
///     stale.remove()?;
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Only the system on which the runtime ran can prove that no process listens. A file system that other systems share
/// over a network, or that a program serves, proves nothing. A layer of a container's file system proves nothing
/// either: a socket in the layer is another socket than the container's own socket of the same name.
///
/// # Errors
/// If the directory cannot be listed; the kind is `Unsupported` if its file system proves nothing.
pub fn stale(directory: &Path) -> io::Result<Vec<Stale>> {
    let directory = Directory::open(directory)?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if !sys::is_local(directory.descriptor())? {
        let message = "it is on a file system that other systems share, where a process may listen that is not \
                       visible from here";
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    let hang_ups = hang_up_deadline();
    let entries = directory.entries()?.iter();
    let mut stale: Vec<_> =
        entries.filter_map(|entry| Stale::prove(&directory, entry.name, hang_ups)).collect();
    stale.sort_by(|a, b| (a.process_id, &a.path).cmp(&(b.process_id, &b.path)));
    Ok(stale)
}

/// Returns the deadline for hang-ups of all sockets together, so that the waits for many sockets with listeners do not
/// add up.
fn hang_up_deadline() -> Instant {
    Deadline::after(sys::HANG_UP_TIMEOUT).end
}

impl Stale {
    fn prove(directory: &Directory, name: EndpointName, hang_ups: Instant) -> Option<Self> {
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
        stale.is_proven(hang_ups).ok()?.then(|| Self { pipes: stale.pipes(), ..stale })
    }

    /// Returns whether the socket is still proven to be left over.
    fn is_proven(&self, hang_ups: Instant) -> io::Result<bool> {
        let stat = self.directory.stat(&self.name.to_os())?;
        if (identity(&stat), modified(&stat)) != self.file
            || FileType::from_raw_mode(stat.st_mode) != FileType::Socket
        {
            return Ok(false);
        }
        let started = sys::process_entry(self.process_id).map(|entry| entry.started);
        let is_left_over = self.name.is_left_over(started, sys::process_exists(self.process_id));
        // The end of the process is not enough: a process in another PID namespace can have the same id, and can
        // listen.
        Ok(is_left_over && self.is_dead(hang_ups) && !self.is_listed())
    }

    /// Returns whether no process listens at the socket.
    fn is_dead(&self, hang_ups: Instant) -> bool {
        let path = if cfg!(any(target_os = "linux", target_os = "android")) {
            self.directory.pinned(self.name).path()
        } else {
            self.path.clone()
        };
        sys::is_dead(&path, hang_ups).unwrap_or(false)
    }

    /// Returns whether the kernel lists a bound socket of this file name. The same file seen through another layer of a
    /// file system is another socket, so connecting fails although a process listens.
    fn is_listed(&self) -> bool {
        // Systems other than Linux do not have such a list, or do not show it to all users.
        let Ok(list) = std::fs::read("/proc/net/unix") else { return false };
        let name = self.name.to_os();
        // The directory may have another path in the list, but the name contains process id and start time.
        list.split(|byte| *byte == b'\n').any(|line| {
            let path = line.iter().position(|byte| *byte == b'/').and_then(|start| line.get(start..));
            path.is_some_and(|path| Path::new(OsStr::from_bytes(path)).file_name() == Some(&*name))
        })
    }

    /// Returns the pipes for debuggers of the same process, which has ended.
    fn pipes(&self) -> Vec<PathBuf> {
        let EndpointName::Runtime(name) = self.name else { return Vec::new() };
        let names = ["in", "out"]
            .map(|end| format!("clr-debug-pipe-{}-{}-{end}", name.process_id, name.disambiguation_key));
        let existing = names.into_iter().filter(|name| self.is_pipe(name.as_ref()));
        existing.map(|name| self.directory.path.join(name)).collect()
    }

    /// Returns whether there is a pipe of this name with the same owner as the socket.
    fn is_pipe(&self, name: &OsStr) -> bool {
        let stat = self.directory.stat(name);
        stat.is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::Fifo && stat.st_uid == self.owner
        })
    }

    /// Removes the socket and the pipes if they are still proven to be left over. Returns the removed files: none if
    /// the proof fails now, or if another process has removed them.
    ///
    /// # Errors
    /// If the system refuses to remove a file.
    pub fn remove(&self) -> io::Result<Vec<PathBuf>> {
        match self.is_proven(hang_up_deadline()) {
            Ok(true) => {}
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => return Ok(Vec::new()),
        }
        let mut removed = Vec::new();
        for path in [&self.path].into_iter().chain(&self.pipes) {
            let Some(name) = path.file_name() else { continue };
            // Another file may have the name of a pipe now, and must not be removed.
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
