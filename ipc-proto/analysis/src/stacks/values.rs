//! A value for each stack from those of its frames.
use alloc::vec::Vec;

use super::stacks::Stacks;
use crate::names::{Known, Names, at};

/// Returns a value for each stack by the number of the stack: that of its innermost method, joined with the value of its
/// caller.
pub(crate) fn stack_values<T: Copy + Default>(
    names: &mut Names,
    stacks: &Stacks,
    mut of_method: impl FnMut(&str) -> T,
    join: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut of_frames = Known::new();
    let mut values = alloc::vec![T::default()];
    // Callers come before their callees.
    for (caller, address) in stacks.iter() {
        let of_caller = at(&values, caller.0).copied().unwrap_or_default();
        let frame = names.frame(address);
        let of_frame = of_frames.of(frame.0, || of_method(names.text(frame)));
        values.push(join(of_caller, of_frame));
    }
    values
}
