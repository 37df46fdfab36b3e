//! Tests of `dotnet-ipc jit`, on recorded traces.

use std::fs;

use serde_json::{Value, json};

use crate::tool::{run, run_with};
use crate::traces::{analysed, path};

const COLUMNS: [&str; 8] =
    ["process_id", "method", "start_ms", "jit_ms", "il_size", "native_size", "tier", "thread"];

fn trace() -> String {
    analysed("net10-compilations.nettrace")
}

fn expected() -> Vec<Value> {
    let lines = fs::read_to_string(analysed("net10-compilations.jit.jsonl")).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// TraceEvent has 0 or "Unknown" where the trace has nothing, and the tool has null.
fn is_same(found: &Value, expected: &Value) -> bool {
    match (found.as_f64(), expected.as_f64()) {
        (Some(found), Some(expected)) => (found - expected).abs() < 1e-6,
        (None, Some(expected)) => found.is_null() && expected == 0.0,
        _ if found.is_null() => expected == "Unknown",
        _ => found == expected,
    }
}

#[test]
fn each_method_is_that_of_traceevent() {
    let rows = run(&["jit", &trace(), "--json"]).well().lines();
    let expected = expected();
    assert_eq!(rows.len(), expected.len());
    for (row, expected) in rows.iter().zip(&expected) {
        let row = row.as_object().unwrap();
        assert_eq!(row.keys().map(String::as_str).collect::<Vec<_>>(), COLUMNS);
        for (key, expected) in expected.as_object().unwrap() {
            assert!(is_same(&row[key], expected), "{key} of {row:?}: {expected}");
        }
    }
}

#[test]
fn methods_as_csv() {
    let text = run(&["jit", &trace(), "--csv"]).well().into_text();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(COLUMNS.join(",").as_str()));
    // Names contain commas.
    let names = expected().into_iter().map(|row| row["method"].as_str().unwrap().to_owned());
    for (line, name) in lines.zip(names) {
        let quoted = if name.contains(',') { format!("\"{name}\"") } else { name };
        let (process, rest) = line.split_once(',').unwrap();
        assert!(process.parse::<u32>().is_ok() && rest.starts_with(&format!("{quoted},")), "{line}");
    }
}

#[test]
fn methods_for_people() {
    let text = run(&["jit", &trace()]).well().into_text();
    assert!(text.starts_with("83 compilations, and 1 without an end; 19.320 ms on all threads "), "{text}");
    for line in
        ["\n TIER  ", "\n OptimizedTier1              32 ", "\nThe 10 that took longest:\n", "\n JIT ms "]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    let mut times: Vec<f64> = expected().iter().map(|row| row["jit_ms"].as_f64().unwrap()).collect();
    times.sort_by(|a, b| b.total_cmp(a));
    let (shown, open) = text.split_once("\n\nWithout an end in the trace:\n").unwrap();
    assert!(open.contains(" METHOD\n  ") && open.ends_with(")\n"), "{open}");
    let shown = shown.split_once("METHOD\n").unwrap().1;
    let shown: Vec<&str> = shown.lines().map(|row| row.split_whitespace().next().unwrap()).collect();
    assert_eq!(shown, times[..10].iter().map(|time| format!("{time:.3}")).collect::<Vec<_>>());
    for args in [&["jit", &trace(), "--summary"][..], &["jit", &trace(), "--top", "0"]] {
        assert!(!run(args).well().text().contains("METHOD"));
    }
    assert!(!run(&["jit", &trace(), "--top", "1000"]).well().text().contains("took longest"));
}

#[test]
fn statistics_as_json() {
    let summary = run(&["jit", &trace(), "--summary", "--json"]).well().json();
    let all = &summary["all"];
    assert_eq!(
        (&all["compilations"], &all["timed"], &summary["incomplete"]),
        (&json!(83), &json!(83), &json!(1))
    );
    let sum: f64 = expected().iter().map(|row| row["jit_ms"].as_f64().unwrap()).sum();
    assert!((all["jit_ms"].as_f64().unwrap() - sum).abs() < 1e-6);
    let tiers: Vec<&Value> = summary["tiers"].as_array().unwrap().iter().map(|tier| &tier["tier"]).collect();
    assert_eq!(tiers, ["OptimizedTier1", "QuickJittedInstrumented"]);
}

/// Most methods are compiled when a program starts, and a trace of a process that runs lacks that.
#[test]
fn a_trace_without_the_start_says_how_to_record_one() {
    let late = run(&["jit", &trace()]).well().into_text();
    let advice = "dotnet-ipc monitor --trace FILE --clr-events jit --clr-event-level verbose -- COMMAND\n";
    assert!(late.contains("\nThe start of the program") && late.contains(advice), "{late}");
    let whole = run(&["jit", &analysed("net10-startup.nettrace")]).into_text();
    assert!(!whole.contains("The start of the program"), "{whole}");
}

#[test]
fn a_trace_without_methods_says_how_to_record_them() {
    let file = path("gen-net10-lab-small.nettrace");
    for args in [&["jit", &file][..], &["jit", &file, "--json"], &["jit", &file, "--csv"]] {
        let ran = run(args);
        assert_eq!(ran.status, Some(0));
        assert!(ran.stderr.contains("has no compiled method; "), "{ran:?}");
        let advice = "dotnet-ipc trace PID --clr-events jit --clr-event-level verbose";
        assert!(ran.stderr.contains(advice) && ran.stderr.contains("monitor --trace FILE"), "{ran:?}");
        // A table without rows still has its columns.
        assert_eq!(ran.text().lines().count(), usize::from(args.contains(&"--csv")));
    }
    run_with(&["jit", "-"], Vec::new()).fails(6, "the trace is empty");
}
