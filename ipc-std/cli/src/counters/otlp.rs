//! Samples as OTLP JSON: one `ExportMetricsServiceRequest` a line, as the file receiver of the OpenTelemetry collector
//! reads them.
use core::fmt::Write;
use std::collections::BTreeMap;

use nettrace_analysis::counters::{ExponentialHistogram, Measurement, Number, OwnedSample, System};
use serde_json::Value;

use super::descriptions::Descriptions;
use super::lines::number;
use super::report::{OwnedInstrument, Process};
use super::series_details::{Detail, point_tags, unique};
use super::unique_labels::UniqueLabels;
use crate::text::printable::json_line;

/// Samples that were not written yet.
#[derive(Default)]
pub(crate) struct Batch {
    /// The data points of each metric as JSON, with commas in between. What all points of a process, a scope or a metric
    /// have in common is stored once.
    points: BTreeMap<Metric, String>,
    /// The start of the first interval of the meters of each process, in nanoseconds since 1970.
    starts: BTreeMap<Process, u128>,
    descriptions: Descriptions,
    labels: UniqueLabels,
    /// The number of samples, and the approximate memory of all points in bytes.
    len: usize,
    size: usize,
}

/// The fields that are the same for all data points of a metric, in the order of a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Metric {
    process: Process,
    scope: Scope,
    name: String,
    unit: String,
    kind: &'static str,
    /// 1 is delta, 2 is cumulative; `None` for kinds without temporality.
    temporality: Option<u8>,
}

/// A meter or an event source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Scope {
    name: String,
    version: String,
    tags: Tags,
}

/// The names and values of tags.
type Tags = Vec<(String, String)>;

/// With this many samples, or with points of this size in bytes, the batch is full, and is written immediately.
const MAX_LEN: usize = 10_000;
const MAX_SIZE: usize = 16 << 20;
/// The maximum number of processes whose start is stored.
const MAX_STARTS: usize = 65_536;

const DELTA: Option<u8> = Some(1);
const CUMULATIVE: Option<u8> = Some(2);

impl Batch {
    pub(crate) fn describe(&mut self, process: &Process, instrument: OwnedInstrument) {
        self.descriptions.add(process, instrument);
    }

    /// Adds a sample. Returns whether the batch is full.
    pub(crate) fn add(&mut self, process: &Process, sample: &OwnedSample) -> bool {
        let number_of = sample.measurement.number();
        let (kind, temporality, point) = match &sample.measurement {
            Measurement::Mean { mean, .. } => ("gauge", None, value(Some((*mean).into()))),
            Measurement::Gauge { value: last } => ("gauge", None, value(*last)),
            Measurement::Sum { .. } => (sum_kind(number_of), DELTA, value(number_of)),
            Measurement::Counter { delta, value: None } => (sum_kind(*delta), DELTA, value(*delta)),
            Measurement::Counter { value: sum, .. } => (sum_kind(*sum), CUMULATIVE, value(*sum)),
            Measurement::UpDownCounter { delta, value: None, .. } => ("up_down", DELTA, value(*delta)),
            Measurement::UpDownCounter { value: sum, .. } => ("up_down", CUMULATIVE, value(*sum)),
            Measurement::Histogram { quantiles, count, sum } => {
                let quantiles = quantiles.iter().map(|one| {
                    let (quantile, value) = (number(one.quantile), number(one.value));
                    format!("{{\"quantile\":{quantile},\"value\":{value}}}")
                });
                let point = summary(count.unwrap_or_default(), sum.unwrap_or_default(), &list(quantiles));
                ("summary", None, Some(point))
            }
            Measurement::ExponentialHistogram(histogram) => match exponential(histogram) {
                Some(point) => ("exponentialHistogram", CUMULATIVE, Some(point)),
                // The place of the buckets is unknown.
                None => ("summary", None, Some(summary(histogram.count, histogram.sum, "[]"))),
            },
            _ => return false,
        };
        let Some(mut point) = point else { return false };
        let is_interval = temporality == DELTA || kind == "summary";
        let interval = sample.interval.filter(|seconds| *seconds >= 0.0 && *seconds < 1e9);
        // The filter above permits at most 1e9 seconds, so the conversion cannot fail.
        let interval = interval.map_or(0, |seconds| core::time::Duration::from_secs_f64(seconds).as_nanos());
        let time = sample.unix_nanoseconds.and_then(|time| u128::try_from(time).ok());
        let start_of_interval = time.map(|time| time.saturating_sub(interval));
        let is_known = || self.starts.len() >= MAX_STARTS || self.starts.contains_key(process);
        if let (System::Meter, false, Some(start)) = (sample.system, is_known(), start_of_interval) {
            self.starts.insert(process.clone(), start);
        }
        let start = match &sample.measurement {
            _ if is_interval => start_of_interval,
            Measurement::UpDownCounter { since_start: true, .. } => self.starts.get(process).copied(),
            _ => None,
        };
        // Writing to a string cannot fail.
        for (name, time) in [("timeUnixNano", time), ("startTimeUnixNano", start)] {
            if let Some(time) = time {
                let _ = write!(point, ",\"{name}\":{}", nanoseconds(time));
            }
        }
        let (shown, _) = self.labels.of_series(process, sample, |details| label(sample, details));
        let tags = attributes_of(sample, &shown.details(sample));
        let attributes = list(tags.iter().map(|(name, value)| attribute(name, value)));
        let _ = write!(point, ",\"attributes\":{attributes}}}");
        let OwnedSample { provider, provider_version, name, unit, .. } = sample;
        let (scope, version) = (provider.clone(), provider_version.clone());
        let metric = Metric {
            process: process.clone(),
            scope: Scope { name: scope, version, tags: scope_tags(sample) },
            name: name.clone(),
            unit: unit.clone(),
            kind,
            temporality,
        };
        self.add_point(metric, &point);
        self.len >= MAX_LEN || self.size >= MAX_SIZE
    }

