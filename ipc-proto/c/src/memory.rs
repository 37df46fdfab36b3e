//! Pointers of C become references here, after they were checked.
use core::ffi::c_char;
use core::fmt::{self, Write as _};
use core::slice;

use crate::status::{Failure, Outcome, Status};

/// Returns the elements at a pointer, which can be null if there are none.
///
/// # Safety
/// If `len` is not 0, `data` points to `len` initialised elements that do not change during `'a`.
pub(crate) unsafe fn slice<'a, T>(data: *const T, len: usize) -> Result<&'a [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    check(data, len)?;
    // SAFETY: the pointer and the length are checked; the caller vouches for the rest.
    Ok(unsafe { slice::from_raw_parts(data, len) })
}

/// Returns the elements at a pointer, which can be null if there are none.
///
/// # Safety
/// If `len` is not 0, `data` points to `len` elements that nothing else uses during `'a`.
pub(crate) unsafe fn slice_mut<'a, T>(data: *mut T, len: usize) -> Result<&'a mut [T], Failure> {
    if len == 0 {
        return Ok(&mut []);
    }
    check(data, len)?;
    // SAFETY: as in `slice`.
    Ok(unsafe { slice::from_raw_parts_mut(data, len) })
}

/// Returns the object at a pointer.
///
/// # Safety
/// `object` points to an initialised object that does not change during `'a`.
pub(crate) unsafe fn reference<'a, T>(object: *const T) -> Result<&'a T, Failure> {
    check(object, 1)?;
    // SAFETY: the pointer is checked; the caller vouches for the rest.
    Ok(unsafe { &*object })
}

/// Stores a value at a pointer.
///
/// # Safety
/// `place` points to space for a `T`.
pub(crate) unsafe fn store<T>(place: *mut T, value: T) -> Result<(), Failure> {
    check(place, 1)?;
    // SAFETY: the pointer is checked; the caller vouches for the rest.
    unsafe { place.write(value) };
    Ok(())
}

/// Checks what can be checked about a pointer to `len` elements.
pub(crate) fn check<T>(data: *const T, len: usize) -> Result<(), Failure> {
    if data.is_null() {
        return Err(Status::NullPointer.into());
    }
    if !data.is_aligned() {
        return Err(Status::Misaligned.into());
    }
    match len.checked_mul(size_of::<T>()) {
        Some(size) if isize::try_from(size).is_ok() => Ok(()),
        _ => Err(Status::InvalidLength.into()),
    }
}

/// A buffer for text in UTF-8 with a NUL at the end. It stores whole characters, and counts those that do not fit.
pub(crate) struct Utf8Buffer<'b> {
    buf: &'b mut [u8],
    stored: usize,
    len: usize,
}

impl<'b> Utf8Buffer<'b> {
    pub(crate) const fn new(buf: &'b mut [u8]) -> Self {
        Self { buf, stored: 0, len: 0 }
    }

    /// Appends a character.
    pub(crate) fn push(&mut self, c: char) {
        let mut utf8 = [0; 4];
        let bytes = c.encode_utf8(&mut utf8).as_bytes();
        let end = self.stored.saturating_add(bytes.len());
        // A character is stored only if all characters before it are, and if the NUL fits after it.
        if self.stored == self.len && end < self.buf.len() {
            let room = self.buf.get_mut(self.stored..).unwrap_or_default();
            room.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            self.stored = end;
        }
        self.len = self.len.saturating_add(bytes.len());
    }

    /// Appends the NUL, and returns the length without it.
    pub(crate) fn finish(self) -> Outcome {
        if let Some(end) = self.buf.get_mut(self.stored) {
            *end = 0;
        }
        let needed = self.len.saturating_add(1);
        if needed > self.buf.len() {
            return Err(Failure { status: Status::BufferTooSmall, detail: needed });
        }
        Ok(self.len)
    }
}

/// Writes a text with a NUL into memory of the caller, and returns its length without the NUL. Not for a `str`: its
/// `Display` pads, with code that can panic.
///
/// # Safety
/// `text` points to `size` bytes that nothing else uses.
pub(crate) unsafe fn store_text(text: *mut c_char, size: usize, shown: impl fmt::Display) -> Outcome {
    // SAFETY: the caller vouches for the buffer.
    let mut out = Utf8Buffer::new(unsafe { slice_mut(text.cast(), size) }?);
    let _ = write!(out, "{shown}"); // an output never fails
    out.finish()
}

impl fmt::Write for Utf8Buffer<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        s.chars().for_each(|c| self.push(c));
        Ok(())
    }
}
