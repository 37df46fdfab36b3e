//! A verdict of a diagnosis.
use serde_json::{Value, json};

/// How much a finding hurts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    High,
    Medium,
}

impl Severity {
    pub(super) const fn high_if(is_high: bool) -> Self {
        if is_high { Self::High } else { Self::Medium }
    }

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
    evidence: String,
    pub(super) method: Option<String>,
    /// The commands that show more of a process and of a file. `TARGET` stands for the process or the file, `PID` for
    /// the id of the process.
    next: [&'static str; 2],
}

impl Finding {
    /// A finding without a method, and without a command that shows more.
    pub(super) const fn new(kind: &'static str, severity: Severity, evidence: String) -> Self {
        Self { kind, severity, evidence, method: None, next: [""; 2] }
    }

    pub(super) fn in_method(self, method: impl Into<Option<String>>) -> Self {
        Self { method: method.into(), ..self }
    }

    /// Sets the command that shows more.
    pub(super) fn see(self, command: &'static str) -> Self {
        Self { next: [command; 2], ..self }
    }

    /// Sets a command that shows the stacks of a process at this moment. A file has samples instead.
    pub(super) fn see_stacks(self, command: &'static str) -> Self {
        Self { next: [command, "dotnet-ipc report TARGET --wall --by own"], ..self }
    }

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
        let [of_process, of_file] = self.next;
        let next = if target.is_file { of_file } else { of_process };
        let process_id = || target.process_id.map_or_else(|| "PID".to_owned(), |id| id.to_string());
        next.replace("TARGET", &target.argument).replace("PID", &process_id())
    }
}

/// What the next command is about.
pub(crate) struct FindingTarget {
    /// The process or the file, as a word of a command line.
    pub(crate) argument: String,
    pub(crate) process_id: Option<u32>,
    pub(crate) is_file: bool,
}
