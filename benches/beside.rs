//! Reads the same traces with this library and with others, and prints how fast each reader was. Each pair of a reader
//! and a trace has a process of its own, so that neither memory nor code that another one has warmed up counts. See the
//! script `beside`.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark may fail as it likes"
)]
use core::fmt::Write;
use core::hint::black_box;
use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::process::{Command, exit};
use std::time::Instant;

use ipc_benches::traces::{Joins, events, joined, ordered_in, read_all, whole_trace};
use nettrace::{EventAssembler, EventOrder, Held, ReadOptions, TraceReader};

/// How often the readers take turns.
const ROUNDS: usize = 3;

/// The passes that TraceEvent needs until the runtime has compiled all of it at its last tier, for most of them.
const WARM_PASSES: usize = 63;

/// The task of a reader, and how it gets the bytes.
#[derive(Clone, Copy)]
struct OwnRow {
    reader: &'static str,
    work: &'static str,
    /// Whether the allocator returns memory after each pass, as if the pass were the first of its process.
    is_fresh: bool,
}

const OWN_ROWS: [OwnRow; 10] = [
    OwnRow::new("memcpy", "copy"),
    OwnRow::new("ipc-proto", "events"),
    OwnRow::new("ipc-proto", "joined"),
    OwnRow::new("ipc-proto", "ordered"),
    OwnRow::new("ipc-proto", "equal"),
    OwnRow::new("ipc-proto", "equal").fresh(),
    OwnRow::new("ipc-proto", "file"),
    OwnRow::new("ipc-proto", "file").fresh(),
    OwnRow::new("ipc-proto", "stream"),
    OwnRow::new("ipc-proto", "stream").fresh(),
];

impl OwnRow {
    const fn new(reader: &'static str, work: &'static str) -> Self {
        Self { reader, work, is_fresh: false }
    }

    const fn fresh(self) -> Self {
        Self { is_fresh: true, ..self }
    }

    /// Starts this program as the reader of one row.
    fn run(self, file: &str, runs: usize) -> Result<Measured, String> {
        // A fixed threshold keeps the allocator from learning that large blocks are wanted again.
        let tunables = match self.is_fresh {
            true => "glibc.malloc.mmap_threshold=131072:glibc.malloc.trim_threshold=131072",
            false => {
                "glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=4294967296:glibc.malloc.top_pad=67108864"
            }
        };
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["row", self.work, file, &runs.to_string()]).env("GLIBC_TUNABLES", tunables);
        measured(&mut command)
    }
}

/// The measurements of one process.
#[derive(Debug, Clone, Copy)]
struct Measured {
    events: u64,
    /// The median.
    seconds: f64,
}

/// A program that reads a trace some times and prints `events=N` and `median=N ms`, when it is called as
/// `PROGRAM bench FILE RUNS`. The name of the program may have arguments after it.
struct Other {
    reader: String,
    work: &'static str,
    program: String,
    least_runs: usize,
}

impl Other {
    fn run(&self, file: &str, runs: usize) -> Result<Measured, String> {
        let mut words = self.program.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).args(["bench", file, &runs.max(self.least_runs).to_string()]);
        measured(&mut command)
    }
}

