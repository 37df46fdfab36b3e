//! Reduces the trace of a runtime to a size for tests: `reduce_trace [SECONDS [N [jit]]] <SOURCE >RESULT`.
//!
//! The result has the events of the first SECONDS, and of the samples of threads one round of N. Events that name code
//! remain if the code is in the remaining stacks, and with `jit` all that belong to compilations. Details that no
//! analysis reads are left out, and so are the suspensions for samples.
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};

use nettrace::{
    Event, EventSelector, Limits, Metadata, Parser, Record, Rewrite, RewriteOptions, RewriteSpace,
    SequencePoint, Slot, TraceWriter, Version,
};

/// The id of a description that the result leaves out, with all events that refer to it.
const LEFT_OUT: u32 = 0x7fff_ffff;

/// Nanoseconds.
const SECOND: u128 = 1_000_000_000;

/// The kinds of events that the reduction distinguishes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Sample,
    /// A row about the code of a method.
    Method,
    /// The start of a compilation.
    Compilation,
    /// The code that a compilation made.
    Compiled,
    /// An event that no analysis reads.
    Detail,
    /// The start of a suspension, its end, and events between them.
    Suspend,
    Resumed,
    Suspended,
    OtherRundown,
    Other,
}

fn kind(metadata: &Metadata<'_>) -> Kind {
    if metadata.provider == "Microsoft-DotNETCore-SampleProfiler" {
        return Kind::Sample;
    }
    if metadata.provider == "Microsoft-Windows-DotNETRuntimeRundown" {
        return match metadata.event_id {
            143 | 144 => Kind::Method,
            149 | 150 => Kind::Detail,
            _ => Kind::OtherRundown,
        };
    }
    if metadata.provider == "Microsoft-Windows-DotNETRuntime" {
        return match metadata.event_id {
            9 => Kind::Suspend,
            7 | 8 => Kind::Suspended,
            3 => Kind::Resumed,
            143 => Kind::Compiled,
            145 => Kind::Compilation,
            29 | 58 | 146 | 190 | 203 => Kind::Detail,
            _ => Kind::Other,
        };
    }
    Kind::Other
}

