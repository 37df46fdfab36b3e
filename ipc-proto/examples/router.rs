//! A router, as `dotnet-dsrouter`: runtimes on phones, in browsers or in other networks connect to it, and tools reach
//! each of them at a local address.
//!
//! `cargo run -p ipc-proto --example router [RUNTIMES TOOLS...]`, for example `0.0.0.0:9000 127.0.0.1:9001`: runtimes have
//! the first address in `DOTNET_DiagnosticPorts`. Each further address is for the tools of one runtime. Without arguments,
//! the example has a runtime and a tool of its own, and ends when the router notices that the runtime has ended.
//!
//! A tool can connect before its runtime, and while its runtime connects again: it waits in the backlog of its address. So
//! the order of starts does not matter. A router copies bytes and has no limit of time; the tool has one.
#![allow(clippy::arithmetic_side_effects, reason = "an example must be easy to read")]
use core::error::Error;
use core::net::SocketAddr;
use core::time::Duration;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use ipc_proto::port::{MonitorChange, MonitorFull, MonitorPort, MonitorSlot, Port};
use ipc_proto::types::ProcessInfo2;
use ipc_proto::wire::Writer;
use ipc_proto::{
    Advertise, Answer, Call, Encode, Exchange, GetProcessInfo2, Guid, HResult, Request, Serve, Step,
};

/// The address for the tools of one runtime.
struct Seat {
    tools: TcpListener,
    runtime: Option<Guid>,
}

struct Router {
    runtimes: TcpListener,
    port: MonitorPort<TcpStream, (), Vec<Option<MonitorSlot<TcpStream, ()>>>>,
    /// The connections that runtimes have made and no tool has.
    tokens: Vec<u64>,
    seats: Vec<Seat>,
    /// The tokens of connections whose tool or runtime has closed.
    closed: (Sender<u64>, Receiver<u64>),
    epoch: Instant,
}

impl Router {
    fn new(runtimes: &str, tools: &[String]) -> io::Result<Self> {
        let bind = |address: &str| {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true).map(|()| listener)
        };
        let seats = tools.iter().map(|tools| Ok(Seat { tools: bind(tools)?, runtime: None }));
        Ok(Self {
            runtimes: bind(runtimes)?,
            port: MonitorPort::new(Vec::new()),
            tokens: Vec::new(),
            seats: seats.collect::<io::Result<_>>()?,
            closed: channel(),
            epoch: Instant::now(),
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Does all that needs no wait, and then waits. A poller would wait for the sockets, until `port.due()`.
    fn turn(&mut self) -> io::Result<()> {
        while let Ok((socket, _)) = self.runtimes.accept() {
            self.accept(socket)?;
        }
        let tokens = core::mem::take(&mut self.tokens);
        self.tokens = tokens.into_iter().filter(|token| self.read(*token)).collect();
        for index in 0..self.seats.len() {
            self.connect_tool(index)?;
        }
        let now = self.now();
        self.closed.1.try_iter().for_each(|token| self.port.released(token, now));
        // The processes of the runtimes run on other machines, so nothing can tell whether they have ended.
        while let Some(change) = self.port.on_due(now, |_| false) {
            self.apply(change);
        }
        thread::sleep(Duration::from_millis(1));
        Ok(())
    }

    fn accept(&mut self, socket: TcpStream) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?; // otherwise, TCP can delay a small message
        let now = self.now();
        let accepted = self.port.accept(socket, (), now).or_else(|MonitorFull { connection, peer }| {
            self.port.grow(1);
            self.port.accept(connection, peer, now)
        });
        let accepted = accepted.map_err(|full| io::Error::other(full.to_string()))?;
        self.tokens.push(accepted.token);
        accepted.evicted.into_iter().for_each(|change| self.apply(change));
        Ok(())
    }

    /// Reads the frame of a runtime, or notices its end. Returns whether the port still has the connection.
    fn read(&mut self, token: u64) -> bool {
        while let Some((socket, space)) = self.port.receive(token) {
            let n = match socket.read(space) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => return true,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                read => read.unwrap_or(0),
            };
            let now = self.now();
            if let Some(change) = self.port.advance(token, n, now) {
                self.apply(change);
            }
        }
        false
    }

    /// Accepts a tool if its runtime waits for a command, and copies their bytes on a thread.
    fn connect_tool(&mut self, seat: usize) -> io::Result<()> {
        let now = self.now();
        let Some(Seat { tools, runtime: Some(cookie) }) = self.seats.get(seat) else { return Ok(()) };
        let Some((token, _)) = self.port.idle(cookie) else { return Ok(()) };
        let Ok((tool, _)) = tools.accept() else { return Ok(()) };
        let Some(runtime) = self.port.take(cookie, now) else { return Ok(()) };
        let closed = self.closed.0.clone();
        tool.set_nodelay(true)?;
        thread::spawn(move || {
            if let Err(e) = copy_both(&tool, &runtime) {
                eprintln!("router: {e}");
            }
            drop((tool, runtime));
            closed.send(token)
        });
        Ok(())
    }

