//! `Watch`: whether the samples so far fulfil a condition.
use core::hash::BuildHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::RandomState;

use nettrace_analysis::counters::{OwnedSample, System};

use super::condition::Condition;
use super::coverage::Coverage;
use super::report::Process;
use super::series_filter::SeriesFilter;

/// The state of a condition over the samples so far.
#[derive(Default)]
pub(crate) struct Watch {
    condition: Condition,
    /// By term and process: the series of the term.
    holding: BTreeMap<(usize, Process), WatchedSeries>,
    /// The number of series of all terms and processes.
    len: usize,
    /// Whether the limits have left out a series.
    is_limited: bool,
    has_reported: bool,
    /// The key of the last sample.
    key: String,
    hasher: RandomState,
    /// The terms whose counter exists.
    seen: BTreeSet<usize>,
    /// Why a term can never hold.
    contradiction: Option<String>,
}

/// The series of a term in a process, by the hashes of their keys.
#[derive(Debug, Default)]
struct WatchedSeries {
    /// The map reserves room for several series: a trace can have many processes with one series.
    series: BTreeMap<u64, Box<Coverage>>,
    /// The times after which the series are silent, each with the hash of its series.
    silences: BTreeSet<(i128, u64)>,
    /// The number of series that satisfy the term.
    satisfied: usize,
}

impl WatchedSeries {
    fn insert(&mut self, series: u64, coverage: Coverage, hold: i128) {
        self.remove(series, hold);
        self.silences.insert((coverage.silent_after(), series));
        self.satisfied = self.satisfied.saturating_add(usize::from(coverage.covers(hold)));
        self.series.insert(series, Box::new(coverage));
    }

    fn remove(&mut self, series: u64, hold: i128) {
        if let Some(removed) = self.series.remove(&series) {
            self.silences.remove(&(removed.silent_after(), series));
            self.satisfied = self.satisfied.saturating_sub(usize::from(removed.covers(hold)));
        }
    }

    /// Removes the series that are silent. A series is removed once for each time that it was added, so the work is
    /// proportional to the samples.
    fn remove_silent(&mut self, now: i128, hold: i128) {
        while let Some((_, series)) = self.silences.first().copied().filter(|(after, _)| *after < now) {
            self.remove(series, hold);
        }
    }
}

/// The maximum numbers of series that are stored: for a term in a process, and for all terms and processes.
const MAX_SERIES: usize = 10_000;
const MAX_ALL: usize = 100_000;

impl Watch {
    pub(crate) fn new(condition: Condition) -> Self {
        Self { condition, ..Self::default() }
    }

    pub(crate) const fn condition(&self) -> &Condition {
        &self.condition
    }

    /// Takes the name of an instrument that exists, which may have no samples yet.
    pub(crate) fn exists(&mut self, meter: &str, name: &str) {
        for (n, term) in self.condition.terms.iter().enumerate() {
            if term.series.selection.contains(System::Meter, meter.into(), name.into()) {
                self.seen.insert(n);
            }
        }
    }

    /// Takes a sample. Returns whether the condition holds with it.
    pub(crate) fn holds(&mut self, process: &Process, sample: &OwnedSample) -> bool {
        let mut is_about = false;
        self.key.clear();
        sample.push_series_key(&mut self.key);
        let series = self.hasher.hash_one(&self.key);
        for (n, term) in self.condition.terms.iter().enumerate() {
            if !term.series.contains_counter(sample) {
                continue;
            }
            self.seen.insert(n);
            if let Some(why) = term.contradiction(&sample.measurement) {
                let OwnedSample { provider, name, .. } = sample;
                self.contradiction.get_or_insert_with(|| format!("{provider}/{name}: {why}"));
            }
            if !term.series.contains(sample) {
                continue;
            }
            is_about = true;
            let key = (n, process.clone());
            let stored = self.holding.get(&key);
            let previous = stored.and_then(|stored| stored.series.get(&series)).map(|previous| **previous);
            let is_full = stored.is_some_and(|stored| stored.series.len() >= MAX_SERIES);
            if previous.is_none() && (is_full || self.len >= MAX_ALL) {
                self.is_limited = true;
                continue;
            }
            let taken = Coverage::take(previous, time(sample), sample.interval, term.holds(sample));
            self.holding.entry(key).or_default().insert(series, taken, term.hold());
            self.len = self.len.saturating_add(usize::from(previous.is_none()));
        }
        is_about && self.holds_in(process, sample)
    }

    fn holds_in(&mut self, process: &Process, sample: &OwnedSample) -> bool {
        let Self { condition, holding, len, .. } = self;
        condition.terms.iter().enumerate().all(|(n, term)| {
            let key = (n, process.clone());
            let Some(stored) = holding.get_mut(&key) else { return false };
            let before = stored.series.len();
            stored.remove_silent(time(sample), term.hold());
            *len = len.saturating_sub(before.saturating_sub(stored.series.len()));
            let is_satisfied = stored.satisfied > 0;
            if stored.series.is_empty() {
                holding.remove(&key);
            }
            is_satisfied
        })
    }

    /// Removes the series of a process that has ended.
    pub(crate) fn remove(&mut self, process: &Process) {
        for n in 0..self.condition.terms.len() {
            if let Some(ended) = self.holding.remove(&(n, process.clone())) {
                self.len = self.len.saturating_sub(ended.series.len());
            }
        }
    }

    /// Returns whether the limits have left out a series, once.
    pub(crate) fn take_limit_note(&mut self) -> bool {
        core::mem::take(&mut self.is_limited) && !core::mem::replace(&mut self.has_reported, true)
    }

