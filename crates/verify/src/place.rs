//! Where a journal must not lie.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::VerifyError;

/// Refuses a journal on the file system that holds the target: the crash after which it is needed may
/// lose it together with the data.
///
/// A target that is a file lies on its own file system, one that is a loop device on that of the file
/// behind it. What lies on another device in mounted form is refused by `ssdyno-safety`.
///
/// # Errors
/// [`VerifyError::SameFileSystem`]. A failed look-up is not an error here: opening the target will report it.
pub fn check_journal_place(target: &str, journal: &Path) -> Result<(), VerifyError> {
    let parent = journal.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = std::fs::metadata(parent.unwrap_or(Path::new(".")));
    let (Some(holds_target), Ok(directory)) = (file_system_below(Path::new(target)), directory)
    else {
        return Ok(());
    };
    if holds_target != directory.dev() {
        return Ok(());
    }
    Err(VerifyError::SameFileSystem { target: target.to_owned(), journal: journal.to_owned() })
}

/// The number of the file system on which the data of `target` lie; `None` for a device of its own.
fn file_system_below(target: &Path) -> Option<u64> {
    let status = std::fs::metadata(target).ok()?;
    if !status.file_type().is_block_device() {
        return Some(status.dev());
    }
    let (major, minor) = (rustix::fs::major(status.rdev()), rustix::fs::minor(status.rdev()));
    let backing = format!("/sys/dev/block/{major}:{minor}/loop/backing_file");
    let backing = PathBuf::from(std::fs::read_to_string(backing).ok()?.trim_end());
    Some(std::fs::metadata(backing).ok()?.dev())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_beside_its_target_is_refused_and_one_elsewhere_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        std::fs::write(&target, [1; 512]).unwrap();
        let target = target.display().to_string();
        let below = dir.path().join("below");
        std::fs::create_dir(&below).unwrap();
        for beside in [dir.path().join("journal"), below.join("journal")] {
            let refused = check_journal_place(&target, &beside).unwrap_err();
            assert!(refused.to_string().contains("file system that contains"), "{refused}");
            assert!(refused.help("").contains("another device"));
        }
        assert!(check_journal_place(&target, &dir.path().join("none/journal")).is_ok());
        // /proc is a file system of its own wherever there is one.
        assert!(check_journal_place(&target, Path::new("/proc/journal")).is_ok());
    }
}
