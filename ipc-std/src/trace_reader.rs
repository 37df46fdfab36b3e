use core::ops::Range;
use core::time::Duration;
use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::SystemTime;

use ipc_proto::Guid;
use ipc_proto::nettrace::{
    End, Event, Fields, Held, Label, Labels, Limits, LossBuf, Metadata, MetadataBuf, OrderBuf, Pairs,
    SequencePoint, Step, Thread, ThreadEntries, Trace, Values, Version, frames,
};

use crate::StepReader;

/// Reads the events of a trace, each with its description, its stack and its thread: from a file, a
/// [`TraceSession`](crate::TraceSession) that still records, or whatever else reads.
///
/// ```
/// use ipc_proto::nettrace::{End, Item};
/// use ipc_std::TraceReader;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # std::env::set_current_dir(env!("CARGO_MANIFEST_DIR"))?;
/// let file = std::fs::File::open("../testdata/nettrace/gen-net10-lab-small.nettrace")?;
/// let mut trace = TraceReader::new(file);
/// let mut longest = 0;
/// while let Some(event) = trace.next_event()? {
///     let Some(metadata) = event.metadata() else { continue };
///     if metadata.provider != "Lab-Workload" {
///         continue;
///     }
///     println!("{} ns: {} on thread {}", event.nanoseconds(), metadata.name, event.thread_id());
///     for item in event.values() {
///         if let Item::Value { name, value } = item {
///             println!("    {name} = {value:?}");
///         }
///     }
///     longest = longest.max(event.stack().count());
/// }
/// assert!(longest > 0);
/// assert_eq!((trace.end(), trace.lost()), (Some(End::Complete), 0));
/// # Ok(())
/// # }
/// ```
///
/// Events come in the order of the stream, which is that of time for each thread, but not between threads:
/// [`in_order`](Self::in_order) sorts them. Each is there as soon as its bytes are: nothing is read while an event can
/// be given. After the last one, [`end`](Self::end) tells whether the trace was complete; all that is good in a cut or
/// damaged one is delivered.
///
/// Stacks and lists of labels are kept up to the next sequence point, as long as they take no more than 32 MiB; with the
/// first that would be too many, those before it are forgotten, and events that point to them have none. Descriptions are
/// kept up to 32 MiB, and threads of V6; what would be too many is passed over, and its events have none.
///
/// An error of the reader is handed on and spoils nothing. A session that was silent for too long, an error of kind
/// [`TimedOut`](io::ErrorKind::TimedOut), may be asked for its next event again.
#[derive(Debug)]
pub struct TraceReader<R> {
    steps: StepReader<R>,
    joins: Joins,
    loss: LossBuf,
    order: Option<Order>,
    current: Current,
    end: Option<End>,
}

/// The event that was delivered last, and where its bytes are: in the window, or among what is held.
#[derive(Debug, Default)]
struct Current {
    event: Event<'static>,
    payload: Range<usize>,
    stack: Range<usize>,
    /// In order.
    kept: Kept,
}

/// What an event pointed to when it was read. By the time it is delivered, that may have been described anew.
#[derive(Debug, Default)]
struct Kept {
    metadata: Option<Arc<Described>>,
    thread: Option<Arc<ThreadBuf>>,
}

impl<R: Read> TraceReader<R> {
    /// The limit of [`in_order`](Self::in_order) that is enough for what runtimes were seen to write: 16 MiB.
    pub const HELD: usize = 16 << 20;

    /// Reads from the first byte on, in the order of the stream. There is no need for a buffered reader.
    pub fn new(reader: R) -> Self {
        Self::with_limits(reader, Limits::default())
    }

    /// The same with other limits of what the stream may ask for.
    pub fn with_limits(reader: R, limits: Limits) -> Self {
        Self {
            steps: StepReader::with_limits(reader, limits),
            joins: Joins::default(),
            loss: LossBuf::default(),
            order: None,
            current: Current::default(),
            end: None,
        }
    }

