//! What is on a device, by its magic numbers.
//!
//! A table, not a parser: it must know that something is there, not what it says. The offsets are
//! those of the on-disk formats' own documentation (for the kernel's file systems
//! `include/uapi/linux/magic.h` and the headers beside it).

use std::io;
use std::os::unix::fs::FileExt;

/// Something found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signature {
    /// What it is: `ext2/3/4 file system`.
    pub name: &'static str,
    /// Part of something larger, so that writing here destroys data elsewhere.
    pub member: bool,
}

/// Where a magic number stands.
struct Magic {
    name: &'static str,
    member: bool,
    /// From the start, or from the end where negative.
    offset: i64,
    bytes: &'static [u8],
}

const fn magic(name: &'static str, offset: i64, bytes: &'static [u8]) -> Magic {
    Magic { name, member: false, offset, bytes }
}
const fn member(name: &'static str, offset: i64, bytes: &'static [u8]) -> Magic {
    Magic { name, member: true, offset, bytes }
}

const MD: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9];
const ZFS: &[u8] = &[0x0c, 0xb1, 0xba, 0, 0, 0, 0, 0];

const TABLE: &[Magic] = &[
    magic("GPT partition table", 512, b"EFI PART"),
    magic("GPT partition table", 4096, b"EFI PART"),
    magic("GPT partition table (backup)", -512, b"EFI PART"),
    magic("GPT partition table (backup)", -4096, b"EFI PART"),
    magic("MBR partition table or boot sector", 510, &[0x55, 0xaa]),
    magic("ext2/3/4 file system", 0x438, &[0x53, 0xef]),
    magic("XFS file system", 0, b"XFSB"),
    magic("Btrfs file system", 0x1_0040, b"_BHRfS_M"),
    magic("F2FS file system", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    magic("NTFS file system", 3, b"NTFS    "),
    magic("exFAT file system", 3, b"EXFAT   "),
    magic("FAT file system", 54, b"FAT1"),
    magic("FAT file system", 82, b"FAT32   "),
    magic("ISO 9660 file system", 0x8001, b"CD001"),
    magic("UDF file system", 0x8001, b"BEA01"),
    magic("squashfs", 0, b"hsqs"),
    magic("EROFS file system", 1024, &[0xe2, 0xe1, 0xf5, 0xe0]),
    magic("bcachefs file system", 4096 + 24, BCACHE),
    magic("ReiserFS file system", 0x1_0034, b"ReIsEr"),
    magic("JFS file system", 0x8000, b"JFS1"),
    magic("HFS+ file system", 1024, b"H+"),
    magic("APFS container", 32, b"NXSB"),
    magic("LUKS encrypted volume", 0, b"LUKS\xba\xbe"),
    magic("swap space", 4086, b"SWAPSPACE2"),
    magic("swap space", 4086, b"SWAP-SPACE"),
    magic("swap space", 65526, b"SWAPSPACE2"),
    member("LVM physical volume", 0, b"LABELONE"),
    member("LVM physical volume", 512, b"LABELONE"),
    member("LVM physical volume", 1024, b"LABELONE"),
    member("LVM physical volume", 1536, b"LABELONE"),
    member("Linux software RAID member", 0, MD),
    member("Linux software RAID member", 4096, MD),
    member("bcache device", 4096 + 24, BCACHE_DEVICE),
    member("Ceph BlueStore device", 0, b"bluestore block device"),
    member("VMFS volume", 0x20_0000, &[0x0d, 0xd0, 0x01, 0xc0]),
    member("DDF RAID member", -512, &[0xde, 0x11, 0xde, 0x11]),
    member("Intel RAID member", -1024, b"Intel Raid ISM Cfg Sig. "),
];

/// The first half of the unique identifiers that bcachefs and bcache begin with.
const BCACHE: &[u8] = &[0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9];
const BCACHE_DEVICE: &[u8] = &[0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca];

/// ZFS keeps rings of uberblocks in its labels, of which some slot is used; a slot may begin at any
/// KiB (OpenZFS, `vdev_label.c`: rings are at 128 KiB of each 256 KiB label).
const ZFS_RINGS: [u64; 2] = [128 << 10, (256 + 128) << 10];
const ZFS_SLOTS: u64 = 128;

/// A part of a device, as if it were one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a, D> {
    pub(crate) device: &'a D,
    /// Where it begins.
    pub(crate) start_bytes: u64,
}

