//! Tests of `dotnet-ipc requests`, on recorded traces.

use std::fs;

use nettrace::{Event, Fields, Metadata, Scalar, Trace, TraceWriter, Version};
use serde_json::json;
use tempfile::TempDir;

use crate::tool::run;
use crate::traces::{analysed, put};

fn hang() -> String {
    analysed("net10-requests.nettrace")
}

fn outgoing() -> String {
    analysed("net10-outgoing-requests.nettrace")
}

#[test]
fn a_hang_for_people() {
    let text = run(&["requests", &hang()]).well().into_text();
    let expected = "\
6 requests in flight, 8 finished

 REQUESTS  OLDEST ms  IN FLIGHT
        6       4286  GET /payments/{n}
                      waits in Contoso.Orders.PaymentGateway.WaitForConfirmationAsync

 REQUESTS   P50 ms   P95 ms   P99 ms   MAX ms FAILED  FINISHED
        7    0.306    6.041    6.041    6.041      0  GET /health
        1   11.863   11.863   11.863   11.863      0  GET /payments/{n}
";
    assert_eq!(text, expected);
    // With a pattern, only methods that it describes belong to the program.
    let other = run(&["requests", &hang(), "--own", "Contoso.Orders.Endpoints"]).well().into_text();
    assert!(other.contains(" waits in Contoso.Orders.Endpoints.PayAsync\n"), "{other}");
    let first = run(&["requests", &hang(), "--top", "1"]).well().into_text();
    assert!(first.ends_with("GET /health\n1 more; --top 2 shows all\n"), "{first}");
}

#[test]
fn outgoing_requests_for_people() {
    let text = run(&["requests", &outgoing()]).well().into_text();
    assert!(
        text.starts_with("7 requests in flight, 65 finished; outgoing: 6 in flight, 18 finished\n"),
        "{text}"
    );
    let expected = "\
 REQUESTS   P50 ms   P95 ms   P99 ms   MAX ms FAILED IN FLIGHT  OUTGOING
       18  432.919  465.785  465.785  465.785      0         6
            http://127.0.0.1:5942/internal/rates/{n}
            sent by Contoso.Orders.ShippingRatesClient.GetRateAsync
            in flight for up to 547 ms
";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn requests_as_json() {
    let found = run(&["requests", &hang(), "--json"]).well().json();
    assert_eq!(found["totals"]["in_flight"], 6);
    assert_eq!(
        found["in_flight"],
        json!([{
            "process_id": 8957,
            "method": "GET",
            "path": "/payments/{n}",
            "folded": true,
            "count": 6,
            "oldest_ms": found["in_flight"][0]["oldest_ms"],
            "methods": [{ "name": "Contoso.Orders.PaymentGateway.WaitForConfirmationAsync", "count": 6 }],
        }])
    );
    let finished = &found["finished"][0];
    assert_eq!(
        (&finished["path"], &finished["folded"], &finished["count"]),
        (&json!("/health"), &json!(false), &json!(7))
    );
    let found = run(&["requests", &outgoing(), "--json"]).well().json();
    let sent = &found["outgoing"][0];
    assert_eq!(
        (&sent["origin"], &sent["in_flight"], &sent["count"], &sent["methods"][0]["count"]),
        (&json!("http://127.0.0.1:5942"), &json!(6), &json!(18), &json!(24))
    );
    let keys = ["began_before", "dropped", "finished", "in_flight", "lost", "outgoing", "routes", "totals"];
    assert!(keys.iter().all(|key| !found[key].is_null()), "{found}");
}

/// Without activity ids, the start and the end of a request cannot be connected.
#[test]
fn a_trace_without_activity_ids_says_what_gives_them() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("x.nettrace");
    let file = file.to_str().unwrap();
    let mut buf = vec![0; TraceWriter::BUFFER];
    let mut trace = Vec::new();
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    let mut fields = [0; 256];
    let mut start = Metadata::new(1, "Microsoft.AspNetCore.Hosting", 3, "RequestStart");
    start.fields = Fields::build(&[("method", Scalar::Utf16String)], &mut fields).unwrap();
    put!(trace, writer.describe(&start));
    put!(trace, writer.event(&Event { metadata_id: 1, sequence: 1, payload: &[0, 0], ..Event::default() }));
    trace.extend_from_slice(&writer.finish());
    fs::write(file, &trace).unwrap();
    let ran = run(&["requests", file]);
    ran.fails(9, "have no activity ids").fails(9, "TplEventSource:88");
    let events = run(&["events", file]);
    assert!(events.stderr.contains("add --provider System.Threading.Tasks.TplEventSource:80"), "{events:?}");
    let events = run(&["events", &hang()]).well();
    assert!(events.stderr.is_empty(), "{events:?}");
}

#[test]
fn a_trace_without_requests_says_how_to_record_them() {
    let ran = run(&["requests", &analysed("net10-compilations.nettrace")]);
    assert_eq!((ran.status, ran.text()), (Some(0), ""), "{ran:?}");
    assert!(
        ran.stderr.contains("has no HTTP request that began in it, and earlier ones are not known")
            && ran.stderr.contains("requests --help"),
        "{ran:?}"
    );
}
