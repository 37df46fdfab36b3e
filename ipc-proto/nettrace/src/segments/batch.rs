//! The events of a segment that wait or are ready, and the records that are valid in the segment only.
use alloc::vec::Vec;

use ipc_proto::Guid;
use ipc_proto::wire::{steps, to_u32, to_usize};

use crate::catalog::{Catalog, NOWHERE, UNDESCRIBED, key};
use crate::join::{ByteRange, IdMap, LabelDigest, Slot};
use crate::parse::{Changes, Event, EventBlock, LabelList};
use crate::segments::event_entry::{Capture, EventEntry, Origin};
use crate::segments::runs::{Release, Runs, RunsMark};

/// The number of waiting events from which on released ones are returned before the next sequence point.
const BATCH: usize = 1 << 18;

/// The number of waiting events from which on all are returned, although older ones may follow.
const MOST_EVENTS: usize = 1 << 20;

/// The number of events from which on they are returned after a block, if they are not sorted.
const UNSORTED: usize = 1 << 12;

/// The most stacks up to a sequence point.
const MOST_STACKS: usize = 1 << 20;

/// The most label lists up to a sequence point.
const MOST_LABEL_LISTS: usize = 1 << 18;

/// The most changes of the metadata id to one that is not described, while events wait.
const MOST_UNDESCRIBED: usize = 1 << 20;

/// The longest block in bytes that is decoded in one loop. Events of a longer block are counted one by one, so that
/// few of them exceed [`MOST_EVENTS`].
pub(crate) const LONGEST_BLOCK: usize = 4 << 20;

/// The most events for which there is space before they are read.
const RESERVED: usize = 1 << 17;

/// The most bytes of memory that a map retains when it is cleared.
const KEPT: usize = 1 << 20;

/// The events of a segment, and the stacks, label lists and activities to which they refer.
///
/// Payloads, stacks and label lists are places in the bytes of the segment, so a batch borrows nothing. An event refers
/// to the records that were known when it was read, also if an id is assigned again while the event waits.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The offset in the window of the segment's first byte. It wraps: the window can begin after that byte.
    base: usize,
    entries: Vec<EventEntry>,
    /// Whether events are returned in the order of time, and not in that of the stream.
    sorts: bool,
    runs: Runs,
    origins: Vec<Origin>,
    captures: Vec<Capture>,
    /// Pairs of an activity and the activity that started it. The first pair is nil.
    activities: Vec<[Guid; 2]>,
    /// Stacks with their ids. An event can refer to a stack that does not exist: such a stack is empty.
    stacks: Vec<(u32, ByteRange)>,
    stack_ids: IdMap<Vec<Slot<u32>>>,
    /// The number of the first stack among those of the stream; it wraps.
    first_stack: u32,
    labels: Vec<LabelDigest>,
    label_ids: IdMap<Vec<Slot<u32>>>,
    /// The metadata ids of events that are not described.
    undescribed: Vec<u32>,
    /// The numbers of the events of the last block.
    numbers: Vec<Numbers>,
    /// The number of events that stayed when others were removed.
    left: usize,
    newest: u64,
    late: u64,
    exceeded_limit: bool,
}

/// Events of a capture thread whose numbers count up from `first`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) thread: u64,
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// The time of the first event.
    pub(crate) time: u64,
}

/// The state of a batch before a block.
#[derive(Debug, Clone, Copy)]
struct Mark {
    entries: usize,
    runs: RunsMark,
    origins: usize,
    captures: usize,
    activities: usize,
    undescribed: usize,
}

impl Batch {
    pub(crate) fn new(sorts: bool) -> Self {
        let mut batch = Self {
            base: 0,
            entries: Vec::new(),
            sorts,
            runs: Runs::default(),
            origins: Vec::new(),
            captures: Vec::new(),
            activities: alloc::vec![[Guid::NIL; 2]],
            stacks: Vec::new(),
            stack_ids: IdMap::new(Vec::new()),
            first_stack: 0,
            labels: Vec::new(),
            label_ids: IdMap::new(Vec::new()),
            undescribed: Vec::new(),
            numbers: Vec::new(),
            left: 0,
            newest: 0,
            late: 0,
            exceeded_limit: false,
        };
        batch.begin_segment(0);
        batch
    }

    /// Makes space for the events of `len` bytes of the stream, of which an event has about as many as its entry. So
    /// entries are hardly copied to a larger space. The operating system supplies its pages on first use.
    pub(crate) fn reserve(&mut self, len: usize) {
        if self.sorts {
            self.entries.reserve((len / 32).min(RESERVED));
        }
    }

