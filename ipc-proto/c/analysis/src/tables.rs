//! The tables of a trace that has ended.
use core::cmp::Reverse;

use nettrace_analysis::Analysis as _;
use nettrace_analysis::OwnCode;
use nettrace_analysis::call_tree::{CallTree, Entry, Order};
use nettrace_analysis::counters::{Measurement, OwnedSample};
use nettrace_analysis::gc;
use nettrace_analysis::heap::HeapTypeRow;
use nettrace_analysis::nettrace::End as ProtoEnd;
use nettrace_analysis::report::{CallReport, ReportQuery};
use nettrace_analysis::samples::{Clock, Samples};

use super::reading::Reading;
use super::rows::{CLOCKS, Collection, Counter, DIPC_NOT_KNOWN, Function, HeapType, ORDERS, Summary};
use crate::status::{Failure, Status};
use crate::text::Text;

pub(super) struct Tables {
    pub(super) summary: Summary,
    clock: Clock,
    samples: Samples,
    /// The functions in each of [`ORDERS`].
    pub(super) orders: [Vec<Entry>; 3],
    folded: Option<String>,
    collections: Vec<gc::Collection>,
    counters: Vec<OwnedSample>,
    /// The types of each process.
    heap: Vec<(Option<u64>, HeapTypeRow)>,
}

impl Tables {
    pub(super) fn new(reading: Reading) -> Self {
        let Reading { clock, assembler, samples, collections, counters, snapshots, events, .. } = reading;
        let mut samples = samples.finish();
        // As `dotnet-ipc report` does.
        let is_exact = clock == Clock::ThreadTime;
        let query = ReportQuery { clock, is_chosen: true, order: Order::Exclusive, is_exact, threads: None };
        let CallReport { clock, tree, .. } = CallReport::new(&query, &mut samples, None);
        let orders = ORDERS.map(|order| {
            let mut top = tree.top(order);
            top.retain(|entry| order != Order::Own || entry.own > 0);
            top
        });
        let collections = collections.finish().collections;
        let mut heap = Vec::new();
        for snapshot in snapshots.finish() {
            let mut rows = snapshot.graph.type_rows(&OwnCode::default());
            rows.sort_by_key(|row| Reverse((row.bytes, row.count)));
            heap.extend(rows.into_iter().map(|row| (snapshot.process_id, row)));
        }
        let read = assembler.summary();
        let number = CLOCKS.iter().position(|of| *of == clock).and_then(|place| u32::try_from(place).ok());
        let summary = Summary {
            end: read.end.unwrap_or(ProtoEnd::Complete).into(),
            events,
            lost: read.losses.lost,
            clock: number.unwrap_or(u32::MAX),
            counted: samples.count(&clock),
            total: tree.total(),
            unnamed: tree.unnamed_share(samples.names()),
            functions: orders.first().map_or(0, Vec::len),
            collections: collections.len(),
            counters: counters.len(),
            heap_types: heap.len(),
        };
        Self { summary, clock, samples, orders, folded: None, collections, counters, heap }
    }

    pub(super) fn function(&self, entry: &Entry) -> Function<'_> {
        let Entry { frame, exclusive, inclusive, own, is_own } = *entry;
        Function { name: Text::utf8(self.samples.names().text(frame)), exclusive, inclusive, own, is_own }
    }

    pub(super) fn folded(&mut self) -> &str {
        let Self { samples, clock, folded, .. } = self;
        folded.get_or_insert_with(|| {
            let tree = CallTree::new(samples, clock, |_, weight| weight.total());
            let mut lines = String::new();
            // Writing to a string cannot fail.
            let _ = tree.write_folded(samples.names(), &mut lines);
            lines
        })
    }

    pub(super) fn name(&mut self, process_id: u64, address: u64) -> Text<'_> {
        let names = self.samples.names_mut();
        let address = names.address(process_id, address);
        let frame = names.frame(address);
        Text::utf8(names.text(frame))
    }

    pub(super) fn collection(&self, i: usize) -> Result<Collection<'_>, Failure> {
        let row = self.collections.get(i).ok_or(Status::NotFound)?;
        let sizes = row.heap.unwrap_or_default();
        let time = |time: Option<i64>| time.unwrap_or(DIPC_NOT_KNOWN);
        let duration = |time: Option<u64>| time.and_then(|time| i64::try_from(time).ok());
        let duration = |time: Option<u64>| duration(time).unwrap_or(DIPC_NOT_KNOWN);
        Ok(Collection {
            process_id: row.process_id.unwrap_or_default(),
            number: row.number,
            generation: row.generation,
            kind: Text::optional(row.collection_type.and_then(gc::CollectionType::name)),
            reason: Text::optional(row.reason.and_then(gc::Reason::name)),
            start: time(row.start),
            pause_start: time(row.pause_start),
            pause: duration(row.pause),
            suspension: duration(row.suspension),
            duration: duration(row.duration),
            has_sizes: row.heap.is_some(),
            after: sizes.after,
            promoted: sizes.promoted,
            is_complete: row.is_complete,
        })
    }

    pub(super) fn counter(&self, i: usize) -> Result<Counter<'_>, Failure> {
        let row = self.counters.get(i).ok_or(Status::NotFound)?;
        let known = match &row.measurement {
            Measurement::Histogram { quantiles, .. } => quantiles.as_slice(),
            _ => &[],
        };
        let quantile = |of: f64| {
            let found = known.iter().find(|known| known.quantile == of);
            found.map_or(f64::NAN, |found| found.value)
        };
        Ok(Counter {
            time: row.nanoseconds,
            process_id: row.process_id.unwrap_or_default(),
            provider: Text::utf8(&row.provider),
            name: Text::utf8(&row.name),
            display_name: Text::utf8(&row.display_name),
            unit: Text::utf8(&row.unit),
            tags: Text::utf8(&row.tag_text),
            kind: Text::utf8(row.measurement.kind()),
            value: row.value().unwrap_or(f64::NAN),
            rate: row.rate().unwrap_or(f64::NAN),
            quantiles: [0.5, 0.95, 0.99].map(quantile),
        })
    }

    pub(super) fn heap_type(&self, i: usize) -> Result<HeapType<'_>, Failure> {
        let (process_id, row) = self.heap.get(i).ok_or(Status::NotFound)?;
        Ok(HeapType {
            process_id: process_id.unwrap_or_default(),
            name: Text::utf8(&row.name),
            module: Text::optional(row.module.as_deref()),
            count: row.count,
            bytes: row.bytes,
            largest: row.largest,
            is_own: row.is_own,
        })
    }
}
