//! The requests of a trace by kind.
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use ipc_proto::wire::to_u32;

use super::{FoldedPath, Group, OpenRequest, Requests};
use crate::durations::elapsed;
use crate::names::{Names, short_name, source_name};
use crate::place::{at, at_mut};
use crate::{Durations, OwnCode, StackId, Stacks};

/// Whether the program receives a request or sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// The program receives the request.
    Incoming,
    /// The program sends the request.
    Outgoing,
}

/// The requests of a trace, by [`Requests::summary`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RequestSummary {
    /// The kinds of requests: those with the most requests in flight first, then those with the most finished ones.
    pub groups: Vec<RequestGroup>,
    /// The durations by route, if the trace has `http.server.request.duration`.
    pub routes: Vec<RouteDurations>,
    /// How many incoming and outgoing requests ended whose start is not in the trace: most began before it.
    pub ends_without_start: [u64; 2],
    /// How many requests lost their end, because another one has the same activity.
    pub without_end: u64,
    /// How many events of requests have no activity id, and belong to no request.
    pub without_activity: u64,
    /// How many requests are not counted, because there was no room.
    pub dropped: u64,
    /// How many stacks and operations were not stored, because there was no room: methods of requests can be missing.
    pub dropped_methods: u64,
}

impl RequestSummary {
    /// Returns the kinds of requests that the program receives.
    pub fn incoming(&self) -> impl Iterator<Item = &RequestGroup> {
        self.groups.iter().filter(|group| group.direction == Direction::Incoming)
    }

    /// Returns the kinds of requests that the program sends.
    pub fn outgoing(&self) -> impl Iterator<Item = &RequestGroup> {
        self.groups.iter().filter(|group| group.direction == Direction::Outgoing)
    }
}

/// The requests of one kind: a process, a direction, a method or an origin, and a path.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RequestGroup {
    /// The id of the process; `None` if the trace states none.
    pub process_id: Option<u64>,
    /// Whether the program receives or sends the requests.
    pub direction: Direction,
    /// The HTTP method, such as `GET`; empty for outgoing requests, whose events do not state it.
    pub method: String,
    /// Scheme, host and port, such as `http://localhost:5080`; empty for incoming requests.
    pub origin: String,
    /// The path.
    pub path: FoldedPath,
    /// How many requests are in flight at the end.
    pub in_flight: u64,
    /// The nanoseconds since the start of the oldest request in flight; `None` without one.
    pub oldest: Option<u64>,
    /// The durations of the requests that began and ended in the trace.
    pub durations: Durations,
    /// How many requests ended with an exception.
    pub failed: u64,
    /// How many outgoing requests ended with a status from 400 to 499. Runtimes state the status since .NET 8.
    pub client_errors: u64,
    /// How many outgoing requests ended with a status from 500 to 599.
    pub server_errors: u64,
    /// The methods of the program, the most frequent first: of incoming requests, those in which requests in flight
    /// wait; of outgoing requests, those that sent them. The numbers of requests without a known method are missing.
    pub methods: Vec<OwnMethod>,
}

/// A method of the program, and its number of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnMethod {
    /// The name without module and arguments. An asynchronous method has its name in the source.
    pub name: String,
    /// The number of requests.
    pub count: u64,
}

/// The durations of the requests of a route.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RouteDurations {
    /// The id of the process; `None` if the trace states none.
    pub process_id: Option<u64>,
    /// The HTTP method.
    pub method: String,
    /// The route, such as `/orders/{id:int}`; `None` for requests without one.
    pub route: Option<String>,
    /// The durations. The trace has only quantiles for each interval, so a duration counts as the next quantile of its
    /// interval: the quantiles are not below the exact ones, and those above the last one of the trace are not known.
    pub durations: Durations,
}

