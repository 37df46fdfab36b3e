//! `Exposition`: the last samples of processes in the text format of Prometheus.
use core::fmt::{self, Write};
use core::ops::Bound;
use std::collections::{BTreeMap, BTreeSet};

use nettrace_analysis::counters::OwnedSample;

use super::labels::{Labels, labels};
use super::names::{metric_name, valid, words};
use super::series::{MAX_LINE, Series, kind, write_lines};
use crate::counters::descriptions::Descriptions;
use crate::counters::report::{OwnedInstrument, Process};
use crate::counters::shares::Shares;
use crate::counters::unique_labels::UniqueLabels;
use crate::counters::units::base;

/// The last samples of processes, and the sums of what they report by interval.
pub(crate) struct Exposition {
    /// The series of each process by their keys. The size is the approximate memory of them and of their text in bytes.
    ///
    /// The map reserves room for several series, which are large: a trace can have many processes with one series.
    processes: Shares<BTreeMap<String, Box<Series>>>,
    descriptions: Descriptions,
    labels: UniqueLabels,
    /// The type of each name, and the number of processes with the name.
    types: BTreeMap<String, (&'static str, usize)>,
    /// The names of the families of each process. The size is their approximate memory in bytes.
    names: Shares<BTreeSet<String>>,
    left_out: LeftOut,
    /// What [`left_out`](Self::left_out) has returned.
    reported: LeftOut,
    changes: u64,
}

/// What the limits have left out of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct LeftOut {
    series: bool,
    tags: bool,
    numbers: bool,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { series, tags, numbers } = *self;
        let parts = [
            (series, "series beyond 32 MiB of a process or 256 MiB of all, and lines of more than 16 KiB"),
            (tags, "tags after the first 64 of a series"),
            (numbers, "quantiles after the first 16 and buckets beyond 160 or 64 KiB of a series"),
        ];
        let parts = parts.into_iter().filter(|(is_left_out, _)| *is_left_out);
        let parts: Vec<&str> = parts.map(|(_, part)| part).collect();
        write!(f, "left out: {}", parts.join("; "))
    }
}

/// The memory for the series of all processes and for their text in bytes, enough for about 250,000 series.
const LIMIT: usize = 256 << 20;
/// The series of one process can take one part in this many of the memory.
const SHARE: usize = 8;
/// The memory for the names of all processes in bytes, enough for about 100,000 names. A process can have a share, which
/// it gives back at its end. Series with further names are not stored.
const MAX_NAMES: usize = 16 << 20;
impl Default for Exposition {
    fn default() -> Self {
        Self {
            processes: Shares::new(LIMIT, LIMIT / SHARE),
            descriptions: Descriptions::default(),
            labels: UniqueLabels::default(),
            types: BTreeMap::new(),
            names: Shares::new(MAX_NAMES, MAX_NAMES / SHARE),
            left_out: LeftOut::default(),
            reported: LeftOut::default(),
            changes: 0,
        }
    }
}

impl Exposition {
    /// Returns a number that differs after each change of the text.
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    const fn change(&mut self) {
        self.changes = self.changes.wrapping_add(1);
    }

    pub(crate) fn describe(&mut self, process: &Process, instrument: OwnedInstrument) {
        self.change();
        self.descriptions.add(process, instrument);
    }

    /// Replaces the last sample of the series. A series that the limits do not allow is left out.
    pub(crate) fn add(&mut self, process: &Process, sample: &OwnedSample) {
        self.change();
        let mut key = String::new();
        sample.push_series_key(&mut key);
        if let Some(stored) = self.processes.get_mut(process).and_then(|own| own.get_mut(&key)) {
            let before = stored.size(&key);
            stored.add(&sample.measurement);
            stored.sample = sample.clone();
            self.left_out.numbers |= stored.has_more_numbers();
            let after = stored.size(&key);
            if !self.processes.resize(process, before, after) {
                self.left_out.series = true;
                self.remove_series(process, &key);
            }
            return;
        }
        let series = self.new_series(process, sample);
        let has_more_numbers = series.as_ref().is_some_and(Series::has_more_numbers);
        let stored = series.and_then(|series| {
            let own = self.processes.reserve(process, series.size(&key))?;
            own.insert(key, Box::new(series));
            Some(())
        });
        self.left_out.numbers |= stored.is_some() && has_more_numbers;
        self.left_out.series |= stored.is_none();
    }

