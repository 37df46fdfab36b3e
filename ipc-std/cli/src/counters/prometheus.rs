//! Samples in the text format of Prometheus.
//!
//! Names follow the rules of OpenTelemetry for Prometheus: dots become underscores, the unit is a suffix, what only
//! grows ends with `_total`. Bytes and seconds are the only units of sizes and times. Names that the conventions of
//! Prometheus reserve get another ending, so that `promtool check metrics` accepts them.
use core::fmt::Write;
use std::collections::{BTreeMap, BTreeSet};

use nettrace_analysis::counters::{ExponentialHistogram, LatestSamples, Measurement, OwnedSample, System};

use super::feed::{OwnedInstrument, Process};
use super::lines::tags;
use super::units::base;

/// The last samples of processes, and the sums of what they report by interval.
#[derive(Default)]
pub(crate) struct Exposition {
    processes: BTreeMap<Process, Series>,
    descriptions: BTreeMap<(String, String), String>,
}

struct Series {
    latest: LatestSamples,
    /// By provider, name and tags.
    totals: BTreeMap<(String, String, String), Totals>,
}

/// Sums since the start of the tool.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    count: f64,
    sum: f64,
}

/// The memory for the samples of a process.
const PER_PROCESS: usize = 4 << 20;
/// The processes, the sums of each and the descriptions that are stored at most.
const MAX_PROCESSES: usize = 2_000;
const MAX_TOTALS: usize = 20_000;
const MAX_DESCRIPTIONS: usize = 10_000;
const MAX_DESCRIPTION: usize = 1_000;

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
        let OwnedInstrument { meter, name, description, .. } = instrument;
        if self.descriptions.len() < MAX_DESCRIPTIONS && description.len() <= MAX_DESCRIPTION {
            self.descriptions.insert((meter, name), description);
        }
    }

    /// Stores a sample instead of the last one of its series.
    pub(crate) fn add(&mut self, process: &Process, sample: &OwnedSample) {
        if !self.processes.contains_key(process) {
            if self.processes.len() >= MAX_PROCESSES {
                return;
            }
            let series = Series { latest: LatestSamples::new(PER_PROCESS), totals: BTreeMap::new() };
            self.processes.insert(process.clone(), series);
        }
        let Some(series) = self.processes.get_mut(process) else { return };
        series.latest.insert(&sample.sample());
        let delta = match &sample.measurement {
            Measurement::Histogram { count, sum, .. } => {
                Totals { count: count.map_or(0.0, |count| count as f64), sum: sum.unwrap_or_default() }
            }
            Measurement::Sum { increment, .. } => Totals { count: 0.0, sum: *increment },
            Measurement::Counter { delta, value: None }
            | Measurement::UpDownCounter { delta, value: None } => {
                Totals { count: 0.0, sum: delta.unwrap_or_default() }
            }
            _ => return,
        };
        let key = (sample.provider.clone(), sample.name.clone(), sample.tag_text.clone());
        if series.totals.len() < MAX_TOTALS || series.totals.contains_key(&key) {
            let totals = series.totals.entry(key).or_default();
            totals.count += delta.count;
            totals.sum += delta.sum;
        }
    }

    /// Removes the series of a process that has ended.
    pub(crate) fn remove(&mut self, process: &Process) {
        self.processes.remove(process);
    }

    /// Removes the series of an instrument that has ended.
    pub(crate) fn remove_instrument(&mut self, process: &Process, instrument: &OwnedInstrument) {
        if let Some(series) = self.processes.get_mut(process) {
            let OwnedInstrument { meter, name, id, .. } = instrument;
            series.latest.remove(meter.as_str().into(), name.as_str().into(), *id);
        }
    }

    /// Returns the samples as text.
    pub(crate) fn text(&self) -> String {
        let mut families: BTreeMap<String, Family> = BTreeMap::new();
        for (process, series) in &self.processes {
            for sample in series.latest.iter() {
                self.add_to(&mut families, process, series, sample);
            }
        }
        let mut text = String::new();
        for (name, Family { kind, help, lines, .. }) in families {
            // Writing to a string cannot fail.
            let _ = write!(text, "# HELP {name} {}\n# TYPE {name} {kind}\n{lines}", help_text(&help));
        }
        text
    }

    fn add_to(
        &self,
        families: &mut BTreeMap<String, Family>,
        process: &Process,
        series: &Series,
        sample: &OwnedSample,
    ) {
        let kind = match &sample.measurement {
            Measurement::Sum { .. } | Measurement::Counter { .. } => "counter",
            Measurement::Histogram { .. } => "summary",
            Measurement::ExponentialHistogram(_) => "histogram",
            _ => "gauge",
        };
        let (unit, factor) = base(&sample.unit);
        let mut name = metric_name(sample, unit, kind);
        // A family has one type: another one of the same name gets the name of its provider.
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
        // Instruments of the same name and tags, and tags with the same labels.
        if family.series.contains(&labels) {
            let _ = write!(labels, ",instrument_id=\"{}\"", sample.instrument_id.unwrap_or_default());
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
        let key = (sample.provider.clone(), sample.name.clone(), sample.tag_text.clone());
        let totals = series.totals.get(&key).copied().unwrap_or_default();
        match &sample.measurement {
            Measurement::Mean { mean, .. } => line("", None, mean * factor),
            Measurement::Gauge { value: Some(value) } => line("", None, value * factor),
            Measurement::Sum { .. } => line("", None, totals.sum * factor),
            Measurement::Counter { value, .. } | Measurement::UpDownCounter { value, .. } => {
                line("", None, value.unwrap_or(totals.sum) * factor);
            }
            Measurement::Histogram { quantiles, .. } => {
                for one in quantiles {
                    line("", Some(("quantile", text_of(one.quantile))), one.value * factor);
                }
                line("_sum", None, totals.sum * factor);
                line("_count", None, totals.count);
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
        let key = (sample.provider.clone(), sample.name.clone());
        let described = self.descriptions.get(&key).filter(|text| !text.is_empty()).cloned();
        let display = Some(sample.display_name.clone()).filter(|text| !text.is_empty());
        described.or(display).unwrap_or_else(|| format!("{} of {}", sample.name, sample.provider))
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
        // Annotations are for people.
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
    for c in text.chars().take(crate::printable::NAME_LIMIT) {
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
    let mut names: Vec<String> =
        ["otel_scope_name", "process_id", "process_name", "instrument_id", "quantile", "le"]
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

/// Prometheus itself refuses more by default.
const MAX_LABELS: usize = 64;

fn label_name(name: &str) -> String {
    let name: String = name
        .chars()
        .take(crate::printable::NAME_LIMIT)
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

/// Returns a number as the format has it.
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
