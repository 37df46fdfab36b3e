//! `dotnet-ipc events` of every recorded trace, and of odd ones.

use std::collections::BTreeMap;
use std::fs::{self, File};
#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(unix)]
use std::os::unix::net::UnixStream;

use nettrace::{BlockKind, Event, Limits, Metadata, Parser, Record, Trace, TraceWriter, Version};
use serde_json::{Value, json};

use crate::tool::{finish, run, run_with, tool};
use crate::traces::{Kinds, analysed, expected_end, identity, kinds, made, path, put, traces, utf16};

#[test]
fn help_has_examples() {
    for command in ["events", "stats", "rewrite"] {
        let help = run(&[command, "--help"]).well().into_text();
        assert!(help.contains("Examples:\n  dotnet-ipc "), "{help}");
    }
}

/// The keys of an event, before its fields or its payload.
const KEYS: [&str; 14] = [
    "time_ns",
    "thread_id",
    "process_id",
    "provider",
    "id",
    "version",
    "name",
    "level",
    "opcode",
    "keywords",
    "processor",
    "activity_id",
    "related_activity_id",
    "stack",
];

#[test]
fn events_of_every_trace() {
    for (path, expected) in traces() {
        let (_, status) = expected_end(&expected);
        let ran = run(&["events", &path, "--json"]);
        assert_eq!(ran.status, Some(status), "{path}: {}", ran.stderr);
        let stats = run(&["stats", &path, "--json"]).json();
        let lost = stats["lost"].as_u64().unwrap();
        assert_eq!(ran.stderr.contains(&format!("{lost} events were lost")), lost > 0, "{}", ran.stderr);
        let events = ran.lines();
        let mut found = Kinds::new();
        for event in &events {
            *found.entry(identity(event)).or_default() += 1;
            let mut keys: Vec<&str> = event.as_object().unwrap().keys().map(String::as_str).collect();
            keys.retain(|key| !["rest", "error"].contains(key));
            let of_v6 = ["trace_id", "span_id", "labels", "thread_name", "thread_attributes"];
            assert_eq!(of_v6.iter().all(|key| keys.contains(key)), expected["version"] == 6);
            keys.retain(|key| !of_v6.contains(key));
            let (last, all) = keys.split_last().unwrap();
            assert_eq!(all, KEYS);
            assert!(["fields", "payload"].contains(last), "{event}");
            let has_thread = event["thread_id"].is_u64() || expected["version"] == 6;
            assert!(event["time_ns"].is_i64() && has_thread, "{event}");
        }
        // One event has another version in its own label than in its description.
        if let Some(one) = found.remove(&("Prov.A".to_owned(), 11, 2)) {
            *found.entry(("Prov.A".to_owned(), 11, 0)).or_default() += one;
        }
        assert_eq!(found, kinds(&expected), "{path}");

        let ordered = run(&["events", &path, "--json", "--ordered"]);
        assert_eq!(ordered.status, Some(status), "{path}");
        let mut sorted = events.clone();
        sorted.sort_by_key(|event| event["time_ns"].as_i64().unwrap());
        assert!(ordered.lines() == sorted, "{path}");

        let text = run(&["events", &path]);
        assert_eq!((text.status, text.text().lines().count()), (Some(status), events.len()), "{path}");
        for (line, event) in text.text().lines().zip(&events) {
            // The process precedes the thread if it is not that of the trace.
            let begins = ["".to_owned(), format!("{}/", event["process_id"])].map(|process| {
                let provider = event["provider"].as_str().unwrap();
                let thread = event["thread_id"].as_u64().map_or_else(|| "?".to_owned(), |id| id.to_string());
                format!("[{process}{thread}] {provider}/{}", event["id"])
            });
            let rest = line.split_once(' ').unwrap().1;
            assert!(begins.iter().any(|begin| rest.starts_with(begin)), "{line}");
        }

        let piped = run_with(&["events", "-", "--json"], fs::read(&path).unwrap());
        assert!(piped.text() == ran.text(), "{path}");
    }
}

