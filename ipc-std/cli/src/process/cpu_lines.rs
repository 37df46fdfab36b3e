//! Lines about the CPU time that the samples of running threads leave out: the system's figure, and work that is not
//! the program's.
use indicatif::HumanCount;
use nettrace_analysis::report::{CpuTime, NOTABLE};

use super::cpu_usage::CpuUsage;

/// The text for a runtime whose samples do not tell running from waiting.
pub(crate) const HIDES_RUNNING: &str =
    "All samples: a program compiled ahead of time does not tell running from waiting";

/// Returns the CPU time of a recording, by its samples and by the system.
pub(crate) fn cpu_lines(cpu: &CpuTime, system: Option<&CpuUsage>) -> Vec<String> {
    let mut lines = Vec::new();
    match (system, cpu.cores) {
        (Some(system), Some(sampled)) => compare(system, sampled, &mut lines),
        (Some(system), None) => lines.push(format!("{:.2} cores by the system", system.cores)),
        (None, _) => {}
    }
    let share = |part: u64| part as f64 * 100.0 / cpu.causes.total.max(1) as f64;
    for (part, what) in [
        (cpu.causes.pool_spin, "the spin of idle pool threads"),
        (cpu.causes.session, "work for this recording (manifests of event sources)"),
    ] {
        if share(part) >= NOTABLE && !cpu.is_nearly_idle() {
            lines.push(format!("{:.2} % of these samples: {what}", share(part)));
        }
    }
    if let (true, Some(cores)) = (cpu.is_nearly_idle(), cpu.cores) {
        let s = if cpu.samples == 1 { "" } else { "s" };
        let samples = format!("{} sample{s}", HumanCount(cpu.samples));
        // The process can be busy with work that samples do not see.
        let is_busy = system.is_some_and(|system| system.cores > cores + LEAST);
        lines.push(match is_busy {
            true => format!("{samples}: too few for shares; see --wall"),
            false => format!("{cores:.3} cores by {samples}: nearly idle; see --wall"),
        });
    }
    lines
}

/// A number of cores that is smaller is not explained: the system counts in ticks of 10 ms.
const LEAST: f64 = 0.05;

/// Compares the system's figure with the samples.
fn compare(system: &CpuUsage, sampled: f64, lines: &mut Vec<String>) {
    let CpuUsage { cores, sampler, compilation, collection, .. } = *system;
    let parts = [
        (sampler, "the runtime's thread that samples, for this recording"),
        (compilation, "compilation in the background: see `jit`"),
        (collection, "garbage collection on its own threads: see `gc`"),
    ];
    let rest = parts.iter().fold(cores - sampled, |rest, (cores, _)| rest - cores);
    lines.push(if rest < -LEAST {
        format!("{cores:.2} cores by the system; by the samples {sampled:.2} threads would run")
    } else {
        format!("{cores:.2} cores by the system; samples explain {sampled:.2}")
    });
    for (cores, what) in parts.iter().filter(|(cores, _)| *cores >= LEAST) {
        lines.push(format!("  {cores:.2} {what}"));
    }
    if rest >= LEAST.max(cores / 10.0) {
        lines.push(format!("  {rest:.2} garbage collection, compilation, native code or the system for it:"));
        lines.push("       see `gc`, `report --allocations`, `jit`".to_owned());
    }
}

/// Returns what the frame without a name is, if a notable share of stacks has it: `exclusive` and `inclusive` are its
/// shares in percent.
pub(crate) fn unnamed_line(exclusive: f64, inclusive: f64) -> Option<String> {
    let calls = inclusive - exclusive;
    if exclusive >= NOTABLE {
        Some(format!("?!? ({exclusive:.2} %) is code whose name the trace does not have"))
    } else if calls >= NOTABLE {
        Some(format!("?!? ({calls:.2} %) calls methods for the runtime: static constructors, reflection"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(cores: f64, [sampler, compilation, collection]: [f64; 3]) -> CpuUsage {
        CpuUsage { cores, sampler, compilation, collection, thread_names: Default::default() }
    }

    /// Returns the lines for samples of 1,000 rounds.
    fn lines(samples: u64, system: Option<CpuUsage>) -> Vec<String> {
        let cores = Some(samples as f64 / 1_000.0);
        cpu_lines(&CpuTime { cores, samples, ..CpuTime::default() }, system.as_ref())
    }

    #[test]
    fn the_system_beside_the_samples() {
        assert_eq!(
            lines(300, Some(usage(1.4, [0.6, 0.04, 0.2]))),
            [
                "1.40 cores by the system; samples explain 0.30",
                "  0.60 the runtime's thread that samples, for this recording",
                "  0.20 garbage collection on its own threads: see `gc`",
                "  0.26 garbage collection, compilation, native code or the system for it:",
                "       see `gc`, `report --allocations`, `jit`",
            ]
        );
        assert_eq!(
            lines(1_000, Some(usage(1.04, [0.02; 3]))),
            ["1.04 cores by the system; samples explain 1.00"]
        );
        // Five threads can run on two processors.
        assert_eq!(
            lines(4_900, Some(usage(2.0, [0.0; 3]))),
            ["2.00 cores by the system; by the samples 4.90 threads would run"]
        );
        assert_eq!(lines(4_900, None), [""; 0]);
    }

    #[test]
    fn few_samples() {
        assert_eq!(lines(5, None), ["0.005 cores by 5 samples: nearly idle; see --wall"]);
        assert_eq!(lines(15, None), [""; 0]);
        let busy = lines(5, Some(usage(0.8, [0.0; 3])));
        assert_eq!(busy.last().unwrap(), "5 samples: too few for shares; see --wall");
        let all = lines(5, Some(usage(0.8, [0.9; 3])));
        assert!(all.iter().chain(&busy).all(|line| line.len() <= 80), "{all:?} {busy:?}");
    }
}
