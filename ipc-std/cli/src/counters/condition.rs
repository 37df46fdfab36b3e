//! `--until` of `counters`: the parser of conditions, and whether samples fulfil them.
use core::fmt;
use core::hash::BuildHasher;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::RandomState;

use dotnet_ipc_syntax::durations;
use nettrace_analysis::counters::{Measurement, OwnedSample, System};

use super::feed::Process;
use super::series_filter::SeriesFilter;
use crate::args::comparison::Comparison;

/// A condition: comparisons that must all hold in the same process.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition {
    text: String,
    terms: Vec<Term>,
}

/// A comparison of a counter: `rate(PROVIDER/NAME[TAGS]) > 80 for 10s`.
#[derive(Debug, Clone, PartialEq)]
struct Term {
    part: Part,
    series: SeriesFilter,
    comparison: Comparison,
    number: f64,
    hold: Duration,
}

/// The number of a sample that is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Value,
    Rate,
    Count,
    Sum,
    Min,
    Max,
    Quantile(f64),
}

/// Parses `[PART(]PROVIDER/NAME[TAGS][)] OP NUMBER [for DURATION]`, several joined by ` and `.
pub(crate) fn parse(text: &str) -> Result<Condition, String> {
    let (mut terms, mut rest) = (Vec::new(), text);
    loop {
        let (term, after) = term(rest).map_err(|why| {
            format!(
                "not a condition such as 'System.Runtime/cpu-usage > 80 for 10s' or \
                 'p95(My.Meter/latency[host=a]) >= 0.5': {why}"
            )
        })?;
        terms.push(term);
        match after {
            Some(after) => rest = after,
            None => return Ok(Condition { text: text.to_owned(), terms }),
        }
    }
}

/// Splits off a term. Returns it with the text after the ` and ` that follows it, if any.
fn term(text: &str) -> Result<(Term, Option<&str>), String> {
    let text = text.trim_start();
    let part = text.split_once('(').filter(|(before, _)| !before.contains(['/', '[', '<', '>', '=', '!']));
    let (part, series, rest) = match part {
        Some((part, inner)) => {
            let part = parse_part(part.trim()).ok_or_else(|| format!("no number has the name {part:?}"))?;
            let (series, rest) = SeriesFilter::split(inner, &[')'])?;
            (part, series, rest.trim_start().strip_prefix(')').ok_or("a `)` is missing")?)
        }
        None => {
            let (series, rest) = SeriesFilter::split(text, &['<', '>', '=', '!'])?;
            (Part::Value, series, rest)
        }
    };
    if series.selection.name.is_none() {
        return Err("the name of a counter is missing: PROVIDER/NAME".to_owned());
    }
    let (comparison, rest) = Comparison::split(rest.trim_start()).ok_or("a comparison is missing")?;
    let (rest, after) = match rest.split_once(" and ") {
        Some((rest, after)) => (rest, Some(after)),
        None => (rest, None),
    };
    let (number, hold) = match rest.split_once(" for ") {
        Some((number, hold)) => (number, durations::parse(hold.trim()).map_err(|e| e.to_string())?),
        None => (rest, Duration::ZERO),
    };
    let number = number.trim();
    let parsed = number.parse::<f64>().ok().filter(|number| !number.is_nan());
    let number = parsed.ok_or_else(|| format!("{number:?} is no number"))?;
    Ok((Term { part, series, comparison, number, hold }, after))
}

fn parse_part(text: &str) -> Option<Part> {
    Some(match text {
        "value" => Part::Value,
        "rate" => Part::Rate,
        "count" => Part::Count,
        "sum" => Part::Sum,
        "min" => Part::Min,
        "max" => Part::Max,
        _ => {
            let percent = text.strip_prefix('p')?.parse::<f64>().ok()?;
            Part::Quantile(percent / 100.0).check()?
        }
    })
}

impl Part {
    fn check(self) -> Option<Self> {
        match self {
            Self::Quantile(share) if !(0.0..=1.0).contains(&share) => None,
            part => Some(part),
        }
    }

