//! Samples in the text format of Prometheus.
//!
//! Names follow the rules of OpenTelemetry for Prometheus. Dots become underscores, the unit is a suffix, and the name
//! of a value that only grows ends with `_total`. Bytes and seconds are the only units of sizes and times. Names that
//! the conventions of Prometheus reserve get another ending, so that `promtool check metrics` accepts them.
use core::fmt::Write;
use std::collections::{BTreeMap, BTreeSet};

use nettrace_analysis::counters::{ExponentialHistogram, Measurement, OwnedSample, System};

use super::descriptions::Descriptions;
use super::feed::{OwnedInstrument, Process};
use super::series_details::Detail;
use super::unique_labels::UniqueLabels;
use super::units::base;

/// The last samples of processes, and the sums of what they report by interval.
pub(crate) struct Exposition {
    processes: BTreeMap<Process, ProcessSeries>,
    descriptions: Descriptions,
    labels: UniqueLabels,
    /// The type of each name so far.
    types: BTreeMap<String, &'static str>,
    /// The approximate memory of all series in bytes, and its limit.
    size: usize,
    limit: usize,
}

/// The series of a process, by their keys.
#[derive(Default)]
struct ProcessSeries {
    series: BTreeMap<String, Series>,
    size: usize,
}

/// The last sample of a series, and the sums since the start of the tool.
struct Series {
    sample: OwnedSample,
    /// The name of the family, and the labels. Both stay the same while the series lasts.
    family: String,
    labels: String,
    count: f64,
    sum: f64,
}

/// The memory for the series of all processes in bytes, enough for about 300,000 series.
const LIMIT: usize = 256 << 20;
/// The series of one process can take one part in this many of the memory.
const SHARE: usize = 16;
/// The maximum number of names. Series with further names are not stored.
const MAX_NAMES: usize = 100_000;

impl Default for Exposition {
    fn default() -> Self {
        Self {
            processes: BTreeMap::new(),
            descriptions: Descriptions::default(),
            labels: UniqueLabels::default(),
            types: BTreeMap::new(),
            size: 0,
            limit: LIMIT,
        }
    }
}

impl Series {
    /// Adds the values that a sample reports only for its interval. A number that is not finite would make all later sums
    /// useless, and the sum of a counter cannot become smaller.
    fn add(&mut self, measurement: &Measurement) {
        let (count, sum) = match measurement {
            Measurement::Histogram { count, sum, .. } => {
                (count.map_or(0.0, |count| count as f64), sum.unwrap_or_default())
            }
            Measurement::Sum { increment, .. } => (0.0, increment.max(0.0)),
            Measurement::Counter { delta, value: None } => (0.0, delta.unwrap_or_default().max(0.0)),
            Measurement::UpDownCounter { delta, value: None, .. } => (0.0, delta.unwrap_or_default()),
            _ => return,
        };
        self.count += count;
        let sum = self.sum + sum;
        if sum.is_finite() {
            self.sum = sum;
        }
    }

    /// Returns approximately the memory of the series and its key in bytes.
    fn size(&self, key: &str) -> usize {
        [key.len(), self.family.len(), self.labels.len()]
            .into_iter()
            .fold(size(&self.sample), usize::saturating_add)
    }
}

/// Returns the approximate memory of a sample in bytes.
fn size(sample: &OwnedSample) -> usize {
    /// The memory of a number in a list, and the memory that an entry of the map takes in addition, both in bytes.
    const NUMBER: usize = 16;
    const ENTRY: usize = 128;
    let OwnedSample { provider, provider_version, name, tag_text, display_name, unit, .. } = sample;
    let numbers = match &sample.measurement {
        Measurement::Histogram { quantiles, .. } => quantiles.len(),
        Measurement::ExponentialHistogram(histogram) => histogram.buckets.len(),
        _ => 0,
    };
    let texts = [provider, provider_version, name, tag_text, display_name, unit];
    let texts = texts.into_iter().fold(0_usize, |size, text| size.saturating_add(text.len()));
    [numbers.saturating_mul(NUMBER), size_of::<(String, Series)>(), ENTRY]
        .into_iter()
        .fold(texts, usize::saturating_add)
}

