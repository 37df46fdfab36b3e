//! The runtime's own events, which a stream names by number alone.
//!
//! Event sources send descriptions of their events. The runtime's native providers do not: their metadata records have
//! neither name nor fields. The fields are known only from the runtime's manifest. This module has a table of them for
//! .NET Core 3.1 to .NET 11, NativeAOT included, by provider, event id and version:
//!
//! | provider | events |
//! |---|---|
//! | `Microsoft-Windows-DotNETRuntime` | GC, JIT, loader, exceptions, thread pool, contention, … |
//! | `Microsoft-Windows-DotNETRuntimeRundown` | what exists when a session ends: methods, modules, assemblies |
//! | `Microsoft-Windows-DotNETRuntimePrivate` | background collections, handles, finalizers, memory of the loader |
//! | `Microsoft-DotNETCore-SampleProfiler` | a sample |
//! | `Microsoft-Diagnostics-DiagnosticSource` | .NET Core 3's, which have names and no fields |
//! | `Universal.System`, `Universal.Events` | processes, mappings and samples of a whole machine, by their names |
//!
//! A new version of an event appends fields to those of the versions before it. So an event of a version that is not in
//! the table gets the fields of the last earlier version in the table, and the end of its payload is not decoded. An
//! event of a version before all those in the table gets its name only, because the record may have lost its version:
//! `TraceEvent` has the fields of the latest version that fits its payload. Other events stay
//! unchanged: they have no fields, and their payload is not decoded.
//!
//! Some events of event sources have no fields either, because no description can have the type of an argument, such as
//! `byte[]`: `AsyncEvents` of the async profiler of .NET 11 is one.
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
mod table;

use ipc_proto::wire::Reader;

use crate::clr::table::Row;
use crate::describe::{Fields, Format, Metadata};
use crate::encoding::Str;

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
    if is_described(metadata) {
        return None;
    }
    let provider = metadata.provider;
    if provider == "Microsoft-Diagnostics-DiagnosticSource" && is_diagnostic_source(metadata.name) {
        return Some((Str::EMPTY, fields(table::DIAGNOSTIC_SOURCE, pointer_size)));
    }
    if provider == "Universal.System" || provider == "Universal.Events" {
        let (_, bytes) = table::UNIVERSAL.iter().find(|(name, _)| metadata.name == **name)?;
        return Some((Str::EMPTY, list(Format::Universal, bytes)));
    }
    let layouts = Layouts::of(metadata);
    let name = layouts.rows.last()?.name;
    Some(match layouts.row(metadata.version) {
        Some(row) => (row.name.into(), fields(row.fields, pointer_size)),
        None => (name.into(), Fields::EMPTY),
    })
}

/// Returns whether the record of an event describes its fields, correctly or not.
fn is_described(metadata: &Metadata<'_>) -> bool {
    !metadata.fields.is_empty() || metadata.problem.is_some()
}

/// The versions of an event of the runtime, whose record has no fields.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Layouts {
    rows: &'static [Row],
}

impl Layouts {
    pub(crate) fn of(metadata: &Metadata<'_>) -> Self {
        let rows = if is_described(metadata) { &[] } else { provider_rows(metadata.provider) };
        let start = rows.partition_point(|row| u32::from(row.id) < metadata.event_id);
        let rows = rows.get(start..).unwrap_or_default();
        let len = rows.partition_point(|row| u32::from(row.id) == metadata.event_id);
        Self { rows: rows.get(..len).unwrap_or_default() }
    }

    /// Returns whether the event is none of the runtime.
    #[cfg(feature = "alloc")]
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the last row up to a version.
    fn row(self, version: u32) -> Option<&'static Row> {
        let after = self.rows.partition_point(|row| u32::from(row.version) <= version);
        self.rows.get(after.checked_sub(1)?)
    }

    /// Returns the fields of an event by the version of its label, or else by that of its description, if there is one.
    /// If the version is older than all known versions, returns the fields of the latest version that fits the payload.
    #[cfg(feature = "alloc")]
    pub(crate) fn fields_of(
        self,
        label: Option<u8>,
        described: Option<u32>,
        pointer_size: u32,
        payload: &[u8],
    ) -> Option<Fields<'static>> {
        let version = label.map(u32::from).or(described)?;
        if let Some(row) = self.row(version) {
            return Some(fields(row.fields, pointer_size));
        }
        let rest = |fields: &Fields<'static>| fields.values(payload).finish().ok();
        let known = || self.rows.iter().rev().map(|row| fields(row.fields, pointer_size));
        known()
            .find(|fields| rest(fields) == Some(&[]))
            .or_else(|| known().find(|fields| rest(fields).is_some()))
    }
}

/// Returns the events of a provider of the runtime.
fn provider_rows(provider: Str<'_>) -> &'static [Row] {
    if provider == "Microsoft-Windows-DotNETRuntime" {
        table::RUNTIME
    } else if provider == "Microsoft-Windows-DotNETRuntimeRundown" {
        table::RUNDOWN
    } else if provider == "Microsoft-Windows-DotNETRuntimePrivate" {
        table::PRIVATE
    } else if provider == "Microsoft-DotNETCore-SampleProfiler" {
        table::SAMPLE_PROFILER
    } else {
        &[]
    }
}

fn fields(bytes: &'static [u8], pointer_size: u32) -> Fields<'static> {
    list(Format::Table { pointer: if pointer_size == 4 { 4 } else { 8 } }, bytes)
}

/// Returns a list of fields that begins with their number.
fn list(format: Format, bytes: &'static [u8]) -> Fields<'static> {
    let mut r = Reader::new(bytes);
    let count = r.read::<u16>().unwrap_or_default();
    Fields::new(format, count.into(), &r)
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
        for rows in [table::RUNTIME, table::RUNDOWN, table::PRIVATE, table::SAMPLE_PROFILER] {
            assert!(rows.is_sorted_by(|a, b| (a.id, a.version) < (b.id, b.version)));
            for row in rows {
                for pointer in [4, 8] {
                    let after = fields(row.fields, pointer).check();
                    assert_eq!(after.map(|r| r.rest().len()), Ok(0), "{}", row.name);
                }
            }
        }
        assert!(fields(table::DIAGNOSTIC_SOURCE, 8).check().is_ok());
        for (name, bytes) in table::UNIVERSAL {
            let after = list(Format::Universal, bytes).check();
            assert_eq!(after.map(|r| r.rest().len()), Ok(0), "{name}");
        }
    }
}
