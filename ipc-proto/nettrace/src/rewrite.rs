//! `Rewrite`, the filter and converter of streams from a parser to a writer, and `RewriteEnd`, its last bytes.
mod command_line;
mod error;
mod options;
mod rewrite_counts;
mod space;
mod thread_state;

pub use self::error::RewriteError;
pub use self::options::{EventSelector, RewriteOptions};
pub use self::rewrite_counts::RewriteCounts;
pub use self::space::{Activities, MetadataState, RewriteSpace};
pub use self::thread_state::ThreadState;
use ipc_proto::Guid;
use ipc_proto::wire::to_u64;

use crate::describe::{Attributes, Field, FieldType, Fields, Metadata, Scalar};
use crate::error::DecodeErrorKind;
use crate::join::{IdMap, Slot};
use crate::parse::{
    End, Event, Label, LabelList, Record, SequencePoint, Stack, Thread, ThreadEntry, ThreadSequence, Trace,
    Version,
};
use crate::rewrite::command_line::{CommandLine, Removed, is_command_line};
use crate::rewrite::options::names_code;
use crate::rewrite::space::fold;
use crate::write::{TraceBytes, TraceWriter, WriteError};

/// A filter and converter of streams.
///
/// A rewrite takes the records of a [`Parser`](crate::Parser) and returns the bytes of the result, as a [`TraceWriter`]
/// does. Without a filter, the result of a runtime's V4 stream has the same bytes. With a filter, the sequence numbers
/// of a thread become contiguous where an event was filtered out, and gaps remain where the runtime lost events:
/// [`LossCounter::losses`](crate::LossCounter::losses) counts the same lost events in source and result. Metadata records
/// without a remaining event are removed; stacks and sequence points remain.
///
/// A range of times keeps the events of all times that name code: the rundown, the loads and unloads of methods and
/// modules, and the mappings and symbols of an operating system. A rundown follows the events whose stacks it names, so
/// the stacks in a part of a trace would have no names without it.
///
/// V3 becomes V4 or V6, with sequence numbers that this type assigns. V4 and V6 can become each other. A result in V3
/// is refused: its events would have to be sorted and joined with their stacks.
///
/// | V4 | V6 |
/// |---|---|
/// | thread | a thread of that index, with the id; in reverse: its id, or [`Event::UNKNOWN_THREAD`] |
/// | capture thread | a thread of that index; in reverse: its index, as threads of two processes can have the same id |
/// | activity ids | a list of labels; in reverse: other labels are lost |
/// | `Trace` | pairs; in reverse: other pairs are lost |
/// | metadata record | the same fields; in reverse: [`TraceWriter::describe`] lists the losses |
///
/// [`RewriteCounts`] counts the losses.
///
/// The result of a truncated or corrupt source is a complete stream of its readable records.
///
/// The example `rewrite_trace` keeps the events of one provider and removes command lines:
///
#[doc = concat!("```\n", include_str!("../examples/rewrite_trace.rs"), "```")]
#[derive(Debug)]
pub struct Rewrite<'s> {
    options: RewriteOptions<'s>,
    writer: TraceWriter<'s>,
    metadata: IdMap<&'s mut [Slot<MetadataState>]>,
    threads: IdMap<&'s mut [Slot<ThreadState>]>,
    labels: IdMap<&'s mut [Slot<Activities>]>,
    from: Version,
    to: Version,
    counts: RewriteCounts,
    /// V6: the flags of the last sequence point, which state the records to discard after the point.
    forget: u32,
    /// V6 to V4: the number of sequence points that discarded the threads.
    flushes: u32,
    /// V6 to V4: the offset that is added to the metadata ids of the source, and the largest id of the result. Ids can
    /// start again in the source, but not in the result.
    first_id: u32,
    last_id: u32,
    /// V3: the number of stacks with an id.
    stacks: u32,
    /// V4 to V6: the number of label lists.
    lists: u32,
    /// The largest timestamp so far.
    now: u64,
    /// The number of calls of `resync`.
    resyncs: u32,
    begun: bool,
    complete: bool,
    /// Whether the last sequence point was written (`closed`), and after it the end mark (`ended`).
    closed: bool,
    ended: bool,
}

