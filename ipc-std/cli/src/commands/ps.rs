//! `ps`: lists runtimes.
use core::time::Duration;
use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use comfy_table::{ColumnConstraint, Width, presets};
use ipc_proto::plan::Explanation;
use ipc_std::discover::{self, Found, Reason, ScanConfig, Search, SearchError, Signs};
use ipc_std::{Error, ProcessInfo};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::output::stdout::{json_to_stdout, show_next, to_stdout};
use crate::process::connection_args::ConnectionArgs;
use crate::process::process_fields::{ProcessFields, SystemCommandLine};
use crate::process::process_name;
use crate::process::reasons::ReasonRow;
use crate::process::system_process;
use crate::run::{Failure, Globals, Kind};
use crate::text::columns::{cut_end, terminal_width};
use crate::text::printable::printable;

/// List running .NET processes
#[derive(Debug, clap::Args)]
#[command(mut_arg("timeout", |arg| arg.help(format!("Wait DURATION for all runtimes together [default: {}s]", TIMEOUT.as_secs()))))]
#[command(after_help = include_str!("ps.txt"))]
pub(crate) struct Args {
    /// Also list stale sockets and processes without a socket, and explain each
    #[arg(long)]
    why: bool,
    /// Show all columns and whole command lines
    #[arg(long, short)]
    wide: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// The time for all runtimes together. It is short, because a person waits for the list.
const TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let wire_log = args.connection.wire_log.open()?;
    let config =
        ScanConfig { timeout: args.connection.timeout.given().unwrap_or(TIMEOUT), ..ScanConfig::default() };
    let mut scan = discover::scan(&config);
    let obstacles = if args.why { core::mem::take(&mut scan.obstacles) } else { Vec::new() };
    if globals.json {
        obstacles.iter().try_for_each(|reason| json_to_stdout(&JsonRow::of_obstacle(reason)))?;
    }
    let mut table = ProcessTable::new(args.wide);
    let live = !globals.json && io::stdout().is_terminal();
    if live {
        table.reserve(&scan.searches);
    }
    let mut rows = Vec::new();
    // An I/O error of the tool itself is kept until all runtimes are listed.
    let mut local = Ok(());
    discover::identify_all(scan, wire_log.observer().as_ref(), |search, found| {
        match Row::new(&search, found) {
            Ok(row) if args.why || row.is_present() => {
                // JSON and rows on a terminal are written as they arrive, so that a slow runtime delays no reader.
                let written = if globals.json {
                    json_to_stdout(&row.to_json(args.why))
                } else if live && row.is_present() {
                    table.write(&[&row])
                } else {
                    Ok(())
                };
                local = core::mem::replace(&mut local, Ok(())).and(written);
                rows.push(row);
            }
            Ok(_) => {}
            Err(failure) => local = Err(failure),
        }
    });
    rows.sort_by_key(|row| row.process_id);
    if !globals.json {
        let present: Vec<_> = rows.iter().filter(|row| row.is_present()).collect();
        if !live && !present.is_empty() {
            table.write(&present)?;
        }
        let unreported: Vec<_> = present.iter().filter_map(|row| row.unreported()).collect();
        to_stdout(|out| unreported.iter().try_for_each(|line| writeln!(out, "{line}")))?;
        if args.why {
            let errors = rows
                .iter()
                .filter_map(|row| row.answer.as_ref().err()?.1.as_ref())
                .map(SearchError::to_string);
            let mut lines = obstacles.iter().map(Reason::to_string).chain(errors);
            to_stdout(|out| lines.try_for_each(|line| writeln!(out, "{}", printable(&line))))?;
        }
        if let Some(first) = present.iter().find(|row| row.answer.is_ok()) {
            show_next(&format!("dotnet-ipc diagnose {}", first.process_id), globals)?;
        }
        if rows.is_empty() && obstacles.is_empty() {
            globals.note(if args.why {
                "no .NET process found, and no obstacle to finding one"
            } else {
                "no .NET process found; `dotnet-ipc ps --why` shows obstacles to finding one"
            });
        }
    }
    local.and_then(|()| wire_log.check())
}

/// A row as JSON.
#[derive(Default, Serialize)]
struct JsonRow<'r> {
    process_id: Option<u32>,
    socket: Option<Cow<'r, str>>,
    status: &'static str,
    #[serde(flatten)]
    info: Option<ProcessFields>,
    #[serde(flatten)]
    command_line: Option<SystemCommandLine<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasons: Option<Vec<ReasonRow<'r>>>,
}

