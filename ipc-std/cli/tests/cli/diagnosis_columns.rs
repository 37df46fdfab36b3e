//! The columns of other commands, each of which `diagnose` reads, or `docs/symptoms.md` has the reason why not.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::tool::run;
use crate::traces::analysed;

/// The columns that the rules read, by command.
const READ: [(&str, &str); 3] = [
    (
        "requests",
        "in_flight.process_id in_flight.method in_flight.path in_flight.count in_flight.oldest_ms
        in_flight.methods.name in_flight.methods.count finished.process_id finished.method finished.path finished.count
        finished.p50_ms finished.p99_ms finished.failed outgoing.process_id outgoing.origin outgoing.path
        outgoing.in_flight outgoing.oldest_ms outgoing.count outgoing.p50_ms outgoing.p99_ms outgoing.failed
        outgoing.server_errors outgoing.methods.name outgoing.methods.count dropped",
    ),
    ("gc", "process_id generation reason start_ms pause_start_ms pause_ms heap_after_mb complete"),
    (
        "locks",
        "locks.process_id locks.lock locks.longest_ms locks.held_in.method locks.held_in.samples locks.held_samples
        locks.waiting.thread_id locks.waiting.wait_ms locks.owner.thread_id cycles.process_id cycles.wait_ms
        cycles.threads.thread_id cycles.threads.method dropped",
    ),
];

/// Adds the columns of a value to those before it, as `table.column`.
fn add_columns(value: &Value, of: &str, columns: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            let name = if of.is_empty() { key.clone() } else { format!("{of}.{key}") };
            add_columns(value, &name, columns);
        }),
        Value::Array(rows) if rows.iter().all(Value::is_object) => {
            rows.iter().for_each(|row| add_columns(row, of, columns));
        }
        _ => _ = columns.insert(of.to_owned()),
    }
}

/// Returns the columns of a command, on recordings that together have a row of each table.
fn columns(command: &str) -> BTreeSet<String> {
    let names = ["net10-locks", "net10-requests", "net10-outgoing-requests", "net10-collections"];
    let sick = ["contention", "deadlock", "asynchang", "sockets"].map(|name| format!("../sick/{name}"));
    let mut columns = BTreeSet::new();
    for name in names.map(str::to_owned).iter().chain(&sick) {
        let ran = run(&[command, &analysed(&format!("{name}.nettrace")), "--json"]);
        ran.text().lines().for_each(|line| {
            add_columns(&serde_json::from_str(line).unwrap(), "", &mut columns);
        });
    }
    // An object that is null in one row has columns in another.
    let all = columns.clone();
    columns.retain(|name| !all.iter().any(|other| other.starts_with(&format!("{name}."))));
    columns
}

#[test]
fn a_column_is_read_or_has_a_reason_why_not() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/symptoms.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, table) = page.split_once("## What `diagnose` does not read").unwrap();
    for (command, read) in READ {
        let start = format!("| `{command}` | ");
        let mut listed = BTreeSet::new();
        for row in table.lines().filter_map(|line| line.strip_prefix(&start)) {
            let (names, reason) = row.trim_end_matches('|').split_once('|').unwrap();
            assert!(!reason.trim().is_empty(), "{row}");
            let is_new = |name: &str| listed.insert(name.trim_matches('`').to_owned());
            assert!(names.split_whitespace().all(is_new), "twice: {row}");
        }
        let read: BTreeSet<_> = read.split_whitespace().map(str::to_owned).collect();
        assert!(read.is_disjoint(&listed), "{command}");
        assert_eq!(&read | &listed, columns(command), "{command}");
    }
}
