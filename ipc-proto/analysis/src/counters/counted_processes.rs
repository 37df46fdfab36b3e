//! `CountedProcesses`: what a reader of counters knows of each process of a trace.
use alloc::collections::BTreeSet;
use alloc::collections::btree_map::{BTreeMap, Entry};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use nettrace::{Str, TraceEvent};

use super::{Instrument, InstrumentDetails, InstrumentKind};
use crate::event::push_text;

/// The state of the processes of a trace.
#[derive(Debug, Clone, Default)]
pub(super) struct CountedProcesses {
    processes: BTreeMap<Option<u64>, CountedProcess>,
    /// The approximate memory of everything stored, in bytes.
    size: usize,
    /// Reused for names of meters and keys of instruments.
    key: String,
}

/// The memory for all processes in bytes. What does not fit is not stored.
const LIMIT: usize = 4 << 20;
/// The memory of an entry of a map in bytes, in addition to its texts.
const ENTRY: usize = 128;

/// The nanoseconds between two samples of an interval at most. A runtime sends them in one go, and no interval is
/// shorter than 100 ms.
const COLLECTION: i64 = 50_000_000;

/// The state of a process.
#[derive(Debug, Clone, Default)]
struct CountedProcess {
    /// The length of the interval of the meters in seconds.
    interval: Option<f64>,
    /// The meters that have begun.
    meters: BTreeSet<String>,
    /// The instruments that have details, by their ids.
    instruments: BTreeMap<u32, Arc<InstrumentDetails>>,
    /// The instruments that report a sum of the program, `ObservableUpDownCounter`, by their ids.
    observed: BTreeSet<u32>,
    /// The instruments without an id, by session, meter, version, name and unit.
    unnumbered: BTreeMap<String, Unnumbered>,
    /// The last sample of each series without an instrument id in this interval, by the hash of the series: its time in
    /// nanoseconds, and its place among the samples of the series.
    samples: BTreeMap<u64, (i64, u32)>,
    /// The last sample of those, and its place among the samples of its series. The same event can be passed again.
    last: Option<(SampleId, u32)>,
}

/// The time, the thread and the number of an event, and the hash of its series.
type SampleId = (u64, u64, u32, u64);

/// The instruments without an id that have the same names.
#[derive(Debug, Clone, Default)]
struct Unnumbered {
    /// The details that differ. A session repeats the start of an instrument when another client joins it.
    details: Vec<Arc<InstrumentDetails>>,
    /// Whether they are of the kind `ObservableUpDownCounter`.
    is_observed: bool,
    /// The number of the first instance, and the number after that of the last one.
    first: u32,
    next: u32,
}

/// The most instruments with the same names and without an id whose details are stored.
const MAX_DETAILS: usize = 64;

impl CountedProcesses {
    pub(super) fn interval(&self, process_id: Option<u64>) -> Option<f64> {
        self.processes.get(&process_id)?.interval
    }

    pub(super) fn has_meter(&mut self, process_id: Option<u64>, name: Str<'_>) -> bool {
        let Self { processes, key, .. } = self;
        let Some(process) = processes.get(&process_id).filter(|process| !process.meters.is_empty()) else {
            return false;
        };
        key.clear();
        push_text(key, name);
        process.meters.contains(&**key)
    }

    /// Begins or ends an interval of a process. Its samples come in between.
    pub(super) fn collect(&mut self, process_id: Option<u64>, interval: Option<f64>) {
        let Self { processes, size, .. } = self;
        let Some(process) = process(processes, size, process_id) else { return };
        process.interval = interval;
        process.last = None;
        let samples = core::mem::take(&mut process.samples).len();
        *size = size.saturating_sub(samples.saturating_mul(ENTRY));
    }

