//! `counters list`: the counters and instruments that a process publishes.
use core::time::Duration;
use std::collections::BTreeMap;
use std::time::Instant;

use ipc_std::{Client, Timeouts};
use nettrace_analysis::counters::{CounterConfig, OwnedSample, Selection, System};
use serde_json::json;

use crate::counters::event_sources;
use crate::counters::feed::{Feed, Next, OwnedInstrument, Process, Report};
use crate::output::failure::Failure;
use crate::output::globals::Globals;
use crate::output::printable::{json_line, printable_name};
use crate::output::stdout::to_stdout;
use crate::output::tables::write_table;

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

/// A counter or an instrument.
struct Row {
    system: &'static str,
    kind: String,
    unit: String,
    description: String,
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
    let mut rows: BTreeMap<(String, String), Row> = BTreeMap::new();
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
                Next::Report(_, Report::Published(instrument)) => add_instrument(&mut rows, *instrument),
                Next::Report(_, Report::Sample(sample)) => add_counter(&mut rows, *sample),
                Next::Report(_, Report::EnumerationComplete) if is_meters => break,
                Next::Report(_, Report::Problem(problem)) => globals.note(&problem),
                Next::Report(_, Report::Ended(ended)) => ended?,
                Next::Report(..) => {}
                // Without any row, the runtime may be suspended. The end of the session shows whether it is.
                Next::Deadline if rows.is_empty() => {
                    end = None;
                    feed.stop();
                }
                Next::Deadline | Next::Finished => break,
            }
        }
    }
    if globals.json {
        return to_stdout(|out| {
            rows.iter().try_for_each(|((provider, name), row)| {
                let Row { system, kind, unit, description } = row;
                let line = json!({
                    "system": system, "provider": provider, "name": name, "kind": kind, "unit": unit,
                    "description": description,
                });
                writeln!(out, "{}", json_line(&line))
            })
        });
    }
    if rows.is_empty() {
        globals
            .note("the process publishes no counters that are known by name; name a provider to ask for it");
        return Ok(());
    }
    let mut table = crate::output::tables::table(&["PROVIDER", "NAME", "KIND", "UNIT", "DESCRIPTION"]);
    for ((provider, name), row) in &rows {
        let cells = [provider, name, &row.kind, &row.unit, &row.description];
        table.add_row(cells.map(|cell| printable_name(cell)));
    }
    to_stdout(|out| write_table(&table, out))
}

/// The rows that a list has at most.
const MAX_ROWS: usize = 100_000;

fn add_instrument(rows: &mut BTreeMap<(String, String), Row>, instrument: OwnedInstrument) {
    let OwnedInstrument { meter, name, kind, unit, description, .. } = instrument;
    if rows.len() < MAX_ROWS {
        rows.insert((meter, name), Row { system: "meter", kind, unit, description });
    }
}

fn add_counter(rows: &mut BTreeMap<(String, String), Row>, sample: OwnedSample) {
    let OwnedSample { system, provider, name, unit, display_name, measurement, .. } = sample;
    if rows.len() < MAX_ROWS {
        let row = Row {
            system: system.name(),
            kind: measurement.kind().to_owned(),
            unit,
            description: display_name,
        };
        rows.entry((provider, name)).or_insert(row);
    }
}
