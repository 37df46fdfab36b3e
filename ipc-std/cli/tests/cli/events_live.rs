//! `dotnet-ipc events` of a runtime that records.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(unix)]
use std::os::unix::net::UnixStream;

use ipc_proto::{Code, CollectTracing2, CollectTracing4};
use ipc_testkit::{FakeRuntime, Fault, Profile, Response};
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::tool::{Ran, finish, run, tool};
use crate::traces::{analysed, lossy, path};

const COLLECT_TRACING_2: Code = Code(0x0203);
const COLLECT_TRACING_3: Code = Code(0x0204);
const COLLECT_TRACING_4: Code = Code(0x0205);
const STOP_TRACING: Code = Code(0x0201);

/// Starts a runtime that sends this trace, and its last byte only after the request to stop.
fn traced(stream: Vec<u8>) -> FakeRuntime {
    let runtime = FakeRuntime::start(Profile::net8()).unwrap();
    runtime.on(COLLECT_TRACING_2, move |_| Response::Trace(stream.clone()));
    runtime
}

fn asked(runtime: &FakeRuntime, code: Code) -> bool {
    runtime.requests().iter().any(|request| request.code() == Some(code))
}

#[test]
fn only_events_of_enabled_providers_are_shown() {
    const TRACE: &str = "gen-net10-small-mixed.nettrace";
    let runtime = traced(fs::read(path(TRACE)).unwrap());
    let socket = runtime.path().to_str().unwrap();
    let all = run(&["events", &path(TRACE), "--json"]).well().lines();
    let providers: BTreeSet<&str> = all.iter().map(|event| event["provider"].as_str().unwrap()).collect();
    assert!(providers.len() > 1 && providers.contains("System.Runtime"), "{providers:?}");
    for (args, shown) in [
        (&[][..], &["Microsoft-Windows-DotNETRuntime"][..]),
        (&["--provider", "system.runtime"], &["System.Runtime"]),
        (
            &["--provider", "System.Runtime,Microsoft-DotNETCore-EventPipe"],
            &["System.Runtime", "Microsoft-DotNETCore-EventPipe"],
        ),
        (&["--only", "Microsoft-Windows-DotNETRuntime/1"], &["Microsoft-Windows-DotNETRuntime"]),
    ] {
        let args = [&["events", "--socket", socket, "--duration", "300ms", "--json"], args].concat();
        let mut expected = all.clone();
        expected.retain(|event| shown.contains(&event["provider"].as_str().unwrap()));
        if args.contains(&"--only") {
            expected.retain(|event| event["id"] == 1);
        }
        for event in &mut expected {
            event["stack"] = json!([]);
        }
        assert_eq!(run(&args).well().lines(), expected, "{args:?}");
    }
    assert!(asked(&runtime, STOP_TRACING));
    assert!(asked(&runtime, Code(0x0401)), "the runtime may be suspended");
}

/// The events of a process are recorded without rundown and sampler, and by default without stacks.
#[test]
fn a_session_for_events_to_show() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let socket = runtime.path().to_str().unwrap();
    for (args, code, flags) in
        [(&[][..], COLLECT_TRACING_3, &[0, 0][..]), (&["--stacks"], COLLECT_TRACING_2, &[0])]
    {
        runtime.on(COLLECT_TRACING_4, |_| Response::Trace(Vec::new()));
        runtime.on(code, |_| Response::Trace(fs::read(path("gen-net10-lab-small.nettrace")).unwrap()));
        let before = runtime.requests().len();
        run(&[&["events", "--socket", socket, "--duration", "0"], args].concat()).well();
        let requests = runtime.requests();
        let request = requests[before..].iter().find(|request| request.code() == Some(code));
        let bytes = &request.unwrap_or_else(|| panic!("{args:?}: {requests:?}")).bytes;
        // After the header, the buffer and the format: whether there is a rundown, and in CollectTracing3 whether there
        // are stacks.
        assert_eq!(&bytes[28..28 + flags.len()], flags, "{args:?}");
        let sampler: Vec<u8> = "SampleProfiler".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(!bytes.windows(sampler.len()).any(|window| window == sampler), "{args:?}");
    }
}

