//! Numbers with their units, as people read them: `12.3 MB`, `4.1 ms`.
use indicatif::HumanFloatCount;
use nettrace_analysis::counters::Number;

use crate::text::columns::cut_end;
use crate::text::printable::printable_name;

/// A unit that numbers are converted to, and the factor.
struct Known {
    /// The spellings that programs use.
    names: &'static [&'static str],
    base: &'static str,
    factor: f64,
}

const KNOWN: [Known; 10] = [
    Known { names: &["By", "B", "b", "bytes", "byte"], base: "B", factor: 1.0 },
    Known { names: &["kB", "KB", "kBy", "KBy"], base: "B", factor: 1e3 },
    Known { names: &["MB", "MBy"], base: "B", factor: 1e6 },
    Known { names: &["GB", "GBy"], base: "B", factor: 1e9 },
    Known { names: &["KiBy", "KiB"], base: "B", factor: 1_024.0 },
    Known { names: &["MiBy", "MiB"], base: "B", factor: 1_048_576.0 },
    Known { names: &["s", "sec", "seconds", "second"], base: "s", factor: 1.0 },
    Known { names: &["ms", "msec", "milliseconds", "millisecond"], base: "s", factor: 1e-3 },
    Known { names: &["us", "µs", "microseconds"], base: "s", factor: 1e-6 },
    Known { names: &["ns", "nanoseconds"], base: "s", factor: 1e-9 },
];

/// Returns the base unit of a unit, and the factor of its numbers; the unit itself if it is unknown.
pub(crate) fn base(unit: &str) -> (&str, f64) {
    let known = KNOWN.iter().find(|known| known.names.contains(&unit));
    known.map_or((unit, 1.0), |known| (known.base, known.factor))
}

/// Returns a number with its unit.
pub(crate) fn with_unit(number: impl Into<Number>, unit: &str) -> String {
    let (base, factor) = base(unit);
    let number = number.into();
    let float = number.as_f64() * factor;
    match base {
        "B" => scaled(float, &[("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)]),
        "s" => scaled(float, &[("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)]),
        "" | "1" => plain(number),
        "%" => format!("{} %", plain(number)),
        unit => format!("{} {}", plain(number), unit.trim_matches(['{', '}'])),
    }
}

/// Returns a number in the largest of the units that does not exceed the number.
fn scaled(number: f64, units: &[(&str, f64)]) -> String {
    if number == 0.0 || !number.is_finite() {
        let unit = units.iter().find(|(_, size)| size.to_bits() == 1_f64.to_bits());
        return format!("{} {}", plain(number), unit.map_or("", |(unit, _)| unit));
    }
    // A number that rounds to 1000 is 1 of the next larger unit.
    let fits = |(_, size): &&(&str, f64)| number.abs() >= size * 0.9995;
    let (unit, size) = units.iter().rev().find(fits).or_else(|| units.first()).copied().unwrap_or(("", 1.0));
    format!("{} {unit}", plain(number / size))
}

/// Returns a number with at least three significant digits, and with commas between thousands.
pub(crate) fn plain(number: impl Into<Number>) -> String {
    let number = match number.into() {
        Number::Float(number) => number,
        Number::Whole(number) => {
            let digits = number.unsigned_abs().to_string();
            let groups =
                digits.as_bytes().rchunks(3).rev().filter_map(|group| core::str::from_utf8(group).ok());
            let sign = if number < 0 { "-" } else { "" };
            return format!("{sign}{}", groups.collect::<Vec<_>>().join(","));
        }
    };
    if !number.is_finite() {
        return if number.is_nan() {
            "NaN"
        } else if number > 0.0 {
            "∞"
        } else {
            "-∞"
        }
        .to_owned();
    }
    let size = number.abs();
    if number != 0.0 && !(1e-3..1e15).contains(&size) {
        return format!("{number:.3e}");
    }
    let decimals = match size {
        _ if number.fract() == 0.0 => 0,
        100.0.. => 1,
        10.0.. => 2,
        _ => 3,
    };
    let sign = if number.is_sign_negative() { "-" } else { "" };
    format!("{sign}{:.decimals$}", HumanFloatCount(size))
}

/// Returns the shortest digits that read back as the same finite number.
pub(crate) fn shortest(number: f64) -> String {
    format!("{number:?}").trim_end_matches(".0").to_owned()
}

/// The maximum length of a unit in lines and rows, in characters: the numbers of a histogram repeat it.
pub(crate) const MAX_UNIT: usize = 32;

/// Returns a unit for people, without control characters.
pub(crate) fn printable_unit(unit: &str) -> String {
    cut_end(&printable_name(unit), MAX_UNIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (number, unit, expected) in [
            (12_345_678.0, "By", "12.35 MB"),
            (39.7, "MB", "39.7 MB"),
            (0.0041, "s", "4.1 ms"),
            (4.1, "ms", "4.1 ms"),
            (0.0, "s", "0 s"),
            (999.7, "B", "1 kB"),
            (1.5e-12, "s", "0.002 ns"),
            (90.0, "s", "90 s"),
            (42.25, "%", "42.25 %"),
            (1560.0, "{request}", "1,560 request"),
            (1_234_567.0, "", "1,234,567"),
            (-1234.5, "", "-1,234.5"),
            (0.5, "1", "0.5"),
            (0.00001, "", "1.000e-5"),
            (f64::NAN, "s", "NaN s"),
            (f64::INFINITY, "By", "∞ B"),
            (3.0, "cups", "3 cups"),
        ] {
            assert_eq!(with_unit(number, unit), expected, "{number} {unit}");
        }
    }
}
