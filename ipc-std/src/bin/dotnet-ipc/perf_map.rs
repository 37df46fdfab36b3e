//! `perf-map`: what `perf` needs to know of a process.
use ipc_proto::types::PerfMapType;
use ipc_proto::{EnablePerfMap, Request};
use serde_json::json;

use crate::failure::{Failure, Kind};
use crate::output::done;
use crate::{Globals, runtime, wire_log};

/// Have a runtime write the names of its code for `perf`, or stop that
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "dotnet-ipc perf-map [OPTIONS] <PID|--socket <PATH>> <on [KIND]|off>",
    after_help = "\
KIND is all (the default), jit-dump (jit-PID.dump) or perf-map (perf-PID.map). The
files are in the target's /tmp, whatever its TMPDIR. On Linux only, since .NET 8.

Examples:
  dotnet-ipc perf-map 4242 on && perf record -g -p 4242
  dotnet-ipc perf-map 4242 on perf-map
  dotnet-ipc perf-map 4242 off"
)]
pub(crate) struct Args {
    #[command(flatten)]
    operands: runtime::Operands,
    #[command(flatten)]
    force: runtime::Force,
    #[command(flatten)]
    wire_log: wire_log::LogFile,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (pid, operands) = args.operands.read(&["on or off", "KIND"], 1)?;
    let wanted = match operands.as_slice() {
        ["off"] => None,
        ["on"] | ["on", "all"] => Some((PerfMapType::ALL, "all")),
        ["on", "jit-dump"] => Some((PerfMapType::JIT_DUMP, "jit-dump")),
        ["on", "perf-map"] => Some((PerfMapType::PERF_MAP, "perf-map")),
        other => {
            let message =
                format!("{:?} is neither off nor on with all, jit-dump or perf-map", other.join(" "));
            return Err(Failure::new(Kind::Usage, message));
        }
    };
    let wire_log = args.wire_log.open()?;
    let client = args.operands.client(pid, globals.limits.timeouts(), &wire_log)?;
    let sentence = match wanted {
        Some((perf_map_type, kind)) => {
            let request = Request::EnablePerfMap(EnablePerfMap { perf_map_type });
            let client = args.force.check(client, &request)?;
            client.enable_perf_map(perf_map_type)?;
            format!("perf map on: {kind}")
        }
        None => {
            client.disable_perf_map()?;
            "perf map off".to_owned()
        }
    };
    let kind = wanted.map(|(_, kind)| kind);
    done(&globals.output, &sentence, &json!({ "enabled": wanted.is_some(), "perf_map_type": kind }))?;
    wire_log.check()
}
