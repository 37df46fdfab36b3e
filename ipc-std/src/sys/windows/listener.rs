use core::ptr;
use std::io::{self, ErrorKind};
use std::os::windows::io::{FromRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windows_sys::Win32::Foundation::{ERROR_ACCESS_DENIED, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_FIRST_PIPE_INSTANCE, FILE_FLAG_OVERLAPPED, PIPE_ACCESS_DUPLEX,
};
use windows_sys::Win32::System::Pipes::{
    ConnectNamedPipe, CreateNamedPipeW, PIPE_READMODE_BYTE, PIPE_REJECT_REMOTE_CLIENTS, PIPE_TYPE_BYTE,
    PIPE_UNLIMITED_INSTANCES, PIPE_WAIT,
};

use super::poller::{Source, Watched};
use super::{Address, Event, Operation, Socket, last_error};

/// A pipe that is listened at, from this machine only.
#[derive(Debug)]
pub(crate) struct Listener {
    path: PathBuf,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    address: Address,
    /// Those that nobody was accepted from yet.
    instances: Mutex<Vec<Instance>>,
}

/// A pipe that one client can have.
#[derive(Debug)]
struct Instance {
    handle: Arc<OwnedHandle>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Whether somebody is there is not known.
    Unknown,
    /// Over once somebody is there.
    Waiting(Operation),
    Connected,
}

impl Instance {
    /// How many clients may connect before one is accepted.
    const BACKLOG: usize = 8;

    fn new(address: &Address, first: bool) -> io::Result<Self> {
        /// As large as a runtime's.
        const BUFFER: u32 = 16 << 10;
        let first = if first { FILE_FLAG_FIRST_PIPE_INSTANCE } else { 0 };
        // SAFETY: the name ends with a NUL. Without a security descriptor of ours the pipe gets the default one: only
        // its user, administrators and the system may write.
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
            return Err(super::error(last_error()));
        }
        // SAFETY: it was made a moment ago, and has no other owner.
        let handle = unsafe { OwnedHandle::from_raw_handle(handle) };
        Ok(Self { handle: Arc::new(handle), state: State::Unknown })
    }

    fn arm(&mut self, event: &Arc<Event>) {
        match &self.state {
            State::Connected => return,
            State::Waiting(operation) if !super::was_cancelled(operation) => return,
            State::Waiting(_) | State::Unknown => {}
        }
        // SAFETY: nothing else is handed over.
        let started = unsafe { Operation::start(&self.handle, event, |pipe, o| ConnectNamedPipe(pipe, o)) };
        // It fails if somebody is there already, or was and has gone: who is accepted then has nothing to say.
        self.state = started.map_or(State::Connected, State::Waiting);
    }

    fn is_connected(&self) -> bool {
        match &self.state {
            State::Connected => true,
            State::Waiting(operation) => operation.result().is_some() && !super::was_cancelled(operation),
            State::Unknown => false,
        }
    }
}

impl Listener {
    /// Listens at `path`, if nobody does.
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        let address = Address::new(path)?;
        let first = Instance::new(&address, true).map_err(|e| match last_os_error(&e) {
            // What the system says of a pipe that has a first instance.
            Some(ERROR_ACCESS_DENIED) => io::Error::new(ErrorKind::AddrInUse, e),
            _ => e,
        })?;
        let shared = Shared { address, instances: Mutex::new(vec![first]) };
        shared.fill()?;
        Ok(Self { path: super::absolute(path)?, shared: Arc::new(shared) })
    }

    /// As [`bind`](Self::bind): a pipe does not outlive who listens.
    pub(crate) fn bind_over_dead(path: &Path) -> io::Result<Self> {
        Self::bind(path)
    }

    /// Where it listens.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection that waits; an error of kind `WouldBlock` if there is none, or it is not watched.
    pub(crate) fn accept(&self) -> io::Result<Socket> {
        let mut instances = self.shared.instances();
        let connected = instances.iter().position(Instance::is_connected);
        let connected = connected.ok_or(ErrorKind::WouldBlock)?;
        // Before one goes that somebody has: there is always one, so that the name stays ours.
        if instances.len() == 1 {
            instances.push(Instance::new(&self.shared.address, false)?);
        }
        let Instance { handle, state } = instances.remove(connected);
        drop((state, instances));
        // If there cannot be as many as there should, there are more another time.
        let _ = self.shared.fill();
        Ok(Socket::over(handle))
    }

    /// The same.
    pub(crate) fn accept_within_limits(&self) -> io::Result<Socket> {
        self.accept()
    }
}

fn last_os_error(e: &io::Error) -> Option<u32> {
    e.raw_os_error().and_then(|code| u32::try_from(code).ok())
}

impl Shared {
    fn instances(&self) -> MutexGuard<'_, Vec<Instance>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that there are as many instances as there should be.
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

impl Watched for Shared {
    fn arm(&self, event: &Arc<Event>) {
        self.instances().iter_mut().for_each(|instance| instance.arm(event));
    }
    fn take_ready(&self) -> bool {
        self.instances().iter().any(Instance::is_connected)
    }
    fn disarm(&self) {
        for instance in &mut *self.instances() {
            // One that somebody has connected to is kept.
            if !instance.is_connected() {
                instance.state = State::Unknown;
            }
        }
    }
}
