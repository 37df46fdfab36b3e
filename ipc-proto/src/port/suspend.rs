/// Which ports of a runtime still keep it from running.
///
/// A runtime begins once every port that says `suspend` has seen a `ResumeRuntime` of its own. One that comes by another
/// port, or a second time, is answered OK and changes nothing.
///
/// `S` is any storage of one flag for each port: an array, a slice, a `Vec`.
///
/// ```
/// use ipc_proto::port::Suspension;
///
/// let mut suspension = Suspension::new([true, false, true]);
/// assert!(suspension.resume(2));
/// assert!(!suspension.resume(2) && !suspension.resume(1)); // OK, but no more than that
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
    /// A runtime at its start: for each port, in an order of yours, whether it says `suspend`.
    #[must_use]
    pub const fn new(ports: S) -> Self {
        Self { ports }
    }

    /// `ResumeRuntime` came by this port: whether the port had kept the runtime from running until now.
    pub fn resume(&mut self, port: usize) -> bool {
        self.ports.as_mut().get_mut(port).is_some_and(core::mem::take)
    }

    /// Whether the runtime does not run yet.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.ports.as_ref().contains(&true)
    }

    /// The ports that have not seen their `ResumeRuntime` yet.
    pub fn waiting(&self) -> impl Iterator<Item = usize> {
        self.ports.as_ref().iter().enumerate().filter_map(|(port, waits)| waits.then_some(port))
    }
}
