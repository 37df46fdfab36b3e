//! CPU time that the program's own work does not cause.
use crate::names::{Names, at};
use crate::stacks::{MethodName, MethodTable, stack_values};
use crate::{StackId, Stacks};

/// The samples of running threads, by their causes. [`Samples::cpu_causes`](super::Samples::cpu_causes) returns them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CpuCauses {
    /// All samples.
    pub total: u64,
    /// The samples of idle threads of the pool, which spin for a short time before they wait for work.
    pub pool_spin: u64,
    /// The samples of work for the recording itself: the event sources of the program describe their events when a
    /// session enables them, in its first second.
    pub session: u64,
}

/// The methods in which an idle thread of the pool spins. The methods that they call to wait take no CPU time.
const POOL_SPIN: MethodTable = MethodTable(&[("System.Threading.LowLevelLifoSemaphore", "Wait WaitSlow")]);

/// Methods that a session calls.
const SESSION: MethodTable = MethodTable(&[
    ("System.Diagnostics.Tracing.EventPipeEventProvider", "Callback*"),
    ("System.Diagnostics.Tracing.EventSource", "CreateManifest* SendManifest SendCommand DoCommand"),
    ("System.Diagnostics.Tracing.ManifestBuilder", "*"),
]);

/// The causes that the frames of a stack show.
#[derive(Debug, Clone, Copy, Default)]
struct Cause {
    spins: bool,
    session: bool,
}

impl CpuCauses {
    /// Adds the samples of another period.
    pub(crate) const fn add(&mut self, other: Self) {
        self.total = self.total.saturating_add(other.total);
        self.pool_spin = self.pool_spin.saturating_add(other.pool_spin);
        self.session = self.session.saturating_add(other.session);
    }

    /// Returns the causes of the samples of running threads, which are passed as stacks with their numbers.
    pub(super) fn new(
        names: &mut Names,
        stacks: &Stacks,
        running: impl Iterator<Item = (StackId, u64)>,
    ) -> Self {
        let causes = stack_values(
            names,
            stacks,
            |method| {
                let method = MethodName::of(method);
                let is_in = |table: &MethodTable| method.is_some_and(|method| table.has(method));
                Cause { spins: is_in(&POOL_SPIN), session: is_in(&SESSION) }
            },
            |caller, frame| Cause {
                spins: caller.spins || frame.spins,
                session: caller.session || frame.session,
            },
        );
        let mut sums = Self::default();
        for (stack, samples) in running {
            let cause = at(&causes, stack.0).copied().unwrap_or_default();
            let add = |sum: &mut u64, counts| *sum = sum.saturating_add(if counts { samples } else { 0 });
            add(&mut sums.total, true);
            add(&mut sums.pool_spin, cause.spins && !cause.session);
            add(&mut sums.session, cause.session);
        }
        sums
    }
}
