//! `stats`: counts the contents of a trace.
mod event_kind;
mod point_order;
mod processes;
mod references;

use core::cmp::Reverse;
use core::ops::ControlFlow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::PathBuf;

use ipc_proto::wire::to_u64;
use nettrace::{
    BlockKind, Corruption, Counter, End, Event, IdMap, LossCounter, Losses, Metadata, Record, Slot, Str,
    TraceClock, Version, clr,
};
use nettrace_analysis::{EventBuffer, KnownProvider, LossReport, RecordingEnd};
use serde::Serialize;
use serde_json::{Map, Value};

use self::event_kind::{EventKind, Identity, KindRow, pairs_text};
use self::point_order::PointOrder;
use self::processes::{ProcessRow, Processes};
use self::references::References;
use crate::args::process_arg::ProcessArg;
use crate::args::zone_args::ZoneArgs;
use crate::events::digest::EventDigest;
use crate::input::source::{self, Source};
use crate::output::dates::{RecordedSpan, SpanRow};
use crate::output::stdout::{json_to_stdout, show_next, to_stdout};
use crate::output::tables::{table_of_numbers, write_fields, write_table};
use crate::process::trace_target::TraceTarget;
use crate::recording::part_args::{PartArgs, TracePart};
use crate::run::{Failure, Globals};
use crate::text::date::Zone;
use crate::text::printable::{printable, printable_name};

/// Count the events, blocks, stacks and losses of a trace, and show how it ends
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("stats.txt"))]
pub(crate) struct Args {
    /// The trace; `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Show the SHA-256 of all events in the order of the file, which takes as long as all other numbers
    #[arg(long)]
    digest: bool,
    #[command(flatten)]
    process: ProcessArg,
    #[command(flatten)]
    part: PartArgs,
    #[command(flatten)]
    zone: ZoneArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    // Before the trace is read, which a pipe allows only once.
    let zone = args.zone.zone()?.unwrap_or_default();
    let mut stats =
        Stats { part: args.part.part(TraceTarget::File(&args.file), globals)?, ..Stats::default() };
    let (mut steps, mut source) = Source::open(&args.file)?.records(globals)?;
    let mut digest = if args.digest { Some(EventDigest::new()?) } else { None };
    let end = loop {
        let _ = steps.try_for_each_event(|event| {
            let is_counted = stats.event(event, &args.process);
            if let Some(digest) = digest.as_mut().filter(|_| is_counted) {
                digest.event(event);
            }
            ControlFlow::<()>::Continue(())
        });
        match steps.next_record() {
            Record::More { .. } => {
                if let Err(e) = steps.read_from(&mut source) {
                    return Err(source.failed(&e));
                }
            }
            Record::End(end) => break end,
            Record::Block(block) => {
                let name = block_name(block.kind, steps.version(), steps.object_name());
                stats.loss.record(&Record::Block(block));
                stats.block(name);
            }
            step => stats.step(&step, &args.process),
        }
    };
    source.hide_progress();
    stats.processes.count_last();
    stats.number = match end {
        End::Corrupt { reason: Corruption::Version(version), .. } => Some(version),
        _ => (steps.offset() > 0).then(|| steps.version().number()),
    };
    let digest = digest.map(EventDigest::finish).transpose()?;
    if globals.json {
        json_to_stdout(&stats.to_json(end, digest.as_deref(), stats.span(&zone)))?;
    } else {
        to_stdout(|out| stats.write(end, digest, stats.span(&zone), out))?;
        show_next(&format!("dotnet-ipc diagnose {}", TraceTarget::File(&args.file).argument()), globals)?;
    }
    source::check(end, source.name())?;
    args.process.check(source.name())?;
    stats.part.check(source.name())
}

