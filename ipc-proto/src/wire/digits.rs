//! Parses digits with code that contains no panic. `to_digit` and `from_str_radix` panic for a base above 36, and not
//! every compiler proves that the base is smaller.

/// Returns the value of a hexadecimal digit.
pub(crate) const fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit.wrapping_sub(b'0')),
        b'a'..=b'f' => Some(digit.wrapping_sub(b'a').wrapping_add(10)),
        b'A'..=b'F' => Some(digit.wrapping_sub(b'A').wrapping_add(10)),
        _ => None,
    }
}

/// Returns the value of these digits. `None` if `digits` is empty, if one is not a digit of the base (at most 16), or
/// if the value is too large.
pub fn number(digits: &[u8], base: u8) -> Option<u64> {
    let digit = |digit: &u8| hex_digit(*digit).filter(|digit| *digit < base);
    let number = digits
        .iter()
        .try_fold(0u64, |number, next| number.checked_mul(base.into())?.checked_add(digit(next)?.into()));
    number.filter(|_| !digits.is_empty())
}