impl<'s> Rewrite<'s> {
    /// Returns a converter that waits for the first record.
    ///
    /// # Errors
    /// If the buffer has no room for any record; [`WriteError::Version`] for a result in V3.
    pub fn new(options: RewriteOptions<'s>, space: RewriteSpace<'s>) -> Result<Self, RewriteError> {
        let to = options.version.unwrap_or(Version::V4);
        if to == Version::V3 {
            return Err(WriteError::Version(to).into());
        }
        let needed = TraceWriter::SMALLEST_BUFFER;
        if space.buffer.len() < needed {
            return Err(WriteError::BufferTooSmall { needed }.into());
        }
        Ok(Self {
            options,
            writer: TraceWriter::without_trace(to, space.buffer),
            metadata: IdMap::new(space.metadata),
            threads: IdMap::new(space.threads),
            labels: IdMap::new(space.labels),
            from: to,
            to,
            counts: RewriteCounts::default(),
            forget: 0,
            flushes: 0,
            first_id: 0,
            last_id: 0,
            stacks: 0,
            lists: 0,
            now: 0,
            resyncs: 0,
            begun: false,
            complete: false,
            closed: false,
            ended: false,
        })
    }

    /// Takes the next record of the source, and returns the bytes that the caller must output before the next record.
    /// Records before the first `Trace` are ignored.
    ///
    /// # Errors
    /// If the space has no room for the record. After an error the result cannot be finished.
    pub fn record(&mut self, record: &Record<'_>) -> Result<TraceBytes<'_>, RewriteError> {
        self.writer.lend_nothing();
        match record {
            Record::Trace(trace) => self.trace(trace)?,
            Record::End(end) => self.complete = *end == End::Complete,
            _ if !self.begun => {}
            Record::Block(_) => self.block()?,
            Record::Metadata(record) => self.describe(record)?,
            Record::Event(event) => self.event(event)?,
            Record::TimeRange(_) | Record::BadBlock(_) | Record::More { .. } => {}
            Record::Stack(stack) => self.writer.put_stack(stack)?,
            Record::SequencePoint(point) => self.sequence_point(point)?,
            Record::ThreadSequence(row) => self.thread_sequence(row)?,
            Record::Thread(thread) => self.thread(thread)?,
            Record::RemoveThread(row) => self.remove_thread(row)?,
            Record::LabelList(list) => self.label_list(list)?,
        }
        Ok(self.writer.lent())
    }

    /// Prepares for a gap in the source, as after [`Parser::skip_block`](crate::Parser::skip_block): the sequence
    /// numbers of the skipped events are reused, like the numbers of events that are not kept. The result does not show
    /// losses within the gap.
    ///
    /// A [`TimeFilter`](crate::TimeFilter) with the times of the options finds the blocks to skip. Blocks of other times
    /// can name code: see [`RewriteOptions::keeps_names`].
    pub const fn resync(&mut self) {
        self.resyncs = self.resyncs.wrapping_add(1);
    }

    /// Ends the result after any end of the source. [`RewriteEnd`] returns the remaining bytes. The result is empty if
    /// the source had no `Trace` record.
    pub const fn finish(self) -> RewriteEnd<'s> {
        RewriteEnd { rewrite: self }
    }

    /// Returns the counts of the records so far.
    #[must_use]
    pub const fn counts(&self) -> &RewriteCounts {
        &self.counts
    }

    fn trace(&mut self, trace: &Trace<'_>) -> Result<(), RewriteError> {
        if self.begun {
            // A second `Trace` is ignored.
            return Ok(());
        }
        self.from = trace.version;
        self.to = self.options.version.unwrap_or(match trace.version {
            Version::V3 => Version::V4,
            version => version,
        });
        self.writer.set_version(self.to);
        if self.options.strip_command_line && self.to == Version::V6 {
            let stripped = trace.pairs.filter(|(key, _)| is_command_line(*key)).count();
            self.count_command_lines(stripped);
            self.writer.put_trace(trace, |key| !is_command_line(key))?;
        } else {
            self.writer.put_trace(trace, |_| true)?;
        }
        self.begun = true;
        self.now = trace.sync_ticks;
        if self.to == Version::V4 {
            let known = ["ProcessId", "HardwareThreadCount", "ExpectedCPUSamplingRate"];
            let pairs = trace.pairs;
            let lost = pairs.filter(|(key, _)| known.iter().all(|name| *key != **name)).count();
            self.counts.pairs = u64::try_from(lost).unwrap_or(u64::MAX);
        }
        Ok(())
    }

