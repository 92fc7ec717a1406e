//! A file: the file system around it, and the pieces that it is in.

#[cfg(target_os = "linux")]
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Properties of a file in its file system.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct FileOrigin {
    /// Type of the file system, such as `ext4`.
    pub file_system: Option<String>,
    /// Mount options, in order of their names. Options that name people, addresses or paths are left out.
    #[serde(default)]
    pub mount_options: Vec<String>,
    /// Length of the file in bytes.
    pub size_bytes: u64,
    /// Extents, written or not; `null` if the file system does not report them, or for more than a million extents.
    pub extents: Option<u64>,
    /// Bytes of extents that were allocated and never written; reads of these bytes never reach the drive.
    pub unwritten_bytes: Option<u64>,
    /// Bytes without any extent; reads of these bytes never reach the drive.
    pub hole_bytes: Option<u64>,
}

/// Options of which the value is nobody else's business: names, addresses, passwords (mount.cifs(8), nfs(5)).
#[cfg(target_os = "linux")]
const LEFT_OUT: [&str; 12] = [
    "user",
    "username",
    "pass",
    "password",
    "password2",
    "cred",
    "credentials",
    "domain",
    "unc",
    "ip",
    "secret",
    "name",
];

/// The file at `path`, and the number of the block device below its file system.
#[cfg(target_os = "linux")]
pub(super) fn of(
    root: &Path,
    path: &Path,
    status: &std::fs::Metadata,
) -> (FileOrigin, Option<u64>) {
    use std::os::unix::fs::MetadataExt as _;

    let text = std::fs::read(root.join("proc/self/mountinfo")).unwrap_or_default();
    // Mount points are absolute and have no links in them. A relative path, or one
    // through a link, would match the wrong mount.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mount = Mount::of(&String::from_utf8_lossy(&text), &path);
    let size_bytes = status.len();
    // The extents need an open file. A file that cannot be opened still has a size
    // and a mount, so the error is not passed on.
    let pieces = std::fs::File::open(&path).ok().and_then(|file| pieces::of(&file, size_bytes));
    let file = FileOrigin {
        file_system: mount.as_ref().map(|mount| mount.file_system.clone()),
        mount_options: mount.as_ref().map_or_else(Vec::new, |mount| mount.options.clone()),
        size_bytes,
        extents: pieces.map(|pieces| pieces.extents),
        unwritten_bytes: pieces.map(|pieces| pieces.unwritten_bytes),
        hole_bytes: pieces.map(|pieces| size_bytes.saturating_sub(pieces.covered_bytes)),
    };
    // Btrfs and overlays have device numbers of their own, with the major number 0. The
    // source of the mount names the device in that case.
    let is_device = rustix::fs::major(status.dev()) != 0;
    let by_source = || {
        let status = std::fs::metadata(mount?.source).ok()?;
        let kind = std::os::unix::fs::FileTypeExt::is_block_device(&status.file_type());
        kind.then(|| status.rdev())
    };
    (file, if is_device { Some(status.dev()) } else { by_source() })
}

/// A line of mountinfo (proc_pid_mountinfo(5)).
#[cfg(target_os = "linux")]
#[derive(PartialEq, Debug)]
struct Mount {
    file_system: String,
    source: String,
    options: Vec<String>,
}

#[cfg(target_os = "linux")]
impl Mount {
    /// The mount of `path` among the lines of `text`: that with the longest place, and the last one there.
    fn of(text: &str, path: &Path) -> Option<Mount> {
        let place = |line: &&str| {
            // The kernel writes a blank in a path as `\040`, because blanks
            // separate the columns of this file.
            let place = line.split(' ').nth(4)?.replace("\\040", " ");
            path.starts_with(&place).then_some(place.len())
        };
        let lines = text.lines().filter_map(|line| Some((place(&line)?, line)));
        // Several mounts may lie above one another. The longest place wins, and of equal places the last line: it was
        // mounted over the others. `max_by_key` keeps the last maximum.
        let (_, line) = lines.max_by_key(|(length, _)| *length)?;
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let (file_system, source) = (after.next()?.to_owned(), after.next()?.to_owned());
        // Options of the mount and of the file system are in two columns. A user thinks of both
        // as options of the mount, so they are merged.
        let all = before.split(' ').nth(5)?.split(',').chain(after.next()?.split(','));
        let mut options: Vec<String> =
            all.filter(|option| is_told(option)).map(str::to_owned).collect();
        options.sort();
        options.dedup();
        Some(Mount { file_system, source, options })
    }
}

