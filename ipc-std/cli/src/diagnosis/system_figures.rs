//! Figures of the operating system about a process.
use std::fs;

use crate::process::cpu_usage::CpuTime;

/// The figures that Linux shows about a process at one moment.
#[derive(Debug, Clone)]
pub(crate) struct SystemFigures {
    cpu: Option<CpuTime>,
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
            cpu: CpuTime::of(process_id),
            threads: entries("task").map(|threads| threads.len()),
            descriptors: descriptors.map(|descriptors| descriptors.len()),
            sockets,
            descriptor_limit: descriptor_limit(process_id),
        }
    }

    /// Returns how many processor cores the process used on average since `before`.
    pub(super) fn cores_since(&self, before: &Self) -> Option<f64> {
        self.cpu.as_ref()?.cores_since(before.cpu.as_ref()?)
    }
}

fn descriptor_limit(process_id: u32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{process_id}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}
