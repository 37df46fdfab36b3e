mod command_line;
mod count;

use core::fmt;
use core::ops::Range;

use self::command_line::CommandLine;
pub use self::count::Counted;
use super::writer::Put;
use super::{
    End, Event, Fields, Label, LabelList, Metadata, SequencePoint, Slot, Stack, Step, Table, Thread,
    ThreadEntry, ThreadSequence, Trace, Version, WriteError, Writer,
};
use crate::Guid;

/// What of a stream to keep, and how to write it. The default keeps everything as it is.
#[derive(Debug, Clone, Copy)]
pub struct RewriteOptions<'o> {
    /// The events to keep; none is all.
    pub only: &'o [Only<'o>],
    /// The first tick of those to keep.
    pub from: u64,
    /// The last one.
    pub to: u64,
    /// The version to write: V4 or V6. `None` is that of the source, and V4 for V3.
    pub version: Option<Version>,
    /// Leaves the command line out of the events that have it, `ProcessInfo` and `RuntimeInformationStart`, and of every
    /// other that calls a field so: the string is empty then. Where it is no string that can be cut out, or the payload
    /// is not as described, all of the payload goes.
    ///
    /// That is all it does. What an application says in its own events (addresses, queries, messages of exceptions, paths
    /// of modules) stays.
    pub strip_command_line: bool,
}

impl Default for RewriteOptions<'_> {
    fn default() -> Self {
        Self { only: &[], from: 0, to: u64::MAX, version: None, strip_command_line: false }
    }
}

impl RewriteOptions<'_> {
    const fn keeps_all(&self) -> bool {
        self.only.is_empty() && self.from == 0 && self.to == u64::MAX
    }
}

/// Events to keep: a provider's, all of them or those with one id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Only<'o> {
    /// The provider's name; runtimes make no difference between `A` and `a` there.
    pub provider: &'o str,
    /// The event's id.
    pub event_id: Option<u32>,
}

impl Only<'_> {
    /// Whether the events that this describes are among them.
    #[must_use]
    pub fn keeps(&self, metadata: &Metadata<'_>) -> bool {
        let lower = |c: char| c.to_ascii_lowercase();
        self.event_id.is_none_or(|id| id == metadata.event_id)
            && metadata.provider.chars().map(lower).eq(self.provider.chars().map(lower))
    }
}

/// The memory of a [`Rewrite`], all of it the caller's.
#[derive(Debug)]
pub struct RewriteSpace<'s> {
    /// What a [`Writer`] writes into. [`Writer::BUFFER`] is enough for what runtimes write and 10,000 threads; it tells
    /// what more takes. What others write may have records as long as the [`Limits`](super::Limits) of the parser allow.
    pub buffer: &'s mut [u8],
    /// One for each metadata record, and one in seven more.
    pub metadata: &'s mut [Slot<Described>],
    /// One for each thread, and one in seven more. In V6, one that has ended is forgotten, unless V4 is still to be told
    /// what it lost.
    pub threads: &'s mut [Slot<Counted>],
    /// From V4 to V6: for pairs of activity ids, as many as should be remembered. From V6 to V4: one for each list of
    /// labels between two sequence points, and one in seven more. Else none.
    pub labels: &'s mut [Slot<Activities>],
}

/// What is known of a metadata record.
#[derive(Debug, Clone, Copy, Default)]
pub struct Described {
    keep: bool,
    command_line: CommandLine,
}

/// The activity ids of events, which V6 has in lists of labels.
#[derive(Debug, Clone, Copy, Default)]
pub struct Activities {
    activity_id: Guid,
    related_activity_id: Guid,
    /// V6: the list.
    id: u32,
}

/// What became of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rewritten {
    /// Events of the source.
    pub events: u64,
    /// Those of them that the result has.
    pub kept: u64,
    /// Of these, those that had a command line, and have it no more.
    pub command_lines: u64,
    /// Metadata records whose fields the result's version cannot describe, in full or at all. Their events are there.
    pub descriptions: u64,
    /// V6 to V4: labels other than activity ids, on their lists.
    pub labels: u64,
    /// V6 to V4: lists of labels that there was no slot for. Their events have no activity ids.
    pub label_lists: u64,
    /// V6 to V4: what is known of a thread besides its number.
    pub thread_entries: u64,
    /// V6 to V4: what the source says of itself that V4 has no place for.
    pub pairs: u64,
}

