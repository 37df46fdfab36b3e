//! `stats`: counts the contents of a trace.
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;

use ipc_std::RecordReader;
use nettrace::{
    BlockKind, Corruption, Counter, End, Event, LossCounter, Metadata, Record, Slot, Str, Version, clr,
};
use serde_json::{Map, Value, json};

use crate::events::digest::EventDigest;
use crate::input::source::{self, Source};
use crate::output::failure::Failure;
use crate::output::globals::Globals;
use crate::output::printable::{printable, printable_name};
use crate::output::stdout::{json_to_stdout, to_stdout};
use crate::output::tables::{table_of_numbers, write_fields, write_table};

/// Count the events, blocks, stacks and losses of a trace, and show how it ends
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The valid parts of a truncated or corrupt trace are counted too; the exit
status is then 6. Timestamps are ticks of the trace's clock. The versions of
events are those of their descriptions, without the labels that single events
have in version 6. Events that were lost before the first event of their thread
are \"lost at start\"; \"lost\" does not include them, as in Microsoft's tools. The
digest is SHA-256 over all events in the order of the file.

Examples:
  dotnet-ipc stats app.nettrace
  dotnet-ipc stats app.nettrace --json | jq '.by_event[:5]'
  xz -dc app.nettrace.xz | dotnet-ipc stats -")]
pub(crate) struct Args {
    /// The trace; `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let mut steps = RecordReader::new(Source::open(&args.file)?.with_progress());
    let mut stats = Stats::default();
    let mut digest = EventDigest::new()?;
    let end = loop {
        match steps.next_record() {
            Record::More { .. } => {
                if let Err(e) = steps.read_more() {
                    return Err(steps.get_ref().failed(&e));
                }
            }
            Record::End(end) => break end,
            Record::Block(block) => {
                let name = block_name(block.kind, steps.version(), steps.object_name());
                stats.block(name);
            }
            Record::Event(event) => {
                digest.event(&event);
                stats.event(&event);
            }
            step => stats.step(&step),
        }
    };
    steps.get_mut().hide_progress();
    stats.number = match end {
        End::Corrupt { reason: Corruption::Version(version), .. } => Some(version),
        _ => (steps.offset() > 0).then(|| steps.version().number()),
    };
    let digest = digest.finish()?;
    if globals.json {
        json_to_stdout(&stats.to_json(end, &digest))?;
    } else {
        to_stdout(|out| stats.write(end, &digest, out))?;
    }
    source::check(end, steps.get_ref().name())
}

#[derive(Default)]
struct Stats {
    /// The version that the trace states, by which metadata is decoded and blocks have their names.
    version: Option<Version>,
    /// The version to report: a trace can also end because its version is not supported.
    number: Option<u32>,
    pointer_size: u32,
    /// Names and counts in the order of their first blocks, and their indices by name.
    blocks: Vec<(String, u64)>,
    block_places: HashMap<String, usize>,
    events: u64,
    /// Kinds of events in the order of their first descriptions; their indices by identity, and by metadata ID.
    kinds: Vec<Kind>,
    places: HashMap<Option<Identity>, usize>,
    described: HashMap<u32, usize>,
    /// Whether the last sequence point invalidates the metadata IDs.
    flush: bool,
    metadata: u64,
    stacks: u64,
    sequence_points: u64,
    loss: LossCounter<Vec<Slot<Counter>>>,
    /// The smallest and the largest timestamp.
    times: Option<(u64, u64)>,
}

/// Provider, ID and version.
type Identity = (String, u32, u32);

/// Events of one identity.
struct Kind {
    /// `None` for events without a description.
    of: Option<Identity>,
    name: String,
    events: u64,
}

