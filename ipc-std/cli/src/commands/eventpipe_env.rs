//! `eventpipe-env`: the environment variables with which a process traces itself.
use core::fmt::Write as _;
use core::time::Duration;
use std::path::Path;

use clap::ValueEnum;
use dotnet_ipc_sans_io::syntax::durations;
use ipc_proto::plan::{Flavour, Runtime, StartupTrace, StartupTraceError};
use ipc_proto::types::SessionBufferMode;
use serde_json::{Map, Value};

use crate::output::stdout::{json_to_stdout, to_stdout};
use crate::recording::args::RecordingArgs;
use crate::run::{Failure, Globals, Kind};

/// Print the environment variables with which a process traces itself
#[derive(Debug, clap::Args)]
#[command(mut_args(|arg| if is_for_clients(arg.get_id().as_str()) { arg.hide(true) } else { arg }))]
#[command(after_help = include_str!("eventpipe_env.txt"))]
pub(crate) struct Args {
    /// The file that the process writes; it replaces {pid} with its process ID
    #[arg(short, long, value_name = "PATH", default_value = "trace_{pid}.nettrace")]
    output: String,
    #[command(flatten)]
    recording: RecordingArgs,
    /// Write the file at the end of the process, not while it runs
    #[arg(long)]
    write_at_end: bool,
    /// Time between two samples of a thread, for all sessions (.NET 10)
    #[arg(long, value_name = "DURATION", value_parser = parse_milliseconds)]
    sampling_interval: Option<u32>,
    /// Record the processor of each event (Windows)
    #[arg(long)]
    processors: bool,
    /// The runtime that reads the variables: netN, netN-aot or netN-mono
    #[arg(long, value_name = "RUNTIME", value_parser = parse_runtime)]
    runtime: Option<Runtime>,
    /// The form of the output
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "env")]
    format: VariableFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum VariableFormat {
    /// Lines for a shell
    Env,
    /// Instructions of a Dockerfile
    Docker,
    /// One JSON object
    Json,
}

/// Returns whether an option of a recording is for a session of a client only, so that it is always refused here.
fn is_for_clients(id: &str) -> bool {
    matches!(id, "duration" | "no_resume" | "event_ids" | "rundown_keyword")
}

/// Parses an interval: whole milliseconds.
fn parse_milliseconds(text: &str) -> Result<u32, String> {
    let duration = durations::parse(text)?;
    let milliseconds = u32::try_from(duration.as_millis()).ok();
    milliseconds
        .filter(|ms| Duration::from_millis((*ms).into()) == duration)
        .ok_or_else(|| "use whole milliseconds, such as 10ms".to_owned())
}

fn parse_runtime(text: &str) -> Result<Runtime, String> {
    let (version, flavour) = match text.split_once('-') {
        None => (text, Flavour::CoreClr),
        Some((version, "aot")) => (version, Flavour::NativeAot),
        Some((version, "mono")) => (version, Flavour::Mono),
        Some(_) => ("", Flavour::CoreClr),
    };
    let version = version.strip_prefix("net").and_then(|version| version.parse().ok());
    match version.filter(|version| *version >= 8) {
        Some(version) => Ok(Runtime { version: Some(version), flavour: Some(flavour), ..Runtime::default() }),
        None => Err("use a version since net8, such as net11, net11-aot or net11-mono".to_owned()),
    }
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    if args.recording.session.live.is_used() {
        let message =
            "--duration and --no-resume are for the session of a client: a process traces itself to its end";
        return Err(Failure::usage(message));
    }
    let plan = args.recording.startup_plan()?;
    let providers = plan.providers()?;
    let config = plan.config(&providers);
    let trace = StartupTrace {
        streaming: !args.write_at_end,
        sampling_interval_ms: args.sampling_interval,
        processor_numbers: args.processors,
        ..StartupTrace::new(config, &args.output)
    };
    let runtime = args.runtime.unwrap_or_default();
    let variables = trace.variables(&runtime).map_err(|e| failure(e, &trace))?;
    let variables: Vec<(&str, String)> = variables.map(|v| (v.name, v.value.to_string())).collect();
    if args.format == VariableFormat::Docker
        && variables.iter().any(|(_, value)| value.contains(['\n', '\r']))
    {
        return Err(Failure::usage("an instruction of a Dockerfile cannot contain a line break"));
    }
    for note in notes(&trace, &runtime) {
        globals.note(&note);
    }
    match if globals.json { VariableFormat::Json } else { args.format } {
        VariableFormat::Env => to_stdout(|out| {
            variables.iter().try_for_each(|(name, value)| writeln!(out, "{name}={}", for_shell(value)))
        }),
        VariableFormat::Docker => to_stdout(|out| {
            variables.iter().try_for_each(|(name, value)| writeln!(out, "ENV {name}={}", for_docker(value)))
        }),
        VariableFormat::Json => {
            let object: Map<String, Value> =
                variables.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
            json_to_stdout(&Value::Object(object))
        }
    }
}

/// Returns the failure of a trace that no variables request.
fn failure(e: StartupTraceError, trace: &StartupTrace<'_>) -> Failure {
    let kind = match e {
        StartupTraceError::Blocking | StartupTraceError::FixedSamplingInterval => Kind::Unsupported,
        _ => Kind::Usage,
    };
    let failure = Failure::new(kind, e.to_string());
    match e {
        StartupTraceError::ProviderText { provider } => {
            let name = trace.config.providers.iter().nth(provider).map(|provider| provider.name.to_string());
            let name = name.unwrap_or_default();
            failure.with_hint(format!("`trace` can record {name}; --provider replaces that of a profile"))
        }
        StartupTraceError::BlockingWithoutStreaming => failure.with_hint("leave out --write-at-end"),
        StartupTraceError::UnknownVersion => failure.with_hint("name it with --runtime, such as net11"),
        _ => failure,
    }
}

/// Returns what the runtime or the system may do with the variables that the user does not expect.
fn notes(trace: &StartupTrace<'_>, runtime: &Runtime) -> impl Iterator<Item = String> {
    let is_unknown = runtime.version.is_none();
    let blocks = trace.config.buffer_mode == SessionBufferMode::BLOCK;
    let directory = Path::new(trace.output_path).parent().filter(|path| !path.as_os_str().is_empty());
    let missing = directory.filter(|path| !path.is_dir()).map(|path| {
        format!("{} is no directory here: where it does not exist, a runtime writes no file", path.display())
    });
    let notes = [
        (!trace.output_path.contains(StartupTrace::PROCESS_ID))
            .then_some("each process replaces this file: with {pid} in the path, each has a file of its own"),
        (is_unknown && blocks).then_some("runtimes older than .NET 11 do not block: they drop events"),
        (is_unknown && trace.sampling_interval_ms.is_some())
            .then_some("runtimes older than .NET 10 ignore the interval of the sampler"),
    ];
    notes.into_iter().flatten().map(ToOwned::to_owned).chain(missing)
}

/// Returns a value as a word of a shell.
fn for_shell(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_{}".contains(c);
    if value.chars().all(is_plain) { value.to_owned() } else { format!("'{}'", value.replace('\'', r"'\''")) }
}

/// Returns a value as a quoted word of a Dockerfile.
fn for_docker(value: &str) -> String {
    let mut quoted = String::from('"');
    for c in value.chars() {
        let escape = if matches!(c, '"' | '\\' | '$') { "\\" } else { "" };
        let _ = write!(quoted, "{escape}{c}");
    }
    quoted + "\""
}
