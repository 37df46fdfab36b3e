//! The READMEs say what the code says.
#![allow(clippy::expect_used, reason = "a test says what it expects by failing")]

use ipc_proto::Request;

#[test]
fn the_table_of_commands_is_the_table() {
    let readme = include_str!("../../README.md");
    let (_, table) = readme.split_once("## Commands\n").expect("a section on commands");
    let documented: Vec<&str> = table.lines().filter(|line| line.starts_with("| `0x")).collect();
    let rows = Request::ALL.iter().map(|row| {
        let since = if row.since == 3 { "Core 3".to_owned() } else { row.since.to_string() };
        format!(
            "| `{}` | `{}` | {} | {since} | `{}` |",
            row.code, row.name, row.specification_name, row.response
        )
    });
    let rows: Vec<String> = rows.collect();
    assert_eq!(documented, rows, "in README.md\n{}\n", rows.join("\n"));
}
