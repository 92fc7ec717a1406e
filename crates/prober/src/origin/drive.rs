//! A block device as the kernel describes it (Documentation/ABI/stable/sysfs-block), and the devices below it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::machine::numa_node;
use super::{names, number, value};

/// Devices of a chain at most: more is a mistake of ours.
const DRIVES_MOST: usize = 32;

/// The prefix for hashing a serial number, so that the hash differs from those in other tables.
const SERIAL_PREFIX: &str = "ssdyno serial ";

/// A block device and the settings of its queue.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DriveOrigin {
    /// Name of the whole device in the kernel: `nvme0n1`.
    pub name: String,
    /// The partition that is used; `null`: the whole device.
    pub partition: Option<String>,
    /// Model, as reported by the device.
    pub model: Option<String>,
    /// Firmware revision, as reported by the device.
    pub firmware: Option<String>,
    /// Identifies the device without its serial number: the first 16 hexadecimal digits of the SHA-256 of
    /// `ssdyno serial ` and the serial number. `null` if the device has no serial number.
    pub serial_hash: Option<String>,
    /// Transport: `nvme-pcie`, `nvme-tcp`, `sata`, `sas`, `usb`, `virtio`, `iscsi`, `mmc`, `loop`, `nbd`,
    /// `device-mapper`, `md`; `null` if unknown.
    pub transport: Option<String>,
    /// Capacity of the whole device in bytes.
    pub capacity_bytes: Option<u64>,
    /// Logical block size in bytes: requests are multiples of it.
    pub logical_block_bytes: Option<u64>,
    /// Physical block size in bytes: the smallest unit that the device writes.
    pub physical_block_bytes: Option<u64>,
    /// I/O scheduler of the queue: `none`, `mq-deadline`, `bfq`, `kyber`.
    pub scheduler: Option<String>,
    /// Maximum number of requests in the queue in each direction (`queue/nr_requests`).
    pub queue_requests: Option<u64>,
    /// Write cache as reported by the kernel: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Whether the kernel marks the device as rotational.
    pub rotational: Option<bool>,
    /// Read-ahead of the page cache in bytes.
    pub read_ahead_bytes: Option<u64>,
    /// NUMA node of the device; `null` on a machine with one node, or if unknown.
    pub numa_node: Option<u32>,
    /// Lower layers of the device: the names of the devices below a mapped device or an array, or the name of the file
    /// behind a loop device, without its directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lies_on: Vec<String>,
}

/// The device with this number, as stat(2) gives it, and everything below it that is a block device.
#[cfg(target_os = "linux")]
pub(super) fn all_below(root: &Path, number: u64) -> Vec<DriveOrigin> {
    let link = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    all_from(root, root.join("sys/dev/block").join(link))
}

/// The device that the kernel describes at `path`, and everything below it that is a block device.
#[cfg(target_os = "linux")]
fn all_from(root: &Path, path: PathBuf) -> Vec<DriveOrigin> {
    let mut all: Vec<DriveOrigin> = Vec::new();
    let mut look = std::collections::VecDeque::from([path]);
    // A chain of devices may contain a circle, if the text of sysfs is damaged. The number of
    // devices is limited, and each name is read once.
    while let Some(path) = look.pop_front().filter(|_| all.len() < DRIVES_MOST) {
        let Some((drive, folder)) = DriveOrigin::read(&path) else { continue };
        if all.iter().any(|known| known.name == drive.name) {
            continue;
        }
        look.extend(drive.lies_on.iter().map(|name| root.join("sys/class/block").join(name)));
        look.extend(below_loop(root, &folder));
        all.push(drive);
    }
    all
}

/// The device below the file of the loop device at `folder`.
#[cfg(target_os = "linux")]
fn below_loop(root: &Path, folder: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;

    // The loop device names its file by a path. The device below the file system of that path carries
    // the load in the end, so the chain goes on there.
    let backing = value(folder.join("loop/backing_file"))?;
    let device = fs::metadata(backing).ok()?.dev();
    let link = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    Some(root.join("sys/dev/block").join(link))
}

/// Parts of the models of virtual disks, in lower case: QEMU, VMware, VirtualBox, Hyper-V and Azure, Google, Amazon EBS.
/// Local drives of Amazon and Azure have other models and reach the guest directly.
const VIRTUAL_MODELS: [&str; 8] = [
    "qemu",
    "vmware",
    "vbox",
    "virtual disk",
    "msft nvme accelerator",
    "persistentdisk",
    "nvme_card-pd",
    "amazon elastic block store",
];

