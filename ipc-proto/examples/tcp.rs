//! TCP, as `dotnet-dsrouter` and runtimes on phones use it: the runtime connects, sends its advertise frame, and serves
//! one command on each connection that it makes.
//!
//! `cargo run -p ipc-proto --example tcp [ADDRESS]`; with an address, for example `0.0.0.0:9000`, the example is only
//! the monitor, and waits for a runtime that has the address in `DOTNET_DiagnosticPorts`.
#![allow(clippy::arithmetic_side_effects, reason = "an example must be easy to read")]
use core::error::Error;
use core::net::SocketAddr;
use core::time::Duration;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use ipc_proto::port::{
    ConnectEvent, ConnectPort, ConnectStep, MonitorChange, MonitorFull, MonitorPort, MonitorSlot, Port,
    Suspension,
};
use ipc_proto::types::{ProcessInfo2, Status};
use ipc_proto::{
    Advertise, Answer, Call, Command, Exchange, GetProcessInfo2, Guid, HResult, ReceiveAdvertise, Request,
    ResumeRuntime, Serve, Step,
};

/// The time limit of a command, including the wait for the runtime to connect.
const CALL: Duration = Duration::from_secs(30);

/// A connection with a deadline.
struct Tcp {
    socket: TcpStream,
    until: Instant,
}

impl Tcp {
    fn new(socket: TcpStream, limit: Duration) -> io::Result<Self> {
        socket.set_nodelay(true)?; // otherwise, TCP can delay a small message
        Ok(Self { socket, until: Instant::now() + limit })
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        match self.until.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Ok(Some(left)),
            _ => Err(ErrorKind::TimedOut.into()),
        }
    }

    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        self.socket.read(space)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        self.socket.write(bytes)
    }

    fn drive(&mut self, exchange: &mut impl Exchange) -> Result<(), Box<dyn Error>> {
        loop {
            let n = match exchange.step() {
                Step::Send(bytes) => or_closed(self.write(bytes))?,
                Step::Receive(space) => or_closed(self.read(space))?,
                Step::Done => return Ok(()),
            };
            exchange.advance(n)?;
        }
    }
}

/// Returns 0 for a reset, as for a close: the bytes that the peer sent before the reset are valid.
fn or_closed(done: io::Result<usize>) -> io::Result<usize> {
    match done {
        Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => Ok(0),
        done => done,
    }
}

/// A monitor of one port.
struct Monitor {
    accepted: Receiver<TcpStream>,
    port: MonitorPort<Tcp, (), Vec<Option<MonitorSlot<Tcp, ()>>>>,
    epoch: Instant,
}

impl Monitor {
    fn new(listener: TcpListener) -> Self {
        let (sender, accepted) = channel();
        thread::spawn(move || {
            // The thread ends at the first connection after the monitor was dropped: `send` fails.
            listener.incoming().flatten().try_for_each(|socket| sender.send(socket))
        });
        Self { accepted, port: MonitorPort::new(Vec::new()), epoch: Instant::now() }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Waits for the next connection of any runtime, and returns the runtime's cookie.
    fn next(&mut self, until: Instant) -> Result<Guid, Box<dyn Error>> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let limit = Duration::from_millis(ReceiveAdvertise::DEADLINE_MS.into());
            let tcp = Tcp::new(self.accepted.recv_timeout(left)?, limit)?;
            match self.receive(tcp)? {
                Some(MonitorChange::Arrived { runtime_cookie, .. }) => return Ok(runtime_cookie),
                Some(MonitorChange::Rejected { rejection, .. }) => eprintln!("monitor: a peer {rejection}"),
                _ => {}
            }
        }
    }

    /// Receives the frame of a new connection. Dropping the change closes an older connection of the same runtime.
    fn receive(&mut self, tcp: Tcp) -> Result<Option<MonitorChange<Tcp, ()>>, Box<dyn Error>> {
        let now = self.now();
        let accepted = self.port.accept(tcp, (), now).or_else(|MonitorFull { connection, peer }| {
            self.port.grow(16);
            self.port.accept(connection, peer, now)
        });
        let token = accepted.map_err(|full| full.to_string())?.token;
        while let Some((tcp, space)) = self.port.receive(token) {
            let n = tcp.read(space).unwrap_or(0);
            if let Some(change) = self.port.advance(token, n, self.now()) {
                return Ok(Some(change));
            }
        }
        Ok(None)
    }

    /// Sends a command on the runtime's idle connection, or on the runtime's next connection.
    fn call<'b, C: Command>(
        &mut self,
        runtime: &Guid,
        command: &C,
        buf: &'b mut [u8],
    ) -> Result<Answer<'b, C::Response<'b>>, Box<dyn Error>> {
        let until = Instant::now() + CALL;
        let mut tcp = loop {
            match self.port.take(runtime, self.now()) {
                Some(tcp) => break tcp,
                None => drop(self.next(until)?),
            }
        };
        tcp.until = until;
        let mut call = Call::new(command, buf)?;
        tcp.drive(&mut call)?;
        Ok(call.finish()?)
    }
}

