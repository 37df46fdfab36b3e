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
use super::lines::tags;
use super::units::base;

/// The last samples of processes, and the sums of what they report by interval.
pub(crate) struct Exposition {
    processes: BTreeMap<Process, ProcessSeries>,
    descriptions: Descriptions,
    /// The approximate memory of all series in bytes, and its limit.
    size: usize,
    limit: usize,
}

/// The series of a process.
#[derive(Default)]
struct ProcessSeries {
    series: BTreeMap<SeriesKey, Series>,
    size: usize,
}

/// The provider, the name, the tags, the version of the provider, whether it is a meter, and the instrument.
type SeriesKey = (String, String, String, String, bool, Option<u32>);

/// The last sample of a series, and the sums since the start of the tool.
struct Series {
    sample: OwnedSample,
    count: f64,
    sum: f64,
}

/// The memory for the series of all processes in bytes, enough for about 300,000 series.
const LIMIT: usize = 256 << 20;
/// The series of one process can take one part in this many of the memory.
const SHARE: usize = 16;

impl Default for Exposition {
    fn default() -> Self {
        Self { processes: BTreeMap::new(), descriptions: Descriptions::default(), size: 0, limit: LIMIT }
    }
}

impl Series {
    /// Adds the values that a sample reports only for its interval.
    fn add(&mut self, measurement: &Measurement) {
        let (count, sum) = match measurement {
            Measurement::Histogram { count, sum, .. } => {
                (count.map_or(0.0, |count| count as f64), sum.unwrap_or_default())
            }
            Measurement::Sum { increment, .. } => (0.0, *increment),
            Measurement::Counter { delta, value: None }
            | Measurement::UpDownCounter { delta, value: None } => (0.0, delta.unwrap_or_default()),
            _ => return,
        };
        self.count += count;
        self.sum += sum;
    }
}

fn key(sample: &OwnedSample) -> SeriesKey {
    let OwnedSample { provider, name, tag_text, provider_version, instrument_id, .. } = sample;
    let texts = [provider, name, tag_text, provider_version];
    let [provider, name, tags, version] = texts.map(String::clone);
    (provider, name, tags, version, sample.system == System::Meter, *instrument_id)
}

/// Returns the approximate memory of a series in bytes.
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
    // These texts count twice, because the key contains them, too.
    let names = [provider, provider_version, name, tag_text].map(String::len);
    let names = names.into_iter().fold(0_usize, usize::saturating_add).saturating_mul(2);
    [display_name.len(), unit.len(), numbers.saturating_mul(NUMBER), size_of::<(SeriesKey, Series)>(), ENTRY]
        .into_iter()
        .fold(names, usize::saturating_add)
}

/// A family of metrics: lines of one name.
struct Family {
    kind: &'static str,
    help: String,
    lines: String,
    /// The labels of its series.
    series: BTreeSet<String>,
}

impl Exposition {
    pub(crate) fn describe(&mut self, instrument: OwnedInstrument) {
        self.descriptions.add(instrument);
    }

    /// Replaces the last sample of the series, as far as the memory allows.
    pub(crate) fn add(&mut self, process: &Process, sample: &OwnedSample) {
        let (key, added) = (key(sample), size(sample));
        let own = self.processes.get_mut(process);
        let own_size = own.as_ref().map_or(0, |own| own.size);
        let stored = own.and_then(|own| own.series.get_mut(&key));
        let removed = stored.as_ref().map_or(0, |stored| size(&stored.sample));
        let resized = |size: usize| size.saturating_sub(removed).saturating_add(added);
        let fits = resized(self.size) <= self.limit && resized(own_size) <= self.limit / SHARE;
        if let Some(stored) = stored {
            stored.add(&sample.measurement);
            if !fits {
                return;
            }
            stored.sample = sample.clone();
        } else if fits {
            let mut series = Series { sample: sample.clone(), count: 0.0, sum: 0.0 };
            series.add(&sample.measurement);
            self.processes.entry(process.clone()).or_default().series.insert(key, series);
        } else {
            return;
        }
        self.size = resized(self.size);
        if let Some(own) = self.processes.get_mut(process) {
            own.size = resized(own.size);
        }
    }

    /// Removes the series of a process that has ended.
    pub(crate) fn remove(&mut self, process: &Process) {
        if let Some(own) = self.processes.remove(process) {
            self.size = self.size.saturating_sub(own.size);
        }
    }

    /// Removes the series of an instrument that has ended.
    pub(crate) fn remove_instrument(&mut self, process: &Process, instrument: &OwnedInstrument) {
        let Some(own) = self.processes.get_mut(process) else { return };
        let OwnedInstrument { meter, name, id, .. } = instrument;
        let first = (meter.clone(), name.clone(), String::new(), String::new(), false, None);
        let of_name = own.series.range(first..).map(|(key, _)| key);
        let of_name = of_name.take_while(|(provider, counter, ..)| provider == meter && counter == name);
        let ended: Vec<SeriesKey> =
            of_name.filter(|(.., is_meter, of)| *is_meter && of == id).cloned().collect();
        for key in ended {
            if let Some(series) = own.series.remove(&key) {
                let removed = size(&series.sample);
                own.size = own.size.saturating_sub(removed);
                self.size = self.size.saturating_sub(removed);
            }
        }
    }