/// A stream that cannot be rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RewriteError {
    /// A record does not fit.
    Write(WriteError),
    /// There are more metadata records than slots.
    TooManyMetadata,
    /// There are more threads than slots.
    TooManyThreads,
}

impl fmt::Display for RewriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(e) => e.fmt(f),
            Self::TooManyMetadata => f.write_str("more metadata records than there is room for"),
            Self::TooManyThreads => f.write_str("more threads than there is room for"),
        }
    }
}
impl core::error::Error for RewriteError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Write(e) => Some(e),
            _ => None,
        }
    }
}
impl From<WriteError> for RewriteError {
    fn from(e: WriteError) -> Self {
        Self::Write(e)
    }
}

/// Copies a stream, and leaves out or changes what it is told to.
///
/// The records that a [`Parser`](super::Parser) finds go in, the result's bytes come out. Without a filter, a runtime's
/// V4 comes out as it was. With one, numbers close up where an event was left out, and gaps stay where one was lost:
/// [`Loss`](super::Loss) finds in the result what it finds in the source. Metadata goes where no event of it is kept,
/// stacks and sequence points stay.
///
/// V3 becomes V4 or V6, with numbers of its own. V4 and V6 become each other:
///
/// | V4 | V6 |
/// |---|---|
/// | thread and capture thread | a thread of that index, with the id; back again: its id, or the index if it has none |
/// | activity ids | a list of labels; back again: other labels are lost |
/// | `Trace` | pairs; back again: other pairs are lost |
/// | metadata record | the same fields; back again: [`Writer::describe`] says what is lost |
///
/// What is lost is counted in [`Rewritten`].
///
/// A source that is cut or damaged becomes a whole stream of what is good in it.
///
/// ```
/// use ipc_proto::nettrace::{Limits, Only, Parser, Rewrite, RewriteOptions, RewriteSpace, Slot, Step, Writer};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let source = include_bytes!("../../../testdata/nettrace/gen-net10-lab-small.nettrace");
/// let only = [Only { provider: "Lab-Workload", event_id: None }];
/// let options = RewriteOptions { only: &only, strip_command_line: true, ..RewriteOptions::default() };
/// let mut buffer = vec![0; Writer::BUFFER];
/// let (mut metadata, mut threads) = ([Slot::default(); 1024], [Slot::default(); 1024]);
/// let mut rewrite = Rewrite::new(options, RewriteSpace {
///     buffer: &mut buffer,
///     metadata: &mut metadata,
///     threads: &mut threads,
///     labels: &mut [],
/// })?;
/// let (mut parser, mut result) = (Parser::new(Limits::default()), Vec::<u8>::new());
/// loop {
///     let step = parser.next(source);
///     while let Some(bytes) = rewrite.step(&step)? {
///         result.extend(bytes);
///     }
///     if matches!(step, Step::More { .. } | Step::End(_)) {
///         break;
///     }
/// }
/// while let Some(bytes) = rewrite.finish()? {
///     result.extend(bytes);
/// }
/// assert_eq!((rewrite.so_far().events, rewrite.so_far().kept), (142, 135));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Rewrite<'s> {
    options: RewriteOptions<'s>,
    writer: Writer<'s>,
    metadata: Table<'s, Described>,
    threads: Table<'s, Counted>,
    labels: Table<'s, Activities>,
    from: Version,
    to: Version,
    so_far: Rewritten,
    /// V6: what the last sequence point says is to be forgotten behind it.
    forget: u32,
    /// V6 to V4: ids of metadata begin anew in the source, but not in the result.
    first_id: u32,
    last_id: u32,
    /// V3: how many stacks were given ids; and that of the event that is being written already is.
    stacks: u32,
    stack_is_there: bool,
    /// V4 to V6: how many lists of labels there are.
    lists: u32,
    /// The last timestamp.
    now: u64,
    begun: bool,
    complete: bool,
    closed: bool,
}

