//! `env`: the environment of a process.
use std::io::{self, IsTerminal};

use ipc_std::Environment;
use serde_json::map::Entry;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::output::{json_to_stdout, printable, to_stdout};
use crate::{Globals, runtime, wire_log};

/// Print the environment of a process, as the runtime has it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
On a terminal control characters are shown escaped; into a pipe everything is as it is.

With --json: {\"environment\": {NAME: VALUE}, \"other\": [ENTRY]}. Of two equal names
the first counts; later ones, and entries without a name, stand in \"other\".

Examples:
  dotnet-ipc env 4242 | sort
  dotnet-ipc env 4242 --json | jq -r .environment.PATH")]
pub(crate) struct Args {
    #[command(flatten)]
    target: runtime::Target,
    #[command(flatten)]
    wire_log: wire_log::LogFile,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let wire_log = args.wire_log.open()?;
    let environment = args.target.client(globals.limits.timeouts(), &wire_log)?.environment()?;
    if globals.output.json {
        json_to_stdout(&sorted_out(&environment))?;
    } else {
        // Other programs get it as it is.
        let is_terminal = io::stdout().is_terminal();
        let shown = |entry: String| if is_terminal { printable(&entry).into_owned() } else { entry };
        let mut entries = environment.entries().iter().map(ToString::to_string);
        to_stdout(|out| entries.try_for_each(|entry| writeln!(out, "{}", shown(entry))))?;
    }
    wire_log.check()
}

/// What has a name of its own, and what has not.
fn sorted_out(environment: &Environment) -> Value {
    let mut named = Map::new();
    let mut other = Vec::new();
    for entry in environment.entries() {
        match Environment::split(entry.as_text()).map(|(name, value)| (named.entry(name.to_string()), value))
        {
            Some((Entry::Vacant(free), value)) => {
                free.insert(value.to_string().into());
            }
            _ => other.push(entry.to_utf8()),
        }
    }
    json!({ "environment": named, "other": other })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_two_equal_names_wins() {
        let environment = Environment::from_entries(["A=1", "odd", "=C:=C:\\x", "A=2", "B=", "=", ""]);
        assert_eq!(
            sorted_out(&environment).to_string(),
            r#"{"environment":{"A":"1","=C:":"C:\\x","B":""},"other":["odd","A=2","=",""]}"#
        );
    }
}
