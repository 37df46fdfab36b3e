//! One event of a segment, with the records to which it refers.
use core::fmt;

use ipc_proto::Guid;

use crate::describe::field::Fields;
use crate::describe::metadata::Metadata;
use crate::join::label_digest::LabelDigest;
use crate::parse::event::Event;
use crate::parse::label::Labels;
use crate::parse::stack::frames;
use crate::parse::thread::Thread;
use crate::parse::trace::{Trace, Version};
use crate::parse::trace_clock::TraceClock;
use crate::values::Values;
use crate::values::value::Value;
use crate::whole::catalog::KnownThread;
use crate::whole::description::Description;
use crate::whole::event_entry::EventEntry;
use crate::whole::segment_view::SegmentView;

/// An event of a [`Segment`](crate::Segment), with everything that it refers to. It has the methods of a
/// [`TraceEvent`](crate::TraceEvent), and borrows from the trace.
#[derive(Clone, Copy)]
pub struct SegmentEvent<'t, 'a> {
    entry: &'t EventEntry,
    view: SegmentView<'t, 'a>,
}

impl<'t, 'a> SegmentEvent<'t, 'a> {
    #[inline]
    pub(crate) const fn new(entry: &'t EventEntry, view: SegmentView<'t, 'a>) -> Self {
        Self { entry, view }
    }