#[cfg(target_os = "linux")]
fn is_told(option: &str) -> bool {
    // A value with a slash is a path on the user's machine or server. Results are
    // published, so paths, names and passwords are left out.
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    // Addresses have many names: `addr` and `clientaddr` of NFS, `mon_addr` of Ceph. The value shows an address of an
    // option that nobody listed.
    let is_address = name.ends_with("addr")
        || value.parse::<std::net::IpAddr>().is_ok()
        || value.parse::<std::net::SocketAddr>().is_ok();
    !option.is_empty() && !option.contains('/') && !LEFT_OUT.contains(&name) && !is_address
}

/// The extents of a file, as the kernel maps them (Documentation/filesystems/fiemap.rst). No privilege is needed.
#[cfg(target_os = "linux")]
mod pieces {
    use std::fs::File;

    /// What the extents of a file are together.
    #[derive(Clone, Copy, PartialEq, Debug, Default)]
    pub(super) struct Pieces {
        pub(super) extents: u64,
        pub(super) unwritten_bytes: u64,
        /// Bytes of the file that are in an extent.
        pub(super) covered_bytes: u64,
    }

    /// Extents that are asked for at once.
    const AT_ONCE: usize = 256;

    /// Extents that are counted: a run does not wait for a file in more.
    const MOST: u64 = 1_000_000;

    /// linux/fiemap.h: the last extent, one that was allocated and never written.
    const LAST: u32 = 0x1;
    const UNWRITTEN: u32 = 0x800;

    /// linux/fiemap.h: `struct fiemap_extent`.
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Extent {
        logical: u64,
        physical: u64,
        length: u64,
        reserved64: [u64; 2],
        flags: u32,
        reserved: [u32; 3],
    }

    /// linux/fiemap.h: `struct fiemap`, of which the extents are a flexible array.
    #[repr(C)]
    struct Map {
        start: u64,
        length: u64,
        flags: u32,
        mapped: u32,
        count: u32,
        reserved: u32,
        extents: [Extent; AT_ONCE],
    }

    /// linux/fs.h: `FS_IOC_FIEMAP`; its number has the size of the structure without the array.
    const FIEMAP: rustix::ioctl::Opcode = rustix::ioctl::opcode::read_write::<[u64; 4]>(b'f', 11);

    #[expect(unsafe_code, reason = "no safe wrapper of this request in the libraries that we use")]
    fn map(file: &File, start: u64) -> Option<Box<Map>> {
        let mut map = Box::new(Map {
            start,
            // `Box`: the structure has 14 KiB, and the loop makes one for each 256 extents. On the
            // stack of a small thread that could be too much.
            length: u64::MAX - start,
            flags: 0,
            mapped: 0,
            count: AT_ONCE as u32,
            reserved: 0,
            extents: [Extent::default(); AT_ONCE],
        });
        // SAFETY: the request reads a `struct fiemap` of 32 bytes and writes that and at most `count` extents of 56 bytes
        // behind it, which `Map` has room for; any bits are a valid value of it.
        unsafe {
            let request = rustix::ioctl::Updater::<FIEMAP, Map>::new(&mut map);
            rustix::ioctl::ioctl(file, request).ok()?;
        }
        Some(map)
    }