/// What every step gives: bytes of the result that have to go out before it is made once more; `None` once it is done.
pub type Stepped<'w> = Result<Option<&'w [u8]>, RewriteError>;

/// The same for what is in a table: where they are in the buffer.
type Piece = Result<Option<Range<usize>>, RewriteError>;

/// Gives what has to go out first, if anything has.
macro_rules! first {
    ($put:expr) => {
        if let Some(piece) = $put? {
            return Ok(Some(piece));
        }
    };
}

impl<'s> Rewrite<'s> {
    /// Waits for the first step.
    ///
    /// # Errors
    /// If V3 is to be written, or the buffer is too small for anything.
    pub fn new(options: RewriteOptions<'s>, space: RewriteSpace<'s>) -> Result<Self, RewriteError> {
        let to = options.version.unwrap_or(Version::V4);
        Ok(Self {
            options,
            writer: Writer::new(to, space.buffer)?,
            metadata: Table::new(space.metadata),
            threads: Table::new(space.threads),
            labels: Table::new(space.labels),
            from: to,
            to,
            so_far: Rewritten::default(),
            forget: 0,
            first_id: 0,
            last_id: 0,
            stacks: 0,
            stack_is_there: false,
            lists: 0,
            now: 0,
            begun: false,
            complete: false,
            closed: false,
        })
    }

    /// Takes the next record of the source. Gives bytes that have to go out before the call is made once more, with the
    /// same step; `None` once it is done.
    ///
    /// # Errors
    /// If there is no room for it. The result can then not be finished.
    pub fn step(&mut self, step: &Step<'_>) -> Stepped<'_> {
        let piece = match step {
            Step::Trace(trace) => self.trace(trace),
            Step::Block(_) => self.block(),
            Step::Metadata(record) => self.describe(record),
            Step::Event(event) => self.event(event),
            Step::Stack(stack) => self.writer.put_stack(stack).map_err(RewriteError::from),
            Step::SequencePoint(point) => self.sequence_point(point),
            Step::ThreadSequence(row) => self.thread_sequence(row),
            Step::Thread(thread) => self.thread(thread),
            Step::RemoveThread(row) => self.remove_thread(row),
            Step::LabelList(list) => self.label_list(list),
            Step::End(end) => {
                self.complete = *end == End::Complete;
                Ok(None)
            }
            Step::BadBlock(_) | Step::More { .. } => Ok(None),
        }?;
        Ok(self.writer.bytes(piece))
    }

    /// The source has ended, in whatever way. Gives the rest of the result, piece by piece, then `None`. Of a source that
    /// was no stream at all nothing comes.
    ///
    /// # Errors
    /// If there is no room for it.
    pub fn finish(&mut self) -> Stepped<'_> {
        let piece = self.close()?;
        Ok(self.writer.bytes(piece))
    }

    /// What became of the stream so far.
    #[must_use]
    pub const fn so_far(&self) -> &Rewritten {
        &self.so_far
    }

    fn trace(&mut self, trace: &Trace<'_>) -> Piece {
        if self.begun {
            // Only the first says what the stream is.
            return Ok(None);
        }
        self.from = trace.version;
        self.to = self.options.version.unwrap_or(match trace.version {
            Version::V3 => Version::V4,
            version => version,
        });
        self.writer.set_version(self.to);
        first!(self.writer.put_trace(trace));
        self.begun = true;
        self.now = trace.sync_ticks;
        if self.to == Version::V4 {
            let known = ["ProcessId", "HardwareThreadCount", "ExpectedCPUSamplingRate"];
            let lost = { trace.pairs }.filter(|(key, _)| known.iter().all(|name| *key != **name)).count();
            self.so_far.pairs = u64::try_from(lost).unwrap_or(u64::MAX);
        }
        Ok(None)
    }

    /// Where nothing is left out, blocks end where they did.
    fn block(&mut self) -> Piece {
        first!(self.begin_anew());
        if self.options.keeps_all() && self.from == self.to {
            first!(Put::Ok(self.writer.put_flush()));
        }
        Ok(None)
    }

