//! Events, statistics and copies of traces of version 6: processes, labels, threads, and numbers that lead nowhere.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use ipc_proto::Guid;
use nettrace::{
    Event, Fields, Label, Metadata, Pairs, Scalar, SequencePoint, Stack, ThreadEntry, ThreadSequence, Trace,
    TraceWriter, Version,
};
use serde_json::{Value, json};

use crate::tool::{run, run_with};
use crate::traces::put;

/// A trace of version 6 under construction.
macro_rules! written {
    ($trace:expr, $($method:ident($($arg:expr),*));* $(;)?) => {{
        let (mut buf, mut out) = (vec![0; 1 << 20], Vec::new());
        let mut writer = TraceWriter::new(&$trace, &mut buf).unwrap();
        $(out.extend_from_slice(&writer.$method($($arg),*).unwrap());)*
        out.extend_from_slice(&writer.finish());
        out
    }};
}

fn event(thread: u64, sequence: u32) -> Event<'static> {
    Event { metadata_id: 1, thread, capture_thread: thread, sequence, sorted: true, ..Event::default() }
}

fn of_process(id: u32) -> Trace<'static> {
    Trace { process_id: Some(id), ..Trace::new(Version::V6) }
}

fn events(trace: &[u8]) -> Vec<Value> {
    run_with(&["events", "-", "--json"], trace.to_vec()).well().lines()
}

fn stats(trace: &[u8]) -> Value {
    run_with(&["stats", "-", "--json"], trace.to_vec()).well().json()
}

#[test]
fn labels_and_threads_are_shown() {
    let pairs = b"\x04Host\x01h";
    let trace = Trace { pairs: Pairs::from_bytes(pairs), ..of_process(77) };
    let mut metadata = Metadata::new(1, "Demo", 7, "Tick");
    (metadata.message_template, metadata.description) = (Some("{x}".into()), Some("a clock".into()));
    let id = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    let labels = [
        Label::ActivityId(Guid([5; 16])),
        Label::TraceId(id),
        Label::SpanId(0xab),
        Label::Text("k".into(), "\"v\"".into()),
        Label::Number("k".into(), -1),
    ];
    let entries = [
        ThreadEntry::Name("worker ü".into()),
        ThreadEntry::ProcessId(84),
        ThreadEntry::ThreadId(12),
        ThreadEntry::Pair("pool".into(), "1".into()),
    ];
    let bytes = written!(trace,
        describe(&metadata);
        thread(1, entries);
        thread(2, [ThreadEntry::ThreadId(13)]);
        label_list(1, labels);
        event(&Event { label_list: 1, ..event(1, 1) });
        event(&event(2, 1));
    );
    let shown = events(&bytes);
    let expected = [
        ("thread_id", json!(12), json!(13)),
        ("process_id", json!(84), json!(77)),
        ("trace_id", json!("0102030405060708090a0b0c0d0e0f10"), Value::Null),
        ("span_id", json!("00000000000000ab"), Value::Null),
        ("labels", json!({ "k": "\"v\"", "k#2": -1 }), json!({})),
        ("thread_name", json!("worker ü"), Value::Null),
        ("thread_attributes", json!({ "pool": "1" }), json!({})),
    ];
    for (key, first, second) in expected {
        assert_eq!((&shown[0][key], &shown[1][key]), (&first, &second), "{key}");
    }
    let text = run_with(&["events", "-"], bytes.clone()).well().into_text();
    assert!(text.contains(" [84/12] Demo/7 Tick") && text.contains(" [13] Demo/7 Tick"), "{text}");
    let columns = ["events", "-", "--columns", "process_id,thread_name,labels.k", "--where", "labels.k ~ v"];
    assert_eq!(run_with(&columns, bytes.clone()).well().text(), "84\tworker ü\t\"v\"\n");

    let stats = stats(&bytes);
    assert_eq!(stats["pairs"], json!({ "Host": "h", "ProcessId": "77" }));
    let kind = &stats["by_event"][0];
    assert_eq!([&kind["message_template"], &kind["description"]], [&json!("{x}"), &json!("a clock")]);
    let text = run_with(&["stats", "-"], bytes).well().into_text();
    assert!(text.contains("Host=h") && text.contains("Demo/7: a clock; \"{x}\""), "{text}");
}

