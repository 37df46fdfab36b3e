//! `demo`: shows the features of the library on a fake runtime in this process.
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use std::{fs, io, thread};

use dotnet_ipc_sans_io::syntax::hex;
use dotnet_ipc_sans_io::syntax::provider::ProviderSpec;
use ipc_proto::types::{DumpFlags, DumpType};
use ipc_proto::wire::Part;
use ipc_proto::{Direction, GenerateCoreDump3, Message, Parsed};
use ipc_std::discover::{self, ScanConfig};
use ipc_std::{Client, Error, ErrorKind, Observer, Timeouts, TraceConfig};
use ipc_testkit::{FakeRuntime, Fault, Profile};
use serde::Serialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::output::field::Field;
use crate::output::rows;
use crate::output::stdout::{json_to_stdout, to_stdout};
use crate::process::process_fields::ProcessFields;
use crate::recording::trace_profile::TraceProfile;
use crate::run::signals;
use crate::run::threads::lock;
use crate::run::{Failure, Globals, Kind, failure};

/// Show the features of the tool on a fake runtime, without .NET
///
/// Every number comes from the run itself. If something is not as described, the demo fails.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("demo.txt"))]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, globals: &Globals) -> Result<(), Failure> {
    let private = private_directory()?;
    let show = |title: &str, lines: Vec<String>| show(globals, title, &lines);

    let runtime = start(private.path(), Profile::net10())?;
    show("Which runtimes are there?", discovery(&runtime, private.path())?)?;
    show("A command is a message, and so is its response", messages(&runtime)?)?;
    show("The response, decoded, describes the process", description(&runtime)?)?;
    show("Its environment", environment(&runtime)?)?;
    show("A trace", trace(&runtime)?)?;
    show("A refusal is a response as well", refusal(&runtime)?)?;
    drop(runtime);
    let old = Profile { version: 5, clr_product_version: "5.0.17".to_owned(), ..Profile::net8() };
    show("An older runtime gets the commands that it knows", steps_down(&start(private.path(), old)?)?)?;
    show("A silent runtime delays nothing", silence(&start(private.path(), Profile::net10())?)?)?;
    show("End of the demo", vec!["Everything was as described. Try `dotnet-ipc ps` next.".to_owned()])
}

/// Creates a directory that other tools do not search, so that no request of theirs changes the output. A signal
/// handler removes the directory.
fn private_directory() -> Result<TempDir, Failure> {
    let created = Arc::new(Mutex::new(None::<PathBuf>));
    // Signals are handled before the directory exists, so that none ends the tool without removing it.
    signals::handle({
        let created = Arc::clone(&created);
        move |_| {
            let _ = lock(&created).take().map(fs::remove_dir_all);
            false
        }
    })?;
    let mut created = lock(&created);
    let private = tempfile::Builder::new().prefix("dotnet-ipc-demo-").tempdir();
    let private = private.map_err(|e| Failure::io("cannot create a temporary directory", &e))?;
    *created = Some(private.path().to_owned());
    Ok(private)
}

fn start(directory: &Path, profile: Profile) -> Result<FakeRuntime, Failure> {
    let runtime = FakeRuntime::start_in(directory, profile);
    runtime.map_err(|e| Failure::io(format_args!("cannot listen in {}", directory.display()), &e))
}

/// A step as JSON.
#[derive(Debug, Serialize)]
struct DemoStep<'s> {
    step: &'s str,
    lines: &'s [String],
}

fn show(globals: &Globals, title: &str, lines: &[String]) -> Result<(), Failure> {
    if globals.json {
        return json_to_stdout(&DemoStep { step: title, lines });
    }
    to_stdout(|out| {
        writeln!(out, "{title}")?;
        lines.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
        writeln!(out)
    })
}

/// Fails the demo if something is not as it describes.
fn check(so: bool, fault: &str) -> Result<(), Failure> {
    let failed = || Failure::new(Kind::Other, format!("the demo failed: {fault}"));
    so.then_some(()).ok_or_else(failed)
}