#[test]
fn stacks_have_the_names_of_the_process() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let socket = runtime.path().to_str().unwrap();
    let startup = fs::read(analysed("net10-startup.nettrace")).unwrap();
    for code in [COLLECT_TRACING_2, COLLECT_TRACING_4] {
        let startup = startup.clone();
        runtime.on(code, move |_| Response::Trace(startup.clone()));
    }
    let sampler = "Microsoft-DotNETCore-SampleProfiler";
    let args = ["events", "--socket", socket, "--stacks", "--json", "--duration", "300ms"];
    let events = run(&[&args[..], &["--provider", &format!("{sampler}:0")]].concat()).well().lines();
    assert!(!events.is_empty() && events.iter().all(|event| event["provider"] == sampler));
    // Precompiled methods are in the rundown only, which ends the trace.
    let names = |event: &Value| event["stack"].as_array().unwrap().iter().all(|frame| frame != "?!?");
    assert!(events.iter().all(names));
    let first = events[0]["stack"].as_array().unwrap();
    assert!(first.iter().all(|frame| !frame.as_str().unwrap().starts_with("0x")), "{first:?}");

    let requests = runtime.requests();
    let sessions: Vec<_> = requests.iter().filter(|request| request.code() != Some(STOP_TRACING)).collect();
    let codes: Vec<_> = sessions.iter().filter_map(|request| request.code()).collect();
    let (main, names) = (COLLECT_TRACING_2, COLLECT_TRACING_4);
    // The rundown is requested after the session has started, so that no method is compiled in between.
    let place = |code| codes.iter().position(|other| *other == code).unwrap();
    assert!(place(main) < place(names), "{codes:?}");
    let rundown: CollectTracing4<'_> = sessions[place(names)].message().unwrap().decode().unwrap();
    assert_eq!((rundown.rundown_keyword, rundown.providers.iter().count()), (0x138, 1));
    let session: CollectTracing2<'_> = sessions[place(main)].message().unwrap().decode().unwrap();
    let providers: Vec<_> =
        session.providers.iter().map(|p| (p.name.to_string(), p.keywords, p.level.0)).collect();
    let runtime_provider = "Microsoft-Windows-DotNETRuntime";
    assert_eq!(providers, [(sampler.to_owned(), 0, 4), (runtime_provider.to_owned(), 0x18, 5)]);

    // Events that name methods compiled meanwhile are not shown, unless the user enables them.
    let of = |events: &[Value], id| {
        events.iter().filter(|event| event["provider"] == runtime_provider && event["id"] == id).count()
    };
    let exceptions = run(&[&args[..], &["--clr-events", "exception"]].concat()).well().lines();
    let all = run(&[&args[..], &["--clr-events", "exception+jit"]].concat()).well().lines();
    assert!(of(&exceptions, 80) > 0 && of(&exceptions, 80) == of(&all, 80));
    assert!(of(&exceptions, 144) == 0 && of(&all, 144) > 0);
}

#[test]
fn an_event_ends_the_session() {
    let stream = fs::read(path("gen-net10-small-mixed.nettrace")).unwrap();
    let runtime = traced(stream);
    let socket = runtime.path().to_str().unwrap();
    // Without --duration, the event ends the command.
    let args = ["events", "--socket", socket, "--json", "--clr-events", "gc"];
    for event in ["13", "gcfinalizersend"] {
        let event = format!("Microsoft-Windows-DotNETRuntime/{event}");
        let events = run(&[&args[..], &["--until", &event]].concat()).well().lines();
        assert_eq!(events.last().unwrap()["id"], 13);
        assert_eq!(events.iter().filter(|event| event["id"] == 13).count(), 1);
    }
    assert!(asked(&runtime, STOP_TRACING));
    let never = ["--until", "Microsoft-Windows-DotNETRuntime/9999", "--duration", "200ms"];
    run(&[&args[..], &never].concat()).fails(4, "'Microsoft-Windows-DotNETRuntime/9999' did not arrive");
    run(&[&args[..], &["--until", "Other/1"]].concat())
        .fails(2, "the provider Other of --until is not enabled");
}

/// .NET 8 cannot leave out stacks, which is not a reason for a note.
#[test]
fn an_older_runtime_sends_stacks_without_a_note() {
    let runtime = traced(fs::read(path("gen-net10-lab-small.nettrace")).unwrap());
    let socket = runtime.path().to_str().unwrap();
    let args = ["events", "--socket", socket, "--duration", "300ms", "--only", "Lab-Workload", "--json"];
    let has_stacks = |ran: &Ran| ran.lines().iter().any(|event| event["stack"] != json!([]));
    assert!(!has_stacks(&run(&args).well()));
    assert!(has_stacks(&run(&[&args[..], &["--stacks"]].concat()).well()));
}

