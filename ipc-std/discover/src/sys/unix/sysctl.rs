//! `sysctl`: what the kernel of macOS or a BSD tells about a process.

/// Reads a value of at most `limit` bytes.
#[allow(unsafe_code, reason = "sysctl is C")]
pub(super) fn sysctl(name: &[i32], limit: usize) -> Option<Vec<u8>> {
    let (mut bytes, mut length) = (vec![0; limit], limit);
    let (count, place) = (name.len().try_into().ok()?, bytes.as_mut_ptr().cast());
    let mut name = name.to_vec();
    // SAFETY: the function writes at most `length` bytes, the size of `bytes`. The null pointer sets no value.
    let failed =
        unsafe { libc::sysctl(name.as_mut_ptr(), count, place, &raw mut length, core::ptr::null_mut(), 0) };
    bytes.truncate(length);
    (failed == 0).then_some(bytes)
}