/// Runs a runtime that is suspended until it receives a `ResumeRuntime`.
fn runtime(monitor: SocketAddr, info: &ProcessInfo2<'_>) -> Result<(), Box<dyn Error>> {
    let ProcessInfo2 { runtime_cookie, process_id, .. } = *info;
    let mut port = ConnectPort::new(&Advertise { runtime_cookie, process_id, future: 0 });
    let mut suspension = Suspension::new([true]);
    let mut connection: Option<Tcp> = None;
    while suspension.is_suspended() {
        let event = match (port.step(), &mut connection) {
            (ConnectStep::Connect, _) => {
                connection = TcpStream::connect_timeout(&monitor, Duration::from_millis(100))
                    .and_then(|socket| {
                        Tcp::new(socket, Duration::from_millis(Advertise::SEND_DEADLINE_MS.into()))
                    })
                    .ok();
                if connection.is_some() { ConnectEvent::Connected } else { ConnectEvent::Failed }
            }
            (ConnectStep::Wait { milliseconds }, _) => {
                thread::sleep(Duration::from_millis(milliseconds.into()));
                ConnectEvent::Waited
            }
            (ConnectStep::Send(frame), Some(tcp)) => {
                tcp.write(frame).map_or(ConnectEvent::Failed, ConnectEvent::Sent)
            }
            // A .NET runtime waits for a command without a limit. This one waits 30 s, and then connects again.
            (ConnectStep::Serve, Some(tcp)) => {
                tcp.until = Instant::now() + CALL;
                let event = serve(tcp, info, &mut suspension).unwrap_or_else(|e| {
                    eprintln!("runtime: {e}"); // the runtime connects again
                    ConnectEvent::Answered
                });
                connection = None;
                event
            }
            (ConnectStep::Send(_) | ConnectStep::Serve, None) => ConnectEvent::Failed,
        };
        port.advance(event);
    }
    Ok(())
}

fn serve(
    tcp: &mut Tcp,
    info: &ProcessInfo2<'_>,
    suspension: &mut Suspension<[bool; 1]>,
) -> Result<ConnectEvent, Box<dyn Error>> {
    let (mut receive, mut send) = ([0; 65_535], [0; 4096]);
    let mut serve = Serve::new(&mut receive, &mut send)?;
    tcp.drive(&mut serve)?;
    if serve.is_untouched() {
        return Ok(ConnectEvent::HungUp);
    }
    let (request, mut reply) = serve.finish();
    match request {
        Ok(Request::GetProcessInfo2(get)) => reply.answer(&get, info)?,
        Ok(Request::ResumeRuntime(resume)) => {
            suspension.resume(0);
            reply.answer(&resume, &Status::OK)?;
        }
        Ok(_) => reply.refuse(HResult::UNKNOWN_COMMAND)?,
        Err(_) => {} // the reply is a refusal already
    }
    tcp.drive(&mut reply)?;
    Ok(ConnectEvent::Answered)
}

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0"))?;
    let monitor = listener.local_addr()?;
    println!("DOTNET_DiagnosticPorts='{}'", Port::connect(&monitor.to_string(), true)?);

    let ours = address.is_none().then(|| {
        thread::spawn(move || {
            let info = ProcessInfo2 {
                process_id: 42,
                runtime_cookie: Guid(*b"drawn at startup"),
                command_line: "app --on-a-phone".into(),
                os: "Android".into(),
                arch: "arm64".into(),
                managed_entrypoint_assembly_name: "app".into(),
                clr_product_version: "10.0.0".into(),
            };
            runtime(monitor, &info).map_err(|e| e.to_string())
        })
    });

    let (mut monitor, mut buf) = (Monitor::new(listener), [0; 65_535]);
    let runtime = monitor.next(Instant::now() + CALL)?;
    match monitor.call(&runtime, &GetProcessInfo2 {}, &mut buf)? {
        Answer::Ok(info) => println!("{} runs .NET {}", info.command_line, info.clr_product_version),
        Answer::Refused(refusal) => return Err(refusal.hresult.to_string().into()),
    }
    let resumed = monitor.call(&runtime, &ResumeRuntime {}, &mut buf)?;
    assert_eq!((resumed, monitor.port.runtimes().count()), (Answer::Ok(Status::OK), 1));
    if let Some(ours) = ours {
        ours.join().map_err(|_| "the runtime panicked")??; // the thread ends when the runtime is resumed
    }
    Ok(())
}
