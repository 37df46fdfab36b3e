//! `dotnet-ipc`: inspects, traces and controls running .NET processes over their diagnostic sockets.

/// Arguments that several commands have, and their parsers.
mod args {
    pub(crate) mod clock_args;
    pub(crate) mod command_code;
    pub(crate) mod comparison;
    pub(crate) mod frame_args;
    pub(crate) mod process_arg;
    pub(crate) mod socket_path;
    pub(crate) mod symbol_args;
    pub(crate) mod time_range_args;
    pub(crate) mod timeout_args;
    pub(crate) mod until_event;
    pub(crate) mod zone_args;
}

#[macro_use]
mod command_list;

/// The commands, each in a file of its own, by the groups of the help.
mod commands {
    commands! {
        "Find processes" {
            Ps(ps),
            Find(find),
            #[cfg(unix)] Clean(clean),
        }
        "Look at a process" {
            Info(info),
            Env(env),
            Stack(stack),
            Top(top),
            Counters(counters),
        }
        "Record a process" {
            Trace(trace),
            Monitor(monitor),
            Dump(dump),
            PerfMap(perf_map),
            EventpipeEnv(eventpipe_env),
            ListProfiles(list_profiles),
        }
        "Analyse a process or a trace" {
            Diagnose(diagnose),
            Report(report),
            Flame(flame),
            Requests(requests),
            Gc(gc),
            Heap(heap),
            Jit(jit),
            Locks(locks),
            Events(events),
            Stats(stats),
            Rewrite(rewrite),
        }
        "Control a process" {
            Resume(resume),
            SetEnv(set_env),
            StartupHook(startup_hook),
            AttachProfiler(attach_profiler),
            StartupProfiler(startup_profiler),
        }
        "For authors of runtimes and tools" {
            FakeRuntime(fake_runtime),
            Conformance(conformance),
            Decode(decode),
        }
        "Learn and set up" {
            Demo(demo),
            Completions(completions),
            #[command(hide = true)] Man(man),
        }
    }
}

/// Samples of counters: where they come from, and how they are shown.
mod counters {
    pub(crate) mod condition;
    mod coverage;
    mod descriptions;
    mod distribution;
    pub(crate) mod event_sources;
    pub(crate) mod feed;
    mod http_connection;
    pub(crate) mod http_server;
    mod http_text;
    pub(crate) mod lines;
    pub(crate) mod otlp;
    pub(crate) mod output;
    pub(crate) mod problems;
    /// The text format of Prometheus.
    pub(crate) mod prometheus {
        pub(crate) mod exposition;
        mod labels;
        mod names;
        mod series;
    }
    pub(crate) mod report;
    mod series_details;
    pub(crate) mod series_filter;
    mod session_reports;
    mod shares;
    pub(crate) mod table;
    pub(crate) mod text_file;
    pub(crate) mod trace_reports;
    mod unique_labels;
    pub(crate) mod units;
    pub(crate) mod watch;
}

/// The problems of a process: evidence, figures and rules.
mod diagnosis {
    pub(crate) mod evidence;
    mod fact;
    pub(crate) mod facts;
    pub(crate) mod figures;
    pub(crate) mod finding;
    pub(crate) mod rules;
    mod stretch;
    pub(crate) mod system_figures;
    mod trend;
}

/// Events of a trace as text and JSON.
mod events {
    pub(crate) mod digest;
    pub(crate) mod field;
    pub(crate) mod field_template;
    pub(crate) mod json;
    mod line_buffer;
    pub(crate) mod lines;
    pub(crate) mod native_path;
    pub(crate) mod plain_text;
    pub(crate) mod stack_names;
    pub(crate) mod stack_texts;
    pub(crate) mod summary;
    pub(crate) mod templates;
}

/// The files that `flame` writes: a page with a graph, and files for other tools.
mod flame {
    pub(crate) mod flame_file;
    mod flame_page;
    mod folded;
    mod output;
    mod outputs;
    mod text_writer;
}

mod grouped_help;

/// Traces and other files to read.
mod input {
    pub(crate) mod reading_progress;
    pub(crate) mod source;
    pub(crate) mod symbol_file;
    pub(crate) mod trace_file;
}

/// Results: on standard output, and in files.
mod output {
    pub(crate) mod atomic_output;
    pub(crate) mod bulk_stdout;
    pub(crate) mod dates;
    pub(crate) mod direct_stdout;
    pub(crate) mod field;
    pub(crate) mod integer;
    mod link;
    pub(crate) mod live_stderr;
    pub(crate) mod live_stdout;
    pub(crate) mod output_file;
    pub(crate) mod rows;
    pub(crate) mod session_output;
    pub(crate) mod stdout;
    pub(crate) mod tables;
}