/// JavaScript would round ids from 2^53 on.
#[test]
fn large_ids_are_texts() {
    let id = (1 << 53) + 1;
    let bytes = written!(of_process(1),
        describe(&Metadata::new(1, "Demo", 7, ""));
        thread(1, [ThreadEntry::ProcessId(id), ThreadEntry::ThreadId(id)]);
        event(&event(1, 1));
    );
    let columns = ["events", "-", "--json", "--columns", "thread_id,process_id"];
    for shown in [events(&bytes), run_with(&columns, bytes.clone()).well().lines()] {
        assert_eq!([&shown[0]["thread_id"], &shown[0]["process_id"]], ["9007199254740993"; 2]);
    }
}

/// The system gives the id of a thread that has ended to another one. The samples and names of both stay apart.
#[test]
fn a_thread_id_that_is_used_again() {
    let sample = |thread, sequence, time: u64| Event {
        timestamp: time * 1_000_000,
        stack_id: 1,
        payload: &[2, 0, 0, 0],
        ..event(thread, sequence)
    };
    let of = |name: &'static str| [ThreadEntry::Name(name.into()), ThreadEntry::ThreadId(9)];
    let ended = ThreadSequence { thread: 1, sequence: 2 };
    let bytes = written!(Trace { frequency: 1_000_000_000, ..of_process(100) },
        describe(&Metadata::new(1, "Microsoft-DotNETCore-SampleProfiler", 0, ""));
        stack(&Stack { id: 1, bytes: &[0; 8] });
        thread(1, of("importer"));
        event(&sample(1, 1, 1));
        event(&sample(1, 2, 2));
        remove_thread(&ended);
        thread(2, of("renderer"));
        event(&sample(2, 1, 30));
        event(&sample(2, 2, 31));
        event(&sample(2, 3, 32));
    );
    let shown =
        |args: &[&str]| run_with(&[&["report", "-", "--json"], args].concat(), bytes.clone()).well().json();
    let all = shown(&["--threads"]);
    let names: Vec<&Value> = all["threads"].as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["renderer", "importer"]);
    // The time between the end of the first thread and the start of the second one belongs to no thread.
    assert_eq!(shown(&["--thread-time"])["total"], 3_000_000);
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("thread-id-again.nettrace");
    fs::write(&file, &bytes).unwrap();
    let file = file.to_str().unwrap();
    for (name, samples) in [("importer", 2), ("renderer", 3)] {
        let args = ["report", file, "--thread", name, "--json"];
        assert_eq!(run(&args).well().json()["samples"], samples, "{name}");
        assert_eq!(run(&["events", file, "--thread", name, "--json"]).well().lines().len(), samples);
        assert_eq!(run(&["stats", file, "--thread", name, "--json"]).well().json()["events"], samples);
    }
    assert_eq!(run(&["report", file, "--thread", "9", "--json"]).well().json()["samples"], 5);
    let flame = |format| run(&["flame", file, "-o", "-", "--format", format, "--thread-time"]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let firefox = flame("firefox").json();
    let tracks = firefox["threads"].as_array().unwrap().iter();
    assert_eq!(tracks.map(|track| text(&track["name"])).collect::<Vec<_>>().len(), 2, "{firefox}");
    let chromium = flame("chromium").json();
    let of_threads = chromium["traceEvents"].as_array().unwrap().iter();
    let tracks = of_threads.filter(|event| event["name"] == "thread_name");
    let tracks: BTreeMap<u64, String> =
        tracks.map(|event| (event["tid"].as_u64().unwrap(), text(&event["args"]["name"]))).collect();
    assert_eq!(
        tracks.into_values().collect::<BTreeSet<_>>(),
        ["importer", "renderer"].map(str::to_owned).into()
    );
    let speedscope = flame("speedscope").json();
    assert_eq!(speedscope["profiles"].as_array().unwrap().len(), 2, "{speedscope}");
}

/// Each event can refer to the same long list.
#[test]
fn long_labels_are_cut() {
    let long = "v".repeat(5000);
    let labels: Vec<Label<'_>> = (0..100).map(|_| Label::Text("k".into(), (&*long).into())).collect();
    let bytes = written!(of_process(1),
        describe(&Metadata::new(1, "Demo", 7, ""));
        thread(1, [ThreadEntry::ThreadId(1)]);
        label_list(1, labels.iter().copied());
        event(&Event { label_list: 1, ..event(1, 1) });
    );
    let shown = events(&bytes);
    assert_eq!(shown[0]["cut"], true);
    assert!(shown[0].to_string().len() < 64 * 300, "{}", shown[0].to_string().len());
}

