//! [`PayloadSpecs`], the argument `FilterAndPayloadSpecs` of the provider `Microsoft-Diagnostics-DiagnosticSource`.
use core::fmt;

use super::names::names;
use crate::endpoint::split_once;
use crate::sentences::sentences;
use crate::wire::number;

/// The lines of the argument `FilterAndPayloadSpecs` of the provider `Microsoft-Diagnostics-DiagnosticSource`.
///
/// Each line selects events of a `DiagnosticSource`, or activities of an `ActivitySource`, and what the provider
/// records of their payloads:
///
/// ```text
/// text       := line ("\n" line)*
/// line       := events (":" payload)?  |  "[AS]" activities (":" payload)?
/// events     := ""  |  SOURCE ("/" EVENT ("@" EVENT-OF-THE-PROVIDER)?)?
/// activities := (SOURCE | "*" | "") ("+" ACTIVITY)? ("/" ("Start" | "Stop")? ("-" sampling?)?)?
/// sampling   := "Propagate"  |  "Record"  |  "ParentRatioSampler(0.1)"  |  "ParentRateLimitingSampler(100)"
/// payload    := "-"? transform? (";" transform?)*
/// transform  := (ALIAS "=")? PROPERTY ("." PROPERTY)*  |  ALIAS "="
/// ```
///
/// * White space around lines, and in a line of activities around the parts before `:`, is left out. Empty lines are
///   too. The empty text selects every event of every source.
/// * `-` before the transforms leaves out the implicit part of the payload, which is every property.
/// * The property `*Activity` is the current activity, and `*Enumerate` joins the elements of a list with commas.
/// * `Start`, `Stop` and the sampling can have letters of either case.
/// * Of two lines with the same source and name of activities, runtimes take one.
///
/// A runtime reports no mistake to the client of a session: it ignores the line, or selects nothing, and at most writes
/// an event with the keyword 1. The iterator returns an error with its place for such a line, and continues with the
/// next.
///
/// It is stricter than runtimes for what is most likely a mistake: `;` and `=` in names, `.` before the first property,
/// and ratios that are not decimal numbers from 0 to 1.
///
/// ```
/// use ipc_proto::types::{ActivityEnd, PayloadFilter, PayloadSpec, PayloadSpecs, Sampling, Transforms};
///
/// let text = "Sql/Before@Activity1Start:-Command.Text;Server=Connection.Server\r\n[AS]Shop+Buy/Stop-Record\nA/";
/// let mut specs = PayloadSpecs::new(text);
///
/// let spec = specs.next().unwrap()?;
/// assert!(!spec.has_implicit());
/// let names: Vec<_> = spec.transforms().map(|transform| transform.name()).collect();
/// assert_eq!(names, ["Text", "Server"]);
/// assert_eq!(spec.transforms().last().unwrap().properties().collect::<Vec<_>>(), ["Connection", "Server"]);
///
/// let filter = PayloadFilter::Activities {
///     source: "Shop",
///     activity: Some("Buy"),
///     end: Some(ActivityEnd::Stop),
///     sampling: Sampling::Record,
/// };
/// let built = PayloadSpec::new(filter, true, Transforms::NONE).unwrap();
/// assert_eq!(specs.next().unwrap()?, built);
/// assert_eq!(built.to_string(), "[AS]Shop+Buy/Stop-Record");
///
/// let error = specs.next().unwrap().unwrap_err();
/// assert_eq!(error.to_string(), "byte 93: a name is empty, so that nothing matches it");
/// # Ok::<(), ipc_proto::types::PayloadSpecError>(())
/// ```
#[derive(Debug, Clone)]
pub struct PayloadSpecs<'a> {
    rest: Option<Span<'a>>,
}

impl<'a> PayloadSpecs<'a> {
    /// Creates an iterator over the lines of the value of `FilterAndPayloadSpecs`.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self { rest: Some(Span { text, start: 0 }) }
    }
}

