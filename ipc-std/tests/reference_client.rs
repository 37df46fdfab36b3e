//! Compares the requests of this library with those of Microsoft's client, byte by byte. The tests repeat every
//! recorded call with the recorded responses. The comments here explain each difference.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports a fault by a panic"
)]

use core::time::Duration;

use ipc_proto::types::{
    DumpFlags, DumpType, EventFilter, EventLevel, PerfMapType, Provider, SessionBufferMode, Status,
    StreamingProvider,
};
use ipc_proto::{Array, Code, Command, GenerateCoreDump, HResult, Text};
use ipc_std::{Client, DumpConfig, Error, ErrorKind, TraceConfig};
use ipc_testkit::{FakeRuntime, Profile, Response};
use serde_json::Value;

struct Recorded {
    call: String,
    args: Value,
    /// The major version that the server reported.
    runtime: u8,
    requests: Vec<(Code, Vec<u8>, Vec<u8>)>,
    end: String,
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn recordings() -> Vec<Recorded> {
    let lines = include_str!("../../testdata/conversations/reference-client.jsonl").lines();
    let recorded = |line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let request = |request: &Value| {
            let code = u16::from_str_radix(&text(&request["command"])[2..], 16).unwrap();
            (Code(code), hex(&text(&request["hex"])), hex(&text(&request["answer"])))
        };
        Recorded {
            call: text(&line["call"]),
            args: line["args"].clone(),
            runtime: line["runtime"].as_u64().unwrap().try_into().unwrap(),
            requests: line["requests"].as_array().unwrap().iter().map(request).collect(),
            end: text(&line["end"]),
        }
    };
    lines.map(recorded).collect()
}

/// Starts a fake runtime of the recorded version that sends the recorded responses.
fn replay(recorded: &Recorded) -> FakeRuntime {
    let runtime = FakeRuntime::start(Profile { version: recorded.runtime, ..Profile::net10() }).unwrap();
    // Only this library sends this command: Microsoft's client fails before it if the dump has flags.
    runtime.on(GenerateCoreDump::CODE, |_| Response::ok(&Status::OK));
    for (code, _, answer) in &recorded.requests {
        let answer = answer.clone();
        runtime.on(*code, move |_| Response::Raw(answer.clone()));
    }
    runtime
}

