//! Samples as OTLP JSON: one `ExportMetricsServiceRequest` a line, as the file receiver of the OpenTelemetry collector
//! reads them.
use std::collections::BTreeMap;

use nettrace_analysis::counters::{ExponentialHistogram, Measurement, OwnedSample, System};
use serde_json::{Map, Value, json};

use super::descriptions::Descriptions;
use super::feed::{OwnedInstrument, Process};
use super::lines::number;
use super::series_details::{Detail, unique};
use super::unique_labels::UniqueLabels;

/// Samples that were not written yet.
#[derive(Default)]
pub(crate) struct Batch {
    processes: BTreeMap<Process, Scopes>,
    /// The start of the first interval of the meters of each process, in nanoseconds since 1970.
    starts: BTreeMap<Process, u128>,
    descriptions: Descriptions,
    labels: UniqueLabels,
    len: usize,
}

/// The metrics of a process, by provider, its version and its tags.
type Scopes = BTreeMap<(String, String, Tags), BTreeMap<Metric, Vec<Value>>>;

/// The names and values of tags.
type Tags = Vec<(String, String)>;

/// The fields that are the same for all data points of a metric.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Metric {
    name: String,
    unit: String,
    kind: &'static str,
    /// 1 is delta, 2 is cumulative; `None` for kinds without temporality.
    temporality: Option<u8>,
}

/// With this many samples the batch is full, and is written immediately.
const MAX_LEN: usize = 10_000;

const DELTA: Option<u8> = Some(1);
const CUMULATIVE: Option<u8> = Some(2);

impl Batch {
    pub(crate) fn describe(&mut self, instrument: OwnedInstrument) {
        self.descriptions.add(instrument);
    }

    /// Adds a sample. Returns whether the batch is full.
    pub(crate) fn add(&mut self, process: &Process, sample: &OwnedSample) -> bool {
        let (kind, temporality, point) = match &sample.measurement {
            Measurement::Mean { mean, .. } => ("gauge", None, value(Some(*mean))),
            Measurement::Gauge { value: last } => ("gauge", None, value(*last)),
            Measurement::Sum { increment, .. } => {
                (sum_kind(Some(*increment)), DELTA, value(Some(*increment)))
            }
            Measurement::Counter { delta, value: None } => (sum_kind(*delta), DELTA, value(*delta)),
            Measurement::Counter { value: sum, .. } => (sum_kind(*sum), CUMULATIVE, value(*sum)),
            Measurement::UpDownCounter { delta, value: None, .. } => ("up_down", DELTA, value(*delta)),
            Measurement::UpDownCounter { value: sum, .. } => ("up_down", CUMULATIVE, value(*sum)),
            Measurement::Histogram { quantiles, count, sum } => {
                let quantiles: Vec<Value> = quantiles
                    .iter()
                    .map(|one| json!({ "quantile": number(one.quantile), "value": number(one.value) }))
                    .collect();
                let count = count.unwrap_or_default().to_string();
                let sum = number(sum.unwrap_or_default());
                let point = json!({ "count": count, "sum": sum, "quantileValues": quantiles });
                ("summary", None, Some(point))
            }
            Measurement::ExponentialHistogram(histogram) => match exponential(histogram) {
                Some(point) => ("exponentialHistogram", CUMULATIVE, Some(point)),
                // The place of the buckets is unknown.
                None => {
                    let (count, sum) = (histogram.count.to_string(), number(histogram.sum));
                    ("summary", None, Some(json!({ "count": count, "sum": sum, "quantileValues": [] })))
                }
            },
            _ => return false,
        };
        let Some(Value::Object(mut point)) = point else { return false };
        let is_interval = temporality == DELTA || kind == "summary";
        let interval = sample.interval.filter(|seconds| *seconds >= 0.0 && *seconds < 1e9);
        // The filter above permits at most 1e9 seconds, so the conversion cannot fail.
        let interval = interval.map_or(0, |seconds| core::time::Duration::from_secs_f64(seconds).as_nanos());
        let time = u128::try_from(sample.unix_nanoseconds).unwrap_or_default();
        point.insert("timeUnixNano".to_owned(), nanoseconds(time));
        let start_of_interval = time.saturating_sub(interval);
        if sample.system == System::Meter && !self.starts.contains_key(process) {
            self.starts.insert(process.clone(), start_of_interval);
        }
        let start = match &sample.measurement {
            _ if is_interval => Some(start_of_interval),
            Measurement::UpDownCounter { since_start: true, .. } => self.starts.get(process).copied(),
            _ => None,
        };
        if let Some(start) = start {
            point.insert("startTimeUnixNano".to_owned(), nanoseconds(start));
        }
        let (shown, _) = self.labels.of_series(process, sample, |details| label(sample, details));
        let attributes = point_tags(sample, &shown.details(sample));
        let attributes: Vec<Value> =
            attributes.into_iter().map(|(name, value)| attribute(&name, value.into())).collect();
        point.insert("attributes".to_owned(), attributes.into());
        let metric = Metric { name: sample.name.clone(), unit: sample.unit.clone(), kind, temporality };
        let scopes = self.processes.entry(process.clone()).or_default();
        let scope = (sample.provider.clone(), sample.provider_version.clone(), scope_tags(sample));
        let scope = scopes.entry(scope).or_default();
        scope.entry(metric).or_default().push(point.into());
        self.len = self.len.saturating_add(1);
        self.len >= MAX_LEN
    }

