//! The frames that distinguish the stacks of threads.
use alloc::vec::Vec;

/// Returns the frames that distinguish a stack from others: the frames up to the innermost frame of the program, and
/// then only frames of the program. The frames that run the program's methods, and continue them, are left out: the
/// same work can be dispatched in several ways. A stack without methods of the program has all of its frames.
///
/// ```
/// let stack = ["Monitor.Wait", "Shop.Get", "Task.Run", "Shop.Main", "Thread.Start"];
/// let outline = nettrace_analysis::outline(&stack, |frame| frame.starts_with("Shop."));
/// assert_eq!(outline, ["Monitor.Wait", "Shop.Get", "Shop.Main"]);
/// assert_eq!(nettrace_analysis::outline(&stack, |_| false), stack);
/// ```
#[must_use]
pub fn outline<T: Clone>(frames: &[T], mut is_own: impl FnMut(&T) -> bool) -> Vec<T> {
    let Some(innermost) = frames.iter().position(&mut is_own) else { return frames.to_vec() };
    let places = (0..).zip(frames);
    places
        .filter(|(place, frame)| *place <= innermost || is_own(frame))
        .map(|(_, frame)| frame.clone())
        .collect()
}
