//! A client, over whatever [`transport`](crate::transport) carries its bytes.
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

/// How long a command may take, with all its tries.
const CALL: Duration = Duration::from_secs(10);
/// How long a session may take to end, once that is asked for.
const STOP: Duration = Duration::from_secs(60);

/// Drives an exchange to its end: the one loop for all of them. The deadline is the stream's.
fn drive(exchange: &mut impl Exchange, stream: &mut Stream) -> Result<(), Box<dyn Error>> {
    loop {
        let n = match exchange.step() {
            Step::Send(bytes) => or_closed(stream.write(bytes))?,
            Step::Receive(space) => or_closed(stream.read(space))?,
            Step::Done => return Ok(()),
        };
        exchange.advance(n)?;
    }
}

/// A peer that resets the connection has closed it; what it sent before is read all the same.
fn or_closed(done: io::Result<usize>) -> io::Result<usize> {
    match done {
        Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => Ok(0),
        done => done,
    }
}

/// One command, and what the runtime answers to it.
fn call<'b, C: Command>(
    command: &C,
    stream: &mut Stream,
    buf: &'b mut [u8],
) -> Result<Answer<'b, C::Response<'b>>, Box<dyn Error>> {
    let mut call = Call::new(command, buf)?;
    drive(&mut call, stream)?;
    Ok(call.finish()?)
}

/// The same on a connection of its own, as every command has; nothing if the runtime is too old for the command.
fn ask<'b, C: Command>(
    command: &C,
    path: &Path,
    until: Instant,
    buf: &'b mut [u8],
) -> Result<Option<C::Response<'b>>, Box<dyn Error>> {
    let mut stream = Stream::connect(path, until)?;
    match call(command, &mut stream, buf)? {
        Answer::Ok(response) => Ok(Some(response)),
        Answer::Refused(refusal) if refusal.hresult == HResult::UNKNOWN_COMMAND => Ok(None),
        Answer::Refused(refusal) => Err(format!("refused: {}", refusal.hresult).into()),
    }
}

/// Who the process is: the newest command first, then older ones.
pub(crate) fn process_info(path: &Path) -> Result<String, Box<dyn Error>> {
    let until = Instant::now() + CALL;
    for code in plan::process_info(&Runtime::default()) {
        let mut buf = vec![0; 65_535];
        let info = match code {
            GetProcessInfo3::CODE => {
                let info = ask(&GetProcessInfo3 {}, path, until, &mut buf)?;
                info.map(|info| format!("{} on .NET {}", info.command_line, info.clr_product_version))
            }
            GetProcessInfo2::CODE => {
                let info = ask(&GetProcessInfo2 {}, path, until, &mut buf)?;
                info.map(|info| format!("{} on .NET {}", info.command_line, info.clr_product_version))
            }
            _ => {
                let info = ask(&GetProcessInfo {}, path, until, &mut buf)?;
                info.map(|info| format!("{} on .NET 5", info.command_line))
            }
        };
        if let Some(info) = info {
            return Ok(info);
        }
    }
    Err("the runtime is older than .NET 5, and cannot say".into())
}

/// Traces the garbage collector for so long, writes the stream to `out`, and says how it ended.
pub(crate) fn trace(
    path: &Path,
    length: Duration,
    out: &mut impl Write,
) -> Result<SessionEnd, Box<dyn Error>> {
    let begin = Instant::now();
    let mut buf = vec![0; 65_535];
    let mut stream = Stream::connect(path, begin + CALL)?;
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
    let session_id = match call(&start, &mut stream, &mut buf)? {
        Answer::Ok(SessionId { session_id }) => session_id,
        Answer::Refused(refusal) => return Err(format!("refused: {}", refusal.hresult).into()),
    };

    // What comes on the stream now is the trace; the stop has a connection of its own. The session's clock counts
    // milliseconds from the beginning.
    let mut session = Session::new(session_id);
    let mut stop: Option<Stream> = None;
    loop {
        if begin.elapsed() >= length {
            session.stop(milliseconds(length + STOP)); // changes nothing the second time
        }
        session.tick(milliseconds(begin.elapsed()));
        if let Some(end) = session.end() {
            return Ok(end); // and both connections are closed
        }
        let until = begin + session.until().map_or(length, Duration::from_millis);

        // Whatever can be done first, on either connection. To wait for the stop alone would be to wait for ever.
        let interest = match session.stop_step() {
            StopStep::Connect => {
                stop = Some(Stream::connect(path, until)?);
                session.stop_advance(StopEvent::Connected);
                continue;
            }
            StopStep::Send(_) => Some(WRITABLE),
            StopStep::Receive(_) => Some(READABLE),
            StopStep::Nothing => None,
        };
        let of_stop = stop.as_ref().zip(interest);
        let of_stream = session.wants_stream().then_some((&stream, READABLE));
        match first([of_stop, of_stream], until)? {
            Some(0) => {
                let Some(stop) = &mut stop else { continue };
                let event = match session.stop_step() {
                    StopStep::Send(bytes) => at_once(stop.try_write(bytes))?.map(StopEvent::Sent),
                    StopStep::Receive(space) => at_once(stop.try_read(space))?.map(StopEvent::Received),
                    StopStep::Connect | StopStep::Nothing => None,
                };
                if let Some(event) = event {
                    session.stop_advance(event);
                }
            }
            Some(_) => {
                if let Some(n) = at_once(stream.try_read(&mut buf))? {
                    session.stream_advance(&buf[..n]);
                    out.write_all(&buf[..n])?;
                }
            }
            None => {} // it is time to stop, or to give up
        }
    }
}

/// Nothing if there was nothing to do after all.
fn at_once(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match or_closed(done) {
        Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(None),
        done => done.map(Some),
    }
}

fn milliseconds(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}
