//! The property of the readers of counters: they agree with each other.
use std::collections::BTreeMap;

use nettrace::{Str, TraceEvent, Version};
use nettrace_analysis::counters::{
    CounterEvent, CounterReader, ExponentialHistogram, LatestSamples, Measurement, OwnedSample, Problem,
    Selection, System,
};

use super::made_up_counters::trace;
use super::traces::each_event;

/// Checks that readers of counters agree with each other, that a sample is unchanged after it was copied, and that
/// [`LatestSamples`] equals a map and keeps its limit.
pub fn counters(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let is_made_up = choice & 7 != 7;
    let version = if choice & 1 == 0 { Version::V4 } else { Version::V6 };
    let trace = if is_made_up { trace(bytes, version) } else { bytes.to_vec() };
    let samples = check_readers(&trace, is_made_up);
    for limit in [usize::MAX, usize::from(*choice) << 6] {
        check_latest(&trace, &samples, limit);
    }
}

/// A reader, the events that it must ignore, and the last intervals that it has returned.
struct Reading {
    reader: CounterReader,
    /// A reader that decides first whether an event is of interest, as streams of samples do.
    asking: CounterReader,
    session: Option<&'static str>,
    selections: Vec<Selection>,
    /// By process.
    intervals: BTreeMap<Option<u64>, Option<f64>>,
}

impl Reading {
    fn new(session: Option<&'static str>, selections: &[Selection], prefers_meters: bool) -> Self {
        let mut reader = CounterReader::new().only(selections);
        if let Some(session) = session {
            reader = reader.for_session(session, session);
        }
        if prefers_meters {
            reader = reader.preferring_meters();
        }
        Self {
            asking: reader.clone(),
            reader,
            session,
            selections: selections.to_vec(),
            intervals: BTreeMap::new(),
        }
    }

    fn event<'a>(&mut self, event: &TraceEvent<'a>) -> Option<CounterEvent<'a>> {
        let mut before = self.reader.clone();
        let found = self.reader.event(event);
        assert_eq!(before.has_event(event), found.is_some(), "{found:?}");
        let found_text = text(found.as_ref());
        assert_eq!(text(self.reader.event(event).as_ref()), found_text);
        let asked = if self.asking.has_event(event) { self.asking.event(event) } else { None };
        assert_eq!(text(asked.as_ref()), found_text);
        let instrument = match &found {
            Some(CounterEvent::Sample(sample)) => Some((sample.system, sample.provider, sample.name)),
            Some(CounterEvent::Begin(found) | CounterEvent::End(found) | CounterEvent::Published(found)) => {
                Some((System::Meter, found.meter, found.name))
            }
            _ => None,
        };
        if let Some((system, provider, name)) = instrument {
            let selects = |selection: &Selection| selection.contains(system, provider, name);
            assert!(self.selections.is_empty() || self.selections.iter().any(selects), "{found:?}");
            let session = event.field("sessionId").and_then(|value| value.as_str());
            let is_own = self.session.is_none_or(|own| session.is_none_or(|session| session == *own));
            assert!(system == System::EventCounter || is_own, "{found:?}");
        }
        match &found {
            Some(CounterEvent::Interval { from, to, .. }) => {
                let interval = to.0.checked_sub(from.0).map(|units| units as f64 / 1e7);
                self.intervals.insert(event.process_id(), interval);
            }
            Some(CounterEvent::Sample(sample)) if sample.system == System::Meter => {
                assert_eq!(sample.process_id, event.process_id());
                assert_eq!(sample.interval, self.intervals.get(&event.process_id()).copied().flatten());
            }
            _ => {}
        }
        found
    }
}

/// An event as a text that has every bit of its numbers.
fn text(event: Option<&CounterEvent<'_>>) -> String {
    match event {
        Some(CounterEvent::Sample(sample)) => sample_text(&OwnedSample::from(sample)),
        event => format!("{event:?}"),
    }
}

fn sample_text(sample: &OwnedSample) -> String {
    let bits = |number: Option<f64>| number.map(f64::to_bits);
    let numbers = match &sample.measurement {
        Measurement::Mean { mean, standard_deviation, count, min, max } => {
            let numbers = [*mean, *standard_deviation, *min, *max].map(f64::to_bits);
            format!("{numbers:?} {count}")
        }
        Measurement::Sum { increment, time_scale } => {
            format!("{:?}", [bits(Some(*increment)), bits(*time_scale)])
        }
        Measurement::Counter { delta, value } | Measurement::UpDownCounter { delta, value, .. } => {
            format!("{delta:?} {value:?}")
        }
        Measurement::Gauge { value } => format!("{value:?}"),
        Measurement::Histogram { quantiles, count, sum } => {
            let quantiles: Vec<_> =
                quantiles.iter().map(|one| [one.quantile, one.value].map(f64::to_bits)).collect();
            format!("{quantiles:?} {count:?} {:?}", bits(*sum))
        }
        Measurement::ExponentialHistogram(histogram) => {
            let ExponentialHistogram {
                scale, sum, count, zero_count, min, max, first_bucket, buckets, ..
            } = histogram;
            let numbers = [*sum, *min, *max].map(f64::to_bits);
            format!("{scale} {count} {zero_count} {numbers:?} {first_bucket:?} {buckets:?}")
        }
        other => panic!("{other:?}"),
    };
    let OwnedSample { nanoseconds, unix_nanoseconds, system, instrument_id, .. } = sample;
    format!(
        "{nanoseconds} {unix_nanoseconds:?} {system:?} {instrument_id:?} {:?} {} {numbers} {:?}",
        bits(sample.interval),
        sample.measurement.kind(),
        texts(sample)
    )
}

