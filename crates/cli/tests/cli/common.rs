//! Calls of the program in a directory of its own.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A device that is ready at once.
pub(crate) const SMALL: [&str; 6] =
    ["--requests", "2000", "--set", "flash.blocks_per_plane=32", "--set", "flash.channels=2"];

/// A fresh directory to work in.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
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
