//! Tests of `dotnet-ipc counters`, on recorded traces and on fake runtimes.

use core::time::Duration;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::Instant;

use ipc_proto::Code;
use ipc_testkit::{FakeRuntime, Fault, Profile, Response};
use nettrace::{Event, Fields, Metadata, Scalar, Trace, TraceWriter, Version};
use serde_json::{Value, json};

#[cfg(target_os = "linux")]
use crate::search::{child_of, unshare_processes};
#[cfg(target_os = "linux")]
use crate::tool::{FakeProcess, Killed, TOOL, until};
use crate::tool::{Ran, finish, run, run_with, tool, until_some};
use crate::traces::{put, utf16};

/// The commands that start a session without rundown.
const COLLECT_TRACING: [Code; 2] = [Code(0x0203), Code(0x0204)];

pub(crate) fn recorded(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/counters")
        .join(name)
        .to_str()
        .unwrap()
        .to_owned()
}

/// Starts a runtime whose program repeats four seconds with counters and meters.
pub(crate) fn running() -> FakeRuntime {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    for code in COLLECT_TRACING {
        let recording = fs::read(recorded("net10-shared.nettrace")).unwrap();
        runtime.on(code, move |_| Response::Replay(recording.clone()));
    }
    runtime
}

fn counters(runtime: &FakeRuntime, options: &[&str]) -> Ran {
    run(&[&["counters", "--socket", runtime.path().to_str().unwrap()], options].concat())
}

/// Returns the number with these bits (hexadecimal digits), after the same conversion to text and back as in the lines.
fn number(bits: &Value) -> Value {
    let Some(bits) = bits.as_str() else { return Value::Null };
    let number = f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
    serde_json::from_str(&Value::from(number).to_string()).unwrap()
}

