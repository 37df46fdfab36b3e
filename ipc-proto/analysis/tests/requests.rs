//! HTTP requests: recorded ones, and made ones for each rule.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test states what it expects by unwrapping it"
)]

mod runtime_events;

use std::fs;

use nettrace::Scalar;
use nettrace_analysis::requests::{Direction, RequestGroup, RequestSummary, Requests};
use nettrace_analysis::{Analysis as _, Part, TraceTime};

use crate::runtime_events::{Written, each_event, path, utf16};

const HOSTING: &str = "Microsoft.AspNetCore.Hosting";
const HTTP: &str = "System.Net.Http";
const TPL: &str = "System.Threading.Tasks.TplEventSource";
const METRICS: &str = "System.Diagnostics.Metrics";

fn summary_with(trace: &[u8], mut requests: Requests) -> RequestSummary {
    each_event(trace, |event| requests.event(event));
    requests.finish()
}

fn summary(trace: &[u8]) -> RequestSummary {
    summary_with(trace, Requests::default())
}

fn recorded(name: &str) -> RequestSummary {
    summary(&fs::read(path(name)).unwrap())
}

fn methods(group: &RequestGroup) -> Vec<(&str, u64)> {
    group.methods.iter().map(|method| (method.name.as_str(), method.count)).collect()
}

/// Returns method or origin, path, requests in flight, and finished ones.
fn row(group: &RequestGroup) -> (String, &str, u64, u64) {
    let name = format!("{}{}", group.method, group.origin);
    (name, &group.path.text, group.in_flight, group.durations.count())
}

/// Describes the events of requests.
fn described() -> Written {
    use Scalar::{Int32, Int64, Utf16String as Text};

    let mut trace = Written::new();
    trace.describe(HOSTING, (3, 0), "RequestStart", &["method", "path"]);
    trace.describe(HOSTING, (4, 0), "RequestStop", &[]);
    trace.describe(HOSTING, (5, 0), "UnhandledException", &[]);
    let sent = [("scheme", Text), ("host", Text), ("port", Int32), ("pathAndQuery", Text)];
    trace.describe_fields(HTTP, (1, 0), "RequestStart", &sent);
    trace.describe_fields(HTTP, (2, 1), "RequestStop", &[("statusCode", Int32)]);
    trace.describe(HTTP, (3, 0), "RequestFailed", &["exceptionMessage"]);
    let operation = [("TaskID", Int32), ("OperationName", Text), ("RelatedContext", Int64)];
    trace.describe_fields(TPL, (14, 1), "TraceOperationBegin", &operation);
    trace.describe_fields(TPL, (15, 1), "TraceOperationEnd", &[("TaskID", Int32), ("Status", Int32)]);
    trace
}

trait WrittenRequests {
    fn received(&mut self, time: u64, activity: u8, path: &str) -> &mut Self;
    fn answered(&mut self, time: u64, activity: u8) -> &mut Self;
    fn sent(&mut self, time: u64, activity: u8, target: (&str, &str, i32, &str)) -> &mut Self;
    fn begins(&mut self, time: u64, activity: u8, task: i32, stack: &[u64]) -> &mut Self;
    fn ends(&mut self, time: u64, task: i32) -> &mut Self;
}

impl WrittenRequests for Written {
    fn received(&mut self, time: u64, activity: u8, path: &str) -> &mut Self {
        let payload = [utf16("GET"), utf16(path)].concat();
        self.event_of(HOSTING, time, 7, (3, 0), &payload).activity(activity, 0)
    }

    fn answered(&mut self, time: u64, activity: u8) -> &mut Self {
        self.event_of(HOSTING, time, 7, (4, 0), &[]).activity(activity, 0)
    }

    fn sent(
        &mut self,
        time: u64,
        activity: u8,
        (scheme, host, port, path): (&str, &str, i32, &str),
    ) -> &mut Self {
        let payload = [utf16(scheme), utf16(host), port.to_le_bytes().to_vec(), utf16(path)].concat();
        self.event_of(HTTP, time, 7, (1, 0), &payload).activity(activity, 1)
    }

    fn begins(&mut self, time: u64, activity: u8, task: i32, stack: &[u64]) -> &mut Self {
        let payload = [task.to_le_bytes().to_vec(), utf16("Async: <M>d__1"), vec![0; 8]].concat();
        self.event_of(TPL, time, 7, (14, 1), &payload).activity(activity, 0).stack(stack)
    }

    fn ends(&mut self, time: u64, task: i32) -> &mut Self {
        let payload = [task.to_le_bytes(), [1, 0, 0, 0]].concat();
        self.event_of(TPL, time, 8, (15, 1), &payload)
    }
}