#[test]
fn fields() {
    let events = run(&["events", &path("synth-v6-all.nettrace"), "--json"]).lines();
    let all = events.iter().find(|event| event["name"] == "All").unwrap();
    assert_eq!(all["thread_id"], 1_099_511_627_776_u64);
    assert_eq!(all["activity_id"], "03020100-0504-0706-0809-0a0b0c0d0e0f");
    let fields = &all["fields"];
    for (name, value) in [
        ("b32", json!(true)),
        ("c16", json!("Q")),
        ("i8", json!(-5)),
        ("i64", json!(-5_000_000_000_000_i64)),
        ("u64", json!(9_223_372_036_854_775_813_u64)),
        ("vu", json!(u64::MAX)),
        ("f64", json!(-2.25)),
        ("dt", json!("2022-06-18T04:26:40.0000000Z")),
        ("s16", json!("zero\u{e9}")),
        ("arr", json!([1, -2, 3])),
        ("rel", json!([11, 22])),
        ("dat", json!("loc")),
        ("obj", json!({ "x": 300, "y": ["Hi", "Bye"] })),
    ] {
        assert_eq!(fields[name], value, "{name}");
    }

    // A string with a NUL, of which the second half is in `rest`; a lone surrogate; bytes without a description.
    let events = run(&["events", &path("gen-net10-odd-payloads.nettrace"), "--json"]).lines();
    let odd = events.iter().find(|event| event["rest"].is_string()).unwrap();
    assert_eq!(odd["fields"], json!({ "a": "lone \u{fffd} surrogate", "b": "nul " }));
    assert_eq!(odd["rest"], "IABpAG4AcwBpAGQAZQAAAA==");
    assert!(odd.get("error").is_none());
    let bytes = events.iter().find(|event| event["name"] == "Bytes").unwrap();
    assert_eq!((&bytes["payload"], bytes.get("fields")), (&json!("AwAAAAECAA=="), None));
}

#[test]
fn fields_that_are_odd() {
    let infinities = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300].map(f64::to_le_bytes).concat();
    let control = utf16("\"\\\n\u{1}\u{85}\u{7f}");
    let stream = made(&[
        (&[(6, "x"), (6, "x"), (6, "x#2"), (6, "x")], &[1, 2, 3, 4]),
        (&[(6, "n"), (9, "m")], &[7, 8]),
        (&[(14, "a"), (14, "b"), (14, "c"), (14, "d")], &infinities),
        (&[(18, "a\"b")], &control),
        (&[(12, "u")], &u64::MAX.to_le_bytes()),
        (&[], &[]),
    ]);
    let ran = run_with(&["events", "-", "--json"], stream.clone()).well();
    let events = ran.lines();
    assert_eq!(events.len(), 7);
    let names: Vec<&String> = events[0]["fields"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["x", "x#2", "x#2#2", "x#3"]);
    assert_eq!(events[0]["fields"]["x#3"], 4);
    assert_eq!((&events[1]["fields"], &events[1]["rest"]), (&json!({ "n": 7 }), &json!("CA==")));
    assert!(events[1]["error"].as_str().unwrap().contains("at byte 1"), "{}", events[1]);
    assert_eq!(events[2]["fields"], json!({ "a": "NaN", "b": "Infinity", "c": "-Infinity", "d": 1e300 }));
    assert_eq!(events[3]["fields"], json!({ "a\"b": "\"\\\n\u{1}\u{85}\u{7f}" }));
    assert_eq!(events[4]["fields"], json!({ "u": u64::MAX }));
    assert_eq!(events[5]["fields"], json!({}));
    let unknown = json!({
        "time_ns": 0, "thread_id": 0, "process_id": 0, "provider": null, "id": null, "version": null, "name": null,
        "level": null, "opcode": null, "keywords": null, "processor": 0, "activity_id": null,
        "related_activity_id": null, "stack": [], "payload": "Pw==",
    });
    assert_eq!(events[6], unknown);
    let text = run_with(&["events", "-"], stream.clone()).well().into_text();
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text}");
    let stats = run_with(&["stats", "-", "--json"], stream).well().json();
    let undescribed = json!({
        "provider": null, "id": null, "version": null, "name": null, "count": 1, "message_template": null,
        "description": null, "attributes": {},
    });
    assert_eq!(stats["by_event"][0], undescribed);
    assert_eq!(stats["unresolved"]["metadata"]["undeclared"], 1);
}

