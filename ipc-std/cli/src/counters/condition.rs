//! `Condition`: a condition of `counters --until`, and its parser.
use core::fmt;
use core::time::Duration;

use dotnet_ipc_sans_io::syntax::durations;
use nettrace_analysis::counters::{Measurement, Number, OwnedSample};

use super::series_filter::SeriesFilter;
use crate::args::comparison::Comparison;

/// A condition: comparisons that must all hold in the same process.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Condition {
    text: String,
    pub(super) terms: Vec<Term>,
}

/// A comparison of a counter: `rate(PROVIDER/NAME[TAGS]) > 80 for 10s`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    part: Part,
    pub(super) series: SeriesFilter,
    comparison: Comparison,
    number: Number,
    hold: Duration,
}

/// The number of a sample that is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Value,
    Rate,
    Count,
    Sum,
    Min,
    Max,
    Quantile(f64),
}

/// Parses `[PART(]PROVIDER/NAME[TAGS][)] OP NUMBER [for DURATION]`, several joined by ` and `.
pub(crate) fn parse(text: &str) -> Result<Condition, String> {
    let (mut terms, mut rest) = (Vec::new(), text);
    loop {
        let (term, after) = term(rest).map_err(|why| {
            format!(
                "not a condition such as 'System.Runtime/cpu-usage > 80 for 10s' or \
                 'p95(My.Meter/latency[host=a]) >= 0.5': {why}"
            )
        })?;
        terms.push(term);
        match after {
            Some(after) => rest = after,
            None => return Ok(Condition { text: text.to_owned(), terms }),
        }
    }
}

/// Splits off a term. Returns it with the text after the ` and ` that follows it, if any.
fn term(text: &str) -> Result<(Term, Option<&str>), String> {
    let text = text.trim_start();
    let part = text.split_once('(').filter(|(before, _)| !before.contains(['/', '[', '<', '>', '=', '!']));
    let (part, series, rest) = match part {
        Some((part, inner)) => {
            let part = parse_part(part.trim()).ok_or_else(|| format!("no number has the name {part:?}"))?;
            let (series, rest) = SeriesFilter::split(inner, &[')'])?;
            (part, series, rest.trim_start().strip_prefix(')').ok_or("a `)` is missing")?)
        }
        None => {
            let (series, rest) = SeriesFilter::split(text, &['<', '>', '=', '!'])?;
            (Part::Value, series, rest)
        }
    };
    if series.selection.name.is_none() {
        return Err("the name of a counter is missing: PROVIDER/NAME".to_owned());
    }
    let (comparison, rest) = Comparison::split(rest.trim_start()).ok_or("a comparison is missing")?;
    let (rest, after) = match rest.split_once(" and ") {
        Some((rest, after)) => (rest, Some(after)),
        None => (rest, None),
    };
    let (number, hold) = match rest.split_once(" for ") {
        Some((number, hold)) => (number, durations::parse(hold.trim()).map_err(|e| e.to_string())?),
        None => (rest, Duration::ZERO),
    };
    let number = number.trim();
    let parsed = number.parse::<Number>().ok().filter(|number| !number.as_f64().is_nan());
    let number = parsed.ok_or_else(|| format!("{number:?} is no number"))?;
    Ok((Term { part, series, comparison, number, hold }, after))
}

fn parse_part(text: &str) -> Option<Part> {
    Some(match text {
        "value" => Part::Value,
        "rate" => Part::Rate,
        "count" => Part::Count,
        "sum" => Part::Sum,
        "min" => Part::Min,
        "max" => Part::Max,
        _ => {
            let percent = text.strip_prefix('p')?.parse::<f64>().ok()?;
            Part::Quantile(percent / 100.0).check()?
        }
    })
}

impl Part {
    fn check(self) -> Option<Self> {
        match self {
            Self::Quantile(share) if !(0.0..=1.0).contains(&share) => None,
            part => Some(part),
        }
    }