    /// Returns the event as the stream has it: times in ticks, threads and activities in the stream's own numbers.
    #[must_use]
    pub fn header(&self) -> Event<'a> {
        let SegmentView { batch, catalog, .. } = self.view;
        let origin = batch.origin_of(self.entry);
        let [activity_id, related_activity_id] = batch.activities_of(self.entry);
        Event {
            metadata_id: catalog.metadata_id(self.entry.kind),
            sequence: self.entry.sequence,
            capture_thread: origin.capture_thread,
            processor: origin.processor,
            thread: origin.thread,
            stack_id: batch.stack_of(self.entry).0,
            timestamp: self.entry.timestamp,
            activity_id,
            related_activity_id,
            label_list: origin.label_list,
            sorted: self.entry.is_sorted(),
            payload: self.payload(),
            stack: self.own_stack(),
        }
    }

    /// Returns the time in ticks of the trace.
    #[must_use]
    #[inline]
    pub const fn timestamp(&self) -> u64 {
        self.entry.timestamp
    }

    /// Returns the packed values of the fields.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.entry.payload.of(self.view.bytes)
    }

    /// Returns a number that identifies the kind of the event within the trace, from 0 without large gaps. Callers can
    /// store what they know about a kind in a `Vec`. Events of the same kind have the same
    /// [`description`](Self::description).
    #[must_use]
    #[inline]
    pub const fn kind(&self) -> u32 {
        self.entry.kind
    }

    /// Returns the description of all events of this kind. [`metadata`](Self::metadata) also has the labels of this
    /// event.
    ///
    /// Returns `None` if the stream does not describe the event, which is possible after a damaged block.
    #[must_use]
    #[inline]
    pub fn description(&self) -> Option<&'t Metadata<'a>> {
        self.view.catalog.description(self.entry.kind).map(|description| &description.metadata)
    }

    /// Returns the event's description: provider, id, name, fields. Labels of the event itself (V6) replace what the
    /// description states for all events of its kind. With the feature `clr`, the runtime's own events also have names
    /// and fields, although the stream does not state them.
    ///
    /// Returns `None` if the stream does not describe the event, which is possible after a damaged block.
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata<'a>> {
        let description = self.view.catalog.description(self.entry.kind)?;
        let mut metadata = Metadata { fields: self.fields(description), ..description.metadata };
        if let Some(labels) = self.digest() {
            labels.replace_parts(&mut metadata);
        }
        Some(metadata)
    }

    /// Returns the values of the payload in their order; none if the fields are not described.
    #[must_use]
    pub fn values(&self) -> Values<'a> {
        let description = self.view.catalog.description(self.entry.kind);
        let fields = description.map(|description| self.fields(description)).unwrap_or_default();
        fields.values(self.payload())
    }

    fn fields(&self, description: &Description<'a>) -> Fields<'a> {
        description.fields(self.digest(), self.view.catalog.pointer_size(), self.payload())
    }

    /// Returns the value of a field by its name, or by a path of names for a field of a nested object. See
    /// [`Values::field`].
    #[must_use]
    pub fn field(&self, path: &str) -> Option<Value<'a>> {
        self.values().field(path)
    }

    /// Returns the instruction pointers of the event's stack, the innermost first.
    #[inline]
    pub fn stack(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        let SegmentView { bytes, batch, catalog, .. } = self.view;
        let mut stack = self.own_stack();
        if stack.is_empty() {
            stack = batch.stack_of(self.entry).1.of(bytes);
        }
        frames(stack, catalog.pointer_size())
    }

    /// Returns the stack of an event of V3, which follows the payload.
    #[inline]
    fn own_stack(&self) -> &'a [u8] {
        if self.view.has_own_stacks { self.following_stack() } else { &[] }
    }

    #[cold]
    fn following_stack(&self) -> &'a [u8] {
        let rest = self.view.bytes.get(self.entry.payload.range().end..).unwrap_or_default();
        let Some((len, rest)) = rest.split_first_chunk() else { return &[] };
        let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
        rest.get(..len).unwrap_or_default()
    }

    /// Returns a number that identifies the thread that the event is about, within its process: the operating system's
    /// id, or the thread's index if the stream (V6) states no id. [`known_thread_id`](Self::known_thread_id) returns
    /// only ids.
    #[must_use]
    #[inline]
    pub fn thread_id(&self) -> u64 {
        self.view.batch.origin_of(self.entry).thread_id
    }

    /// Returns the operating system's id of the thread that the event is about. `None` if the stream does not state it:
    /// an event of V6 can refer to a thread that was not declared or was removed, or that has no id.
    #[must_use]
    pub fn known_thread_id(&self) -> Option<u64> {
        match self.trace() {
            Some(trace) if trace.version == Version::V6 => self.known_thread()?.thread_id,
            _ => Some(self.thread_id()).filter(|id| *id != Event::UNKNOWN_THREAD),
        }
    }

    fn known_thread(&self) -> Option<&'t KnownThread<'a>> {
        let SegmentView { batch, catalog, .. } = self.view;
        catalog.thread(batch.origin_of(self.entry).known_thread)
    }

    /// Returns the thread that the event is about, with its name and its process; V6.
    #[must_use]
    pub fn thread(&self) -> Option<Thread<'a>> {
        self.known_thread().map(|known| known.thread)
    }

    /// Returns the id of the process that the event is about: that of its thread, or else that of the trace. `None` if the
    /// stream states neither.
    #[must_use]
    pub fn process_id(&self) -> Option<u64> {
        let of_thread = self.known_thread().and_then(|known| known.process_id);
        of_thread.or_else(|| self.trace()?.process_id.map(u64::from))
    }

    fn digest(&self) -> Option<&'t LabelDigest> {
        self.view.batch.labels_of(self.entry)
    }

    /// Returns the id of the activity; nil if there is none.
    #[must_use]
    pub fn activity_id(&self) -> Guid {
        let [activity, _] = self.view.batch.activities_of(self.entry);
        self.digest().and_then(|labels| labels.activity_id).unwrap_or(activity)
    }

    /// Returns the id of the activity that started this activity; nil if there is none.
    #[must_use]
    pub fn related_activity_id(&self) -> Guid {
        let [_, related] = self.view.batch.activities_of(self.entry);
        self.digest().and_then(|labels| labels.related_activity_id).unwrap_or(related)
    }

    /// Returns the W3C trace id of the event's labels, with its bytes in the order of the text form; V6.
    #[must_use]
    pub fn trace_id(&self) -> Option<[u8; 16]> {
        self.digest()?.trace_id
    }

    /// Returns the W3C span id of the event's labels; V6.
    #[must_use]
    pub fn span_id(&self) -> Option<u64> {
        self.digest()?.span_id
    }

    /// Returns the labels of this event; V6.
    #[must_use]
    pub fn labels(&self) -> Labels<'a> {
        let labels = self.digest().map(|digest| Labels::from_checked(digest.place.of(self.view.bytes)));
        labels.unwrap_or_default()
    }

    /// Returns the record of the trace's first block, which names the process.
    #[must_use]
    pub const fn trace(&self) -> Option<Trace<'a>> {
        self.view.catalog.trace()
    }

    /// Returns the clock of the trace, which converts other times.
    #[must_use]
    pub const fn clock(&self) -> &'t TraceClock {
        self.view.catalog.clock()
    }

    /// Returns the nanoseconds from the start of the trace to the event, to the accuracy of the trace's clock; negative
    /// before the start.
    #[must_use]
    #[inline]
    pub fn nanoseconds(&self) -> i64 {
        self.clock().nanoseconds(self.entry.timestamp)
    }

    /// Returns the nanoseconds from 1970-01-01 UTC to the event, by the clock of the machine that recorded it.
    ///
    /// The trace states its start to the millisecond, so times of two traces compare to a millisecond at best.
    #[must_use]
    pub fn unix_nanoseconds(&self) -> i128 {
        self.clock().unix_nanoseconds(self.entry.timestamp)
    }
}

impl fmt::Debug for SegmentEvent<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (header, metadata) = (self.header(), self.metadata());
        f.debug_struct("SegmentEvent").field("header", &header).field("metadata", &metadata).finish()
    }
}
