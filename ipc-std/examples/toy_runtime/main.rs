//! A runtime: the diagnostics of a virtual machine of your own.
//!
//! `cargo run -p ipc-std --example toy_runtime [FOLDER]`. In a folder, for example `/tmp`, it serves every client until
//! Ctrl-C; without a folder it serves a demonstration.
//!
//! It leaves out dumps, profilers, perf maps, startup hooks and `user_events`, and refuses these as not supported. In all
//! other commands the conformance kit finds no difference to a runtime: `dotnet-ipc conformance --socket …`.
//!
//! `runtime.rs` has the answers and the streams.
#![allow(clippy::arithmetic_side_effects, reason = "an example must be easy to read")]
use core::error::Error;
use std::path::{Path, PathBuf};
use std::thread;

use ipc_proto::plan::Flavour;
use ipc_proto::types::{EventLevel, ProcessInfo3, Provider};
use ipc_proto::{Advertise, Guid};
use ipc_std::{Client, Server, TraceConfig, TraceReader};

mod runtime;

fn main() -> Result<(), Box<dyn Error>> {
    let process_id = u64::from(std::process::id());
    let info = ProcessInfo3 {
        version: 1,
        process_id,
        runtime_cookie: Guid(*b"drawn at startup"),
        command_line: "/opt/toy program.toy".into(),
        os: "Linux".into(),
        arch: "x64".into(),
        managed_entrypoint_assembly_name: "program".into(),
        clr_product_version: "10.0.0-toy".into(),
        portable_rid: "linux-x64".into(),
    };
    let temporary = tempfile::tempdir()?;
    let argument = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = argument.as_deref().unwrap_or_else(|| temporary.path());
    let mut server = Server::new(&Advertise { runtime_cookie: info.runtime_cookie, process_id, future: 0 })?;
    server.listen(folder)?;
    let path = server.path().map(Path::to_owned).unwrap_or_default();
    println!("the toy listens at {}", path.display());
    // Like Mono, the toy has no dumps, profilers, perf maps and startup hooks.
    let mut toy = runtime::Toy::new(info, Flavour::Mono, &[argument.is_none()]);
    let stopper = server.stopper();
    let demo = thread::spawn(move || {
        let shown = if argument.is_none() { demonstrate(&Client::at(path)) } else { return Ok(()) };
        stopper.stop();
        shown
    });
    toy.run(&mut server)?;
    demo.join().map_err(|_| "the demonstration panicked")?.map_err(|e| e as Box<dyn Error>)
}

/// Makes the calls that a tool would make.
fn demonstrate(client: &Client) -> Result<(), Box<dyn Error + Send + Sync>> {
    let info = client.process_info()?;
    println!("{} runs .NET {}", info.command_line, info.clr_product_version);
    client.set_environment_variable("SEEN_BY", Some("a tool"))?;
    println!("{} variable", client.environment()?.variables().count());
    let name = runtime::PROVIDER.into();
    let ticks = Provider { keywords: 1, level: EventLevel::INFORMATIONAL, name, arguments: "".into() };
    let session = client.start_tracing(&TraceConfig::new(&[ticks]))?;
    let stopper = session.stopper();
    client.resume()?;
    let (mut trace, mut events) = (TraceReader::new(session), 0);
    while trace.next_event()?.is_some() {
        events += 1;
        if events == 5 {
            stopper.stop();
        }
    }
    println!("{events} events, then {:?}", trace.summary().end);
    match client.set_startup_profiler(Guid::NIL, "profiler.so") {
        Err(e) => println!("{e}"),
        Ok(()) => return Err("a toy cannot load profilers".into()),
    }
    Ok(())
}