    /// Forgets the series of a process that has ended.
    pub(crate) fn remove(&mut self, process: &Process) {
        self.labels.remove(process);
        self.starts.remove(process);
    }

    /// Returns the request with the samples, and removes them; `None` if there are none.
    pub(crate) fn take(&mut self) -> Option<Value> {
        self.len = 0;
        let processes = core::mem::take(&mut self.processes);
        let resources: Vec<Value> = processes
            .into_iter()
            .map(|(process, scopes)| {
                let scopes: Vec<Value> = scopes
                    .into_iter()
                    .map(|((provider, version, tags), metrics)| {
                        let metrics: Vec<Value> = metrics
                            .into_iter()
                            .map(|(metric, points)| self.metric(&provider, metric, points))
                            .collect();
                        let mut scope = json!({ "name": provider, "version": version });
                        if let Some(scope) = scope.as_object_mut().filter(|_| !tags.is_empty()) {
                            let tags = tags.into_iter().map(|(name, value)| attribute(&name, value.into()));
                            scope.insert("attributes".to_owned(), tags.collect());
                        }
                        json!({ "scope": scope, "metrics": metrics })
                    })
                    .collect();
                json!({ "resource": { "attributes": resource(&process) }, "scopeMetrics": scopes })
            })
            .collect();
        (!resources.is_empty()).then(|| json!({ "resourceMetrics": resources }))
    }

    fn metric(&self, provider: &str, metric: Metric, points: Vec<Value>) -> Value {
        let Metric { name, unit, kind, temporality } = metric;
        let mut data = Map::new();
        data.insert("dataPoints".to_owned(), points.into());
        if let Some(temporality) = temporality {
            data.insert("aggregationTemporality".to_owned(), temporality.into());
        }
        let key = match kind {
            "up_down" => "sum",
            kind => kind,
        };
        if key == "sum" {
            data.insert("isMonotonic".to_owned(), (kind == "sum").into());
        }
        let description = self.descriptions.get(provider, &name);
        let mut object = json!({ "name": name, "unit": unit, "description": description });
        if let Value::Object(object) = &mut object {
            object.insert(key.to_owned(), data.into());
        }
        object
    }
}

/// Returns the kind of a sum: one with a negative number does not only grow.
fn sum_kind(number: Option<f64>) -> &'static str {
    if number.is_some_and(|number| number < 0.0) { "up_down" } else { "sum" }
}

/// Returns the tags of a meter, which are those of its scope.
fn scope_tags(sample: &OwnedSample) -> Tags {
    let details = sample.details.iter();
    unique(details.flat_map(|details| details.meter_tags()))
}

/// Returns the attributes of a data point: the tags of a series and its instrument, and details.
fn point_tags(sample: &OwnedSample, details: &[Detail]) -> Tags {
    let own = Some(sample).filter(|sample| sample.system == System::Meter).into_iter();
    let of_instrument = sample.details.iter();
    let tags =
        own.flat_map(OwnedSample::tags).chain(of_instrument.flat_map(|details| details.instrument_tags()));
    let details = details.iter().map(|(name, value)| (format!("dotnet.{name}").into(), value.into()));
    unique(tags.chain(details))
}

/// Returns what identifies a series in a request. The kind of a metric can change from sample to sample.
fn label(sample: &OwnedSample, details: &[Detail]) -> String {
    let OwnedSample { provider, provider_version, name, unit, .. } = sample;
    let tags = [scope_tags(sample), point_tags(sample, details)];
    format!("{:?}", (provider, provider_version, name, unit, tags))
}

fn value(number_or_none: Option<f64>) -> Option<Value> {
    number_or_none.map(|value| json!({ "asDouble": number(value) }))
}

fn exponential(histogram: &ExponentialHistogram) -> Option<Value> {
    let first = if histogram.buckets.is_empty() { Some(0) } else { histogram.first_bucket };
    let counts: Vec<String> = histogram.buckets.iter().map(u64::to_string).collect();
    let mut point = json!({
        "count": histogram.count.to_string(), "sum": number(histogram.sum), "scale": histogram.scale,
        "zeroCount": histogram.zero_count.to_string(), "positive": { "offset": first?, "bucketCounts": counts },
    });
    if let Some(point) = point.as_object_mut().filter(|_| histogram.count > 0) {
        point.insert("min".to_owned(), number(histogram.min));
        point.insert("max".to_owned(), number(histogram.max));
    }
    Some(point)
}

/// Returns an attribute of a name and a value.
fn attribute(name: &str, value: Value) -> Value {
    json!({ "key": name, "value": { "stringValue": value } })
}

fn nanoseconds(time: u128) -> Value {
    u64::try_from(time).unwrap_or_default().to_string().into()
}

fn resource(process: &Process) -> Vec<Value> {
    let mut attributes = vec![
        attribute("telemetry.sdk.language", "dotnet".into()),
        attribute("process.runtime.name", ".NET".into()),
    ];
    if let Some(id) = process.id {
        attributes.push(json!({ "key": "process.pid", "value": { "intValue": id.to_string() } }));
    }
    if !process.name.is_empty() {
        attributes.push(attribute("process.executable.name", process.name.clone().into()));
        attributes.push(attribute("service.name", process.name.clone().into()));
    }
    attributes
}
