//! `dump`: the memory of a process, as a file.
use std::{env, fs};

use clap::ValueEnum;
use ipc_proto::plan::Loss;
use ipc_proto::types::{DumpFlags, DumpType};
use ipc_std::{DumpConfig, ErrorKind};
use serde_json::json;

use crate::failure::{Failure, Kind, name_of};
use crate::output::{done, printable};
use crate::{Globals, runtime, wire_log};

/// Have a runtime write a dump of its process
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The target writes the file: the path is one where it runs, and may hold the templates
of its dump writer, such as %p for the process id. A relative path is taken from the
directory of this command. The program stands still meanwhile, and answers nobody.

Examples:
  dotnet-ipc dump 4242 -o app.dmp
  dotnet-ipc dump 4242 -o /tmp/app-%p.dmp --type heap --crash-report")]
pub(crate) struct Args {
    #[command(flatten)]
    target: runtime::Target,
    /// Where to
    #[arg(short, long, value_name = "FILE")]
    output: String,
    /// How much of the process
    #[arg(long = "type", value_enum, value_name = "TYPE", default_value = "full")]
    dump_type: Type,
    /// Write a crash report too, as FILE.crashreport.json
    #[arg(long)]
    crash_report: bool,
    /// Have the dump writer log to the console of the target
    #[arg(long)]
    diag: bool,
    #[command(flatten)]
    wire_log: wire_log::LogFile,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Type {
    /// Threads, modules and stacks
    Mini,
    /// That, and the managed heap
    Heap,
    /// As mini, without personal data
    Triage,
    /// All memory
    Full,
}

impl Type {
    const fn row(self) -> (DumpType, &'static str) {
        match self {
            Self::Mini => (DumpType::NORMAL, "mini"),
            Self::Heap => (DumpType::WITH_HEAP, "heap"),
            Self::Triage => (DumpType::TRIAGE, "triage"),
            Self::Full => (DumpType::FULL, "full"),
        }
    }
}

const REFUSED: &str = "the target writes the file: see that its directory is there and open to the target, and that \
                       it has createdump beside its runtime";

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let path = absolute(&args.output)?;
    let (dump_type, type_name) = args.dump_type.row();
    let flag = |wanted, DumpFlags(flag)| if wanted { flag } else { 0 };
    let flags = DumpFlags(
        flag(args.crash_report, DumpFlags::CRASH_REPORT_ENABLED)
            | flag(args.diag, DumpFlags::LOGGING_ENABLED),
    );
    let wire_log = args.wire_log.open()?;
    let client = args.target.client(globals.limits.timeouts(), &wire_log)?;
    let written = client.write_dump(&DumpConfig { path: &path, dump_type, flags }).map_err(|e| {
        let refused = e.kind() == ErrorKind::Refused;
        let failure = Failure::from(e);
        if refused { failure.with_hint(REFUSED) } else { failure }
    })?;
    // The words of a refusal are not missed by whoever is not refused.
    let lost = written.lost.iter().filter(|loss| *loss != Loss::DumpMessage);
    let lost: Vec<String> = lost.map(|loss| loss.to_string()).collect();
    if !globals.output.json {
        lost.iter().for_each(|loss| globals.output.note(loss));
    }
    // Where the target is somewhere else we may not see it.
    let bytes = fs::metadata(&path).ok().map(|file| file.len());
    if bytes.is_none() && !path.contains('%') {
        globals
            .output
            .note("there is no such file here: it is where the target runs, or was not written after all");
    }
    let size = bytes.map(|bytes| format!("{bytes} bytes, ")).unwrap_or_default();
    let command = name_of(written.command);
    let sentence = format!("{type_name} dump: {} ({size}{command})", printable(&path));
    let object = json!({ "file": path, "type": type_name, "bytes": bytes, "command": command, "lost": lost });
    done(&globals.output, &sentence, &object)?;
    wire_log.check()
}

/// The file as the target has to be told it, which has a directory of its own.
fn absolute(file: &str) -> Result<String, Failure> {
    if file.is_empty() || file == "-" {
        let message = format!("{file:?} is no file: the target writes the dump, not this command");
        return Err(Failure::new(Kind::Usage, message));
    }
    if file.starts_with('/') {
        return Ok(file.to_owned());
    }
    let directory = env::current_dir().map_err(|e| Failure::io("there is no current directory", &e))?;
    let path = directory.join(file).into_os_string().into_string();
    path.map_err(|path| Failure::new(Kind::Usage, format!("{} is not UTF-8", path.to_string_lossy())))
}