/// Calls `each` with every record, and whether the event it is stays; `false` for other records.
fn records<'s>(source: &'s [u8], each: &mut dyn FnMut(Record<'s>, Option<(Kind, Version)>)) {
    let mut parser = Parser::new(Limits::default());
    let mut kinds = BTreeMap::new();
    loop {
        let record = match parser.next(source) {
            Record::More { .. } => Record::End(parser.finish(source)),
            record => record,
        };
        let version = parser.version();
        let kind_of = |id: u32| kinds.get(&id).copied();
        let seen = match &record {
            Record::Event(event) => kind_of(event.metadata_id).map(|kind| (kind, version)),
            _ => None,
        };
        if let Record::Metadata(record) = &record {
            if let Ok(metadata) = Metadata::decode(version, record.payload) {
                kinds.insert(metadata.id, kind(&metadata));
            }
        }
        let is_end = matches!(record, Record::End(_));
        each(record, seen);
        if is_end {
            return;
        }
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let number = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    number.map_or(0, |number| u64::from_le_bytes(*number))
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().map_or(Ok(3.0), |seconds| seconds.parse::<f64>())?;
    let rounds = arguments.next().map_or(Ok(8), |rounds| rounds.parse::<u64>())?;
    let has_compilations = arguments.next().is_some_and(|option| option == "jit");
    let mut source = Vec::new();
    io::stdin().read_to_end(&mut source)?;
    let nanoseconds = Duration::try_from_secs_f64(seconds)?.as_nanos();

    // Pass 1: which events stay, which stacks they have, and which addresses these have.
    let (mut first, mut frequency, mut stays) = (None, 1, Vec::new());
    let mut is_sampling = false;
    let (mut stacks, mut providers) = (BTreeSet::new(), BTreeSet::new());
    records(&source, &mut |record, seen| match (record, seen) {
        (Record::Trace(trace), _) => frequency = trace.frequency,
        (Record::Metadata(record), _) => {
            if let Ok(metadata) = Metadata::decode(Version::V4, record.payload) {
                providers.insert(metadata.provider.to_string());
            }
        }
        (Record::Event(event), seen) => {
            let start = *first.get_or_insert(event.timestamp);
            let ticks = u128::from(event.timestamp.saturating_sub(start));
            let time = ticks.saturating_mul(SECOND).checked_div(frequency.into()).unwrap_or_default();
            // The samples of one millisecond in `rounds`.
            let is_round = (time / 1_000_000).checked_rem(rounds.into()) == Some(0);
            let is_early = time < nanoseconds;
            let is_kept = match seen.map(|(kind, _)| kind) {
                Some(Kind::Sample) => is_early && is_round,
                Some(Kind::Detail) | None => false,
                Some(Kind::Method | Kind::Compiled | Kind::OtherRundown) => true,
                Some(Kind::Compilation) => is_early && has_compilations,
                Some(Kind::Suspend) => {
                    // 1 and 6 are the reasons of collections.
                    is_sampling = !matches!(event.payload.first(), Some(1 | 6));
                    is_early && !is_sampling
                }
                Some(Kind::Suspended | Kind::Resumed) => is_early && !is_sampling,
                Some(Kind::Other) => is_early,
            };
            stays.push(is_kept);
            // The stack of a row about code is of no use.
            if is_kept && !seen.is_some_and(|(kind, _)| kind == Kind::Compiled && !has_compilations) {
                stacks.insert(event.stack_id);
            }
        }
        _ => {}
    });
    let mut addresses = BTreeSet::new();
    records(&source, &mut |record, _| {
        if let Record::Stack(stack) = record {
            if stacks.contains(&stack.id) {
                addresses.extend(stack.bytes.chunks(8).map(|address| number(address, 0)));
            }
        }
    });

    // Pass 2. Events that name code must not make the recording longer: what is later is at the end of the part, events
    // and sequence points alike, so that their order stays.
    let ticks = nanoseconds.saturating_mul(frequency.into()) / SECOND;
    let end_of_part = first.unwrap_or_default().saturating_add(u64::try_from(ticks)?);
    let only: Vec<_> = providers
        .iter()
        .map(|provider| EventSelector { provider, event_id: None, event_name: None })
        .collect();
    let mut buffer = vec![0; TraceWriter::BUFFER];
    let (mut metadata, mut threads) = (vec![Slot::default(); 1 << 12], vec![Slot::default(); 1 << 13]);
    let space =
        RewriteSpace { buffer: &mut buffer, metadata: &mut metadata, threads: &mut threads, labels: &mut [] };
    let mut rewrite = Rewrite::new(RewriteOptions { only: &only, ..RewriteOptions::default() }, space)?;
    let (mut reduced, mut failed, mut stays) = (Vec::new(), None, stays.into_iter());
    let mut put = |record: &Record<'_>| match rewrite.record(record) {
        Ok(bytes) => reduced.extend_from_slice(&bytes),
        Err(e) => failed = Some(e),
    };
    // A description without a name of its provider, which `only` does not have.
    let unknown =
        [&LEFT_OUT.to_le_bytes()[..], &[0; 2], &1_u32.to_le_bytes(), &[0; 2 + 8 + 4 + 4 + 4]].concat();
    records(&source, &mut |record, seen| match record {
        Record::Event(event) => {
            let names = |start: u64| {
                let size = number(event.payload, 24) & u64::from(u32::MAX);
                addresses.range(start..start.saturating_add(size)).next().is_some()
            };
            let is_used =
                seen.is_none_or(|(kind, _)| kind != Kind::Method) || names(number(event.payload, 16));
            let is_kept = stays.next().unwrap_or_default() && is_used;
            let metadata_id = if is_kept { event.metadata_id } else { LEFT_OUT };
            let stack_id = if stacks.contains(&event.stack_id) { event.stack_id } else { 0 };
            let timestamp = event.timestamp.min(end_of_part);
            put(&Record::Event(Event { metadata_id, stack_id, timestamp, ..event }));
        }
        Record::SequencePoint(point) => {
            let timestamp = point.timestamp.min(end_of_part);
            put(&Record::SequencePoint(SequencePoint { timestamp, ..point }));
        }
        Record::Stack(stack) if !stacks.contains(&stack.id) => {}
        Record::Trace(_) => {
            put(&record);
            put(&Record::Metadata(Event { payload: &unknown, ..Event::default() }));
        }
        record => put(&record),
    });
    if let Some(e) = failed {
        return Err(e.into());
    }
    let mut end = rewrite.finish();
    while let Some(bytes) = end.next_bytes()? {
        reduced.extend_from_slice(&bytes);
    }
    io::stdout().write_all(&reduced)?;
    Ok(())
}
