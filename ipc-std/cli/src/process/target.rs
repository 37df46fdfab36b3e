//! The runtime that a command is about.
use std::path::{Path, PathBuf};
use std::time::Instant;

use ipc_std::discover::{self, Found, ScanConfig, Search};
use ipc_std::{Client, Timeouts};

use super::process_name;
use super::wire_log::WireLog;
use crate::args::socket_path;
use crate::args::timeout_args::{remaining, since};
use crate::run::{Failure, Kind};
use crate::text::printable::printable;

/// The runtime that a command is about.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct TargetArgs {
    /// Process ID of the runtime
    pid: Option<u32>,
    /// Name of the process, or its unique beginning, instead of a process ID
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Path of the runtime's diagnostic socket, instead of a process ID
    #[arg(long, value_name = "PATH", value_parser = socket_path::parser())]
    socket: Option<PathBuf>,
}

/// The runtime that a command is about, and the command's operands. The process ID is the first operand, unless there
/// is a `--name` or a `--socket`.
#[derive(Debug, clap::Args)]
pub(crate) struct OperandArgs {
    /// As the usage shows them, without the process ID after --name or --socket
    #[arg(value_name = "PID|OPERAND")]
    operands: Vec<String>,
    /// Name of the process, or its unique beginning, instead of a process ID
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Path of the runtime's diagnostic socket, instead of a process ID
    #[arg(long, value_name = "PATH", conflicts_with = "name", value_parser = socket_path::parser())]
    socket: Option<PathBuf>,
}

/// How the command line names a runtime.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'a> {
    ProcessId(u32),
    /// The name of the process, or its beginning.
    Name(&'a str),
    /// The path of the diagnostic socket.
    Socket(&'a Path),
}

impl TargetArgs {
    pub(crate) fn target(&self) -> Target<'_> {
        // Clap ensures that one of the three is given. The default ID 0, which no process has, is never used.
        Target::new(self.socket.as_deref(), self.name.as_deref(), self.pid.unwrap_or_default())
    }
}

impl OperandArgs {
    /// Returns the runtime and the operands after it: at most as many as there are names, and at least `required`.
    pub(crate) fn read(&self, names: &[&str], required: usize) -> Result<(Target<'_>, Vec<&str>), Failure> {
        let mut operands = self.operands.iter().map(String::as_str);
        let process_id = if self.socket.is_some() || self.name.is_some() {
            0
        } else {
            let pid = operands.next();
            let pid = pid.ok_or_else(|| Failure::usage("a process ID, --name or --socket is required"))?;
            pid.parse().map_err(|_| {
                Failure::usage(format!(
                    "{pid:?} is not a process ID; --name and --socket are the alternatives"
                ))
            })?
        };
        let target = Target::new(self.socket.as_deref(), self.name.as_deref(), process_id);
        let operands: Vec<&str> = operands.collect();
        match (names.get(operands.len()..), operands.get(names.len())) {
            (Some([missing, ..]), _) if operands.len() < required => {
                Err(Failure::usage(format!("{missing} is required")))
            }
            (_, Some(unexpected)) => Err(Failure::usage(format!("{unexpected:?} is not expected"))),
            _ => Ok((target, operands)),
        }
    }
}

/// Returns a text as one word of a command line of a Unix shell, for people to copy.
pub(crate) fn word(text: &str) -> String {
    let text = printable(text);
    shlex::try_quote(&text).map_or_else(|_| text.clone().into_owned(), |word| word.into_owned())
}

impl<'a> Target<'a> {
    /// Returns the target as the argument of another command.
    pub(crate) fn argument(self) -> String {
        match self {
            Self::ProcessId(process_id) => process_id.to_string(),
            Self::Name(name) => format!("--name {}", word(name)),
            Self::Socket(path) => format!("--socket {}", word(&path.to_string_lossy())),
        }
    }

    /// Returns the socket if there is one, else the name if there is one, else the process ID.
    pub(crate) fn new(socket: Option<&'a Path>, name: Option<&'a str>, process_id: u32) -> Self {
        match (socket, name) {
            (Some(socket), _) => Self::Socket(socket),
            (None, Some(name)) => Self::Name(name),
            (None, None) => Self::ProcessId(process_id),
        }
    }