    /// Returns why the condition can never hold whatever its counters report.
    pub(crate) fn contradiction(&self) -> Option<&str> {
        self.contradiction.as_deref()
    }

    /// Returns a counter of the condition that no process has reported.
    pub(crate) fn missing(&self) -> Option<&SeriesFilter> {
        let mut terms = self.condition.terms.iter().enumerate();
        terms.find(|(n, _)| !self.seen.contains(n)).map(|(_, term)| &term.series)
    }
}

/// Returns the time of a sample. A trace without a date has only one session, with times since its start.
fn time(sample: &OwnedSample) -> i128 {
    sample.unix_nanoseconds.unwrap_or_else(|| sample.nanoseconds.into())
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "a test fails by panicking")]
mod tests {
    use nettrace_analysis::counters::Measurement;

    use super::*;
    use crate::counters::condition::parse;
    use crate::counters::trace_reports::last_recorded;

    #[test]
    fn nothing_measured_has_no_minimum_and_no_maximum() {
        let process = Process { id: None, name: String::new() };
        let holds = |condition: &str, sample: &OwnedSample| {
            Watch::new(parse(condition).unwrap()).holds(&process, sample)
        };
        let mut histogram = last_recorded("net10-exponential.nettrace", "Lab.Meter/lab.latency");
        let mut mean = last_recorded("net10-eventcounters.nettrace", "Lab-Counters/sizes");
        for (name, sample) in [("Lab.Meter/lab.latency", &mut histogram), ("Lab-Counters/sizes", &mut mean)] {
            let conditions = [format!("max({name}) < 1000"), format!("min({name}) >= 0")];
            assert!(conditions.iter().all(|condition| holds(condition, sample)), "{sample:?}");
            match &mut sample.measurement {
                Measurement::ExponentialHistogram(histogram) => {
                    histogram.buckets.clear();
                    (histogram.count, histogram.zero_count) = (0, 0);
                    (histogram.min, histogram.max) = (f64::MAX, f64::MIN);
                }
                Measurement::Mean { count, min, max, .. } => {
                    (*count, *min, *max) = (0, f64::INFINITY, f64::NEG_INFINITY);
                }
                other => panic!("{other:?}"),
            }
            assert!(!conditions.iter().any(|condition| holds(condition, sample)), "{sample:?}");
        }
    }

    /// The state of a term that visits all series with each sample.
    #[derive(Default)]
    struct Model(BTreeMap<String, Coverage>);

    impl Model {
        fn holds(&mut self, sample: &OwnedSample, is_satisfied: bool, hold: i128) -> bool {
            let previous = self.0.get(&sample.tag_text).copied();
            let taken = Coverage::take(previous, time(sample), sample.interval, is_satisfied);
            self.0.insert(sample.tag_text.clone(), taken);
            let now = time(sample);
            self.0.retain(|_, series| now <= series.silent_after());
            self.0.values().any(|series| series.covers(hold))
        }
    }

    #[test]
    fn series_that_come_and_go() {
        let process = Process { id: None, name: String::new() };
        let mut held = 0;
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut sample = last_recorded("net10-meters.nettrace", "Lab.Meter/lab.gauge");
            let mut watch = Watch::new(parse("Lab.Meter/lab.gauge > 1 for 3s").unwrap());
            let (mut model, mut now) = (Model::default(), 0);
            for _ in 0..200 {
                now += random.i128(-1..12) * 100_000_000;
                (sample.unix_nanoseconds, sample.tag_text) = (Some(now), format!("k={}", random.u32(0..8)));
                sample.interval = random.bool().then_some(1.0);
                let is_satisfied = random.u32(0..8) > 0;
                let value = Some(if is_satisfied { 2.0 } else { 0.0 }.into());
                sample.measurement = Measurement::Gauge { value };
                let holds = watch.holds(&process, &sample);
                assert_eq!(holds, model.holds(&sample, is_satisfied, 3_000_000_000), "{seed}");
                held += u32::from(holds);
                let stored: usize = watch.holding.values().map(|stored| stored.series.len()).sum();
                assert_eq!(watch.len, stored);
            }
        }
        assert!(held > 1_000, "{held}");
    }

    /// A sample visits its own series only, and the limits are those of all processes: otherwise this would take hours.
    #[test]
    fn many_series() {
        let mut sample = last_recorded("net10-meters.nettrace", "Lab.Meter/lab.gauge");
        let mut watch = Watch::new(parse("Lab.Meter/lab.gauge > 1e9").unwrap());
        let mut limited = 0;
        for id in 0..12 {
            let process = Process { id: Some(id), name: String::new() };
            for n in 0..MAX_SERIES + 5 {
                sample.tag_text = format!("k={n}");
                assert!(!watch.holds(&process, &sample));
                limited += u32::from(watch.take_limit_note());
            }
        }
        assert_eq!((watch.len, limited), (MAX_ALL, 1));
        // The series that are silent make room.
        sample.unix_nanoseconds = Some(time(&sample) + 60_000_000_000);
        let process = Process { id: Some(0), name: String::new() };
        assert!(!watch.holds(&process, &sample));
        sample.tag_text = "k=0".to_owned();
        watch.holds(&process, &sample);
        assert_eq!(watch.len, MAX_ALL - MAX_SERIES + 1);
        // So do those of a process that has ended.
        watch.remove(&Process { id: Some(1), name: String::new() });
        assert_eq!(watch.len, MAX_ALL - 2 * MAX_SERIES + 1);
    }
}
