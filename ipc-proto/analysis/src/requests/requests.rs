use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use ipc_proto::Guid;
use ipc_proto::wire::to_u32;
use nettrace::{MetadataBuf, TraceEvent};

use super::folded_path::FoldedPath;
use super::operations::Operations;
use super::own_stacks::OwnStacks;
use super::routes::Routes;
use super::summary::{Direction, OwnMethod, RequestGroup, RequestSummary, RouteDurations};
use crate::event::{is_name, number, owned, text};
use crate::names::{Names, at, at_mut, cut};
use crate::samples::{Threads, TraceTables};
use crate::trace::{RecordingSpan, elapsed};
use crate::{Analysis, Durations, OwnCode, Part, StackId, Stacks};

/// Finds the HTTP requests in the events of a trace, which must come in the order of time: see
/// [`EventOrder::Time`](nettrace::EventOrder::Time). The [module](super) has the rules.
///
/// ```
/// use nettrace_analysis::nettrace::{AssemblerStep, BytesOrder, EventAssembler, ReadOptions};
/// use nettrace_analysis::Analysis;
/// use nettrace_analysis::requests::Requests;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/analysis/net10-requests.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::of_bytes(bytes, BytesOrder::Time, ReadOptions::default());
/// let mut requests = Requests::default();
/// while let AssemblerStep::Event(event) = assembler.step() {
///     requests.event(&event);
/// }
/// let summary = requests.finish();
/// for group in summary.incoming() {
///     println!("{} {}: {} in flight", group.method, group.path.text, group.in_flight);
/// }
/// let stuck = summary.incoming().find(|group| group.path.text == "/payments/{n}").unwrap();
/// assert_eq!(stuck.methods[0].name, "Contoso.Orders.PaymentGateway.WaitForConfirmationAsync");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Requests {
    span: RecordingSpan,
    names: Names,
    stacks: Stacks,
    threads: Threads,
    events: RequestEvents,
}

/// The requests by their events. Names and stacks are those of the analysis that it is a part of.
#[derive(Debug, Default)]
pub(crate) struct RequestEvents {
    open: BTreeMap<RequestKey, OpenRequest>,
    groups: Vec<Group>,
    numbers: BTreeMap<GroupKey, u32>,
    /// How many of `groups` are incoming and outgoing.
    counts: [usize; 2],
    /// The stacks from which the finished requests of a group were sent, with their number.
    senders: BTreeMap<(u32, StackId), u64>,
    operations: Operations,
    routes: Routes,
    ends_without_start: [u64; 2],
    without_end: u64,
    without_activity: u64,
    dropped: u64,
    dropped_senders: u64,
}

/// A process, a direction and an activity.
type RequestKey = (Option<u64>, Direction, [u8; 16]);
/// A process, a direction, a method or an origin, and a path.
type GroupKey = (Option<u64>, Direction, String, FoldedPath);

/// A request in flight.
#[derive(Debug, Clone, Copy)]
struct OpenRequest {
    group: u32,
    start: i64,
    /// The activity that sent the request; nil if there is none.
    parent: [u8; 16],
    /// The stack that sent the request; empty for incoming requests.
    stack: StackId,
    is_failed: bool,
}

/// The requests of a kind.
#[derive(Debug, Clone, Default)]
struct Group {
    durations: Durations,
    failed: u64,
    /// The numbers of requests that ended with a status from 400 to 499, and from 500 on.
    statuses: [u64; 2],
}

/// An event of a request.
#[derive(Clone, Copy)]
enum Kind {
    Start(Direction),
    Stop(Direction),
    Failed(Direction),
    /// The start of an operation of an asynchronous method.
    Begin,
    /// The end of an operation.
    End,
}

const HOSTING: &str = "Microsoft.AspNetCore.Hosting";
const HTTP: &str = "System.Net.Http";
const TASKS: &str = "System.Threading.Tasks.TplEventSource";

