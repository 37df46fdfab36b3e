//! `distribution`: the percentiles and the count of a histogram, for both kinds of histogram.
use nettrace_analysis::counters::Measurement;

/// The percentiles of a histogram, each as its share and its value, and the count.
type Distribution = (Vec<(f64, f64)>, Option<u64>);

/// The maximum number of quantiles in lines of text and CSV and in the text format of Prometheus, which repeat the names
/// of the series or the unit with each of them. Runtimes report three.
pub(super) const MAX_QUANTILES: usize = 16;

/// Returns the distribution of a histogram: the percentiles that the runtime reports, or else the usual ones.
pub(super) fn distribution(measurement: &Measurement) -> Option<Distribution> {
    match measurement {
        Measurement::Histogram { quantiles, count, .. } => {
            let quantiles = quantiles.iter().take(MAX_QUANTILES);
            Some((quantiles.map(|one| (one.quantile, one.value)).collect(), *count))
        }
        Measurement::ExponentialHistogram(histogram) => {
            let value = |share| Some((share, histogram.quantile(share)?));
            Some(([0.5, 0.95, 0.99].into_iter().filter_map(value).collect(), Some(histogram.count)))
        }
        _ => None,
    }
}
