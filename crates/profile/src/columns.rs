//! Tables of text.

use std::fmt::Write as _;

/// Appends `rows` under `header` to `text`; columns with the numbers `right` are aligned at their right.
pub(crate) fn aligned(text: &mut String, header: &[String], rows: &[Vec<String>], right: &[usize]) {
    for line in ssdyno_report::aligned(header, rows.iter().cloned(), right).lines() {
        let _ = writeln!(text, "  {line}");
    }
}
