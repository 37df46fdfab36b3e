//! Tests of help, completions and manual pages.

use tempfile::TempDir;

use crate::tool::{Ran, finish, tool};

fn run(args: &[&str]) -> Ran {
    finish(tool(args).env("COLUMNS", "80").spawn().unwrap())
}

/// Returns the names in the groups of commands.
pub(crate) fn commands() -> Vec<String> {
    let help = run(&["--help"]).well().into_text();
    let list = help.split_once("Usage: ").unwrap().1.split_once("\nExamples:\n").unwrap().0;
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .filter(|name| name != "help")
        .collect()
}

#[test]
fn every_help_fits_a_terminal_of_80_columns() {
    let commands = commands();
    assert!(commands.len() > 20, "{commands:?}");
    let pages = commands.iter().map(|command| vec![command.as_str(), "--help"]);
    for args in pages.chain([vec!["--help"]]) {
        let help = run(&args).well().into_text();
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{args:?}: {line}");
        }
        assert!(help.contains("Usage: dotnet-ipc "), "{help}");
    }
}

#[test]
fn commands_have_headings() {
    let help = run(&["--help"]).well().into_text();
    for (heading, command) in [
        ("Find processes", "ps                List running .NET processes"),
        ("Record a process", "trace             Record the events of a process to a .nettrace file"),
        (
            "For authors of runtimes and tools",
            "fake-runtime      Run a fake runtime for tests of other tools",
        ),
    ] {
        assert!(help.contains(&format!("\n\n{heading}:\n  {command}\n")), "{help}");
    }
    assert!(help.contains("[alias: convert]\n") && !help.contains("\n  man "), "{help}");
    assert_eq!(run(&["help"]).well().into_text(), help);
    assert_eq!(run(&[]).stderr, run(&["-h"]).well().into_text());
}

/// `completions` has a line of its own below the table, and `convert` is another name of `flame`.
#[test]
fn the_readme_has_every_command() {
    let readme = include_str!("../../README.md");
    let table = readme.split_once("| to | commands |\n|---|---|\n").unwrap().1.split_once("\n\n").unwrap().0;
    let mut named: Vec<_> = table.split('`').skip(1).step_by(2).filter(|name| *name != "convert").collect();
    named.push("completions");
    named.retain(|name| cfg!(unix) || *name != "clean"); // named pipes leave nothing behind
    named.sort_unstable();
    named.dedup(); // a command with two uses is in two rows
    let mut commands = commands();
    commands.sort_unstable();
    assert_eq!(named, commands);
}

/// Each command describes only its own options.
#[test]
fn a_deadline_is_described_for_its_command() {
    for (command, words) in [
        ("info", "Give up after DURATION [default: 10s]"),
        ("ps", "Wait DURATION for all runtimes together [default: 2s]"),
        ("dump", "Give up after DURATION [default: 10m]"),
        ("trace", "[default: 10s, 2m]"),
    ] {
        let help = run(&[command, "--help"]).well().into_text();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains(words), "{help}");
    }
    for command in ["decode", "stats", "rewrite", "demo", "fake-runtime", "completions"] {
        let help = run(&[command, "--help"]).well().into_text();
        assert!(!help.contains("--timeout"), "{help}");
    }
}

#[test]
fn usage_errors_name_the_help_of_their_command() {
    for (args, hint) in [
        (&["info"][..], "run `dotnet-ipc info --help` for usage"),
        (&["set-env", "--json", "4242"], "run `dotnet-ipc set-env --help` for usage"),
        (&["inform"], "run `dotnet-ipc --help` for usage"),
        (&["--nonsense"], "run `dotnet-ipc --help` for usage"),
    ] {
        run(args).fails(2, hint);
    }
}

#[test]
fn each_shell_has_completions() {
    for (shell, words) in [
        ("bash", "complete -F _dotnet"),
        ("zsh", "#compdef dotnet-ipc"),
        ("fish", "complete -c dotnet-ipc"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "edit:completion"),
    ] {
        let script = run(&["completions", shell]).well().into_text();
        assert!(script.contains(words) && script.contains("fake-runtime"), "{shell}");
    }
    run(&["completions", "cmd"]).fails(2, "bash");
}

#[test]
fn each_command_has_a_manual_page() {
    let directory = TempDir::new().unwrap();
    let pages = directory.path().join("man1");
    let pages = pages.to_str().unwrap();
    run(&["man", pages]).well();
    for name in
        commands().iter().map(|command| format!("dotnet-ipc-{command}.1")).chain(["dotnet-ipc.1".into()])
    {
        let page = std::fs::read_to_string(format!("{pages}/{name}")).unwrap();
        assert!(page.contains(".TH ") && page.contains("Examples:"), "{name}: {page}");
    }
    run(&["man", pages]).fails(1, "exists already");
    run(&["man", pages, "--overwrite"]).well();
}
