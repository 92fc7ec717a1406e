//! Where the keys of a TOML text stand.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A key or an element of a list, and where it stands.
struct Node {
    path: Vec<String>,
    key: Option<Range<usize>>,
    value: Range<usize>,
    is_table: bool,
}

/// `block_sizes[1].size` as `block_sizes`, `[1]`, `size`.
pub(crate) fn split(key: &str) -> Vec<String> {
    let mut path = Vec::new();
    for part in key.split('.') {
        let (name, indices) = part.find('[').map_or((part, ""), |at| part.split_at(at));
        path.push(name.to_owned());
        path.extend(indices.split_inclusive('[').skip(1).map(|index| {
            let digits: String = index.chars().filter(char::is_ascii_digit).collect();
            format!("[{digits}]")
        }));
    }
    path
}

/// The inverse of [`split`].
pub(crate) fn join(path: &[String]) -> String {
    let mut text = String::new();
    for part in path {
        if !text.is_empty() && !part.starts_with('[') {
            text.push('.');
        }
        text.push_str(part);
    }
    text
}

/// Bytes of `text` where the value of `path` stands (of a table: its name). Where the key is not
/// written: those of the innermost table around it. The flag says whether it was the key itself.
pub(crate) fn find(text: &str, path: &[String]) -> Option<(Range<usize>, bool)> {
    let nodes = nodes(text);
    (1..=path.len()).rev().find_map(|length| {
        let node = nodes.iter().find(|node| node.path == path[..length])?;
        let span = match (&node.key, node.is_table) {
            (Some(key), true) => key.clone(),
            _ => node.value.clone(),
        };
        Some((span, length == path.len()))
    })
}

/// Bytes of `text` where the name of the key `path` stands.
pub(crate) fn find_name(text: &str, path: &[String]) -> Option<Range<usize>> {
    nodes(text).into_iter().find(|node| node.path == path)?.key
}

/// The path of the innermost key or value around some bytes of `text`; empty for the whole.
pub(crate) fn path_at(text: &str, span: &Range<usize>) -> Vec<String> {
    let holds = |outer: &Range<usize>| outer.start <= span.start && span.end <= outer.end;
    let length = |node: &Node| {
        let spans = node.key.iter().chain([&node.value]);
        spans.filter(|outer| holds(outer)).map(|outer| outer.len()).min()
    };
    let around = nodes(text).into_iter().filter_map(|node| Some((length(&node)?, node)));
    around.min_by_key(|(length, _)| *length).map(|(_, node)| node.path).unwrap_or_default()
}

/// The key on the line of byte `at` of `text`, as far as lines show it: for a text that is not TOML. Within a list of
/// tables the index is left out.
pub(crate) fn key_near(text: &str, at: usize) -> Option<String> {
    let before = text.get(..at)?;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let plain = |part: &str| {
        let named = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        (!part.is_empty() && part.chars().all(named)).then(|| part.to_owned())
    };
    let line = text[start..].lines().next()?;
    let key = plain(line.split_once('=')?.0.trim())?;
    let table = before[..start].lines().rev().find(|line| line.trim_start().starts_with('['));
    let Some(table) = table else { return Some(key) };
    let name = table.split('#').next().unwrap_or_default().trim();
    let name = plain(name.trim_start_matches('[').trim_end_matches(']').trim())?;
    Some(format!("{name}.{key}"))
}

fn nodes(text: &str) -> Vec<Node> {
    let mut found = Vec::new();
    if let Ok(table) = DeTable::parse(text) {
        visit_table(table.get_ref(), &mut Vec::new(), &mut found);
    }
    found
}

fn visit_table(table: &DeTable<'_>, path: &mut Vec<String>, found: &mut Vec<Node>) {
    for (key, value) in table {
        path.push(key.get_ref().to_string());
        visit(Some(key.span()), value, path, found);
        path.pop();
    }
}

fn visit(
    key: Option<Range<usize>>,
    value: &Spanned<DeValue<'_>>,
    path: &mut Vec<String>,
    found: &mut Vec<Node>,
) {
    let is_table = matches!(value.get_ref(), DeValue::Table(_));
    found.push(Node { path: path.clone(), key, value: value.span(), is_table });
    match value.get_ref() {
        DeValue::Table(table) => visit_table(table, path, found),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(format!("[{index}]"));
                visit(None, item, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = 1\n[t]\nb = \"x\" # c\nl = [{ s = 1 }, { s = 22 }]\n[t.u]\nv = 2\n";

    #[test]
    fn keys_of_a_text_that_is_no_toml() {
        let near = |text: &str, part: &str| key_near(text, text.find(part).unwrap());
        let twice = "a = 1\n[t] # of things\nb = 2\nb = 3\n";
        assert_eq!(near(twice, "a =").as_deref(), Some("a"));
        assert_eq!(near(twice, "b = 3").as_deref(), Some("t.b"));
        assert_eq!(near(twice, "3").as_deref(), Some("t.b"));
        assert_eq!(near("[[t.u]]\nv = 1e", "1e").as_deref(), Some("t.u.v"));
        for (text, part) in [("[t\n= 3", "3"), ("[t]\nx", "x"), ("[=\nb = 1", "1")] {
            assert_eq!(near(text, part), None, "{text}");
        }
    }

    fn shown(key: &str) -> Option<(&'static str, bool)> {
        find(TEXT, &split(key)).map(|(span, exact)| (&TEXT[span], exact))
    }

    #[test]
    fn keys_are_found_or_their_table() {
        assert_eq!(shown("a"), Some(("1", true)));
        assert_eq!(shown("t.b"), Some(("\"x\"", true)));
        assert_eq!(shown("t.l[1].s"), Some(("22", true)));
        assert_eq!(shown("t.u.v"), Some(("2", true)));
        assert_eq!(shown("t.u.w"), Some(("u", false)));
        assert_eq!(shown("t.nothing"), Some(("t", false)));
        assert_eq!(shown("nothing"), None);
    }

    #[test]
    fn places_lead_back_to_keys() {
        let path = |part: &str| {
            let start = TEXT.find(part).unwrap();
            join(&path_at(TEXT, &(start..start + part.len())))
        };
        assert_eq!(path("\"x\""), "t.b");
        assert_eq!(path("22"), "t.l[1].s");
        assert_eq!(path("v"), "t.u.v");
        assert_eq!(path("u"), "t.u");
    }

    #[test]
    fn splitting_and_joining_are_inverse() {
        for key in ["a", "a.b", "a[0]", "a[0][12].b"] {
            assert_eq!(join(&split(key)), key);
        }
    }
}