impl Stats {
    fn step(&mut self, step: &Record<'_>) {
        self.loss.record(step);
        match step {
            Record::Trace(trace) => {
                (self.version, self.pointer_size) = (Some(trace.version), trace.pointer_size)
            }
            Record::Metadata(record) => {
                self.metadata = self.metadata.saturating_add(1);
                let version = self.version.unwrap_or(Version::V4);
                if let Ok(metadata) = Metadata::decode(version, record.payload) {
                    self.describe(clr::describe(metadata, self.pointer_size));
                }
            }
            Record::Stack(_) => self.stacks = self.stacks.saturating_add(1),
            Record::SequencePoint(point) => {
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
            // `clear` takes time in proportion to the capacity: after one large map, each later flush would be slow.
            self.described = HashMap::new();
        }
    }

    fn describe(&mut self, metadata: Metadata<'_>) {
        let Metadata { id, provider, event_id, version, name, .. } = metadata;
        let kind = self.kind(Some((provider.to_string(), event_id, version)), name);
        self.described.insert(id, kind);
    }

    /// Returns the index of the kind.
    fn kind(&mut self, of: Option<Identity>, name: Str<'_>) -> usize {
        let kinds = &mut self.kinds;
        *self.places.entry(of).or_insert_with_key(|of| {
            kinds.push(Kind { of: of.clone(), name: name.to_string(), events: 0 });
            kinds.len().saturating_sub(1)
        })
    }

    fn event(&mut self, event: &Event<'_>) {
        self.events = self.events.saturating_add(1);
        let kind = self.described.get(&event.metadata_id).copied();
        let kind = kind.unwrap_or_else(|| self.kind(None, Str::EMPTY));
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.events = kind.events.saturating_add(1);
        }
        let time = event.timestamp;
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
        self.loss.event(event);
    }

    /// Returns the kinds that have events, the most frequent first.
    fn kinds(&self) -> Vec<&Kind> {
        let mut kinds: Vec<&Kind> = self.kinds.iter().filter(|kind| kind.events > 0).collect();
        kinds.sort_by(|a, b| b.events.cmp(&a.events).then_with(|| a.of.cmp(&b.of)));
        kinds
    }

    fn to_json(&self, end: End, digest: &str) -> Value {
        let blocks: Map<String, Value> =
            self.blocks.iter().map(|(name, count)| (name.clone(), json!(count))).collect();
        let by_event: Vec<Value> = self.kinds().into_iter().map(Kind::to_json).collect();
        let (name, offset, reason) = ended(end);
        json!({
            "version": self.number,
            "blocks": blocks,
            "events": self.events,
            "by_event": by_event,
            "metadata": self.metadata,
            "stacks": self.stacks,
            "sequence_points": self.sequence_points,
            "lost": self.loss.lost(),
            "lost_at_start": self.loss.lost_at_start(),
            "first_timestamp": self.times.map(|(first, _)| first),
            "last_timestamp": self.times.map(|(_, last)| last),
            "end": name,
            "offset": offset,
            "reason": reason,
            "digest": digest,
        })
    }

    fn write(&self, end: End, digest: &str, out: &mut dyn Write) -> io::Result<()> {
        let blocks: Vec<String> =
            self.blocks.iter().map(|(name, count)| format!("{count} {}", printable(name))).collect();
        let version = self.number.map(|version| version.to_string());
        let times = self.times.map(|(first, last)| format!("{first} to {last}"));
        let rows = [
            ("version", version.unwrap_or_else(|| "(unknown)".to_owned())),
            ("events", self.events.to_string()),
            ("lost", self.loss.lost().to_string()),
            ("lost at start", self.loss.lost_at_start().to_string()),
            ("metadata", self.metadata.to_string()),
            ("stacks", self.stacks.to_string()),
            ("sequence points", self.sequence_points.to_string()),
            ("blocks", blocks.join(", ")),
            ("timestamps", times.unwrap_or_else(|| "(none)".to_owned())),
            ("end", end.to_string()),
            ("digest", digest.to_owned()),
        ];
        write_fields(&rows, out)?;
        let kinds = self.kinds();
        if kinds.is_empty() {
            return Ok(());
        }
        let mut table = table_of_numbers(&["EVENTS", "PROVIDER", "ID", "VERSION", "NAME"], &[1, 4]);
        for kind in kinds {
            let (provider, id, version) = match &kind.of {
                Some((provider, id, version)) => {
                    (printable_name(provider), id.to_string(), version.to_string())
                }
                None => ("(not described)".to_owned(), String::new(), String::new()),
            };
            table.add_row([kind.events.to_string(), provider, id, version, printable_name(&kind.name)]);
        }
        write_table(&table, out)
    }
}

impl Kind {
    fn to_json(&self) -> Value {
        let (provider, id, version) = match &self.of {
            Some((provider, id, version)) => (Some(provider), Some(id), Some(version)),
            None => (None, None, None),
        };
        json!({ "provider": provider, "id": id, "version": version, "count": self.events })
    }
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
        End::Corrupt { offset, reason } => ("corrupt", Some(offset), Some(reason.to_string())),
    }
}