/// Names the addresses 0xa0, 0xb0 and 0xc0 as methods of a program, and 0xf0 as one of the framework.
fn named() -> Requests {
    let mut requests = Requests::default();
    let names = requests.names_mut();
    for line in [
        "a0 10 void [Shop] Shop.Api+<GetAsync>d__1::MoveNext()[Tier0]",
        "b0 10 void [Shop] Shop.Bank+<PayAsync>d__2::MoveNext()[Tier0]",
        "c0 10 void [Shop] Shop.Log+<WriteAsync>d__3::MoveNext()[Tier0]",
        "f0 10 void [System.Private.CoreLib] System.Threading.Tasks.Task::Run()[Tier0]",
    ] {
        assert!(names.perf_map_line(0, line));
    }
    requests
}

#[test]
fn a_recorded_hang_names_the_method_that_waits() {
    let found = recorded("analysis/net10-requests.nettrace");
    let incoming: Vec<_> = found.incoming().collect();
    let rows: Vec<_> = incoming.iter().map(|group| row(group)).collect();
    assert_eq!(rows, [("GET".into(), "/payments/{n}", 6, 1), ("GET".into(), "/health", 0, 7)]);
    assert_eq!(methods(incoming[0]), [("Contoso.Orders.PaymentGateway.WaitForConfirmationAsync", 6)]);
    assert!(incoming[0].path.is_folded && incoming[0].oldest.unwrap() > 4_000_000_000);
    assert!(methods(incoming[1]).is_empty() && incoming[1].oldest.is_none());
    assert_eq!((found.outgoing().count(), found.dropped, found.without_activity), (0, 0, 0));
}

#[test]
fn recorded_outgoing_requests_name_the_method_that_sends_them() {
    let found = recorded("analysis/net10-outgoing-requests.nettrace");
    let outgoing: Vec<_> = found.outgoing().collect();
    let rows: Vec<_> = outgoing.iter().map(|group| row(group)).collect();
    assert_eq!(rows, [("http://127.0.0.1:5942".into(), "/internal/rates/{n}", 6, 18)]);
    assert_eq!(methods(outgoing[0]), [("Contoso.Orders.ShippingRatesClient.GetRateAsync", 24)]);
    let durations = &outgoing[0].durations;
    assert!(durations.quantile(500) > 400_000_000 && durations.longest() < 500_000_000);
}

#[test]
fn requests_begin_and_end() {
    let trace = described()
        .received(1_000, 1, "/orders/1")
        .answered(3_000, 1)
        // The activity is used again.
        .received(4_000, 1, "/orders/2?x=1")
        .event_of(HOSTING, 4_500, 7, (5, 0), &[])
        .activity(1, 0)
        .answered(5_000, 1)
        // It began before the trace.
        .answered(5_500, 2)
        .received(6_000, 3, "/health")
        // Its end was lost.
        .received(7_000, 3, "/health")
        .event_of(HOSTING, 8_000, 7, (3, 0), &[utf16("GET"), utf16("/x")].concat())
        .event(9_000, 7, (1, 0), &[])
        .bytes();
    let found = summary(&trace);
    let incoming: Vec<_> = found.incoming().collect();
    let rows: Vec<_> = incoming.iter().map(|group| row(group)).collect();
    assert_eq!(rows, [("GET".into(), "/health", 1, 0), ("GET".into(), "/orders/{n}", 0, 2)]);
    assert_eq!((incoming[0].oldest, incoming[1].durations.longest()), (Some(2_000), 2_000));
    assert_eq!((incoming[0].failed, incoming[1].failed), (0, 1));
    assert_eq!((found.ends_without_start, found.without_end, found.without_activity), ([1, 0], 1, 1));
}

/// The rundown follows the recording, and does not make requests older.
#[test]
fn the_age_of_a_request_ends_with_the_recording() {
    const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
    let trace = described()
        .received(1_000, 1, "/orders/1")
        .event_of(RUNDOWN, 5_000, 7, (144, 1), &[])
        .event_of(RUNDOWN, 9_000, 7, (144, 1), &[])
        .bytes();
    assert_eq!(summary(&trace).groups[0].oldest, Some(4_000));
}