    /// Gives the events in the order of time, those of the same time as the stream has them. To be said before the first
    /// is asked for.
    ///
    /// For that some are held, in up to `limit` bytes ([`HELD`](Self::HELD)), until it is certain that none older
    /// follows; the stacks that events may point to come on top of that, and an eighth of it at the
    /// most for descriptions and threads that were replaced meanwhile. Where more would have to be held, all that is
    /// goes out, and [`late`](Self::late) counts what comes behind it and should have come before.
    #[must_use]
    pub fn in_order(mut self, limit: usize) -> Self {
        self.order = Some(Order { limit, ..Order::default() });
        self
    }

    /// Leaves out the stacks, and the memory that they take.
    #[must_use]
    pub const fn without_stacks(mut self) -> Self {
        self.joins.without_stacks = true;
        self
    }

    /// The next event; `None` behind the last one, and from then on.
    ///
    /// # Errors
    /// What the reader says. The call may be repeated then.
    #[inline]
    pub fn next_event(&mut self) -> io::Result<Option<TraceEvent<'_>>> {
        Ok(if self.advance()? { Some(self.event()) } else { None })
    }

    /// What the trace says of itself, which is known with the first event at the latest.
    #[must_use]
    pub fn trace(&self) -> Option<Trace<'_>> {
        let pairs = Pairs::from_bytes(&self.joins.pairs);
        self.joins.trace.map(|trace| Trace { pairs, ..trace })
    }

    /// How the trace ended, which is known behind the last event at the latest.
    #[must_use]
    pub const fn end(&self) -> Option<End> {
        self.end
    }

    /// How many events the runtime dropped because its buffer was full, as far as it has come out: at the next event of
    /// that thread, or at a sequence point.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.loss.get().lost()
    }

    /// How many events were delivered behind a younger one although they were to come in order.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.order.as_ref().map_or(0, |order| order.order.get().late())
    }

    /// What is read.
    #[must_use]
    pub const fn get_ref(&self) -> &R {
        self.steps.get_ref()
    }

    /// What is read. Bytes that are taken from it are missing in the trace, unless the end was reached.
    pub const fn get_mut(&mut self) -> &mut R {
        self.steps.get_mut()
    }

    /// Gives back what is read. What was read of it and not delivered is lost.
    pub fn into_inner(self) -> R {
        self.steps.into_inner()
    }

    /// Goes on to the next event, if there is one.
    #[inline]
    fn advance(&mut self) -> io::Result<bool> {
        match &mut self.order {
            None => self.find(),
            Some(_) => self.find_oldest(),
        }
    }

    fn event(&self) -> TraceEvent<'_> {
        let Current { event, payload, stack, kept } = &self.current;
        let bytes = self.order.as_ref().map_or_else(|| self.steps.window(), |order| &order.bytes);
        let of = |range: &Range<usize>| bytes.get(range.clone()).unwrap_or_default();
        let header = Event { payload: of(payload), stack: of(stack), ..*event };
        TraceEvent { header, joins: &self.joins, kept: self.order.as_ref().map(|_| kept) }
    }

    /// Goes on to the next event of the stream.
    #[inline]
    fn find(&mut self) -> io::Result<bool> {
        loop {
            let found = match self.steps.next_step() {
                Step::Event(event) => {
                    self.loss.event(&event);
                    Found::new(&event)
                }
                Step::More { .. } => {
                    self.steps.read_more()?;
                    continue;
                }
                Step::End(end) => {
                    self.end = Some(end);
                    return Ok(false);
                }
                step => {
                    self.loss.step(&step);
                    self.joins.step(&step);
                    if let Step::SequencePoint(point) = step {
                        self.joins.pass(point);
                    }
                    continue;
                }
            };
            let base = self.steps.window().as_ptr().addr();
            self.current.event = found.event;
            self.current.payload = found.payload.from(base);
            self.current.stack = found.stack.from(base);
            return Ok(true);
        }
    }

    /// Goes on to the next event in time.
    fn find_oldest(&mut self) -> io::Result<bool> {
        loop {
            let Some(order) = &mut self.order else { return Ok(false) };
            if let Some(waiting) = order.pop() {
                self.current = waiting;
                return Ok(true);
            }
            if let Some(point) = order.passed.take() {
                self.joins.pass(point);
            }
            if self.end.is_some() {
                return Ok(false);
            }
            match self.steps.next_step() {
                Step::Event(event) => {
                    self.loss.event(&event);
                    order.hold(&event, self.joins.kept(&event));
                }
                Step::More { .. } => self.steps.read_more()?,
                Step::End(end) => {
                    self.end = Some(end);
                    order.order.release_all();
                }
                step => {
                    self.loss.step(&step);
                    if order.order.get().is_empty() {
                        self.joins.replaced = 0;
                    }
                    self.joins.step(&step);
                    if let Step::SequencePoint(point) = step {
                        order.passed = Some(point);
                        order.order.release_all();
                    } else if self.joins.replaced > order.limit / 8 {
                        order.order.release_all();
                    }
                }
            }
        }
    }
}

