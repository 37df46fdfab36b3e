//! The search for all runtimes on Unix.
use std::collections::HashSet;
use std::path::Path;

use super::context::SearchContext;
use super::process_search::ProcessSearch;
use crate::candidate::Candidate;
use crate::deadline::Deadline;
use crate::directory::{Directory, DirectoryEntry};
use crate::error::Reason;
use crate::search::{Search, SearchSubject};
use crate::socket_file::ProcessKey;
use crate::sys;
use crate::target::Target;

/// The key of a location that is scanned for all processes.
const ANY_PROCESS: ProcessKey = ProcessKey { local_process_id: 0, started: None, exists: false };

/// Searches for all processes with a runtime, and all sockets without a process; also returns why some may be missing.
pub(crate) fn scan_all(deadline: Deadline) -> (Vec<Search>, Vec<Reason>) {
    let context = SearchContext::new(deadline);
    let mut obstacles = Vec::new();
    // The locations of this process come first, so that a directory is named by the path that this process has for it.
    for own in context.own_locations(ANY_PROCESS) {
        match own.wait(context.deadline).1 {
            Ok(scanned) => obstacles.extend(scanned.reason),
            Err(reason) => obstacles.push(reason),
        }
    }
    let mut searches: Vec<Search> = Vec::new();
    // All searches start before this function waits for the first result, because the searches share one deadline.
    let started: Vec<_> = processes(&context)
        .into_iter()
        .map(|process_id| ProcessSearch::start(process_id, deadline, &context))
        .collect();
    for search in started {
        let (search, may_have_runtime) = search.finish(&context);
        if may_have_runtime {
            searches.push(search);
        }
    }
    let keys = |searches: &[Search], which: fn(&&Candidate) -> bool| -> HashSet<_> {
        searches
            .iter()
            .flat_map(|search| &search.candidates)
            .filter(which)
            .map(|candidate| candidate.file.key())
            .collect()
    };
    // A socket that belongs to one process is not left over from another process with the same id in another PID
    // namespace.
    let claimed = keys(&searches, |candidate| candidate.is_its_own);
    let mut others = Vec::new();
    searches.retain_mut(|search| {
        let is_local = |candidate: &Candidate| candidate.local_process_id == search.process_id;
        if !search.candidates.first().is_some_and(is_local) {
            // The process has no socket; or, in a PID namespace without its own /proc, its runtime read the start time
            // of another process.
            return true;
        }
        // Invisible processes may have made the sockets that do not belong to this process. Each gets a search of its
        // own.
        let (own, other): (Vec<_>, Vec<_>) =
            core::mem::take(&mut search.candidates).into_iter().partition(|candidate| candidate.is_its_own);
        let other = other.into_iter().filter(|candidate| !claimed.contains(&candidate.file.key()));
        others.extend(other.map(|candidate| search.of_socket(candidate)));
        search.candidates = own;
        !search.candidates.is_empty()
    });
    searches.append(&mut others);
    let taken = keys(&searches, |_| true);
    for directory in context.opened().iter() {
        for entry in directory.known_entries() {
            if !taken.contains(&(directory.opened.identity, entry.name)) {
                searches.push(search_socket(directory, *entry, deadline));
            }
        }
    }
    (searches, obstacles)
}

/// Searches for all sockets in one directory; also returns why some may be missing.
pub(crate) fn scan_directory(path: &Path, deadline: Deadline) -> (Vec<Search>, Vec<Reason>) {
    let context = SearchContext::new(deadline);
    let scanned = match context.location(path.to_owned(), ANY_PROCESS).wait(context.deadline).1 {
        Ok(scanned) => scanned,
        Err(reason) => return (Vec::new(), vec![reason]),
    };
    let directory = &scanned.directory;
    let entries = directory.known_entries().iter();
    let searches = entries.map(|entry| search_socket(directory, *entry, deadline)).collect();
    (searches, scanned.reason.into_iter().collect())
}

/// Searches for the runtime of a socket that no process was found for.
fn search_socket(directory: &Directory, found: DirectoryEntry, deadline: Deadline) -> Search {
    let process_id = found.name.process_id();
    let entry = sys::process_entry(process_id).filter(|_| !directory.foreign);
    let key = ProcessKey {
        local_process_id: process_id,
        started: entry.map(|entry| entry.started),
        exists: !directory.foreign && (entry.is_some() || sys::process_exists(process_id)),
    };
    let candidate = Candidate::new(directory, found, key);
    // If the process is visible and the socket may be its own, the process must be the listener. Otherwise any process
    // can be the listener.
    let target = entry
        .filter(|_| candidate.is_its_own)
        .map(|entry| Target { process_id, user_id: entry.user_id.or_else(|| owner_of(process_id)) });
    Search { target, ..Search::new(process_id, deadline) }.of_socket(candidate)
}

impl Search {
    /// Returns a search for one socket whose name has the process id of this search.
    fn of_socket(&self, candidate: Candidate) -> Self {
        let mut search = Self { target: self.target, ..Self::new(self.process_id, self.deadline) };
        search
            .note(SearchSubject::Directory { path: candidate.file.directory.path.clone(), sockets: 1 }, None);
        search.candidates.push(candidate);
        search
    }
}

/// Returns the user of a process, by its directory in `/proc`.
fn owner_of(process_id: u32) -> Option<u32> {
    rustix::fs::stat(format!("/proc/{process_id}")).ok().map(|stat| stat.st_uid)
}

/// Returns all processes; on systems that do not list processes, only the processes with a socket.
fn processes(context: &SearchContext) -> Vec<u32> {
    let proc = if cfg!(any(target_os = "linux", target_os = "android")) {
        std::fs::read_dir("/proc").ok()
    } else {
        None
    };
    let ids =
        proc.into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut ids: Vec<u32> = ids.collect();
    if ids.is_empty() {
        let opened = context.opened();
        let entries = opened.iter().flat_map(Directory::known_entries);
        ids = entries.map(|entry| entry.name.process_id()).filter(|id| sys::process_exists(*id)).collect();
        ids.sort_unstable();
        ids.dedup();
    }
    ids
}
