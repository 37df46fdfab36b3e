//! `conformance`: whether a server answers as it should.
use core::time::Duration;
use std::time::Instant;

use clap::ValueEnum;
use ipc_proto::plan::Flavour;
use ipc_proto::{Code, HResult};
use ipc_std::conformance::{self, Against, Answer, Case, Difference, Seen, State};
use ipc_std::{Client, Stream};
use serde_json::json;

use crate::failure::{Failure, Kind};
use crate::output::{json_to_stdout, to_stdout};
use crate::{Globals, runtime, wire_log};

/// Send a server hundreds of requests, good and bad, and list what it answers wrongly
#[derive(Debug, clap::Args)]
#[command(after_help = "\
One line a difference, a count at the end, exit status 8 if there are differences.
Without --as a careful server is expected, of the .NET version that it says it has
and of the kind that its refusals show.
With --as, what such a runtime was seen to answer counts as right.

Some requests are known to end real runtimes, or to leave them hanging; they are
sent only with --deadly. Others start sessions, which are stopped, set variables and
switch perf maps on. --timeout is for each answer.

Examples:
  dotnet-ipc conformance 4242 --as net10
  dotnet-ipc conformance --socket /tmp/my-server.sock --deadly --json")]
pub(crate) struct Args {
    #[command(flatten)]
    target: runtime::Target,
    /// Which runtime it should answer like
    #[arg(long = "as", value_enum, default_value = "ours", value_name = "KIND")]
    kind: Kinds,
    /// What it is doing; a suspended one is resumed in the end
    #[arg(long, value_enum, default_value = "running")]
    state: States,
    /// Send what ends real runtimes, too
    #[arg(long)]
    deadly: bool,
    #[command(flatten)]
    wire_log: wire_log::LogFile,
}

/// What a server can be expected to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kinds {
    Net10,
    Net9,
    Net8,
    Net9Aot,
    Net31,
    /// A careful one.
    Ours,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum States {
    Running,
    Suspended,
}

/// How long is waited for an answer that does not come from such a runtime.
const NEVER: Duration = Duration::from_secs(1);

/// After so many cases without an answer the others are not tried: the server hangs.
const HANGS: u8 = 3;

/// The cases of a command that nobody knows, in the sets of commands that some runtimes do not have.
const PROFILERS: &str = "empty/03ff";
const DUMPS: &str = "empty/01ff";

/// What came of the cases.
#[derive(Debug, Default)]
struct Counts {
    tried: usize,
    different: usize,
    /// Not tried, as they are deadly.
    deadly: usize,
    /// Not tried, as nobody has seen what such a runtime answers.
    unseen: usize,
    /// The last ones that had no answer, although they should have.
    silent: u8,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let wire_log = args.wire_log.open()?;
    let client = args.target.client(globals.limits.timeouts(), &wire_log)?;
    let state = match args.state {
        States::Running => State::Running,
        States::Suspended => State::Suspended,
    };
    let kind = args.kind.name();
    // Which careful server it is compared with; one of no known age knows every command.
    let (version, flavour) = match kind {
        Some(_) => (None, Flavour::CoreClr),
        None => (version(&client)?, flavour(&client, &wire_log)?),
    };
    if let Some(version) = version {
        let core = if version < 5 { "Core " } else { "" };
        let flavour = match flavour {
            Flavour::CoreClr => "",
            Flavour::Mono => " (Mono)",
            _ => " (NativeAOT)",
        };
        globals.output.note(&format!("compared with a careful server of .NET {core}{version}{flavour}"));
    }
    let mut counts = Counts::default();
    let cases = conformance::cases().into_iter().filter(|case| case.state == state && case.can_be_sent());
    for case in cases {
        let deadly = kind.map_or_else(|| case.is_deadly(), |kind| case.is_deadly_for(kind));
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
            None => case.of(version.unwrap_or(u8::MAX), flavour),
        };
        let waits = seen.is_some_and(|seen| seen.contains(&Seen::Waits));
        let timeout = client.timeouts().call;
        let timeout = if waits { timeout.min(NEVER) } else { timeout };
        let answer = ask(&case, &client, timeout, &wire_log, &counts)?;
        counts.tried = counts.tried.saturating_add(1);
        if let Err(difference) = case.judge(kind.map_or(Against::Expected, Against::Observed), &answer) {
            counts.different = counts.different.saturating_add(1);
            show(&difference, globals)?;
        }
        counts.silent = if answer == Answer::Silence && !waits { counts.silent.saturating_add(1) } else { 0 };
        if counts.silent == HANGS {
            let message =
                format!("the server did not answer {} nor the {} cases before it", case.name, HANGS - 1);
            return Err(Failure::new(Kind::Timeout, message));
        }
    }
    summary(&counts, globals)?;
    wire_log.check()?;
    match counts.different {
        0 => Ok(()),
        different => {
            let message = format!("{different} of {} answers are not what they should be", counts.tried);
            Err(Failure::new(Kind::Different, message))
        }
    }
}

