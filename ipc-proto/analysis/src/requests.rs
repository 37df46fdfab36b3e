//! HTTP requests: which ones a server handles and how long it takes, and which ones a program sends to others.
//!
//! [`Requests`] takes the events of a trace in the order of time, and its report has the requests by method and path.
//!
//! | what | events | level |
//! |---|---|---|
//! | requests that the program receives | `Microsoft.AspNetCore.Hosting`: RequestStart (3), RequestStop (4) | informational |
//! | requests that the program sends | `System.Net.Http`: RequestStart (1), RequestStop (2), RequestFailed (3) | informational |
//! | the activity ids that connect the events of a request | `System.Threading.Tasks.TplEventSource`, keyword 0x80 | informational |
//! | the methods in which requests in flight wait | `System.Threading.Tasks.TplEventSource`, keyword 0x8: TraceOperationBegin (14), TraceOperationEnd (15) | informational |
//! | durations by route | `System.Diagnostics.Metrics`: `http.server.request.duration` of the meter `Microsoft.AspNetCore.Hosting` | informational |
//!
//! A program that was compiled ahead of time (NativeAOT) has no event sources, unless it was built with
//! `EventSourceSupport`.
//!
//! # What is known
//!
//! A request belongs to the trace from its RequestStart on. A request that began before the trace is not known: neither
//! while it is in flight, nor its path. When it ends, [`RequestSummary::ends_without_start`] counts it. An event
//! without an activity id belongs to no request, and [`RequestSummary::without_activity`] counts it. If the runtime
//! dropped events, the end of a request can be among them, and the request then seems to be in flight.
//!
//! # Paths
//!
//! [`FoldedPath`] replaces what differs between requests of the same kind. A path is not a route: only the durations of
//! `http.server.request.duration` state the route that handled the request.
//!
//! # Methods that wait
//!
//! An `async` method that has to wait begins an operation, with its stack, and ends it when it returns. A request in
//! flight waits in the innermost method of the program with an operation of the request that has not ended. If several
//! are innermost, because they run side by side, it is the method that began last. A request that blocks its thread has
//! no such method: the stacks of threads show it.
//!
//! # Memory
//!
//! At most [`Requests::OPEN`] requests in flight, [`Requests::OPERATIONS`] operations, and [`Requests::GROUPS`] kinds
//! of requests in each direction, each with [`Durations`](crate::Durations), beside [`Names`](crate::names::Names) and
//! [`Stacks`](crate::Stacks). All requests of a process beyond these kinds are one kind, with the path `[other paths]`. A
//! path has at most 256 bytes after folding. [`RequestSummary::dropped`] counts the requests for which there was no room,
//! and [`RequestSummary::dropped_methods`] the operations and stacks. The work for each event is logarithmic in these
//! numbers.
mod folded_path;
mod operations;
mod own_stacks;
mod requests;
mod routes;
mod summary;

pub use self::folded_path::FoldedPath;
pub(crate) use self::requests::RequestEvents;
pub use self::requests::Requests;
pub use self::summary::{Direction, OwnMethod, RequestGroup, RequestSummary, RouteDurations};