    /// Those of `file`, which is `size_bytes` long.
    pub(super) fn of(file: &File, size_bytes: u64) -> Option<Pieces> {
        let (mut all, mut start) = (Pieces::default(), 0);
        loop {
            let map = map(file, start)?;
            // The kernel reports how many extents it wrote. `get` refuses a larger number, so a wrong kernel or
            // file system cannot make this read beyond the array.
            let found = map.extents.get(..map.mapped as usize)?;
            for extent in found {
                all.extents += 1;
                // Extents are whole blocks and may reach beyond the end of the file, for example after
                // a preallocation. Only the part inside counts.
                let end = extent.logical.saturating_add(extent.length);
                let inside = end.min(size_bytes).saturating_sub(extent.logical);
                all.covered_bytes += inside;
                if extent.flags & UNWRITTEN != 0 {
                    all.unwritten_bytes += inside;
                }
            }
            let Some(last) = found.last().filter(|last| last.flags & LAST == 0) else {
                return Some(all);
            };
            let next = last.logical.saturating_add(last.length);
            // An extent that does not move the start would repeat this loop forever. A file with more than a
            // million extents takes seconds to map and gets no figure.
            if all.extents >= MOST || next <= start {
                return None;
            }
            start = next;
        }
    }

    #[cfg(test)]
    mod tests {
        use std::os::unix::fs::FileExt as _;

        use super::*;

        #[test]
        fn structures_are_those_of_the_kernel() {
            assert_eq!(size_of::<Extent>(), 56);
            assert_eq!(std::mem::offset_of!(Map, extents), 32);
            assert_eq!(std::mem::offset_of!(Extent, flags), 40);
        }

        #[test]
        fn holes_and_unwritten_extents_are_counted() {
            // Beside the program: tmpfs has no extents to tell of.
            let place = std::env::current_exe().unwrap().parent().unwrap().to_owned();
            let file = tempfile::tempfile_in(place).unwrap();
            file.set_len(4 << 20).unwrap();
            file.write_all_at(&vec![1; 1 << 20], 2 << 20).unwrap();
            let none = rustix::fs::FallocateFlags::empty();
            let allocated = rustix::fs::fallocate(&file, none, 0, 1 << 20).is_ok();
            file.sync_all().unwrap();
            let Some(pieces) = of(&file, 4 << 20) else {
                eprintln!("skipped: the file system does not map its extents");
                return;
            };
            let written = pieces.covered_bytes - pieces.unwritten_bytes;
            assert_eq!(written, 1 << 20);
            if allocated && pieces.unwritten_bytes > 0 {
                assert_eq!(pieces.unwritten_bytes, 1 << 20);
                assert!(pieces.extents >= 2);
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_is_that_of_a_file_and_tells_no_secrets() {
        let text = "22 1 259:1 / / rw,relatime - ext4 /dev/nvme0n1p1 rw,errors=remount-ro\n\
                    30 22 0:44 /a /mnt/my\\040share rw,nosuid - cifs //server/a \
                    rw,username=me,password=hunter2,vers=3.1,credentials=/etc/x,addr=10.0.0.1\n\
                    31 22 0:45 / /mn rw - tmpfs none rw\n";
        let mount = Mount::of(text, Path::new("/mnt/my share/file")).unwrap();
        assert_eq!(mount.file_system, "cifs");
        assert_eq!(mount.options, ["nosuid", "rw", "vers=3.1"]);
        let mount = Mount::of(text, Path::new("/mnt/file")).unwrap();
        assert_eq!((mount.file_system.as_str(), mount.source.as_str()), ("ext4", "/dev/nvme0n1p1"));
        assert_eq!(mount.options, ["errors=remount-ro", "relatime", "rw"]);
        let told = ["rw", "vers=4.2", "wsize=1048576", "acl"];
        let addresses =
            ["mon_addr=10.0.0.1:6789", "clientaddr=::1", "peer=[::1]:1", "host=10.0.0.1"];
        let all = told.into_iter().chain(addresses).filter(|option| is_told(option));
        assert_eq!(all.collect::<Vec<_>>(), told);
        assert_eq!(Mount::of("garbage\n", Path::new("/mnt/file")), None);
    }

    #[test]
    fn a_file_of_this_machine_is_described() {
        let file = std::env::current_exe().unwrap();
        let found = crate::StorageOrigin::of(Path::new("/"), &file.display().to_string()).unwrap();
        let file = found.file.unwrap();
        assert!(file.size_bytes > 0 && file.file_system.is_some());
        assert_eq!(crate::StorageOrigin::of(Path::new("/"), "/proc"), None);
        assert_eq!(crate::StorageOrigin::of(Path::new("/"), "null:"), None);
    }
}