/// The events of requests: provider, id and kind.
const KINDS: [(&str, u32, Kind); 8] = [
    (HOSTING, 3, Kind::Start(Direction::Incoming)),
    (HOSTING, 4, Kind::Stop(Direction::Incoming)),
    (HOSTING, 5, Kind::Failed(Direction::Incoming)),
    (HTTP, 1, Kind::Start(Direction::Outgoing)),
    (HTTP, 2, Kind::Stop(Direction::Outgoing)),
    (HTTP, 3, Kind::Failed(Direction::Outgoing)),
    (TASKS, 14, Kind::Begin),
    (TASKS, 15, Kind::End),
];

impl Kind {
    fn of(description: &MetadataBuf) -> Option<Self> {
        let is_of = |(provider, event_id, _): &&(&str, u32, Self)| {
            *event_id == description.event_id() && is_name(description.provider(), provider)
        };
        KINDS.iter().find(is_of).map(|(.., kind)| *kind)
    }
}

impl Requests {
    /// How many requests can be in flight at most.
    pub const OPEN: usize = 1 << 16;
    /// How many operations of asynchronous methods can be open at most.
    pub const OPERATIONS: usize = Operations::LIMIT;
    /// How many kinds of requests (method or host, and path) are distinguished at most in each direction, and how many
    /// routes.
    pub const GROUPS: usize = Routes::LIMIT;
    /// How many of these kinds can be those of all other requests of a process, whose path is `[other paths]`.
    const OTHERS: usize = 16;
    /// How many pairs of a kind of requests and a stack that sends them are stored at most.
    pub const SENDERS: usize = 1 << 16;

    /// Returns only the requests of a part of the trace: those that end in it, and those that are in flight at its end.
    /// Threads do not matter. Takes all events of the trace all the same.
    #[must_use]
    pub fn of_part(self, part: Part) -> Self {
        Self { span: RecordingSpan::new(part), ..self }
    }

    /// Sets which methods belong to the program.
    #[must_use]
    pub fn with_own_code(mut self, own: OwnCode) -> Self {
        self.names.set_own_code(own);
        self
    }

    /// Returns the names, to add those of a perf map or of native symbols.
    pub const fn names_mut(&mut self) -> &mut Names {
        &mut self.names
    }
}

