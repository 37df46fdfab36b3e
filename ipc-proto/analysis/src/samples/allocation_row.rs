//! The rows of allocations.
use ipc_proto::wire::Reader;
use nettrace::{Str, TraceEvent};

use crate::event::{pointer_size, row_text};

/// An allocation: AllocationTick and AllocationSampled. `P` has the size of a pointer.
///
/// ```text
/// AllocationTick     u32 amount, u32 kind, u16 runtime, u64 amount, P type, name, u32 heap, P address, u64 size
/// AllocationSampled  u32 kind, u16 runtime, P type, name, P address, u64 size, u64 offset       name UTF-16 and NUL
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct AllocationRow<'a> {
    /// The whole bytes that the event stands for; `None` if the row does not state them.
    pub(crate) amount: Option<u64>,
    /// The part of a byte beside them.
    pub(crate) fraction: f64,
    /// The name of the object's type; empty if the row does not state it.
    pub(crate) type_name: Str<'a>,
    /// Whether the object is one of the heap of large objects.
    pub(crate) is_large: bool,
}

impl<'a> AllocationRow<'a> {
    /// The kind of a large object.
    const LARGE: u32 = 1;

    /// Decodes an AllocationTick: one event for each 100 KB or so that a thread has allocated.
    pub(crate) fn of_tick(event: &TraceEvent<'a>) -> Self {
        let mut r = Reader::new(event.payload());
        let low: Option<u32> = r.read().ok();
        let is_large = r.read() == Ok(Self::LARGE);
        // The number of the runtime.
        let _ = r.bytes(2);
        let amount = r.read().ok().or_else(|| low.map(u64::from));
        let type_name = r.bytes(pointer_size(event)).map(|_| row_text(&mut r)).unwrap_or_default();
        Self { amount, fraction: 0.0, type_name, is_large }
    }

    /// Decodes an AllocationSampled (.NET 10): the event of an object of which a byte was drawn.
    pub(crate) fn of_sampled(event: &TraceEvent<'a>) -> Self {
        let (mut r, pointer_size) = (Reader::new(event.payload()), pointer_size(event));
        let is_large = r.read() == Ok(Self::LARGE);
        let type_name = r.bytes(pointer_size.saturating_add(2)).map(|_| row_text(&mut r)).unwrap_or_default();
        let size = r.bytes(pointer_size).and_then(|_| r.read()).ok();
        let (amount, fraction) = size.and_then(sampled_weight).unzip();
        Self { amount, fraction: fraction.unwrap_or_default(), type_name, is_large }
    }
}

/// Returns how many allocated bytes a sampled object of a size stands for, and the fraction of a byte beside them;
/// `None` for the size 0, which no object has.
///
/// Each allocated byte is drawn with the probability 1/102,400, so an object of `s` bytes is sampled with the
/// probability `1 - (1 - 1/102400)^s`, and stands for its size divided by that:
/// docs/design/features/RandomizedAllocationSampling.md of dotnet/runtime.
fn sampled_weight(size: u64) -> Option<(u64, f64)> {
    const MEAN: u64 = 102_400;
    // A larger object is always sampled, as far as the precision of a float shows.
    if size > 64 * MEAN {
        return Some((size, 0.0));
    }
    // (1 - 1/MEAN)^size, by squaring.
    let (mut missed, mut power, mut rest) = (1.0, 1.0 - 1.0 / MEAN as f64, size);
    while rest > 0 {
        if rest & 1 == 1 {
            missed *= power;
        }
        power *= power;
        rest >>= 1;
    }
    let weight = size as f64 / (1.0 - missed);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the weight of a size below the limit is between 102,400 and 100 times that"
    )]
    let whole = weight as u64;
    (size > 0).then_some((whole, weight - whole as f64))
}