#[derive(Default)]
struct Stats {
    /// The version that the trace states, by which metadata is decoded and blocks have their names.
    version: Option<Version>,
    /// The version to report: a trace can also end because its version is not supported.
    number: Option<u32>,
    pointer_size: u32,
    clock: TraceClock,
    /// The part of the trace whose events are counted.
    part: TracePart,
    /// The time of the last sequence point or event.
    now: u64,
    recording_end: RecordingEnd,
    /// Names and counts in the order of their first blocks, and their indices by name.
    blocks: Vec<(String, u64)>,
    block_places: HashMap<String, usize>,
    events: u64,
    /// Kinds of events in the order of their first descriptions; their indices by identity, and by metadata ID.
    kinds: Vec<EventKind>,
    places: HashMap<Option<Identity>, usize>,
    described: IdMap<Vec<Slot<usize>>>,
    /// The metadata ID of the last event and the index of its kind, until a description changes.
    last_kind: Option<(u32, usize)>,
    /// Whether the last sequence point invalidates the metadata IDs.
    flush: bool,
    metadata: u64,
    stacks: u64,
    sequence_points: u64,
    loss: LossCounter<Vec<Slot<Counter>>>,
    /// The capture thread of the last event and the number of its next event, until another record states a number.
    next_number: Option<(u64, u32)>,
    /// The lost events of the process and of the part: those that numbers after the first one of a thread show, and
    /// those before it.
    lost: u64,
    lost_at_start: u64,
    lost_at_end: u64,
    /// The lost events of each capture thread after its first one, and the thread's id.
    lossy_threads: BTreeMap<u64, LossyThread>,
    /// The times of the first and of the last record that shows a loss.
    loss_times: Option<(u64, u64)>,
    processes: Processes,
    references: References,
    order: PointOrder,
    /// The pairs of the header.
    pairs: Map<String, Value>,
    /// The smallest and the largest timestamp.
    times: Option<(u64, u64)>,
}

/// A thread that lost events.
struct LossyThread {
    id: u64,
    lost: u64,
}

/// The counts as JSON.
#[derive(Serialize)]
struct StatsRow<'s> {
    version: Option<u32>,
    #[serde(flatten)]
    span: Option<SpanRow>,
    blocks: Map<String, Value>,
    events: u64,
    by_event: Vec<KindRow<'s>>,
    processes: Vec<ProcessRow>,
    pairs: &'s Map<String, Value>,
    metadata: u64,
    stacks: u64,
    sequence_points: u64,
    unresolved: &'s References,
    out_of_order: &'s PointOrder,
    lost: u64,
    lost_at_start: u64,
    lost_at_end: u64,
    first_timestamp: Option<u64>,
    last_timestamp: Option<u64>,
    end: &'static str,
    offset: Option<u64>,
    reason: Option<String>,
    digest: Option<&'s str>,
}

impl Stats {
    fn step(&mut self, step: &Record<'_>, process: &ProcessArg) {
        self.next_number = None;
        match step {
            Record::ThreadSequence(row) | Record::RemoveThread(row) => {
                self.count_lost(step, row.thread, process);
            }
            _ => _ = self.loss.record(step),
        }
        self.references.record(step);
        self.processes.record(step);
        match step {
            Record::Trace(trace) => {
                (self.version, self.pointer_size) = (Some(trace.version), trace.pointer_size);
                (self.clock, self.now) = (TraceClock::new(trace), trace.sync_ticks);
                self.pairs = pairs(trace.pairs);
            }
            Record::Metadata(record) => {
                self.metadata = self.metadata.saturating_add(1);
                let version = self.version.unwrap_or(Version::V4);
                if let Ok(metadata) = Metadata::decode(version, record.payload) {
                    self.describe(&clr::describe(metadata, self.pointer_size));
                }
            }
            Record::Stack(_) => self.stacks = self.stacks.saturating_add(1),
            Record::SequencePoint(point) => {
                self.order.point(point);
                self.now = point.timestamp;
                self.recording_end.extend_to(self.clock.nanoseconds(self.now));
                self.sequence_points = self.sequence_points.saturating_add(1);
                self.flush = point.flushes_metadata();
            }
            _ => {}
        }
    }

