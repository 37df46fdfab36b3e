//! `system_time`: the time of an event as the standard library has it.
use core::time::Duration;
use std::time::SystemTime;

/// Converts the nanoseconds from 1970-01-01 UTC that [`TraceEvent::unix_nanoseconds`](crate::TraceEvent::unix_nanoseconds) returns to a time of the standard
/// library; `None` if the operating system cannot represent it.
///
/// ```
/// use core::time::Duration;
/// use std::time::SystemTime;
///
/// let time = nettrace::system_time(1_500_000_000);
/// assert_eq!(time, Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1_500)));
/// ```
#[must_use]
pub fn system_time(unix_nanoseconds: i128) -> Option<SystemTime> {
    const SECOND: u128 = 1_000_000_000;
    let distance = unix_nanoseconds.unsigned_abs();
    let seconds = distance.checked_div(SECOND)?.try_into().ok()?;
    let distance = Duration::new(seconds, distance.checked_rem(SECOND)?.try_into().ok()?);
    let epoch = SystemTime::UNIX_EPOCH;
    if unix_nanoseconds < 0 { epoch.checked_sub(distance) } else { epoch.checked_add(distance) }
}
