//! The runtime's own events, which a stream names by number alone.
//!
//! Event sources send descriptions of their events. The runtime's native providers do not: their metadata records have
//! neither name nor fields. The fields are known only from the runtime's manifest. This module has a table of them for
//! .NET Core 3.1 to .NET 10, NativeAOT included, by provider, event id and version:
//!
//! | provider | events |
//! |---|---|
//! | `Microsoft-Windows-DotNETRuntime` | GC, JIT, loader, exceptions, thread pool, contention, … |
//! | `Microsoft-Windows-DotNETRuntimeRundown` | what exists when a session ends: methods, modules, assemblies |
//! | `Microsoft-DotNETCore-SampleProfiler` | a sample |
//! | `Microsoft-Diagnostics-DiagnosticSource` | .NET Core 3's, which have names and no fields |
//!
//! A new version of an event appends fields to those of the versions before it. So an event of a version that is not in
//! the table gets the fields of the last earlier version in the table, and the end of its payload is not decoded. Other
//! events stay unchanged: they have no fields, and their payload is not decoded.
//!
//! ```
//! use nettrace::{Item, Metadata, Value, Version, clr};
//!
//! # let utf16 = |s: &str| s.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
//! # let record = [&1u32.to_le_bytes()[..], &utf16("Microsoft-Windows-DotNETRuntime"), &2u32.to_le_bytes(), &utf16(""),
//! #     &[0; 8], &1u32.to_le_bytes(), &[4, 0, 0, 0], &[0; 4]].concat();
//! let metadata = clr::describe(Metadata::decode(Version::V4, &record)?, 8);
//! assert_eq!(metadata.name, "GCEnd");
//! let mut values = metadata.fields.values(&[9, 0, 0, 0, 1, 0, 0, 0, 5, 0]);
//! assert_eq!(values.next(), Some(Item::Value { name: "Count".into(), value: Value::UInt(9) }));
//! assert_eq!(values.finish()?, []);
//! # Ok::<(), nettrace::DecodeError>(())
//! ```
mod row;
mod table;

use ipc_proto::wire::Reader;

use crate::describe::field::{Fields, Format};
use crate::describe::metadata::Metadata;
use crate::encoding::text::Str;

/// Adds the name and the fields that `metadata` lacks, if its event is one of the runtime's; otherwise returns
/// `metadata` unchanged.
///
/// `pointer_size` is the pointer size of the trace in bytes, 4 or 8: a few numbers are as wide as a pointer.
#[must_use]
pub fn describe<'a>(metadata: Metadata<'a>, pointer_size: u32) -> Metadata<'a> {
    match find(&metadata, pointer_size) {
        Some((name, fields)) if metadata.name.is_empty() => Metadata { name, fields, ..metadata },
        Some((_, fields)) => Metadata { fields, ..metadata },
        None => metadata,
    }
}

/// Returns the name and the fields of an event whose record has no fields.
pub(crate) fn find(metadata: &Metadata<'_>, pointer_size: u32) -> Option<(Str<'static>, Fields<'static>)> {
    if !metadata.fields.is_empty() || metadata.problem.is_some() {
        return None;
    }
    let pointer = if pointer_size == 4 { 4 } else { 8 };
    let provider = metadata.provider;
    let rows = if provider == "Microsoft-Windows-DotNETRuntime" {
        table::RUNTIME
    } else if provider == "Microsoft-Windows-DotNETRuntimeRundown" {
        table::RUNDOWN
    } else if provider == "Microsoft-DotNETCore-SampleProfiler" {
        table::SAMPLE_PROFILER
    } else if provider == "Microsoft-Diagnostics-DiagnosticSource" && is_diagnostic_source(metadata.name) {
        return Some((Str::EMPTY, fields(table::DIAGNOSTIC_SOURCE, pointer)));
    } else {
        return None;
    };
    let key = (metadata.event_id, metadata.version);
    let after = rows.partition_point(|row| (u32::from(row.id), u32::from(row.version)) <= key);
    let row = rows.get(after.checked_sub(1)?).filter(|row| u32::from(row.id) == metadata.event_id)?;
    Some((row.name.into(), fields(row.fields, pointer)))
}

fn fields(bytes: &'static [u8], pointer: u8) -> Fields<'static> {
    let mut r = Reader::new(bytes);
    let count = r.read::<u16>().unwrap_or_default();
    Fields::new(Format::Table { pointer }, count.into(), &r)
}

fn is_diagnostic_source(name: Str<'_>) -> bool {
    const NAMES: [&str; 7] = [
        "Event",
        "Activity1Start",
        "Activity1Stop",
        "Activity2Start",
        "Activity2Stop",
        "RecursiveActivity1Start",
        "RecursiveActivity1Stop",
    ];
    NAMES.iter().any(|known| name == *known)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The search requires rows in order, and reading requires valid descriptions.
    #[test]
    fn rows_are_sound() {
        for rows in [table::RUNTIME, table::RUNDOWN, table::SAMPLE_PROFILER] {
            assert!(rows.is_sorted_by(|a, b| (a.id, a.version) < (b.id, b.version)));
            for row in rows {
                for pointer in [4, 8] {
                    let after = fields(row.fields, pointer).check();
                    assert_eq!(after.map(|r| r.rest().len()), Ok(0), "{}", row.name);
                }
            }
        }
        assert!(fields(table::DIAGNOSTIC_SOURCE, 8).check().is_ok());
    }
}
