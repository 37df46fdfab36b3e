//! A client over the streams of [`transport`](crate::transport).
use core::error::Error;
use core::time::Duration;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::Instant;

use ipc_proto::plan::{self, Runtime};
use ipc_proto::types::{EventLevel, Format, Provider, SessionId};
use ipc_proto::{
    Answer, Array, Call, CollectTracing2, Command, Exchange, GetProcessInfo, GetProcessInfo2,
    GetProcessInfo3, HResult, Session, SessionEnd, Step, StopEvent, StopStep,
};

use crate::transport::{READABLE, Stream, WRITABLE, first};

/// The deadline of a command, with the older commands that are tried.
const CALL: Duration = Duration::from_secs(10);
/// The deadline of a Stop, from its request to the end of the stream.
const STOP: Duration = Duration::from_secs(60);

/// Drives an exchange to its end. The deadline is the stream's.
async fn drive(exchange: &mut impl Exchange, stream: &mut Stream) -> Result<(), Box<dyn Error>> {
    loop {
        let n = match exchange.step() {
            Step::Send(bytes) => or_closed(stream.write(bytes).await)?,
            Step::Receive(space) => or_closed(stream.read(space).await)?,
            Step::Done => return Ok(()),
        };
        exchange.advance(n)?;
    }
}

/// Treats a reset as the end of the connection. Bytes that the peer sent before are still read.
fn or_closed(done: io::Result<usize>) -> io::Result<usize> {
    match done {
        Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => Ok(0),
        done => done,
    }
}

/// Sends one command and receives the answer.
async fn call<'b, C: Command>(
    command: &C,
    stream: &mut Stream,
    buf: &'b mut [u8],
) -> Result<Answer<'b, C::Response<'b>>, Box<dyn Error>> {
    let mut call = Call::new(command, buf)?;
    drive(&mut call, stream).await?;
    Ok(call.finish()?)
}

/// Sends one command on a connection of its own. Returns `None` if the runtime does not know the command.
async fn request<'b, C: Command>(
    command: &C,
    path: &Path,
    until: Instant,
    buf: &'b mut [u8],
) -> Result<Option<C::Response<'b>>, Box<dyn Error>> {
    let mut stream = Stream::connect(path, until).await?;
    match call(command, &mut stream, buf).await? {
        Answer::Ok(response) => Ok(Some(response)),
        Answer::Refused(refusal) if refusal.hresult == HResult::UNKNOWN_COMMAND => Ok(None),
        Answer::Refused(refusal) => Err(format!("refused: {}", refusal.hresult).into()),
    }
}

/// Describes the process, with the newest command that the runtime knows.
pub(crate) async fn process_info(path: &Path) -> Result<String, Box<dyn Error>> {
    let until = Instant::now() + CALL;
    for code in plan::process_info(&Runtime::default()) {
        let mut buf = vec![0; 65_535];
        let info = match code {
            GetProcessInfo3::CODE => {
                let info = request(&GetProcessInfo3 {}, path, until, &mut buf).await?;
                info.map(|info| format!("{} on .NET {}", info.command_line, info.clr_product_version))
            }
            GetProcessInfo2::CODE => {
                let info = request(&GetProcessInfo2 {}, path, until, &mut buf).await?;
                info.map(|info| format!("{} on .NET {}", info.command_line, info.clr_product_version))
            }
            _ => {
                let info = request(&GetProcessInfo {}, path, until, &mut buf).await?;
                info.map(|info| format!("{} on .NET 5", info.command_line))
            }
        };
        if let Some(info) = info {
            return Ok(info);
        }
    }
    Err("the runtime is older than .NET 5, and has no such command".into())
}

/// Traces the garbage collector for `length`, and writes the stream to `out`. Returns how the session ended.
pub(crate) async fn trace(
    path: &Path,
    length: Duration,
    out: &mut impl Write,
) -> Result<SessionEnd, Box<dyn Error>> {
    let begin = Instant::now();
    let mut buf = vec![0; 65_535];
    let mut stream = Stream::connect(path, begin + CALL).await?;
    let providers = [Provider {
        keywords: 1, // the garbage collector
        level: EventLevel::INFORMATIONAL,
        name: "Microsoft-Windows-DotNETRuntime".into(),
        arguments: "".into(),
    }];
    let start = CollectTracing2 {
        buffer_mb: 256,
        format: Format::NET_TRACE,
        rundown: true,
        providers: Array::from(&providers),
    };
    let session_id = match call(&start, &mut stream, &mut buf).await? {
        Answer::Ok(SessionId { session_id }) => session_id,
        Answer::Refused(refusal) => return Err(format!("refused: {}", refusal.hresult).into()),
    };

    // From here on the stream carries the trace. The Stop has a connection of its own. The session's clock counts
    // milliseconds since `begin`.
    let mut session = Session::new(session_id);
    let mut stop: Option<Stream> = None;
    loop {
        if begin.elapsed() >= length {
            session.stop(milliseconds(length + STOP)); // a second call does nothing
        }
        session.tick(milliseconds(begin.elapsed()));
        if let Some(end) = session.end() {
            return Ok(end); // which closes both connections
        }
        let until = begin + session.until().map_or(length, Duration::from_millis);

        // Wait for both connections. Waiting for the Stop alone would never end.
        let interest = match session.stop_step() {
            StopStep::Connect => {
                stop = Some(Stream::connect(path, until).await?);
                session.stop_advance(StopEvent::Connected);
                continue;
            }
            StopStep::Send(_) => Some(WRITABLE),
            StopStep::Receive(_) => Some(READABLE),
            StopStep::Nothing => None,
        };
        let stop_interest = stop.as_ref().zip(interest);
        let stream_interest = session.wants_stream().then_some((&stream, READABLE));
        match first([stop_interest, stream_interest], until).await? {
            Some(0) => {
                let Some(stop) = &mut stop else { continue };
                let event = match session.stop_step() {
                    StopStep::Send(bytes) => if_ready(stop.try_write(bytes))?.map(StopEvent::Sent),
                    StopStep::Receive(space) => if_ready(stop.try_read(space))?.map(StopEvent::Received),
                    StopStep::Connect | StopStep::Nothing => None,
                };
                if let Some(event) = event {
                    session.stop_advance(event);
                }
            }
            Some(_) => {
                if let Some(n) = if_ready(stream.try_read(&mut buf))? {
                    session.stream_advance(&buf[..n]);
                    out.write_all(&buf[..n])?;
                }
            }
            None => {} // the time to stop, or the deadline
        }
    }
}

/// Returns `None` if the operation would block.
fn if_ready(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match or_closed(done) {
        Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(None),
        done => done.map(Some),
    }
}

fn milliseconds(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}
