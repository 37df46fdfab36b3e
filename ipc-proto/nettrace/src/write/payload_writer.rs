//! The payload of one event, value by value.
use ipc_proto::{Encode, Guid, wire};

use crate::encoding::{Str, Varint64, Zigzag64};
use crate::values::FileTime;
use crate::write::error::WriteError;
use crate::write::trace_writer::layout::utf8_len;

/// Writes the payload of an event: values in the order of its fields, into a buffer of the caller.
///
/// The methods have the names of the [`Scalar`](crate::Scalar)s that describe their values. The values of an object or
/// of an array of fixed length are written one after the other. [`array`](Self::array) writes a count before its
/// elements.
///
/// Errors are returned at the end, so that the calls form a chain:
///
/// ```
/// use nettrace::{FieldType, Fields, Item, PayloadWriter, Scalar, Str, Value, WriteError};
///
/// let fields = [
///     ("Count", FieldType::Scalar(Scalar::UInt32)),
///     ("Text", FieldType::Scalar(Scalar::Utf16String)),
///     ("Sizes", FieldType::array(Scalar::Double)),
/// ];
/// let (mut description, mut space) = ([0; 64], [0; 64]);
/// let fields = Fields::build(&fields, &mut description)?;
///
/// let payload = PayloadWriter::new(&mut space)
///     .uint32(7)
///     .utf16_string("tick")
///     .array([0.5, 1.5], PayloadWriter::double)
///     .finish()?;
///
/// assert_eq!(payload.len(), 4 + 10 + 2 + 16);
/// assert_eq!(fields.values(payload).field("Text"), Some(Value::Text("tick".into())));
/// let sizes = fields.values(payload).skip(3).take(2);
/// let size = |value| Item::Value { name: Str::EMPTY, value: Value::Double(value) };
/// assert!(sizes.eq([size(0.5), size(1.5)]));
/// # Ok::<(), WriteError>(())
/// ```
#[derive(Debug)]
#[must_use = "`finish` returns the payload"]
pub struct PayloadWriter<'b> {
    w: wire::Writer<'b>,
    error: Option<WriteError>,
}

impl<'b> PayloadWriter<'b> {
    /// Starts a payload at the front of `buf`.
    pub const fn new(buf: &'b mut [u8]) -> Self {
        Self { w: wire::Writer::new(buf), error: None }
    }

