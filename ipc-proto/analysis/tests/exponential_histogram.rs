//! Buckets and quantiles of histograms, against the definition of the runtime.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

use nettrace_analysis::counters::ExponentialHistogram;

/// The definition of the runtime, in floating-point numbers.
fn runtimes_bucket(scale: i32, measurement: f64) -> i32 {
    let exponent = measurement.log2().floor() as i32;
    let is_power_of_two = measurement == 2_f64.powi(exponent);
    if scale > 0 {
        if is_power_of_two {
            return (exponent << scale) - 1;
        }
        let factor = f64::from(1 << scale) / core::f64::consts::LN_2;
        (measurement.ln() * factor).ceil() as i32 - 1
    } else {
        (exponent - i32::from(is_power_of_two)) >> -scale
    }
}

#[test]
fn buckets() {
    let mut state = 1_u64;
    for _ in 0..20_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mantissa = 1.0 + ((state >> 12) as f64) / ((1_u64 << 52) as f64);
        let measurement = mantissa * 2_f64.powi((state % 200) as i32 - 100);
        for scale in -11..=20 {
            let found = ExponentialHistogram::bucket(scale, measurement).unwrap();
            let expected = runtimes_bucket(scale, measurement);
            assert_eq!(found, expected, "{measurement:?} {scale}");
            let (low, high) = (
                ExponentialHistogram::upper_bound(scale, found - 1),
                ExponentialHistogram::upper_bound(scale, found),
            );
            assert!(low < measurement * (1.0 + 1e-14) && measurement <= high * (1.0 + 1e-14), "{low}");
        }
    }
    for power in -1_074..1_024 {
        // `powi` computes a negative power as an inverse, which is 0 for the smallest powers.
        let measurement =
            if power < -1_022 { f64::from_bits(1 << (power + 1_074)) } else { 2_f64.powi(power) };
        assert_eq!(ExponentialHistogram::bucket(0, measurement), Some(power - 1));
        assert_eq!(ExponentialHistogram::bucket(3, measurement), Some(power * 8 - 1));
        assert_eq!(ExponentialHistogram::upper_bound(3, power * 8 - 1), measurement);
    }
    for none in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(ExponentialHistogram::bucket(5, none), None);
    }
    assert_eq!(ExponentialHistogram::bucket(21, 1.5), None);
    assert_eq!(ExponentialHistogram::bucket(i32::MIN, 1.5), None);
    assert_eq!(ExponentialHistogram::bucket(20, f64::MAX), Some((1_024 << 20) - 1));
}
