//! The entry point of a program.

/// Returns whether a method is the entry point of a program.
pub(crate) fn is_entry_point(method: &str) -> bool {
    method.ends_with(".Main") || method.ends_with("<Main>$")
}