    /// Returns the release of events that need not be sorted, once they are worth it.
    pub(crate) fn release_after_block(&self) -> Option<Release> {
        (!self.sorts && self.entries.len() >= UNSORTED).then_some(Release::ALL)
    }

    /// Starts a segment at an offset of the window. No event may wait.
    pub(crate) fn begin_segment(&mut self, base: usize) {
        self.base = base;
        self.first_stack = self.first_stack.wrapping_add(to_u32(self.stacks.len()));
        self.stacks.clear();
        self.stack_ids.clear_and_shrink(KEPT);
        self.labels.clear();
        self.label_ids.clear_and_shrink(KEPT);
        self.add_stack(0, ByteRange::default());
    }

    /// Adds the events of a block, whose body begins at an offset of the window, and returns their numbers. Returns
    /// `None` and adds no event if the parser must read the block: it is too long, ends beyond the segment, or has an
    /// event that is not as expected.
    #[inline(never)]
    pub(crate) fn add_block(
        &mut self,
        block: EventBlock<'_>,
        body: usize,
        catalog: &Catalog,
    ) -> Option<&[Numbers]> {
        if block.len() > LONGEST_BLOCK || self.is_full(body.saturating_add(block.len())) {
            return None;
        }
        let mark = self.mark();
        let body = body.wrapping_sub(self.base);
        let (mut kind, mut stack) = (self.kind(0, catalog), self.stack(0));
        let (mut origin, mut capture, mut activities) = (NOWHERE, NOWHERE, 0);
        let mut metadata_id = 0;
        self.numbers.clear();
        let mut counted = self.entries.len();
        let is_complete = block.decode(|event| {
            let (header, changes) = (event.event, event.changes);
            if changes.has(Changes::METADATA_ID) && header.metadata_id != metadata_id {
                metadata_id = header.metadata_id;
                kind = self.kind(metadata_id, catalog);
            }
            if changes.has(Changes::STACK_ID) {
                stack = self.stack(header.stack_id);
            }
            if origin == NOWHERE || changes.has(ORIGIN) {
                if capture == NOWHERE || changes.has(CAPTURE) {
                    if capture == NOWHERE || changes.has(Changes::CAPTURE) {
                        let entries = self.entries.len();
                        end_numbers(&mut self.numbers, &mut counted, entries);
                        let (thread, first, time) =
                            (header.capture_thread, header.sequence, header.timestamp);
                        self.numbers.push(Numbers { thread, first, count: 0, time });
                    }
                    if !block.has_labels() && changes.has(Changes::ACTIVITY_ID | Changes::RELATED_ACTIVITY_ID)
                    {
                        activities = to_u32(self.activities.len());
                        self.activities.push([header.activity_id, header.related_activity_id]);
                    }
                    capture = to_u32(self.captures.len());
                    let value = self.capture(header, activities);
                    self.captures.push(value);
                }
                origin = to_u32(self.origins.len());
                self.origins.push(origin_of_thread(header.thread, capture, catalog));
            }
            let payload =
                ByteRange { start: to_u32(body.wrapping_add(event.payload)), len: event.payload_size };
            self.push(header, payload, kind, stack, origin);
        });
        if !is_complete {
            self.undo(mark);
            return None;
        }
        let entries = self.entries.len();
        end_numbers(&mut self.numbers, &mut counted, entries);
        Some(&self.numbers)
    }

    /// Adds an event. `payload` is its place in the window.
    pub(crate) fn add_event(
        &mut self,
        event: &Event<'_>,
        payload: core::ops::Range<usize>,
        catalog: &Catalog,
    ) {
        let pair = [event.activity_id, event.related_activity_id];
        let activities = if pair == [Guid::NIL; 2] { 0 } else { self.add_activities(pair) };
        let capture = self.capture(event, activities);
        if self.captures.last() != Some(&capture) {
            self.captures.push(capture);
        }
        let capture = to_u32(self.captures.len().saturating_sub(1));
        let origin = origin_of_thread(event.thread, capture, catalog);
        if self.origins.last() != Some(&origin) {
            self.origins.push(origin);
        }
        let origin = to_u32(self.origins.len().saturating_sub(1));
        let payload = ByteRange::new(payload.start.wrapping_sub(self.base), payload.len());
        let (kind, stack) = (self.kind(event.metadata_id, catalog), self.stack(event.stack_id));
        self.push(event, payload, kind, stack, origin);
    }