impl Kinds {
    /// Its name in the data; `None` for a careful server.
    const fn name(self) -> Option<&'static str> {
        match self {
            Self::Net10 => Some("net10"),
            Self::Net9 => Some("net9"),
            Self::Net8 => Some("net8"),
            Self::Net9Aot => Some("net9-aot"),
            Self::Net31 => Some("net31"),
            Self::Ours => None,
        }
    }
}

/// The major version that a server says it has; `None` if it does not say.
fn version(client: &Client) -> Result<Option<u8>, Failure> {
    match client.process_info() {
        Ok(info) => {
            let version = info.clr_product_version;
            // .NET 5 has no place for it in its answer.
            if version.as_text().is_null() {
                return Ok(Some(5));
            }
            Ok(version.to_utf8().and_then(|version| version.split('.').next()?.parse().ok()))
        }
        // .NET Core 3 knows none of the commands that ask for it.
        Err(e) if e.hresult() == Some(HResult::UNKNOWN_COMMAND) => Ok(Some(3)),
        Err(e) if e.hresult().is_some() => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// What kind of runtime it is: one without profilers or dumps refuses the whole command set, and not only the commands
/// that nobody knows.
fn flavour(client: &Client, wire_log: &wire_log::WireLog) -> Result<Flavour, Failure> {
    let has_none_of = |name: &str| -> Result<bool, Failure> {
        let Some(case) = conformance::cases().into_iter().find(|case| case.name == name) else {
            return Ok(false);
        };
        let answer = ask(&case, client, client.timeouts().call, wire_log, &Counts::default())?;
        let refusal = answer.message().filter(|message| message.code == Code::ERROR);
        Ok(refusal.is_some_and(|refusal| refusal.decode() == Ok(HResult::NOT_SUPPORTED)))
    };
    Ok(match has_none_of(PROFILERS)? {
        false => Flavour::CoreClr,
        true if has_none_of(DUMPS)? => Flavour::Mono,
        true => Flavour::NativeAot,
    })
}

fn ask(
    case: &Case,
    client: &Client,
    timeout: Duration,
    wire_log: &wire_log::WireLog,
    counts: &Counts,
) -> Result<Answer, Failure> {
    let connect = || {
        let now = Instant::now();
        Stream::connect(client.path(), now.checked_add(timeout).unwrap_or(now))
    };
    conformance::ask(case, wire_log.observer().as_ref(), connect).map_err(|e| {
        // Nobody was there in the first place, or it ended on an earlier case.
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
    if globals.output.json {
        let Difference { case, expected, answered, .. } = difference;
        json_to_stdout(&json!({ "case": case, "expected": expected, "answered": answered }))
    } else {
        to_stdout(|out| writeln!(out, "{difference}"))
    }
}

fn summary(counts: &Counts, globals: &Globals) -> Result<(), Failure> {
    let Counts { tried, different, deadly, unseen, .. } = counts;
    if globals.output.json {
        return json_to_stdout(
            &json!({ "cases": tried, "differences": different, "deadly": deadly, "unseen": unseen }),
        );
    }
    to_stdout(|out| {
        write!(out, "{tried} cases, {different} differences")?;
        if *deadly > 0 {
            write!(out, "; {deadly} not tried without --deadly")?;
        }
        if *unseen > 0 {
            write!(out, "; {unseen} not tried: nobody has seen what such a runtime answers")?;
        }
        writeln!(out)
    })
}
