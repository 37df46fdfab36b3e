//! `perf-map`: writes the names of compiled methods for `perf`.
use ipc_proto::types::PerfMapType;
use ipc_proto::{EnablePerfMap, Request};
use serde::Serialize;

use crate::output::stdout::done;
use crate::process::request_args::RequestArgs;
use crate::run::{Failure, Globals};

/// Write the names of compiled methods for `perf`, or stop writing them
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "dotnet-ipc perf-map [OPTIONS] <PID> <on [KIND]|off>",
    after_help = include_str!("perf_map.txt")
)]
pub(crate) struct Args {
    #[command(flatten)]
    request: RequestArgs,
}

/// The result as JSON.
#[derive(Serialize)]
struct PerfMapState {
    enabled: bool,
    perf_map_type: Option<&'static str>,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (target, operands) = args.request.operands.read(&["on or off", "KIND"], 1)?;
    let enabled = match operands.as_slice() {
        ["off"] => None,
        ["on"] | ["on", "all"] => Some((PerfMapType::ALL, "all")),
        ["on", "jit-dump"] => Some((PerfMapType::JIT_DUMP, "jit-dump")),
        ["on", "perf-map"] => Some((PerfMapType::PERF_MAP, "perf-map")),
        other => {
            let message = format!("{:?} is not off, on all, on jit-dump or on perf-map", other.join(" "));
            return Err(Failure::usage(message));
        }
    };
    args.request.connection.call(target, |client| {
        let sentence = match enabled {
            Some((perf_map_type, kind)) => {
                let request = Request::EnablePerfMap(EnablePerfMap { perf_map_type });
                args.request.check(&client, &request)?;
                client.enable_perf_map(perf_map_type)?;
                format!("perf map on: {kind}")
            }
            None => {
                client.disable_perf_map()?;
                "perf map off".to_owned()
            }
        };
        let kind = enabled.map(|(_, kind)| kind);
        done(globals, &sentence, &PerfMapState { enabled: enabled.is_some(), perf_map_type: kind })
    })
}
