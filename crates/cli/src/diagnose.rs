//! What went wrong: one message, where, what to do, and the exit code.

use std::fmt;
use std::io::IsTerminal;
use std::ops::Range;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError,
    MietteSpanContents, SourceCode, SourceSpan, SpanContents,
};
use schemars::JsonSchema;
use serde::Serialize;

/// The exit codes of the program, 0 apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// A run failed or is partial.
    Failed = 1,
    /// Arguments, configuration or input are wrong.
    Usage = 2,
    /// Results could not be written.
    Unwritable = 3,
    /// Interrupted by the user.
    Interrupted = 130,
}

/// A text with the place that is meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// File, preset or argument.
    pub(crate) name: String,
    /// All of the text, or some lines of it.
    pub(crate) text: String,
    /// Bytes of `text`.
    pub(crate) span: Range<usize>,
    /// Number of the first line of `text`, from 1.
    pub(crate) first_line: usize,
    /// What to write under the span.
    pub(crate) label: String,
    /// Whether `name` is a file.
    pub(crate) is_file: bool,
}

impl Place {
    /// Line and column of the start, both from 1; the column counts characters.
    pub(crate) fn line_and_column(&self) -> (usize, usize) {
        let before = self.text.get(..self.span.start).unwrap_or(&self.text);
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        (self.first_line + line, column + 1)
    }
}

impl SourceCode for Place {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let inner = self.text.as_str().read_span(span, before, after)?;
        let data = self.text.as_bytes();
        let start = inner.span().offset();
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            data.get(start..start + inner.span().len()).unwrap_or_default(),
            *inner.span(),
            inner.line() + self.first_line - 1,
            inner.column(),
            inner.line_count(),
        )))
    }
}

/// Why the program ends with something else than 0.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// What is wrong, in one sentence.
    pub(crate) message: String,
    /// What to do.
    pub(crate) help: Option<String>,
    /// Where.
    pub(crate) place: Option<Box<Place>>,
    /// The file, where no line of it is to blame.
    pub(crate) file: Option<String>,
    /// The key of a configuration.
    pub(crate) key: Option<String>,
    /// True where an object on standard output tells of it already.
    pub(crate) told: bool,
}

/// The shape of an error in `--json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ErrorObject {
    /// The error.
    pub(crate) error: ErrorBody,
}

/// What went wrong. Keys that do not apply are `null`.
#[derive(Clone, Serialize, JsonSchema)]
pub(crate) struct ErrorBody {
    /// What is wrong.
    pub(crate) message: String,
    /// What to do.
    pub(crate) help: Option<String>,
    /// The file.
    pub(crate) file: Option<String>,
    /// Its line, from 1.
    pub(crate) line: Option<usize>,
    /// The character in the line, from 1.
    pub(crate) column: Option<usize>,
    /// The key of a configuration, as `--set` takes it.
    pub(crate) key: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure {
            exit,
            message: message.into(),
            help: None,
            place: None,
            file: None,
            key: None,
            told: false,
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, message)
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn at(mut self, place: Option<Place>) -> Failure {
        self.place = place.map(Box::new);
        self
    }

    /// The file that is meant, where no line of it is to blame.
    pub(crate) fn in_file(mut self, file: impl Into<String>) -> Failure {
        self.file = Some(file.into());
        self
    }

    pub(crate) fn with_key(mut self, key: impl Into<String>) -> Failure {
        self.key = Some(key.into());
        self
    }

    /// For `--json`.
    pub(crate) fn body(&self) -> ErrorBody {
        let file = self.place.as_ref().filter(|place| place.is_file);
        let (line, column) = file.map(|place| place.line_and_column()).unzip();
        ErrorBody {
            message: self.message.clone(),
            help: self.help.clone(),
            file: file.map(|place| place.name.clone()).or_else(|| self.file.clone()),
            line,
            column,
            key: self.key.clone(),
        }
    }

    /// For people: with the lines in question. What comes from files and arguments may hold control
    /// characters, which a terminal would obey.
    pub(crate) fn render(&self) -> String {
        let shown = Failure {
            message: printable(&self.message),
            help: self.help.as_deref().map(printable),
            place: self.place.as_deref().map(|place| {
                Box::new(Place {
                    name: printable(&place.name),
                    text: printable(&place.text),
                    label: printable(&place.label),
                    ..place.clone()
                })
            }),
            ..Failure::new(self.exit, "")
        };
        shown.render_printable()
    }

    fn render_printable(&self) -> String {
        let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let theme =
            if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let mut text = String::new();
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(100)
            .with_links(false)
            .with_break_words(false)
            .with_context_lines(1);
        if handler.render_report(&mut text, self).is_err() {
            text = format!("{self}\n");
        }
        text
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl Diagnostic for Failure {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.place.as_deref().map(|place| place as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let place = self.place.as_deref()?;
        let length = place.span.len();
        let label = (!place.label.is_empty()).then(|| place.label.clone());
        Some(Box::new(std::iter::once(LabeledSpan::new(label, place.span.start, length))))
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

/// The candidate that was probably meant: the one that ends alike, or the one with the fewest
/// typing errors, if they are few.
pub(crate) fn nearest<'a>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let distance = |candidate: &str| {
        let whole = strsim::damerau_levenshtein(wanted, candidate);
        // A right key in the wrong table, or in none, is as near as one typing error.
        let by_last = strsim::damerau_levenshtein(&last(wanted), &last(candidate));
        whole.min(by_last + 1)
    };
    let best = candidates.into_iter().map(|c| (distance(c), c)).min_by_key(|(d, _)| *d);
    let allowed = (last(wanted).chars().count() / 3).max(1);
    best.filter(|(distance, _)| *distance <= allowed).map(|(_, candidate)| candidate)
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
        let shown = failure.render();
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
            assert!(Failure::usage("wrong").at(Some(place)).render().contains("wrong"));
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
        let shown = failure.at(Some(place)).render();
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        assert!(shown.contains("no ?[31m?¿1m") && shown.contains("try ?[31m"), "{shown}");
        assert!(shown.contains("?[31m?¿1m name:2:"), "{shown}");
    }

    #[test]
    fn suggestions_are_near() {
        let keys = ["flash.channels", "flash.chips_per_channel", "workload.depth"];
        assert_eq!(nearest("flash.chanels", keys), Some("flash.channels"));
        assert_eq!(nearest("depth", keys), Some("workload.depth"));
        assert_eq!(nearest("ftl.channels", keys), Some("flash.channels"));
        assert_eq!(nearest("zzzzzz", keys), None);
    }
}