fn texts(sample: &OwnedSample) -> [&str; 6] {
    let OwnedSample { provider, provider_version, name, display_name, unit, tag_text, .. } = sample;
    [provider, provider_version, name, display_name, unit, tag_text].map(String::as_str)
}

/// Returns all samples. `check_fields` applies only to made-up events, whose fields are where it expects them.
fn check_readers(trace: &[u8], is_made_up: bool) -> Vec<OwnedSample> {
    let selections: Vec<Selection> =
        ["Lab.*", "Shop/requests", "EventCounters\\System.Runtime", "Meters\\a*", "system.runtime/CPU-usage"]
            .iter()
            .map(|text| text.parse().expect("a selection"))
            .collect();
    let mut open = Reading::new(None, &[], false);
    let mut narrow = [
        Reading::new(Some("lab"), &[], false),
        Reading::new(None, &selections, false),
        Reading::new(None, &[], true),
        Reading::new(Some("lab"), &selections, true),
    ];
    let mut samples = Vec::new();
    each_event(trace, false, |event| {
        let found = open.event(event);
        for reading in &mut narrow {
            check_part(reading.event(event), found.clone());
        }
        match found {
            Some(CounterEvent::Sample(sample)) => {
                let owned = OwnedSample::from(&sample);
                let borrowed = owned.sample();
                assert_eq!(sample_text(&OwnedSample::from(&borrowed)), sample_text(&owned));
                let texts_of_event = [
                    sample.provider,
                    sample.provider_version,
                    sample.name,
                    sample.display_name,
                    sample.unit,
                    sample.tag_text,
                ];
                assert_eq!(texts_of_event.map(|text| text.to_string()), texts(&owned));
                let tags = |tags: nettrace_analysis::counters::Tags<'_>| -> Vec<[String; 2]> {
                    tags.map(|(name, value)| [name.to_string(), value.to_string()]).collect()
                };
                assert_eq!(tags(sample.tags()), tags(borrowed.tags()));
                if is_made_up {
                    check_fields(event, &owned);
                }
                if let Measurement::ExponentialHistogram(histogram) = &sample.measurement {
                    check_histogram(histogram);
                }
                samples.push(owned);
            }
            Some(CounterEvent::Problem(problem)) => {
                assert!(!problem.to_string().contains(char::is_control), "{problem:?}");
            }
            _ => {}
        }
    });
    samples
}

/// Checks that the fields of a sample are those that a search by path finds.
fn check_fields(event: &TraceEvent<'_>, sample: &OwnedSample) {
    let field = |name: &str| event.field(name).or_else(|| event.field(&format!("Payload.{name}")));
    let text = |name: &str| field(name).and_then(|value| value.as_str()).unwrap_or(Str::EMPTY).to_string();
    let bits = |name: &str| field(name).and_then(|value| value.as_f64()).map(f64::to_bits);
    let names = match sample.system {
        System::EventCounter => ["Name", "DisplayName", "DisplayUnits", "Metadata"],
        System::Meter => ["instrumentName", "", "unit", "tags"],
    };
    let found = [&sample.name, &sample.display_name, &sample.unit, &sample.tag_text];
    assert_eq!(found.map(String::clone), names.map(text));
    match &sample.measurement {
        Measurement::Mean { mean, max, .. } => {
            assert_eq!([mean, max].map(|number| Some(number.to_bits())), ["Mean", "Max"].map(bits));
        }
        Measurement::Sum { increment, .. } => assert_eq!(Some(increment.to_bits()), bits("Increment")),
        Measurement::Gauge { value } => assert_eq!(value.is_none(), text("lastValue").is_empty()),
        Measurement::Counter { delta, .. } => assert_eq!(delta.is_none(), text("rate").is_empty()),
        Measurement::Histogram { sum, .. } => assert_eq!(sum.map(f64::to_bits), bits("sum")),
        Measurement::ExponentialHistogram(histogram) => {
            let numbers = [histogram.min, histogram.max].map(|number| Some(number.to_bits()));
            assert_eq!(numbers, ["minimum", "maximum"].map(bits));
        }
        _ => {}
    }
}