impl<'a> Iterator for PayloadSpecs<'a> {
    type Item = Result<PayloadSpec<'a>, PayloadSpecError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(rest) = self.rest {
            let (line, next) = rest.split(b'\n');
            self.rest = next;
            let trimmed = line.trim();
            if !trimmed.text.is_empty() || (rest.text.is_empty() && rest.start == 0) {
                return Some(PayloadSpec::parse(trimmed));
            }
            if line.start == 0 {
                return Some(Err(line.error(PayloadSpecProblem::BlankFirstLine)));
            }
        }
        None
    }
}

/// A line of [`PayloadSpecs`]: which events the provider records, and what of their payloads.
///
/// `Display` writes the line: [`PayloadSpecs`] reads it. Lines are joined by line breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadSpec<'a> {
    filter: PayloadFilter<'a>,
    has_implicit: bool,
    transforms: Transforms<'a>,
}

/// The events that a [`PayloadSpec`] selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PayloadFilter<'a> {
    /// Every event of every `DiagnosticSource`.
    Everything,
    /// Events of a `DiagnosticSource`.
    Events {
        /// The name of the source.
        source: &'a str,
        /// The name of the event; `None` for every event.
        event: Option<SourceEvent<'a>>,
    },
    /// Activities of an `ActivitySource`: since .NET 6.
    Activities {
        /// The name of the source; `*` for every source, empty for activities that no source created.
        source: &'a str,
        /// The name of the operation; `None` for every activity. The source cannot be `*`.
        activity: Option<&'a str>,
        /// The end that the provider records; `None` for both.
        end: Option<ActivityEnd>,
        /// Which activities the sources create, and with which data.
        sampling: Sampling<'a>,
    },
}

/// The event of a `DiagnosticSource` that a [`PayloadFilter`] selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceEvent<'a> {
    /// The name.
    pub name: &'a str,
    /// The event of the provider with which the event is recorded; `None` for `Event`, which is no end of an activity.
    pub recorded_as: Option<BridgeEvent>,
}

names! {
    /// An event of the provider that begins or ends an activity.
    BridgeEvent:
    Activity1Start = "Activity1Start",
    Activity1Stop = "Activity1Stop",
    Activity2Start = "Activity2Start",
    Activity2Stop = "Activity2Stop",
    RecursiveActivity1Start = "RecursiveActivity1Start",
    RecursiveActivity1Stop = "RecursiveActivity1Stop",
}
names! {
    /// An end of an activity.
    ActivityEnd:
    Start = "Start",
    Stop = "Stop",
}

/// Which activities the sources of a [`PayloadFilter`] create, and with which data: `ActivitySamplingResult` of .NET.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sampling<'a> {
    /// All, with their data, and marked as recorded.
    Recorded,
    /// `Propagate`: all, but only with their names, ids and baggage.
    Propagate,
    /// `Record`: all, with their data, and not marked as recorded.
    Record,
    /// `ParentRatioSampler`: those whose parent is recorded, and this part of those without a parent; a decimal number
    /// from 0 to 1.
    ParentRatio(&'a str),
    /// `ParentRateLimitingSampler`: those whose parent is recorded, and at most this number per second of those without
    /// a parent; from 1 to 2,147,483,647. Since .NET 10.
    ParentRate(u32),
}

/// What a [`PayloadSpec`] takes from payloads, in order: an iterator over each [`Transform`]. `Display` writes the
/// remaining ones.
#[derive(Debug, Clone)]
pub struct Transforms<'a> {
    rest: Span<'a>,
}

/// A text that the provider takes from a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Transform<'a> {
    /// The name in the event; `None` for the name of the last property.
    pub alias: Option<&'a str>,
    /// The properties, joined by `.`; empty for the payload itself.
    pub path: &'a str,
}

