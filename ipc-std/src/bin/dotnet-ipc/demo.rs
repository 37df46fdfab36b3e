//! `demo`: what the library does, shown on a runtime in this process.
use core::time::Duration;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use std::{fs, io, thread};

use ipc_proto::types::{DumpFlags, DumpType};
use ipc_proto::wire::Part;
use ipc_proto::{GenerateCoreDump3, Message};
use ipc_std::fake::{FakeRuntime, Fault, Profile};
use ipc_std::{Client, Direction, Error, ErrorKind, Observer, Timeouts, TraceConfig, discover};
use serde_json::{Value, json};

use crate::decode::Field;
use crate::failure::{self, Failure, Kind};
use crate::output::{json_to_stdout, to_stdout};
use crate::providers::{self, Selected};
use crate::{Globals, hex, info, signals};

/// Show what this tool and its library do, on a runtime made up for it; needs no .NET
///
/// Every number shown comes from what has just happened, and if something is not as it is told the demo fails.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dotnet-ipc demo
  dotnet-ipc demo --json | jq -r .step")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, globals: &Globals) -> Result<(), Failure> {
    let stage = discover::directory();
    let runtime = start(&stage, Profile::net10())?;
    // All runtimes here have the same name, one after the other.
    let socket = runtime.path().to_owned();
    signals::handle(move |signal| {
        let _ = fs::remove_file(&socket);
        signals::obey(signal);
    })?;
    let tell = |title: &str, lines: Vec<String>| tell(globals, title, &lines);

    tell("Who is there?", discovery(&runtime)?)?;
    tell("A command is a message, and so is its answer", messages(&runtime)?)?;
    tell("Decoded, that is who the process is", description(&runtime)?)?;
    tell("Its environment", environment(&runtime)?)?;
    tell("A trace", trace(&runtime)?)?;
    tell("A refusal is an answer too", refusal(&runtime)?)?;
    drop(runtime);
    let old = Profile { version: 5, clr_product_version: "5.0.17".to_owned(), ..Profile::net8() };
    tell("An older runtime is asked as it can be asked", steps_down(&start(&stage, old)?)?)?;
    tell("A silent runtime holds up nobody", silence(&start(&stage, Profile::net10())?)?)?;
    tell("That was all", vec!["Everything was as told. Try `dotnet-ipc ps` next.".to_owned()])
}

fn start(stage: &Path, profile: Profile) -> Result<FakeRuntime, Failure> {
    let runtime = FakeRuntime::start_in(stage, profile);
    runtime.map_err(|e| Failure::io(format_args!("cannot listen in {}", stage.display()), &e))
}

fn tell(globals: &Globals, title: &str, lines: &[String]) -> Result<(), Failure> {
    if globals.output.json {
        return json_to_stdout(&json!({ "step": title, "lines": lines }));
    }
    to_stdout(|out| {
        writeln!(out, "{title}")?;
        lines.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
        writeln!(out)
    })
}

/// Fails the demo unless things are as it tells them.
fn check(so: bool, what: &str) -> Result<(), Failure> {
    let failed = || Failure::new(Kind::Other, format!("the demo does not go as it should: {what}"));
    so.then_some(()).ok_or_else(failed)
}

fn discovery(runtime: &FakeRuntime) -> Result<Vec<String>, Failure> {
    let (found, _) = discover::search_all(&Timeouts::default());
    let found: Vec<_> = found.iter().filter_map(|search| search.path()).collect();
    check(found.contains(&runtime.path()), "the runtime is not found")?;
    Ok(vec![
        "A runtime listens at a socket whose name tells its process id.".to_owned(),
        format!("Sockets found: {}. This is the demo's own:", found.len()),
        format!("  {}", runtime.path().display()),
    ])
}

fn messages(runtime: &FakeRuntime) -> Result<Vec<String>, Failure> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let observer = Observer::new({
        let seen = Arc::clone(&seen);
        move |message| {
            seen.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((message.direction, message.bytes.to_vec()))
        }
    });
    Client::at(runtime.path()).with_observer(observer).process_info()?;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let [(Direction::Sent, request), (Direction::Received, answer)] = seen.as_slice() else {
        return Err(Failure::new(
            Kind::Other,
            "the demo does not go as it should: not one request and one answer",
        ));
    };
    check(request.len() == Message::HEADER_LEN, "the request is not 20 bytes long")?;
    let mut lines = vec![format!("Sent, {} bytes:", request.len())];
    lines.extend(header(request));
    lines.push(format!(
        "Received, {} bytes: a header and {} of payload.",
        answer.len(),
        answer.len().saturating_sub(Message::HEADER_LEN)
    ));
    lines.extend(header(answer));
    lines.push(format!("  {} …", hex::spaced(answer.get(Message::HEADER_LEN..36).unwrap_or_default())));
    Ok(lines)
}

