//! The values of an event: its payload, read by the description of its fields.
mod indexed;
mod payload_reader;
mod value;

pub use self::indexed::{IndexedPart, IndexedValues};
pub use self::value::{FileTime, Value};

use ipc_proto::wire::{Reader, steps};

use crate::describe::{
    ArrayKind, Element, FieldType, Fields, Format, MAX_DEPTH, Type, compound, name_and_type, skip_to_v2,
};
use crate::encoding::Str;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::values::payload_reader::{Elements, PayloadReader};

/// A part of a payload, as [`Values`] returns them in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'a> {
    /// A value.
    Value {
        /// The field's name; empty for an element of an array.
        name: Str<'a>,
        /// The value.
        value: Value<'a>,
    },
    /// An object begins. The fields of the object follow.
    BeginObject {
        /// The field's name; empty for an element of an array, and for an object that is the whole payload.
        name: Str<'a>,
    },
    /// The innermost object ends.
    EndObject,
    /// An array begins; its elements follow.
    BeginArray {
        /// The field's name; empty for an element of an array.
        name: Str<'a>,
    },
    /// The innermost array ends.
    EndArray,
}

/// Reads the values of a payload in their order, by the description of its fields.
///
/// | type code | type | in the payload |
/// |---|---|---|
/// | 1 | Object | its fields in their order |
/// | 3 to 18, 20, 21, 23, 26 | [`Scalar`](crate::Scalar) | see [`Scalar`](crate::Scalar) |
/// | 19, 22, 24, 25 | arrays | see [`ArrayKind`] |
///
/// Values are packed and unaligned, see "Event payloads" in the NetTrace format. An array of code units is returned as
/// one [`Value::Text`], an array of `Byte` as one [`Value::Bytes`].
///
/// Even in a valid trace, a payload can contradict its description. The iterator then ends early, and
/// [`finish`](Self::finish) returns the error. The values before the error are valid, and open objects and arrays are
/// closed: each `Begin` has its `End`. Bytes after the last field are not an error: a writer may append fields, and a
/// string with a NUL inside is followed by its remaining characters.
///
/// Objects and arrays can be nested in 16 levels. A field with more levels is an error of the description, which ends
/// before that field. [`Metadata::problem`](crate::Metadata::problem) then has the error, and [`finish`](Self::finish)
/// returns the bytes of that field and of all later fields. No runtime nests more than 2 levels.
///
/// The work is at most proportional to the length of the payload, whatever payload and description contain. Each byte
/// of the payload allows four items, or 256 bytes of description; 32 items or 2 KiB of description are free. A payload
/// that needs more ends with [`DecodeErrorKind::TooManyItems`]. The limit bounds the number of values without bytes:
/// objects without fields, of which 2 bytes can announce 65,535. It also bounds the total length of texts and byte
/// arrays to which several fields refer.
///
/// ```
/// use nettrace::{Item, Metadata, Value, Version};
///
/// # let utf16 = |s: &str| s.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
/// # let record = [&1u32.to_le_bytes()[..], &utf16("Prov"), &7u32.to_le_bytes(), &utf16("Tick"),
/// #     &[0; 16], &1u32.to_le_bytes(), &9u32.to_le_bytes(), &utf16("n")].concat();
/// let metadata = Metadata::decode(Version::V4, &record)?;
/// let mut values = metadata.fields.values(&[5, 0, 0, 0, 0xff]);
/// assert_eq!(values.next(), Some(Item::Value { name: "n".into(), value: Value::Int(5) }));
/// assert_eq!(values.next(), None);
/// assert_eq!(values.finish()?, [0xff]);
/// # Ok::<(), nettrace::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Values<'a> {
    /// An item costs 1 of its work, and each [`DESCRIPTION`] bytes of description that are read for the item cost 1.
    payload: PayloadReader<'a>,
    frame: Frame<'a>,
    outer: heapless::Vec<Frame<'a>, MAX_DEPTH>,
    error: Option<DecodeError>,
}

/// The bytes of description that cost as much work as an item.
const DESCRIPTION: usize = 64;

/// An open object or array, with the part of its description that comes next.
#[derive(Clone, Copy, Debug)]
struct Frame<'a> {
    description: &'a [u8],
    left: u32,
    format: Format,
    kind: FrameKind,
}

#[derive(Clone, Copy, Debug)]
enum FrameKind {
    /// An object with `left` more fields.
    Object,
    /// The V1 fields of a payload that also has V2 fields. At first `left` is 0: see [`Values::join`].
    Joined,
    /// An array with `left` more elements, of the type that the description begins with.
    Array,
    /// An array elsewhere in the payload, with elements up to the end of its bytes.
    Elsewhere,
}

