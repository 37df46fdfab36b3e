//! The README agrees with the code. `BLESS=1 cargo test -p ipc-proto --test readme` rewrites its table of commands.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use ipc_proto::Request;

#[test]
fn the_table_of_commands_is_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = std::fs::read_to_string(path).expect("the README");
    let (_, table) = readme.split_once("\n# Commands\n").expect("a section on commands");
    let (table, _) = table.split_once("\n# ").expect("a section after it");
    let documented: Vec<&str> = table.lines().filter(|line| line.starts_with("| `0x")).collect();
    macro_rules! responses {
        ($([
            $code:literal $name:ident / $specification_name:ident since $since:literal:
            $request:ty { $($field:ident: $ty:ty,)* }
            -> $response_name:ident: $response:ty, then $then:ident
        ])*) => { [$(stringify!($response_name)),*] };
    }
    let responses = ipc_proto::for_each_command!(responses);
    let rows = Request::ALL.iter().zip(responses).map(|(row, response)| {
        let since = if row.since == 3 { "Core 3".to_owned() } else { row.since.to_string() };
        format!("| `{}` | `{}` | {} | {since} | `{response}` |", row.code, row.name, row.specification_name)
    });
    let rows: Vec<String> = rows.collect();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, readme.replace(&documented.join("\n"), &rows.join("\n"))).expect("the README");
    } else {
        assert_eq!(documented, rows, "BLESS=1 rewrites the table in ipc-proto/README.md");
    }
}

/// Each row of the errata has three cells: the text of the specification, the behaviour of runtimes, and the behaviour
/// of this crate.
#[test]
fn the_errata_are_complete() {
    let errata = include_str!("../ERRATA.md");
    let sections: Vec<&str> = errata.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(
        sections,
        ["messages", "commands", "ports and names", "the draft of 2019"]
            .map(|part| format!("Errata of {part}"))
    );
    let rows: Vec<&str> = errata.lines().filter(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 60, "{}", rows.len());
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let is_rule = row.starts_with("|---");
        assert!(is_rule || cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty()), "{row}");
    }
}