fn discovery(runtime: &FakeRuntime, directory: &Path) -> Result<Vec<String>, Failure> {
    let config = ScanConfig { directory: Some(directory), ..ScanConfig::default() };
    let scan = discover::scan(&config);
    let found: Vec<_> = scan.searches.iter().filter_map(|search| search.path()).collect();
    check(found.contains(&runtime.path()), "the runtime is not found")?;
    Ok(vec![
        "A runtime listens at a socket. The name of the socket contains its process ID.".to_owned(),
        format!("Sockets in a directory of the demo: {}.", found.len()),
        format!("  {}", runtime.path().display()),
    ])
}

fn messages(runtime: &FakeRuntime) -> Result<Vec<String>, Failure> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let observer = Observer::new({
        let seen = Arc::clone(&seen);
        move |message| lock(&seen).push((message.direction, message.bytes.to_vec()))
    });
    Client::at(runtime.path()).with_observer(observer).process_info()?;
    let seen = lock(&seen);
    let [(Direction::ToRuntime, request), (Direction::ToClient, answer)] = seen.as_slice() else {
        return Err(Failure::new(Kind::Other, "the demo failed: not one request and one response"));
    };
    check(request.len() == Message::HEADER_LEN, "the request is not 20 bytes long")?;
    let mut lines = vec![format!("Sent, {} bytes:", request.len())];
    lines.extend(header(request));
    lines.push(format!(
        "Received, {} bytes: a header and {} bytes of payload.",
        answer.len(),
        answer.len().saturating_sub(Message::HEADER_LEN)
    ));
    lines.extend(header(answer));
    lines.push(format!("  {} …", hex::spaced(answer.get(Message::HEADER_LEN..36).unwrap_or_default())));
    Ok(lines)
}

/// Returns the fields of a header, one per line.
fn header(message: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut see = |part: &Part<'_>| {
        if part.offset < Message::HEADER_LEN {
            lines.push(format!("  {:41}  {}", hex::spaced(part.bytes), Field(part)));
        }
    };
    // The client has checked the message, so decoding cannot fail.
    let _ = Message::inspect(message, None, &mut see);
    lines
}

fn description(runtime: &FakeRuntime) -> Result<Vec<String>, Failure> {
    let info = Client::at(runtime.path()).process_info()?;
    check(info.process_id == u64::from(runtime.process_id()), "it is another process")?;
    check(info.clr_product_version == *runtime.profile().clr_product_version, "it is another version")?;
    let line = |(key, value): (String, Value)| {
        format!(
            "{:33} {}",
            format!("{key}:"),
            value.as_str().map_or_else(|| value.to_string(), str::to_owned)
        )
    };
    Ok(rows::fields(&ProcessFields::from(&info)).into_iter().map(line).collect())
}

fn environment(runtime: &FakeRuntime) -> Result<Vec<String>, Failure> {
    let environment = Client::at(runtime.path()).environment()?;
    let entries: Vec<String> = environment.entries().map(|entry| entry.to_string()).collect();
    check(entries == runtime.profile().environment, "it is another environment")?;
    let mut lines = vec![format!(
        "It can be longer than any message, so it follows the response. Here it has {} entries:",
        entries.len()
    )];
    lines.extend(entries.iter().map(|entry| format!("  {entry}")));
    Ok(lines)
}