    /// Forgets what the last sequence point says. It is the last place for what such threads lost, told by the source or
    /// not.
    fn begin_anew(&mut self) -> Piece {
        if self.to == Version::V6 && self.forget & SequencePoint::FLUSH_THREADS != 0 {
            for (thread, counted) in self.threads.iter().filter(|(_, counted)| counted.is_pending()) {
                let row = ThreadSequence { thread, sequence: counted.last(self.to) };
                // Never makes room, for that would part it from its point.
                first!(self.writer.put_thread_sequence(&row));
            }
            self.threads.clear();
        }
        if self.forget & SequencePoint::FLUSH_METADATA != 0 {
            self.metadata.clear();
            self.first_id = self.last_id;
        }
        self.forget = 0;
        Ok(None)
    }

    fn describe(&mut self, record: &Event<'_>) -> Piece {
        let same = self.to == self.from || self.from == Version::V3 && self.to == Version::V4;
        let Ok(mut metadata) = Metadata::decode(self.from, record.payload) else {
            if same && self.options.only.is_empty() {
                first!(self.writer.put_metadata(record));
            } else {
                self.so_far.descriptions = self.so_far.descriptions.saturating_add(1);
            }
            return Ok(None);
        };
        let id = metadata.id;
        let described = Described {
            keep: self.options.only.is_empty() || self.options.only.iter().any(|only| only.keeps(&metadata)),
            command_line: if self.options.strip_command_line {
                CommandLine::of(&metadata)
            } else {
                CommandLine::None
            },
        };
        let mut partly = false;
        if described.keep && same {
            let processor =
                if self.from == Version::V3 { Event::UNKNOWN_PROCESSOR } else { record.processor };
            first!(self.writer.put_metadata(&Event { processor, ..*record }));
        } else if described.keep {
            metadata.id = self.first_id.wrapping_add(id);
            partly = metadata.problem.is_some();
            match self.writer.put_describe(&metadata) {
                Err(WriteError::Version(_) | WriteError::TooLong { .. }) => {
                    partly = true;
                    metadata.fields = Fields::EMPTY;
                    first!(self.writer.put_describe(&metadata));
                }
                put => first!(put),
            }
        }
        self.so_far.descriptions = self.so_far.descriptions.saturating_add(partly.into());
        self.last_id = self.last_id.max(self.first_id.wrapping_add(id));
        self.metadata.insert(id.into(), described).map_err(|_| RewriteError::TooManyMetadata)?;
        Ok(None)
    }

    fn event(&mut self, event: &Event<'_>) -> Piece {
        let described = self.metadata.get(event.metadata_id.into()).copied();
        let described = described
            .unwrap_or_else(|| Described { keep: self.options.only.is_empty(), ..Described::default() });
        let keep = described.keep && (self.options.from..=self.options.to).contains(&event.timestamp);
        let capture_thread = if self.from == Version::V3 { event.thread } else { event.capture_thread };
        let mut counted = self.counted(capture_thread);
        if keep {
            let mut event = *event;
            if self.from == Version::V3 {
                event.capture_thread = event.thread;
                event.processor = Event::UNKNOWN_PROCESSOR;
                if !event.stack.is_empty() {
                    if !self.stack_is_there {
                        let id = self.stacks.wrapping_add(1);
                        first!(self.writer.put_stack(&Stack { id, bytes: event.stack }));
                        (self.stacks, self.stack_is_there) = (id, true);
                    }
                    event.stack_id = self.stacks;
                }
            }
            match (self.from, self.to) {
                (Version::V6, Version::V4) => {
                    event.metadata_id = self.first_id.wrapping_add(event.metadata_id);
                    event.capture_thread = self.thread_id(event.capture_thread);
                    event.thread = self.thread_id(event.thread);
                    let labels = self.labels.get(event.label_list.into()).filter(|_| event.label_list != 0);
                    let labels = labels.copied().unwrap_or_default();
                    (event.activity_id, event.related_activity_id) =
                        (labels.activity_id, labels.related_activity_id);
                }
                (Version::V3 | Version::V4, Version::V6) => {
                    first!(self.declare(event.capture_thread));
                    first!(self.declare(event.thread));
                    counted = self.counted(event.capture_thread);
                    let activities = Activities {
                        activity_id: event.activity_id,
                        related_activity_id: event.related_activity_id,
                        id: 0,
                    };
                    match self.list_of(activities) {
                        Ok(id) => event.label_list = id,
                        Err(key) => {
                            let id = self.lists.wrapping_add(1);
                            first!(self.writer.put_label_list(id, activities.labels()));
                            self.lists = id;
                            let activities = Activities { id, ..activities };
                            if self.labels.insert(key, activities).is_err() {
                                self.labels.clear();
                                let _ = self.labels.insert(key, activities);
                            }
                            event.label_list = id;
                        }
                    }
                }
                _ => {}
            }
            event.sequence = counted.event(&event, true, self.from, self.to);
            let (payload, stripped) = described.command_line.strip(event.payload);
            first!(self.writer.put_event(&event, payload));
            self.so_far.kept = self.so_far.kept.saturating_add(1);
            self.so_far.command_lines = self.so_far.command_lines.saturating_add(stripped.into());
        } else {
            counted.event(event, false, self.from, self.to);
        }
        self.stack_is_there = false;
        self.now = self.now.max(event.timestamp);
        self.so_far.events = self.so_far.events.saturating_add(1);
        self.count(capture_thread, counted)?;
        Ok(None)
    }

