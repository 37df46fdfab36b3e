//! The content of one event: a sample, an instrument or a problem.
use core::fmt;

use nettrace::{FileTime, Str};

use super::Sample;
use crate::event::split_once;

/// The statement of an event about counters and instruments.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CounterEvent<'a> {
    /// A counter or an instrument measured something in an interval.
    Sample(Sample<'a>),
    /// The session reports this instrument from now on.
    Begin(Instrument<'a>),
    /// The session reports this instrument no longer: its meter was disposed, or the session ended.
    End(Instrument<'a>),
    /// The process has this instrument. Only a session that lists instruments gets this event.
    Published(Instrument<'a>),
    /// All instruments that exist have begun or were published.
    EnumerationComplete,
    /// The start or the stop of an interval of the meters. The samples of the interval come between the two events.
    Interval {
        /// Whether the event is the start, after which the samples come. Otherwise it is the stop, after the samples.
        is_start: bool,
        /// The time at which the interval began.
        from: FileTime,
        /// The time at which the interval ended.
        to: FileTime,
    },
    /// The version of System.Diagnostics.DiagnosticSource: major, minor, patch.
    Version([i32; 3]),
    /// A message for people who debug the program.
    Message(Str<'a>),
    /// Samples are missing, and why.
    Problem(Problem<'a>),
}

/// An instrument of a meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instrument<'a> {
    /// The id of the process; `None` if the trace states none.
    pub process_id: Option<u64>,
    /// The name of the meter.
    pub meter: Str<'a>,
    /// The version of the meter; empty if it has none.
    pub meter_version: Str<'a>,
    /// The name of the instrument.
    pub name: Str<'a>,
    /// The kind of instrument.
    pub kind: InstrumentKind<'a>,
    /// The unit; empty if the program states none.
    pub unit: Str<'a>,
    /// The description; empty if the program states none.
    pub description: Str<'a>,
    /// The tags of the instrument; see [`tags`](super::tags()).
    pub instrument_tags: Str<'a>,
    /// The tags of the meter; see [`tags`](super::tags()).
    pub meter_tags: Str<'a>,
    /// Whether the texts of the tags have escapes; see [`escaped_tags`](super::escaped_tags).
    pub has_escaped_tags: bool,
    /// The hash of the scope of the meter; empty if it has no scope.
    pub meter_scope_hash: Str<'a>,
    /// The number of the instrument, unique in its process. `None` before .NET 9.
    pub id: Option<u32>,
}

/// A kind of instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstrumentKind<'a> {
    /// A number that only grows.
    Counter,
    /// A number that grows and shrinks.
    UpDownCounter,
    /// Measures values, of which quantiles are reported.
    Histogram,
    /// Has a current value.
    Gauge,
    /// As [`Counter`](Self::Counter), read once in each interval.
    ObservableCounter,
    /// As [`UpDownCounter`](Self::UpDownCounter), read once in each interval.
    ObservableUpDownCounter,
    /// As [`Gauge`](Self::Gauge), read once in each interval.
    ObservableGauge,
    /// Any other kind, by the name of its type.
    Other(Str<'a>),
}

/// The kinds with the names of their types.
const KNOWN_KINDS: [(InstrumentKind<'static>, &str); 7] = [
    (InstrumentKind::Counter, "Counter"),
    (InstrumentKind::UpDownCounter, "UpDownCounter"),
    (InstrumentKind::Histogram, "Histogram"),
    (InstrumentKind::Gauge, "Gauge"),
    (InstrumentKind::ObservableCounter, "ObservableCounter"),
    (InstrumentKind::ObservableUpDownCounter, "ObservableUpDownCounter"),
    (InstrumentKind::ObservableGauge, "ObservableGauge"),
];

impl<'a> InstrumentKind<'a> {
    /// Returns the kind by the name of its type, with or without a generic suffix: ``Counter`1``, `Counter`.
    #[must_use]
    pub fn of(type_name: Str<'a>) -> Self {
        let (name, _) = split_once(type_name, b"`");
        let known = KNOWN_KINDS.iter().find(|(_, known)| name == **known);
        known.map_or(Self::Other(name), |(kind, _)| *kind)
    }
}

/// The name of the type, without its generic suffix.
impl fmt::Display for InstrumentKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Other(name) = self {
            return name.fmt(f);
        }
        let known = KNOWN_KINDS.iter().find(|(kind, _)| kind == self);
        f.write_str(known.map_or("", |(_, name)| name))
    }
}

/// Why samples are missing. Its `Display` is a sentence for people, without control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem<'a> {
    /// The process cannot report instruments.
    Error(Str<'a>),
    /// More series exist than the session reports: `MaxTimeSeries`.
    TooManySeries,
    /// More series of histograms exist than the session reports: `MaxHistograms`.
    TooManyHistograms,
    /// The callback of an observable instrument failed.
    Callback(Str<'a>),
    /// Another session, which is not shared, reads the meters of the process. The text is the id of that session.
    OtherSession(Str<'a>),
    /// The shared session has another configuration, which the fields state.
    OtherConfiguration {
        /// The limit of histograms of the shared session.
        max_histograms: Str<'a>,
        /// The limit of series of the shared session.
        max_time_series: Str<'a>,
        /// The seconds of an interval of the shared session.
        interval: Str<'a>,
    },
    /// A field is not a number in the invariant culture of .NET.
    NotANumber {
        /// The field.
        field: &'static str,
        /// The text of the field.
        text: Str<'a>,
    },
    /// An event lacks a field that all versions of it have.
    MissingField {
        /// The field.
        field: &'static str,
    },
}

impl fmt::Display for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Error(message) => write!(f, "the process cannot report instruments: {}", OneLine(message)),
            Self::TooManySeries => {
                f.write_str("the process has more series than the session reports; further ones are missing")
            }
            Self::TooManyHistograms => f.write_str(
                "the process has more histograms than the session reports; further ones are missing",
            ),
            Self::Callback(message) => {
                write!(f, "the callback of an observable instrument failed: {}", OneLine(message))
            }
            Self::OtherSession(id) => {
                write!(
                    f,
                    "another session reads the meters of the process, and only one can: {}",
                    OneLine(id)
                )
            }
            Self::OtherConfiguration { max_histograms, max_time_series, interval } => write!(
                f,
                "the shared session of the meters runs with another configuration: interval {} s, at most {} \
                 series and {} histograms",
                OneLine(interval),
                OneLine(max_time_series),
                OneLine(max_histograms)
            ),
            Self::NotANumber { field, text } => {
                write!(f, "the field {field} of an event is not a number: {}", OneLine(text))
            }
            Self::MissingField { field } => write!(f, "an event lacks the number {field}"),
        }
    }
}

/// Displays a text in one line, of at most 512 characters.
struct OneLine<'a>(Str<'a>);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LIMIT: usize = 512;
        for (n, c) in self.0.chars().enumerate() {
            if n == LIMIT {
                return f.write_str("…");
            }
            fmt::Write::write_char(f, if c.is_control() { ' ' } else { c })?;
        }
        Ok(())
    }
}