/// A family of metrics: lines of one name.
struct Family {
    kind: &'static str,
    help: String,
    lines: String,
}

impl Exposition {
    pub(crate) fn describe(&mut self, instrument: OwnedInstrument) {
        self.descriptions.add(instrument);
    }

    /// Replaces the last sample of the series, as far as the memory allows.
    pub(crate) fn add(&mut self, process: &Process, sample: &OwnedSample) {
        let Self { processes, labels: unique, types, size: all, limit, .. } = self;
        let mut key = String::new();
        sample.push_series_key(&mut key);
        let own = match processes.get_mut(process) {
            Some(own) => own,
            None => processes.entry(process.clone()).or_default(),
        };
        let mut resize = |own: &mut usize, removed: usize, added: usize| {
            let resized = |size: usize| size.saturating_sub(removed).saturating_add(added);
            let fits = resized(*all) <= *limit && resized(*own) <= *limit / SHARE;
            if fits {
                (*all, *own) = (resized(*all), resized(*own));
            }
            fits
        };
        if let Some(stored) = own.series.get_mut(&key) {
            stored.add(&sample.measurement);
            if resize(&mut own.size, size(&stored.sample), size(sample)) {
                stored.sample = sample.clone();
            }
            return;
        }
        let Some(family) = family_name(types, sample) else { return };
        let (shown, _) = unique.of_series(process, sample, |details| {
            format!("{family}{{{}}}", labels(process, sample, details))
        });
        let labels = labels(process, sample, &shown.details(sample));
        let mut series = Series { sample: sample.clone(), family, labels, count: 0.0, sum: 0.0 };
        series.add(&sample.measurement);
        if resize(&mut own.size, 0, series.size(&key)) {
            own.series.insert(key, series);
        }
    }

    /// Removes the series of a process that has ended.
    pub(crate) fn remove(&mut self, process: &Process) {
        if let Some(own) = self.processes.remove(process) {
            self.size = self.size.saturating_sub(own.size);
        }
        self.labels.remove(process);
    }

    /// Removes the series of an instrument that has ended.
    pub(crate) fn remove_instrument(&mut self, process: &Process, ended: &OwnedInstrument) {
        let Some(own) = self.processes.get_mut(process) else { return };
        let mut removed = 0_usize;
        own.series.retain(|key, series| {
            let sample = &series.sample;
            let is_ended = sample.system == System::Meter
                && (&sample.provider, &sample.name) == (&ended.meter, &ended.name)
                && sample.instrument_id == ended.id
                && (ended.id.is_some()
                    || (&sample.provider_version, &sample.unit) == (&ended.version, &ended.unit));
            if is_ended {
                removed = removed.saturating_add(series.size(key));
            }
            !is_ended
        });
        own.size = own.size.saturating_sub(removed);
        self.size = self.size.saturating_sub(removed);
    }

    /// Returns the samples as text.
    pub(crate) fn text(&self) -> String {
        let mut families: BTreeMap<&str, Family> = BTreeMap::new();
        for series in self.processes.values().flat_map(|own| own.series.values()) {
            let lines = lines(series);
            if lines.is_empty() {
                continue;
            }
            let family = families.entry(&series.family).or_insert_with(|| Family {
                kind: kind(&series.sample.measurement),
                help: self.help(&series.sample),
                lines: String::new(),
            });
            family.lines.push_str(&lines);
        }
        let mut text = String::new();
        for (name, Family { kind, help, lines }) in families {
            // Writing to a string cannot fail.
            let _ = write!(text, "# HELP {name} {}\n# TYPE {name} {kind}\n{lines}", help_text(&help));
        }
        text
    }

