//! `Number`: a number that a runtime reports as text.
use core::cmp::Ordering;
use core::fmt;
use core::num::ParseFloatError;
use core::str::FromStr;

/// A number that a runtime reports as text. Whole numbers from 2^53 on, which a float would round, are exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Any other number.
    Float(f64),
    /// A whole number whose size is at least 2^53.
    Whole(i128),
}

impl Number {
    /// Returns the nearest float.
    #[must_use]
    pub const fn as_f64(self) -> f64 {
        match self {
            Self::Float(number) => number,
            Self::Whole(number) => number as f64,
        }
    }

    fn large(number: i128) -> Option<Self> {
        const FIRST_ROUNDED: u128 = 1 << 53;
        (number.unsigned_abs() >= FIRST_ROUNDED).then_some(Self::Whole(number))
    }
}

/// The texts of floats are numbers.
impl FromStr for Number {
    type Err = ParseFloatError;

    fn from_str(digits: &str) -> Result<Self, ParseFloatError> {
        // Most numbers are shorter than 2^53.
        let whole = Some(digits).filter(|digits| digits.len() > 15).and_then(|digits| digits.parse().ok());
        whole.and_then(Self::large).map_or_else(|| digits.parse().map(Self::Float), Ok)
    }
}

/// Whole numbers from 2^53 on are compared without rounding.
impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => Some(one.cmp(other)),
            _ => self.as_f64().partial_cmp(&other.as_f64()),
        }
    }
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self::large(number.into()).unwrap_or(Self::Float(number as f64))
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

/// The digits of the number.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float(number) => number.fmt(f),
            Self::Whole(number) => number.fmt(f),
        }
    }
}
