//! The page of errata is complete.

/// Each row of the errata has three cells: the text of the specification, the behaviour of runtimes, and that of this
/// crate.
#[test]
fn the_errata_are_complete() {
    let errata = include_str!("../ERRATA.md");
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
