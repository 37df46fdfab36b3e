use crate::samples::{Clock, CpuCauses, Samples};

/// A part of the CPU time that is smaller is not worth a sentence, in percent.
pub const NOTABLE: f64 = 5.0;

/// The CPU time of a recording, by its samples.
#[derive(Debug, Clone, Default)]
pub struct CpuTime {
    /// How many threads ran on average; `None` if samples do not state it.
    pub cores: Option<f64>,
    /// The number of the samples.
    pub samples: u64,
    /// What causes them.
    pub causes: CpuCauses,
}

impl CpuTime {
    /// Sums up samples, which have [`Clock::Cpu`] and [`Clock::Wall`].
    #[must_use]
    pub fn new(samples: &mut Samples) -> Self {
        let causes = samples.cpu_causes();
        let count = samples.count(&Clock::Cpu);
        let rounds = samples.rounds();
        let cores = (rounds > 0 && samples.tells_running()).then(|| count as f64 / rounds as f64);
        Self { cores, samples: count, causes }
    }

    /// Returns whether the program is [nearly idle](is_nearly_idle).
    #[must_use]
    pub fn is_nearly_idle(&self) -> bool {
        self.cores.is_some_and(|cores| is_nearly_idle(self.samples, cores))
    }
}

/// Returns whether a program is nearly idle: so few of its samples ran that their shares say little.
#[must_use]
pub const fn is_nearly_idle(samples: u64, cores: f64) -> bool {
    samples < 100 && cores < 0.015
}