sentences! {
    /// A mistake in a [`PayloadSpec`] that a runtime does not report.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum PayloadSpecProblem {
        /// The first line is empty and others follow, or the text is white space.
        BlankFirstLine = "the first line is empty, for which runtimes fail with an exception",
        /// A name, an alias or a property is empty.
        EmptyName = "a name is empty, so that nothing matches it",
        /// White space surrounds a name, an alias or a property.
        Whitespace = "white space surrounds a name, so that nothing matches it",
        /// A name or a property contains a character that separates parts, or begins with `-`.
        Separator = "a name contains a separator (SOURCE/EVENT@NAME:-TRANSFORM;TRANSFORM)",
        /// A name contains `*`: only a source of activities can be `*`.
        Wildcard = "a name contains `*`, which stands for all sources of activities only: leave out the name instead",
        /// `[AS]` is not in capital letters, so that it is part of the name of a `DiagnosticSource`.
        Prefix = "`[AS]` is not in capital letters",
        /// The text after `@` names no event of the provider.
        BridgeEvent = "the text after `@` is not Activity1Start, Activity2Start, RecursiveActivity1Start or their Stop",
        /// The end of activities is neither `Start` nor `Stop`.
        End = "the event of an activity is neither Start nor Stop",
        /// The text after `-` is no sampling.
        Sampling = "the sampling is not Propagate, Record, ParentRatioSampler(…) or ParentRateLimitingSampler(…)",
        /// The ratio is not a decimal number from 0 to 1.
        Ratio = "the sampling ratio is not a decimal number from 0 to 1",
        /// The rate is not a number from 1 to 2,147,483,647.
        Rate = "the sampling rate is not a number from 1 to 2147483647",
        /// An activity of every source: runtimes ignore the line.
        ActivityOfEverySource = "an activity cannot be named for all sources",
        /// A property that begins with `*` is neither `*Activity` nor `*Enumerate`.
        Property = "a property that begins with `*` is neither *Activity nor *Enumerate",
    }
}
impl core::error::Error for PayloadSpecProblem {}

/// A [`PayloadSpecProblem`] with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PayloadSpecError {
    /// The mistake.
    pub problem: PayloadSpecProblem,
    /// The offset in the text of the part with the mistake, in bytes.
    pub place: usize,
}

impl fmt::Display for PayloadSpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.place, self.problem)
    }
}
impl core::error::Error for PayloadSpecError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.problem)
    }
}

impl<'a> PayloadSpec<'a> {
    /// Creates a line; `has_implicit` adds every property of the payload to the transforms.
    ///
    /// # Errors
    /// If a name in the filter contains a separator, or runtimes would select nothing or ignore the line.
    pub fn new(
        filter: PayloadFilter<'a>,
        has_implicit: bool,
        transforms: Transforms<'a>,
    ) -> Result<Self, PayloadSpecProblem> {
        match filter {
            PayloadFilter::Everything => {}
            PayloadFilter::Events { source, event } => {
                check_source(source)?;
                event.map_or(Ok(()), |event| check_event(event.name))?;
            }
            PayloadFilter::Activities { source, activity, end: _, sampling } => {
                check_activity_source(source)?;
                activity.map_or(Ok(()), |activity| check_activity(source, activity))?;
                sampling.check()?;
            }
        }
        Ok(Self { filter, has_implicit, transforms })
    }

    /// Parses a line that no white space surrounds.
    fn parse(line: Span<'a>) -> Result<Self, PayloadSpecError> {
        let (head, payload) = line.split(b':');
        let filter = match head.text.strip_prefix(ACTIVITIES) {
            Some(text) => PayloadFilter::parse_activities(head.suffix(text).trim())?,
            None => PayloadFilter::parse_events(head)?,
        };
        let payload = payload.unwrap_or(Span::EMPTY);
        let explicit = payload.text.strip_prefix('-');
        let transforms = Transforms { rest: explicit.map_or(payload, |text| payload.suffix(text)) };
        transforms.check()?;
        Ok(Self { filter, has_implicit: explicit.is_none(), transforms })
    }

    /// Returns the events that the line selects.
    #[must_use]
    pub const fn filter(&self) -> PayloadFilter<'a> {
        self.filter
    }

    /// Returns whether the provider records every property of a payload, in addition to the transforms.
    #[must_use]
    pub const fn has_implicit(&self) -> bool {
        self.has_implicit
    }

    /// Returns an iterator over the transforms.
    #[must_use]
    pub fn transforms(&self) -> Transforms<'a> {
        self.transforms.clone()
    }
}

