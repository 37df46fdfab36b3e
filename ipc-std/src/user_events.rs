use std::os::fd::BorrowedFd;

use ipc_proto::CollectTracing5;
use ipc_proto::types::{SessionConfig, SessionId, UserEventsSession};

use crate::trace::check;
use crate::{Client, Error, Phase, Stream, sys};

/// A session that writes to `user_events`. It lives until it is dropped, or stopped by
/// [`Client::stop_tracing`].
#[derive(Debug)]
pub struct UserEvents {
    /// Runtimes end the session when this is closed.
    _stream: Stream,
    session_id: u64,
}

impl UserEvents {
    pub(crate) fn start(
        client: &Client,
        session: &UserEventsSession<'_>,
        user_events_data: BorrowedFd<'_>,
    ) -> Result<Self, Error> {
        let command = CollectTracing5 { session: SessionConfig::UserEvents(*session) };
        check(&command)?;
        let mut connection = client.connect()?;
        connection.send(&command)?;
        let sent = sys::send_descriptor(connection.stream().socket(), user_events_data);
        sent.map_err(|source| Error::Io { peer: client.peer().to_owned(), phase: Phase::Sending, source })?;
        let SessionId { session_id } = connection.receive(&command)?;
        Ok(Self { _stream: connection.into_stream(), session_id })
    }

    /// The session's id.
    #[must_use]
    pub const fn session_id(&self) -> u64 {
        self.session_id
    }
}
