//! WebSockets, as .NET in a browser uses them: the runtime connects to a monitor, and opens a WebSocket for each
//! command.
//!
//! `cargo run -p ipc-std --example websocket [ADDRESS | URL]`; with an address, for example `127.0.0.1:8088`, it is
//! only the monitor, and waits for a page that has the printed URL in `DOTNET_DiagnosticPorts`. With a URL it is only
//! the runtime, and connects to that URL, for example to `dotnet-dsrouter server-websocket`.
//!
//! `socket.rs` makes a byte stream of a WebSocket; everything else is as with any transport.
#![allow(clippy::arithmetic_side_effects, reason = "an example must be easy to read")]

#[cfg(unix)]
mod monitor;
#[cfg(unix)]
mod runtime;
#[cfg(unix)]
mod socket;

#[cfg(unix)]
fn main() -> Result<(), Box<dyn core::error::Error>> {
    use core::time::Duration;
    use ipc_proto::types::{ProcessInfo2, Status};
    use ipc_proto::{GetProcessInfo2, Guid, ResumeRuntime};

    let mut runtime = runtime::Runtime::new(ProcessInfo2 {
        process_id: 42, // the process id of every page
        runtime_cookie: Guid(*b"drawn by a page."),
        command_line: "/managed/app.dll".into(),
        os: "Browser".into(),
        arch: "wasm".into(),
        managed_entrypoint_assembly_name: "app".into(),
        clr_product_version: "10.0.0".into(),
    });
    let argument = std::env::args().nth(1);
    if let Some(url) = argument.as_deref().filter(|argument| argument.starts_with("ws:")) {
        runtime.run(url);
        return Ok(());
    }

    let monitor = monitor::Monitor::bind(argument.as_deref().unwrap_or("127.0.0.1:0"))?;
    println!("DOTNET_DiagnosticPorts={}", monitor.url());
    std::thread::scope(|scope| {
        if argument.is_none() {
            let url = monitor.url();
            scope.spawn(|| runtime.run(url));
        }
        let mut connection = monitor.connection()?;
        let info = connection.call(&GetProcessInfo2 {})?;
        println!("{} runs .NET {} on {}", info.command_line, info.clr_product_version, info.os);
        let events = monitor
            .trace(["Microsoft-Windows-DotNETRuntime", runtime::PROVIDER], Duration::from_millis(200))?;
        println!("{events} events");
        assert!(argument.is_some() || events > 1, "{events}");
        assert_eq!(monitor.connection()?.call(&ResumeRuntime {})?, Status::OK);
        Ok(())
    })
}

#[cfg(not(unix))]
fn main() {
    println!("this example is for Unix");
}
