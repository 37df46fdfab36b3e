//! The report on requests as JSON.
use nettrace_analysis::Durations;
use nettrace_analysis::requests::{OwnMethod, RequestGroup, RouteDurations};
use serde::Serialize;

use crate::output::dates::DateField;
use crate::output::rows::milliseconds;

#[derive(Serialize)]
pub(super) struct InFlightRow<'r> {
    process_id: Option<u64>,
    method: &'r str,
    #[serde(flatten)]
    path: PathRow<'r>,
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_start: DateField,
    oldest_ms: Option<f64>,
    methods: Vec<WaitMethodRow<'r>>,
}

#[derive(Serialize)]
pub(super) struct FinishedRow<'r> {
    process_id: Option<u64>,
    method: &'r str,
    #[serde(flatten)]
    path: PathRow<'r>,
    #[serde(flatten)]
    times: TimesRow,
    max_ms: Option<f64>,
    failed: u64,
}

#[derive(Serialize)]
pub(super) struct OutgoingRow<'r> {
    process_id: Option<u64>,
    origin: &'r str,
    #[serde(flatten)]
    path: PathRow<'r>,
    in_flight: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_start: DateField,
    oldest_ms: Option<f64>,
    #[serde(flatten)]
    times: TimesRow,
    max_ms: Option<f64>,
    failed: u64,
    client_errors: u64,
    server_errors: u64,
    methods: Vec<WaitMethodRow<'r>>,
}

#[derive(Serialize)]
pub(super) struct RouteRow<'r> {
    process_id: Option<u64>,
    method: &'r str,
    route: Option<&'r str>,
    #[serde(flatten)]
    times: TimesRow,
}

#[derive(Serialize)]
struct PathRow<'r> {
    path: &'r str,
    folded: bool,
}

#[derive(Serialize)]
struct TimesRow {
    count: u64,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    p99_ms: Option<f64>,
}

#[derive(Serialize)]
struct WaitMethodRow<'r> {
    name: &'r str,
    count: u64,
}

pub(super) fn in_flight(group: &RequestGroup, oldest_start: DateField) -> InFlightRow<'_> {
    let RequestGroup { process_id, method, in_flight, oldest, .. } = group;
    let (path, methods, oldest_ms) = (path(group), methods(group), oldest.map(milliseconds));
    InFlightRow { process_id: *process_id, method, path, count: *in_flight, oldest_start, oldest_ms, methods }
}

pub(super) fn finished(group: &RequestGroup) -> FinishedRow<'_> {
    let RequestGroup { process_id, method, durations, failed, .. } = group;
    let (path, times, max_ms) = (path(group), times(durations), longest(durations));
    FinishedRow { process_id: *process_id, method, path, times, max_ms, failed: *failed }
}

pub(super) fn sent(group: &RequestGroup, oldest_start: DateField) -> OutgoingRow<'_> {
    OutgoingRow {
        process_id: group.process_id,
        origin: &group.origin,
        path: path(group),
        in_flight: group.in_flight,
        oldest_start,
        oldest_ms: group.oldest.map(milliseconds),
        times: times(&group.durations),
        max_ms: longest(&group.durations),
        failed: group.failed,
        client_errors: group.client_errors,
        server_errors: group.server_errors,
        methods: methods(group),
    }
}

pub(super) fn route(of: &RouteDurations) -> RouteRow<'_> {
    let RouteDurations { process_id, method, route, durations, .. } = of;
    RouteRow { process_id: *process_id, method, route: route.as_deref(), times: times(durations) }
}

fn path(group: &RequestGroup) -> PathRow<'_> {
    PathRow { path: &group.path.text, folded: group.path.is_folded }
}

fn methods(group: &RequestGroup) -> Vec<WaitMethodRow<'_>> {
    group.methods.iter().map(|OwnMethod { name, count, .. }| WaitMethodRow { name, count: *count }).collect()
}

/// Returns percentiles in milliseconds; `None` without durations.
fn times(durations: &Durations) -> TimesRow {
    let count = durations.count();
    let of = |share| (count > 0).then(|| milliseconds(durations.quantile(share)));
    TimesRow { count, p50_ms: of(500), p95_ms: of(950), p99_ms: of(990) }
}

fn longest(durations: &Durations) -> Option<f64> {
    (durations.count() > 0).then(|| milliseconds(durations.longest()))
}
