//! File systems that store nothing, or only in memory.

/// linux/magic.h: TMPFS_MAGIC and RAMFS_MAGIC.
const MEMORY_FILE_SYSTEMS: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// linux/magic.h: file systems whose regular files are the kernel's own, so that reading may consume
/// something and writing sets something: proc, sysfs, debugfs, tracefs, configfs, securityfs, SELinux,
/// efivarfs, pstore, cgroup, cgroup2, BPF, binfmt_misc.
const KERNEL_FILE_SYSTEMS: [i64; 13] = [
    0x9fa0,
    0x6265_6572,
    0x6462_6720,
    0x7472_6163,
    0x6265_6570,
    0x7363_6673,
    0xf97c_ff8c,
    0xde5e_81e4,
    0x6165_676c,
    0x0027_e0eb,
    0x6367_7270,
    0xcafe_4a11,
    0x4249_4e4d,
];

/// Whether `path` is in a file system that stores nothing: its files are the kernel's.
pub fn is_of_the_kernel(path: &std::path::Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| is_one_of(&found, &KERNEL_FILE_SYSTEMS))
}

/// Whether what statfs(2) `found` keeps files in memory.
pub fn is_in_memory(found: &rustix::fs::StatFs) -> bool {
    is_one_of(found, &MEMORY_FILE_SYSTEMS)
}

/// Whether what statfs(2) `found` has one of these types.
fn is_one_of(found: &rustix::fs::StatFs, types: &[i64]) -> bool {
    // `f_type` has another width and sign on other processors. In 128 bits every one of these
    // numbers compares as it is written here.
    types.iter().any(|wanted| i128::from(*wanted) == i128::from(found.f_type))
}
