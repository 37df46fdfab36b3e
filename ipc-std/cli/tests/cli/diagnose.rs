//! Tests of `dotnet-ipc diagnose`, on recordings of a service with one sickness each.
use std::path::Path;

use serde_json::Value;

use crate::tool::run;
use crate::traces::{analysed, path};

fn diagnosis(sickness: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sick");
    let trace = folder.join(format!("{sickness}.nettrace"));
    run(&["diagnose", trace.to_str().unwrap(), "--json"]).well().json()
}

#[test]
fn each_sickness_is_the_first_finding() {
    for (sickness, kind, method) in [
        ("regex", "processor", Some("Contoso.Orders.CustomerNameValidator.IsValid")),
        ("quadratic", "allocations", Some("Contoso.Orders.DailyReportBuilder.BuildAsync")),
        ("exceptions", "exceptions", Some("Contoso.Orders.PriceListImporter.TryParsePrice")),
        ("contention", "contention", Some("Contoso.Orders.AuditTrail.Append")),
        ("starve", "thread_pool", Some("Contoso.Orders.InventoryClient.GetStock")),
        ("deadlock", "deadlock", Some("Contoso.Orders.AccountLedger.Transfer")),
        ("asynchang", "requests", Some("Contoso.Orders.PaymentGateway.WaitForConfirmationAsync")),
        ("leak", "heap_growth", Some("Contoso.Orders.CustomerSession.Open")),
        ("loh", "large_objects", Some("Contoso.Orders.ThumbnailRenderer.Render")),
        ("finalizer", "finalizer", Some("Contoso.Orders.NativePage.Finalize")),
        ("sockets", "connections", Some("Contoso.Orders.ShippingRatesClient.GetRateAsync")),
        ("slowstart", "start", Some("Contoso.Orders.RouteCompiler.CompileAll")),
        ("threads", "threads", Some("Contoso.Orders.HeartbeatMonitor.Watch")),
    ] {
        let diagnosis = diagnosis(sickness);
        let first = &diagnosis["findings"][0];
        assert_eq!(
            (&first["kind"], &first["method"]),
            (&kind.into(), &method.into()),
            "{sickness}: {diagnosis}"
        );
        let [evidence, next] = ["evidence", "next"].map(|key| first[key].as_str().unwrap());
        assert!(method.is_none_or(|method| evidence.contains(method)), "{evidence}");
        let file = format!("{sickness}.nettrace");
        assert!(next.contains(&file) || next.contains(&diagnosis["process_id"].to_string()), "{next}");
    }
}

/// The recording has the start of the deadlock, so that the circle is known.
#[test]
fn a_circle_of_threads() {
    let diagnosis = run(&["diagnose", &analysed("net10-locks.nettrace"), "--json"]).well().json();
    let first = &diagnosis["findings"][0];
    assert_eq!(first["kind"], "deadlock", "{diagnosis}");
    let evidence = first["evidence"].as_str().unwrap();
    assert!(evidence.contains("waits for") && evidence.contains(", which waits for"), "{evidence}");
    // The recording has no names of methods.
    assert!(first["method"].is_null() && !evidence.contains('?'), "{evidence}");
}

#[test]
fn a_healthy_service() {
    let diagnosis = diagnosis("healthy");
    assert_eq!(diagnosis["findings"], Value::Array(Vec::new()));
    let cores = diagnosis["cores"].as_f64().unwrap();
    assert!((0.1..2.0).contains(&cores), "{diagnosis}");
    assert_eq!(diagnosis["processors"], 2);
    // The system's figures are not in a recording.
    for unknown in ["threads", "descriptors", "descriptor_limit", "sockets"] {
        assert!(diagnosis[unknown].is_null(), "{diagnosis}");
    }
}

/// The waits on handles stand for samples.
#[test]
fn a_trace_with_waits_on_handles_only() {
    let folder = tempfile::tempdir().unwrap();
    let waits = folder.path().join("waits.nettrace");
    let runtime = "Microsoft-Windows-DotNETRuntime";
    let [start, stop] = ["301", "302"].map(|event| format!("--only={runtime}/{event}"));
    let names = format!("--only={runtime}Rundown");
    let original = analysed("../sick/handle.nettrace");
    run(&["rewrite", &original, &start, &stop, &names, "-o", waits.to_str().unwrap()]);

    let found = run(&["diagnose", waits.to_str().unwrap(), "--json"]).well().json();
    let [finding] = found["findings"].as_array().unwrap().as_slice() else { panic!("{found}") };
    assert_eq!(
        (finding["kind"].as_str(), finding["method"].as_str()),
        (Some("blocked_threads"), Some("Contoso.Orders.InventoryClient.GetStock"))
    );
    let evidence = finding["evidence"].as_str().unwrap();
    // The 13 waits that `locks` adds up to 20.8 s, in the 2.5 s up to the end.
    assert!(
        evidence.starts_with("13 of 13 threads of the pool wait for a task, 8.1 at any time since 0.5 s"),
        "{evidence}"
    );
    assert!(finding["next"].as_str().unwrap().ends_with(" --waits --by own"), "{finding}");
}

/// A trace without samples, collections and counters has nothing wrong in it, and no figures.
#[test]
fn a_trace_with_little_in_it() {
    let trace = path("gen-net10-activities-small.nettrace");
    let text = run(&["diagnose", &trace]).well().into_text();
    assert!(text.contains("Processor:   not known") && text.contains("Exceptions:  not recorded"), "{text}");
    // What could not be seen comes first, with the command that records it.
    assert!(text.contains("no such events: samples of threads, waits for locks, exceptions"), "{text}");
    assert!(text.ends_with("\n\nNothing stands out in what was recorded.\n"), "{text}");
    let diagnosis = run(&["diagnose", &trace, "--json"]).well().json();
    assert!(
        ["cores", "running_samples", "timers", "heap_after_mb"].iter().all(|key| diagnosis[*key].is_null())
    );
}
