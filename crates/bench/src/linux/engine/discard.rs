//! Trims of block devices: discards, as blkdiscard(8) and fio send them. (Punching a hole into a device
//! asks for zeroes instead, which it may have to write.)

use std::os::fd::BorrowedFd;

use io_uring::squeue::Entry;
use io_uring::{opcode, types};
use rustix::fs::FileType;

use super::Outcome;

/// linux/fs.h: `BLKDISCARD`, `_IO(0x12, 119)`; takes start and length in bytes.
const BLKDISCARD: rustix::ioctl::Opcode = 0x1277;

/// linux/blkdev.h: `BLOCK_URING_CMD_DISCARD`, `_IO(0x12, 0)`, since Linux 6.12.
const BLOCK_URING_CMD_DISCARD: u32 = 0x1200;

/// Whether trims of `file` are discards: of a file in a file system they are holes.
pub(super) fn is_for(file: BorrowedFd<'_>) -> bool {
    let kind = rustix::fs::fstat(file).map(|status| FileType::from_raw_mode(status.st_mode));
    kind == Ok(FileType::BlockDevice)
}

/// Discards `length` bytes from `start` on and waits for it.
#[expect(unsafe_code, reason = "no safe wrapper of this request in the libraries that we use")]
pub(super) fn now(file: BorrowedFd<'_>, start: u64, length: u64) -> Outcome {
    // SAFETY: the request reads two numbers of 64 bits, which is what the setter passes.
    let done = unsafe {
        let request = rustix::ioctl::Setter::<BLKDISCARD, [u64; 2]>::new([start, length]);
        rustix::ioctl::ioctl(file, request)
    };
    done.map_or_else(|error| -error.raw_os_error(), |()| 0)
}

/// The same without waiting, for kernels that [know it](is_asynchronous).
pub(super) fn entry(file: types::Fixed, start: u64, length: u64) -> Entry {
    let mut rest = [0; 16];
    rest[..8].copy_from_slice(&length.to_ne_bytes());
    opcode::UringCmd16::new(file, BLOCK_URING_CMD_DISCARD).addr(Some(start)).cmd(rest).build()
}

/// Whether this kernel takes discards through a ring: since 6.12.
pub(super) fn is_asynchronous() -> bool {
    // If it is unknown, the code waits, which works on every kernel.
    is_since_6_12(&std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default())
}

fn is_since_6_12(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return false };
    (major, minor) >= (6, 12)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn kernels_are_told_apart() {
        for new in ["6.12.0", "6.18.44-fc", "7.0-rc1", "6.12"] {
            assert!(is_since_6_12(new), "{new}");
        }
        for old in ["6.11.9", "5.15.0-generic", "6", "", "six.twelve"] {
            assert!(!is_since_6_12(old), "{old}");
        }
    }

    #[test]
    fn files_have_holes_and_refuse_discards() {
        let file = tempfile::tempfile().unwrap();
        assert!(!is_for(file.as_fd()));
        assert!(now(file.as_fd(), 0, 512) < 0);
    }
}
