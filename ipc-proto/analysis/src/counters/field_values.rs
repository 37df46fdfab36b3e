//! The fields of a payload by name, and the numbers in their texts.
use alloc::vec::Vec;

use nettrace::{FieldType, Fields, Item, Metadata, MetadataBuf, Scalar, Str, TraceEvent, Value};

use super::{Number, Problem, Quantile};
use crate::event::split_once;

/// The values of a payload by the names of their fields.
pub(super) struct FieldValues<'a, const N: usize> {
    names: &'static [&'static str; N],
    values: [Option<Value<'a>>; N],
}

/// The most fields that are read from a payload, including the fields of objects. Further fields are ignored.
const MAX_ITEMS: usize = 64;

/// Descriptions of events that were read before. The names in a description are compared once, not for each event.
#[derive(Debug, Clone, Default)]
pub(super) struct Layouts(Vec<Layout>);

impl Layouts {
    /// The most stored descriptions, and the most bytes of all names of one description.
    const MAX_LAYOUTS: usize = 32;
    const MAX_NAMES: usize = 2 << 10;

    /// Returns the layout of an event's description. Returns `None` if the description has arrays or is too long, or if
    /// too many descriptions are stored.
    fn of(&mut self, id: u32, fields: &Fields<'_>, names: FieldNames) -> Option<&Layout> {
        let stored = self.0.iter().position(|layout| layout.metadata_id == id);
        let place = stored.unwrap_or(self.0.len());
        let is_same =
            |layout: &Layout| core::ptr::eq(layout.names, names) && layout.description.fields() == *fields;
        if !self.0.get(place).is_some_and(is_same) {
            if place >= Self::MAX_LAYOUTS {
                return None;
            }
            let layout = Layout::new(id, fields, names)?;
            match self.0.get_mut(place) {
                // The id has another meaning now, so its layout is replaced.
                Some(stored) => *stored = layout,
                None => self.0.push(layout),
            }
        }
        self.0.get(place)
    }
}

type FieldNames = &'static [&'static str];

/// A description without arrays.
#[derive(Debug, Clone)]
struct Layout {
    metadata_id: u32,
    names: FieldNames,
    /// A copy of the description, which has only the fields.
    description: MetadataBuf,
    /// The values in the order of the payload, each with its index in `names`, up to the last value that has one.
    scalars: Vec<(Scalar, Option<u8>)>,
}

impl Layout {
    fn new(metadata_id: u32, fields: &Fields<'_>, names: FieldNames) -> Option<Self> {
        let mut scalars = Vec::new();
        let (mut items, mut len) = (MAX_ITEMS, Layouts::MAX_NAMES);
        add_scalars(fields, names, &mut scalars, &mut items, &mut len)?;
        let read =
            scalars.iter().rposition(|(_, place)| place.is_some()).map_or(0, |last| last.saturating_add(1));
        scalars.truncate(read);
        scalars.shrink_to_fit();
        let mut metadata = Metadata::default();
        metadata.fields = *fields;
        Some(Self { metadata_id, names, description: (&metadata).into(), scalars })
    }

    /// Reads the values, until those of the first `first` names are known.
    fn read<'a>(&self, payload: &'a [u8], values: &mut [Option<Value<'a>>], first: usize) {
        let (mut rest, mut missing) = (payload, first);
        for (scalar, place) in &self.scalars {
            let Ok((value, after)) = scalar.decode(rest) else { return };
            rest = after;
            let Some(place) = place.map(usize::from) else { continue };
            if let Some(slot) = values.get_mut(place) {
                *slot = Some(value);
            }
            if place < first {
                missing = missing.saturating_sub(1);
                if missing == 0 {
                    return;
                }
            }
        }
    }
}

/// Adds the values of an object, and those of objects in it. Returns `None` if there are arrays, too many fields, or
/// too many bytes of names.
fn add_scalars(
    fields: &Fields<'_>,
    names: FieldNames,
    scalars: &mut Vec<(Scalar, Option<u8>)>,
    items: &mut usize,
    len: &mut usize,
) -> Option<()> {
    for field in fields.iter() {
        *items = items.checked_sub(1)?;
        let (Str::Utf16(name) | Str::Utf8(name)) = field.name;
        *len = len.checked_sub(name.len())?;
        match field.field_type {
            FieldType::Scalar(scalar) => {
                let place = names.iter().position(|known| field.name == *known);
                let place = place.and_then(|place| u8::try_from(place).ok());
                // Of several fields with the same name the first one counts.
                let place = place.filter(|place| scalars.iter().all(|(_, other)| *other != Some(*place)));
                scalars.push((scalar, place));
            }
            FieldType::Object(fields) => {
                *items = items.checked_sub(1)?;
                add_scalars(&fields, names, scalars, items, len)?;
            }
            _ => return None,
        }
    }
    Some(())
}

