//! The system's information about a block device: `/sys`, `/proc/self/mountinfo`, `/proc/swaps`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use ssdyno_prober::{drive_model, drive_serial};
pub(crate) use ssdyno_prober::{names, value};

use crate::backing::{Identity, identity, of_loop};
use crate::processes::Used;

/// Where the system tells of itself. Tests build their own.
#[derive(Clone, Debug)]
pub(crate) struct System {
    pub(crate) sys: PathBuf,
    pub(crate) proc: PathBuf,
}

impl Default for System {
    fn default() -> System {
        System { sys: "/sys".into(), proc: "/proc".into() }
    }
}

/// Major and minor number.
pub(crate) type Number = (u32, u32);

/// A partition of the device, or the device itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Name in the kernel: `nvme0n1p2`.
    pub(crate) name: String,
    pub(crate) number: Number,
    /// Where it begins on its disk; 0 for a disk.
    pub(crate) start_bytes: u64,
    pub(crate) size_bytes: u64,
}

impl Part {
    /// Whether the open `file` is this very device.
    pub(crate) fn is(&self, file: &fs::File) -> bool {
        file.metadata().is_ok_and(|status| {
            let number = (rustix::fs::major(status.rdev()), rustix::fs::minor(status.rdev()));
            status.file_type().is_block_device() && number == self.number
        })
    }
}

/// A block device as the kernel describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Device {
    pub(crate) itself: Part,
    /// The disk it is a partition of.
    pub(crate) disk: Option<String>,
    pub(crate) partitions: Vec<Part>,
    /// Names of devices on top, at any distance: `dm-0`, `md127`.
    pub(crate) holders: BTreeSet<String>,
    pub(crate) model: Option<String>,
    pub(crate) serial: Option<String>,
    pub(crate) read_only: bool,
    /// The file behind a loop device.
    pub(crate) backing_file: Option<String>,
}

pub(crate) fn number(text: &str) -> Option<Number> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

