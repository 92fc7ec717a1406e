//! Whether there is memory for more rows.
//!
//! Rows are what of a run grows with its length. A run that would outgrow memory must end early and keep its results.
//! So the run reserves memory for rows in advance, in a way that can fail, and asks the system before each chunk how
//! much memory is left: the system promises more memory than it has, and kills programs that use it.

use std::cell::Cell;
use std::path::{Path, PathBuf};

thread_local! {
    /// An allocation that may be refused is under way.
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the allocation under way on this thread may be refused: an allocator that ends the program
/// when there is nothing left must not do so then.
pub fn may_be_refused() -> bool {
    ASKING.get()
}

/// Room for exactly `count` more elements; false where there is no memory for them.
pub(crate) fn reserve<T>(list: &mut Vec<T>, count: usize) -> bool {
    ASKING.set(true);
    let done = list.try_reserve_exact(count).is_ok();
    ASKING.set(false);
    done
}

/// The memory for the rest of a run, its figures and its files.
const REST_BYTES: u64 = 64 << 20;

/// The memory that the rows of a job may take after its check: its chunk, and another chunk when the rows of all jobs
/// are joined; doubled, because jobs do not check at the same time.
const JOB_BYTES: u64 = 64 << 20;

/// Whether more rows of this number of jobs would leave too little memory for the end of the run.
pub(crate) fn is_scarce(jobs: u32) -> bool {
    let kept = REST_BYTES + u64::from(jobs) * JOB_BYTES;
    // Two limits exist: what the machine and its control groups still have, and the
    // address space of the process (`ulimit -v`). The second one shows only in an
    // allocation that fails.
    available_bytes().is_some_and(|available| available < kept)
        || !reserve::<u8>(&mut Vec::new(), REST_BYTES as usize)
}

/// Bytes that this program could still use, if the system reports them: the free memory of the
/// machine (/proc/meminfo), or less if its control group or a parent has a limit (memory.max, or
/// memory.limit_in_bytes of version 1).
pub fn available_bytes() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let machine = std::fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| of_machine(&text));
    let groups = of_groups(Path::new("/sys/fs/cgroup"), &groups);
    machine.into_iter().chain(groups).min()
}

/// From the text of /proc/meminfo (proc_meminfo(5)): in KiB.
fn of_machine(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// The least that a group of /proc/self/cgroup (cgroups(7)), or one above it, has left.
fn of_groups(root: &Path, groups: &str) -> Option<u64> {
    let of_line = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let (folder, limit, used, [cached, shared]) = match controllers {
            "" => (root.to_owned(), "memory.max", "memory.current", ["file", "shmem"]),
            _ if controllers.split(',').any(|name| name == "memory") => {
                let (limit, used) = ("memory.limit_in_bytes", "memory.usage_in_bytes");
                (root.join("memory"), limit, used, ["total_cache", "total_shmem"])
            }
            _ => return None,
        };
        let path = PathBuf::from(path.trim_start_matches('/'));
        let number = |file: PathBuf| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
        let left = path.ancestors().filter_map(|path| {
            let group = folder.join(path);
            // A group without a limit has `max` there instead of a number. Its parents may have a
            // limit, so the search goes on with them.
            let limit = number(group.join(limit))?;
            let used = number(group.join(used))?;
            // Pages of files are in `memory.current`, but the kernel gives them up before it
            // refuses memory. So they count as free, except those of tmpfs and shared memory,
            // which the kernel counts with them and cannot drop.
            let statistics = std::fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
            let shared = value_of(&statistics, shared);
            let free = value_of(&statistics, cached).saturating_sub(shared);
            Some(limit.saturating_sub(used.saturating_sub(free)))
        });
        left.min()
    };
    groups.lines().filter_map(of_line).min()
}

/// The value of `key` in lines of `key value`.
fn value_of(text: &str, key: &str) -> u64 {
    let fields = text.lines().filter_map(|line| line.split_once(' '));
    fields.filter(|(name, _)| *name == key).find_map(|(_, value)| value.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_told_and_nothing_else_is_asked_so() {
        let mut list: Vec<u64> = Vec::new();
        assert!(reserve(&mut list, 10) && list.capacity() >= 10);
        assert!(!reserve(&mut list, usize::MAX / 16));
        assert!(!may_be_refused());
    }

    #[test]
    fn the_machine_says_what_is_available() {
        assert_eq!(of_machine("MemTotal: 9 kB\nMemAvailable:    1024 kB\nx\n"), Some(1 << 20));
        assert_eq!(of_machine("MemTotal: 9 kB\n"), None);
        if cfg!(target_os = "linux") {
            assert!(available_bytes().is_some_and(|bytes| bytes > 0));
        }
    }

    #[test]
    fn the_least_of_a_group_and_those_above_counts() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let left = |groups: &str| of_groups(dir.path(), groups);
        assert_eq!(left("0::/a/b\n"), None);
        put("a/b/memory.max", "max\n");
        put("a/b/memory.current", "100\n");
        assert_eq!(left("0::/a/b\n"), None);
        put("a/memory.max", "1000\n");
        put("a/memory.current", "700\n");
        assert_eq!(left("0::/a/b\n"), Some(300));
        put("a/memory.stat", "anon 500\nfile 200\nfile_mapped 7\n");
        assert_eq!(left("0::/a/b\n"), Some(500));
        // Files in tmpfs stay in memory.
        put("a/memory.stat", "anon 500\nfile 200\nshmem 150\n");
        assert_eq!(left("0::/a/b\n"), Some(350));
        assert_eq!(left("0::/\n"), None);
        put("memory/x/memory.limit_in_bytes", "400\n");
        put("memory/x/memory.usage_in_bytes", "399\n");
        assert_eq!(left("3:cpu,cpuacct:/x\n4:memory:/x\n0::/a/b\n"), Some(1));
        put("memory/x/memory.stat", "cache 9\ntotal_cache 100\ntotal_shmem 80\n");
        assert_eq!(left("4:memory:/x\n"), Some(21));
        assert_eq!(left("rubbish\n"), None);
    }
}