    /// Returns the samples as text.
    pub(crate) fn text(&self) -> String {
        let mut families: BTreeMap<String, Family> = BTreeMap::new();
        for (process, own) in &self.processes {
            for series in own.series.values() {
                self.add_to(&mut families, process, series);
            }
        }
        let mut text = String::new();
        for (name, Family { kind, help, lines, .. }) in families {
            // Writing to a string cannot fail.
            let _ = write!(text, "# HELP {name} {}\n# TYPE {name} {kind}\n{lines}", help_text(&help));
        }
        text
    }

    fn add_to(&self, families: &mut BTreeMap<String, Family>, process: &Process, series: &Series) {
        let sample = &series.sample;
        let kind = match &sample.measurement {
            Measurement::Sum { .. } | Measurement::Counter { .. } => "counter",
            Measurement::Histogram { .. } => "summary",
            Measurement::ExponentialHistogram(_) => "histogram",
            _ => "gauge",
        };
        let (unit, factor) = base(&sample.unit);
        let mut name = metric_name(sample, unit, kind);
        // A family has one type. A sample of another type gets the name of its provider as prefix, and so another
        // family.
        if families.get(&name).is_some_and(|family| family.kind != kind) {
            name = format!("{}_{name}", words(&sample.provider));
            if families.get(&name).is_some_and(|family| family.kind != kind) {
                return;
            }
        }
        let family = families.entry(name.clone()).or_insert_with(|| Family {
            kind,
            help: self.help(sample),
            lines: String::new(),
            series: BTreeSet::new(),
        });
        let mut labels = labels(process, sample);
        // The labels can be equal for two tags whose names become the same label: their text tells them apart. So they can
        // for two instruments with the same name and tags, or of two versions of a meter.
        let texts = [("original_tags", &sample.tag_text), ("otel_scope_version", &sample.provider_version)];
        let id = sample.instrument_id.unwrap_or_default().to_string();
        for (label, text) in texts.into_iter().chain([("instrument_id", &id)]) {
            if !family.series.contains(&labels) {
                break;
            }
            let _ = write!(labels, ",{label}=\"{}\"", label_text(text));
        }
        if !family.series.insert(labels.clone()) {
            return;
        }
        let lines = &mut family.lines;
        let mut line = |suffix: &str, more: Option<(&str, String)>, number: f64| {
            let _ = write!(lines, "{name}{suffix}{{{labels}");
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
                for one in quantiles {
                    line("", Some(("quantile", text_of(one.quantile))), one.value * factor);
                }
                line("_sum", None, series.sum * factor);
                line("_count", None, series.count);
            }
            Measurement::ExponentialHistogram(histogram) => {
                let mut count = histogram.zero_count;
                let buckets = histogram.first_bucket.map(|first| (first..).zip(&histogram.buckets));
                for (bucket, n) in buckets.into_iter().flatten() {
                    count = count.saturating_add(*n);
                    let bound = ExponentialHistogram::upper_bound(histogram.scale, bucket);
                    line("_bucket", Some(("le", text_of(bound * factor))), count as f64);
                }
                line("_bucket", Some(("le", "+Inf".to_owned())), histogram.count as f64);
                line("_sum", None, histogram.sum * factor);
                line("_count", None, histogram.count as f64);
            }
            _ => {}
        }
    }

    fn help(&self, sample: &OwnedSample) -> String {
        let OwnedSample { provider, name, display_name, .. } = sample;
        let texts = [self.descriptions.get(provider, name), display_name];
        let text = texts.into_iter().find(|text| !text.is_empty());
        text.map_or_else(|| format!("{name} of {provider}"), ToOwned::to_owned)
    }
}

/// Returns the name of a family.
fn metric_name(sample: &OwnedSample, unit: &str, kind: &str) -> String {
    let own = words(&sample.name);
    let mut name = match sample.system {
        System::Meter => own,
        // Names of event counters are short, and unique only within their provider.
        System::EventCounter => format!("dotnet_{}_{own}", words(&sample.provider)),
    };
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
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

fn labels(process: &Process, sample: &OwnedSample) -> String {
    let mut labels = format!("otel_scope_name=\"{}\"", label_text(&sample.provider));
    if let Some(id) = process.id {
        let _ = write!(labels, ",process_id=\"{id}\"");
    }
    if !process.name.is_empty() {
        let _ = write!(labels, ",process_name=\"{}\"", label_text(&process.name));
    }
    if sample.system == System::EventCounter {
        return labels;
    }
    let mut names: Vec<String> = [
        "otel_scope_name",
        "process_id",
        "process_name",
        "original_tags",
        "otel_scope_version",
        "instrument_id",
        "quantile",
        "le",
    ]
    .map(str::to_owned)
    .into();
    for (name, value) in tags(sample) {
        let name = label_name(&name);
        let (mut unique, mut suffix) = (name.clone(), 2_u32);
        while names.contains(&unique) {
            unique = format!("{name}_{suffix}");
            suffix = suffix.saturating_add(1);
        }
        let _ = write!(labels, ",{unique}=\"{}\"", label_text(&value));
        names.push(unique);
        if names.len() > MAX_LABELS {
            break;
        }
    }
    labels
}

/// The maximum number of labels. Prometheus itself refuses more by default.
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
        "+Inf".to_owned()
    } else {
        "-Inf".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::feed::last_recorded;

    fn process(id: u32) -> Process {
        Process { id: Some(id), name: "app".to_owned() }
    }

    fn instrument(sample: &OwnedSample) -> OwnedInstrument {
        OwnedInstrument {
            meter: sample.provider.clone(),
            name: sample.name.clone(),
            kind: String::new(),
            unit: String::new(),
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
                let id = random.u32(1..3);
                exposition.add(&process(id), &sample);
                series.insert((id, key(&sample)));
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
