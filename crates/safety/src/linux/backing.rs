//! What lies below a loop device: which file it is, by whatever name.
//!
//! `/sys` tells a path, which may be one of several hard links, gone, or seen from another mount
//! name space. The kernel's own answer (loop(4), `LOOP_GET_STATUS64`) is a device and an inode.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file, by whatever name: number of its file system, and inode.
pub(crate) type Identity = (u64, u64);

/// Who `path` is.
pub(crate) fn identity(path: &Path) -> Option<Identity> {
    let status = fs::metadata(path).ok()?;
    Some((status.dev(), status.ino()))
}

/// The file below the loop device `node`, which has the path `path` if the kernel does not answer.
pub(crate) fn of_loop(node: &Path, path: &Path) -> Option<Identity> {
    // The kernel is asked first. The path in /sys may be one of several hard links, may be
    // deleted, or may come from another mount name space.
    asked(node).or_else(|| identity(path))
}

/// linux/loop.h: `LOOP_GET_STATUS64`.
const LOOP_GET_STATUS64: rustix::ioctl::Opcode = 0x4C05;

/// linux/loop.h: `struct loop_info64`; what is not looked at in one piece.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rest: [u64; 27],
}

#[expect(unsafe_code, reason = "no safe wrapper of this request in the libraries that we use")]
fn asked(node: &Path) -> Option<Identity> {
    let file = File::open(node).ok()?;
    // SAFETY: the request writes one `struct loop_info64` of 232 bytes, which `LoopInfo` is in size
    // and alignment, and any bits are a valid value of it.
    let info: LoopInfo = unsafe {
        let request = rustix::ioctl::Getter::<LOOP_GET_STATUS64, LoopInfo>::new();
        rustix::ioctl::ioctl(&file, request).ok()?
    };
    Some((device_number(info.device), info.inode))
}

/// The kernel writes a device number otherwise than stat(2) (linux/kdev_t.h, `new_encode_dev`).
fn device_number(encoded: u64) -> u64 {
    // `new_encode_dev` puts the minor number on both sides of the major number. Both parts are
    // joined again in the form of stat(2), with which the result is compared.
    let major = (encoded & 0xf_ff00) >> 8;
    let minor = (encoded & 0xff) | ((encoded >> 12) & 0xf_ff00);
    rustix::fs::makedev(major as u32, minor as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_form_of_a_device_number_is_read() {
        assert_eq!(size_of::<LoopInfo>(), 232);
        assert_eq!(device_number(0x0801), rustix::fs::makedev(8, 1));
        // Minor 0x12345 of major 0x103.
        let encoded = 0x45 | 0x103 << 8 | 0x12300 << 12;
        assert_eq!(device_number(encoded), rustix::fs::makedev(0x103, 0x12345));
    }

    #[test]
    fn hard_links_are_one_file() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        fs::write(&one, "x").unwrap();
        fs::hard_link(&one, &two).unwrap();
        assert_eq!(identity(&one), identity(&two));
        assert!(identity(&one).is_some() && identity(&dir.path().join("no")).is_none());
        assert_eq!(of_loop(&dir.path().join("no"), &one), identity(&two));
    }
}
