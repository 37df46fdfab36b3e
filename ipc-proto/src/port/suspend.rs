//! [`Suspension`]: the ports that a runtime waits for before it starts.
/// The ports of a runtime that still suspend it.
///
/// A runtime starts after each port with the tag `suspend` has received a `ResumeRuntime`. A second `ResumeRuntime` on
/// the port, or one on a port without the tag, is answered with OK and has no effect.
///
/// `S` is any storage of one flag for each port: an array, a slice, a `Vec`.
///
/// ```
/// use ipc_proto::port::Suspension;
///
/// let mut suspension = Suspension::new([true, false, true]);
/// assert!(suspension.resume(2));
/// assert!(!suspension.resume(2) && !suspension.resume(1)); // no effect
/// assert!(suspension.is_suspended());
/// assert_eq!(suspension.waiting().collect::<Vec<_>>(), [0]);
/// assert!(suspension.resume(0));
/// assert!(!suspension.is_suspended());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspension<S> {
    ports: S,
}

impl<S: AsRef<[bool]> + AsMut<[bool]>> Suspension<S> {
    /// Creates the state at startup: for each port, in any order, whether it suspends the runtime.
    #[must_use]
    pub const fn new(ports: S) -> Self {
        Self { ports }
    }

    /// Records a `ResumeRuntime` on this port; returns whether the port suspended the runtime until now.
    pub fn resume(&mut self, port: usize) -> bool {
        self.ports.as_mut().get_mut(port).is_some_and(core::mem::take)
    }

    /// Returns whether the runtime is still suspended.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.ports.as_ref().contains(&true)
    }

    /// Returns the ports that still wait for their `ResumeRuntime`.
    pub fn waiting(&self) -> impl Iterator<Item = usize> {
        self.ports.as_ref().iter().enumerate().filter_map(|(port, waits)| waits.then_some(port))
    }
}
