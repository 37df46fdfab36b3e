//! Summaries of a field of events: `--count-by` and `--hist`.
use std::collections::BTreeMap;
use std::io::{self, Write};

use nettrace::{Metadata, TraceEvent};
use serde::Serialize;

use super::{field, json};
use crate::run::Globals;
use crate::text::printable::{json_line, printable_name};

/// The values of a field of events, counted.
#[derive(Debug)]
pub(crate) struct EventSummary {
    field: String,
    kind: Kind,
    /// Events without the field, or without a number in it.
    missing: u64,
    /// Events that were not counted, because there are too many different values.
    dropped: u64,
}

#[derive(Debug)]
enum Kind {
    /// The number of events by value, as JSON.
    Counts(BTreeMap<String, u64>),
    Histogram(BTreeMap<Bucket, u64>),
}

/// A range of numbers from one power of two to the next. The range from `2^SMALLEST` on is 1, the one after it 2; ranges of
/// negative numbers are negative. 0 stands for zero and for smaller numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Bucket(i32);

/// The maximum number of different values that are counted.
const MAX_VALUES: usize = 100_000;
/// The length of the longest bar.
const BAR: usize = 50;

/// The number of events whose field has a value in this range, as JSON.
#[derive(Serialize)]
struct BucketRow {
    from: f64,
    to: f64,
    count: u64,
}

impl EventSummary {
    /// Returns the number of events by the value of a field.
    pub(crate) fn counts(field: &str) -> Self {
        Self::new(field, Kind::Counts(BTreeMap::new()))
    }

    /// Returns the number of events by the size of a field.
    pub(crate) fn histogram(field: &str) -> Self {
        Self::new(field, Kind::Histogram(BTreeMap::new()))
    }

    fn new(field: &str, kind: Kind) -> Self {
        Self { field: field.to_owned(), kind, missing: 0, dropped: 0 }
    }

    /// Counts an event.
    pub(crate) fn add<'e>(
        &mut self,
        event: &TraceEvent<'e>,
        metadata: Option<&Metadata<'e>>,
        payload: &'e [u8],
    ) {
        let value = field::value(event, metadata, payload, &self.field);
        let count = match &mut self.kind {
            Kind::Counts(counts) => {
                let Some(value) = value else { return increment(&mut self.missing) };
                let key = json::short_value(value);
                if counts.len() >= MAX_VALUES && !counts.contains_key(&key) {
                    return increment(&mut self.dropped);
                }
                counts.entry(key).or_default()
            }
            Kind::Histogram(buckets) => {
                let number = value.and_then(|value| value.as_f64()).filter(|number| number.is_finite());
                let Some(number) = number else { return increment(&mut self.missing) };
                buckets.entry(Bucket::of(number)).or_default()
            }
        };
        increment(count);
    }

    /// Writes the values with most events first, or the buckets in their order.
    pub(crate) fn write(&self, out: &mut dyn Write, globals: &Globals) -> io::Result<()> {
        match &self.kind {
            Kind::Counts(counts) => self.write_counts(counts, out, globals),
            Kind::Histogram(buckets) => self.write_buckets(buckets, out, globals),
        }
    }

    fn write_counts(
        &self,
        counts: &BTreeMap<String, u64>,
        out: &mut dyn Write,
        globals: &Globals,
    ) -> io::Result<()> {
        let mut rows: Vec<_> = counts.iter().collect();
        rows.sort_by_key(|(_, count)| core::cmp::Reverse(**count));
        if !globals.json {
            writeln!(out, "{:>10}  {}", "EVENTS", printable_name(&self.field))?;
        }
        for (key, count) in rows {
            if globals.json {
                writeln!(out, "{{\"value\":{key},\"count\":{count}}}")?;
            } else {
                writeln!(out, "{count:>10}  {}", json::shown(key))?;
            }
        }
        Ok(())
    }

    fn write_buckets(
        &self,
        buckets: &BTreeMap<Bucket, u64>,
        out: &mut dyn Write,
        globals: &Globals,
    ) -> io::Result<()> {
        let most = buckets.values().max().copied().unwrap_or_default().max(1);
        if !globals.json {
            writeln!(out, "{:>12} {:>12} {:>10}  {}", "FROM", "TO", "EVENTS", printable_name(&self.field))?;
        }
        for (bucket, count) in buckets {
            let (from, to) = bucket.range();
            if globals.json {
                writeln!(out, "{}", json_line(&BucketRow { from, to, count: *count }))?;
                continue;
            }
            let share = (*count as f64) / (most as f64);
            let bar = "#".repeat(bar_len(share));
            writeln!(out, "{:>12} {:>12} {count:>10}  {bar}", number(from), number(to))?;
        }
        Ok(())
    }

    /// Reports the events that are in no row.
    pub(crate) fn report(&self, globals: &Globals) {
        let what = match self.kind {
            Kind::Counts(_) => "have no field",
            Kind::Histogram(_) => "have no number in the field",
        };
        if let missing @ 1.. = self.missing {
            globals.note(&format!("{missing} events {what} {}", printable_name(&self.field)));
        }
        if let dropped @ 1.. = self.dropped {
            globals
                .note(&format!("{dropped} events are not counted: only the first {MAX_VALUES} values are"));
        }
    }
}

