//! The names of trace files: `{pid}` and numbers.
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
#[cfg(unix)]
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::run::threads::lock;

/// Gives each trace of a run a file of its own.
#[derive(Debug)]
pub(super) struct TraceFiles {
    pattern: OsString,
    /// Whether a path contains the process id.
    has_process_id: bool,
    numbers: Mutex<FileNumbers>,
}

/// The numbers of the traces so far.
#[derive(Debug, Default)]
struct FileNumbers {
    all: u64,
    /// The number of traces of each process id, for the first process ids.
    by_process_id: HashMap<u64, u64>,
}

/// The maximum number of process ids that are stored: a monitor that runs for years sees more.
const MAX_PROCESS_IDS: usize = 1 << 16;

impl TraceFiles {
    pub(super) fn new(pattern: Option<&Path>) -> Self {
        let pattern = pattern.map(OsString::from).unwrap_or_default();
        let has_process_id = with_process_id(&pattern, "") != pattern;
        Self { pattern, has_process_id, numbers: Mutex::default() }
    }

    /// Returns a path that this run has not used: the first one of a process id has no number.
    pub(super) fn next(&self, process_id: u64) -> PathBuf {
        let path = PathBuf::from(with_process_id(&self.pattern, &process_id.to_string()));
        let key = if self.has_process_id { process_id } else { 0 };
        let mut numbers = lock(&self.numbers);
        match numbers.next(key) {
            1 => path,
            number => numbered(&path, number),
        }
    }
}

impl FileNumbers {
    /// Returns the next number for a process id.
    fn next(&mut self, process_id: u64) -> u64 {
        self.all = self.all.saturating_add(1);
        if self.by_process_id.len() >= MAX_PROCESS_IDS && !self.by_process_id.contains_key(&process_id) {
            // The count of all traces was never used as a number, so the path is new although the process id is not
            // stored.
            return self.all;
        }
        let number = self.by_process_id.entry(process_id).or_insert(0);
        *number = number.saturating_add(1);
        *number
    }
}

/// Replaces each `{pid}` in the pattern.
#[cfg(unix)]
fn with_process_id(pattern: &OsStr, process_id: &str) -> OsString {
    let (mut path, mut rest) = (Vec::new(), pattern.as_bytes());
    while let Some((first, following)) = rest.split_first() {
        if let Some(following) = rest.strip_prefix(b"{pid}") {
            path.extend_from_slice(process_id.as_bytes());
            rest = following;
        } else {
            path.push(*first);
            rest = following;
        }
    }
    OsString::from_vec(path)
}
/// Replaces each `{pid}` in the pattern. A pattern that is not Unicode is returned unchanged.
#[cfg(windows)]
fn with_process_id(pattern: &OsStr, process_id: &str) -> OsString {
    pattern.to_str().map_or_else(|| pattern.to_owned(), |pattern| pattern.replace("{pid}", process_id).into())
}

/// Adds a number to a name: `app.nettrace` becomes `app.2.nettrace`.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    if let Some(extension) = path.extension() {
        name.push(OsStr::new("."));
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_trace_has_its_own_path() {
        let names = |pattern: &str, process_ids: &[u64]| {
            let files = TraceFiles::new(Some(Path::new(pattern)));
            process_ids.iter().map(|id| files.next(*id)).collect::<Vec<_>>()
        };
        assert_eq!(
            names("a.nettrace", &[5, 6, 5]),
            ["a.nettrace", "a.2.nettrace", "a.3.nettrace"].map(PathBuf::from)
        );
        assert_eq!(
            names("{pid}.x", &[5, 6, 5, 5, 6]),
            ["5.x", "6.x", "5.2.x", "5.3.x", "6.2.x"].map(PathBuf::from)
        );
        assert_eq!(names("t/{pid}", &[5, 5, 2]), ["t/5", "t/5.2", "t/2"].map(PathBuf::from));
    }

    #[test]
    fn the_number_of_stored_process_ids_is_limited() {
        let files = TraceFiles::new(Some(Path::new("{pid}.x")));
        let mut seen = HashSet::new();
        let more = u64::try_from(MAX_PROCESS_IDS).unwrap() + 1000;
        for id in (0..more).chain(0..more) {
            assert!(seen.insert(files.next(id)), "{id}");
        }
        assert_eq!(files.numbers.lock().unwrap().by_process_id.len(), MAX_PROCESS_IDS);
        assert!(seen.contains(Path::new("1000.x")) && seen.contains(Path::new("1000.2.x")));
    }
}
