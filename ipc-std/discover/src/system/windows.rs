//! The searches on Windows, for one process and for all.
use std::path::Path;

use ipc_proto::PipeName;

use crate::candidate::Candidate;
use crate::deadline::Deadline;
use crate::directory::directory;
use crate::error::{Denied, Reason, Signs};
use crate::search::{Search, SearchSubject};
use crate::sys;
use crate::target::Target;

/// Searches for the runtime of one process.
pub(super) fn search_process(process_id: u32, deadline: Deadline) -> Search {
    let mut search = Search::new(process_id, deadline);
    // The router's pipe comes before the process's own.
    search.candidates =
        [true, false].into_iter().filter_map(|router| Candidate::new(process_id, router)).collect();
    search.target = Some(Target { process_id });
    // A pipe is visible even if its process is not accessible.
    let is_gone = search.candidates.is_empty() && !sys::process_exists(process_id);
    let process =
        SearchSubject::Process { process_id, local_process_id: process_id, user_id: None, started: None };
    search.note(process, is_gone.then_some(Reason::NoProcess));
    if !is_gone {
        let sockets = search.candidates.len();
        search.note(SearchSubject::Directory { path: directory(), sockets }, None);
        if sockets == 0 {
            let signs = Signs::Unknown;
            let reason = Reason::NoSocket { searched: vec![directory()], signs };
            search.note(SearchSubject::Memory { signs }, reason);
        }
    }
    search
}

/// Searches for all processes with a pipe, and returns why some may be missing. Wine cannot list pipes: there this
/// function finds no process, although [`search_process`] does.
pub(super) fn scan_all(deadline: Deadline) -> (Vec<Search>, Vec<Reason>) {
    scan_directory(&directory(), deadline)
}

/// Searches for the pipes in a directory; only the directory `\\.\pipe\` has pipes.
pub(super) fn scan_directory(path: &Path, deadline: Deadline) -> (Vec<Search>, Vec<Reason>) {
    let (pipes, obstacles) = match std::fs::read_dir(path) {
        Ok(pipes) => (Some(pipes), Vec::new()),
        Err(e) => (None, vec![Reason::Unreadable { path: path.to_owned(), denied: Denied::new(path, &e) }]),
    };
    if path != directory() {
        return (Vec::new(), obstacles);
    }
    let pipes = pipes.into_iter().flatten().flatten();
    let named = pipes.filter_map(|pipe| pipe.file_name().to_str()?.parse().ok());
    let mut ids: Vec<_> = named.map(|PipeName { process_id }| process_id).collect();
    ids.sort_unstable();
    ids.dedup();
    (ids.into_iter().map(|process_id| search_process(process_id, deadline)).collect(), obstacles)
}
