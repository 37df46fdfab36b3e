//! Tests of `dotnet-ipc list-profiles`.

use serde_json::json;

use crate::tool::run;

#[test]
fn every_profile_and_keyword_is_listed() {
    let ran = run(&["list-profiles"]).well();
    for text in [
        "dotnet-common",
        "dotnet-sampled-thread-time",
        "gc-verbose",
        "gc-collect",
        "database",
        "sick",
        "    Microsoft-Windows-DotNETRuntime:0x100003801d:4",
        "at the interval of the runtime",
        "       0x8000  exception",
        "0x80000000000  allocationsampling",
    ] {
        assert!(ran.text().contains(text), "{text}: {}", ran.text());
    }
    assert!(ran.text().lines().all(|line| line.len() <= 80), "{}", ran.text());
}

#[test]
fn profiles_as_json() {
    let lines = run(&["list-profiles", "--json"]).well().lines();
    let names: Vec<_> = lines.iter().filter_map(|line| line["profile"].as_str()).collect();
    let expected =
        ["dotnet-common", "dotnet-sampled-thread-time", "gc-verbose", "gc-collect", "database", "sick"];
    assert_eq!(names, expected);
    let collect = lines.iter().find(|line| line["profile"] == "gc-collect").unwrap();
    assert_eq!(
        collect["providers"][0],
        json!({ "name": "Microsoft-Windows-DotNETRuntime", "keywords": "0x1", "level": 4, "arguments": "" })
    );
    let keywords = &lines.last().unwrap()["clr_keywords"];
    assert_eq!((&keywords["gc"], &keywords["jit"]), (&json!("0x1"), &json!("0x10")));
}
