//! The events that a rewrite keeps, and the version in which it writes them.
use crate::describe::Metadata;
use crate::encoding::Str;
use crate::parse::Version;

/// The events of a stream to keep, and the form of the result. The default keeps the stream as it is.
#[derive(Debug, Clone, Copy)]
pub struct RewriteOptions<'o> {
    /// The events to keep; an empty slice keeps all.
    pub only: &'o [EventSelector<'o>],
    /// The first timestamp to keep, in ticks. Events that name code are kept at any time, if `only` selects them.
    pub from: u64,
    /// The last timestamp to keep.
    pub to: u64,
    /// The version of the result: V4 or V6. `None` is the version of the source, or V4 if the source is V3.
    pub version: Option<Version>,
    /// Removes the command line from `ProcessInfo`, `RuntimeInformationStart`, and all other events with a field of
    /// that name, such as `CommandLine` or `cmdline`: the string becomes empty. If the field is not a string that can be
    /// cut out, or the payload does not match its description, for example because bytes follow the last field, the
    /// whole payload is removed. V6: also removes labels, attributes and pairs of the trace with such a name.
    ///
    /// Parts that may have a command line are removed too: the payload of an event whose description is missing,
    /// damaged or without fields, of a `ProcessInfo` or `RuntimeInformationStart` whose description has no command
    /// line, and a description that cannot be read; V6: the payload that names a process, if the name has a space.
    /// [`RewriteCounts::unjudged`](crate::RewriteCounts::unjudged) counts these. Events of the runtime need no
    /// description.
    ///
    /// Nothing else is removed: addresses, queries, messages of exceptions and paths of modules in events remain.
    pub strip_command_line: bool,
}

impl Default for RewriteOptions<'_> {
    fn default() -> Self {
        Self { only: &[], from: 0, to: u64::MAX, version: None, strip_command_line: false }
    }
}

impl RewriteOptions<'_> {
    /// Returns whether the result can have events from outside of the times to keep, because they name code. A
    /// [`TimeFilter`](crate::TimeFilter) must not skip any block then.
    #[must_use]
    pub fn keeps_names(&self) -> bool {
        let names = |only: &EventSelector<'_>| {
            can_name_code(|name| only.provider.eq_ignore_ascii_case(name), only.event_id)
        };
        self.only.is_empty() || self.only.iter().any(names)
    }

    pub(super) const fn keeps_all(&self) -> bool {
        self.only.is_empty() && self.from == 0 && self.to == u64::MAX
    }
}

/// Selects all events of a provider, or only the events of the provider with one id or name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventSelector<'o> {
    /// The provider's name. As in runtimes, the case of ASCII letters is ignored.
    pub provider: &'o str,
    /// The event's id; `None` selects all ids.
    pub event_id: Option<u32>,
    /// The event's name, in any case of ASCII letters; `None` selects all names. With the feature `clr`, the runtime's
    /// own events have the names of `clr::describe`.
    pub event_name: Option<&'o str>,
}

impl EventSelector<'_> {
    /// Returns whether the events that `metadata` describes are selected.
    #[must_use]
    pub fn keeps(&self, metadata: &Metadata<'_>) -> bool {
        let is = |text: Str<'_>, name: &str| {
            let lower = |c: char| c.to_ascii_lowercase();
            text.chars().map(lower).eq(name.chars().map(lower))
        };
        self.event_id.is_none_or(|id| id == metadata.event_id)
            && is(metadata.provider, self.provider)
            && self.event_name.is_none_or(|name| is(name_of(metadata), name))
    }
}

#[cfg(feature = "clr")]
fn name_of<'m>(metadata: &Metadata<'m>) -> Str<'m> {
    crate::clr::describe(*metadata, 8).name
}

#[cfg(not(feature = "clr"))]
const fn name_of<'m>(metadata: &Metadata<'m>) -> Str<'m> {
    metadata.name
}

/// The providers whose events all name code, or the process that ran it.
const NAMING: [&str; 3] =
    ["Microsoft-Windows-DotNETRuntimeRundown", "Microsoft-DotNETCore-EventPipe", "Universal.System"];
/// The provider that also has other events.
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// Returns whether the events that `metadata` describes name code.
pub(super) fn names_code(metadata: &Metadata<'_>) -> bool {
    can_name_code(|name| metadata.provider == *name, Some(metadata.event_id))
}

/// Returns whether events of a provider name code: the events with this id, or any of its events if there is no id.
pub(super) fn can_name_code(is_provider: impl Fn(&str) -> bool, event_id: Option<u32>) -> bool {
    // Loads and unloads of methods, and of modules, assemblies and domains.
    let is_load = event_id.is_none_or(|id| matches!(id, 141..=144 | 151..=157));
    NAMING.iter().any(|name| is_provider(name)) || (is_load && is_provider(RUNTIME))
}
