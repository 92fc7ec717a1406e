//! Files that are too large to be in a spec: what they were, so that a run is not repeated with others.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::failure::Failure;

/// A trace or a job file, with a checksum of its contents.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileMark {
    /// Path of the file.
    pub path: String,
    /// SHA-256 of its bytes, as 64 hexadecimal digits.
    pub sha256: String,
}

impl FileMark {
    /// The file at `path` as it is now. `None` for a pipe, which can be read only once, and for one that cannot be
    /// read, of which its reader says more.
    pub fn of(path: &Path) -> Option<FileMark> {
        let sha256 = path.metadata().ok()?.is_file().then(|| sha256(path))?.ok()?;
        Some(FileMark { path: path.to_str()?.to_owned(), sha256 })
    }

    /// Refuses a file that is not what it was.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let refused = |what: String, help: &str| {
            Err(Failure::usage(what)
                .with_help(help)
                .with_key("contents.files")
                .in_file(self.path.as_str()))
        };
        match sha256(Path::new(&self.path)) {
            Ok(now) if now == self.sha256.to_ascii_lowercase() => Ok(()),
            Ok(now) => refused(
                format!(
                    "{} has changed since the run to repeat: its SHA-256 was {} and is now {now}",
                    self.path, self.sha256
                ),
                "restore the old file, or remove `contents.files` from the spec to use the new one",
            ),
            Err(error) => refused(
                format!("cannot read {}, a file of the run to repeat: {error}", self.path),
                "restore the file; the spec contains its SHA-256 but not its contents",
            ),
        }
    }
}

fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let (mut hash, mut some) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut some) {
            Ok(0) => break,
            Ok(length) => hash.update(&some[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let mut text = String::with_capacity(64);
    for byte in hash.finalize() {
        // A string takes whatever is written to it.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-4, appendix B.1 of its first edition: the digest of `abc`.
    #[test]
    fn the_digest_is_that_of_the_standard() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        let mark = FileMark::of(&path).unwrap();
        assert_eq!(mark.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(mark.check().is_ok());
        assert_eq!(FileMark::of(place.path()), None, "a directory");
    }
}
