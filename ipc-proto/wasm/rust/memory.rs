//! Addresses of the caller become references here.
use core::slice;

/// Returns the bytes at an address.
///
/// # Safety
/// The caller of the module vouches for the address.
pub(crate) const unsafe fn bytes<'a>(data: *const u8, len: usize) -> &'a [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: the address is not null; the caller vouches for the rest.
    unsafe { slice::from_raw_parts(data, len) }
}

/// Returns the values at an address. All bits there must be a valid `T`.
///
/// # Safety
/// As [`bytes`], and `T` consists of integers.
pub(crate) unsafe fn space<'a, T>(data: *mut T, len: usize) -> &'a mut [T] {
    if data.is_null() || !data.is_aligned() {
        return &mut [];
    }
    // SAFETY: the address is checked; the caller vouches for the rest.
    unsafe { slice::from_raw_parts_mut(data, len) }
}
