//! `fake-runtime`: a runtime to try tools on.
use std::io;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use clap::ValueEnum;
use ipc_proto::Advertise;
use ipc_proto::port::{Config, Finding, PortType, Variable};
use ipc_std::fake::{FakeRuntime, Port, Profile};
use ipc_std::{Server, discover};
use serde_json::json;

use crate::failure::Failure;
use crate::output::json_to_stdout;
use crate::{Globals, signals};

/// Be a runtime for other tools to talk to, until standard input ends
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The first line of output is {\"process_id\": N, \"socket\": \"PATH\"}. SIGINT, SIGTERM
and SIGHUP end it too. Others find it by its process id if DIR was its TMPDIR when
it started.

A port is what DOTNET_DiagnosticPorts would have: the path of a monitor's socket,
and suspend (the default) or nosuspend. It is called until somebody is there, and
again after each command. A runtime that waits at several ports is to be resumed at
each of them.

Examples:
  dotnet-ipc fake-runtime
  dotnet-ipc fake-runtime --port /tmp/monitor,suspend
  TMPDIR=/tmp/lab dotnet-ipc fake-runtime --dir /tmp/lab --runtime net31 --suspend")]
pub(crate) struct Args {
    /// Which runtime to be
    #[arg(long, value_enum, default_value = "net10")]
    runtime: Runtime,
    /// Where to make its socket [default: TMPDIR, or /tmp, as a real one]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Wait at the start for somebody to resume it
    #[arg(long)]
    suspend: bool,
    /// Call the monitor there, too; may be given several times
    #[arg(long = "port", value_name = "ADDRESS[,TAG]...")]
    ports: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Runtime {
    Net10,
    Net9,
    Net8,
    Net9Aot,
    Net31,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let profile = match args.runtime {
        Runtime::Net10 => Profile::net10(),
        Runtime::Net9 => Profile::net9(),
        Runtime::Net8 => Profile::net8(),
        Runtime::Net9Aot => Profile::net9_aot(),
        Runtime::Net31 => Profile::net31(),
    };
    let list = args.ports.join(";");
    let config = Config::read(profile.flavour, |name| {
        (name == Variable::DiagnosticPorts.name()).then_some(list.as_str())
    });
    // A pipe lies in no directory.
    let matters = |finding: &Finding<'_>| !(cfg!(windows) && matches!(finding, Finding::Relative { .. }));
    config.findings().filter(matters).for_each(|finding| globals.output.note(&finding.to_string()));
    // A runtime goes on without those that cannot be, and ignores those that listen where it has a default port.
    let advertise = Advertise { runtime_cookie: profile.runtime_cookie, process_id: 0, future: 0 };
    let mut trial = Server::new(&advertise).map_err(|e| Failure::io("cannot make a server", &e))?;
    let ports = config
        .ports()
        .filter(|port| port.port_type() == PortType::Connect && trial.call(port.address().as_ref()).is_ok());
    let ports = ports.map(|port| Port { path: port.address().into(), suspended: port.suspends() }).collect();
    let dir = args.dir.clone().unwrap_or_else(discover::directory);
    // Before there is a socket, so that no signal leaves it behind.
    let (end, ended) = mpsc::channel();
    signals::handle({
        let end = end.clone();
        move |_| {
            // It ends already when nobody receives.
            let _ = end.send(());
        }
    })?;
    let runtime = FakeRuntime::start_in(&dir, Profile { suspended: args.suspend, ports, ..profile })
        .map_err(|e| Failure::io(format_args!("cannot listen in {}", dir.display()), &e))?;
    json_to_stdout(
        &json!({ "process_id": runtime.process_id(), "socket": runtime.path().to_string_lossy() }),
    )?;
    let reader = thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        // An input that cannot be read has ended, too.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = end.send(());
    });
    reader.map_err(|e| Failure::io("cannot start a thread", &e))?;
    // The other end of this is in the handler of signals, which stays.
    let _ = ended.recv();
    Ok(())
}
