//! The names of the processes of a trace.
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;

use nettrace::TraceEvent;

use super::threads::Threads;
use crate::event::{is_named, owned, text};
use crate::names::{cut, file_name, process_of};

/// The names of the processes of a trace.
#[derive(Debug, Default)]
pub(super) struct ProcessNames {
    names: BTreeMap<u64, String>,
    /// The process of the trace, once the first event was taken.
    trace_process: Option<Option<u64>>,
}

impl ProcessNames {
    /// Takes the first block of the trace, which can name the process of the trace (V6).
    pub(super) fn header(&mut self, event: &TraceEvent<'_>) {
        if self.trace_process.is_some() {
            return;
        }
        let trace = event.trace();
        self.trace_process = Some(trace.and_then(|trace| trace.process_id).map(u64::from));
        for (key, value) in trace.into_iter().flat_map(|trace| trace.pairs) {
            let value = owned(value);
            if key == "ProcessName" {
                self.add(0, Some(&value));
            } else if key == "CommandLine" {
                self.add(0, program_name(&value));
            }
        }
    }

    /// Takes an event that describes the session.
    pub(super) fn info(&mut self, event: &TraceEvent<'_>) {
        let command_line = text(event, "CommandLine").map(owned);
        self.add(process_of(event), command_line.as_deref().and_then(program_name));
    }

    /// Takes a row about a process of an operating system.
    pub(super) fn row(&mut self, event: &TraceEvent<'_>) {
        if ["ProcessCreate", "ExistingProcess"].iter().any(|name| is_named(event, name)) {
            let name = text(event, "Name").map(owned);
            self.add(process_of(event), name.as_deref());
        }
    }

    fn add(&mut self, process: u64, name: Option<&str>) {
        const MAX_NAME: usize = 255;
        let has_room = self.names.len() < Threads::LIMIT;
        if let Some(name) = name.filter(|name| has_room && !name.is_empty()) {
            self.names.insert(process, cut(name, MAX_NAME).to_owned());
        }
    }

    /// Returns the name of a process.
    pub(super) fn of(&self, process: u64) -> Option<&str> {
        // The process of the trace is 0 for threads that state no process.
        let of_trace = self.trace_process.flatten();
        let other = match process {
            0 => of_trace,
            _ => (of_trace == Some(process)).then_some(0),
        };
        let name = |process| self.names.get(&process).map(String::as_str);
        name(process).or_else(|| name(other?))
    }
}

/// Returns the name of the program that a command line runs: the file name of its first word, or of the assembly if
/// that is `dotnet`. Arguments are left out, because they can be secrets.
fn program_name(command_line: &str) -> Option<&str> {
    let (program, mut rest) = first_word(command_line)?;
    let name = without_suffix(file_name(program), ".exe");
    if name != "dotnet" {
        return Some(name);
    }
    while let Some((word, after)) = first_word(rest) {
        let assembly = file_name(word);
        match without_suffix(assembly, ".dll") {
            stem if stem.len() < assembly.len() => return Some(stem),
            _ => rest = after,
        }
    }
    Some(name)
}

/// Returns the first word, which can be in quotation marks, and the text that follows it.
fn first_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let split = match text.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
        None => text.split_once(' ').unwrap_or((text, "")),
    };
    (!text.is_empty()).then_some(split)
}

fn without_suffix<'t>(name: &'t str, suffix: &str) -> &'t str {
    let stem = name.len().checked_sub(suffix.len()).and_then(|len| name.split_at_checked(len));
    match stem {
        Some((stem, end)) if end.eq_ignore_ascii_case(suffix) => stem,
        _ => name,
    }
}
