//! `env`: prints the environment of a process.
use std::io::{self, IsTerminal, Write};

use ipc_proto::Text;
use ipc_proto::types::EnvironmentEntry;
use ipc_std::Environment;

use crate::output::stdout::to_stdout;
use crate::process::connection_args::ConnectionArgs;
use crate::process::target::TargetArgs;
use crate::run::{Failure, Globals};
use crate::text::printable::{printable, write_json_string};

/// Print the environment of a process
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("env.txt"))]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    args.connection.call(args.target.target(), |client| {
        let environment = client.environment()?;
        // Values are escaped only on a terminal. Other programs read the values unchanged.
        let is_terminal = io::stdout().is_terminal();
        // Entries are written one by one, because an environment can have millions.
        to_stdout(|out| match globals.json {
            true => write_json(&environment, out),
            false => environment.entries().try_for_each(|entry| match is_terminal {
                true => writeln!(out, "{}", printable(&entry.to_string())),
                false => writeln!(out, "{entry}"),
            }),
        })
    })
}

/// Writes the environment as JSON: the variables by name, and the other entries.
fn write_json(environment: &Environment, out: &mut dyn Write) -> io::Result<()> {
    let named = environment.entries().enumerate().filter_map(|(index, entry)| {
        EnvironmentEntry::parse(entry).map(|EnvironmentEntry { name, .. }| (index, name))
    });
    let mut by_name: Vec<(usize, Text<'_>)> = named.collect();
    // Sorted by characters, not by code units: names that differ only in lone surrogates are equal in JSON.
    by_name.sort_unstable_by(|(i, a), (j, b)| a.chars().cmp(b.chars()).then(i.cmp(j)));
    // Of several entries with the same name, only the first is a variable.
    let same = |(_, a): &(usize, Text<'_>), (_, b): &(usize, Text<'_>)| a.chars().eq(b.chars());
    let mut variables: Vec<usize> =
        by_name.chunk_by(same).filter_map(<[_]>::first).map(|(index, _)| *index).collect();
    drop(by_name);
    variables.sort_unstable();

    let entries = |is_variable: bool| {
        let mut variables = variables.iter().copied().peekable();
        let entries = environment.entries().enumerate();
        let entries = entries.filter(move |(index, _)| variables.next_if_eq(index).is_some() == is_variable);
        entries.map(|(_, entry)| entry)
    };
    write!(out, "{{\"environment\":{{")?;
    let mut separator = "";
    for EnvironmentEntry { name, value } in entries(true).filter_map(EnvironmentEntry::parse) {
        out.write_all(separator.as_bytes())?;
        separator = ",";
        write_json_string(out, name.chars())?;
        write!(out, ":")?;
        write_json_string(out, value.chars())?;
    }
    write!(out, "}},\"other\":[")?;
    separator = "";
    for entry in entries(false) {
        out.write_all(separator.as_bytes())?;
        separator = ",";
        match entry.non_null() {
            Some(entry) => write_json_string(out, entry.chars())?,
            None => write!(out, "null")?,
        }
    }
    writeln!(out, "]}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(environment: &Environment) -> String {
        let mut json = Vec::new();
        write_json(environment, &mut json).unwrap();
        String::from_utf8(json).unwrap()
    }

    #[test]
    fn the_first_of_two_equal_names_wins() {
        let entries = ["A=1", "odd", "=C:=C:\\x", "A=2", "B=", "=", ""];
        assert_eq!(
            json(&Environment::from_entries(entries)),
            "{\"environment\":{\"A\":\"1\",\"=C:\":\"C:\\\\x\",\"B\":\"\"},\"other\":[\"odd\",\"A=2\",\"=\",\"\"]}\n"
        );
        let lone: Vec<u16> = [0xd800, b'='.into(), b'1'.into()].to_vec();
        let other: Vec<u16> = [0xdc00, b'='.into(), b'2'.into()].to_vec();
        let entries =
            [Text::from_utf16(&lone), Text::from_utf16(&other), Text::NULL, "\u{1f600}==\u{202e}".into()];
        assert_eq!(
            json(&Environment::from_entries(entries)),
            "{\"environment\":{\"\u{fffd}\":\"1\",\"\u{1f600}\":\"=\\u202e\"},\"other\":[\"\u{fffd}=2\",null]}\n",
            "names that are equal in JSON"
        );
    }
}
