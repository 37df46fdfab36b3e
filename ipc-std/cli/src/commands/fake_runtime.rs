//! `fake-runtime`: a fake runtime for tests of tools.
use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc;

use clap::ValueEnum;
use ipc_proto::Advertise;
use ipc_proto::port::{Config, Port, PortType, Variable};
use ipc_std::{Server, discover};
use ipc_testkit::{FakeHeap, FakePort, FakeRuntime, Profile};
use serde::Serialize;

use crate::args::socket_path;
use crate::output::stdout::json_to_stdout;
use crate::run::signals;
use crate::run::threads::spawn;
use crate::run::{Failure, Globals};

/// Run a fake runtime for tests of other tools
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("fake_runtime.txt"))]
pub(crate) struct Args {
    /// Runtime to imitate
    #[arg(long, value_enum, default_value = "net10")]
    runtime: Runtime,
    /// Directory of the socket [default: TMPDIR, or /tmp]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Stay suspended at startup until resumed
    #[arg(long)]
    suspend: bool,
    /// Connect to a monitor; can be repeated
    #[arg(long = "port", value_name = "ADDRESS[,TAG]...", value_parser = port)]
    ports: Vec<String>,
    /// Heap for `dotnet-ipc heap`, for example list=1000,roots=30
    #[arg(long, value_name = "PART[,PART]...")]
    heap: Option<FakeHeap>,
}

/// Refuses network addresses, which a runtime on this system would take for file names.
fn port(text: &str) -> Result<String, String> {
    let network =
        Port::list(text).map(|port| port.address()).find(|address| socket_path::is_network(address));
    network.map_or_else(|| Ok(text.to_owned()), |address| Err(socket_path::refusal(address)))
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Runtime {
    Net11,
    Net10,
    Net9,
    Net8,
    Net11Aot,
    Net10Aot,
    Net9Aot,
    Net31,
}

/// The line about the runtime.
#[derive(Serialize)]
struct StartedRuntime<'p> {
    process_id: u32,
    socket: Cow<'p, str>,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let profile = match args.runtime {
        Runtime::Net11 => Profile::net11(),
        Runtime::Net10 => Profile::net10(),
        Runtime::Net9 => Profile::net9(),
        Runtime::Net8 => Profile::net8(),
        Runtime::Net11Aot => Profile::net11_aot(),
        Runtime::Net10Aot => Profile::net10_aot(),
        Runtime::Net9Aot => Profile::net9_aot(),
        Runtime::Net31 => Profile::net31(),
    };
    let list = args.ports.join(";");
    let config = Config::read(profile.flavour, |name| {
        (name == Variable::DiagnosticPorts.name()).then_some(list.as_str())
    });
    let config = if cfg!(windows) { config.on_windows() } else { config };
    config.findings().for_each(|finding| globals.note(&finding.to_string()));
    // Like a real runtime, this one ignores ports that cannot work. It also ignores ports that listen: a runtime with a
    // default port does not open them.
    let advertise = Advertise { runtime_cookie: profile.runtime_cookie, process_id: 0, future: 0 };
    let mut trial = Server::new(&advertise).map_err(|e| Failure::io("cannot make a server", &e))?;
    let ports = config.ports().filter(|port| {
        port.port_type() == PortType::Connect && trial.connect(port.address().as_ref()).is_ok()
    });
    let ports =
        ports.map(|port| FakePort { path: port.address().into(), suspended: port.suspends() }).collect();
    let dir = args.dir.clone().unwrap_or_else(discover::directory);
    // Signals are handled before the socket exists, so that none ends the tool without removing the socket.
    let (end, ended) = mpsc::channel();
    signals::handle({
        let end = end.clone();
        let mut is_second = false;
        move |_| {
            // An error means that the tool is ending already.
            let _ = end.send(());
            !core::mem::replace(&mut is_second, true)
        }
    })?;
    let runtime = FakeRuntime::start_in(
        &dir,
        Profile { suspended: args.suspend, ports, heap: args.heap.clone(), ..profile },
    )
    .map_err(|e| Failure::io(format_args!("cannot listen in {}", dir.display()), &e))?;
    let socket = runtime.path().to_string_lossy();
    signals::ignored_note().iter().for_each(|note| globals.note(note));
    json_to_stdout(&StartedRuntime { process_id: runtime.process_id(), socket })?;
    spawn("stdin", move || {
        // An error counts as the end of the input.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = end.send(());
    })?;
    // Waits for a signal or the end of the input: `recv` does not fail, because the signal handler keeps a sender.
    let _ = ended.recv();
    Ok(())
}
