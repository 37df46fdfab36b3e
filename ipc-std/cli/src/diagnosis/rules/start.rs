//! A start that takes long, and compilation.
use std::collections::BTreeMap;

use nettrace_analysis::account::{Measure, MethodNumber, Row, ThreadRole, ThreadState};

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Finding, Severity, places};
use crate::diagnosis::stretch::{Bins, seconds};

/// A start that takes long: what the main thread did before it came to the place where it stays.
pub(super) fn start(facts: &Facts<'_>) -> Vec<Finding> {
    const SECONDS: f64 = 0.3;
    let is_main = |row: &Row<'_>| facts.account.role(row.thread) == ThreadRole::Main;
    let main = facts.rows(Measure::Samples).filter(is_main).min_by_key(|row| row.first);
    let Some(main) = main.filter(|_| facts.of.is_start).map(|row| row.thread) else { return Vec::new() };
    let rows: Vec<_> = facts.rows(Measure::Samples).filter(|row| row.thread == main).collect();
    let method = |row: &Row<'_>| row.place.own.first().copied();
    let Some(end) = rows.iter().max_by_key(|row| row.last).and_then(method) else { return Vec::new() };
    let total: u64 = rows.iter().map(|row| row.running.saturating_add(row.waiting)).sum();
    let mut times: BTreeMap<(MethodNumber, ThreadState), u64> = BTreeMap::new();
    // What lasts to the end is no start: a program can run in its main thread. While the runtime compiles many methods,
    // the program still starts.
    let goes_on = compiles_to_the_end(facts);
    let of_start = rows.iter().filter(|row| goes_on || method(row) != Some(end));
    let of_start = of_start.filter_map(|row| Some((method(row)?, row)));
    for (method, row) in of_start.filter(|(method, _)| !facts.account.is_entry_point(*method)) {
        for (state, weight) in row.states() {
            let state = if state == ThreadState::Native { ThreadState::Runs } else { state };
            let time = times.entry((method, state)).or_default();
            *time = time.saturating_add(weight);
        }
    }
    let [first, last] = seconds(facts.account);
    let time_of = |weight: u64| (last - first) * weight as f64 / total.max(1) as f64;
    let mut times: Vec<_> = times.into_iter().map(|(place, weight)| (place, time_of(weight))).collect();
    times.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let Some(((longest, _), time)) = times.first().filter(|(_, time)| *time >= SECONDS) else {
        return Vec::new();
    };
    let texts =
        times.iter().take_while(|(_, time)| *time >= SECONDS).take(3).map(|((method, state), time)| {
            let name = facts.account.method_name(*method);
            match state {
                ThreadState::Runs => format!("{time:.1} s in {name}"),
                state => format!("{time:.1} s {} in {name}", state.text()),
            }
        });
    let texts: Vec<_> = texts.collect();
    let goes_on = if goes_on { ", which it still does at the end of the recording" } else { "" };
    let evidence = format!("while the process started{goes_on}, its main thread spent {}", texts.join(", "));
    let finding = Finding::new("start", Severity::high_if(*time >= 1.0), evidence);
    let name = facts.account.method_name(*longest).to_owned();
    vec![finding.in_method(name).see("dotnet-ipc report TARGET --wall --tree --short")]
}

/// Returns whether methods are compiled as only at a start in each of the last three tenths of the recording: a program
/// that ends also compiles some.
fn compiles_to_the_end(facts: &Facts<'_>) -> bool {
    const PER_SECOND: f64 = 100.0;
    let [first, last] = seconds(facts.account);
    let tenth = (last - first) / 10.0;
    [7.0, 8.0, 9.0].into_iter().all(|place| {
        let time = first + place * tenth..=first + (place + 1.0) * tenth;
        let rows = facts.rows(Measure::Compilations).filter(|row| time.contains(&(row.last as f64 / 1e9)));
        rows.map(|row| row.count).sum::<u64>() as f64 >= PER_SECOND * tenth
    })
}

/// Compilation at the start, or of methods that the program makes while it runs. Other compilations end by themselves.
pub(super) fn compilation(facts: &Facts<'_>) -> Vec<Finding> {
    const SECONDS: f64 = 1.0;
    const DYNAMIC: u64 = 100;
    const DYNAMIC_RATE: f64 = 10.0;
    let compiled = &facts.of.compiled;
    let seconds = compiled.nanoseconds as f64 / 1e9;
    let dynamic = compiled.dynamic.count();
    let is_start = facts.of.is_start && seconds >= SECONDS && dynamic >= DYNAMIC;
    let stretch = Bins::of_gauge(facts.account, &compiled.dynamic).stretch(DYNAMIC_RATE);
    let stretch = stretch.filter(|_| dynamic >= DYNAMIC);
    if !is_start && stretch.is_none() {
        return Vec::new();
    }
    let rows: Vec<_> = facts.rows(Measure::Compilations).collect();
    let blame = facts.blame(&rows);
    let when = if facts.of.is_start { " since the start of the process" } else { "" };
    let made = match dynamic {
        0 => String::new(),
        dynamic => {
            format!(", {dynamic} of them made at run time (compiled expressions or regular expressions)")
        }
    };
    let evidence = format!(
        "{} methods were compiled for {seconds:.2} s of {:.1} s{when}{made}{}",
        compiled.count,
        facts.seconds,
        places(&blame, "; ", "below")
    );
    let finding = Finding::new("compilation", Severity::high_if(is_start), evidence);
    vec![finding.blame(&blame).see("dotnet-ipc jit TARGET")]
}
