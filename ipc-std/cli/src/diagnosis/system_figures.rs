//! What the operating system knows about a process.
use core::time::Duration;
use std::fs;
use std::time::Instant;

/// What Linux shows about a process at one moment.
#[derive(Debug, Clone)]
pub(crate) struct SystemFigures {
    at: Instant,
    cpu: Option<Duration>,
    pub(super) threads: Option<usize>,
    pub(super) descriptors: Option<usize>,
    pub(super) sockets: Option<usize>,
    pub(super) descriptor_limit: Option<u64>,
}

impl SystemFigures {
    /// Returns the figures of a process. Systems without a Linux `/proc`, and processes of other users, lack some.
    pub(crate) fn of(process_id: u32) -> Self {
        let entries = |folder: &str| {
            let entries = fs::read_dir(format!("/proc/{process_id}/{folder}")).ok()?;
            Some(entries.flatten().collect::<Vec<_>>())
        };
        let descriptors = entries("fd");
        let sockets = descriptors.as_ref().map(|descriptors| {
            let targets = descriptors.iter().filter_map(|entry| fs::read_link(entry.path()).ok());
            targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
        });
        Self {
            at: Instant::now(),
            cpu: cpu_time(process_id),
            threads: entries("task").map(|threads| threads.len()),
            descriptors: descriptors.map(|descriptors| descriptors.len()),
            sockets,
            descriptor_limit: descriptor_limit(process_id),
        }
    }

    /// Returns how many processor cores the process used on average since `before`.
    pub(super) fn cores_since(&self, before: &Self) -> Option<f64> {
        let used = self.cpu?.checked_sub(before.cpu?)?;
        let span = self.at.checked_duration_since(before.at)?;
        (span > Duration::ZERO).then(|| used.as_secs_f64() / span.as_secs_f64())
    }
}

/// Returns the processor time of all threads of a process, also of those that have ended.
fn cpu_time(process_id: u32) -> Option<Duration> {
    /// The unit of `stat` on every architecture of Linux.
    const TICKS_PER_SECOND: u64 = 100;
    let stat = fs::read_to_string(format!("/proc/{process_id}/stat")).ok()?;
    // The name of the program, in parentheses, can contain spaces and parentheses. utime and stime are the 14th and the
    // 15th value.
    let (_, values) = stat.rsplit_once(')')?;
    let mut values = values.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    let (user, system) = (values.next()?.ok()?, values.next()?.ok()?);
    Some(Duration::from_millis(user.checked_add(system)?.checked_mul(1000 / TICKS_PER_SECOND)?))
}

fn descriptor_limit(process_id: u32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{process_id}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}
