//! The whole client with tokio, over any stream: `transport.rs` makes tokio a transport of the client.
//!
//! `cargo run -p ipc-async --example async_stream [SOCKET]`; without a socket it starts a fake runtime.
#![allow(clippy::arithmetic_side_effects, reason = "an example is short")]

#[cfg(unix)]
mod transport;

#[cfg(unix)]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn core::error::Error>> {
    use core::time::Duration;
    use ipc_async::{AsyncClient, TraceConfig};
    use ipc_proto::SetEnvironmentVariable;
    use ipc_proto::types::{EventLevel, Provider, SessionBufferMode};
    use ipc_testkit::{FakeRuntime, Profile};
    use nettrace::{AssemblerStep, EventAssembler, EventOrder, ReadOptions};

    let fake = FakeRuntime::start(Profile::net10())?;
    let path = std::env::args_os().nth(1).map_or_else(|| fake.path().to_owned(), Into::into);
    let client = AsyncClient::new(transport::Tokio(path));
    println!("{}", client.process_info().await?.command_line);
    let set = SetEnvironmentVariable { name: "SET_BY".into(), value: "async_stream".into() };
    client.call(&set, |_| ()).await?;
    println!("SET_BY={}", client.environment().await?.get("SET_BY").ok_or("it was not set")?);

    // The client uses the best command that the runtime knows. Only .NET 11 has the mode BLOCK; others report it as
    // lost.
    let (level, arguments) = (EventLevel::INFORMATIONAL, "EventCounterIntervalSec=1".into());
    let providers = [Provider { keywords: u64::MAX, level, name: "System.Runtime".into(), arguments }];
    let config = TraceConfig { buffer_mode: SessionBufferMode::BLOCK, ..TraceConfig::new(&providers) };
    let mut session = client.start_tracing(&config).await?;
    session.lost_features().iter().for_each(|loss| println!("{loss}"));
    let (mut trace, mut events) = (EventAssembler::new(EventOrder::Stream, ReadOptions::default()), 0);
    let mut second = Box::pin(tokio::time::sleep(Duration::from_secs(1)));
    loop {
        match trace.step() {
            AssemblerStep::More => tokio::select! {
                // A read that is dropped here loses nothing, not even a connection that is being opened.
                n = session.read(trace.space()) => trace.advance(n?),
                () = &mut second, if !second.is_elapsed() => session.stop(),
            },
            AssemblerStep::Event(_) => events += 1,
            AssemblerStep::End(_) => break,
        }
    }
    println!("{events} events, {:?}", trace.summary().end);
    // A session that is dropped is cancelled.
    drop(client.start_tracing(&config).await?);
    Ok(())
}

#[cfg(not(unix))]
fn main() {
    println!("this example uses Unix sockets");
}