/// Checks that a narrow reader returns nothing else than the open one, which ignores no event. Two readers can know
/// other intervals. Only a reader of a session reports the sessions of others as a problem.
fn check_part(part: Option<CounterEvent<'_>>, whole: Option<CounterEvent<'_>>) {
    let without_interval = |event: Option<CounterEvent<'_>>| match event {
        Some(CounterEvent::Sample(mut sample)) if sample.system == System::Meter => {
            sample.interval = None;
            text(Some(&CounterEvent::Sample(sample)))
        }
        event => text(event.as_ref()),
    };
    if !matches!(part, None | Some(CounterEvent::Problem(Problem::OtherSession(_)))) {
        assert_eq!(without_interval(part), without_interval(whole));
    }
}

/// The last bucket is that of the largest measurement, and quantiles grow.
fn check_histogram(histogram: &ExponentialHistogram) {
    let ExponentialHistogram { scale, max, first_bucket, ref buckets, .. } = *histogram;
    if let Some(first) = first_bucket {
        let last = i64::from(first) + buckets.len() as i64 - 1;
        assert_eq!(ExponentialHistogram::bucket(scale, max).map(i64::from), Some(last));
    }
    let quantiles: Vec<f64> =
        [0.0, 0.5, 0.95, 1.0].into_iter().filter_map(|share| histogram.quantile(share)).collect();
    assert!(quantiles.is_sorted(), "{quantiles:?} {histogram:?}");
}

/// The parts that identify a series: process, system, kind, number, instance, texts, and the texts of the details.
type Key = (Option<u64>, System, &'static str, Option<u32>, u32, Vec<String>);

fn key(sample: &OwnedSample) -> Key {
    let OwnedSample { process_id, system, instrument_id, instance, .. } = *sample;
    let mut texts = texts(sample).map(str::to_owned).to_vec();
    texts.remove(3); // The name for people.
    texts.push(sample.has_escaped_tags.to_string());
    if let Some(details) = sample.details.as_ref().filter(|_| instrument_id.is_none()) {
        texts.extend(
            [&details.instrument_tag_text, &details.meter_tag_text, &details.meter_scope_hash]
                .map(String::clone),
        );
    }
    (process_id, system, sample.measurement.kind(), instrument_id, instance, texts)
}

/// Checks the store against a map.
fn check_latest(trace: &[u8], samples: &[OwnedSample], limit: usize) {
    let (mut latest, mut model, mut dropped) = (LatestSamples::new(limit), BTreeMap::new(), 0_u64);
    for sample in samples {
        let is_stored = latest.insert(&sample.sample());
        dropped += u64::from(!is_stored);
        assert_eq!(latest.dropped(), dropped);
        if is_stored {
            model.insert(key(sample), sample);
        }
        assert!(is_stored || limit < usize::MAX);
    }
    let least: usize = latest.iter().map(least_size).sum();
    assert!(least <= limit, "{least} of {limit}");
    assert_eq!(sorted(latest.iter()), sorted(model.values().copied()));
    // The end of an instrument ends its series, and no others.
    let (mut reader, mut ends) = (CounterReader::new(), 0);
    each_event(trace, false, |event| {
        let Some(CounterEvent::End(ended)) = reader.event(event) else { return };
        ends += 1;
        if ends > MAX_ENDS {
            return;
        }
        latest.remove(&ended);
        model.retain(|_, sample| {
            let has_names = ended.meter == *sample.provider && ended.name == *sample.name;
            let is_same = ended.meter_version == *sample.provider_version && ended.unit == *sample.unit;
            let is_ended = has_names
                && (sample.process_id, sample.instrument_id) == (ended.process_id, ended.id)
                && (ended.id.is_some() || is_same);
            sample.system == System::EventCounter || !is_ended
        });
        assert_eq!(sorted(latest.iter()), sorted(model.values().copied()));
    });
}

/// How many ends of instruments are checked, which takes time in proportion to the number of samples.
const MAX_ENDS: u32 = 3;

fn sorted<'a>(samples: impl Iterator<Item = &'a OwnedSample>) -> Vec<String> {
    let mut texts: Vec<_> = samples.map(sample_text).collect();
    texts.sort();
    texts
}

/// The bytes that a stored sample takes at least: its own, and its texts.
fn least_size(sample: &OwnedSample) -> usize {
    let numbers = match &sample.measurement {
        Measurement::Histogram { quantiles, .. } => quantiles.len() * 16,
        Measurement::ExponentialHistogram(histogram) => histogram.buckets.len() * 8,
        _ => 0,
    };
    size_of::<OwnedSample>() + numbers + texts(sample).map(str::len).iter().sum::<usize>()
}