/// Runs a reader, and returns what it prints.
fn measured(command: &mut Command) -> Result<Measured, String> {
    let output = command.output().map_err(|e| format!("cannot start {command:?}: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |name: &str| {
        let (_, rest) = text.split_once(name)?;
        rest.split_whitespace().next()?.parse::<f64>().ok()
    };
    match (number("events="), number("median=")) {
        (Some(events), Some(milliseconds)) => {
            Ok(Measured { events: format!("{events:.0}").parse().unwrap(), seconds: milliseconds / 1000.0 })
        }
        _ => Err(format!("{command:?} fails: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

fn fail(message: &str) -> ! {
    eprintln!("{message}");
    exit(1)
}

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    if let ["row", work, file, runs] = args.iter().map(|arg| &**arg).collect::<Vec<_>>()[..] {
        return row(work, file, runs.parse().unwrap());
    }
    let (mut files, mut others, mut is_json) = (Vec::new(), Vec::new(), false);
    for (variable, reader, work, least_runs) in
        [("CONFORM", "TraceEvent", "equal", WARM_PASSES), ("WASM", "wasm", "events", 1)]
    {
        if let Ok(program) = env::var(variable) {
            others.push(Other { reader: reader.to_owned(), work, program, least_runs });
        }
    }
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        match &*arg {
            "--json" => is_json = true,
            "--reader" => match args.next().as_deref().and_then(|reader| reader.split_once('=')) {
                Some((reader, program)) => {
                    let (reader, program) = (reader.to_owned(), program.to_owned());
                    others.push(Other { reader, work: "equal", program, least_runs: WARM_PASSES });
                }
                None => fail("--reader needs NAME=COMMAND"),
            },
            _ => files.push(arg),
        }
    }
    if files.is_empty() {
        fail("usage: benches/beside [--json] [--reader NAME=COMMAND]… FILE…");
    }
    let runs =
        env::var("RUNS").map_or(21, |runs| runs.parse().unwrap_or_else(|_| fail("RUNS is not a number")));
    let mut table = Table::default();
    for file in &files {
        let rows = measure(file, &others, usize::max(runs / ROUNDS, 1));
        if is_json {
            for Row { reader, work, events, is_fresh, seconds, .. } in &rows {
                let memory = if *is_fresh { "fresh" } else { "kept" };
                let work = if *is_fresh { format!("{work} fresh") } else { (*work).to_owned() };
                println!(
                    "{{\"reader\":{reader:?},\"file\":{file:?},\"work\":{work:?},\"memory\":\"{memory}\",\"events\":{events},\"seconds\":{seconds:e}}}"
                );
            }
        } else {
            table.add(file, &rows);
        }
    }
    print!("{}", table.0);
}

/// A result: the median of the rounds, and their range as a share of it.
struct Row {
    reader: String,
    work: &'static str,
    is_fresh: bool,
    events: u64,
    seconds: f64,
    range: f64,
}

/// Starts each reader in turn, [`ROUNDS`] times.
fn measure(file: &str, others: &[Other], runs: usize) -> Vec<Row> {
    let mut results: BTreeMap<usize, Vec<Measured>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        let own = OWN_ROWS.iter().map(|row| row.run(file, runs));
        let others = others.iter().map(|other| other.run(file, runs));
        for (place, result) in own.chain(others).enumerate() {
            match result {
                Ok(measured) => results.entry(place).or_default().push(measured),
                Err(message) => eprintln!("{message}"),
            }
        }
    }
    let events = results[&1][0].events;
    let mut rows = Vec::new();
    for (place, mut results) in results {
        let (reader, work, is_fresh) = match OWN_ROWS.get(place) {
            Some(own) => (own.reader.to_owned(), own.work, own.is_fresh),
            None => {
                let other = &others[place - OWN_ROWS.len()];
                (other.reader.clone(), other.work, false)
            }
        };
        results.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let (first, last) = (results[0], results[results.len() - 1]);
        let Measured { events: found, seconds } = results[results.len() / 2];
        let found = if work == "copy" { events } else { found };
        if found != events {
            eprintln!("{file}: {reader} finds {found} events, and ipc-proto {events}");
        }
        let range = (last.seconds - first.seconds) / seconds;
        rows.push(Row { reader, work, is_fresh, events: found, seconds, range });
    }
    rows
}

/// Measures one row, in this process.
fn row(work: &str, file: &str, runs: usize) {
    let read = || fs::read(file).unwrap_or_else(|e| fail(&format!("cannot read {file}: {e}")));
    let open = || File::open(file).unwrap_or_else(|e| fail(&format!("cannot open {file}: {e}")));
    let file_by =
        |order| TraceReader::with_assembler(open(), EventAssembler::new(order, ReadOptions::default()));
    let bytes = if matches!(work, "file" | "stream") { Vec::new() } else { read() };
    let (mut copy, mut slots) = (Vec::new(), vec![Held::default(); 1 << 16]);
    let mut joins = Joins::new(1 << 14, 1 << 18, 1 << 14);
    let mut pass = || match work {
        "copy" => {
            copy.resize(bytes.len(), 0);
            copy.copy_from_slice(black_box(&bytes));
            black_box(&copy);
            0
        }
        "events" => events(black_box(&bytes)),
        "joined" => joined(black_box(&bytes), &mut joins),
        "ordered" => ordered_in(black_box(&bytes), &mut slots),
        "equal" => whole_trace(black_box(&bytes)),
        "file" => read_all(file_by(EventOrder::BY_SEGMENT)),
        _ => read_all(file_by(EventOrder::BY_TIME)),
    };
    // The first pass warms up, as the passes of other readers do.
    let events = pass();
    let mut seconds: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            black_box(pass());
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!("events={events} median={:.6} ms", seconds[seconds.len() / 2] * 1000.0);
}

/// The results as a table in Markdown.
#[derive(Default)]
struct Table(String);

impl Table {
    fn add(&mut self, file: &str, rows: &[Row]) {
        if self.0.is_empty() {
            self.0.push_str("| trace | MB | events | reader | work | million events a second | range | times TraceEvent |\n");
            self.0.push_str("|---|---|---|---|---|---|---|---|\n");
        }
        let megabytes = fs::metadata(file).unwrap().len() as f64 / 1e6;
        let reference = rows.iter().find(|row| row.reader == "TraceEvent").map(|row| row.seconds);
        let name = std::path::Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for Row { reader, work, is_fresh, events, seconds, range } in rows {
            let memory = if *is_fresh { ", fresh memory" } else { "" };
            let rate = *events as f64 / seconds / 1e6;
            let times =
                reference.map_or_else(|| "–".to_owned(), |reference| format!("{:.1}", reference / seconds));
            writeln!(
                self.0,
                "| {name} | {megabytes:.1} | {events} | {reader} | {work}{memory} | {rate:.1} | {:.0} % | {times} |",
                range * 100.0
            )
            .unwrap();
        }
    }
}
