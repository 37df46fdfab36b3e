use core::fmt;

use super::Str;
use super::field::utf8;
use crate::wire::{self, Reader};
use crate::{Decode, DecodeError};

/// Which layout a stream has.
///
/// There is no version 5 on the wire: what is called so is V4 whose metadata records carry tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// NetPerf, of .NET Core 2.1 and 2.2; newer runtimes still write it when asked for format 0.
    V3,
    /// .NET Core 3.0 and later.
    V4,
    /// Written by one_collect; no objects, no padding, thread indexes and label lists.
    V6,
}

impl Version {
    /// 3, 4 or 6.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::V3 => 3,
            Self::V4 => 4,
            Self::V6 => 6,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "V{}", self.number())
    }
}

/// A point in UTC as Windows' SYSTEMTIME has it. Nothing is checked: there are traces with 1000 milliseconds or more,
/// and writers disagree on whether a week begins on Sunday.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SystemTime {
    /// Year.
    pub year: u16,
    /// Month, from 1.
    pub month: u16,
    /// Day of the week.
    pub day_of_week: u16,
    /// Day of the month, from 1.
    pub day: u16,
    /// Hour.
    pub hour: u16,
    /// Minute.
    pub minute: u16,
    /// Second.
    pub second: u16,
    /// Millisecond.
    pub millisecond: u16,
}

impl<'a> Decode<'a> for SystemTime {
    const MIN_LEN: usize = 16;

    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            year: r.read()?,
            month: r.read()?,
            day_of_week: r.read()?,
            day: r.read()?,
            hour: r.read()?,
            minute: r.read()?,
            second: r.read()?,
            millisecond: r.read()?,
        })
    }
}

/// What a stream says about itself, in its first block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace<'a> {
    /// The layout of what follows.
    pub version: Version,
    /// V6: the minor version, whatever it is; else 0.
    pub minor: u32,
    /// When the session began.
    pub sync_time: SystemTime,
    /// The timestamp that belongs to [`sync_time`](Self::sync_time).
    pub sync_ticks: u64,
    /// Ticks of timestamps a second.
    pub frequency: u64,
    /// Bytes of an instruction pointer in a stack, 4 or 8.
    pub pointer_size: u32,
    /// The process.
    pub process_id: Option<u32>,
    /// Its processors.
    pub processors: Option<u32>,
    /// Nanoseconds between two samples of the sampling profiler.
    pub sampling_interval: Option<u32>,
    /// V6: every pair of strings, those understood above among them.
    pub pairs: Pairs<'a>,
}

/// Pairs of strings: what V6 says of a stream beyond the fields that it has.
///
/// ```
/// use ipc_proto::nettrace::Pairs;
///
/// assert_eq!(Pairs::default().count(), 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pairs<'a> {
    /// Pairs of strings, each a length and that many bytes; checked.
    bytes: &'a [u8],
}

impl<'a> Pairs<'a> {
    /// Pairs as they lie in a stream: a key and a value, each a varint length and UTF-8.
    #[must_use]
    pub const fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The pairs that are left as they lie in the stream, for whoever has to keep them.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (Str<'a>, Str<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let mut r = Reader::new(self.bytes);
        let pair = (utf8(&mut r).ok()?, utf8(&mut r).ok()?);
        self.bytes = r.rest();
        Some(pair)
    }
}

/// The decimal number that a string of V6 is.
fn number(text: Str<'_>) -> Option<u32> {
    match text {
        Str::Utf8(digits) => wire::number(digits, 10)?.try_into().ok(),
        Str::Utf16(_) => None,
    }
}

impl<'a> Trace<'a> {
    /// Bytes of the object that V3 and V4 have.
    pub(super) const OBJECT_LEN: usize = 48;

    /// The body of the object.
    pub(super) fn object(version: Version, body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let mut trace = Self::common(version, 0, &mut r)?;
        trace.process_id = Some(r.read()?);
        trace.processors = Some(r.read()?);
        trace.sampling_interval = Some(r.read()?);
        Ok(trace)
    }

    /// The body of V6's block.
    pub(super) fn block(minor: u32, body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let mut trace = Self::common(Version::V6, minor, &mut r)?;
        let count: u32 = r.read()?;
        let pairs = r.rest();
        for _ in 0..count {
            let (Str::Utf8(key), value) = (utf8(&mut r)?, utf8(&mut r)?) else { continue };
            match key {
                b"ProcessId" => trace.process_id = number(value),
                b"HardwareThreadCount" => trace.processors = number(value),
                b"ExpectedCPUSamplingRate" => trace.sampling_interval = number(value),
                _ => {}
            }
        }
        let len = pairs.len().saturating_sub(r.rest().len());
        trace.pairs = Pairs { bytes: pairs.get(..len).unwrap_or_default() };
        Ok(trace)
    }

    /// What all versions begin with.
    fn common(version: Version, minor: u32, r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            version,
            minor,
            sync_time: r.read()?,
            sync_ticks: r.read()?,
            frequency: r.read()?,
            pointer_size: r.read()?,
            process_id: None,
            processors: None,
            sampling_interval: None,
            pairs: Pairs::default(),
        })
    }
}
