//! Samples as lines: for people, as JSON and as CSV.
use core::fmt::Write as _;
use std::io::{self, Write};

use nettrace_analysis::counters::{Measurement, Number, OwnedSample, System, Tags};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::distribution::distribution;
use super::report::Process;
use super::series_details::{Detail, tag_texts, unique};
use super::unique_labels::UniqueLabels;
use super::units::{MAX_UNIT, plain, printable_unit, shortest, with_unit};
use crate::output::rows::{milliseconds_at, text_cell};
use crate::text::date::Zone;
use crate::text::printable::{integer, json_line, not_a_number, printable, printable_name};

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
    /// The time zone of times, if the user chose it.
    zone: Option<Zone>,
    /// Whether lines of text and CSV state their process.
    shows_process: bool,
    has_header: bool,
    labels: UniqueLabels,
}

impl<W: Write> SampleLines<W> {
    pub(crate) fn new(style: LineFormat, out: W, zone: Option<Zone>, shows_process: bool) -> Self {
        Self { style, out, zone, shows_process, has_header: false, labels: UniqueLabels::default() }
    }

    pub(crate) fn add(&mut self, process: &Process, sample: &OwnedSample) -> io::Result<()> {
        let digits = if self.style == LineFormat::Json { 6 } else { 3 };
        let zone = self.zone.as_ref().unwrap_or(&Zone::Utc);
        let date = sample.unix_nanoseconds.and_then(|time| zone.date(time, digits));
        match self.style {
            LineFormat::Json => writeln!(self.out, "{}", json_line(&SampleLine::new(process, sample, date))),
            LineFormat::Text => {
                let (_, name) =
                    self.labels.of_series(process, sample, |details| series_name(sample, details));
                let process = self.shows_process.then_some(process);
                let time = match &date {
                    // The time of day is enough for lines that follow each other.
                    Some(date) if self.zone.is_none() => date.get("2026-11-20T".len()..).unwrap_or(date),
                    Some(date) => date,
                    None => &format!("{:.3} s", milliseconds_at(sample.nanoseconds) / 1e3),
                };
                writeln!(self.out, "{time}{}", text(process, sample, &name))
            }
            LineFormat::Csv => {
                if !core::mem::replace(&mut self.has_header, true) {
                    self.record(
                        ["Timestamp", "Provider", "Counter Name", "Counter Type", "Mean/Increment"],
                        "Process ID",
                    )?;
                }
                let id = process.id.map(|id| id.to_string()).unwrap_or_default();
                let (shown, _) = self.labels.of_series(process, sample, |details| csv_label(sample, details));
                for row in csv_rows(sample, &date.unwrap_or_default(), &shown.details(sample)) {
                    self.record(row.each_ref().map(|cell| &**cell), &id)?;
                }
                Ok(())
            }
        }
    }

    /// Makes lines of text and CSV state their process from here on.
    pub(crate) const fn show_processes(&mut self) {
        self.shows_process = true;
    }

    /// Forgets the series of a process that has ended.
    pub(crate) fn remove(&mut self, process: &Process) {
        self.labels.remove(process);
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes a line of CSV, with a column for the process if there can be several.
    fn record(&mut self, cells: [&str; 5], process: &str) -> io::Result<()> {
        // The writer of CSV would flush the output after each line.
        let mut csv = csv::Writer::from_writer(Vec::new());
        let cells = cells.into_iter().chain(self.shows_process.then_some(process));
        csv.write_record(cells.map(|cell| text_cell(cell).into_owned()))?;
        let line = csv.into_inner().map_err(|e| io::Error::other(e.to_string()))?;
        self.out.write_all(&line)
    }
}

/// Returns a number as JSON. A number that JSON cannot represent becomes its name in JavaScript.
/// JavaScript would round a [`Number::Whole`], which is a text.
pub(crate) fn number(number: impl Into<Number>) -> Value {
    match number.into() {
        Number::Float(number) => not_a_number(number).map_or_else(|| number.into(), Value::from),
        whole @ Number::Whole(_) => whole.to_string().into(),
    }
}

fn optional(value: Option<impl Into<Number>>) -> Value {
    value.map_or(Value::Null, number)
}

/// Returns tags as an object of JSON.
fn tags_json(tags: Tags<'_>) -> Value {
    let tags = unique(tags);
    tags.into_iter().map(|(name, value)| (name, value.into())).collect::<Map<String, Value>>().into()
}

/// A sample as JSON.
#[derive(Serialize)]
struct SampleLine<'s> {
    time: Option<String>,
    process_id: Option<Value>,
    system: &'static str,
    provider: &'s str,
    name: &'s str,
    unit: &'s str,
    tags: Value,
    kind: &'static str,
    value: Value,
    interval: Value,
    #[serde(flatten)]
    measurement: Option<MeasurementFields<'s>>,
    #[serde(flatten)]
    instrument: Option<InstrumentFields<'s>>,
}

