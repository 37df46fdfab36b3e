//! The CPU time of a process and its threads, as Linux counts it.
use core::time::Duration;
use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use super::system_threads;

/// The length of a tick of the system. The kernel counts in this unit for programs, whatever it measures itself.
const TICK: Duration = Duration::from_millis(10);

/// The CPU time that all threads of a process have used up to one moment, also those that have ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuTime {
    at: Instant,
    ticks: u64,
}

/// The CPU time of a process and of its threads up to one moment.
#[derive(Debug, Clone)]
pub(crate) struct CpuTimes {
    process: CpuTime,
    threads: BTreeMap<u64, ThreadTime>,
}

#[derive(Debug, Clone)]
struct ThreadTime {
    name: String,
    ticks: u64,
}

impl CpuTime {
    /// Reads the CPU time of a process now. Systems without a Linux `/proc` return `None`.
    pub(crate) fn of(process_id: u32) -> Option<Self> {
        let ThreadTime { ticks, .. } = ThreadTime::read(&format!("/proc/{process_id}/stat"))?;
        Some(Self { at: Instant::now(), ticks })
    }

    /// Returns the processors that the process has used on average since an earlier moment; `None` if no time has
    /// passed.
    pub(crate) fn cores_since(&self, earlier: &Self) -> Option<f64> {
        cores(earlier.ticks, self.ticks, self.at.saturating_duration_since(earlier.at))
    }
}

impl CpuTimes {
    /// Reads the CPU time of a process and its threads now. Systems without a Linux `/proc` return `None`.
    pub(crate) fn of(process_id: u32) -> Option<Self> {
        let thread = |id| Some((id, ThreadTime::read(&format!("/proc/{process_id}/task/{id}/stat"))?));
        let threads = system_threads::ids(process_id).into_iter().filter_map(thread).collect();
        Some(Self { process: CpuTime::of(process_id)?, threads })
    }
}

impl ThreadTime {
    fn read(path: &str) -> Option<Self> {
        Self::parse(&fs::read(path).ok()?)
    }

    /// Parses a line of `stat`. The name is in parentheses, and can have any character.
    fn parse(stat: &[u8]) -> Option<Self> {
        /// The place of the field `utime`, which `stime` follows, among the fields after the name.
        const USER_TIME: usize = 14 - 3;
        let text = String::from_utf8_lossy(stat);
        let (before, fields) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let mut times = fields.split_ascii_whitespace().skip(USER_TIME).map(str::parse::<u64>);
        let ticks = times.next()?.ok()?.saturating_add(times.next()?.ok()?);
        Some(Self { name: name.to_owned(), ticks })
    }
}

/// The CPU time of a process while it was recorded, in processors that it used on average.
#[derive(Debug, Clone)]
pub(crate) struct CpuUsage {
    pub(crate) cores: f64,
    /// The names of the threads. On Linux, a thread has the name of its creator until it gets one of its own.
    pub(crate) thread_names: BTreeMap<u64, String>,
    /// The part of the threads of the runtime that serve sessions: the sampler is one of them.
    pub(crate) sampler: f64,
    /// The part of the thread that compiles methods again.
    pub(crate) compilation: f64,
    /// The part of the threads that only collect garbage.
    pub(crate) collection: f64,
}

impl CpuUsage {
    /// Returns the usage between two moments; `None` if no time has passed.
    pub(crate) fn between(begin: &CpuTimes, end: &CpuTimes) -> Option<Self> {
        let span = end.process.at.saturating_duration_since(begin.process.at);
        let of_threads = |names: &[&str]| {
            let own = end.threads.iter().filter(|(_, thread)| names.contains(&thread.name.as_str()));
            let used = own.filter_map(|(id, thread)| {
                let earlier = begin.threads.get(id).map_or(0, |thread| thread.ticks);
                cores(earlier, thread.ticks, span)
            });
            used.sum()
        };
        let names = begin.threads.iter().chain(&end.threads);
        Some(Self {
            cores: end.process.cores_since(&begin.process)?,
            thread_names: names.map(|(id, thread)| (*id, thread.name.clone())).collect(),
            sampler: of_threads(&[system_threads::DIAGNOSTICS]),
            compilation: of_threads(&[".NET Tiered Com"]),
            collection: of_threads(&[".NET Server GC", ".NET BGC"]),
        })
    }
}

fn cores(earlier: u64, later: u64, span: Duration) -> Option<f64> {
    let used = later.saturating_sub(earlier) as f64 * TICK.as_secs_f64();
    (!span.is_zero()).then(|| used / span.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel() {
        let line = b"4242 (a) (b c) S 1 2 3 4 5 6 7 8 9 10 140 21 0 0 20 0 14 0 555 0\n";
        let thread = ThreadTime::parse(line).unwrap();
        assert_eq!((thread.name.as_str(), thread.ticks), ("a) (b c", 161));
        for line in [&b""[..], b"1 (a", b"1 (a) S 1 2", b"1 (a) S 1 2 3 4 5 6 7 8 9 10 x 21"] {
            assert!(ThreadTime::parse(line).is_none());
        }
    }

    #[test]
    fn parts_of_a_recording() {
        let at = Instant::now();
        let time = |millis, ticks, threads: &[(u64, &str, u64)]| CpuTimes {
            process: CpuTime { at: at + Duration::from_millis(millis), ticks },
            threads: threads
                .iter()
                .map(|(id, name, ticks)| (*id, ThreadTime { name: (*name).to_owned(), ticks: *ticks }))
                .collect(),
        };
        let begin = time(0, 100, &[(1, "Shop", 100), (2, ".NET EventPipe", 0), (4, "ends", 0)]);
        // A thread that starts during the recording counts from its start.
        let end =
            time(2_000, 400, &[(1, "Shop", 300), (2, ".NET EventPipe", 60), (3, ".NET Tiered Com", 20)]);
        let usage = CpuUsage::between(&begin, &end).unwrap();
        let parts = [usage.cores, usage.sampler, usage.compilation, usage.collection];
        assert_eq!(parts, [1.5, 0.3, 0.1, 0.0]);
        assert_eq!(usage.thread_names.len(), 4);
        assert!(CpuUsage::between(&begin, &begin).is_none());
    }
}