/// An event, and where in memory its parts are.
struct Found {
    event: Event<'static>,
    payload: Addresses,
    stack: Addresses,
}

struct Addresses {
    start: usize,
    len: usize,
}

impl Found {
    #[inline]
    fn new(event: &Event<'_>) -> Self {
        let of = |bytes: &[u8]| Addresses { start: bytes.as_ptr().addr(), len: bytes.len() };
        Self { event: event.without_payload(), payload: of(event.payload), stack: of(event.stack) }
    }
}

impl Addresses {
    /// The place in what begins at `base`.
    #[inline]
    const fn from(&self, base: usize) -> Range<usize> {
        let start = self.start.wrapping_sub(base);
        start..start.wrapping_add(self.len)
    }
}

/// Bytes of stacks and lists of labels that are kept; as many of descriptions, and of threads.
const MAX_KEPT: usize = 32 << 20;

/// Puts `new` bytes in the place of `old` ones, if there is room for them.
fn exchange(total: &mut usize, old: usize, new: usize) -> bool {
    let sum = total.saturating_sub(old).saturating_add(new);
    let fits = sum <= MAX_KEPT;
    if fits {
        *total = sum;
    }
    fits
}

/// What events point to.
#[derive(Debug, Default)]
struct Joins {
    trace: Option<Trace<'static>>,
    pairs: Box<[u8]>,
    clock: TraceClock,
    without_stacks: bool,
    metadata: HashMap<u32, Arc<Described>>,
    stacks: HashMap<u32, Range<usize>>,
    label_lists: HashMap<u32, Range<usize>>,
    /// Of stacks and lists of labels.
    bytes: Vec<u8>,
    /// V6.
    threads: HashMap<u64, Arc<ThreadBuf>>,
    /// Bytes of descriptions, and of threads.
    described: usize,
    declared: usize,
    /// Bytes of descriptions and threads that are there only for events which are held.
    replaced: usize,
}

#[derive(Debug)]
struct Described {
    metadata: MetadataBuf,
    /// Bytes of memory.
    size: usize,
}

#[derive(Debug)]
struct ThreadBuf {
    index: u64,
    thread_id: Option<u64>,
    entries: Box<[u8]>,
}

impl ThreadBuf {
    fn size(&self) -> usize {
        size_of_val(self).saturating_add(self.entries.len())
    }
}

impl Joins {
    fn version(&self) -> Version {
        self.trace.map_or(Version::V4, |trace| trace.version)
    }

    fn pointer_size(&self) -> u32 {
        self.trace.map_or(8, |trace| trace.pointer_size)
    }

