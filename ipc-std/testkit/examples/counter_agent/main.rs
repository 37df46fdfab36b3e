//! Watches the counters of all processes of a machine on one thread.
//!
//! `cargo run -p ipc-testkit --example counter_agent [all | SOCKET …]`. `all` watches the processes
//! of this machine, also those that start later, until Ctrl-C; without arguments it watches twenty fake runtimes for two
//! seconds.
//!
//! `agent.rs` has the event loop.

#[cfg(unix)]
mod agent;

#[cfg(unix)]
fn main() -> Result<(), Box<dyn core::error::Error>> {
    use core::time::Duration;
    use ipc_std::Client;
    use ipc_testkit::{FakeRuntime, Profile};
    use nettrace_analysis::counters::CounterConfig;

    let selections = vec!["System.Runtime".parse()?, "Lab-Counters".parse()?];
    let mut agent = agent::Agent::new(CounterConfig { selections, ..CounterConfig::default() });
    let sockets: Vec<_> = std::env::args_os().skip(1).collect();
    let is_all = sockets.iter().any(|socket| socket == "all");
    let count = if sockets.is_empty() { 20 } else { 0 };
    let fakes = (0..count).map(|_| FakeRuntime::start(Profile::net10())).collect::<Result<Vec<_>, _>>()?;
    let fake_sockets = fakes.iter().map(|fake| fake.path().as_os_str().to_owned());
    for socket in sockets.iter().filter(|_| !is_all).cloned().chain(fake_sockets) {
        agent.add(&Client::at(socket))?;
    }
    let length = if fakes.is_empty() { Duration::from_secs(86_400) } else { Duration::from_secs(2) };
    agent.run(length, is_all)?;
    println!("{} processes, {} samples", agent.processes(), agent.samples());
    Ok(())
}

#[cfg(not(unix))]
fn main() {
    println!("this example polls descriptors, which only Unix has");
}
