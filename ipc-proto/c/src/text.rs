//! Text: UTF-8 or UTF-16 of the caller, or the bytes of a message.
use core::ffi::{c_char, c_void};
use core::marker::PhantomData;
use core::ptr;

use ipc_proto::wire::Writer;
use ipc_proto::{Encode, Text as ProtoText};
use nettrace::Str;

use crate::memory::{self, Utf8Buffer};
use crate::status::{Failure, Outcome, Status, report};

/// No text. The protocol distinguishes it from an empty text: a variable that is set to null is removed.
pub const DIPC_TEXT_NULL: u32 = 0;
/// UTF-8; `len` is the number of bytes, without a NUL. Must be valid.
pub const DIPC_TEXT_UTF8: u32 = 1;
/// UTF-16 in the byte order of the machine, aligned; `len` is the number of code units. Can have lone surrogates.
pub const DIPC_TEXT_UTF16: u32 = 2;
/// UTF-16 in little-endian byte order, not aligned; `len` is the number of code units. The form of texts in messages.
pub const DIPC_TEXT_WIRE: u32 = 3;
/// UTF-8 of a trace, or other UTF-8 that can be invalid, such as a variable of the environment; `len` is the number of
/// bytes. Invalid bytes become U+FFFD.
pub const DIPC_TEXT_TRACE_UTF8: u32 = 4;

/// A text in memory of another owner: the caller's string, or a part of a message or trace. It is valid as long as
/// that memory is. All zeros are a null text.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text<'a> {
    /// The first code unit.
    pub data: *const c_void,
    /// The number of code units.
    pub len: usize,
    /// One of `DIPC_TEXT_*`.
    pub form: u32,
    /// The owner of the code units.
    pub owner: PhantomData<&'a ()>,
}

/// A text whose pointer was checked.
#[derive(Clone, Copy)]
pub(crate) enum Checked<'a> {
    Null,
    /// UTF-8, and whether it is valid.
    Utf8(&'a [u8], Option<&'a str>),
    Utf16(&'a [u16]),
    Wire(&'a [u8]),
}

/// Converts a text that was decoded.
impl<'a> From<ProtoText<'a>> for Text<'a> {
    fn from(text: ProtoText<'a>) -> Self {
        match text.as_wire() {
            Some(units) => Self::new(units.as_ptr().cast(), units.len() / 2, DIPC_TEXT_WIRE),
            None => Self::NULL,
        }
    }
}

impl<'a> Text<'a> {
    pub(crate) const NULL: Self = Self::new(ptr::null(), 0, DIPC_TEXT_NULL);

    pub(crate) const fn new(data: *const c_void, len: usize, form: u32) -> Self {
        Self { data, len, form, owner: PhantomData }
    }

    pub(crate) const fn utf8(text: &'a str) -> Self {
        Self::new(text.as_ptr().cast(), text.len(), DIPC_TEXT_UTF8)
    }

    /// Converts an optional name.
    pub(crate) fn optional(text: Option<&'a str>) -> Self {
        text.map_or(Self::NULL, Self::utf8)
    }

    /// Converts a string of a trace.
    pub(crate) const fn of_trace(string: Str<'a>) -> Self {
        match string {
            Str::Utf16(bytes) => Self::new(bytes.as_ptr().cast(), bytes.len() / 2, DIPC_TEXT_WIRE),
            Str::Utf8(bytes) => Self::new(bytes.as_ptr().cast(), bytes.len(), DIPC_TEXT_TRACE_UTF8),
        }
    }

    /// Returns a text of the caller in UTF-8; empty for null.
    ///
    /// # Safety
    /// As [`check`](Self::check).
    pub(crate) unsafe fn str(&self) -> Result<&'a str, Failure> {
        // SAFETY: the caller vouches for the text.
        match unsafe { self.check() }? {
            Checked::Null => Ok(""),
            Checked::Utf8(_, Some(text)) => Ok(text),
            _ => Err(Status::InvalidArgument.into()),
        }
    }

    /// Converts a text of the caller, in the forms that the caller makes.
    ///
    /// # Safety
    /// As [`check`](Self::check).
    pub(crate) unsafe fn proto(&self) -> Result<ProtoText<'a>, Failure> {
        // SAFETY: the caller vouches for the text.
        match unsafe { self.check() }? {
            Checked::Null => Ok(ProtoText::NULL),
            Checked::Utf8(_, Some(text)) => Ok(text.into()),
            Checked::Utf16(units) => Ok(ProtoText::from_utf16(units)),
            Checked::Utf8(_, None) | Checked::Wire(_) => Err(Status::InvalidArgument.into()),
        }
    }

    /// Checks the text.
    ///
    /// # Safety
    /// `data` points to `len` code units.
    pub(crate) unsafe fn check(&self) -> Result<Checked<'a>, Failure> {
        match self.form {
            DIPC_TEXT_NULL => Ok(Checked::Null),
            DIPC_TEXT_UTF8 | DIPC_TEXT_TRACE_UTF8 => {
                // SAFETY: the caller vouches for the text.
                let bytes = unsafe { memory::slice(self.data.cast(), self.len) }?;
                let valid = core::str::from_utf8(bytes).ok();
                if valid.is_none() && self.form == DIPC_TEXT_UTF8 {
                    return Err(Status::InvalidArgument.into());
                }
                Ok(Checked::Utf8(bytes, valid))
            }
            // SAFETY: the caller vouches for the text.
            DIPC_TEXT_UTF16 => unsafe { memory::slice(self.data.cast(), self.len) }.map(Checked::Utf16),
            DIPC_TEXT_WIRE => {
                let Some(len) = self.len.checked_mul(2) else { return Err(Status::InvalidLength.into()) };
                // SAFETY: the caller vouches for the text.
                unsafe { memory::slice(self.data.cast(), len) }.map(Checked::Wire)
            }
            _ => Err(Status::InvalidArgument.into()),
        }
    }
}

