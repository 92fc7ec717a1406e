//! Which cores a disk interrupts, as the kernel counts it.
//!
//! The names are those of Linux: Documentation/ABI/stable/sysfs-block (`mq`, `partition`, `slaves`),
//! Documentation/ABI/testing/sysfs-bus-pci (`msi_irqs`), proc_interrupts(5).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the machine describes itself, and where it counts.
const SYS: &str = "/sys";
const COUNTS: &str = "/proc/interrupts";

/// Devices upon devices, at most (a crypt on a volume on a partition is three).
const STACKED_MOST: usize = 8;

/// Fewer interrupts tell nothing.
const TELLING: u64 = 8;
/// A core that gets this share of the interrupts gets them; the rest may be other devices on the
/// same line, or the moment at which it was moved.
const NEARLY_ALL: f64 = 0.9;

/// The interrupts of a disk with one queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Interrupts {
    numbers: BTreeSet<u32>,
}

impl Interrupts {
    /// The interrupts of the disk with the kernel name `name`, or of the only disk that it lies on. `None` if it has
    /// several queues, whose interrupts go to the requesting cores, if it has none, or if the kernel does not report
    /// them.
    pub(crate) fn of_disk(name: &str) -> Option<Interrupts> {
        Interrupts::find(Path::new(SYS), name)
    }

    fn find(sys: &Path, name: &str) -> Option<Interrupts> {
        let disk = whole_disk(sys.join("class/block").join(name))?;
        // A disk with a queue for each core interrupts the core that asked. No core is better
        // than another there.
        if entries(&disk.join("mq")).len() != 1 {
            return None;
        }
        let device = fs::canonicalize(disk.join("device")).ok()?;
        let numbers = device.ancestors().map(numbers_of).find(|numbers| !numbers.is_empty())?;
        Some(Interrupts { numbers })
    }

    /// The number of interrupts of each core so far.
    pub(crate) fn counts(&self) -> Counts {
        // Without them nothing is known of any core.
        let text = fs::read_to_string(COUNTS).unwrap_or_default();
        Counts::read(&text, &self.numbers)
    }
}

