//! The threads of a report.
use std::collections::BTreeMap;

use nettrace_analysis::report::{CallReport, ThreadReport};
use serde::Serialize;

use crate::output::integer::Integer;

#[derive(Serialize)]
pub(super) struct ThreadRow<'s> {
    pub(super) process_id: Option<Integer>,
    pub(super) thread_id: Integer,
    pub(super) name: Option<&'s str>,
    pub(super) share: f64,
    /// The function in which the thread was sampled most often.
    pub(super) top: &'s str,
    #[serde(skip)]
    pub(super) total: u64,
}

impl<'s> ThreadRow<'s> {
    /// Returns the row of a thread, for which the system can have one of `names`.
    pub(super) fn new(
        of: &ThreadReport,
        report: &'s CallReport<'s>,
        names: Option<&'s BTreeMap<u64, String>>,
    ) -> Option<Self> {
        let thread = report.samples.threads().get(of.number)?;
        let of_system = names.and_then(|names| names.get(&thread.id)).filter(|name| of.roles.has_name(name));
        let of_trace = Some(&thread.name).filter(|name| !name.is_empty());
        Some(Self {
            process_id: (thread.process != 0).then_some(Integer(thread.process)),
            thread_id: Integer(thread.id),
            name: of_system.or(of_trace).map(String::as_str).or_else(|| of.roles.name()),
            share: report.tree.share(of.total),
            top: of.top.map_or("", |frame| report.samples.names().text(frame)),
            total: of.total,
        })
    }
}
