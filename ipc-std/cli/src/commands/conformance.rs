//! `conformance`: compares the responses of a server with the expected ones.
use core::time::Duration;
use std::time::Instant;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use ipc_proto::plan::Flavour;
use ipc_proto::{Code, HResult};
use ipc_std::{Client, ErrorKind};
use ipc_testkit::conformance::{self, Against, Case, Difference, NotTried, ReceivedAnswer, Seen, State};
use serde::Serialize;

use crate::args::command_code::parse_command;
use crate::output::stdout::{json_to_stdout, to_stdout};
use crate::process::connection_args::ConnectionArgs;
use crate::process::target;
use crate::process::wire_log::WireLog;
use crate::run::{Failure, Globals, Kind};

/// Send hundreds of requests to a server, and list the wrong responses
#[derive(Debug, clap::Args)]
#[command(mut_arg("timeout", |arg| arg.help("Wait for each response for DURATION [default: 10s]")))]
#[command(after_help = include_str!("conformance.txt"))]
pub(crate) struct Args {
    #[command(flatten)]
    target: target::TargetArgs,
    /// Runtime to compare with
    #[arg(long = "as", default_value = OURS, value_name = "KIND", value_parser = kinds())]
    kind: String,
    /// State of the runtime; a suspended one is resumed at the end
    #[arg(long, value_enum, default_value = "running")]
    state: States,
    /// Commands that the server has, by names or codes; it refuses all others [default: those of its version]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_command, conflicts_with = "kind")]
    commands: Option<Vec<Code>>,
    /// Also send requests that end real runtimes
    #[arg(long)]
    deadly: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// The name of the careful server on the command line. All other names are runtimes of the recorded data.
const OURS: &str = "ours";

/// Returns the kinds to compare with: the runtimes by their names in the recorded data, and a careful server.
fn kinds() -> impl TypedValueParser<Value = String> {
    let runtimes = conformance::KINDS.iter().map(|kind| PossibleValue::new(*kind));
    PossibleValuesParser::new(runtimes.chain([PossibleValue::new(OURS).help("A careful server")]))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum States {
    Running,
    Suspended,
}

/// How long the command waits where the compared runtime sends no response.
const NEVER: Duration = Duration::from_secs(1);

/// After this many attempts to ask a server that did not respond to a case, it counts as hanging.
const ATTEMPTS: u8 = 6;

/// Cases with an unknown command in a command set that some runtimes do not have: that of profilers, and that of dumps.
const PROFILERS: &str = "empty/03ff";
const DUMPS: &str = "empty/01ff";

/// Counts of cases.
#[derive(Debug, Default, Serialize)]
struct CaseCounts {
    #[serde(rename = "cases")]
    tried: usize,
    #[serde(rename = "differences")]
    different: usize,
    /// Not tried, because they are deadly.
    deadly: usize,
    /// Not tried, because no response of the compared runtime is recorded.
    unseen: usize,
    /// Not tried, because the transport cannot close one direction.
    #[serde(rename = "not_tried")]
    half_close: usize,
}

/// A wrong response as JSON.
#[derive(Serialize)]
struct DifferenceRow<'d> {
    case: &'d str,
    expected: &'d str,
    answered: &'d str,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (client, wire_log) = args.connection.client(args.target.target())?;
    // The deadline is that of each case.
    let client = client.with_deadline(None);
    let state = match args.state {
        States::Running => State::Running,
        States::Suspended => State::Suspended,
    };
    let kind = Some(&*args.kind).filter(|kind| *kind != OURS);
    let cases = conformance::cases();
    let version = version(&client)?;
    if !args.deadly {
        check_harm_is_known(version)?;
    }
    // The version and kind that the careful server imitates. With an unknown version it knows every command.
    let flavour = match kind {
        Some(_) => Flavour::CoreClr,
        None => flavour(&cases, &client, &wire_log)?,
    };
    if let Some(version) = version.filter(|_| kind.is_none()) {
        let core = if version < 5 { "Core " } else { "" };
        let flavour = match flavour {
            Flavour::CoreClr => "",
            Flavour::Mono => " (Mono)",
            _ => " (NativeAOT)",
        };
        globals.note(&format!("compared with a careful server of .NET {core}{version}{flavour}"));
    }
    let mut counts = CaseCounts::default();
    let cases = cases.into_iter().filter(|case| case.state == state);
    for case in cases {
        let deadly =
            case.is_deadly_since(version.unwrap_or(0)) || kind.is_some_and(|kind| case.is_deadly_for(kind));
        let seen = kind.map(|kind| case.seen(kind));
        if deadly && !args.deadly {
            counts.deadly = counts.deadly.saturating_add(1);
            continue;
        }
        if seen.as_ref().is_some_and(|seen| seen.is_empty()) {
            counts.unseen = counts.unseen.saturating_add(1);
            continue;
        }
        let case = match kind {
            Some(_) => case,
            None => case.for_server(version.unwrap_or(u8::MAX), flavour),
        };
        let case = match &args.commands {
            Some(commands) => case.for_commands(commands),
            None => case,
        };
        let waits = seen.is_some_and(|seen| seen.contains(&Seen::Waits));
        let timeout = client.timeouts().call;
        let timeout = if waits { timeout.min(NEVER) } else { timeout };
        let Some(answer) = ask(&case, &client, timeout, &wire_log, &counts)? else {
            counts.half_close = counts.half_close.saturating_add(1);
            continue;
        };
        counts.tried = counts.tried.saturating_add(1);
        if let Err(difference) = case.judge(kind.map_or(Against::Expected, Against::Observed), &answer) {
            counts.different = counts.different.saturating_add(1);
            show(&difference, globals)?;
        }
        if answer == ReceivedAnswer::Silence && !waits {
            wait_for_server(&client, &case.name, globals)?;
        }
    }
    summary(&counts, globals)?;
    wire_log.check()?;
    match counts.different {
        0 => Ok(()),
        different => {
            let message = format!("{different} of {} responses are wrong", counts.tried);
            Err(Failure::new(Kind::Different, message))
        }
    }
}

/// Fails if it is not known which requests harm a server of this version.
fn check_harm_is_known(version: Option<u8>) -> Result<(), Failure> {
    let newest = conformance::newest_version();
    let server = match version {
        Some(version) if version <= newest => return Ok(()),
        Some(version) => {
            format!("the server is .NET {version}, and which requests harm it is known up to .NET {newest}")
        }
        None => "the server does not report its version, so that it is not known which requests harm it"
            .to_owned(),
    };
    Err(Failure::usage(server).with_hint("--deadly sends all requests; they can end the process"))
}

/// Waits until a server that did not respond to a case responds to another request.
fn wait_for_server(client: &Client, case: &str, globals: &Globals) -> Result<(), Failure> {
    let begin = Instant::now();
    for _ in 0..ATTEMPTS {
        match client.process_info() {
            Err(e) if e.kind() == ErrorKind::Timeout => {}
            // A refusal is a response, too. If the server has ended, the next case says so.
            _ => {
                let after = begin.elapsed().as_secs_f64();
                globals.note(&format!(
                    "the server did not respond to {case}; it responds again after {after:.1} s"
                ));
                return Ok(());
            }
        }
    }
    let message = format!("the server does not respond any more: the last request was {case}");
    Err(Failure::new(Kind::Timeout, message))
}

/// Returns the major version that a server reports, if it reports one.
fn version(client: &Client) -> Result<Option<u8>, Failure> {
    match client.process_info() {
        Ok(info) => {
            let version = info.clr_product_version;
            // The response of .NET 5 has no field for the version.
            if version.as_text().is_null() {
                return Ok(Some(5));
            }
            Ok(version.to_utf8().and_then(|version| version.split('.').next()?.parse().ok()))
        }
        // .NET Core 3 does not know the commands that request process information.
        Err(e) if e.hresult() == Some(HResult::UNKNOWN_COMMAND) => Ok(Some(3)),
        // The cases show the error of the response.
        Err(e) if e.hresult().is_some() || e.kind() == ErrorKind::Protocol => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Returns the kind of the runtime. A runtime without profilers or dumps refuses their whole command set, not only the
/// unknown commands in it.
fn flavour(cases: &[Case], client: &Client, wire_log: &WireLog) -> Result<Flavour, Failure> {
    let has_none_of = |name: &str| -> Result<bool, Failure> {
        let Some(case) = cases.iter().find(|case| case.name == name) else { return Ok(false) };
        let answer = ask(case, client, client.timeouts().call, wire_log, &CaseCounts::default())?;
        let refusal =
            answer.as_ref().and_then(ReceivedAnswer::message).filter(|message| message.code == Code::ERROR);
        Ok(refusal.is_some_and(|refusal| refusal.decode() == Ok(HResult::NOT_SUPPORTED)))
    };
    Ok(match has_none_of(PROFILERS)? {
        false => Flavour::CoreClr,
        true if has_none_of(DUMPS)? => Flavour::Mono,
        true => Flavour::NativeAot,
    })
}

/// Returns the answer to a case; `None` if the transport cannot carry the case.
fn ask(
    case: &Case,
    client: &Client,
    timeout: Duration,
    wire_log: &WireLog,
    counts: &CaseCounts,
) -> Result<Option<ReceivedAnswer>, Failure> {
    let connect = || {
        let now = Instant::now();
        let stream = client.connect().map_err(std::io::Error::other)?.into_stream();
        Ok(stream.with_deadline(now.checked_add(timeout).unwrap_or(now)))
    };
    let answer = match conformance::send(case, wire_log.observer().as_ref(), connect) {
        Err(e) if e.kind() == std::io::ErrorKind::Unsupported => return Ok(None),
        answer => answer,
    };
    answer.map(Some).map_err(|e| {
        // The case could not be sent. A second connection shows whether the server exists: if not, it never existed, or
        // it ended on an earlier case.
        match client.connect() {
            Err(e) if counts.tried == 0 => e.into(),
            Err(_) => {
                let tried = counts.tried;
                Failure::new(
                    Kind::Gone,
                    format!("the server went away before {}, after {tried} cases", case.name),
                )
            }
            Ok(_) => Failure::io(format_args!("cannot try {}", case.name), &e),
        }
    })
}

fn show(difference: &Difference, globals: &Globals) -> Result<(), Failure> {
    if globals.json {
        let Difference { case, expected, answered, .. } = difference;
        json_to_stdout(&DifferenceRow { case, expected, answered })
    } else {
        to_stdout(|out| writeln!(out, "{difference}"))
    }
}

fn summary(counts: &CaseCounts, globals: &Globals) -> Result<(), Failure> {
    let CaseCounts { tried, different, deadly, unseen, half_close } = counts;
    if globals.json {
        return json_to_stdout(counts);
    }
    to_stdout(|out| {
        write!(out, "{tried} cases, {different} differences")?;
        if *deadly > 0 {
            write!(out, "; {deadly} not tried without --deadly")?;
        }
        if *unseen > 0 {
            write!(out, "; {unseen} not tried: no response of such a runtime is recorded")?;
        }
        if *half_close > 0 {
            write!(out, "; {half_close} not tried: {}", NotTried::HalfClose)?;
        }
        writeln!(out)
    })
}
