//! The response of a test's handler.
use ipc_proto::wire::Writer;
use ipc_proto::{Encode, HResult};

/// The response of a handler to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Response {
    /// OK with this payload.
    Ok(Vec<u8>),
    /// A refusal.
    Refuse(HResult),
    /// A refusal with a message, as for GenerateCoreDump3.
    RefuseWith(HResult, String),
    /// OK with the size of the environment, followed by the environment: `NAME=value` each.
    Environment(Vec<String>),
    /// OK with the id of a new session, followed by this stream.
    ///
    /// All bytes but the last are sent immediately, or when a suspended runtime resumes. The last byte is sent when the
    /// session is stopped. If the session is stopped while the runtime is suspended, no byte is sent.
    Trace(Vec<u8>),
    /// OK with the id of a new session, followed by the events of this recording, as if they happened now. The
    /// recording is NetTrace of any version, from `dotnet-ipc trace` or from a
    /// [`TraceWriter`](nettrace::TraceWriter).
    ///
    /// The replay begins with the session, or when a suspended runtime resumes; since .NET 11 the header of the stream
    /// is sent before. The distances between events are those of the recording. After the last event the replay begins
    /// again, at least 100 ms after the first event of the round. The stream is like that of a runtime, in V4, or in V3
    /// (NetPerf) if the session requests it:
    ///
    /// * The stream is sent in pieces, ten a second. A slow reader delays it.
    /// * Of the events between two pieces, only those are sent that fit the buffer of the session. The remaining events
    ///   are lost, as their sequence numbers show. If the session blocks, the program waits instead, and they happen
    ///   later.
    /// * The stream has only the events that the providers, keywords, levels and filters of the session include, with
    ///   stacks if the session has them.
    /// * The sequence numbers of a capture thread continue from round to round. Events that are not sent do not count.
    ///   A gap in the numbers of the recording counts as lost events in each round.
    /// * A sequence point ends each round; stacks are written again after it.
    /// * The process, the time and the event `ProcessInfo` are those of the [`Profile`](crate::Profile). Recorded
    ///   events of the provider `Microsoft-Windows-DotNETRuntimeRundown` are sent at the end, if the session has a
    ///   rundown. NativeAOT has none before .NET 10.
    /// * Of a V6 recording, only the parts that V4 has are sent, as by [`Rewrite`](nettrace::Rewrite): no labels but
    ///   activity ids, and no description of a thread but its number.
    /// * When the session is stopped, the stream ends with a sequence point and the end mark. If the session is stopped
    ///   while the runtime is suspended, no byte is sent; since .NET 11, a stream without events of the program is
    ///   sent. When the `FakeRuntime` is dropped, the stream is cut off, as if the process was killed.
    ///
    /// Set the response for each command that starts a session: which one a client sends depends on what it wants and on
    /// the version of the runtime. A command without this response gets the recording of the fake.
    ///
    /// This recording loses one event of three in each round:
    ///
    /// ```
    /// use ipc_testkit::ipc_proto::{CollectTracing2, Command};
    /// use ipc_testkit::nettrace::{
    ///     Event, Fields, Metadata, PayloadWriter, Scalar, Trace, TraceWriter, Version, WriteError,
    /// };
    /// use ipc_testkit::{FakeRuntime, Profile, Response};
    ///
    /// fn recording() -> Result<Vec<u8>, WriteError> {
    ///     let (mut out, mut buf, mut space) = (Vec::new(), vec![0; TraceWriter::BUFFER], [0; 32]);
    ///     let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf)?;
    ///     let mut tick = Metadata::new(1, "My-App", 7, "Tick");
    ///     tick.fields = Fields::build(&[("Count", Scalar::UInt32)], &mut space)?;
    ///     out.extend_from_slice(&writer.describe(&tick)?);
    ///     for count in [1, 3] {
    ///         let mut space = [0; 16];
    ///         let event = Event {
    ///             metadata_id: 1,
    ///             sequence: count,
    ///             timestamp: 30_000_000 * u64::from(count),
    ///             payload: PayloadWriter::new(&mut space).uint32(count).finish()?,
    ///             ..Event::default()
    ///         };
    ///         out.extend_from_slice(&writer.event(&event)?);
    ///     }
    ///     out.extend_from_slice(&writer.finish());
    ///     Ok(out)
    /// }
    ///
    /// let runtime = FakeRuntime::start(Profile::net10())?;
    /// let events = recording()?;
    /// runtime.on(CollectTracing2::CODE, move |_| Response::Replay(events.clone()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    Replay(Vec<u8>),
    /// OK with the id of a new session that writes the events of this recording to tracepoints, as if they happened
    /// now; [`HResult::FAIL`] if a tracepoint cannot be registered, and [`HResult::BAD_ENCODING`] if no descriptor was
    /// received.
    ///
    /// Events are selected and repeated as by [`Replay`](Self::Replay), but without rundown, stacks and `ProcessInfo`.
    /// The tracepoint of an event is the tracepoint of its set, or the default one of its provider. An empty recording
    /// writes nothing; a test can then write to `FakeRuntime::user_events_data` itself.
    ///
    /// * If the descriptor is that of `user_events_data`, the tracepoints are registered with the kernel, and events
    ///   are written while a consumer listens.
    /// * Any other file receives the [records](nettrace::user_events::TracepointRecord) with the write indexes 0, 1, …
    ///   in the order of the tracepoints in the request. The socket of a datagram pair keeps the records apart. A
    ///   record that the file does not accept immediately is dropped.
    ///
    /// The session ends when it is stopped, or when the client closes the connection.
    UserEvents(Vec<u8>),
    /// Sends these bytes instead of a message, and closes the connection.
    Raw(Vec<u8>),
    /// Sends nothing. The connection stays open until the client closes it.
    Silence,
}

impl Response {
    /// The end of the connection without an answer, which is what a client sees of the end of a runtime.
    pub(super) const CLOSES: Self = Self::Raw(Vec::new());

    /// Returns OK with this payload.
    ///
    /// ```
    /// use ipc_testkit::ipc_proto::types::Status;
    /// use ipc_testkit::Response;
    /// assert_eq!(Response::ok(&Status::OK), Response::Ok(vec![0; 4]));
    /// ```
    pub fn ok(payload: &(impl Encode + ?Sized)) -> Self {
        let mut bytes = vec![0; payload.encoded_len()];
        payload.encode(&mut Writer::new(&mut bytes));
        Self::Ok(bytes)
    }
}
