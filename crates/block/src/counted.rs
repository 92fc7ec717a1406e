//! Numbers of things, for people.

use alloc::format;
use alloc::string::String;

/// A number and what it counts: `1 request was`, `2 requests were`.
///
/// ```
/// use ssdyno_block::counted;
/// assert_eq!(counted(1, "request was", "requests were"), "1 request was");
/// assert_eq!(counted(0, "request was", "requests were"), "0 requests were");
/// ```
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