    fn add_point(&mut self, metric: Metric, point: &str) {
        self.len = self.len.saturating_add(1);
        let points = match self.points.get_mut(&metric) {
            Some(points) => {
                points.push(',');
                points
            }
            None => {
                self.size = self.size.saturating_add(metric.size());
                self.points.entry(metric).or_default()
            }
        };
        points.push_str(point);
        self.size = self.size.saturating_add(point.len());
    }

    /// Forgets the series of a process that has ended.
    pub(crate) fn remove(&mut self, process: &Process) {
        self.labels.remove(process);
        self.descriptions.remove(process);
        self.starts.remove(process);
    }

    /// Returns the request with the samples as JSON, and removes them; `None` if there are none.
    pub(crate) fn take(&mut self) -> Option<String> {
        let points = core::mem::take(&mut self.points);
        (self.len, self.size) = (0, 0);
        let mut request = String::new();
        let mut last: Option<(Process, Scope)> = None;
        // The metrics of a process and of a scope are next to each other.
        for (metric, points) in points {
            let Metric { process, scope, name, unit, kind, temporality } = metric;
            let description = self.descriptions.get(&process, &scope.name, &name);
            let common = last.as_ref().map(|last| (last.0 == process, last.1 == scope));
            request.push_str(match common {
                None => "{\"resourceMetrics\":[",
                Some((true, true)) => ",",
                Some((true, false)) => "]},",
                Some((false, _)) => "]}]},",
            });
            if common.is_none_or(|(has_process, _)| !has_process) {
                let attributes = list(resource(&process).into_iter());
                // Writing to a string cannot fail.
                let _ = write!(request, "{{\"resource\":{{\"attributes\":{attributes}}},\"scopeMetrics\":[");
            }
            if common != Some((true, true)) {
                let _ = write!(request, "{{\"scope\":{},\"metrics\":[", scope.json());
            }
            let [name, unit, description] = [&name, &unit, description].map(text);
            let _ = write!(request, "{{\"name\":{name},\"unit\":{unit},\"description\":{description},");
            let (key, is_monotonic) = match kind {
                "up_down" => ("sum", Some(false)),
                "sum" => ("sum", Some(true)),
                kind => (kind, None),
            };
            let _ = write!(request, "\"{key}\":{{\"dataPoints\":[{points}]");
            if let Some(temporality) = temporality {
                let _ = write!(request, ",\"aggregationTemporality\":{temporality}");
            }
            if let Some(is_monotonic) = is_monotonic {
                let _ = write!(request, ",\"isMonotonic\":{is_monotonic}");
            }
            request.push_str("}}");
            last = Some((process, scope));
        }
        last?;
        request.push_str("]}]}]}");
        Some(request)
    }
}

impl Metric {
    /// Returns approximately the memory of the metric in bytes.
    fn size(&self) -> usize {
        /// The memory of an entry of the map in addition to its texts, and that of a tag.
        const ENTRY: usize = 512;
        const TAG: usize = 64;
        let Self { process, scope, name, unit, .. } = self;
        let tags = scope.tags.iter().flat_map(|(name, value)| [name.len(), value.len(), TAG]);
        let texts = [&process.name, &scope.name, &scope.version, name, unit].map(String::len);
        texts.into_iter().chain(tags).fold(ENTRY, usize::saturating_add)
    }
}

impl Scope {
    fn json(&self) -> String {
        let mut json = format!("{{\"name\":{},\"version\":{}", text(&self.name), text(&self.version));
        if !self.tags.is_empty() {
            let tags = list(self.tags.iter().map(|(name, value)| attribute(name, value)));
            json.push_str(&format!(",\"attributes\":{tags}"));
        }
        json.push('}');
        json
    }
}

/// Returns the kind of a sum: one with a negative number does not only grow.
fn sum_kind(number: Option<Number>) -> &'static str {
    if number.is_some_and(|number| number.as_f64() < 0.0) { "up_down" } else { "sum" }
}

