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
    /// The next command; `TARGET` stands for the process or the file.
    pub(super) next: &'static str,
}

impl Finding {
    pub(crate) fn to_json(&self, target: &str) -> Value {
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

    pub(crate) fn next_command(&self, target: &str) -> String {
        self.next.replace("TARGET", target)
    }
}
