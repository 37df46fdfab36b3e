//! `LatestSamples`, which stores the last sample of each series within a limit of memory, and `OwnedSample`, a sample
//! with its own texts.
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use core::fmt::Write;

use nettrace::Str;

use super::{Measurement, Sample, System};

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
    /// The samples by their keys: provider, name, tags and version, each with an end mark, then the system and the
    /// instrument id.
    series: BTreeMap<String, OwnedSample>,
    key: String,
    size: usize,
    limit: usize,
    dropped: u64,
}

/// A [`Sample`] with texts of its own; invalid characters are U+FFFD.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OwnedSample {
    /// See [`Sample::nanoseconds`].
    pub nanoseconds: i64,
    /// See [`Sample::unix_nanoseconds`].
    pub unix_nanoseconds: i128,
    /// See [`Sample::system`].
    pub system: System,
    /// See [`Sample::provider`].
    pub provider: String,
    /// See [`Sample::provider_version`].
    pub provider_version: String,
    /// See [`Sample::name`].
    pub name: String,
    /// See [`Sample::display_name`].
    pub display_name: String,
    /// See [`Sample::unit`].
    pub unit: String,
    /// See [`Sample::tag_text`].
    pub tag_text: String,
    /// See [`Sample::instrument_id`].
    pub instrument_id: Option<u32>,
    /// See [`Sample::interval`].
    pub interval: Option<f64>,
    /// See [`Sample::measurement`].
    pub measurement: Measurement,
}

impl From<&Sample<'_>> for OwnedSample {
    fn from(sample: &Sample<'_>) -> Self {
        Self {
            nanoseconds: sample.nanoseconds,
            unix_nanoseconds: sample.unix_nanoseconds,
            system: sample.system,
            provider: sample.provider.to_string(),
            provider_version: sample.provider_version.to_string(),
            name: sample.name.to_string(),
            display_name: sample.display_name.to_string(),
            unit: sample.unit.to_string(),
            tag_text: sample.tag_text.to_string(),
            instrument_id: sample.instrument_id,
            interval: sample.interval,
            measurement: sample.measurement.clone(),
        }
    }
}

impl OwnedSample {
    /// Returns the sample that borrows its texts from this one.
    #[must_use]
    pub fn sample(&self) -> Sample<'_> {
        Sample {
            nanoseconds: self.nanoseconds,
            unix_nanoseconds: self.unix_nanoseconds,
            system: self.system,
            provider: (&*self.provider).into(),
            provider_version: (&*self.provider_version).into(),
            name: (&*self.name).into(),
            display_name: (&*self.display_name).into(),
            unit: (&*self.unit).into(),
            tag_text: (&*self.tag_text).into(),
            instrument_id: self.instrument_id,
            interval: self.interval,
            measurement: self.measurement.clone(),
        }
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
        self.set_key(sample);
        let (owned, stored) = (OwnedSample::from(sample), self.series.get_mut(&self.key));
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

    /// Removes the series of an instrument that has ended, by its meter, name and [id](super::Instrument::id).
    pub fn remove(&mut self, meter: Str<'_>, name: Str<'_>, instrument_id: Option<u32>) {
        self.key.clear();
        push(&mut self.key, meter);
        push(&mut self.key, name);
        let mut removed = 0_usize;
        let prefix = core::mem::take(&mut self.key);
        let keys =
            self.series.range::<str, _>((core::ops::Bound::Included(&*prefix), core::ops::Bound::Unbounded));
        let ended: alloc::vec::Vec<String> = keys
            .take_while(|(key, _)| key.starts_with(&prefix))
            .filter(|(_, sample)| sample.system == System::Meter && sample.instrument_id == instrument_id)
            .map(|(key, _)| key.clone())
            .collect();
        for key in ended {
            if let Some(sample) = self.series.remove(&key) {
                removed = removed.saturating_add(sample.size(&key));
            }
        }
        self.size = self.size.saturating_sub(removed);
    }

    /// Returns the last samples, in the order of provider, name and tags.
    pub fn iter(&self) -> impl Iterator<Item = &OwnedSample> {
        self.series.values()
    }

    /// Returns how many samples were not stored because of the limit.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    fn set_key(&mut self, sample: &Sample<'_>) {
        self.key.clear();
        for text in [sample.provider, sample.name, sample.tag_text, sample.provider_version] {
            push(&mut self.key, text);
        }
        // Writing to a string cannot fail.
        let _ = write!(self.key, "{} {}", sample.system.name(), sample.instrument_id.unwrap_or_default());
    }
}

/// Appends a text and its end mark, two NULs. After a NUL in the text, which only hostile traces have, U+0001 follows,
/// so that no text contains an end mark.
fn push(key: &mut String, text: Str<'_>) {
    for c in text.chars() {
        key.push(c);
        if c == '\0' {
            key.push('\u{1}');
        }
    }
    key.push_str("\0\0");
}
