//! Records a trace, over two connections that block. A socket of Windows is `\\.\pipe\dotnet-diagnostic-PID`.
use ipc_proto::types::{EventLevel, Format, Provider, SessionId};
use ipc_proto::{Answer, Call, CollectTracing2, Command, Exchange, Session, SessionEnd, Step, StopTracing};
use std::io::{self, Read, Write};

type Result<T> = core::result::Result<T, Box<dyn core::error::Error + Send + Sync>>;

fn call<C: for<'a> Command<Response<'a> = SessionId>>(mut to: impl Read + Write, command: &C) -> Result<u64> {
    let mut buf = [0; 1024];
    let mut call = Call::new(command, &mut buf)?;
    loop {
        let moved = match call.step() {
            Step::Send(bytes) => to.write(bytes),
            Step::Receive(space) => to.read(space),
            Step::Done => break,
        };
        call.advance(moved.unwrap_or(0))?; // a reset is a close: an answer may have arrived before it
    }
    match call.finish()? {
        Answer::Ok(SessionId { session_id }) => Ok(session_id),
        Answer::Refused(error) => Err(error.hresult.to_string().into()),
    }
}

pub(crate) fn record<S: Read + Write>(
    connect: impl Fn() -> io::Result<S> + Send + 'static,
    seconds: u64,
    mut file: impl Write,
) -> Result<SessionEnd> {
    let (name, level) = ("Microsoft-Windows-DotNETRuntime".into(), EventLevel::INFORMATIONAL);
    let providers = &[Provider { keywords: 0x1, level, name, arguments: "".into() }][..];
    let (format, providers) = (Format::NET_TRACE, providers.into());
    let mut stream = connect()?;
    let session_id = call(&mut stream, &CollectTracing2 { buffer_mb: 64, format, rundown: true, providers })?;
    // The runtime answers the Stop after the rest of the stream, which this thread reads meanwhile.
    std::thread::spawn(move || {
        std::thread::sleep(core::time::Duration::from_secs(seconds));
        call(connect()?, &StopTracing { session_id })
    });
    let (mut session, mut buf) = (Session::new(session_id), [0; 16_384]);
    while session.wants_stream() {
        let n = stream.read(&mut buf).unwrap_or(0);
        let bytes = buf.get(..n).ok_or("a read of more bytes than its buffer has")?;
        session.stream_advance(bytes);
        file.write_all(bytes)?;
    }
    session.end().ok_or_else(|| "the session continues".into())
}

fn main() -> Result<()> {
    let Ok([_, socket, seconds, file]) = <[String; 4]>::try_from(std::env::args().collect::<Vec<_>>()) else {
        println!("usage: trace SOCKET SECONDS FILE");
        return Ok(());
    };
    #[cfg(unix)]
    let connect = move || std::os::unix::net::UnixStream::connect(&socket);
    #[cfg(windows)]
    let connect = move || std::fs::File::options().read(true).write(true).open(&socket);
    record(connect, seconds.parse()?, std::fs::File::create(file)?).map(|end| println!("{end:?}"))
}
