//! A flame graph as one page of HTML: it loads nothing and sends nothing, so that it works from a file.
//!
//! The page has the calls of all clocks in one tree. For each clock, a row has the weight of a thread at a call. A
//! script adds up the rows that the reader chooses. A large trace is cut: see [`CALLS`] and [`THREADS`].
use std::collections::HashMap;
use std::io::{self, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use indicatif::HumanCount;
use ipc_proto::wire::{to_u32, to_u64, to_usize};
use nettrace_analysis::StackId;
use nettrace_analysis::call_tree::ThreadTree;
use nettrace_analysis::samples::{Clock, Samples};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::text::function_name::FunctionName;
use crate::text::printable::printable;

/// The maximum number of calls on a page: the heaviest ones. The weight of any other call counts for
/// its caller.
const CALLS: usize = 50_000;
/// The maximum number of threads on a page: the heaviest ones. All other threads together are one.
const THREADS: usize = 1_000;

const PAGE: &str = include_str!("flame_page/page.html");
const SCRIPT: &str = include_str!("flame_page/page.js");

/// A recording to show.
pub(crate) struct Recording<'a> {
    pub(crate) name: String,
    pub(crate) samples: &'a mut Samples,
    /// The number of events that the runtime dropped; 0 for an older recording.
    pub(crate) lost: u64,
}

/// Returns the clocks of a page: the usual ones, and the chosen one.
pub(crate) fn clocks(chosen: &Clock) -> Vec<Clock> {
    let mut clocks = vec![
        Clock::Cpu,
        Clock::Wall,
        Clock::ThreadTime,
        Clock::Allocations,
        Clock::Exceptions,
        Clock::Contention,
        Clock::Waits,
    ];
    if !clocks.contains(chosen) {
        clocks.push(chosen.clone());
    }
    clocks
}

/// Returns whether a stack weighs something by a clock.
pub(crate) fn has_weights(samples: &Samples, clock: &Clock) -> bool {
    samples.weights(clock).any(|(_, stack, weight)| stack != StackId::EMPTY && weight.total() > 0)
}

/// Writes the page of a recording, or of its difference from an older one. The page opens with the clock `first`. It
/// also offers the other [`clocks`] for which all its recordings have data. If `is_exact`, it has all frames with their
/// exact names.
pub(crate) fn write(
    recording: &mut Recording<'_>,
    old: Option<&mut Recording<'_>>,
    first: &Clock,
    is_exact: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut clocks = clocks(first);
    clocks.retain(|clock| has_weights(recording.samples, clock));
    if let Some(old) = &old {
        clocks.retain(|clock| has_weights(old.samples, clock));
    }
    let mut graph = Graph { is_exact, ..Graph::default() };
    let rows = graph.add(recording.samples, &clocks);
    let old = old.map(|old| (old.name.as_str(), graph.add(old.samples, &clocks)));
    let old_rows = old.as_ref().map(|(_, rows)| rows.as_slice());
    let dropped = |recording: &Recording<'_>| {
        recording.samples.dropped().saturating_add(recording.samples.stacks().cut())
    };
    let mut notes = Vec::new();
    if let lost @ 1.. = recording.lost {
        notes.push(format!("{} events lost.", HumanCount(lost)));
    }
    if let dropped @ 1.. = dropped(recording) {
        notes.push(format!("{} events have more different stacks than a page counts.", HumanCount(dropped)));
    }
    let places = graph.cut(rows.iter().chain(old_rows.unwrap_or_default()), &mut notes);
    let (threads, thread_places) = threads(recording.samples, &rows);

    // A checkout on Windows can have CRLF, but a browser reads LF. So the script and its hash have LF.
    let script = SCRIPT.replace("\r\n", "\n");
    let script_hash = BASE64_STANDARD.encode(Sha256::digest(&script));
    let title = html(&recording.name);
    // Returns the part of the template up to the next mark, which is replaced by data.
    let mut page = PAGE;
    let mut next = |mark| {
        let (before, after) = page.split_once(mark).unwrap_or((page, ""));
        page = after;
        before
    };
    write!(out, "{}{script_hash}{}{title}{}", next("{HASH}"), next("{TITLE}"), next("{DATA}"))?;
    let clock = clocks.iter().position(|clock| clock == first).unwrap_or_default();
    let old_name = old.as_ref().map(|(name, _)| name);
    write!(out, "{{\"title\":{},\"old\":{},\"clock\":{clock}", json(&recording.name), json(&old_name))?;
    graph.write(&places, out)?;
    let clocks = clocks.iter().zip(&rows).enumerate().map(|(number, (clock, rows))| {
        let (label, what) = describe(clock, recording.samples.has_processor_samples());
        let place = |row: &Row| Some(thread_places.get(row.thread).copied().unwrap_or_default());
        let old = old_rows.and_then(|rows| rows.get(number));
        ClockRows {
            label,
            what,
            unit: clock.unit().name(),
            rows: numbers(rows, &places, place),
            old: old.map(|rows| numbers(rows, &places, |_| None)),
        }
    });
    let clocks: Vec<_> = clocks.collect();
    write!(out, ",\n\"threads\":{},\"notes\":{}", json(&threads), json(&notes))?;
    write!(out, ",\n\"clocks\":{}}}{}{script}{}", json(&clocks), next("{SCRIPT}"), next("\0"))
}