    fn sequence_point(&mut self, point: &SequencePoint) -> Piece {
        let flags = if self.from == self.to { point.flags } else { 0 };
        first!(self.writer.put_sequence_point(&SequencePoint { flags, ..*point }));
        self.forget = point.flags;
        self.labels.clear();
        self.lists = 0;
        Ok(None)
    }

    fn thread_sequence(&mut self, row: &ThreadSequence) -> Piece {
        let mut counted = self.counted(row.thread);
        let thread = self.thread_in_result(row.thread);
        if let Some(sequence) = counted.row(row, self.from, self.to) {
            first!(self.writer.put_thread_sequence(&ThreadSequence { thread, sequence }));
        }
        self.count(row.thread, counted)?;
        Ok(None)
    }

    fn thread(&mut self, thread: &Thread<'_>) -> Piece {
        let Thread { index, entries } = *thread;
        if self.to == Version::V6 {
            first!(self.writer.put_thread(index, entries));
        } else {
            let lost = entries.filter(|entry| !matches!(entry, ThreadEntry::ThreadId(_))).count();
            let lost = u64::try_from(lost).unwrap_or(u64::MAX);
            self.so_far.thread_entries = self.so_far.thread_entries.saturating_add(lost);
        }
        let mut counted = self.counted(index);
        counted.begin(thread.thread_id().unwrap_or(index), self.to);
        self.count(index, counted)?;
        Ok(None)
    }

    fn remove_thread(&mut self, row: &ThreadSequence) -> Piece {
        let mut counted = self.counted(row.thread);
        if self.to == Version::V6 {
            if let Some(sequence) = counted.row(row, self.from, self.to) {
                first!(self.writer.put_remove_thread(&ThreadSequence { sequence, ..*row }));
            }
            self.threads.remove(row.thread);
        } else {
            counted.gone(row);
            if counted.is_pending() {
                self.count(row.thread, counted)?;
            } else {
                self.threads.remove(row.thread);
            }
        }
        Ok(None)
    }

    fn label_list(&mut self, list: &LabelList<'_>) -> Piece {
        let LabelList { id, labels } = *list;
        if self.to == Version::V6 {
            first!(self.writer.put_label_list(id, labels));
            return Ok(None);
        }
        let mut activities = Activities::default();
        let mut lost = 0u64;
        for label in labels {
            match label {
                Label::ActivityId(id) => activities.activity_id = id,
                Label::RelatedActivityId(id) => activities.related_activity_id = id,
                _ => lost = lost.saturating_add(1),
            }
        }
        let full = self.labels.insert(id.into(), activities).is_err();
        self.so_far.label_lists = self.so_far.label_lists.saturating_add(full.into());
        self.so_far.labels = self.so_far.labels.saturating_add(lost);
        Ok(None)
    }