fn trace(runtime: &FakeRuntime) -> Result<Vec<String>, Failure> {
    let specs = TraceProfile::DEFAULT.iter().flat_map(|profile| profile.providers());
    let providers: Vec<_> = specs.map(ProviderSpec::to_provider).collect();
    let mut session = Client::at(runtime.path()).start_tracing(&TraceConfig::new(&providers))?;
    let command = failure::name_of(session.command());
    let mut stream = vec![0; 64];
    let failed = |e: io::Error| {
        e.downcast::<Error>().map_or_else(|e| Failure::io("cannot read the trace", &e), Into::into)
    };
    let first = io::Read::read(&mut session, &mut stream).map_err(failed)?;
    stream.truncate(first);
    let stopper = session.stopper();
    thread::scope(|scope| {
        scope.spawn(move || stopper.stop());
        io::Read::read_to_end(&mut session, &mut stream).map_err(failed)
    })?;
    check(session.is_complete() && session.received() == stream.len() as u64, "the trace is incomplete")?;
    let magic: Vec<u8> = stream.iter().take(8).copied().collect();
    check(magic == b"Nettrace", "the trace does not begin with its magic")?;
    Ok(vec![
        format!(
            "{command} enables {} providers and starts session 0x{:x}.",
            providers.len(),
            session.session_id()
        ),
        format!(
            "The connection of the response becomes the stream; it begins with \"{}\".",
            magic.escape_ascii()
        ),
        format!(
            "After its first {first} bytes StopTracing was sent on another connection. Reading continued"
        ),
        format!("until the end of the stream: {} bytes in total, and the trace is complete.", stream.len()),
    ])
}

fn refusal(runtime: &FakeRuntime) -> Result<Vec<String>, Failure> {
    let dump = GenerateCoreDump3 {
        dump_name: "/tmp/demo.dmp".into(),
        dump_type: DumpType::NORMAL,
        flags: DumpFlags::NONE,
    };
    let mut connection = Client::at(runtime.path()).connect()?;
    let Err(refused) = connection.call(&dump) else {
        return check(false, "the fake runtime writes a dump").map(|()| Vec::new());
    };
    let Error::Refused { hresult, message: Some(message), .. } = &refused else { return Err(refused.into()) };
    Ok(vec![
        "The runtime refuses to write a dump, with a number and a message:".to_owned(),
        format!("  {hresult:?}"),
        format!("  \"{message}\""),
    ])
}

fn steps_down(runtime: &FakeRuntime) -> Result<Vec<String>, Failure> {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let observer = Observer::new({
        let sent = Arc::clone(&sent);
        move |message| {
            if let (Direction::ToRuntime, Ok(Parsed::Complete { value, .. })) =
                (message.direction, Message::parse(message.bytes))
            {
                lock(&sent).push(failure::name_of(value.code));
            }
        }
    });
    let info = Client::at(runtime.path()).with_observer(observer).process_info()?;
    let names = lock(&sent);
    let expected = ["GetProcessInfo3", "GetProcessInfo2", "GetProcessInfo"];
    check(names.as_slice() == expected, "the client sent other commands")?;
    check(info.clr_product_version.to_utf8().is_none(), "the oldest command reports a version")?;
    Ok(vec![
        format!(
            "This one is .NET {}. It received {} requests, each on a new connection:",
            runtime.profile().clr_product_version,
            names.len()
        ),
        format!("  {}", names.join(", then ")),
        format!(
            "It knows only the last, which reports its command line, \"{}\", but no version.",
            info.command_line
        ),
    ])
}

fn silence(runtime: &FakeRuntime) -> Result<Vec<String>, Failure> {
    let call = Duration::from_millis(300);
    runtime.set_fault(Fault::Silent);
    let asked = Instant::now();
    let answer =
        Client::at(runtime.path()).with_timeouts(Timeouts { call, ..Timeouts::default() }).process_info();
    let waited = asked.elapsed();
    let Err(e) = answer else { return check(false, "a silent runtime responds").map(|()| Vec::new()) };
    check(e.kind() == ErrorKind::Timeout && waited >= call, "the deadline is not kept")?;
    Ok(vec![
        format!(
            "It accepts a command and never responds. With a deadline of {} ms the call failed after {} ms:",
            call.as_millis(),
            waited.as_millis()
        ),
        format!("  {e}"),
    ])
}