    /// Returns the process ID, if the command line names the runtime by its process ID.
    pub(crate) const fn process_id(self) -> Option<u32> {
        match self {
            Self::ProcessId(process_id) => Some(process_id),
            Self::Name(_) | Self::Socket(_) => None,
        }
    }

    /// Returns a client for the runtime. The search and all calls of the client share one deadline.
    pub(crate) fn client(self, timeouts: Timeouts, wire_log: &WireLog) -> Result<Client, Failure> {
        let began = Instant::now();
        let client = match self {
            Self::Socket(path) => Client::at(path).with_timeouts(timeouts),
            Self::Name(name) => match find_by_name(name, timeouts, wire_log)? {
                (_, Some(found)) => found.client().with_timeouts(timeouts),
                (search, None) => Client::for_search(search, &timeouts)?,
            },
            Self::ProcessId(process_id) => {
                Client::for_search(discover::search(process_id, timeouts.call), &timeouts)?
            }
        };
        Ok(since(client, began).with_observer(wire_log.observer()))
    }
}

/// The maximum number of processes that a failure lists.
const LISTED: usize = 10;

/// Returns the search for the process with a socket and the name `name`. Without such a process, its name can begin
/// with `name` if no other one does. If the runtime itself reported the name, also returns the result of the search.
/// Case is ignored, as by dotnet-trace.
pub(crate) fn find_by_name(
    name: &str,
    timeouts: Timeouts,
    wire_log: &WireLog,
) -> Result<(Search, Option<Found>), Failure> {
    /// The scan gets half of the time, the call of the runtime the other half.
    const HALF: u32 = 2;
    let (wanted, began) = (name.to_lowercase(), Instant::now());
    let timeout = timeouts.call.checked_div(HALF).unwrap_or_default();
    let mut scan = discover::scan(&ScanConfig { timeout, ..ScanConfig::default() });
    let mut processes: Vec<(String, Search, Option<Found>)> = Vec::new();
    // Only the runtimes whose name the system does not know are contacted.
    let mut unknown = Vec::new();
    for search in core::mem::take(&mut scan.searches) {
        match process_name::name(&search, None) {
            Some(name) if search.path().is_some() => processes.push((name, search, None)),
            Some(_) => {}
            None => unknown.push(search),
        }
    }
    scan.searches = unknown;
    discover::identify_all(scan, wire_log.observer().as_ref(), |search, found| {
        let Ok(found) = found else { return };
        processes.extend(process_name::name(&search, Some(&found)).map(|name| (name, search, Some(found))));
    });
    processes.retain(|(name, ..)| name.to_lowercase().starts_with(&wanted));
    if processes.iter().any(|(name, ..)| name.to_lowercase() == wanted) {
        processes.retain(|(name, ..)| name.to_lowercase() == wanted);
    }
    processes.sort_by_key(|(_, search, _)| search.process_id());
    let count = processes.len();
    if count > 1 {
        let list = processes.iter().take(LISTED).map(|(name, search, found)| {
            let listed = format!("{} {}", search.process_id(), printable(name));
            match found {
                // If the listener is not visible, several runtimes can have the same process ID, so their paths are
                // listed.
                Some(Found { path, listener: None, .. }) => {
                    format!("{listed} at {}", printable(&path.to_string_lossy()))
                }
                _ => listed,
            }
        });
        let list = list.collect::<Vec<_>>().join(", ");
        let more = if count > LISTED { ", …" } else { "" };
        let message = format!("{count} processes have the name {name}: {list}{more}");
        let hint = "pass one of their process IDs, or --socket with one of the paths";
        return Err(Failure::new(Kind::NotFound, message).with_hint(hint));
    }
    match processes.pop() {
        Some((_, search, Some(found))) => Ok((search, Some(found))),
        Some((_, search, None)) => {
            Ok((discover::search(search.process_id(), remaining(timeouts, began).call), None))
        }
        None => {
            let failure = Failure::new(Kind::NotFound, format!("no .NET process has the name {name}"));
            Err(failure.with_hint("`dotnet-ipc ps` lists the names"))
        }
    }
}