impl fmt::Display for PayloadSpec<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt(f)?;
        // Runtimes skip an empty line among others, but not a lone colon.
        let is_everything = matches!(self.filter, PayloadFilter::Everything);
        if is_everything || !self.has_implicit || self.transforms().next().is_some() {
            f.write_str(if self.has_implicit { ":" } else { ":-" })?;
        }
        self.transforms.fmt(f)
    }
}

/// The beginning of a line that selects activities.
const ACTIVITIES: &str = "[AS]";

/// Checks the name of a `DiagnosticSource`.
fn check_source(name: &str) -> Result<(), PayloadSpecProblem> {
    if name.get(..ACTIVITIES.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(ACTIVITIES)) {
        return Err(PayloadSpecProblem::Prefix);
    }
    check_name(name, b":/@")
}

/// Checks the name of an event of a `DiagnosticSource`.
fn check_event(name: &str) -> Result<(), PayloadSpecProblem> {
    check_name(name, b":@")
}

/// Checks the name of an `ActivitySource`.
fn check_activity_source(name: &str) -> Result<(), PayloadSpecProblem> {
    if matches!(name, "" | "*") { Ok(()) } else { check_name(name, b":/+") }
}

/// Checks the name of an operation of the source.
fn check_activity(source: &str, name: &str) -> Result<(), PayloadSpecProblem> {
    check_name(name, b":/")?;
    if source == "*" { Err(PayloadSpecProblem::ActivityOfEverySource) } else { Ok(()) }
}

fn check_name(name: &str, separators: &[u8]) -> Result<(), PayloadSpecProblem> {
    check_text(name, separators)?;
    if name.bytes().any(|byte| byte == b'*') { Err(PayloadSpecProblem::Wildcard) } else { Ok(()) }
}

/// Checks a name, an alias or a property: none of them contains what separates transforms and lines.
fn check_text(text: &str, separators: &[u8]) -> Result<(), PayloadSpecProblem> {
    if text.is_empty() {
        return Err(PayloadSpecProblem::EmptyName);
    }
    if text.trim().len() != text.len() {
        return Err(PayloadSpecProblem::Whitespace);
    }
    let separates = |byte: u8| matches!(byte, b'\n' | b';' | b'=') || separators.contains(&byte);
    if text.starts_with('-') || text.bytes().any(separates) {
        return Err(PayloadSpecProblem::Separator);
    }
    Ok(())
}

fn check_property(property: &str) -> Result<(), PayloadSpecProblem> {
    check_text(property, b"")?;
    if property.starts_with('*') && !matches!(property, "*Activity" | "*Enumerate") {
        return Err(PayloadSpecProblem::Property);
    }
    Ok(())
}

impl<'a> PayloadFilter<'a> {
    fn parse_events(head: Span<'a>) -> Result<Self, PayloadSpecError> {
        if head.text.is_empty() {
            return Ok(Self::Everything);
        }
        let (source, event) = head.split(b'/');
        source.check(check_source)?;
        let Some(event) = event else { return Ok(Self::Events { source: source.text, event: None }) };
        let (name, bridge) = event.split(b'@');
        name.check(check_event)?;
        let recorded_as = match bridge {
            None => None,
            Some(Span { text: "Event", .. }) => None,
            Some(part) => Some(
                BridgeEvent::ALL
                    .iter()
                    .copied()
                    .find(|event| event.name() == part.text)
                    .ok_or_else(|| part.error(PayloadSpecProblem::BridgeEvent))?,
            ),
        };
        Ok(Self::Events { source: source.text, event: Some(SourceEvent { name: name.text, recorded_as }) })
    }

    fn parse_activities(head: Span<'a>) -> Result<Self, PayloadSpecError> {
        let (names, suffix) = head.split(b'/');
        let (source, activity) = names.split(b'+');
        let (source, activity) = (source.trim(), activity.map(Span::trim));
        source.check(check_activity_source)?;
        activity.map_or(Ok(()), |activity| activity.check(|name| check_activity(source.text, name)))?;
        let (end, sampling) = suffix.unwrap_or(Span::EMPTY).split(b'-');
        let end = end.trim();
        let is_end = |known: &ActivityEnd| known.name().eq_ignore_ascii_case(end.text);
        let known_end = ActivityEnd::ALL.iter().copied().find(is_end);
        if known_end.is_none() && !end.text.is_empty() {
            return Err(end.error(PayloadSpecProblem::End));
        }
        let sampling = sampling.unwrap_or(Span::EMPTY).trim();
        Ok(Self::Activities {
            source: source.text,
            activity: activity.map(|activity| activity.text),
            end: known_end,
            sampling: Sampling::parse(sampling.text).map_err(|problem| sampling.error(problem))?,
        })
    }
}

