//! The identity of series: processes, tags in both forms, and the details of instruments with and without an id.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

mod runtime_events;

use std::collections::BTreeSet;

use nettrace::{Event, Fields, Metadata, Scalar, ThreadEntry, Trace, TraceWriter, Version};
use nettrace_analysis::counters::{CounterEvent, CounterReader, LatestSamples, OwnedSample};

use crate::runtime_events::each_event_of_stream;

const TEXT: Scalar = Scalar::Utf16String;

/// The events of the meters of some processes, as a trace of version 6.
#[derive(Default)]
struct MeterEvents {
    events: Vec<MeterEvent>,
}

struct MeterEvent {
    process: u64,
    id: u32,
    version: u32,
    fields: Vec<(&'static str, Scalar)>,
    payload: Vec<u8>,
}

/// The names of an instrument.
#[derive(Clone, Copy)]
struct Names {
    process: u64,
    version: &'static str,
    unit: &'static str,
    /// 0 for an instrument without an id.
    id: u32,
}

const NAMES: Names = Names { process: 1, version: "", unit: "", id: 0 };

impl MeterEvents {
    fn add(
        &mut self,
        process: u64,
        (id, version): (u32, u32),
        texts: &[(&'static str, &str)],
        numbers: &[(&'static str, u64)],
    ) {
        let mut payload = Vec::new();
        let mut fields: Vec<_> = texts.iter().map(|(name, _)| (*name, TEXT)).collect();
        for (_, text) in texts {
            payload.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        }
        for (name, number) in numbers {
            let is_time = name.contains("Time");
            fields.push((name, if is_time { Scalar::DateTime } else { Scalar::Int32 }));
            payload.extend(&number.to_le_bytes()[..if is_time { 8 } else { 4 }]);
        }
        self.events.push(MeterEvent { process, id, version, fields, payload });
    }

    fn interval(&mut self, process: u64, seconds: u64) -> &mut Self {
        let times = [("intervalStartTime", 0), ("intervalEndTime", seconds * 10_000_000)];
        self.add(process, (2, 0), &[("sessionId", "s")], &times);
        self
    }

    /// Adds the start (7) or the end (8) of an instrument with these tags, those of its meter and the hash of its scope.
    fn instrument(
        &mut self,
        event: (u32, u32),
        names: Names,
        [tags, meter_tags, hash]: [&str; 3],
    ) -> &mut Self {
        let texts = [
            ("sessionId", "s"),
            ("meterName", "M"),
            ("meterVersion", names.version),
            ("instrumentName", "hits"),
            ("instrumentType", "Counter"),
            ("unit", names.unit),
            ("description", ""),
            ("instrumentTags", tags),
            ("meterTags", meter_tags),
            ("meterScopeHash", hash),
        ];
        self.add(names.process, event, &texts, &[("instrumentId", names.id.into())]);
        self
    }

    /// Adds a sample of a counter.
    fn sample(&mut self, version: u32, names: Names, tags: &str, value: &str) -> &mut Self {
        let texts = [
            ("sessionId", "s"),
            ("meterName", "M"),
            ("meterVersion", names.version),
            ("instrumentName", "hits"),
            ("unit", names.unit),
            ("tags", tags),
            ("rate", "1"),
            ("value", value),
        ];
        self.add(names.process, (4, version), &texts, &[("instrumentId", names.id.into())]);
        self
    }

    fn samples(&self) -> Vec<OwnedSample> {
        let (mut buf, mut trace) = (vec![0; TraceWriter::BUFFER], Vec::new());
        let mut writer = TraceWriter::new(&Trace::new(Version::V6), &mut buf).unwrap();
        let processes: BTreeSet<u64> = self.events.iter().map(|event| event.process).collect();
        for process in processes {
            let entries = [ThreadEntry::ProcessId(process), ThreadEntry::ThreadId(7)];
            trace.extend_from_slice(&writer.thread(process, entries).unwrap());
        }
        for (id, MeterEvent { process, id: event_id, version, fields, payload }) in (1..).zip(&self.events) {
            let mut space = vec![0; 4096];
            let mut metadata = Metadata::new(id, "System.Diagnostics.Metrics", *event_id, "");
            metadata.version = *version;
            metadata.fields = Fields::build(fields, &mut space).unwrap();
            trace.extend_from_slice(&writer.describe(&metadata).unwrap());
            let event = Event {
                metadata_id: id,
                sequence: id,
                thread: *process,
                capture_thread: *process,
                timestamp: id.into(),
                payload,
                ..Event::default()
            };
            trace.extend_from_slice(&writer.event(&event).unwrap());
        }
        trace.extend_from_slice(&writer.finish());
        let (mut reader, mut samples) = (CounterReader::new().preferring_meters(), Vec::new());
        each_event_of_stream(&trace, |event| {
            if let Some(CounterEvent::Sample(sample)) = reader.event(event) {
                samples.push(OwnedSample::from(&sample));
                // The same event can be passed again.
                assert_eq!(reader.event(event), Some(CounterEvent::Sample(sample)));
            }
        });
        samples
    }

    /// Returns the keys of the samples. The numbers of equal keys are equal.
    fn series(&self) -> Vec<usize> {
        let mut keys = Vec::new();
        let place = |sample: &OwnedSample| {
            let mut key = String::new();
            sample.push_series_key(&mut key);
            keys.iter().position(|known| *known == key).unwrap_or_else(|| {
                keys.push(key);
                keys.len() - 1
            })
        };
        self.samples().iter().map(place).collect()
    }
}

fn tags(sample: &OwnedSample) -> Vec<(String, String)> {
    sample.sample().tags().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

#[test]
fn processes_have_a_state_of_their_own() {
    let (one, two) = (NAMES, Names { process: 5_000_000_000, ..NAMES });
    let mut events = MeterEvents::default();
    events.interval(one.process, 1).interval(two.process, 2);
    events.sample(1, one, "k=v", "1").sample(1, two, "k=v", "10").sample(1, one, "k=v", "2");
    let samples = events.samples();
    let found: Vec<_> = samples.iter().map(|sample| (sample.process_id, sample.interval)).collect();
    assert_eq!(found, [(Some(1), Some(1.0)), (Some(5_000_000_000), Some(2.0)), (Some(1), Some(1.0))]);
    let mut latest = LatestSamples::new(LatestSamples::DEFAULT_LIMIT);
    samples.iter().for_each(|sample| assert!(latest.insert(&sample.sample())));
    assert_eq!(latest.iter().count(), 2 + 1); // The third one is the second of its interval: another instrument.
}

#[test]
fn what_tells_series_apart() {
    let mut events = MeterEvents::default();
    let others = [
        NAMES,
        Names { version: "1.0", ..NAMES },
        Names { unit: "ms", ..NAMES },
        Names { id: 3, ..NAMES },
        Names { id: 4, ..NAMES },
        Names { process: 2, ..NAMES },
    ];
    for second in 1..3 {
        events.interval(1, second).interval(2, second);
        others
            .iter()
            .for_each(|names| _ = events.sample(2, *names, "k=v", "1").sample(2, *names, "k=w", "1"));
    }
    let expected: Vec<usize> = (0..12).chain(0..12).collect();
    assert_eq!(events.series(), expected);
}

/// Instruments that have an id have the details of their start.
#[test]
fn details_by_id() {
    let [one, two] = [1, 2].map(|id| Names { id, ..NAMES });
    let mut events = MeterEvents::default();
    events.instrument((7, 2), one, ["i=1", "m=1", ""]).instrument((7, 2), two, ["i=1", "m=2", "77"]);
    events.interval(1, 1).sample(2, one, "k=v", "1").sample(2, two, "k=v", "1");
    events.instrument((8, 2), one, ["i=1", "m=1", ""]);
    events.interval(1, 1).sample(2, two, "k=v", "1");
    let samples = events.samples();
    let details: Vec<_> = samples.iter().map(|sample| sample.details.clone().unwrap()).collect();
    let found =
        details.iter().map(|one| [&*one.instrument_tag_text, &*one.meter_tag_text, &*one.meter_scope_hash]);
    assert_eq!(found.collect::<Vec<_>>(), [["i=1", "m=1", ""], ["i=1", "m=2", "77"], ["i=1", "m=2", "77"]]);
    assert_eq!(events.series(), [0, 1, 1]);
    // The same id in another process is another instrument.
    events.interval(2, 1).sample(2, Names { process: 2, ..one }, "k=v", "1");
    assert_eq!(events.samples()[3].details, None);
}

/// .NET 8 sends no ids: instruments with the same names are told apart by their place in each interval.
#[test]
fn instruments_without_an_id() {
    let mut events = MeterEvents::default();
    let begin = |events: &mut MeterEvents, tags| _ = events.instrument((7, 1), NAMES, tags);
    begin(&mut events, ["", "m=1", ""]);
    // Another client joins the session, and the runtime repeats the start.
    begin(&mut events, ["", "m=1", ""]);
    let interval = |events: &mut MeterEvents, samples| {
        events.interval(1, 1);
        (0..samples).for_each(|_| _ = events.sample(1, NAMES, "k=v", "1"));
    };
    interval(&mut events, 1);
    interval(&mut events, 1);
    assert_eq!(events.series(), [0, 0]);
    assert_eq!(events.samples()[1].details.as_ref().unwrap().meter_tag_text, "m=1");
    // The samples do not state which of the two they are of: each is of another series than those before.
    begin(&mut events, ["", "m=2", ""]);
    interval(&mut events, 2);
    interval(&mut events, 2);
    assert_eq!(events.series(), [0, 0, 1, 2, 1, 2]);
    assert!(events.samples()[2..].iter().all(|sample| sample.details.is_none()));
    // After one of them has ended, the other one is neither.
    events.instrument((8, 1), NAMES, ["", "m=1", ""]);
    interval(&mut events, 1);
    interval(&mut events, 1);
    assert_eq!(events.series(), [0, 0, 1, 2, 1, 2, 3, 3]);
    assert_eq!(events.samples()[7].details.as_ref().unwrap().meter_tag_text, "m=2");
    // The end and the start of the same instrument.
    events.instrument((8, 1), NAMES, ["", "m=2", ""]);
    begin(&mut events, ["", "m=2", ""]);
    interval(&mut events, 1);
    assert_eq!(events.series(), [0, 0, 1, 2, 1, 2, 3, 3, 4]);
}

/// The versions of events after those of .NET 10 have escapes in their tags.
#[test]
fn escaped_tags_since_their_version() {
    let text = r"comma=a\,b\,c,equals=x\=1,back=C:\\new,end\,=\\";
    let mut events = MeterEvents::default();
    events.instrument((7, 4), Names { id: 1, ..NAMES }, [r"i=1\,2", r"m=a\=b", ""]);
    events.sample(3, Names { id: 1, ..NAMES }, text, "1").sample(
        2,
        Names { id: 2, ..NAMES },
        "path=C:\\temp\\,next=1",
        "1",
    );
    let samples = events.samples();
    let pairs = |pairs: &[(&str, &str)]| -> Vec<_> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let expected = [("comma", "a,b,c"), ("equals", "x=1"), ("back", "C:\\new"), ("end,", "\\")];
    assert_eq!(tags(&samples[0]), pairs(&expected));
    assert_eq!(tags(&samples[1]), pairs(&[("path", "C:\\temp\\"), ("next", "1")]));
    let details = samples[0].details.clone().unwrap();
    assert_eq!(details.instrument_tags().next().unwrap().1, "1,2");
    assert_eq!(details.meter_tags().next().unwrap().1, "a=b");
}

/// However many instruments begin and end, the memory of a reader has a limit, and samples are read.
#[test]
fn memory_has_a_limit() {
    let mut events = MeterEvents::default();
    for id in 1..8_000_u32 {
        let long = format!("i={id}{}", "x".repeat(450));
        events.instrument((7, 2), Names { id, ..NAMES }, [&long, "", ""]);
        events.sample(2, Names { id, ..NAMES }, "", "1");
    }
    let samples = events.samples();
    let stored = samples.iter().filter(|sample| sample.details.is_some()).count();
    assert!(samples.len() == 7_999 && (6_000..7_999).contains(&stored), "{stored}");
}

/// A trace has the tags of an instrument and of its meter once, and each sample repeats them.
#[test]
fn details_have_a_limit() {
    let mut events = MeterEvents::default();
    for (id, len) in [(1, 500), (2, 600), (0, 600)] {
        let long = "a=,".repeat(len / 6);
        let names = Names { id, ..NAMES };
        events.interval(1, 1).instrument((7, 2), names, [&long, &long, "7"]).sample(2, names, "", "1");
        events.instrument((8, 2), names, [&long, &long, "7"]);
    }
    let samples = events.samples();
    let found: Vec<_> = samples.iter().map(|sample| sample.details.is_some()).collect();
    assert_eq!(found, [true, false, false]);
    let details = samples[0].details.as_ref().unwrap();
    let (count, last) = (details.meter_tags().count(), details.meter_tags().last().unwrap());
    assert_eq!((count, last.1.matches("a=").count()), (16, 500 / 6 - 16));
}
