//! The ranges of timestamps that event blocks state, and reading by them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test states what it expects by unwrapping it"
)]
use std::collections::BTreeSet;

use ipc_testdata::TRACES;
use nettrace::{
    AssemblerStep, BlockKind, EventAssembler, EventOrder, EventSelector, Limits, LossCounter, Metadata,
    Parser, ReadOptions, Record, Rewrite, RewriteOptions, RewriteSpace, Slot, TimeFilter, TimeRange,
    TraceWriter, Version,
};

/// An event block: the range that it states, and the range of its events.
type Times = (Option<TimeRange>, Option<TimeRange>);

fn blocks(bytes: &[u8]) -> Vec<Times> {
    let mut parser = Parser::new(Limits::default());
    let mut blocks: Vec<Times> = Vec::new();
    loop {
        match parser.next(bytes) {
            Record::Block(block) if block.kind == BlockKind::Event => blocks.push((None, None)),
            Record::TimeRange(range) => {
                let (stated, seen) = blocks.last_mut().unwrap();
                assert_eq!((*stated, *seen), (None, None), "it comes before the events");
                *stated = Some(range);
            }
            Record::Event(event) => {
                let (_, seen) = blocks.last_mut().unwrap();
                let (first, last) = seen.map_or((u64::MAX, 0), |TimeRange { first, last, .. }| (first, last));
                *seen =
                    Some(TimeRange { first: first.min(event.timestamp), last: last.max(event.timestamp) });
            }
            Record::More { .. } | Record::End(_) => return blocks,
            _ => {}
        }
    }
}

/// Runtimes state the exact range of each block. Other writers do not, and V3 has no ranges.
#[test]
fn stated_ranges() {
    let mut exact = 0;
    for trace in TRACES {
        let blocks = blocks(trace.bytes);
        if trace.name.contains("v3") {
            assert!(blocks.iter().all(|(stated, _)| stated.is_none()), "{}", trace.name);
        } else if trace.name.starts_with("gen-net") {
            assert!(blocks.iter().all(|(stated, seen)| stated == seen && seen.is_some()), "{}", trace.name);
            exact += blocks.len();
        }
    }
    assert!(exact > 20, "{exact} blocks");
    let v6 = TRACES.iter().find(|trace| trace.name.starts_with("gen-v6-onecollect")).unwrap();
    assert!(blocks(v6.bytes).iter().any(|(stated, seen)| stated != seen), "one_collect states wrong ranges");
}

/// The writer states the exact range of each block.
#[test]
fn written_ranges() {
    for trace in TRACES.iter().filter(|trace| !trace.name.contains("v3")) {
        let copy = rewritten(trace.bytes, 0, u64::MAX - 1, &[], false);
        let blocks = blocks(&copy);
        assert!(blocks.iter().all(|(stated, seen)| stated == seen), "{}", trace.name);
    }
}

/// The events of a stream with a time from `from` to `to`, and the numbers of events that were lost, and lost at the
/// start of a thread.
fn within(bytes: &[u8], from: u64, to: u64) -> (Vec<(u64, u32)>, [u64; 2]) {
    let mut slots = [Slot::default(); 1024];
    let mut loss = LossCounter::new(&mut slots);
    let mut parser = Parser::new(Limits::default());
    let mut events = Vec::new();
    loop {
        let record = parser.next(bytes);
        loss.record(&record);
        match record {
            Record::Event(event) if (from..=to).contains(&event.timestamp) => {
                events.push((event.timestamp, event.sequence));
            }
            Record::More { .. } | Record::End(_) => {
                return (events, [loss.lost_after_start(), loss.lost_at_start()]);
            }
            _ => {}
        }
    }
}

/// Returns the same as [`within`], without the blocks that a filter skips.
fn filtered(bytes: &[u8], from: u64, to: u64) -> (Vec<(u64, u32)>, [u64; 2], TimeFilter) {
    let mut slots = [Slot::default(); 1024];
    let mut loss = LossCounter::new(&mut slots);
    let mut times = TimeFilter::new(from, to);
    let mut parser = Parser::new(Limits::default());
    let mut events = Vec::new();
    loop {
        let record = parser.next(bytes);
        loss.record(&record);
        if times.record(&record) {
            parser.skip_block();
            loss.resync();
        }
        match record {
            Record::Event(event) if times.keeps(event.timestamp) => {
                events.push((event.timestamp, event.sequence));
            }
            Record::More { .. } | Record::End(_) => {
                return (events, [loss.lost_after_start(), loss.lost_at_start()], times);
            }
            _ => {}
        }
    }
}