/// The process that a command is about: how the command line names it, how it is reached and described.
mod process {
    pub(crate) mod connection_args;
    pub(crate) mod cpu_lines;
    pub(crate) mod cpu_usage;
    pub(crate) mod descriptors;
    pub(crate) mod memory;
    pub(crate) mod process_fields;
    pub(crate) mod process_name;
    pub(crate) mod profiler;
    pub(crate) mod reasons;
    pub(crate) mod request_args;
    pub(crate) mod system_process;
    pub(crate) mod system_threads;
    pub(crate) mod target;
    pub(crate) mod trace_target;
    pub(crate) mod wire_log;
}

/// Recording: what `trace`, `events`, `monitor` and the analyses of a process have in common.
mod recording {
    pub(crate) mod analysis_input;
    pub(crate) mod args;
    mod counter;
    pub(crate) mod findings;
    pub(crate) mod names_first;
    pub(crate) mod output;
    pub(crate) mod part_args;
    pub(crate) mod progress;
    pub(crate) mod record;
    pub(crate) mod rundown;
    pub(crate) mod sample_gaps;
    pub(crate) mod session;
    pub(crate) mod session_failure;
    pub(crate) mod stopped_session;
    pub(crate) mod summary;
    pub(crate) mod thread_samples;
    pub(crate) mod trace_profile;
}

/// The run of a command: its global options, signals, threads, memory, remarks and failures.
mod run {
    pub(crate) mod allocator;
    pub(crate) mod changed_terminal;
    pub(crate) mod failure;
    pub(crate) mod globals;
    #[cfg(unix)]
    mod signal_listener;
    pub(crate) mod signals;
    pub(crate) mod stderr;
    pub(crate) mod stops;
    pub(crate) mod temporary_file;
    pub(crate) mod threads;
    pub(crate) mod worker;

    pub(crate) use self::failure::{Failure, Kind};
    pub(crate) use self::globals::Globals;
}

/// The terminal of the tool: a full screen, its keys, and progress bars.
mod terminal {
    pub(crate) mod foreground;
    pub(crate) mod full_screen;
    pub(crate) mod narrow_terminal;
    pub(crate) mod screen_table;
}

/// Text for people: without the characters that control a terminal, and cut to its columns.
mod text {
    pub(crate) mod columns;
    pub(crate) mod date;
    pub(crate) mod function_name;
    pub(crate) mod printable;
    pub(crate) mod terminal_text;
}

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};

use crate::commands::{Command, GROUPS};
use crate::grouped_help::{WIDTH, grouped_help};
use crate::output::live_stdout::LiveStdout;
use crate::run::{Globals, allocator, failure, signals};

/// Inspect, trace and control running .NET processes
///
/// Most commands take the process ID of a runtime, or the path of its diagnostic socket with --socket.
#[derive(Debug, Parser)]
#[command(name = "dotnet-ipc", bin_name = "dotnet-ipc", version, max_term_width = WIDTH)]
#[command(after_help = include_str!("main.txt"))]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

/// Returns the command line with all commands.
fn cli() -> clap::Command {
    grouped_help(Cli::command(), GROUPS)
}

fn main() -> ExitCode {
    signals::refuse_long_files();
    let Cli { mut globals, command } =
        match cli().try_get_matches().and_then(|args| Cli::from_arg_matches(&args)) {
            Ok(cli) => cli,
            Err(e) => return failure::report_usage(&e),
        };
    globals.cli = cli;
    allocator::write_errors_as_json(globals.json);
    let result = command.run(&globals);
    let written = LiveStdout::get().map_or(Ok(()), LiveStdout::finish);
    result.and_then(|code| written.map(|()| code)).unwrap_or_else(|failure| failure.report(&globals))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command is in the help by its group, which names its module.
    #[test]
    fn each_command_has_a_group() {
        let grouped = GROUPS.iter().flat_map(|(_, modules)| *modules).map(|module| module.replace('_', "-"));
        let cli = cli();
        let commands = cli.get_subcommands().map(|command| command.get_name().to_owned());
        assert_eq!(grouped.collect::<Vec<_>>(), commands.collect::<Vec<_>>());
    }

    /// A longer line would be broken into a line and a word. Commands are not broken.
    #[test]
    fn texts_after_the_options_fit_80_columns() {
        for command in Cli::command().get_subcommands() {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in text.lines().filter(|line| !line.starts_with("  dotnet-ipc ")) {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            }
        }
    }
}
