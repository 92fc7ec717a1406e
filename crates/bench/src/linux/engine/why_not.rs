//! Why io_uring cannot be used, and what would let it (io_uring_setup(2); kernel documentation,
//! admin-guide/sysctl/kernel.rst).

use std::{fs, io};

/// The system's settings for io_uring and for this process.
#[derive(Clone, Debug, Default)]
struct Facts {
    /// `kernel.io_uring_disabled`: 0, 1 (only members of the group, and administrators) or 2 (nobody);
    /// kernels before 6.6 have none.
    disabled: Option<u32>,
    /// `kernel.io_uring_group`; -1: none.
    group: Option<i64>,
    /// A seccomp filter is in force.
    filtered: bool,
}

impl Facts {
    fn here() -> Facts {
        let number = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok();
        let parsed = |name| number(name).and_then(|text| text.trim().parse::<i64>().ok());
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        // Mode 2 is a filter, whose rules cannot be read from here. In mode 1 (strict) this process
        // could not even have opened the file.
        let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
        Facts {
            disabled: parsed("io_uring_disabled").and_then(|value| u32::try_from(value).ok()),
            group: parsed("io_uring_group"),
            filtered: mode.is_some_and(|mode| mode.trim() == "2"),
        }
    }
}

/// The reason why io_uring is forbidden, and the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WhyNot {
    /// The error with its name, and the setting behind it.
    pub(crate) reason: String,
    /// The remedy.
    pub(crate) remedy: String,
}

/// Why setting up a ring failed with `source`.
pub(crate) fn why_not(source: &io::Error) -> WhyNot {
    explain(source, &Facts::here())
}

fn explain(source: &io::Error, facts: &Facts) -> WhyNot {
    let told = |name: &str, reason: &str, remedy: String| WhyNot {
        reason: if name.is_empty() { reason.to_owned() } else { format!("{name}: {reason}") },
        remedy,
    };
    // The settings come before the filter. A setting that forbids io_uring is the cause for
    // certain; a filter in force is only a likely one.
    match (source.raw_os_error(), facts.disabled) {
        (Some(libc::EPERM), Some(2..)) => told(
            "EPERM",
            "kernel.io_uring_disabled=2 forbids it for all users",
            "`sysctl kernel.io_uring_disabled=0` allows it".to_owned(),
        ),
        (Some(libc::EPERM), Some(1)) => {
            let group = match facts.group {
                Some(group) if group >= 0 => {
                    format!("join group {group} (kernel.io_uring_group), ")
                }
                _ => String::new(),
            };
            let reason = "kernel.io_uring_disabled=1 allows it only to administrators and \
                          members of kernel.io_uring_group";
            told(
                "EPERM",
                reason,
                format!("run as root, {group}or run `sysctl kernel.io_uring_disabled=0`"),
            )
        }
        (Some(error @ (libc::EPERM | libc::EACCES | libc::ENOSYS)), _) if facts.filtered => told(
            name(error),
            "a seccomp filter is in force (Seccomp: 2 in /proc/self/status), as in containers",
            "start the container with a profile that allows io_uring_setup, io_uring_enter and \
             io_uring_register (docker: `--security-opt seccomp=FILE`)"
                .to_owned(),
        ),
        (Some(libc::ENOSYS), _) => told(
            "ENOSYS",
            "this kernel has no io_uring",
            "use Linux 5.1 or newer with CONFIG_IO_URING".to_owned(),
        ),
        (Some(error @ (libc::EPERM | libc::EACCES)), _) => told(
            name(error),
            match facts.disabled {
                Some(0) => {
                    "a security policy forbids it (SELinux, AppArmor or the like); \
                     kernel.io_uring_disabled=0 is not the cause"
                }
                _ => "a security policy forbids it (SELinux, AppArmor or the like)",
            },
            "look for the denial in the audit log, and allow io_uring there".to_owned(),
        ),
        (Some(libc::ENOMEM), _) => told(
            "ENOMEM",
            "the limit on locked memory is too low",
            "raise `ulimit -l` (RLIMIT_MEMLOCK)".to_owned(),
        ),
        _ => told("", &source.to_string(), "look at the kernel's log (`dmesg`)".to_owned()),
    }
}

fn name(error: i32) -> &'static str {
    match error {
        libc::EPERM => "EPERM",
        libc::EACCES => "EACCES",
        _ => "ENOSYS",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_and_setting_are_named() {
        let facts = |disabled, group, filtered| Facts { disabled, group, filtered };
        for (error, facts, named, remedy) in [
            (libc::EPERM, facts(Some(2), Some(-1), false), "io_uring_disabled=2", "=0"),
            (libc::EPERM, facts(Some(2), None, true), "io_uring_disabled=2", "=0"),
            (libc::EPERM, facts(Some(1), Some(1005), false), "io_uring_disabled=1", "group 1005"),
            (libc::EPERM, facts(Some(1), Some(-1), false), "io_uring_disabled=1", "as root, or"),
            (libc::EPERM, facts(Some(0), None, true), "EPERM: a seccomp filter", "profile"),
            (libc::ENOSYS, facts(None, None, true), "ENOSYS: a seccomp filter", "profile"),
            (libc::ENOSYS, facts(None, None, false), "no io_uring", "5.1"),
            (libc::EACCES, facts(Some(0), None, false), "EACCES: a security policy", "audit"),
            (libc::EPERM, facts(None, None, false), "EPERM: a security policy", "audit"),
            (libc::ENOMEM, facts(Some(0), None, false), "ENOMEM", "ulimit -l"),
            (libc::EMFILE, facts(Some(0), None, false), "os error 24", "dmesg"),
        ] {
            let why = explain(&io::Error::from_raw_os_error(error), &facts);
            assert!(why.reason.contains(named), "{error} {facts:?}: {why:?}");
            assert!(why.remedy.contains(remedy), "{error} {facts:?}: {why:?}");
        }
    }
}