impl<'r> JsonRow<'r> {
    /// Returns the row for an obstacle to finding unknown runtimes.
    fn of_obstacle(reason: &'r Reason) -> Self {
        let (why, reasons) = (Some(Some(reason.to_string())), Some(vec![ReasonRow::new(reason)]));
        Self { status: NOT_FOUND, why, reasons, ..Self::default() }
    }
}

const NOT_FOUND: &str = "not_found";
const NO_LISTENER: &str = "no_listener";
const REFUSED: &str = "refused";

/// Returns the status for a failure of this kind; `None` if the failure is not the runtime's.
const fn status(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Timeout => Some("timeout"),
        Kind::Refused | Kind::Unsupported => Some(REFUSED),
        Kind::Protocol => Some("protocol"),
        Kind::Permission => Some("permission"),
        Kind::Gone => Some("gone"),
        Kind::NotFound => Some(NOT_FOUND),
        Kind::NoListener => Some(NO_LISTENER),
        Kind::Io
        | Kind::Other
        | Kind::Usage
        | Kind::Danger
        | Kind::UnsupportedVersion
        | Kind::Different
        | Kind::NothingFound => None,
    }
}

struct Row {
    process_id: u32,
    socket: Option<PathBuf>,
    name: Option<String>,
    /// From the runtime, or else from the operating system.
    command_line: Option<String>,
    /// Why the runtime, which was identified, does not report its process.
    refusal: Option<Explanation>,
    /// The process information, or else the status and the reasons.
    answer: Result<ProcessInfo, (&'static str, Option<SearchError>)>,
}

impl Row {
    fn new(search: &Search, found: Result<Found, SearchError>) -> Result<Self, Failure> {
        let (process_id, socket) = (search.process_id(), search.path().map(Path::to_owned));
        let name = process_name::name(search, found.as_ref().ok());
        let command_line = found.as_ref().ok().and_then(Found::command_line);
        let refusal = found.as_ref().ok().and_then(|found| found.refusal);
        let row = |socket, answer| Ok(Self { process_id, socket, name, command_line, refusal, answer });
        match found {
            Ok(found) => row(Some(found.path), found.info.ok_or((REFUSED, None))),
            Err(error) => match status(error.kind().into()) {
                Some(status) => row(socket, Err((status, Some(error)))),
                None => Err(Error::from(error).into()),
            },
        }
    }

    fn status(&self) -> &'static str {
        self.answer.as_ref().map_or_else(|(status, _)| *status, |_| "ok")
    }

    /// Whether a process listens at the socket, even if it responds to other users only.
    fn is_present(&self) -> bool {
        // A search that failed can still have shown that the process has no runtime.
        let none = |reason: &Reason| matches!(reason, Reason::NoSocket { signs: Signs::Absent, .. });
        let error = self.answer.as_ref().err().and_then(|(_, error)| error.as_ref());
        !matches!(self.status(), NOT_FOUND | NO_LISTENER)
            && !error.is_some_and(|error| error.reasons().iter().any(none))
    }

    fn to_json(&self, with_why: bool) -> JsonRow<'_> {
        let error = self.answer.as_ref().err().and_then(|(_, error)| error.as_ref());
        let info = self.answer.as_ref().ok();
        let system = self.command_line.as_deref().filter(|_| info.is_none());
        JsonRow {
            process_id: Some(self.process_id),
            socket: self.socket.as_ref().map(|path| path.to_string_lossy()),
            status: self.status(),
            // A process in a container has another ID inside. The row already has the ID outside, which stays.
            info: info.map(|info| ProcessFields::from(info).without_process_id()),
            command_line: system.map(SystemCommandLine::new),
            why: self.unreported().map(Some).or_else(|| with_why.then(|| error.map(ToString::to_string))),
            reasons: with_why.then(|| {
                error.map(|error| error.reasons().iter().map(ReasonRow::new).collect()).unwrap_or_default()
            }),
        }
    }

    /// Returns why the command line is not from the runtime, although it answers.
    fn unreported(&self) -> Option<String> {
        let why = self.refusal.filter(|why| *why == Explanation::InfoTooLong)?;
        Some(match &self.command_line {
            Some(_) => system_process::note(self.process_id, why),
            None => format!("process {} does not report its command line: {why}", self.process_id),
        })
    }

    /// Returns the command line, with a mark if it is not from the runtime.
    fn shown_command_line(&self) -> Option<String> {
        match &self.answer {
            Ok(_) => self.command_line.clone(),
            Err(_) => self.command_line.as_deref().map(system_process::marked),
        }
    }

    /// Returns the version of the runtime, or else the status in parentheses.
    fn version(&self) -> String {
        match &self.answer {
            Ok(info) => info.clr_product_version.to_string(),
            Err((status, _)) => format!("({status})"),
        }
    }
}

