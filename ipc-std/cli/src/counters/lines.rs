//! Samples as lines: for people, as JSON and as CSV.
use core::fmt::Write as _;
use std::io::{self, Write};
use std::time::SystemTime;

use nettrace_analysis::counters::{Measurement, OwnedSample, System};
use serde_json::{Map, Value, json};

use super::distribution::distribution;
use super::feed::Process;
use super::units::{plain, with_unit};
use crate::output::printable::{json_line, not_a_number, printable_name};

/// How samples are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineFormat {
    Text,
    Json,
    Csv,
}

/// Writes samples as lines.
pub(crate) struct SampleLines<W: Write> {
    style: LineFormat,
    out: W,
    /// Whether lines of text and CSV state their process.
    shows_process: bool,
    has_header: bool,
}

impl<W: Write> SampleLines<W> {
    pub(crate) const fn new(style: LineFormat, out: W, shows_process: bool) -> Self {
        Self { style, out, shows_process, has_header: false }
    }

    pub(crate) fn add(&mut self, process: &Process, sample: &OwnedSample) -> io::Result<()> {
        match self.style {
            LineFormat::Json => writeln!(self.out, "{}", json_line(&to_json(process, sample))),
            LineFormat::Text => writeln!(self.out, "{}", text(self.shows_process.then_some(process), sample)),
            LineFormat::Csv => {
                if !core::mem::replace(&mut self.has_header, true) {
                    self.record(
                        ["Timestamp", "Provider", "Counter Name", "Counter Type", "Mean/Increment"],
                        "Process ID",
                    )?;
                }
                let id = process.id.map(|id| id.to_string()).unwrap_or_default();
                for row in csv_rows(sample) {
                    self.record(row.each_ref().map(|cell| &**cell), &id)?;
                }
                Ok(())
            }
        }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes a line of CSV, with a column for the process if there can be several.
    fn record(&mut self, cells: [&str; 5], process: &str) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(&mut self.out);
        csv.write_record(cells.into_iter().chain(self.shows_process.then_some(process)))?;
        csv.flush()
    }
}

/// Returns the time of a sample, as in RFC 3339.
fn time(sample: &OwnedSample) -> String {
    let time = ipc_std::system_time(sample.unix_nanoseconds).filter(|time| *time >= SystemTime::UNIX_EPOCH);
    // The formatter accepts years up to 9999.
    let time = time.filter(|_| sample.unix_nanoseconds < 253_402_300_800_000_000_000);
    humantime::format_rfc3339_micros(time.unwrap_or(SystemTime::UNIX_EPOCH)).to_string()
}

/// Returns a number as JSON. A number that JSON cannot represent becomes its name in JavaScript.
pub(crate) fn number(number: f64) -> Value {
    not_a_number(number).map_or_else(|| number.into(), Value::from)
}

fn optional(value: Option<f64>) -> Value {
    value.map_or(Value::Null, number)
}

/// Returns the tags as pairs of unique names and values: a second tag of the same name is `name#2`.
pub(crate) fn tags(sample: &OwnedSample) -> Vec<(String, String)> {
    let mut tags: Vec<(String, String)> = Vec::new();
    for (name, value) in sample.sample().tags() {
        let (name, mut unique, mut suffix) = (name.to_string(), name.to_string(), 2_u32);
        while tags.len() < MAX_UNIQUE && tags.iter().any(|(known, _)| *known == unique) {
            unique = format!("{name}#{suffix}");
            suffix = suffix.saturating_add(1);
        }
        tags.push((unique, value.to_string()));
    }
    tags
}

/// Up to this number of tags, names are made unique. That takes time in proportion to the square of the number.
const MAX_UNIQUE: usize = 64;

fn to_json(process: &Process, sample: &OwnedSample) -> Value {
    let borrowed = sample.sample();
    let tags: Map<String, Value> =
        tags(sample).into_iter().map(|(name, value)| (name, value.into())).collect();
    let mut line = json!({
        "time": time(sample), "process_id": process.id, "system": sample.system.name(),
        "provider": sample.provider, "name": sample.name, "unit": sample.unit, "tags": tags,
        "kind": sample.measurement.kind(), "value": optional(sample.measurement.value()),
        "interval": optional(sample.interval),
    });
    let mut set = |key: &str, value: Value| {
        if let Value::Object(line) = &mut line {
            line.insert(key.to_owned(), value);
        }
    };
    match &sample.measurement {
        Measurement::Mean { count, min, max, .. } => {
            set("count", json!(count));
            set("min", number(*min));
            set("max", number(*max));
        }
        Measurement::Sum { .. } | Measurement::Counter { .. } | Measurement::UpDownCounter { .. } => {
            set("rate", optional(borrowed.rate()));
        }
        Measurement::Histogram { quantiles, count, sum } => {
            set("count", json!(count));
            set("sum", optional(*sum));
            let quantiles: Map<String, Value> =
                quantiles.iter().map(|one| (one.quantile.to_string(), number(one.value))).collect();
            set("quantiles", quantiles.into());
        }
        Measurement::ExponentialHistogram(histogram) => {
            set("count", json!(histogram.count));
            set("sum", number(histogram.sum));
            set("min", number(histogram.min));
            set("max", number(histogram.max));
            set("scale", json!(histogram.scale));
            set("zero_count", json!(histogram.zero_count));
            set("first_bucket", json!(histogram.first_bucket));
            set("buckets", json!(histogram.buckets));
        }
        _ => {}
    }
    if sample.system == System::Meter {
        set("instrument_id", json!(sample.instrument_id));
    }
    line
}