    /// Takes what is no event.
    fn step(&mut self, step: &Step<'_>) {
        match step {
            Step::Trace(trace) => {
                self.pairs = trace.pairs.as_bytes().into();
                self.trace = Some(Trace { pairs: Pairs::default(), ..*trace });
                self.clock = TraceClock::new(trace);
            }
            Step::Metadata(record) => {
                // One that cannot be read leaves its events without a description, as one that never came does.
                if let Ok(metadata) = MetadataBuf::decode(self.version(), record.payload) {
                    #[cfg(feature = "clr")]
                    let metadata = {
                        let mut metadata = metadata;
                        metadata.describe(self.pointer_size());
                        metadata
                    };
                    let size = size_of::<Described>().saturating_add(record.payload.len());
                    let id = metadata.get().id;
                    let old = self.metadata.get(&id).map_or(0, |old| old.size);
                    if exchange(&mut self.described, old, size) {
                        let old = self.metadata.insert(id, Arc::new(Described { metadata, size }));
                        self.replace(old, |old| old.size);
                    }
                }
            }
            Step::Stack(stack) if !self.without_stacks => {
                let place = self.keep(self.stacks.get(&stack.id).cloned(), stack.bytes);
                self.stacks.insert(stack.id, place);
            }
            Step::LabelList(list) => {
                let place = self.keep(self.label_lists.get(&list.id).cloned(), list.labels.as_bytes());
                self.label_lists.insert(list.id, place);
            }
            Step::Thread(thread) => {
                let (index, thread_id) = (thread.index, thread.thread_id());
                let entries = thread.entries.as_bytes().into();
                let thread = ThreadBuf { index, thread_id, entries };
                let old = self.threads.get(&index).map_or(0, |old| old.size());
                if exchange(&mut self.declared, old, thread.size()) {
                    let old = self.threads.insert(index, Arc::new(thread));
                    self.replace(old, ThreadBuf::size);
                }
            }
            Step::RemoveThread(row) => {
                let old = self.threads.remove(&row.thread);
                exchange(&mut self.declared, old.as_ref().map_or(0, |old| old.size()), 0);
                self.replace(old, ThreadBuf::size);
            }
            _ => {}
        }
    }

    /// What an event that is to be held points to.
    fn kept(&self, event: &Event<'_>) -> Kept {
        let metadata = self.metadata.get(&event.metadata_id).cloned();
        Kept { metadata, thread: self.threads.get(&event.thread).cloned() }
    }

    /// Counts what events still point to although it is no longer there for those that follow.
    fn replace<T>(&mut self, old: Option<Arc<T>>, size: impl Fn(&T) -> usize) {
        if let Some(old) = old.filter(|old| Arc::strong_count(old) > 1) {
            self.replaced = self.replaced.saturating_add(size(&old));
        }
    }

