//! The clocks of a sample.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds of the calendar since 1970 (UTC); 0 on a machine whose clock is before that.
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // A machine without a battery for its clock may start in 1969 or in the far future. Neither is a reason to
    // lose a sample, so the value is limited and never fails.
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds of `CLOCK_MONOTONIC`, which all processes of a machine share.
#[cfg(target_os = "linux")]
pub fn monotonic_ns() -> u64 {
    ns(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))
}

/// Nanoseconds since a day before the first call: other systems have no common clock in the standard library.
#[cfg(not(target_os = "linux"))]
pub fn monotonic_ns() -> u64 {
    // An event before the first call needs a positive time, too. A day is longer
    // than any event that a caller looks back to.
    const BEFORE_NS: u64 = 86_400 * 1_000_000_000;
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let first = FIRST.get_or_init(std::time::Instant::now);
    // The first call may happen in any thread. `OnceLock` gives all threads the same
    // zero, so that their times can be compared.
    u64::try_from(first.elapsed().as_nanos()).unwrap_or(u64::MAX).saturating_add(BEFORE_NS)
}

/// CPU time of the calling thread so far, in nanoseconds.
#[cfg(target_os = "linux")]
pub(crate) fn thread_cpu_ns() -> Option<u64> {
    Some(ns(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)))
}

/// Not known on other systems.
#[cfg(not(target_os = "linux"))]
pub(crate) fn thread_cpu_ns() -> Option<u64> {
    None
}

#[cfg(target_os = "linux")]
fn ns(time: rustix::time::Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