/// Returns a sample as a line for people: time, name, and numbers with their units.
fn text(process: Option<&Process>, sample: &OwnedSample) -> String {
    let time = time(sample);
    // The time of day is enough for lines that follow each other.
    let clock = time.get(11..23).unwrap_or(&time);
    let mut line = String::from(clock);
    // Writing to a string cannot fail.
    if let Some(process) = process {
        let id = process.id.map_or_else(|| "?".to_owned(), |id| id.to_string());
        let _ = write!(
            line,
            " [{id}{}{}]",
            if process.name.is_empty() { "" } else { " " },
            printable_name(&process.name)
        );
    }
    let _ = write!(line, " {}/{}", printable_name(&sample.provider), printable_name(&sample.name));
    if sample.system == System::Meter && !sample.tag_text.is_empty() {
        let _ = write!(line, "[{}]", printable_name(&sample.tag_text));
    }
    let _ = write!(line, " {}", numbers(sample));
    line
}

/// Returns the numbers of a sample with their units.
pub(crate) fn numbers(sample: &OwnedSample) -> String {
    let unit = printable_name(&sample.unit);
    let shown = |number: f64| with_unit(number, &unit);
    let rate = |delta: Option<f64>| {
        let rate = sample.measurement.rate(sample.interval).filter(|_| delta.is_some());
        rate.map_or_else(String::new, |rate| format!(" ({}/s)", shown(rate)))
    };
    if let Some((percentiles, count)) = distribution(&sample.measurement) {
        let percentile = |(share, value): &(f64, f64)| format!("p{} {}", plain(share * 100.0), shown(*value));
        let mut parts: Vec<String> = percentiles.iter().take(MAX_QUANTILES).map(percentile).collect();
        parts.extend(count.map(|count| format!("count {}", plain(count as f64))));
        return parts.join(", ");
    }
    match &sample.measurement {
        Measurement::Mean { mean, count, min, max, .. } => match count {
            0 | 1 => shown(*mean),
            _ => format!("{} (min {}, max {}, count {count})", shown(*mean), shown(*min), shown(*max)),
        },
        Measurement::Sum { increment, .. } => format!("+{}{}", shown(*increment), rate(Some(*increment))),
        Measurement::UpDownCounter { value: Some(value), .. } => shown(*value),
        Measurement::Counter { delta, value } | Measurement::UpDownCounter { delta, value } => {
            match (value, delta) {
                (Some(value), _) => format!("{}{}", shown(*value), rate(*delta)),
                (None, Some(delta)) => format!("+{}{}", shown(*delta), rate(Some(*delta))),
                (None, None) => "-".to_owned(),
            }
        }
        Measurement::Gauge { value } => value.map_or_else(|| "-".to_owned(), shown),
        _ => "-".to_owned(),
    }
}

/// The maximum number of quantiles in a line. Runtimes report three.
const MAX_QUANTILES: usize = 16;

/// Returns the rows that dotnet-counters writes for a sample.
fn csv_rows(sample: &OwnedSample) -> Vec<[String; 5]> {
    let time = time(sample);
    let time = time.get(..23).unwrap_or(&time).replace('T', " ");
    let name = if sample.display_name.is_empty() { &sample.name } else { &sample.display_name };
    let seconds = sample.interval.map_or(1.0, |seconds| seconds.round().max(1.0));
    let unit = if sample.unit.is_empty() || sample.unit == "count" { "Count" } else { &sample.unit };
    let per_interval = format!("{name} ({unit} / {seconds} sec)");
    let plain = if sample.unit.is_empty() { name.clone() } else { format!("{name} ({})", sample.unit) };
    let tags: Vec<String> = match sample.system {
        System::Meter => sample.sample().tags().map(|(name, value)| format!("{name}={value}")).collect(),
        // `key:value`, and for several of them what the program wrote.
        System::EventCounter => vec![sample.tag_text.clone()],
    };
    let row = |label: &str, more: &str, kind: &str, value: f64| {
        let texts = tags.iter().map(String::as_str).chain([more]);
        let tags = texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(";");
        let label = if tags.is_empty() { label.to_owned() } else { format!("{label}[{tags}]") };
        [time.clone(), sample.provider.clone(), label, kind.to_owned(), value.to_string()]
    };
    match &sample.measurement {
        Measurement::Mean { mean, .. } => vec![row(&plain, "", "Metric", *mean)],
        Measurement::Sum { increment, .. } => vec![row(&per_interval, "", "Rate", *increment)],
        Measurement::Counter { delta, .. } => {
            delta.map(|delta| row(&per_interval, "", "Rate", delta)).into_iter().collect()
        }
        Measurement::UpDownCounter { value, .. } | Measurement::Gauge { value } => {
            value.map(|value| row(&plain, "", "Metric", value)).into_iter().collect()
        }
        measurement => distribution(measurement)
            .into_iter()
            .flat_map(|(percentiles, _)| percentiles)
            .map(|(share, value)| row(&plain, &format!("Percentile={}", share * 100.0), "Metric", value))
            .collect(),
    }
}