/// Returns the tags of a meter, which are those of its scope.
fn scope_tags(sample: &OwnedSample) -> Tags {
    let details = sample.details.iter();
    unique(details.flat_map(|details| details.meter_tags()))
}

/// Returns the attributes of a data point: the tags of a series and its instrument, and details.
fn attributes_of(sample: &OwnedSample, details: &[Detail<'_>]) -> Tags {
    let details = details.iter().map(|(name, value)| (format!("dotnet.{name}").into(), (&**value).into()));
    unique(point_tags(sample).chain(details))
}

/// Returns what identifies a series in a request. The kind of a metric can change from sample to sample.
fn label(sample: &OwnedSample, details: &[Detail<'_>]) -> String {
    let OwnedSample { provider, provider_version, name, unit, .. } = sample;
    let tags = [scope_tags(sample), attributes_of(sample, details)];
    format!("{:?}", (provider, provider_version, name, unit, tags))
}

// The following functions return JSON. The start of a data point lacks its end, so that more fields can follow.

fn value(number_or_none: Option<Number>) -> Option<String> {
    Some(match number_or_none? {
        Number::Whole(whole) if i64::try_from(whole).is_ok() => format!("{{\"asInt\":\"{whole}\""),
        other => format!("{{\"asDouble\":{}", number(other.as_f64())),
    })
}

fn summary(count: u64, sum: f64, quantiles: &str) -> String {
    format!("{{\"count\":\"{count}\",\"sum\":{},\"quantileValues\":{quantiles}", number(sum))
}

fn exponential(histogram: &ExponentialHistogram) -> Option<String> {
    let ExponentialHistogram { scale, count, zero_count, buckets, .. } = histogram;
    let first = if buckets.is_empty() { Some(0) } else { histogram.first_bucket }?;
    let (sum, counts) = (number(histogram.sum), list(buckets.iter().map(|count| format!("\"{count}\""))));
    let mut point = format!(
        "{{\"count\":\"{count}\",\"sum\":{sum},\"scale\":{scale},\"zeroCount\":\"{zero_count}\",\
         \"positive\":{{\"offset\":{first},\"bucketCounts\":{counts}}}"
    );
    if *count > 0 {
        point.push_str(&format!(",\"min\":{},\"max\":{}", number(histogram.min), number(histogram.max)));
    }
    Some(point)
}

/// Returns an attribute of a name and a value.
fn attribute(name: &str, value: &str) -> String {
    format!("{{\"key\":{},\"value\":{{\"stringValue\":{}}}}}", text(name), text(value))
}

fn list(items: impl Iterator<Item = String>) -> String {
    let mut list = String::from("[");
    for item in items {
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(&item);
    }
    list.push(']');
    list
}

fn text(text: &str) -> String {
    json_line(&text)
}

fn nanoseconds(time: u128) -> Value {
    u64::try_from(time).unwrap_or_default().to_string().into()
}

fn resource(process: &Process) -> Vec<String> {
    let mut attributes =
        vec![attribute("telemetry.sdk.language", "dotnet"), attribute("process.runtime.name", ".NET")];
    if let Some(id) = process.id {
        attributes.push(format!("{{\"key\":\"process.pid\",\"value\":{{\"intValue\":\"{id}\"}}}}"));
    }
    if !process.name.is_empty() {
        attributes.push(attribute("process.executable.name", &process.name));
        attributes.push(attribute("service.name", &process.name));
    }
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::trace_reports::last_recorded;

    /// A batch is written when it has 16 MiB, whatever its samples are, and stores what is equal once.
    #[test]
    fn a_batch_has_a_limit() {
        let process = Process { id: Some(1), name: "app".to_owned() };
        let original = last_recorded("net10-meters.nettrace", "Lab.Meter/lab.gauge");
        let shapes: [fn(&mut OwnedSample, usize); 3] = [
            |sample, _| sample.tag_text = vec![&*format!("a={}", "x".repeat(10_000)); 20].join(","),
            |sample, n| (sample.provider_version, sample.unit) = (n.to_string(), "x".repeat(200_000)),
            |sample, n| sample.name = n.to_string(),
        ];
        for (shape, is_small) in shapes.into_iter().zip([false, false, true]) {
            let (mut batch, mut full) = (Batch::default(), 0);
            for n in 0..120 {
                let mut sample = original.clone();
                shape(&mut sample, n);
                if !batch.add(&process, &sample) {
                    continue;
                }
                full += 1;
                let stored: usize = batch.points.values().map(String::len).sum();
                assert!(stored <= MAX_SIZE + (1 << 20), "{stored}");
                let request = batch.take().unwrap();
                assert!(request.len() <= MAX_SIZE + (1 << 20), "{}", request.len());
                assert_eq!(request.matches("process.pid").count(), 1);
            }
            assert_eq!(full == 0, is_small, "{full}");
        }
    }
}