    /// Ends the block of the result where a block of the source ends, unless events are filtered or the version
    /// changes.
    fn block(&mut self) -> Result<(), RewriteError> {
        self.begin_anew()?;
        if self.options.keeps_all() && self.from == self.to {
            self.writer.turn(0)?;
        }
        Ok(())
    }

    /// Discards the threads or the metadata, if the flags of the last sequence point say so. Losses of threads are
    /// reported before the threads are discarded.
    fn begin_anew(&mut self) -> Result<(), RewriteError> {
        if self.forget & SequencePoint::FLUSH_THREADS != 0 {
            if self.to == Version::V6 {
                for (thread, counted) in self.threads.iter_mut().filter(|(_, counted)| counted.is_pending()) {
                    if counted.is_hidden() {
                        let row = ThreadSequence { thread, sequence: counted.introduce() };
                        self.writer.put_thread_sequence(&row)?;
                    }
                    let row = ThreadSequence { thread, sequence: counted.last() };
                    self.writer.put_thread_sequence(&row)?;
                }
                self.threads.clear();
            }
            self.flushes = self.flushes.wrapping_add(1);
        }
        if self.forget & SequencePoint::FLUSH_METADATA != 0 {
            self.metadata.clear();
            self.first_id = self.last_id;
        }
        self.forget = 0;
        Ok(())
    }

    fn describe(&mut self, record: &Event<'_>) -> Result<(), RewriteError> {
        let same = self.to == self.from || self.from == Version::V3 && self.to == Version::V4;
        let Ok(mut metadata) = Metadata::decode(self.from, record.payload) else {
            if self.options.strip_command_line {
                self.counts.unjudged = self.counts.unjudged.saturating_add(1);
            } else if same && self.options.only.is_empty() {
                self.writer.put_metadata(record)?;
            } else {
                self.counts.descriptions = self.counts.descriptions.saturating_add(1);
            }
            return Ok(());
        };
        let id = metadata.id;
        let described = MetadataState {
            keep: self.options.only.is_empty() || self.options.only.iter().any(|only| only.keeps(&metadata)),
            names_code: names_code(&metadata),
            command_line: self.command_line(&metadata),
        };
        let mut partly = false;
        if described.keep && same && !self.options.strip_command_line {
            self.writer.put_metadata(record)?;
        } else if described.keep {
            // Bytes of the record that are not part of its description could contain a command line, so a record is
            // written anew.
            if !same {
                metadata.id = self.first_id.wrapping_add(id);
                partly = metadata.problem.is_some_and(|e| e.kind != DecodeErrorKind::DescribedTwice);
                self.count_changes(&metadata);
            }
            self.strip_attributes(&mut metadata);
            match self.writer.put_describe(&metadata) {
                Err(WriteError::Version(_) | WriteError::TooLong { .. }) => {
                    partly = true;
                    metadata.fields = Fields::EMPTY;
                    self.writer.put_describe(&metadata)?;
                }
                put => put?,
            }
        }
        self.counts.descriptions = self.counts.descriptions.saturating_add(partly.into());
        self.last_id = self.last_id.max(self.first_id.wrapping_add(id));
        self.metadata.insert(id.into(), described).map_err(|_| RewriteError::TooManyMetadata)?;
        Ok(())
    }

    /// Returns where the payloads of an event have the command line, if it is to be removed.
    fn command_line(&self, metadata: &Metadata<'_>) -> CommandLine {
        if !self.options.strip_command_line {
            return CommandLine::None;
        }
        let found = CommandLine::of(metadata);
        let before = self.metadata.get(metadata.id.into());
        before.map_or(found, |before| before.command_line.and(found))
    }