    /// Keeps a stack or a list of labels, where the `old` one of its number was if that is long enough.
    fn keep(&mut self, old: Option<Range<usize>>, bytes: &[u8]) -> Range<usize> {
        if let Some(Range { start, .. }) = old.filter(|old| old.len() >= bytes.len()) {
            let place = start..start.saturating_add(bytes.len());
            if let Some(room) = self.bytes.get_mut(place.clone()) {
                room.copy_from_slice(bytes);
                return place;
            }
        }
        // Those without a byte take memory, too.
        let entries = self.stacks.len().saturating_add(self.label_lists.len());
        let entries = entries.saturating_mul(size_of::<(u32, Range<usize>)>());
        if self.bytes.len().saturating_add(entries).saturating_add(bytes.len()) > MAX_KEPT {
            self.forget();
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// Forgets stacks and lists of labels.
    fn forget(&mut self) {
        self.stacks.clear();
        self.label_lists.clear();
        self.bytes.clear();
    }

    /// Forgets what ends with a sequence point.
    fn pass(&mut self, point: SequencePoint) {
        self.forget();
        if point.flushes_metadata() {
            self.metadata.clear();
            self.described = 0;
        }
        if point.flushes_threads() {
            self.threads.clear();
            self.declared = 0;
        }
    }

    fn bytes(&self, place: Option<&Range<usize>>) -> &[u8] {
        place.and_then(|place| self.bytes.get(place.clone())).unwrap_or_default()
    }
}

/// Holds events until those that are older have come.
#[derive(Debug, Default)]
struct Order {
    order: OrderBuf<Current>,
    /// Of the payloads, and of V3's stacks. Those of events that were delivered stay until there is need for their room.
    bytes: Vec<u8>,
    /// Bytes of events that are held.
    used: usize,
    limit: usize,
    /// One for which there is no room before the others have gone.
    next: Option<Current>,
    /// To be forgotten when the others have gone.
    passed: Option<SequencePoint>,
}

impl Order {
    /// How much memory is taken at once: seldom enough to be cheap, little enough to share the limit.
    fn step(&self) -> usize {
        (256 << 10).min(self.limit / 8)
    }

    fn hold(&mut self, event: &Event<'_>, kept: Kept) {
        let fits = self.make_room(event.payload.len().saturating_add(event.stack.len()));
        let payload = self.keep(event.payload);
        let stack = self.keep(event.stack);
        let held = Current { event: event.without_payload(), payload, stack, kept };
        if fits {
            self.push(held);
        } else {
            self.wait(held);
        }
    }

    fn push(&mut self, held: Current) {
        let Event { timestamp, sorted, .. } = held.event;
        let mut result = self.order.push(timestamp, held);
        if let Err(held) = result {
            let slot = size_of::<Held<Current>>();
            let more = self.left().min(self.step()).checked_div(slot).unwrap_or_default();
            self.order.grow(if self.order.capacity() == 0 { more.max(1) } else { more });
            result = self.order.push(timestamp, held);
        }
        match result {
            Err(held) => self.wait(held),
            Ok(()) if sorted => self.order.release(timestamp),
            Ok(()) => {}
        }
    }

    /// All others go first.
    fn wait(&mut self, held: Current) {
        self.order.release_all();
        self.next = Some(held);
    }

    /// The oldest, if it may go.
    fn pop(&mut self) -> Option<Current> {
        let oldest = match self.order.pop() {
            Some(oldest) => oldest,
            None => {
                // The others have gone.
                let next = self.next.take()?;
                self.push(next);
                self.order.pop()?
            }
        };
        self.used = self.used.saturating_sub(oldest.payload.len()).saturating_sub(oldest.stack.len());
        Some(oldest)
    }

    /// Memory that may still be taken.
    fn left(&self) -> usize {
        let slots = self.order.capacity().saturating_mul(size_of::<Held<Current>>());
        self.limit.saturating_sub(slots).saturating_sub(self.bytes.capacity())
    }

    /// Sees to it that there is room for `n` bytes; false if that is more than the limit.
    fn make_room(&mut self, n: usize) -> bool {
        let has_room = |bytes: &Vec<u8>| bytes.capacity().saturating_sub(bytes.len()) >= n;
        // Where little would come of it, moving all would be done too often.
        if !has_room(&self.bytes) && self.used < self.bytes.len().saturating_sub(self.bytes.len() / 4) {
            self.close_up();
        }
        if has_room(&self.bytes) {
            return true;
        }
        let more = n.max(self.step());
        let fits = more <= self.left();
        self.bytes.reserve_exact(if fits { more } else { n });
        fits
    }

    /// Moves what is held to the front.
    fn close_up(&mut self) {
        let mut end = 0_usize;
        for held in self.order.iter_mut() {
            let from = held.payload.start..held.stack.end;
            let moved = |place: &Range<usize>| {
                let start = place.start.wrapping_sub(from.start).wrapping_add(end);
                start..start.wrapping_add(place.len())
            };
            (held.payload, held.stack) = (moved(&held.payload), moved(&held.stack));
            let len = from.len();
            self.bytes.copy_within(from, end);
            end = end.saturating_add(len);
        }
        self.bytes.truncate(end);
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.used = self.used.saturating_add(bytes.len());
        start..self.bytes.len()
    }
}

/// What turns the ticks of a trace into time, and time into ticks.
///
/// ```
/// use core::time::Duration;
/// use ipc_proto::nettrace::{SystemTime, Trace, Version};
/// use ipc_std::TraceClock;
///
/// let sync_time = SystemTime { year: 1970, month: 1, day: 2, millisecond: 5, ..SystemTime::default() };
/// let trace = Trace { sync_time, sync_ticks: 1000, frequency: 10_000_000, ..Trace::new(Version::V4) };
/// let clock = TraceClock::new(&trace);
/// assert_eq!(clock.start(), std::time::SystemTime::UNIX_EPOCH + Duration::from_millis(86_400_005));
/// assert_eq!(clock.nanoseconds(1003), 300);
/// assert_eq!(clock.ticks(300), 1003);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceClock {
    start: SystemTime,
    ticks: u64,
    frequency: u64,
}

/// In a second.
const NANOSECONDS: u64 = 1_000_000_000;

impl TraceClock {
    /// The clock of this trace.
    #[must_use]
    pub fn new(trace: &Trace<'_>) -> Self {
        let Trace { sync_time, sync_ticks: ticks, frequency, .. } = *trace;
        // A trace without a frequency has no time either; its ticks still tell what was first.
        let frequency = if frequency == 0 { NANOSECONDS } else { frequency };
        Self { start: system_time(sync_time), ticks, frequency }
    }

