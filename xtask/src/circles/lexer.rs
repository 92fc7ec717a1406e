//! Splits Rust source into the tokens that [`super::modules`] reads; comments, literals and lifetimes
//! are left out.

/// One token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// An identifier or a keyword, without `r#`.
    Name(&'a str),
    /// `::`.
    PathSep,
    /// Any other byte of punctuation.
    Sign(u8),
}

/// The tokens of `text`. Source that does not compile gives some tokens too, never an error.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut found = Vec::with_capacity(bytes.len() / 5);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            b'/' if bytes.get(at + 1) == Some(&b'/') => at = end_of_line(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => at = end_of_comment(bytes, at),
            b'"' => at = end_of_string(bytes, at),
            b'\'' => at = end_of_quote(bytes, at),
            b'0'..=b'9' => at = end_of_name(bytes, at),
            b':' if bytes.get(at + 1) == Some(&b':') => {
                found.push(Token::PathSep);
                at += 2;
            }
            _ if is_name(byte) => {
                let end = end_of_name(bytes, at);
                let name = text.get(at..end).unwrap_or_default();
                at = match literal_after(bytes, name, end) {
                    Some(after) => after,
                    None if name == "r" && bytes.get(end) == Some(&b'#') => end + 1,
                    None => {
                        found.push(Token::Name(name));
                        end
                    }
                };
            }
            _ => {
                found.push(Token::Sign(byte));
                at += 1;
            }
        }
    }
    found
}

/// Bytes of names; those beyond ASCII are taken for letters.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn end_of_name(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| !is_name(*byte)).unwrap_or(rest.len())
}

fn end_of_line(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

/// The end of a `/* … */`, which may contain others.
fn end_of_comment(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < bytes.len() {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'/'), Some(b'*')) => (depth, at) = (depth + 1, at + 2),
            (Some(b'*'), Some(b'/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// The end of a string whose opening quotation mark is at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// The end of a character or of a lifetime whose `'` is at `at`.
fn end_of_quote(bytes: &[u8], at: usize) -> usize {
    let first = at + 1;
    if bytes.get(first) == Some(&b'\\') {
        let rest = bytes.get(first + 2..).unwrap_or_default();
        return first + 2 + rest.iter().position(|b| *b == b'\'').map_or(rest.len(), |p| p + 1);
    }
    // A character is one byte, or one with bytes that go on.
    let mut after = first + 1;
    while bytes.get(after).is_some_and(|byte| byte & 0xC0 == 0x80) {
        after += 1;
    }
    if bytes.get(after) == Some(&b'\'') { after + 1 } else { end_of_name(bytes, first) }
}

/// The end of a literal that begins with the prefix `name`, if it is one.
fn literal_after(bytes: &[u8], name: &str, end: usize) -> Option<usize> {
    let is_raw = matches!(name, "r" | "br" | "cr");
    match bytes.get(end) {
        Some(b'\'') if name == "b" => Some(end_of_quote(bytes, end)),
        Some(b'"') if matches!(name, "b" | "c") => Some(end_of_string(bytes, end)),
        Some(b'"' | b'#') if is_raw => {
            let rest = bytes.get(end..)?;
            let hashes = rest.iter().take_while(|byte| **byte == b'#').count();
            let text = end + hashes + 1;
            if bytes.get(text - 1) != Some(&b'"') {
                return None;
            }
            let closes = |at: &usize| {
                let marks = bytes.get(at + 1..at + 1 + hashes);
                bytes.get(*at) == Some(&b'"')
                    && marks.is_some_and(|marks| marks.iter().all(|byte| *byte == b'#'))
            };
            Some((text..bytes.len()).find(closes).map_or(bytes.len(), |at| at + 1 + hashes))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&str> {
        let name = |token| if let Token::Name(name) = token { Some(name) } else { None };
        tokens(text).into_iter().filter_map(name).collect()
    }

    #[test]
    fn comments_literals_and_lifetimes_are_left_out() {
        assert_eq!(names("a // b\nc /* d /* e */ f */ g"), ["a", "c", "g"]);
        assert_eq!(names(r##"a "b \" c" r"d\" e r#"f " g"# b"h" h"##), ["a", "e", "h"]);
        assert_eq!(names(r"a 'b' '\'' '\u{1F600}' 'é' &'c d b'e' f"), ["a", "d", "f"]);
        assert_eq!(names("0xff_u8 1.5e3 r#type"), ["type"]);
    }

    #[test]
    fn paths_keep_their_separators() {
        use Token::{Name, PathSep, Sign};
        assert_eq!(tokens("a::b:c"), [Name("a"), PathSep, Name("b"), Sign(b':'), Name("c")]);
    }

    #[test]
    fn unfinished_source_ends() {
        for text in ["\"a", "r#\"a", "/* a", "'", "'\\", "b'", "a::", "\"\\"] {
            tokens(text);
        }
    }
}