    fn help(&self, sample: &OwnedSample) -> String {
        let OwnedSample { provider, name, display_name, .. } = sample;
        let texts = [self.descriptions.get(provider, name), display_name];
        let text = texts.into_iter().find(|text| !text.is_empty());
        text.map_or_else(|| format!("{name} of {provider}"), ToOwned::to_owned)
    }
}

/// Returns the type of a family.
const fn kind(measurement: &Measurement) -> &'static str {
    match measurement {
        Measurement::Sum { .. } | Measurement::Counter { .. } => "counter",
        Measurement::Histogram { .. } => "summary",
        Measurement::ExponentialHistogram(_) => "histogram",
        // A sum that grows and shrinks from 0 at the start of the session is neither a counter nor a level.
        Measurement::UpDownCounter { since_start: true, .. } => "untyped",
        _ => "gauge",
    }
}

/// Returns the lines of a series; none if it has no number.
fn lines(series: &Series) -> String {
    let Series { sample, family, labels, .. } = series;
    let (_, factor) = base(&sample.unit);
    let mut lines = String::new();
    let mut line = |suffix: &str, more: Option<(&str, String)>, number: f64| {
        let _ = write!(lines, "{family}{suffix}{{{labels}");
        if let Some((label, value)) = more {
            let _ = write!(lines, ",{label}=\"{value}\"");
        }
        let _ = writeln!(lines, "}} {}", text_of(number));
    };
    match &sample.measurement {
        Measurement::Mean { mean, .. } => line("", None, mean * factor),
        Measurement::Gauge { value: Some(value) } => line("", None, value * factor),
        Measurement::Sum { .. } => line("", None, series.sum * factor),
        Measurement::Counter { value, .. } | Measurement::UpDownCounter { value, .. } => {
            line("", None, value.unwrap_or(series.sum) * factor);
        }
        Measurement::Histogram { quantiles, .. } => {
            let shares: BTreeMap<String, f64> =
                quantiles.iter().map(|one| (text_of(one.quantile), one.value)).collect();
            for (share, value) in shares {
                line("", Some(("quantile", share)), value * factor);
            }
            line("_sum", None, series.sum * factor);
            line("_count", None, series.count);
        }
        Measurement::ExponentialHistogram(histogram) => {
            let mut count = histogram.zero_count;
            let buckets = histogram.first_bucket.map(|first| (first..).zip(&histogram.buckets));
            let mut buckets = buckets.into_iter().flatten().peekable();
            let bound_of =
                |bucket: i32| text_of(ExponentialHistogram::upper_bound(histogram.scale, bucket) * factor);
            while let Some((bucket, n)) = buckets.next() {
                count = count.saturating_add(*n);
                let bound = bound_of(bucket);
                // Bounds of buckets that are tiny or huge can be equal as numbers.
                let is_last = buckets.peek().is_none_or(|(next, _)| bound_of(*next) != bound);
                if is_last && bound != INFINITY {
                    line("_bucket", Some(("le", bound)), count as f64);
                }
            }
            let count = count.max(histogram.count) as f64;
            line("_bucket", Some(("le", INFINITY.to_owned())), count);
            line("_sum", None, histogram.sum * factor);
            line("_count", None, count);
        }
        _ => {}
    }
    lines
}

/// The text of infinity.
const INFINITY: &str = "+Inf";

/// Returns the name of the family of a series. A family has one type, so that samples of another type get the name of
/// their provider as prefix, or a number as suffix, and so another family. Returns `None` if there are too many names.
fn family_name(types: &mut BTreeMap<String, &'static str>, sample: &OwnedSample) -> Option<String> {
    /// There are fewer types than this.
    const NUMBERED: u32 = 8;
    let kind = kind(&sample.measurement);
    let name = metric_name(sample, base(&sample.unit).0, kind);
    let with_provider = valid(format!("{}_{name}", words(&sample.provider)));
    let numbered = (2..NUMBERED).map(|n| format!("{with_provider}_{n}"));
    let mut names = [name, with_provider.clone()].into_iter().chain(numbered);
    let name = names.find(|name| types.get(name).is_none_or(|known| *known == kind))?;
    if !types.contains_key(&name) {
        if types.len() >= MAX_NAMES {
            return None;
        }
        types.insert(name.clone(), kind);
    }
    Some(name)
}

