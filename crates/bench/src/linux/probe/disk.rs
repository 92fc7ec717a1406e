//! The kernel's name of a device, under which it keeps its counters.

use std::io;
use std::path::Path;

use rustix::fs::{FileType, Stat};

/// The name in /proc/diskstats of the block device at `path`, or of that on which the file at
/// `path` lies; `None` where that is no single device (tmpfs, overlays, network file systems).
///
/// # Errors
/// There is nothing at `path`, or it may not be looked at.
pub fn disk_name(path: &Path) -> io::Result<Option<String>> {
    Ok(of(&rustix::fs::stat(path)?))
}

/// The kernel's names of all disks that are not empty: no partitions, no loop devices without a file.
pub fn disks() -> Vec<String> {
    let entries = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let has_room = |name: &String| {
        let sectors =
            std::fs::read_to_string(format!("/sys/block/{name}/size")).unwrap_or_default();
        sectors.trim().parse::<u64>().is_ok_and(|sectors| sectors > 0)
    };
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(has_room).collect();
    names.sort_unstable();
    names
}

/// As [`disk_name`], of an open file.
pub(crate) fn of(status: &Stat) -> Option<String> {
    let device = match FileType::from_raw_mode(status.st_mode) {
        FileType::BlockDevice => status.st_rdev,
        _ => status.st_dev,
    };
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let link = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    Some(link.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_on_no_device_has_none() {
        assert_eq!(disk_name(Path::new("/proc/self/stat")).unwrap(), None);
        assert!(disk_name(Path::new("/no/such/file")).is_err());
    }

    #[test]
    fn every_device_of_the_kernel_is_found_by_its_own_name() {
        for entry in std::fs::read_dir("/sys/class/block").into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let node = Path::new("/dev").join(&name);
            if node.exists() {
                assert_eq!(disk_name(&node).unwrap().as_deref(), Some(name.as_str()));
            }
        }
    }
}
