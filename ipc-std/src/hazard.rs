//! `Client::hazard` and `Client::may_be_suspended`: whether a request can end the process of a runtime.
use std::path::Path;

use ipc_discover::process;
use ipc_proto::Request;
use ipc_proto::RouterSocketName;
use ipc_proto::plan::{self, Hazard, Runtime};

use crate::client::Client;
use crate::error::Error;
use crate::process_info::ProcessInfo;

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
        let visible = self.visible_runtime();
        let (flavour, suspended) =
            (visible.and_then(process::flavour), visible.and_then(process::may_be_suspended));
        let runtime = Runtime { flavour, suspended, ..self.describe_runtime()? };
        let file_exists = match request {
            Request::ApplyStartupHook(hook) => {
                visible.and_then(|visible| process::has_file(visible, &hook.startup_hook_path.to_string()))
            }
            _ => None,
        };
        Ok(plan::hazard(request, &runtime, file_exists))
    }

    /// Returns what the runtime reports about itself: its version and system.
    pub(crate) fn describe_runtime(&self) -> Result<Runtime, Error> {
        ProcessInfo::runtime(self.process_info())
    }

    /// Returns whether the runtime may be suspended at startup. `Some(false)` if the environment of its process
    /// requests no suspension; `None` if the environment may request one, or if the process is unknown.
    #[must_use]
    pub fn may_be_suspended(&self) -> Option<bool> {
        self.visible_runtime().and_then(process::may_be_suspended)
    }

    /// Returns the id of the runtime's process, if the process is visible.
    pub(crate) fn visible_runtime(&self) -> Option<u32> {
        let name = self.path().and_then(Path::file_name).and_then(|name| name.to_str());
        // The process at the socket of a router is the router itself, not the runtime.
        let is_router = name.is_some_and(|name| name.parse::<RouterSocketName>().is_ok());
        self.connector().process_id().filter(|_| !is_router)
    }
}