    /// Tells what is still to be told of losses, and lets go of what a reader may hold back for order.
    fn close(&mut self) -> Piece {
        if !self.begun {
            return Ok(None);
        }
        if !self.closed {
            first!(self.begin_anew());
            first!(self.introduce());
            let pending = |(_, counted): &(u64, &Counted)| counted.is_pending();
            if !self.complete || self.threads.iter().any(|thread| pending(&thread)) {
                let point = SequencePoint { timestamp: self.now, ..SequencePoint::default() };
                first!(self.writer.put_sequence_point(&point));
                for (thread, counted) in self.threads.iter().filter(pending) {
                    let thread = self.thread_in_result(thread);
                    let row = ThreadSequence { thread, sequence: counted.last(self.to) };
                    first!(self.writer.put_thread_sequence(&row));
                }
            }
            self.closed = true;
        }
        Ok(self.writer.put_finish())
    }

    /// Makes threads known of which only a loss is to be told; a reader of V4 would take that for their beginning.
    fn introduce(&mut self) -> Piece {
        if !self.threads.iter().any(|(_, counted)| counted.is_hidden()) {
            return Ok(None);
        }
        if self.to == Version::V4 {
            let point = SequencePoint { timestamp: self.now, ..SequencePoint::default() };
            first!(self.writer.put_sequence_point(&point));
        }
        for (thread, counted) in self.threads.iter_mut().filter(|(_, counted)| counted.is_hidden()) {
            if self.to == Version::V6 {
                first!(self.writer.put_thread(thread, [ThreadEntry::ThreadId(thread)]));
                counted.declare();
                continue;
            }
            let thread = if self.from == Version::V6 { counted.thread_id() } else { thread };
            let row = ThreadSequence { thread, sequence: counted.introduce() };
            // Never makes room, for that would part it from its point.
            first!(self.writer.put_thread_sequence(&row));
        }
        Ok(None)
    }

    fn counted(&self, thread: u64) -> Counted {
        let fresh = || Counted::new(thread, self.from, self.to);
        self.threads.get(thread).copied().unwrap_or_else(fresh)
    }

    fn count(&mut self, thread: u64, counted: Counted) -> Result<(), RewriteError> {
        self.threads.insert(thread, counted).map(|_| ()).map_err(|_| RewriteError::TooManyThreads)
    }

    /// V6 to V4.
    fn thread_id(&self, index: u64) -> u64 {
        self.counted(index).thread_id()
    }

    fn thread_in_result(&self, thread: u64) -> u64 {
        match (self.from, self.to) {
            (Version::V6, Version::V4) => self.thread_id(thread),
            _ => thread,
        }
    }

    /// V4 to V6: a thread has to be there before an event points to it.
    fn declare(&mut self, thread: u64) -> Piece {
        let mut counted = self.counted(thread);
        if !counted.is_declared() {
            first!(self.writer.put_thread(thread, [ThreadEntry::ThreadId(thread)]));
            counted.declare();
            self.count(thread, counted)?;
        }
        Ok(None)
    }

    /// V4 to V6: the list of these activity ids, if there is one, or else what to find it by.
    fn list_of(&self, activities: Activities) -> Result<u32, u64> {
        let Activities { activity_id, related_activity_id, .. } = activities;
        if (activity_id, related_activity_id) == (Guid::NIL, Guid::NIL) {
            return Ok(0);
        }
        let key = fold(activity_id) ^ fold(related_activity_id).rotate_left(32);
        let list = self.labels.get(key);
        let list = list.filter(|list| {
            (list.activity_id, list.related_activity_id) == (activity_id, related_activity_id)
        });
        list.map(|list| list.id).ok_or(key)
    }
}

impl Activities {
    fn labels(self) -> impl Iterator<Item = Label<'static>> {
        let Self { activity_id, related_activity_id, .. } = self;
        let activity = (activity_id != Guid::NIL).then_some(Label::ActivityId(activity_id));
        let related =
            (related_activity_id != Guid::NIL).then_some(Label::RelatedActivityId(related_activity_id));
        activity.into_iter().chain(related)
    }
}

/// A number that differs where GUIDs do, mostly.
fn fold(Guid(bytes): Guid) -> u64 {
    let mut hash = 0u64;
    for byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}
