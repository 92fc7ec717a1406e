//! The description of a machine and its storage, in contrast to their activity: it is the same throughout a run.
//!
//! Everything is read below a root directory, `/` outside of tests. What cannot be read is left out: a result without a
//! governor is worth more than no result.

#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "only Linux describes its drives in this way")
)]
mod drive;
mod file;
mod machine;

use std::fs;
use std::path::Path;

pub use drive::{DriveOrigin, drive_model, drive_serial};
pub use file::FileOrigin;
pub use machine::MachineOrigin;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The storage of a target: a block device, or a file and the devices below it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct StorageOrigin {
    /// The target, as the user gave it.
    pub target: String,
    /// The file; left out for a block device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileOrigin>,
    /// The loaded block device, or the block device of the file, then the devices below it, the nearest first. Empty
    /// without a known block device (tmpfs, overlays, network file systems).
    #[serde(default)]
    pub drives: Vec<DriveOrigin>,
}

impl StorageOrigin {
    /// Of the block device or the file `target`; `None` where there is neither. `root` is the directory with `proc` and
    /// `sys`.
    #[cfg(target_os = "linux")]
    pub fn of(root: &Path, target: &str) -> Option<StorageOrigin> {
        use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

        // Metadata follows links, so `/dev/disk/by-id/…` gives the device behind it. Users name drives in
        // this way, because kernel names change at each start.
        let status = fs::metadata(target).ok()?;
        let kind = status.file_type();
        let (file, number) = match kind.is_block_device() {
            true => (None, Some(status.rdev())),
            false if kind.is_file() => {
                let (file, number) = file::of(root, Path::new(target), &status);
                (Some(file), number)
            }
            false => return None,
        };
        let drives = number.map_or_else(Vec::new, |number| drive::all_below(root, number));
        Some(StorageOrigin { target: target.to_owned(), file, drives })
    }

    /// As on Linux; storage of other systems is not known.
    #[cfg(not(target_os = "linux"))]
    pub fn of(_: &Path, _: &str) -> Option<StorageOrigin> {
        None
    }
}

/// The text of a short file without blanks around it; `None` if there is none.
pub fn value(path: impl AsRef<Path>) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    // Models and serial numbers are padded with blanks, some with zero bytes. They
    // would make two texts of the same drive differ.
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

/// A number that is all of a short file.
fn number<T: std::str::FromStr>(path: impl AsRef<Path>) -> Option<T> {
    value(path)?.parse().ok()
}

/// The names in a directory, in order.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[cfg(test)]
pub(crate) mod fake {
    use std::fs;
    use std::path::Path;

    /// Writes `text` to `path` below `root`, with the directories around it.
    pub(crate) fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}
