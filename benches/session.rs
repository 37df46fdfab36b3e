//! Records a runtime under load, alternately with a `TraceSession` and with `cat`, each into a file.
//!
//! `cargo bench -p ipc-benches --bench session -- PID [PROVIDER [SECONDS]]`. The medians of five recordings are printed
//! as rows of a table.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark reports a fault by a panic"
)]

use core::time::Duration;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;
use std::time::Instant;

use ipc_proto::CollectTracing2;
use ipc_proto::types::{EventLevel, Format, Provider};
use ipc_std::{Client, Connection, TraceConfig, TraceReader};

/// The runtime's buffer: small, so that a slow reader makes it drop events.
const BUFFER_MB: u32 = 1;

/// The bytes and events that a recording received in its time.
#[derive(Clone, Copy)]
struct Recorded {
    bytes: f64,
    events: f64,
    lost: f64,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let Some(process) = args.first().map(|arg| arg.parse().unwrap()) else {
        println!("session: skipped; pass the id of a process under load");
        return;
    };
    let provider = args.get(1).map_or("Microsoft-Windows-DotNETRuntime", String::as_str);
    let seconds = args.get(2).map_or(3, |arg| arg.parse().unwrap());
    let providers = [Provider {
        keywords: u64::MAX,
        level: EventLevel::VERBOSE,
        name: provider.into(),
        arguments: "".into(),
    }];
    let client = Client::for_process(process).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let (mut ours, mut cat) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        for (recordings, record) in [(&mut ours, with_session as Record), (&mut cat, with_cat)] {
            let began = Instant::now();
            let file = File::create(&path).unwrap();
            record(&client, &providers, file, Duration::from_secs(seconds));
            let elapsed = began.elapsed().as_secs_f64();
            let bytes = path.metadata().unwrap().len() as f64;
            let mut trace = TraceReader::new(File::open(&path).unwrap());
            let mut events = 0.0;
            while trace.next_event().unwrap().is_some() {
                events += 1.0;
            }
            let lost = trace.summary().losses.lost as f64;
            let rate = |n: f64| n / elapsed / 1e6;
            recordings.push(Recorded { bytes: rate(bytes), events: rate(events), lost: rate(lost) });
        }
    }
    println!(
        "| session of {seconds} s into a file | MB a second | million events a second | million lost a second |"
    );
    println!("|---|---|---|---|");
    for (name, recordings) in [("`TraceSession`", ours), ("`cat`", cat)] {
        let [bytes, events, lost] = [|r: &Recorded| r.bytes, |r: &Recorded| r.events, |r: &Recorded| r.lost]
            .map(|field| {
                let mut values: Vec<f64> = recordings.iter().map(field).collect();
                values.sort_by(f64::total_cmp);
                values[values.len() / 2]
            });
        println!("| {name} | {bytes:.1} | {events:.3} | {lost:.3} |");
    }
}

type Record = fn(&Client, &[Provider<'_>], File, Duration);

fn with_session(client: &Client, providers: &[Provider<'_>], mut file: File, time: Duration) {
    let config = TraceConfig { buffer_mb: BUFFER_MB, rundown_keyword: 0, ..TraceConfig::new(providers) };
    let mut session = client.start_tracing(&config).unwrap();
    let stopper = session.stopper();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(time);
            stopper.stop();
        });
        io::copy(&mut session, &mut file).unwrap();
    });
}

/// Starts the session by hand, and lets `cat` copy the rest of the connection.
fn with_cat(client: &Client, providers: &[Provider<'_>], file: File, time: Duration) {
    let mut connection = Connection::new(UnixStream::connect(client.path().unwrap()).unwrap());
    let request = CollectTracing2 {
        buffer_mb: BUFFER_MB,
        format: Format::NET_TRACE,
        rundown: false,
        providers: providers.into(),
    };
    let session = connection.call(&request).unwrap().session_id;
    let stream = OwnedFd::from(connection.into_stream());
    let mut cat = Command::new("cat").stdin(stream).stdout(file).spawn().unwrap();
    thread::sleep(time);
    client.stop_tracing(session).unwrap();
    assert!(cat.wait().unwrap().success());
}
