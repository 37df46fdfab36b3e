use core::fmt;

use super::field::{
    ArrayKind, Element, FieldType, Fields, Format, MAX_DEPTH, Scalar, Type, compound, length, name_and_type,
};
use super::text::{Str, utf16_z};
use super::{Varint64, Zigzag64};
use crate::wire::Reader;
use crate::{DecodeError, DecodeErrorKind, Guid};

/// A value of a payload.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// True or false.
    Boolean(bool),
    /// A code unit of UTF-16 or of UTF-8, alone.
    CodeUnit(u16),
    /// A signed number of any size.
    Int(i64),
    /// An unsigned number of any size.
    UInt(u64),
    /// A 32-bit float.
    Single(f32),
    /// A 64-bit float.
    Double(f64),
    /// The 16 bytes of a .NET `Decimal`. Event sources that claim to write one write 8 bytes of something else.
    Decimal([u8; 16]),
    /// A point in time.
    DateTime(FileTime),
    /// A GUID.
    Guid(Guid),
    /// A string, or an array of code units.
    Text(Str<'a>),
    /// An array of `Byte`.
    Bytes(&'a [u8]),
}

/// A Windows FILETIME: units of 100 ns since 1601-01-01 UTC.
///
/// ```
/// use ipc_proto::nettrace::FileTime;
///
/// let time = FileTime(116_444_736_000_000_000 + 12_345_678);
/// assert_eq!(time.to_string(), "1970-01-01T00:00:01.2345678Z");
/// assert_eq!(time.unix_100ns(), 12_345_678);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileTime(pub u64);

impl FileTime {
    /// The same since 1970; negative before.
    #[must_use]
    pub const fn unix_100ns(self) -> i64 {
        self.0.wrapping_sub(116_444_736_000_000_000) as i64
    }
}

/// ISO 8601, always with seven decimals.
impl fmt::Display for FileTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, fraction) = (self.0.wrapping_div(10_000_000), self.0.wrapping_rem(10_000_000));
        let (days, second) = (seconds.wrapping_div(86_400), seconds.wrapping_rem(86_400));
        let (minute, second) = (second.wrapping_div(60), second.wrapping_rem(60));
        let (hour, minute) = (minute.wrapping_div(60), minute.wrapping_rem(60));
        // 1601 begins a cycle of 400 years. Count from the March before it, so that a leap day ends its year: 306 days
        // from there to the first of January.
        let days = days.wrapping_add(306);
        let (cycle, day) = (days.wrapping_div(146_097), days.wrapping_rem(146_097));
        // A cycle's last day would be a fifth century; a fourth year's last day likewise.
        let century = day.wrapping_div(36_524).min(3);
        let day = day.wrapping_sub(century.wrapping_mul(36_524));
        let four = day.wrapping_div(1_461);
        let day = day.wrapping_rem(1_461);
        let one = day.wrapping_div(365).min(3);
        let day = day.wrapping_sub(one.wrapping_mul(365));
        // From March on, months of 31, 30, 31, 30, 31 days twice and two more.
        let month = day.wrapping_mul(5).wrapping_add(2).wrapping_div(153);
        let day = day.wrapping_sub(month.wrapping_mul(153).wrapping_add(2).wrapping_div(5)).wrapping_add(1);
        let (month, next) = if month < 10 { (month.wrapping_add(3), 0) } else { (month.wrapping_sub(9), 1) };
        let year = cycle
            .wrapping_mul(400)
            .wrapping_add(century.wrapping_mul(100))
            .wrapping_add(four.wrapping_mul(4))
            .wrapping_add(one)
            .wrapping_add(1600)
            .wrapping_add(next);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:07}Z")
    }
}

/// A step through a payload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'a> {
    /// A value.
    Value {
        /// The field's name; none for an element of an array.
        name: Str<'a>,
        /// The value.
        value: Value<'a>,
    },
    /// The fields of an object follow.
    BeginObject {
        /// The field's name; none for an element of an array, and for an object that stands for the whole payload.
        name: Str<'a>,
    },
    /// The fields of the object have come.
    EndObject,
    /// The elements of an array follow.
    BeginArray {
        /// The field's name; none for an element of an array.
        name: Str<'a>,
    },
    /// The elements of the array have come.
    EndArray,
}

