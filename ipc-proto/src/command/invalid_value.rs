//! [`InvalidValue`]: a value that runtimes refuse, with the rule that it breaks.
use core::fmt;

use super::field_path::FieldPath;
use super::violation::Violation;
use crate::HResult;

/// A value for which runtimes refuse a request: the rule that the value breaks, and the path of the value.
///
/// ```
/// use ipc_proto::types::{EventLevel, Format, Provider};
/// use ipc_proto::{Array, CollectTracing2, Command, Violation};
///
/// let provider = Provider { keywords: 1, level: EventLevel(4), name: "App".into(), arguments: "".into() };
/// let providers = [provider, Provider { level: EventLevel(6), ..provider }];
/// let providers = Array::from(&providers);
/// let start = CollectTracing2 { buffer_mb: 64, format: Format::NET_TRACE, rundown: true, providers };
/// let invalid = start.check().unwrap_err();
/// assert_eq!(invalid.violation, Violation::ProviderLevel);
/// assert_eq!(invalid.place.to_string(), "providers[1].level");
/// assert_eq!(invalid.to_string(), "providers[1].level: the level of a provider is above 5");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InvalidValue {
    /// The rule that the value breaks.
    pub violation: Violation,
    /// The path of the value, or of the list with too few or too many elements.
    pub place: FieldPath,
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.violation)
    }
}
impl core::error::Error for InvalidValue {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.violation)
    }
}
impl From<InvalidValue> for HResult {
    fn from(invalid: InvalidValue) -> Self {
        invalid.violation.hresult()
    }
}
