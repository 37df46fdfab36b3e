//! The runtime: its answers, and the streams of its sessions.
use core::error::Error;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Instant, SystemTime};

use ipc_proto::plan::{self, Flavour, InfoStep, TraceConfig};
use ipc_proto::port::Suspension;
use ipc_proto::types::{EventLevel, ProcessInfo3, SessionId, Status};
use ipc_proto::{Array, HResult, Message, Reply, Request, SendEnvironment, Serve, Text};
use ipc_std::{Incoming, Server, Stream, drive};
use nettrace::{CalendarTime, Event, Fields, Metadata, Scalar, Trace, TraceWriter, Version};

/// The only provider. Its event, `Tick`, happens every 10 ms while the runtime runs.
pub(crate) const PROVIDER: &str = "Toy";
const INTERVAL: Duration = Duration::from_millis(10);
/// How long a client can take for a command, and then for each piece of a stream.
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) struct Toy<'a> {
    info: ProcessInfo3<'a>,
    /// The kind and version of the runtime, which decide the commands that it refuses.
    kind: plan::Runtime,
    environment: BTreeMap<String, String>,
    suspension: Suspension<Vec<bool>>,
    /// A session begins with a message of its sender, and ends when the sender is dropped.
    sessions: BTreeMap<u64, (Sender<()>, JoinHandle<()>)>,
    last_session: u64,
}

impl<'a> Toy<'a> {
    /// Creates a runtime that waits for a ResumeRuntime at each of the marked ports. Its version is the version in
    /// `info`.
    pub(crate) fn new(info: ProcessInfo3<'a>, flavour: Flavour, suspends: &[bool]) -> Self {
        let kind = plan::Runtime { flavour: Some(flavour), ..plan::Runtime::from(&info) };
        let (environment, suspension) = (BTreeMap::new(), Suspension::new(suspends.to_vec()));
        Self { info, kind, environment, suspension, sessions: BTreeMap::new(), last_session: 0 }
    }

    /// Serves one command after the other, as other runtimes do, until the server is stopped.
    pub(crate) fn run(&mut self, server: &mut Server) -> io::Result<()> {
        while let Some(Incoming { stream, port, turn }) = server.accept()? {
            if let Err(e) = self.serve(stream, port) {
                eprintln!("toy: {e}");
            }
            drop(turn);
        }
        Ok(())
    }

    fn serve(&mut self, mut stream: Stream, port: usize) -> Result<(), Box<dyn Error>> {
        stream.set_deadline(Instant::now() + LIMIT);
        let (mut receive, mut send) = (vec![0; Message::MAX_LEN], vec![0; Message::MAX_LEN]);
        let mut serve = Serve::new(&mut receive, &mut send)?;
        drive(&mut serve, &mut stream)?;
        let (request, mut reply) = serve.finish_for(&self.kind);
        let answered = match &request {
            Err(_) => Ok(()), // the reply is a refusal already
            Ok(Request::GetProcessEnvironment(_)) => return self.send_environment(reply, stream),
            Ok(Request::SetEnvironmentVariable(set)) => match set.value.non_null() {
                Some(value) => {
                    self.environment.insert(set.name.to_string(), value.to_string());
                    reply.answer(set, &Status::OK)
                }
                None if self.environment.remove(&set.name.to_string()).is_some() => {
                    reply.answer(set, &Status::OK)
                }
                None => reply.refuse(HResult::ENVVAR_NOT_FOUND),
            },
            Ok(Request::ResumeRuntime(resume)) => {
                if self.suspension.resume(port) && !self.suspension.is_suspended() {
                    for (sender, _) in self.sessions.values() {
                        let _ = sender.send(()); // fails if the session has ended
                    }
                }
                reply.answer(resume, &Status::OK)
            }
            Ok(Request::StopTracing(stop)) => {
                if let Some((sender, thread)) = self.sessions.remove(&stop.session_id) {
                    drop(sender);
                    let _ = thread.join(); // the answer follows the end of the stream
                }
                reply.answer(stop, &SessionId { session_id: stop.session_id })
            }
            Ok(request) => match (InfoStep::of(request.code()), TraceConfig::try_from(request)) {
                (Some(command), _) => reply.answer_untyped(&command.answer(&self.info)),
                (None, Ok(config)) => return self.start_session(&config, reply, stream),
                (None, Err(_)) => reply.refuse(HResult::NOT_SUPPORTED), // the toy leaves the command out
            },
        };
        drive(&mut reply, &mut stream)?; // a refusal, if the answer did not fit into a message
        Ok(answered?)
    }