/// Reads a payload by its description, value by value.
///
/// | type code | type | in the payload |
/// |---|---|---|
/// | 1 | Object | its fields one after the other |
/// | 3 to 18, 20, 21, 23, 26 | [`Scalar`] | as it says there |
/// | 19, 22, 24, 25 | arrays | as [`ArrayKind`] says |
///
/// Packed and unaligned, see "Event payloads" in the NetTrace format. Arrays of code units come as one
/// [`Value::Text`], arrays of `Byte` as one [`Value::Bytes`].
///
/// A payload need not fit its description, in honest traces too. Reading ends where it does not;
/// [`finish`](Self::finish) tells. What came before stands, and what was open is closed: each `Begin` has its `End`.
/// Bytes behind the last field are no error: a writer may append, and strings with a NUL inside leave their tails.
///
/// The work is bounded by the payload's length and the description's, however the two were made up: values without
/// bytes (objects without fields, of which 2 bytes could promise 65,535) are limited to a few thousand.
///
/// ```
/// use ipc_proto::nettrace::{Item, Metadata, Value, Version};
///
/// # let utf16 = |s: &str| s.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
/// # let record = [&1u32.to_le_bytes()[..], &utf16("Prov"), &7u32.to_le_bytes(), &utf16("Tick"),
/// #     &[0; 16], &1u32.to_le_bytes(), &9u32.to_le_bytes(), &utf16("n")].concat();
/// let metadata = Metadata::decode(Version::V4, &record)?;
/// let mut values = metadata.fields.values(&[5, 0, 0, 0, 0xff]);
/// assert_eq!(values.next(), Some(Item::Value { name: "n".into(), value: Value::Int(5) }));
/// assert_eq!(values.next(), None);
/// assert_eq!(values.finish()?, [0xff]);
/// # Ok::<(), ipc_proto::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Values<'a> {
    payload: &'a [u8],
    r: Reader<'a>,
    /// Where to go on behind an array that lies elsewhere.
    back: Option<Reader<'a>>,
    frame: Frame<'a>,
    outer: heapless::Vec<Frame<'a>, MAX_DEPTH>,
    /// What may still be done: an item costs 1, and what of the description is read for it, 1 in 64 bytes.
    work: usize,
    /// The last number that counts arrays behind it.
    count: u32,
    error: Option<DecodeError>,
}

/// An object or an array on the way, with what of its description is to be read next.
#[derive(Clone, Copy, Debug)]
struct Frame<'a> {
    description: &'a [u8],
    left: u32,
    format: Format,
    kind: FrameKind,
}

#[derive(Clone, Copy, Debug)]
enum FrameKind {
    /// Fields, `left` of them.
    Object,
    /// Elements of the type that the description begins with, `left` of them.
    Array,
    /// Elements likewise, as long as there are bytes where the array lies.
    Elsewhere,
}

impl<'a> Frame<'a> {
    const fn object(fields: &Fields<'a>) -> Self {
        Self { description: fields.bytes, left: fields.count, format: fields.format, kind: FrameKind::Object }
    }

    const fn array(element: &Element<'a>, left: u32, kind: FrameKind) -> Self {
        Self { description: element.bytes, left, format: element.format, kind }
    }
}