    /// Returns the payload.
    ///
    /// # Errors
    /// [`WriteError::EmbeddedNul`], [`WriteError::TooLong`] or [`WriteError::TooManyElements`] for the first value that
    /// has no encoding. Otherwise [`WriteError::BufferTooSmall`] with the length of the payload if the buffer is too
    /// small.
    pub fn finish(self) -> Result<&'b [u8], WriteError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let needed = self.w.len();
        match self.w.finish() {
            Ok(payload) => Ok(payload),
            Err(_) => Err(WriteError::BufferTooSmall { needed }),
        }
    }

    /// Writes the 16 bytes of a .NET `Decimal`.
    pub fn decimal(self, bytes: [u8; 16]) -> Self {
        self.bytes(&bytes)
    }

    /// Writes a text in UTF-16 and a NUL. A NUL in the text is an error, because readers would end the text there.
    pub fn utf16_string<'t, T: Into<Str<'t>>>(mut self, text: T) -> Self {
        let text = text.into();
        match text {
            Str::Utf8(bytes) if bytes.is_ascii() => {
                self.refuse_nul(bytes.contains(&0));
                self.w.ascii_units(bytes);
            }
            _ => {
                self.refuse_nul(text.units().any(|unit| unit == 0));
                text.units().for_each(|unit| unit.encode(&mut self.w));
            }
        }
        self.uint16(0)
    }

    /// Writes a text in UTF-8 after its length. Its description is [`Scalar::Utf8String`](crate::Scalar::Utf8String) or
    /// an array of [`Scalar::Utf8CodeUnit`](crate::Scalar::Utf8CodeUnit).
    ///
    /// More than 65,535 bytes are an error.
    pub fn utf8_string<'t, T: Into<Str<'t>>>(mut self, text: T) -> Self {
        let text = text.into();
        let len = utf8_len(text);
        match u16::try_from(len) {
            Ok(len) => len.encode(&mut self.w),
            Err(_) => self.fail(WriteError::TooLong { len }),
        }
        match text {
            Str::Utf8(bytes) => self.w.bytes(bytes),
            Str::Utf16(_) => {
                text.chars().for_each(|c| self.w.bytes(c.encode_utf8(&mut [0; 4]).as_bytes()));
            }
        }
        self
    }

    /// Writes the count of the elements and then each element, by `element`.
    ///
    /// More than 65,535 elements are an error.
    pub fn array<T>(
        mut self,
        elements: impl IntoIterator<Item = T>,
        mut element: impl FnMut(Self, T) -> Self,
    ) -> Self {
        let at = self.w.len();
        self = self.uint16(0);
        let mut count = 0_usize;
        for value in elements {
            self = element(self, value);
            count = count.saturating_add(1);
        }
        self.count(at, count);
        self
    }

    /// Writes an array of [`Scalar::Byte`](crate::Scalar::Byte): the count of the bytes, then the bytes.
    ///
    /// More than 65,535 bytes are an error.
    pub fn byte_array(mut self, bytes: &[u8]) -> Self {
        let at = self.w.len();
        self = self.uint16(0).bytes(bytes);
        self.count(at, bytes.len());
        self
    }

    /// Stores the number of elements at the offset `at`, which is before the elements.
    fn count(&mut self, at: usize, count: usize) {
        match u16::try_from(count) {
            Ok(count) => self.w.patch_u16(at, count),
            Err(_) => self.fail(WriteError::TooManyElements { count }),
        }
    }

    fn refuse_nul(&mut self, has_nul: bool) {
        if has_nul {
            self.fail(WriteError::EmbeddedNul);
        }
    }

    /// Remembers the first error.
    fn fail(&mut self, error: WriteError) {
        self.error = self.error.or(Some(error));
    }

    fn encode(mut self, value: &impl Encode) -> Self {
        value.encode(&mut self.w);
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.w.bytes(bytes);
        self
    }
}

/// Makes the method of each scalar: its name, its value, and the number that it writes.
macro_rules! scalars {
    ($($(#[$doc:meta])* $name:ident($value:ident: $type:ty) => $encoded:expr;)*) => {
        impl PayloadWriter<'_> {
            $(
                $(#[$doc])*
                pub fn $name(self, $value: $type) -> Self {
                    self.encode(&($encoded))
                }
            )*
        }
    };
}

scalars! {
    /// Writes a boolean of 4 bytes.
    boolean32(value: bool) => u32::from(value);
    /// Writes a boolean of 1 byte.
    boolean8(value: bool) => u8::from(value);
    /// Writes a code unit of UTF-16.
    utf16_code_unit(unit: u16) => unit;
    /// Writes a code unit of UTF-8.
    utf8_code_unit(unit: u8) => unit;
    /// Writes a signed integer of 1 byte.
    sbyte(number: i8) => number as u8;
    /// Writes an unsigned integer of 1 byte.
    byte(number: u8) => number;
    /// Writes a signed integer of 2 bytes.
    int16(number: i16) => number as u16;
    /// Writes an unsigned integer of 2 bytes.
    uint16(number: u16) => number;
    /// Writes a signed integer of 4 bytes.
    int32(number: i32) => number;
    /// Writes an unsigned integer of 4 bytes.
    uint32(number: u32) => number;
    /// Writes a signed integer of 8 bytes.
    int64(number: i64) => number as u64;
    /// Writes an unsigned integer of 8 bytes.
    uint64(number: u64) => number;
    /// Writes a signed integer of up to 10 bytes. Only V6 can describe it.
    var_int(number: i64) => Zigzag64(number);
    /// Writes an unsigned integer of up to 10 bytes. Only V6 can describe it.
    var_uint(number: u64) => Varint64(number);
    /// Writes a float of 4 bytes.
    single(number: f32) => number.to_bits();
    /// Writes a float of 8 bytes.
    double(number: f64) => number.to_bits();
    /// Writes a point in time.
    date_time(time: FileTime) => time.0;
    /// Writes a GUID.
    guid(guid: Guid) => guid;
}