    /// Stores what the start of an instrument states about its samples.
    pub(super) fn begin(&mut self, session_id: Str<'_>, instrument: &Instrument<'_>) {
        let Self { processes, size, key } = self;
        let Some(process) = process(processes, size, instrument.process_id) else { return };
        key.clear();
        push_text(key, instrument.meter);
        if !process.meters.contains(&**key) && take(size, key.len()) {
            process.meters.insert(key.clone());
        }
        let details = details(instrument).unwrap_or_default();
        let is_observed = instrument.kind == InstrumentKind::ObservableUpDownCounter;
        if let Some(id) = instrument.id {
            if is_observed && !process.observed.contains(&id) && take(size, 0) {
                process.observed.insert(id);
            }
            let mut is_new = || !process.instruments.contains_key(&id) && take(size, len(&details));
            if details != InstrumentDetails::default() && is_new() {
                process.instruments.insert(id, Arc::new(details));
            }
            return;
        }
        set_key(key, session_id, instrument);
        let mut stored = process.unnumbered.get_mut(&**key);
        if let Some(stored) = &mut stored {
            stored.is_observed = is_observed;
        }
        let known = stored.as_ref().map_or(&[][..], |stored| &stored.details);
        if known.len() >= MAX_DETAILS || known.iter().any(|known| **known == details) {
            return;
        }
        let key_len = if stored.is_none() { key.len() } else { 0 };
        if take(size, len(&details).saturating_add(key_len)) {
            let stored = match stored {
                Some(stored) => stored,
                None => process.unnumbered.entry(key.clone()).or_default(),
            };
            stored.is_observed = is_observed;
            stored.first = stored.next;
            stored.details.push(Arc::new(details));
        }
    }

    /// Returns whether an instrument reports a sum of the program, and not changes.
    pub(super) fn is_observed(&mut self, session_id: Str<'_>, instrument: &Instrument<'_>) -> bool {
        let Self { processes, key, .. } = self;
        // All instruments of the runtime are, so that they are known without their start.
        if instrument.meter == "System.Runtime" {
            return true;
        }
        let Some(process) = processes.get(&instrument.process_id) else { return false };
        match instrument.id {
            Some(id) => process.observed.contains(&id),
            None => {
                set_key(key, session_id, instrument);
                process.unnumbered.get(&**key).is_some_and(|stored| stored.is_observed)
            }
        }
    }

    /// Handles the end of an instrument. If it has no id, later samples of the same names are of other instances.
    pub(super) fn end(&mut self, session_id: Str<'_>, instrument: &Instrument<'_>) {
        let Self { processes, size, key } = self;
        let Some(process) = processes.get_mut(&instrument.process_id) else { return };
        let mut free = |details: &InstrumentDetails| {
            *size = size.saturating_sub(len(details).saturating_add(ENTRY));
        };
        if let Some(id) = instrument.id {
            if let Some(details) = process.instruments.remove(&id) {
                free(&details);
            }
            if process.observed.remove(&id) {
                free(&InstrumentDetails::default());
            }
            return;
        }
        set_key(key, session_id, instrument);
        if let Some(stored) = process.unnumbered.get_mut(&**key) {
            let ended = details(instrument).unwrap_or_default();
            stored.details.retain(|known| {
                let is_other = **known != ended;
                if !is_other {
                    free(known);
                }
                is_other
            });
            stored.first = stored.next;
        }
    }

