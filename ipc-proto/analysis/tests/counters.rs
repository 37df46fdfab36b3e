//! Counters and metrics: recorded ones against an independent decoder, and made ones for each rule and each version.
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

use nettrace::{Event, Fields, Metadata, Scalar, Trace, TraceWriter, Version};
use nettrace_analysis::counters::{
    CounterEvent, CounterReader, ExponentialHistogram, LatestSamples, Measurement, OwnedSample, Problem,
    Quantile,
};

use crate::runtime_events::{each_event_of_stream, path};

/// A value of a payload.
#[derive(Clone)]
enum Field {
    Text(String),
    Double(f64),
    Single(f32),
    Int(i32),
    Long(i64),
    Time(u64),
}

use Field::{Double, Int, Long, Single, Time};

fn text(text: &str) -> Field {
    Field::Text(text.to_owned())
}

impl Field {
    fn scalar(&self) -> Scalar {
        match self {
            Self::Text(_) => Scalar::Utf16String,
            Self::Double(_) => Scalar::Double,
            Self::Single(_) => Scalar::Single,
            Self::Int(_) => Scalar::Int32,
            Self::Long(_) => Scalar::Int64,
            Self::Time(_) => Scalar::DateTime,
        }
    }

    fn write(&self, payload: &mut Vec<u8>) {
        match self {
            Self::Text(text) => {
                payload.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
            }
            Self::Double(number) => payload.extend(number.to_le_bytes()),
            Self::Single(number) => payload.extend(number.to_le_bytes()),
            Self::Int(number) => payload.extend(number.to_le_bytes()),
            Self::Long(number) => payload.extend(number.to_le_bytes()),
            Self::Time(number) => payload.extend(number.to_le_bytes()),
        }
    }
}

type Row = (&'static str, u32, Vec<(&'static str, Field)>);

