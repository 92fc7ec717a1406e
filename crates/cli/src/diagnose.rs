//! How a failure is told: to people with its place, to programs as an object, and as an exit code.

use std::fmt;
use std::io::IsTerminal;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError,
    MietteSpanContents, SourceCode, SourceSpan, SpanContents,
};
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_session::{ErrorBody, Failure, FailureKind, Place};

/// The exit code of the program.
pub(crate) fn exit_code(kind: FailureKind) -> u8 {
    match kind {
        FailureKind::Failed => 1,
        FailureKind::Usage => 2,
        FailureKind::Unwritable => 3,
        FailureKind::Interrupted => 130,
    }
}

/// The shape of an error in `--json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ErrorObject {
    /// The error.
    pub(crate) error: ErrorBody,
}

/// A failure for people: with the lines in question. What comes from files and arguments may hold
/// control characters, which a terminal would obey.
pub(crate) fn render(failure: &Failure) -> String {
    let shown = Shown {
        message: printable(&failure.message),
        help: failure.help.as_deref().map(printable),
        place: failure.place.as_deref().map(|place| {
            ShownPlace(Place {
                name: printable(&place.name),
                text: printable(&place.text),
                label: printable(&place.label),
                ..place.clone()
            })
        }),
    };
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let mut text = String::new();
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(100)
        .with_links(false)
        .with_break_words(false)
        .with_context_lines(1);
    if handler.render_report(&mut text, &shown).is_err() {
        text = format!("{shown}\n");
    }
    text
}

/// A failure as it is drawn.
#[derive(Debug)]
struct Shown {
    message: String,
    help: Option<String>,
    place: Option<ShownPlace>,
}

#[derive(Debug)]
struct ShownPlace(Place);

impl SourceCode for ShownPlace {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let Place { name, text, first_line, .. } = &self.0;
        let inner = text.as_str().read_span(span, before, after)?;
        let data = text.as_bytes();
        let start = inner.span().offset();
        Ok(Box::new(MietteSpanContents::new_named(
            name.clone(),
            data.get(start..start + inner.span().len()).unwrap_or_default(),
            *inner.span(),
            inner.line() + first_line - 1,
            inner.column(),
            inner.line_count(),
        )))
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Shown {}

impl Diagnostic for Shown {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.place.as_ref().map(|place| place as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let Place { span, label, .. } = &self.place.as_ref()?.0;
        let label = (!label.is_empty()).then(|| label.clone());
        Some(Box::new(std::iter::once(LabeledSpan::new(label, span.start, span.len()))))
    }
}

/// `text` with a character of the same length in place of each control character, so that places in
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
        let place = Place {
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
        assert!(shown.contains("42 │ two"), "{shown}");
        assert_eq!(failure.body().line, Some(42));
    }

    #[test]
    fn a_place_at_the_end_or_beyond_it_is_shown_all_the_same() {
        for span in [3..3, 3..4, 9..12] {
            let place = Place {
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
        let place = Place {
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
