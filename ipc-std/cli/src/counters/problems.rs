//! `Problems`: the reasons for missing samples that were reported.
use std::collections::BTreeSet;

use super::report::Process;

/// The problems that were reported, each once for a process.
#[derive(Default)]
pub(crate) struct Problems(BTreeSet<(Process, String)>);

impl Problems {
    /// The maximum number of problems, over all processes. A sentence has at most about 6 KiB.
    const MAX: usize = 1_000;

    /// Returns whether to report a problem.
    pub(crate) fn is_new(&mut self, process: &Process, problem: &str) -> bool {
        self.0.len() < Self::MAX && self.0.insert((process.clone(), problem.to_owned()))
    }
}