/// Makes a text a valid name: it cannot start with a digit.
fn valid(mut name: String) -> String {
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name
}

/// Returns the name of a family.
fn metric_name(sample: &OwnedSample, unit: &str, kind: &str) -> String {
    let own = words(&sample.name);
    let mut name = valid(match sample.system {
        System::Meter => own,
        // Names of event counters are short, and unique only within their provider.
        System::EventCounter => format!("dotnet_{}_{own}", words(&sample.provider)),
    });
    let suffix = match unit {
        "B" => "bytes".to_owned(),
        "s" => "seconds".to_owned(),
        "%" => "percent".to_owned(),
        "1" if kind == "gauge" => "ratio".to_owned(),
        "" | "1" => String::new(),
        // Annotations, such as `{request}`, are for people and do not become a suffix.
        unit if unit.starts_with('{') || unit.len() > MAX_UNIT => String::new(),
        unit if unit.eq_ignore_ascii_case("count") => String::new(),
        unit => words(unit),
    };
    if !suffix.is_empty() && !name.split('_').any(|word| word == suffix) {
        name = format!("{name}_{suffix}");
    }
    // The conventions reserve the names of types, and some endings.
    let types = ["counter", "gauge", "summary", "histogram", "gaugehistogram", "untyped", "info"];
    let words = name.split('_').enumerate();
    let words = words.map(|(n, word)| if n > 0 && types.contains(&word) { "value" } else { word });
    let name = words.collect::<Vec<_>>().join("_");
    let stem = name.strip_suffix("_total").filter(|stem| !stem.is_empty()).unwrap_or(&name);
    if kind == "counter" {
        return format!("{stem}_total");
    }
    if kind == "untyped" {
        return format!("{stem}_since_start");
    }
    for (reserved, ending) in [("_count", "_current"), ("_sum", "_amount"), ("_bucket", "_buckets")] {
        if let Some(stem) = stem.strip_suffix(reserved) {
            return format!("{stem}{ending}");
        }
    }
    stem.to_owned()
}

/// Longer units do not become part of a name.
const MAX_UNIT: usize = 32;

/// Returns a text as words in lower case that underscores join.
fn words(text: &str) -> String {
    let mut words = String::new();
    let mut last = '_';
    for c in text.chars().take(crate::output::printable::NAME_LIMIT) {
        let is_word = c.is_ascii_alphanumeric();
        // camelCase has a new word at each capital letter after a small one.
        let begins = c.is_ascii_uppercase() && (last.is_ascii_lowercase() || last.is_ascii_digit());
        if (!is_word || begins) && !words.ends_with('_') && !words.is_empty() {
            words.push('_');
        }
        if is_word {
            words.push(c.to_ascii_lowercase());
        }
        last = c;
    }
    let words = words.trim_end_matches('_');
    if words.is_empty() { "unnamed".to_owned() } else { words.to_owned() }
}

