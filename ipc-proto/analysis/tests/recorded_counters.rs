//! Counters of recorded traces, compared with the counters that Microsoft's reader found in them.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::panic,
    reason = "tests"
)]

mod runtime_events;

use std::fs;

use nettrace_analysis::counters::{
    CounterConfig, CounterEvent, CounterPlan, CounterReader, ExponentialHistogram, LatestSamples,
    Measurement, Number,
};
use serde_json::{Value, json};

use crate::runtime_events::{each_event_of_stream, path};

/// Returns the bits of a number, so that NaN and -0 compare, too.
fn bits(number: f64) -> Value {
    format!("{:016x}", number.to_bits()).into()
}

fn optional(number: Option<f64>) -> Value {
    number.map_or(Value::Null, bits)
}

fn numbers(measurement: &Measurement) -> Value {
    match measurement {
        Measurement::Mean { mean, standard_deviation, count, min, max } => {
            json!([bits(*mean), bits(*standard_deviation), count, bits(*min), bits(*max)])
        }
        Measurement::Sum { increment, time_scale } => json!([bits(*increment), optional(*time_scale)]),
        Measurement::Counter { delta, value } | Measurement::UpDownCounter { delta, value, .. } => {
            json!([delta, value].map(|number| optional(number.map(Number::as_f64))))
        }
        Measurement::Gauge { value } => json!([optional(value.map(Number::as_f64))]),
        Measurement::Histogram { quantiles, count, sum } => {
            let quantiles: Vec<Value> =
                quantiles.iter().map(|one| json!([bits(one.quantile), bits(one.value)])).collect();
            json!([quantiles, count, optional(*sum)])
        }
        Measurement::ExponentialHistogram(histogram) => {
            let ExponentialHistogram { scale, sum, count, zero_count, min, max, ref buckets, .. } =
                *histogram;
            json!([scale, bits(sum), count, zero_count, bits(min), bits(max), buckets])
        }
        other => panic!("{other:?}"),
    }
}

/// Returns what the independent decoder writes for an event.
fn row(event: &CounterEvent<'_>, nanoseconds: i64) -> Option<Value> {
    let instrument = match event {
        CounterEvent::Sample(sample) => {
            let mut row = json!({
                "ns": sample.nanoseconds, "system": sample.system.name(), "provider": sample.provider.to_string(),
                "name": sample.name.to_string(), "unit": sample.unit.to_string(),
                "tags": sample.tag_text.to_string(), "interval": optional(sample.interval),
                "kind": sample.measurement.kind(), "numbers": numbers(&sample.measurement),
            });
            if sample.system.name() == "meter" {
                row["version"] = sample.provider_version.to_string().into();
                row["id"] = json!(sample.instrument_id);
            } else {
                row["display"] = sample.display_name.to_string().into();
            }
            return Some(row);
        }
        CounterEvent::Begin(instrument) => ("begin", instrument),
        CounterEvent::End(instrument) => ("end", instrument),
        CounterEvent::Published(instrument) => ("published", instrument),
        _ => return None,
    };
    let (event, instrument) = instrument;
    Some(json!({
        "event": event, "ns": nanoseconds, "provider": instrument.meter.to_string(), "name": instrument.name.to_string(),
        "kind": instrument.kind.to_string(), "unit": instrument.unit.to_string(),
        "description": instrument.description.to_string(), "id": instrument.id,
    }))
}

#[test]
fn recorded_samples() {
    let mut files = 0;
    for file in fs::read_dir(path("counters")).unwrap() {
        let trace = file.unwrap().path();
        if trace.extension().is_none_or(|extension| extension != "nettrace") {
            continue;
        }
        let expected = fs::read_to_string(trace.with_extension("samples.jsonl")).unwrap();
        let mut expected = expected.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut counters = CounterReader::new();
        each_event_of_stream(&fs::read(&trace).unwrap(), |event| {
            let has_event = counters.has_event(event);
            let found = counters.event(event);
            assert_eq!(found.is_some(), has_event);
            let Some(found) = found else { return };
            assert!(!matches!(found, CounterEvent::Problem(_)), "{found:?}");
            if let Some(row) = row(&found, event.nanoseconds()) {
                assert_eq!(Some(row), expected.next(), "{}", trace.display());
            }
        });
        assert_eq!(expected.next(), None, "{}", trace.display());
        files += 1;
    }
    assert!(files >= 5);
}

/// Counts of the recorded program add up, and its tags and units are known.
#[test]
fn recorded_meaning() {
    let mut counters = CounterReader::new().for_session("lab", "").only(&["Lab.Meter".parse().unwrap()]);
    let (mut sum, mut last, mut latest) = (0.0, None, LatestSamples::new(LatestSamples::DEFAULT_LIMIT));
    each_event_of_stream(&fs::read(path("counters/net10-meters.nettrace")).unwrap(), |event| {
        let Some(CounterEvent::Sample(sample)) = counters.event(event) else { return };
        assert!(latest.insert(&sample));
        assert_eq!(sample.interval, Some(1.0));
        if sample.name == "lab.requests" && sample.tag_text == "route=/b" {
            let Measurement::Counter { delta, value } = sample.measurement else { panic!() };
            sum += delta.unwrap().as_f64();
            assert_eq!(sample.rate(), delta.map(Number::as_f64));
            last = value;
        }
    });
    assert_eq!(last, Some(Number::from(sum)));
    assert!(sum > 0.0);
    let series: Vec<_> =
        latest.iter().map(|sample| (&*sample.name, &*sample.unit, &*sample.tag_text)).collect();
    assert_eq!(
        series,
        [
            ("lab.gauge", "%", "k=v"),
            ("lab.latency", "s", "host=h1"),
            ("lab.open", "", ""),
            ("lab.requests", "{request}", "route=/a,b=\"c\",status=200"),
            ("lab.requests", "{request}", "route=/b"),
        ]
    );
}

#[test]
fn foreign_events() {
    let trace = fs::read(path("counters/net10-meters.nettrace")).unwrap();
    let count = |mut counters: CounterReader| {
        let mut count = 0;
        each_event_of_stream(&trace, |event| count += usize::from(counters.event(event).is_some()));
        count
    };
    assert!(count(CounterReader::new().for_session("lab", "")) > 0);
    assert_eq!(count(CounterReader::new().for_session("other", "")), 0);
    let plan = |selection: &str| {
        let selections = vec![selection.parse().unwrap()];
        CounterPlan::new(&CounterConfig { selections, ..CounterConfig::default() }, Some(10)).unwrap()
    };
    assert_eq!(count(plan("Lab.Meter").reader()), 0);
    let gauges = CounterReader::new().only(&["Lab.Meter/lab.gauge".parse().unwrap()]);
    let mut found = Vec::new();
    let mut reader = gauges.for_session("lab", "");
    each_event_of_stream(&trace, |event| match reader.event(event) {
        Some(CounterEvent::Sample(sample)) => found.push(sample.name.to_string()),
        Some(CounterEvent::Begin(instrument)) => assert_eq!(instrument.name, "lab.gauge"),
        _ => {}
    });
    assert_eq!(found, ["lab.gauge"; 6]);
}