/// Requests that end in the part, and those in flight at its end, as old as they are then.
#[test]
fn requests_of_a_part() {
    let trace = described()
        .received(1_000, 1, "/before")
        .answered(1_500, 1)
        .answered(1_600, 9)
        .received(2_000, 2, "/ends")
        .received(2_100, 3, "/later")
        .answered(3_000, 2)
        .answered(3_100, 9)
        .received(5_000, 4, "/later")
        .answered(6_000, 3)
        .received(7_000, 5, "/after")
        .bytes();
    let part = Part::default().since(TraceTime::SinceStart(2_500)).until(TraceTime::SinceStart(5_500));
    let found = summary_with(&trace, Requests::default().of_part(part));
    let rows: Vec<_> = found
        .incoming()
        .map(|of| (of.path.text.as_str(), of.in_flight, of.oldest, of.durations.longest()))
        .collect();
    assert_eq!(rows, [("/later", 2, Some(3_400), 0), ("/ends", 0, None, 1_000)]);
    assert_eq!(found.ends_without_start, [1, 0]);
}

#[test]
fn outgoing_requests_have_a_host_and_a_status() {
    let status = |trace: &mut Written, time, activity, status: i32| {
        trace.event_of(HTTP, time, 7, (2, 1), &status.to_le_bytes()).activity(activity, 1);
    };
    let mut trace = described();
    for (activity, code) in [(2, 200), (3, 404), (4, 503), (5, -1)] {
        let target = ("https", "bank.example", 443, "/pay/12345?token=x");
        trace.sent(1_000, activity, target).stack(&[0xf5, 0xb5, 0xa5]);
        if code < 0 {
            trace.event_of(HTTP, 1_400, 7, (3, 0), &utf16("refused")).activity(activity, 1);
        }
        status(&mut trace, 1_500, activity, code);
    }
    trace.sent(2_000, 6, ("http", "rates", 8080, "/")).stack(&[0xf5]);
    let found = summary_with(&trace.bytes(), named());
    let outgoing: Vec<_> = found.outgoing().collect();
    let rows: Vec<_> = outgoing.iter().map(|group| row(group)).collect();
    assert_eq!(
        rows,
        [("http://rates:8080".into(), "/", 1, 0), ("https://bank.example".into(), "/pay/{n}", 0, 4)]
    );
    let bank = outgoing[1];
    assert_eq!((bank.failed, bank.client_errors, bank.server_errors), (1, 1, 1));
    assert_eq!(methods(bank), [("Shop.Bank.PayAsync", 4)]);
    assert!(methods(outgoing[0]).is_empty());
}

#[test]
fn a_request_waits_in_the_innermost_method() {
    let (api, bank, log) = ("Shop.Api.GetAsync", "Shop.Bank.PayAsync", "Shop.Log.WriteAsync");
    // The stacks of operations: their addresses, the innermost first.
    let (of_api, of_bank, of_log) = (&[0xf5, 0xa5][..], &[0xf5, 0xb5, 0xa5][..], &[0xf5, 0xc5, 0xa5][..]);
    let begun = |steps: &dyn Fn(&mut Written)| {
        let mut trace = described();
        trace.received(1_000, 1, "/pay");
        steps(&mut trace);
        let found = summary_with(&trace.bytes(), named());
        found.groups[0].methods.iter().map(|method| method.name.clone()).collect::<Vec<_>>()
    };
    // The innermost method begins first.
    assert_eq!(begun(&|trace| _ = trace.begins(2_000, 1, 10, of_bank).begins(2_001, 1, 11, of_api)), [bank]);
    // The callee has ended, so its caller waits for something else.
    let ended: &dyn Fn(&mut Written) =
        &|trace| _ = trace.begins(2_000, 1, 10, of_bank).begins(2_001, 1, 11, of_api).ends(3_000, 10);
    assert_eq!(begun(ended), [api]);
    // The caller continues, and calls another method.
    let next = |trace: &mut Written| {
        ended(trace);
        trace.begins(3_001, 1, 12, of_log);
    };
    assert_eq!(begun(&next), [log]);
    // Of two methods side by side, the one that began last.
    assert_eq!(begun(&|trace| _ = trace.begins(2_000, 1, 10, of_bank).begins(2_001, 1, 12, of_log)), [log]);
    // An operation within an outgoing request belongs to the incoming one.
    let sent = |trace: &mut Written| {
        trace.sent(2_000, 2, ("http", "rates", 80, "/")).begins(2_001, 2, 12, of_log);
    };
    let mut trace = described();
    trace.received(1_000, 1, "/pay");
    sent(&mut trace);
    let found = summary_with(&trace.bytes(), named());
    assert_eq!(found.incoming().next().unwrap().methods[0].name, log);
    // Operations of others do not count.
    assert!(begun(&|trace| _ = trace.begins(2_000, 9, 10, of_bank)).is_empty());
}