impl DriveOrigin {
    /// The device that the kernel calls `name`, and everything below it that is a block device; empty if there is no such
    /// device. `root` is the directory with `sys`.
    #[cfg(target_os = "linux")]
    pub fn stack(root: &Path, name: &str) -> Vec<DriveOrigin> {
        all_from(root, root.join("sys/class/block").join(name))
    }

    /// Whether the device is a disk that a hypervisor or a cloud provides: the host may have a cache of its own for the
    /// disk. Recognised by the transport (virtio), by the kernel's name (`xvda` of Xen) and by the model.
    pub fn is_virtual(&self) -> bool {
        let model = self.model.as_deref().unwrap_or_default().to_lowercase();
        self.transport.as_deref() == Some("virtio")
            || self.name.starts_with("xvd")
            || VIRTUAL_MODELS.iter().any(|part| model.contains(part))
    }

    /// The device or partition that the kernel describes at `path`, and the folder of the whole device.
    fn read(path: &Path) -> Option<(DriveOrigin, PathBuf)> {
        // `/sys/class/block` holds links. The real path shows the place of the device in
        // the tree, from which the transport is read.
        let path = fs::canonicalize(path).ok()?;
        let name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
        let is_partition = path.join("partition").exists();
        // A partition has no queue and no model of its own. Both are in the folder
        // of the whole device, one level higher.
        let folder = if is_partition { path.parent()?.to_owned() } else { path.clone() };
        let queue = folder.join("queue");
        let backing = value(folder.join("loop/backing_file"));
        let mut lies_on = names(&folder.join("slaves"));
        lies_on.extend(backing.and_then(|file| name(Path::new(&file))));
        let drive = DriveOrigin {
            name: name(&folder)?,
            partition: if is_partition { name(&path) } else { None },
            model: drive_model(&folder),
            firmware: value(folder.join("device/firmware_rev"))
                .or_else(|| value(folder.join("device/rev"))),
            serial_hash: drive_serial(&folder).map(|serial| hash(&serial)),
            transport: transport(&folder),
            // The unit is always 512 bytes, also for a device with blocks of 4
            // KiB (Documentation/block/stat.rst).
            capacity_bytes: number::<u64>(folder.join("size")).and_then(|n| n.checked_mul(512)),
            logical_block_bytes: number(queue.join("logical_block_size")),
            physical_block_bytes: number(queue.join("physical_block_size")),
            scheduler: value(queue.join("scheduler")).and_then(|text| chosen(&text)),
            queue_requests: number(queue.join("nr_requests")),
            write_cache: value(queue.join("write_cache")),
            rotational: value(queue.join("rotational")).map(|flag| flag == "1"),
            read_ahead_bytes: number::<u64>(queue.join("read_ahead_kb"))
                .and_then(|n| n.checked_mul(1024)),
            numa_node: numa_node(&folder),
            lies_on,
        };
        Some((drive, folder))
    }
}

/// Vendor and model of the whole device that the kernel describes at `folder`.
pub fn drive_model(folder: &Path) -> Option<String> {
    let model = value(folder.join("device/model"))?;
    // The file `vendor` of a PCI device holds a number such as `0x144d`. It is no
    // name, and the model alone is better than both.
    match value(folder.join("device/vendor")).filter(|vendor| !vendor.starts_with("0x")) {
        Some(vendor) => Some(format!("{vendor} {model}")),
        None => Some(model),
    }
}

/// The serial number of the whole device that the kernel describes at `folder`.
///
/// NVMe and MMC say it plainly, virtio one level higher, SCSI in its vital product data page 80h, after a header of four
/// bytes.
pub fn drive_serial(folder: &Path) -> Option<String> {
    let page = || {
        let page = fs::read(folder.join("device/vpd_pg80")).ok()?;
        // The page has a header of four bytes. A shorter file is damaged,
        // and `get` returns nothing for it.
        let text = String::from_utf8_lossy(page.get(4..)?).trim().to_owned();
        (!text.is_empty()).then_some(text)
    };
    value(folder.join("device/serial")).or_else(|| value(folder.join("serial"))).or_else(page)
}