    /// The connections in a change are closed here.
    fn apply(&mut self, change: MonitorChange<TcpStream, ()>) {
        let mut seats = self.seats.iter_mut();
        match change {
            MonitorChange::Arrived { runtime_cookie, first: true, .. } => {
                match seats.find(|seat| seat.runtime.is_none()) {
                    Some(seat) => {
                        println!("router: {runtime_cookie} is at {:?}", seat.tools.local_addr());
                        seat.runtime = Some(runtime_cookie);
                    }
                    // The runtime connects again, and finds an address when another one has left.
                    None => drop(self.port.remove(&runtime_cookie)),
                }
            }
            MonitorChange::Left(runtime) => {
                println!("router: {} has left", runtime.cookie);
                let left = seats.find(|seat| seat.runtime == Some(runtime.cookie));
                left.into_iter().for_each(|seat| seat.runtime = None);
            }
            MonitorChange::Rejected { rejection, .. } => eprintln!("router: a peer {rejection}"),
            _ => {}
        }
    }
}

/// Copies until the runtime closes.
fn copy_both(tool: &TcpStream, runtime: &TcpStream) -> io::Result<()> {
    tool.set_nonblocking(false)?;
    runtime.set_nonblocking(false)?;
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = io::copy(&mut &*tool, &mut &*runtime);
            // A tool may close its half after its command: it still waits for the answer.
            let _ = runtime.shutdown(Shutdown::Write);
        });
        let _ = io::copy(&mut &*runtime, &mut &*tool);
        // The runtime has answered or ended, or the tool takes no more bytes. This ends the other direction, too.
        let _ = tool.shutdown(Shutdown::Both);
        let _ = runtime.shutdown(Shutdown::Both);
    });
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    if let Some(runtimes) = arguments.next() {
        let mut router = Router::new(&runtimes, &arguments.collect::<Vec<_>>())?;
        println!("DOTNET_DiagnosticPorts='{}'", Port::connect(&runtimes, true)?);
        loop {
            router.turn()?;
        }
    }

    let mut router = Router::new("127.0.0.1:0", &["127.0.0.1:0".to_owned()])?;
    let of_runtimes = router.runtimes.local_addr()?;
    let of_tools = router.seats.first().ok_or("no seat")?.tools.local_addr()?;
    // The tool is first: its command waits for the runtime.
    let tool = thread::spawn(move || (0..3).try_for_each(|_| ask(of_tools)).map_err(|e| e.to_string()));
    let runtime =
        thread::spawn(move || (0..3).try_for_each(|_| serve(of_runtimes)).map_err(|e| e.to_string()));
    while router.port.runtimes().count() == 0 {
        router.turn()?;
    }
    while router.port.runtimes().count() > 0 {
        router.turn()?;
    }
    tool.join().map_err(|_| "the tool panicked")??;
    Ok(runtime.join().map_err(|_| "the runtime panicked")??)
}

/// Runs an exchange. A reset counts as a close: the bytes that the peer sent before are valid.
fn drive(exchange: &mut impl Exchange, mut socket: &TcpStream) -> Result<(), Box<dyn Error>> {
    loop {
        let n = match exchange.step() {
            Step::Send(bytes) => socket.write(bytes),
            Step::Receive(space) => socket.read(space),
            Step::Done => return Ok(()),
        };
        exchange.advance(match n {
            Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => 0,
            n => n?,
        })?;
    }
}

/// A tool: asks the runtime at the other end who it is.
fn ask(router: SocketAddr) -> Result<(), Box<dyn Error>> {
    let socket = TcpStream::connect(router)?;
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut buf = [0; 65_535];
    let mut call = Call::new(&GetProcessInfo2 {}, &mut buf)?;
    drive(&mut call, &socket)?;
    match call.finish()? {
        Answer::Ok(info) => println!("tool: {} runs .NET {}", info.command_line, info.clr_product_version),
        Answer::Refused(refusal) => return Err(refusal.hresult.to_string().into()),
    }
    Ok(())
}

/// A runtime: connects, and serves one command. The example `tcp` has one that connects again by the rules of .NET.
fn serve(router: SocketAddr) -> Result<(), Box<dyn Error>> {
    let info = ProcessInfo2 {
        process_id: 42,
        runtime_cookie: Guid(*b"drawn at startup"),
        command_line: "app --on-a-phone".into(),
        os: "Android".into(),
        arch: "arm64".into(),
        managed_entrypoint_assembly_name: "app".into(),
        clr_product_version: "10.0.0".into(),
    };
    let mut socket = TcpStream::connect(router)?;
    let mut frame = [0; Advertise::LEN];
    let advertise = Advertise { runtime_cookie: info.runtime_cookie, process_id: info.process_id, future: 0 };
    advertise.encode(&mut Writer::new(&mut frame));
    socket.write_all(&frame)?;
    let (mut receive, mut send) = ([0; 65_535], [0; 4096]);
    let mut serve = Serve::new(&mut receive, &mut send)?;
    drive(&mut serve, &socket)?;
    let (request, mut reply) = serve.finish();
    match request {
        Ok(Request::GetProcessInfo2(get)) => reply.answer(&get, &info)?,
        Ok(_) => reply.refuse(HResult::UNKNOWN_COMMAND)?,
        Err(_) => {} // the reply is a refusal already
    }
    drive(&mut reply, &socket)
}
