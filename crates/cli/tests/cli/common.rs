//! Calls of the program in a directory of its own.

use std::path::Path;
use std::process::{Command, Output};
#[cfg(unix)]
use std::sync::Once;

use serde_json::Value;
use tempfile::TempDir;

/// A device that is ready at once.
pub(crate) const SMALL: [&str; 6] =
    ["--requests", "2000", "--set", "flash.blocks_per_plane=32", "--set", "flash.channels=2"];

/// A fresh directory to work in.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
}

/// Lets programs that the tests start hear the signals that this process ignores.
///
/// Under nohup(1), and in the background of a shell without job control, a process begins with hang-ups or interrupts
/// ignored, and so do its children. A signal with a handler has none in a program that is started (execve(2)).
#[cfg(unix)]
fn let_children_hear() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap());
    for signal in [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|s| ignored >> (s - 1) & 1 == 1) {
        // The handler has no effect, as before: no code reads the flag.
        signal_hook::flag::register(signal, std::sync::Arc::default()).unwrap();
    }
}

impl Place {
    pub(crate) fn new() -> Place {
        #[cfg(unix)]
        static ONCE: Once = Once::new();
        #[cfg(unix)]
        ONCE.call_once(let_children_hear);
        Place { directory: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), contents).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ssdyno"));
        command.args(args).current_dir(self.path()).env("NO_COLOR", "1").env_remove("COLUMNS");
        command
    }

    pub(crate) fn call(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs and must succeed; gives standard output.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.call(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// As [`ok`](Place::ok) with `--json`: exactly one object.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let args = [args, &["--json"]].concat();
        one_object(&self.ok(&args))
    }

    /// Runs and must fail with `code`; gives standard error.
    pub(crate) fn fails(&self, code: i32, args: &[&str]) -> String {
        let output = self.call(args);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {errors}");
        assert!(!errors.contains("panicked"), "{errors}");
        errors
    }
}

/// The one JSON object that `text` is.
pub(crate) fn one_object(text: &str) -> Value {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let first = values.next().unwrap().unwrap();
    assert!(first.is_object(), "{text}");
    assert!(values.next().is_none(), "more than one value: {text}");
    first
}
