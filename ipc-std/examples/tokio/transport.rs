//! Unix sockets of tokio with a deadline.
use core::future::pending;
use std::io;
use std::path::Path;
use std::time::Instant;

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::{sleep_until, timeout_at};

pub(crate) const READABLE: Interest = Interest::READABLE;
pub(crate) const WRITABLE: Interest = Interest::WRITABLE;

/// A connection whose operations wait until a deadline.
pub(crate) struct Stream {
    socket: UnixStream,
    until: Instant,
}

impl Stream {
    /// Connects. Fails with an error of kind `WouldBlock` if the backlog of the runtime is full.
    pub(crate) async fn connect(path: &Path, until: Instant) -> io::Result<Self> {
        let socket = timeout_at(until.into(), UnixStream::connect(path)).await??;
        Ok(Self { socket, until })
    }

    pub(crate) async fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        loop {
            timeout_at(self.until.into(), self.socket.readable()).await??;
            match self.socket.try_read(space) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            timeout_at(self.until.into(), self.socket.writable()).await??;
            match self.socket.try_write(bytes) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
    }

    /// Reads the available bytes. Fails with an error of kind `WouldBlock` if there are none.
    pub(crate) fn try_read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.socket.try_read(space)
    }

    /// Writes as many bytes as fit. Fails with an error of kind `WouldBlock` if none fits.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.try_write(bytes)
    }
}

/// Returns the index of the first that is ready, the lower one if both are. `None` after the deadline.
pub(crate) async fn first(
    wanted: [Option<(&Stream, Interest)>; 2],
    until: Instant,
) -> io::Result<Option<usize>> {
    let [one, other] = wanted.map(|wanted| async move {
        match wanted {
            Some((stream, interest)) => stream.socket.ready(interest).await,
            None => pending().await,
        }
    });
    tokio::select! {
        biased;
        ready = one => ready.map(|_| Some(0)),
        ready = other => ready.map(|_| Some(1)),
        () = sleep_until(until.into()) => Ok(None),
    }
}
