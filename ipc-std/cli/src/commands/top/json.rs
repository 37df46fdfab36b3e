//! Periods as JSON.
use serde::Serialize;

use super::message::Period;
use super::view::{Row, View};
use crate::output::integer::Integer;

/// A period. Shares are in percent.
#[derive(Debug, Serialize)]
pub(super) struct TopPeriod {
    seconds: f64,
    clock: &'static str,
    samples: u64,
    running_samples: u64,
    running_threads: Option<f64>,
    system_cores: Option<f64>,
    pool_spin: f64,
    session: f64,
    gc_paused_percent: f64,
    collections: u64,
    allocated_bytes_per_second: f64,
    exceptions_per_second: f64,
    lost: u64,
    functions: Vec<TopFunction>,
    threads: Vec<TopThread>,
}

#[derive(Debug, Serialize)]
struct TopFunction {
    name: String,
    exclusive: f64,
    inclusive: f64,
    own: bool,
}

#[derive(Debug, Serialize)]
struct TopThread {
    thread_id: Option<Integer>,
    thread_name: Option<String>,
    running: f64,
    share: f64,
    function: String,
    own: bool,
}

impl TopPeriod {
    /// Returns a period with its first `top` functions and threads.
    pub(super) fn new(period: &Period, view: View, is_local: bool, top: usize) -> Self {
        let view = view.shown(period);
        let activity = view.activity(period);
        let rows = |threads| View { threads, ..view }.rows(period, is_local, 0, top).into_iter();
        let share = |part: u64| part as f64 * 100.0 / activity.causes.total.max(1) as f64;
        Self {
            seconds: activity.span as f64 / 1e9,
            clock: if view.wall { "wall" } else { "cpu" },
            samples: activity.samples.total(),
            running_samples: activity.samples.running,
            running_threads: (!activity.hides_running).then(|| activity.running_threads()),
            system_cores: view.cores(period),
            pool_spin: share(activity.causes.pool_spin),
            session: share(activity.causes.session),
            gc_paused_percent: activity.paused_share() * 100.0,
            collections: activity.collections,
            allocated_bytes_per_second: activity.per_second(activity.allocated),
            exceptions_per_second: activity.per_second(activity.exceptions),
            lost: view.lost(period),
            functions: rows(false).map(TopFunction::from).collect(),
            threads: rows(true).map(TopThread::from).collect(),
        }
    }
}

impl From<Row> for TopFunction {
    fn from(Row { shares: [exclusive, inclusive], function, is_own, .. }: Row) -> Self {
        Self { name: function.to_string(), exclusive, inclusive, own: is_own }
    }
}

impl From<Row> for TopThread {
    fn from(Row { shares: [running, share], id, name, function, is_own }: Row) -> Self {
        let function = function.to_string();
        Self { thread_id: id.map(Integer), thread_name: name, running, share, function, own: is_own }
    }
}
