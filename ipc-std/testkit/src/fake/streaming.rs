//! Sends the streams of sessions.
use core::time::Duration;
use std::io::{self, Read, Write};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[cfg(unix)]
use ipc_proto::HResult;
use ipc_proto::plan::{SESSION_LIMIT, TraceConfig};
use ipc_proto::{Reply, Request};
use ipc_std::{DriveError, drive};
use nettrace::CalendarTime;

use super::fake_core::{Descriptor, FakeCore, FakeSession};
use super::served_connection::ServedConnection;
#[cfg(unix)]
use super::tracepoints::{TracepointReplay, Tracepoints};
use crate::replay::{Recording, Replay};

/// The interval in which a runtime sends its buffered events.
const FLUSH: Duration = Duration::from_millis(100);

impl FakeCore {
    /// Answers with the id of a new session, and sends its stream.
    pub(super) fn send_session<S: Read + Write>(
        &self,
        session: FakeSession,
        mut reply: Reply<'_>,
        connection: &mut ServedConnection<'_, S>,
        send: impl FnOnce(&mut ServedConnection<'_, S>, u64) -> io::Result<()>,
    ) -> Result<(), DriveError> {
        let session_id = {
            let mut state = self.state();
            if state.sessions.len() >= SESSION_LIMIT {
                drop(state);
                // Without an answer, the reply is a refusal.
                return drive(&mut reply, connection);
            }
            let session_id = state.next_session;
            state.next_session = session_id.wrapping_add(0x100);
            state.sessions.insert(session_id, session);
            session_id
        };
        let _ = reply.answer_untyped(&session_id);
        let sent = drive(&mut reply, connection).and_then(|()| {
            // The connection belongs to the session now, and the port opens another.
            *connection.turn = None;
            send(connection, session_id).map_err(DriveError::Send)
        });
        self.state().sessions.remove(&session_id);
        self.notify();
        sent
    }

    /// Waits while the runtime is suspended. Returns whether it runs; otherwise the session was stopped, or its
    /// connection closed.
    fn wait_for_resume<S>(&self, connection: &ServedConnection<'_, S>, session_id: u64) -> bool {
        let mut runs = false;
        let woken = self.wait_until(connection.peer, |state| {
            runs = !state.suspension.is_suspended();
            runs || state.is_stopped(session_id)
        });
        woken && runs
    }

    /// Sends all bytes of a stream but the last, and the last byte when the session is stopped.
    pub(super) fn send_trace<S: Read + Write>(
        &self,
        bytes: &[u8],
        connection: &mut ServedConnection<'_, S>,
        session_id: u64,
    ) -> io::Result<()> {
        if !self.wait_for_resume(connection, session_id) {
            return Ok(());
        }
        let (last, most) =
            bytes.split_last().map_or((&[][..], bytes), |(last, most)| (core::slice::from_ref(last), most));
        connection.send_stream(most)?;
        if let Some(session) = self.state().sessions.get_mut(&session_id) {
            session.blocks_requests = false;
        }
        self.notify();
        if self.wait_until(connection.peer, |state| state.is_stopped(session_id)) {
            connection.send_stream(last)?;
        }
        Ok(())
    }

    /// Sends the events of a recording as if they happened now, until the session is stopped. A request that starts no
    /// session gets a stream without events.
    pub(super) fn replay<S: Read + Write>(
        &self,
        recording: &[u8],
        request: &Request<'_>,
        connection: &mut ServedConnection<'_, S>,
        session_id: u64,
    ) -> io::Result<()> {
        // Since .NET 11 the stream begins while the runtime is suspended.
        let begins_suspended = self.profile.version >= 11 && self.state().suspension.is_suspended();
        if !begins_suspended && !self.wait_for_resume(connection, session_id) {
            return Ok(());
        }
        let mut buf = Replay::buffer(recording.len());
        let recording = Recording::in_v4(recording, &mut buf).map_err(io::Error::other)?;
        let recording = Recording::read(&recording);
        let mut replay = Replay::new(
            &recording,
            TraceConfig::try_from(request).ok(),
            &self.profile,
            utc(SystemTime::now()),
            self.ticks(),
            &mut buf,
        )
        .map_err(io::Error::other)?;
        if begins_suspended {
            connection.send_stream(&replay.suspend())?;
            if self.wait_for_resume(connection, session_id) {
                replay.resume(self.ticks());
            }
        }
        loop {
            connection.send_stream(&replay.advance(self.ticks()).map_err(io::Error::other)?)?;
            let next = Instant::now().checked_add(FLUSH);
            match self.wait(connection.peer, next, |state| state.is_stopped(session_id)) {
                Some(false) => {}
                Some(true) => {
                    return connection.send_stream(&replay.finish(self.ticks()).map_err(io::Error::other)?);
                }
                None => return Ok(()),
            }
        }
    }

    /// Registers the tracepoints of a session, answers, and writes the events of a recording to them as if they
    /// happened now, until the session is stopped or the client closes the connection.
    #[cfg(unix)]
    pub(super) fn send_user_events<S: Read + Write>(
        &self,
        request: &Request<'_>,
        data: Descriptor,
        recording: &[u8],
        mut reply: Reply<'_>,
        connection: &mut ServedConnection<'_, S>,
    ) -> Result<(), DriveError> {
        if request.check().is_err() {
            // These values end a runtime, which reads them after it has received the descriptor.
            return Ok(());
        }
        let Ok(tracepoints) = Tracepoints::register(request, &data) else {
            let _ = reply.refuse(HResult::FAIL);
            return drive(&mut reply, connection);
        };
        let session = FakeSession { user_events_data: Some(data), ..FakeSession::default() };
        self.send_session(session, reply, connection, move |connection, session_id| {
            // The session owns its tracepoints: they end with it.
            let tracepoints = tracepoints;
            if !self.wait_for_resume(connection, session_id) {
                return Ok(());
            }
            let mut buf = Replay::buffer(recording.len());
            let recording = Recording::in_v4(recording, &mut buf).map_err(io::Error::other)?;
            let recording = Recording::read(&recording);
            let mut bits = TracepointReplay::bits(&recording);
            let mut replay =
                TracepointReplay::new(&recording, request, &tracepoints, self.ticks(), &mut bits);
            loop {
                replay.advance(self.ticks());
                let next = Instant::now().checked_add(FLUSH);
                if self.wait(connection.peer, next, |state| state.is_stopped(session_id)) != Some(false) {
                    return Ok(());
                }
            }
        })?;
        // A stopped session leaves its connection open.
        self.wait_until(connection.peer, |_| false);
        Ok(())
    }
    /// Windows has no descriptors to receive.
    #[cfg(windows)]
    pub(super) fn send_user_events<S: Read + Write>(
        &self,
        _: &Request<'_>,
        data: Descriptor,
        _: &[u8],
        _: Reply<'_>,
        _: &mut ServedConnection<'_, S>,
    ) -> Result<(), DriveError> {
        match data {}
    }

    /// Returns the time of the runtime's clock in nanoseconds.
    fn ticks(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

fn utc(clock: SystemTime) -> CalendarTime {
    clock.duration_since(UNIX_EPOCH).ok().and_then(CalendarTime::from_unix).unwrap_or_default()
}
