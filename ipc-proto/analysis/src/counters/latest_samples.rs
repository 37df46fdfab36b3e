//! The last sample of each series, within a limit of memory.
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use core::fmt::Write;
use core::ops::Bound;

use super::{
    Instrument, InstrumentDetails, Measurement, OwnedSample, Sample, System, Tags, escaped_tags, tags,
};

/// The last sample of each series: of each counter, and of each set of tags of each instrument.
///
/// The memory stays at about the limit of [`new`](Self::new), even with a million tag sets of hostile names. Series
/// beyond the limit are not stored, and [`dropped`](Self::dropped) counts their samples.
///
/// ```
/// use nettrace_analysis::counters::LatestSamples;
///
/// let latest = LatestSamples::new(LatestSamples::DEFAULT_LIMIT);
/// assert_eq!((latest.iter().count(), latest.dropped()), (0, 0));
/// ```
#[derive(Debug, Clone)]
pub struct LatestSamples {
    /// The samples by the [keys](OwnedSample::push_series_key) of their series.
    series: BTreeMap<String, OwnedSample>,
    key: String,
    size: usize,
    limit: usize,
    dropped: u64,
}

impl OwnedSample {
    /// Appends the key of the series of the sample. Samples have the same key if and only if they are of one series: of
    /// the same process, system, instrument, kind, unit, version and tags. Keys have the order of provider, name,
    /// system, process, id, version, unit and tags, compared as texts.
    pub fn push_series_key(&self, key: &mut String) {
        let Self { provider, name, provider_version, unit, instrument_id, .. } = self;
        push(key, provider);
        push(key, name);
        push_instrument(key, self.system, self.process_id, *instrument_id);
        for text in [provider_version, unit, &self.tag_text] {
            push(key, text);
        }
        // The id of an instrument stands for its details.
        if let Some(details) = self.details.as_ref().filter(|_| self.instrument_id.is_none()) {
            let InstrumentDetails { instrument_tag_text, meter_tag_text, meter_scope_hash, .. } = &**details;
            for text in [instrument_tag_text, meter_tag_text, meter_scope_hash] {
                push(key, text);
            }
        }
        // Writing to a string cannot fail.
        let _ = write!(key, "{} {} {}", self.measurement.kind(), self.instance, self.has_escaped_tags);
    }

    /// Returns the tags; see [`Sample::tags`].
    #[must_use]
    pub fn tags(&self) -> Tags<'_> {
        let text = (&*self.tag_text).into();
        if self.has_escaped_tags { escaped_tags(text) } else { tags(self.system, text) }
    }

    /// Returns approximately the memory of the sample and its key.
    fn size(&self, key: &str) -> usize {
        /// The bytes of a number in a list, and the bytes that an entry of the map takes in addition.
        const NUMBER: usize = 16;
        const ENTRY: usize = 128;
        let texts = [
            &self.provider,
            &self.provider_version,
            &self.name,
            &self.display_name,
            &self.unit,
            &self.tag_text,
        ];
        let numbers = match &self.measurement {
            Measurement::Histogram { quantiles, .. } => quantiles.len(),
            Measurement::ExponentialHistogram(histogram) => histogram.buckets.len(),
            _ => 0,
        };
        let texts = texts.into_iter().fold(key.len(), |size, text| size.saturating_add(text.len()));
        texts
            .saturating_add(numbers.saturating_mul(NUMBER))
            .saturating_add(size_of::<Self>().saturating_add(ENTRY))
    }
}

impl LatestSamples {
    /// The limit that is enough for about 20,000 series: 16 MiB.
    pub const DEFAULT_LIMIT: usize = 16 << 20;

    /// Creates a store of about this many bytes at most.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { series: BTreeMap::new(), key: String::new(), size: 0, limit, dropped: 0 }
    }

    /// Stores a sample instead of the last one of its series. Returns whether the limit allows that.
    pub fn insert(&mut self, sample: &Sample<'_>) -> bool {
        let owned = OwnedSample::from(sample);
        self.key.clear();
        owned.push_series_key(&mut self.key);
        let stored = self.series.get_mut(&self.key);
        let before = stored.as_ref().map_or(0, |stored| stored.size(&self.key));
        let size = self.size.saturating_sub(before).saturating_add(owned.size(&self.key));
        if size > self.limit {
            self.dropped = self.dropped.saturating_add(1);
            return false;
        }
        self.size = size;
        match stored {
            Some(stored) => *stored = owned,
            None => drop(self.series.insert(self.key.clone(), owned)),
        }
        true
    }

    /// Removes the series of an instrument that has ended: of one without an id, those of all instruments with its
    /// names, version and unit.
    pub fn remove(&mut self, instrument: &Instrument<'_>) {
        let mut prefix = String::new();
        instrument.push_series_prefix(&mut prefix);
        // One at a time: no other series is visited, however many there are.
        loop {
            let mut from = self.series.range::<str, _>((Bound::Included(&*prefix), Bound::Unbounded));
            let next = from.next().filter(|(key, _)| key.starts_with(&prefix));
            let Some(key) = next.map(|(key, _)| key.clone()) else { return };
            if let Some(sample) = self.series.remove(&key) {
                self.size = self.size.saturating_sub(sample.size(&key));
            }
        }
    }

    /// Returns the last samples, in the order of provider, name, instrument and tags.
    pub fn iter(&self) -> impl Iterator<Item = &OwnedSample> {
        self.series.values()
    }

    /// Returns how many samples were not stored because of the limit.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl Instrument<'_> {
    /// Appends the start of the [keys](OwnedSample::push_series_key) of all series of the instrument, which no other key
    /// has. The series of an instrument without an id are those of all instruments with its names, version and unit.
    pub fn push_series_prefix(&self, prefix: &mut String) {
        push(prefix, &self.meter.to_string());
        push(prefix, &self.name.to_string());
        push_instrument(prefix, System::Meter, self.process_id, self.id);
        if self.id.is_none() {
            push(prefix, &self.meter_version.to_string());
            push(prefix, &self.unit.to_string());
        }
    }
}

/// Appends the system, the process and the id of an instrument.
fn push_instrument(key: &mut String, system: System, process_id: Option<u64>, id: Option<u32>) {
    // Writing to a string cannot fail.
    let _ = write!(key, "{} {process_id:?} {id:?} ", system.name());
}

/// Appends a text and its end mark, two NULs. After a NUL in the text, which only hostile traces have, U+0001 follows,
/// so that no text contains an end mark.
fn push(key: &mut String, text: &str) {
    for (n, part) in text.split('\0').enumerate() {
        if n > 0 {
            key.push_str("\0\u{1}");
        }
        key.push_str(part);
    }
    key.push_str("\0\0");
}
