//! The markup functions of every part of a page.

/// The style sheet of every page.
pub(super) const STYLE: &str = include_str!("style.css");

/// Text that is safe between tags and in attributes; control characters, which XML forbids, are
/// replaced.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

/// Two pictures side by side where there is room.
pub(super) fn pair(left: String, right: String) -> String {
    if left.is_empty() && right.is_empty() {
        return String::new();
    }
    format!("<div class=\"pair\">{left}{right}</div>\n")
}
