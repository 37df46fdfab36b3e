//! `ps`: every runtime there is, and what only looks like one.
use std::path::{Path, PathBuf};
use std::time::Instant;

use comfy_table::{Table, presets};
use ipc_std::discover::{self, Reason, Search, Signs, Why};
use ipc_std::{Error, ProcessInfo, Timeouts};
use serde_json::{Value, json};

use crate::failure::{Failure, Kind};
use crate::output::{json_to_stdout, printable, to_stdout};
use crate::wire_log::WireLog;
use crate::{Globals, info, reasons, runtime, wire_log};

/// List the runtimes that can be asked
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A runtime is found by its socket: in TMPDIR or /tmp, and on Linux where its own TMPDIR
is, in whatever container. All are asked at the same time. STATUS is `ok`, or why there
is no more to tell: `timeout`, `refused` (.NET Core 3 has no command for it),
`protocol`, `permission`, `gone`; with --why also `not_found`, `no_listener`. If TMPDIR
cannot be looked into, --why says so too: in JSON, with null for a `process_id`.

Examples:
  dotnet-ipc ps
  dotnet-ipc ps --why
  dotnet-ipc ps --timeout 1s
  dotnet-ipc ps --json | jq -r 'select(.status == \"ok\") | .process_id'")]
pub(crate) struct Args {
    /// Show what cannot be asked too, and why: sockets left behind, processes with a runtime and no socket
    #[arg(long)]
    why: bool,
    #[command(flatten)]
    wire_log: wire_log::LogFile,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let wire_log = args.wire_log.open()?;
    let timeouts = globals.limits.timeouts();
    let began = Instant::now();
    let (found, in_the_way) = discover::search_all(&timeouts);
    let in_the_way = if args.why { in_the_way } else { Vec::new() };
    let timeouts = runtime::left(timeouts, began);
    let mut shown = !in_the_way.is_empty();
    if globals.output.json {
        in_the_way.iter().try_for_each(|reason| json_to_stdout(&row_of_none(reason)))?;
    }
    let mut rows = Vec::new();
    // Local trouble says nothing about a runtime, but is not to hide the others.
    let mut local = Ok(());
    let ask = |found| Row::ask(found, &timeouts, &wire_log);
    discover::ask_all(found, ask, |row| match row {
        Ok(row) if args.why || row.is_there() => {
            shown = true;
            // Each as it comes, so that a slow one holds up nobody who reads; a table has to wait for its widths.
            if !globals.output.json {
                rows.push(row);
            } else if let Err(failure) = json_to_stdout(&row.to_json(args.why)) {
                local = Err(failure);
            }
        }
        Ok(_) => {}
        Err(failure) => local = Err(failure),
    });
    rows.sort_by_key(|row| row.process_id);
    if rows.iter().any(Row::is_there) {
        let table = table(rows.iter().filter(|row| row.is_there()));
        to_stdout(|out| table.lines().try_for_each(|line| writeln!(out, "{}", line.trim_end())))?;
    }
    if args.why && !globals.output.json {
        let whys = rows.iter().filter_map(|row| row.answer.as_ref().err()?.1.as_ref()).map(Why::to_string);
        let mut lines = in_the_way.iter().map(Reason::to_string).chain(whys);
        to_stdout(|out| lines.try_for_each(|line| writeln!(out, "{}", printable(&line))))?;
    }
    if !shown && !globals.output.json {
        globals.output.note(if args.why {
            "no .NET runtime is found, and nothing that is in the way of any"
        } else {
            "no .NET runtime is found; `dotnet-ipc ps --why` shows what is in the way of any"
        });
    }
    local.and_then(|()| wire_log.check())
}

/// What is in the way of runtimes that are not known.
fn row_of_none(reason: &Reason) -> Value {
    json!({
        "process_id": null, "socket": null, "status": NOT_FOUND,
        "why": reason.to_string(), "reasons": [reasons::to_json(reason)],
    })
}

const NOT_FOUND: &str = "not_found";
const NO_LISTENER: &str = "no_listener";

/// How a failure of this kind shows; `None` if it is none of the runtime's.
const fn status(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Timeout => Some("timeout"),
        Kind::Refused | Kind::Unsupported => Some("refused"),
        Kind::Protocol => Some("protocol"),
        Kind::Permission => Some("permission"),
        Kind::Gone => Some("gone"),
        Kind::NotFound => Some(NOT_FOUND),
        Kind::NoListener => Some(NO_LISTENER),
        Kind::Io | Kind::Other | Kind::Usage | Kind::Danger | Kind::Different => None,
    }
}

struct Row {
    process_id: u32,
    socket: Option<PathBuf>,
    /// Or the status that says why there is none, and the reasons.
    answer: Result<ProcessInfo, (&'static str, Option<Why>)>,
}

impl Row {
    fn ask(mut search: Search, timeouts: &Timeouts, wire_log: &WireLog) -> Result<Self, Failure> {
        let (process_id, socket) = (search.process_id(), search.path().map(Path::to_owned));
        let row = |socket, answer| Ok(Self { process_id, socket, answer });
        match search.ask(timeouts, wire_log.observer().as_ref()) {
            Ok(found) => row(Some(found.path), found.info.ok_or(("refused", None))),
            Err(why) => match status(why.kind().into()) {
                Some(status) => row(socket, Err((status, Some(why)))),
                None => Err(Error::from(why).into()),
            },
        }
    }

    fn status(&self) -> &'static str {
        self.answer.as_ref().map_or_else(|(status, _)| *status, |_| "ok")
    }

    /// Whether somebody listens there, be it for others only.
    fn is_there(&self) -> bool {
        // Where it is unknown what is there, it may still be seen that the process has no runtime.
        let none = |reason: &Reason| matches!(reason, Reason::NoSocket { signs: Signs::Absent, .. });
        let whys = self.answer.as_ref().err().and_then(|(_, why)| why.as_ref());
        !matches!(self.status(), NOT_FOUND | NO_LISTENER)
            && !whys.is_some_and(|why| why.reasons().iter().any(none))
    }

    fn to_json(&self, with_why: bool) -> Value {
        let mut row = json!({
            "process_id": self.process_id,
            "socket": self.socket.as_ref().map(|path| path.to_string_lossy()),
            "status": self.status(),
        });
        let Value::Object(fields) = &mut row else { return row };
        if let Ok(info) = &self.answer {
            // Where the process has another id in its own namespace, the one that others see it by stays.
            info::fields(info).into_iter().for_each(|(key, value)| {
                fields.entry(key).or_insert(value);
            });
        }
        if with_why {
            let why = self.answer.as_ref().err().and_then(|(_, why)| why.as_ref());
            let all = why.map(|why| why.reasons().iter().map(reasons::to_json).collect::<Vec<_>>());
            fields.insert("why".to_owned(), why.map(Why::to_string).into());
            fields.insert("reasons".to_owned(), all.unwrap_or_default().into());
        }
        row
    }
}

fn table<'r>(rows: impl Iterator<Item = &'r Row>) -> Table {
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
        let of = |text: fn(&ProcessInfo) -> String| row.answer.as_ref().map_or_else(|_| String::new(), text);
        table.add_row([
            row.process_id.to_string(),
            row.status().to_owned(),
            of(|info| printable(&info.clr_product_version.to_string()).into_owned()),
            of(|info| printable(&info.arch.to_string()).into_owned()),
            row.socket
                .as_ref()
                .map(|path| printable(&path.to_string_lossy()).into_owned())
                .unwrap_or_default(),
            of(|info| printable(&info.command_line.to_string()).into_owned()),
        ]);
    }
    table
}