    /// Returns a series with its first sample; `None` if its name or its labels are beyond the limits.
    fn new_series(&mut self, process: &Process, sample: &OwnedSample) -> Option<Series> {
        let family = self.family_name(process, sample)?;
        let (shown, _) = self.labels.of_series(process, sample, |details| {
            format!("{family}{{{}}}", labels(process, sample, details).text)
        });
        let Labels { text, has_more } = labels(process, sample, &shown.details(sample));
        let mut series = Series { sample: sample.clone(), family, labels: text, count: 0, sum: 0.0 };
        series.add(&sample.measurement);
        self.left_out.tags |= has_more;
        (series.line_len() <= MAX_LINE).then_some(series)
    }

    /// Removes the series of a process that has ended.
    pub(crate) fn remove(&mut self, process: &Process) {
        self.change();
        self.processes.remove(process);
        self.labels.remove(process);
        self.descriptions.remove(process);
        for name in self.names.remove(process).unwrap_or_default() {
            match self.types.get_mut(&name) {
                Some((_, processes)) if *processes > 1 => *processes = processes.saturating_sub(1),
                _ => drop(self.types.remove(&name)),
            }
        }
    }

    /// Removes the series of an instrument that has ended, whose keys have this prefix. Others are not visited.
    pub(crate) fn remove_series(&mut self, process: &Process, prefix: &str) {
        self.change();
        let Some(own) = self.processes.get_mut(process) else { return };
        let from = own.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        let ended = from.map(|(key, _)| key).take_while(|key| key.starts_with(prefix));
        let mut removed = 0_usize;
        for key in ended.cloned().collect::<Vec<String>>() {
            let series = own.remove(&key);
            removed = removed.saturating_add(series.map_or(0, |series| series.size(&key)));
        }
        if own.is_empty() {
            self.processes.remove(process);
        } else {
            self.processes.resize(process, removed, 0);
        }
    }

    /// Returns what the text does not have because of the limits, each time that this becomes more.
    pub(crate) fn left_out(&mut self) -> Option<String> {
        let is_new = self.left_out != core::mem::replace(&mut self.reported, self.left_out);
        is_new.then(|| self.left_out.to_string())
    }

    /// Returns the samples as text.
    pub(crate) fn text(&self) -> String {
        let all = self.processes.iter();
        let all = all.flat_map(|(process, own)| own.values().map(move |series| (process, &**series)));
        let mut all: Vec<(&Process, &Series)> = all.collect();
        // Series of a family stay in their order.
        all.sort_by(|(_, one), (_, other)| one.family.cmp(&other.family));
        let mut text = String::new();
        let mut family = None;
        for (process, series) in all {
            let start = text.len();
            if family != Some(&series.family) {
                let (name, help) = (&series.family, help_text(&self.help(process, &series.sample)));
                // Writing to a string cannot fail.
                let _ = writeln!(
                    text,
                    "# HELP {name} {help}\n# TYPE {name} {}",
                    kind(&series.sample.measurement)
                );
            }
            let before = text.len();
            write_lines(series, &mut text);
            if text.len() == before {
                text.truncate(start);
            } else {
                family = Some(&series.family);
            }
        }
        if self.left_out != LeftOut::default() {
            let _ = writeln!(text, "# {}", self.left_out);
        }
        text
    }

    fn help(&self, process: &Process, sample: &OwnedSample) -> String {
        let OwnedSample { provider, name, display_name, .. } = sample;
        let texts = [self.descriptions.get(process, provider, name), display_name];
        let text = texts.into_iter().find(|text| !text.is_empty());
        text.map_or_else(|| format!("{name} of {provider}"), ToOwned::to_owned)
    }

    /// Returns the name of the family of a series. A family has one type, so that samples of another type get the name of
    /// their provider as prefix, or a number as suffix, and so another family. Returns `None` if there are too many names.
    fn family_name(&mut self, process: &Process, sample: &OwnedSample) -> Option<String> {
        /// There are fewer types than this.
        const NUMBERED: u32 = 8;
        /// The memory of a name in bytes, in addition to its text.
        const ENTRY: usize = 64;
        let kind = kind(&sample.measurement);
        let name = metric_name(sample, base(&sample.unit).0, kind);
        let with_provider = valid(format!("{}_{name}", words(&sample.provider)));
        let numbered = (2..NUMBERED).map(|n| format!("{with_provider}_{n}"));
        let mut names = [name, with_provider.clone()].into_iter().chain(numbered);
        let name = names.find(|name| self.types.get(name).is_none_or(|(known, _)| *known == kind))?;
        if self.names.get(process).is_some_and(|own| own.contains(&name)) {
            return Some(name);
        }
        self.names.reserve(process, name.len().saturating_add(ENTRY))?.insert(name.clone());
        let (_, processes) = self.types.entry(name.clone()).or_insert((kind, 0));
        *processes = processes.saturating_add(1);
        Some(name)
    }
}