impl RequestEvents {
    fn start(
        &mut self,
        event: &TraceEvent<'_>,
        direction: Direction,
        activity: Guid,
        tables: TraceTables<'_>,
    ) {
        let key = (event.process_id(), direction, activity.0);
        if self.open.len() >= Requests::OPEN && !self.open.contains_key(&key) {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        let Some(group) = self.group(event, direction) else {
            self.dropped = self.dropped.saturating_add(1);
            return;
        };
        let stack = match direction {
            Direction::Incoming => StackId::EMPTY,
            Direction::Outgoing => tables.stacks.of(event, tables.names),
        };
        let (start, parent) = (event.nanoseconds(), event.related_activity_id().0);
        let open = OpenRequest { group, start, parent, stack, is_failed: false };
        if self.open.insert(key, open).is_some() {
            self.without_end = self.without_end.saturating_add(1);
            self.operations.end_activity(key.0, key.2);
        }
    }

    fn stop(&mut self, event: &TraceEvent<'_>, direction: Direction, activity: Guid, is_inside: bool) {
        let key = (event.process_id(), direction, activity.0);
        let open = self.open.remove(&key);
        if direction == Direction::Incoming {
            self.operations.end_activity(key.0, key.2);
        }
        if !is_inside {
            return;
        }
        let Some(open) = open else {
            let [incoming, outgoing] = &mut self.ends_without_start;
            let count = if direction == Direction::Incoming { incoming } else { outgoing };
            *count = count.saturating_add(1);
            return;
        };
        if open.stack != StackId::EMPTY {
            let is_full = self.senders.len() >= Requests::SENDERS;
            match self.senders.entry((open.group, open.stack)) {
                Entry::Occupied(mut sent) => *sent.get_mut() = sent.get().saturating_add(1),
                Entry::Vacant(sender) if !is_full => _ = sender.insert(1),
                Entry::Vacant(_) => self.dropped_senders = self.dropped_senders.saturating_add(1),
            }
        }
        let Some(group) = at_mut(&mut self.groups, open.group) else { return };
        group.durations.add(elapsed(open.start, event.nanoseconds()));
        group.failed = group.failed.saturating_add(open.is_failed.into());
        let [client, server] = &mut group.statuses;
        match number(event, "statusCode") {
            Some(400..=499) => *client = client.saturating_add(1),
            Some(500..=599) => *server = server.saturating_add(1),
            _ => {}
        }
    }

    /// Takes the start of an operation, if it belongs to a request in flight.
    fn begin(&mut self, event: &TraceEvent<'_>, activity: Guid, tables: TraceTables<'_>) {
        let process = event.process_id();
        let sent = self.open.get(&(process, Direction::Outgoing, activity.0));
        let activity = sent.map_or(activity.0, |request| request.parent);
        if self.open.contains_key(&(process, Direction::Incoming, activity)) {
            self.operations.begin(event, process, activity, tables.stacks, tables.names);
        }
    }

    /// Returns the number of the group of a request; `None` if there is no room for it.
    fn group(&mut self, event: &TraceEvent<'_>, direction: Direction) -> Option<u32> {
        const MAX_METHOD: usize = 32;
        const MAX_ORIGIN: usize = 256;
        let (origin, path) = match direction {
            Direction::Incoming => {
                let method = owned(text(event, "method").unwrap_or_default());
                (cut(&method, MAX_METHOD).to_owned(), text(event, "path"))
            }
            Direction::Outgoing => {
                let [scheme, host] =
                    ["scheme", "host"].map(|field| owned(text(event, field).unwrap_or_default()));
                let port = number(event, "port").filter(|port| {
                    !matches!((scheme.as_str(), *port), ("http" | "ws", 80) | ("https" | "wss", 443) | (_, 0))
                });
                let port = port.map_or_else(String::new, |port| format!(":{port}"));
                (cut(&format!("{scheme}://{host}{port}"), MAX_ORIGIN).to_owned(), text(event, "pathAndQuery"))
            }
        };
        let path = FoldedPath::new(&owned(path.unwrap_or_default()));
        let mut key = (event.process_id(), direction, origin, path);
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        let [incoming, outgoing] = &mut self.counts;
        let count = if direction == Direction::Incoming { incoming } else { outgoing };
        // The last kinds are those of all other requests of a process.
        if *count >= Requests::GROUPS.saturating_sub(Requests::OTHERS) {
            key = (key.0, direction, String::new(), FoldedPath::others());
            if let Some(number) = self.numbers.get(&key) {
                return Some(*number);
            }
        }
        if *count >= Requests::GROUPS {
            return None;
        }
        *count = count.saturating_add(1);
        let number = to_u32(self.groups.len());
        self.groups.push(Group::default());
        self.numbers.insert(key, number);
        Some(number)
    }

    /// Takes an event that is not one of the runtime. Events before the part that counts can begin requests that end in it.
    pub(crate) fn event(&mut self, event: &TraceEvent<'_>, part: &Part, tables: TraceTables<'_>) {
        let is_inside = part.has_time(event.nanoseconds());
        if !is_inside && part.overlap(event.nanoseconds(), i64::MAX).is_none() {
            return;
        }
        let Some(description) = event.description() else { return };
        self.routes.event(event, description, is_inside);
        let Some(kind) = Kind::of(description) else { return };
        let activity = event.activity_id();
        let count = |number: &mut u64| *number = number.saturating_add(is_inside.into());
        match kind {
            // Operations that belong to no activity are frequent, and of no interest.
            Kind::Begin if activity != Guid::NIL => self.begin(event, activity, tables),
            Kind::End => self.operations.end(event),
            Kind::Begin => {}
            _ if activity == Guid::NIL => count(&mut self.without_activity),
            Kind::Start(direction) => self.start(event, direction, activity, tables),
            Kind::Stop(direction) => self.stop(event, direction, activity, is_inside),
            Kind::Failed(direction) => {
                if let Some(open) = self.open.get_mut(&(event.process_id(), direction, activity.0)) {
                    open.is_failed = true;
                }
            }
        }
    }

    /// Returns the requests of a recording. Those in flight are as old as they were at its end.
    pub(crate) fn finish(self, span: &RecordingSpan, tables: TraceTables<'_>) -> RequestSummary {
        let (start, end) = span.times();
        let cut = tables.stacks.cut();
        let mut groups: Vec<RequestGroup> = Vec::new();
        for (key, number) in &self.numbers {
            let (process_id, direction, name, path) = key.clone();
            let Group { durations, failed, statuses: [client_errors, server_errors] } =
                at(&self.groups, *number).cloned().unwrap_or_default();
            let (method, origin) = match direction {
                Direction::Incoming => (name, String::new()),
                Direction::Outgoing => (String::new(), name),
            };
            let (in_flight, oldest, ages, methods) = (0, None, Durations::default(), Vec::new());
            groups.push(RequestGroup {
                process_id,
                direction,
                method,
                origin,
                path,
                in_flight,
                oldest,
                ages,
                durations,
                failed,
                client_errors,
                server_errors,
                methods,
            });
        }
        // The index in `groups` of each number.
        let mut places = alloc::vec![0; groups.len()];
        for (place, number) in self.numbers.values().enumerate() {
            if let Some(found) = at_mut(&mut places, *number) {
                *found = to_u32(place);
            }
        }
        let place = |number: u32| at(&places, number).copied().unwrap_or(u32::MAX);
        let mut own_stacks = OwnStacks::new(tables.stacks, tables.names);
        let mut methods: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let mut count = |group: u32, method: Option<u32>, number: u64| {
            if let Some(method) = method {
                let count = methods.entry((group, method)).or_default();
                *count = count.saturating_add(number);
            }
        };
        for ((process, direction, activity), OpenRequest { group, start, stack, .. }) in &self.open {
            let Some(of) = at_mut(&mut groups, place(*group)) else { continue };
            of.in_flight = of.in_flight.saturating_add(1);
            of.oldest = of.oldest.max(Some(elapsed(*start, end)));
            of.ages.add(elapsed(*start, end));
            let method = match direction {
                Direction::Incoming => own_stacks.innermost(&self.operations.stacks(*process, *activity)),
                Direction::Outgoing => own_stacks.of(*stack).first().copied(),
            };
            count(place(*group), method, 1);
        }
        for ((group, stack), number) in &self.senders {
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
        let mut routes: Vec<RouteDurations> = self.routes.rows().cloned().collect();
        routes.sort_by_key(|route| core::cmp::Reverse(route.durations.count()));
        RequestSummary {
            groups,
            routes,
            times: (start, end),
            ends_without_start: self.ends_without_start,
            without_end: self.without_end,
            without_activity: self.without_activity,
            dropped: self.dropped.saturating_add(self.routes.dropped()),
            dropped_methods: self
                .dropped_senders
                .saturating_add(self.operations.dropped())
                .saturating_add(cut),
        }
    }
}

impl Analysis for Requests {
    type Report = RequestSummary;

    fn event(&mut self, event: &TraceEvent<'_>) {
        let Self { span, names, stacks, threads, events } = self;
        let Some(kind) = span.event(event) else { return };
        match kind.provider {
            Some(provider) => names.known_event(event, provider, kind.of_runtime),
            None => events.event(event, span.part(), TraceTables { names, stacks, threads }),
        }
    }

    fn extend_to(&mut self, nanoseconds: i64) {
        self.span.extend_to(nanoseconds);
    }

    fn finish(self) -> RequestSummary {
        let Self { span, mut names, mut stacks, mut threads, events } = self;
        let tables = TraceTables { names: &mut names, stacks: &mut stacks, threads: &mut threads };
        events.finish(&span, tables)
    }
}
