//! `Client::hazard` and `Client::may_be_suspended`: whether a request can end the process of a runtime.
use std::path::Path;

use ipc_proto::Request;
use ipc_proto::RouterSocketName;
use ipc_proto::plan::{self, Explanation, Flavour, Hazard, Runtime};

use crate::client::Client;
#[cfg(unix)]
use crate::discover::procfs;
use crate::error::{Error, ErrorKind};

impl Client {
    /// Returns whether the request may end the process; see [`plan::hazard`]. If the answer depends on the runtime, the
    /// client requests its version and inspects its process through the operating system. A property that stays unknown
    /// counts as dangerous.
    ///
    /// # Errors
    /// If connecting or the call fails.
    pub fn hazard(&self, request: &Request<'_>) -> Result<Option<Hazard>, Error> {
        if plan::hazard(request, &Runtime::default(), None).is_none() {
            return Ok(None);
        }
        let (flavour, suspended) = self.inspect_local_process();
        let runtime = Runtime { flavour, suspended, ..self.describe_runtime()? };
        let file_exists = match request {
            Request::ApplyStartupHook(hook) => self.has_file(&hook.startup_hook_path.to_string()),
            _ => None,
        };
        Ok(plan::hazard(request, &runtime, file_exists))
    }

    /// Returns what the runtime reports about itself: its version and system.
    pub(crate) fn describe_runtime(&self) -> Result<Runtime, Error> {
        match self.process_info() {
            Err(e) if e.kind() == ErrorKind::Unsupported => Ok(Runtime::WITHOUT_INFO),
            Err(e) if e.explanation() == Some(Explanation::InfoTooLong) => Ok(Runtime::default()),
            info => Ok(Runtime::from(&info?)),
        }
    }

    /// Returns whether the runtime may be suspended at startup. `Some(false)` if the environment of its process
    /// requests no suspension; `None` if the environment may request one, or if the process is unknown.
    #[must_use]
    pub fn may_be_suspended(&self) -> Option<bool> {
        self.inspect_local_process().1
    }

    /// Returns the id of the runtime's process, if the process is visible.
    pub(crate) fn visible_runtime(&self) -> Option<u32> {
        let name = self.path().and_then(Path::file_name).and_then(|name| name.to_str());
        // The process at the socket of a router is the router itself, not the runtime.
        let is_router = name.is_some_and(|name| name.parse::<RouterSocketName>().is_ok());
        self.connector().process_id().filter(|_| !is_router)
    }

    /// Returns the kind of the runtime, and whether it may be suspended at startup.
    #[cfg(unix)]
    fn inspect_local_process(&self) -> (Option<Flavour>, Option<bool>) {
        let process_id = self.visible_runtime();
        (process_id.and_then(procfs::flavour), process_id.and_then(procfs::suspended))
    }
    /// Returns neither the kind nor the suspension: Windows shows no environment and no memory map of another process.
    #[cfg(windows)]
    const fn inspect_local_process(&self) -> (Option<Flavour>, Option<bool>) {
        (None, None)
    }

    /// Returns whether the process of the runtime finds a file at this path; `None` if this is unknown.
    #[cfg(unix)]
    fn has_file(&self, path: &str) -> Option<bool> {
        self.visible_runtime().and_then(|process_id| procfs::has_file(process_id, path))
    }
    /// Returns `None` for a relative path: on Windows all processes have the same root, but not the same working
    /// directory.
    #[cfg(windows)]
    fn has_file(&self, path: &str) -> Option<bool> {
        let path = Path::new(path);
        path.is_absolute().then(|| path.is_file())
    }
}