impl System {
    /// The block device with the number `wanted`.
    ///
    /// # Errors
    /// The kernel does not know it.
    pub(crate) fn device(&self, wanted: Number) -> io::Result<Device> {
        let link = self.sys.join(format!("dev/block/{}:{}", wanted.0, wanted.1));
        let path = fs::canonicalize(link)?;
        let itself = part(&path).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "/sys does not describe it")
        })?;
        let is_partition = path.join("partition").exists();
        let disk_path = if is_partition { path.parent().unwrap_or(&path) } else { &path };
        let partitions: Vec<Part> = if is_partition {
            Vec::new()
        } else {
            let inside = names(&path).into_iter().map(|name| path.join(name));
            inside.filter(|path| path.join("partition").exists()).filter_map(|p| part(&p)).collect()
        };
        let mut holders = BTreeSet::new();
        // A partition may be unused while its whole disk is held, for example by an array. So
        // the disk is looked at together with the partition.
        let mut look = vec![path.clone(), disk_path.to_owned()];
        look.extend(partitions.iter().map(|partition| path.join(&partition.name)));
        // The kernel does not list loop devices among the holders of a block device.
        let loops = self.loops();
        let over = |(name, below): (String, PathBuf)| Some((name, block_number(&below)?));
        let loops: Vec<_> = loops.filter_map(over).collect();
        while let Some(path) = look.pop() {
            let itself = value(path.join("dev")).and_then(|text| number(&text));
            let above = loops.iter().filter(|(_, below)| Some(*below) == itself);
            let above = above.map(|(name, _)| name.clone());
            for name in names(&path.join("holders")).into_iter().chain(above) {
                // Holders may have several ways down to the device, as the devices of an array
                // do. Each is followed once.
                if holders.insert(name.clone()) {
                    look.push(self.sys.join("class/block").join(name));
                }
            }
        }
        Ok(Device {
            disk: is_partition.then(|| name_of(disk_path)),
            partitions,
            holders,
            model: drive_model(disk_path),
            serial: drive_serial(disk_path),
            read_only: value(path.join("ro")).is_some_and(|text| text == "1"),
            backing_file: value(path.join("loop/backing_file")),
            itself,
        })
    }

    /// Where `device`, its partitions or anything on top of it is mounted, or used as swap: one line
    /// each.
    pub(crate) fn users(&self, device: &Device) -> Vec<String> {
        let mut parts: Vec<Part> = vec![device.itself.clone()];
        parts.extend(device.partitions.iter().cloned());
        let holder = |name: &String| part(&self.sys.join("class/block").join(name));
        parts.extend(device.holders.iter().filter_map(holder));
        let named = |number: Number| parts.iter().find(|part| part.number == number);
        let mut users = Vec::new();
        for line in self.lines("self/mountinfo") {
            let Some(mount) = Mount::parse(&line) else { continue };
            // A file system of several devices, such as Btrfs, shows a device number of its own
            // in mountinfo. The source then names a device.
            let source = block_number(Path::new(&mount.source));
            if let Some(part) = named(mount.number).or_else(|| source.and_then(named)) {
                users.push(format!("{} is mounted at {}", part.name, mount.place));
            }
        }
        for line in self.lines("swaps").into_iter().skip(1) {
            let path = unescape(line.split_whitespace().next().unwrap_or_default());
            if let Some(part) = block_number(Path::new(&path)).and_then(named) {
                users.push(format!("{} is swap space in use", part.name));
            }
        }
        for part in &parts {
            users.extend(self.file_system_of_several(&part.name));
        }
        let open = Used::Devices(parts.iter().map(|part| part.number).collect());
        let open = self.processes_using(&open);
        users.extend(open.map(|who| format!("{}, or a part of it, is {who}", device.itself.name)));
        users.sort();
        users.dedup();
        users
    }

    /// Btrfs names the devices of its mounted file systems.
    fn file_system_of_several(&self, name: &str) -> Option<String> {
        let all = self.sys.join("fs/btrfs");
        let of =
            names(&all).into_iter().find(|id| all.join(id).join("devices").join(name).exists());
        of.map(|id| format!("{name} belongs to the mounted Btrfs file system {id}"))
    }

    /// How the file `wanted` is used by the system: swap, mounted, or behind a loop device other than
    /// `apart`.
    pub(crate) fn users_of_file(&self, wanted: Identity, apart: Option<&str>) -> Vec<String> {
        let mut users = Vec::new();
        // Two paths may lead to one file: hard links, bind mounts, symbolic links. Device and
        // inode decide and not the text of the path.
        let same = |path: &str| identity(Path::new(path)) == Some(wanted);
        for line in self.lines("swaps").into_iter().skip(1) {
            if same(&unescape(line.split_whitespace().next().unwrap_or_default())) {
                users.push("it is swap space in use".to_owned());
            }
        }
        for line in self.lines("self/mountinfo") {
            // The source of a virtual file system is only a name, such as `tmpfs`. As a
            // relative path it could match a file in the current directory.
            let mount = Mount::parse(&line).filter(|mount| mount.source.starts_with('/'));
            if let Some(mount) = mount.filter(|mount| same(&mount.source)) {
                users.push(format!("it is mounted at {}", mount.place));
            }
        }
        for (name, below) in self.loops() {
            let file = of_loop(&Path::new("/dev").join(&name), &below);
            if file == Some(wanted) && apart != Some(&name) {
                users.push(format!("it is behind the loop device {name}"));
            }
        }
        users.extend(self.processes_using(&Used::File(wanted)).map(|who| format!("it is {who}")));
        users
    }

    /// All loop devices, each with the name that its backing file or device had.
    fn loops(&self) -> impl Iterator<Item = (String, PathBuf)> {
        let blocks = self.sys.join("block");
        names(&blocks).into_iter().filter_map(move |name| {
            let below = value(blocks.join(&name).join("loop/backing_file"))?;
            Some((name, below.into()))
        })
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read(self.proc.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
    }
}