    #[inline(always)]
    fn push(&mut self, header: &Event<'_>, payload: ByteRange, kind: u32, stack: u32, origin: u32) {
        let Event { timestamp, sequence, sorted, .. } = *header;
        // Without times, all events are one run.
        let (time, releases) = if self.sorts { (timestamp, sorted) } else { (0, false) };
        self.runs.add(time, releases);
        let origin = if sorted { origin | EventEntry::SORTED } else { origin };
        self.entries.push(EventEntry { timestamp, payload, kind, stack, sequence, origin });
    }

    /// Returns the index of the pair; that of the last pair if it is the same.
    fn add_activities(&mut self, pair: [Guid; 2]) -> u32 {
        if self.activities.last() != Some(&pair) {
            self.activities.push(pair);
        }
        to_u32(self.activities.len().saturating_sub(1))
    }

    #[inline(always)]
    fn capture(&self, header: &Event<'_>, activities: u32) -> Capture {
        let Event { capture_thread: thread, processor, label_list, .. } = *header;
        let labels = match label_list {
            0 => NOWHERE,
            list => self.label_ids.get(list.into()).copied().unwrap_or(NOWHERE),
        };
        Capture { thread, processor, label_list, labels, activities }
    }

    /// Returns the kind of the events with this metadata id, as [`EventEntry::kind`] has it.
    #[inline(always)]
    fn kind(&mut self, metadata_id: u32, catalog: &Catalog) -> u32 {
        match catalog.kind(metadata_id) {
            UNDESCRIBED => self.add_undescribed(metadata_id),
            kind => kind,
        }
    }

    #[cold]
    fn add_undescribed(&mut self, metadata_id: u32) -> u32 {
        if self.undescribed.last() != Some(&metadata_id) {
            self.undescribed.push(metadata_id);
        }
        to_u32(self.undescribed.len().saturating_sub(1)) | EventEntry::UNDESCRIBED
    }

    /// Returns the index of the stack with this id.
    #[inline(always)]
    fn stack(&mut self, id: u32) -> u32 {
        match self.stack_ids.get(key(id)) {
            Some(index) => *index,
            None => self.add_stack(id, ByteRange::default()),
        }
    }

    /// Stores a stack that ends at an offset of the window.
    pub(crate) fn store_stack(&mut self, id: u32, len: usize, end: usize) {
        self.add_stack(id, self.place(len, end));
    }

    #[cold]
    fn add_stack(&mut self, id: u32, place: ByteRange) -> u32 {
        let index = to_u32(self.stacks.len());
        self.stacks.push((id, place));
        let _ = self.stack_ids.insert(key(id), index);
        index
    }

    /// Stores a label list that ends at an offset of the window.
    pub(crate) fn store_labels(&mut self, list: &LabelList<'_>, end: usize) {
        let place = self.place(list.labels.as_bytes().len(), end);
        let _ = self.label_ids.insert(list.id.into(), to_u32(self.labels.len()));
        self.labels.push(LabelDigest::new(place, list.labels));
    }

    /// Returns the range in the segment of a record that ends at an offset of the window.
    fn place(&self, len: usize, end: usize) -> ByteRange {
        ByteRange::new(end.wrapping_sub(len).wrapping_sub(self.base), len)
    }

    fn mark(&self) -> Mark {
        Mark {
            entries: self.entries.len(),
            runs: self.runs.mark(),
            origins: self.origins.len(),
            captures: self.captures.len(),
            activities: self.activities.len(),
            undescribed: self.undescribed.len(),
        }
    }

    fn undo(&mut self, mark: Mark) {
        self.entries.truncate(mark.entries);
        self.runs.undo(mark.runs);
        self.origins.truncate(mark.origins);
        self.captures.truncate(mark.captures);
        self.activities.truncate(mark.activities);
        self.undescribed.truncate(mark.undescribed);
    }

    /// Returns whether the segment must end here for lack of room, before a block that ends at an offset of the window.
    #[inline]
    pub(crate) fn is_full(&self, end_of_block: usize) -> bool {
        self.stacks.len() >= MOST_STACKS
            || self.labels.len() >= MOST_LABEL_LISTS
            || self.undescribed.len() >= MOST_UNDESCRIBED
            || u32::try_from(end_of_block.wrapping_sub(self.base)).is_err()
    }

    /// Returns which events must be returned now, because so many of them wait.
    #[inline]
    pub(crate) fn due(&mut self) -> Option<Release> {
        let len = self.entries.len();
        // At least half of the entries are new, so that the work for those that stay is linear.
        let is_worth = len >= BATCH && len / 2 >= self.left;
        let released = if is_worth { self.runs.released() } else { None };
        if released.is_none() && len >= MOST_EVENTS {
            self.exceeded_limit |= self.sorts;
            return Some(Release::ALL);
        }
        released
    }

