//! `Series`: a series with its sums, and its lines.
use core::fmt::Write;
use std::collections::BTreeMap;

use nettrace_analysis::counters::{ExponentialHistogram, Measurement, Number, OwnedSample};

use crate::counters::distribution::MAX_QUANTILES;
use crate::counters::units::{base, shortest};

/// The last sample of a series, and the sums since the start of the tool.
pub(super) struct Series {
    pub(super) sample: OwnedSample,
    /// The name of the family, and the labels. Both stay the same while the series lasts.
    pub(super) family: String,
    pub(super) labels: String,
    pub(super) count: u64,
    pub(super) sum: f64,
}

/// The maximum text of a series in bytes. It repeats the labels with each quantile and with each bucket.
pub(super) const MAX_TEXT: usize = 64 << 10;
/// The maximum length of a line of a series in bytes.
pub(super) const MAX_LINE: usize = 16 << 10;
/// The maximum number of buckets of a series; a runtime has at most 160 unless a client requests more.
pub(super) const MAX_BUCKETS: usize = 160;

impl Series {
    /// Adds the values that a sample reports only for its interval. A number that is not finite would make all later sums
    /// useless, and the sum of a counter cannot become smaller.
    pub(super) fn add(&mut self, measurement: &Measurement) {
        let (count, sum) = match measurement {
            Measurement::Histogram { count, sum, .. } => (count.unwrap_or_default(), sum.unwrap_or_default()),
            Measurement::Sum { increment, .. } => (0, increment.max(0.0)),
            Measurement::Counter { delta, value: None } => (0, delta.map_or(0.0, Number::as_f64).max(0.0)),
            Measurement::UpDownCounter { delta, value: None, .. } => (0, delta.map_or(0.0, Number::as_f64)),
            _ => return,
        };
        self.count = self.count.saturating_add(count);
        let sum = self.sum + sum;
        if sum.is_finite() {
            self.sum = sum;
        }
    }

    /// Returns the number of bytes that a line has at most.
    pub(super) fn line_len(&self) -> usize {
        /// The longest ending of a name, a further label, and two numbers.
        const REST: usize = 80;
        self.family.len().saturating_add(self.labels.len()).saturating_add(REST)
    }

    /// Returns the number of lines with quantiles or buckets that the text can have.
    fn max_numbers(&self) -> usize {
        let fit = MAX_TEXT.checked_div(self.line_len()).unwrap_or(0).saturating_sub(OTHER_LINES);
        fit.min(match self.sample.measurement {
            Measurement::ExponentialHistogram(_) => MAX_BUCKETS,
            _ => MAX_QUANTILES,
        })
    }

    pub(super) fn has_more_numbers(&self) -> bool {
        numbers(&self.sample.measurement) > self.max_numbers()
    }

    /// Returns approximately the memory of the series and its key, and the length of its text, in bytes.
    pub(super) fn size(&self, key: &str) -> usize {
        let lines = numbers(&self.sample.measurement).min(self.max_numbers()).saturating_add(OTHER_LINES);
        let text = lines.saturating_mul(self.line_len());
        [key.len(), self.family.len(), self.labels.len(), text]
            .into_iter()
            .fold(size(&self.sample), usize::saturating_add)
    }
}

/// The lines of a histogram in addition to those of its quantiles or buckets: the last bucket, the sum and the count.
const OTHER_LINES: usize = 3;

/// Returns the number of quantiles or buckets.
fn numbers(measurement: &Measurement) -> usize {
    match measurement {
        Measurement::Histogram { quantiles, .. } => quantiles.len(),
        Measurement::ExponentialHistogram(histogram) => histogram.buckets.len(),
        _ => 0,
    }
}

/// Returns the approximate memory of a sample in bytes.
fn size(sample: &OwnedSample) -> usize {
    /// The memory of a number in a list, and the memory that an entry of the map takes in addition, both in bytes.
    const NUMBER: usize = 16;
    const ENTRY: usize = 128;
    let OwnedSample { provider, provider_version, name, tag_text, display_name, unit, .. } = sample;
    let texts = [provider, provider_version, name, tag_text, display_name, unit];
    let texts = texts.into_iter().fold(0_usize, |size, text| size.saturating_add(text.len()));
    [numbers(&sample.measurement).saturating_mul(NUMBER), size_of::<(String, Series)>(), ENTRY]
        .into_iter()
        .fold(texts, usize::saturating_add)
}

