//! Reads the same traces with this library and with others, in turns, and prints how fast each reader was. See the
//! script `beside`.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark may fail as it likes"
)]
use core::fmt::Write;
use core::hint::black_box;
use std::env;
use std::process::{Command, exit};
use std::time::Instant;

use ipc_benches::traces::{Joins, events, joined, ordered_in, whole_trace};
use nettrace::Held;

/// How often the readers take turns.
const ROUNDS: usize = 3;

/// The passes of a reader over a trace.
struct Row {
    reader: &'static str,
    work: &'static str,
    events: u64,
    /// The time of each pass, in seconds.
    seconds: Vec<f64>,
}

impl Row {
    const fn new(reader: &'static str, work: &'static str) -> Self {
        Self { reader, work, events: 0, seconds: Vec::new() }
    }

    /// Returns the median in seconds, and the range of the middle half of the passes as a share of the median.
    fn median(&mut self) -> (f64, f64) {
        self.seconds.sort_by(f64::total_cmp);
        let at = |quarters: usize| self.seconds[(self.seconds.len() - 1) * quarters / 4];
        (at(2), (at(3) - at(1)) / at(2))
    }

    fn measure(&mut self, runs: usize, mut pass: impl FnMut() -> u64) {
        for _ in 0..runs {
            let start = Instant::now();
            self.events = black_box(pass());
            self.seconds.push(start.elapsed().as_secs_f64());
        }
    }
}

/// A program that reads a trace some times and prints `events=N` and `median=N ms`, when it is called as
/// `PROGRAM bench FILE RUNS`. The name of the program may have arguments after it.
struct Other {
    reader: &'static str,
    work: &'static str,
    program: String,
}

impl Other {
    fn run(&self, file: &str, runs: usize, row: &mut Row) {
        let mut words = self.program.split_whitespace();
        let program = words.next().unwrap_or_default();
        let output = Command::new(program).args(words).args(["bench", file, &runs.to_string()]).output();
        let output = output.unwrap_or_else(|e| fail(&format!("cannot start {}: {e}", self.program)));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let number = |name: &str| {
            let (_, rest) = text.split_once(name)?;
            rest.split_whitespace().next()?.parse::<f64>().ok()
        };
        match (number("events="), number("median=")) {
            (Some(events), Some(milliseconds)) => {
                row.events = format!("{events:.0}").parse().unwrap();
                row.seconds.push(milliseconds / 1000.0);
            }
            _ => {
                eprintln!("{} does not read {file}: {}", self.reader, String::from_utf8_lossy(&output.stderr))
            }
        }
    }
}

fn fail(message: &str) -> ! {
    eprintln!("{message}");
    exit(1)
}

fn main() {
    let mut files: Vec<String> = env::args().skip(1).collect();
    let is_json = files.iter().any(|arg| arg == "--json");
    files.retain(|arg| arg != "--json");
    if files.is_empty() {
        fail("usage: benches/beside [--json] FILE…");
    }
    let runs =
        env::var("RUNS").map_or(21, |runs| runs.parse().unwrap_or_else(|_| fail("RUNS is not a number")));
    let each = usize::max(runs / ROUNDS, 1);
    let others: Vec<Other> = [("CONFORM", "TraceEvent", "equal"), ("WASM", "wasm", "events")]
        .into_iter()
        .filter_map(|(variable, reader, work)| {
            Some(Other { reader, work, program: env::var(variable).ok()? })
        })
        .collect();
    let mut table = Table::default();
    for file in &files {
        let bytes = std::fs::read(file).unwrap_or_else(|e| fail(&format!("cannot read {file}: {e}")));
        let mut rows = measure(&bytes, file, &others, each);
        rows.retain(|row| !row.seconds.is_empty());
        if is_json {
            for row in &mut rows {
                let (seconds, _) = row.median();
                let Row { reader, work, events, .. } = row;
                println!(
                    "{{\"reader\":\"{reader}\",\"file\":{file:?},\"work\":\"{work}\",\"events\":{events},\"seconds\":{seconds:e}}}"
                );
            }
        } else {
            table.add(file, bytes.len(), &mut rows);
        }
    }
    print!("{}", table.0);
}

/// Measures each reader in turn, [`ROUNDS`] times.
fn measure(bytes: &[u8], file: &str, others: &[Other], runs: usize) -> Vec<Row> {
    let mut copy = vec![0; bytes.len()];
    let mut joins = Joins::new(1 << 14, 1 << 18, 1 << 14);
    let mut slots = vec![Held::default(); 1 << 16];
    let ours = ["copy", "events", "joined", "ordered", "equal"]
        .map(|work| Row::new(if work == "copy" { "memcpy" } else { "ipc-proto" }, work));
    let mut rows = Vec::from(ours);
    rows.extend(others.iter().map(|other| Row::new(other.reader, other.work)));
    for round in 0..=ROUNDS {
        // The first round warms up.
        let runs = if round == 0 { 1 } else { runs };
        rows[0].measure(runs, || {
            copy.copy_from_slice(black_box(bytes));
            black_box(&copy);
            0
        });
        rows[1].measure(runs, || events(black_box(bytes)));
        rows[2].measure(runs, || joined(black_box(bytes), &mut joins));
        rows[3].measure(runs, || ordered_in(black_box(bytes), &mut slots));
        rows[4].measure(runs, || whole_trace(black_box(bytes)));
        if round == 0 {
            rows.iter_mut().for_each(|row| row.seconds.clear());
            continue;
        }
        for (other, row) in others.iter().zip(&mut rows[5..]) {
            other.run(file, runs, row);
        }
    }
    let events = rows[1].events;
    rows[0].events = events;
    for row in &rows {
        if !row.seconds.is_empty() && row.events != events {
            eprintln!("{file}: {} finds {} events, and ipc-proto {events}", row.reader, row.events);
        }
    }
    rows
}

/// The results as a table in Markdown.
#[derive(Default)]
struct Table(String);

impl Table {
    fn add(&mut self, file: &str, len: usize, rows: &mut [Row]) {
        if self.0.is_empty() {
            self.0.push_str("| trace | MB | events | reader | work | million events a second | spread | times TraceEvent |\n");
            self.0.push_str("|---|---|---|---|---|---|---|---|\n");
        }
        let reference = rows.iter_mut().find(|row| row.reader == "TraceEvent").map(|row| row.median().0);
        let name = std::path::Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for row in rows {
            let (seconds, spread) = row.median();
            let Row { reader, work, events, .. } = row;
            let (megabytes, rate) = (len as f64 / 1e6, *events as f64 / seconds / 1e6);
            let times =
                reference.map_or_else(|| "–".to_owned(), |reference| format!("{:.1}", reference / seconds));
            writeln!(
                self.0,
                "| {name} | {megabytes:.1} | {events} | {reader} | {work} | {rate:.1} | {:.0} % | {times} |",
                spread * 100.0
            )
            .unwrap();
        }
    }
}
