//! A verdict of a diagnosis.
use serde_json::{Value, json};

/// How much a finding hurts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    High,
    Medium,
}

impl Severity {
    const fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
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
    pub(super) next: NextCommand,
}

impl Finding {
    pub(crate) fn to_json(&self, target: &FindingTarget) -> Value {
        json!({
            "kind": self.kind,
            "severity": self.severity.name(),
            "evidence": self.evidence,
            "method": self.method,
            "next": self.next_command(target),
        })
    }

    /// Returns the severity, the kind and the evidence.
    pub(crate) fn text(&self) -> String {
        format!("[{}] {}: {}", self.severity.name(), self.kind.replace('_', " "), self.evidence)
    }

    pub(crate) fn next_command(&self, target: &FindingTarget) -> String {
        let next = if target.is_file { self.next.of_file } else { self.next.of_process };
        let process_id = || target.process_id.map_or_else(|| "PID".to_owned(), |id| id.to_string());
        next.replace("TARGET", &target.argument).replace("PID", &process_id())
    }
}

/// The command that shows more. `TARGET` stands for the process or the file, `PID` for the id of the process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextCommand {
    of_process: &'static str,
    of_file: &'static str,
}

impl NextCommand {
    /// A command about a process or a file.
    pub(super) const fn of(command: &'static str) -> Self {
        Self { of_process: command, of_file: command }
    }

    /// A command that shows the stacks of a process at this moment. A file has samples instead.
    pub(super) const fn stacks(of_process: &'static str) -> Self {
        Self { of_process, of_file: "dotnet-ipc report TARGET --wall --by own" }
    }
}

/// What the next command is about.
pub(crate) struct FindingTarget {
    /// The process or the file, as a word of a command line.
    pub(crate) argument: String,
    pub(crate) process_id: Option<u32>,
    pub(crate) is_file: bool,
}