#[test]
fn processes_are_told_apart() {
    let of = |process, id| [ThreadEntry::ProcessId(process), ThreadEntry::ThreadId(id)];
    let bytes = written!(Trace::new(Version::V6),
        describe(&Metadata::new(1, "Demo", 7, ""));
        thread(1, of(100, 7));
        thread(2, of(200, 7));
        thread(3, of(200, 8));
        event(&event(1, 1));
        event(&event(2, 1));
        event(&event(2, 4));
        event(&event(3, 1));
    );
    let stats_of = |args: &[&str]| run_with(&[&["stats", "-", "--json"], args].concat(), bytes.clone());
    let all = stats_of(&[]).well().json();
    let processes = json!([
        { "process_id": 100, "events": 1, "threads": 1 },
        { "process_id": 200, "events": 3, "threads": 2 },
    ]);
    assert_eq!((&all["processes"], &all["lost"]), (&processes, &json!(2)));
    for (id, events, lost) in [("100", 1, 0), ("200", 3, 2)] {
        let one = stats_of(&["--process", id]).well().json();
        assert_eq!([&one["events"], &one["lost"]], [&json!(events), &json!(lost)], "{id}");
        assert_eq!(one["processes"].as_array().unwrap().len(), 1);
        let shown = run_with(&["events", "-", "--json", "--process", id], bytes.clone()).lines();
        assert_eq!(shown.len(), events);
        assert!(shown.iter().all(|event| event["process_id"] == id.parse::<u64>().unwrap()));
    }
    stats_of(&["--process", "300"]).fails(9, "no event of process 300");
    let ran = run_with(&["events", "-", "--process", "300"], bytes.clone());
    assert_eq!((ran.status, ran.stderr.lines().last().unwrap().contains("process 300")), (Some(9), true));
    let text = run_with(&["stats", "-"], bytes.clone()).well().into_text();
    assert!(
        text.contains("processes:       200 (3 events, 2 threads), 100 (1 events, 1 threads)\n"),
        "{text}"
    );
    // The copy of version 4 has the same losses, although two threads have the same ID.
    let copy = rewritten(&bytes, "4");
    assert_eq!(stats(&copy)["lost"], 2);
}

fn rewritten(trace: &[u8], format: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let [source, copy] = ["source", "copy"].map(|name| directory.path().join(name));
    fs::write(&source, trace).unwrap();
    let [from, to] = [&source, &copy].map(|path| path.to_str().unwrap());
    assert_eq!(run(&["rewrite", from, "-o", to, "--format", format]).status, Some(0));
    fs::read(copy).unwrap()
}

/// Events refer to their thread, stack, labels and description by numbers. A number that leads nowhere is unknown.
#[test]
fn numbers_that_lead_nowhere() {
    let metadata = |id| Metadata::new(id, "Demo", 7, "");
    let row = |thread, sequence| ThreadSequence { thread, sequence };
    let id = |id| [ThreadEntry::ThreadId(id)];
    let flush = SequencePoint { flags: 3, ..SequencePoint::default() };
    let bytes = written!(of_process(1),
        describe(&metadata(1));
        describe(&metadata(1));
        thread(1, id(70));
        thread(1, id(70));
        thread(2, id(71));
        stack(&Stack { id: 1, bytes: &[1; 8] });
        label_list(1, [Label::Opcode(1)]);
        // All numbers lead somewhere, and then none.
        event(&Event { stack_id: 1, label_list: 1, ..event(1, 1) });
        event(&Event { metadata_id: 9, stack_id: 9, label_list: 9, ..event(9, 50) });
        remove_thread(&row(1, 1));
        remove_thread(&row(1, 1));
        event(&event(1, 60));
        sequence_point(&flush);
        thread_sequence(&row(9, 50));
        event(&Event { stack_id: 1, label_list: 1, ..event(2, 90) });
    );
    let expected = json!({
        "metadata": { "undeclared": 1, "removed": 1, "declared_twice": 1, "removed_twice": 0 },
        "threads": { "undeclared": 1, "removed": 2, "declared_twice": 1, "removed_twice": 1 },
        "stacks": { "undeclared": 1, "removed": 1, "declared_twice": 0, "removed_twice": 0 },
        "label_lists": { "undeclared": 1, "removed": 1, "declared_twice": 0, "removed_twice": 0 },
    });
    let source = stats(&bytes);
    assert_eq!((&source["unresolved"], &source["lost"]), (&expected, &json!(0)));
    let text = run_with(&["stats", "-"], bytes.clone()).well().into_text();
    assert!(text.contains("2 references to removed threads, 1 second declarations of threads"), "{text}");
    for trace in [bytes.clone(), rewritten(&bytes, "6"), rewritten(&bytes, "4")] {
        let shown = events(&trace);
        let ids: Vec<&Value> = shown.iter().map(|event| &event["thread_id"]).collect();
        assert_eq!(ids, [&json!(70), &Value::Null, &Value::Null, &Value::Null]);
        let providers: Vec<bool> = shown.iter().map(|event| event["provider"].is_null()).collect();
        assert_eq!(providers, [false, true, false, true]);
        let stacks: Vec<usize> = shown.iter().map(|event| event["stack"].as_array().unwrap().len()).collect();
        assert_eq!((stacks, &stats(&trace)["lost"]), (vec![1, 0, 0, 0], &json!(0)));
    }
    let text = run_with(&["events", "-"], bytes).well().into_text();
    assert!(text.contains(" [?] (not described)"), "{text}");
}

