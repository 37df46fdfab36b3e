//! HTTP requests that stay in flight or fail, and connections for each of them.
use std::collections::BTreeMap;

use nettrace_analysis::Durations;
use nettrace_analysis::account::Measure;
use nettrace_analysis::requests::{Direction, RequestGroup};

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Finding, Severity, places};
use crate::diagnosis::stretch::Bins;

const SECOND: u64 = 1_000_000_000;
/// How many requests of a kind show how long one takes, and how many that are old are a finding.
const REQUESTS: u64 = 3;
const DIRECTIONS: [(Direction, &str); 2] = [(Direction::Incoming, ""), (Direction::Outgoing, "outgoing ")];

/// Requests that are older than their own kind and all others take.
pub(super) fn stuck(facts: &Facts<'_>) -> Vec<Finding> {
    let kinds = DIRECTIONS.into_iter().flat_map(|of| [(of, false), (of, true)]);
    kinds.filter_map(|((direction, what), is_long)| stuck_of(facts, direction, what, is_long)).collect()
}

/// Returns the old requests of the kinds that are long by nature, or of those that are not.
fn stuck_of(facts: &Facts<'_>, direction: Direction, what: &str, is_long: bool) -> Option<Finding> {
    /// So many requests must have ended to show how long one takes.
    const ENDED: u64 = 10;
    /// How old a request is at least that takes too long, if there are no others to compare with.
    const OLD: u64 = 5 * SECOND;
    let mut all = Durations::default();
    facts.groups(direction).for_each(|group| all.merge(&group.durations));
    let usual = if all.count() >= ENDED { all.quantile(990).saturating_mul(10).max(SECOND) } else { OLD };
    // Other kinds, as exports and long polling, show little of one of which many have ended.
    let limit = |group: &RequestGroup| match group.durations.count() {
        0..REQUESTS => usual,
        REQUESTS..ENDED => usual.max(group.durations.quantile(990).saturating_mul(10)),
        ENDED.. => group.durations.quantile(990).saturating_mul(10).max(SECOND),
    };
    let mut groups: Vec<_> = facts
        .groups(direction)
        .filter(|group| is_long_by_nature(group) == is_long)
        .map(|group| (group.ages.count_from(limit(group)), group))
        .filter(|(old, _)| *old > 0)
        .collect();
    groups.sort_by_key(|(old, _)| core::cmp::Reverse(*old));
    let old: u64 = groups.iter().map(|(old, _)| *old).sum();
    if old < REQUESTS {
        return None;
    }
    let mut methods: BTreeMap<&str, u64> = BTreeMap::new();
    for method in groups.iter().flat_map(|(_, group)| &group.methods) {
        let count = methods.entry(&method.name).or_default();
        *count = count.saturating_add(method.count);
    }
    let most = methods.into_iter().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > old / 2);
    let place = match (most, direction) {
        (Some((name, count)), Direction::Incoming) => format!("; {} of them wait in {name}", count.min(old)),
        (Some((name, _)), Direction::Outgoing) => format!("; {name} sends most of them"),
        (None, Direction::Incoming) => {
            "; where they wait is not known: no asynchronous method of them waits".to_owned()
        }
        (None, Direction::Outgoing) => String::new(),
    };
    let names = groups
        .iter()
        .take(2)
        .map(|(_, group)| format!("{}{} {}", group.method, group.origin, group.path.text));
    let names: Vec<_> = names.map(|name| name.trim().to_owned()).collect();
    let more = match groups.len().saturating_sub(names.len()) {
        0 => String::new(),
        more => format!(" and {more} more kinds"),
    };
    let oldest = groups.iter().filter_map(|(_, group)| group.oldest).max().unwrap_or_default();
    let comparison = match all.count() {
        0 => "no request ended during the recording".to_owned(),
        count => format!("of {count} that ended, 99 % took at most {:.0} ms", all.quantile(990) as f64 / 1e6),
    };
    let evidence = format!(
        "{old} {what}requests ({}{more}) are in flight for up to {:.1} s, and {comparison}{place}; dotnet-ipc heap shows \
         what they hold in memory",
        names.join(", "),
        oldest as f64 / 1e9
    );
    let severity = match is_long {
        true => Severity::Info,
        // Without others, only a person's patience is a measure.
        false => Severity::high_if(all.count() >= ENDED || oldest >= 2 * OLD),
    };
    let finding = Finding::new("requests", severity, evidence);
    Some(finding.in_method(most.map(|(name, _)| name.to_owned())).see("dotnet-ipc requests TARGET"))
}