/// Returns the labels of a series: its provider and process, the tags of its meter with a prefix, its own tags and those
/// of its instrument, and the details.
fn labels(process: &Process, sample: &OwnedSample, details: &[Detail]) -> String {
    let mut labels = format!("otel_scope_name=\"{}\"", label_text(&sample.provider));
    if let Some(id) = process.id {
        let _ = write!(labels, ",process_id=\"{id}\"");
    }
    if !process.name.is_empty() {
        let _ = write!(labels, ",process_name=\"{}\"", label_text(&process.name));
    }
    let reserved = ["otel_scope_name", "process_id", "process_name", "quantile", "le"];
    let mut names: BTreeSet<String> = reserved.map(str::to_owned).into();
    let own =
        Some(sample).filter(|sample| sample.system == System::Meter).into_iter().flat_map(OwnedSample::tags);
    let of_instrument = sample.details.iter().flat_map(|details| details.instrument_tags());
    let of_meter = sample.details.iter().flat_map(|details| details.meter_tags());
    let tags = of_meter
        .map(|(name, value)| (format!("otel_scope_{}", label_name(&name)), value))
        .chain(own.chain(of_instrument).map(|(name, value)| (label_name(&name), value)))
        .take(MAX_LABELS);
    let details = details.iter().map(|(name, text)| {
        let name = if *name == "meter_version" { "otel_scope_version" } else { name };
        (name.to_owned(), text.into())
    });
    for (name, value) in tags.chain(details) {
        let (mut unique, mut suffix) = (name.clone(), 2_u32);
        while names.contains(&unique) {
            unique = format!("{name}_{suffix}");
            suffix = suffix.saturating_add(1);
        }
        let _ = write!(labels, ",{unique}=\"{}\"", label_text(&value));
        names.insert(unique);
    }
    labels
}

/// The maximum number of tags that become labels. Prometheus itself refuses more labels by default.
const MAX_LABELS: usize = 64;

fn label_name(name: &str) -> String {
    let name: String = name
        .chars()
        .take(crate::output::printable::NAME_LIMIT)
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    // Names that begin with two underscores are Prometheus' own.
    let name = name.trim_start_matches('_');
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("tag_{name}");
    }
    name.to_owned()
}

fn label_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn help_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

/// Returns a number in the notation of the format.
fn text_of(number: f64) -> String {
    if number.is_finite() {
        // The shortest digits that read back as the same number.
        format!("{number:?}").trim_end_matches(".0").to_owned()
    } else if number.is_nan() {
        "NaN".to_owned()
    } else if number > 0.0 {
        INFINITY.to_owned()
    } else {
        "-Inf".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::feed::last_recorded;

    fn process(id: u64) -> Process {
        Process { id: Some(id), name: "app".to_owned() }
    }

    fn instrument(sample: &OwnedSample) -> OwnedInstrument {
        OwnedInstrument {
            meter: sample.provider.clone(),
            version: sample.provider_version.clone(),
            name: sample.name.clone(),
            kind: String::new(),
            unit: sample.unit.clone(),
            description: String::new(),
            id: sample.instrument_id,
        }
    }

    #[test]
    fn sums_go_with_their_instrument() {
        let mut sample = last_recorded("net8-meters.nettrace", "Lab.Meter/lab.latency");
        let mut exposition = Exposition::default();
        for tag in 0..25_000 {
            sample.tag_text = format!("host={tag}");
            exposition.add(&process(1), &sample);
            if tag % 100 == 99 {
                exposition.remove_instrument(&process(1), &instrument(&sample));
                assert_eq!((exposition.text(), exposition.size), (String::new(), 0));
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
        }
    }

    #[test]
    fn memory_has_a_limit() {
        let mut sample = last_recorded("net8-meters.nettrace", "Lab.Meter/lab.latency");
        let mut exposition = Exposition { limit: 8 << 20, ..Exposition::default() };
        for id in 0..40 {
            for tag in 0..20 {
                sample.tag_text = format!("host={tag}{}", "x".repeat(60_000));
                exposition.add(&process(id), &sample);
            }
            let own = exposition.processes.get(&process(id)).map_or(0, |own| own.size);
            assert!(own <= exposition.limit / SHARE, "{own}");
        }
        assert!(exposition.size > exposition.limit / 2 && exposition.size <= exposition.limit);
        (0..40).for_each(|id| exposition.remove(&process(id)));
        assert_eq!(exposition.size, 0);
        exposition.add(&process(1), &sample);
        assert!(exposition.size > 0);
    }
}
