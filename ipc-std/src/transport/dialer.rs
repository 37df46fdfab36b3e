//! `Dialer`: connecting on a thread, for connectors that cannot be interrupted.
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use super::caught::caught;
use super::connector::{ConnectError, Connector};
use super::stream::Stream;
use crate::sys::Flag;

/// A connection that a thread opens, because the connector can take longer than its deadline.
///
/// After the dialer is dropped, the thread still waits until the connector returns, and then drops the connection.
#[derive(Debug)]
pub(crate) struct Dialer {
    shared: Arc<PendingStream>,
}

#[derive(Debug)]
struct PendingStream {
    result: Mutex<Option<Result<Stream, ConnectError>>>,
    progress: Condvar,
    /// A flag that is raised when there is a result.
    flag: Arc<Flag>,
}

/// Opens a connection on this thread. A panic of the connector is an error.
pub(crate) fn connect(connector: &dyn Connector, deadline: Instant) -> Result<Stream, ConnectError> {
    caught(|| connector.connect(deadline))?
}

impl Dialer {
    pub(crate) fn start(connector: Arc<dyn Connector>, deadline: Instant) -> io::Result<Self> {
        let shared = Arc::new(PendingStream {
            result: Mutex::default(),
            progress: Condvar::new(),
            flag: Arc::new(Flag::new()?),
        });
        let of_thread = Arc::clone(&shared);
        thread::Builder::new().name("ipc-connect".to_owned()).spawn(move || {
            let result = connect(&*connector, deadline);
            *of_thread.result() = Some(result);
            of_thread.progress.notify_all();
            of_thread.flag.raise();
        })?;
        Ok(Self { shared })
    }

    /// Returns the flag that is raised when there is a result.
    pub(crate) fn flag(&self) -> &Arc<Flag> {
        &self.shared.flag
    }

    /// Returns whether there is a result.
    pub(crate) fn has_result(&self) -> bool {
        self.shared.result().is_some()
    }

    /// Returns the result, if there is one.
    pub(crate) fn take(&self) -> Option<Result<Stream, ConnectError>> {
        self.shared.result().take()
    }

    /// Waits for the result; fails with [`ConnectError::NotReady`] after `deadline`.
    pub(crate) fn wait(self, deadline: Instant) -> Result<Stream, ConnectError> {
        let limit = deadline.saturating_duration_since(Instant::now());
        let result = self.shared.result();
        let waited = self.shared.progress.wait_timeout_while(result, limit, |result| result.is_none());
        let (mut result, _) = waited.unwrap_or_else(PoisonError::into_inner);
        result.take().unwrap_or(Err(ConnectError::NotReady))
    }
}

impl PendingStream {
    fn result(&self) -> MutexGuard<'_, Option<Result<Stream, ConnectError>>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
