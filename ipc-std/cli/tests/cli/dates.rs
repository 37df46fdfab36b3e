//! Tests of dates: when a trace was recorded, times as dates, and traces without a date.

use std::fs;

use crate::tool::{program, run, run_with};
use crate::traces::{analysed, path};

/// Returns a copy of a trace of version 4 whose header states the month 13.
fn without_date(name: &str, directory: &tempfile::TempDir) -> String {
    let mut bytes = fs::read(name).unwrap();
    let header = bytes.windows(6).position(|bytes| bytes == b"Trace\x06").unwrap();
    bytes[header + 8] = 13;
    let copy = directory.path().join("undated.nettrace");
    fs::write(&copy, bytes).unwrap();
    copy.to_str().unwrap().to_owned()
}

fn counters(name: &str) -> String {
    path(&format!("../counters/{name}"))
}

#[test]
fn stats_and_report_state_when_a_trace_was_recorded() {
    let trace = analysed("net31-sampled.nettrace");
    let stats = run(&["stats", &trace, "--json"]).well().json();
    assert_eq!(
        (&stats["recorded"], &stats["duration_ms"]),
        (&"2026-11-22T01:56:23.006Z".into(), &2001.597483.into())
    );
    let recorded = "2026-11-22T01:56:23.006Z, for 2.002 s";
    let text = run(&["stats", &trace]).well().into_text();
    assert!(text.contains(&format!("recorded:        {recorded}\n")), "{text}");
    let report = run(&["report", &trace, "--json"]).well().json();
    assert_eq!([&report["recorded"], &report["duration_ms"]], [&stats["recorded"], &stats["duration_ms"]]);
    let text = run(&["report", &trace]).well().into_text();
    assert!(text.contains(&format!("recorded {recorded}\n")), "{text}");
}

#[test]
fn times_of_each_command_are_dates_on_demand() {
    let [locks, requests] = ["net10-locks.nettrace", "net10-requests.nettrace"].map(analysed);
    let [gc, jit] = ["net10-collections.nettrace", "net10-compilations.nettrace"].map(analysed);
    let meters = counters("net10-meters.nettrace");
    let all: [(&[&str], &str); 12] = [
        (&["events", &locks], "2026-11-26T14:51:58.136064606"),
        (&["events", &locks, "--json"], "\"time\":\"2026-11-26T14:51:58.136064606"),
        (&["events", &locks, "--columns", "time,name"], "2026-11-26T14:51:58.136064606"),
        (&["gc", &gc], "  2026-11-22T20:56:12.758"),
        (&["gc", &gc, "--csv"], ",2026-11-22T20:56:12.011"),
        (&["jit", &jit], "  2026-11-22T21:12:05.603"),
        (&["jit", &jit, "--json"], "\"start\":\"2026-11-22T21:12:05.580"),
        (&["requests", &requests], "the oldest began at 2026-11-26T14:27:20.611"),
        (&["requests", &requests, "--json"], "\"oldest_start\":\"2026-11-26T14:27:20.611"),
        (&["locks", &locks], "3.03 s so far, since 2026-11-26T14:51:59.392"),
        (&["locks", &locks, "--json"], "\"start\":\"2026-11-26T14:51:59.392"),
        (&["counters", &meters], "2026-11-22T02:04:19.717"),
    ];
    for (args, date) in all {
        let text = run(&[args, &["--utc"][..]].concat()).well().into_text();
        assert!(text.contains(&format!("{date}Z")), "{args:?} {date}: {text}");
        let mut command = program(env!("CARGO_BIN_EXE_dotnet-ipc"));
        // An hour west of Greenwich, so that the day is the same.
        let output = command.args(args).arg("--local").env("TZ", "LAB1").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let hour: u32 = date[date.find('T').unwrap() + 1..][..2].parse().unwrap();
        let earlier = date.replace(&format!("T{hour:02}:"), &format!("T{:02}:", hour - 1));
        assert!(text.contains(&format!("{earlier}-01:00")), "{args:?} {earlier}: {text}");
        let text = run(args).into_text();
        assert!(!text.contains(date), "{args:?}: {text}");
    }
}

