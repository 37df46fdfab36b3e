//! The time in which something happened, by windows of the recording.
use std::collections::BTreeMap;

use nettrace_analysis::account::{Account, Gauge, Windows};

/// A time in which something happened at a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stretch {
    /// The start and the end in seconds from the start of the trace.
    pub(super) start: f64,
    pub(super) end: f64,
    /// How much happened a second.
    pub(super) rate: f64,
    /// Whether it lasted for most of the recording, and whether it lasted to the end.
    pub(super) is_whole: bool,
    pub(super) is_now: bool,
}

impl Stretch {
    pub(super) fn new(start: f64, end: f64, rate: f64, account: &Account) -> Self {
        const WHOLE: f64 = 0.9;
        const END: f64 = 0.05;
        let [first, last] = seconds(account);
        let length = last - first;
        let is_whole = end - start >= length * WHOLE;
        Self { start, end, rate, is_whole, is_now: end >= last - (length * END).max(0.2) }
    }

    pub(super) fn length(&self) -> f64 {
        self.end - self.start
    }

    pub(super) fn has(&self, nanoseconds: i64) -> bool {
        let time = nanoseconds as f64 / 1e9;
        (self.start - 1e-9..=self.end).contains(&time)
    }

    /// Returns the time as a part of a sentence, with a space before it; empty if it is that of the whole recording.
    pub(super) fn when(&self) -> String {
        match (self.is_whole, self.is_now) {
            (true, _) => String::new(),
            (false, true) => format!(" since {}", moment(self.start)),
            (false, false) => format!(" from {} to {}", moment(self.start), moment(self.end)),
        }
    }
}

/// Returns the start and the end of a recording in seconds.
pub(super) fn seconds(account: &Account) -> [f64; 2] {
    let (start, end) = account.times();
    [start as f64 / 1e9, end as f64 / 1e9]
}

/// Returns a moment of the recording: `6.0 s`, `1:02:03`.
pub(super) fn moment(seconds: f64) -> String {
    const MINUTE: f64 = 60.0;
    if seconds < MINUTE {
        return format!("{seconds:.1} s");
    }
    let (hours, rest) = ((seconds / 3_600.0).floor(), seconds % 3_600.0);
    format!("{hours:.0}:{:02.0}:{:02.0}", (rest / MINUTE).floor(), (rest % MINUTE).floor())
}

/// What happened in a window of a recording.
#[derive(Debug, Clone, Copy)]
struct Bin {
    amount: f64,
    /// The times of the first and the last event, in nanoseconds.
    first: i64,
    last: i64,
}

/// What happened in each window of a recording.
#[derive(Debug)]
pub(super) struct Bins<'a> {
    account: &'a Account,
    bins: BTreeMap<u16, Bin>,
    /// The shortest time that counts, in seconds.
    shortest: f64,
}

impl<'a> Bins<'a> {
    /// The shortest time that counts, in seconds.
    const SHORTEST: f64 = 1.0;

    /// Takes windows with the amount of each, and the times of its first and its last event.
    pub(super) fn new(account: &'a Account, rows: impl Iterator<Item = (u16, f64, [i64; 2])>) -> Self {
        let mut bins: BTreeMap<u16, Bin> = BTreeMap::new();
        for (window, amount, [first, last]) in rows {
            let bin = bins.entry(window).or_insert(Bin { amount: 0.0, first, last });
            *bin = Bin { amount: bin.amount + amount, first: bin.first.min(first), last: bin.last.max(last) };
        }
        Self { account, bins, shortest: Self::SHORTEST }
    }

    /// Makes the whole of a shorter recording count, for events whose number is judged, too.
    pub(super) fn of_events(self) -> Self {
        Self { shortest: Self::SHORTEST.min(self.account.seconds() * 0.9), ..self }
    }

    /// Returns the sums of the samples of a gauge.
    pub(super) fn of_gauge(account: &'a Account, gauge: &Gauge) -> Self {
        let windows = account.windows();
        let number = |time: i64| {
            (0..Windows::COUNT).rev().find(|window| windows.start(*window) <= time).unwrap_or_default()
        };
        let points = gauge.points().iter();
        let rows = points.map(|point| (number(point.first), point.sum, [point.first, point.last]));
        Self::new(account, rows).of_events()
    }

    /// Returns the time in which at least so much happens a second: that of more than a half, or else all of it.
    pub(super) fn stretch(&self, per_second: f64) -> Option<Stretch> {
        /// So many quiet windows do not end a stretch.
        const GAP: u16 = 2;
        let [start, end] = seconds(self.account);
        let length = (self.account.windows().length() as f64 / 1e9).min(end - start);
        // A stretch can begin and end in the middle of a window.
        const EDGE: f64 = 0.25;
        let is_busy = |window: u16, share: f64| {
            self.bins.get(&window).is_some_and(|bin| bin.amount >= per_second * length * share)
        };
        let counts = |window: u16| {
            let is_beside = is_busy(window.saturating_sub(1), 1.0) || is_busy(window.saturating_add(1), 1.0);
            is_busy(window, 1.0) || (is_beside && is_busy(window, EDGE))
        };
        let mut runs: Vec<(u16, Bin)> = Vec::new();
        for (window, bin) in self.bins.iter().filter(|(window, _)| counts(**window)) {
            match runs.last_mut() {
                Some((latest, run)) if *window <= latest.saturating_add(GAP) => {
                    *latest = *window;
                    *run = Bin { amount: run.amount + bin.amount, last: run.last.max(bin.last), ..*run };
                }
                _ => runs.push((*window, *bin)),
            }
        }
        let total: f64 = self.bins.values().map(|bin| bin.amount).sum();
        let is_long = |of: &Stretch| of.length() >= self.shortest && of.rate >= per_second;
        let longest = runs.into_iter().map(|(_, run)| run).max_by(|a, b| a.amount.total_cmp(&b.amount));
        let longest = longest.filter(|run| run.amount > total / 2.0).map(|run| {
            let (start, end) = (run.first as f64 / 1e9, run.last as f64 / 1e9);
            Stretch::new(start, end, run.amount / (end - start).max(length), self.account)
        });
        let whole = || Stretch::new(start, end, total / (end - start).max(1e-3), self.account);
        longest.filter(is_long).or_else(|| Some(whole()).filter(is_long))
    }
}
