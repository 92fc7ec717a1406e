//! The disk below a target, as configuration files name it.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::device::{names, number, value};

/// The whole disk on which a block device, a partition or a file lies.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DiskIdentity {
    /// Name in the kernel: `nvme0n1`.
    pub name: String,
    /// Major and minor number of the whole disk.
    pub number: (u32, u32),
    /// Whether the target is a partition of it.
    pub is_partition: bool,
    /// Whether the target is a file on it.
    pub is_file: bool,
    /// Names of the disks below it, of a mapped device or an array.
    pub below: Vec<String>,
    /// The kernel's flag `queue/rotational`; `None` where it has none.
    pub rotational: Option<bool>,
    /// Model (`device/model`).
    pub model: Option<String>,
    /// Firmware revision (`device/firmware_rev` of NVMe, `device/rev` of SCSI).
    pub firmware: Option<String>,
}

impl DiskIdentity {
    /// Of the block device or the file at `path`; `None` where no single block device lies below it (tmpfs, overlays,
    /// network file systems).
    pub fn of(path: &Path) -> Option<DiskIdentity> {
        let status = fs::metadata(path).ok()?;
        let is_file = !status.file_type().is_block_device();
        let raw = if is_file { status.dev() } else { status.rdev() };
        let number = (rustix::fs::major(raw), rustix::fs::minor(raw));
        DiskIdentity::in_system(Path::new("/sys"), number, is_file)
    }

    fn in_system(sys: &Path, wanted: (u32, u32), is_file: bool) -> Option<DiskIdentity> {
        let link = sys.join(format!("dev/block/{}:{}", wanted.0, wanted.1));
        let path = fs::canonicalize(link).ok()?;
        let is_partition = path.join("partition").exists();
        // The kernel takes only whole disks in `io.cost.model`. So a partition is
        // replaced by its disk.
        let disk: PathBuf = if is_partition { path.parent()?.to_owned() } else { path };
        let flag = value(disk.join("queue/rotational"));
        Some(DiskIdentity {
            name: disk.file_name()?.to_string_lossy().into_owned(),
            number: number(&value(disk.join("dev"))?)?,
            is_partition,
            is_file,
            below: names(&disk.join("slaves")),
            rotational: flag.map(|flag| flag == "1"),
            model: value(disk.join("device/model")),
            firmware: value(disk.join("device/firmware_rev"))
                .or_else(|| value(disk.join("device/rev"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_partition_has_the_number_of_its_disk() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("devices/nvme0n1/dev", "259:0\n");
        put("devices/nvme0n1/queue/rotational", "0\n");
        put("devices/nvme0n1/device/model", "Fast Disk       \n");
        put("devices/nvme0n1/device/firmware_rev", "1.0\n");
        put("devices/nvme0n1/nvme0n1p1/dev", "259:1\n");
        put("devices/nvme0n1/nvme0n1p1/partition", "1\n");
        fs::create_dir_all(dir.path().join("dev/block")).unwrap();
        for (number, path) in [("259:0", "nvme0n1"), ("259:1", "nvme0n1/nvme0n1p1")] {
            let to = dir.path().join("devices").join(path);
            symlink(to, dir.path().join("dev/block").join(number)).unwrap();
        }
        let disk = DiskIdentity::in_system(dir.path(), (259, 0), false).unwrap();
        assert_eq!(
            (disk.number, disk.rotational, disk.is_partition),
            ((259, 0), Some(false), false)
        );
        assert_eq!(
            (disk.model.as_deref(), disk.firmware.as_deref()),
            (Some("Fast Disk"), Some("1.0"))
        );
        let part = DiskIdentity::in_system(dir.path(), (259, 1), true).unwrap();
        assert_eq!(part, DiskIdentity { is_partition: true, is_file: true, ..disk });
        assert_eq!(DiskIdentity::in_system(dir.path(), (8, 0), false), None);
        // Nothing of the kernel's own files lies on a disk.
        assert_eq!(DiskIdentity::of(Path::new("/proc/self/stat")), None);
    }
}
