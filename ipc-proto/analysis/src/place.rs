//! Vectors whose places are numbers of 32 bits.

/// Returns the value at a place.
pub(crate) fn at<T>(values: &[T], place: u32) -> Option<&T> {
    values.get(usize::try_from(place).ok()?)
}

/// Returns the value at a place.
pub(crate) fn at_mut<T>(values: &mut [T], place: u32) -> Option<&mut T> {
    values.get_mut(usize::try_from(place).ok()?)
}

/// Returns a length as a place. All vectors have limits below 2^32.
pub(crate) fn index(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