impl<'a> Fields<'a> {
    /// Reads a payload of these fields.
    #[must_use]
    #[inline]
    pub fn values(&self, payload: &'a [u8]) -> Values<'a> {
        Values {
            payload,
            r: Reader::new(payload),
            back: None,
            frame: Frame::object(self),
            outer: heapless::Vec::new(),
            work: payload.len().saturating_mul(8).saturating_add(256),
            count: 0,
            error: None,
        }
    }
}

impl<'a> Values<'a> {
    /// How the payload ended: with the bytes behind its last field.
    ///
    /// Reads what has not been read yet.
    ///
    /// # Errors
    /// The first thing that did not fit, with its offset in the payload.
    pub fn finish(mut self) -> Result<&'a [u8], DecodeError> {
        while self.next().is_some() {}
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.r.rest()),
        }
    }

    /// What did not fit, if the end was reached because of that.
    #[must_use]
    pub const fn error(&self) -> Option<DecodeError> {
        self.error
    }

    /// Begins a value; nothing is taken of one that does not fit.
    #[inline]
    fn step(&mut self) -> Result<Item<'a>, DecodeError> {
        let format = self.frame.format;
        let mut description = Reader::new(self.frame.description);
        self.frame.left = self.frame.left.wrapping_sub(1);
        let (name, mut of, len) = match self.frame.kind {
            FrameKind::Object => {
                let (name, of) = name_and_type(format, &mut description)?;
                self.frame.description = description.rest();
                (name, of, description.offset())
            }
            FrameKind::Array | FrameKind::Elsewhere => {
                let len = description.rest().len();
                (Str::EMPTY, description, len)
            }
        };
        let Some(work) = self.work.checked_sub(len.wrapping_shr(6).wrapping_add(1)) else {
            return Err(self.r.error(DecodeErrorKind::TooManyItems));
        };
        self.work = work;
        match Type::decode(format, &mut of)? {
            Type::Scalar(scalar) => Ok(Item::Value { name, value: read(scalar, &mut self.r)? }),
            Type::Counts(scalar) => self.counting(name, scalar),
            Type::Other(code) => self.compound(name, code, of),
        }
    }

    #[inline(never)]
    fn counting(&mut self, name: Str<'a>, scalar: Scalar) -> Result<Item<'a>, DecodeError> {
        let too_large = self.r.error(DecodeErrorKind::CountTooLarge);
        let value = read(scalar, &mut self.r)?;
        if let Value::UInt(count) = value {
            self.count = u32::try_from(count).map_err(|_| too_large)?;
        }
        Ok(Item::Value { name, value })
    }

    #[inline(never)]
    fn compound(&mut self, name: Str<'a>, code: u8, mut of: Reader<'a>) -> Result<Item<'a>, DecodeError> {
        match compound(self.frame.format, code, &mut of)? {
            Some(FieldType::Object(fields)) => {
                self.open(Frame::object(&fields))?;
                Ok(Item::BeginObject { name })
            }
            Some(FieldType::Array { kind, element }) => self.array(name, kind, element),
            // Descriptions are checked before they are handed out.
            _ => Err(self.r.error(DecodeErrorKind::UnknownType)),
        }
    }

    fn array(
        &mut self,
        name: Str<'a>,
        kind: ArrayKind,
        element: Element<'a>,
    ) -> Result<Item<'a>, DecodeError> {
        let count = match kind {
            ArrayKind::Counted => u32::from(self.r.read::<u16>()?),
            ArrayKind::FixedLength(count) => count.into(),
            ArrayKind::CountedBefore => self.count,
            ArrayKind::RelLoc | ArrayKind::DataLoc => return self.elsewhere(name, kind, element),
        };
        if let Some((unit, size)) = run(element.parse()?) {
            let len = length(count).saturating_mul(size);
            return Ok(Item::Value { name, value: whole(unit, self.r.bytes(len)?) });
        }
        self.open(Frame::array(&element, count, FrameKind::Array))?;
        Ok(Item::BeginArray { name })
    }

    #[inline(never)]
    fn elsewhere(
        &mut self,
        name: Str<'a>,
        kind: ArrayKind,
        element: Element<'a>,
    ) -> Result<Item<'a>, DecodeError> {
        let outside = self.r.error(DecodeErrorKind::UnexpectedEnd);
        let [low, high, len_low, len_high] = self.r.array()?;
        let place = usize::from(u16::from_le_bytes([low, high]));
        let len = usize::from(u16::from_le_bytes([len_low, len_high]));
        let from = if kind == ArrayKind::RelLoc { self.r.offset() } else { 0 };
        let start = from.checked_add(place).ok_or(outside)?;
        let bytes = self.payload.get(start..).and_then(|rest| rest.get(..len)).ok_or(outside)?;
        if let Some((unit, size)) = run(element.parse()?) {
            if len.checked_rem(size) != Some(0) {
                return Err(outside);
            }
            return Ok(Item::Value { name, value: whole(unit, bytes) });
        }
        // Its elements hold no arrays of this kind, so there is one way back.
        self.open(Frame::array(&element, u32::MAX, FrameKind::Elsewhere))?;
        self.back = Some(core::mem::replace(&mut self.r, Reader::at(bytes, start)));
        Ok(Item::BeginArray { name })
    }

    fn open(&mut self, frame: Frame<'a>) -> Result<(), DecodeError> {
        let before = core::mem::replace(&mut self.frame, frame);
        self.outer.push(before).map_err(|before| {
            self.frame = before;
            self.r.error(DecodeErrorKind::TooDeep)
        })
    }

    /// Closes what is open innermost.
    fn close(&mut self) -> Option<Item<'a>> {
        let outer = self.outer.pop()?;
        Some(match core::mem::replace(&mut self.frame, outer).kind {
            FrameKind::Object => Item::EndObject,
            FrameKind::Array => Item::EndArray,
            FrameKind::Elsewhere => {
                if let Some(back) = self.back.take() {
                    self.r = back;
                }
                Item::EndArray
            }
        })
    }

    #[cold]
    fn fail(&mut self, error: DecodeError) -> Option<Item<'a>> {
        self.error = self.error.or(Some(error));
        // Nothing more can be afforded: what is open closes.
        self.work = 0;
        self.close()
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        let elsewhere = matches!(self.frame.kind, FrameKind::Elsewhere);
        if self.frame.left == 0 || elsewhere && self.r.rest().is_empty() {
            return self.close();
        }
        match self.step() {
            Ok(item) => Some(item),
            Err(error) => self.fail(error),
        }
    }
}
impl core::iter::FusedIterator for Values<'_> {}

