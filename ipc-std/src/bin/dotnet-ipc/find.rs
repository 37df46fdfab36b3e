//! `find`: where a runtime is, or why it is not found.
use std::time::Instant;

use ipc_std::discover::{self, Found};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::{json_to_stdout, printable, to_stdout};
use crate::{Globals, reasons, runtime, wire_log};

/// Tell step by step where a runtime is looked for, and why it is found or not
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit status: 0 if it is found and says that it is that process; 3 if there is none, or
none that we may ask; 4 to 7 if somebody listens there and does not answer as a runtime.

Examples:
  dotnet-ipc find 4242
  dotnet-ipc find 4242 --json | jq .steps")]
pub(crate) struct Args {
    /// Process id of the runtime
    pid: u32,
    #[command(flatten)]
    wire_log: wire_log::LogFile,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let wire_log = args.wire_log.open()?;
    let timeouts = globals.limits.timeouts();
    let began = Instant::now();
    let mut search = discover::search(args.pid, &timeouts);
    let found = search.ask(&runtime::left(timeouts, began), wire_log.observer().as_ref());
    if globals.output.json {
        let step = |step: &discover::Step| json!({ "step": step.what.to_string(), "reason": step.reason.as_ref().map(reasons::to_json) });
        let steps: Vec<_> = search.steps().iter().map(step).collect();
        json_to_stdout(&json!({
            "process_id": args.pid, "steps": steps, "found": found.as_ref().ok().map(to_json),
        }))?;
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
    // The steps have been told.
    found.map_err(|why| Failure::from(ipc_std::Error::from(why)).without_hint())?;
    wire_log.check()
}

fn to_json(found: &Found) -> Value {
    json!({
        "socket": found.path.to_string_lossy(),
        "local_process_id": found.local_process_id,
        "router": found.router,
        "runtime_cookie": found.info.as_ref().map(|info| info.runtime_cookie.to_string()),
    })
}

fn sentence(found: &Found) -> String {
    let path = found.path.display();
    match &found.info {
        Some(info) if found.router => {
            format!("found: dsrouter answers at {path}, for a runtime that is process {}", info.process_id)
        }
        Some(info) => format!("found: it answers at {path}, and says it is {}", info.runtime_cookie),
        None => format!("found: it answers at {path}, and is too old to say who it is"),
    }
}