/// Returns whether requests of a kind are in flight for as long as the client listens: web sockets, events that the server
/// sends, long polling. The scheme of an outgoing request shows it. The events of an incoming one have no status and no
/// type of content, so that words of its path stand for them, unless requests of the same kind have ended soon.
fn is_long_by_nature(group: &RequestGroup) -> bool {
    const WORDS: [&str; 12] = [
        "ws",
        "websocket",
        "websockets",
        "socket",
        "sse",
        "events",
        "stream",
        "signalr",
        "hub",
        "hubs",
        "poll",
        "longpoll",
    ];
    let mut words = group.path.text.split(['/', '-', '_', '?', '.']).map(str::to_ascii_lowercase);
    let ends_soon = group.durations.count() >= REQUESTS && group.durations.quantile(500) < SECOND;
    group.origin.starts_with("ws") || (!ends_soon && words.any(|word| WORDS.contains(&word.as_str())))
}

/// Requests that end with an exception or an error status.
pub(super) fn failed(facts: &Facts<'_>) -> Vec<Finding> {
    DIRECTIONS.iter().filter_map(|(direction, what)| failed_of(facts, *direction, what)).collect()
}

fn failed_of(facts: &Facts<'_>, direction: Direction, what: &str) -> Option<Finding> {
    const FAILED: u64 = 10;
    const SHARE: f64 = 0.1;
    // A status of the client is often an answer: "not found".
    let failures = |group: &RequestGroup| group.failed.saturating_add(group.server_errors);
    let ended: u64 = facts.groups(direction).map(|group| group.durations.count()).sum();
    let failed: u64 = facts.groups(direction).map(failures).sum();
    let share = failed as f64 / ended.max(1) as f64;
    if failed < FAILED || share < SHARE {
        return None;
    }
    let worst = facts.groups(direction).max_by_key(|group| failures(group))?;
    let method = worst.methods.first().filter(|_| direction == Direction::Outgoing);
    let by = method.map_or_else(String::new, |method| format!("; sent by {}", method.name));
    let evidence = format!(
        "{failed} of {ended} {what}requests that ended failed ({:.0} %), {} of them {}{} {}{by}",
        share * 100.0,
        failures(worst),
        worst.method,
        worst.origin,
        worst.path.text
    );
    let finding = Finding::new("failed_requests", Severity::high_if(share > 0.5), evidence);
    Some(finding.in_method(method.map(|method| method.name.clone())).see("dotnet-ipc requests TARGET"))
}

/// A new connection for each request.
pub(super) fn connections(facts: &Facts<'_>) -> Vec<Finding> {
    const PER_SECOND: f64 = 2.0;
    const COUNT: u64 = 20;
    let connections = &facts.of.connections;
    let rows: Vec<_> = facts.rows(Measure::Sent).collect();
    let requests: u64 = rows.iter().map(|row| row.count).sum();
    let stretch = Bins::of_gauge(facts.account, connections).stretch(PER_SECOND);
    let is_many = connections.count() >= COUNT && connections.count() > requests / 2;
    let Some(stretch) = stretch.filter(|_| is_many) else { return Vec::new() };
    let blame = facts.blame(&rows);
    let sockets = facts.system.as_ref().and_then(|[_, end]| end.sockets);
    let sockets = sockets.map_or_else(String::new, |sockets| format!("; {sockets} sockets are open"));
    let evidence = format!(
        "{} new connections for {requests} outgoing HTTP requests ({:.0} a second{}): a new HttpClient for each \
         call?{}{sockets}; dotnet-ipc heap counts the pools of connections in memory",
        connections.count(),
        stretch.rate,
        stretch.when(),
        places(&blame, " ", "of the requests by")
    );
    let finding = Finding::new("connections", Severity::High, evidence);
    vec![finding.blame(&blame).see("dotnet-ipc requests TARGET")]
}