impl<D: FileExt> FileExt for Window<'_, D> {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let at = self.start_bytes.checked_add(offset).ok_or(io::ErrorKind::InvalidInput)?;
        self.device.read_at(bytes, at)
    }

    /// Nothing is written: this only looks.
    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

/// Blocks of a sample, and the length of each. Few enough to be read in some milliseconds.
const SAMPLES: u64 = 64;
const SAMPLE_BYTES: usize = 4096;

/// Calls `look` with blocks that are spread evenly over a device of `size_bytes`, the first and the last
/// of it among them.
pub(crate) fn for_each_sample(
    device: &impl FileExt,
    size_bytes: u64,
    mut look: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut block = vec![0u8; SAMPLE_BYTES];
    let last = size_bytes.saturating_sub(SAMPLE_BYTES as u64);
    for index in 0..SAMPLES {
        // The product of a size and a number may exceed 64 bits. All blocks but the last begin
        // at a multiple of 512 bytes, because a device that is read directly requires that.
        let spread = (u128::from(last) * u128::from(index) / u128::from(SAMPLES - 1)) as u64;
        let offset = if index + 1 < SAMPLES { spread / 512 * 512 } else { spread };
        let length = (size_bytes - offset).min(SAMPLE_BYTES as u64) as usize;
        device.read_exact_at(&mut block[..length], offset)?;
        look(&block[..length]);
    }
    Ok(())
}

/// Whether a sample of a device of `size_bytes` holds the same byte everywhere, zero or ones, as a new,
/// trimmed or wiped one does.
///
/// # Errors
/// Those of reading.
pub(crate) fn looks_blank(device: &impl FileExt, size_bytes: u64) -> io::Result<bool> {
    let (mut zeroes, mut ones) = (true, true);
    for_each_sample(device, size_bytes, |block| {
        zeroes &= block.iter().all(|byte| *byte == 0);
        ones &= block.iter().all(|byte| *byte == 0xff);
    })?;
    Ok(zeroes || ones)
}

/// Everything that is known on a device of `size_bytes`, each name once, in the order of the table.
///
/// # Errors
/// Those of reading.
pub fn signatures(device: &impl FileExt, size_bytes: u64) -> io::Result<Vec<Signature>> {
    let mut found: Vec<Signature> = Vec::new();
    let mut add = |name, member| {
        if !found.iter().any(|other| other.name == name) {
            found.push(Signature { name, member });
        }
    };
    for magic in TABLE {
        let at = match u64::try_from(magic.offset) {
            Ok(offset) => Some(offset),
            Err(_) => size_bytes.checked_sub(magic.offset.unsigned_abs()),
        };
        if let Some(at) = at
            && holds(device, size_bytes, at, magic.bytes)?
        {
            add(magic.name, magic.member);
        }
    }
    // RAID superblocks of version 0.90 and 1.0 stand near the end of the device, rounded down
    // to 64 KiB and to 4 KiB. The table has only fixed places.
    let ends =
        [(size_bytes & !0xffff).checked_sub(0x1_0000), (size_bytes & !0xfff).checked_sub(0x2000)];
    for at in ends.into_iter().flatten() {
        if holds(device, size_bytes, at, MD)? {
            add("Linux software RAID member", true);
        }
    }
    for ring in ZFS_RINGS {
        for slot in 0..ZFS_SLOTS {
            if holds(device, size_bytes, ring + slot * 1024, ZFS)? {
                add("ZFS pool member", true);
            }
        }
    }
    Ok(found)
}

