//! Which runtime a command is about, and how long it may take.
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ipc_proto::Request;
use ipc_std::{Client, Timeouts, discover};

use crate::durations;
use crate::failure::{Failure, Kind};
use crate::wire_log::WireLog;

/// The runtime to ask.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Target {
    /// Process id of the runtime
    pid: Option<u32>,
    /// Path of the runtime's diagnostic socket, in place of a process id
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// The runtime to ask, and what is asked: the process id is the first operand, unless there is --socket.
#[derive(Debug, clap::Args)]
pub(crate) struct Operands {
    /// As the usage shows them; the process id goes if there is a --socket
    #[arg(value_name = "PID|OPERAND")]
    operands: Vec<String>,
    /// Path of the runtime's diagnostic socket, in place of a process id
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// Whether to do what may end the process.
#[derive(Debug, clap::Args)]
pub(crate) struct Force {
    /// Send it even if that is known to end such a runtime
    #[arg(long)]
    force: bool,
}

/// How long a command may take.
#[derive(Debug, clap::Args)]
pub(crate) struct Limits {
    /// Deadline of the whole command [default: 10s; of `dump` 10m]; of `trace`, for starting it and again for ending it
    /// [default: 10s, 2m]; of `monitor`, for each thing that a runtime is asked
    #[arg(long, global = true, value_name = "DURATION", value_parser = durations::parse)]
    timeout: Option<Duration>,
}

impl Limits {
    pub(crate) fn timeouts(&self) -> Timeouts {
        let defaults = Timeouts::default();
        let Some(timeout) = self.timeout else { return defaults };
        Timeouts { call: timeout, dump: timeout, stop: timeout, ..defaults }
    }
}

impl Target {
    /// The way to it.
    pub(crate) fn client(&self, timeouts: Timeouts, wire_log: &WireLog) -> Result<Client, Failure> {
        client(self.socket.as_deref(), self.pid, timeouts, wire_log)
    }
}

/// The way to the runtime at the socket, or else to that with the process id.
pub(crate) fn client(
    socket: Option<&Path>,
    pid: Option<u32>,
    timeouts: Timeouts,
    wire_log: &WireLog,
) -> Result<Client, Failure> {
    let began = Instant::now();
    let client = match socket {
        Some(path) => Client::at(path).with_timeouts(timeouts),
        // The parser sees to it that there is one; nobody has the process id 0.
        None => {
            let search = discover::search(pid.unwrap_or_default(), &timeouts);
            since(search.client(&left(timeouts, began))?.with_timeouts(timeouts), began)
        }
    };
    Ok(client.with_observer(wire_log.observer()))
}

/// The client for the next call of a command that began then: all of its calls have one deadline.
pub(crate) fn since(client: Client, began: Instant) -> Client {
    let timeouts = *client.timeouts();
    client.with_timeouts(left(timeouts, began))
}

/// What is left of the time for a call that began then.
pub(crate) fn left(timeouts: Timeouts, began: Instant) -> Timeouts {
    Timeouts { call: timeouts.call.saturating_sub(began.elapsed()), ..timeouts }
}

impl Operands {
    /// The process id, if there has to be one, and the operands behind it: as many as have these names, of which
    /// `required` have to be there.
    pub(crate) fn read(&self, names: &[&str], required: usize) -> Result<(u32, Vec<&str>), Failure> {
        let usage = |message: String| Failure::new(Kind::Usage, message);
        let mut operands = self.operands.iter().map(String::as_str);
        let pid = match self.socket {
            Some(_) => 0,
            None => {
                let pid = operands.next();
                let pid = pid.ok_or_else(|| usage("a process id or --socket is required".to_owned()))?;
                pid.parse()
                    .map_err(|_| usage(format!("{pid:?} is no process id; --socket is the other way")))?
            }
        };
        let operands: Vec<&str> = operands.collect();
        match (names.get(operands.len()..), operands.get(names.len())) {
            (Some([missing, ..]), _) if operands.len() < required => {
                Err(usage(format!("{missing} is required")))
            }
            (_, Some(unexpected)) => Err(usage(format!("{unexpected:?} is not expected"))),
            _ => Ok((pid, operands)),
        }
    }

    /// The way to the runtime, whose process id `read` has given.
    pub(crate) fn client(&self, pid: u32, timeouts: Timeouts, wire_log: &WireLog) -> Result<Client, Failure> {
        client(self.socket.as_deref(), Some(pid), timeouts, wire_log)
    }
}

impl Force {
    /// Refuses to send what may end the process, unless that is wanted. The client that comes back has the time that is
    /// left to send it.
    pub(crate) fn check(&self, client: Client, request: &Request<'_>) -> Result<Client, Failure> {
        if self.force {
            return Ok(client);
        }
        let began = Instant::now();
        match client.hazard(request)? {
            Some(hazard) => Err(Failure::new(Kind::Danger, hazard.to_string())),
            None => Ok(since(client, began)),
        }
    }
}