pub(super) fn summary(requests: &Requests, end: i64, names: &mut Names, own: &OwnCode) -> RequestSummary {
    let mut groups: Vec<RequestGroup> = Vec::new();
    for (key, number) in &requests.numbers {
        let (process_id, direction, name, path) = key.clone();
        let Group { durations, failed, statuses: [client_errors, server_errors] } =
            at(&requests.groups, *number).cloned().unwrap_or_default();
        let (method, origin) = match direction {
            Direction::Incoming => (name, String::new()),
            Direction::Outgoing => (String::new(), name),
        };
        let (in_flight, oldest, methods) = (0, None, Vec::new());
        groups.push(RequestGroup {
            process_id,
            direction,
            method,
            origin,
            path,
            in_flight,
            oldest,
            durations,
            failed,
            client_errors,
            server_errors,
            methods,
        });
    }
    // The index in `groups` of each number.
    let mut places = alloc::vec![0; groups.len()];
    for (place, number) in requests.numbers.values().enumerate() {
        if let Some(found) = at_mut(&mut places, *number) {
            *found = to_u32(place);
        }
    }
    let place = |number: u32| at(&places, number).copied().unwrap_or(u32::MAX);
    let mut own_stacks = OwnStacks {
        stacks: &requests.stacks,
        names,
        own,
        known: BTreeMap::new(),
        methods: Vec::new(),
        ids: BTreeMap::new(),
    };
    let mut methods: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    let mut count = |group: u32, method: Option<u32>, number: u64| {
        if let Some(method) = method {
            let count = methods.entry((group, method)).or_default();
            *count = count.saturating_add(number);
        }
    };
    for ((process, direction, activity), OpenRequest { group, start, stack, .. }) in &requests.open {
        let Some(of) = at_mut(&mut groups, place(*group)) else { continue };
        of.in_flight = of.in_flight.saturating_add(1);
        of.oldest = of.oldest.max(Some(elapsed(*start, end)));
        let method = match direction {
            Direction::Incoming => own_stacks.innermost(&requests.operations.stacks(*process, *activity)),
            Direction::Outgoing => own_stacks.of(*stack).first().copied(),
        };
        count(place(*group), method, 1);
    }
    for ((group, stack), number) in &requests.senders {
        count(place(*group), own_stacks.of(*stack).first().copied(), *number);
    }
    for ((group, method), count) in methods {
        let name = at(&own_stacks.methods, method).cloned().unwrap_or_default();
        if let Some(group) = at_mut(&mut groups, group) {
            group.methods.push(OwnMethod { name, count });
        }
    }
    for group in &mut groups {
        group.methods.sort_by(|a, b| (b.count, &a.name).cmp(&(a.count, &b.name)));
    }
    // Kinds without a request lost all of them to others with the same activity.
    groups.retain(|group| group.in_flight > 0 || group.durations.count() > 0);
    groups.sort_by_key(|group| core::cmp::Reverse((group.in_flight, group.durations.count())));
    let mut routes: Vec<RouteDurations> = requests.routes.rows().cloned().collect();
    routes.sort_by_key(|route| core::cmp::Reverse(route.durations.count()));
    RequestSummary {
        groups,
        routes,
        ends_without_start: requests.ends_without_start,
        without_end: requests.without_end,
        without_activity: requests.without_activity,
        dropped: requests.dropped.saturating_add(requests.routes.dropped()),
        dropped_methods: requests
            .dropped_senders
            .saturating_add(requests.operations.dropped())
            .saturating_add(requests.stacks.cut()),
    }
}

/// The methods of the program in stacks, each stack once.
struct OwnStacks<'a> {
    stacks: &'a Stacks,
    names: &'a mut Names,
    own: &'a OwnCode,
    /// The methods of each stack, the innermost first.
    known: BTreeMap<StackId, Vec<u32>>,
    methods: Vec<String>,
    ids: BTreeMap<String, u32>,
}

impl OwnStacks<'_> {
    /// Returns the methods of the program in a stack, the innermost first.
    fn of(&mut self, stack: StackId) -> &[u32] {
        let Self { stacks, names, own, known, methods, ids } = self;
        known.entry(stack).or_insert_with(|| {
            let mut found = Vec::new();
            for address in stacks.addresses(stack) {
                let frame = names.frame(address);
                let name = names.text(frame);
                if !own.owns(name) {
                    continue;
                }
                let name = source_name(short_name(name));
                let id = ids.get(&name).copied().unwrap_or_else(|| {
                    let id = to_u32(methods.len());
                    methods.push(name.clone());
                    ids.insert(name, id);
                    id
                });
                // An asynchronous method that starts has two frames.
                if found.last() != Some(&id) {
                    found.push(id);
                }
            }
            found
        })
    }

    /// Returns the innermost method of the program of these operations, by their stacks in the order of time: the last
    /// one that called no other one.
    fn innermost(&mut self, operations: &[StackId]) -> Option<u32> {
        // The methods that called an operation.
        let mut callers = Vec::new();
        let mut last = Vec::new();
        for stack in operations {
            if let Some((method, calling)) = self.of(*stack).split_first() {
                last.push(*method);
                callers.extend(calling.iter().copied().filter(|caller| caller != method));
            }
        }
        callers.sort_unstable();
        last.into_iter().rev().find(|method| callers.binary_search(method).is_err())
    }
}
