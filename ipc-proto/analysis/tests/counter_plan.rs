//! The requests of a plan to each version of the runtime.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test states what it expects by unwrapping it"
)]

use core::time::Duration;

use nettrace_analysis::counters::{CounterConfig, CounterPlan, ExponentialConfig, PlanError, Selection};

fn plan(selections: &[&str], version: Option<u8>) -> CounterPlan {
    let selections = selections.iter().map(|text| text.parse().unwrap()).collect();
    CounterPlan::new(&CounterConfig { selections, ..CounterConfig::default() }, version).unwrap()
}

fn lines(plan: &CounterPlan) -> Vec<String> {
    plan.providers.iter().map(|one| format!("{} {:x} {}", one.name, one.keywords, one.arguments)).collect()
}

const ID: &str = "00000000-0000-0000-0000-000000000000";

#[test]
fn runtimes() {
    let event_counters = ["System.Runtime 0 EventCounterIntervalSec=1"];
    for version in [None, Some(3), Some(8)] {
        assert_eq!(lines(&plan(&["System.Runtime"], version)), event_counters);
    }
    let shared = |metrics: &str| {
        format!(
            "System.Diagnostics.Metrics 2 SessionId=SHARED;Metrics={metrics};RefreshInterval=1;\
             MaxTimeSeries=1000;MaxHistograms=10;ClientId={ID}"
        )
    };
    assert_eq!(lines(&plan(&["System.Runtime"], Some(9))), [shared("System.Runtime")]);
    assert_eq!(lines(&plan(&["System.Runtime/cpu-usage"], Some(10))), event_counters);
    assert_eq!(
        lines(&plan(&["system.runtime/dotnet.exceptions"], Some(10))),
        [shared("system.runtime\\dotnet.exceptions")]
    );
    assert_eq!(
        lines(&plan(&["A/x", "A/y", "Meters\\B C*", "EventCounters\\D"], Some(8))),
        [
            "A 0 EventCounterIntervalSec=1".to_owned(),
            "D 0 EventCounterIntervalSec=1".to_owned(),
            shared("\"A\\x,A\\y,B C*\"")
        ]
    );
    let own = plan(&["Meters\\A"], Some(7));
    assert_eq!(own.session_id, ID);
    assert_eq!(
        lines(&own),
        [format!(
            "System.Diagnostics.Metrics 2 SessionId={ID};Metrics=A;RefreshInterval=1;MaxTimeSeries=1000;\
             MaxHistograms=10"
        )]
    );
}

#[test]
fn configurations() {
    let config = CounterConfig {
        selections: vec!["A".parse().unwrap()],
        interval: Duration::from_millis(500),
        exponential_histograms: Some(ExponentialConfig::default()),
        ..CounterConfig::default()
    };
    let found = CounterPlan::new(&config, Some(10)).unwrap();
    assert_eq!(found.session_id, ID);
    let expected = "A 0 EventCounterIntervalSec=0.5";
    assert_eq!(lines(&found)[0], expected);
    let end = ";Base2ExponentialHistogram=\"scale=20;maxBuckets=160;reportDeltas=false\"";
    assert!(lines(&found)[1].ends_with(end));
    let list = CounterConfig { lists_instruments: true, ..config.clone() };
    let list = CounterPlan::new(&list, Some(10)).unwrap();
    assert_eq!((list.providers.len(), list.providers[0].keywords), (1, 4));
    let short = CounterConfig { interval: Duration::from_millis(99), ..config.clone() };
    assert_eq!(CounterPlan::new(&short, None), Err(PlanError::IntervalTooShort));
    let none = CounterConfig { selections: Vec::new(), ..config.clone() };
    assert_eq!(CounterPlan::new(&none, None), Err(PlanError::NothingSelected));
    let bad = Selection { provider: "a;b".to_owned(), name: None, system: None };
    let bad = CounterConfig { selections: vec![bad], ..config };
    assert_eq!(CounterPlan::new(&bad, None), Err(PlanError::BadName));
}