/// The calls of one recording or two.
struct Graph {
    is_exact: bool,
    /// The names, and whether they are functions of the program.
    names: Vec<(String, bool)>,
    numbers: HashMap<String, u32>,
    /// The caller and the name of each call. The first is the root, which is its own caller and has no name. A caller
    /// comes before its callees.
    calls: Vec<(u32, u32)>,
    places: HashMap<(u32, u32), u32>,
}

/// What the page has of a clock.
#[derive(Serialize)]
struct ClockRows {
    label: String,
    what: String,
    unit: &'static str,
    rows: Vec<u64>,
    old: Option<Vec<u64>>,
}

/// The weight of a thread at a call.
struct Row {
    call: u32,
    thread: usize,
    weight: u64,
}

impl Default for Graph {
    fn default() -> Self {
        let (names, numbers) = (Vec::new(), HashMap::new());
        Self { is_exact: false, names, numbers, calls: vec![(0, 0)], places: HashMap::new() }
    }
}

impl Graph {
    /// Adds the calls of a recording. Returns its rows by each clock.
    fn add(&mut self, samples: &mut Samples, clocks: &[Clock]) -> Vec<Vec<Row>> {
        let tree = if self.is_exact { ThreadTree::new } else { ThreadTree::folded };
        let tree = tree(samples, clocks);
        let names = samples.names();
        // The number of the call for each node of the tree.
        let mut calls = vec![0_u32];
        // The number of the name for each frame: a frame is in many calls, and its name is searched once.
        let mut frames = HashMap::new();
        for (caller, frame) in tree.calls() {
            let name = || self.name(names.text(frame), names.is_own(frame));
            let name = *frames.entry(frame).or_insert_with(name);
            let caller = calls.get(caller.number()).copied().unwrap_or_default();
            let call = *self.places.entry((caller, name)).or_insert_with(|| {
                self.calls.push((caller, name));
                to_u32(self.calls.len().saturating_sub(1))
            });
            calls.push(call);
        }
        let rows = |clock| {
            let rows = tree.weights(clock).iter().map(|row| Row {
                call: calls.get(row.node.number()).copied().unwrap_or_default(),
                thread: row.thread.number(),
                weight: row.exclusive,
            });
            rows.collect()
        };
        (0..clocks.len()).map(rows).collect()
    }

    /// Returns the number of a name.
    fn name(&mut self, text: &str, is_own: bool) -> u32 {
        if let Some(name) = self.numbers.get(text) {
            return *name;
        }
        let name = to_u32(self.names.len());
        self.names.push((text.to_owned(), is_own));
        self.numbers.insert(text.to_owned(), name);
        name
    }