    /// When the trace began.
    #[must_use]
    pub const fn start(&self) -> SystemTime {
        self.start
    }

    /// From the start to `ticks`; negative before.
    #[must_use]
    #[inline]
    pub fn nanoseconds(&self, ticks: u64) -> i64 {
        let ticks = ticks.wrapping_sub(self.ticks) as i64;
        if self.frequency == NANOSECONDS { ticks } else { scale(ticks, NANOSECONDS, self.frequency) }
    }

    /// The last tick that is not behind so many nanoseconds from the start.
    #[must_use]
    pub fn ticks(&self, nanoseconds: i64) -> u64 {
        self.ticks.saturating_add_signed(scale(nanoseconds, self.frequency, NANOSECONDS))
    }
}

impl Default for TraceClock {
    fn default() -> Self {
        Self { start: SystemTime::UNIX_EPOCH, ticks: 0, frequency: NANOSECONDS }
    }
}

/// `n * by / over`, rounded down.
fn scale(n: i64, by: u64, over: u64) -> i64 {
    let scaled = i128::from(n).wrapping_mul(by.into()).div_euclid(over.max(1).into());
    i64::try_from(scaled).unwrap_or(if n < 0 { i64::MIN } else { i64::MAX })
}

/// Fields that are out of range count all the same: there are traces with 1000 milliseconds.
#[allow(clippy::arithmetic_side_effects, reason = "fields of 16 bits are too small for it")]
fn system_time(time: ipc_proto::nettrace::SystemTime) -> SystemTime {
    let [year, month, day] = [time.year, time.month, time.day].map(i32::from);
    // From March on, so that a leap day ends its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = year * 365 + leap_days + (month * 306 + 5) / 10 + day - 1 - 719_468;
    let [hour, minute, second] = [time.hour, time.minute, time.second].map(i64::from);
    let seconds = i64::from(days) * 86_400 + hour * 3_600 + minute * 60 + second;
    let since = Duration::from_secs(seconds.unsigned_abs());
    let epoch = SystemTime::UNIX_EPOCH;
    let time_of_second = if seconds < 0 { epoch.checked_sub(since) } else { epoch.checked_add(since) };
    time_of_second
        .and_then(|t| t.checked_add(Duration::from_millis(time.millisecond.into())))
        .unwrap_or(epoch)
}

/// An event of a [`TraceReader`], with what it points to.
#[derive(Debug, Clone, Copy)]
pub struct TraceEvent<'a> {
    /// The event as the stream has it: times in ticks, threads and activities in the stream's own numbers.
    pub header: Event<'a>,
    joins: &'a Joins,
    /// Of one that was held, in place of what there is by now.
    kept: Option<&'a Kept>,
}

