//! `ps`: every runtime there is.
use std::sync::mpsc;
use std::thread;

use comfy_table::{Table, presets};
use ipc_std::discover::{self, Found};
use ipc_std::{Client, ProcessInfo};
use serde_json::{Value, json};

use crate::failure::{Failure, Kind};
use crate::output::{json_to_stdout, printable, to_stdout};
use crate::wire_log::WireLog;
use crate::{Globals, info, wire_log};

/// List the runtimes that can be asked
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A runtime is found by its socket in TMPDIR, or in /tmp. All are asked at the same
time. STATUS is `ok`, or why there is no more to tell: `timeout`, `refused` (.NET
Core 3 has no command for it), `protocol`, `permission`, `gone`.

Examples:
  dotnet-ipc ps
  dotnet-ipc ps --timeout 1s
  dotnet-ipc ps --json | jq -r 'select(.status == \"ok\") | .process_id'")]
pub(crate) struct Args {
    #[command(flatten)]
    wire_log: wire_log::LogFile,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let wire_log = args.wire_log.open()?;
    let found = discover::list();
    if found.is_empty() && !globals.output.json {
        globals.output.note(
            "no .NET runtime is found; one that has another TMPDIR is asked by its process id, one in a container by \
             --socket PATH",
        );
    }
    let mut rows = Vec::new();
    // Local trouble says nothing about a runtime, but is not to hide the others.
    let mut local = Ok(());
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        for found in &found {
            let (tell, wire_log) = (tell.clone(), &wire_log);
            let asked = thread::Builder::new().spawn_scoped(scope, move || {
                // There is somebody to tell as long as there are threads.
                let _ = tell.send((found, ask(found, globals, wire_log)));
            });
            if let Err(e) = asked {
                local = Err(Failure::io("cannot start a thread", &e));
            }
        }
        drop(tell);
        for (found, answer) in told {
            let row = match answer.map_err(|failure| status(failure.kind()).ok_or(failure)) {
                Ok(info) => Row { found, answer: Ok(info) },
                Err(Ok(status)) => Row { found, answer: Err(status) },
                Err(Err(failure)) => {
                    local = Err(failure);
                    continue;
                }
            };
            // Each as it comes, so that a slow one holds up nobody who reads; a table has to wait for its widths.
            if globals.output.json {
                json_to_stdout(&row.to_json())?;
            } else {
                rows.push(row);
            }
        }
        Ok::<(), Failure>(())
    })?;
    if !rows.is_empty() {
        rows.sort_by_key(|row| row.found.process_id);
        let table = table(&rows);
        to_stdout(|out| table.lines().try_for_each(|line| writeln!(out, "{}", line.trim_end())))?;
    }
    local.and_then(|()| wire_log.check())
}

fn ask(found: &Found, globals: &Globals, wire_log: &WireLog) -> Result<ProcessInfo, Failure> {
    let client = Client::at(&found.path).with_timeouts(globals.limits.timeouts());
    Ok(client.with_observer(wire_log.observer()).process_info()?)
}

/// How a failure of this kind shows; `None` if it is none of the runtime's.
const fn status(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Timeout => Some("timeout"),
        Kind::Refused | Kind::Unsupported => Some("refused"),
        Kind::Protocol => Some("protocol"),
        Kind::Permission => Some("permission"),
        Kind::NotFound | Kind::NoListener | Kind::Gone => Some("gone"),
        Kind::Io | Kind::Other | Kind::Usage | Kind::Danger | Kind::Different => None,
    }
}

struct Row<'a> {
    found: &'a Found,
    /// Or the status that says why there is none.
    answer: Result<ProcessInfo, &'static str>,
}

impl Row<'_> {
    fn status(&self) -> &'static str {
        self.answer.as_ref().map_or_else(|status| *status, |_| "ok")
    }

    fn to_json(&self) -> Value {
        let mut row = json!({
            "process_id": self.found.process_id,
            "socket": self.found.path.to_string_lossy(),
            "status": self.status(),
        });
        if let (Value::Object(row), Ok(info)) = (&mut row, &self.answer) {
            // Where the process has another id in its own namespace, the one that others see it by stays.
            info::fields(info).into_iter().for_each(|(key, value)| {
                row.entry(key).or_insert(value);
            });
        }
        row
    }
}

fn table(rows: &[Row<'_>]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header([
        "PID",
        "STATUS",
        "VERSION",
        "ARCH",
        "SOCKET",
        "COMMAND LINE",
    ]);
    for row in rows {
        let of = |text: fn(&ProcessInfo) -> String| row.answer.as_ref().map(text).unwrap_or_default();
        table.add_row([
            row.found.process_id.to_string(),
            row.status().to_owned(),
            of(|info| printable(&info.clr_product_version.to_string()).into_owned()),
            of(|info| printable(&info.arch.to_string()).into_owned()),
            printable(&row.found.path.to_string_lossy()).into_owned(),
            of(|info| printable(&info.command_line.to_string()).into_owned()),
        ]);
    }
    table
}
