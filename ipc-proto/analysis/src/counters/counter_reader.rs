//! The reader of the samples of a trace, with the state of its sessions.
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use nettrace::{FileTime, Metadata, Str, TraceEvent};

use super::counted_processes::CountedProcesses;
use super::field_values::{FieldValues, Layouts, seconds};
use super::{
    CounterEvent, ExponentialHistogram, Instrument, InstrumentKind, Measurement, Problem, Sample, Selection,
    System,
};
use crate::event::name_list;

/// Reads samples of counters and instruments from the events of a trace, in the order of the stream.
///
/// ```
/// use nettrace_analysis::nettrace::{AssemblerStep, BytesOrder, EventAssembler, ReadOptions};
/// use nettrace_analysis::counters::{CounterEvent, CounterReader};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/counters/net8-meters.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::of_bytes(bytes, BytesOrder::Stream, ReadOptions::default());
/// let mut counters = CounterReader::new();
/// let mut samples = 0;
/// while let AssemblerStep::Event(event) = assembler.step() {
///     if let Some(CounterEvent::Sample(sample)) = counters.event(&event) {
///         println!("{} {} [{}] {:?}", sample.provider, sample.name, sample.tag_text, sample.value());
///         samples += 1;
///     }
/// }
/// assert_eq!(samples, 30);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The reader of a session that [`CounterPlan`](super::CounterPlan) has planned comes from its
/// [`reader`](super::CounterPlan::reader), which ignores what the session did not request. The runtime also sends to a
/// session the instruments of other sessions, which have other ids, and those that other clients of the shared session
/// selected. Event counters have no ids: the runtime has one timer for each provider, with the shortest interval that a
/// session requested. All sessions get the samples of that timer, and [`Sample::interval`] states its interval.
///
/// A trace can have several processes, whose state is separate. Nothing of a sample is stored, but for a number for each
/// series without an instrument id. The names of meters and the tags of instruments are stored, in at most about 4 MiB,
/// and the descriptions of at most 32 kinds of events, about 3 KiB each. Samples have no [`details`](Sample::details) of
/// more than 512 bytes.
#[derive(Debug, Clone, Default)]
pub struct CounterReader {
    /// The id of the session whose meters are read; `None` for all sessions.
    session: Option<String>,
    client: String,
    /// The counters and instruments to read; all if empty.
    selections: Vec<Selection>,
    prefers_meters: bool,
    processes: CountedProcesses,
    layouts: Layouts,
}

/// The ids of the events of `System.Diagnostics.Metrics`.
mod id {
    pub(super) const MESSAGE: u32 = 1;
    pub(super) const COLLECTION_START: u32 = 2;
    pub(super) const COLLECTION_STOP: u32 = 3;
    pub(super) const COUNTER: u32 = 4;
    pub(super) const GAUGE: u32 = 5;
    pub(super) const HISTOGRAM: u32 = 6;
    pub(super) const BEGIN: u32 = 7;
    pub(super) const END: u32 = 8;
    pub(super) const ERROR: u32 = 9;
    pub(super) const ENUMERATION_COMPLETE: u32 = 10;
    pub(super) const PUBLISHED: u32 = 11;
    pub(super) const TIME_SERIES_LIMIT: u32 = 12;
    pub(super) const HISTOGRAM_LIMIT: u32 = 13;
    pub(super) const CALLBACK_ERROR: u32 = 14;
    pub(super) const OTHER_SESSION: u32 = 15;
    pub(super) const UP_DOWN_COUNTER: u32 = 16;
    pub(super) const OTHER_CONFIGURATION: u32 = 17;
    pub(super) const VERSION: u32 = 18;
    pub(super) const EXPONENTIAL_HISTOGRAM: u32 = 19;
}

/// The subject of an event.
enum Kind {
    EventCounter,
    /// An instrument or its samples.
    Instrument,
    Session,
}

impl Kind {
    fn of(metadata: &Metadata<'_>) -> Option<Self> {
        if metadata.name == "EventCounters" {
            return Some(Self::EventCounter);
        }
        if metadata.provider != "System.Diagnostics.Metrics" {
            return None;
        }
        Some(match metadata.event_id {
            id::COUNTER
            | id::GAUGE
            | id::HISTOGRAM
            | id::UP_DOWN_COUNTER
            | id::EXPONENTIAL_HISTOGRAM
            | id::BEGIN
            | id::END
            | id::PUBLISHED => Self::Instrument,
            _ => Self::Session,
        })
    }
}

