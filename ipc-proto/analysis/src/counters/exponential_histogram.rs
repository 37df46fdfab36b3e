//! Exponential histograms: their buckets and quantiles.
use alloc::vec::Vec;

/// A histogram whose buckets grow by a constant factor, as OpenTelemetry defines it.
///
/// The factor is `2^(2^-scale)`. Bucket `k` counts the measurements above `factor^k` up to `factor^(k + 1)`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ExponentialHistogram {
    /// The scale, between -11 and 20. The runtime can decrease the scale, but never increases it.
    pub scale: i32,
    /// The sum of the measurements.
    pub sum: f64,
    /// The number of measurements, with those that are 0.
    pub count: u64,
    /// The number of measurements that are 0.
    pub zero_count: u64,
    /// The smallest measurement; `f64::MAX` if there were none.
    pub min: f64,
    /// The largest measurement; `f64::MIN` if there were none.
    pub max: f64,
    /// The index of the first bucket.
    ///
    /// The event does not state this index. The last bucket is the one of [`max`](Self::max), so the index of the first
    /// one follows from the number of buckets. `None` if there are no buckets, and if the event contradicts itself.
    pub first_bucket: Option<i32>,
    /// The numbers of measurements of the first bucket and of those after it.
    pub buckets: Vec<u64>,
}

impl ExponentialHistogram {
    /// Returns the index of the bucket for a measurement. `None` for numbers that no bucket counts: 0, negative and
    /// infinite ones, NaN, and for a scale outside of -11 to 20.
    ///
    /// ```
    /// use nettrace_analysis::counters::ExponentialHistogram;
    ///
    /// // With scale 0, the bounds are powers of two, and belong to the bucket below them.
    /// assert_eq!(ExponentialHistogram::bucket(0, 4.0), Some(1));
    /// assert_eq!(ExponentialHistogram::bucket(0, 4.5), Some(2));
    /// assert_eq!(ExponentialHistogram::bucket(1, 4.5), Some(4));
    /// ```
    #[must_use]
    pub fn bucket(scale: i32, measurement: f64) -> Option<i32> {
        const FRACTION_BITS: u32 = 52;
        if !measurement.is_finite() || measurement <= 0.0 || !(-11..=20).contains(&scale) {
            return None;
        }
        let bits = measurement.to_bits();
        let biased = i32::try_from(bits.wrapping_shr(FRACTION_BITS)).ok()?;
        let fraction = bits & 0x000f_ffff_ffff_ffff;
        // The measurement is `mantissa / 2^63 * 2^exponent`, the highest bit of the mantissa is set.
        let (mantissa, exponent) = if biased == 0 {
            let zeros = fraction.leading_zeros();
            let mantissa = fraction.wrapping_shl(zeros);
            // The highest bit of the fraction of a subnormal number has the exponent -1,023.
            (mantissa, (-1_011_i32).checked_sub_unsigned(zeros)?)
        } else {
            let mantissa = (fraction | 1_u64.wrapping_shl(FRACTION_BITS)).wrapping_shl(11);
            (mantissa, biased.checked_sub(1_023)?)
        };
        let is_power_of_two = mantissa == 1_u64.wrapping_shl(63);
        if scale <= 0 {
            let exponent = if is_power_of_two { exponent.checked_sub(1)? } else { exponent };
            return exponent.checked_shr(scale.unsigned_abs());
        }
        let whole = exponent.checked_mul(1_i32.checked_shl(scale.unsigned_abs())?)?;
        if is_power_of_two {
            return whole.checked_sub(1);
        }
        // The bits of the logarithm of the mantissa, from the highest on: squaring a number doubles its logarithm.
        let (mut mantissa, mut logarithm) = (u128::from(mantissa), 0_i32);
        for _ in 0..scale {
            mantissa = mantissa.checked_mul(mantissa)?.wrapping_shr(63);
            logarithm = logarithm.checked_mul(2)?;
            if mantissa.wrapping_shr(64) != 0 {
                mantissa = mantissa.wrapping_shr(1);
                logarithm = logarithm.checked_add(1)?;
            }
        }
        whole.checked_add(logarithm)
    }

    /// Returns the quantile of `share`, which is between 0 and 1: the number that this share of the measurements does
    /// not exceed. The result is the upper bound of a bucket, limited to the smallest and the largest measurement.
    /// `None` without measurements, and if the index of the first bucket is unknown.
    ///
    /// The result is not below the exact quantile, and above it by less than the width of the bucket.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let first = self.first_bucket?;
        let wanted = share.clamp(0.0, 1.0) * self.count as f64;
        let mut count = self.zero_count;
        if count > 0 && count as f64 >= wanted {
            return Some(0.0);
        }
        for (bucket, n) in (first..).zip(&self.buckets) {
            count = count.saturating_add(*n);
            if count as f64 >= wanted && *n > 0 {
                return Some(Self::upper_bound(self.scale, bucket).min(self.max).max(self.min));
            }
        }
        None
    }

    /// Returns the upper bound of a bucket: `2^((bucket + 1) / 2^scale)`.
    #[must_use]
    pub fn upper_bound(scale: i32, bucket: i32) -> f64 {
        let index = i64::from(bucket).saturating_add(1);
        let bits = scale.clamp(0, 20).unsigned_abs();
        let exponent = if scale >= 0 {
            index.checked_shr(bits).unwrap_or_default()
        } else {
            index.checked_mul(1_i64.wrapping_shl(scale.unsigned_abs().min(20))).unwrap_or(i64::MAX)
        };
        let mut bound = power_of_two(exponent);
        // 2^(1/2), 2^(1/4), … for the bits of the fraction, from the highest.
        let mut root = 2.0;
        for bit in (0..bits).rev() {
            root = square_root(root);
            if index.wrapping_shr(bit) & 1 == 1 {
                bound *= root;
            }
        }
        bound
    }
}

fn power_of_two(exponent: i64) -> f64 {
    /// The bits of the fraction, the exponent of the smallest subnormal number, and that of infinity.
    const FRACTION_BITS: u32 = 52;
    const SMALLEST: i64 = -1_074;
    const INFINITE: i64 = 1_024;
    let exponent = exponent.clamp(SMALLEST, INFINITE);
    let biased = exponent.saturating_add(INFINITE - 1).try_into().unwrap_or(0_u64);
    f64::from_bits(match biased {
        0 => 1_u64.wrapping_shl(exponent.abs_diff(SMALLEST).try_into().unwrap_or(0)),
        biased => biased.wrapping_shl(FRACTION_BITS),
    })
}

/// Returns the square root of a number between 1 and 2, by Newton's method.
fn square_root(number: f64) -> f64 {
    (0..5).fold(number, |root, _| 0.5 * (root + number / root))
}