/// Arrays of which type come as one value, and of how many bytes an element is.
#[inline]
fn run(element: FieldType<'_>) -> Option<(Scalar, usize)> {
    match element {
        FieldType::Scalar(unit @ (Scalar::Byte | Scalar::Utf8CodeUnit)) => Some((unit, 1)),
        FieldType::Scalar(unit @ Scalar::Utf16CodeUnit) => Some((unit, 2)),
        _ => None,
    }
}

fn whole(unit: Scalar, bytes: &[u8]) -> Value<'_> {
    match unit {
        Scalar::Utf16CodeUnit => Value::Text(Str::Utf16(bytes)),
        Scalar::Utf8CodeUnit => Value::Text(Str::Utf8(bytes)),
        _ => Value::Bytes(bytes),
    }
}

#[inline]
fn read<'a>(scalar: Scalar, r: &mut Reader<'a>) -> Result<Value<'a>, DecodeError> {
    Ok(match scalar {
        Scalar::Boolean32 => Value::Boolean(r.read::<u32>()? != 0),
        Scalar::Boolean8 => Value::Boolean(r.read()?),
        Scalar::Utf16CodeUnit => Value::CodeUnit(r.read()?),
        Scalar::Utf8CodeUnit => Value::CodeUnit(r.read::<u8>()?.into()),
        Scalar::SByte => Value::Int(i8::from_le_bytes(r.array()?).into()),
        Scalar::Byte => Value::UInt(r.read::<u8>()?.into()),
        Scalar::Int16 => Value::Int(i16::from_le_bytes(r.array()?).into()),
        Scalar::UInt16 => Value::UInt(r.read::<u16>()?.into()),
        Scalar::Int32 => Value::Int(r.read::<i32>()?.into()),
        Scalar::UInt32 => Value::UInt(r.read::<u32>()?.into()),
        Scalar::Int64 => Value::Int(i64::from_le_bytes(r.array()?)),
        Scalar::UInt64 => Value::UInt(r.read()?),
        Scalar::Single => Value::Single(f32::from_le_bytes(r.array()?)),
        Scalar::Double => Value::Double(f64::from_le_bytes(r.array()?)),
        Scalar::Decimal => Value::Decimal(r.array()?),
        Scalar::DateTime => Value::DateTime(FileTime(r.read()?)),
        Scalar::Guid => Value::Guid(r.read()?),
        Scalar::Utf16String => Value::Text(utf16_z(r)?),
        Scalar::VarInt => Value::Int(r.read::<Zigzag64>()?.0),
        Scalar::VarUInt => Value::UInt(r.read::<Varint64>()?.0),
        Scalar::Utf8String => {
            let len: u16 = r.read()?;
            Value::Text(Str::Utf8(r.bytes(len.into())?))
        }
    })
}
