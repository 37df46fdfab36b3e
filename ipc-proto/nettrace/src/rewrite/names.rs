//! Which events name code, so that a part of a trace needs them whatever their time is.
use crate::describe::Metadata;

/// The providers whose events all name code, or the process that ran it.
const NAMING: [&str; 3] =
    ["Microsoft-Windows-DotNETRuntimeRundown", "Microsoft-DotNETCore-EventPipe", "Universal.System"];
/// The provider that also has other events.
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// Returns whether the events that `metadata` describes name code.
pub(super) fn names_code(metadata: &Metadata<'_>) -> bool {
    can_name_code(|name| metadata.provider == *name, Some(metadata.event_id))
}

/// Returns whether events of a provider name code: those with this id, or some of them if there is none.
pub(super) fn can_name_code(is_provider: impl Fn(&str) -> bool, event_id: Option<u32>) -> bool {
    // Loads and unloads of methods, and of modules, assemblies and domains.
    let is_load = event_id.is_none_or(|id| matches!(id, 141..=144 | 151..=157));
    NAMING.iter().any(|name| is_provider(name)) || (is_load && is_provider(RUNTIME))
}
