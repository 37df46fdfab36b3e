//! One event with the records to which it refers.
use core::fmt;

use ipc_proto::Guid;

use crate::assemble::stream_event::StreamEvent;
use crate::catalog::{Catalog, MetadataBuf, ThreadBuf};
use crate::describe::{Fields, Metadata};
use crate::join::LabelDigest;
use crate::parse::{Event, Labels, Thread, Trace, TraceClock, frames};
use crate::segments::SegmentEvent;
use crate::values::{Value, Values};

/// An event of an [`EventAssembler`](crate::EventAssembler) or of a [`WholeTrace`](crate::WholeTrace), with everything
/// that it refers to.
///
/// ```
/// use nettrace::{AssemblerStep, BytesOrder, EventAssembler, ReadOptions};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-net10-small-counters.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::of_bytes(bytes, BytesOrder::Stream, ReadOptions::default());
/// let mut means = 0;
/// while let AssemblerStep::Event(event) = assembler.step() {
///     if event.metadata().is_some_and(|metadata| metadata.name == "EventCounters") {
///         let text = |path| event.field(path).and_then(|value| value.as_str());
///         let name = text("Payload.Name").ok_or("a counter without a name")?;
///         if let Some(mean) = event.field("Payload.Mean").and_then(|value| value.as_f64()) {
///             println!("{:>12} ns: {name} is {mean}", event.nanoseconds());
///             means += 1;
///         }
///     }
/// }
/// assert!(means > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct TraceEvent<'a>(EventParts<'a>);