fn hash(serial: &str) -> String {
    let mut text = String::with_capacity(16);
    // Eight bytes are enough to tell the drives of one laboratory apart. The serial number
    // itself never enters a result, which users publish.
    for byte in Sha256::digest(format!("{SERIAL_PREFIX}{serial}")).iter().take(8) {
        // A string takes whatever is written to it.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The scheduler in brackets: `[none] mq-deadline`. Where there is no choice it stands alone.
fn chosen(text: &str) -> Option<String> {
    // Where only one scheduler exists, the kernel may print it without brackets.
    // The first word is then the one in use.
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let alone = || text.split_whitespace().next();
    inside.map(|(name, _)| name).or_else(alone).map(str::to_owned)
}

/// How a device is attached, by the place of its folder in the tree of all devices.
fn transport(folder: &Path) -> Option<String> {
    let name = folder.file_name()?.to_string_lossy();
    if name.starts_with("nvme") {
        // The name of a multipath NVMe device (`nvme0n1`) belongs to a subsystem, which has no file `transport`. The
        // kind of the link is then unknown, but not the protocol.
        let kind = value(folder.join("device/transport"));
        return Some(kind.map_or_else(|| "nvme".to_owned(), |kind| format!("nvme-{kind}")));
    }
    let by_name = [("loop", "loop"), ("dm-", "device-mapper"), ("md", "md"), ("nbd", "nbd")];
    let by_name = by_name.iter().find(|(start, _)| name.starts_with(start));
    let parts: Vec<String> =
        folder.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    // The first kind that fits counts. A disk behind USB also has the names of a SCSI
    // device in its path, and USB limits its speed.
    let by_place = [
        ("usb", "usb"),
        ("virtio", "virtio"),
        ("ata", "sata"),
        ("session", "iscsi"),
        ("end_device-", "sas"),
        ("mmc", "mmc"),
    ];
    // A name counts only with a number after it (`usb1`, `ata3`, `session1`). A directory such as
    // `usbhid` begins alike and means something else.
    let is = |part: &str, start: &str| {
        let rest = part.strip_prefix(start);
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let by_place = || by_place.iter().find(|(start, _)| parts.iter().any(|part| is(part, start)));
    by_name.or_else(by_place).map(|(_, kind)| (*kind).to_owned())
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::fake::put;
    use super::*;

    /// A machine with an NVMe drive of one partition, on which a mapped device lies.
    fn machine() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let drive = "sys/devices/pci/nvme/nvme0/nvme0n1";
        for (path, text) in [
            ("size", "1000\n"),
            ("device/model", "Fast Drive       \n"),
            ("device/firmware_rev", "1.0\n"),
            ("device/serial", "S3RIAL  \n"),
            ("device/transport", "pcie\n"),
            ("device/numa_node", "-1\n"),
            ("device/device/numa_node", "1\n"),
            ("queue/scheduler", "none [mq-deadline] bfq\n"),
            ("queue/nr_requests", "1023\n"),
            ("queue/write_cache", "write back\n"),
            ("queue/rotational", "0\n"),
            ("queue/read_ahead_kb", "128\n"),
            ("queue/logical_block_size", "512\n"),
            ("queue/physical_block_size", "4096\n"),
            ("nvme0n1p1/partition", "1\n"),
        ] {
            put(root, &format!("{drive}/{path}"), text);
        }
        put(root, "sys/devices/virtual/dm-0/slaves/nvme0n1p1", "");
        put(root, "sys/devices/virtual/loop0/loop/backing_file", "/srv/somebody/gone.img\n");
        for (folder, link, to) in [
            ("sys/dev/block", "259:0", "pci/nvme/nvme0/nvme0n1"),
            ("sys/dev/block", "259:1", "pci/nvme/nvme0/nvme0n1/nvme0n1p1"),
            ("sys/class/block", "nvme0n1p1", "pci/nvme/nvme0/nvme0n1/nvme0n1p1"),
            ("sys/dev/block", "253:0", "virtual/dm-0"),
            ("sys/dev/block", "7:0", "virtual/loop0"),
        ] {
            fs::create_dir_all(root.join(folder)).unwrap();
            let to = root.join("sys/devices").join(to);
            symlink(to, root.join(folder).join(link)).unwrap();
        }
        dir
    }

    fn drives(root: &Path, major: u32, minor: u32) -> Vec<DriveOrigin> {
        all_below(root, rustix::fs::makedev(major, minor))
    }

    #[test]
    fn a_drive_is_described_with_its_queue() {
        let dir = machine();
        let text = |text: &str| Some(text.to_owned());
        let found = drives(dir.path(), 259, 0);
        let expected = DriveOrigin {
            name: "nvme0n1".to_owned(),
            partition: None,
            model: text("Fast Drive"),
            firmware: text("1.0"),
            // printf 'ssdyno serial S3RIAL' | sha256sum
            serial_hash: text("20c79b028c44ca12"),
            transport: text("nvme-pcie"),
            capacity_bytes: Some(512_000),
            logical_block_bytes: Some(512),
            physical_block_bytes: Some(4096),
            scheduler: text("mq-deadline"),
            queue_requests: Some(1023),
            write_cache: text("write back"),
            rotational: Some(false),
            read_ahead_bytes: Some(131_072),
            numa_node: None,
            lies_on: Vec::new(),
        };
        assert_eq!(found, [expected]);
        assert_eq!(drives(dir.path(), 8, 0), []);
    }

    #[test]
    fn what_lies_on_others_names_them() {
        let dir = machine();
        let names = |major, minor| {
            let all = drives(dir.path(), major, minor);
            all.into_iter().map(|drive| (drive.name, drive.partition)).collect::<Vec<_>>()
        };
        let part = ("nvme0n1".to_owned(), Some("nvme0n1p1".to_owned()));
        assert_eq!(names(259, 1), std::slice::from_ref(&part));
        assert_eq!(names(253, 0), [("dm-0".to_owned(), None), part]);
        let mapped = &drives(dir.path(), 253, 0)[0];
        assert_eq!(mapped.transport.as_deref(), Some("device-mapper"));
        assert_eq!(mapped.lies_on, ["nvme0n1p1"]);
        // Directories of people are not told.
        assert_eq!(drives(dir.path(), 7, 0)[0].lies_on, ["gone.img"]);
    }

    /// Virtual disks are told by transport, name or model; a drive, and a local drive of a cloud, is none.
    #[test]
    fn virtual_disks_are_recognised() {
        let disk = |name: &str, transport: Option<&str>, model: Option<&str>| DriveOrigin {
            name: name.to_owned(),
            transport: transport.map(str::to_owned),
            model: model.map(str::to_owned),
            ..DriveOrigin::default()
        };
        for (name, transport, model) in [
            ("vda", Some("virtio"), None),
            ("xvdb", None, None),
            ("sda", Some("sata"), Some("QEMU HARDDISK")),
            ("sda", None, Some("VMware Virtual disk")),
            ("sdb", None, Some("Msft Virtual Disk")),
            ("sda", None, Some("Google PersistentDisk")),
            ("nvme1n1", Some("nvme-pcie"), Some("Amazon Elastic Block Store")),
        ] {
            assert!(disk(name, transport, model).is_virtual(), "{name} {model:?}");
        }
        for model in [None, Some("Fast Drive"), Some("Amazon EC2 NVMe Instance Storage")] {
            assert!(!disk("nvme0n1", Some("nvme-pcie"), model).is_virtual(), "{model:?}");
        }
        let dir = machine();
        let names = DriveOrigin::stack(dir.path(), "nvme0n1p1").into_iter().map(|drive| drive.name);
        assert_eq!(names.collect::<Vec<_>>(), ["nvme0n1"]);
        assert_eq!(DriveOrigin::stack(dir.path(), "sda"), []);
    }

    #[test]
    fn a_serial_number_is_recognised_and_not_told() {
        let dir = machine();
        let told = serde_json::to_string(&drives(dir.path(), 253, 0)).unwrap();
        assert!(!told.contains("S3RIAL"), "{told}");
        assert_eq!(hash("a"), hash("a"));
        assert_ne!(hash("a"), hash("b"));
    }

    #[test]
    fn transports_are_told_by_the_place_of_a_device() {
        let of = |path: &str| transport(Path::new(path));
        let told = |text: &str| Some(text.to_owned());
        assert_eq!(of("/sys/devices/pci0000:00/ata1/host0/block/sda"), told("sata"));
        assert_eq!(of("/sys/devices/pci0000:00/usb1/1-1/host6/block/sdb"), told("usb"));
        assert_eq!(of("/sys/devices/platform/host3/session1/block/sdc"), told("iscsi"));
        assert_eq!(of("/sys/devices/pci0000:00/virtio2/block/vda"), told("virtio"));
        assert_eq!(of("/sys/devices/virtual/block/md0"), told("md"));
        assert_eq!(of("/sys/devices/pci0000:00/block/xda"), None);
        assert_eq!(chosen("none").as_deref(), Some("none"));
    }
}
