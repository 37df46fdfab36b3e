//! One event with the records to which it refers, as `EventAssembler` returns it.
use core::fmt;

use ipc_proto::Guid;

use crate::assemble::context::{References, StreamContext};
use crate::assemble::metadata_buf::MetadataBuf;
use crate::describe::field::Fields;
use crate::describe::metadata::Metadata;
use crate::parse::event::Event;
use crate::parse::label::Labels;
use crate::parse::stack::frames;
use crate::parse::thread::Thread;
use crate::parse::trace::Trace;
use crate::parse::trace_clock::TraceClock;
use crate::values::Values;
use crate::values::value::Value;

/// An event of an [`EventAssembler`](crate::EventAssembler), with everything that it refers to.
///
/// ```
/// use nettrace::{EventAssembler, Limits, AssemblerStep};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/nettrace/gen-net10-small-counters.nettrace");
/// # let bytes = std::fs::read(path)?;
/// let mut assembler = EventAssembler::new(Limits::default());
/// assembler.push(&bytes);
/// let mut means = 0;
/// while let AssemblerStep::Event = assembler.step() {
///     let Some(event) = assembler.event() else { break };
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
pub struct TraceEvent<'a> {
    /// The event as the stream has it: times in ticks, threads and activities in the stream's own numbers.
    pub header: Event<'a>,
    context: &'a StreamContext,
    references: References,
}

impl<'a> TraceEvent<'a> {
    pub(crate) const fn new(header: Event<'a>, context: &'a StreamContext, references: References) -> Self {
        Self { header, context, references }
    }