impl<'a> Frame<'a> {
    const fn object(fields: &Fields<'a>) -> Self {
        let (kind, left) = match fields.format {
            Format::Joined { .. } => (FrameKind::Joined, 0),
            _ => (FrameKind::Object, fields.count),
        };
        Self { description: fields.bytes, left, format: fields.format, kind }
    }

    const fn array(element: &Element<'a>, left: u32, kind: FrameKind) -> Self {
        Self { description: element.bytes, left, format: element.format, kind }
    }
}

impl<'a> Fields<'a> {
    /// Returns the values of a payload that has these fields.
    #[must_use]
    #[inline]
    pub fn values(&self, payload: &'a [u8]) -> Values<'a> {
        Values {
            payload: PayloadReader::new(payload),
            frame: Frame::object(self),
            outer: heapless::Vec::new(),
            error: None,
        }
    }
}

impl<'a> Values<'a> {
    /// Reads the remaining values, and returns the bytes after the last one, without those to which a
    /// [`RelLoc`](crate::ArrayKind::RelLoc) or [`DataLoc`](crate::ArrayKind::DataLoc) refers: the bytes before these or, if
    /// there are none, the bytes after them.
    ///
    /// # Errors
    /// The first error of the payload, with its offset.
    pub fn finish(mut self) -> Result<&'a [u8], DecodeError> {
        while self.next().is_some() {}
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.payload.rest()),
        }
    }

    /// Returns the error that ended the iteration, if there was one.
    #[must_use]
    pub const fn error(&self) -> Option<DecodeError> {
        self.error
    }

    /// Finds the value of a field by its name, among the values that were not read yet.
    ///
    /// A path leads to a field of a nested object: `"Payload.Mean"` is the field `Mean` of the object `Payload`. An
    /// object without a name, which is the whole payload, is not part of the path. Names may contain dots themselves.
    /// Of several fields of one name, the first counts. Elements of arrays have no names, and are not found.
    ///
    /// Returns `None` if there is no such field, if the field is an object or an array of anything but bytes or
    /// characters, or if the payload contradicts its description before that field.
    ///
    /// The search reads names and values from the start of the payload up to the field. To read several fields of large
    /// payloads, iterate once.
    ///
    /// ```
    /// use nettrace::{Fields, Scalar};
    ///
    /// let mut space = [0; 64];
    /// let fields = Fields::build(&[("Count", Scalar::UInt32), ("Depth", Scalar::Byte)], &mut space).unwrap();
    /// let payload = [7, 0, 0, 0, 2];
    /// assert_eq!(fields.values(&payload).field("Depth").and_then(|value| value.as_u64()), Some(2));
    /// assert_eq!(fields.values(&payload).field("Reason"), None);
    /// ```
    #[must_use]
    pub fn field(self, path: &str) -> Option<Value<'a>> {
        let mut path = path;
        // The number of open objects and arrays that are not on the path.
        let mut outside = 0_u32;
        for item in self {
            match item {
                Item::Value { name, value } if outside == 0 && name == path => return Some(value),
                Item::Value { .. } => {}
                Item::BeginObject { name } => match strip_name(path, name) {
                    Some(rest) if outside == 0 => path = rest,
                    _ => outside = outside.saturating_add(1),
                },
                Item::BeginArray { .. } => outside = outside.saturating_add(1),
                // The object that the path leads to has ended without the field.
                Item::EndObject | Item::EndArray if outside == 0 => return None,
                Item::EndObject | Item::EndArray => outside = outside.saturating_sub(1),
            }
        }
        None
    }

    /// Begins a value. If the value does not fit into the payload, nothing is consumed.
    #[inline]
    fn step(&mut self) -> Result<Item<'a>, DecodeError> {
        let format = self.frame.format;
        let mut description = Reader::new(self.readable());
        self.frame.left = self.frame.left.wrapping_sub(1);
        let (name, mut of, len) = match self.frame.kind {
            FrameKind::Object | FrameKind::Joined => {
                let Ok((name, of)) = name_and_type(format, &mut description) else {
                    // Descriptions are checked when they are decoded, so only the limit of the work can cut a
                    // description.
                    return Err(self.payload.error(DecodeErrorKind::TooManyItems));
                };
                let len = description.offset();
                self.frame.description = self.frame.description.get(len..).unwrap_or_default();
                (name, of, len)
            }
            FrameKind::Array | FrameKind::Elsewhere => {
                let description = Reader::new(self.frame.description);
                let len = description.rest().len();
                (Str::EMPTY, description, len)
            }
        };
        self.payload.spend((len / DESCRIPTION).wrapping_add(1))?;
        match Type::decode(format, &mut of)? {
            Type::Scalar(scalar) => {
                Ok(Item::Value { name, value: Value::read(scalar, &mut self.payload.r)? })
            }
            Type::Counts(scalar) => Ok(Item::Value { name, value: self.payload.count(scalar)? }),
            Type::Other(code) => self.compound(name, code, of),
        }
    }

    /// Returns the part of the description that the remaining work allows to read. The name of a V1 object follows its
    /// fields, so without the limit a large object is read as a whole before its first field.
    #[inline]
    fn readable(&self) -> &'a [u8] {
        let len = self.payload.work.saturating_mul(DESCRIPTION);
        self.frame.description.get(..len).unwrap_or(self.frame.description)
    }

    #[inline(never)]
    fn compound(&mut self, name: Str<'a>, code: u8, mut of: Reader<'a>) -> Result<Item<'a>, DecodeError> {
        match compound(self.frame.format, code, &mut of)? {
            Some(FieldType::Object(fields)) => {
                self.open(Frame::object(&fields))?;
                Ok(Item::BeginObject { name })
            }
            Some(FieldType::Array { kind, element }) => self.array(name, kind, element),
            // Descriptions are checked before a caller gets them, so this code is never unknown.
            _ => Err(self.payload.error(DecodeErrorKind::UnknownType)),
        }
    }

    fn array(
        &mut self,
        name: Str<'a>,
        kind: ArrayKind,
        element: Element<'a>,
    ) -> Result<Item<'a>, DecodeError> {
        let unit = match element.parse()? {
            FieldType::Scalar(unit) => Some(unit),
            _ => None,
        };
        match self.payload.elements(kind, unit)? {
            Elements::Whole(value) => return Ok(Item::Value { name, value }),
            Elements::Counted(count) => self.open(Frame::array(&element, count, FrameKind::Array))?,
            Elements::Elsewhere(elements) => {
                self.open(Frame::array(&element, u32::MAX, FrameKind::Elsewhere))?;
                self.payload.enter(elements);
            }
        }
        Ok(Item::BeginArray { name })
    }

    fn open(&mut self, frame: Frame<'a>) -> Result<(), DecodeError> {
        let before = core::mem::replace(&mut self.frame, frame);
        self.outer.push(before).map_err(|before| {
            self.frame = before;
            self.payload.error(DecodeErrorKind::TooDeep)
        })
    }

    /// Closes the innermost object or array.
    fn close(&mut self) -> Option<Item<'a>> {
        if matches!(self.frame.kind, FrameKind::Joined) {
            return self.join();
        }
        let outer = self.outer.pop()?;
        Some(match core::mem::replace(&mut self.frame, outer).kind {
            FrameKind::Object | FrameKind::Joined => Item::EndObject,
            FrameKind::Array => Item::EndArray,
            FrameKind::Elsewhere => {
                self.payload.leave();
                Item::EndArray
            }
        })
    }

    /// Begins the V1 fields of a payload that has both kinds, or after them the V2 fields, and returns the first item.
    #[cold]
    fn join(&mut self) -> Option<Item<'a>> {
        if let Format::Joined { v1 } = self.frame.format {
            self.frame = Frame { left: v1.into(), format: Format::V1, ..self.frame };
            return self.next();
        }
        let mut r = Reader::new(self.readable());
        let found = skip_to_v2(&mut r).ok();
        let work = self.payload.work.checked_sub((r.offset() / DESCRIPTION).wrapping_add(1));
        // With an empty description, the next field exceeds the limit.
        let rest = found.and(work).and_then(|_| self.frame.description.get(r.offset()..));
        let (description, left) = (rest.unwrap_or_default(), found.unwrap_or(1));
        self.frame = Frame { description, left, format: Format::V2, kind: FrameKind::Object };
        self.payload.work = work.unwrap_or(0);
        self.next()
    }

    #[cold]
    fn fail(&mut self, error: DecodeError) -> Option<Item<'a>> {
        self.error = self.error.or(Some(error));
        // Without work, each further call fails and closes one open object or array.
        self.payload.work = 0;
        self.close()
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        steps::count(1);
        let elsewhere = matches!(self.frame.kind, FrameKind::Elsewhere);
        if self.frame.left == 0 || elsewhere && self.payload.r.rest().is_empty() {
            return self.close();
        }
        match self.step() {
            Ok(item) => Some(item),
            Err(error) => self.fail(error),
        }
    }
}
impl core::iter::FusedIterator for Values<'_> {}

/// Returns the path after the name of an object, if it begins with that name and a dot. A name that is empty is not
/// part of the path.
fn strip_name<'p>(path: &'p str, name: Str<'_>) -> Option<&'p str> {
    if name.is_empty() {
        return Some(path);
    }
    let mut rest = path.chars();
    for c in name.chars() {
        rest.next().filter(|of_path| *of_path == c)?;
    }
    rest.as_str().strip_prefix('.')
}