/// The fields of event counters in both shapes: with a mean, and with an increment. The first one decides whether a
/// counter is selected.
static COUNTER_FIELDS: [&str; 14] = name_list! {
    Name DisplayName DisplayRateTimeScale Increment Mean StandardDeviation Count Min Max IntervalSec Series
    CounterType Metadata DisplayUnits
};

/// The fields of instruments and their samples. The first [`INSTRUMENT_NAME`] decide whether an instrument is selected.
static METER_FIELDS: [&str; 23] = name_list! {
    sessionId meterName instrumentName meterVersion instrumentType unit description tags rate lastValue quantiles
    value scale sum count zeroCount minimum maximum buckets instrumentTags meterTags meterScopeHash instrumentId
};

/// How many of the first fields name a counter, and how many name a session and an instrument.
const COUNTER_NAME: usize = 1;
const INSTRUMENT_NAME: usize = 3;

static SESSION_FIELDS: [&str; 14] = name_list! {
    sessionId message errorMessage intervalStartTime intervalEndTime runningSessionId clientId expectedMaxHistograms
    expectedMaxTimeSeries expectedRefreshInterval major minor patch Message
};

impl CounterReader {
    /// Creates a reader of the counters of all sessions in a trace.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ignores meters that are reported for other sessions.
    #[must_use]
    pub fn for_session(self, session_id: &str, client_id: &str) -> Self {
        Self { session: Some(session_id.to_string()), client: client_id.to_string(), ..self }
    }

    /// Ignores counters and instruments that are in none of the selections. An empty slice selects everything.
    #[must_use]
    pub fn only(self, selections: &[Selection]) -> Self {
        Self { selections: selections.to_vec(), ..self }
    }

    /// Ignores the event counters of a provider, unless a selection names the counter or the system, as soon as a meter
    /// of the same name reports an instrument. Otherwise a program with both has each value twice.
    #[must_use]
    pub fn preferring_meters(self) -> Self {
        Self { prefers_meters: true, ..self }
    }