/// The fields of a header, a line each.
fn header(message: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut see = |part: &Part<'_>| {
        if part.offset < Message::HEADER_LEN {
            let Field { name, text, .. } = Field::new(part);
            lines.push(format!("  {:41}  {name}: {text}", hex::spaced(part.bytes)));
        }
    };
    // What is wrong with it, if anything is, the caller has seen.
    let _ = Message::inspect(message, None, &mut see);
    lines
}

fn description(runtime: &FakeRuntime) -> Result<Vec<String>, Failure> {
    let info = Client::at(runtime.path()).process_info()?;
    check(info.process_id == u64::from(runtime.process_id()), "the process is another one")?;
    check(info.clr_product_version == *runtime.profile().clr_product_version, "the version is another one")?;
    let line = |(key, value): (String, Value)| {
        format!(
            "{:33} {}",
            format!("{key}:"),
            value.as_str().map_or_else(|| value.to_string(), str::to_owned)
        )
    };
    Ok(info::fields(&info).into_iter().map(line).collect())
}

fn environment(runtime: &FakeRuntime) -> Result<Vec<String>, Failure> {
    let environment = Client::at(runtime.path()).environment()?;
    let entries: Vec<String> = environment.entries().iter().map(ToString::to_string).collect();
    check(entries == runtime.profile().environment, "the environment is another one")?;
    let mut lines = vec![format!(
        "It may be longer than any message, so it follows the answer. Here it has {} entries:",
        entries.len()
    )];
    lines.extend(entries.iter().map(|entry| format!("  {entry}")));
    Ok(lines)
}

fn trace(runtime: &FakeRuntime) -> Result<Vec<String>, Failure> {
    let (selected, _) = providers::select(&[], &[])?;
    let providers: Vec<_> = selected.iter().map(Selected::to_provider).collect();
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
    check(session.is_complete() && session.received() == stream.len() as u64, "the trace is cut off")?;
    let magic: Vec<u8> = stream.iter().take(8).copied().collect();
    check(magic == b"Nettrace", "the trace is none")?;
    Ok(vec![
        format!(
            "{command} switches on {} providers and begins session 0x{:x}.",
            providers.len(),
            session.session_id()
        ),
        format!("The answer's connection becomes the stream; it begins with \"{}\".", magic.escape_ascii()),
        format!(
            "After its first {first} bytes StopTracing went out, on a connection of its own, while this one"
        ),
        format!("was read on: {} bytes in all, and nothing is cut off.", stream.len()),
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
        return check(false, "a runtime that is none writes a dump").map(|()| Vec::new());
    };
    let Error::Refused { hresult, message: Some(message), .. } = &refused else { return Err(refused.into()) };
    Ok(vec![
        "Asked for a dump, the runtime says no, by a number and in words:".to_owned(),
        format!("  {hresult:?}"),
        format!("  \"{message}\""),
    ])
}

fn steps_down(runtime: &FakeRuntime) -> Result<Vec<String>, Failure> {
    let info = Client::at(runtime.path()).process_info()?;
    let asked: Vec<_> = runtime.requests().iter().filter_map(|request| request.code()).collect();
    let names: Vec<_> = asked.iter().map(|code| failure::name_of(*code)).collect();
    check(names == ["GetProcessInfo3", "GetProcessInfo2", "GetProcessInfo"], "the commands are others")?;
    check(info.clr_product_version.to_utf8().is_none(), "the oldest command tells a version")?;
    Ok(vec![
        format!(
            "This one is .NET {}. It was asked {} times, each time on a new connection:",
            runtime.profile().clr_product_version,
            names.len()
        ),
        format!("  {}", names.join(", then ")),
        format!("It knew the last, which tells its command line, \"{}\", but no version.", info.command_line),
    ])
}

fn silence(runtime: &FakeRuntime) -> Result<Vec<String>, Failure> {
    let call = Duration::from_millis(300);
    runtime.set_fault(Fault::Silent);
    let asked = Instant::now();
    let answer =
        Client::at(runtime.path()).with_timeouts(Timeouts { call, ..Timeouts::default() }).process_info();
    let waited = asked.elapsed();
    let Err(e) = answer else { return check(false, "a silent runtime answers").map(|()| Vec::new()) };
    check(
        e.kind() == ErrorKind::Timeout && waited >= call,
        "a silent runtime is not waited for as long as it should",
    )?;
    Ok(vec![
        format!(
            "It takes a command and never answers. With a deadline of {} ms this comes after {} ms:",
            call.as_millis(),
            waited.as_millis()
        ),
        format!("  {e}"),
    ])
}
