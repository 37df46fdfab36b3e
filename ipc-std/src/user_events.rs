use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ipc_proto::CollectTracing5;
use ipc_proto::types::{SessionConfig, SessionId, UserEventsSession};

use crate::drive::is_closed;
use crate::trace::check;
use crate::{Client, Error, Phase, Stream, sys};

/// A session that writes to `user_events`: nothing comes here, the tracepoints have it all.
///
/// They are read as any others are, through `perf_event_open` or ftrace; what they hold is in
/// [`ipc_proto::user_events`].
///
/// [Stop](Self::stop) it. When it is dropped, the connection is closed, which newer runtimes notice within 100 ms; the
/// first ones of .NET 10 trace on until their process ends.
///
/// ```no_run
/// use ipc_proto::types::{EventFilter, EventLevel, TracepointConfig, UserEventsProvider, UserEventsSession};
/// use ipc_proto::Array;
/// use ipc_std::Client;
///
/// let providers = [UserEventsProvider {
///     keywords: u64::MAX,
///     level: EventLevel::INFORMATIONAL,
///     name: "My-App".into(),
///     arguments: "".into(),
///     filter: EventFilter::ALL,
///     tracepoints: TracepointConfig { default_tracepoint_name: "my_app".into(), sets: Array::EMPTY },
/// }];
/// let wanted = UserEventsSession { rundown_keyword: 0, providers: Array::from(&providers) };
/// let data = std::fs::OpenOptions::new().write(true).open("/sys/kernel/tracing/user_events_data")?;
/// let session = Client::for_process(4242)?.start_user_events(&wanted, data)?;
/// // perf record -e user_events:my_app …
/// session.stop()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct UserEvents {
    client: Client,
    /// Runtimes end the session when this is closed.
    stream: Stream,
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
        match connection.stream().send_descriptor(user_events_data) {
            // One that does not know the command has answered already.
            Err(e) if !is_closed(&e) => {
                let (peer, phase) = (client.peer().to_owned(), Phase::Sending);
                return Err(Error::Io { peer, phase, source: e });
            }
            _ => {}
        }
        let SessionId { session_id } = connection.receive(&command)?;
        Ok(Self { client: client.clone(), stream: connection.into_stream(), session_id })
    }

    /// The session's id.
    #[must_use]
    pub const fn session_id(&self) -> u64 {
        self.session_id
    }

    /// Stops the session, and waits until the runtime says that it has.
    ///
    /// # Errors
    /// As [`Client::stop_tracing`].
    pub fn stop(self) -> Result<(), Error> {
        self.client.stop_tracing(self.session_id)
    }

    /// Whether the runtime has closed the connection: somebody has stopped the session, or the process is gone.
    ///
    /// To wait for it, poll the session's descriptor ([`AsFd`]) for being readable: nothing else ever comes.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.stream.socket().has_hung_up()
    }
}

impl AsFd for UserEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// What `user_events` needs beside bytes; see [`Continuation::UserEvents`](ipc_proto::Continuation::UserEvents).
impl Stream {
    /// Sends a descriptor, in a message of its own with one byte: a tool's part, right behind the request.
    ///
    /// # Errors
    /// What the operating system says; `TimedOut` once the deadline has passed.
    pub fn send_descriptor(&self, descriptor: impl AsFd) -> io::Result<()> {
        sys::send_descriptor(self.as_fd(), descriptor.as_fd(), self.deadline())
    }

    /// Receives one byte, and the descriptor that comes with it: a runtime's part, between the request and its answer.
    /// `None` if it is a byte like any other; refuse the request as
    /// [`BAD_ENCODING`](ipc_proto::HResult::BAD_ENCODING) then. Of several descriptors the first is given, and the
    /// others are closed. Children do not inherit it.
    ///
    /// # Errors
    /// `UnexpectedEof` if the peer has closed its side; `TimedOut` once the deadline has passed; if this process has no
    /// descriptors left.
    ///
    /// ```
    /// use ipc_proto::types::SessionId;
    /// use ipc_proto::{Continuation, HResult, Message, Serve};
    /// use ipc_std::{Incoming, Server, drive};
    /// use std::time::{Duration, Instant};
    ///
    /// /// Serves one request of a tool, in a runtime that knows no other than one for `user_events`.
    /// fn serve(server: &mut Server) -> Result<(), Box<dyn std::error::Error>> {
    ///     let Some(Incoming { mut stream, turn, .. }) = server.accept()? else { return Ok(()) };
    ///     stream.set_deadline(Instant::now() + Duration::from_secs(10));
    ///     let (mut receive, mut send) = ([0; Message::MAX_LEN], [0; 64]);
    ///     let mut serve = Serve::new(&mut receive, &mut send)?;
    ///     drive(&mut serve, &mut stream)?;
    ///     let (request, mut reply) = serve.finish();
    ///     match request {
    ///         Ok(request) if request.continuation() == Continuation::UserEvents => {
    ///             match stream.receive_descriptor() {
    ///                 // Here the tracepoints are registered; the session keeps descriptor and stream until it ends.
    ///                 Ok(Some(user_events_data)) => reply.answer_untyped(&SessionId { session_id: 1 })?,
    ///                 _ => reply.refuse(HResult::BAD_ENCODING)?,
    ///             }
    ///         }
    ///         Ok(_) => reply.refuse(HResult::UNKNOWN_COMMAND)?,
    ///         Err(_) => {} // the reply refuses already
    ///     }
    ///     drive(&mut reply, &mut stream)?;
    ///     drop(turn);
    ///     Ok(())
    /// }
    /// ```
    pub fn receive_descriptor(&self) -> io::Result<Option<OwnedFd>> {
        sys::receive_descriptor(self.as_fd(), self.deadline())
    }
}
