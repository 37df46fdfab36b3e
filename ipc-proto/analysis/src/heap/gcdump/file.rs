//! What a `.gcdump` file has, and its errors.
use core::fmt;

use nettrace::FileTime;

use crate::heap::graph::Graph;
use crate::heap::snapshots::HeapSnapshot;

/// A heap snapshot in a `.gcdump` file.
///
/// ```
/// use nettrace_analysis::heap::{Gcdump, GcdumpInfo};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/heap/net10-linux.gcdump");
/// let file = std::fs::read(path)?;
/// let gcdump = Gcdump::read(&file)?;
/// assert_eq!((gcdump.graph.len(), gcdump.is_sample), (15_560, false));
///
/// let (mut copy, info) = (Vec::new(), GcdumpInfo { process_id: 42, ..gcdump.info });
/// gcdump.graph.write_gcdump(&info, |bytes| {
///     copy.extend_from_slice(bytes);
///     Ok::<(), core::convert::Infallible>(())
/// })?;
/// assert_eq!(Gcdump::read(&copy)?.graph.rows().len(), gcdump.graph.rows().len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Gcdump {
    /// The objects. Values of conditional weak tables have roots of the kind [`Handle`](crate::heap::RootKind::Handle), because
    /// the file does not have their keys.
    pub graph: Graph,
    /// What the file states about the snapshot.
    pub info: GcdumpInfo,
    /// Whether PerfView left out objects of a large heap.
    pub is_sample: bool,
}

/// What a `.gcdump` file states about its snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GcdumpInfo {
    /// The id of the process, 0 if it is not known.
    pub process_id: u32,
    /// The time of the snapshot; of files from other tools in the time zone of their machine.
    pub time: Option<FileTime>,
}

/// Why bytes are not a `.gcdump` file that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GcdumpError {
    /// The bytes do not begin like such a file.
    OtherFormat,
    /// The version of the format is older than 9 (2017), or a later one that older readers cannot read.
    Version(i32),
    /// The file ends before its end.
    Truncated,
    /// The bytes at this offset contradict the format.
    Corrupt(usize),
}

impl fmt::Display for GcdumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherFormat => f.write_str("not a .gcdump file"),
            Self::Version(version) => write!(f, "version {version} of the format .gcdump is not supported"),
            Self::Truncated => f.write_str("the file is truncated"),
            Self::Corrupt(offset) => write!(f, "the file is corrupt at offset {offset}"),
        }
    }
}

impl core::error::Error for GcdumpError {}

/// Why a `.gcdump` file was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GcdumpWriteError<E> {
    /// The file would be longer than 2 GiB, the limit of the format.
    TooLarge,
    /// The caller's function failed.
    Write(E),
}

impl<E: fmt::Display> fmt::Display for GcdumpWriteError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => {
                f.write_str("a .gcdump file has at most 2 GiB, which is too small for these objects")
            }
            Self::Write(e) => e.fmt(f),
        }
    }
}

impl<E: core::error::Error> core::error::Error for GcdumpWriteError<E> {}

impl Gcdump {
    /// The bytes that each file begins with.
    pub const MAGIC: &[u8; 24] = b"\x14\0\0\0!FastSerialization.1";
}

/// A complete snapshot without times.
impl From<Gcdump> for HeapSnapshot {
    fn from(file: Gcdump) -> Self {
        let process_id = Some(file.info.process_id).filter(|id| *id != 0).map(Into::into);
        Self { process_id, start: 0, end: 0, is_complete: true, graph: file.graph }
    }
}

/// The ticks of .NET at the start of [`FileTime`], the year 1601.
pub(super) const TICKS_OF_1601: u64 = 504_911_232_000_000_000;
/// The version of `GCHeapDump` that is written, and the oldest one that is read.
pub(super) const VERSION: i32 = 10;
pub(super) const OLDEST: i32 = 9;
/// Sizes in bytes, above which objects have a type of its own, and its suffix.
pub(super) const SIZE_CLASSES: [(u64, &str); 6] = [
    (100_000_000, " (Bytes > 100M)"),
    (10_000_000, " (Bytes > 10M)"),
    (1_000_000, " (Bytes > 1M)"),
    (100_000, " (Bytes > 100K)"),
    (10_000, " (Bytes > 10K)"),
    (1_000, " (Bytes > 1K)"),
];
