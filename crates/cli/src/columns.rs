//! Text for a terminal of 80 columns.

/// Columns of a terminal.
pub(crate) const WIDTH: usize = 80;

/// Words with their meanings, `indent` columns in, a word a line.
pub(crate) fn list<'a>(indent: usize, entries: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let entries: Vec<_> = entries.collect();
    let longest = entries.iter().map(|(word, _)| word.chars().count()).max().unwrap_or(0);
    // A long word has a line for itself, so that the others keep their column.
    let width = longest.min(WIDTH / 2 - indent);
    let line = |(word, meaning): &(&str, &str)| {
        let body = wrapped(meaning, indent + width + 2);
        match word.chars().count() {
            _ if meaning.is_empty() => format!("{:indent$}{word}\n", ""),
            long if long > width => format!("{:indent$}{word}\n{body}", ""),
            _ => format!("{:indent$}{word:width$}  {}", "", body.trim_start()),
        }
    };
    entries.iter().map(line).collect()
}

/// Lines of at most [`WIDTH`] columns, `indent` columns in.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && indent + line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push_str(&format!("{:indent$}{line}\n", ""));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines + &format!("{:indent$}{line}\n", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_between_words() {
        let text = wrapped(&"word ".repeat(40), 4);
        assert!(text.lines().all(|line| line.len() <= WIDTH && line.starts_with("    word")));
        assert_eq!(text.split_whitespace().count(), 40);
    }

    #[test]
    fn meanings_stand_in_a_column() {
        let long = "x".repeat(60);
        let text = list(2, [("a", "one"), ("bcd", ""), (&*long, "two")].into_iter());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].find("one"), lines[3].find("two"), "{text}");
        assert!(lines[1] == "  bcd" && lines[2].trim() == long, "{text}");
    }
}
