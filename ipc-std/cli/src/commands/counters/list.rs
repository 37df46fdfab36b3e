//! `counters list`: the counters and instruments that a process publishes.
use core::time::Duration;
use std::collections::BTreeMap;
use std::time::Instant;

use comfy_table::Table;
use ipc_std::{Client, Timeouts};
use nettrace_analysis::counters::{CounterConfig, OwnedSample, Selection, System};
use serde::Serialize;

use crate::counters::event_sources;
use crate::counters::feed::{Feed, Next};
use crate::counters::problems::Problems;
use crate::counters::report::{OwnedInstrument, Process, Report};
use crate::output::stdout::to_stdout;
use crate::output::tables::{self, write_table};
use crate::run::signals;
use crate::run::{Failure, Globals};
use crate::text::columns::cut_end;
use crate::text::printable::{json_line, printable_name};

/// Providers of event counters in .NET and its libraries. A process cannot list its providers, so these names are
/// tried, and those in the assemblies of the program.
const WELL_KNOWN: [&str; 10] = [
    "System.Runtime",
    "Microsoft.AspNetCore.Hosting",
    "Microsoft-AspNetCore-Server-Kestrel",
    "Microsoft.AspNetCore.Http.Connections",
    "Microsoft.EntityFrameworkCore",
    "Microsoft.Data.SqlClient.EventSource",
    "System.Net.Http",
    "System.Net.NameResolution",
    "System.Net.Security",
    "System.Net.Sockets",
];

/// The counters and instruments of a list.
#[derive(Default)]
struct Listing {
    /// The rows by provider and name.
    rows: BTreeMap<(String, String), Row>,
    /// The approximate memory of all rows in bytes.
    size: usize,
    /// Whether the limit has left out a row.
    is_limited: bool,
}

/// A counter or an instrument.
struct Row {
    system: &'static str,
    kind: String,
    unit: String,
    description: String,
}

/// A row as JSON.
#[derive(Serialize)]
struct ListedCounter<'r> {
    system: &'static str,
    provider: &'r str,
    name: &'r str,
    kind: &'r str,
    unit: &'r str,
    description: &'r str,
}

/// How long the first samples of event counters may take after their interval.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Lists the counters of the selections, or of the well-known providers and all meters if none is selected.
pub(super) fn run(
    config: impl Fn(Vec<Selection>) -> CounterConfig,
    connect: impl Fn() -> Result<(Process, Client), Failure>,
    timeouts: Timeouts,
    selections: Vec<Selection>,
    globals: &Globals,
) -> Result<(), Failure> {
    let all = selections.is_empty();
    let meters = if all { "Meters\\*".parse().into_iter().collect() } else { selections.clone() };
    let (mut listing, mut problems) = (Listing::default(), Problems::default());
    let mut process_id = None;
    for lists_instruments in [true, false] {
        let config = if lists_instruments {
            CounterConfig { lists_instruments, ..config(meters.clone()) }
        } else {
            let mut event_counters = selections.clone();
            if all {
                // The first session has stated the id of the process.
                let own = process_id.map(event_sources::names).unwrap_or_default();
                let names = WELL_KNOWN.iter().copied().chain(own.iter().map(String::as_str));
                event_counters.extend(names.flat_map(str::parse::<Selection>));
            }
            event_counters.iter_mut().for_each(|one| one.system = Some(System::EventCounter));
            CounterConfig { interval: Duration::from_secs(1), ..config(event_counters) }
        };
        let (is_meters, interval) = (config.lists_instruments, config.interval);
        let mut feed = Feed::new(config, timeouts, globals)?;
        let (process, client) = connect()?;
        process_id = process_id.or(process.id);
        feed.add(process, client)?;
        let mut end = Instant::now().checked_add(interval.saturating_add(PATIENCE));
        loop {
            let next = feed.next(end)?;
            if let Next::Report(process, _) = &next {
                process_id = process_id.or(process.id);
            }
            match next {
                Next::Report(_, Report::Published(instrument)) => listing.add_instrument(*instrument),
                Next::Report(_, Report::Sample(sample)) => listing.add_counter(*sample),
                Next::Report(_, Report::EnumerationComplete) if is_meters => break,
                Next::Report(process, Report::Problem(problem)) => {
                    if problems.is_new(&process, &problem) {
                        globals.note(&problem);
                    }
                }
                Next::Report(_, Report::Ended(ended)) => ended?,
                Next::Report(..) => {}
                // Without any row, the runtime may be suspended. The end of the session shows whether it is.
                Next::Deadline if listing.rows.is_empty() => {
                    end = None;
                    feed.stop();
                }
                Next::Deadline | Next::Finished => break,
            }
        }
        if signals::has_arrived() {
            break;
        }
    }
    if listing.is_limited {
        globals.note("further counters are left out: the names and descriptions of the list have 8 MiB");
    }
    let rows = listing.rows;
    if globals.json {
        return to_stdout(|out| {
            rows.iter().try_for_each(|((provider, name), row)| {
                let Row { system, kind, unit, description } = row;
                let line = ListedCounter { system, provider, name, kind, unit, description };
                writeln!(out, "{}", json_line(&line))
            })
        });
    }
    if rows.is_empty() {
        globals
            .note("the process publishes no counters that are known by name; name a provider to ask for it");
        return Ok(());
    }
    to_stdout(|out| write_table(&table_of(&rows), out))
}