    /// Returns the number of a sample; `None` if it has none at this time.
    fn of(self, sample: &OwnedSample) -> Option<Number> {
        let float = match (self, &sample.measurement) {
            (Self::Value, measurement) => return measurement.number(),
            // Without measurements, the runtime reports the limits of floating-point numbers as minimum and maximum.
            (Self::Min | Self::Max, Measurement::Mean { count: 0, .. }) => None,
            (Self::Min | Self::Max, Measurement::ExponentialHistogram(histogram)) if histogram.count == 0 => {
                None
            }
            (Self::Rate, measurement) => measurement.rate(sample.interval),
            (Self::Count, Measurement::Mean { count, .. }) => return Some((*count).into()),
            (Self::Count, Measurement::Histogram { count, .. }) => return count.map(Number::from),
            (Self::Count, Measurement::ExponentialHistogram(histogram)) => {
                return Some(histogram.count.into());
            }
            (Self::Sum, Measurement::Histogram { sum, .. }) => *sum,
            (Self::Sum, Measurement::ExponentialHistogram(histogram)) => Some(histogram.sum),
            (Self::Min, Measurement::Mean { min, .. }) => Some(*min),
            (Self::Min, Measurement::ExponentialHistogram(histogram)) => Some(histogram.min),
            (Self::Max, Measurement::Mean { max, .. }) => Some(*max),
            (Self::Max, Measurement::ExponentialHistogram(histogram)) => Some(histogram.max),
            (Self::Quantile(share), Measurement::Histogram { quantiles, .. }) => {
                let found = quantiles.iter().find(|one| (one.quantile - share).abs() < 1e-9);
                found.map(|one| one.value)
            }
            (Self::Quantile(share), Measurement::ExponentialHistogram(histogram)) => {
                histogram.quantile(share)
            }
            _ => None,
        };
        float.map(Number::Float)
    }

    /// Returns why no sample of this kind has the number.
    fn contradiction(self, measurement: &Measurement) -> Option<&'static str> {
        let is_mean = matches!(measurement, Measurement::Mean { .. });
        let is_exponential = matches!(measurement, Measurement::ExponentialHistogram(_));
        let is_histogram = is_exponential || matches!(measurement, Measurement::Histogram { .. });
        let counts = matches!(
            measurement,
            Measurement::Sum { .. } | Measurement::Counter { .. } | Measurement::UpDownCounter { .. }
        );
        let quantile_is_missing = |share: f64| match measurement {
            Measurement::Histogram { quantiles, .. } if !quantiles.is_empty() => {
                !quantiles.iter().any(|one| (one.quantile - share).abs() < 1e-9)
            }
            _ => false,
        };
        match self {
            Self::Value if is_histogram => {
                Some("a histogram has no value; use p50(…), p95(…), p99(…), count(…) or sum(…)")
            }
            Self::Rate if !counts => Some("only what counts has a rate"),
            Self::Count if !is_mean && !is_histogram => Some("only means and histograms have a count"),
            Self::Sum if !is_histogram => Some("only histograms have a sum"),
            Self::Min | Self::Max if !is_mean && !is_exponential => {
                Some("only means and histograms with buckets have a minimum and a maximum")
            }
            Self::Quantile(_) if !is_histogram => Some("only histograms have percentiles"),
            Self::Quantile(share) if quantile_is_missing(share) => {
                Some("the runtime reports p50, p95 and p99")
            }
            _ => None,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Term {
    /// Returns the nanoseconds for which the comparison must hold.
    pub(super) fn hold(&self) -> i128 {
        i128::try_from(self.hold.as_nanos()).unwrap_or(i128::MAX)
    }

    /// Returns whether the comparison holds for a sample. NaN differs from every number.
    pub(super) fn holds(&self, sample: &OwnedSample) -> bool {
        self.part.of(sample).is_some_and(|number| match number.partial_cmp(&self.number) {
            Some(ordering) => self.comparison.accepts(ordering),
            None => self.comparison == Comparison::NotEqual,
        })
    }

    /// Returns why the comparison can hold for no sample of this kind.
    pub(super) fn contradiction(&self, measurement: &Measurement) -> Option<&'static str> {
        self.part.contradiction(measurement)
    }
}

impl Condition {
    /// Returns the series that the condition compares.
    pub(crate) fn series(&self) -> impl Iterator<Item = &SeriesFilter> {
        self.terms.iter().map(|term| &term.series)
    }
}