/// A name takes at most this many columns, so that the command line has some room.
const NAME_WIDTH: usize = 20;

/// The rows as text, under one header.
struct ProcessTable {
    wide: bool,
    /// The least width of each column.
    widths: Vec<usize>,
    has_header: bool,
}

impl ProcessTable {
    const fn new(wide: bool) -> Self {
        Self { wide, widths: Vec::new(), has_header: false }
    }

    /// The columns before the command line.
    const fn header(&self) -> &'static [&'static str] {
        if self.wide {
            &["PID", "STATUS", "NAME", "VERSION", "ARCH", "SOCKET"]
        } else {
            &["PID", "NAME", "VERSION"]
        }
    }

    /// Reserves the widths of columns before all rows are known: those of the known fields of the searches, and of
    /// usual versions.
    fn reserve(&mut self, searches: &[Search]) {
        let width = |of: fn(&Search) -> Option<String>| {
            searches.iter().filter_map(of).map(|text| printable(&text).width()).max().unwrap_or(0)
        };
        let pid = width(|search| Some(search.process_id().to_string()));
        let name = width(|search| process_name::name(search, None)).min(NAME_WIDTH);
        let version = "(permission)".len();
        self.widths = if self.wide {
            let socket = width(|search| Some(search.path()?.to_string_lossy().into_owned()));
            vec![pid, "permission".len(), name, version, "arm64".len(), socket]
        } else {
            vec![pid, name, version]
        };
    }

    fn cells(&self, row: &Row) -> Vec<String> {
        let pid = row.process_id.to_string();
        if self.wide {
            let info = row.answer.as_ref().ok();
            vec![
                pid,
                row.status().to_owned(),
                cell(row.name.clone()),
                cell(info.map(|info| info.clr_product_version.to_string())),
                cell(info.map(|info| info.arch.to_string())),
                cell(row.socket.as_ref().map(|path| path.to_string_lossy().into_owned())),
            ]
        } else {
            let short = |text| cut_end(&cell(text), NAME_WIDTH);
            vec![pid, short(row.name.clone()), short(Some(row.version()))]
        }
    }

    /// Writes rows. The first call also writes the header.
    fn write(&mut self, rows: &[&Row]) -> Result<(), Failure> {
        let mut table = comfy_table::Table::new();
        table.load_preset(presets::NOTHING);
        let has_header = core::mem::replace(&mut self.has_header, true);
        if !has_header {
            table.set_header(self.header());
        }
        table.add_rows(rows.iter().map(|row| self.cells(row)));
        for (column, width) in table.column_iter_mut().zip(&self.widths) {
            let padded = u16::try_from(width.saturating_add(2)).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(padded)));
        }
        // A pipe gets lines of 80 columns, the usual width of a terminal.
        let width = if self.wide { usize::MAX } else { terminal_width().unwrap_or(80) };
        // A command line can be longer than a column of the table.
        let header = (!has_header).then(|| "COMMAND LINE".to_owned());
        let command_lines = header.into_iter().chain(rows.iter().map(|row| cell(row.shown_command_line())));
        let lines = table.lines().zip(command_lines).map(|(line, last)| format!("{line} {last}"));
        let lines: Vec<_> = lines.map(|line| cut_end(line.trim_end(), width)).collect();
        to_stdout(|out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))
    }
}

fn cell(text: Option<String>) -> String {
    text.map_or_else(String::new, |text| printable(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A character of Chinese takes two columns.
    #[test]
    fn names_are_cut_to_columns() {
        let row = Row {
            process_id: 4242,
            socket: None,
            name: Some("\u{597d}".repeat(15)),
            command_line: None,
            refusal: None,
            answer: Err((REFUSED, None)),
        };
        let cells = ProcessTable::new(false).cells(&row);
        assert!(cells.iter().all(|cell| cell.width() <= NAME_WIDTH), "{cells:?}");
    }
}