/// Times that divide the events of a trace.
fn cuts(bytes: &[u8]) -> Vec<u64> {
    let (events, _) = within(bytes, 0, u64::MAX);
    let mut times: Vec<u64> = events.into_iter().map(|(time, _)| time).collect();
    times.sort_unstable();
    let cuts =
        [0, 1, 5, 9, 10].into_iter().filter_map(|tenth| times.get((times.len() * tenth / 10).max(1) - 1));
    cuts.copied().chain([0, u64::MAX]).collect()
}

/// A filter returns the same events as a comparison of all events, and reports no false losses. It skips blocks of
/// runtimes, and no blocks of other writers.
#[test]
fn skipped_by_range() {
    let (mut skipped, mut others) = (0, 0);
    for trace in TRACES {
        let cuts = cuts(trace.bytes);
        for (from, to) in cuts.iter().flat_map(|from| cuts.iter().map(move |to| (*from, *to))) {
            let (all, lost) = within(trace.bytes, from, to);
            let (some, fewer_lost, times) = filtered(trace.bytes, from, to);
            assert!(all == some, "{} from {from} to {to}: {} of {}", trace.name, some.len(), all.len());
            assert!(
                fewer_lost[0] <= lost[0] && fewer_lost[1] <= lost[1],
                "{} from {from} to {to}",
                trace.name
            );
            if trace.name.starts_with("gen-net") {
                skipped += times.skipped_blocks();
                assert!(!times.is_contradicted(), "{}", trace.name);
            } else if trace.name.contains("v3") || trace.name.contains("v6") {
                assert_eq!(times.skipped_blocks(), 0, "{}", trace.name);
                others += 1;
            }
        }
    }
    assert!(skipped > 100 && others > 50, "{skipped} blocks skipped, {others} traces read whole");
}

/// The assembler skips the same blocks once the times are set, in the order of the stream and in that of time.
#[test]
fn assembled_by_range() {
    for trace in TRACES {
        let cuts = cuts(trace.bytes);
        for (from, to) in [(cuts[1], cuts[2]), (cuts[3], u64::MAX), (u64::MAX, 0)] {
            for ordered in [false, true] {
                let order = if ordered { EventOrder::BY_TIME } else { EventOrder::Stream };
                let mut assembler = EventAssembler::new(order, ReadOptions::default());
                assembler.skip_outside(from, to);
                assembler.push(trace.bytes);
                assembler.finish();
                let mut events = Vec::new();
                while let AssemblerStep::Event(event) = assembler.step() {
                    events.push(event.timestamp());
                }
                let (expected, lost, times) = filtered(trace.bytes, from, to);
                let mut expected: Vec<u64> = expected.into_iter().map(|(time, _)| time).collect();
                if ordered {
                    expected.sort_unstable();
                }
                events.retain(|time| times.keeps(*time));
                assert!(events == expected, "{} from {from} to {to}", trace.name);
                let summary = assembler.summary();
                assert_eq!(summary.time_filter, Some(&times), "{}", trace.name);
                let (all, at_start) = (summary.losses.lost, summary.losses.at_start);
                assert_eq!([all - at_start, at_start], lost, "{}", trace.name);
            }
        }
    }
}

/// The events that a copy of a part of a trace has: those within the times, and those that name code.
fn part(bytes: &[u8], from: u64, to: u64) -> Vec<u64> {
    let mut names = BTreeSet::new();
    let (mut parser, mut times, mut version) = (Parser::new(Limits::default()), Vec::new(), Version::V4);
    loop {
        match parser.next(bytes) {
            Record::Trace(trace) => version = trace.version,
            Record::Metadata(record) => {
                let Ok(metadata) = Metadata::decode(version, record.payload) else { continue };
                names.remove(&metadata.id);
                let is_name = match metadata.provider.to_string().as_str() {
                    "Microsoft-Windows-DotNETRuntimeRundown" | "Microsoft-DotNETCore-EventPipe" => true,
                    "Microsoft-Windows-DotNETRuntime" => {
                        [141..=144, 151..=157].iter().any(|ids| ids.contains(&metadata.event_id))
                    }
                    provider => provider == "Universal.System",
                };
                if is_name {
                    names.insert(metadata.id);
                }
            }
            Record::Event(event)
                if (from..=to).contains(&event.timestamp) || names.contains(&event.metadata_id) =>
            {
                times.push(event.timestamp);
            }
            Record::More { .. } | Record::End(_) => return times,
            _ => {}
        }
    }
}