    /// Returns the instance of the series of a sample, and the details of its instrument.
    pub(super) fn series(
        &mut self,
        event: &TraceEvent<'_>,
        session_id: Str<'_>,
        instrument: &Instrument<'_>,
        tag_text: Str<'_>,
    ) -> (u32, Option<Arc<InstrumentDetails>>) {
        let Self { processes, size, key } = self;
        let Some(process) = process(processes, size, instrument.process_id) else { return (0, None) };
        if let Some(id) = instrument.id {
            return (0, process.instruments.get(&id).cloned());
        }
        set_key(key, session_id, instrument);
        let (Str::Utf16(tags) | Str::Utf8(tags)) = tag_text;
        let series = hash(&[key.as_bytes(), tags]);
        let header = &event.header();
        let id = (header.timestamp, header.capture_thread, header.sequence, series);
        let place = match process.last {
            Some((last, place)) if last == id => place,
            _ => match process.samples.get_mut(&series) {
                Some((last, place)) => {
                    let gap = event.nanoseconds().saturating_sub(*last);
                    *last = event.nanoseconds();
                    *place = if gap <= COLLECTION { place.saturating_add(1) } else { 0 };
                    *place
                }
                None => {
                    // Without intervals, the end of the samples of one would be unknown.
                    if process.interval.is_some() && take(size, 0) {
                        process.samples.insert(series, (event.nanoseconds(), 0));
                    }
                    0
                }
            },
        };
        process.last = Some((id, place));
        let Some(stored) = process.unnumbered.get_mut(&**key) else { return (place, None) };
        let instance = stored.first.saturating_add(place);
        stored.next = stored.next.max(instance.saturating_add(1));
        let details = match &*stored.details {
            [details] if **details != InstrumentDetails::default() => Some(details.clone()),
            _ => None,
        };
        (instance, details)
    }
}

/// Returns the state of a process; `None` if the limit allows no more processes.
fn process<'a>(
    processes: &'a mut BTreeMap<Option<u64>, CountedProcess>,
    size: &mut usize,
    process_id: Option<u64>,
) -> Option<&'a mut CountedProcess> {
    match processes.entry(process_id) {
        Entry::Occupied(known) => Some(known.into_mut()),
        Entry::Vacant(new) => {
            take(size, size_of::<CountedProcess>()).then(|| new.insert(CountedProcess::default()))
        }
    }
}

/// Sets the key of an instrument without an id.
fn set_key(key: &mut String, session_id: Str<'_>, instrument: &Instrument<'_>) {
    let Instrument { meter, meter_version, name, unit, .. } = *instrument;
    key.clear();
    for text in [session_id, meter, meter_version, name, unit] {
        push_text(key, text);
        // Payloads of versions 3 to 5 cannot have a NUL in a text.
        key.push('\0');
    }
}

/// Adds an entry with texts of this length. Returns whether the limit allows that.
fn take(size: &mut usize, len: usize) -> bool {
    let added = size.saturating_add(len).saturating_add(ENTRY);
    let fits = added <= LIMIT;
    if fits {
        *size = added;
    }
    fits
}

impl Instrument<'_> {
    /// Returns whether its samples have no [`details`](super::Sample::details) although it has some: the texts of its
    /// tags, of those of its meter and of the hash of the scope have more than 512 bytes together.
    #[must_use]
    pub fn has_long_details(&self) -> bool {
        details(self).is_none()
    }
}

/// Returns the details of an instrument; `None` if they are too long. Each sample of the instrument repeats them,
/// although the trace has them once.
fn details(instrument: &Instrument<'_>) -> Option<InstrumentDetails> {
    /// The maximum length of the texts in bytes.
    const MAX_LEN: usize = 512;
    let Instrument { instrument_tags, meter_tags, meter_scope_hash, has_escaped_tags, .. } = *instrument;
    let details = InstrumentDetails {
        instrument_tag_text: instrument_tags.to_string(),
        meter_tag_text: meter_tags.to_string(),
        meter_scope_hash: meter_scope_hash.to_string(),
        // Texts without tags are equal whether they have escapes or not.
        has_escaped_tags: has_escaped_tags && !(instrument_tags.is_empty() && meter_tags.is_empty()),
    };
    (len(&details) <= MAX_LEN).then_some(details)
}

/// Returns the bytes of the texts of details.
fn len(details: &InstrumentDetails) -> usize {
    let InstrumentDetails { instrument_tag_text, meter_tag_text, meter_scope_hash, .. } = details;
    [instrument_tag_text, meter_tag_text, meter_scope_hash]
        .into_iter()
        .fold(0, |len, text| len.saturating_add(text.len()))
}

/// Returns the 64-bit FNV-1a hash of texts.
fn hash(texts: &[&[u8]]) -> u64 {
    let bytes = texts.iter().copied().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
