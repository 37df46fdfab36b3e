//! The types of a heap snapshot, as a table and as JSON.
use std::collections::BTreeMap;
use std::io::{self, Write};

use clap::ValueEnum;
use indicatif::HumanCount;
use ipc_proto::wire::to_usize;
use nettrace_analysis::OwnCode;
use nettrace_analysis::heap::{HeapSnapshot, Missing};
use regex::Regex;
use serde::Serialize;

use super::meanings::meaning;
use crate::output::integer::Integer;
use crate::output::tables::{table_of_rows, write_more, write_table};

/// The order of the types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TypeOrder {
    /// The bytes of all objects
    Bytes,
    /// The number of objects
    Count,
    /// The largest object
    Largest,
    /// The name
    Name,
}

/// The types of a snapshot that are shown.
#[derive(Debug)]
pub(super) struct HeapTypes {
    process_id: Option<u64>,
    objects: u64,
    bytes: u64,
    unreachable: Option<(u64, u64)>,
    is_complete: bool,
    missing: Missing,
    rows: Vec<HeapTypeRow>,
}

/// A type with `--json`.
#[derive(Debug, Clone, Serialize)]
struct HeapTypeRow {
    name: String,
    module: Option<String>,
    count: u64,
    bytes: u64,
    largest: u64,
    large: u64,
    own: bool,
}

/// The object of `--json`.
#[derive(Serialize)]
struct HeapRow<'a> {
    process_id: Option<Integer>,
    objects: u64,
    bytes: u64,
    unreachable_objects: Option<u64>,
    unreachable_bytes: Option<u64>,
    complete: bool,
    lost_events: u64,
    types: &'a [HeapTypeRow],
}

impl HeapTypes {
    /// Types of one name in one module are one row.
    pub(super) fn new(
        snapshot: &HeapSnapshot,
        own: &OwnCode,
        pattern: Option<&Regex>,
        sort: TypeOrder,
    ) -> Self {
        let graph = &snapshot.graph;
        let (mut rows, mut bytes) = (BTreeMap::new(), 0_u64);
        for row in graph.rows() {
            bytes = bytes.saturating_add(row.bytes);
            let Some(of_type) = graph.types().get(to_usize(row.type_place)) else {
                continue;
            };
            let module = of_type.module.as_deref().filter(|path| !path.is_empty()).map(file_name);
            let name = of_type.name();
            let is_shown =
                |pattern: &Regex| pattern.is_match(&name) || module.is_some_and(|of| pattern.is_match(of));
            if !pattern.is_none_or(is_shown) {
                continue;
            }
            let stem = module.map_or("", |module| module.strip_suffix(".dll").unwrap_or(module));
            // A symbol as it is names a type of the runtime.
            let is_named = |raw: &str| !(raw.is_empty() || of_type.is_native() && raw.starts_with('_'));
            let is_own = of_type.raw_name.as_deref().is_some_and(is_named) && own.owns(&format!("{stem}!{name}"));
            let known =
                rows.entry((name.clone(), module.map(ToOwned::to_owned))).or_insert_with(|| HeapTypeRow {
                    name,
                    module: module.map(ToOwned::to_owned),
                    count: 0,
                    bytes: 0,
                    largest: 0,
                    large: 0,
                    own: is_own,
                });
            known.count = known.count.saturating_add(row.count);
            known.bytes = known.bytes.saturating_add(row.bytes);
            known.largest = known.largest.max(row.largest);
            known.large = known.large.saturating_add(row.large);
        }
        let mut rows: Vec<HeapTypeRow> = rows.into_values().collect();
        match sort {
            TypeOrder::Bytes => rows.sort_by_key(|row| core::cmp::Reverse((row.bytes, row.count))),
            TypeOrder::Count => rows.sort_by_key(|row| core::cmp::Reverse((row.count, row.bytes))),
            TypeOrder::Largest => rows.sort_by_key(|row| core::cmp::Reverse((row.largest, row.bytes))),
            TypeOrder::Name => {}
        }
        let objects = u64::from(graph.len());
        let unreachable = graph.reachable().map(|reachable| {
            (objects.saturating_sub(reachable.count), bytes.saturating_sub(reachable.bytes))
        });
        let (process_id, is_complete) = (snapshot.process_id, snapshot.is_complete);
        Self { process_id, objects, bytes, unreachable, is_complete, missing: *graph.missing(), rows }
    }

