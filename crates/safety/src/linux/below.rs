//! The devices below a device, at any depth, and their other users: writing to one is writing to the other.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::backing::of_loop;
use crate::device::{Device, Number, System, block_number, names, number, value};

/// Something that a device lies on.
enum Below {
    /// The file behind a loop device, or the device that it was given instead of one: all of it.
    Whole(String),
    /// The disk of a partition, or a member of an array or a volume group, which others may lie on as
    /// well.
    Shared(Number),
}

impl System {
    /// How that on which `device` lies is used by others.
    pub(crate) fn users_below(&self, device: &Device) -> Vec<String> {
        let mut users = Vec::new();
        let mut chain = BTreeSet::from([device.itself.name.clone()]);
        let mut look = vec![device.clone()];
        while let Some(upper) = look.pop() {
            for below in self.below(&upper) {
                let (mut found, place, lower) = self.users_of_below(&upper, &below, &chain);
                let name = &upper.itself.name;
                found.iter_mut().for_each(|user| *user = format!("{name} lies on {place}: {user}"));
                users.append(&mut found);
                // A loop device may lie on a file system of a device that is in the chain
                // already. Each device is looked at once, so the search ends.
                look.extend(lower.filter(|lower| chain.insert(lower.itself.name.clone())));
            }
        }
        users.sort();
        users.dedup();
        users
    }

    /// What `device` itself lies on.
    fn below(&self, device: &Device) -> Vec<Below> {
        let mut all: Vec<Below> =
            device.backing_file.clone().map(Below::Whole).into_iter().collect();
        let folder = |name: &str| self.sys.join("class/block").join(name);
        let shared = names(&folder(&device.itself.name).join("slaves"));
        for name in shared.iter().chain(&device.disk) {
            let number = value(folder(name).join("dev")).and_then(|text| number(&text));
            all.extend(number.map(Below::Shared));
        }
        all
    }

    /// Who uses `below`, on which `upper` lies, other than through the devices of `chain`; its name;
    /// and itself, if it is a device.
    fn users_of_below(
        &self,
        upper: &Device,
        below: &Below,
        chain: &BTreeSet<String>,
    ) -> (Vec<String>, String, Option<Device>) {
        let alone = |lower: &Device| Device { holders: BTreeSet::new(), ..lower.clone() };
        match below {
            Below::Shared(number) => {
                let Ok(lower) = self.device(*number) else {
                    return (Vec::new(), String::new(), None);
                };
                // Other partitions and holders of the lower device have parts of their own. Writing to
                // this part does not touch theirs, so their users do not count.
                let users = self.users(&Device { partitions: Vec::new(), ..alone(&lower) });
                (users, lower.itself.name.clone(), Some(lower))
            }
            Below::Whole(path) => {
                let lower = block_number(Path::new(path));
                let Some(lower) = lower.and_then(|number| self.device(number).ok()) else {
                    let node = Path::new("/dev").join(&upper.itself.name);
                    let file = of_loop(&node, Path::new(path));
                    let users = file.map(|file| self.users_of_file(file, Some(&upper.itself.name)));
                    return (users.unwrap_or_default(), path.clone(), None);
                };
                let mut users = self.users(&alone(&lower));
                // A mount in another mount name space is not in our mountinfo. The kernel still
                // knows that the device is claimed, in whatever name space.
                if users.is_empty() && is_claimed(Path::new(path)) {
                    users.push(
                        "another program claims it (perhaps a mount in another namespace)".into(),
                    );
                }
                let others = lower.holders.iter().filter(|holder| !chain.contains(*holder));
                users.extend(others.map(|holder| match holder.starts_with("loop") {
                    true => format!("it is behind the loop device {holder}"),
                    false => format!("it is held by {holder}"),
                }));
                (users, path.clone(), Some(lower))
            }
        }
    }

    /// How the disk of `device` is used by another path to it (two ports of one drive, say), which the
    /// kernel takes for another disk.
    pub(crate) fn users_of_other_paths(&self, device: &Device) -> Vec<String> {
        let blocks = self.sys.join("block");
        let disk = device.disk.as_ref().unwrap_or(&device.itself.name);
        let Some(wanted) = self.unit_name(disk) else { return Vec::new() };
        let same = |name: &String| name != disk && self.unit_name(name).as_ref() == Some(&wanted);
        let mut users = Vec::new();
        for name in names(&blocks).into_iter().filter(same) {
            let number = value(blocks.join(&name).join("dev")).and_then(|text| number(&text));
            let Some(other) = number.and_then(|number| self.device(number).ok()) else { continue };
            // The world-wide name alone does not prove that both are one disk. The serial number
            // must agree as well before a user of one counts for the other.
            if other.serial == device.serial {
                let found = self.users(&other).into_iter();
                users.extend(found.map(|user| format!("{name} is another path to it: {user}")));
            }
        }
        users
    }