#[test]
fn lost_events_are_reported_with_advice() {
    let runtime = traced(lossy());
    let socket = runtime.path().to_str().unwrap();
    let args = ["events", "--socket", socket, "--duration", "0", "--json"];
    // So few events cannot have filled a buffer.
    let note = run(&[&args[..], &["--buffer", "3"]].concat()).error()["note"].as_str().unwrap().to_owned();
    let expected = "6 of 9 events were lost (at least; on 1 thread, at 0.000 s): they were larger than 64 KiB, which no \
                    runtime records";
    assert_eq!(note, expected);
}

/// Events are shown while the runtime sends nothing more, and a signal ends the session properly.
#[test]
#[cfg(unix)]
fn events_are_shown_as_they_happen() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let runtime = traced(fs::read(path("gen-net10-lab-small.nettrace")).unwrap());
        let socket = runtime.path().to_str().unwrap();
        let mut child = tool(&["events", "--socket", socket, "--only", "Lab-Workload/1"]).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.next().unwrap().unwrap().contains(" Lab-Workload/1 Ints i=0 "));
        assert_eq!(lines.by_ref().take(11).count(), 11);
        assert!(!asked(&runtime, STOP_TRACING));
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert!(lines.next().is_none());
        finish(child).well();
        assert!(asked(&runtime, STOP_TRACING));
    }
}

#[test]
#[cfg(unix)]
fn a_closed_output_stops_the_session() {
    let runtime = traced(fs::read(path("gen-net10-lab-small.nettrace")).unwrap());
    let socket = runtime.path().to_str().unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(ours);
    let mut command = tool(&["events", "--socket", socket, "--provider", "Lab-Workload"]);
    let child = command.stdout(OwnedFd::from(theirs)).spawn().unwrap();
    finish(child).well();
    assert!(asked(&runtime, STOP_TRACING));
    // A command after `&&` must run only after the event of --until.
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(ours);
    let args = ["events", "--socket", socket, "--provider", "Lab-Workload", "--until", "Lab-Workload/Never"];
    let child = tool(&args).stdout(OwnedFd::from(theirs)).spawn().unwrap();
    finish(child).fails(4, "'Lab-Workload/Never' did not arrive; the reader of the output has closed it");
}

#[test]
fn a_runtime_that_exits() {
    const ANSWER: usize = 28;
    for len in [6000, 0] {
        let runtime = traced(fs::read(path("gen-net10-lab-small.nettrace")).unwrap());
        runtime.set_fault(Fault::CloseAfter(ANSWER + len));
        let socket = runtime.path().to_str().unwrap();
        let ran = run(&["events", "--socket", socket, "--json", "--provider", "Lab-Workload"]);
        assert_eq!((ran.status, &ran.last_error()["kind"]), (Some(7), &json!("gone")), "{ran:?}");
        assert!(ran.stderr.contains("events incomplete: the process exited while recording"), "{ran:?}");
        assert_eq!(ran.text().lines().count() > 10, len > 0);
    }
}

#[test]
fn a_runtime_that_sends_garbage() {
    let runtime = traced(b"garbage, and more of it".to_vec());
    let ran = run(&["events", "--socket", runtime.path().to_str().unwrap(), "--json"]);
    assert_eq!((ran.status, &ran.last_error()["kind"]), (Some(6), &json!("protocol")), "{ran:?}");
    assert!(asked(&runtime, STOP_TRACING));
}

#[test]
fn a_session_that_does_not_end() {
    let runtime = traced(fs::read(path("gen-net10-lab-small.nettrace")).unwrap());
    runtime.set_fault(Fault::StallStream(6000));
    let socket = runtime.path().to_str().unwrap();
    let ran = run(&[
        "events",
        "--socket",
        socket,
        "--json",
        "--duration",
        "0",
        "--timeout",
        "500ms",
        "--provider",
        "Lab-Workload",
    ]);
    assert_eq!((ran.status, &ran.last_error()["kind"]), (Some(4), &json!("timeout")), "{ran:?}");
    assert!(ran.text().lines().count() > 10);
}