    /// Returns what the event states about counters and instruments, if anything. The same event can be passed again.
    pub fn event<'a>(&mut self, event: &TraceEvent<'a>) -> Option<CounterEvent<'a>> {
        let metadata = event.metadata()?;
        match Kind::of(&metadata)? {
            Kind::EventCounter => self.event_counter(event, &metadata),
            Kind::Instrument => self.instrument(event, &metadata),
            Kind::Session => self.of_session(event, &metadata),
        }
    }

    /// Returns whether [`event`](Self::event) returns something, in less time: samples are not decoded.
    pub fn has_event(&mut self, event: &TraceEvent<'_>) -> bool {
        let Some(metadata) = event.metadata() else { return false };
        match Kind::of(&metadata) {
            None => false,
            Some(Kind::EventCounter) => {
                let layouts = &mut self.layouts;
                let fields =
                    FieldValues::read_first(layouts, event, &metadata, &COUNTER_FIELDS, COUNTER_NAME);
                self.has_counter(event.process_id(), metadata.provider, fields.text("Name"))
            }
            Some(Kind::Instrument) => {
                let layouts = &mut self.layouts;
                let fields =
                    FieldValues::read_first(layouts, event, &metadata, &METER_FIELDS, INSTRUMENT_NAME);
                self.has_instrument(event.process_id(), &fields)
            }
            Some(Kind::Session) => self.of_session(event, &metadata).is_some(),
        }
    }

    fn has_counter(&mut self, process_id: Option<u64>, provider: Str<'_>, name: Str<'_>) -> bool {
        !name.is_empty() && self.is_selected(process_id, System::EventCounter, provider, name)
    }

    fn has_instrument<const N: usize>(
        &mut self,
        process_id: Option<u64>,
        fields: &FieldValues<'_, N>,
    ) -> bool {
        let (meter, name) = (fields.text("meterName"), fields.text("instrumentName"));
        self.is_own(fields.text("sessionId")) && self.is_selected(process_id, System::Meter, meter, name)
    }

    fn event_counter<'a>(
        &mut self,
        event: &TraceEvent<'a>,
        metadata: &Metadata<'a>,
    ) -> Option<CounterEvent<'a>> {
        let fields = FieldValues::read(&mut self.layouts, event, metadata, &COUNTER_FIELDS);
        let (provider, name, process_id) = (metadata.provider, fields.text("Name"), event.process_id());
        if !self.has_counter(process_id, provider, name) {
            return None;
        }
        let read = || {
            let measurement = if fields.float("Increment").is_ok() {
                Measurement::Sum {
                    increment: fields.float("Increment")?,
                    time_scale: seconds(fields.text("DisplayRateTimeScale")),
                }
            } else {
                Measurement::Mean {
                    mean: fields.float("Mean")?,
                    standard_deviation: fields.float("StandardDeviation")?,
                    count: fields.unsigned("Count").unwrap_or_default(),
                    min: fields.float("Min")?,
                    max: fields.float("Max")?,
                }
            };
            Ok(Sample {
                provider,
                name,
                display_name: fields.text("DisplayName"),
                unit: fields.text("DisplayUnits"),
                tag_text: fields.text("Metadata"),
                interval: fields.float("IntervalSec").ok(),
                ..Sample::of(event, System::EventCounter, measurement)
            })
        };
        Some(read().map_or_else(CounterEvent::Problem, CounterEvent::Sample))
    }

    fn is_selected(
        &mut self,
        process_id: Option<u64>,
        system: System,
        provider: Str<'_>,
        name: Str<'_>,
    ) -> bool {
        let is_replaced = self.prefers_meters
            && system == System::EventCounter
            && self.processes.has_meter(process_id, provider);
        let mut matching =
            self.selections.iter().filter(|selection| selection.contains(system, provider, name));
        if self.selections.is_empty() {
            return !is_replaced;
        }
        matching.any(|selection| !is_replaced || selection.name.is_some() || selection.system.is_some())
    }

    fn is_own(&self, session_id: Str<'_>) -> bool {
        self.session.as_deref().is_none_or(|own| session_id == *own)
    }

    fn instrument<'a>(
        &mut self,
        event: &TraceEvent<'a>,
        metadata: &Metadata<'a>,
    ) -> Option<CounterEvent<'a>> {
        let (event_id, process_id) = (metadata.event_id, event.process_id());
        let fields = FieldValues::read(&mut self.layouts, event, metadata, &METER_FIELDS);
        if !self.has_instrument(process_id, &fields) {
            return None;
        }
        let instrument_id = fields.unsigned("instrumentId").and_then(|id| u32::try_from(id).ok());
        let session_id = fields.text("sessionId");
        let instrument = Instrument {
            process_id,
            meter: fields.text("meterName"),
            meter_version: fields.text("meterVersion"),
            name: fields.text("instrumentName"),
            kind: InstrumentKind::of(fields.text("instrumentType")),
            unit: fields.text("unit"),
            description: fields.text("description"),
            instrument_tags: fields.text("instrumentTags"),
            meter_tags: fields.text("meterTags"),
            has_escaped_tags: metadata.version >= first_escaped_version(event_id),
            meter_scope_hash: fields.text("meterScopeHash"),
            id: instrument_id.filter(|id| *id != 0),
        };
        match event_id {
            id::BEGIN => {
                self.processes.begin(session_id, &instrument);
                return Some(CounterEvent::Begin(instrument));
            }
            id::END => {
                self.processes.end(session_id, &instrument);
                return Some(CounterEvent::End(instrument));
            }
            id::PUBLISHED => return Some(CounterEvent::Published(instrument)),
            _ => {}
        }
        let tag_text = fields.text("tags");
        let (instance, details) = self.processes.series(event, session_id, &instrument, tag_text);
        let since_start =
            event_id == id::UP_DOWN_COUNTER && !self.processes.is_observed(session_id, &instrument);
        let read = || {
            let measurement = match event_id {
                id::COUNTER => {
                    Measurement::Counter { delta: fields.decimal("rate")?, value: fields.decimal("value")? }
                }
                id::UP_DOWN_COUNTER => Measurement::UpDownCounter {
                    delta: fields.decimal("rate")?,
                    value: fields.decimal("value")?,
                    since_start,
                },
                id::GAUGE => Measurement::Gauge { value: fields.decimal("lastValue")? },
                id::HISTOGRAM => Measurement::Histogram {
                    quantiles: fields.quantiles("quantiles")?,
                    count: fields.unsigned("count"),
                    sum: fields.float("sum").ok(),
                },
                _ => Measurement::ExponentialHistogram(exponential(&fields)?),
            };
            Ok(Sample {
                provider: instrument.meter,
                provider_version: instrument.meter_version,
                name: instrument.name,
                unit: instrument.unit,
                tag_text,
                has_escaped_tags: instrument.has_escaped_tags,
                instrument_id: instrument.id,
                instance,
                details,
                interval: self.processes.interval(process_id),
                ..Sample::of(event, System::Meter, measurement)
            })
        };
        Some(read().map_or_else(CounterEvent::Problem, CounterEvent::Sample))
    }

    /// Reads the events about a session.
    fn of_session<'a>(
        &mut self,
        event: &TraceEvent<'a>,
        metadata: &Metadata<'a>,
    ) -> Option<CounterEvent<'a>> {
        let event_id = metadata.event_id;
        let fields = FieldValues::read(&mut self.layouts, event, metadata, &SESSION_FIELDS);
        let first =
            |names: [&str; 2]| names.map(|name| fields.text(name)).into_iter().find(|text| !text.is_empty());
        match event_id {
            id::MESSAGE => return first(["Message", "message"]).map(CounterEvent::Message),
            id::VERSION => {
                let part = |name| fields.signed(name).unwrap_or_default();
                return Some(CounterEvent::Version([part("major"), part("minor"), part("patch")]));
            }
            id::OTHER_SESSION => {
                let running = fields.text("runningSessionId");
                let is_foreign = self.session.is_some() && !self.is_own(running);
                return is_foreign.then_some(CounterEvent::Problem(Problem::OtherSession(running)));
            }
            id::OTHER_CONFIGURATION => {
                let is_own = self.session.is_none() || fields.text("clientId") == *self.client;
                let problem = Problem::OtherConfiguration {
                    max_histograms: fields.text("expectedMaxHistograms"),
                    max_time_series: fields.text("expectedMaxTimeSeries"),
                    interval: fields.text("expectedRefreshInterval"),
                };
                return is_own.then_some(CounterEvent::Problem(problem));
            }
            _ if !self.is_own(fields.text("sessionId")) => return None,
            _ => {}
        }
        let message = || first(["errorMessage", "message"]).unwrap_or_default();
        Some(match event_id {
            id::COLLECTION_START | id::COLLECTION_STOP => {
                let (from, to) = (fields.time("intervalStartTime")?, fields.time("intervalEndTime")?);
                let interval = to.checked_sub(from).map(|units| units as f64 / 1e7);
                self.processes.collect(event.process_id(), interval);
                let is_start = event_id == id::COLLECTION_START;
                CounterEvent::Interval { is_start, from: FileTime(from), to: FileTime(to) }
            }
            id::ENUMERATION_COMPLETE => CounterEvent::EnumerationComplete,
            id::ERROR => CounterEvent::Problem(Problem::Error(message())),
            id::TIME_SERIES_LIMIT => CounterEvent::Problem(Problem::TooManySeries),
            id::HISTOGRAM_LIMIT => CounterEvent::Problem(Problem::TooManyHistograms),
            id::CALLBACK_ERROR => CounterEvent::Problem(Problem::Callback(message())),
            _ => return None,
        })
    }
}

/// Returns the first version of an event in which the text of tags has escapes: one more than the version of .NET 10.
const fn first_escaped_version(event_id: u32) -> u32 {
    match event_id {
        id::BEGIN | id::END | id::PUBLISHED => 4,
        id::EXPONENTIAL_HISTOGRAM => 2,
        _ => 3,
    }
}

fn exponential<'a, const N: usize>(fields: &FieldValues<'a, N>) -> Result<ExponentialHistogram, Problem<'a>> {
    let scale = fields.signed("scale").ok_or(Problem::MissingField { field: "scale" })?;
    let count = |name| fields.unsigned(name).ok_or(Problem::MissingField { field: name });
    let (count, zero_count) = (count("count")?, count("zeroCount")?);
    let buckets = fields.list("buckets")?;
    let max = fields.float("maximum")?;
    let first_bucket = buckets.len().checked_sub(1).and_then(|before_last| {
        let last = ExponentialHistogram::bucket(scale, max)?;
        last.checked_sub(i32::try_from(before_last).ok()?)
    });
    Ok(ExponentialHistogram {
        scale,
        sum: fields.float("sum")?,
        count,
        zero_count,
        min: fields.float("minimum")?,
        max,
        first_bucket,
        buckets,
    })
}
