//! A verdict of a diagnosis.
use nettrace_analysis::account::Blame;
use serde::Serialize;

use super::facts::Facts;

/// How much a finding hurts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    High,
    Medium,
    Info,
}

impl Severity {
    pub(super) const fn high_if(is_high: bool) -> Self {
        if is_high { Self::High } else { Self::Medium }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Info => "info",
        }
    }
}

/// Something that hurts, with its evidence, the method that causes it if it is known, and the command that shows more.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(super) kind: &'static str,
    pub(super) severity: Severity,
    pub(super) evidence: String,
    pub(super) method: Option<String>,
    /// The commands that show more of a process and of a file. `TARGET` stands for the process or the file, `PID` for
    /// the id of the process.
    next: [&'static str; 2],
}

/// A finding as a row of the output.
#[derive(Debug, Serialize)]
pub(crate) struct FindingRow<'a> {
    kind: &'a str,
    severity: Severity,
    evidence: &'a str,
    method: Option<&'a str>,
    next: String,
    process_id: Option<u64>,
}

impl Finding {
    /// A finding without a method, and without a command that shows more.
    pub(super) const fn new(kind: &'static str, severity: Severity, evidence: String) -> Self {
        Self { kind, severity, evidence, method: None, next: [""; 2] }
    }

    pub(super) fn in_method(self, method: impl Into<Option<String>>) -> Self {
        Self { method: method.into(), ..self }
    }

    /// Sets the method that a blame names.
    pub(super) fn blame(self, blame: &Blame<'_>) -> Self {
        self.in_method(blame.method.as_ref().map(|method| method.name.to_owned()))
    }

    /// Sets the command that shows more.
    pub(super) fn see(self, command: &'static str) -> Self {
        Self { next: [command; 2], ..self }
    }

    /// Sets a command that shows the stacks of a process at this moment, and the one for a file.
    pub(super) fn see_stacks(self, command: &'static str, facts: &Facts<'_>) -> Self {
        Self { next: [command, facts.stacks_of_file()], ..self }
    }

    pub(crate) fn row(&self, target: &FindingTarget) -> FindingRow<'_> {
        FindingRow {
            kind: self.kind,
            severity: self.severity,
            evidence: &self.evidence,
            method: self.method.as_deref(),
            next: self.next_command(target),
            process_id: target.process_id,
        }
    }

    /// Returns the severity, the kind and the evidence.
    pub(crate) fn text(&self) -> String {
        format!("[{}] {}: {}", self.severity.name(), self.kind.replace('_', " "), self.evidence)
    }

    pub(crate) fn next_command(&self, target: &FindingTarget) -> String {
        let [of_process, of_file] = self.next;
        let next = if target.is_file { of_file } else { of_process };
        let process_id = || target.process_id.map_or_else(|| "PID".to_owned(), |id| id.to_string());
        next.replace("TARGET", &target.argument).replace("PID", &process_id())
    }
}

/// What the next command is about.
pub(crate) struct FindingTarget {
    /// The process or the file, as a word of a command line, with `--process` if the trace has several.
    pub(crate) argument: String,
    pub(crate) process_id: Option<u64>,
    pub(crate) is_file: bool,
}

/// Returns where something happens, as a part of a sentence after `before`: `62 % in A.B`, and without one method, the
/// first three. Empty if no stack has a method of the program.
pub(super) fn places(blame: &Blame<'_>, before: &str, preposition: &str) -> String {
    const SHOWN: usize = 3;
    const SMALL: f64 = 0.1;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let Some(innermost) = blame.innermost.first() else { return String::new() };
    let Some(method) = &blame.method else {
        let shown = blame.innermost.iter().take_while(|of| of.share >= SMALL / 10.0).take(SHOWN);
        let shown: Vec<_> =
            shown.map(|of| format!("{} {preposition} {}", percent(of.share), of.name)).collect();
        return format!("{before}no one method has more than a half: {}", shown.join(", "));
    };
    let (name, share) = (method.name, percent(method.share));
    if innermost.name == name || innermost.share < SMALL {
        return format!("{before}{share} {preposition} {name}");
    }
    format!("{before}{share} {preposition} {name} ({} in {})", percent(innermost.share), innermost.name)
}
