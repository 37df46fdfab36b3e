//! Lengths of what `dotnet-ipc events` writes: long names, long stacks, many fields.

use nettrace::{Event, FieldType, Fields, Metadata, Scalar, Stack, Trace, TraceWriter, Version};
use serde_json::{Value, json};

use crate::tool::run_with;
use crate::traces::{made, put, utf16};

/// A few bytes can refer to a stack whose names are long.
#[test]
fn long_stacks_of_names_are_cut() {
    let (mut buf, mut trace) = (vec![0; 64 << 10], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    put!(trace, writer.describe(&Metadata::new(1, "Microsoft-Windows-DotNETRuntime", 143, "")));
    let addresses: Vec<u8> = [0x1000_u64; 100].iter().flat_map(|ip| ip.to_le_bytes()).collect();
    put!(trace, writer.stack(&Stack { id: 1, bytes: &addresses }));
    let numbers = [1_u64, 7, 0x1000].iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let more = [0x10_u32, 0, 0].iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let row = [numbers, more, utf16(&"T".repeat(2000)), utf16("Run"), utf16("void ()")].concat();
    let event = Event { metadata_id: 1, stack_id: 1, sequence: 1, payload: &row, ..Event::default() };
    put!(trace, writer.event(&event));
    trace.extend_from_slice(&writer.finish());
    let event = &run_with(&["events", "-", "--stacks", "--json"], trace.clone()).well().lines()[0];
    let frames = event["stack"].as_array().unwrap();
    assert_eq!(frames[0], format!("ManagedModule!{}.Run()", "T".repeat(2000)));
    assert_eq!((frames.len(), &event["cut"]), (33, &json!(true)));
    let text = run_with(&["events", "-", "--stacks"], trace).well().into_text();
    assert_eq!(text.lines().filter(|line| line.starts_with("    ManagedModule!TTT")).count(), 100);
}

/// An event with many fields takes no longer for each field than one with few.
#[test]
fn many_fields() {
    const MANY: usize = 30_000;
    let names: Vec<String> = (0..MANY).map(|n| format!("n{n}")).collect();
    let distinct: Vec<(u32, &str)> = names.iter().map(|name| (6, name.as_str())).collect();
    let same = vec![(6, "x"); MANY];
    let payload = vec![7; MANY];
    let ran = run_with(&["events", "-", "--json"], made(&[(&same, &payload), (&distinct, &payload)])).well();
    let events = ran.lines();
    for (event, name) in [(&events[0], "x#30000"), (&events[1], "n29999")] {
        let fields = event["fields"].as_object().unwrap();
        assert_eq!((fields.len(), fields.keys().next_back().unwrap().as_str()), (MANY, name));
    }
    // An object that grows beyond the number of keys that are compared one by one.
    let names = ["x", "y", "x", "x#2", "y#3", "y", "y", "y"];
    let all: Vec<(u32, &str)> = names.iter().cycle().take(40).map(|name| (6, *name)).collect();
    let ran = run_with(&["events", "-", "--json"], made(&[(&all, &payload[..40])])).well();
    let events = ran.lines();
    let fields = events[0]["fields"].as_object().unwrap();
    assert_eq!(fields.len(), 40);
    let keys: Vec<&String> = fields.keys().take(8).collect();
    assert_eq!(keys, ["x", "y", "x#2", "x#2#2", "y#3", "y#2", "y#4", "y#5"]);
}

/// Neither does an event with many objects, also if events of its kind precede it.
#[test]
fn many_objects() {
    const MANY: usize = 1_000;
    let names: Vec<String> = (0..MANY).map(|n| format!("n{n}")).collect();
    let (mut buf, mut inner, mut outer) = (vec![0; TraceWriter::BUFFER], [0; 64], vec![0; 64 << 10]);
    let object = FieldType::Object(Fields::build(&[("v", Scalar::Byte)], &mut inner).unwrap());
    let fields: Vec<_> = names.iter().map(|name| (name.as_str(), object)).collect();
    let mut trace = Vec::new();
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    let mut metadata = Metadata::new(1, "Made", 1, "It");
    metadata.fields = Fields::build(&fields, &mut outer).unwrap();
    put!(trace, writer.describe(&metadata));
    for sequence in 1..=1_000 {
        let event = Event { metadata_id: 1, sequence, payload: &[7; MANY], ..Event::default() };
        put!(trace, writer.event(&event));
    }
    trace.extend_from_slice(&writer.finish());
    let events = run_with(&["events", "-", "--json"], trace).well().lines();
    let expected: serde_json::Map<_, _> = names.into_iter().map(|name| (name, json!({ "v": 7 }))).collect();
    assert!(events.len() == 1_000 && events.iter().all(|event| event["fields"] == json!(expected)));
}

/// Each event repeats the names of its description, which a trace has once.
#[test]
fn long_names_are_cut() {
    let long = "\u{e9}".repeat(300);
    let cut = format!("{}…", "\u{e9}".repeat(256));
    let exact = "\u{e9}".repeat(256);
    let trace = made(&[(&[(6, &long), (6, &long), (6, &exact)], &[1, 2, 3]), (&[(6, &exact)], &[4])]);
    let ran = run_with(&["events", "-", "--json"], trace.clone()).well();
    let events = ran.lines();
    assert_eq!(events[0]["fields"], json!({ cut.clone(): 1, format!("{cut}#2"): 2, exact.clone(): 3 }));
    assert_eq!((&events[0]["cut"], &events[1]["cut"]), (&json!(true), &Value::Null));
    assert_eq!(events[1]["fields"], json!({ exact.clone(): 4 }));
    let ran = run_with(&["events", "-"], trace).well();
    let lines: Vec<&str> = ran.text().lines().collect();
    assert!(lines[0].ends_with(&format!(" {cut}=1 {cut}=2 {exact}=3 (cut)")), "{}", lines[0]);
    assert!(lines[1].ends_with(&format!(" {exact}=4")), "{}", lines[1]);
}

/// The length of the fields in a line depends on the payload, and not on the description.
#[test]
fn fields_with_much_more_name_than_value_are_cut() {
    let names: Vec<String> = (0..1000).map(|n| format!("{n:0200}")).collect();
    // Empty strings: a NUL of two bytes each.
    let fields: Vec<(u32, &str)> = names.iter().map(|name| (18, name.as_str())).collect();
    let ran = run_with(&["events", "-", "--json"], made(&[(&fields, &[0; 2000])])).well();
    let event = &ran.lines()[0];
    let shown = event["fields"].as_object().unwrap().len();
    assert!((600..700).contains(&shown), "{shown} fields");
    assert_eq!((&event["cut"], event.get("rest"), event.get("error")), (&json!(true), None, None));
    let ran = run_with(&["events", "-"], made(&[(&fields, &[0; 2000])])).well();
    assert!(ran.text().lines().next().unwrap().ends_with(" (cut)"));
}

/// An event of few bytes can refer to a stack of any length.
#[test]
fn long_stacks_and_names_are_cut() {
    let long = "N".repeat(1000);
    let addresses = |n: u64| (1..=n).flat_map(u64::to_le_bytes).collect::<Vec<_>>();
    let (mut buf, mut trace) = (vec![0; 64 << 10], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    put!(trace, writer.describe(&Metadata::new(1, &long, 0, &long)));
    for (id, len) in [(1, 256), (2, 257)] {
        let bytes = addresses(len);
        put!(trace, writer.stack(&Stack { id, bytes: &bytes }));
    }
    for stack_id in [1, 2] {
        put!(
            trace,
            writer.event(&Event { metadata_id: 1, stack_id, sequence: stack_id, ..Event::default() })
        );
    }
    trace.extend_from_slice(&writer.finish());
    let events = run_with(&["events", "-", "--json"], trace.clone()).well().lines();
    let cut = format!("{}…", "N".repeat(256));
    for event in &events {
        assert_eq!(
            (&event["provider"], &event["name"], &event["cut"]),
            (&json!(cut), &json!(cut), &json!(true))
        );
        assert_eq!(event["stack"].as_array().unwrap().len(), 256);
    }
    // The column of a table is as wide as its longest name.
    let text = run_with(&["stats", "-"], trace).well().into_text();
    assert!(text.contains(&cut) && text.len() < 2500, "{} bytes", text.len());
}