fn holds(device: &impl FileExt, size_bytes: u64, at: u64, bytes: &[u8]) -> io::Result<bool> {
    let mut there = [0; 32];
    let there = &mut there[..bytes.len()];
    // A small file ends before most places of the table. A read beyond its end would be an
    // error and not a missing signature.
    if at.checked_add(bytes.len() as u64).is_none_or(|end| end > size_bytes) {
        return Ok(false);
    }
    device.read_exact_at(there, at)?;
    Ok(there == bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new disk and one with data of an unknown kind are told apart: the second may be precious.
    #[test]
    fn a_blank_device_is_told_from_one_with_unknown_data() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("device");
        let blank = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            looks_blank(&std::fs::File::open(&path).unwrap(), bytes.len() as u64).unwrap()
        };
        for size in [0, 1, 512, 4096, 5000, 1 << 20] {
            assert!(blank(&vec![0; size]) && blank(&vec![0xff; size]), "{size}");
        }
        let mut one_byte = vec![0; 1 << 20];
        for at in [0, (1 << 20) - 1] {
            one_byte[at] = 1;
            assert!(!blank(&one_byte), "{at}");
            one_byte[at] = 0;
        }
        assert!(!blank(&vec![7; 1 << 20]));
    }

    const SIZE: usize = 4 << 20;

    fn named(image: &[u8]) -> Vec<&'static str> {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(image, 0).unwrap();
        let found = signatures(&file, image.len() as u64).unwrap();
        found.iter().map(|signature| signature.name).collect()
    }

    #[test]
    fn every_entry_is_found_where_it_stands_and_nothing_on_an_empty_device() {
        assert_eq!(named(&vec![0; SIZE]), Vec::<&str>::new());
        for magic in TABLE {
            let mut image = vec![0; SIZE];
            let at = match usize::try_from(magic.offset) {
                Ok(at) => at,
                Err(_) => SIZE - magic.offset.unsigned_abs() as usize,
            };
            image[at..at + magic.bytes.len()].copy_from_slice(magic.bytes);
            assert!(named(&image).contains(&magic.name), "{} at {}", magic.name, magic.offset);
        }
    }

    #[test]
    fn superblocks_near_the_end_are_found_on_odd_sizes_too() {
        let size = SIZE + 512 * 3;
        for at in [(size & !0xffff) - 0x1_0000, (size & !0xfff) - 0x2000] {
            let mut image = vec![0; size];
            image[at..at + 4].copy_from_slice(MD);
            assert_eq!(named(&image), ["Linux software RAID member"]);
        }
    }

    #[test]
    fn any_used_slot_gives_a_zfs_pool_away() {
        let mut image = vec![0; SIZE];
        image[(128 + 77) << 10..][..8].copy_from_slice(ZFS);
        assert_eq!(named(&image), ["ZFS pool member"]);
    }

    #[test]
    fn what_a_part_holds_is_found_through_the_whole() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(3 * SIZE as u64).unwrap();
        file.write_all_at(b"LABELONE", SIZE as u64 + 512).unwrap();
        let found = |start_bytes: u64| {
            signatures(&Window { device: &file, start_bytes }, SIZE as u64).unwrap()
        };
        assert_eq!(found(0), []);
        let volume = Signature { name: "LVM physical volume", member: true };
        assert_eq!(found(SIZE as u64), [volume]);
        assert!(Window { device: &file, start_bytes: 0 }.write_at(b"x", 0).is_err());
    }

    #[test]
    fn a_device_of_one_sector_is_no_trouble() {
        assert_eq!(named(&[0; 512]), Vec::<&str>::new());
    }

    /// What the tools of this system really write.
    #[test]
    fn real_file_systems_are_recognised() {
        let tools: [(&str, &[&str], &str); 2] =
            [("mkfs.ext4", &["-q", "-F"], "ext2/3/4 file system"), ("mkswap", &[], "swap space")];
        for (tool, arguments, name) in tools {
            let file = tempfile::NamedTempFile::new().unwrap();
            file.as_file().set_len(16 << 20).unwrap();
            let made = std::process::Command::new(tool).args(arguments).arg(file.path()).output();
            let Ok(made) = made else {
                eprintln!("skipped: no {tool} here");
                continue;
            };
            assert!(made.status.success(), "{made:?}");
            let found = signatures(file.as_file(), 16 << 20).unwrap();
            assert!(found.iter().any(|found| found.name == name), "{tool}: {found:?}");
        }
    }
}
