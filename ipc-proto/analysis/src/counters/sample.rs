//! The measurement of a counter or an instrument in one interval.
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use nettrace::{Str, TraceEvent};

use super::{ExponentialHistogram, Number, System, Tags, escaped_tags, tags};

/// The measurement of a counter or an instrument in one interval.
///
/// `T` is the type of the texts: see [`Sample`] and [`OwnedSample`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SampleOf<T> {
    /// The nanoseconds from the start of the trace to the event.
    pub nanoseconds: i64,
    /// The nanoseconds from 1970-01-01 UTC to the event; `None` if the trace states no date that exists.
    pub unix_nanoseconds: Option<i128>,
    /// The id of the process; `None` if the trace states none.
    pub process_id: Option<u64>,
    /// The system: event counters or meters.
    pub system: System,
    /// The name of the event source or of the meter.
    pub provider: T,
    /// The version of the meter; empty for event counters.
    pub provider_version: T,
    /// The name of the counter or instrument.
    pub name: T,
    /// The name for people; empty for instruments, and for counters without one.
    pub display_name: T,
    /// The unit, as `B`, `%` or `{request}`; empty if the program states none.
    pub unit: T,
    /// The tags as text, as `route=/a,status=200`; see [`tags`](Self::tags). For event counters, the metadata of the
    /// counter, as `key:value,key:value`.
    pub tag_text: T,
    /// Whether the text of the tags has escapes.
    pub has_escaped_tags: bool,
    /// The number of the instrument, unique in its process. `None` for event counters and before .NET 9.
    pub instrument_id: Option<u32>,
    /// Tells apart the instruments without an id that have the same names, version, unit and tags: 0 for the first one.
    /// Instruments that begin after the end of such an instrument have other numbers.
    pub instance: u32,
    /// The tags of the instrument and its meter; `None` if they have none or more than 512 bytes, or if several
    /// instruments could be meant.
    pub details: Option<Arc<InstrumentDetails>>,
    /// The length of the interval in seconds. `None` if the trace does not state it, as at its start.
    pub interval: Option<f64>,
    /// The numbers.
    pub measurement: Measurement,
}

/// A sample with the texts of its event, which can have any characters.
pub type Sample<'a> = SampleOf<Str<'a>>;

/// A sample with texts of its own; invalid characters are U+FFFD.
pub type OwnedSample = SampleOf<String>;

impl From<&Sample<'_>> for OwnedSample {
    fn from(sample: &Sample<'_>) -> Self {
        sample.with_texts(Str::to_string)
    }
}

impl OwnedSample {
    /// Returns the sample with borrowed texts.
    #[must_use]
    pub fn sample(&self) -> Sample<'_> {
        self.with_texts(|text| (&**text).into())
    }
}

impl<T> SampleOf<T> {
    fn with_texts<'s, U>(&'s self, text: impl Fn(&'s T) -> U) -> SampleOf<U> {
        SampleOf {
            nanoseconds: self.nanoseconds,
            unix_nanoseconds: self.unix_nanoseconds,
            process_id: self.process_id,
            system: self.system,
            provider: text(&self.provider),
            provider_version: text(&self.provider_version),
            name: text(&self.name),
            display_name: text(&self.display_name),
            unit: text(&self.unit),
            tag_text: text(&self.tag_text),
            has_escaped_tags: self.has_escaped_tags,
            instrument_id: self.instrument_id,
            instance: self.instance,
            details: self.details.clone(),
            interval: self.interval,
            measurement: self.measurement.clone(),
        }
    }

    /// Returns the main number: the mean, the increment, or the value since the start of the process. `None` for
    /// histograms, and if the event states none. [`Measurement::number`] does not round whole numbers.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        self.measurement.value()
    }

    /// Returns the change for each second of the interval, for counters and instruments that count.
    ///
    /// `None` for means, gauges and histograms, if there was no measurement, and if the length of the interval is
    /// unknown or 0.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        self.measurement.rate(self.interval)
    }
}

impl<'a> Sample<'a> {
    /// Returns a sample without names.
    pub(super) fn of(event: &TraceEvent<'_>, system: System, measurement: Measurement) -> Self {
        let [provider, provider_version, name, display_name, unit, tag_text] = [Str::EMPTY; 6];
        Self {
            nanoseconds: event.nanoseconds(),
            unix_nanoseconds: event.unix_nanoseconds(),
            process_id: event.process_id(),
            system,
            provider,
            provider_version,
            name,
            display_name,
            unit,
            tag_text,
            has_escaped_tags: false,
            instrument_id: None,
            instance: 0,
            details: None,
            interval: None,
            measurement,
        }
    }

    /// Returns the tags: names and values. See [`Tags`] for texts that have several readings.
    #[must_use]
    pub fn tags(&self) -> Tags<'a> {
        if self.has_escaped_tags { escaped_tags(self.tag_text) } else { tags(self.system, self.tag_text) }
    }
}

/// The details that distinguish an instrument from others with the same names. Its samples do not repeat them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct InstrumentDetails {
    /// The tags of the instrument as text.
    pub instrument_tag_text: String,
    /// The tags of the meter as text.
    pub meter_tag_text: String,
    /// The hash of the scope of the meter; empty if it has no scope.
    pub meter_scope_hash: String,
    /// Whether the texts of the tags have escapes.
    pub has_escaped_tags: bool,
}