fn number(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// Makes the recorded call. The runtime logs its requests.
fn repeat(client: &Client, recorded: &Recorded) -> Result<(), Error> {
    let args = &recorded.args;
    let text = |name: &str| args[name].as_str();
    let guid = || text("guid").unwrap().parse().unwrap();
    match recorded.call.as_str() {
        "GetProcessInfo" => client.process_info().map(drop),
        "GetProcessEnvironment" => client.environment().map(drop),
        "ResumeRuntime" => client.resume(),
        "SetEnvironmentVariable" => {
            client.set_environment_variable(text("name").unwrap_or("LAB_X"), text("value"))
        }
        "EnablePerfMap" => client.enable_perf_map(match text("type").unwrap() {
            "None" => PerfMapType::DISABLED,
            "All" => PerfMapType::ALL,
            "JitDump" => PerfMapType::JIT_DUMP,
            "PerfMap" => PerfMapType::PERF_MAP,
            other => panic!("{other}"),
        }),
        "DisablePerfMap" => client.disable_perf_map(),
        "ApplyStartupHook" => client.apply_startup_hook(text("path").unwrap_or("/hook.dll")),
        "AttachProfiler" if args.get("guid").is_none() => {
            client.attach_profiler(Duration::ZERO, ipc_proto::Guid([1; 16]), "/p", &[])
        }
        "AttachProfiler" => {
            let timeout = Duration::from_secs_f64(args["timeout_s"].as_f64().unwrap());
            let data = text("data").map(hex).unwrap_or_default();
            client.attach_profiler(timeout, guid(), text("path").unwrap(), &data)
        }
        "SetStartupProfiler" if args.get("guid").is_none() => {
            client.set_startup_profiler(ipc_proto::Guid([1; 16]), "/p")
        }
        "SetStartupProfiler" => client.set_startup_profiler(guid(), text("path").unwrap()),
        "WriteDump" => {
            let dump_type = match text("type").unwrap_or("Normal") {
                "Normal" => DumpType::NORMAL,
                "WithHeap" => DumpType::WITH_HEAP,
                "Triage" => DumpType::TRIAGE,
                "Full" => DumpType::FULL,
                other => panic!("{other}"),
            };
            let flags = match (text("flags"), args["log"].as_bool()) {
                (Some("None"), _) | (None, None | Some(false)) => DumpFlags::NONE,
                (Some("LoggingEnabled"), _) | (None, Some(true)) => DumpFlags::LOGGING_ENABLED,
                (Some("VerboseLoggingEnabled"), _) => DumpFlags::VERBOSE_LOGGING_ENABLED,
                (Some("CrashReportEnabled"), _) => DumpFlags::CRASH_REPORT_ENABLED,
                (Some(bits), _) => DumpFlags(bits.parse().unwrap()),
            };
            client
                .write_dump(&DumpConfig { path: text("path").unwrap_or("/d").into(), dump_type, flags })
                .map(drop)
        }
        "StartEventPipeSession" => trace(client, args),
        other => panic!("{other}"),
    }
}

fn trace(client: &Client, args: &Value) -> Result<(), Error> {
    // The recordings of odd responses do not have the providers.
    let any = vec![Value::from("Any")];
    let specs: Vec<&str> =
        args["providers"].as_array().unwrap_or(&any).iter().map(|spec| spec.as_str().unwrap()).collect();
    let mut ids = Vec::new();
    let (mut providers, mut enables) = (Vec::new(), Vec::new());
    for spec in &specs {
        // NAME:KEYWORDS:LEVEL[:ARGUMENTS], or NAME [+{IDS}|-{IDS}].
        let (keywords, level, name, arguments, filter) = if spec.contains(':') {
            let parts: Vec<&str> = spec.splitn(4, ':').collect();
            let level = EventLevel(parts[2].parse().unwrap());
            (number(parts[1]), level, parts[0], parts.get(3).copied().unwrap_or_default(), None)
        } else {
            let (name, filter) =
                spec.split_once(' ').map_or((*spec, None), |(name, filter)| (name, Some(filter)));
            let keywords = if filter.is_some() { 1 } else { 0xf000_0000_0000 };
            (keywords, EventLevel::INFORMATIONAL, name, "", filter)
        };
        providers.push(Provider { keywords, level, name: name.into(), arguments: Text::from(arguments) });
        let list = filter.map_or("", |filter| filter[2..].trim_end_matches('}'));
        ids.push(list.split(',').filter_map(|id| id.parse().ok()).collect::<Vec<u32>>());
        enables.push(filter.is_some_and(|filter| filter.starts_with('+')));
    }
    let filters = ids
        .iter()
        .zip(&enables)
        .map(|(ids, enable)| EventFilter { enable: *enable, event_ids: Array::from(ids.as_slice()) });
    let providers: Vec<StreamingProvider<'_>> = providers
        .into_iter()
        .zip(filters)
        .map(|(provider, filter)| StreamingProvider { filter, ..provider.into() })
        .collect();
    let config = TraceConfig {
        buffer_mb: args["buffer_mb"].as_u64().unwrap_or(256).try_into().unwrap(),
        rundown_keyword: match (args["rundown_keyword"].as_str(), args["rundown"].as_bool()) {
            (Some(keyword), _) => number(keyword),
            (None, Some(false)) => 0,
            (None, _) => ipc_proto::plan::DEFAULT_RUNDOWN,
        },
        stackwalk: args["stackwalk"].as_bool().unwrap_or(true),
        buffer_mode: match args["buffering"].as_str() {
            Some("Block") => SessionBufferMode::BLOCK,
            _ => SessionBufferMode::DROP,
        },
        ..TraceConfig::new(&providers)
    };
    let mut session = client.start_tracing(&config)?;
    session.stop();
    std::io::copy(&mut session, &mut std::io::sink()).expect("an empty trace");
    Ok(())
}

/// Clears the timeout of AttachProfiler: Microsoft's client sends seconds; this library sends milliseconds, as the
/// specification requires.
fn without_timeout(code: Code, mut request: Vec<u8>) -> Vec<u8> {
    if code == Code(0x0301) {
        request[20..24].fill(0);
    }
    request
}

#[test]
fn every_request_equals_the_reference_to_the_byte() {
    let mut compared = 0;
    let mut retried = 0;
    for recorded in recordings().iter().filter(|recorded| recorded.args.get("answer").is_none()) {
        let what = format!("{} {} on {}", recorded.call, recorded.args, recorded.runtime);
        let runtime = replay(recorded);
        let outcome = repeat(&Client::at(runtime.path()), recorded);
        let ours = runtime.requests();
        if recorded.call == "EnablePerfMap" && recorded.args["type"] == "None" {
            // Runtimes refuse perf map type 0. This library rejects it before it sends a request.
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Invalid, "{what}");
            assert!(ours.iter().all(|request| request.bytes.is_empty()), "{what}");
            continue;
        }
        let bytes = |at: usize| ours[at].bytes.clone();
        for (at, (code, reference, _)) in recorded.requests.iter().enumerate() {
            assert!(at < ours.len(), "{what}: {code} is not sent");
            assert_eq!(
                without_timeout(*code, bytes(at)),
                without_timeout(*code, reference.clone()),
                "{what}"
            );
            compared += 1;
        }
        if ours.len() > recorded.requests.len() {
            // An old runtime does not know the command, or an old command has no such flags. Microsoft's client throws
            // an exception; this library sends an older command and reports the lost features.
            let exceptions = ["UnsupportedCommandException", "ArgumentException"];
            assert!(exceptions.iter().any(|end| recorded.end.starts_with(end)), "{what}: {}", recorded.end);
            assert!(outcome.is_ok(), "{what}: {outcome:?}");
            retried += 1;
        } else if recorded.call != "GetProcessEnvironment" {
            // The recording of the environment ends before its continuation.
            assert_eq!(
                outcome.is_ok(),
                recorded.end.starts_with("returns"),
                "{what}: {outcome:?}, {}",
                recorded.end
            );
        }
    }
    assert!(compared >= 250, "{compared} requests compared");
    assert!(retried >= 20, "{retried} calls succeed with an older command");
}

