//! The runtime: it only connects to a monitor, sends its frame on each WebSocket, and serves one command on each.
use core::error::Error;
use core::time::Duration;
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use ipc_proto::port::{ConnectEvent, ConnectPort, ConnectStep, Suspension};
use ipc_proto::types::{ProcessInfo2, SessionId, Status};
use ipc_proto::{Advertise, HResult, Request, Serve};
use ipc_std::drive;
use nettrace::{CalendarTime, Event, Metadata, Trace, TraceWriter, Version};

use crate::socket::Socket;

/// The name of the only provider.
pub(crate) const PROVIDER: &str = "Demo";
/// The limits of connecting and of an answer.
const CONNECT: Duration = Duration::from_secs(1);
const SERVE: Duration = Duration::from_secs(30);

/// A runtime that is suspended at startup. It ends after a ResumeRuntime, as soon as all its sessions are stopped.
#[derive(Debug)]
pub(crate) struct Runtime<'a> {
    info: ProcessInfo2<'a>,
    suspension: Suspension<[bool; 1]>,
    /// The id of a session is its index, plus one.
    sessions: Vec<Option<(Sender<()>, JoinHandle<()>)>>,
}

impl<'a> Runtime<'a> {
    pub(crate) fn new(info: ProcessInfo2<'a>) -> Self {
        Self { info, suspension: Suspension::new([true]), sessions: Vec::new() }
    }

    /// Connects to a monitor again and again.
    pub(crate) fn run(&mut self, url: &str) {
        let ProcessInfo2 { runtime_cookie, process_id, .. } = self.info;
        let mut port = ConnectPort::new(&Advertise { runtime_cookie, process_id, future: 0 });
        let mut socket = None;
        while self.suspension.is_suspended() || self.sessions.iter().any(Option::is_some) {
            let event = match (port.step(), &mut socket) {
                (ConnectStep::Connect, _) => {
                    socket = Socket::connect(url, CONNECT).ok();
                    if socket.is_some() { ConnectEvent::Connected } else { ConnectEvent::Failed }
                }
                (ConnectStep::Wait { milliseconds }, _) => {
                    thread::sleep(Duration::from_millis(milliseconds.into()));
                    ConnectEvent::Waited
                }
                (ConnectStep::Send(frame), Some(socket)) => {
                    socket.write(frame).map_or(ConnectEvent::Failed, ConnectEvent::Sent)
                }
                (ConnectStep::Serve, Some(_)) => {
                    let served = socket.take().map_or(Ok(ConnectEvent::HungUp), |socket| self.serve(socket));
                    served.unwrap_or_else(|e| {
                        eprintln!("runtime: {e}"); // the runtime continues
                        ConnectEvent::Answered
                    })
                }
                (ConnectStep::Send(_) | ConnectStep::Serve, None) => ConnectEvent::Failed,
            };
            port.advance(event);
        }
    }

    /// Waits for a command, and serves it. A session keeps the connection.
    fn serve(&mut self, mut socket: Socket) -> Result<ConnectEvent, Box<dyn Error>> {
        let (mut receive, mut send) = ([0; 65_535], [0; 4096]);
        let mut serve = Serve::new(&mut receive, &mut send)?;
        socket.set_limit(None);
        drive(&mut serve, &mut socket)?;
        if serve.is_untouched() {
            return Ok(ConnectEvent::HungUp);
        }
        socket.set_limit(Some(SERVE));
        let (request, mut reply) = serve.finish();
        match request {
            Ok(Request::GetProcessInfo2(get)) => reply.answer(&get, &self.info)?,
            Ok(Request::ResumeRuntime(resume)) => {
                self.suspension.resume(0);
                reply.answer(&resume, &Status::OK)?;
            }
            Ok(Request::CollectTracing2(collect)) => {
                let session_id = u64::try_from(self.sessions.len() + 1)?;
                reply.answer(&collect, &SessionId { session_id })?;
                drive(&mut reply, &mut socket)?;
                let (stop, stopped) = channel();
                socket.set_limit(None);
                let stream = thread::spawn(move || {
                    let stopped = |wait| stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
                    if let Err(e) = send_events(&mut socket, stopped) {
                        eprintln!("runtime: the stream of a session ended: {e}");
                    }
                });
                self.sessions.push(Some((stop, stream)));
                return Ok(ConnectEvent::Answered);
            }
            Ok(Request::StopTracing(stop)) => {
                let index = usize::try_from(stop.session_id)?.wrapping_sub(1);
                if let Some((stop, stream)) = self.sessions.get_mut(index).and_then(Option::take) {
                    drop(stop);
                    let _ = stream.join(); // the answer follows the end of the stream
                }
                reply.answer(&stop, &SessionId { session_id: stop.session_id })?;
            }
            Ok(_) => reply.refuse(HResult::UNKNOWN_COMMAND)?,
            Err(_) => {} // the reply is a refusal already
        }
        drive(&mut reply, &mut socket)?;
        Ok(ConnectEvent::Answered)
    }
}

/// Sends an event every 10 milliseconds, until `stopped` returns true.
fn send_events(out: &mut impl Write, stopped: impl Fn(Duration) -> bool) -> Result<(), Box<dyn Error>> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let sync_time = CalendarTime::from_unix(now).unwrap_or_default();
    let trace = Trace { sync_time, process_id: Some(42), pointer_size: 4, ..Trace::new(Version::V4) };
    let mut buf = [0; 1024];
    let mut writer = TraceWriter::new(&trace, &mut buf)?;
    out.write_all(&writer.describe(&Metadata::new(1, PROVIDER, 7, "Tick"))?)?;
    for sequence in 1.. {
        let event = Event { metadata_id: 1, sequence, capture_thread: 1, thread: 1, ..Event::default() };
        out.write_all(&writer.event(&event)?)?;
        out.write_all(&writer.flush())?;
        if stopped(Duration::from_millis(10)) {
            break;
        }
    }
    Ok(out.write_all(&writer.finish())?)
}