    /// Returns the number of a sample; `None` if it has none at this time.
    fn of(self, sample: &OwnedSample) -> Option<f64> {
        match (self, &sample.measurement) {
            (Self::Value, measurement) => measurement.value(),
            // Without measurements, the runtime reports the limits of floating-point numbers as minimum and maximum.
            (Self::Min | Self::Max, Measurement::Mean { count: 0, .. }) => None,
            (Self::Min | Self::Max, Measurement::ExponentialHistogram(histogram)) if histogram.count == 0 => {
                None
            }
            (Self::Rate, measurement) => measurement.rate(sample.interval),
            (Self::Count, Measurement::Mean { count, .. }) => Some(*count as f64),
            (Self::Count, Measurement::Histogram { count, .. }) => count.map(|count| count as f64),
            (Self::Count, Measurement::ExponentialHistogram(histogram)) => Some(histogram.count as f64),
            (Self::Sum, Measurement::Histogram { sum, .. }) => *sum,
            (Self::Sum, Measurement::ExponentialHistogram(histogram)) => Some(histogram.sum),
            (Self::Min, Measurement::Mean { min, .. }) => Some(*min),
            (Self::Min, Measurement::ExponentialHistogram(histogram)) => Some(histogram.min),
            (Self::Max, Measurement::Mean { max, .. }) => Some(*max),
            (Self::Max, Measurement::ExponentialHistogram(histogram)) => Some(histogram.max),
            (Self::Quantile(share), Measurement::Histogram { quantiles, .. }) => {
                let found = quantiles.iter().find(|one| (one.quantile - share).abs() < 1e-9);
                found.map(|one| one.value)
            }
            (Self::Quantile(share), Measurement::ExponentialHistogram(histogram)) => {
                histogram.quantile(share)
            }
            _ => None,
        }
    }