/// Two processes can use the same activity id, and have a group of requests each.
#[test]
fn each_process_has_its_own_requests() {
    let mut trace = described();
    trace.process(100).received(1_000, 1, "/x");
    trace.process(200).received(1_000, 1, "/x");
    trace.process(100).answered(3_000, 1);
    let found = summary(&trace.bytes());
    let rows: Vec<_> =
        found.groups.iter().map(|of| (of.process_id, of.in_flight, of.durations.longest())).collect();
    assert_eq!(rows, [(Some(200), 1, 0), (Some(100), 0, 2_000)]);
}

/// Each start is in flight, finished or without an end, and each end has a start or not, in any order of events.
#[test]
fn every_request_is_counted_once() {
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..50 {
        let (mut trace, mut starts, mut ends) = (described(), 0_u64, 0_u64);
        for time in 0..200 {
            let activity = u8::try_from(random(8)).unwrap() + 1;
            let task = i32::try_from(random(10)).unwrap();
            match random(6) {
                0 | 1 => {
                    starts += 1;
                    trace.received(time, activity, ["/a", "/b/1", "/c"][usize::from(activity) % 3]);
                }
                2 => {
                    starts += 1;
                    trace.sent(time, activity, ("http", "bank", 80, "/pay")).stack(&[0xf5, 0xb5]);
                }
                3 => {
                    ends += 1;
                    trace.answered(time, activity);
                }
                4 => _ = trace.begins(time, activity, task, &[0xf5, 0xa5]),
                _ => _ = trace.ends(time, task),
            }
        }
        let found = summary_with(&trace.bytes(), named());
        let in_flight: u64 = found.groups.iter().map(|group| group.in_flight).sum();
        let finished: u64 = found.groups.iter().map(|group| group.durations.count()).sum();
        assert_eq!(in_flight + finished + found.without_end, starts);
        assert_eq!(finished + found.ends_without_start[0], ends);
        for group in &found.groups {
            let named: u64 = group.methods.iter().map(|method| method.count).sum();
            assert!(group.direction == Direction::Outgoing || named <= group.in_flight);
        }
    }
}

#[test]
fn kinds_of_requests_have_a_limit() {
    let mut trace = described();
    for (time, number) in (0..).step_by(2).zip(0..Requests::GROUPS + 5) {
        let letters: String =
            number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect();
        trace.received(time, 1, &format!("/{letters}")).answered(time + 1, 1);
    }
    let found = summary(&trace.bytes());
    // The requests of all paths beyond the limit are one kind, so that none is lost.
    let others = found.groups.iter().find(|group| group.path.text == "[other paths]").unwrap();
    assert_eq!((found.groups.len(), found.dropped), (Requests::GROUPS - 15, 0));
    assert_eq!(others.durations.count(), 21);
}

#[test]
fn durations_by_route() {
    use Scalar::{Double, Int32, Utf16String as Text};

    let names = ["sessionId", "meterName", "meterVersion", "instrumentName", "unit", "tags", "quantiles"];
    let fields: Vec<_> =
        names.iter().map(|name| (*name, Text)).chain([("count", Int32), ("sum", Double)]).collect();
    let mut trace = Written::new();
    trace.describe_fields(METRICS, (6, 1), "HistogramValuePublished", &fields);
    let mut add = |name: &str, tags: &str, quantiles: &str, count: i32| {
        let texts = ["SHARED", HOSTING, "", name, "s", tags, quantiles].map(utf16).concat();
        let payload = [texts, count.to_le_bytes().to_vec(), vec![0; 8]].concat();
        trace.event_of(METRICS, 1_000, 7, (6, 1), &payload);
    };
    let of = "http.request.method=GET,http.response.status_code=200,http.route=/orders/{id:int}";
    add("http.server.request.duration", of, "0.5=0.010;0.95=0.020;0.99=0.030", 100);
    add("http.server.request.duration", of, "0.5=1;0.95=2;0.99=3", 100);
    add("http.server.request.duration", "http.request.method=POST", "0.5=1", 1);
    add("http.server.active_requests", of, "0.5=1", 1);
    let found = summary(&trace.bytes());
    let rows: Vec<_> = found
        .routes
        .iter()
        .map(|route| {
            let quantiles = [500, 750, 990].map(|share| route.durations.quantile(share) / 1_000_000);
            (&*route.method, route.route.as_deref(), route.durations.count(), quantiles)
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("GET", Some("/orders/{id:int}"), 200, [30, 1_000, 3_000]),
            ("POST", None, 1, [1_000, 1_000, 1_000])
        ]
    );
}