/// A device node's number.
pub(crate) fn block_number(path: &Path) -> Option<Number> {
    let status = fs::metadata(path).ok()?;
    let raw = status.file_type().is_block_device().then_some(status.rdev())?;
    Some((rustix::fs::major(raw), rustix::fs::minor(raw)))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn part(path: &Path) -> Option<Part> {
    let path = fs::canonicalize(path).ok()?;
    // The kernel counts in units of 512 bytes, whatever the sector of the device is
    // (Documentation/block/stat.rst). The real sector would give eight times the size on a disk
    // with 4096 bytes.
    let sectors: u64 = value(path.join("size"))?.parse().ok()?;
    let number = number(&value(path.join("dev"))?)?;
    let start: u64 = value(path.join("start")).and_then(|text| text.parse().ok()).unwrap_or(0);
    let (start_bytes, size_bytes) = (start.saturating_mul(512), sectors.saturating_mul(512));
    Some(Part { name: name_of(&path), number, start_bytes, size_bytes })
}

/// A line of mountinfo (proc_pid_mountinfo(5)).
struct Mount {
    number: Number,
    place: String,
    source: String,
}

impl Mount {
    fn parse(line: &str) -> Option<Mount> {
        let mut fields = line.split(' ');
        let number = number(fields.nth(2)?)?;
        let place = unescape(fields.nth(1)?);
        let source = unescape(fields.skip_while(|field| *field != "-").nth(2)?);
        Some(Mount { number, place, source })
    }
}

/// Spaces and the like are written as `\040`.
fn unescape(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        // The kernel writes a blank, a tab, a newline and a backslash as an octal number
        // (proc_pid_mountinfo(5)). A mount at `/my disk` would not be recognised without this.
        let code = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (first, code) {
            (b'\\', Some(byte)) => {
                out.push(byte);
                rest = &after[3..];
            }
            _ => {
                out.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A machine with a disk of two partitions; a volume lies on the second.
    fn machine(mounts: &str) -> (tempfile::TempDir, System) {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        let put = |path: &str, text: &str| {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), text).unwrap();
        };
        let disk = "sys/devices/pci/nvme0n1";
        for (path, dev, size) in [
            (disk.to_owned(), "259:0", "1000"),
            (format!("{disk}/nvme0n1p1"), "259:1", "100"),
            (format!("{disk}/nvme0n1p2"), "259:2", "800"),
            ("sys/devices/virtual/dm-0".to_owned(), "253:0", "700"),
        ] {
            put(&format!("{path}/dev"), dev);
            put(&format!("{path}/size"), size);
            put(&format!("{path}/ro"), "0\n");
            let name = path.rsplit('/').next().unwrap().to_owned();
            for (folder, link) in [("sys/dev/block", dev), ("sys/class/block", name.as_str())] {
                fs::create_dir_all(at(folder)).unwrap();
                symlink(at(&path), at(folder).join(link)).unwrap();
            }
        }
        put(&format!("{disk}/nvme0n1p1/partition"), "1");
        put(&format!("{disk}/nvme0n1p2/partition"), "2");
        put(&format!("{disk}/nvme0n1p2/start"), "128");
        put(&format!("{disk}/nvme0n1p2/holders/dm-0"), "");
        put(&format!("{disk}/device/model"), "Fast Disk      \n");
        put(&format!("{disk}/device/serial"), "S123 \n");
        put("proc/self/mountinfo", mounts);
        put("proc/swaps", "Filename Type Size Used Priority\n");
        let system = System { sys: at("sys"), proc: at("proc") };
        (dir, system)
    }

    #[test]
    fn a_disk_is_described_with_all_that_lies_on_it() {
        let (_dir, system) = machine("");
        let disk = system.device((259, 0)).unwrap();
        assert_eq!(disk.model.as_deref(), Some("Fast Disk"));
        assert_eq!(disk.serial.as_deref(), Some("S123"));
        assert_eq!(disk.itself.size_bytes, 512_000);
        let names: Vec<&str> = disk.partitions.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["nvme0n1p1", "nvme0n1p2"]);
        assert_eq!((disk.itself.start_bytes, disk.partitions[1].start_bytes), (0, 65_536));
        assert_eq!(disk.holders.iter().collect::<Vec<_>>(), ["dm-0"]);
        assert_eq!(system.users(&disk), Vec::<String>::new());
        let first = system.device((259, 1)).unwrap();
        assert_eq!(first.disk.as_deref(), Some("nvme0n1"));
        assert!(first.holders.is_empty() && first.partitions.is_empty());
        assert_eq!(first.serial.as_deref(), Some("S123"));
        assert!(system.device((8, 0)).is_err());
    }

    #[test]
    fn a_mount_is_seen_from_the_disk_below_and_not_from_its_neighbour() {
        let line = "36 35 253:0 / /srv/my\\040data rw - ext4 /dev/mapper/v rw\n";
        let (_dir, system) = machine(line);
        let users = |number| system.users(&system.device(number).unwrap());
        assert_eq!(users((259, 0)), ["dm-0 is mounted at /srv/my data"]);
        assert_eq!(users((259, 2)), ["dm-0 is mounted at /srv/my data"]);
        assert_eq!(users((259, 1)), Vec::<String>::new());
    }

    #[test]
    fn escapes_of_the_kernel_are_read() {
        assert_eq!(unescape(r"a\040b\134c\"), r"a b\c\");
        assert_eq!(unescape(r"\0x"), r"\0x");
    }
}
