//! A client with blocking I/O. It describes a process, and traces it for a second.
//!
//! `cargo run -p ipc-std --features fake --example blocking [SOCKET]`; without a socket it starts a fake runtime.
//!
//! `client.rs` speaks the protocol, over the streams of `transport.rs`. `../tokio` is the same with `.await`.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an example is short")]

#[cfg(unix)]
mod client;
#[cfg(unix)]
mod transport;

#[cfg(unix)]
fn main() -> Result<(), Box<dyn core::error::Error>> {
    use core::time::Duration;
    use ipc_proto::SessionEnd;
    use ipc_std::fake::{FakeRuntime, Profile};
    use std::path::PathBuf;

    // A runtime that does not know the newest command.
    let fake = FakeRuntime::start(Profile { version: 6, ..Profile::net8() })?;
    let path = std::env::args_os().nth(1).map_or_else(|| fake.path().to_owned(), PathBuf::from);

    println!("{}", client::process_info(&path)?);
    let mut stream = Vec::new();
    let end = client::trace(&path, Duration::from_secs(1), &mut stream)?;
    println!("{} bytes, {end:?}", stream.len());
    assert!(end == SessionEnd::Complete && stream.starts_with(b"Nettrace"));
    Ok(())
}

#[cfg(not(unix))]
fn main() {
    println!("this example uses Unix sockets");
}