/// Without fields in their descriptions, the events of a whole machine are known by their names.
#[test]
fn universal_events() {
    let bytes = written!(of_process(1),
        describe(&Metadata::new(1, "Universal.System", 42, "ProcessExit"));
        describe(&Metadata::new(2, "Universal.System", 41, "ProcessCreate"));
        thread(1, [ThreadEntry::ThreadId(1)]);
        event(&event(1, 1));
        event(&Event { metadata_id: 2, payload: b"\x07\x04\0bash\x01\0?", ..event(1, 2) });
    );
    let shown = events(&bytes);
    assert_eq!(shown[1]["fields"], json!({ "NamespaceId": 7, "Name": "bash", "NamespaceName": "?" }));
    assert_eq!(shown[0]["fields"], json!({}));
    // The types of these fields exist in version 6 only. The names remain.
    assert_eq!(events(&rewritten(&bytes, "4"))[1]["fields"], shown[1]["fields"]);
}

/// The command reports the values that version 4 cannot state.
#[test]
fn a_copy_of_version_4_reports_its_losses() {
    let mut space = [0; 64];
    let mut metadata = Metadata::new(1, "Demo", 7, "");
    metadata.fields = Fields::build(&[("b", Scalar::Boolean8)], &mut space).unwrap();
    metadata.description = Some("d".into());
    let bytes = written!(of_process(1),
        describe(&metadata);
        thread(1, [ThreadEntry::ThreadId(1), ThreadEntry::ProcessId(2)]);
        event(&Event { payload: &[1], ..event(1, 1) });
    );
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("out").to_str().unwrap().to_owned();
    let ran = run_with(&["rewrite", "-", "-o", &file, "--format", "4"], bytes.clone());
    for note in [
        "1 event descriptions have bytes instead of texts in UTF-8 or booleans",
        "1 templates, meanings, GUIDs and attributes of event descriptions were removed",
        "1 properties of threads, such as names and processes, were removed",
    ] {
        let expected = format!("note: {note}: this version of the format cannot represent them\n");
        assert!(ran.stderr.contains(&expected), "{ran:?}");
    }
    // The provider is unknown, and its event is emptied if command lines are removed.
    let plain = {
        let mut trace = Vec::new();
        let mut buf = vec![0; 1 << 16];
        let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
        put!(trace, writer.describe(&Metadata::new(1, "Demo", 7, "")));
        put!(trace, writer.event(&Event { payload: b"secret", ..event(1, 1) }));
        trace.extend_from_slice(&writer.finish());
        trace
    };
    let args = ["rewrite", "-", "-o", &file, "--overwrite", "--strip-command-line", "--json"];
    let ran = run_with(&args, plain);
    assert_eq!((ran.status, &ran.json()["unjudged"]), (Some(0), &json!(1)), "{ran:?}");
    assert!(ran.stderr.contains("it is unknown whether they have a command line"), "{ran:?}");
    assert!(!fs::read(&file).unwrap().windows(6).any(|window| window == b"secret"));
}