    fn send_environment(&self, mut reply: Reply<'_>, mut stream: Stream) -> Result<(), Box<dyn Error>> {
        let entries = self.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let entries: Vec<String> = entries.collect();
        let entries: Vec<Text<'_>> = entries.iter().map(|entry| entry.as_str().into()).collect();
        let mut buf = [0; 4096];
        let mut environment = SendEnvironment::new(Array::from(entries.as_slice()), &mut buf)?;
        reply.answer_untyped(&environment.announcement())?;
        drive(&mut reply, &mut stream)?;
        Ok(drive(&mut environment, &mut stream)?)
    }

    fn start_session(
        &mut self,
        config: &TraceConfig<'_>,
        mut reply: Reply<'_>,
        mut stream: Stream,
    ) -> Result<(), Box<dyn Error>> {
        self.sessions.retain(|_, (_, thread)| !thread.is_finished());
        if self.sessions.len() >= plan::SESSION_LIMIT {
            return Ok(drive(&mut reply, &mut stream)?); // without an answer the reply is the refusal FAIL
        }
        self.last_session += 1;
        reply.answer_untyped(&SessionId { session_id: self.last_session })?;
        drive(&mut reply, &mut stream)?;
        let has_ticks = config.includes(PROVIDER, KEYWORDS, LEVEL, EVENT_ID);
        let (sender, control) = channel();
        if !self.suspension.is_suspended() {
            sender.send(())?;
        }
        let thread = thread::spawn(move || {
            if let Err(e) = send_stream(stream, has_ticks, &control) {
                eprintln!("toy: the stream of a session ended: {e}");
            }
        });
        self.sessions.insert(self.last_session, (sender, thread));
        Ok(())
    }
}

const KEYWORDS: u64 = 1;
const LEVEL: EventLevel = EventLevel::INFORMATIONAL;
const EVENT_ID: u32 = 7;

/// Sends a stream from the start of the runtime until the session is stopped.
fn send_stream(mut out: Stream, has_ticks: bool, control: &Receiver<()>) -> Result<(), Box<dyn Error>> {
    if control.recv().is_err() {
        return Ok(()); // stopped while the runtime was suspended
    }
    let (start, now) = (Instant::now(), SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?);
    let sync_time = CalendarTime::from_unix(now).unwrap_or_default();
    let trace = Trace { sync_time, process_id: Some(std::process::id()), ..Trace::new(Version::V4) };
    let (mut buf, mut space) = ([0; 4096], [0; 32]);
    let mut writer = TraceWriter::new(&trace, &mut buf)?;
    let mut tick = Metadata::default();
    (tick.id, tick.provider, tick.event_id, tick.name) = (1, PROVIDER.into(), EVENT_ID, "Tick".into());
    (tick.keywords, tick.level) = (KEYWORDS, LEVEL.0);
    tick.fields = Fields::build(&[("Count", Scalar::UInt32)], &mut space)?;
    out.write_all(&writer.describe(&tick)?)?;
    let mut sequence = 0u32;
    while control.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Disconnected) {
        out.set_deadline(Instant::now() + LIMIT);
        if has_ticks {
            sequence = sequence.wrapping_add(1);
            let (timestamp, payload) = (u64::try_from(start.elapsed().as_nanos())?, sequence.to_le_bytes());
            let event = Event { metadata_id: 1, sequence, timestamp, payload: &payload, ..Event::default() };
            out.write_all(&writer.event(&Event { capture_thread: 1, thread: 1, ..event })?)?;
        }
        out.write_all(&writer.flush())?;
    }
    Ok(out.write_all(&writer.finish())?)
}
