//! Counts the steps of readers and writers, so that fuzzing can check that their work is proportional to their input.
//! Libraries that read with [`Reader`](super::Reader) count the steps of their own loops here, too. Without the feature
//! `arbitrary`, which fuzzing uses, nothing is counted.
//!
//! A step is one turn of a loop whose length the input can influence, or one value that is read. Bytes that are copied
//! or searched count too: one step for each.

#[cfg(feature = "arbitrary")]
std::thread_local! {
    static STEPS: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

/// Counts `n` steps.
#[cfg(feature = "arbitrary")]
#[inline]
pub fn count(n: usize) {
    STEPS.with(|steps| steps.set(steps.get().saturating_add(super::to_u64(n))));
}

/// Does nothing: steps are counted only with the feature `arbitrary`.
#[cfg(not(feature = "arbitrary"))]
#[inline(always)]
pub const fn count(_: usize) {}

/// Returns the number of steps of this thread since its start.
#[cfg(feature = "arbitrary")]
#[must_use]
pub fn counted() -> u64 {
    STEPS.with(core::cell::Cell::get)
}