    /// Returns why no sample of this kind has the number.
    fn contradiction(self, measurement: &Measurement) -> Option<&'static str> {
        let is_mean = matches!(measurement, Measurement::Mean { .. });
        let is_exponential = matches!(measurement, Measurement::ExponentialHistogram(_));
        let is_histogram = is_exponential || matches!(measurement, Measurement::Histogram { .. });
        let counts = matches!(
            measurement,
            Measurement::Sum { .. } | Measurement::Counter { .. } | Measurement::UpDownCounter { .. }
        );
        let quantile_is_missing = |share: f64| match measurement {
            Measurement::Histogram { quantiles, .. } if !quantiles.is_empty() => {
                !quantiles.iter().any(|one| (one.quantile - share).abs() < 1e-9)
            }
            _ => false,
        };
        match self {
            Self::Value if is_histogram => {
                Some("a histogram has no value; use p50(…), p95(…), p99(…), count(…) or sum(…)")
            }
            Self::Rate if !counts => Some("only what counts has a rate"),
            Self::Count if !is_mean && !is_histogram => Some("only means and histograms have a count"),
            Self::Sum if !is_histogram => Some("only histograms have a sum"),
            Self::Min | Self::Max if !is_mean && !is_exponential => {
                Some("only means and histograms with buckets have a minimum and a maximum")
            }
            Self::Quantile(_) if !is_histogram => Some("only histograms have percentiles"),
            Self::Quantile(share) if quantile_is_missing(share) => {
                Some("the runtime reports p50, p95 and p99")
            }
            _ => None,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Term {
    /// Returns the nanoseconds for which the comparison must hold.
    fn hold(&self) -> i128 {
        i128::try_from(self.hold.as_nanos()).unwrap_or(i128::MAX)
    }

    /// Returns whether the comparison holds for a number. NaN differs from every number.
    fn holds(&self, number: f64) -> bool {
        number
            .partial_cmp(&self.number)
            .map_or(self.comparison == Comparison::NotEqual, |ordering| self.comparison.accepts(ordering))
    }
}

impl Condition {
    /// Returns the series that the condition compares.
    pub(crate) fn series(&self) -> impl Iterator<Item = &SeriesFilter> {
        self.terms.iter().map(|term| &term.series)
    }
}

/// The state of a condition over the samples so far.
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

/// The observed part of a series.
#[derive(Debug, Clone, Copy)]
struct Coverage {
    /// The time of the last sample in nanoseconds.
    last: i128,
    /// The time that each of the last two samples covers: its interval, or the shortest time between two samples.
    steps: Option<[i128; 2]>,
    /// The time covered by the samples that satisfied the term without a hole between them; `None` if the last one did
    /// not satisfy it.
    covered: Option<i128>,
}

impl Coverage {
    /// Takes a sample. It covers its own interval, and a hole between two samples ends the hold.
    fn take(previous: Option<Self>, now: i128, interval: Option<f64>, is_satisfied: bool) -> Self {
        let gap = previous.map(|previous| now.saturating_sub(previous.last)).filter(|gap| *gap > 0);
        let known = previous.and_then(|previous| previous.steps);
        let stated = interval.filter(|seconds| *seconds > 0.0).and_then(nanoseconds);
        let shortest = || known.map(|[_, step]| step).into_iter().chain(gap).min();
        let step = stated.or_else(shortest);
        let steps = step.map(|step| [known.map_or(step, |[_, last]| last), step]);
        if !is_satisfied {
            return Self { last: now, steps, covered: None };
        }
        // The times of samples vary a little.
        let is_longer = |than: i128, step: i128| step.saturating_mul(2) > than.saturating_mul(3);
        // A process that was stopped states the time of the stop as a part of an interval. Nothing was observed in it.
        let usual = known.map(|[one, other]| one.max(other));
        let step = step.unwrap_or(0);
        let (own, reach) = match usual {
            Some(usual) if is_longer(usual, step) => (gap.map_or(usual, |gap| gap.min(usual)), usual),
            _ => (step, step),
        };
        let follows = |gap: i128| !is_longer(reach, gap);
        let before = previous.and_then(|previous| previous.covered).filter(|_| gap.is_none_or(follows));
        // The first sample of a series whose interval nothing states covers as much as the second one.
        let before = before.map(|before| if known.is_none() && stated.is_none() { own } else { before });
        let own = if gap.is_none() && previous.is_some() { 0 } else { own };
        Self { last: now, steps, covered: Some(before.unwrap_or(0).saturating_add(own)) }
    }

    /// Returns the time after which the series is silent.
    fn silent_after(&self) -> i128 {
        /// After 3.5 intervals without a sample, a series no longer satisfies a term.
        const HALF_INTERVALS: i128 = 7;
        let step = self.steps.map_or(1_000_000_000, |[_, step]| step);
        self.last.saturating_add(step.saturating_mul(HALF_INTERVALS) / 2)
    }

    /// Returns whether the series satisfies a term for this time.
    fn covers(&self, hold: i128) -> bool {
        // The intervals that a runtime states are a little shorter or longer than those that were asked for.
        self.covered.is_some_and(|covered| covered.saturating_add(covered / 50) >= hold)
    }
}

/// Returns seconds in nanoseconds; `None` for a number that no interval has.
fn nanoseconds(seconds: f64) -> Option<i128> {
    i128::try_from(Duration::try_from_secs_f64(seconds).ok()?.as_nanos()).ok()
}

/// The maximum numbers of series that are stored: for a term in a process, and for all terms and processes.
const MAX_SERIES: usize = 10_000;
const MAX_ALL: usize = 100_000;

impl Watch {
    pub(crate) fn new(condition: Condition) -> Self {
        Self {
            condition,
            holding: BTreeMap::new(),
            len: 0,
            is_limited: false,
            has_reported: false,
            key: String::new(),
            hasher: RandomState::new(),
            seen: BTreeSet::new(),
            contradiction: None,
        }
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
            if let Some(why) = term.part.contradiction(&sample.measurement) {
                let OwnedSample { provider, name, .. } = sample;
                self.contradiction.get_or_insert_with(|| format!("{provider}/{name}: {why}"));
            }
            if !term.series.contains(sample) {
                continue;
            }
            is_about = true;
            let is_satisfied = term.part.of(sample).is_some_and(|number| term.holds(number));
            let key = (n, process.clone());
            let stored = self.holding.get(&key);
            let previous = stored.and_then(|stored| stored.series.get(&series)).map(|previous| **previous);
            let is_full = stored.is_some_and(|stored| stored.series.len() >= MAX_SERIES);
            if previous.is_none() && (is_full || self.len >= MAX_ALL) {
                self.is_limited = true;
                continue;
            }
            let taken = Coverage::take(previous, sample.unix_nanoseconds, sample.interval, is_satisfied);
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
            stored.remove_silent(sample.unix_nanoseconds, term.hold());
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

    /// Returns the reason why the condition can never hold, for any values of its counters.
    pub(crate) fn contradiction(&self) -> Option<&str> {
        self.contradiction.as_deref()
    }

    /// Returns a counter of the condition that no process has reported.
    pub(crate) fn missing(&self) -> Option<&SeriesFilter> {
        let mut terms = self.condition.terms.iter().enumerate();
        terms.find(|(n, _)| !self.seen.contains(n)).map(|(_, term)| &term.series)
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::counters::feed::last_recorded;

    /// The covered time of samples at these times, in milliseconds, each with its interval; of those that do not satisfy
    /// the term, the times are negative.
    fn covered(samples: impl IntoIterator<Item = (i64, Option<f64>)>) -> Option<i128> {
        let series = samples.into_iter().fold(None, |series, (at, interval)| {
            let now = i128::from(at.abs()) * 1_000_000;
            Some(Coverage::take(series, now, interval, at > 0))
        });
        series.and_then(|series| series.covered).map(|covered| covered / 1_000_000)
    }

    #[test]
    fn a_sample_covers_its_own_interval() {
        let two = Some(2.0);
        for (times, expected) in [
            (&[5_000][..], Some(2_000)),
            (&[4_000, 6_000, 8_000], Some(6_000)),
            (&[4_000, 6_000, 10_000], Some(2_000)), // one is missing
            (&[5_000, 26_000], Some(2_000)),
            (&[4_000, -6_000, 8_000, 10_000], Some(4_000)),
            (&[4_000, 6_000, -8_000], None),
            (&[4_000, 4_000, 6_000], Some(4_000)), // the same sample twice
        ] {
            assert_eq!(covered(times.iter().map(|at| (*at, two))), expected, "{times:?}");
        }
        // A process that was stopped: the time of the stop is a part of an interval, or follows it.
        for (samples, expected) in [
            (
                &[(1_000, 1.0), (2_000, 1.0), (7_600, 5.6), (8_000, 0.4), (9_000, 1.0), (10_000, 1.0)][..],
                3_400,
            ),
            (&[(1_000, 1.0), (2_000, 1.0), (7_600, 1.0), (8_000, 5.0), (9_000, 1.0), (10_000, 1.0)], 3_400),
            (&[(1_000, 1.0), (2_000, 1.0), (7_600, 5.6)], 1_000),
            // Another client ends its session, and the interval is longer from there on.
            (&[(100, 0.1), (200, 0.1), (1_200, 1.0), (2_200, 1.0), (3_200, 1.0)], 2_100),
        ] {
            let covered = covered(samples.iter().map(|(at, interval)| (*at, Some(*interval))));
            assert_eq!(covered, Some(expected), "{samples:?}");
        }
        // Gauges state no interval: the shortest distance is it.
        for (times, expected) in [
            (&[4_000][..], Some(0)),
            (&[4_000, 6_000, 8_000], Some(6_000)),
            (&[10_000, 20_000, 30_000, 60_000], Some(10_000)),
        ] {
            assert_eq!(covered(times.iter().map(|at| (*at, None))), expected, "{times:?}");
        }
    }

    /// Samples that come a little early or late, by up to a fifth of their interval, are not a hole.
    #[test]
    fn jitter_is_no_hole() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut at = 10_000;
            let samples: Vec<_> = (0..20)
                .map(|_| {
                    at += 1_000 + random.i64(-200..=200);
                    (at, Some(1.0 + random.f64() * 0.001))
                })
                .collect();
            let covered_by = covered(samples.clone()).unwrap();
            assert!((20_000..20_100).contains(&covered_by), "{seed}: {covered_by}");
            let hole = samples.iter().enumerate().filter(|(n, _)| *n != 10).map(|(_, sample)| *sample);
            assert!((9_000..9_100).contains(&covered(hole).unwrap()), "{seed}");
        }
    }

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
            let taken = Coverage::take(previous, sample.unix_nanoseconds, sample.interval, is_satisfied);
            self.0.insert(sample.tag_text.clone(), taken);
            let now = sample.unix_nanoseconds;
            self.0.retain(|_, series| {
                let step = series.steps.map_or(1_000_000_000, |[_, step]| step);
                (now - series.last) * 2 <= step * 7
            });
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
                (sample.unix_nanoseconds, sample.tag_text) = (now, format!("k={}", random.u32(0..8)));
                sample.interval = random.bool().then_some(1.0);
                let is_satisfied = random.u32(0..8) > 0;
                let value = Some(if is_satisfied { 2.0 } else { 0.0 });
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
        sample.unix_nanoseconds += 60_000_000_000;
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
