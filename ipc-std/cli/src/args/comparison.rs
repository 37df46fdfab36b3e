//! The operators that compare two values, in `events --where` and `counters --until`.
use core::cmp::Ordering;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Splits an operator off the start of a text.
    pub(crate) fn split(text: &str) -> Option<(Self, &str)> {
        // Operators of two characters come first, so that `<` does not match the start of `<=`.
        let operators = [
            ("==", Self::Equal),
            ("!=", Self::NotEqual),
            ("<=", Self::LessOrEqual),
            (">=", Self::GreaterOrEqual),
            ("<", Self::Less),
            (">", Self::Greater),
        ];
        operators.into_iter().find_map(|(name, comparison)| Some((comparison, text.strip_prefix(name)?)))
    }

    /// Returns whether the operator compares sizes: `<`, `<=`, `>` or `>=`.
    pub(crate) const fn is_order(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }

    /// Returns whether the operator holds for two values that are in this order.
    pub(crate) const fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
}
