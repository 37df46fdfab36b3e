//! `ProcessView`: what the system shows of a process: its namespaces, its root, its environment.
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::path::{Path, PathBuf};
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::sync::Arc;

#[cfg(any(target_os = "linux", target_os = "android"))]
use ipc_proto::{SocketName, plan::Flavour, port::Config};
#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::io::Errno;

use super::context::{SearchContext, SearchLocation};
#[cfg(any(target_os = "linux", target_os = "android"))]
use super::target_tmpdir::TargetTmpdir;
#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::directory::{or_tmp, unreadable};
use crate::error::{Reason, Signs};
#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::procfs::{Environ, Process, runtime_signs};
use crate::search::{Search, SearchSubject};
use crate::socket_file::ProcessKey;
use crate::sys;

/// A running process, as far as the system shows it.
#[derive(Debug)]
pub(super) struct ProcessView {
    process_id: u32,
    key: ProcessKey,
    user_id: Option<u32>,
    /// The directory of the process in `/proc`, if it is readable.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    process: Option<Arc<Process>>,
}

impl ProcessView {
    pub(super) const fn key(&self) -> ProcessKey {
        self.key
    }

    pub(super) const fn user_id(&self) -> Option<u32> {
        self.user_id
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl ProcessView {
    /// Inspects a process, and records the result in `search`; `None` if there is no process, or if it has ended.
    pub(super) fn new(process_id: u32, search: &mut Search) -> Option<Self> {
        let opened = Process::open(process_id);
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
            // The process exists but is hidden.
            (opened, None) if sys::process_exists(process_id) => match opened {
                Err(e) if e.raw_os_error() == Some(Errno::ACCESS.raw_os_error()) => {
                    Some(unreadable(Path::new(&format!("/proc/{process_id}")), e))
                }
                _ => Some(Reason::Hidden),
            },
            _ => Some(Reason::NoProcess),
        };
        let is_running = !matches!(reason, Some(Reason::NoProcess | Reason::Ended | Reason::Thread { .. }));
        search.note(SearchSubject::Process { process_id, local_process_id, user_id, started }, reason);
        let key = ProcessKey { local_process_id, started, exists: true };
        let process = opened.ok().map(Arc::new);
        is_running.then_some(Self { process_id, key, user_id, process })
    }

    /// Starts to scan the directory in which a runtime with the environment of the process makes its socket.
    pub(super) fn location(&self, context: &SearchContext, search: &mut Search) -> Option<SearchLocation> {
        let process = self.process.as_ref()?;
        let environment = match process.environment() {
            Ok(environment) => environment,
            // A process of the kernel, or one that has ended, has no memory, so it has no environment and no runtime.
            Err(e) if e.raw_os_error() == Some(Errno::SRCH.raw_os_error()) || !self.is_alive() => {
                search.note(SearchSubject::Environment { tmpdir: None }, None);
                return None;
            }
            Err(e) => {
                let path = PathBuf::from(format!("/proc/{}/environ", self.process_id));
                search.note(SearchSubject::Environment { tmpdir: None }, unreadable(&path, &e));
                return None;
            }
        };
        let tmpdir = environment.variable("TMPDIR");
        let directory = or_tmp(tmpdir);
        let reason = diagnostics_off(&environment).or_else(|| {
            let name = SocketName {
                process_id: self.key.local_process_id,
                disambiguation_key: self.key.started.unwrap_or_default(),
            };
            let name = name.to_text().as_str().len();
            let limit = sys::LONGEST_PATH.saturating_sub(name).saturating_sub(1);
            (directory.as_os_str().len() > limit)
                .then(|| Reason::TmpdirTooLong { tmpdir: directory.clone(), limit })
        });
        // A runtime that listens has read another environment: the program may have changed it before its start.
        let reason = reason.filter(|_| self.signs() != Signs::Listening);
        search.note(SearchSubject::Environment { tmpdir: tmpdir.map(PathBuf::from) }, reason);
        let tmpdir = TargetTmpdir::new(self.process_id, process, directory, self.key, context);
        Some(tmpdir.location(context))
    }

    pub(super) fn signs(&self) -> Signs {
        match self.process.as_deref().map(Process::maps) {
            Some(Ok(maps)) => runtime_signs(&maps),
            _ => Signs::Unknown,
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        match &self.process {
            Some(process) => process.entry().is_ok_and(|entry| !entry.has_ended),
            None => sys::process_exists(self.process_id),
        }
    }
}

/// Returns the variable by which the runtime makes no socket. The kind of runtime is not known yet, so this function
/// reads the environment as CoreCLR does: CoreCLR accepts more spellings of 0 than the other kinds.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn diagnostics_off(environment: &Environ) -> Option<Reason> {
    let config = Config::read(Flavour::CoreClr, |name| environment.variable(name)?.to_str());
    let (variable, value) = config.disabled_by()?;
    Some(Reason::DiagnosticsOff { variable, value: value.to_owned() })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl ProcessView {
    pub(super) fn new(process_id: u32, search: &mut Search) -> Option<Self> {
        let entry = sys::process_entry(process_id);
        let started = entry.map(|entry| entry.started);
        let user_id = entry.and_then(|entry| entry.user_id);
        let reason = match entry {
            Some(entry) if entry.has_ended => Some(Reason::Ended),
            None if !sys::process_exists(process_id) => Some(Reason::NoProcess),
            _ => None,
        };
        let is_running = reason.is_none();
        let local_process_id = process_id;
        search.note(SearchSubject::Process { process_id, local_process_id, user_id, started }, reason);
        let key = ProcessKey { local_process_id, started, exists: true };
        is_running.then_some(Self { process_id, key, user_id })
    }

    /// Systems other than Linux do not show the environment of another process.
    pub(super) fn location(&self, _: &SearchContext, _: &mut Search) -> Option<SearchLocation> {
        None
    }

    pub(super) fn signs(&self) -> Signs {
        Signs::Unknown
    }

    pub(super) fn is_alive(&self) -> bool {
        sys::process_exists(self.process_id)
    }
}