/// Returns the start of a description.
fn help_text(text: &str) -> String {
    const MAX_LEN: usize = 1_000;
    let text: String = text.chars().take(MAX_LEN).collect();
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use nettrace_analysis::counters::{Measurement, Quantile};

    use super::super::labels::MAX_LABELS;
    use super::super::series::{MAX_BUCKETS, MAX_TEXT};
    use super::*;
    use crate::counters::distribution::MAX_QUANTILES;
    use crate::counters::trace_reports::last_recorded;

    fn process(id: u64) -> Process {
        Process { id: Some(id), name: "app".to_owned() }
    }

    /// Returns the start of the keys of all series of an instrument.
    fn prefix(sample: &OwnedSample) -> String {
        let mut key = String::new();
        sample.push_series_key(&mut key);
        key.split_once(&sample.tag_text).unwrap().0.to_owned()
    }

    #[test]
    fn sums_go_with_their_instrument() {
        let mut sample = last_recorded("net8-meters.nettrace", "Lab.Meter/lab.latency");
        let mut exposition = Exposition::default();
        for tag in 0..25_000 {
            sample.tag_text = format!("host={tag}");
            exposition.add(&process(1), &sample);
            if tag % 100 == 99 {
                exposition.remove_series(&process(1), &prefix(&sample));
                assert_eq!((exposition.text(), exposition.processes.size()), (String::new(), 0));
            }
        }
        let Measurement::Histogram { count: Some(count), .. } = sample.measurement else {
            panic!("{sample:?}")
        };
        exposition.add(&process(1), &sample);
        exposition.add(&process(1), &sample);
        let text = exposition.text();
        assert!(count > 0 && text.contains(&format!("host=\"24999\"}} {}\n", 2 * count)), "{text}");
    }

    /// A process with too many names takes no series from the others, and gives its names and descriptions back.
    #[test]
    fn names_are_a_share_of_a_process() {
        let mut sample = last_recorded("net8-meters.nettrace", "Lab.Meter/lab.gauge");
        let (mut exposition, name) = (Exposition::default(), sample.name.clone());
        for id in 1..=10 {
            for n in 0..52_000 {
                sample.name = format!("metric{n}_{id}_{}", "n".repeat(80));
                exposition.add(&process(id), &sample);
            }
            sample.name.clone_from(&name);
            exposition.add(&process(id + 100), &sample);
            assert!(exposition.processes.get(&process(id + 100)).is_some(), "{id}");
            exposition.remove(&process(id));
        }
        (101..=110).for_each(|id| exposition.remove(&process(id)));
        assert_eq!((exposition.names.size(), exposition.types.len()), (0, 0));
    }

    /// Tags whose names become one label, instruments with the same tags, and versions of a meter.
    #[test]
    fn as_many_series_come_out_as_went_in() {
        let keys =
            ["k.1", "k-1", "k 1", "_k_1", "k_1", "K.1", "original_tags", "instrument_id", "le", "", "1"];
        let gauge = last_recorded("net8-meters.nettrace", "Lab.Meter/lab.gauge");
        for seed in 0..100 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut exposition, mut series) = (Exposition::default(), BTreeSet::new());
            for _ in 0..40 {
                let mut sample = gauge.clone();
                let tags = (0..random.usize(0..3)).map(|_| {
                    format!(
                        "{}={}",
                        keys[random.usize(0..keys.len())],
                        random.choice(["v", "w,", "\"", ""]).unwrap()
                    )
                });
                sample.tag_text = tags.collect::<Vec<_>>().join(",");
                sample.provider_version = random.choice(["", "1.0", "2.0"]).unwrap().to_string();
                sample.instrument_id = Some(random.u32(1..3));
                let id = random.u64(1..3);
                exposition.add(&process(id), &sample);
                let mut key = String::new();
                sample.push_series_key(&mut key);
                series.insert((id, key));
            }
            let text = exposition.text();
            let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
            let names: BTreeSet<&str> =
                lines.iter().filter_map(|line| line.rsplit_once(' ')).map(|(name, _)| name).collect();
            assert_eq!((lines.len(), names.len()), (series.len(), series.len()), "{seed}:\n{text}");
            assert!(text.len() <= exposition.processes.size() && exposition.left_out().is_none(), "{text}");
        }
    }

    #[test]
    fn memory_has_a_limit() {
        let mut sample = last_recorded("net8-meters.nettrace", "Lab.Meter/lab.latency");
        const SMALL: usize = 8 << 20;
        let processes = Shares::new(SMALL, SMALL / SHARE);
        let mut exposition = Exposition { processes, ..Exposition::default() };
        for id in 0..40 {
            for tag in 0..20 {
                sample.tag_text = format!("host={tag}{}", "x".repeat(8_000));
                exposition.add(&process(id), &sample);
            }
            let own = exposition.processes.get(&process(id)).into_iter().flatten();
            let own: usize = own.map(|(key, series)| series.size(key)).sum();
            assert!(own <= SMALL / SHARE, "{own}");
        }
        let size = exposition.processes.size();
        assert!(size > SMALL / 2 && size <= SMALL && exposition.text().len() <= size);
        (0..40).for_each(|id| exposition.remove(&process(id)));
        assert_eq!(exposition.processes.size(), 0);
        exposition.add(&process(1), &sample);
        assert!(exposition.processes.size() > 0);
    }

    /// A histogram repeats its labels with each quantile and each bucket.
    #[test]
    fn text_of_a_series_has_a_limit() {
        let [mut summary, mut buckets] = [
            ("net8-meters.nettrace", "Lab.Meter/lab.latency"),
            ("net10-exponential.nettrace", "Lab.Meter/lab.latency"),
        ]
        .map(|(file, counter)| last_recorded(file, counter));
        let Measurement::ExponentialHistogram(histogram) = &mut buckets.measurement else {
            panic!("{buckets:?}")
        };
        (histogram.buckets, histogram.count, histogram.zero_count) = (vec![2; 5_000], 10_000, 0);
        let quantiles = (1..5_000).map(|n| Quantile { quantile: f64::from(n) / 5_000.0, value: 1.0 });
        summary.measurement =
            Measurement::Histogram { quantiles: quantiles.collect(), count: Some(1), sum: Some(1.0) };
        for (sample, numbers) in [(&mut summary, MAX_QUANTILES), (&mut buckets, MAX_BUCKETS)] {
            for (len, expected) in [(10, numbers), (4_000, 13), (16_000, 1), (20_000, 0)] {
                sample.tag_text = format!("host={}", "x".repeat(len));
                let mut exposition = Exposition::default();
                exposition.add(&process(1), sample);
                let text = exposition.text();
                assert!(text.len() <= MAX_TEXT + 1_000, "{len}: {}", text.len());
                let found = text.lines().filter(|line| line.contains("quantile=") || line.contains(",le="));
                let found: Vec<&str> = found.filter(|line| !line.contains("+Inf")).collect();
                assert!((expected / 2..=expected).contains(&found.len()), "{len}: {}", found.len());
                // The counts are those of all buckets.
                if let Some(last) = found.last().filter(|line| line.contains(",le=")) {
                    assert!(last.ends_with(" 10000"), "{last}");
                }
                let left_out = exposition.left_out().unwrap();
                assert!(text.ends_with(&format!("# {left_out}\n")) && exposition.left_out().is_none());
            }
        }
    }

    #[test]
    fn tags_that_are_left_out_are_named() {
        let mut sample = last_recorded("net8-meters.nettrace", "Lab.Meter/lab.gauge");
        let mut exposition = Exposition::default();
        for (tags, is_left_out) in [(MAX_LABELS, false), (MAX_LABELS + 1, true), (MAX_LABELS + 2, false)] {
            sample.tag_text = vec!["k=v"; tags].join(",");
            exposition.add(&process(1), &sample);
            assert_eq!(exposition.left_out().is_some(), is_left_out, "{tags}");
        }
        let text = exposition.text();
        assert!(text.contains(r#"k_64="v""#) && !text.contains(r#"k_65="v""#), "{text}");
    }

    /// The names of families, which stay until the end of their process, have a limit too.
    #[test]
    fn names_have_a_limit() {
        let mut sample = last_recorded("net8-meters.nettrace", "Lab.Meter/lab.gauge");
        let mut exposition = Exposition::default();
        for n in 0..54_000 {
            sample.name = format!("n{n}{}", "x".repeat(300));
            exposition.add(&process(n / 4_000), &sample);
        }
        assert!(exposition.names.size() <= MAX_NAMES && exposition.types.len() > 40_000);
        assert!(exposition.left_out().is_some_and(|text| text.contains("series")));
    }

    /// The end of an instrument visits its own series only: otherwise these ends would take hours.
    #[test]
    fn many_ends() {
        const SERIES: u32 = 10_000;
        let mut sample = last_recorded("net10-meters.nettrace", "Lab.Meter/lab.gauge");
        let mut exposition = Exposition::default();
        let mut ends = Vec::new();
        for id in 1..=SERIES {
            sample.instrument_id = Some(id);
            exposition.add(&process(1), &sample);
            ends.push(prefix(&sample));
        }
        for _ in 0..20 {
            ends.iter().for_each(|prefix| exposition.remove_series(&process(2), prefix));
            ends.iter().skip(1).for_each(|prefix| exposition.remove_series(&process(1), prefix));
        }
        assert_eq!(exposition.text().lines().count(), 3);
    }
}