/// The directory of the disk that `path` is, is a part of, or lies upon alone.
fn whole_disk(path: PathBuf) -> Option<PathBuf> {
    let mut disk = fs::canonicalize(path).ok()?;
    for _ in 0..STACKED_MOST {
        if disk.join("partition").exists() {
            disk = disk.parent()?.to_owned();
        }
        match entries(&disk.join("slaves")).as_slice() {
            [] => return Some(disk),
            [below] => disk = fs::canonicalize(below).ok()?,
            _ => return None,
        }
    }
    None
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The interrupts of the device in `directory`: its messages, or its line.
fn numbers_of(directory: &Path) -> BTreeSet<u32> {
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse().ok();
    let messages: BTreeSet<u32> =
        entries(&directory.join("msi_irqs")).iter().filter_map(number).collect();
    if !messages.is_empty() {
        return messages;
    }
    let line = fs::read_to_string(directory.join("irq")).ok();
    line.and_then(|line| line.trim().parse().ok()).filter(|line| *line > 0).into_iter().collect()
}

/// How often cores were interrupted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts(BTreeMap<usize, u64>);

impl Counts {
    /// The sums of the lines called `numbers` in `text`, which is /proc/interrupts.
    fn read(text: &str, numbers: &BTreeSet<u32>) -> Counts {
        let mut lines = text.lines();
        let head = lines.next().unwrap_or_default();
        let core = |word: &str| word.strip_prefix("CPU")?.parse().ok();
        let cores: Vec<usize> = head.split_whitespace().filter_map(core).collect();
        let mut counts = BTreeMap::new();
        for line in lines {
            let Some((name, columns)) = line.split_once(':') else { continue };
            if !name.trim().parse().is_ok_and(|number| numbers.contains(&number)) {
                continue;
            }
            for (core, column) in cores.iter().zip(columns.split_whitespace()) {
                let count: u64 = column.parse().unwrap_or(0);
                *counts.entry(*core).or_default() += count;
            }
        }
        Counts(counts)
    }

    /// The core that nearly all interrupts came to from `self` to `later`.
    pub(crate) fn core_until(&self, later: &Counts) -> Option<usize> {
        let before = |core: &usize| self.0.get(core).copied().unwrap_or(0);
        let came = |(core, count): (&usize, &u64)| (*core, count.saturating_sub(before(core)));
        let came: Vec<(usize, u64)> = later.0.iter().map(came).collect();
        let all: u64 = came.iter().map(|(_, count)| count).sum();
        let (core, most) = came.into_iter().max_by_key(|(_, count)| *count)?;
        // Too few interrupts, or interrupts spread over cores, give no information. No core is
        // better than a wrong one.
        (all >= TELLING && most as f64 >= NEARLY_ALL * all as f64).then_some(core)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "           CPU0       CPU2       CPU3
 24:          1          0          5  IO-APIC   5-edge      ACPI:Ged
 35:          0          1          0  PCI-MSIX-0000:00:02.0   0-edge      virtio1-config
 36:          7    9106278          0  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
NMI:          0          0          0  Non-maskable interrupts
ERR:          0
";

    fn read(text: &str) -> Counts {
        Counts::read(text, &BTreeSet::from([35, 36]))
    }

    #[test]
    fn the_core_that_nearly_all_come_to_is_found() {
        let before = read(TEXT);
        assert_eq!(before.0, BTreeMap::from([(0, 7), (2, 9_106_279), (3, 0)]));
        let after = |zero: u64, two: u64| {
            let text = TEXT.replace("         7 ", &format!(" {zero} "));
            before.core_until(&read(&text.replace("9106278", &two.to_string())))
        };
        assert_eq!(after(7, 9_106_278 + 100), Some(2), "a core by its number, not by its column");
        assert_eq!(after(7 + 10, 9_106_278 + 90), Some(2));
        assert_eq!(after(7 + 11, 9_106_278 + 89), None, "both");
        assert_eq!(after(7, 9_106_278 + 7), None, "too few");
        assert_eq!(after(7 + 100, 9_106_278), Some(0));
    }

    /// A tree as sysfs has it, with links from the class to the devices.
    fn tree(queues: usize, directories: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        let make = |name: &str| std::fs::create_dir_all(path(name)).unwrap();
        make("class/block");
        make("devices/pci0/0000:00:02.0/virtio1/block/vda/vda1");
        std::fs::write(path("devices/pci0/0000:00:02.0/virtio1/block/vda/vda1/partition"), "1")
            .unwrap();
        (0..queues).for_each(|queue| {
            make(&format!("devices/pci0/0000:00:02.0/virtio1/block/vda/mq/{queue}"));
        });
        directories.iter().for_each(|name| make(name));
        let link = |from: &str, to: &str| {
            std::os::unix::fs::symlink(path(from), path(to)).unwrap();
        };
        link(
            "devices/pci0/0000:00:02.0/virtio1",
            "devices/pci0/0000:00:02.0/virtio1/block/vda/device",
        );
        link("devices/pci0/0000:00:02.0/virtio1/block/vda", "class/block/vda");
        link("devices/pci0/0000:00:02.0/virtio1/block/vda/vda1", "class/block/vda1");
        make("devices/virtual/block/dm-0/slaves");
        link("class/block/vda1", "devices/virtual/block/dm-0/slaves/vda1");
        link("devices/virtual/block/dm-0", "class/block/dm-0");
        root
    }

    #[test]
    fn messages_of_the_device_behind_a_partition_or_a_volume_are_found() {
        let messages =
            ["devices/pci0/0000:00:02.0/msi_irqs/35", "devices/pci0/0000:00:02.0/msi_irqs/36"];
        let one = tree(1, &messages);
        for name in ["vda", "vda1", "dm-0"] {
            let found = Interrupts::find(one.path(), name).unwrap();
            assert_eq!(found.numbers, BTreeSet::from([35, 36]), "{name}");
        }
        assert_eq!(Interrupts::find(one.path(), "sda"), None);
        assert_eq!(Interrupts::find(tree(2, &messages).path(), "vda"), None, "two queues");
        assert_eq!(Interrupts::find(tree(0, &messages).path(), "vda"), None, "no hardware queue");
    }

    #[test]
    fn a_line_serves_where_there_are_no_messages() {
        let tree = tree(1, &[]);
        assert_eq!(Interrupts::find(tree.path(), "vda"), None);
        let line = tree.path().join("devices/pci0/0000:00:02.0/irq");
        std::fs::write(&line, "0\n").unwrap();
        assert_eq!(Interrupts::find(tree.path(), "vda"), None, "none is assigned");
        std::fs::write(&line, "11\n").unwrap();
        let found = Interrupts::find(tree.path(), "vda").unwrap();
        assert_eq!(found.numbers, BTreeSet::from([11]));
    }

    #[test]
    fn a_mirror_of_two_disks_has_no_core() {
        let tree = tree(1, &["devices/pci0/0000:00:02.0/msi_irqs/35", "class/block/sdb"]);
        let slaves = tree.path().join("devices/virtual/block/dm-0/slaves");
        std::os::unix::fs::symlink(tree.path().join("class/block/sdb"), slaves.join("sdb"))
            .unwrap();
        assert_eq!(Interrupts::find(tree.path(), "dm-0"), None);
    }

    #[test]
    fn the_disks_of_this_machine_are_read() {
        for entry in entries(&Path::new(SYS).join("class/block")) {
            let name = entry.file_name().unwrap().to_string_lossy().into_owned();
            if let Some(interrupts) = Interrupts::of_disk(&name) {
                assert!(!interrupts.counts().0.is_empty(), "{name}: {interrupts:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(CPU[0-9]{0,2} ){0,3}\n([0-9]{0,2}: ?[0-9a-z ]{0,12}\n){0,4}") {
            let counts = read(&text);
            prop_assert_eq!(counts.core_until(&counts), None);
        }
    }
}
