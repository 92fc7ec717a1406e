//! The report of a failure: for people with its place, for programs as an object, and as an exit
//! code.

use std::io::IsTerminal;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_session::{ErrorBody, Failure, FailureKind, FailurePlace};

use crate::options::in_failure;

/// The exit code of the program.
pub(crate) fn exit_code(kind: FailureKind) -> u8 {
    match kind {
        FailureKind::Failed => 1,
        FailureKind::Usage => 2,
        FailureKind::Unwritable => 3,
        FailureKind::Undecided => 4,
        FailureKind::Interrupted => 130,
    }
}

/// Format of an error in `--json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ErrorObject {
    /// The error.
    pub(crate) error: ErrorBody,
}

/// clap's report on wrong arguments: the message, and the text after it.
pub(crate) fn told(error: &clap::Error) -> (String, String) {
    let text = error.render().to_string();
    let (first, rest) = text.trim_end().split_once('\n').unwrap_or((text.trim_end(), ""));
    let mut message = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    if message.ends_with(':') {
        // A list follows: what is missing is the message.
        for item in rest.lines().take_while(|line| line.starts_with(' ')) {
            message.push(' ');
            message.push_str(item.trim());
        }
    }
    (message, rest.trim().to_owned())
}

/// A failure for programs.
pub(crate) fn body(failure: &Failure) -> ErrorBody {
    in_failure(failure).body()
}

/// A failure for people: with the lines in question. Text from files and arguments may contain
/// control characters, which a terminal would obey.
pub(crate) fn render(failure: &Failure) -> String {
    let failure = &in_failure(failure);
    let message = printable(&failure.message);
    let help = failure.help.as_deref().map(printable);
    let mut group = Group::with_title(Level::ERROR.primary_title(message));
    if let Some(place) = failure.place.as_deref() {
        group = group.element(snippet(place));
    }
    group = group.elements(help.map(|help| Level::HELP.message(help)));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group]) + "\n"
}

/// The lines in question.
fn snippet(place: &FailurePlace) -> Snippet<'static, Annotation<'static>> {
    let text = printable(&place.text);
    // A file may end in the middle of what is missing.
    let inside = |at: usize| text.floor_char_boundary(at);
    let (start, end) = (inside(place.span.start), inside(place.span.end));
    let label = (!place.label.is_empty()).then(|| printable(&place.label));
    let annotation = AnnotationKind::Primary.span(start..end.max(start)).label(label);
    Snippet::source(text)
        .line_start(place.first_line)
        .path(printable(&place.name))
        .annotation(annotation)
}

/// `text` with a character of the same length instead of each control character, so that places in
/// it stay. Lines and tabs stay, too.
fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => c,
        // The end of a line as Windows writes it.
        '\r' => ' ',
        c if c.is_control() && c.len_utf8() == 1 => '?',
        c if c.is_control() => '¿',
        c => c,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_from_the_first_one_shown() {
        let place = FailurePlace {
            name: "a.trace".into(),
            text: "µ one\ntwo".into(),
            span: 9..10,
            first_line: 41,
            label: String::new(),
            is_file: true,
        };
        assert_eq!(place.line_and_column(), (42, 3));
        let failure = Failure::usage("wrong").at(Some(place));
        let shown = render(&failure);
        assert!(shown.contains("a.trace:42:3"), "{shown}");
        assert!(shown.contains("42 | two"), "{shown}");
        assert_eq!(failure.body().line, Some(42));
    }

    #[test]
    fn a_place_at_the_end_or_beyond_it_is_shown_all_the_same() {
        for span in [3..3, 3..4, 9..12] {
            let place = FailurePlace {
                name: "a".into(),
                text: "abc".into(),
                span,
                first_line: 1,
                label: "here".into(),
                is_file: true,
            };
            let failure = Failure::usage("wrong").at(Some(place));
            assert!(render(&failure).contains("wrong"));
        }
    }

    #[test]
    fn a_terminal_is_given_nothing_to_obey() {
        let hostile = "\u{1b}[31m\u{7}\u{9b}1m\r";
        let place = FailurePlace {
            name: format!("{hostile}name"),
            text: format!("{hostile}\nsecond {hostile}X"),
            span: 21..28,
            first_line: 1,
            label: format!("{hostile}here"),
            is_file: true,
        };
        let failure = Failure::usage(format!("no {hostile}")).with_help(format!("try {hostile}"));
        let shown = render(&failure.at(Some(place)));
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        assert!(shown.contains("no ?[31m?¿1m") && shown.contains("try ?[31m"), "{shown}");
        assert!(shown.contains("?[31m?¿1m name:2:"), "{shown}");
    }
}
