//! `identify_all`: asks the runtimes of a scan, many at a time.
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Instant;

use ipc_discover::{Deadline, Scan, Search, SearchError};

use super::found::Found;
use super::identify::identify_by;
use crate::observer::Observer;

/// Identifies all runtimes in parallel before the deadline of the scan, and calls `each` with every result as soon
/// as it is known. Sockets of visible processes come first, so that sockets without a process do not use up their
/// time.
///
/// ```no_run
/// use ipc_std::discover::{self, ScanConfig};
///
/// let scan = discover::scan(&ScanConfig::default());
/// for obstacle in &scan.obstacles {
///     println!("{obstacle}"); // /tmp/mine cannot be read: No such file or directory (os error 2)
/// }
/// discover::identify_all(scan, None, |search, result| match result {
///     Ok(found) => println!("{}: {}", search.process_id(), found.path.display()),
///     Err(error) => println!("{error}"),
/// });
/// ```
pub fn identify_all(
    scan: Scan,
    observer: Option<&Observer>,
    mut each: impl FnMut(Search, Result<Found, SearchError>),
) {
    let Scan { mut searches, deadline, .. } = scan;
    searches.sort_by_key(|search| search.target().is_none());
    let invisible = searches.iter().filter(|search| search.target().is_none()).count();
    let threads = searches.len().min(THREADS);
    let queue = Mutex::new(searches.into_iter());
    let next = || {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        let all = queue.len();
        queue.next().map(|search| {
            let same = if search.target().is_some() { all.saturating_sub(invisible) } else { all };
            (search, share(deadline, same))
        })
    };
    let work = |results: mpsc::Sender<_>| {
        while let Some((mut search, end)) = next() {
            let result = identify_by(&mut search, end, observer);
            // The receiver exists as long as a thread does, so sending cannot fail.
            let _ = results.send((search, result));
        }
    };
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let (work, mut has_thread) = (&work, false);
        for _ in 0..threads {
            let sender = sender.clone();
            has_thread |= thread::Builder::new().spawn_scoped(scope, move || work(sender)).is_ok();
        }
        if !has_thread {
            // The system refuses new threads, so this thread does the work.
            work(sender.clone());
        }
        drop(sender);
        receiver.into_iter().for_each(|(search, result)| each(search, result));
    });
}

/// The number of runtimes that are identified at the same time: each needs a descriptor.
const THREADS: usize = 64;

/// Returns when the next of `searches` remaining searches must end, so that each of them gets an equal share of the
/// time.
fn share(deadline: Deadline, searches: usize) -> Instant {
    let now = Instant::now();
    let rounds = u32::try_from(searches.div_ceil(THREADS)).unwrap_or(u32::MAX);
    let left = deadline.end.saturating_duration_since(now);
    now.checked_add(left.checked_div(rounds).unwrap_or(left)).unwrap_or(now)
}