/// Returns a trace of these events: provider, event id and fields. Event counters have the name of their event.
fn trace(rows: &[Row]) -> Vec<u8> {
    let (mut buf, mut out) = (vec![0; TraceWriter::BUFFER], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    for (id, (provider, event_id, fields)) in (1..).zip(rows) {
        let mut space = vec![0; 4096];
        let described: Vec<_> = fields.iter().map(|(name, field)| (*name, field.scalar())).collect();
        let name = if *provider == METRICS { "Some" } else { "EventCounters" };
        let mut metadata = Metadata::new(id, provider, *event_id, name);
        metadata.fields = Fields::build(&described, &mut space).unwrap();
        out.extend_from_slice(&writer.describe(&metadata).unwrap());
    }
    for (id, (.., fields)) in (1..).zip(rows) {
        let mut payload = Vec::new();
        fields.iter().for_each(|(_, field)| field.write(&mut payload));
        let event = Event {
            metadata_id: id,
            sequence: id,
            thread: 1,
            capture_thread: 1,
            timestamp: id.into(),
            payload: &payload,
            ..Event::default()
        };
        out.extend_from_slice(&writer.event(&event).unwrap());
    }
    out.extend_from_slice(&writer.finish());
    out
}

const METRICS: &str = "System.Diagnostics.Metrics";

fn meter(event_id: u32, name: &str, fields: &[(&'static str, Field)]) -> Row {
    let mut all = vec![
        ("sessionId", text("lab")),
        ("meterName", text("M")),
        ("meterVersion", text("")),
        ("instrumentName", text(name)),
        ("unit", text("s")),
        ("tags", text("k=v")),
    ];
    all.extend_from_slice(fields);
    (METRICS, event_id, all)
}

fn session(event_id: u32, fields: &[(&'static str, Field)]) -> Row {
    (METRICS, event_id, fields.to_vec())
}

/// Returns the samples and the sentences of the problems of a trace.
fn read(mut counters: CounterReader, rows: &[Row]) -> (Vec<OwnedSample>, Vec<String>) {
    let (mut samples, mut problems) = (Vec::new(), Vec::new());
    each_event_of_stream(&trace(rows), |event| match counters.event(event) {
        Some(CounterEvent::Sample(sample)) => samples.push(OwnedSample::from(&sample)),
        Some(CounterEvent::Problem(problem)) => problems.push(problem.to_string()),
        _ => {}
    });
    (samples, problems)
}

fn one(row: Row) -> Measurement {
    let (mut samples, problems) = read(CounterReader::new(), &[row]);
    assert_eq!(problems, [""; 0]);
    assert_eq!(samples.len(), 1);
    samples.pop().unwrap().measurement
}

#[test]
fn versions_of_events() {
    // The fields as .NET 6 and 7 write them.
    let counter = one(meter(4, "c", &[("rate", text("2"))]));
    assert_eq!(counter, Measurement::Counter { delta: Some(2.0.into()), value: None });
    let histogram = one(meter(6, "h", &[("quantiles", text("0.5=1;0.95=2.5"))]));
    let quantiles = vec![Quantile { quantile: 0.5, value: 1.0 }, Quantile { quantile: 0.95, value: 2.5 }];
    assert_eq!(histogram, Measurement::Histogram { quantiles, count: None, sum: None });
    // Fields in another order, with unknown ones among them.
    let (name, id, mut fields) =
        meter(16, "u", &[("value", text("7")), ("new", Long(1)), ("rate", text("-3"))]);
    fields.reverse();
    let sample = one((name, id, fields));
    assert_eq!(
        sample,
        Measurement::UpDownCounter { delta: Some((-3.0).into()), value: Some(7.0.into()), since_start: true }
    );
    // An empty value means that the interval had no measurement.
    assert_eq!(one(meter(5, "g", &[("lastValue", text(""))])), Measurement::Gauge { value: None });
    let none = one(meter(6, "h", &[("quantiles", text("")), ("count", Int(0)), ("sum", Double(0.0))]));
    assert_eq!(none, Measurement::Histogram { quantiles: Vec::new(), count: Some(0), sum: Some(0.0) });
    // Event counters in the order of .NET Core 3.0 and in another one.
    let mean = vec![("Max", Double(f64::NEG_INFINITY)), ("Min", Double(f64::INFINITY)), ("Count", Int(0))];
    let rest = [("StandardDeviation", Double(0.0)), ("Mean", Double(f64::NAN)), ("Name", text("n"))];
    let mean: Vec<_> = mean.into_iter().chain(rest).collect();
    let Measurement::Mean { mean, count: 0, min: f64::INFINITY, max: f64::NEG_INFINITY, .. } =
        one(("Source", 9, mean))
    else {
        panic!()
    };
    assert!(mean.is_nan());
}

/// Up-down counters count from the start of the session, and observable ones report what the program has.
#[test]
fn sums_since_the_start() {
    let begin = |kind: &str, id| meter(7, "u", &[("instrumentType", text(kind)), ("instrumentId", Int(id))]);
    let end = |id| meter(8, "u", &[("instrumentId", Int(id))]);
    let sample = |id| meter(16, "u", &[("rate", text("")), ("value", text("7")), ("instrumentId", Int(id))]);
    let mut of_runtime = sample(1);
    of_runtime.2[1].1 = text("System.Runtime");
    // Instruments have no id before .NET 9.
    for id in [0, 3] {
        let rows = [
            sample(id),
            begin("ObservableUpDownCounter", id),
            sample(id),
            end(id),
            begin("UpDownCounter", id),
            sample(id),
            of_runtime.clone(),
        ];
        let (samples, _) = read(CounterReader::new(), &rows);
        let since_start = samples.iter().map(|sample| match sample.measurement {
            Measurement::UpDownCounter { since_start, .. } => since_start,
            _ => panic!("{sample:?}"),
        });
        assert_eq!(since_start.collect::<Vec<_>>(), [true, false, true, false], "{id}");
    }
}

#[test]
fn numbers_in_texts() {
    let gauge = |number: &str| read(CounterReader::new(), &[meter(5, "g", &[("lastValue", text(number))])]);
    for (number, expected) in [
        ("80", 80.0),
        ("1E-05", 1e-5),
        ("1E+20", 1e20),
        ("-0", -0.0),
        ("-0.5", -0.5),
        ("Infinity", f64::INFINITY),
        ("NaN", f64::NAN),
        ("∞", f64::INFINITY),
        ("-∞", f64::NEG_INFINITY),
    ] {
        let (samples, problems) = gauge(number);
        assert_eq!(problems, [""; 0], "{number}");
        let value = samples[0].measurement.value().unwrap();
        assert_eq!(value.to_bits(), expected.to_bits(), "{number}");
    }
    let long = "1".repeat(65);
    for number in ["1,5", "1 000", "1\u{a0}000", "one", " 1", "\u{1b}[31m", "٣", &long] {
        let (samples, problems) = gauge(number);
        assert_eq!(samples, []);
        let [problem] = &problems[..] else { panic!("{number}: {problems:?}") };
        assert!(problem.starts_with("the field lastValue of an event is not a number: "), "{problem}");
        assert!(!problem.contains('\u{1b}'));
    }
    for quantiles in ["0.5=1,5", "0.5", "0.5=1=2", ";", "0.5=1;", "=1"] {
        let row = meter(6, "h", &[("quantiles", text(quantiles)), ("count", Int(1)), ("sum", Double(1.0))]);
        let (samples, problems) = read(CounterReader::new(), &[row]);
        assert_eq!((samples.len(), problems.len()), (0, 1), "{quantiles}");
    }
    let (_, problems) = read(CounterReader::new(), &[("Source", 3, vec![("Name", text("n"))])]);
    assert_eq!(problems, ["an event lacks the number Mean"]);
}

#[test]
fn time_spans() {
    for (time_scale, expected) in [
        ("00:00:01", Some(1.0)),
        ("00:01:00", Some(60.0)),
        ("1.02:03:04.5000000", Some(93_784.5)),
        ("", None),
        ("00:01", None),
        ("a:b:c", None),
        ("00:00:inf", None),
    ] {
        let fields =
            [("Name", text("n")), ("Increment", Double(1.0)), ("DisplayRateTimeScale", text(time_scale))];
        let sum = Measurement::Sum { increment: 1.0, time_scale: expected };
        assert_eq!(one(("Source", 3, fields.to_vec())), sum, "{time_scale}");
    }
}

#[test]
fn lists() {
    for list in ["1,2, 3,", "1, 2, 3"] {
        let Measurement::ExponentialHistogram(histogram) = one(exponential(0, 0, 9.0, list)) else {
            panic!()
        };
        assert_eq!(histogram.buckets, [1, 2, 3]);
    }
}

fn exponential(scale: i32, zero: i64, max: f64, buckets: &str) -> Row {
    meter(
        19,
        "e",
        &[
            ("scale", Int(scale)),
            ("sum", Double(30.0)),
            ("count", Long(6)),
            ("zeroCount", Long(zero)),
            ("minimum", Double(3.0)),
            ("maximum", Double(max)),
            ("buckets", text(buckets)),
        ],
    )
}

/// The index of the first bucket, which the event does not state, agrees with the smallest measurement.
#[test]
fn recorded_exponential_histograms() {
    let (mut counters, mut counts) = (CounterReader::new(), Vec::new());
    each_event_of_stream(&fs::read(path("counters/net10-exponential.nettrace")).unwrap(), |event| {
        let Some(CounterEvent::Sample(sample)) = counters.event(event) else { return };
        let Measurement::ExponentialHistogram(histogram) = sample.measurement else { return };
        let sum: u64 = histogram.buckets.iter().sum();
        assert_eq!(sum + histogram.zero_count, histogram.count);
        // The smallest measurement of the recorded program that is not 0 is 0.01.
        assert_eq!(histogram.first_bucket, ExponentialHistogram::bucket(histogram.scale, 0.01));
        assert_eq!(histogram.quantile(1.0), Some(histogram.max));
        let median = histogram.quantile(0.5).unwrap();
        assert!(median > 0.04 && median < 0.12, "{median}");
        counts.push(histogram.count);
    });
    assert_eq!(counts, [20, 40, 59]);
}

#[test]
fn exponential_histograms() {
    // 3 is in (2, 4], 9 in (8, 16].
    let Measurement::ExponentialHistogram(histogram) = one(exponential(0, 1, 9.0, "3, 0, 2")) else {
        panic!()
    };
    assert_eq!((histogram.first_bucket, &histogram.buckets[..]), (Some(1), &[3, 0, 2][..]));
    assert_eq!((histogram.sum, histogram.count, histogram.zero_count), (30.0, 6, 1));
    assert_eq!(histogram.quantile(0.5), Some(4.0));
    assert_eq!(histogram.quantile(0.99), Some(9.0));
    let row = [
        ("scale", Int(0)),
        ("sum", Double(20.0)),
        ("count", Long(10)),
        ("zeroCount", Long(1)),
        ("minimum", Double(0.0)),
        ("maximum", Double(7.0)),
        ("buckets", text("4, 0, 5")),
    ];
    let Measurement::ExponentialHistogram(histogram) = one(meter(19, "e", &row)) else { panic!() };
    for (share, expected) in [(0.0, 0.0), (0.1, 0.0), (0.5, 2.0), (0.51, 7.0), (1.0, 7.0)] {
        assert_eq!(histogram.quantile(share), Some(expected), "{share}");
    }
    for row in
        [exponential(0, 0, f64::MIN, ""), exponential(99, 0, 9.0, "1"), exponential(0, 0, f64::NAN, "1")]
    {
        let Measurement::ExponentialHistogram(histogram) = one(row) else { panic!() };
        assert_eq!((histogram.first_bucket, histogram.quantile(0.5)), (None, None));
    }
    for bad in ["1, -1", "1; 2", "1.5", "x", "99999999999999999999"] {
        let (samples, problems) = read(CounterReader::new(), &[exponential(0, 0, 9.0, bad)]);
        assert_eq!((samples.len(), problems.len()), (0, 1), "{bad}");
    }
}

#[test]
fn intervals_and_problems() {
    let interval = |id, to| {
        let times = [("intervalStartTime", Time(10_000_000)), ("intervalEndTime", Time(to))];
        let [from, to] = times;
        session(id, &[("sessionId", text("lab")), from, to])
    };
    let counter = || meter(4, "c", &[("rate", text("3")), ("value", text("9")), ("instrumentId", Int(0))]);
    let rows = [counter(), interval(2, 25_000_000), counter(), interval(2, 10_000_000), counter()];
    let (samples, _) = read(CounterReader::new(), &rows);
    let found: Vec<_> = samples.iter().map(|sample| (sample.interval, sample.sample().rate())).collect();
    assert_eq!(found, [(None, None), (Some(1.5), Some(2.0)), (Some(0.0), None)]);
    assert_eq!(samples[0].instrument_id, None);
    let sum = [("Name", text("n")), ("Increment", Double(3.0)), ("IntervalSec", Single(0.5))];
    let (samples, _) = read(CounterReader::new(), &[("Source", 3, sum.to_vec())]);
    assert_eq!((samples[0].sample().rate(), samples[0].sample().value()), (Some(6.0), Some(3.0)));

    let rows = [
        session(9, &[("sessionId", text("lab")), ("message", text("no\nwasm"))]),
        session(12, &[("sessionId", text("lab"))]),
        session(13, &[("sessionId", text("lab"))]),
        session(14, &[("sessionId", text("lab")), ("errorMessage", text("thrown"))]),
        session(15, &[("runningSessionId", text("x"))]),
        session(
            17,
            &[
                ("clientId", text("me")),
                ("expectedMaxHistograms", text("20")),
                ("expectedMaxTimeSeries", text("1000")),
                ("expectedRefreshInterval", text("5")),
            ],
        ),
    ];
    let (_, problems) = read(CounterReader::new().for_session("lab", "me"), &rows);
    assert_eq!(problems.len(), 6, "{problems:?}");
    assert_eq!(problems[0], "the process cannot report instruments: no wasm");
    assert!(problems[5].contains("interval 5 s, at most 1000 series and 20 histograms"), "{}", problems[5]);
    // The problems of another client's session are not reported.
    let (_, problems) = read(CounterReader::new().for_session("x", "you"), &rows);
    assert_eq!(problems, [""; 0]);
}

/// A meter replaces the event counters of its name, but not those that a selection names.
#[test]
fn both_systems() {
    let counter = |name: &str| {
        let fields = [("Name", text(name)), ("Increment", Double(1.0)), ("IntervalSec", Single(1.0))];
        ("M", 3, fields.to_vec())
    };
    let begin = meter(7, "c", &[("instrumentType", text("Counter`1"))]);
    let rows = [counter("before"), begin, counter("named"), counter("after")];
    let names = |reader: CounterReader| {
        read(reader, &rows).0.into_iter().map(|sample| sample.name).collect::<Vec<_>>()
    };
    assert_eq!(names(CounterReader::new()), ["before", "named", "after"]);
    assert_eq!(names(CounterReader::new().preferring_meters()), ["before"]);
    let named = ["M".parse().unwrap(), "M/named".parse().unwrap()];
    assert_eq!(names(CounterReader::new().only(&named).preferring_meters()), ["before", "named"]);
}

/// The limit holds for many series and for series that grow, and samples of stored series are always stored.
#[test]
fn limit_of_series() {
    const LIMIT: usize = 64 << 10;
    let mut latest = LatestSamples::new(LIMIT);
    let mut counters = CounterReader::new();
    each_event_of_stream(&trace(&[meter(4, "c", &[("rate", text("1")), ("value", text("1"))])]), |event| {
        let Some(CounterEvent::Sample(sample)) = counters.event(event) else { panic!() };
        let (mut stored, mut sample) = (0, sample);
        for n in 0..1_000_000_u32 {
            let tags = format!("k={n}");
            let mut other = sample.clone();
            other.tag_text = (&*tags).into();
            stored += u64::from(latest.insert(&other));
        }
        assert!(stored > 50 && stored < 1_000, "{stored}");
        assert_eq!((latest.iter().count() as u64, latest.dropped()), (stored, 1_000_000 - stored));
        (sample.tag_text, sample.nanoseconds) = ("k=0".into(), 7);
        assert!(latest.insert(&sample));
        assert!(latest.iter().any(|sample| sample.nanoseconds == 7));
        sample.measurement = Measurement::Histogram {
            quantiles: vec![Quantile { quantile: 0.5, value: 1.0 }; LIMIT / 16],
            count: None,
            sum: None,
        };
        assert!(!latest.insert(&sample));
    });
    let instrument = meter(8, "c", &[("instrumentType", text("Counter`1"))]);
    each_event_of_stream(&trace(&[instrument]), |event| {
        let Some(CounterEvent::End(instrument)) = counters.event(event) else { panic!() };
        latest.remove(&instrument);
    });
    assert_eq!(latest.iter().count(), 0);
}

/// The end of an instrument visits its own series only: otherwise these ends would take hours.
#[test]
fn many_ends() {
    const SERIES: u32 = 50_000;
    let (mut counters, mut latest) = (CounterReader::new(), LatestSamples::new(1 << 30));
    each_event_of_stream(&trace(&[meter(4, "c", &[("rate", text("1")), ("value", text("1"))])]), |event| {
        let Some(CounterEvent::Sample(sample)) = counters.event(event) else { panic!() };
        for n in 0..SERIES {
            let mut other = sample.clone();
            (other.instrument_id, other.process_id) = (Some(1 + n / 2), Some(n.into()));
            assert!(latest.insert(&other));
        }
    });
    each_event_of_stream(&trace(&[meter(8, "c", &[("instrumentType", text("Counter`1"))])]), |event| {
        let Some(CounterEvent::End(mut instrument)) = counters.event(event) else { panic!() };
        for n in 0..SERIES {
            // Only each second instrument is one of this process.
            (instrument.id, instrument.process_id) = (Some(1 + n / 2), Some((n & !1).into()));
            latest.remove(&instrument);
        }
    });
    assert_eq!(latest.iter().count(), SERIES as usize / 2);
}

/// A sample that does not fit leaves the stored one as it is, whichever part of it is long.
#[test]
fn limit_of_texts() {
    const LIMIT: usize = 2 << 10;
    let mut counters = CounterReader::new();
    each_event_of_stream(&trace(&[meter(4, "c", &[("rate", text("1")), ("value", text("1"))])]), |event| {
        let Some(CounterEvent::Sample(sample)) = counters.event(event) else { panic!() };
        let mut latest = LatestSamples::new(LIMIT);
        assert!(latest.insert(&sample));
        let long = "x".repeat(LIMIT);
        for is_unit in [false, true] {
            let mut other = sample.clone();
            other.nanoseconds += 1;
            *if is_unit { &mut other.unit } else { &mut other.display_name } = (&*long).into();
            assert!(!latest.insert(&other));
            assert_eq!(latest.iter().collect::<Vec<_>>(), [&OwnedSample::from(&sample)]);
        }
        assert_eq!(latest.dropped(), 2);
    });
}

/// A NUL in a text of V6 does not make two series one.
#[test]
fn series_whose_texts_have_a_nul() {
    let mut counters = CounterReader::new();
    each_event_of_stream(&trace(&[meter(4, "c", &[("rate", text("1")), ("value", text("1"))])]), |event| {
        let Some(CounterEvent::Sample(mut sample)) = counters.event(event) else { panic!() };
        let mut latest = LatestSamples::new(LatestSamples::DEFAULT_LIMIT);
        let names = [("a\0b", "c"), ("a", "b\0c"), ("a\0", "b"), ("a", "\0b")];
        for (provider, name) in names {
            (sample.provider, sample.name) = (provider.into(), name.into());
            assert!(latest.insert(&sample));
        }
        assert_eq!(latest.iter().count(), names.len());
        let ended = meter(8, "", &[]);
        each_event_of_stream(&trace(&[ended]), |event| {
            let Some(CounterEvent::End(mut instrument)) = CounterReader::new().event(event) else { panic!() };
            (instrument.meter, instrument.name) = ("a".into(), "b\0c".into());
            latest.remove(&instrument);
        });
        let left: Vec<_> = latest.iter().map(|sample| (&*sample.provider, &*sample.name)).collect();
        assert_eq!(left.len(), names.len() - 1);
        assert!(!left.contains(&("a", "b\0c")));
    });
}

#[test]
fn changed_bytes() {
    for name in ["counters/net10-meters.nettrace", "counters/net31-eventcounters.nettrace"] {
        let original = fs::read(path(name)).unwrap();
        let mut state = 1_u64;
        for round in 0..64 {
            let mut changed = original.clone();
            for _ in 0..1 << (round % 8) {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let place = (state >> 33) as usize % changed.len();
                changed[place] = (state >> 20) as u8;
            }
            let (mut counters, mut latest) =
                (CounterReader::new().preferring_meters(), LatestSamples::new(1 << 16));
            each_event_of_stream(&changed, |event| {
                match counters.has_event(event).then(|| counters.event(event).unwrap()) {
                    Some(CounterEvent::Sample(sample)) => {
                        latest.insert(&sample);
                        assert!(sample.tags().count() <= sample.tag_text.units().count() + 1);
                    }
                    Some(CounterEvent::Problem(problem @ Problem::NotANumber { .. })) => {
                        assert!(!problem.to_string().contains(char::is_control));
                    }
                    _ => {}
                }
            });
        }
    }
}
