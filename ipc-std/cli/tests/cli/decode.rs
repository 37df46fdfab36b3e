//! Tests of `decode`: its forms of input, its output, and the positions of errors.

use std::fs;
use std::path::{Path, PathBuf};

use ipc_proto::Violation;
use ipc_testkit::{FakeRuntime, Profile};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tool::{run, run_with};

fn testdata(file: &str) -> String {
    format!("{}/../../testdata/{file}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_message_is_shown_field_by_field() {
    let ran = run(&["decode", &testdata("messages/StopTracing.request.hex")]).well();
    let lines: Vec<_> = ran.text().lines().collect();
    assert_eq!(lines[0], "StopTracing 0x0201, request (28 bytes)");
    assert!(lines[1].starts_with("     0  44 4f 54 4e 45 54 5f 49 50 43 5f 56 31 00"), "{}", ran.text());
    assert!(lines[1].ends_with(r#"magic: "DOTNET_IPC_V1\0""#), "{}", ran.text());
    assert!(lines[4].starts_with("    17  01  ") && lines[4].ends_with("command_id: 1 StopTracing"));
    assert!(lines[6].starts_with("    20  ") && lines[6].contains("session_id: "), "{}", ran.text());

    let ran =
        run(&["decode", "--json", &testdata("messages/SetEnvironmentVariable.absent.request.hex")]).well();
    let message = ran.json();
    let keys: Vec<_> = message.as_object().unwrap().keys().collect();
    let expected = ["kind", "command", "code", "size", "fields", "rest", "legacy", "error", "violation"];
    assert_eq!(keys, expected);
    assert_eq!((&message["command"], &message["code"]), (&json!("SetEnvironmentVariable"), &json!("0x0403")));
    let fields = message["fields"].as_array().unwrap();
    let name = fields.iter().find(|field| field["name"] == "name").unwrap();
    assert_eq!(name["offset"], 24);
    let value = fields.last().unwrap();
    assert_eq!(
        (&value["name"], &value["length"], &value["value"]),
        (&json!("value"), &json!(0), &Value::Null)
    );
    let sum: u64 = fields.iter().map(|field| field["length"].as_u64().unwrap()).sum();
    assert_eq!(message["size"], sum);
}

const RESUME: &str = "444f544e45545f4950435f563100140004010000";

#[test]
fn bytes_in_every_form() {
    let directory = TempDir::new().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let bytes = b"DOTNET_IPC_V1\0\x14\0\x04\x01\0\0";
    let expected = run(&["decode", RESUME]).well().into_text();
    assert!(expected.starts_with("ResumeRuntime 0x0401, request (20 bytes)\n"), "{expected}");
    let spaced = "0x44 0x4f 54:4e:45 54 5f 49 50 43 5f 56 31 00 | 14 00 | 04 | 01 | 00 00";
    let words: Vec<&str> = spaced.split(' ').collect();
    for ran in [
        run(&["decode", spaced]),
        run(&[&["decode"], &words[..]].concat()),
        run(&["decode", &file("binary", bytes)]),
        run(&["decode", &file("text", format!("# a comment\n{spaced} # another\n").as_bytes())]),
        run_with(&["decode", "-"], bytes),
        run_with(&["decode"], RESUME.as_bytes()),
    ] {
        assert_eq!(ran.well().into_text(), expected);
    }
    run(&["decode", "/nowhere/message.bin"]).fails(1, "there is no file /nowhere/message.bin");
    run(&["decode", "hello"]).fails(2, "\"hello\" is not hexadecimal");
    run_with(&["decode", "-"], b"{\"no\": \"log\"}").fails(2, "line 1: no line of a wire log");
    run_with(&["decode", "-"], b"0 1").fails(2, "standard input");
}

#[test]
fn a_response_needs_the_command_of_its_request() {
    let answer = fs::read_to_string(testdata("messages/StopTracing.response.hex")).unwrap();
    let show = |args: &[&str]| run_with(&[&["decode"], args].concat(), answer.as_bytes());
    let ran = show(&[]).well();
    assert!(ran.text().starts_with("OK response; --answer-to COMMAND shows its fields (28 bytes)\n"));
    assert!(ran.text().contains("payload: 8 bytes"));
    for name in ["StopTracing", "stoptracing", "0x0201", "0201"] {
        let ran = show(&["--answer-to", name]).well();
        assert!(ran.text().starts_with("OK response to StopTracing 0x0201 (28 bytes)\n"), "{ran:?}");
        assert!(ran.text().contains("session_id: "), "{ran:?}");
    }
    // The specification has another name for the command, which the tool accepts too.
    let info = testdata("messages/GetProcessInfo2.net10.response.hex");
    let ran = run(&["decode", &info, "--answer-to", "ProcessInfo2", "--json"]).well();
    assert_eq!(ran.json()["command"], "GetProcessInfo2");
    for unknown in ["StartTracing", "+408", "0x+408", "40800"] {
        show(&["--answer-to", unknown]).fails(2, "no such command");
    }
}

#[test]
fn several_messages_are_decoded_in_sequence() {
    let vector =
        |name: &str| fs::read_to_string(testdata(&format!("messages/GetProcessEnvironment.{name}"))).unwrap();
    let all =
        ["request.hex", "odd-entries.response.hex", "odd-entries.continuation.hex"].map(vector).concat();
    let ran = run_with(&["decode", "--json"], all.as_bytes()).well();
    let frames: Vec<Value> = ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = frames.iter().map(|frame| frame["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["request", "ok", "environment"]);
    assert_eq!(frames[1]["command"], "GetProcessEnvironment");
    let values: Vec<_> =
        frames[2]["fields"].as_array().unwrap().iter().map(|field| &field["value"]).collect();
    assert!(values.contains(&&json!("NO_EQUALS_SIGN")), "{values:?}");
    let cut = run_with(&["decode"], all.trim_end().trim_end_matches(|c| c != '\n').as_bytes());
    cut.fails(6, "message 3 is malformed: environment[");

    let start = "444f544e45545f4950435f5631001c00ff00000007000000000000004e657474726163650102";
    let ran = run(&["decode", "--answer-to", "CollectTracing2", start]).well();
    assert!(
        ran.text().contains("trace, up to the end of the connection (not shown) (10 bytes, at byte 28)"),
        "{ran:?}"
    );
}

#[test]
fn a_wire_log_has_the_commands_of_responses() {
    let runtime = FakeRuntime::start(Profile::net8()).unwrap();
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let socket = runtime.path().to_str().unwrap();
    run(&["info", "--socket", socket, "--wire-log", log.to_str().unwrap()]).well();
    let ran = run(&["decode", log.to_str().unwrap()]).well();
    assert!(
        ran.text().starts_with("GetProcessInfo3 0x0408, request (20 bytes, sent on connection 1)\n"),
        "{ran:?}"
    );
    assert!(ran.text().contains("\nOK response to GetProcessInfo3 0x0408 ("), "{ran:?}");
    assert!(ran.text().contains("clr_product_version: \"8.0.31\""), "{ran:?}");
    let ran = run(&["decode", log.to_str().unwrap(), "--json"]).well();
    let answer: Value = serde_json::from_str(ran.text().lines().nth(1).unwrap()).unwrap();
    assert_eq!((&answer["direction"], &answer["connection"]), (&json!("received"), &json!(1)));
}

#[test]
fn the_position_of_an_error_is_marked() {
    let file = testdata("malformed/ApplyStartupHook.path-past-end.hex");
    let ran = run(&["decode", &file])
        .fails(6, "the message is malformed: startup_hook_path: a field extends past the end (at byte 24)");
    let lines: Vec<_> = ran.text().lines().collect();
    assert!(lines[6].ends_with("startup_hook_path.count: 9"), "{}", ran.text());
    let error = "        ^ startup_hook_path: a field extends past the end (at byte 24)";
    assert_eq!(lines[7..], ["    24  61 62", error]);

    let ran = run(&["decode", &testdata("malformed/header.bad-magic.hex")]).fails(6, "(at byte 12)");
    let lines: Vec<_> = ran.text().lines().collect();
    let (bytes, caret) = (lines[1], lines[2].find('^').unwrap());
    assert_eq!((&bytes[caret..caret + 2], lines.last().unwrap()), ("32", &"        … 4 bytes more"));

    // The position after a full line, and in an empty message.
    let cut = run(&["decode", "--json", &RESUME[..32]]).fails(6, "(at byte 16)");
    assert_eq!(
        cut.json()["error"],
        json!({ "offset": 16, "field": "command_set", "error": "a field extends past the end" })
    );
    let text = [&RESUME[..28], "ffff 0407 0000 ff000000", &"6100".repeat(16)].concat();
    let ran = run(&["decode", &text]).fails(6, "(at byte 56)");
    assert!(
        ran.text()
            .ends_with("\n    56\n        ^ startup_hook_path: a field extends past the end (at byte 56)\n"),
        "{ran:?}"
    );
    run_with(&["decode", "-"], b"# nothing").fails(6, "(at byte 0)");
}

#[test]
fn the_position_of_an_error_in_an_advertise_frame_is_marked() {
    let frame = [b"ADVR_V1\0", &[7; 26][..]].concat();
    let show = |bytes: &[u8], words: &str| {
        let ran = run_with(&["decode", "-"], bytes).fails(6, words);
        assert!(ran.text().starts_with("advertise frame ("), "{ran:?}");
        let ran = run_with(&["decode", "-", "--json"], bytes);
        assert_eq!(ran.json()["kind"], "advertise");
        ran.json()["error"].clone()
    };
    let mut another = frame.clone();
    another[6] = b'2';
    let error = show(&another, "not the magic ADVR_V1 (at byte 6)");
    assert_eq!(error, json!({ "offset": 6, "field": "magic", "error": "not the magic ADVR_V1" }));
    show(b"ADVRDOTNET_IPC_V1\0", "not the magic ADVR_V1 (at byte 4)");
    for len in [4, 6, 8, 20, 33] {
        let error = show(&frame[..len], &format!("a field extends past the end (at byte {len})"));
        let field = [(8, "magic"), (24, "runtime_cookie"), (32, "process_id"), (34, "future")];
        let field = field.iter().find(|(end, _)| len < *end).unwrap().1;
        assert_eq!((&error["offset"], &error["field"]), (&json!(len), &json!(field)));
    }
}

/// Text and JSON name the value with its place in the list: `providers[1].level`.
#[test]
fn a_value_that_runtimes_refuse_is_reported() {
    let file = testdata("refused/CollectTracing4.second-provider-level-6.hex");
    let ran = run(&["decode", &file]).well();
    let last = ran.text().lines().last().unwrap();
    assert_eq!(last, "        runtimes refuse providers[1].level: the level of a provider is above 5");
    let json = run(&["decode", "--json", &file]).well().json();
    let expected = json!({
        "field": "providers[1].level",
        "error": "the level of a provider is above 5",
        "hresult": "0x80131384",
    });
    assert_eq!((&json["violation"], &json["error"]), (&expected, &Value::Null));
    let good = run(&["decode", "--json", &testdata("messages/StopTracing.request.hex")]).well().json();
    assert_eq!(good["violation"], Value::Null);
}

/// Each rule is shown with the place of the value that breaks it.
#[test]
fn every_rule_of_runtimes_is_shown() {
    let mut shown = Vec::new();
    for entry in fs::read_dir(testdata("refused")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "hex") {
            let json = run(&["decode", "--json", path.to_str().unwrap()]).well().json();
            let error = json["violation"]["error"].as_str().unwrap().to_owned();
            assert!(json["violation"]["field"].is_string(), "{json}");
            shown.push(error);
        }
    }
    let missing = Violation::ALL.iter().map(ToString::to_string).filter(|rule| !shown.contains(rule));
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn the_field_of_an_error_is_named() {
    for (file, field) in [
        ("CollectTracing5.event-id-count-40000000", "providers[0].filter.event_ids"),
        ("CollectTracing2.arguments-count-cut", "providers[0].arguments.count"),
        ("AttachProfiler.trailing-byte", "client_data"),
        ("header.bad-magic", "magic"),
        ("header.size-19", "size"),
    ] {
        let file = testdata(&format!("malformed/{file}.hex"));
        let ran = run(&["decode", &file]).fails(6, &format!("the message is malformed: {field}: "));
        assert!(ran.text().contains(&format!("^ {field}: ")), "{ran:?}");
        assert_eq!(run(&["decode", "--json", &file]).json()["error"]["field"], *field);
    }
    // A response has the fields of its command.
    let answer = "444f544e45545f4950435f5631001800ff00000001000000";
    let ran = run(&["decode", "--answer-to", "StopTracing", answer]);
    ran.fails(6, "the message is malformed: session_id: a field extends past the end (at byte 20)");
}

#[test]
fn bytes_that_are_no_message_have_no_kind() {
    let ran = run(&["decode", "--json", "deadbeef"]).fails(6, "(at byte 0)");
    let message = ran.json();
    assert_eq!((&message["kind"], &message["code"]), (&Value::Null, &Value::Null));
    let ran = run(&["decode", "--json", &testdata("legacy/before-draft.stop.request.hex")]).well();
    assert_eq!(ran.json()["kind"], "request");
}

/// Returns the test vectors in a folder of `testdata/`.
fn vectors(folder: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(testdata(folder)).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|e| e == "hex")).collect()
}

#[test]
fn every_test_vector_is_decoded() {
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    for path in ["messages", "refused", "tolerated", "malformed"].into_iter().flat_map(vectors) {
        let ran = run(&["decode", path.to_str().unwrap()]);
        let name = name(&path);
        let continues = name.ends_with(".continuation.hex") || name.starts_with("header.bytes-behind");
        let malformed = path.parent().unwrap().ends_with("malformed") && !name.starts_with("unknown.");
        let status = if malformed || continues { 6 } else { 0 };
        assert_eq!(ran.status, Some(status), "{}: {ran:?}", path.display());
    }
}

#[test]
fn the_draft_of_2019_is_recognised() {
    let ran = run(&["decode", &testdata("legacy/draft.CollectTracing.specification.request.hex")]).well();
    assert!(ran.text().starts_with("CollectTracing 0x0202, request of the draft of 2019 ("), "{ran:?}");
    assert!(ran.text().contains("output_path: \"/tmp/foo.netperf\""), "{ran:?}");
    let ran = run(&["decode", &testdata("legacy/draft.error.specification.refusal.hex")]).well();
    assert!(ran.text().contains("error_code: 1 BAD_ENCODING"), "{ran:?}");
    let ran = run(&["decode", "--json", &testdata("legacy/before-draft.stop.request.hex")]).well();
    assert_eq!(ran.json()["legacy"], "before_draft");
}

#[test]
fn unknown_commands_are_shown() {
    let ran = run(&["decode", "444f544e45545f4950435f563100160004f00000 abcd"]).well();
    assert!(ran.text().starts_with("unknown command 0x04f0, request (22 bytes)\n"), "{ran:?}");
    assert!(ran.text().contains("    20  ab cd  "), "{ran:?}");
    let frame = run(&["decode", &testdata("messages/Advertise.frame.hex")]).well();
    assert!(frame.text().starts_with("advertise frame (34 bytes)\n"), "{frame:?}");
    assert!(frame.text().lines().nth(3).unwrap().ends_with("  process_id: 22024"), "{frame:?}");
}

/// The specification and runtimes have different codes for a variable that does not exist.
#[test]
fn both_codes_of_an_absent_variable_are_named() {
    let decode = |args: &[&str], code: &str| {
        let refusal = format!("444f544e45545f4950435f5631001800ffff0000{code}");
        run(&[&["decode", "--answer-to", "SetEnvironmentVariable"], args, &[&refusal]].concat()).well()
    };
    for (code, value, name) in [
        ("cb000780", "0x800700cb", "ERROR_ENVVAR_NOT_FOUND"),
        ("cb000080", "0x800000cb", "DS_IPC_E_ENVVAR_NOT_FOUND"),
    ] {
        let text = decode(&[], code).into_text();
        assert!(text.ends_with(&format!("  hresult: {value} {name}\n")), "{text}");
        let json = decode(&["--json"], code).json();
        let hresult = json["fields"].as_array().unwrap().last().unwrap();
        assert_eq!((&hresult["value"], &hresult["value_name"]), (&json!(value), &json!(name)));
    }
}

/// Runtimes ignore the reserved number of a header, so the message is valid.
#[test]
fn a_reserved_number_other_than_0_is_reported() {
    let message = format!("{}0100", &RESUME[..36]);
    let text = run(&["decode", &message]).well().into_text();
    assert!(text.ends_with("  reserved: 1 (expected 0; receivers ignore it)\n"), "{text}");
    let of = |message: &str| {
        let json = run(&["decode", "--json", message]).well().json();
        assert_eq!(json["error"], Value::Null);
        let field = json["fields"].as_array().unwrap().last().unwrap().clone();
        (field["name"].clone(), field["value"].clone(), field["problem"].clone())
    };
    assert_eq!(of(&message), (json!("reserved"), json!(1), json!("expected 0; receivers ignore it")));
    assert_eq!(of(RESUME), (json!("reserved"), json!(0), Value::Null));
}