    /// The name that a disk has world-wide, and its size: SCSI's, or that of an NVMe namespace.
    fn unit_name(&self, disk: &str) -> Option<(String, String)> {
        let folder = self.sys.join("block").join(disk);
        let name = value(folder.join("device/wwid")).or_else(|| value(folder.join("wwid")))?;
        Some((name, value(folder.join("size"))?))
    }
}

/// Whether somebody has the block device `node` for himself (open(2), O_EXCL without O_CREAT).
fn is_claimed(node: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NONBLOCK;
    matches!(rustix::fs::open(node, flags, Mode::empty()), Err(rustix::io::Errno::BUSY))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    /// A made-up machine.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new(mounts: &str) -> Machine {
            let machine = Machine(tempfile::tempdir().unwrap());
            machine.put("proc/self/mountinfo", mounts);
            machine
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn put(&self, path: &str, text: &str) {
            fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
            fs::write(self.at(path), text).unwrap();
        }

        /// A device `path` (a partition has its disk's name before it) with the files `more`.
        fn add(&self, path: &str, number: &str, more: &[(&str, &str)]) {
            let name = path.rsplit('/').next().unwrap();
            let place = format!("sys/devices/{path}");
            for (file, text) in [("dev", number), ("size", "1000"), ("ro", "0")].iter().chain(more)
            {
                self.put(&format!("{place}/{file}"), text);
            }
            for (folder, link) in [("dev/block", number), ("class/block", name), ("block", name)] {
                let folder = self.at("sys").join(folder);
                fs::create_dir_all(&folder).unwrap();
                symlink(self.at(&place), folder.join(link)).unwrap();
            }
        }

        fn system(&self) -> System {
            System { sys: self.at("sys"), proc: self.at("proc") }
        }
    }

    #[test]
    fn a_volume_knows_of_the_mounted_disk_below_its_member_and_not_of_its_neighbour() {
        let mounts = "36 35 8:0 / /whole rw - iso9660 /dev/sda ro\n\
                      37 35 253:1 / /home rw - ext4 /dev/dm-1 rw\n";
        let machine = Machine::new(mounts);
        machine.add("sda", "8:0", &[]);
        machine.add("sda/sda1", "8:1", &[("partition", "1")]);
        machine.put("sys/devices/sda/sda1/holders/dm-0", "");
        machine.put("sys/devices/sda/sda1/holders/dm-1", "");
        machine.add("dm-0", "253:0", &[("slaves/sda1", "")]);
        machine.add("dm-1", "253:1", &[("slaves/sda1", "")]);
        let system = machine.system();
        let below = |number| system.users_below(&system.device(number).unwrap());
        assert_eq!(below((253, 0)), ["sda1 lies on sda: sda is mounted at /whole"]);
        assert_eq!(below((8, 1)), ["sda1 lies on sda: sda is mounted at /whole"]);
        assert_eq!(below((8, 0)), Vec::<String>::new());
    }

    #[test]
    fn another_path_to_a_mounted_drive_is_refused() {
        let machine = Machine::new("36 35 8:1 / /srv rw - ext4 /dev/sda1 rw\n");
        let one = [("device/wwid", "naa.5000c500"), ("device/serial", "S1")];
        machine.add("sda", "8:0", &one);
        machine.add("sda/sda1", "8:1", &[("partition", "1")]);
        machine.add("sdb", "8:16", &one);
        machine.add("sdc", "8:32", &[("device/wwid", "naa.5000c501"), ("device/serial", "S2")]);
        machine.add("sdd", "8:48", &[("device/wwid", "naa.5000c500"), ("device/serial", "S3")]);
        let system = machine.system();
        let others = |number| system.users_of_other_paths(&system.device(number).unwrap());
        assert_eq!(others((8, 16)), ["sda is another path to it: sda1 is mounted at /srv"]);
        for apart in [(8, 0), (8, 32), (8, 48)] {
            assert_eq!(others(apart), Vec::<String>::new(), "{apart:?}");
        }
    }
}