impl<'a> TraceEvent<'a> {
    /// What describes it: provider, id, name, fields. With feature `clr` the events of the runtime have name and fields
    /// too, which the stream does not tell. What is said of this event alone (V6) overrides what is said of all.
    ///
    /// `None` if the stream does not describe it, as may be behind a damaged block.
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata<'a>> {
        let mut metadata = self.metadata_buf()?.get();
        for label in self.labels() {
            match label {
                Label::Opcode(opcode) => metadata.opcode = Some(opcode),
                Label::Keywords(keywords) => metadata.keywords = keywords,
                Label::Level(level) => metadata.level = level.into(),
                Label::Version(version) => metadata.version = version.into(),
                _ => {}
            }
        }
        Some(metadata)
    }

    /// The fields of its payload, one after the other; none if they are not described.
    #[must_use]
    pub fn values(&self) -> Values<'a> {
        self.metadata_buf()
            .map_or(Fields::EMPTY, |metadata| metadata.get().fields)
            .values(self.header.payload)
    }

    /// The instruction pointers of its stack, the innermost first.
    pub fn stack(&self) -> impl Iterator<Item = u64> + use<'a> {
        let stack = match self.header.stack {
            [] => self.joins.bytes(self.joins.stacks.get(&self.header.stack_id)),
            stack => stack,
        };
        frames(stack, self.joins.pointer_size())
    }

    /// The system's number of the thread that it tells of. V6: the thread's index, if that is all there is.
    #[must_use]
    pub fn thread_id(&self) -> u64 {
        self.thread_buf().and_then(|thread| thread.thread_id).unwrap_or(self.header.thread)
    }

    /// What V6 tells of that thread: its name, its process.
    #[must_use]
    pub fn thread(&self) -> Option<Thread<'a>> {
        let ThreadBuf { index, ref entries, .. } = *self.thread_buf()?;
        Some(Thread { index, entries: ThreadEntries::from_bytes(entries) })
    }

    /// The activity; nil if there is none.
    #[must_use]
    pub fn activity_id(&self) -> Guid {
        let label = |label| if let Label::ActivityId(id) = label { Some(id) } else { None };
        self.labels().find_map(label).unwrap_or(self.header.activity_id)
    }

    /// The activity that this one came from; nil if there is none.
    #[must_use]
    pub fn related_activity_id(&self) -> Guid {
        let label = |label| if let Label::RelatedActivityId(id) = label { Some(id) } else { None };
        self.labels().find_map(label).unwrap_or(self.header.related_activity_id)
    }

    /// What V6 says of this event alone.
    #[must_use]
    pub fn labels(&self) -> Labels<'a> {
        match self.header.label_list {
            0 => Labels::default(),
            list => {
                Labels::from_bytes(self.joins.bytes(self.joins.label_lists.get(&list))).unwrap_or_default()
            }
        }
    }

    /// Nanoseconds from the start of the trace to the event, to the accuracy of the trace's clock; negative before.
    #[must_use]
    pub fn nanoseconds(&self) -> i64 {
        self.joins.clock.nanoseconds(self.header.timestamp)
    }

    /// When it was, by the clock of the machine that recorded it. Where in a millisecond the trace began is not known,
    /// so events of two traces compare no better than that.
    #[must_use]
    pub fn time(&self) -> SystemTime {
        let (start, nanoseconds) = (self.joins.clock.start(), self.nanoseconds());
        let distance = Duration::from_nanos(nanoseconds.unsigned_abs());
        let time = if nanoseconds < 0 { start.checked_sub(distance) } else { start.checked_add(distance) };
        time.unwrap_or(start)
    }

    fn metadata_buf(&self) -> Option<&'a MetadataBuf> {
        let described = match self.kept {
            Some(kept) => kept.metadata.as_deref(),
            None => self.joins.metadata.get(&self.header.metadata_id).map(|described| &**described),
        };
        described.map(|described| &described.metadata)
    }

    fn thread_buf(&self) -> Option<&'a ThreadBuf> {
        match self.kept {
            Some(kept) => kept.thread.as_deref(),
            None => self.joins.threads.get(&self.header.thread).map(|thread| &**thread),
        }
    }
}
