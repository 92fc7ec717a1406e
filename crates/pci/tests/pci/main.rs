//! The machine as a whole: found, given addresses, its interrupts routed, its drivers bound.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as the tests do")]

mod assignment;
mod capabilities;
mod decode;
mod enumeration;
mod mp_table;
mod mp_write;
mod no_room;
mod random_tree;
mod real;
mod routing;
#[cfg(all(feature = "std", target_os = "linux"))]
mod sysfs;
