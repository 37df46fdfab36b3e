//! The identity of series in `dotnet-ipc counters`: processes, tags and details, in every output and in conditions.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::PathBuf;

use nettrace::{Event, Fields, Metadata, Scalar, ThreadEntry, Trace, TraceWriter, Version};
use serde_json::{Value, json};

use crate::tool::{Ran, run, tool};
use crate::traces::{put, utf16};

const TEXT: Scalar = Scalar::Utf16String;

/// The events of the meters of some processes, one each 10 ms.
#[derive(Default)]
pub(crate) struct MeterEvents(Vec<MeterEvent>);

struct MeterEvent {
    process: u64,
    provider: &'static str,
    id: u32,
    version: u32,
    fields: Vec<(&'static str, Scalar)>,
    payload: Vec<u8>,
}

/// The parts of the name of an instrument.
#[derive(Clone, Copy)]
pub(crate) struct Instrument<'a> {
    pub(crate) process: u64,
    pub(crate) version: &'static str,
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    /// 0 for an instrument without an id.
    pub(crate) id: u32,
    pub(crate) tags: &'a str,
    pub(crate) meter_tags: &'static str,
    pub(crate) scope_hash: &'static str,
}

pub(crate) const HITS: Instrument<'_> = Instrument {
    process: 1,
    version: "",
    name: "hits",
    unit: "",
    id: 0,
    tags: "",
    meter_tags: "",
    scope_hash: "",
};

