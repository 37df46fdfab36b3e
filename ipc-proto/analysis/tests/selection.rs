//! Which counters a selection contains, and the text form of a selection.
#![allow(clippy::unwrap_used, reason = "a test states what it expects by unwrapping it")]

use nettrace_analysis::counters::{ParseSelectionError, Selection, System};

#[test]
fn contents() {
    let all: Selection = "system.*".parse().unwrap();
    let one: Selection = "Meters\\System.Runtime/dotnet.exceptions".parse().unwrap();
    let contains = |selection: &Selection, system, provider: &str, name: &str| {
        selection.contains(system, provider.into(), name.into())
    };
    assert!(contains(&all, System::Meter, "System.Runtime", "x"));
    assert!(contains(&all, System::EventCounter, "System.Net.Http", "x"));
    assert!(!contains(&all, System::Meter, "Microsoft", "x") && !contains(&all, System::Meter, "Sys", "x"));
    assert!(contains(&one, System::Meter, "SYSTEM.Runtime", "dotnet.Exceptions"));
    assert!(!contains(&one, System::EventCounter, "System.Runtime", "dotnet.exceptions"));
    assert!(!contains(&one, System::Meter, "System.Runtime", "dotnet.exceptions2"));
    assert!(!contains(&one, System::Meter, "System.Runtim", "dotnet.exceptions"));
}

#[test]
fn texts() {
    for text in ["A", "A/b", "EventCounters\\A/b/c", "Meters\\*"] {
        assert_eq!(text.parse::<Selection>().unwrap().to_string(), text);
    }
    for bad in ["", "/a", "A/", "A,B", "A;B", "A\"", "Other\\A", "A\n"] {
        assert_eq!(bad.parse::<Selection>(), Err(ParseSelectionError), "{bad}");
    }
}
