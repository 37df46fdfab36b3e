//! TCP, as `dotnet-dsrouter` and runtimes on phones speak it: the runtime calls, says who it is, and serves one command
//! on each connection that it makes.
//!
//! `cargo run -p ipc-proto --example tcp [ADDRESS]`; with an address, say `0.0.0.0:9000`, it is only the monitor, and
//! waits for a runtime that has it in `DOTNET_DiagnosticPorts`.
#![allow(clippy::arithmetic_side_effects, reason = "an example is to be read")]
use core::error::Error;
use core::net::SocketAddr;
use core::time::Duration;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use ipc_proto::port::{ConnectPort, Entry, Full, Port, PortEvent, PortStep, Roster, Suspension};
use ipc_proto::types::{ProcessInfo2, Status};
use ipc_proto::{
    Advertise, Answer, Call, Command, Exchange, GetProcessInfo2, Guid, HResult, ReceiveAdvertise, Request,
    ResumeRuntime, Serve, Step,
};

/// How long a command may take, with the wait for the runtime to call.
const CALL: Duration = Duration::from_secs(30);

/// A connection on which nothing is waited for beyond a deadline.
struct Tcp {
    socket: TcpStream,
    until: Instant,
}

impl Tcp {
    fn new(socket: TcpStream, limit: Duration) -> io::Result<Self> {
        socket.set_nodelay(true)?; // an answer does not wait for the next one
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

/// A peer that resets the connection has closed it; what it sent before is read all the same.
fn or_closed(done: io::Result<usize>) -> io::Result<usize> {
    match done {
        Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => Ok(0),
        done => done,
    }
}

/// A monitor: knows the runtimes that have called, and the newest connection of each.
struct Monitor {
    arrivals: Receiver<(Advertise, TcpStream)>,
    roster: Roster<TcpStream, Vec<Option<Entry<TcpStream>>>>,
}

impl Monitor {
    fn new(listener: TcpListener) -> Self {
        let (sender, arrivals) = channel();
        thread::spawn(move || accept(&listener, &sender));
        Self { arrivals, roster: Roster::new(Vec::new()) }
    }

    /// Waits for the next connection of any runtime, and says whose it is.
    fn next(&mut self, until: Instant) -> Result<Guid, Box<dyn Error>> {
        let left = until.saturating_duration_since(Instant::now());
        let (Advertise { runtime_cookie, process_id, .. }, socket) = self.arrivals.recv_timeout(left)?;
        let arrived =
            self.roster.arrive(runtime_cookie, process_id, socket).or_else(|Full { connection }| {
                self.roster.grow(16);
                self.roster.arrive(runtime_cookie, process_id, connection)
            });
        drop(arrived?.stale); // one that the runtime does not look at any more is closed
        Ok(runtime_cookie)
    }

    /// Sends a command on the runtime's connection: on the one that is there, or else on the next that it makes.
    fn call<'b, C: Command>(
        &mut self,
        runtime: &Guid,
        command: &C,
        buf: &'b mut [u8],
    ) -> Result<Answer<'b, C::Response<'b>>, Box<dyn Error>> {
        let until = Instant::now() + CALL;
        let socket = loop {
            match self.roster.take(runtime) {
                Some(socket) => break socket,
                None => drop(self.next(until)?),
            }
        };
        let mut call = Call::new(command, buf)?;
        Tcp { socket, until }.drive(&mut call)?;
        Ok(call.finish()?)
    }
}

/// Hears who calls, one after the other, and passes on those who say so in time.
fn accept(listener: &TcpListener, arrivals: &Sender<(Advertise, TcpStream)>) {
    let heard = |socket| {
        let mut tcp = Tcp::new(socket, Duration::from_millis(ReceiveAdvertise::DEADLINE_MS.into()))?;
        let mut receive = ReceiveAdvertise::new();
        tcp.drive(&mut receive)?;
        Ok::<_, Box<dyn Error>>((receive.finish()?, tcp.socket))
    };
    for socket in listener.incoming() {
        match socket.map_err(Into::into).and_then(heard) {
            Ok(arrival) => match arrivals.send(arrival) {
                Ok(()) => {}
                Err(_) => return, // the monitor is gone
            },
            Err(e) => eprintln!("monitor: somebody called who is no runtime: {e}"),
        }
    }
}

/// A runtime that waits to be resumed.
fn runtime(monitor: SocketAddr, info: &ProcessInfo2<'_>) -> Result<(), Box<dyn Error>> {
    let ProcessInfo2 { runtime_cookie, process_id, .. } = *info;
    let mut port = ConnectPort::new(&Advertise { runtime_cookie, process_id, future: 0 });
    let mut suspension = Suspension::new([true]);
    let mut connection: Option<Tcp> = None;
    while suspension.is_suspended() {
        let event = match (port.step(), &mut connection) {
            (PortStep::Connect, _) => {
                connection = TcpStream::connect_timeout(&monitor, Duration::from_millis(100))
                    .and_then(|socket| {
                        Tcp::new(socket, Duration::from_millis(Advertise::SEND_DEADLINE_MS.into()))
                    })
                    .ok();
                if connection.is_some() { PortEvent::Connected } else { PortEvent::Failed }
            }
            (PortStep::Wait { milliseconds }, _) => {
                thread::sleep(Duration::from_millis(milliseconds.into()));
                PortEvent::Waited
            }
            (PortStep::Send(frame), Some(tcp)) => tcp.write(frame).map_or(PortEvent::Failed, PortEvent::Sent),
            // A runtime waits for as long as it takes; this one for half a minute, and then calls anew. It sees no
            // hang-up behind a command, and answers that in vain.
            (PortStep::Await, Some(tcp)) => {
                tcp.socket.set_read_timeout(Some(CALL))?;
                match tcp.socket.peek(&mut [0]) {
                    Ok(0) | Err(_) => PortEvent::HungUp,
                    Ok(_) => PortEvent::Readable,
                }
            }
            (PortStep::Serve, Some(tcp)) => {
                tcp.until = Instant::now() + CALL;
                if let Err(e) = serve(tcp, info, &mut suspension) {
                    eprintln!("runtime: {e}"); // it goes on
                }
                connection = None;
                PortEvent::Answered
            }
            (PortStep::Send(_) | PortStep::Await | PortStep::Serve, None) => PortEvent::Failed,
        };
        port.advance(event);
    }
    Ok(())
}

fn serve(
    tcp: &mut Tcp,
    info: &ProcessInfo2<'_>,
    suspension: &mut Suspension<[bool; 1]>,
) -> Result<(), Box<dyn Error>> {
    let (mut receive, mut send) = ([0; 65_535], [0; 4096]);
    let mut serve = Serve::new(&mut receive, &mut send)?;
    tcp.drive(&mut serve)?;
    let (request, mut reply) = serve.finish();
    match request {
        Ok(Request::GetProcessInfo2(get)) => reply.answer(&get, info)?,
        Ok(Request::ResumeRuntime(resume)) => {
            suspension.resume(0);
            reply.answer(&resume, &Status::OK)?;
        }
        Ok(_) => reply.refuse(HResult::UNKNOWN_COMMAND)?,
        Err(_) => {} // the reply refuses it already
    }
    tcp.drive(&mut reply)
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
    assert_eq!((resumed, monitor.roster.len()), (Answer::Ok(Status::OK), 1));
    if let Some(ours) = ours {
        ours.join().map_err(|_| "the runtime panicked")??; // it runs
    }
    Ok(())
}
