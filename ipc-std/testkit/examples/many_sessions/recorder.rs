//! One thread that records from many runtimes.
use core::task::Poll;
use core::time::Duration;
use std::io;
use std::time::Instant;

use ipc_proto::SessionEnd;
use ipc_std::{Client, TraceConfig, TraceReader, TraceSession};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The result of recording from one runtime.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    /// Events that were read.
    pub(crate) events: u64,
    /// Events that the runtime dropped.
    pub(crate) lost: u64,
    /// How the session ended; `None` if reading failed.
    pub(crate) end: Option<SessionEnd>,
    /// Why reading failed.
    pub(crate) error: Option<io::Error>,
}

/// A session that has not ended.
struct Open<'r> {
    reader: TraceReader<TraceSession>,
    recording: &'r mut Recording,
    /// Whether the reader may have more events although its descriptor is not readable.
    has_events: bool,
}

/// The number of events that one session may deliver before the next session has its turn.
const TURN: usize = 1000;

/// Records from all runtimes for `length`, then stops all sessions and reads them to the end.
pub(crate) fn record(
    clients: &[Client],
    config: &TraceConfig<'_>,
    length: Duration,
) -> Result<Vec<Recording>, Box<dyn core::error::Error>> {
    let mut recordings: Vec<Recording> = clients.iter().map(|_| Recording::default()).collect();
    let mut open = Vec::new();
    for (client, recording) in clients.iter().zip(&mut recordings) {
        let mut session = client.start_tracing(config)?;
        session.set_nonblocking(true)?;
        open.push(Open { reader: TraceReader::new(session), recording, has_events: true });
    }
    let stop_at = Instant::now() + length;
    while !open.is_empty() {
        if Instant::now() >= stop_at {
            // `stop` only requests the Stop; a second call does nothing.
            open.iter().for_each(|session| session.reader.get_ref().stop());
        }
        if let Err(e) = wait(&open, stop_at) {
            open.iter_mut().for_each(|session| session.recording.error = Some(e.kind().into()));
            break; // dropping a session stops it
        }
        open.retain_mut(|session| !session.is_over());
    }
    Ok(recordings)
}

/// Waits until a session has work, until a session is due, or until `stop_at`, when all sessions must be stopped.
fn wait(open: &[Open<'_>], stop_at: Instant) -> io::Result<()> {
    let sessions = || open.iter().map(|session| session.reader.get_ref());
    let stopping = sessions().all(TraceSession::is_stopping);
    let due = sessions().filter_map(TraceSession::due).chain((!stopping).then_some(stop_at)).min();
    let timeout = if open.iter().any(|session| session.has_events) {
        Some(Duration::ZERO)
    } else {
        due.map(|due| due.saturating_duration_since(Instant::now()))
    };
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let mut polled: Vec<PollFd<'_>> = sessions().map(|session| PollFd::new(session, PollFlags::IN)).collect();
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

impl Open<'_> {
    /// Reads the events that are available, at most [`TURN`]. Returns whether the session is over.
    fn is_over(&mut self) -> bool {
        for _ in 0..TURN {
            match self.reader.poll_next_event() {
                Ok(Poll::Ready(Some(_))) => self.recording.events += 1,
                Ok(Poll::Pending) => {
                    self.has_events = false;
                    return false;
                }
                Ok(Poll::Ready(None)) => return self.is_closed(),
                Err(e) => {
                    self.recording.error = Some(e);
                    return true;
                }
            }
        }
        self.has_events = true;
        false
    }

    /// Waits, after the last event, for the runtime to close the stream and to answer the Stop. Returns whether both
    /// have happened, or reading has failed.
    fn is_closed(&mut self) -> bool {
        self.has_events = false;
        self.recording.lost = self.reader.summary().losses.lost;
        loop {
            match self.reader.get_mut().poll_read(&mut [0; 64]) {
                Ok(Poll::Ready(0)) => self.recording.end = self.reader.get_ref().end(),
                Ok(Poll::Ready(_)) => continue,
                Ok(Poll::Pending) => return false,
                Err(e) => self.recording.error = Some(e),
            }
            return true;
        }
    }
}
