//! The requests of a trace by kind.
use alloc::string::String;
use alloc::vec::Vec;

use super::folded_path::FoldedPath;
use crate::Durations;

/// Whether the program receives a request or sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// The program receives the request.
    Incoming,
    /// The program sends the request.
    Outgoing,
}

/// The requests of a trace, by [`Requests`](super::Requests).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RequestSummary {
    /// The kinds of requests: those with the most requests in flight first, then those with the most finished ones.
    pub groups: Vec<RequestGroup>,
    /// The durations by route, if the trace has `http.server.request.duration`.
    pub routes: Vec<RouteDurations>,
    /// The start and the end of the recording, or of its part, in nanoseconds from the start of the trace.
    pub times: (i64, i64),
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
    /// The times since the start of the requests in flight.
    pub ages: Durations,
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
