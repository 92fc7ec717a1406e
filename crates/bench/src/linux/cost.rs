//! The cost of the tool itself (S4-21, S4-45).

use std::ops::Sub;

/// The smallest CPU time for which its parts are reported. The kernel usually parts it by what its ticks meet, 100 to
/// 1000 a second, where only the sum is exact. With 250 these are 25 ticks, which leave a share off by at most a tenth
/// (one standard deviation).
const PARTS_NS_LEAST: u64 = 100_000_000;

/// Time on the CPU and context switches, of a thread or the whole process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Usage {
    /// In user mode.
    pub(crate) user_ns: u64,
    /// In the kernel on our behalf.
    pub(crate) system_ns: u64,
    /// Voluntary and not.
    pub(crate) switches: u64,
    /// Of memory that was used for the first time: without input or output.
    pub(crate) page_faults: u64,
}

impl Usage {
    /// Of the calling thread so far.
    pub(crate) fn of_thread() -> Usage {
        usage(libc::RUSAGE_THREAD)
    }

    /// Of all threads of the process so far, with the kernel's workers for its io_uring.
    pub(crate) fn of_process() -> Usage {
        usage(libc::RUSAGE_SELF)
    }

    /// In user mode and in the kernel; `None` where that would be chance.
    pub(crate) fn parts(&self) -> Option<(u64, u64)> {
        (self.cpu_ns() >= PARTS_NS_LEAST).then_some((self.user_ns, self.system_ns))
    }

    /// User and system together.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }
}

impl Sub for Usage {
    type Output = Usage;
    fn sub(self, earlier: Usage) -> Usage {
        Usage {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            switches: self.switches.saturating_sub(earlier.switches),
            page_faults: self.page_faults.saturating_sub(earlier.page_faults),
        }
    }
}

#[expect(unsafe_code, reason = "no safe wrapper of getrusage in the libraries that we use")]
fn usage(who: libc::c_int) -> Usage {
    // SAFETY: `rusage` is a plain structure of integers, for which zero is a valid value, and
    // getrusage(2) only writes into the given structure. It fails only for a wrong `who`.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &raw mut usage);
        usage
    };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    Usage {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
        page_faults: usage.ru_minflt as u64,
    }
}

/// CPU time of the calling thread so far, to the nanosecond: getrusage(2) may count in ticks of the system.
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Kernel threads that carry out our requests which the kernel could not begin without blocking
/// (`iou-wrk-*`); 0 if /proc does not show them.
pub(crate) fn kernel_workers() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
        // A request that would block is handed to such a thread. Many of them mean that the
        // figures include switches between threads which a native driver would not need.
        .filter(|name| name.starts_with("iou-wrk"))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_ticks_tell_no_parts() {
        let of = |user_ns, system_ns| Usage { user_ns, system_ns, ..Usage::default() };
        assert_eq!(of(0, 44_000_000).parts(), None);
        assert_eq!(of(60_000_000, 200_000_000).parts(), Some((60_000_000, 200_000_000)));
    }

    #[test]
    fn work_and_sleep_are_seen() {
        let before = (Usage::of_thread(), Usage::of_process());
        let mut sum = 0u64;
        while Usage::of_thread().cpu_ns() < before.0.cpu_ns() + 5_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
        let thread = Usage::of_thread() - before.0;
        let process = Usage::of_process() - before.1;
        assert!(thread.cpu_ns() >= 5_000_000 && process.cpu_ns() >= 5_000_000);
        assert!(thread.switches >= 1, "a sleep is a switch");
    }
}