/// Lines of counters have a time of day, and it states that it is one of UTC.
#[test]
fn a_time_of_day_states_its_zone() {
    let meters = counters("net10-meters.nettrace");
    let text = run(&["counters", &meters]).well().into_text();
    assert!(text.starts_with("02:04:19.717Z System.Runtime/"), "{text}");
    let text = run(&["counters", &meters, "--csv"]).well().into_text();
    assert!(text.lines().nth(1).unwrap().starts_with("2026-11-22T02:04:19.717Z,System.Runtime,"), "{text}");
}

#[test]
fn a_trace_without_events_has_a_date() {
    let mut bytes = fs::read(analysed("net10-collections.nettrace")).unwrap();
    let header = bytes.windows(6).position(|bytes| bytes == b"Trace\x06").unwrap();
    // The fields, the end of the object, and the end of the trace.
    bytes.truncate(header + 6 + 48 + 1);
    bytes.push(1);
    for command in ["gc", "jit"] {
        for args in [&[command, "-", "--utc"][..], &[command, "-", "--utc", "--json"]] {
            let output = run_with(args, &*bytes);
            assert_eq!((output.status, &*output.stdout), (Some(0), &b""[..]), "{output:?}");
            assert!(!output.stderr.contains("date") && output.stderr.contains(" has no "), "{output:?}");
        }
    }
}

#[test]
fn a_date_that_does_not_exist_is_not_shown_as_1970() {
    let directory = tempfile::tempdir().unwrap();
    let sampled = without_date(&analysed("net31-sampled.nettrace"), &directory);
    for command in ["stats", "report"] {
        let row = run(&[command, &sampled, "--json"]).well().json();
        assert!(row["recorded"].is_null() && row["duration_ms"] == 2001.597483, "{row}");
        let text = run(&[command, &sampled]).well().into_text();
        assert!(text.contains("(the trace states no date that exists), for 2.002 s\n"), "{text}");
    }
    let profile = directory.path().join("firefox.json");
    run(&["flame", &sampled, "--format", "firefox", "-o", profile.to_str().unwrap()]);
    let profile: serde_json::Value = serde_json::from_slice(&fs::read(profile).unwrap()).unwrap();
    assert_eq!(profile["meta"].get("startTime"), Some(&serde_json::Value::Null));

    let locks = without_date(&analysed("net10-locks.nettrace"), &directory);
    let row = run(&["events", &locks, "--utc", "--json"]);
    assert!(row.lines()[0]["time"].is_null());
    for (command, text) in [("events", "0.000064606 ["), ("locks", "10 waits for 4 locks")] {
        let output = run(&[command, &locks, "--utc"]);
        assert!(output.stdout.starts_with(text.as_bytes()), "{output:?}");
        let note = output.stderr.clone();
        assert!(note.contains("the trace states no date that exists: times are since its start"), "{note}");
    }
    let output = run(&["events", &locks, "--from", "1970-01-01"]);
    let error = output.stderr.clone();
    assert!(
        error.contains("no event between --from and --to, and the trace states no date that exists"),
        "{error}"
    );

    let meters = without_date(&counters("net10-meters.nettrace"), &directory);
    let text = |more: &[&str]| {
        let output = run(&[&["counters", &meters], more].concat());
        let notes = output.stderr.clone();
        assert!(notes.contains("the trace states no date that exists"), "{notes}");
        output.into_text()
    };
    assert!(text(&[]).starts_with("1.139 s System.Runtime/"));
    assert!(text(&["--json"]).starts_with("{\"time\":null,"));
    assert!(text(&["--csv"]).lines().nth(1).unwrap().starts_with(",System.Runtime,"));
    let otlp = text(&["--format", "otlp-json"]);
    assert!(otlp.contains("\"asDouble\"") && !otlp.to_lowercase().contains("unixnano"), "{otlp}");
}