impl InstrumentDetails {
    /// The maximum number of tags of an instrument and of a meter: each sample repeats them.
    const MAX_TAGS: usize = 16;

    /// Returns the tags of the instrument, at most 16: the value of the last one is the rest of the text.
    #[must_use]
    pub fn instrument_tags(&self) -> Tags<'_> {
        self.tags(&self.instrument_tag_text)
    }

    /// Returns the tags of the meter, at most 16: the value of the last one is the rest of the text.
    #[must_use]
    pub fn meter_tags(&self) -> Tags<'_> {
        self.tags(&self.meter_tag_text)
    }

    fn tags<'a>(&self, text: &'a str) -> Tags<'a> {
        let all =
            if self.has_escaped_tags { escaped_tags(text.into()) } else { tags(System::Meter, text.into()) };
        all.at_most(Self::MAX_TAGS)
    }
}

/// The numbers of a [`Sample`].
///
/// All numbers are as in the event, including NaN and infinities. `None` stands for an empty text, which means that
/// there was no measurement in the interval.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Measurement {
    /// An event counter that measures: `EventCounter`, `PollingCounter`.
    Mean {
        /// The mean of the measurements.
        mean: f64,
        /// The standard deviation of the measurements.
        standard_deviation: f64,
        /// The number of measurements; 1 for a `PollingCounter`.
        count: u64,
        /// The smallest measurement; infinity if there were none.
        min: f64,
        /// The largest measurement; negative infinity if there were none.
        max: f64,
    },
    /// An event counter that counts: `IncrementingEventCounter`, `IncrementingPollingCounter`.
    Sum {
        /// The change in the interval. The first one covers the time since the counter was enabled.
        increment: f64,
        /// The seconds of the time unit in which the program wants the rate to be displayed.
        time_scale: Option<f64>,
    },
    /// An instrument that only grows: `Counter`, `ObservableCounter`.
    Counter {
        /// The change in the interval.
        delta: Option<Number>,
        /// The sum since the start of the process or of the session. `None` before .NET 8.
        value: Option<Number>,
    },
    /// An instrument that grows and shrinks: `UpDownCounter`, `ObservableUpDownCounter`.
    UpDownCounter {
        /// The change in the interval.
        delta: Option<Number>,
        /// The sum: see `since_start`. `None` before .NET 8.
        value: Option<Number>,
        /// Whether `value` is the change since the start of the session: a runtime does not report what happened before.
        /// Otherwise it is the current value: of the meter `System.Runtime`, and of an `ObservableUpDownCounter` whose
        /// start is in the trace.
        since_start: bool,
    },
    /// An instrument with a current value: `Gauge`, `ObservableGauge`.
    Gauge {
        /// The last value.
        value: Option<Number>,
    },
    /// A histogram of the interval.
    Histogram {
        /// The quantiles in the order of the event, as 0.5, 0.95 and 0.99; empty if there were no measurements.
        quantiles: Vec<Quantile>,
        /// The number of measurements. `None` before .NET 8.
        count: Option<u64>,
        /// The sum of the measurements. `None` before .NET 8.
        sum: Option<f64>,
    },
    /// A histogram with buckets; .NET 10, on request.
    ExponentialHistogram(ExponentialHistogram),
}

impl Measurement {
    /// Returns the name of the kind in machine formats, as `up_down_counter`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Mean { .. } => "mean",
            Self::Sum { .. } => "sum",
            Self::Counter { .. } => "counter",
            Self::UpDownCounter { .. } => "up_down_counter",
            Self::Gauge { .. } => "gauge",
            Self::Histogram { .. } => "histogram",
            Self::ExponentialHistogram(_) => "exponential_histogram",
        }
    }

    /// Returns the main number as a float; see [`Sample::value`].
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        self.number().map(Number::as_f64)
    }

    /// Returns the main number; see [`Sample::value`].
    #[must_use]
    pub const fn number(&self) -> Option<Number> {
        match self {
            Self::Mean { mean, .. } => Some(Number::Float(*mean)),
            Self::Sum { increment, .. } => Some(Number::Float(*increment)),
            Self::Counter { value, .. } | Self::UpDownCounter { value, .. } | Self::Gauge { value } => *value,
            Self::Histogram { .. } | Self::ExponentialHistogram(_) => None,
        }
    }

    /// Returns the change for each second of an interval; see [`Sample::rate`].
    #[must_use]
    pub fn rate(&self, interval: Option<f64>) -> Option<f64> {
        let delta = match *self {
            Self::Sum { increment, .. } => increment,
            Self::Counter { delta, .. } | Self::UpDownCounter { delta, .. } => delta?.as_f64(),
            _ => return None,
        };
        interval.filter(|seconds| *seconds > 0.0).map(|seconds| delta / seconds)
    }
}

/// A quantile of a histogram: 95 % of the measurements are at most the value of the quantile 0.95.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantile {
    /// The share of the measurements, between 0 and 1.
    pub quantile: f64,
    /// The measurement.
    pub value: f64,
}
