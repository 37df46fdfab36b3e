//! The README agrees with itself.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

/// Each row of the errata has three cells: the text of the specification, the behaviour of runtimes, and that of this
/// crate.
#[test]
fn the_errata_are_complete() {
    let readme = include_str!("../README.md");
    let (_, errata) = readme.split_once("\n# Errata of the formats\n").expect("a section on errata");
    let (errata, _) = errata.split_once("\n# ").expect("a section after it");
    let sections: Vec<&str> = errata.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(sections, ["Errata of user_events", "Errata of NetTrace"]);
    let rows: Vec<&str> = errata.lines().filter(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 20, "{}", rows.len());
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let is_rule = row.starts_with("|---");
        assert!(is_rule || cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty()), "{row}");
    }
}