/// Lost events are notes on standard error, so that the lines are samples.
#[test]
fn lost_events() {
    const MEAN: [&str; 4] = ["Mean", "StandardDeviation", "Min", "Max"];
    let mut space = [0; 256];
    let numbers = MEAN.map(|name| (name, Scalar::Double));
    let fields = [&[("Name", Scalar::Utf16String)][..], &numbers].concat();
    let mut metadata = Metadata::new(0, "System.Runtime", 2, "EventCounters");
    metadata.fields = Fields::build(&fields, &mut space).unwrap();
    let lossy = crate::traces::lossy_with(metadata, &[&b"c\0\0\0"[..], &[0; 32]].concat());

    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    for code in COLLECT_TRACING {
        let lossy = lossy.clone();
        runtime.on(code, move |_| Response::Trace(lossy.clone()));
    }
    for style in ["--csv", "--json"] {
        let ran = counters(&runtime, &[style, "--duration", "0.2s"]);
        let samples = ran.text().lines().filter(|line| line.contains("System.Runtime")).count();
        assert_eq!((ran.status, samples), (Some(0), 3), "{ran:?}");
        for note in ["events are lost, so samples are missing: ", "6 events were lost: samples"] {
            assert!(ran.stderr.contains(note), "{ran:?}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lossy.nettrace");
    fs::write(&file, lossy).unwrap();
    let ran = run(&["counters", file.to_str().unwrap(), "--csv"]);
    assert!(
        ran.status == Some(0) && ran.stderr.contains("6 events were lost: samples are missing"),
        "{ran:?}"
    );
}

/// Whether a process reports a counter is not known if another session reads its meters.
#[test]
fn no_counter_is_missing_beside_another_session() {
    let mut space = [0; 256];
    let fields = [
        &[("Name", Scalar::Utf16String)][..],
        &["Mean", "StandardDeviation", "Min", "Max"].map(|name| (name, Scalar::Double)),
    ];
    let mut counter = Metadata::new(1, "System.Runtime", 2, "EventCounters");
    let fields = fields.concat();
    counter.fields = Fields::build(&fields, &mut space).unwrap();
    let mut space = [0; 64];
    let mut other = Metadata::new(2, "System.Diagnostics.Metrics", 15, "MultipleSessionsNotSupportedError");
    other.fields = Fields::build(&[("runningSessionId", Scalar::Utf16String)], &mut space).unwrap();
    let (mut buf, mut trace) = (vec![0; 64 << 10], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    put!(trace, writer.describe(&counter));
    put!(trace, writer.describe(&other));
    let payloads = [[&b"c\0\0\0"[..], &[0; 32]].concat(), utf16("other")];
    for (metadata_id, payload) in (1..).zip(&payloads) {
        let event = Event {
            metadata_id,
            sequence: metadata_id,
            thread: 1,
            capture_thread: 1,
            payload,
            ..Event::default()
        };
        put!(trace, writer.event(&event));
    }
    trace.extend_from_slice(&writer.finish());
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    for code in COLLECT_TRACING {
        let trace = trace.clone();
        runtime.on(code, move |_| Response::Trace(trace.clone()));
    }
    let ran = counters(&runtime, &["System.Runtime", "Lab.Meter", "--duration", "0.2s"]);
    assert!(ran.stderr.contains("another session reads the meters of the process"), "{ran:?}");
    assert!(
        ran.text().contains("System.Runtime/c 0") && !ran.stderr.contains("no process reports"),
        "{ran:?}"
    );
    let ran = counters(&runtime, &["Lab.Meter", "--duration", "0.2s"]);
    assert!(ran.stderr.contains("error: this session does not report Lab.Meter"), "{ran:?}");
}

#[test]
fn json_is_what_an_independent_decoder_finds() {
    for name in
        ["net8-meters", "net10-meters", "net31-eventcounters", "net9-aot-eventcounters", "net10-exponential"]
    {
        let expected = fs::read_to_string(recorded(&format!("{name}.samples.jsonl"))).unwrap();
        let expected = expected.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let expected: Vec<Value> = expected.filter(|sample| sample["system"].is_string()).collect();
        let found = run(&["counters", &recorded(&format!("{name}.nettrace")), "--json"]).well().lines();
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, expected) in found.iter().zip(&expected) {
            for key in ["system", "provider", "name", "unit", "kind"] {
                assert_eq!(found[key], expected[key], "{found}");
            }
            assert!(found["process_id"].is_u64() || found["process_id"].is_null(), "{found}");
            assert!(found["time"].as_str().unwrap().starts_with("2026-11-2"), "{found}");
            assert_eq!(found["interval"], number(&expected["interval"]), "{found}");
            let numbers = &expected["numbers"];
            match found["kind"].as_str().unwrap() {
                "mean" => {
                    let keys = [&found["value"], &found["count"], &found["min"], &found["max"]];
                    let expected =
                        [&number(&numbers[0]), &numbers[2], &number(&numbers[3]), &number(&numbers[4])];
                    assert_eq!(keys, expected, "{found}");
                }
                "sum" | "gauge" => assert_eq!(found["value"], number(&numbers[0]), "{found}"),
                "counter" | "up_down_counter" => {
                    // The instruments of the runtime report what it has.
                    let since_start =
                        (found["kind"] == "up_down_counter").then(|| found["provider"] != "System.Runtime");
                    assert_eq!(found["since_start"], json!(since_start), "{found}");
                    // The interval is one second, so the rate is the increase in it.
                    assert_eq!(
                        [&found["rate"], &found["value"]],
                        [&number(&numbers[0]), &number(&numbers[1])]
                    );
                }
                "histogram" => {
                    assert_eq!([&found["count"], &found["sum"]], [&numbers[1], &number(&numbers[2])]);
                    let quantiles: Vec<Value> =
                        found["quantiles"].as_object().unwrap().values().cloned().collect();
                    let pairs = numbers[0].as_array().unwrap();
                    assert_eq!(quantiles, pairs.iter().map(|pair| number(&pair[1])).collect::<Vec<_>>());
                }
                "exponential_histogram" => {
                    let keys = ["scale", "sum", "count", "zero_count", "min", "max", "buckets"];
                    let keys = keys.map(|key| found[key].clone());
                    let of = |place: usize| numbers[place].clone();
                    let bits = |place: usize| number(&numbers[place]);
                    assert_eq!(keys, [of(0), bits(1), of(2), of(3), bits(4), bits(5), of(6)], "{found}");
                    assert!(found["first_bucket"].is_i64(), "{found}");
                }
                other => panic!("{other}"),
            }
        }
    }
}

#[test]
fn the_keys_of_a_line() {
    let found =
        run(&["counters", &recorded("net10-meters.nettrace"), "Lab.Meter/lab.requests", "--json"]).well();
    let first = &found.lines()[0];
    let keys: Vec<_> = first.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "time",
        "process_id",
        "system",
        "provider",
        "name",
        "unit",
        "tags",
        "kind",
        "value",
        "interval",
        "rate",
        "instrument_id",
        "meter_version",
    ];
    assert_eq!(keys, expected);
    assert_eq!(first["tags"], serde_json::json!({ "route": "/b" }));
    assert_eq!(found.lines().len(), 12);
}

#[test]
fn lines_for_people() {
    let found = run(&["counters", &recorded("net8-meters.nettrace")]).well();
    let lines: Vec<_> = found.text().lines().map(|line| line.split_once(' ').unwrap().1).take(5).collect();
    let expected = [
        "Lab.Meter/lab.gauge[k=v] 52 %",
        "Lab.Meter/lab.open +0 since start",
        "Lab.Meter/lab.latency[host=h1] p50 69.95 ms, p95 149.9 ms, p99 159.9 ms, count 72",
        "Lab.Meter/lab.requests[route=/b] 146 request (146 request/s)",
        "Lab.Meter/lab.requests[route=/a,b=\"c\",status=200] 73 request (73 request/s)",
    ];
    assert_eq!(lines, expected);
    let found = run(&[
        "counters",
        &recorded("net10-eventcounters.nettrace"),
        "Lab-Counters",
        "System.Runtime/working-set",
    ]);
    let text = found.well().into_text();
    assert!(text.contains(" System.Runtime/working-set 39.72 MB\n"), "{text}");
    assert!(text.contains(" Lab-Counters/sizes 9.5 B (min 0 B, max 19 B, count 1560)\n"), "{text}");
    assert!(!text.contains("cpu-usage"));
}

#[test]
fn csv_has_the_columns_of_dotnet_counters() {
    let found =
        run(&["counters", &recorded("net10-shared.nettrace"), "Lab.Meter", "Lab-Counters", "--csv"]).well();
    let text = found.into_text();
    assert!(
        text.starts_with("Timestamp,Provider,Counter Name,Counter Type,Mean/Increment\n2026-11-23T"),
        "{text}"
    );
    let mut csv = csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<_> = csv.records().map(|row| row.unwrap()).collect();
    let has = |provider: &str, name: &str, kind: &str| {
        rows.iter().any(|row| row.len() == 5 && &row[1] == provider && &row[2] == name && &row[3] == kind)
    };
    assert!(has("Lab-Counters", "Sizes, with a comma (B)[key:value]", "Metric"), "{text}");
    assert!(has("Lab-Counters", "Rate (Count / 1 sec)", "Rate"), "{text}");
    assert!(
        has("Lab.Meter", "lab.requests ({request} / 1 sec)[route=/a;b=\"c\";status=200]", "Rate"),
        "{text}"
    );
    assert!(has("Lab.Meter", "lab.latency (s)[host=h1;Percentile=95]", "Metric"), "{text}");
    assert!(rows.iter().all(|row| row[4].parse::<f64>().is_ok()));
}

#[test]
fn prometheus_text() {
    let found = run(&["counters", &recorded("net8-meters.nettrace"), "--format", "prometheus"]).well();
    let text = found.into_text();
    for line in [
        "# HELP lab_requests_total Requests served",
        "# TYPE lab_requests_total counter",
        "# TYPE lab_latency_seconds summary",
        "# TYPE lab_open_since_start untyped",
        // The conventions forbid the name of a type in a name.
        "# TYPE lab_value_percent gauge",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let tags = "route=\"/a\",b=\"\\\"c\\\"\",status=\"200\"} ";
    assert_eq!(text.matches(tags).count(), 1, "{text}");
    // In the trace, the count of a histogram is that of one interval. Here the count is the sum of all intervals.
    let counts = fs::read_to_string(recorded("net8-meters.samples.jsonl")).unwrap();
    let counts = counts.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let sum: u64 = counts.filter_map(|sample| sample["numbers"][1].as_u64()).sum();
    assert!(text.contains(&format!("host=\"h1\"}} {sum}\n")), "{sum}: {text}");
    let found = run(&["counters", &recorded("net10-exponential.nettrace"), "--format", "prometheus"]).well();
    let text = found.into_text();
    assert!(text.contains("# TYPE lab_latency_seconds histogram\n"), "{text}");
    assert!(text.contains(",le=\"+Inf\"} 59\n"), "{text}");
}

#[test]
fn otlp() {
    let found = run(&["counters", &recorded("net10-exponential.nettrace"), "--format", "otlp-json"]).well();
    let [request] = &found.lines()[..] else { panic!("{found:?}") };
    let scope = &request["resourceMetrics"][0]["scopeMetrics"][0];
    assert_eq!(scope["scope"], serde_json::json!({ "name": "Lab.Meter", "version": "1.2.3" }));
    let metrics = scope["metrics"].as_array().unwrap();
    let metric = |name: &str| metrics.iter().find(|metric| metric["name"] == name).unwrap();
    let histogram = &metric("lab.latency")["exponentialHistogram"];
    let last = histogram["dataPoints"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["count"], &last["scale"], &histogram["aggregationTemporality"]),
        (&"59".into(), &5.into(), &2.into())
    );
    assert_eq!(last["positive"]["offset"], -213);
    let requests = &metric("lab.requests")["sum"];
    assert_eq!((&requests["isMonotonic"], &requests["aggregationTemporality"]), (&true.into(), &2.into()));
    let open = &metric("lab.open")["sum"];
    assert_eq!((&open["isMonotonic"], &open["aggregationTemporality"]), (&false.into(), &2.into()));
    // It counts from the start of the session, one interval before the first sample.
    let nanoseconds = |point: &Value, key: &str| point[key].as_str().unwrap().parse::<u64>().unwrap();
    let points = open["dataPoints"].as_array().unwrap();
    let start = nanoseconds(&points[0], "startTimeUnixNano");
    let first = nanoseconds(&points[0], "timeUnixNano");
    assert!((900_000_000..1_100_000_000).contains(&(first - start)), "{points:?}");
    assert!(points.iter().all(|point| nanoseconds(point, "startTimeUnixNano") == start));
    let found = run(&["counters", &recorded("net8-meters.nettrace"), "--format", "otlp-json"]).well();
    let text = found.into_text();
    assert!(
        text.contains("\"summary\":{\"dataPoints\":[{\"count\":\"72\",\"sum\":5.339999999999999,"),
        "{text}"
    );
}

#[test]
fn samples_of_a_process() {
    let runtime = running();
    let socket = runtime.path().to_str().unwrap();
    let mut child =
        tool(&["counters", "--socket", socket, "Lab.Meter", "Lab-Counters/poll", "--json"]).spawn().unwrap();
    let mut missing = BTreeSet::from(["lab.gauge", "lab.latency", "lab.open", "lab.requests", "poll"]);
    let expected = missing.clone();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !missing.is_empty() {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let name = line["name"].as_str().unwrap();
        assert!(expected.contains(name), "{line}");
        assert!(name != "poll" || line["value"] == 42.25, "{line}");
        assert_eq!(line["process_id"], runtime.process_id(), "{line}");
        missing.remove(name);
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A selected counter that no process reports causes a note. If no other counter is reported, it causes a failure.
#[test]
fn counters_that_no_process_reports() {
    let runtime = running();
    let missing = "note: no process reports NoSuch\n";
    let during = |selections: &[&str]| {
        counters(&runtime, &[selections, &["--interval", "100ms", "--duration", "4s"]].concat())
    };
    let fails = |selections: &[&str]| {
        let ran = during(selections);
        let expected = format!("error: no process reports {}; ", selections.join(", "));
        let failed = ran.stderr.starts_with(&format!("note: no sample so far\n{expected}"));
        assert!(ran.status == Some(9) && failed && ran.stdout.is_empty(), "{ran:?}");
    };
    thread::scope(|scope| {
        scope.spawn(|| fails(&["NoSuch"]));
        scope.spawn(|| fails(&["NoSuch", "Lab-Counters/nosuch"]));
        scope.spawn(|| fails(&["Lab.Meter/lab.requests[route=nosuch]"]));
        let ran = during(&["NoSuch", "Lab-Counters/poll"]);
        assert_eq!((ran.status, &*ran.stderr), (Some(0), missing), "{ran:?}");
        // Also if the end comes before the first intervals.
        let ran = counters(&runtime, &["NoSuch", "Lab-Counters/poll", "--duration", "1ms"]);
        assert_eq!((ran.status, &*ran.stderr), (Some(0), missing), "{ran:?}");
        assert!(ran.text().contains("Lab-Counters/poll"), "{ran:?}");
    });
}

/// The first samples come after one interval, and a shorter duration does not end before them.
#[test]
fn a_duration_that_is_shorter_than_the_interval() {
    let runtime = running();
    let ran = counters(&runtime, &["Lab-Counters/poll", "--duration", "1ms", "--json"]).well();
    assert!(!ran.lines().is_empty() && ran.stderr.is_empty(), "{ran:?}");
}

#[test]
fn a_suspended_runtime() {
    let runtime = FakeRuntime::start(Profile { suspended: true, ..Profile::net10() }).unwrap();
    for code in COLLECT_TRACING {
        let recording = fs::read(recorded("net10-shared.nettrace")).unwrap();
        runtime.on(code, move |_| Response::Replay(recording.clone()));
    }
    let fails = |ran: Ran| ran.fails(1, "the runtime is suspended").fails(1, "dotnet-ipc resume");
    fails(counters(&runtime, &["--duration", "1s"]));
    fails(counters(&runtime, &["--interval", "100ms", "--until", "System.Runtime/cpu-usage > 1"]));
    fails(run(&["counters", "list", "--socket", runtime.path().to_str().unwrap()]));
}

/// A signal does not wait for a process that does not answer.
#[test]
#[cfg(target_os = "linux")]
fn a_signal_before_the_session_ends_the_tool() {
    use rustix::process::{Pid, Signal, kill_process};
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    runtime.set_fault(Fault::Silent);
    let child = tool(&["counters", "--socket", runtime.path().to_str().unwrap()]).spawn().unwrap();
    until("the runtime is never asked", || !runtime.requests().is_empty());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(finish(child).status, None);
}

#[test]
fn conditions_about_a_process() {
    let runtime = running();
    let held = &|condition: &str| {
        let ran = counters(&runtime, &["--duration", "30s", "--until", condition]);
        assert_eq!(
            (ran.status, &*ran.stderr),
            (Some(0), &*format!("note: '{condition}' holds\n")),
            "{ran:?}"
        );
    };
    let two =
        ["--duration", "30s", "--until", "Lab-Counters/poll > 99", "--until", "Lab-Counters/poll == 42.25"];
    thread::scope(|scope| {
        for condition in [
            "Lab-Counters/poll > 42",
            "p95(Lab.Meter/lab.latency[host=h1]) >= 0.01 and Lab-Counters/poll <= 42.25",
            "System.Runtime/working-set > 1 for 1s",
            "rate(Lab.Meter/lab.requests[route=/b]) > 0",
        ] {
            scope.spawn(move || held(condition));
        }
        scope.spawn(|| assert_eq!(counters(&runtime, &two).status, Some(0)));
        scope.spawn(|| {
            counters(&runtime, &["--duration", "2s", "--until", "Lab-Counters/poll > 99"])
                .fails(4, "'Lab-Counters/poll > 99' did not hold");
        });
        // Otherwise these commands would run until the time limit of the test.
        counters(&runtime, &["--until", "Lab-Counters/pol > 1"])
            .fails(9, "can never hold: no process reports Lab-Counters/pol");
    });
    counters(&runtime, &["--until", "Lab.Meter/lab.latency > 1"]).fails(2, "a histogram has no value");
    counters(&runtime, &["--until", "p50(Lab-Counters/poll) > 1"])
        .fails(2, "only histograms have percentiles");
    for bad in
        ["", "a", "a > 1", "a/b > x", "a/b ~ 1", "p(a/b) > 1", "p101(a/b) > 1", "a/b > 1 for x", "a/b[c] > 1"]
    {
        counters(&runtime, &["--until", bad]).fails(2, "not a condition such as");
    }
}

/// The text is served over HTTP. In a file, the text is complete at any time.
#[test]
fn prometheus_of_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let (file, runtime) = (folder.path().join("metrics.prom"), running());
    let (path, socket) = (file.to_str().unwrap(), runtime.path().to_str().unwrap());
    let args = ["Lab-Counters", "--format", "prometheus", "-o", path, "--duration", "3s"];
    counters(&runtime, &args).well();
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("# TYPE dotnet_lab_counters_poll gauge\ndotnet_lab_counters_poll{"), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

    let mut child =
        tool(&["counters", "--socket", socket, "Lab-Counters", "--serve", "127.0.0.1:0"]).spawn().unwrap();
    let mut note = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut note).unwrap();
    let address = note
        .trim()
        .strip_prefix("note: serving http://")
        .unwrap()
        .strip_suffix("/metrics")
        .unwrap()
        .to_owned();
    let get = |path: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = until_some("no sample is served", || {
        Some(get("/metrics")).filter(|answer| answer.contains("\ndotnet_lab_counters_poll{"))
    });
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("text/plain; version=0.0.4"),
        "{answer}"
    );
    assert!(get("/").starts_with("HTTP/1.1 200 "));
    assert!(get("/other").starts_with("HTTP/1.1 404 "));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_end_of_a_process() {
    let runtime = running();
    let mut child =
        tool(&["counters", "--socket", runtime.path().to_str().unwrap(), "Lab-Counters"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("Lab-Counters/"));
    drop(runtime);
    // The remaining lines are samples, and each line is complete.
    for line in lines {
        let line = line.unwrap();
        assert!(line.contains(" Lab-Counters/") && line.contains(char::is_numeric), "{line}");
    }
    let mut error = String::new();
    child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(7), "{error}");
    assert!(error.contains("the process exited"), "{error}");
}

/// Returns whether a client is connected to the process: its socket of the session is open.
#[cfg(target_os = "linux")]
fn has_session(process: &FakeProcess) -> bool {
    let socket = process.socket.to_str().unwrap();
    let sockets = fs::read_to_string("/proc/net/unix").unwrap();
    // One of these lines is the listening socket, and another one is a connection.
    sockets.lines().filter(|line| line.ends_with(socket)).count() > 1
}

/// The end of a process causes a note, and processes that start later are found. No descriptor stays open for a process
/// that has ended.
#[cfg(target_os = "linux")]
#[test]
fn all_processes() {
    // The tool sees the sockets in the folder, and no other processes of the machine: it would start sessions there.
    let Some(mut command) = unshare_processes() else { return };
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.jsonl");
    command.args([TOOL, "counters", "--all", "No-Such-Provider/none", "--wire-log", log.to_str().unwrap()]);
    let mut child = Killed(command.env("TMPDIR", folder.path()).spawn().unwrap());
    let tool = child_of(child.0.id());
    let mut notes = BufReader::new(child.0.stderr.take().unwrap()).lines();
    let sockets = || {
        let descriptors = fs::read_dir(format!("/proc/{tool}/fd")).unwrap();
        // A descriptor can be closed before its link is read.
        let links = descriptors.filter_map(|descriptor| fs::read_link(descriptor.unwrap().path()).ok());
        links.filter(|link| link.to_str().unwrap().starts_with("socket:")).count()
    };
    let handles_signals = || {
        let mut threads = fs::read_dir(format!("/proc/{tool}/task")).unwrap();
        threads.any(|of| {
            fs::read_to_string(of.unwrap().path().join("comm")).is_ok_and(|name| name == "signals\n")
        })
    };
    until("the tool does not handle signals", handles_signals);
    // Other tests of this process can have passed sockets on to the tool.
    let before = sockets();
    let mut process = FakeProcess::start(folder.path());
    for _ in 0..6 {
        let id = process.id();
        // The first search or the next one finds the process. Only this tool writes to the log.
        let answer: String = u64::from(id).to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let has_answered = || fs::read_to_string(&log).is_ok_and(|log| log.contains(&answer));
        until("the process has no session", || has_answered() && has_session(&process));
        process.crash();
        // A process that has ended has no name.
        let expected = [" ", ":"].map(|end| format!("note: process {id}{end}"));
        let is_expected = |note: &String| expected.iter().any(|expected| note.starts_with(expected));
        let note = notes.by_ref().map_while(Result::ok).find(is_expected).unwrap();
        // The second and the third text are for a process that ends while its session starts.
        let ends =
            [": the process exited", " went away while waiting for the response", ": no process listens at "];
        assert!(ends.iter().any(|end| note.contains(end)), "{note}");
        // The flag of all sessions, which the first one creates, has a pair of sockets.
        until("sessions stay open", || sockets() <= before + 2);
        process = FakeProcess::start(folder.path());
    }
    let tool = rustix::process::Pid::from_raw(tool.try_into().unwrap()).unwrap();
    rustix::process::kill_process(tool, rustix::process::Signal::INT).unwrap();
    // No process has reported the counter.
    assert_eq!(child.0.wait().unwrap().code(), Some(9));
}

/// Processes without a session are named, and are a failure.
#[cfg(target_os = "linux")]
#[test]
fn processes_that_are_left_out_are_named() {
    let Some(mut command) = unshare_processes() else { return };
    let folder = tempfile::tempdir().unwrap();
    // A limit of 24 files allows 12 sessions. Nothing answers here.
    let socket = |id| folder.path().join(format!("dotnet-diagnostic-{id}-1-socket"));
    let listeners: Vec<_> = (2_000_000..2_000_020)
        .map(|id| std::os::unix::net::UnixListener::bind(socket(id)).unwrap())
        .collect();
    let script = "ulimit -n 24; exec \"$0\" counters --all Lab --duration 1s --timeout 1s";
    command.args(["sh", "-c", script, TOOL]).env("TMPDIR", folder.path());
    let ran = finish(command.spawn().unwrap());
    drop(listeners);
    assert_eq!(ran.status, Some(1), "{ran:?}");
    let error = ran.stderr.lines().last().unwrap();
    assert!(error.contains(" processes were left out: 2000"), "{error}");
    assert!(error.contains("the limit of open files allows 12 sessions"), "{error}");
}

/// A process that accepts no connection is tried again after each attempt, and not during it: it would get several
/// sessions at once.
#[cfg(target_os = "linux")]
#[test]
fn a_process_that_is_left_out_has_one_attempt_at_a_time() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

    let Some(mut command) = unshare_processes() else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = "sleep 100 | \"$0\" fake-runtime >/dev/null & runtime=$!
        while ! [ -e \"$TMPDIR\"/*-socket ]; do sleep 0.01; done
        kill -STOP $runtime; touch \"$TMPDIR\"/stopped
        while ! [ -e \"$TMPDIR\"/full ]; do sleep 0.01; done
        exec \"$0\" counters --all Lab --duration 9s --timeout 3s";
    let mut child = command.args(["sh", "-c", script, TOOL]).env("TMPDIR", folder.path()).spawn().unwrap();
    let tool = child_of(child.id());
    until("the runtime is not stopped", || folder.path().join("stopped").exists());
    let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let path = entries.into_iter().find(|path| path.to_str().unwrap().ends_with("-socket")).unwrap();
    let address = SocketAddrUnix::new(&path).unwrap();
    let connected = || {
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
        connect(&socket, &address).is_ok().then_some(socket)
    };
    let _backlog: Vec<_> = core::iter::from_fn(connected).collect();
    fs::write(folder.path().join("full"), "").unwrap();

    let attempts = || -> BTreeSet<std::ffi::OsString> {
        let threads = fs::read_dir(format!("/proc/{tool}/task")).into_iter().flatten().flatten();
        let is_attempt = |name: String| name.trim() == "counters";
        threads
            .filter(|thread| fs::read_to_string(thread.path().join("comm")).is_ok_and(is_attempt))
            .map(|thread| thread.file_name())
            .collect()
    };
    // The thread of an attempt can still exist for a moment when the next one has started.
    let (mut together, mut since) = (BTreeSet::new(), Instant::now());
    while child.try_wait().unwrap().is_none() {
        let now = attempts();
        if now != together || now.len() < 2 {
            (together, since) = (now, Instant::now());
        }
        assert!(since.elapsed() < Duration::from_millis(500), "{together:?}");
        thread::yield_now();
    }
    let ran = finish(child);
    assert!(ran.stderr.contains("no session yet, the next attempt is in 2 s"), "{ran:?}");
}

#[test]
fn lists() {
    let runtime = running();
    let found =
        run(&["counters", "list", "--socket", runtime.path().to_str().unwrap(), "Lab-Counters", "--json"])
            .well();
    let names: Vec<_> = found.lines().iter().map(|line| line["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["ipoll", "poll", "rate", "sizes"]);
    run(&["counters", "list", "app.nettrace"]).fails(2, "requires a process ID");
}

/// An instrument that was named and exists, but has no sample, is listed.
#[test]
fn instruments_without_measurements() {
    const FIELDS: [&str; 9] = [
        "sessionId",
        "meterName",
        "meterVersion",
        "instrumentName",
        "instrumentType",
        "unit",
        "tags",
        "rate",
        "value",
    ];
    let fields = FIELDS.map(|name| (name, Scalar::Utf16String));
    let (mut buf, mut space, mut trace) = (vec![0; TraceWriter::BUFFER], [0; 1024], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    for (id, event_id, name) in [(1, 7, "silent"), (2, 16, "http.client.open_connections")] {
        let mut metadata = Metadata::new(id, "System.Diagnostics.Metrics", event_id, "");
        metadata.fields = Fields::build(&fields, &mut space).unwrap();
        put!(trace, writer.describe(&metadata));
        let texts = ["SHARED", "M", "", name, "UpDownCounter", "", "", "", "3"];
        let payload = texts.map(utf16).concat();
        let event = Event { metadata_id: id, sequence: id, payload: &payload, ..Event::default() };
        put!(trace, writer.event(&event));
    }
    trace.extend_from_slice(&writer.finish());
    let ran = run_with(&["counters", "-", "M/silent", "M"], trace);
    assert!(ran.text().ends_with(" M/http.client.open_connections +3 since start\n"), "{ran:?}");
    let notes = "note: `ss -tnp`, on Windows `netstat -ano`, shows connections; http.client.open_connections counts from \
                 the start of the session\nnote: M/silent exists, and nothing was measured\n";
    assert_eq!(ran.stderr, notes);
}

#[test]
fn usage() {
    run(&["counters"]).fails(2, "a process ID, a file, --name, --socket or --all is required");
    let file = recorded("net8-meters.nettrace");
    run(&["counters", &file, "A;B"]).fails(2, "counters are selected by PROVIDER or PROVIDER/NAME");
    for options in
        [["--duration", "1s"], ["--interval", "2s"], ["--max-time-series", "5"], ["--max-histograms", "5"]]
    {
        run(&[&["counters", &file], &options[..]].concat()).fails(2, "options for sessions do not apply");
    }
    let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join("counters-of-a-file.jsonl");
    for options in [["--timeout", "1s"], ["--wire-log", log.to_str().unwrap()]] {
        run(&[&["counters", &file], &options[..]].concat()).fails(2, "options for sessions do not apply");
        assert!(!log.exists());
    }
    run(&["counters", &file, "-o", "x"]).fails(2, "--output requires --format prometheus");
    // Counters that are named and not shown are listed.
    let ran = run(&["counters", &file, "None", "Lab.Meter/none", "Lab.Meter/lab.open"]);
    let expected = "note: the trace has no counter None\nnote: the trace has no counter Lab.Meter/none\n";
    assert_eq!((ran.status, &*ran.stderr), (Some(0), expected));
    run(&["counters", &file, "None"]).fails(9, "the trace has no counter None; there is Lab.Meter/");
    run(&["counters", &file, "Lab.Meter/lab.gauge[k=w]"]).fails(9, "there is Lab.Meter/lab.gauge[k=v]");
    run(&["counters", &file, "--until", "None/x > 1"])
        .fails(9, "can never hold: the trace has no counter None/x");
    run(&["counters", &file, "Lab.Meter[k=v]"]).fails(2, "tags require the name of a counter");
    let events = crate::traces::path("gen-net10-activities-small.nettrace");
    run(&["counters", &events]).fails(9, "the trace has no counters; record them with");
    run(&["counters", &recorded("none.nettrace")]).fails(1, "cannot read");
    let gauge = run(&["counters", &file, "--until", "Lab.Meter/lab.gauge >= 0"]);
    assert_eq!(gauge.status, Some(0), "{gauge:?}");
    let never = run(&["counters", &file, "--until", "Lab.Meter/lab.gauge < 0"]);
    assert_eq!(never.status, Some(4), "{never:?}");
}

#[test]
fn an_interval_of_zero_is_refused() {
    counters(&running(), &["--interval", "0"]).fails(2, "the interval is below 100 ms");
    // The interval is checked before a process is contacted.
    let nothing = tempfile::tempdir().unwrap().path().join("socket");
    let arguments = ["counters", "--socket", nothing.to_str().unwrap(), "--interval", "0"];
    run(&arguments).fails(2, "the interval is below 100 ms");
}

#[cfg(unix)]
#[test]
fn output_replaces_no_link_and_no_device() {
    let folder = tempfile::tempdir().unwrap();
    let [file, link, socket] = ["file", "link", "socket"].map(|name| folder.path().join(name));
    fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let trace = recorded("net8-meters.nettrace");
    let write =
        |path: &Path| run(&["counters", &trace, "--format", "prometheus", "-o", path.to_str().unwrap()]);
    let overwrite = |path: &Path| {
        run(&["counters", &trace, "--format", "prometheus", "--overwrite", "-o", path.to_str().unwrap()])
    };
    write(&link).fails(1, "exists already").fails(1, "--overwrite");
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    overwrite(&link).well();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&file).unwrap().starts_with("# HELP"));
    // A socket cannot be replaced like a file, and cannot be opened like a device.
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    write(&socket).fails(1, "cannot write");
    assert!(!fs::metadata(&socket).unwrap().is_file());
}

#[test]
fn output_of_a_dash_is_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let trace = recorded("net8-meters.nettrace");
    let mut command = tool(&["counters", &trace, "--format", "prometheus", "-o", "-"]);
    let found = command.current_dir(folder.path()).output().unwrap();
    assert!(found.stdout.starts_with(b"# HELP"), "{found:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    // With `-o -`, the text for a process is also written once, to standard output.
    let found = counters(&running(), &["Lab-Counters", "--format", "prometheus", "-o", "-"]).well();
    assert!(found.text().starts_with("# HELP"), "{found:?}");
}