/// The places of the parts of an event.
#[derive(Clone, Copy)]
enum EventParts<'a> {
    Stream(StreamEvent<'a>),
    Segment(SegmentEvent<'a>),
}

use EventParts::{Segment, Stream};

impl<'a> TraceEvent<'a> {
    #[inline]
    pub(crate) const fn of_stream(event: StreamEvent<'a>) -> Self {
        Self(Stream(event))
    }

    #[inline]
    pub(crate) const fn of_segment(event: SegmentEvent<'a>) -> Self {
        Self(Segment(event))
    }

    /// Returns the event as the stream has it: times in ticks, threads and activities in the stream's own numbers.
    ///
    /// This collects all parts. [`timestamp`](Self::timestamp) and [`payload`](Self::payload) return one part each.
    #[must_use]
    #[inline]
    pub fn header(&self) -> Event<'a> {
        match &self.0 {
            Stream(event) => event.header,
            Segment(event) => event.header(),
        }
    }

    /// Returns the time in ticks of the trace.
    #[must_use]
    #[inline]
    pub const fn timestamp(&self) -> u64 {
        match &self.0 {
            Stream(event) => event.header.timestamp,
            Segment(event) => event.timestamp(),
        }
    }

    /// Returns the packed values of the fields.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        match &self.0 {
            Stream(event) => event.header.payload,
            Segment(event) => event.payload(),
        }
    }

    /// Returns the processor on which the event was recorded; `None` if the stream does not state it.
    #[must_use]
    #[inline]
    pub fn processor(&self) -> Option<u32> {
        let processor = match &self.0 {
            Stream(event) => event.header.processor,
            Segment(event) => event.capture().processor,
        };
        Some(processor).filter(|processor| *processor != Event::UNKNOWN_PROCESSOR)
    }

    /// Returns a number that identifies the kind of the event within the trace: 1 for the kind that was described first,
    /// 2 for the next one; 0 for all events that are not described. Events of the same kind have the same
    /// [`description`](Self::description), so callers can store what they know about a kind in a `Vec`. An id that is
    /// described again is the same kind if the record is the same.
    #[must_use]
    #[inline]
    pub const fn kind(&self) -> u32 {
        match &self.0 {
            Stream(event) => event.references.kind,
            Segment(event) => event.kind(),
        }
    }

    /// Returns the description of all events of this kind. [`metadata`](Self::metadata) also has the labels of this
    /// event.
    ///
    /// Returns `None` if the stream does not describe the event, which is possible after a damaged block.
    #[must_use]
    #[inline]
    pub fn description(&self) -> Option<&'a MetadataBuf> {
        self.catalog().description(self.kind())
    }

    #[inline]
    const fn catalog(&self) -> &'a Catalog {
        match &self.0 {
            Stream(event) => &event.context.catalog,
            Segment(event) => event.view.catalog,
        }
    }

    #[inline]
    fn label_digest(&self) -> Option<&'a LabelDigest> {
        match &self.0 {
            Stream(event) => event.label_digest(),
            Segment(event) => event.label_digest(),
        }
    }

    #[inline]
    fn known_thread(&self) -> Option<&'a ThreadBuf> {
        match &self.0 {
            Stream(event) => event.known_thread(),
            Segment(event) => event.known_thread(),
        }
    }

    /// Returns the event's description: provider, id, name, fields. Labels of the event itself (V6) replace what the
    /// description states for all events of its kind. With the feature `clr`, the runtime's own events also have names
    /// and fields, although the stream does not state them.
    ///
    /// Returns `None` if the stream does not describe the event, which is possible after a damaged block.
    #[must_use]
    #[inline]
    pub fn metadata(&self) -> Option<Metadata<'a>> {
        let description = self.description()?;
        let mut metadata = description.get();
        let labels = self.label_digest();
        if let Some(labels) = labels {
            labels.replace_parts(&mut metadata);
        }
        if description.may_have_other_fields(labels) {
            metadata.fields = description.fields_of(labels, self.catalog().pointer_size(), self.payload());
        }
        Some(metadata)
    }

    /// Returns whether the fields are those of the [description](Self::description), which all events of its
    /// [kind](Self::kind) share. Only an event of the runtime can have others, if a label (V6) or the payload states
    /// another version than the description. So a program that stores the [shapes](Fields::shapes) of fields by kind
    /// uses them for the other events.
    #[must_use]
    #[inline]
    pub fn has_described_fields(&self) -> bool {
        self.description().is_some_and(|description| !description.may_have_other_fields(self.label_digest()))
    }

    /// Returns the values of the payload in their order; none if the fields are not described.
    #[must_use]
    pub fn values(&self) -> Values<'a> {
        let labels = self.label_digest();
        let fields = match self.description() {
            None => Fields::EMPTY,
            Some(description) if description.may_have_other_fields(labels) => {
                description.fields_of(labels, self.catalog().pointer_size(), self.payload())
            }
            Some(description) => description.fields(),
        };
        fields.values(self.payload())
    }

    /// Returns the value of a field by its name, or by a path of names for a field of a nested object:
    /// `"Payload.Mean"`. See [`Values::field`], which states which fields are found and how much is read.
    #[must_use]
    pub fn field(&self, path: &str) -> Option<Value<'a>> {
        self.values().field(path)
    }

    /// Returns the instruction pointers of the event's stack, the innermost first.
    #[inline]
    pub fn stack(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        let stack = match &self.0 {
            Stream(event) => event.stack(),
            Segment(event) => event.stack(),
        };
        frames(stack, self.catalog().pointer_size())
    }

    /// Returns the number of the event's stack among the stacks of the stream: events with the same number have the same
    /// stack. So a reader can do its work for a stack once, however many events refer to it. A number is used again
    /// after 2^32 stacks. Another assembler counts from 1 again.
    ///
    /// Returns `None` for an event without a stack, and in V3, whose events contain their stacks.
    #[must_use]
    #[inline]
    pub fn stack_number(&self) -> Option<u32> {
        match &self.0 {
            Stream(event) => event.stack_number(),
            Segment(event) => event.stack_number(),
        }
    }

    /// Returns the thread in the stream's own numbers: its index in V6, and its id in other versions.
    ///
    /// An id can be used again after its thread has ended. In V6, the index and the id together tell both threads apart.
    #[must_use]
    #[inline]
    pub fn thread_index(&self) -> u64 {
        match &self.0 {
            Stream(event) => event.header.thread,
            Segment(event) => event.origin().thread,
        }
    }

    /// Returns a number that identifies the thread that the event is about, within its process: the operating system's
    /// id, or the thread's index if the stream (V6) states no id. [`known_thread_id`](Self::known_thread_id) returns
    /// only ids.
    #[must_use]
    #[inline]
    pub fn thread_id(&self) -> u64 {
        match &self.0 {
            Stream(event) => {
                let known = event.known_thread().and_then(|thread| thread.thread_id());
                known.unwrap_or(event.header.thread)
            }
            Segment(event) => event.thread_id(),
        }
    }

    /// Returns the operating system's id of the thread that the event is about. `None` if the stream does not state it:
    /// an event of V6 can refer to a thread that was not declared or was removed, or that has no id.
    #[must_use]
    #[inline]
    pub fn known_thread_id(&self) -> Option<u64> {
        match self.catalog().has_thread_indexes() {
            true => self.known_thread()?.thread_id(),
            false => Some(self.thread_index()).filter(|id| *id != Event::UNKNOWN_THREAD),
        }
    }

    /// Returns the thread that the event is about, with its name and its process; V6.
    #[must_use]
    pub fn thread(&self) -> Option<Thread<'a>> {
        self.known_thread().map(ThreadBuf::get)
    }

    /// Returns the id of the process that the event is about: that of its thread, or else that of the trace. `None` if the
    /// stream states neither.
    #[must_use]
    pub fn process_id(&self) -> Option<u64> {
        let of_thread = self.known_thread().and_then(ThreadBuf::process_id);
        of_thread.or_else(|| self.catalog().process_id().map(u64::from))
    }

    #[inline]
    fn activities(&self) -> [Guid; 2] {
        match &self.0 {
            Stream(event) => [event.header.activity_id, event.header.related_activity_id],
            Segment(event) => event.activities(),
        }
    }

    /// Returns the id of the activity; nil if there is none.
    #[must_use]
    pub fn activity_id(&self) -> Guid {
        let [activity, _] = self.activities();
        self.label_digest().and_then(|labels| labels.activity_id).unwrap_or(activity)
    }

    /// Returns the id of the activity that started this activity; nil if there is none.
    #[must_use]
    pub fn related_activity_id(&self) -> Guid {
        let [_, related] = self.activities();
        self.label_digest().and_then(|labels| labels.related_activity_id).unwrap_or(related)
    }

    /// Returns the W3C trace id of the event's labels, with its bytes in the order of the text form; V6.
    #[must_use]
    pub fn trace_id(&self) -> Option<[u8; 16]> {
        self.label_digest()?.trace_id
    }

    /// Returns the W3C span id of the event's labels; V6.
    #[must_use]
    pub fn span_id(&self) -> Option<u64> {
        self.label_digest()?.span_id
    }

    /// Returns the labels of this event; V6.
    #[must_use]
    pub fn labels(&self) -> Labels<'a> {
        let labels = |digest| match &self.0 {
            Stream(event) => event.labels(digest),
            Segment(event) => event.labels(digest),
        };
        self.label_digest().map_or_else(Labels::default, labels)
    }

    /// Returns the record of the trace's first block, which names the process.
    #[must_use]
    pub fn trace(&self) -> Option<Trace<'a>> {
        self.catalog().trace()
    }

    /// Returns the clock of the trace, which converts other times.
    #[must_use]
    #[inline]
    pub const fn clock(&self) -> &'a TraceClock {
        self.catalog().clock()
    }

    /// Returns the nanoseconds from the start of the trace to the event, to the accuracy of the trace's clock; negative
    /// before the start.
    #[must_use]
    #[inline]
    pub fn nanoseconds(&self) -> i64 {
        self.clock().nanoseconds(self.timestamp())
    }

    /// Returns the nanoseconds from 1970-01-01 UTC to the event, by the clock of the machine that recorded it.
    ///
    /// The trace states its start to the millisecond, so times of two traces compare to a millisecond at best.
    #[must_use]
    pub fn unix_nanoseconds(&self) -> Option<i128> {
        self.clock().unix_nanoseconds(self.timestamp())
    }
}

impl fmt::Debug for TraceEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (header, metadata) = (self.header(), self.metadata());
        f.debug_struct("TraceEvent").field("header", &header).field("metadata", &metadata).finish()
    }
}
