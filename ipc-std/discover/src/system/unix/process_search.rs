//! The search for one process on Unix.
use super::context::{SearchContext, SearchLocation};
use super::process_view::ProcessView;
use super::scanned_directory::{ScannedDirectory, sort_by_likelihood};
use crate::deadline::Deadline;
use crate::directory::Directory;
use crate::error::{Reason, Signs};
use crate::search::{Search, SearchSubject};
use crate::socket_file::ProcessKey;
use crate::sys;
use crate::target::Target;

/// Searches for the runtime of one process.
pub(crate) fn search_process(process_id: u32, deadline: Deadline) -> Search {
    let context = SearchContext::new(deadline);
    let (mut search, _) = ProcessSearch::start(process_id, deadline, &context).finish(&context);
    if search.target.is_none() && !sys::process_exists(process_id) {
        search_invisible(&mut search, &context);
    }
    search
}

/// Searches for sockets of a process that does not exist in the PID namespace of this process: the process may exist in
/// another PID namespace that shares a directory. Sockets of other users are ignored, because any process may listen at
/// them.
fn search_invisible(search: &mut Search, context: &SearchContext) {
    let key = ProcessKey { local_process_id: search.process_id, started: None, exists: false };
    for location in context.own_locations(key) {
        let Ok(ScannedDirectory { directory, mut candidates, .. }) = location.wait(context.deadline).1 else {
            continue;
        };
        candidates.retain(|candidate| candidate.file.has_trusted_owner());
        if candidates.is_empty() {
            continue;
        }
        if search.candidates.is_empty() {
            // A socket was found, so the steps that report a missing process are removed.
            search.steps.clear();
        }
        let sockets = candidates.len();
        search.note(SearchSubject::Directory { path: directory.path, sockets }, None);
        search.candidates.append(&mut candidates);
    }
    sort_by_likelihood(&mut search.candidates);
}

/// The search for the runtime of one process. A worker may still scan its directory.
pub(super) struct ProcessSearch {
    search: Search,
    /// `None` if there is no such process, or if it has ended.
    process: Option<ProcessView>,
    location: Option<SearchLocation>,
}

impl ProcessSearch {
    pub(super) fn start(process_id: u32, deadline: Deadline, context: &SearchContext) -> Self {
        let mut search = Search::new(process_id, deadline);
        let process = ProcessView::new(process_id, &mut search);
        let location = process.as_ref().and_then(|process| process.location(context, &mut search));
        Self { search, process, location }
    }

    /// Waits for the result. Also returns whether the process may have a runtime.
    pub(super) fn finish(self, context: &SearchContext) -> (Search, bool) {
        let Self { mut search, process, location } = self;
        let Some(process) = process else { return (search, false) };
        let (process_id, user_id) = (search.process_id, process.user_id());
        search.target = Some(Target { process_id, user_id });

        let mut searched = Vec::new();
        let mut visited: Vec<Directory> = Vec::new();
        let mut is_unknown = false;
        let mut has_tmpdir = true;
        // The place in `visited` of the directory of the process.
        let mut place_of_own = None;
        let has_location = location.is_some();
        let mut own = None;
        let locations = location.into_iter().chain(core::iter::from_fn(|| {
            // The directory of this process is scanned only if needed, because a temporary directory may have many
            // files.
            own.get_or_insert_with(|| context.own_locations(process.key()).into_iter()).next()
        }));
        for (place, location) in locations.enumerate() {
            let (path, scanned) = location.wait(context.deadline);
            let ScannedDirectory { directory, mut candidates, reason } = match scanned {
                Ok(scanned) if visited.iter().any(|visited| visited.is(&scanned.directory)) => continue,
                Ok(scanned) => scanned,
                // The process has ended, which is reported below.
                Err(_) if !process.is_alive() => continue,
                Err(reason) => {
                    let reason = match reason {
                        Reason::NoTmpdir { tmpdir } if process.signs() == Signs::Listening => {
                            Reason::TmpdirGone { tmpdir }
                        }
                        reason => reason,
                    };
                    has_tmpdir &= !matches!(reason, Reason::NoTmpdir { .. } | Reason::TmpdirGone { .. });
                    is_unknown |= matches!(reason, Reason::Unresponsive { .. });
                    search.note(SearchSubject::Directory { path, sockets: 0 }, reason);
                    continue;
                }
            };
            let (path, sockets) = (directory.path.clone(), candidates.len());
            search.note(SearchSubject::Directory { path: path.clone(), sockets }, reason);
            if place == 0 && has_location {
                place_of_own = Some(visited.len());
            }
            searched.push(path);
            visited.push(directory);
            search.candidates.append(&mut candidates);
            if search.candidates.iter().any(|candidate| candidate.is_exact) {
                break;
            }
        }
        sort_by_likelihood(&mut search.candidates);
        if !search.candidates.is_empty() {
            return (search, true);
        }
        let signs = process.signs();
        // If the process has ended meanwhile, its end is the reason to report: all other failures follow from it.
        let is_loaded = matches!(signs, Signs::Loaded | Signs::NotListening | Signs::Listening);
        let unwritable = || {
            let directory = visited.get(place_of_own?)?;
            let obstacle = directory.obstacle(user_id)?;
            Some(Reason::Unwritable { tmpdir: directory.path.clone(), obstacle })
        };
        let has_no_socket = is_loaded && signs != Signs::Listening;
        let reason = match process.is_alive() {
            // The missing directory explains why there is no socket.
            true if is_loaded && !has_tmpdir => None,
            true => {
                let unwritable = if has_no_socket { unwritable() } else { None };
                Some(unwritable.unwrap_or(Reason::NoSocket { searched, signs }))
            }
            false => Some(Reason::NoProcess),
        };
        search.note(SearchSubject::Memory { signs }, reason);
        (search, is_unknown || is_loaded)
    }
}