    fn block(&mut self, name: String) {
        let blocks = &mut self.blocks;
        let place = *self.block_places.entry(name).or_insert_with_key(|name| {
            blocks.push((name.clone(), 0));
            blocks.len().saturating_sub(1)
        });
        if let Some((_, count)) = blocks.get_mut(place) {
            *count = count.saturating_add(1);
        }
        if core::mem::take(&mut self.flush) {
            self.described.clear();
            self.last_kind = None;
        }
    }

    /// Counts the lost events that the next record shows, if it is in the part and of the process.
    fn count_lost(&mut self, record: &Record<'_>, thread: u64, process: &ProcessArg) {
        let before = self.loss.losses();
        let lost = self.loss.record(record);
        let after = self.loss.losses();
        let key = (self.processes.thread_id(thread), thread);
        if before == after || !self.part.contains(&self.clock, self.now, key) {
            return;
        }
        // Only traces of one process have losses at the start of a thread.
        let at_start = after.at_start.saturating_sub(before.at_start);
        self.lost_at_start = self.lost_at_start.saturating_add(at_start);
        if process.includes_id(|| self.processes.of_thread(thread)) {
            self.lost = self.lost.saturating_add(lost.into());
            // An event shows that the losses before it are not at the end of its thread.
            self.lost_at_end = self.lost_at_end.saturating_add(after.at_end).saturating_sub(before.at_end);
            if lost > 0 {
                let id = self.processes.thread_id(thread);
                let lossy = self.lossy_threads.entry(thread).or_insert(LossyThread { id, lost: 0 });
                lossy.lost = lossy.lost.saturating_add(lost.into());
                let (first, last) = self.loss_times.unwrap_or((self.now, self.now));
                self.loss_times = Some((first.min(self.now), last.max(self.now)));
            }
        }
    }

    fn describe(&mut self, metadata: &Metadata<'_>) {
        let Metadata { id, provider, event_id, version, .. } = *metadata;
        self.references.describe(id);
        let kind = self.kind(Some((provider.to_string(), event_id, version)), metadata);
        // The map grows, so that there is room.
        let _ = self.described.insert(id.into(), kind);
        self.last_kind = None;
    }

    /// Returns the index of the kind.
    fn kind(&mut self, of: Option<Identity>, metadata: &Metadata<'_>) -> usize {
        let kinds = &mut self.kinds;
        *self.places.entry(of).or_insert_with_key(|of| {
            let text = |text: Option<Str<'_>>| text.map(|text| text.to_string());
            kinds.push(EventKind {
                of: of.clone(),
                name: metadata.name.to_string(),
                events: 0,
                is_rundown: KnownProvider::of(metadata.provider) == Some(KnownProvider::Rundown)
                    || metadata.provider == "Microsoft-DotNETCore-EventPipe",
                message_template: text(metadata.message_template),
                description: text(metadata.description),
                attributes: pairs(metadata.attributes.iter()),
            });
            kinds.len().saturating_sub(1)
        })
    }

    /// Returns the index of the kind of an event. Events often have the kind of the event before.
    fn kind_of_event(&mut self, metadata_id: u32) -> usize {
        match self.last_kind {
            Some((id, kind)) if id == metadata_id => kind,
            _ => {
                let kind = self.described.get(metadata_id.into()).copied();
                let kind = kind.unwrap_or_else(|| self.kind(None, &Metadata::default()));
                self.last_kind = Some((metadata_id, kind));
                kind
            }
        }
    }

