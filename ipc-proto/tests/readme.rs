//! The README agrees with the code.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use ipc_proto::Request;

#[test]
fn the_table_of_commands_is_the_table() {
    let readme = include_str!("../README.md");
    let (_, table) = readme.split_once("\n# Commands\n").expect("a section on commands");
    let (table, _) = table.split_once("\n# ").expect("a section after it");
    let documented: Vec<&str> = table.lines().filter(|line| line.starts_with("| `0x")).collect();
    macro_rules! responses {
        ($([
            $code:literal $name:ident $(<$a:lifetime>)? / $specification_name:ident since $since:literal
            { $($field:ident: $ty:ty,)* }
            -> $response:ident $(<$r:lifetime>)?, then $then:ident
        ])*) => { [$(stringify!($response)),*] };
    }
    let responses = ipc_proto::for_each_command!(responses);
    let rows = Request::ALL.iter().zip(responses).map(|(row, response)| {
        let since = if row.since == 3 { "Core 3".to_owned() } else { row.since.to_string() };
        format!("| `{}` | `{}` | {} | {since} | `{response}` |", row.code, row.name, row.specification_name)
    });
    let rows: Vec<String> = rows.collect();
    assert_eq!(documented, rows, "in README.md\n{}\n", rows.join("\n"));
}

/// Each row of the errata has three cells: the text of the specification, the behaviour of runtimes, and that of this
/// crate.
#[test]
fn the_errata_are_complete() {
    let readme = include_str!("../README.md");
    let (_, errata) = readme.split_once("\n# Errata\n").expect("a section on errata");
    let (errata, _) = errata.split_once("\n# ").expect("a section after it");
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