/// JSON has no infinite numbers. The digits of a `float` are the shortest ones that are read as the same number.
#[test]
fn a_value_has_the_same_text_in_each_output() {
    for (code, payload, expected) in [
        (13, &0.1_f32.to_le_bytes()[..], "0.1"),
        (13, &f32::INFINITY.to_le_bytes(), "\"Infinity\""),
        (14, &f64::NEG_INFINITY.to_le_bytes(), "\"-Infinity\""),
        (14, &f64::NAN.to_le_bytes(), "\"NaN\""),
        (14, &1e-5_f64.to_le_bytes(), "1e-5"),
        (4, &[8, 0], "\"\\u0008\""),
        (18, &[0x2e, 0x20, 0, 0], "\"\\u202e\""),
    ] {
        let trace = made(&[(&[(code, "a")], payload)]);
        let shown = |options: &[&str]| {
            run_with(&[&["events", "-", "--json"], options].concat(), trace.clone()).into_text()
        };
        assert!(shown(&[]).contains(&format!("\"fields\":{{\"a\":{expected}}}")), "{}", shown(&[]));
        assert!(shown(&["--columns", "a"]).starts_with(&format!("{{\"a\":{expected}}}\n")), "{expected}");
        let counts = format!("{{\"value\":{expected},\"count\":1}}\n");
        assert_eq!(shown(&["--count-by", "a"]), counts);
    }
}

#[test]
fn properties_of_events() {
    let events = run(&["events", &path("gen-net10-small-mixed.nettrace"), "--json"]).well().lines();
    let is_hexadecimal = |text: &Value| {
        let digits = text.as_str().and_then(|text| text.strip_prefix("0x")).unwrap_or_default();
        u64::from_str_radix(digits, 16).is_ok_and(|number| digits == format!("{number:x}"))
    };
    assert!(events.iter().all(|event| is_hexadecimal(&event["keywords"])));
    let stacks: Vec<_> = events.iter().map(|event| event["stack"].as_array().unwrap()).collect();
    assert!(stacks.iter().all(|stack| stack.iter().all(is_hexadecimal)));
    let named = |name: &str| events.iter().find(|event| event["name"] == name).unwrap();
    let part = |event: &Value, keys: &[&str]| keys.iter().map(|key| event[key].clone()).collect::<Value>();
    let keys = ["level", "opcode", "keywords", "processor", "related_activity_id"];
    assert_eq!(part(named("GCFinalizersBegin"), &keys), json!([4, null, "0x1", null, null]));
    let stack = named("TaskCompleted")["stack"].as_array().unwrap();
    assert_eq!((&stack[0], stack.len()), (&json!("0x55dd53310109"), 15), "the leaf is the first");

    // In version 6, an event can have labels of its own.
    let events = run(&["events", &path("synth-v6-all.nettrace"), "--json"]).lines();
    let all = events.iter().find(|event| event["name"] == "All").unwrap();
    let related = "13121110-1514-1716-1819-1a1b1c1d1e1f";
    assert_eq!(part(all, &keys), json!([5, 10, "0x8000000000000001", null, related]));
    assert_eq!(all["stack"], json!(["0x1000", "0x2000"]));
}

/// Returns the stacks by name, root first, with the number of events that have each.
fn named_stacks(events: &[Value]) -> BTreeMap<String, u64> {
    let mut stacks = BTreeMap::new();
    for event in events {
        // MethodILToNativeMap of the runtime, which TraceEvent leaves out.
        if event["provider"] == "Microsoft-Windows-DotNETRuntime" && event["id"] == 190 {
            continue;
        }
        let frames = event["stack"].as_array().unwrap().iter().rev().map(|frame| frame.as_str().unwrap());
        let name = |frame| if str::starts_with(frame, "0x") { "?!?" } else { frame };
        let stack = frames.map(name).collect::<Vec<_>>().join(";");
        if !stack.is_empty() {
            *stacks.entry(stack).or_default() += 1;
        }
    }
    stacks
}

