//! `Listener`: a listening pipe for this machine only.
use core::ptr;
use std::io::{self, ErrorKind};
use std::os::windows::io::{FromRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipc_discover::sys::{Address, absolute};
use windows_sys::Win32::Foundation::{ERROR_ACCESS_DENIED, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_FIRST_PIPE_INSTANCE, FILE_FLAG_OVERLAPPED, PIPE_ACCESS_DUPLEX,
};
use windows_sys::Win32::System::Pipes::{
    ConnectNamedPipe, CreateNamedPipeW, PIPE_READMODE_BYTE, PIPE_REJECT_REMOTE_CLIENTS, PIPE_TYPE_BYTE,
    PIPE_UNLIMITED_INSTANCES, PIPE_WAIT,
};

use super::error::{error, last_error};
use super::event::Event;
use super::operation::Operation;
use super::poller::{Source, Watched};
use super::socket::Socket;

/// A pipe that listens for connections from this machine.
#[derive(Debug)]
pub(crate) struct Listener {
    path: PathBuf,
    shared: Arc<PipeInstances>,
}

#[derive(Debug)]
struct PipeInstances {
    address: Address,
    /// The instances without an accepted client.
    instances: Mutex<Vec<Instance>>,
}

/// One instance of the pipe, which one client can open.
#[derive(Debug)]
struct Instance {
    handle: Arc<OwnedHandle>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// It is unknown whether a client has connected.
    Unknown,
    /// The operation ends when a client connects.
    Waiting(Operation),
    Connected,
}

impl Instance {
    /// How many clients can connect before the first of them is accepted.
    const BACKLOG: usize = 8;

    fn new(address: &Address, first: bool) -> io::Result<Self> {
        /// The size of the buffers that runtimes use, in bytes.
        const BUFFER: u32 = 16 << 10;
        let first = if first { FILE_FLAG_FIRST_PIPE_INSTANCE } else { 0 };
        // SAFETY: the name ends with a NUL. The default security descriptor allows writing only to the user of the
        // process, administrators and the system.
        let handle = unsafe {
            CreateNamedPipeW(
                address.wide().as_ptr(),
                PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED | first,
                PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS,
                PIPE_UNLIMITED_INSTANCES,
                BUFFER,
                BUFFER,
                0,
                ptr::null(),
            )
        };
        if handle == INVALID_HANDLE_VALUE {
            return Err(error(last_error()));
        }
        // SAFETY: the handle is new and has no other owner.
        let handle = unsafe { OwnedHandle::from_raw_handle(handle) };
        Ok(Self { handle: Arc::new(handle), state: State::Unknown })
    }

    fn arm(&mut self, event: &Arc<Event>) {
        match &self.state {
            State::Connected => return,
            State::Waiting(operation) if !operation.was_cancelled() => return,
            State::Waiting(_) | State::Unknown => {}
        }
        // SAFETY: the closure passes only its two arguments.
        let started = unsafe { Operation::start(&self.handle, event, |pipe, o| ConnectNamedPipe(pipe, o)) };
        // `ConnectNamedPipe` fails if a client has connected already. This client may have closed the pipe; it sends
        // nothing then.
        self.state = started.map_or(State::Connected, State::Waiting);
    }

    fn is_connected(&self) -> bool {
        match &self.state {
            State::Connected => true,
            State::Waiting(operation) => operation.result().is_some() && !operation.was_cancelled(),
            State::Unknown => false,
        }
    }
}

impl Listener {
    /// Listens at `path`, if no process does.
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        let address = Address::new(path)?;
        let first = Instance::new(&address, true).map_err(|e| match last_os_error(&e) {
            // The system reports this error if another process has the first instance of the pipe.
            Some(ERROR_ACCESS_DENIED) => io::Error::new(ErrorKind::AddrInUse, e),
            _ => e,
        })?;
        let shared = PipeInstances { address, instances: Mutex::new(vec![first]) };
        shared.fill()?;
        Ok(Self { path: absolute(path)?, shared: Arc::new(shared) })
    }

    /// As [`bind`](Self::bind): a pipe does not outlive its listener, so there is no dead pipe to replace.
    pub(crate) fn bind_over_dead(path: &Path) -> io::Result<Self> {
        Self::bind(path)
    }

    /// Returns the whole name of the pipe.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts the next connection; fails with `WouldBlock` if there is none, or if no poller watches the listener.
    pub(crate) fn accept(&self) -> io::Result<Socket> {
        let mut instances = self.shared.instances();
        let connected = instances.iter().position(Instance::is_connected);
        let connected = connected.ok_or(ErrorKind::WouldBlock)?;
        // There must always be an instance: without an instance, another process could take the name.
        if instances.len() == 1 {
            instances.push(Instance::new(&self.shared.address, false)?);
        }
        let Instance { handle, state } = instances.remove(connected);
        drop((state, instances));
        // If this fails, the next call makes the missing instances.
        let _ = self.shared.fill();
        Ok(Socket::over(handle))
    }

    /// Returns `false`: Windows has no limit of handles that a process could reach.
    pub(crate) const fn is_nearly_exhausted_by(_: &Socket) -> bool {
        false
    }
}

fn last_os_error(e: &io::Error) -> Option<u32> {
    e.raw_os_error().and_then(|code| u32::try_from(code).ok())
}

impl PipeInstances {
    fn instances(&self) -> MutexGuard<'_, Vec<Instance>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes missing instances.
    fn fill(&self) -> io::Result<()> {
        let mut instances = self.instances();
        while instances.len() < Instance::BACKLOG {
            instances.push(Instance::new(&self.address, false)?);
        }
        Ok(())
    }
}

impl Source for Listener {
    fn watched(&self) -> Arc<dyn Watched> {
        Arc::clone(&self.shared) as _
    }
}

impl Watched for PipeInstances {
    fn arm(&self, event: &Arc<Event>) {
        self.instances().iter_mut().for_each(|instance| instance.arm(event));
    }
    fn take_ready(&self) -> bool {
        self.instances().iter().any(Instance::is_connected)
    }
    fn disarm(&self) {
        for instance in &mut *self.instances() {
            // An instance stays connected to its client, so only instances without a client are disarmed.
            if !instance.is_connected() {
                instance.state = State::Unknown;
            }
        }
    }
}
