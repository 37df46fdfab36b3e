//! `eventpipe-env`: the environment variables with which a process traces itself.
use core::fmt::Write as _;
use core::time::Duration;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::process::{Command, ExitCode};

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use dotnet_ipc_sans_io::syntax::durations;
use ipc_proto::plan::{Flavour, Runtime, StartupTrace, StartupTraceError};
use ipc_proto::types::SessionBufferMode;
use serde_json::{Map, Value};

use crate::output::stdout::{json_to_stdout, to_stdout};
use crate::recording::args::RecordingArgs;
use crate::recording::trace_profile::{TraceProfile, has_separators};
use crate::run::{Failure, Globals, Kind};

/// Print the environment variables with which a process traces itself
#[derive(Debug, clap::Args)]
#[command(override_usage = "dotnet-ipc eventpipe-env [OPTIONS] [-- COMMAND [ARGS]...]")]
#[command(mut_args(|arg| match arg.get_id().as_str() {
    "profiles" => arg.value_parser(profiles()),
    id if is_for_clients(id) => arg.hide(true),
    _ => arg,
}))]
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
    /// The form of the output [default: shell]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<VariableFormat>,
    /// Run this command with the variables instead of printing them
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "format")]
    command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum VariableFormat {
    /// Commands for a shell, to paste or `eval`
    Shell,
    /// Lines for `docker run --env-file`
    EnvFile,
    /// Lines for EnvironmentFile of systemd
    Systemd,
    /// Instructions of a Dockerfile
    Docker,
    /// One JSON object
    Json,
}

/// Returns the parser of profiles. It offers those that variables can express: the arguments of the others have commas or
/// colons. `sick` is accepted without its meters, and nothing useful would remain of `database`.
fn profiles() -> impl clap::builder::TypedValueParser<Value = TraceProfile> {
    let accepted =
        TraceProfile::value_variants().iter().filter(|profile| **profile != TraceProfile::Database);
    let values = accepted.filter_map(|profile| {
        let is_hidden = profile.providers().iter().any(has_separators);
        profile.to_possible_value().map(|value| value.hide(is_hidden))
    });
    PossibleValuesParser::new(values).try_map(|name| TraceProfile::from_str(&name, false))
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

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    if args.recording.session.live.is_used() {
        let message =
            "--duration and --no-resume are for the session of a client: a process traces itself to its end";
        return Err(Failure::usage(message));
    }
    let (plan, left_out) = args.recording.startup_plan()?;
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
    let format =
        if globals.json { VariableFormat::Json } else { args.format.unwrap_or(VariableFormat::Shell) };
    let is_by_line =
        matches!(format, VariableFormat::Docker | VariableFormat::EnvFile | VariableFormat::Systemd);
    if is_by_line && variables.iter().any(|(_, value)| value.contains(['\n', '\r'])) {
        return Err(Failure::usage("a file of variables, by lines, cannot contain a line break"));
    }
    for note in notes(&trace, &runtime) {
        globals.note(&note);
    }
    for provider in left_out {
        globals.note(&format!("without {provider}: the variables cannot express its arguments"));
    }
    if let [program, arguments @ ..] = &*args.command {
        let mut command = Command::new(program);
        command.args(arguments).envs(variables);
        let e = match replace_process(&mut command) {
            Ok(code) => return Ok(code),
            Err(e) => e,
        };
        return Err(Failure::io(format_args!("cannot run {}", program.to_string_lossy()), &e));
    }
    let has_quotes = variables.iter().any(|(_, value)| *for_shell(value) != **value);
    if args.format.is_none() && !globals.json && has_quotes && !io::stdout().is_terminal() {
        globals.note("only a shell can read these quotes: `eval \"$(...)\"`, and not `env $(...)`; or run `-- COMMAND`");
    }
    match format {
        VariableFormat::Json => {
            let object: Map<String, Value> =
                variables.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
            json_to_stdout(&Value::Object(object))
        }
        _ => to_stdout(|out| {
            variables.iter().try_for_each(|(name, value)| match format {
                VariableFormat::EnvFile => writeln!(out, "{name}={value}"),
                VariableFormat::Systemd => writeln!(out, "{name}={}", quoted(value, "\"\\$`")),
                VariableFormat::Docker => writeln!(out, "ENV {name}={}", quoted(value, "\"\\$")),
                _ => writeln!(out, "export {name}={}", for_shell(value)),
            })
        }),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a command in place of this process, or waits for its end where the system cannot do so.
fn replace_process(command: &mut Command) -> io::Result<ExitCode> {
    #[cfg(unix)]
    return Err(std::os::unix::process::CommandExt::exec(command));
    #[cfg(windows)]
    return Ok(super::monitor::exit_code(command.status()?));
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

/// Returns a value in double quotes, with a backslash before the characters that have a meaning there.
fn quoted(value: &str, special: &str) -> String {
    let mut quoted = String::from('"');
    for c in value.chars() {
        let escape = if special.contains(c) { "\\" } else { "" };
        let _ = write!(quoted, "{escape}{c}");
    }
    quoted + "\""
}