/// The fields that only some kinds of measurements have.
#[derive(Serialize)]
#[serde(untagged)]
enum MeasurementFields<'s> {
    Mean { count: Value, min: Value, max: Value },
    Change { rate: Value },
    Level { rate: Value, since_start: bool },
    Histogram { count: Option<Value>, sum: Value, quantiles: Map<String, Value> },
    Exponential(ExponentialFields<'s>),
}

#[derive(Serialize)]
struct ExponentialFields<'s> {
    count: Value,
    sum: Value,
    min: Value,
    max: Value,
    scale: i32,
    zero_count: Value,
    first_bucket: Option<i32>,
    #[serde(serialize_with = "integers")]
    buckets: &'s [u64],
}

/// The fields that only samples of meters have.
#[derive(Serialize)]
struct InstrumentFields<'s> {
    instrument_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<u32>,
    #[serde(skip_serializing_if = "str::is_empty")]
    meter_version: &'s str,
    #[serde(skip_serializing_if = "str::is_empty")]
    meter_scope_hash: &'s str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instrument_tags: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meter_tags: Option<Value>,
}

fn integers<S: Serializer>(numbers: &&[u64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(numbers.iter().copied().map(integer))
}

impl<'s> SampleLine<'s> {
    fn new(process: &Process, sample: &'s OwnedSample, time: Option<String>) -> Self {
        Self {
            time,
            process_id: process.id.map(integer),
            system: sample.system.name(),
            provider: &sample.provider,
            name: &sample.name,
            unit: &sample.unit,
            tags: tags_json(sample.tags()),
            kind: sample.measurement.kind(),
            value: optional(sample.measurement.number()),
            interval: optional(sample.interval),
            measurement: MeasurementFields::of(sample),
            instrument: (sample.system == System::Meter).then(|| InstrumentFields::of(sample)),
        }
    }
}

/// Returns a minimum or a maximum, which without measurements is no number of the program.
fn of_any(count: u64, number: f64) -> Option<f64> {
    (count > 0).then_some(number)
}

impl<'s> MeasurementFields<'s> {
    fn of(sample: &'s OwnedSample) -> Option<Self> {
        let rate = || optional(sample.measurement.rate(sample.interval));
        Some(match &sample.measurement {
            Measurement::Mean { count, min, max, .. } => {
                let [min, max] = [min, max].map(|number| optional(of_any(*count, *number)));
                Self::Mean { count: integer(*count), min, max }
            }
            Measurement::Sum { .. } | Measurement::Counter { .. } => Self::Change { rate: rate() },
            Measurement::UpDownCounter { since_start, .. } => {
                Self::Level { rate: rate(), since_start: *since_start }
            }
            Measurement::Histogram { quantiles, count, sum } => Self::Histogram {
                count: count.map(integer),
                sum: optional(*sum),
                quantiles: quantiles.iter().map(|one| (shortest(one.quantile), number(one.value))).collect(),
            },
            Measurement::ExponentialHistogram(histogram) => Self::Exponential(ExponentialFields {
                count: integer(histogram.count),
                sum: number(histogram.sum),
                min: optional(of_any(histogram.count, histogram.min)),
                max: optional(of_any(histogram.count, histogram.max)),
                scale: histogram.scale,
                zero_count: integer(histogram.zero_count),
                first_bucket: histogram.first_bucket,
                buckets: &histogram.buckets,
            }),
            _ => return None,
        })
    }
}

impl<'s> InstrumentFields<'s> {
    fn of(sample: &'s OwnedSample) -> Self {
        let details = sample.details.as_deref();
        let tags = |tags: Tags<'_>| tags.clone().next().map(|_| tags_json(tags));
        Self {
            instrument_id: sample.instrument_id,
            instance: (sample.instance > 0).then_some(sample.instance),
            meter_version: &sample.provider_version,
            meter_scope_hash: details.map_or("", |details| &details.meter_scope_hash),
            instrument_tags: details.and_then(|details| tags(details.instrument_tags())),
            meter_tags: details.and_then(|details| tags(details.meter_tags())),
        }
    }
}

/// Returns the name of a series for people: provider and name, then tags and details in brackets.
pub(crate) fn series_name(sample: &OwnedSample, details: &[Detail<'_>]) -> String {
    let name = format!("{}/{}", printable_name(&sample.provider), printable_name(&sample.name));
    // The metadata of event counters is not shown, unless it alone tells counters apart.
    let tags = if sample.system == System::Meter { tags_text(sample) } else { String::new() };
    let tags = Some(printable_name(&tags)).filter(|tags| !tags.is_empty());
    let details = details.iter().map(|(name, text)| format!("{name}={}", printable(text)));
    let parts: Vec<String> = tags.into_iter().chain(details).collect();
    if parts.is_empty() { name } else { format!("{name}[{}]", parts.join(",")) }
}

/// Returns the tags of a series, of its instrument and of its meter.
fn tags_text(sample: &OwnedSample) -> String {
    if sample.details.is_none() && !sample.has_escaped_tags {
        return sample.tag_text.clone();
    }
    tag_texts(sample).join(",")
}

/// Returns a sample as a line for people after its time: name, and numbers with their units.
fn text(process: Option<&Process>, sample: &OwnedSample, name: &str) -> String {
    let mut line = String::new();
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
    let _ = write!(line, " {name} {}", numbers(sample));
    line
}

/// Returns the numbers of a sample with their units.
pub(crate) fn numbers(sample: &OwnedSample) -> String {
    let unit = printable_unit(&sample.unit);
    let shown = |number: Number| with_unit(number, &unit);
    let added = |number: Number| format!("{}{}", if number.as_f64() < 0.0 { "" } else { "+" }, shown(number));
    let rate = |delta: Option<Number>| {
        let rate = sample.measurement.rate(sample.interval).filter(|_| delta.is_some());
        rate.map_or_else(String::new, |rate| format!(" ({}/s)", with_unit(rate, &unit)))
    };
    if let Some((percentiles, count)) = distribution(&sample.measurement) {
        let percentile =
            |(share, value): &(f64, f64)| format!("p{} {}", plain(share * 100.0), with_unit(*value, &unit));
        let mut parts: Vec<String> = percentiles.iter().map(percentile).collect();
        parts.extend(count.map(|count| format!("count {}", plain(count))));
        return if parts.is_empty() { "-".to_owned() } else { parts.join(", ") };
    }
    match &sample.measurement {
        Measurement::Mean { mean, count, min, max, .. } => match count {
            0 | 1 => with_unit(*mean, &unit),
            _ => {
                let [mean, min, max] = [mean, min, max].map(|number| with_unit(*number, &unit));
                format!("{mean} (min {min}, max {max}, count {count})")
            }
        },
        Measurement::Sum { increment, .. } => {
            let increment = Number::from(*increment);
            format!("{}{}", added(increment), rate(Some(increment)))
        }
        Measurement::UpDownCounter { value: Some(value), since_start, .. } => match since_start {
            true => format!("{} since start", added(*value)),
            false => shown(*value),
        },
        Measurement::Counter { delta, value } | Measurement::UpDownCounter { delta, value, .. } => {
            match (value, delta) {
                (Some(value), _) => format!("{}{}", shown(*value), rate(*delta)),
                (None, Some(delta)) => format!("{}{}", added(*delta), rate(Some(*delta))),
                (None, None) => "-".to_owned(),
            }
        }
        Measurement::Gauge { value } => value.map_or_else(|| "-".to_owned(), shown),
        _ => "-".to_owned(),
    }
}

/// Returns the name of a counter as dotnet-counters shows it, with these tags in brackets.
fn csv_name(name: &str, tags: impl Iterator<Item = String>) -> String {
    let tags = tags.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(";");
    if tags.is_empty() { name.to_owned() } else { format!("{name}[{tags}]") }
}

fn csv_tags(sample: &OwnedSample, details: &[Detail<'_>]) -> Vec<String> {
    let mut tags: Vec<String> = match sample.system {
        System::Meter => tag_texts(sample),
        // `key:value`, and for several of them what the program wrote.
        System::EventCounter => vec![sample.tag_text.clone()],
    };
    tags.extend(details.iter().map(|(name, text)| format!("{name}={text}")));
    tags
}

fn display_name(sample: &OwnedSample) -> &String {
    if sample.display_name.is_empty() { &sample.name } else { &sample.display_name }
}

/// Returns the start of a unit.
fn csv_unit(sample: &OwnedSample) -> &str {
    let end = sample.unit.char_indices().nth(MAX_UNIT);
    end.and_then(|(end, _)| sample.unit.get(..end)).unwrap_or(&sample.unit)
}

/// Returns the names of a series in CSV, without what varies from sample to sample.
fn csv_label(sample: &OwnedSample, details: &[Detail<'_>]) -> String {
    let unit = if sample.unit == "count" { "" } else { csv_unit(sample) };
    let name = csv_name(display_name(sample), csv_tags(sample, details).into_iter());
    let is_rate = matches!(sample.measurement, Measurement::Sum { .. } | Measurement::Counter { .. });
    format!("{}\n{is_rate}\n{unit}\n{name}", sample.provider)
}

/// Returns the rows that dotnet-counters writes for a sample.
fn csv_rows(sample: &OwnedSample, time: &str, details: &[Detail<'_>]) -> Vec<[String; 5]> {
    let name = display_name(sample);
    let seconds =
        sample.interval.filter(|seconds| *seconds < 1e9).map_or(1.0, |seconds| seconds.round().max(1.0));
    let unit = csv_unit(sample);
    let counted = if unit.is_empty() || unit == "count" { "Count" } else { unit };
    let per_interval = format!("{name} ({counted} / {seconds} sec)");
    let plain = if unit.is_empty() { name.clone() } else { format!("{name} ({unit})") };
    let tags = csv_tags(sample, details);
    let row = |label: &str, more: &str, kind: &str, value: Number| {
        let label = csv_name(label, tags.iter().cloned().chain([more.to_owned()]));
        let value = not_a_number(value.as_f64()).map_or_else(|| value.to_string(), str::to_owned);
        [time.to_owned(), sample.provider.clone(), label, kind.to_owned(), value]
    };
    match &sample.measurement {
        Measurement::Mean { mean, .. } => vec![row(&plain, "", "Metric", (*mean).into())],
        Measurement::Sum { increment, .. } => vec![row(&per_interval, "", "Rate", (*increment).into())],
        Measurement::Counter { delta, .. } => {
            delta.map(|delta| row(&per_interval, "", "Rate", delta)).into_iter().collect()
        }
        Measurement::UpDownCounter { value, .. } | Measurement::Gauge { value } => {
            value.map(|value| row(&plain, "", "Metric", value)).into_iter().collect()
        }
        measurement => distribution(measurement)
            .into_iter()
            .flat_map(|(percentiles, _)| percentiles)
            .map(|(share, value)| {
                row(&plain, &format!("Percentile={}", shortest(share * 100.0)), "Metric", value.into())
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use nettrace_analysis::counters::Quantile;

    use super::*;
    use crate::counters::trace_reports::last_recorded;

    #[test]
    fn no_measurement_has_no_minimum() {
        let mut sample = last_recorded("net8-meters.nettrace", "Lab.Meter/lab.latency");
        let [mean, standard_deviation] = [0.0; 2];
        let process = Process { id: None, name: String::new() };
        for (count, min) in [(0, serde_json::json!(null)), (1, serde_json::json!(2.0))] {
            sample.measurement = Measurement::Mean { mean, standard_deviation, count, min: 2.0, max: 2.0 };
            assert_eq!(serde_json::to_value(SampleLine::new(&process, &sample, None)).unwrap()["min"], min);
        }
    }

    /// Rows and lines repeat names and units with each quantile.
    #[test]
    fn quantiles_and_units_have_a_limit() {
        let mut sample = last_recorded("net8-meters.nettrace", "Lab.Meter/lab.latency");
        let quantiles = vec![Quantile { quantile: 5e-324, value: 1.0 }; 1_000];
        sample.measurement = Measurement::Histogram { quantiles, count: Some(1), sum: Some(1.0) };
        sample.unit = "\u{202e}".repeat(1_000);
        let rows = csv_rows(&sample, "", &[]);
        assert!(rows.len() == 16 && rows.iter().flatten().all(|cell| cell.len() < 256), "{rows:?}");
        let line = numbers(&sample);
        assert!(line.len() < 16 * 64, "{line}");
        let process = Process { id: None, name: String::new() };
        let line = serde_json::to_value(SampleLine::new(&process, &sample, None)).unwrap();
        assert_eq!(line["quantiles"], serde_json::json!({ "5e-324": 1.0 }));
    }
}
