//! The whole client over a transport that the library does not know: `transport.rs` has all of it.
//!
//! `cargo run -p ipc-testkit --example ssh_like [SOCKET]`; without a socket it starts a fake runtime.
//! `forwarder.rs` is the other side, which belongs to the transport, not to the client.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an example is short")]

#[cfg(unix)]
mod forwarder;
#[cfg(unix)]
mod transport;

#[cfg(unix)]
fn main() -> Result<(), Box<dyn core::error::Error>> {
    use core::time::Duration;
    use std::path::PathBuf;

    use ipc_proto::types::{EventLevel, Provider, SessionBufferMode};
    use ipc_std::{Client, TraceConfig, TraceReader};
    use ipc_testkit::{FakeRuntime, Profile};

    let fake = FakeRuntime::start(Profile::net10())?;
    let path = std::env::args_os().nth(1).map_or_else(|| fake.path().to_owned(), PathBuf::from);
    let address = forwarder::start(path)?;
    let client = Client::over(address.clone(), move |_| transport::connect(&address));

    println!("{}", client.process_info()?.command_line);
    client.set_environment_variable("SET_BY", Some("ssh_like"))?;
    println!("SET_BY={}", client.environment()?.get("SET_BY").ok_or("it was not set")?);

    // The client uses the best command that the runtime knows. Only .NET 11 has the mode BLOCK; others report it as
    // lost.
    let (level, arguments) = (EventLevel::INFORMATIONAL, "EventCounterIntervalSec=1".into());
    let providers = [Provider { keywords: u64::MAX, level, name: "System.Runtime".into(), arguments }];
    let config = TraceConfig { buffer_mode: SessionBufferMode::BLOCK, ..TraceConfig::new(&providers) };
    let session = client.start_tracing(&config)?;
    for loss in session.lost_features().iter() {
        println!("{}: {loss}", session.command());
    }
    let stopper = session.stopper();
    let mut trace = TraceReader::new(session);
    let mut events = 0;
    while trace.next_event()?.is_some() {
        events += 1;
        if events == 1 {
            stopper.stop(); // from here or from any thread
        }
    }
    let session = trace.into_inner();
    println!("{events} events, {:?}", session.end());
    assert!(events > 0 && session.is_complete());

    // A session that is cancelled ends immediately, even while a thread waits for its next byte.
    let mut session = client.start_tracing(&TraceConfig::new(&providers))?;
    let stopper = session.stopper();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        stopper.cancel();
    });
    let cancelled = std::io::copy(&mut session, &mut std::io::sink());
    println!("{}", cancelled.err().ok_or("it was cancelled")?);
    Ok(())
}

#[cfg(not(unix))]
fn main() {
    println!("this example forwards to a Unix socket");
}
