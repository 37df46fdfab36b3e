//! The windows of time over which an account adds up.
use crate::trace::elapsed;

/// Windows of time of the same length, from the first event that counts. Their length doubles when there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    origin: Option<i64>,
    /// The length is this power of two, in nanoseconds.
    power: u32,
}

impl Default for Windows {
    fn default() -> Self {
        // 67 ms
        Self { origin: None, power: 26 }
    }
}

impl Windows {
    /// The number of windows at most.
    pub const COUNT: u16 = 64;

    /// Returns the number of the window of a time; `None` if there are too many windows before it.
    pub(super) fn of(&mut self, nanoseconds: i64) -> Option<u16> {
        let origin = *self.origin.get_or_insert(nanoseconds);
        let number = elapsed(origin, nanoseconds).checked_shr(self.power).unwrap_or_default();
        u16::try_from(number).ok().filter(|number| *number < Self::COUNT)
    }

    /// Makes the windows twice as long: their numbers are half of what they were.
    pub(super) const fn double(&mut self) {
        self.power = self.power.saturating_add(1);
    }

    /// Returns the length of a window in nanoseconds.
    #[must_use]
    pub fn length(&self) -> u64 {
        1_u64.checked_shl(self.power).unwrap_or(u64::MAX)
    }

    /// Returns the time at which a window begins, in nanoseconds from the start of the trace.
    #[must_use]
    pub fn start(&self, window: u16) -> i64 {
        let offset = self.length().saturating_mul(window.into());
        self.origin.unwrap_or_default().saturating_add_unsigned(offset)
    }
}