    /// Returns the event's description: provider, id, name, fields. Labels of the event itself (V6) replace what the
    /// description states for all events of its kind. With the feature `clr`, the runtime's own events also have names
    /// and fields, although the stream does not state them.
    ///
    /// Returns `None` if the stream does not describe the event, which is possible after a damaged block.
    #[must_use]
    #[inline]
    pub fn metadata(&self) -> Option<Metadata<'a>> {
        let described = self.context.metadata(self.references)?;
        let mut metadata = described.get();
        if let Some(labels) = self.context.label_digest(self.header.label_list) {
            labels.replace_parts(&mut metadata);
        }
        if self.may_have_other_fields(described) {
            let (labels, payload) = (self.header.label_list, self.header.payload);
            metadata.fields = self.context.fields(described, labels, payload);
        }
        Some(metadata)
    }

    /// Returns whether the fields can differ from those of the description: the version of an event of the runtime is a
    /// label, or unknown.
    #[cfg(feature = "clr")]
    #[inline]
    fn may_have_other_fields(&self, described: &MetadataBuf) -> bool {
        described.lacks_version || (self.header.label_list != 0 && !described.layouts.is_empty())
    }

    #[cfg(not(feature = "clr"))]
    #[inline]
    const fn may_have_other_fields(&self, _: &MetadataBuf) -> bool {
        false
    }

    /// Returns the values of the payload in their order; none if the fields are not described.
    #[must_use]
    pub fn values(&self) -> Values<'a> {
        let described = self.context.metadata(self.references);
        let fields =
            described.map_or(Fields::EMPTY, |described| match self.may_have_other_fields(described) {
                true => self.context.fields(described, self.header.label_list, self.header.payload),
                false => described.fields(),
            });
        fields.values(self.header.payload)
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
        let stack = match self.header.stack {
            [] => self.context.stack(self.header.stack_id),
            stack => stack,
        };
        frames(stack, self.context.pointer_size())
    }

    /// Returns the number of the event's stack among the stacks of the stream: events with the same number have the same
    /// stack. So a reader can do its work for a stack once, however many events refer to it. A number is used again
    /// after 2^32 stacks. Another assembler counts from 1 again.
    ///
    /// Returns `None` for an event without a stack, and in V3, whose events contain their stacks.
    #[must_use]
    #[inline]
    pub fn stack_number(&self) -> Option<u32> {
        if self.header.stack.is_empty() { self.context.stack_number(self.header.stack_id) } else { None }
    }

    /// Returns a number that identifies the thread that the event is about, within its process: the operating system's
    /// id, or the thread's index if the stream (V6) states no id. [`known_thread_id`](Self::known_thread_id) returns
    /// only ids.
    #[must_use]
    #[inline]
    pub fn thread_id(&self) -> u64 {
        let thread = self.context.thread(self.references);
        thread.and_then(|thread| thread.thread_id()).unwrap_or(self.header.thread)
    }

    /// Returns the operating system's id of the thread that the event is about. `None` if the stream does not state it:
    /// an event of V6 can refer to a thread that was not declared or was removed, or that has no id.
    #[must_use]
    #[inline]
    pub fn known_thread_id(&self) -> Option<u64> {
        match self.context.has_thread_indexes() {
            true => self.context.thread(self.references)?.thread_id(),
            false => Some(self.header.thread).filter(|id| *id != Event::UNKNOWN_THREAD),
        }
    }

    /// Returns the thread that the event is about, with its name and its process; V6.
    #[must_use]
    pub fn thread(&self) -> Option<Thread<'a>> {
        self.context.thread(self.references).map(|thread| thread.get())
    }

    /// Returns the id of the process that the event is about: that of its thread, or else that of the trace. `None` if the
    /// stream states neither.
    #[must_use]
    pub fn process_id(&self) -> Option<u64> {
        let of_thread = self.context.thread(self.references).and_then(|thread| thread.process_id());
        of_thread.or_else(|| self.context.process_id().map(u64::from))
    }

    /// Returns the id of the activity; nil if there is none.
    #[must_use]
    pub fn activity_id(&self) -> Guid {
        let labels = self.context.label_digest(self.header.label_list);
        labels.and_then(|labels| labels.activity_id).unwrap_or(self.header.activity_id)
    }

    /// Returns the id of the activity that started this activity; nil if there is none.
    #[must_use]
    pub fn related_activity_id(&self) -> Guid {
        let labels = self.context.label_digest(self.header.label_list);
        labels.and_then(|labels| labels.related_activity_id).unwrap_or(self.header.related_activity_id)
    }

    /// Returns the W3C trace id of the event's labels, with its bytes in the order of the text form; V6.
    #[must_use]
    pub fn trace_id(&self) -> Option<[u8; 16]> {
        self.context.label_digest(self.header.label_list)?.trace_id
    }

    /// Returns the W3C span id of the event's labels; V6.
    #[must_use]
    pub fn span_id(&self) -> Option<u64> {
        self.context.label_digest(self.header.label_list)?.span_id
    }

    /// Returns the labels of this event; V6.
    #[must_use]
    pub fn labels(&self) -> Labels<'a> {
        let labels = self.context.label_digest(self.header.label_list);
        labels.map_or_else(Labels::default, |labels| self.context.labels(labels))
    }

    /// Returns the record of the trace's first block, which names the process.
    #[must_use]
    pub fn trace(&self) -> Option<Trace<'a>> {
        self.context.trace()
    }

    /// Returns the clock of the trace, which converts other times.
    #[must_use]
    pub const fn clock(&self) -> &'a TraceClock {
        self.context.clock()
    }

    /// Returns the nanoseconds from the start of the trace to the event, to the accuracy of the trace's clock; negative
    /// before the start.
    #[must_use]
    #[inline]
    pub fn nanoseconds(&self) -> i64 {
        self.context.clock().nanoseconds(self.header.timestamp)
    }

    /// Returns the nanoseconds from 1970-01-01 UTC to the event, by the clock of the machine that recorded it.
    ///
    /// The trace states its start to the millisecond, so times of two traces compare to a millisecond at best.
    #[must_use]
    pub fn unix_nanoseconds(&self) -> i128 {
        self.context.clock().unix_nanoseconds(self.header.timestamp)
    }
}

impl fmt::Debug for TraceEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { header, .. } = self;
        f.debug_struct("TraceEvent").field("header", header).field("metadata", &self.metadata()).finish()
    }
}