    /// Reports that older events may follow, although all events are returned.
    pub(crate) fn release_early(&mut self) {
        self.exceeded_limit |= self.sorts && !self.entries.is_empty();
    }

    /// Makes the released events ready, in the order of time. Returns whether there are any.
    pub(crate) fn make_ready(&mut self, release: Release) -> bool {
        self.runs.merge(&self.entries, release);
        let len = self.runs.merged();
        let timestamp = |number| self.ready(number).map(|entry| entry.timestamp);
        let ends = timestamp(0).zip(timestamp(len.wrapping_sub(1))).filter(|_| self.sorts);
        match ends {
            None => {}
            Some((first, last)) if first >= self.newest && self.runs.is_sorted() => self.newest = last,
            Some(_) => {
                let (mut newest, mut late) = (self.newest, 0);
                for timestamp in (0..len).filter_map(timestamp) {
                    steps::count(1);
                    late = u64::from(timestamp < newest).wrapping_add(late);
                    newest = newest.max(timestamp);
                }
                (self.newest, self.late) = (newest, self.late.saturating_add(late));
            }
        }
        len > 0
    }

    /// Removes the events that are ready.
    pub(crate) fn remove_ready(&mut self) {
        if self.runs.merged() == 0 {
            return;
        }
        self.runs.remove_merged(&mut self.entries);
        self.left = self.entries.len();
        self.remove_origins();
        if self.entries.is_empty() {
            self.undescribed.clear();
        }
    }

    /// Removes the origins, captures and activities to which no event refers any more. Events refer to them in their
    /// order.
    fn remove_origins(&mut self) {
        let (mut origins, mut captures) = (Retained::default(), Retained::default());
        let mut activities = Retained { len: 1, ..Retained::default() };
        for entry in &mut self.entries {
            steps::count(1);
            let sorted = entry.origin & EventEntry::SORTED;
            if let Some(origin) = origins.retain(&mut self.origins, entry.origin()) {
                if let Some(capture) = captures.retain(&mut self.captures, origin.capture) {
                    if capture.activities != 0 {
                        activities.retain(&mut self.activities, capture.activities);
                        capture.activities = activities.last();
                    }
                }
                origin.capture = captures.last();
            }
            entry.origin = origins.last() | sorted;
        }
        self.origins.truncate(origins.len);
        self.captures.truncate(captures.len);
        self.activities.truncate(activities.len);
    }

    pub(crate) const fn late(&self) -> u64 {
        self.late
    }

    pub(crate) const fn exceeded_limit(&self) -> bool {
        self.exceeded_limit
    }

