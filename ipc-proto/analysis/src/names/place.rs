//! Lists whose indexes have 32 bits.
use ipc_proto::wire::to_usize;

/// Returns the value at an index.
pub(crate) fn at<T>(values: &[T], place: u32) -> Option<&T> {
    values.get(to_usize(place))
}

/// Returns the value at an index, to change it.
pub(crate) fn at_mut<T>(values: &mut [T], place: u32) -> Option<&mut T> {
    values.get_mut(to_usize(place))
}
