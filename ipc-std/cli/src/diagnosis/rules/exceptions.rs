//! Exceptions as a habit.
use std::collections::BTreeMap;

use nettrace_analysis::account::{Measure, Row};

use crate::diagnosis::fact::Wish;
use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Finding, Severity, places};
use crate::diagnosis::stretch::Stretch;

/// How many exceptions a second, and in all, are a habit.
const PER_SECOND: f64 = 20.0;
const COUNT: u64 = 50;

/// Exceptions that the program throws again and again: each type by itself, and all others together.
pub(super) fn thrown(facts: &Facts<'_>) -> Vec<Finding> {
    if !facts.of.recorded.contains(&Wish::Exceptions) {
        return by_counter(facts).into_iter().collect();
    }
    let mut types: BTreeMap<&str, Vec<Row<'_>>> = BTreeMap::new();
    facts.rows(Measure::Exceptions).for_each(|row| types.entry(row.label).or_default().push(row));
    let is_large = |rows: &[Row<'_>]| stretch(facts, rows).is_some();
    let (mut large, small): (Vec<_>, Vec<_>) = types.into_iter().partition(|(_, rows)| is_large(rows));
    large.sort_by_key(|(_, rows)| core::cmp::Reverse(count(rows)));
    let kinds = small.len();
    let others: Vec<_> = small.into_iter().flat_map(|(_, rows)| rows).collect();
    let mut findings: Vec<_> = large.iter().filter_map(|(name, rows)| finding(facts, name, rows)).collect();
    let name = format!("exceptions of {kinds} types");
    findings.extend(finding(facts, &name, &others));
    findings
}

fn count(rows: &[Row<'_>]) -> u64 {
    rows.iter().map(|row| row.count).sum()
}

fn stretch<'a>(facts: &Facts<'a>, rows: &[Row<'a>]) -> Option<Stretch> {
    facts.stretch(rows, PER_SECOND).filter(|_| count(rows) >= COUNT)
}

fn finding<'a>(facts: &Facts<'a>, name: &str, rows: &[Row<'a>]) -> Option<Finding> {
    let stretch = stretch(facts, rows)?;
    let first: Vec<_> = rows.iter().filter(|row| !row.place.is_rethrow).copied().collect();
    let passed = count(rows).saturating_sub(count(&first));
    let blame = facts.blame(if first.is_empty() { rows } else { &first });
    let passed = match passed {
        0 => String::new(),
        passed => {
            format!(
                ", {:.0} % of them thrown again by an await",
                passed as f64 * 100.0 / count(rows).max(1) as f64
            )
        }
    };
    let evidence = format!(
        "the program throws {:.0} {name} a second{}{passed}{}",
        stretch.rate,
        stretch.when(),
        places(&blame, "; ", "from")
    );
    let finding = Finding::new("exceptions", Severity::high_if(stretch.rate >= 10.0 * PER_SECOND), evidence);
    Some(finding.blame(&blame).see("dotnet-ipc report TARGET --exceptions"))
}

/// Exceptions that only a counter knows.
fn by_counter(facts: &Facts<'_>) -> Option<Finding> {
    let rate = facts.counter_rate("exception-count").filter(|rate| *rate >= PER_SECOND)?;
    let evidence = format!(
        "the program throws {rate:.0} exceptions a second by the counter of .NET; their types and methods were not \
         recorded"
    );
    let finding = Finding::new("exceptions", Severity::high_if(rate >= 10.0 * PER_SECOND), evidence);
    Some(finding.see("dotnet-ipc counters TARGET System.Runtime"))
}
