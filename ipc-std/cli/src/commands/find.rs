//! `find`: shows where the socket of a runtime is, or why it is not found.
use std::borrow::Cow;

use ipc_proto::plan::Explanation;
use ipc_std::discover::{self, Found, Search};
use serde::Serialize;

use crate::output::stdout::{json_to_stdout, to_stdout};
use crate::process::connection_args::ConnectionArgs;
use crate::process::reasons::ReasonRow;
use crate::process::target;
use crate::process::wire_log::WireLog;
use crate::run::{Failure, Globals};
use crate::text::printable::printable;

/// Show where the runtime of a process listens, or why it is not found
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("find.txt"))]
#[group(required = true, multiple = false, args = ["pid", "name"])]
pub(crate) struct Args {
    /// Process ID of the runtime
    pid: Option<u32>,
    /// Name of the process, or its unique beginning, instead of a process ID
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl Args {
    /// Returns the search, and its result if the search for the name needed it.
    fn search(&self, wire_log: &WireLog) -> Result<(Search, Option<Found>), Failure> {
        let timeouts = self.connection.timeout.timeouts();
        match &self.name {
            Some(name) => target::find_by_name(name, timeouts, wire_log),
            None => Ok((discover::search(self.pid.unwrap_or_default(), timeouts.call), None)),
        }
    }
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let wire_log = args.connection.wire_log.open()?;
    let (mut search, found) = args.search(&wire_log)?;
    let found = found.map_or_else(|| discover::identify(&mut search, wire_log.observer().as_ref()), Ok);
    if globals.json {
        let steps = search.steps().iter().map(|step| StepRow {
            step: step.subject.to_string(),
            reason: step.reason.as_ref().map(ReasonRow::new),
        });
        let found = found.as_ref().ok().map(|found| FoundRow {
            socket: found.path.to_string_lossy(),
            local_process_id: found.local_process_id,
            listener: found.listener,
            router: found.router,
            runtime_cookie: found.info.as_ref().map(|info| info.runtime_cookie.to_string()),
        });
        json_to_stdout(&SearchRow { process_id: search.process_id(), steps: steps.collect(), found })?;
    } else {
        to_stdout(|out| {
            for step in search.steps() {
                writeln!(out, "{}", printable(&step.to_string()))?;
            }
            match &found {
                Ok(found) => writeln!(out, "{}", printable(&sentence(found))),
                Err(_) => Ok(()),
            }
        })?;
    }
    // The default hint of the error is to run this command.
    found.map_err(|error| Failure::from(ipc_std::Error::from(error)).without_hint())?;
    wire_log.check()
}

/// A search as JSON.
#[derive(Serialize)]
struct SearchRow<'s> {
    process_id: u32,
    steps: Vec<StepRow<'s>>,
    found: Option<FoundRow<'s>>,
}

#[derive(Serialize)]
struct StepRow<'s> {
    step: String,
    reason: Option<ReasonRow<'s>>,
}

#[derive(Serialize)]
struct FoundRow<'f> {
    socket: Cow<'f, str>,
    local_process_id: u32,
    listener: Option<u32>,
    router: bool,
    runtime_cookie: Option<String>,
}

fn sentence(found: &Found) -> String {
    let path = found.path.display();
    let place = match found.listener {
        Some(_) => String::new(),
        None => format!("; it is in another PID namespace, so process {} here is not it", found.process_id),
    };
    let sentence = match &found.info {
        Some(info) if found.router => {
            format!("found: dsrouter listens at {path} for a runtime in process {}", info.process_id)
        }
        Some(info) => format!("found: the runtime at {path} has the cookie {}", info.runtime_cookie),
        None => match found.refusal {
            Some(why @ Explanation::InfoTooLong) => format!("found: the runtime at {path}; {why}"),
            _ => format!("found: the runtime at {path} is too old to report its cookie"),
        },
    };
    sentence + &place
}