#[test]
fn every_odd_response_is_an_error() {
    let mut odd = 0;
    for recorded in recordings() {
        let Some(answer) = recorded.args.get("answer").and_then(Value::as_str) else { continue };
        let what = format!("{} with the response {answer}", recorded.call);
        let runtime = replay(&recorded);
        let outcome = repeat(&Client::at(runtime.path()), &recorded);
        odd += 1;
        let status = ["WriteDump", "ResumeRuntime"].contains(&recorded.call.as_str());
        if answer == "ok without payload" && status {
            // The OK response of the specification has 20 bytes.
            assert!(outcome.is_ok(), "{what}: {outcome:?}");
            continue;
        }
        let error = outcome.expect_err(&what);
        let (kind, hresult) = match answer {
            "closed after 10 bytes" | "nothing" | "size says more than comes" => (ErrorKind::Gone, None),
            "wrong magic" | "unknown response id" | "command set of a request" | "ok without payload" => {
                (ErrorKind::Protocol, None)
            }
            "dump failed with a message" => (ErrorKind::Refused, Some(HResult::FAIL)),
            "0x80131385" => (ErrorKind::Unsupported, Some(HResult::UNKNOWN_COMMAND)),
            hresult => (ErrorKind::Refused, Some(HResult(number(hresult).try_into().unwrap()))),
        };
        assert_eq!((error.kind(), error.hresult()), (kind, hresult), "{what}: {error}");
        let command = error.command().expect("a command");
        assert!(recorded.requests.iter().any(|(code, ..)| *code == command), "{what}: {error}");
        let name = ipc_proto::CommandInfo::find(command).unwrap().name;
        assert!(error.to_string().contains(name), "{what}: {error}");
        if answer == "dump failed with a message" && recorded.call == "WriteDump" {
            assert!(error.to_string().contains("no such directory"), "{error}");
        }
    }
    assert!(odd >= 120, "{odd} odd responses");
}
