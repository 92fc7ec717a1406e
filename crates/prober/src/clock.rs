//! The clocks of a sample.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds of the calendar since 1970 (UTC); 0 on a machine whose clock is before that.
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
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
    // What began before the first call has a place on it, too.
    const BEFORE_NS: u64 = 86_400 * 1_000_000_000;
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let first = FIRST.get_or_init(std::time::Instant::now);
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
