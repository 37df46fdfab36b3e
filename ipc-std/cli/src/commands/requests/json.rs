//! The report on requests as JSON.
use nettrace_analysis::Durations;
use nettrace_analysis::requests::{OwnMethod, RequestGroup, RouteDurations};
use serde::Serialize;

use super::{RequestReport, finished_of, in_flight_of};
use crate::output::rows::milliseconds;

#[derive(Serialize)]
struct RequestsRow<'r> {
    in_flight: Vec<InFlightRow<'r>>,
    finished: Vec<FinishedRow<'r>>,
    outgoing: Vec<OutgoingRow<'r>>,
    routes: Vec<RouteRow<'r>>,
    totals: TotalsRow,
    began_before: BeganBeforeRow,
    without_activity: u64,
    dropped: u64,
    dropped_methods: u64,
    lost: u64,
}

#[derive(Serialize)]
struct InFlightRow<'r> {
    process_id: Option<u64>,
    method: &'r str,
    #[serde(flatten)]
    path: PathRow<'r>,
    count: u64,
    oldest_ms: Option<f64>,
    methods: Vec<MethodRow<'r>>,
}

#[derive(Serialize)]
struct FinishedRow<'r> {
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
struct OutgoingRow<'r> {
    process_id: Option<u64>,
    origin: &'r str,
    #[serde(flatten)]
    path: PathRow<'r>,
    in_flight: u64,
    oldest_ms: Option<f64>,
    #[serde(flatten)]
    times: TimesRow,
    max_ms: Option<f64>,
    failed: u64,
    client_errors: u64,
    server_errors: u64,
    methods: Vec<MethodRow<'r>>,
}

#[derive(Serialize)]
struct RouteRow<'r> {
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
struct MethodRow<'r> {
    name: &'r str,
    count: u64,
}

#[derive(Serialize)]
struct TotalsRow {
    in_flight: u64,
    finished: u64,
    outgoing_in_flight: u64,
    outgoing_finished: u64,
}

#[derive(Serialize)]
struct BeganBeforeRow {
    incoming: u64,
    outgoing: u64,
}

impl RequestReport {
    pub(super) fn to_json(&self) -> impl Serialize {
        let [incoming, outgoing] = self.summary.ends_without_start;
        RequestsRow {
            in_flight: self.in_flight().take(self.top).map(in_flight).collect(),
            finished: self.finished().into_iter().take(self.top).map(finished).collect(),
            outgoing: self.summary.outgoing().take(self.top).map(sent).collect(),
            routes: self.summary.routes.iter().take(self.top).map(route).collect(),
            totals: TotalsRow {
                in_flight: in_flight_of(self.summary.incoming()),
                finished: finished_of(self.summary.incoming()),
                outgoing_in_flight: in_flight_of(self.summary.outgoing()),
                outgoing_finished: finished_of(self.summary.outgoing()),
            },
            began_before: BeganBeforeRow { incoming, outgoing },
            without_activity: self.summary.without_activity,
            dropped: self.summary.dropped,
            dropped_methods: self.summary.dropped_methods,
            lost: self.lost,
        }
    }
}

fn in_flight(group: &RequestGroup) -> InFlightRow<'_> {
    let RequestGroup { process_id, method, in_flight, oldest, .. } = group;
    let (path, methods, oldest_ms) = (path(group), methods(group), oldest.map(milliseconds));
    InFlightRow { process_id: *process_id, method, path, count: *in_flight, oldest_ms, methods }
}

fn finished(group: &RequestGroup) -> FinishedRow<'_> {
    let RequestGroup { process_id, method, durations, failed, .. } = group;
    let (path, times, max_ms) = (path(group), times(durations), longest(durations));
    FinishedRow { process_id: *process_id, method, path, times, max_ms, failed: *failed }
}

fn sent(group: &RequestGroup) -> OutgoingRow<'_> {
    OutgoingRow {
        process_id: group.process_id,
        origin: &group.origin,
        path: path(group),
        in_flight: group.in_flight,
        oldest_ms: group.oldest.map(milliseconds),
        times: times(&group.durations),
        max_ms: longest(&group.durations),
        failed: group.failed,
        client_errors: group.client_errors,
        server_errors: group.server_errors,
        methods: methods(group),
    }
}

fn route(of: &RouteDurations) -> RouteRow<'_> {
    let RouteDurations { process_id, method, route, durations, .. } = of;
    RouteRow { process_id: *process_id, method, route: route.as_deref(), times: times(durations) }
}

fn path(group: &RequestGroup) -> PathRow<'_> {
    PathRow { path: &group.path.text, folded: group.path.is_folded }
}

fn methods(group: &RequestGroup) -> Vec<MethodRow<'_>> {
    group.methods.iter().map(|OwnMethod { name, count, .. }| MethodRow { name, count: *count }).collect()
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