/// Returns the type of a family.
pub(super) const fn kind(measurement: &Measurement) -> &'static str {
    match measurement {
        Measurement::Sum { .. } | Measurement::Counter { .. } => "counter",
        Measurement::Histogram { .. } => "summary",
        Measurement::ExponentialHistogram(_) => "histogram",
        // A sum that grows and shrinks from 0 at the start of the session is neither a counter nor a level.
        Measurement::UpDownCounter { since_start: true, .. } => "untyped",
        _ => "gauge",
    }
}

/// Writes the lines of a series; none if it has no number.
pub(super) fn write_lines(series: &Series, text: &mut String) {
    let Series { sample, family, labels, .. } = series;
    let (_, factor) = base(&sample.unit);
    let scaled = |number: Number| match number {
        whole @ Number::Whole(_) if factor.to_bits() == 1_f64.to_bits() => whole,
        number => Number::Float(number.as_f64() * factor),
    };
    let mut line = |suffix: &str, more: Option<(&str, &str)>, number: Number| {
        let _ = write!(text, "{family}{suffix}{{{labels}");
        if let Some((label, value)) = more {
            let _ = write!(text, ",{label}=\"{value}\"");
        }
        let _ = writeln!(text, "}} {}", number_text(number));
    };
    match &sample.measurement {
        Measurement::Mean { mean, .. } => line("", None, (mean * factor).into()),
        Measurement::Gauge { value: Some(value) } => line("", None, scaled(*value)),
        Measurement::Sum { .. } => line("", None, (series.sum * factor).into()),
        Measurement::Counter { value, .. } | Measurement::UpDownCounter { value, .. } => {
            line("", None, scaled(value.unwrap_or(series.sum.into())));
        }
        Measurement::Histogram { quantiles, .. } => {
            let quantiles = quantiles.iter().take(series.max_numbers());
            let shares: BTreeMap<String, f64> =
                quantiles.map(|one| (text_of(one.quantile), one.value)).collect();
            for (share, value) in shares {
                line("", Some(("quantile", &share)), (value * factor).into());
            }
            line("_sum", None, (series.sum * factor).into());
            line("_count", None, series.count.into());
        }
        Measurement::ExponentialHistogram(histogram) => {
            let mut count = histogram.zero_count;
            // Counts are cumulative, so that a histogram without some of its bounds is right, and less exact.
            let step = histogram.buckets.len().div_ceil(series.max_numbers().max(1)).max(1);
            let mut bucket_line = |(bound, count): (String, u64)| {
                if bound != INFINITY {
                    line("_bucket", Some(("le", &bound)), count.into());
                }
            };
            let mut last: Option<(String, u64)> = None;
            let buckets = histogram.first_bucket.map(|first| (first..).zip(&histogram.buckets));
            for (n, (bucket, more)) in (1..=histogram.buckets.len()).zip(buckets.into_iter().flatten()) {
                count = count.saturating_add(*more);
                if n.checked_rem(step) != Some(0) && n != histogram.buckets.len() {
                    continue;
                }
                let bound = text_of(ExponentialHistogram::upper_bound(histogram.scale, bucket) * factor);
                // Bounds of buckets that are tiny or huge can be equal as numbers.
                last.take().filter(|(last, _)| *last != bound).into_iter().for_each(&mut bucket_line);
                last = Some((bound, count));
            }
            last.into_iter().for_each(bucket_line);
            let count = count.max(histogram.count);
            line("_bucket", Some(("le", INFINITY)), count.into());
            line("_sum", None, (histogram.sum * factor).into());
            line("_count", None, count.into());
        }
        _ => {}
    }
}

/// The text of infinity.
const INFINITY: &str = "+Inf";

fn number_text(number: Number) -> String {
    match number {
        Number::Float(number) => text_of(number),
        whole @ Number::Whole(_) => whole.to_string(),
    }
}

/// Returns a number in the notation of the format.
fn text_of(number: f64) -> String {
    if number.is_finite() {
        shortest(number)
    } else if number.is_nan() {
        "NaN".to_owned()
    } else if number > 0.0 {
        INFINITY.to_owned()
    } else {
        "-Inf".to_owned()
    }
}
