//! Tables of text.

use std::fmt::Write as _;

/// Appends `rows` under `header` to `text`, aligned on the left, with an empty line behind.
pub(crate) fn aligned(text: &mut String, header: &[String], rows: &[Vec<String>]) {
    let all = || std::iter::once(header).chain(rows.iter().map(Vec::as_slice));
    let widths: Vec<usize> = (0..header.len())
        .map(|at| all().map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    for row in all() {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "  {cell}{}", " ".repeat(width - cell.chars().count()));
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text.push('\n');
}
