//! Traces of plausible events of counters and instruments, from any bytes. Each event has a byte for its kind, and
//! bytes for its fields.
#![allow(clippy::cast_possible_truncation, reason = "numbers are cut to the width of their field")]
use nettrace::{Event, Fields, Metadata, Scalar, Trace, TraceWriter, Version};

use super::made_up_events::{Source, fields, put, utf8, utf16};

const METRICS: &str = "System.Diagnostics.Metrics";
const EVENT_COUNTERS: &str = "EventCounters";
const TEXT: Scalar = Scalar::Utf16String;

/// A kind of event.
struct Shape {
    provider: &'static str,
    event_id: u32,
    name: &'static str,
    fields: Vec<(&'static str, Scalar)>,
    /// Whether the fields are those of an object, as runtimes write event counters.
    is_nested: bool,
}

// The fields of events, for `fields`.
const MEAN: &str = "Name DisplayName Mean:f64 StandardDeviation:f64 Count:i32 Min:f64 Max:f64 IntervalSec:f32 \
    Series CounterType Metadata DisplayUnits";
const SUM: &str = "Name DisplayName DisplayRateTimeScale Increment:f64 IntervalSec:f32 Metadata Series \
    CounterType DisplayUnits";
const SESSION: &str = "sessionId";
const MESSAGE: &str = "sessionId errorMessage";
const INTERVAL: &str = "sessionId intervalStartTime:time intervalEndTime:time";
const INSTRUMENT: &str = "sessionId meterName meterVersion instrumentName instrumentType unit description \
    instrumentTags meterTags meterScopeHash instrumentId:i32";
const SERIES: &str = "sessionId meterName meterVersion instrumentName unit tags";
const RATE: &str = "rate value instrumentId:i32";
const LAST_VALUE: &str = "lastValue instrumentId:i32";
const QUANTILES: &str = "quantiles count:i32 sum:f64 instrumentId:i32";
const BUCKETS: &str =
    "scale:i32 sum:f64 count:i64 zeroCount:i64 minimum:f64 maximum:f64 buckets instrumentId:i32";
const OTHER_CONFIGURATION: &str = "clientId expectedMaxHistograms actualMaxHistograms expectedMaxTimeSeries \
    actualMaxTimeSeries expectedRefreshInterval actualRefreshInterval";
const LIBRARY_VERSION: &str = "major:i32 minor:i32 patch:i32";

/// Ids and fields of the events of [`METRICS`].
const METRICS_EVENTS: [(u32, &[&str]); 19] = [
    (1, &["Message"]),
    (2, &[INTERVAL]),
    (3, &[INTERVAL]),
    (4, &[SERIES, RATE]),
    (5, &[SERIES, LAST_VALUE]),
    (6, &[SERIES, QUANTILES]),
    (7, &[INSTRUMENT]),
    (8, &[INSTRUMENT]),
    (9, &[MESSAGE]),
    (10, &[SESSION]),
    (11, &[INSTRUMENT]),
    (12, &[SESSION]),
    (13, &[SESSION]),
    (14, &[MESSAGE]),
    (15, &["runningSessionId"]),
    (16, &[SERIES, RATE]),
    (17, &[OTHER_CONFIGURATION]),
    (18, &[LIBRARY_VERSION]),
    (19, &[SERIES, BUCKETS]),
];

impl Shape {
    /// An event of [`METRICS`].
    fn metrics((event_id, parts): (u32, &[&'static str])) -> Self {
        Self {
            provider: METRICS,
            event_id,
            name: "",
            fields: parts.iter().copied().flat_map(fields).collect(),
            is_nested: false,
        }
    }

    fn event_counters(
        provider: &'static str,
        event_id: u32,
        described: &'static str,
        is_nested: bool,
    ) -> Self {
        Self { provider, event_id, name: EVENT_COUNTERS, fields: fields(described).collect(), is_nested }
    }
}

/// All kinds of events: those of the runtime, those of earlier versions with fewer fields, and others that no runtime
/// writes. In V6 texts can be UTF-8 with any characters.
fn shapes(version: Version) -> Vec<Shape> {
    let mut shapes: Vec<_> = METRICS_EVENTS.into_iter().map(Shape::metrics).collect();
    shapes.extend([
        Shape::event_counters("System.Runtime", 2, MEAN, true),
        Shape::event_counters("System.Runtime", 3, SUM, true),
        Shape::event_counters("Shop", 7, MEAN, false),
        Shape::event_counters("Shop", 8, SUM, false),
    ]);
    // The first versions of the events lack the last fields.
    shapes.extend(METRICS_EVENTS.into_iter().map(Shape::metrics).map(|mut shape| {
        shape.fields.truncate(shape.fields.len().saturating_sub(2).max(1));
        shape
    }));
    // Events whose fields are in another order.
    shapes.extend([METRICS_EVENTS[3], METRICS_EVENTS[18]].into_iter().map(Shape::metrics).map(
        |mut shape| {
            shape.fields.reverse();
            shape
        },
    ));
    shapes.push(Shape::metrics((99, &[SESSION])));
    shapes.push(Shape { provider: "Shop", ..Shape::metrics((4, &[SERIES])) });
    if version == Version::V6 {
        let narrow = |mut shape: Shape| {
            let texts = shape.fields.iter_mut().filter(|(_, scalar)| *scalar == TEXT);
            texts.for_each(|(_, scalar)| *scalar = Scalar::Utf8CodeUnit);
            shape
        };
        let wide: [(u32, &[&'static str]); 2] = [(4, &[SERIES, RATE]), (7, &[INSTRUMENT])];
        shapes.extend(wide.map(Shape::metrics).map(narrow));
    }
    shapes
}

// Words of texts, for `Source::word`.
const SESSIONS: &str = "lab|SHARED|other|";
const NAMES: &str = "requests|Lab.Meter|System.Runtime|cpu-usage|Shop||REQUESTS|line\nbreak\r\t\u{1b}[31m|\
    温度 度|\u{202e}\u{1f600}\u{301}|a\"b\\c;d|a\0b|a|b\0c|/a,b|By/s";
const TAGS: &str = "|route=/a|route=/b,status=200|k=v,w|=|,=,|k:v,w:x|a=\0|温=度|k|k=v\n|a=b=c,d";
const DECIMALS: &str = "|80|0|-0|1.5|-7.25|1E+20|1E+999|4.9E-324|NaN|Infinity|-Infinity|∞|-∞|1,5|1 000|\
    1.000,5|٣|infinity|0x10";
const QUANTILE_TEXTS: &str = "0.5=12.3;0.95=20;0.99=21|0.5=NaN;0.95=Infinity||0.5=1,5;0.95=2,5|0.5|=|;|\
    0.5=1;|0.5=1=2|0.99=1;0.5=3";
const BUCKET_TEXTS: &str = "1, 2, 3||7|0, 0, 1|18446744073709551615, 1|-1|1.5|1,2;3|1, , 2";
const TYPES: &str = "Counter|UpDownCounter|Histogram|Gauge|ObservableCounter`1|ObservableUpDownCounter|\
    ObservableGauge|Own\n|";
const TIME_SCALES: &str = "00:00:01|00:01:00||1.02:03:04.5|x|-00:00:01";
const DOUBLES: [f64; 16] = [
    0.0,
    1.0,
    2.0,
    3.5,
    -1.0,
    1e-300,
    5e-324,
    f64::MAX,
    f64::MIN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    -0.0,
    4.0,
    1_000.25,
    f64::from_bits(0x7ff8_0000_0000_0001),
];

fn units(source: &mut Source<'_>, field: &str) -> Vec<u16> {
    let plain = match field {
        "sessionId" | "runningSessionId" | "clientId" => source.word(SESSIONS),
        "tags" | "Metadata" | "instrumentTags" | "meterTags" => source.word(TAGS),
        "rate" | "value" | "lastValue" => source.word(DECIMALS),
        "quantiles" => source.word(QUANTILE_TEXTS),
        "buckets" => source.word(BUCKET_TEXTS),
        "instrumentType" => source.word(TYPES),
        "DisplayRateTimeScale" => source.word(TIME_SCALES),
        _ => source.word(NAMES),
    };
    let mut units: Vec<u16> = plain.encode_utf16().collect();
    // In a few events, the text has an unusual addition.
    match source.byte() {
        250 => units.push(0xd800),
        251 => units.insert(0, 0xdc00),
        252 => units.extend([u16::from(b'9'); 70]),
        253 => units = vec![u16::from(b'n'); 300],
        254 => units = (0..source.byte()).map(|_| u16::from(source.byte())).collect(),
        255 => units = (0..8).map(|_| source.number() as u16).collect(),
        _ => {}
    }
    units
}

fn value(source: &mut Source<'_>, field: &str, scalar: Scalar, payload: &mut Vec<u8>) {
    match scalar {
        TEXT => {
            // A NUL would end the text.
            let units = units(source, field).into_iter().filter(|unit| *unit != 0).chain([0]);
            payload.extend(units.flat_map(u16::to_le_bytes));
        }
        Scalar::Utf8CodeUnit => {
            utf8(payload, &String::from_utf16_lossy(&units(source, field)));
        }
        Scalar::Double => payload.extend(source.choice(&DOUBLES).to_le_bytes()),
        Scalar::Single => payload.extend((source.choice(&DOUBLES) as f32).to_le_bytes()),
        Scalar::DateTime => payload.extend((u64::from(source.byte()) * 5_000_000).to_le_bytes()),
        Scalar::Int32 => payload.extend((source.number() as u32).to_le_bytes()),
        _ => payload.extend(source.number().to_le_bytes()),
    }
}

/// A description of V4 in which the fields are those of the object `Payload`.
fn nested_record(id: u32, shape: &Shape) -> Vec<u8> {
    const OBJECT: u32 = 1;
    let mut record = [&id.to_le_bytes()[..], &utf16(shape.provider), &shape.event_id.to_le_bytes()].concat();
    record.extend(utf16(shape.name));
    // Keywords, version and level, all zero.
    record.extend([0; 16]);
    let count = shape.fields.len() as u32;
    record.extend([1, OBJECT, count].into_iter().flat_map(u32::to_le_bytes));
    for (name, scalar) in &shape.fields {
        record.extend(u32::from(scalar.code()).to_le_bytes());
        record.extend(utf16(name));
    }
    record.extend(utf16("Payload"));
    record
}

/// Makes a trace of any bytes.
pub(super) fn trace(bytes: &[u8], version: Version) -> Vec<u8> {
    let (mut buf, mut out, shapes) = (vec![0; TraceWriter::BUFFER], Vec::new(), shapes(version));
    let (mut source, mut events) = (Source(bytes), Vec::new());
    while !source.0.is_empty() && events.len() < 300 {
        let place = usize::from(source.byte()) % shapes.len();
        let mut payload = Vec::new();
        for (name, scalar) in &shapes[place].fields {
            value(&mut source, name, *scalar, &mut payload);
        }
        if source.byte() == 0xff {
            payload.truncate(usize::from(source.byte()));
        }
        events.push((place, payload));
    }
    let mut writer = TraceWriter::new(&Trace::new(version), &mut buf).expect("a version that can be written");
    for (id, (place, shape)) in (1..).zip(shapes.iter().enumerate()) {
        if events.iter().all(|(used, _)| *used != place) {
            continue;
        }
        let (mut space, mut record) = ([0; 1_024], Vec::new());
        let metadata = if shape.is_nested {
            record = nested_record(id, shape);
            Metadata::decode(Version::V4, &record).expect("a valid record")
        } else {
            let mut metadata = Metadata::new(id, shape.provider, shape.event_id, shape.name);
            metadata.fields = Fields::build(&shape.fields, &mut space).expect("room for the fields");
            metadata
        };
        assert_eq!(metadata.problem, None, "{record:?}");
        put(&mut out, writer.describe(&metadata));
    }
    for (number, (place, payload)) in (1..).zip(&events) {
        let event = Event {
            metadata_id: *place as u32 + 1,
            sequence: number,
            thread: 1,
            capture_thread: 1,
            timestamp: u64::from(number) * 1_000,
            payload,
            ..Event::default()
        };
        put(&mut out, writer.event(&event));
    }
    put(&mut out, Ok(writer.finish()));
    out
}
