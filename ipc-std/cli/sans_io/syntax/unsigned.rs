//! Numbers without a sign.

/// Returns the text if it begins with no sign. `parse` and `from_str_radix` accept a `+` in front of a number.
pub fn unsigned(text: &str) -> Option<&str> {
    (!text.starts_with(['+', '-'])).then_some(text)
}