impl MeterEvents {
    fn add(
        &mut self,
        process: u64,
        (id, version): (u32, u32),
        texts: &[(&'static str, &str)],
        numbers: &[(&'static str, Scalar, u64)],
    ) -> &mut Self {
        let (mut fields, mut payload) = (Vec::new(), Vec::new());
        for (name, text) in texts {
            fields.push((*name, TEXT));
            payload.extend(utf16(text));
        }
        for (name, scalar, number) in numbers {
            fields.push((*name, *scalar));
            let len = if *scalar == Scalar::Int32 { 4 } else { 8 };
            payload.extend(&number.to_le_bytes()[..len]);
        }
        self.0.push(MeterEvent {
            process,
            provider: "System.Diagnostics.Metrics",
            id,
            version,
            fields,
            payload,
        });
        self
    }

    fn interval(&mut self, process: u64) -> &mut Self {
        let times = [("intervalStartTime", 0), ("intervalEndTime", 10_000_000)];
        let times = times.map(|(name, time)| (name, Scalar::DateTime, time));
        self.add(process, (2, 0), &[("sessionId", "s")], &times)
    }

    /// Adds the start (7) or the end (8) of an instrument.
    pub(crate) fn instrument(&mut self, event: u32, of: Instrument<'_>) -> &mut Self {
        let texts = [
            ("sessionId", "s"),
            ("meterName", "M"),
            ("meterVersion", of.version),
            ("instrumentName", of.name),
            ("instrumentType", "Counter"),
            ("unit", of.unit),
            ("description", ""),
            ("instrumentTags", of.tags),
            ("meterTags", of.meter_tags),
            ("meterScopeHash", of.scope_hash),
        ];
        self.add(of.process, (event, 2), &texts, &[("instrumentId", Scalar::Int32, of.id.into())])
    }

    /// Adds a sample of a counter with this value, in an event of this version.
    pub(crate) fn sample(&mut self, version: u32, of: Instrument<'_>, tags: &str, value: &str) -> &mut Self {
        let texts = [
            ("sessionId", "s"),
            ("meterName", "M"),
            ("meterVersion", of.version),
            ("instrumentName", of.name),
            ("unit", of.unit),
            ("tags", tags),
            ("rate", value),
            ("value", value),
        ];
        self.add(of.process, (4, version), &texts, &[("instrumentId", Scalar::Int32, of.id.into())])
    }

    /// Adds a sample of a histogram with these quantiles, as `0.5=1;0.95=2`.
    pub(crate) fn quantiles(&mut self, of: Instrument<'_>, tags: &str, quantiles: &str) -> &mut Self {
        let texts = [
            ("sessionId", "s"),
            ("meterName", "M"),
            ("instrumentName", of.name),
            ("unit", of.unit),
            ("tags", tags),
            ("quantiles", quantiles),
        ];
        self.add(of.process, (6, 1), &texts, &[("instrumentId", Scalar::Int32, of.id.into())])
    }

    /// Adds a sample of a gauge.
    fn gauge(&mut self, of: Instrument<'_>, tags: &str, value: &str) -> &mut Self {
        let texts = [
            ("sessionId", "s"),
            ("meterName", "M"),
            ("meterVersion", of.version),
            ("instrumentName", of.name),
            ("unit", of.unit),
            ("tags", tags),
            ("lastValue", value),
        ];
        self.add(of.process, (5, 1), &texts, &[])
    }

    /// Adds a sample of an event counter that counts.
    fn increment(&mut self, name: &str, increment: f64) -> &mut Self {
        let texts = [("Name", name), ("DisplayName", name)];
        let increment = increment.to_bits();
        self.add(1, (9, 0), &texts, &[("Increment", Scalar::Double, increment)]);
        self.0.last_mut().unwrap().provider = "Source";
        self
    }

    /// Gives the last event counter this metadata.
    fn tagged(&mut self, metadata: &str) -> &mut Self {
        let event = self.0.last_mut().unwrap();
        event.fields.insert(0, ("Metadata", TEXT));
        event.payload.splice(0..0, utf16(metadata));
        self
    }

    /// Writes a trace of version 6, which is also read by the parser of Prometheus: see the stage `exporters`.
    fn write(&self, name: &str) -> String {
        self.write_in("counter-series", name)
    }

    /// Writes a trace of version 6 to a folder of temporary files.
    pub(crate) fn write_in(&self, folder: &str, name: &str) -> String {
        let (mut buf, mut trace) = (vec![0; TraceWriter::BUFFER], Vec::new());
        let header = Trace { frequency: 1_000_000_000, ..Trace::new(Version::V6) };
        let mut writer = TraceWriter::new(&header, &mut buf).unwrap();
        for process in self.0.iter().map(|event| event.process).collect::<BTreeSet<u64>>() {
            let entries = [ThreadEntry::ProcessId(process), ThreadEntry::ThreadId(7)];
            trace.extend_from_slice(&writer.thread(process, entries).unwrap());
        }
        let mut sequences: BTreeMap<u64, u32> = BTreeMap::new();
        for (id, event) in (1..).zip(&self.0) {
            let sequence = sequences.entry(event.process).or_default();
            *sequence += 1;
            let mut space = vec![0; 4096];
            let event_name = if event.provider == "Source" { "EventCounters" } else { "" };
            let mut metadata = Metadata::new(id, event.provider, event.id, event_name);
            metadata.version = event.version;
            metadata.fields = Fields::build(&event.fields, &mut space).unwrap();
            put!(trace, writer.describe(&metadata));
            let event = Event {
                metadata_id: id,
                sequence: *sequence,
                thread: event.process,
                capture_thread: event.process,
                timestamp: u64::from(id) * 10_000_000,
                payload: &event.payload,
                ..Event::default()
            };
            put!(trace, writer.event(&event));
        }
        trace.extend_from_slice(&writer.finish());
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder);
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{name}.nettrace"));
        fs::write(&path, trace).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// Returns the names of the lines for people, without time and number.
fn names(file: &str) -> BTreeSet<String> {
    let ran = run(&["counters", "--file", file]).well();
    let name = |line: &str| {
        let (_, rest) = line.split_once(' ').unwrap();
        let (process, name) = rest.split_once(' ').unwrap();
        let end = name.find("] ").map_or_else(|| name.find(' ').unwrap(), |end| end + 1);
        format!("{process} {}", &name[..end])
    };
    ran.text().lines().map(name).collect()
}

fn prometheus(file: &str) -> Vec<String> {
    let ran = run(&["counters", "--file", file, "--format", "prometheus"]).well();
    ran.text().lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

fn csv_names(file: &str) -> BTreeSet<String> {
    let ran = run(&["counters", "--file", file, "--csv"]).well();
    let mut csv = csv::Reader::from_reader(ran.text().as_bytes());
    csv.records().map(|row| format!("{} {}", &row.as_ref().unwrap()[2], &row.as_ref().unwrap()[5])).collect()
}

#[test]
fn two_processes() {
    let two = Instrument { process: 5_000_000_000, ..HITS };
    let mut events = MeterEvents::default();
    for value in ["1", "2"] {
        events.interval(HITS.process).sample(1, HITS, "k=v", value);
        events.interval(two.process).sample(1, two, "k=v", &format!("{value}000"));
    }
    let file = events.write("two-processes");
    let found = run(&["counters", "--file", &file, "--json"]).well();
    let found: Vec<_> =
        found.lines().iter().map(|line| (line["process_id"].clone(), line["value"].clone())).collect();
    let [one, other] = [json!(1), json!(5_000_000_000_u64)];
    let expected = [(one.clone(), 1.0), (other.clone(), 1000.0), (one, 2.0), (other, 2000.0)];
    assert_eq!(found, expected.map(|(id, value)| (id, json!(value))));
    assert_eq!(names(&file), ["[1] M/hits[k=v]", "[5000000000] M/hits[k=v]"].map(str::to_owned).into());
    assert_eq!(csv_names(&file).len(), 2);
    let expected = [
        r#"hits_total{otel_scope_name="M",process_id="1",k="v"} 2"#,
        r#"hits_total{otel_scope_name="M",process_id="5000000000",k="v"} 2000"#,
    ];
    assert_eq!(prometheus(&file), expected);
    let request = run(&["counters", "--file", &file, "--format", "otlp-json"]).well().json();
    assert_eq!(request["resourceMetrics"].as_array().unwrap().len(), 2);
    // A condition must hold in one process.
    let until = |condition: &str| run(&["counters", "--file", &file, "--until", condition]).status;
    assert_eq!(until("M/hits == 2 and M/hits == 1000"), Some(4));
    assert_eq!(until("M/hits == 1000"), Some(0));
    let only = run(&["counters", "--file", &file, "--process", "1", "--csv"]).well();
    assert!(
        only.text().starts_with("Timestamp,Provider,Counter Name,Counter Type,Mean/Increment\n"),
        "{only:?}"
    );
    assert_eq!(only.text().lines().count(), 3);
    run(&["counters", "--file", &file, "--process", "7"]).fails(9, "no event of process 7");
    run(&["counters", "4242", "--process", "7"]).fails(2, "--process selects one process of a trace");
}

/// Series that differ in one detail, with ids and without, and how each is named.
#[test]
fn details_tell_series_apart() {
    let one = Instrument { id: 1, tags: "i=1", meter_tags: "m=1", ..HITS };
    let instruments = [
        one,
        Instrument { id: 2, tags: "i=2", ..one },
        Instrument { id: 3, meter_tags: "m=2", ..one },
        Instrument { id: 4, scope_hash: "77", ..one },
        Instrument { id: 5, version: "2.0", ..one },
        Instrument { id: 6, unit: "ms", ..one },
        Instrument { id: 7, ..one },
        Instrument { name: "other", version: "1", ..HITS },
        Instrument { name: "other", version: "2", ..HITS },
        Instrument { name: "other", version: "2", unit: "s", ..HITS },
    ];
    let mut events = MeterEvents::default();
    instruments.iter().for_each(|of| _ = events.instrument(7, *of));
    for _ in 0..2 {
        events.interval(1);
        for (value, of) in (1..).zip(&instruments) {
            events.sample(2, *of, "k=v", &format!("{value}"));
        }
    }
    let file = events.write("details");
    let text = names(&file);
    assert_eq!(text.len(), instruments.len(), "{text:#?}");
    assert!(
        text.contains("[1] M/hits[k=v,i=1,m=2]") && text.contains("[1] M/hits[k=v,i=1,m=1,instrument_id=7]"),
        "{text:#?}"
    );
    assert_eq!(csv_names(&file).len(), instruments.len());
    let lines = prometheus(&file);
    assert_eq!(lines.len(), instruments.len(), "{lines:#?}");
    assert!(lines[0].contains(r#"otel_scope_m="1",k="v",i="1""#), "{lines:#?}");
    let lines = run(&["counters", "--file", &file, "--json"]).well().lines();
    let scope = lines.iter().find(|line| line["value"] == 4.0).unwrap();
    assert_eq!(scope["meter_scope_hash"], "77");
    assert_eq!(
        [&scope["instrument_tags"], &scope["meter_tags"]],
        [&json!({ "i": "1" }), &json!({ "m": "1" })]
    );
    let request = run(&["counters", "--file", &file, "--format", "otlp-json"]).well().json();
    let points: BTreeSet<String> = request["resourceMetrics"][0]["scopeMetrics"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|scope| scope["metrics"].as_array().unwrap().iter().map(move |metric| (scope, metric)))
        .flat_map(|(scope, metric)| {
            let points = metric["sum"]["dataPoints"].as_array().unwrap();
            points.iter().map(move |point| {
                format!("{} {} {} {}", scope["scope"], metric["name"], metric["unit"], point["attributes"])
            })
        })
        .collect();
    assert_eq!(points.len(), instruments.len(), "{points:#?}");
    for (value, series) in [
        (2, "M/hits[i=2]"),
        (3, "M/hits[k=v,m=2]"),
        (4, "M/hits[meter_scope_hash=77]"),
        (5, "M/hits[meter_version=2.0]"),
        (6, "M/hits[unit=ms]"),
        (7, "M/hits[instrument_id=7]"),
        (9, "M/other[meter_version=2]"),
    ] {
        let shown = run(&["counters", "--file", &file, series, "--json"]).well().lines();
        assert!(shown.iter().any(|line| line["value"] == f64::from(value)), "{series}");
        assert!(shown.len() <= 4, "{series}: {shown:#?}");
        let until = run(&["counters", "--file", &file, "--until", &format!("{series} == {value}")]);
        assert_eq!(until.status, Some(0), "{until:?}");
        let until = run(&["counters", "--file", &file, "--until", &format!("{series} == 1")]);
        assert_eq!(until.status, Some(4), "{until:?}");
    }
}

/// Each sample would repeat the tags of its instrument. A process states an instrument for each session, and the note
/// comes once.
#[test]
fn long_tags_of_an_instrument_are_left_out_with_a_note() {
    let [fits, long] = [510, 511].map(|len| format!("i={}", "x".repeat(len)));
    let one = Instrument { id: 1, tags: &fits, ..HITS };
    let two = Instrument { id: 2, name: "two", tags: &long, ..HITS };
    let three = Instrument { id: 3, name: "three", meter_tags: "m=1", tags: &fits, ..HITS };
    let mut events = MeterEvents::default();
    for of in [one, two, three, one, two, three] {
        events.instrument(7, of);
    }
    events.interval(1);
    for of in [one, two, three] {
        events.sample(2, of, "", "1");
    }
    let file = events.write("long");
    let ran = run(&["counters", "--file", &file, "--json"]);
    let notes: Vec<&str> = ran.stderr.lines().collect();
    let note = |name: &str| {
        format!(
            r#"{{"note":"process 1: {name}: its tags and those of its meter are left out, because they have more than 512 bytes"}}"#
        )
    };
    assert_eq!(notes, [note("M/two"), note("M/three")]);
    let lines = ran.lines();
    let tags: Vec<_> = lines.iter().map(|line| line["instrument_tags"]["i"].as_str().map(str::len)).collect();
    assert_eq!((ran.status, tags), (Some(0), vec![Some(510), None, None]));
}

/// .NET 8 sends no ids, so that two instruments whose meters have other tags are told apart only by their place.
#[test]
fn twins_without_an_id() {
    let one = Instrument { meter_tags: "m=1", ..HITS };
    let two = Instrument { meter_tags: "m=2", ..HITS };
    let mut events = MeterEvents::default();
    events.instrument(7, one).instrument(7, two);
    for _ in 0..3 {
        // The two samples of an interval are closer than those of two intervals.
        events.interval(1).sample(1, one, "k=v", "1").sample(1, two, "k=v", "1000");
    }
    let file = events.write("twins");
    assert_eq!(names(&file).len(), 2);
    assert_eq!(csv_names(&file).len(), 2);
    let lines = prometheus(&file);
    assert!(lines.len() == 2 && lines[0].ends_with(" 1") && lines[1].ends_with(" 1000"), "{lines:?}");
    assert_eq!(run(&["counters", "--file", &file, "--until", "M/hits[instance=1] == 1"]).status, Some(4));
}

/// Gauges and histograms without an id are neither added up nor lost: each has its place in every output.
#[test]
fn twins_that_are_gauges_and_histograms() {
    let twins = ["m=1", "m=2"].map(|meter_tags| Instrument { name: "queue", meter_tags, ..HITS });
    let sizes = twins.map(|of| Instrument { name: "size", ..of });
    let mut events = MeterEvents::default();
    twins.into_iter().chain(sizes).for_each(|of| _ = events.instrument(7, of));
    for _ in 0..3 {
        events.interval(1).gauge(twins[0], "k=v", "3").gauge(twins[1], "k=v", "5");
        events.quantiles(sizes[0], "k=v", "0.5=10;0.95=20").quantiles(sizes[1], "k=v", "0.5=70;0.95=80");
    }
    let file = events.write("twin-gauges");
    assert_eq!((names(&file).len(), csv_names(&file).len()), (4, 6));
    let labels = r#"otel_scope_name="M",process_id="1",k="v""#;
    let lines = prometheus(&file);
    for (other, [queue, half, most]) in [("", [3, 10, 20]), (r#",instance="1""#, [5, 70, 80])] {
        for line in [
            format!("queue{{{labels}{other}}} {queue}"),
            format!(r#"size{{{labels}{other},quantile="0.5"}} {half}"#),
            format!(r#"size{{{labels}{other},quantile="0.95"}} {most}"#),
        ] {
            assert!(lines.contains(&line), "{line}: {lines:#?}");
        }
    }
}

/// Labels of a series that has ended are not those of a later one.
#[test]
fn an_ended_series_keeps_its_labels() {
    let [one, two, three] = [1, 2, 3].map(|id| Instrument { id, ..HITS });
    let mut events = MeterEvents::default();
    events
        .instrument(7, one)
        .interval(1)
        .sample(2, one, "k=v", "1")
        .instrument(7, two)
        .sample(2, two, "k=v", "2");
    let both = prometheus(&events.write("ended-both"));
    assert!(
        both.len() == 2 && !both[0].contains("instrument_id") && both[1].contains(r#"instrument_id="2""#)
    );
    events
        .instrument(8, one)
        .instrument(7, three)
        .interval(1)
        .sample(2, two, "k=v", "3")
        .sample(2, three, "k=v", "4");
    let after = prometheus(&events.write("ended-after"));
    let expected = [("2", "3"), ("3", "4")].map(|(id, value)| {
        format!(r#"hits_total{{otel_scope_name="M",process_id="1",k="v",instrument_id="{id}"}} {value}"#)
    });
    assert_eq!(after, expected);
}

#[test]
fn escaped_tags() {
    let text = r"comma=a\,b\,c,equals=x\=1,quote=\\ ";
    let file = MeterEvents::default().interval(1).sample(3, HITS, text, "2").write("escaped");
    let tags = json!({ "comma": "a,b,c", "equals": "x=1", "quote": "\\ " });
    let lines = run(&["counters", "--file", &file, "--json"]).well().lines();
    assert_eq!(lines[0]["tags"], tags);
    let text = run(&["counters", "--file", &file]).well().into_text();
    assert!(text.contains("M/hits[comma=a,b,c,equals=x=1,quote=\\ ] 2"), "{text}");
    assert!(csv_names(&file).first().unwrap().contains(r"[comma=a,b,c;equals=x=1;quote=\ ]"));
    assert!(prometheus(&file)[0].contains(r#"comma="a,b,c",equals="x=1",quote="\\ ""#));
    for (condition, status) in [
        (r#"M/hits[comma="a,b,c"] > 1"#, 0),
        (r#"value(M/hits[comma="a,b,c",equals=x=1]) > 1 and M/hits["equals"="x=1"] < 3"#, 0),
        (r#"M/hits[quote="\\ "] > 1"#, 0),
        (r#"M/hits[comma="a,b"] > 1"#, 4),
    ] {
        let ran = run(&["counters", "--file", &file, "--until", condition]);
        assert_eq!(ran.status, Some(status), "{condition}: {ran:?}");
    }
    for (bad, why) in [
        (r#"M/hits[comma="a,b,c] > 1"#, "a quote is missing"),
        (r#"M/hits[comma="a"b] > 1"#, "must follow a quoted text"),
        ("M/hits[comma=a > 1", "a `]` is missing"),
        ("M/hits[comma] > 1", "a tag is TAG=VALUE"),
        ("M > 1", "the name of a counter is missing"),
        ("p95(M/hits > 1", "a `)` is missing"),
    ] {
        run(&["counters", "--file", &file, "--until", bad]).fails(2, why);
    }
}

/// Names and tags that become equal in Prometheus, and numbers that are none.
#[test]
fn odd_names_and_numbers() {
    let mut events = MeterEvents::default();
    let dotted = Instrument { name: "one.two", ..HITS };
    let dashed = Instrument { name: "one-two", ..HITS };
    events
        .interval(1)
        .sample(2, dotted, "k.1=v", "1")
        .sample(2, dashed, "k.1=v", "2")
        .sample(2, dashed, "k-1=v", "3");
    events.sample(2, HITS, "", "NaN").sample(2, HITS, "k=v", "Infinity").sample(2, HITS, "k=w", "-1");
    events
        .increment("up", 1.0)
        .increment("up", f64::NAN)
        .increment("up", -5.0)
        .increment("up", f64::INFINITY);
    events.increment("up", 2.0);
    let file = events.write("odd");
    let lines = prometheus(&file);
    let number = |part: &str| {
        let line =
            lines.iter().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}: {lines:#?}"));
        line.rsplit_once(' ').unwrap().1.to_owned()
    };
    assert_eq!(lines.iter().filter(|line| line.starts_with("one_two_total{")).count(), 3);
    assert_eq!(number("dotnet_source_up_total"), "3");
    let [none, infinite, negative] = [r#""1"}"#, r#"k="v"}"#, r#"k="w"}"#].map(|part| {
        let line = lines.iter().find(|line| line.starts_with("hits_total") && line.contains(part)).unwrap();
        line.rsplit_once(' ').unwrap().1
    });
    assert_eq!([none, infinite, negative], ["NaN", "+Inf", "-1"]);
    let json = run(&["counters", "--file", &file, "--json"]).well().lines();
    let values: Vec<&Value> = json.iter().map(|line| &line["value"]).collect();
    assert!(values.contains(&&json!("NaN")) && values.contains(&&json!("Infinity")), "{values:?}");
    let csv = run(&["counters", "--file", &file, "--csv"]).well().into_text();
    assert!(csv.contains(",NaN,1\n") && csv.contains(",Infinity,1\n"), "{csv}");
    let request = run(&["counters", "--file", &file, "--format", "otlp-json"]).well();
    assert!(
        request.text().contains(r#""asDouble":"NaN""#) && request.text().contains(r#""isMonotonic":false"#)
    );
}

/// The metadata of an event counter are its tags, in every output that has tags.
#[test]
fn tags_of_event_counters() {
    let mut events = MeterEvents::default();
    events.increment("up", 1.0).tagged("host:a,zone:b");
    let file = events.write("event-counter-tags");
    let json = run(&["counters", "--file", &file, "--json"]).well().lines();
    assert_eq!(json[0]["tags"], json!({ "host": "a", "zone": "b" }));
    let lines = prometheus(&file);
    assert!(lines.iter().any(|line| line.contains(r#",host="a",zone="b"} 1"#)), "{lines:#?}");
    let request = run(&["counters", "--file", &file, "--format", "otlp-json"]).well().into_text();
    assert!(request.contains(r#"{"key":"host","value":{"stringValue":"a"}}"#), "{request}");
}

#[test]
fn the_form_of_dotnet_counters() {
    let file = MeterEvents::default().increment("up", 1.0).write("form");
    let args = ["counters", "--file", &file, "Source[up,down]"];
    run(&args).fails(2, "this is the form of dotnet-counters; write Source/up Source/down");
}

/// Numbers that a float would round are exact in every output.
#[test]
fn whole_numbers() {
    let mut events = MeterEvents::default();
    let texts =
        ["1701254400123", "9007199254740993", "-9223372036854775808", "79228162514264337593543950335"];
    events.interval(1);
    for (text, tags) in texts.into_iter().zip(["k=a", "k=b", "k=c", "k=d"]) {
        events.sample(2, HITS, tags, text);
    }
    let file = events.write("whole");
    let json = run(&["counters", "--file", &file, "--json"]).well().lines();
    let values: Vec<&Value> = json.iter().map(|line| &line["value"]).collect();
    assert_eq!(*values[0], json!(1_701_254_400_123.0));
    assert_eq!(values[1..], texts[1..]);
    let csv = run(&["counters", "--file", &file, "--csv"]).well().into_text();
    let text = run(&["counters", "--file", &file]).well().into_text();
    let lines = prometheus(&file);
    for number in &texts {
        assert!(csv.contains(&format!(",{number},1\n")), "{number}: {csv}");
        assert!(text.replace(',', "").contains(&format!("] {number}")), "{number}: {text}");
        assert!(lines.iter().any(|line| line.ends_with(&format!(" {number}"))), "{number}: {lines:#?}");
    }
    let until = |condition: &str| run(&["counters", "--file", &file, "--until", condition]).status;
    assert_eq!(until("M/hits == 9007199254740992"), Some(4));
    assert_eq!(until("M/hits == 9007199254740993"), Some(0));
    let request = run(&["counters", "--file", &file, "--format", "otlp-json"]).well().into_text();
    assert!(request.contains(r#""asInt":"9007199254740993""#), "{request}");
    assert!(request.contains(r#""asInt":"-9223372036854775808""#), "{request}");
}

/// The reader of the output ends before the condition holds.
#[test]
fn a_reader_that_leaves() {
    let mut events = MeterEvents::default();
    (0..20_000).for_each(|value| _ = events.sample(2, HITS, "k=v", &value.to_string()));
    let file = events.write("reader");
    let mut command = tool(&["counters", "--file", &file, "--until", "M/hits > 1e9"]);
    let mut child = command.spawn().unwrap();
    let mut first = [0; 64];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut first).unwrap();
    drop(stdout);
    let mut error = String::new();
    child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    let ran = Ran { status: child.wait().unwrap().code(), stdout: Vec::new(), stderr: error };
    ran.fails(4, "'M/hits > 1e9' did not hold before the reader of the output ended");
}