/// A copy of the events between two times, with or without the blocks that a filter skips.
fn rewritten(bytes: &[u8], from: u64, to: u64, only: &[EventSelector<'_>], skip: bool) -> Vec<u8> {
    let mut buffer = vec![0; 4 * TraceWriter::BUFFER];
    let (mut metadata, mut threads) = ([Slot::default(); 2048], [Slot::default(); 2048]);
    let space = RewriteSpace {
        buffer: &mut buffer,
        metadata: &mut metadata,
        threads: &mut threads,
        labels: &mut [Slot::default(); 16],
    };
    let options = RewriteOptions { from, to, only, ..RewriteOptions::default() };
    let mut times = TimeFilter::new(from, to);
    let mut rewrite = Rewrite::new(options, space).unwrap();
    let (mut parser, mut copy) = (Parser::new(Limits::default()), Vec::new());
    loop {
        let record = parser.next(bytes);
        copy.extend_from_slice(&rewrite.record(&record).unwrap());
        if skip && times.record(&record) {
            parser.skip_block();
            rewrite.resync();
        }
        if let Record::More { .. } | Record::End(_) = record {
            break;
        }
    }
    let mut end = rewrite.finish();
    while let Some(bytes) = end.next_bytes().unwrap() {
        copy.extend_from_slice(&bytes);
    }
    copy
}

/// A copy has the events between two times, and the events that name code. It has the losses of the whole trace.
#[test]
fn rewritten_by_time() {
    for trace in TRACES {
        let lost = within(trace.bytes, 0, 0).1[0];
        let cuts = cuts(trace.bytes);
        // Each second pair is enough.
        for (from, to) in cuts.iter().flat_map(|from| cuts.iter().map(move |to| (*from, *to))).step_by(2) {
            let copy = rewritten(trace.bytes, from, to, &[], false);
            let times: Vec<u64> = within(&copy, 0, u64::MAX).0.into_iter().map(|(time, _)| time).collect();
            assert!(times == part(trace.bytes, from, to), "{} from {from} to {to}", trace.name);
            assert_eq!(within(&copy, 0, 0).1[0], lost, "{} from {from} to {to}", trace.name);
        }
    }
}

/// A copy of selected events that do not name code needs no block of other times. It has only the losses of the blocks
/// that were read.
#[test]
fn rewritten_without_blocks() {
    let selected = |provider| EventSelector { provider, event_id: None, event_name: None };
    let with_id = |provider, id| EventSelector { event_id: Some(id), ..selected(provider) };
    let runtime = "microsoft-windows-dotnetruntime";
    let only = [selected("Microsoft-DotNETCore-SampleProfiler"), with_id(runtime, 10)];
    let keeps_names = |only: &[_]| RewriteOptions { only, ..RewriteOptions::default() }.keeps_names();
    assert!(!keeps_names(&only) && keeps_names(&[]));
    for naming in [selected(runtime), with_id(runtime, 143), selected("Universal.System")] {
        assert!(keeps_names(&[only[0], naming]), "{naming:?}");
    }
    let mut skipped = 0;
    for trace in TRACES {
        let cuts = cuts(trace.bytes);
        let (from, to) = (cuts[1], cuts[2]);
        let times = |copy: &[u8]| within(copy, 0, u64::MAX).0.into_iter().map(|(time, _)| time);
        let [whole, some] = [false, true].map(|skip| rewritten(trace.bytes, from, to, &only, skip));
        assert!(times(&whole).eq(times(&some)), "{}", trace.name);
        assert!(times(&whole).all(|time| (from..=to).contains(&time)), "{}", trace.name);
        let (_, [read, _], filter) = filtered(trace.bytes, from, to);
        assert_eq!(within(&some, 0, 0).1[0], read, "{}", trace.name);
        skipped += filter.skipped_blocks();
    }
    assert!(skipped > 10, "{skipped} blocks skipped");
}

/// Wrong ranges are recognised by the first block that is read, and no later block is skipped.
#[test]
fn contradicted_ranges() {
    let trace = TRACES.iter().find(|trace| trace.name.starts_with("gen-net10-small-mixed")).unwrap();
    let cuts = cuts(trace.bytes);
    let (from, to) = (cuts[1], cuts[3]);
    for first in [[1, u64::MAX / 2], [from, from]] {
        let mut lies = trace.bytes.to_vec();
        let mut parser = Parser::new(Limits::default());
        // Every second block gets a wrong range: times of long ago.
        let mut next = first;
        loop {
            match parser.next(trace.bytes) {
                Record::Block(block) if block.kind == BlockKind::Event => {
                    let body = usize::try_from(block.body).unwrap();
                    lies[body + 4..body + 20].copy_from_slice(&next.map(u64::to_le_bytes).concat());
                    next = [1, 1];
                }
                Record::End(_) => break,
                _ => {}
            }
        }
        let (events, _, times) = filtered(&lies, from, to);
        let all = within(trace.bytes, from, to).0;
        if first == [from, from] {
            assert!(times.is_contradicted() && times.skipped_blocks() == 0 && events == all);
        } else {
            // The events of the first block are within its range, so nothing shows that the other ranges are wrong.
            assert!(!times.is_contradicted() && times.skipped_blocks() > 0 && events.len() < all.len());
        }
    }
}