impl Bucket {
    /// The exponent of the smallest numbers that are not counted as zero.
    const SMALLEST: i32 = -64;

    fn of(number: f64) -> Self {
        // The exponent of the representation, which is the same for all numbers from a power of two to the next.
        let exponent = i32::try_from((number.to_bits() >> 52) & 0x7ff).unwrap_or_default();
        let size = exponent.saturating_sub(1023);
        if size < Self::SMALLEST {
            return Self(0);
        }
        let size = size.saturating_sub(Self::SMALLEST).saturating_add(1);
        Self(if number < 0.0 { size.saturating_neg() } else { size })
    }

    /// Returns the limits of the range. The limit with the smaller absolute value is part of the range, the other one
    /// is not.
    fn range(self) -> (f64, f64) {
        let power = |size: i32| f64::from(size.saturating_add(Self::SMALLEST).saturating_sub(1)).exp2();
        match self.0 {
            0 => (0.0, 0.0),
            size @ 1.. => (power(size), power(size.saturating_add(1))),
            size => {
                let size = size.saturating_neg();
                (-power(size.saturating_add(1)), -power(size))
            }
        }
    }
}

fn increment(count: &mut u64) {
    *count = count.saturating_add(1);
}

/// Returns how many characters of a bar show a share of the most frequent bucket: at least one.
fn bar_len(share: f64) -> usize {
    let is_shown = |len: &usize| (*len as f64) <= share * (BAR as f64);
    (1..=BAR).take_while(is_shown).last().unwrap_or(1)
}

/// Returns a power of two for a column.
fn number(number: f64) -> String {
    if number == 0.0 || (1e-4..1e9).contains(&number.abs()) {
        number.to_string()
    } else {
        format!("{number:.3e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets() {
        for (number, range) in [
            (0.0, (0.0, 0.0)),
            (-0.0, (0.0, 0.0)),
            (1.0, (1.0, 2.0)),
            (1.5, (1.0, 2.0)),
            (2.0, (2.0, 4.0)),
            (1023.0, (512.0, 1024.0)),
            (0.3, (0.25, 0.5)),
            (-3.0, (-4.0, -2.0)),
            (-2.0, (-4.0, -2.0)),
            (1e-300, (0.0, 0.0)),
        ] {
            assert_eq!(Bucket::of(number).range(), range, "{number}");
        }
        assert!(Bucket::of(f64::MAX).range().0 > 1e307);
        let numbers = [-5.0, -1.0, 0.0, 0.5, 1.0, 9.0];
        assert!(numbers.map(Bucket::of).is_sorted_by(|a, b| a < b));
        assert_eq!([0.0, 0.01, 0.5, 1.0].map(bar_len), [1, 1, 25, 50]);
        assert_eq!([0.0, 0.5, 1024.0, 1e12].map(number), ["0", "0.5", "1024", "1.000e12"]);
    }
}
