//! A client with tokio. It describes a process, and traces it for a second.
//!
//! `cargo run -p ipc-std --features fake --example tokio [SOCKET]`; without a socket it starts a fake runtime.
//!
//! `client.rs` speaks the protocol. It differs from `../blocking/client.rs` only by `async` and `.await`, which a test
//! checks. So an asynchronous client needs only another `transport.rs`.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an example is short")]

#[cfg(unix)]
mod client;
#[cfg(unix)]
mod transport;

#[cfg(unix)]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn core::error::Error>> {
    use core::time::Duration;
    use ipc_proto::SessionEnd;
    use ipc_std::fake::{FakeRuntime, Profile};
    use std::path::PathBuf;

    // A runtime that does not know the newest command.
    let fake = FakeRuntime::start(Profile { version: 6, ..Profile::net8() })?;
    let path = std::env::args_os().nth(1).map_or_else(|| fake.path().to_owned(), PathBuf::from);

    println!("{}", client::process_info(&path).await?);
    let mut stream = Vec::new();
    let end = client::trace(&path, Duration::from_secs(1), &mut stream).await?;
    println!("{} bytes, {end:?}", stream.len());
    assert!(end == SessionEnd::Complete && stream.starts_with(b"Nettrace"));
    Ok(())
}

#[cfg(not(unix))]
fn main() {
    println!("this example uses Unix sockets");
}
