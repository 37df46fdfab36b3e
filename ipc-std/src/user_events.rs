//! `UserEvents`: a session that writes to tracepoints of the kernel; and the transfer of its descriptor by a `Stream`.
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ipc_proto::CollectTracing5;
use ipc_proto::plan::{Fallback, PlanStep, Single};
use ipc_proto::types::{SessionConfig, SessionId, UserEventsSession};

use crate::{Client, Error, Stream, sys};

/// A session that writes to `user_events`. The connection carries no events: the runtime writes them to tracepoints.
///
/// Tracepoints are read through `perf_event_open` or ftrace. [`nettrace::user_events`] decodes their records.
///
/// [Stop](Self::stop) the session. Dropping it only closes the connection. Newer runtimes then end the session within
/// 100 ms; the first versions of .NET 10 continue the session until their process ends.
///
/// ```no_run
/// use ipc_std::ipc_proto::types::{EventFilter, EventLevel, TracepointConfig, UserEventsProvider, UserEventsSession};
/// use ipc_std::ipc_proto::Array;
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
    /// Newer runtimes end the session when this connection is closed.
    stream: Stream,
    session_id: u64,
}

impl Client {
    /// Starts a session that writes to `user_events`, through the file `user_events_data`. Since .NET 10, on Linux.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a value that runtimes refuse; nothing is sent then. An error of connecting or of the
    /// call; the runtime refuses with [`HResult::FAIL`](ipc_proto::HResult::FAIL) if the kernel has no `user_events`.
    pub fn start_user_events(
        &self,
        session: &UserEventsSession<'_>,
        user_events_data: impl AsFd,
    ) -> Result<UserEvents, Error> {
        UserEvents::start(self, session, user_events_data.as_fd())
    }
}

impl UserEvents {
    fn start(
        client: &Client,
        session: &UserEventsSession<'_>,
        user_events_data: BorrowedFd<'_>,
    ) -> Result<Self, Error> {
        let command = Single(CollectTracing5 { session: SessionConfig::UserEvents(*session) });
        command.check().map_err(|value| Error::invalid(command.code(), value))?;
        let mut connection = client.connect()?;
        let mut fallback = Fallback::new(command, u64::MAX);
        connection.drive(&mut fallback, |stream| stream.send_descriptor(user_events_data))?;
        let SessionId { session_id } = connection.response(&fallback)?;
        Ok(Self { client: client.clone(), stream: connection.into_stream(), session_id })
    }

    /// Returns the session's id.
    #[must_use]
    pub const fn session_id(&self) -> u64 {
        self.session_id
    }

    /// Stops the session and waits for the runtime's answer.
    ///
    /// # Errors
    /// As [`Client::stop_tracing`].
    pub fn stop(self) -> Result<(), Error> {
        self.client.stop_tracing(self.session_id)
    }

    /// Returns whether the runtime has closed the connection: its process has exited.
    ///
    /// After another client has [stopped](Client::stop_tracing) the session, a runtime keeps the connection open, so this
    /// method does not show that end. StopTracing does not show it either: the answer is OK for an unknown session, too.
    ///
    /// To wait for the exit, poll the session's descriptor ([`AsFd`]) for being readable: the connection carries no
    /// data, so only its end makes the descriptor readable.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.stream.has_hung_up()
    }
}

impl AsFd for UserEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// The transfer of descriptors for `user_events`; see
/// [`Continuation::UserEvents`](ipc_proto::Continuation::UserEvents).
impl Stream {
    /// Sends a descriptor with one byte, in a message of its own. A client sends it right after the request.
    ///
    /// # Errors
    /// The error of the operating system; `TimedOut` after the deadline; `Unsupported` if the stream is not a Unix
    /// socket.
    pub fn send_descriptor(&self, descriptor: impl AsFd) -> io::Result<()> {
        sys::send_descriptor(self.channel().unix_socket()?, descriptor.as_fd(), self.deadline())
    }

    /// Receives one byte and the descriptor that comes with it. A runtime receives the descriptor after the request and
    /// before it answers.
    ///
    /// Returns `None` for a byte without a descriptor; refuse the request with
    /// [`BAD_ENCODING`](ipc_proto::HResult::BAD_ENCODING) then. Of several descriptors the first is returned, and the
    /// others are closed. Child processes do not inherit the descriptor.
    ///
    /// # Errors
    /// `UnexpectedEof` if the peer has closed its side; `TimedOut` after the deadline; an error of the operating system
    /// if this process has no descriptors left.
    ///
    /// ```
    /// use ipc_std::ipc_proto::types::SessionId;
    /// use ipc_std::ipc_proto::{Continuation, HResult, Message, Serve};
    /// use ipc_std::{Incoming, Server, drive};
    /// use std::time::{Duration, Instant};
    ///
    /// /// Serves one request, in a runtime that accepts only sessions of `user_events`.
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
    ///                 // Register the tracepoints here. The session keeps descriptor and stream until it ends.
    ///                 Ok(Some(user_events_data)) => reply.answer_untyped(&SessionId { session_id: 1 })?,
    ///                 _ => reply.refuse(HResult::BAD_ENCODING)?,
    ///             }
    ///         }
    ///         Ok(_) => reply.refuse(HResult::NOT_SUPPORTED)?,
    ///         Err(_) => {} // the reply is a refusal already
    ///     }
    ///     drive(&mut reply, &mut stream)?;
    ///     drop(turn);
    ///     Ok(())
    /// }
    /// ```
    pub fn receive_descriptor(&self) -> io::Result<Option<OwnedFd>> {
        sys::receive_descriptor(self.channel().unix_socket()?, self.deadline())
    }
}
