//! Words that the glossary has retired are gone from documents, and from the texts of the program.

use super::rules::has_word;
use super::{Finding, SourceFile};

/// Where they are listed.
pub(super) const GLOSSARY: &str = "docs/glossary.md";

/// The places where they may stand: in the list, and in texts about the past.
const SPARED: &[&str] = &[GLOSSARY, "CHANGELOG.md"];

/// A retired word, in small letters, and what to say instead.
pub(super) type Retired = (String, String);

/// The table *Retired words* of the glossary.
pub(super) fn retired(glossary: &str) -> Vec<Retired> {
    let table = glossary.split("\n## Retired words\n").nth(1).unwrap_or_default();
    let rows = table.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
        Some((cells.next()?.to_lowercase(), cells.next()?.to_owned()))
    });
    // The head of the table is a row of words, too.
    rows.skip(1).collect()
}

/// The retired words in `file`.
pub(super) fn check(file: &SourceFile, retired: &[Retired]) -> Vec<Finding> {
    let program = file.path.starts_with("crates/") && file.path.contains("/src/");
    let read = match file.extension() {
        "md" => !SPARED.contains(&file.path.as_str()),
        "rs" => program,
        _ => false,
    };
    if !read {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (line, text) in (1..).zip(file.text.lines()) {
        let text = text.to_lowercase();
        for (word, instead) in retired.iter().filter(|(word, _)| has_word(&text, word)) {
            let message = format!("say `{instead}`, not `{word}` ({GLOSSARY})");
            found.push(Finding { line, message, warning: false });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# G\n\n| on order | x |\n\n## Retired words\n\nThese.\n\n| not | but |\n|---|---|\n\
                        | Behind the end | beyond the end |\n";

    #[test]
    fn retired_words_are_found_where_users_read() {
        let retired = retired(TEXT);
        assert_eq!(retired, [("behind the end".to_owned(), "beyond the end".to_owned())]);
        let lines = |path: &str, text: &str| -> Vec<usize> {
            let file = SourceFile { path: path.to_owned(), text: text.to_owned() };
            check(&file, &retired).iter().map(|finding| finding.line).collect()
        };
        assert_eq!(lines("docs/a.md", "on order\nit is behind the END\n"), [2]);
        assert_eq!(lines("crates/a/src/b.rs", "\"behind the end\""), [1]);
        assert_eq!(lines("crates/a/tests/b.rs", "\"behind the end\""), [0; 0]);
        assert_eq!(lines("CHANGELOG.md", "behind the end"), [0; 0]);
        assert_eq!(lines(GLOSSARY, "behind the end"), [0; 0]);
    }
}