#[test]
fn stacks_have_the_names_of_the_trace() {
    for name in ["net10-startup", "net31-sampled"] {
        let expected: Value =
            serde_json::from_slice(&fs::read(analysed(&format!("{name}.stacks.json"))).unwrap()).unwrap();
        let expected: BTreeMap<String, u64> = serde_json::from_value(expected["stacks"].clone()).unwrap();
        let file = analysed(&format!("{name}.nettrace"));
        let events = run(&["events", &file, "--stacks", "--json"]).well().lines();
        assert!(named_stacks(&events) == expected, "{name}");
        assert!(events.is_sorted_by_key(|event| event["time_ns"].as_i64().unwrap()));
        // The events of a part of the trace have the same names as in the whole trace.
        let (from, to) = (events.len() / 2, events.len() / 2 + 100);
        let time = |at: usize| format!("{:.9}", events[at]["time_ns"].as_i64().unwrap() as f64 / 1e9);
        let part = ["events", &file, "--stacks", "--json", "--from", &time(from), "--to", &time(to)];
        let part = run(&part).well().lines();
        assert!(part.len() > 90 && events.windows(part.len()).any(|window| *window == part), "{name}");
        // In a pipe, names that follow the stacks come too late.
        let piped = run_with(&["events", "-", "--stacks", "--json"], fs::read(&file).unwrap()).well().lines();
        let named = |events: &[Value]| {
            let frames = events.iter().flat_map(|event| event["stack"].as_array().unwrap());
            frames.filter(|frame| !frame.as_str().unwrap().starts_with("0x")).count()
        };
        let (piped, all) = (named(&piped), named(&events));
        assert!(piped < all, "{name}: {piped} of {all}");
    }
}

