//! `fake-runtime`: a runtime to try tools on.
use std::io;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use clap::ValueEnum;
use ipc_std::discover;
use ipc_std::fake::{FakeRuntime, Profile};
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

Examples:
  dotnet-ipc fake-runtime
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
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Runtime {
    Net10,
    Net9,
    Net8,
    Net9Aot,
    Net31,
}

pub(crate) fn run(args: &Args, _: &Globals) -> Result<(), Failure> {
    let profile = match args.runtime {
        Runtime::Net10 => Profile::net10(),
        Runtime::Net9 => Profile::net9(),
        Runtime::Net8 => Profile::net8(),
        Runtime::Net9Aot => Profile::net9_aot(),
        Runtime::Net31 => Profile::net31(),
    };
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
    let runtime = FakeRuntime::start_in(&dir, Profile { suspended: args.suspend, ..profile })
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
