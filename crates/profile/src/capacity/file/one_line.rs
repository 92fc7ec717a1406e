//! Names in comments.

/// `text` without anything that ends a line: names of files and devices may have such characters, and a comment must not
/// become a line that a kernel or a YAML parser reads.
pub(super) fn one_line(text: &str) -> String {
    let safe = |c: char| match c {
        // YAML 1.1 also ends a line at these two, which are no control characters.
        '\u{2028}' | '\u{2029}' => c.escape_unicode().to_string(),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(safe).collect()
}
