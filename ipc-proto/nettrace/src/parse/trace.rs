//! The first record of a stream with its pairs of strings, the check of its values, and the version of the stream.
use core::fmt;

use ipc_proto::wire;
use ipc_proto::wire::Reader;

use crate::encoding::{Str, utf8};
use crate::error::DecodeError;
use crate::parse::calendar_time::CalendarTime;

/// The layout of a stream.
///
/// No stream states version 5. The name V5 stands for a V4 stream whose metadata records carry tags.
///
/// ```
/// use nettrace::{Limits, Parser, Version};
///
/// let mut parser = Parser::new(Limits::default());
/// parser.next(b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0");
/// assert_eq!(parser.version(), Version::V6);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// NetPerf, of .NET Core 2.1 and 2.2. Newer runtimes write it if a session requests format 0.
    V3,
    /// .NET Core 3.0 and later.
    V4,
    /// Written by one_collect: no objects, no padding, thread indexes and label lists.
    V6,
}

impl Version {
    /// Returns 3, 4 or 6.
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

/// The facts that a stream states about itself in its first block.
///
/// [`Trace::new`] returns values that every reader accepts; [`check`](Self::check) reports a value that a reader may
/// refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace<'a> {
    /// The layout of the stream.
    pub version: Version,
    /// V6: the minor version, which is not checked; otherwise 0.
    pub minor: u32,
    /// The time at which the session started.
    pub sync_time: CalendarTime,
    /// The timestamp at [`sync_time`](Self::sync_time).
    pub sync_ticks: u64,
    /// Ticks of timestamps per second.
    pub frequency: u64,
    /// Bytes of an instruction pointer in a stack: 4 or 8.
    pub pointer_size: u32,
    /// The id of the process.
    pub process_id: Option<u32>,
    /// The number of processors.
    pub processors: Option<u32>,
    /// Nanoseconds between two samples of the sampling profiler.
    pub sampling_interval: Option<u32>,
    /// V6: all pairs of strings, including those of the fields above.
    pub pairs: Pairs<'a>,
}

/// A reason why a reader may refuse a [`Trace`], or compute wrong times from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidTrace {
    /// [`Trace::sync_time`] does not exist: see [`CalendarTime::is_valid`]. Microsoft's reader refuses the stream.
    SyncTime,
    /// [`Trace::frequency`] is 0: timestamps have no unit.
    Frequency,
    /// [`Trace::pointer_size`] is neither 4 nor 8: stacks cannot be split into addresses.
    PointerSize,
}

impl fmt::Display for InvalidTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SyncTime => "the start time of the trace is not a valid date and time",
            Self::Frequency => "the trace has 0 ticks per second",
            Self::PointerSize => "the pointer size of the trace is neither 4 nor 8",
        })
    }
}
impl core::error::Error for InvalidTrace {}

/// An iterator over the pairs of strings in which V6 states facts about a stream.
///
/// ```
/// use nettrace::Pairs;
///
/// assert_eq!(Pairs::default().count(), 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pairs<'a> {
    /// The pairs, which were checked when the `Trace` record was read.
    bytes: &'a [u8],
}

impl<'a> Pairs<'a> {
    /// Returns the pairs in these bytes, which have the layout of a stream: each pair is a key and a value, each of
    /// them a varint length and UTF-8.
    #[must_use]
    pub const fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Returns the remaining pairs in the layout of a stream, for a caller that stores them.
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

/// Parses a decimal number of V6.
fn number(text: Str<'_>) -> Option<u32> {
    match text {
        Str::Utf8(digits) => wire::number(digits, 10)?.try_into().ok(),
        Str::Utf16(_) => None,
    }
}

impl<'a> Trace<'a> {
    /// Returns the trace of a 64-bit process whose ticks are nanoseconds, and nothing else is known. Tick 0 is
    /// 1970-01-01 00:00 UTC.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use nettrace::{CalendarTime, Trace, Version};
    ///
    /// let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    /// let sync_time = CalendarTime::from_unix(now).unwrap_or_default();
    /// let trace = Trace { sync_time, process_id: Some(4711), ..Trace::new(Version::V4) };
    /// assert_eq!(trace.check(), Ok(()));
    /// # Ok::<(), std::time::SystemTimeError>(())
    /// ```
    #[must_use]
    pub const fn new(version: Version) -> Self {
        Self {
            version,
            minor: 0,
            sync_time: CalendarTime::UNIX_EPOCH,
            sync_ticks: 0,
            frequency: 1_000_000_000,
            pointer_size: 8,
            process_id: None,
            processors: None,
            sampling_interval: None,
            pairs: Pairs { bytes: &[] },
        }
    }

    /// Checks the values that readers depend on.
    ///
    /// A [`Parser`](crate::Parser) and a [`TraceWriter`](crate::TraceWriter) do not call this method, so that a
    /// recorded stream can be read and copied unchanged.
    ///
    /// # Errors
    /// Returns the first value that a reader may refuse.
    pub const fn check(&self) -> Result<(), InvalidTrace> {
        if !self.sync_time.is_valid() {
            return Err(InvalidTrace::SyncTime);
        }
        if self.frequency == 0 {
            return Err(InvalidTrace::Frequency);
        }
        if !matches!(self.pointer_size, 4 | 8) {
            return Err(InvalidTrace::PointerSize);
        }
        Ok(())
    }

    /// The length of the object's body in V3 and V4.
    pub(crate) const OBJECT_LEN: usize = 48;

    /// Decodes the body of the object of V3 or V4.
    pub(crate) fn object(version: Version, body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let mut trace = Self::common(version, 0, &mut r)?;
        trace.process_id = Some(r.read()?);
        trace.processors = Some(r.read()?);
        trace.sampling_interval = Some(r.read()?);
        Ok(trace)
    }

    /// Decodes the body of V6's block.
    pub(crate) fn block(minor: u32, body: &'a [u8]) -> Result<Self, DecodeError> {
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

    /// Decodes the fields with which the record starts in all versions.
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
