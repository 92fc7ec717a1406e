//! Child processes: built like `std::process::Command`, printable as a shell line.

use std::ffi::OsStr;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::report::Counts;

/// Variables that describe the package of a parent `cargo run`, this one. A nested cargo sets its
/// own; what it runs must not see ours.
const CARGO_LEAKS: &[&str] =
    &["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_NAME", "CARGO_CRATE_NAME"];

/// A command that can be shown to a person before (and after) it runs.
#[derive(Debug, Clone)]
pub(crate) struct Cmd {
    program: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    unset: Vec<&'static str>,
    dir: Option<PathBuf>,
}

/// The output of a captured command.
#[derive(Debug)]
pub(crate) struct Captured {
    /// Whether the exit code was 0.
    pub(crate) ok: bool,
    /// The exit code; `None`: a signal ended it.
    pub(crate) code: Option<i32>,
    /// Standard output, invalid UTF-8 replaced.
    pub(crate) stdout: String,
    /// Standard error, invalid UTF-8 replaced.
    pub(crate) stderr: String,
}

impl Cmd {
    /// A command without arguments that runs in the current directory.
    pub(crate) fn new(program: impl Into<String>) -> Self {
        let program = program.into();
        Self { program, args: Vec::new(), env: Vec::new(), unset: Vec::new(), dir: None }
    }

    /// A cargo call in `root`. Where `CI` is set the lock file must be current.
    pub(crate) fn cargo<S: Into<String>>(root: &Path, args: impl IntoIterator<Item = S>) -> Self {
        let mut args: Vec<String> = args.into_iter().map(Into::into).collect();
        let resolves = args.first().is_some_and(|verb| verb != "fmt" && !verb.starts_with('+'));
        if ci() && resolves {
            args.insert(1, "--locked".to_owned());
        }
        Self::new("cargo").args(args).dir(root)
    }

    /// Appends arguments.
    pub(crate) fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, key: &str, value: impl Into<String>) -> Self {
        self.env.push((key.to_owned(), value.into()));
        self
    }

    /// Removes an environment variable.
    pub(crate) fn without_env(mut self, key: &'static str) -> Self {
        self.unset.push(key);
        self
    }

    /// Sets the working directory.
    pub(crate) fn dir(mut self, dir: impl AsRef<OsStr>) -> Self {
        self.dir = Some(PathBuf::from(dir.as_ref()));
        self
    }

    /// Prints the shell line and hands the command on.
    pub(crate) fn announced(self) -> Self {
        eprintln!("$ {self}");
        self
    }

    /// Runs with inherited output. `Ok(false)`: the command ran and failed.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub(crate) fn stream(&self) -> Result<bool> {
        Ok(self.build().status().with_context(|| self.not_started())?.success())
    }

    /// Runs a `cargo test`, passes its output through as it comes and adds up its result lines.
    ///
    /// # Errors
    /// When the program cannot be started or its output cannot be read.
    pub(crate) fn stream_tests(&self) -> Result<(bool, Counts)> {
        let mut child =
            self.build().stdout(Stdio::piped()).spawn().with_context(|| self.not_started())?;
        let mut counts = Counts::default();
        if let Some(stdout) = child.stdout.take() {
            let mut out = std::io::stdout().lock();
            let mut reader = BufReader::new(stdout);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line)? > 0 {
                out.write_all(&line)?;
                out.flush()?;
                counts += Counts::of_result_line(&String::from_utf8_lossy(&line));
                line.clear();
            }
        }
        Ok((child.wait()?.success(), counts))
    }

    /// Runs and keeps the output.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub(crate) fn capture(&self) -> Result<Captured> {
        let output = self.build().output().with_context(|| self.not_started())?;
        Ok(Captured {
            ok: output.status.success(),
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Whether the program exists and exits with 0; prints nothing.
    pub(crate) fn works(&self) -> bool {
        self.capture().is_ok_and(|captured| captured.ok)
    }

    /// The `std` command, for callers that need the child itself.
    pub(crate) fn build(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        for (key, _) in std::env::vars_os() {
            let name = key.to_string_lossy();
            let leaks = CARGO_LEAKS.iter().any(|prefix| name.starts_with(prefix));
            if leaks || self.unset.contains(&&*name) {
                command.env_remove(&key);
            }
        }
        command.envs(self.env.iter().map(|(key, value)| (key, value)));
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        command
    }

    fn not_started(&self) -> String {
        format!("cannot start `{self}`; is `{}` installed and on PATH?", self.program)
    }
}

impl fmt::Display for Cmd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, value) in &self.env {
            write!(f, "{key}={} ", quoted(value))?;
        }
        write!(f, "{}", self.program)?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

/// Whether this runs on a build server, where a skipped check counts as a failed one.
pub(crate) fn ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_command_can_be_pasted() {
        let cmd = Cmd::new("cargo").args(["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(cmd.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn missing_program_is_named() {
        let error = Cmd::new("no-such-program-anywhere").stream().unwrap_err();
        assert!(error.to_string().contains("`no-such-program-anywhere` installed"), "{error}");
    }
}
