//! The property of a line of conformance cases.
use ipc_testkit::conformance::Case;
use serde_json::Value;

/// Checks that a line is a case exactly if its fields are valid, that a case has the bytes of its line, and that the
/// error names a field that is missing or malformed.
pub fn conformance_case(bytes: &[u8]) {
    let line = String::from_utf8_lossy(bytes);
    let json: Option<Value> = serde_json::from_str(&line).ok();
    match (line.parse::<Case>(), json) {
        (Ok(case), Some(json)) => {
            let hex: String = case.request.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(Some(hex), json["request"].as_str().map(str::to_ascii_lowercase));
            assert_eq!(Some(case.name.as_str()), json["name"].as_str());
            assert_eq!(case.observed.len(), json["observed"].as_object().map_or(0, |kinds| kinds.len()));
            assert_eq!(case.effects.as_deref(), json.get("effects").and_then(Value::as_str));
            // No function panics, whatever the bytes are.
            let _ = (case.command(), case.is_deadly(), case.is_deadly_for("net10"), case.seen("net10"));
            let _ = case.clone().for_server(8, ipc_proto::plan::Flavour::NativeAot);
        }
        (Err(error), json) => {
            assert_eq!(error.field.is_empty(), json.is_none(), "{error}");
            assert!(error.to_string().contains(error.field));
        }
        (Ok(_), None) => panic!("a case is JSON"),
    }
}
