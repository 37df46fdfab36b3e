//! Samples as OTLP JSON: one `ExportMetricsServiceRequest` a line, as the file receiver of the OpenTelemetry collector
//! reads them.
use std::collections::BTreeMap;

use nettrace_analysis::counters::{ExponentialHistogram, Measurement, OwnedSample, System};
use serde_json::{Map, Value, json};

use super::descriptions::Descriptions;
use super::feed::{OwnedInstrument, Process};
use super::lines::{number, tags};

/// Samples that were not written yet.
#[derive(Default)]
pub(crate) struct Batch {
    processes: BTreeMap<Process, Scopes>,
    descriptions: Descriptions,
    len: usize,
}

/// The metrics of a process, by provider and its version.
type Scopes = BTreeMap<(String, String), BTreeMap<Metric, Vec<Value>>>;

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
            Measurement::Sum { increment, .. } => ("sum", DELTA, value(Some(*increment))),
            Measurement::Counter { delta, value: None } => ("sum", DELTA, value(*delta)),
            Measurement::Counter { value: sum, .. } => ("sum", CUMULATIVE, value(*sum)),
            Measurement::UpDownCounter { delta, value: None } => ("up_down", DELTA, value(*delta)),
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
            Measurement::ExponentialHistogram(histogram) => {
                ("exponentialHistogram", CUMULATIVE, exponential(histogram))
            }
            _ => return false,
        };
        let Some(Value::Object(mut point)) = point else { return false };
        let is_interval = temporality == DELTA || kind == "summary";
        let interval = sample.interval.filter(|seconds| is_interval && *seconds >= 0.0 && *seconds < 1e9);
        // The filter above permits at most 1e9 seconds, so the conversion cannot fail.
        let interval = interval.map_or(0, |seconds| core::time::Duration::from_secs_f64(seconds).as_nanos());
        let time = u128::try_from(sample.unix_nanoseconds).unwrap_or_default();
        point.insert("timeUnixNano".to_owned(), nanoseconds(time));
        if is_interval {
            point.insert("startTimeUnixNano".to_owned(), nanoseconds(time.saturating_sub(interval)));
        }
        let mut attributes = Vec::new();
        if sample.system == System::Meter {
            attributes.extend(tags(sample).into_iter().map(|(name, value)| attribute(&name, value.into())));
        }
        point.insert("attributes".to_owned(), attributes.into());
        let metric = Metric { name: sample.name.clone(), unit: sample.unit.clone(), kind, temporality };
        let scopes = self.processes.entry(process.clone()).or_default();
        let scope = scopes.entry((sample.provider.clone(), sample.provider_version.clone())).or_default();
        scope.entry(metric).or_default().push(point.into());
        self.len = self.len.saturating_add(1);
        self.len >= MAX_LEN
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
                    .map(|((provider, version), metrics)| {
                        let metrics: Vec<Value> = metrics
                            .into_iter()
                            .map(|(metric, points)| self.metric(&provider, metric, points))
                            .collect();
                        json!({ "scope": { "name": provider, "version": version }, "metrics": metrics })
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
