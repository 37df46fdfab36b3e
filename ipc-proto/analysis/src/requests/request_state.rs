//! The state of requests in flight, and the sums of those that ended.
use alloc::string::String;

use super::folded_path::FoldedPath;
use super::summary::Direction;
use crate::{Durations, StackId};

/// A process, a direction and an activity.
pub(super) type RequestKey = (Option<u64>, Direction, [u8; 16]);
/// A process, a direction, a method or an origin, and a path.
pub(super) type GroupKey = (Option<u64>, Direction, String, FoldedPath);

/// A request in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenRequest {
    pub(super) group: u32,
    pub(super) start: i64,
    /// The activity that sent the request; nil if there is none.
    pub(super) parent: [u8; 16],
    /// The stack that sent the request; empty for incoming requests.
    pub(super) stack: StackId,
    pub(super) is_failed: bool,
}

/// The requests of a kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    pub(super) durations: Durations,
    pub(super) failed: u64,
    /// The numbers of requests that ended with a status from 400 to 499, and from 500 on.
    pub(super) statuses: [u64; 2],
}