    /// Returns whether no event waits or is ready.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) const fn ready_len(&self) -> usize {
        self.runs.merged()
    }

    /// Returns an event that is ready, by its number in the order of time.
    #[inline]
    pub(crate) fn ready(&self, number: usize) -> Option<&EventEntry> {
        self.entries.get(self.runs.place(number))
    }

    /// Returns the metadata id of an event that is not described.
    pub(crate) fn undescribed_id(&self, entry: &EventEntry) -> u32 {
        let index = entry.kind & !EventEntry::UNDESCRIBED;
        self.undescribed.get(to_usize(index)).copied().unwrap_or_default()
    }

    #[inline]
    pub(crate) fn origin_of(&self, entry: &EventEntry) -> Origin {
        self.origins.get(to_usize(entry.origin())).copied().unwrap_or_default()
    }

    #[inline]
    pub(crate) fn capture_of(&self, entry: &EventEntry) -> Capture {
        self.captures.get(to_usize(self.origin_of(entry).capture)).copied().unwrap_or_default()
    }

    pub(crate) fn activities_of(&self, entry: &EventEntry) -> [Guid; 2] {
        let index = to_usize(self.capture_of(entry).activities);
        self.activities.get(index).copied().unwrap_or([Guid::NIL; 2])
    }

    pub(crate) fn labels_of(&self, entry: &EventEntry) -> Option<&LabelDigest> {
        self.labels.get(to_usize(self.capture_of(entry).labels))
    }

    /// Returns the id of the event's stack, and the place of the stack in the segment.
    #[inline]
    pub(crate) fn stack_of(&self, entry: &EventEntry) -> (u32, ByteRange) {
        self.stacks.get(to_usize(entry.stack)).copied().unwrap_or_default()
    }

    /// Returns the number of the event's stack among the stacks of the stream; `None` for an empty stack.
    pub(crate) fn stack_number(&self, entry: &EventEntry) -> Option<u32> {
        let (_, place) = self.stack_of(entry);
        (place.len != 0).then(|| self.first_stack.wrapping_add(entry.stack))
    }

    /// Returns the offset in the window of the segment's first byte, which wraps.
    #[inline]
    pub(crate) const fn base(&self) -> usize {
        self.base
    }

    /// Reports that the window lost its first `len` bytes. The bytes of the segment stay where they are.
    pub(crate) const fn release(&mut self, len: usize) {
        self.base = self.base.wrapping_sub(len);
    }

    /// Returns the release of events that need not, or must not, wait for more bytes: those before a sorted event that is
    /// the last one; or, because the limit of the memory is reached, those before the newest sorted one, or else all.
    pub(crate) fn release_before_more(&mut self, is_over_limit: bool) -> Option<Release> {
        if self.entries.is_empty() {
            return None;
        }
        if !self.sorts {
            return Some(Release::ALL);
        }
        let released = self.runs.released();
        if is_over_limit {
            self.exceeded_limit |= released.is_none();
            return released.or(Some(Release::ALL));
        }
        // At least half of the entries are new, so that the work for those that stay is linear.
        let is_worth = self.runs.ends_sorted() && self.entries.len() / 2 >= self.left;
        released.filter(|_| is_worth)
    }

    /// Returns the number of bytes of the segment to which events, stacks and label lists refer. Bytes to which two of
    /// them refer count twice.
    pub(crate) fn referred(&self, segment: &[u8], has_own_stacks: bool) -> usize {
        steps::count(self.stacks.len().saturating_add(self.labels.len()).saturating_add(self.entries.len()));
        let stacks = self.stacks.iter().map(|(_, place)| *place);
        let labels = self.labels.iter().map(|labels| labels.place);
        let entries = self.entries.iter().map(|entry| entry.place(segment, has_own_stacks));
        stacks.chain(labels).chain(entries).map(|place| to_usize(place.len)).fold(0, usize::saturating_add)
    }

    /// Copies the bytes of the segment to which something refers to the end of `to`, which is the segment from now on.
    /// `base` is the new offset in the window of its first byte.
    pub(crate) fn move_to(&mut self, to: &mut Vec<u8>, base: usize, segment: &[u8], has_own_stacks: bool) {
        let mut copied = |place: ByteRange| {
            let (start, bytes) = (to.len(), place.of(segment));
            steps::count(bytes.len().saturating_add(1));
            to.extend_from_slice(bytes);
            ByteRange::new(start, bytes.len())
        };
        for (_, place) in &mut self.stacks {
            *place = copied(*place);
        }
        for labels in &mut self.labels {
            labels.place = copied(labels.place);
        }
        for entry in &mut self.entries {
            entry.payload.start = copied(entry.place(segment, has_own_stacks)).start;
        }
        self.base = base;
    }
}

/// The parts of a header that begin another capture.
const CAPTURE: u8 = Changes::CAPTURE | Changes::ACTIVITY_ID | Changes::RELATED_ACTIVITY_ID;

/// The parts of a header that begin another origin.
const ORIGIN: u8 = Changes::THREAD | CAPTURE;

#[inline(always)]
fn origin_of_thread(thread: u64, capture: u32, catalog: &Catalog) -> Origin {
    Origin { thread, known_thread: catalog.thread_index(thread), capture }
}

/// The values that stay when others are removed from a list.
#[derive(Debug, Default)]
struct Retained {
    len: usize,
    /// The index of the last of them, before it moved.
    from: Option<u32>,
}

impl Retained {
    /// Moves a value to the others, and returns it; `None` if it is the last of them. Indexes must not decrease.
    fn retain<'v, T: Copy>(&mut self, values: &'v mut [T], from: u32) -> Option<&'v mut T> {
        if self.from.replace(from) == Some(from) {
            return None;
        }
        let value = *values.get(to_usize(from))?;
        let place = values.get_mut(self.len)?;
        self.len = self.len.saturating_add(1);
        *place = value;
        Some(place)
    }

    /// Returns the index of the value that was retained last.
    fn last(&self) -> u32 {
        to_u32(self.len.saturating_sub(1))
    }
}

/// Counts the events since the last numbers began.
fn end_numbers(numbers: &mut [Numbers], counted: &mut usize, entries: usize) {
    if let Some(last) = numbers.last_mut() {
        last.count = to_u32(entries.wrapping_sub(*counted));
    }
    *counted = entries;
}
