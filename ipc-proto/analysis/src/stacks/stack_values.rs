//! A value for each stack, from those of its frames.
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::Stacks;
use crate::names::{Names, at};
use crate::stacks::snapshot::Snapshot;

/// Returns a value for each stack by the number of the stack: that of its innermost method, joined with the value of its
/// caller.
pub(crate) fn stack_values<T: Copy + Default>(
    names: &mut Names,
    stacks: &Stacks,
    mut of_method: impl FnMut(&str) -> T,
    join: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut frames = Snapshot::new(names);
    let mut of_frames = BTreeMap::new();
    let mut values = alloc::vec![T::default()];
    // Callers come before their callees.
    for (caller, address) in stacks.iter() {
        let of_caller = at(&values, caller.0).copied().unwrap_or_default();
        let frame = frames.of(address);
        let names = frames.names();
        let of_frame = *of_frames.entry(frame).or_insert_with(|| of_method(names.text(frame)));
        values.push(join(of_caller, of_frame));
    }
    values
}
