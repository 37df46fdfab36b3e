//! The dates of the times of a trace.
use core::fmt;

use serde::Serialize;

use super::rows::milliseconds_at;
use crate::run::Globals;
use crate::text::date::Zone;

/// Shows times of a trace as dates, if the user wants them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dates {
    /// `None` if the user wants times since the start of the trace.
    zone: Option<Zone>,
    /// The start of the trace in nanoseconds since 1970; `None` if the trace states no date.
    start: Option<i128>,
}

/// A date in a row: `None` if dates are not wanted, and null without a time or a date.
pub(crate) type DateField = Option<Option<String>>;

impl Dates {
    pub(crate) const fn new(zone: Option<Zone>, start: Option<i128>) -> Self {
        Self { zone, start }
    }

    /// Takes the start of the trace in nanoseconds since 1970, if the trace states it.
    pub(crate) const fn begin(&mut self, start: Option<i128>) {
        self.start = start;
    }

    /// Returns the date of a time since the start of the trace in nanoseconds, if dates are wanted and known.
    pub(crate) fn of(&self, nanoseconds: i64) -> Option<String> {
        self.zone.as_ref()?.date(self.start?.saturating_add(nanoseconds.into()), 3)
    }

    pub(crate) fn field(&self, nanoseconds: Option<i64>) -> DateField {
        self.zone.as_ref().map(|_| self.of(nanoseconds?))
    }

    /// Returns a time since the start of the trace in nanoseconds as a cell with its heading.
    pub(crate) fn cell(&self, nanoseconds: Option<i64>) -> (&'static str, String) {
        let heading = if self.of(0).is_some() { "START" } else { "START ms" };
        let time = |time| self.of(time).unwrap_or_else(|| format!("{:.3}", milliseconds_at(time)));
        (heading, nanoseconds.map_or_else(String::new, time))
    }

    /// Notes why times are not dates.
    pub(crate) fn report(&self, globals: &Globals) {
        if self.zone.is_some() && self.start.is_none() {
            globals.note(&format!("{NO_DATE}: times are since its start"));
        }
    }
}

pub(crate) const NO_DATE: &str = "the trace states no date that exists";

/// When a trace was recorded, and for how long.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RecordedSpan {
    /// The start of the trace in nanoseconds since 1970; `None` if the trace states no date that exists.
    pub(crate) start: Option<i128>,
    /// The end of the recording in nanoseconds since the start of the trace.
    pub(crate) end: i64,
}

/// The span as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct SpanRow {
    recorded: Option<String>,
    duration_ms: f64,
}

impl RecordedSpan {
    pub(crate) fn row(self, zone: &Zone) -> SpanRow {
        let recorded = self.start.and_then(|start| zone.date(start, 3));
        SpanRow { recorded, duration_ms: milliseconds_at(self.end.max(0)) }
    }
}

impl fmt::Display for SpanRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.recorded {
            Some(date) => write!(f, "{date}")?,
            None => write!(f, "({NO_DATE})")?,
        }
        write!(f, ", for {:.3} s", self.duration_ms / 1e3)
    }
}