#[test]
fn text_has_a_line_for_each_frame() {
    let file = analysed("net10-startup.nettrace");
    let only = ["events", &file, "--stacks", "--only", "Microsoft-DotNETCore-SampleProfiler"];
    let samples = run(&[&only[..], &["--json"]].concat()).well().lines();
    let text = run(&only).well().into_text();
    let mut lines = text.lines();
    for sample in samples {
        let line = lines.next().unwrap();
        assert!(line.contains(" Microsoft-DotNETCore-SampleProfiler/0"), "{line}");
        for frame in sample["stack"].as_array().unwrap() {
            let name: String = frame.as_str().unwrap().chars().take(256).collect();
            let line = lines.next().unwrap();
            assert!(line.starts_with("    ") && line[4..].starts_with(&name), "{line}");
        }
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn conditions() {
    let file = analysed("net10-startup.nettrace");
    let all = run(&["events", &file, "--json"]).well().lines();
    let text = |event: &Value, key: &str| event["fields"][key].as_str().map(str::to_owned);
    let number = |event: &Value, key: &str| event["fields"][key].as_u64();
    let thread = all[0]["thread_id"].as_u64().unwrap();
    let of_thread = format!("thread_id = {thread}");
    type Expected<'a> = &'a dyn Fn(&Value) -> bool;
    let cases: [(&[&str], Expected<'_>); 6] = [
        (&["ExceptionType = System.InvalidOperationException"], &|event| {
            text(event, "ExceptionType").is_some_and(|name| name == "System.InvalidOperationException")
        }),
        (&["ExceptionMessage ~ LAB"], &|event| {
            text(event, "ExceptionMessage").is_some_and(|message| message.contains("lab"))
        }),
        (&["MethodSize > 0x100"], &|event| number(event, "MethodSize").is_some_and(|size| size > 0x100)),
        (&["MethodSize>100", "MethodSize<=200"], &|event| {
            number(event, "MethodSize").is_some_and(|size| size > 100 && size <= 200)
        }),
        (&["id != 144", &of_thread], &|event| event["id"] != 144 && event["thread_id"] == thread),
        (&["name ~ gcrestart", "level<5"], &|event| {
            event["name"].as_str().is_some_and(|name| name.starts_with("GCRestart"))
        }),
    ];
    for (conditions, expected) in cases {
        let wheres: Vec<&str> = conditions.iter().flat_map(|condition| ["--where", condition]).collect();
        let args = [&["events", &file, "--json"], &wheres[..]].concat();
        let expected: Vec<_> = all.iter().filter(|event| expected(event)).cloned().collect();
        assert!(!expected.is_empty() && expected.len() < all.len(), "{conditions:?}");
        assert!(run(&args).well().lines() == expected, "{conditions:?}");
    }
    run(&["events", &file, "--where", "MethodSize"]).fails(2, "the operator is missing");
}

#[test]
fn columns() {
    let file = analysed("net10-startup.nettrace");
    let args = ["events", &file, "--only", "Microsoft-Windows-DotNETRuntime", "--json"];
    let all = run(&args).well().lines();
    let names = ["time_ns", "name", "ExceptionType", "GenerationNumber", "activity_id"];
    let (args, columns) = (&args[..4], names.join(","));
    let shown = |options: &[&str]| {
        let ran = run(&[args, options, &["--columns", &columns]].concat());
        let note = "no event has the field GenerationNumber";
        assert!(
            ran.status == Some(0) && ran.stderr.lines().count() == 1 && ran.stderr.contains(note),
            "{ran:?}"
        );
        ran
    };
    let rows = shown(&["--json"]).lines();
    assert_eq!(rows.len(), all.len());
    let text = shown(&[]).into_text();
    for ((event, row), line) in all.iter().zip(&rows).zip(text.lines()) {
        let expected = names.map(|name| event["fields"].get(name).unwrap_or_else(|| &event[name]).clone());
        assert!(row.as_object().unwrap().keys().eq(names));
        assert_eq!(names.map(|name| row[name].clone()), expected);
        let texts = expected.map(|value| match value {
            Value::Null => "-".to_owned(),
            Value::String(text) => text,
            value => value.to_string(),
        });
        assert_eq!(line, texts.join("\t"));
    }
    assert_eq!(text.lines().count(), all.len());
    assert!(rows.iter().any(|row| row["ExceptionType"].is_string()));
}

#[test]
fn counts_by_field() {
    let file = analysed("net10-startup.nettrace");
    let all = run(&["events", &file, "--json"]).well().lines();
    let rundown = "Microsoft-Windows-DotNETRuntimeRundown/144";
    let only = ["events", &file, "--only", rundown, "--count-by", "MethodNamespace"];
    let mut expected = BTreeMap::<String, u64>::new();
    for event in all.iter().filter(|event| event["id"] == 144 && event["version"].as_u64() > Some(0)) {
        if event["provider"] == "Microsoft-Windows-DotNETRuntimeRundown" {
            *expected.entry(event["fields"]["MethodNamespace"].as_str().unwrap().to_owned()).or_default() +=
                1;
        }
    }
    let rows = run(&[&only[..], &["--json"]].concat()).well().lines();
    let counts: Vec<u64> = rows.iter().map(|row| row["count"].as_u64().unwrap()).collect();
    assert!(counts.len() > 100 && counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
    let actual =
        rows.iter().map(|row| (row["value"].as_str().unwrap().to_owned(), row["count"].as_u64().unwrap()));
    assert_eq!(actual.collect::<BTreeMap<_, _>>(), expected);
    let text = run(&only).well().into_text();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("    EVENTS  MethodNamespace"));
    assert_eq!(lines.next(), Some(&*format!("{:>10}  {}", counts[0], rows[0]["value"].as_str().unwrap())));
    assert_eq!(lines.count(), rows.len() - 1);

    // A property of every event, and a field of some.
    let providers = run(&["events", &file, "--count-by", "provider", "--json"]).well().lines();
    let sum: u64 = providers.iter().map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(sum, all.len() as u64);
    let ran = run(&["events", &file, "--count-by", "ExceptionType"]);
    let with = all.iter().filter(|event| event["fields"].get("ExceptionType").is_some()).count();
    assert!(
        ran.text().contains(&format!("{with:>10}  System.InvalidOperationException\n")),
        "{}",
        ran.text()
    );
    assert_eq!(ran.stderr, format!("note: {} events have no field ExceptionType\n", all.len() - with));
}

#[test]
fn histograms() {
    let file = analysed("net10-startup.nettrace");
    let all = run(&["events", &file, "--json", "--where", "MethodSize >= 0"]).well().lines();
    let size = |event: &Value| event["fields"]["MethodSize"].as_f64().unwrap();
    let args = ["events", &file, "--hist", "MethodSize", "--where", "MethodSize >= 0"];
    let rows = run(&[&args[..], &["--json"]].concat()).well().lines();
    let mut sum = 0;
    for row in &rows {
        let (from, to) = (row["from"].as_f64().unwrap(), row["to"].as_f64().unwrap());
        assert_eq!(from * 2.0, to);
        let within = all.iter().filter(|event| (from..to).contains(&size(event))).count();
        assert_eq!(row["count"].as_u64(), Some(within as u64), "{row}");
        sum += within;
    }
    assert!(rows.len() > 5 && sum == all.len());
    let text = run(&args).well().into_text();
    assert_eq!(text.lines().count(), rows.len() + 1);
    assert_eq!(text.matches(&format!("  {}\n", "#".repeat(50))).count(), 1, "{text}");
    let ran = run(&["events", &file, "--hist", "MethodNamespace"]);
    assert!(ran.stderr.contains(" events have no number in the field MethodNamespace"), "{}", ran.stderr);
    run(&["events", &file, "--hist", "a", "--count-by", "b"]).fails(2, "cannot be used with");
}

#[test]
fn until() {
    let file = path("gen-net10-small-mixed.nettrace");
    let all = run(&["events", &file, "--json"]).well().lines();
    let at = all.iter().position(|event| event["name"] == "TaskCompleted").unwrap();
    let provider = all[at]["provider"].as_str().unwrap();
    let event = format!("{provider}/{}", all[at]["id"]);
    let shown = run(&["events", &file, "--json", "--until", "Other", "--until", &event]).well().lines();
    assert!(at > 0 && at < all.len() - 1 && shown == all[..=at]);
    // The event ends the output also if it is not shown itself.
    let only = ["events", &file, "--json", "--until", &event, "--where", "id < 0"];
    assert!(run(&only).fails(9, "no event is one of --where").lines().is_empty());
    // An event has a name, in any case of letters.
    let named = format!("{provider}/taskcompleted");
    assert!(run(&["events", &file, "--json", "--until", &named]).well().lines() == all[..=at]);
}

#[test]
fn fields_that_no_event_has() {
    let file = path("gen-net10-small-mixed.nettrace");
    for args in [&["--where", "nosuch = 1"][..], &["--columns", "id,nosuch"], &["--columns", "nosuch"]] {
        let ran = run(&[&["events", &file], args].concat());
        let status = if args[0] == "--where" { 9 } else { 0 };
        assert_eq!(ran.status, Some(status));
        assert!(ran.stderr.starts_with("note: no event has the field nosuch\n"), "{}", ran.stderr);
    }
    // No event fulfils the first condition, so the second one is never checked.
    let ran = run(&["events", &file, "--where", "id < 0", "--where", "nosuch = 1"]);
    assert_eq!((ran.status, ran.stderr.lines().count()), (Some(9), 1));
    for condition in ["AllocationAmount64 >", "AllocationAmount64 > abc"] {
        run(&["events", &file, "--where", condition]).fails(2, "> needs a number");
    }
}

/// `events --until … && next` runs `next` only after the event.
#[test]
fn a_file_without_the_event_of_until() {
    let file = path("gen-net10-small-mixed.nettrace");
    let all = run(&["events", &file]).well().into_text();
    let args = ["events", &file, "--until", "Other", "--until", "Microsoft-Windows-DotNETRuntime/9999"];
    let ran =
        run(&args).fails(4, "error: 'Other' or 'Microsoft-Windows-DotNETRuntime/9999' did not arrive\n");
    assert_eq!(ran.into_text(), all);
}

#[test]
fn only() {
    let file = path("gen-net10-small-mixed.nettrace");
    let all = run(&["events", &file, "--json"]).well().lines();
    let runtime = "microsoft-windows-dotnetruntime";
    for (args, wanted) in [
        (&["--only", runtime][..], &[(runtime, None)][..]),
        (
            &["--only", "System.Runtime", "--only", "Microsoft-Windows-DotNETRuntime/1"],
            &[("system.runtime", None), (runtime, Some(1))],
        ),
        (&["--only", "Microsoft-Windows-DotNETRuntime/GCStart"], &[(runtime, Some(1))]),
        (&["--only", "Unknown"], &[]),
    ] {
        let ran = run(&[&["events", &file, "--json"], args].concat());
        let is_unknown = args.contains(&"Unknown");
        assert_eq!(ran.status, Some(if is_unknown { 9 } else { 0 }), "{ran:?}");
        let shown = ran.lines();
        let mut expected = all.clone();
        expected.retain(|event| {
            let (provider, id, _) = identity(event);
            wanted.iter().any(|(name, of)| provider.to_lowercase() == *name && of.is_none_or(|of| of == id))
        });
        assert!(shown == expected, "{args:?}");
        assert_eq!(expected.is_empty(), is_unknown);
    }
    for (only, words) in [("A/_", "neither an ID nor a name"), ("", "missing"), ("/1", "missing")] {
        let ran = run(&["events", &file, "--only", only]);
        assert_eq!(ran.status, Some(2));
        assert!(ran.stderr.contains(words), "{ran:?}");
    }
}

#[test]
fn a_number_is_a_process_id_unless_there_is_the_option_file() {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(path("gen-net10-lab-small.nettrace"), directory.path().join("4294967")).unwrap();
    let run = |args: &[&str]| finish(tool(args).current_dir(directory.path()).spawn().unwrap());
    assert_eq!(run(&["events", "4294967"]).status, Some(3));
    assert_eq!(run(&["events", "99999999999"]).status, Some(3));
    assert_eq!(run(&["events", "4294967", "--file"]).well().text().lines().count(), 142);
    assert_eq!(run(&["events", "./4294967"]).well().text().lines().count(), 142);
    for args in [
        &["events"][..],
        &["events", "4294967", "--file", "--duration", "1s"],
        &["events", "./4294967", "--provider", "A"],
        &["events", "./4294967", "--wire-log", "log"],
        &["events", "./4294967", "--socket", "x"],
    ] {
        assert_eq!(run(args).status, Some(2), "{args:?}");
    }
}

#[test]
#[cfg(unix)]
fn a_closed_output_is_not_an_error() {
    let file = path("gen-net10-odd-payloads.nettrace");
    // The second trace is cut. Without a reader of the output, the cut is not reported.
    for file in [&file, &path("synth-cut-in-block.nettrace")] {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        finish(tool(&["events", file]).stdout(OwnedFd::from(theirs)).spawn().unwrap()).well();
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        let mut until = tool(&["events", file, "--until", "Other"]);
        let ran = finish(until.stdout(OwnedFd::from(theirs)).spawn().unwrap());
        assert_eq!(ran.status, Some(4), "{ran:?}");
    }
    let full = File::options().write(true).open("/dev/full").unwrap();
    let ran = finish(tool(&["events", &file]).stdout(full).spawn().unwrap());
    assert_eq!((ran.status, ran.stderr.lines().count()), (Some(1), 1), "{ran:?}");
}

/// Shows exactly the events between two times, whatever the blocks of the trace state, in the order of the trace and of
/// time. `rewrite` keeps the same events, and those that name code.
#[test]
fn events_between_two_times() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("part.nettrace").to_str().unwrap().to_owned();
    let mut skipped = 0;
    for (path, expected) in traces() {
        let (_, status) = expected_end(&expected);
        let lines = |args: &[&str]| {
            let ran = run(&[&["events", "--json"], args].concat());
            assert_eq!(ran.status, Some(status), "{path}: {ran:?}");
            ran.into_text().lines().map(str::to_owned).collect::<Vec<String>>()
        };
        let time = |line: &String| serde_json::from_str::<Value>(line).unwrap()["time_ns"].as_i64().unwrap();
        let all = lines(&[&path]);
        let mut times: Vec<i64> = all.iter().map(time).filter(|time| *time >= 0).collect();
        times.sort_unstable();
        let (Some(from), Some(to)) = (times.get(times.len() / 4), times.get(times.len() / 4 * 3)) else {
            continue;
        };
        let seconds = |ns: i64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let range = ["--from", &seconds(*from), "--to", &seconds(*to)];
        for order in [None, Some("--ordered")] {
            let args: Vec<&str> = [&path[..]].into_iter().chain(order).collect();
            let inside = |line: &String| (*from..=*to).contains(&time(line));
            let filtered: Vec<String> = lines(&args).into_iter().filter(inside).collect();
            assert!(lines(&[&args[..], &range].concat()) == filtered, "{path} {order:?}");
            assert!(!filtered.is_empty(), "{path}");
        }
        let kept = lines(&[&[&path[..]], &range[..]].concat()).len();
        let ran = run(&[&["rewrite", &path, "-o", &file, "--overwrite", "--json"], &range[..]].concat());
        let summary = ran.json();
        let [all, names] = ["kept", "names"].map(|key| summary[key].as_u64().unwrap());
        assert_eq!(all - names, u64::try_from(kept).unwrap(), "{path}");
        // Without the events that name code, no block of another time is needed.
        assert_eq!(summary["skipped_blocks"], 0, "{path}");
        let only = ["rewrite", &path, "-o", &file, "--overwrite", "--json", "--only", "None"];
        let summary = run(&[&only[..], &range].concat()).json();
        let blocks = summary["skipped_blocks"].as_u64().unwrap();
        assert!(blocks == 0 || !path.contains("v3") && !path.contains("v6"), "{path}: {blocks} blocks");
        skipped += blocks;
    }
    assert!(skipped > 0, "blocks of runtimes are skipped by the times that they state");
}

/// Blocks that state wrong times are skipped. The tool reports wrong times once an event contradicts them.
#[test]
fn blocks_with_wrong_times_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("lies.nettrace");
    let copy = directory.path().join("copy.nettrace");
    let mut bytes = fs::read(path("gen-net10-small-mixed.nettrace")).unwrap();
    let mut parser = Parser::new(Limits::default());
    let source = bytes.clone();
    let (mut bodies, mut times) = (Vec::new(), Vec::new());
    loop {
        match parser.next(&source) {
            Record::Block(block) if block.kind == BlockKind::Event => {
                bodies.push(usize::try_from(block.body).unwrap());
            }
            Record::Event(event) => times.push(event.timestamp),
            Record::End(_) => break,
            _ => {}
        }
    }
    times.sort_unstable();
    // The second block states times of long ago. The third block states the last time, which is in the wanted range.
    for (body, time) in [(bodies[1], 1), (bodies[2], *times.last().unwrap())] {
        bytes[body + 4..body + 20].copy_from_slice(&[time; 2].map(u64::to_le_bytes).concat());
    }
    fs::write(&file, bytes).unwrap();
    let (file, copy) = (file.to_str().unwrap(), copy.to_str().unwrap());
    for args in [
        &["events", file][..],
        &["rewrite", file, "-o", copy, "--only", "Microsoft-DotNETCore-SampleProfiler"],
    ] {
        let ran = run(&[args, &["--from", "1ms"]].concat());
        let message = ran.stderr;
        assert_eq!((ran.status, message.contains("events may be missing")), (Some(0), true), "{message}");
        let ran = run(&[args, if args[0] == "events" { &[] } else { &["--overwrite"] }].concat());
        assert!(!ran.stderr.contains("missing"), "{}", ran.stderr);
    }
}

/// NativeAOT writes the path of its program with the bytes that follow it in memory. No option changes where it ends.
#[test]
fn the_path_of_a_native_program_ends_where_that_of_its_process_does() {
    const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
    let (mut buf, mut trace) = (vec![0; TraceWriter::BUFFER], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    put!(trace, writer.describe(&Metadata::new(1, "Microsoft-DotNETCore-EventPipe", 1, "ProcessInfo")));
    let mut module = Metadata::new(2, RUNDOWN, 154, "");
    module.version = 2;
    put!(trace, writer.describe(&module));
    let process = utf16("/lab/App --port 1");
    let module = [
        &[7; 24][..],
        &utf16(""),
        &utf16("/lab/App\u{4}\u{7f48}"),
        &[9; 22],
        &utf16(""),
        &[9; 20],
        &utf16(""),
    ];
    for (metadata_id, timestamp, payload) in [(1, 1, process), (2, 2_000_000_000, module.concat())] {
        let event = Event { metadata_id, timestamp, payload: &payload, ..Event::default() };
        put!(trace, writer.event(&event));
    }
    trace.extend_from_slice(&writer.finish());
    for (options, place) in [
        (&[][..], "/fields/ModuleNativePath"),
        (&["--only", RUNDOWN], "/fields/ModuleNativePath"),
        (&["--from", "1"], "/fields/ModuleNativePath"),
        (&["--where", "ModuleNativePath=/lab/App"], "/fields/ModuleNativePath"),
        (&["--columns", "ModuleNativePath"], "/ModuleNativePath"),
        (&["--only", RUNDOWN, "--count-by", "ModuleNativePath"], "/value"),
    ] {
        let ran = run_with(&[&["events", "-", "--json"], options].concat(), trace.clone()).well();
        let shown = ran.lines().pop().unwrap();
        assert_eq!(shown.pointer(place), Some(&json!("/lab/App")), "{options:?}");
    }
}