impl<'a, const N: usize> FieldValues<'a, N> {
    /// Reads the fields with these names, also inside of objects: the first of several with the same name.
    pub(super) fn read(
        layouts: &mut Layouts,
        event: &TraceEvent<'a>,
        metadata: &Metadata<'a>,
        names: &'static [&'static str; N],
    ) -> Self {
        Self::read_first(layouts, event, metadata, names, N)
    }

    /// Reads fields until the first `first` names are known. The values of other names can be missing.
    pub(super) fn read_first(
        layouts: &mut Layouts,
        event: &TraceEvent<'a>,
        metadata: &Metadata<'a>,
        names: &'static [&'static str; N],
        first: usize,
    ) -> Self {
        let mut values = [None; N];
        match layouts.of(event.header().metadata_id, &metadata.fields, names) {
            Some(layout) => layout.read(event.payload(), &mut values, first),
            None => {
                let items = metadata.fields.values(event.payload()).take(MAX_ITEMS);
                for item in items {
                    let Item::Value { name, value } = item else { continue };
                    let place = names.iter().position(|known| name == *known);
                    if let Some(slot @ None) = place.and_then(|place| values.get_mut(place)) {
                        *slot = Some(value);
                    }
                }
            }
        }
        Self { names, values }
    }

    fn get(&self, name: &str) -> Option<Value<'a>> {
        let place = self.names.iter().position(|known| *known == name)?;
        self.values.get(place).copied().flatten()
    }

    /// Returns a text; empty if the payload has none of this name.
    pub(super) fn text(&self, name: &str) -> Str<'a> {
        self.get(name).and_then(|value| value.as_str()).unwrap_or_default()
    }

    /// Returns an integer that is not negative.
    pub(super) fn unsigned(&self, name: &str) -> Option<u64> {
        self.get(name)?.as_u64()
    }

    pub(super) fn signed(&self, name: &str) -> Option<i32> {
        self.get(name)?.as_i64()?.try_into().ok()
    }

    /// Returns a number that the payload has in binary form, not as text.
    pub(super) fn float(&self, name: &'static str) -> Result<f64, Problem<'a>> {
        self.get(name).and_then(|value| value.as_f64()).ok_or(Problem::MissingField { field: name })
    }

    /// Returns a time in units of 100 ns.
    pub(super) fn time(&self, name: &str) -> Option<u64> {
        self.get(name)?.as_time().map(|time| time.0)
    }

    /// Returns a number that the payload has as text. Returns `None` for an empty text, and for a field that events of
    /// earlier versions do not have.
    pub(super) fn decimal(&self, name: &'static str) -> Result<Option<Number>, Problem<'a>> {
        let text = match self.get(name) {
            None => return Ok(None),
            Some(value) => value.as_str().ok_or(Problem::MissingField { field: name })?,
        };
        if text.is_empty() {
            return Ok(None);
        }
        parse(text).map(Some).ok_or(Problem::NotANumber { field: name, text })
    }

    /// Returns quantiles: `0.5=12.3;0.95=…`.
    pub(super) fn quantiles(&self, name: &'static str) -> Result<Vec<Quantile>, Problem<'a>> {
        let text = self.text(name);
        let pairs = separated(text, b";").map(|pair| {
            let mut sides = separated(pair, b"=");
            let pair = (sides.next().and_then(parse), sides.next().and_then(parse), sides.next());
            let (Some(quantile), Some(value), None) = pair else { return None };
            Some(Quantile { quantile: quantile.as_f64(), value: value.as_f64() })
        });
        if text.is_empty() {
            return Ok(Vec::new());
        }
        pairs.collect::<Option<_>>().ok_or(Problem::NotANumber { field: name, text })
    }

    /// Returns whole numbers: `1, 2, 3`.
    pub(super) fn list(&self, name: &'static str) -> Result<Vec<u64>, Problem<'a>> {
        let text = self.text(name);
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let numbers = separated(text, b", ").filter(|part| !part.is_empty()).map(|part| {
            let mut buffer = [0; MAX_DIGITS];
            ascii(part, &mut buffer)?.parse().ok()
        });
        numbers.collect::<Option<_>>().ok_or(Problem::NotANumber { field: name, text })
    }
}

/// The most characters of a number, with its sign and its exponent; runtimes write at most 24.
const MAX_DIGITS: usize = 64;

/// Returns the number of a text in the invariant culture of .NET.
pub(super) fn parse(text: Str<'_>) -> Option<Number> {
    let mut buffer = [0; MAX_DIGITS];
    if let Some(ascii) = ascii(text, &mut buffer) {
        return ascii.parse().ok();
    }
    // Symbols of other cultures that have only one meaning.
    match text {
        _ if text == "∞" => Some(f64::INFINITY.into()),
        _ if text == "-∞" => Some(f64::NEG_INFINITY.into()),
        _ => None,
    }
}

/// Returns a text that is ASCII and fits into the buffer.
fn ascii<'b>(text: Str<'_>, buffer: &'b mut [u8; MAX_DIGITS]) -> Option<&'b str> {
    let mut len = 0_usize;
    for unit in text.units() {
        *buffer.get_mut(len)? = u8::try_from(unit).ok().filter(u8::is_ascii)?;
        len = len.saturating_add(1);
    }
    core::str::from_utf8(buffer.get(..len)?).ok()
}

/// Returns the parts of a text between these ASCII characters.
fn separated<'a>(text: Str<'a>, separators: &'static [u8]) -> impl Iterator<Item = Str<'a>> {
    let mut rest = Some(text);
    core::iter::from_fn(move || {
        let (part, after) = split_once(rest?, separators);
        rest = after;
        Some(part)
    })
}

/// Returns the seconds of a .NET TimeSpan: `[-][days.]hh:mm:ss[.fraction]`.
pub(super) fn seconds(text: Str<'_>) -> Option<f64> {
    let mut buffer = [0; MAX_DIGITS];
    let text = ascii(text, &mut buffer)?;
    let (days_and_hours, rest) = text.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':')?;
    let (days, hours) = days_and_hours.split_once('.').unwrap_or(("0", days_and_hours));
    let number = |digits: &str| {
        let is_digits =
            !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit() || digit == b'.');
        if is_digits { digits.parse::<f64>().ok() } else { None }
    };
    Some(number(days)? * 86_400.0 + number(hours)? * 3_600.0 + number(minutes)? * 60.0 + number(seconds)?)
}
