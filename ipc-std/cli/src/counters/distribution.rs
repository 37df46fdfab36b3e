//! `distribution`: the percentiles and the count of a histogram, for both kinds of histogram.
use nettrace_analysis::counters::Measurement;

/// The percentiles of a histogram, each as its share and its value, and the count.
type Distribution = (Vec<(f64, f64)>, Option<u64>);

/// Returns the distribution of a histogram: the percentiles that the runtime reports, or else the usual ones.
pub(super) fn distribution(measurement: &Measurement) -> Option<Distribution> {
    match measurement {
        Measurement::Histogram { quantiles, count, .. } => {
            Some((quantiles.iter().map(|one| (one.quantile, one.value)).collect(), *count))
        }
        Measurement::ExponentialHistogram(histogram) => {
            let value = |share| Some((share, histogram.quantile(share)?));
            Some(([0.5, 0.95, 0.99].into_iter().filter_map(value).collect(), Some(histogram.count)))
        }
        _ => None,
    }
}