    /// Chooses the calls that have a place on the page. Returns the place of each call: its own, or that of the
    /// innermost caller that has one.
    fn cut<'r>(&self, all_rows: impl Iterator<Item = &'r Vec<Row>>, notes: &mut Vec<String>) -> Places {
        let mut largest = vec![0.0_f64; self.calls.len()];
        for rows in all_rows {
            let mut totals = vec![0_u64; self.calls.len()];
            for row in rows {
                if let Some(total) = totals.get_mut(to_usize(row.call)) {
                    *total = total.saturating_add(row.weight);
                }
            }
            for (call, (caller, _)) in self.calls.iter().enumerate().skip(1).rev() {
                let weight = totals.get(call).copied().unwrap_or_default();
                if let Some(total) = totals.get_mut(to_usize(*caller)) {
                    *total = total.saturating_add(weight);
                }
            }
            let sum = totals.first().copied().unwrap_or_default().max(1) as f64;
            for (largest, total) in largest.iter_mut().zip(totals) {
                *largest = largest.max(total as f64 / sum);
            }
        }
        let mut order: Vec<_> = largest.iter().copied().enumerate().collect();
        // A call weighs at most what its caller weighs, so that no caller is missing.
        order.sort_by(|(a, a_share), (b, b_share)| b_share.total_cmp(a_share).then(a.cmp(b)));
        if let Some((_, share)) = order.get(CALLS) {
            let share = 100.0 * share;
            notes.push(format!(
                "Calls of {share:.4} % and less count for their callers: only the heaviest are shown."
            ));
        }
        let mut is_shown = vec![false; self.calls.len()];
        for (call, _) in order.into_iter().take(CALLS) {
            if let Some(is_shown) = is_shown.get_mut(call) {
                *is_shown = true;
            }
        }
        let (mut of_call, mut shown) = (Vec::new(), Vec::new());
        for (call, ((caller, _), is_shown)) in self.calls.iter().zip(is_shown).enumerate() {
            let place = if is_shown {
                shown.push(call);
                to_u32(shown.len().saturating_sub(1))
            } else {
                of_call.get(to_usize(*caller)).copied().unwrap_or_default()
            };
            of_call.push(place);
        }
        Places { of_call, shown }
    }

    /// Writes the names with where they can be cut and whether they are own, and the calls: for each call, the number of its name, and the distance to its caller.
    fn write(&self, places: &Places, out: &mut impl Write) -> io::Result<()> {
        let mut numbers = HashMap::new();
        let (mut names, mut frames, mut callers) = (Vec::new(), vec![-1], vec![0]);
        for (number, call) in places.shown.iter().enumerate().skip(1) {
            let Some((caller, name)) = self.calls.get(*call) else { continue };
            frames.push(*numbers.entry(name).or_insert_with(|| {
                names.extend(self.names.get(to_usize(*name)));
                i64::try_from(names.len().saturating_sub(1)).unwrap_or(i64::MAX)
            }));
            callers.push(number.saturating_sub(to_usize(places.of(*caller))));
        }
        let own: Vec<_> = names.iter().map(|(_, is_own)| u8::from(*is_own)).collect();
        let names: Vec<_> = names.iter().map(|(name, _)| FunctionName::new(name, self.is_exact)).collect();
        let places: Vec<Vec<_>> = names.iter().map(|name| name.utf16_places().collect()).collect();
        let texts: Vec<_> = names.iter().map(FunctionName::text).collect();
        write!(out, ",\n\"own\":{},\n\"names\":{}", json(&own), json(&texts))?;
        write!(out, ",\n\"places\":{},\n\"frames\":{}", json(&places), json(&frames))?;
        write!(out, ",\n\"callers\":{}", json(&callers))
    }
}

/// The places of the calls on the page.
struct Places {
    of_call: Vec<u32>,
    /// The calls that have a place, in order.
    shown: Vec<usize>,
}

impl Places {
    fn of(&self, call: u32) -> u32 {
        self.of_call.get(to_usize(call)).copied().unwrap_or_default()
    }
}