impl<'a> Checked<'a> {
    const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    const fn units(self) -> Units<'a> {
        Units { text: self, low: None }
    }
}

/// An iterator over code units. It is one small function, so that a program does not contain one for each form.
struct Units<'a> {
    text: Checked<'a>,
    /// The second half of a surrogate pair.
    low: Option<u16>,
}

impl Iterator for Units<'_> {
    type Item = u16;

    #[inline(never)]
    fn next(&mut self) -> Option<u16> {
        match &mut self.text {
            Checked::Null => None,
            Checked::Utf16(units) => {
                let (unit, rest) = units.split_first()?;
                *units = rest;
                Some(*unit)
            }
            Checked::Wire(bytes) => {
                let (unit, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(u16::from_le_bytes(*unit))
            }
            Checked::Utf8(bytes, _) => {
                if let Some(low) = self.low.take() {
                    return Some(low);
                }
                let (c, len) = first_char(bytes)?;
                *bytes = bytes.get(len..).unwrap_or_default();
                let mut pair = [0; 2];
                match c.encode_utf16(&mut pair) {
                    [high, low] => {
                        self.low = Some(*low);
                        Some(*high)
                    }
                    _ => Some(pair[0]),
                }
            }
        }
    }
}

/// Returns the first character and its length; U+FFFD for invalid bytes.
fn first_char(utf8: &[u8]) -> Option<(char, usize)> {
    let len = match utf8.first()? {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let bytes = utf8.get(..len).unwrap_or(utf8);
    match core::str::from_utf8(bytes) {
        Ok(text) => text.chars().next().map(|c| (c, bytes.len())),
        Err(error) => Some((char::REPLACEMENT_CHARACTER, error.error_len().unwrap_or(bytes.len()))),
    }
}

impl Encode for Checked<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        match *self {
            Self::Null => ProtoText::NULL.encode(w),
            Self::Utf8(_, Some(text)) => ProtoText::from(text).encode(w),
            Self::Utf16(units) => ProtoText::from_utf16(units).encode(w),
            Self::Wire(_) | Self::Utf8(_, None) => {
                let count = self.units().count().saturating_add(1);
                u32::try_from(count).unwrap_or(u32::MAX).encode(w);
                self.units().for_each(|unit| unit.encode(w));
                0_u16.encode(w);
            }
        }
    }
}

/// Returns the UTF-8 text at `text`, up to its NUL, as a text; null for a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_utf8(text: *const c_char) -> Text<'static> {
    if text.is_null() {
        return Text::NULL;
    }
    let mut len = 0_usize;
    // Volatile, as the compiler would make a call of `strlen` of the loop, which not every system has.
    // SAFETY: the caller vouches for the NUL, and no byte before it is 0.
    while unsafe { text.wrapping_add(len).read_volatile() } != 0 {
        len = len.wrapping_add(1);
    }
    Text::new(text.cast(), len, DIPC_TEXT_UTF8)
}

/// Writes a text into `utf8`, as UTF-8 with a NUL at the end, and U+FFFD for each lone surrogate. A null text is written
/// as an empty one.
///
/// `len` receives the number of bytes without the NUL. If `size` is too small, `utf8` receives the characters that fit
/// and a NUL, `len` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_text_to_utf8(
    text: Text<'_>,
    utf8: *mut c_char,
    size: usize,
    len: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the text.
    let outcome = unsafe { text.check() }.and_then(|text| {
        // SAFETY: the caller vouches for the buffer.
        let mut out = Utf8Buffer::new(unsafe { memory::slice_mut(utf8.cast(), size) }?);
        for c in char::decode_utf16(text.units()) {
            out.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        out.finish()
    });
    // SAFETY: the caller vouches for `len`.
    unsafe { report(outcome, len) }
}

/// Writes the code units of a text into `utf16`, without a NUL. A null text is written as an empty one.
///
/// `len` receives the number of code units. If `size`, in code units, is too small, `utf16` receives those that fit, `len`
/// the number of all, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_text_to_utf16(
    text: Text<'_>,
    utf16: *mut u16,
    size: usize,
    len: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the text.
    let outcome = unsafe { text.check() }.and_then(|text| -> Outcome {
        // SAFETY: the caller vouches for the buffer.
        let room = unsafe { memory::slice_mut(utf16, size) }?;
        room.iter_mut().zip(text.units()).for_each(|(to, unit)| *to = unit);
        let needed = text.units().count();
        if needed > size {
            return Err(Failure { status: Status::BufferTooSmall, detail: needed });
        }
        Ok(needed)
    });
    // SAFETY: the caller vouches for `len`.
    unsafe { report(outcome, len) }
}

/// Returns whether two texts have the same code units, in whatever forms. Null differs from every text but null. An
/// invalid text equals none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_text_equals(a: Text<'_>, b: Text<'_>) -> bool {
    // SAFETY: the caller vouches for the texts.
    let (Ok(a), Ok(b)) = (unsafe { a.check() }, unsafe { b.check() }) else { return false };
    a.is_null() == b.is_null() && a.units().eq(b.units())
}