    fn count_command_lines(&mut self, count: usize) {
        self.counts.command_lines = self.counts.command_lines.saturating_add(to_u64(count));
    }

    /// Removes the attributes of a description if one of them has the name of a command line.
    fn strip_attributes(&mut self, metadata: &mut Metadata<'_>) {
        if self.options.strip_command_line {
            let stripped = metadata.attributes.iter().filter(|(key, _)| is_command_line(*key)).count();
            if stripped > 0 {
                metadata.attributes = Attributes::default();
            }
            self.count_command_lines(stripped);
        }
    }

    /// V6 to V4: counts what the result cannot state of a description, or states by other types.
    fn count_changes(&mut self, metadata: &Metadata<'_>) {
        if self.to != Version::V4 {
            return;
        }
        let texts = [metadata.message_template.is_some(), metadata.description.is_some()];
        let others = [metadata.provider_guid.is_some(), metadata.attributes.iter().next().is_some()];
        let lost = texts.into_iter().chain(others).filter(|is_lost| *is_lost).count();
        self.counts.description_parts = self.counts.description_parts.saturating_add(to_u64(lost));
        let is_changed = |field: &Field<'_>| match field.field_type.innermost() {
            FieldType::Scalar(scalar) => {
                matches!(scalar, Scalar::Utf8CodeUnit | Scalar::Boolean8 | Scalar::Utf8String)
            }
            _ => false,
        };
        self.counts.types = self.counts.types.saturating_add(metadata.fields.any(&is_changed).into());
    }

    fn event(&mut self, event: &Event<'_>) -> Result<(), RewriteError> {
        let described = self.metadata.get(event.metadata_id.into()).copied();
        let described = described.unwrap_or(MetadataState {
            keep: self.options.only.is_empty(),
            names_code: false,
            command_line: if self.options.strip_command_line {
                CommandLine::Unknown
            } else {
                CommandLine::None
            },
        });
        let is_inside = (self.options.from..=self.options.to).contains(&event.timestamp);
        let keep = described.keep && (is_inside || described.names_code);
        let capture_thread = if self.from == Version::V3 { event.thread } else { event.capture_thread };
        let mut counted = self.counted(capture_thread);
        counted.resync(self.resyncs, event.sequence.wrapping_sub(1));
        if keep {
            let mut event = *event;
            if self.from == Version::V3 {
                event.capture_thread = event.thread;
                if !event.stack.is_empty() {
                    let id = self.stacks.wrapping_add(1);
                    self.writer.put_stack(&Stack { id, bytes: event.stack })?;
                    (self.stacks, event.stack_id) = (id, id);
                }
            }
            match (self.from, self.to) {
                (Version::V6, Version::V4) => {
                    event.metadata_id = self.first_id.wrapping_add(event.metadata_id);
                    event.thread = self.thread_id(event.thread);
                    let labels = self.labels.get(event.label_list.into()).filter(|_| event.label_list != 0);
                    let labels = labels.copied().unwrap_or_default();
                    (event.activity_id, event.related_activity_id) =
                        (labels.activity_id, labels.related_activity_id);
                }
                (Version::V3 | Version::V4, Version::V6) => {
                    self.declare(event.capture_thread)?;
                    self.declare(event.thread)?;
                    counted = self.counted(event.capture_thread);
                    counted.resync(self.resyncs, event.sequence.wrapping_sub(1));
                    let activities = Activities {
                        activity_id: event.activity_id,
                        related_activity_id: event.related_activity_id,
                        id: 0,
                    };
                    match self.list_of(activities) {
                        Ok(id) => event.label_list = id,
                        Err(key) => {
                            let id = self.lists.wrapping_add(1);
                            self.writer.put_label_list(id, activities.labels())?;
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
            let (payload, removed) = described.command_line.strip(event.payload);
            self.writer.put_event(&event, payload)?;
            let counts = &mut self.counts;
            counts.kept = counts.kept.saturating_add(1);
            counts.names = counts.names.saturating_add((!is_inside).into());
            counts.command_lines =
                counts.command_lines.saturating_add((removed == Removed::CommandLine).into());
            counts.unjudged = counts.unjudged.saturating_add((removed == Removed::Unjudged).into());
        } else {
            counted.event(event, false, self.from, self.to);
        }
        self.now = self.now.max(event.timestamp);
        self.counts.events = self.counts.events.saturating_add(1);
        self.count(capture_thread, counted)?;
        Ok(())
    }

    fn sequence_point(&mut self, point: &SequencePoint) -> Result<(), RewriteError> {
        let flags = if self.from == self.to { point.flags } else { 0 };
        self.writer.put_sequence_point(&SequencePoint { flags, ..*point })?;
        self.forget = point.flags;
        self.labels.clear();
        self.lists = 0;
        Ok(())
    }

    fn thread_sequence(&mut self, row: &ThreadSequence) -> Result<(), RewriteError> {
        let mut counted = self.counted(row.thread);
        counted.resync(self.resyncs, row.sequence);
        if let Some(sequence) = counted.row(row, self.from, self.to) {
            self.writer.put_thread_sequence(&ThreadSequence { sequence, ..*row })?;
        }
        self.count(row.thread, counted)?;
        Ok(())
    }

    fn thread(&mut self, thread: &Thread<'_>) -> Result<(), RewriteError> {
        let Thread { index, entries } = *thread;
        let strips = self.options.strip_command_line;
        if self.to == Version::V6 {
            let is_left_out = |entry: &ThreadEntry<'_>| {
                strips && matches!(entry, ThreadEntry::Pair(key, _) if is_command_line(*key))
            };
            self.count_command_lines(entries.filter(is_left_out).count());
            self.writer.put_thread(index, entries.filter(|entry| !is_left_out(entry)))?;
        } else {
            let lost = entries.filter(|entry| !matches!(entry, ThreadEntry::ThreadId(_))).count();
            let lost = u64::try_from(lost).unwrap_or(u64::MAX);
            self.counts.thread_entries = self.counts.thread_entries.saturating_add(lost);
        }
        let mut counted = self.counted(index);
        counted.begin(thread.thread_id(), self.to);
        self.count(index, counted)?;
        Ok(())
    }

    fn remove_thread(&mut self, row: &ThreadSequence) -> Result<(), RewriteError> {
        let mut counted = self.counted(row.thread);
        counted.resync(self.resyncs, row.sequence);
        if self.to == Version::V6 && !counted.is_hidden() {
            if let Some(sequence) = counted.row(row, self.from, self.to) {
                self.writer.put_remove_thread(&ThreadSequence { sequence, ..*row })?;
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
        Ok(())
    }

    fn label_list(&mut self, list: &LabelList<'_>) -> Result<(), RewriteError> {
        let LabelList { id, labels } = *list;
        if self.to == Version::V6 {
            let strips = self.options.strip_command_line;
            let is_left_out =
                |label: &Label<'_>| strips && matches!(label, Label::Text(key, _) if is_command_line(*key));
            self.count_command_lines(labels.filter(is_left_out).count());
            self.writer.put_label_list(id, labels.filter(|label| !is_left_out(label)))?;
            return Ok(());
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
        self.counts.label_lists = self.counts.label_lists.saturating_add(full.into());
        self.counts.labels = self.counts.labels.saturating_add(lost);
        Ok(())
    }

    /// Writes the next part of the end. Pending losses are reported in a last sequence point, after which a reader
    /// releases the events that it sorts.
    fn close(&mut self) -> Result<(), RewriteError> {
        if !self.begun || self.ended {
            return Ok(());
        }
        if !self.closed {
            self.begin_anew()?;
            self.introduce()?;
            if self.writer.lends() {
                return Ok(());
            }
            let pending = |(_, counted): &(u64, &ThreadState)| counted.is_pending();
            if !self.complete || self.threads.iter().any(|thread| pending(&thread)) {
                let point = SequencePoint { timestamp: self.now, ..SequencePoint::default() };
                self.writer.put_sequence_point(&point)?;
                for (thread, counted) in self.threads.iter().filter(pending) {
                    let row = ThreadSequence { thread, sequence: counted.last() };
                    self.writer.put_thread_sequence(&row)?;
                }
            }
            self.closed = true;
            if self.writer.lends() {
                return Ok(());
            }
        }
        self.writer.put_end();
        self.ended = true;
        Ok(())
    }

    /// Introduces threads that have only a pending loss, until bytes are lent to the caller. Otherwise a reader would
    /// take the number after the loss for the first number of the thread, which shows no loss.
    fn introduce(&mut self) -> Result<(), RewriteError> {
        if !self.threads.iter().any(|(_, counted)| counted.is_hidden()) {
            return Ok(());
        }
        // A thread of a V6 source is hidden in a V6 result if the source does not declare it, and neither does the
        // result.
        let declares = self.from != Version::V6 && self.to == Version::V6;
        if !declares {
            let point = SequencePoint { timestamp: self.now, ..SequencePoint::default() };
            self.writer.put_sequence_point(&point)?;
        }
        for (thread, counted) in self.threads.iter_mut().filter(|(_, counted)| counted.is_hidden()) {
            if declares {
                self.writer.put_thread(thread, [ThreadEntry::ThreadId(thread)])?;
                counted.declare();
                if self.writer.lends() {
                    return Ok(());
                }
                continue;
            }
            if self.from == Version::V6 && self.to == Version::V4 {
                // An ended thread may have had the same index, so the loss is that of a thread of its own.
                let thread = thread | OTHER_THREADS;
                for sequence in [counted.introduce(), counted.settle_all()] {
                    self.writer.put_thread_sequence(&ThreadSequence { thread, sequence })?;
                }
                continue;
            }
            let row = ThreadSequence { thread, sequence: counted.introduce() };
            self.writer.put_thread_sequence(&row)?;
        }
        Ok(())
    }

    fn counted(&self, thread: u64) -> ThreadState {
        let mut counted = self.threads.get(thread).copied().unwrap_or_default();
        counted.flush(self.flushes);
        counted
    }

    fn count(&mut self, thread: u64, counted: ThreadState) -> Result<(), RewriteError> {
        self.threads.insert(thread, counted).map(|_| ()).map_err(|_| RewriteError::TooManyThreads)
    }

    /// V6 to V4: returns the thread id for a thread index of V6.
    fn thread_id(&self, index: u64) -> u64 {
        self.counted(index).thread_id()
    }

    /// V4 to V6: writes a thread before the first event that refers to it.
    fn declare(&mut self, thread: u64) -> Result<(), RewriteError> {
        let mut counted = self.counted(thread);
        if !counted.is_declared() {
            let id = Some(thread).filter(|id| *id != Event::UNKNOWN_THREAD);
            self.writer.put_thread(thread, id.map(ThreadEntry::ThreadId))?;
            counted.declare();
            self.count(thread, counted)?;
        }
        Ok(())
    }

    /// V4 to V6: returns the id of the label list with these activity ids (0 if both are nil), or the key for a new
    /// list.
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

/// V6 to V4: this bit distinguishes a thread that has only losses from threads with events.
const OTHER_THREADS: u64 = 1 << 63;

/// The end of a result, which [`Rewrite::finish`] returns.
///
/// ```text
/// let mut end = rewrite.finish();
/// while let Some(bytes) = end.next_bytes()? {
///     out.write_all(&bytes)?;
/// }
/// ```
#[derive(Debug)]
#[must_use = "without its bytes the stream has no end"]
pub struct RewriteEnd<'s> {
    rewrite: Rewrite<'s>,
}

impl RewriteEnd<'_> {
    /// Returns the next bytes of the result, and `None` after the last ones.
    ///
    /// # Errors
    /// If the buffer has no room for the rest.
    pub fn next_bytes(&mut self) -> Result<Option<TraceBytes<'_>>, RewriteError> {
        self.rewrite.writer.lend_nothing();
        self.rewrite.close()?;
        Ok(Some(self.rewrite.writer.lent()).filter(|bytes| !bytes.is_empty()))
    }
}