    /// Counts an event, and returns whether it is one of the process and of the part.
    fn event(&mut self, event: &Event<'_>, process: &ProcessArg) -> bool {
        self.now = event.timestamp;
        let kind = self.kind_of_event(event.metadata_id);
        let is_rundown = self.kinds.get(kind).is_some_and(|kind| kind.is_rundown);
        self.recording_end.event(&self.clock, self.now, is_rundown);
        if self.next_number == Some((event.capture_thread, event.sequence)) {
            // The next number shows no loss.
            self.loss.event(event);
        } else {
            self.count_lost(&Record::Event(*event), event.capture_thread, process);
        }
        self.next_number = Some((event.capture_thread, event.sequence.wrapping_add(1)));
        self.references.event(event);
        self.order.event(event);
        if !process.includes_id(|| self.processes.of_thread(event.thread)) {
            return false;
        }
        let Self { part, clock, processes, .. } = self;
        if !part.includes_at(clock, event.timestamp, || (processes.thread_id(event.thread), event.thread)) {
            return false;
        }
        self.processes.event(event);
        self.events = self.events.saturating_add(1);
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.events = kind.events.saturating_add(1);
        }
        let time = event.timestamp;
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
        true
    }

    /// Returns the lost events of the part, and of the process if there is one.
    fn losses(&self) -> Losses {
        let mut losses = Losses::default();
        (losses.lost, losses.at_start) = (self.lost.saturating_add(self.lost_at_start), self.lost_at_start);
        // The events that show the losses can be in the part, and those that follow not.
        losses.at_end = self.lost_at_end.min(self.lost);
        losses.threads = to_u64(self.lossy_threads.len());
        losses.times = self.loss_times;
        losses
    }

    /// Returns the threads that lost the most events.
    fn lossy_threads(&self) -> String {
        /// The number of threads that are named.
        const NAMED: usize = 5;
        let mut threads: Vec<_> = self.lossy_threads.values().collect();
        threads.sort_by_key(|thread| Reverse(thread.lost));
        let named = threads.iter().take(NAMED).map(|LossyThread { id, lost }| format!("{id}: {lost}"));
        let named = named.collect::<Vec<_>>().join(", ");
        match threads.len().saturating_sub(NAMED) {
            0 if threads.is_empty() => "(none)".to_owned(),
            0 => named,
            others => format!("{named}, and {others} others"),
        }
    }

    /// Returns the kinds that have events, the most frequent first.
    fn kinds(&self) -> Vec<&EventKind> {
        let mut kinds: Vec<&EventKind> = self.kinds.iter().filter(|kind| kind.events > 0).collect();
        kinds.sort_by(|a, b| b.events.cmp(&a.events).then_with(|| a.of.cmp(&b.of)));
        kinds
    }

    /// Returns when the trace was recorded, unless it has no header.
    fn span(&self, zone: &Zone) -> Option<SpanRow> {
        let span = RecordedSpan { start: self.clock.unix_start(), end: self.recording_end.nanoseconds() };
        self.version.map(|_| span.row(zone))
    }

    fn to_json<'s>(&'s self, end: End, digest: Option<&'s str>, span: Option<SpanRow>) -> StatsRow<'s> {
        let blocks = self.blocks.iter().map(|(name, count)| (name.clone(), Value::from(*count)));
        let (end, offset, reason) = ended(end);
        let losses = self.losses();
        StatsRow {
            version: self.number,
            span,
            blocks: blocks.collect(),
            events: self.events,
            by_event: self.kinds().into_iter().map(EventKind::to_json).collect(),
            processes: self.processes.to_json(),
            pairs: &self.pairs,
            metadata: self.metadata,
            stacks: self.stacks,
            sequence_points: self.sequence_points,
            unresolved: &self.references,
            out_of_order: &self.order,
            lost: losses.lost,
            lost_at_start: losses.at_start,
            lost_at_end: losses.at_end,
            first_timestamp: self.times.map(|(first, _)| first),
            last_timestamp: self.times.map(|(_, last)| last),
            end,
            offset,
            reason,
            digest,
        }
    }

    fn write(
        &self,
        end: End,
        digest: Option<String>,
        span: Option<SpanRow>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let blocks: Vec<String> =
            self.blocks.iter().map(|(name, count)| format!("{count} {}", printable(name))).collect();
        let version = self.number.map(|version| version.to_string());
        let times = self.times.map(|(first, last)| format!("{first} to {last}"));
        let losses = self.losses();
        let lost = match losses.lost {
            0 => "0".to_owned(),
            lost => {
                let (clock, buffer, end) = (Some(self.clock), EventBuffer::MayFill, Some(end));
                let report = LossReport { losses, clock, buffer, end };
                format!("{lost} {report}")
            }
        };
        let mut rows = vec![
            ("version", version.unwrap_or_else(|| "(unknown)".to_owned())),
            ("recorded", span.map_or_else(|| "(unknown)".to_owned(), |span| span.to_string())),
            ("events", self.events.to_string()),
            ("processes", self.processes.text()),
            ("lost", lost),
            ("lost at start", losses.at_start.to_string()),
            ("lost by thread", self.lossy_threads()),
            ("metadata", self.metadata.to_string()),
            ("stacks", self.stacks.to_string()),
            ("sequence points", self.sequence_points.to_string()),
            ("blocks", blocks.join(", ")),
            ("timestamps", times.unwrap_or_else(|| "(none)".to_owned())),
            ("end", source::unsupported(end).unwrap_or_else(|| end.to_string())),
        ];
        rows.extend(digest.map(|digest| ("digest", digest)));
        rows.extend(self.references.text().map(|text| ("unresolved", text)));
        rows.extend(self.order.text().map(|text| ("out of order", text)));
        if !self.pairs.is_empty() {
            rows.push(("properties", pairs_text(&self.pairs)));
        }
        write_fields(&rows, out)?;
        let kinds = self.kinds();
        if kinds.is_empty() {
            return Ok(());
        }
        let mut table = table_of_numbers(&["EVENTS", "PROVIDER", "ID", "VERSION", "NAME"], &[1, 4]);
        for kind in &kinds {
            let (provider, id, version) = match &kind.of {
                Some((provider, id, version)) => {
                    (printable_name(provider), id.to_string(), version.to_string())
                }
                None => ("(not described)".to_owned(), String::new(), String::new()),
            };
            table.add_row([kind.events.to_string(), provider, id, version, printable_name(&kind.name)]);
        }
        write_table(&table, out)?;
        let mut described = kinds.iter().filter_map(|kind| kind.meaning()).peekable();
        if described.peek().is_none() {
            return Ok(());
        }
        writeln!(out)?;
        described.try_for_each(|meaning| writeln!(out, "{meaning}"))
    }
}

/// Returns keys and values as an object.
fn pairs<'p>(pairs: impl Iterator<Item = (Str<'p>, Str<'p>)>) -> Map<String, Value> {
    pairs.map(|(key, value)| (key.to_string(), Value::String(value.to_string()))).collect()
}

/// Returns the name of a block. An unknown object has the name from the trace.
fn block_name(kind: BlockKind, version: Version, object: Option<&[u8]>) -> String {
    match (kind, object) {
        (BlockKind::Unknown(_), Some(name)) => String::from_utf8_lossy(name).into_owned(),
        (BlockKind::Unknown(number), None) => format!("kind{number}"),
        (kind, _) => kind.name(version).to_owned(),
    }
}

/// Returns the end as a word; and unless the trace is complete, its offset and the reason.
fn ended(end: End) -> (&'static str, Option<u64>, Option<String>) {
    match end {
        End::Complete => ("complete", None, None),
        End::Truncated { offset, reason } => ("truncated", Some(offset), Some(reason.to_string())),
        End::Corrupt { offset, reason } if source::unsupported(end).is_some() => {
            ("unsupported_version", Some(offset), Some(reason.to_string()))
        }
        End::Corrupt { offset, reason } => ("corrupt", Some(offset), Some(reason.to_string())),
    }
}