/// Returns rows in the order of calls: the distance from the call of the row before, the thread, and the weight. If
/// `thread` returns `None`, the row has no thread.
fn numbers(rows: &[Row], places: &Places, thread: impl Fn(&Row) -> Option<usize>) -> Vec<u64> {
    let mut sums: Vec<_> = rows.iter().map(|row| (places.of(row.call), thread(row), row.weight)).collect();
    sums.sort_unstable();
    let (mut numbers, mut last) = (Vec::new(), 0);
    for equal in sums.chunk_by(|(a, a_thread, _), (b, b_thread, _)| (a, a_thread) == (b, b_thread)) {
        let Some((call, thread, _)) = equal.first() else { continue };
        numbers.push(call.saturating_sub(last).into());
        numbers.extend(thread.map(to_u64));
        numbers.push(equal.iter().fold(0_u64, |sum, (_, _, weight)| sum.saturating_add(*weight)));
        last = *call;
    }
    numbers
}

/// Returns the names of the threads on the page, and the place of each thread among them.
fn threads(samples: &Samples, all_rows: &[Vec<Row>]) -> (Vec<String>, Vec<usize>) {
    let mut largest = vec![0.0_f64; samples.threads().len()];
    for rows in all_rows {
        let sum = rows.iter().fold(0.0, |sum, row| sum + row.weight as f64);
        let mut totals = vec![0.0; largest.len()];
        for row in rows {
            if let Some(total) = totals.get_mut(row.thread) {
                *total += row.weight as f64;
            }
        }
        for (largest, total) in largest.iter_mut().zip(totals) {
            *largest = largest.max(total / sum);
        }
    }
    let mut order: Vec<_> = (0..).zip(largest).filter(|(_, share)| *share > 0.0).collect();
    order.sort_by(|(a, a_share): &(usize, f64), (b, b_share)| b_share.total_cmp(a_share).then(a.cmp(b)));
    let mut names = Vec::new();
    // The place after the last one is that of all other threads.
    let mut places = vec![THREADS; samples.threads().len()];
    for (number, _) in order.iter().take(THREADS) {
        if let (Some(thread), Some(place)) = (samples.threads().get(*number), places.get_mut(*number)) {
            *place = names.len();
            let process = if thread.process == 0 { String::new() } else { format!("{}/", thread.process) };
            let name =
                if thread.name.is_empty() { String::new() } else { format!(" {}", printable(&thread.name)) };
            names.push(format!("{process}{}{name}", thread.id));
        }
    }
    if let others @ 1.. = order.len().saturating_sub(THREADS) {
        names.push(format!("{others} other threads"));
    }
    (names, places)
}

/// Returns a label of a clock, and what it counts.
fn describe(clock: &Clock, of_processor: bool) -> (String, String) {
    let (label, what) = match clock {
        Clock::Cpu if of_processor => ("CPU", "samples of the processor, in managed and in other code"),
        Clock::Cpu => ("CPU", "samples of threads in managed code"),
        Clock::Wall if of_processor => {
            ("Wall clock", "samples of the processor, and a sample for each millisecond off the processor")
        }
        Clock::Wall => ("Wall clock", "samples of all threads, also of those that wait or run native code"),
        Clock::ThreadTime => ("Thread time", "time from sample to sample, waiting included"),
        Clock::Allocations => ("Allocations", "allocated bytes, by sampled allocations"),
        Clock::AllocatedTypes => ("Allocated types", "allocated bytes, with the types of the objects"),
        Clock::Exceptions => ("Exceptions", "thrown exceptions"),
        Clock::Contention => ("Contention", "time of waiting for locks"),
        Clock::Waits => ("Waits", "time of waiting on WaitHandles"),
        Clock::Events { provider, event_id } => {
            let id = event_id.map_or_else(String::new, |id| format!("/{id}"));
            let label = format!("{}{id}", printable(provider));
            let what = format!("events {label}");
            return (label, what);
        }
        _ => ("Events", "all events with a stack"),
    };
    (label.to_owned(), what.to_owned())
}

/// Returns JSON without `<`, so that it cannot end the element of the page that contains it.
fn json(value: &impl Serialize) -> String {
    // Texts and lists of numbers always have a form in JSON.
    serde_json::to_string(value).unwrap_or_default().replace('<', "\\u003c")
}

/// Returns text of HTML.
fn html(text: &str) -> String {
    printable(text).replace('&', "&amp;").replace('<', "&lt;")
}
