//! Where the machine describes itself, and what goes wrong there.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Most bytes that are read of a file. `/proc/stat` of a machine with 4096 CPUs has about 1 MB.
const FILE_BYTES_MOST: u64 = 16 << 20;

/// The directories below which the counters are. Tests point them at directories of their own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sources {
    /// Where procfs (proc(5)) is mounted: `/proc`.
    pub proc: PathBuf,
    /// Where sysfs (sysfs(5)) is mounted: `/sys`.
    pub sys: PathBuf,
}

impl Default for Sources {
    fn default() -> Sources {
        Sources { proc: "/proc".into(), sys: "/sys".into() }
    }
}

/// A source that could not be read. Its figures are missing from the sample.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceError {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1; `None` if the file as a whole could not be read.
    pub line: Option<usize>,
    /// The problem.
    pub problem: String,
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for SourceError {}

/// The text of a file, with its path for errors.
pub(crate) struct SourceText {
    file: PathBuf,
    text: String,
}

impl SourceText {
    /// Bytes that are not UTF-8 become U+FFFD, which no parser below accepts as a number.
    pub(crate) fn read(file: PathBuf) -> Result<SourceText, SourceError> {
        match read_limited(&file) {
            Ok(text) => Ok(SourceText { file, text }),
            Err(error) => Err(SourceError { file, line: None, problem: error.to_string() }),
        }
    }

    /// Each line with its number, counted from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = SourceLine<'_>> {
        let lines = self.text.lines().enumerate();
        lines.map(|(index, text)| SourceLine { file: &self.file, number: index + 1, text })
    }

    /// An error at the end of the file: something that should be there is not.
    pub(crate) fn ends_before(&self, what: &str) -> SourceError {
        SourceError {
            file: self.file.clone(),
            line: Some(self.text.lines().count().max(1)),
            problem: format!("the file ends before `{what}`"),
        }
    }
}

fn read_limited(file: &Path) -> io::Result<String> {
    let mut bytes = Vec::with_capacity(4096);
    // A file of procfs has no length, and a wrong path may lead to an endless one such as `/dev/zero`.
    // The limit is 16 times the largest known `/proc/stat`.
    File::open(file)?.take(FILE_BYTES_MOST).read_to_end(&mut bytes)?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        // Names of devices may contain any byte. Replacement characters keep the line readable; a
        // number with such a byte in it is refused below.
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// A line of a source.
#[derive(Clone, Copy)]
pub(crate) struct SourceLine<'a> {
    file: &'a Path,
    number: usize,
    pub(crate) text: &'a str,
}

impl SourceLine<'_> {
    pub(crate) fn error(&self, problem: impl Into<String>) -> SourceError {
        SourceError { file: self.file.to_owned(), line: Some(self.number), problem: problem.into() }
    }

    /// `word` as a number; `None` is a line that ends too early.
    pub(crate) fn number(&self, word: Option<&str>, what: &str) -> Result<u64, SourceError> {
        let word = word.ok_or_else(|| self.error(format!("the line ends before {what}")))?;
        // `u64::from_str` also accepts a plus sign. The kernel never writes one, so a
        // plus sign shows a file of another kind.
        let digits = word.bytes().all(|byte| byte.is_ascii_digit());
        // An empty word passes the test for digits and then fails to parse, and so does a number
        // above 64 bits. Both are errors and never zero.
        let number = if digits { word.parse().ok() } else { None };
        number.ok_or_else(|| self.error(format!("{what} is `{word}`, which is not a number")))
    }

    /// The next `N` words as numbers.
    pub(crate) fn numbers<'w, const N: usize>(
        &self,
        words: &mut impl Iterator<Item = &'w str>,
        what: &str,
    ) -> Result<[u64; N], SourceError> {
        let mut numbers = [0; N];
        for (index, number) in numbers.iter_mut().enumerate() {
            *number =
                self.number(words.next(), &format_args!("{what} {}", index + 1).to_string())?;
        }
        Ok(numbers)
    }
}
