//! Records from many runtimes on one thread.
//!
//! `cargo run -p ipc-testkit --example many_sessions [SOCKET …]`; without sockets it starts fifty fake
//! runtimes.
//!
//! `recorder.rs` has the event loop: it polls the descriptors of all sessions, and reads events without blocking.
#![allow(clippy::arithmetic_side_effects, reason = "the counters of an example do not overflow")]

#[cfg(unix)]
mod recorder;

#[cfg(unix)]
fn main() -> Result<(), Box<dyn core::error::Error>> {
    use core::time::Duration;
    use ipc_proto::SessionEnd;
    use ipc_proto::types::{EventLevel, Provider};
    use ipc_std::{Client, TraceConfig};
    use ipc_testkit::{FakeRuntime, Profile};

    let mut clients: Vec<Client> = std::env::args_os().skip(1).map(Client::at).collect();
    let count = if clients.is_empty() { 50 } else { 0 };
    let fakes = (0..count).map(|_| FakeRuntime::start(Profile::net10())).collect::<Result<Vec<_>, _>>()?;
    clients.extend(fakes.iter().map(|fake| Client::at(fake.path())));

    let providers = [Provider {
        keywords: u64::MAX,
        level: EventLevel::INFORMATIONAL,
        name: "Microsoft-Windows-DotNETRuntime".into(),
        arguments: "".into(),
    }];
    let config = TraceConfig::new(&providers);
    let recordings = recorder::record(&clients, &config, Duration::from_secs(1))?;
    for (client, recording) in clients.iter().zip(&recordings) {
        let Some(path) = client.path() else { continue };
        println!("{}: {} events, {} lost", path.display(), recording.events, recording.lost);
        assert!(recording.error.is_none() && recording.end == Some(SessionEnd::Complete), "{recording:?}");
    }
    Ok(())
}

#[cfg(not(unix))]
fn main() {
    println!("this example polls descriptors, which only Unix has");
}