fn table_of(rows: &BTreeMap<(String, String), Row>) -> Table {
    let mut table = tables::table(&["PROVIDER", "NAME", "KIND", "UNIT", "DESCRIPTION"]);
    for ((provider, name), row) in rows {
        let cells = [provider, name, &row.kind, &row.unit, &row.description];
        // Each row has the width of the widest cells.
        let cells = cells.into_iter().zip(MAX_WIDTHS);
        table.add_row(cells.map(|(cell, width)| cut_end(&printable_name(cell), width)));
    }
    table
}

/// The maximum widths of the columns of the table.
const MAX_WIDTHS: [usize; 5] = [128, 128, 32, 32, 256];

impl Listing {
    /// The maximum memory of all rows in bytes, and the memory of a row in addition to its texts.
    const LIMIT: usize = 8 << 20;
    const ENTRY: usize = 256;

    fn add_instrument(&mut self, instrument: OwnedInstrument) {
        let OwnedInstrument { meter, name, kind, unit, description, .. } = instrument;
        self.insert((meter, name), Row { system: "meter", kind, unit, description });
    }

    fn add_counter(&mut self, sample: OwnedSample) {
        let OwnedSample { system, provider, name, unit, display_name, measurement, .. } = sample;
        let key = (provider, name);
        if !self.rows.contains_key(&key) {
            let (system, kind) = (system.name(), measurement.kind().to_owned());
            self.insert(key, Row { system, kind, unit, description: display_name });
        }
    }

    fn insert(&mut self, key: (String, String), row: Row) {
        let size_of = |(provider, name): &(String, String), row: &Row| {
            let texts = [provider, name, &row.kind, &row.unit, &row.description];
            texts.into_iter().fold(Self::ENTRY, |size, text| size.saturating_add(text.len()))
        };
        let before = self.rows.get(&key).map_or(0, |row| size_of(&key, row));
        let size = self.size.saturating_sub(before).saturating_add(size_of(&key, &row));
        if size > Self::LIMIT {
            self.is_limited = true;
            return;
        }
        self.size = size;
        self.rows.insert(key, row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instrument(name: String, text: &str) -> OwnedInstrument {
        let [meter, kind, unit, description] = [text; 4].map(str::to_owned);
        OwnedInstrument { meter, name, kind, unit, description, has_long_details: false }
    }

    /// The memory and the width of a list do not grow with the texts of a hostile program.
    #[test]
    fn a_list_has_a_limit() {
        for text in ["", "x", &"\u{1b}".repeat(300), &"长".repeat(20_000)] {
            let mut listing = Listing::default();
            for n in 0..35_000 {
                if listing.is_limited {
                    break;
                }
                listing.add_instrument(instrument(format!("{n}{text}"), text));
                listing.add_instrument(instrument(format!("{n}{text}"), ""));
                listing.add_instrument(instrument(n.to_string(), ""));
            }
            let texts = listing.rows.iter().map(|((provider, name), row)| {
                let texts = [provider, name, &row.kind, &row.unit, &row.description];
                texts.iter().map(|text| text.len()).sum::<usize>()
            });
            assert!(listing.is_limited && texts.sum::<usize>() < listing.size, "{text}");
            assert!(
                (Listing::LIMIT / 2..=Listing::LIMIT).contains(&listing.size),
                "{text}: {}",
                listing.size
            );
        }
        let mut listing = Listing::default();
        (0..100).for_each(|n| listing.add_instrument(instrument(n.to_string(), &"\u{1b}x".repeat(2_000))));
        let longest = table_of(&listing.rows).lines().map(|line| line.chars().count()).max();
        assert!(longest.is_some_and(|longest| longest < 600), "{longest:?}");
    }
}