/// Writes the line up to the colon.
impl fmt::Display for PayloadFilter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Everything => Ok(()),
            Self::Events { source, event } => {
                f.write_str(source)?;
                let Some(event) = event else { return Ok(()) };
                write!(f, "/{}", event.name)?;
                event.recorded_as.map_or(Ok(()), |bridge| write!(f, "@{}", bridge.name()))
            }
            Self::Activities { source, activity, end, sampling } => {
                write!(f, "{ACTIVITIES}{source}")?;
                activity.map_or(Ok(()), |activity| write!(f, "+{activity}"))?;
                if end.is_none() && sampling == Sampling::Recorded {
                    return Ok(());
                }
                write!(f, "/{}{sampling}", end.map_or("", ActivityEnd::name))
            }
        }
    }
}

const RATIO: &str = "ParentRatioSampler(";
const RATE: &str = "ParentRateLimitingSampler(";

impl<'a> Sampling<'a> {
    /// Parses the text after `-`.
    fn parse(text: &'a str) -> Result<Self, PayloadSpecProblem> {
        let argument = |sampler: &str| {
            let (name, argument) = (text.get(..sampler.len())?, text.get(sampler.len()..)?);
            argument.strip_suffix(')').filter(|_| name.eq_ignore_ascii_case(sampler))
        };
        let sampling = if text.is_empty() {
            Self::Recorded
        } else if text.eq_ignore_ascii_case("Propagate") {
            Self::Propagate
        } else if text.eq_ignore_ascii_case("Record") {
            Self::Record
        } else if let Some(ratio) = argument(RATIO) {
            Self::ParentRatio(ratio.trim())
        } else if let Some(rate) = argument(RATE) {
            let rate = number(rate.as_bytes(), 10).and_then(|rate| u32::try_from(rate).ok());
            Self::ParentRate(rate.ok_or(PayloadSpecProblem::Rate)?)
        } else {
            return Err(PayloadSpecProblem::Sampling);
        };
        sampling.check()?;
        Ok(sampling)
    }

    fn check(self) -> Result<(), PayloadSpecProblem> {
        match self {
            Self::ParentRatio(ratio) if !is_ratio(ratio) => Err(PayloadSpecProblem::Ratio),
            Self::ParentRate(rate) if !(1..=0x7fff_ffff).contains(&rate) => Err(PayloadSpecProblem::Rate),
            _ => Ok(()),
        }
    }
}

/// Returns whether a text is a decimal number from 0 to 1.
fn is_ratio(text: &str) -> bool {
    let (whole, fraction) = split_once(text, b'.').unwrap_or((text, ""));
    let all = |digits: &str, is_valid: fn(&u8) -> bool| digits.as_bytes().iter().all(is_valid);
    let is_zero = |byte: &u8| *byte == b'0';
    let is_at_most_one = match whole.strip_suffix('1') {
        Some(zeros) => all(zeros, is_zero) && all(fraction, is_zero),
        None => all(whole, is_zero) && all(fraction, u8::is_ascii_digit),
    };
    is_at_most_one && !(whole.is_empty() && fraction.is_empty())
}

/// Writes the sampling with the `-` before it; nothing for [`Sampling::Recorded`].
impl fmt::Display for Sampling<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Recorded => Ok(()),
            Self::Propagate => f.write_str("-Propagate"),
            Self::Record => f.write_str("-Record"),
            Self::ParentRatio(ratio) => write!(f, "-{RATIO}{ratio})"),
            Self::ParentRate(rate) => write!(f, "-{RATE}{rate})"),
        }
    }
}

impl<'a> Transforms<'a> {
    /// No transforms.
    pub const NONE: Self = Self { rest: Span::EMPTY };

