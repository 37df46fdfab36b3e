//! HTTP requests that stay in flight, and connections for each of them.
use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Finding, Severity};

/// Requests of one kind that begin and do not end.
pub(super) fn stuck(facts: &Facts) -> Option<Finding> {
    const REQUESTS: u64 = 3;
    const OLDEST: u64 = 1_000_000_000;
    let group = facts.requests.incoming().find(|group| {
        let is_old = group
            .oldest
            .is_some_and(|oldest| oldest >= OLDEST && oldest / 10 >= group.durations.quantile(990));
        is_old && group.in_flight >= REQUESTS && group.in_flight > group.durations.count()
    })?;
    let (method, finished) = (group.methods.first(), group.durations.count());
    let wait = method
        .map_or_else(String::new, |method| format!("; {} of them wait in {}", method.count, method.name));
    let evidence = format!(
        "{} requests {} {} are in flight, the oldest for {:.1} s, and {finished} ended during the \
         recording{wait}; dotnet-gcdump shows what they hold in memory",
        group.in_flight,
        group.method,
        group.path.text,
        group.oldest.unwrap_or_default() as f64 / 1e9
    );
    let finding = Finding::new("requests", Severity::High, evidence);
    Some(finding.in_method(method.map(|method| method.name.clone())).see("dotnet-ipc requests TARGET"))
}

/// A new connection for each request.
pub(super) fn connections(facts: &Facts) -> Option<Finding> {
    const PER_SECOND: f64 = 2.0;
    let (connections, requests) = (facts.evidence.connections, facts.outgoing.total);
    let rate = facts.per_second(connections);
    if rate < PER_SECOND || connections.saturating_mul(2) < requests {
        return None;
    }
    let sender = facts.outgoing.heaviest();
    let by = sender
        .as_ref()
        .map_or_else(String::new, |of| format!("; {} of the requests by {}", of.percent, of.place));
    let sockets = facts.system.as_ref().and_then(|[_, end]| end.sockets);
    let sockets = sockets.map_or_else(String::new, |sockets| format!("; {sockets} sockets are open"));
    let evidence = format!(
        "{connections} new connections for {requests} outgoing HTTP requests ({rate:.0} a second): a new \
         HttpClient for each call?{by}{sockets}; dotnet-gcdump counts the pools of connections in memory"
    );
    let finding = Finding::new("connections", Severity::High, evidence);
    Some(finding.in_method(sender.map(|of| of.method)).see("dotnet-ipc requests TARGET"))
}