    pub(super) fn to_json(&self) -> impl Serialize + '_ {
        let Missing { node_events, edge_events, root_events, .. } = self.missing;
        HeapRow {
            process_id: self.process_id.map(Integer),
            objects: self.objects,
            bytes: self.bytes,
            unreachable_objects: self.unreachable.map(|(objects, _)| objects),
            unreachable_bytes: self.unreachable.map(|(_, bytes)| bytes),
            complete: self.is_complete,
            lost_events: node_events.saturating_add(edge_events).saturating_add(root_events),
            types: &self.rows,
        }
    }

    pub(super) fn write(&self, top: usize, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{} objects, {} bytes", HumanCount(self.objects), HumanCount(self.bytes))?;
        match self.unreachable {
            Some((0, _)) => writeln!(out, ", all of them reachable")?,
            Some((objects, bytes)) => {
                writeln!(out, "; unreachable: {} objects, {} bytes", HumanCount(objects), HumanCount(bytes))?;
            }
            None => writeln!(out, "; which are reachable is not known")?,
        }
        let own: Vec<&HeapTypeRow> = self.rows.iter().filter(|row| row.own).collect();
        if !own.is_empty() {
            writeln!(out, "\nTypes of the program:")?;
            self.write_rows(&own, top, out)?;
        }
        let all: Vec<&HeapTypeRow> = self.rows.iter().collect();
        if all.is_empty() {
            return writeln!(out, "\nno type matches");
        }
        writeln!(out, "\nAll types:")?;
        self.write_rows(&all, top, out)?;
        let meanings = all.iter().take(top).filter_map(|row| Some((&row.name, meaning(&row.name)?)));
        for (place, (name, meaning)) in meanings.take(5).enumerate() {
            if place == 0 {
                writeln!(out)?;
            }
            writeln!(out, "{name}: {meaning}")?;
        }
        Ok(())
    }

    fn write_rows(&self, rows: &[&HeapTypeRow], top: usize, out: &mut dyn Write) -> io::Result<()> {
        let shown = rows.iter().take(top.max(1)).map(|row| {
            let share = row.bytes.saturating_mul(1000).checked_div(self.bytes).unwrap_or_default();
            [
                ("bytes", HumanCount(row.bytes).to_string()),
                ("%", format!("{}.{}", share / 10, share % 10)),
                ("objects", HumanCount(row.count).to_string()),
                ("largest", HumanCount(row.largest).to_string()),
                ("LOH", HumanCount(row.large).to_string()),
                ("type", row.name.clone()),
                ("module", row.module.clone().unwrap_or_default()),
            ]
        });
        write_table(&table_of_rows(shown, &[5, 6]), out)?;
        let (all, shown) = (rows.len(), rows.len().min(top.max(1)));
        write_more(all, shown, " types", out)?;
        let rest = rows.iter().skip(shown).fold(0, |sum: u64, row| sum.saturating_add(row.bytes));
        if rest > 0 { writeln!(out, "they have {} bytes", HumanCount(rest)) } else { Ok(()) }
    }
}

/// Returns the file of a path of Linux or Windows.
fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    #[test]
    fn file_names_are_those_of_either_system() {
        assert_eq!(super::file_name(r"C:\app\Shop.dll"), "Shop.dll");
        assert_eq!(super::file_name("/app/Shop.dll"), "Shop.dll");
    }
}