    /// Creates an iterator over transforms that `;` separates, without a `-` before the first.
    ///
    /// # Errors
    /// If a transform contains a mistake; the place is the offset in this text.
    pub fn new(text: &'a str) -> Result<Self, PayloadSpecError> {
        let transforms = Self { rest: Span { text, start: 0 } };
        transforms.check()?;
        Ok(transforms)
    }

    fn check(&self) -> Result<(), PayloadSpecError> {
        let mut transforms = self.clone();
        while let Some(part) = transforms.next_part() {
            let (alias, path) = match part.split(b'=') {
                (alias, Some(path)) => (Some(alias), path),
                (path, None) => (None, path),
            };
            alias.map_or(Ok(()), |alias| alias.check(|alias| check_text(alias, b"")))?;
            let mut rest = Some(path).filter(|path| !path.text.is_empty());
            while let Some(path) = rest {
                let (property, next) = path.split(b'.');
                property.check(check_property)?;
                rest = next;
            }
        }
        Ok(())
    }

    /// Returns the next transform that is not empty: runtimes skip empty ones.
    fn next_part(&mut self) -> Option<Span<'a>> {
        while !self.rest.text.is_empty() {
            let (part, next) = self.rest.split(b';');
            self.rest = next.unwrap_or(Span::EMPTY);
            if !part.text.is_empty() {
                return Some(part);
            }
        }
        None
    }
}

impl<'a> Iterator for Transforms<'a> {
    type Item = Transform<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let part = self.next_part()?;
        Some(match split_once(part.text, b'=') {
            Some((alias, path)) => Transform { alias: Some(alias), path },
            None => Transform { alias: None, path: part.text },
        })
    }
}

/// Two lists are equal if their remaining transforms are.
impl PartialEq for Transforms<'_> {
    fn eq(&self, other: &Self) -> bool {
        Iterator::eq(self.clone(), other.clone())
    }
}
impl Eq for Transforms<'_> {}

impl fmt::Display for Transforms<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        self.clone()
            .try_for_each(|transform| write!(f, "{}{transform}", core::mem::replace(&mut separator, ";")))
    }
}

impl<'a> Transform<'a> {
    /// Returns the name in the event: the alias, or the last property.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.alias.or_else(|| self.properties().last()).unwrap_or_default()
    }

    /// Returns an iterator over the properties, from the payload inwards.
    pub fn properties(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut rest = Some(self.path).filter(|path| !path.is_empty());
        core::iter::from_fn(move || {
            let path = rest?;
            let (property, next) =
                split_once(path, b'.').map_or((path, None), |(first, next)| (first, Some(next)));
            rest = next;
            Some(property)
        })
    }
}

impl fmt::Display for Transform<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.alias.map_or(Ok(()), |alias| write!(f, "{alias}="))?;
        f.write_str(self.path)
    }
}

/// A part of a text with its offset, in bytes.
#[derive(Debug, Clone, Copy)]
struct Span<'a> {
    text: &'a str,
    start: usize,
}

impl<'a> Span<'a> {
    const EMPTY: Self = Self { text: "", start: 0 };

    /// Splits the part at the first separator, an ASCII character.
    fn split(self, separator: u8) -> (Self, Option<Self>) {
        match split_once(self.text, separator) {
            Some((text, rest)) => (Self { text, ..self }, Some(self.suffix(rest))),
            None => (self, None),
        }
    }

    /// Returns the suffix of the part with this text.
    const fn suffix(self, text: &'a str) -> Self {
        let skipped = self.text.len().saturating_sub(text.len());
        Self { text, start: self.start.saturating_add(skipped) }
    }

    fn trim(self) -> Self {
        let part = self.suffix(self.text.trim_start());
        Self { text: part.text.trim_end(), ..part }
    }

    fn check(
        self,
        check: impl FnOnce(&str) -> Result<(), PayloadSpecProblem>,
    ) -> Result<(), PayloadSpecError> {
        check(self.text).map_err(|problem| self.error(problem))
    }

    const fn error(self, problem: PayloadSpecProblem) -> PayloadSpecError {
        PayloadSpecError { problem, place: self.start }
    }
}
