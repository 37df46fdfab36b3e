//! Text: UTF-8 or UTF-16 of the caller, or the bytes of a message.
use core::ffi::{c_char, c_void};
use core::marker::PhantomData;
use core::ptr;

use ipc_proto::wire::Writer;
use ipc_proto::{Encode, Text as ProtoText};

use crate::memory::{self, Output};
use crate::status::{Failure, Outcome, Status, report};

/// No text. The protocol distinguishes it from an empty text: a variable that is set to null is removed.
pub const DIPC_TEXT_NULL: u32 = 0;
/// UTF-8; `len` is the number of bytes, without a NUL. Must be valid.
pub const DIPC_TEXT_UTF8: u32 = 1;
/// UTF-16 in the byte order of the machine, aligned; `len` is the number of code units. Can have lone surrogates.
pub const DIPC_TEXT_UTF16: u32 = 2;
/// UTF-16 in little-endian byte order, not aligned; `len` is the number of code units. The form of texts in messages.
pub const DIPC_TEXT_WIRE: u32 = 3;

/// A text, which belongs to someone else: the caller's string, or a part of a message or trace. It is valid as long as
/// those bytes are. All zeros are a null text.
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
    Text(ProtoText<'a>),
    Wire(&'a [u8]),
}

impl<'a> Text<'a> {
    pub(crate) const NULL: Self = Self::new(ptr::null(), 0, DIPC_TEXT_NULL);

    const fn new(data: *const c_void, len: usize, form: u32) -> Self {
        Self { data, len, form, owner: PhantomData }
    }

    pub(crate) const fn utf8(text: &'a str) -> Self {
        Self::new(text.as_ptr().cast(), text.len(), DIPC_TEXT_UTF8)
    }

    /// Converts an optional name.
    pub(crate) fn optional(text: Option<&'a str>) -> Self {
        text.map_or(Self::NULL, Self::utf8)
    }

    /// Converts a text that was decoded.
    pub(crate) fn decoded(text: ProtoText<'a>) -> Self {
        match text.as_wire() {
            Some(units) => Self::new(units.as_ptr().cast(), units.len() / 2, DIPC_TEXT_WIRE),
            None => Self::NULL,
        }
    }

    /// Checks the text.
    ///
    /// # Safety
    /// `data` points to `len` code units.
    pub(crate) unsafe fn check(&self) -> Result<Checked<'a>, Failure> {
        match self.form {
            DIPC_TEXT_NULL => Ok(Checked::Text(ProtoText::NULL)),
            DIPC_TEXT_UTF8 => {
                // SAFETY: the caller vouches for it.
                let bytes = unsafe { memory::slice(self.data.cast(), self.len) }?;
                match core::str::from_utf8(bytes) {
                    Ok(text) => Ok(Checked::Text(text.into())),
                    Err(_) => Err(Status::InvalidArgument.into()),
                }
            }
            DIPC_TEXT_UTF16 => {
                // SAFETY: the caller vouches for it.
                let units = unsafe { memory::slice(self.data.cast(), self.len) }?;
                Ok(Checked::Text(ProtoText::from_utf16(units)))
            }
            DIPC_TEXT_WIRE => {
                let Some(len) = self.len.checked_mul(2) else { return Err(Status::InvalidLength.into()) };
                // SAFETY: the caller vouches for it.
                unsafe { memory::slice(self.data.cast(), len) }.map(Checked::Wire)
            }
            _ => Err(Status::InvalidArgument.into()),
        }
    }
}

impl<'a> Checked<'a> {
    const fn is_null(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_null())
    }

    fn units(self) -> impl Iterator<Item = u16> + use<'a> {
        let (text, wire): (_, &[u8]) = match self {
            Self::Text(text) => (text, &[]),
            Self::Wire(bytes) => (ProtoText::NULL, bytes),
        };
        // One of the two is empty.
        let wire = wire.chunks_exact(2).filter_map(|unit| unit.first_chunk());
        text.units().chain(wire.map(|unit| u16::from_le_bytes(*unit)))
    }
}

impl Encode for Checked<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Self::Text(text) => text.encode(w),
            Self::Wire(bytes) => {
                let count = (bytes.len() / 2).saturating_add(1);
                u32::try_from(count).unwrap_or(u32::MAX).encode(w);
                w.bytes(bytes);
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
        let mut out = Output::new(unsafe { memory::slice_mut(utf8.cast(), size) }?);
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
