//! The errors of a run: what failed, where, and what to do.

use std::io;
use std::time::Duration;

use ssdyno_block::{Op, Request, counted};
use ssdyno_workload::WorkloadError;

#[cfg(target_os = "linux")]
use crate::engine::why_not::{WhyNot, why_not};
use crate::is_network;

/// The system's number for it (errno(3), ENOMEM), the same on every Linux.
const OUT_OF_MEMORY: i32 = 12;

/// Why a run in wall time could not start, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The target cannot be opened.
    #[error("cannot open {target}: {source}")]
    Open {
        /// The target, as it was named.
        target: String,
        /// What the system said.
        source: io::Error,
    },
    /// Another run, or another program that locks devices, is using it.
    #[error("{target} is locked by another program, such as another run")]
    Busy {
        /// The target, as it was named.
        target: String,
    },
    /// The target is neither a block device nor a regular file.
    #[error("{target} is {kind}, not a block device or a regular file")]
    Kind {
        /// The target, as it was named.
        target: String,
        /// What it is: `a directory`.
        kind: &'static str,
    },
    /// A network target cannot be used, or its connection ended.
    #[error("{target}: {what}")]
    Network {
        /// The target, as it was named.
        target: String,
        /// The problem.
        what: String,
        /// The remedy.
        help: String,
    },
    /// Size or alignment of the target could not be found.
    #[error("cannot find the {what} of {target}: {source}")]
    Geometry {
        /// The target, as it was named.
        target: String,
        /// `size`, `sector size`.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The target holds less than one of its own blocks.
    #[error("{target} is {size_bytes} B long, shorter than one block of {block_bytes} B")]
    TooSmall {
        /// The target, as it was named.
        target: String,
        /// Its size.
        size_bytes: u64,
        /// Its smallest request.
        block_bytes: u32,
    },
    /// Something would be written to a target that was opened for reading.
    #[error("the workload contains a {}, but {target} is open read-only", op.name())]
    ReadOnly {
        /// The target, as it was named.
        target: String,
        /// What it would do.
        op: Op,
    },
    /// The permit to write is for another file or device.
    #[error("writing is not permitted to {target}: it was replaced after it was checked")]
    Permit {
        /// The target, as it was named.
        target: String,
    },
    /// The workload cannot be built, or its trace is damaged.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// An option that cannot be carried out here.
    #[error("{option}: {why}")]
    Option {
        /// The option, as a field of [`BenchOptions`](crate::BenchOptions).
        option: &'static str,
        /// Why not.
        why: String,
    },
    /// io_uring is not there or not allowed.
    #[error("io_uring cannot be used: {source}")]
    Uring {
        /// What the system said.
        source: io::Error,
    },
    /// The engine failed as a whole, not a request.
    #[error("{what}: {source}")]
    Engine {
        /// What it was doing.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The target went away or fails everything.
    #[error("{target} no longer responds: {count} requests in a row failed, the last a {} of {} B at byte {}: {source}", request.op.name(), request.length_bytes, request.offset_bytes)]
    Gone {
        /// The target, as it was named.
        target: String,
        /// Failures in a row.
        count: u64,
        /// The last of them.
        request: Request,
        /// How it failed.
        source: io::Error,
    },
    /// A job of a job file changes data, which is not permitted.
    #[error("the job [{job}] writes or trims, but {target} is open read-only")]
    ReadOnlyJob {
        /// The target, as it was named.
        target: String,
        /// Name of its section.
        job: String,
    },
    /// No completion came for too long.
    #[error(
        "{target} hangs: {} not completed for {} s",
        counted(*outstanding, "request has", "requests have"),
        waited.as_secs()
    )]
    Hang {
        /// The target, as it was named.
        target: String,
        /// Requests that never completed.
        outstanding: u64,
        /// How long was waited.
        waited: Duration,
    },
    /// The target does not answer the requests that are tried before the load.
    #[error("{target} hangs: it did not respond for {} s, before the load began", waited.as_secs())]
    Silent {
        /// The target, as it was named.
        target: String,
        /// How long was waited.
        waited: Duration,
    },
    /// The run was stopped before the load began.
    #[error("interrupted before the load began")]
    Unprepared,
    /// A job of ours ended without a word.
    #[error("job {job} of the run ended unexpectedly")]
    Lost {
        /// Its number.
        job: usize,
    },
    /// There is no memory for the rows of more requests.
    #[error("memory ran out: the rows of all requests are kept in memory, 16 bytes each")]
    Memory,
    /// The run was stopped.
    #[error("interrupted")]
    Interrupted,
    /// Real targets need Linux.
    #[error("real devices need Linux: {target} cannot be measured here")]
    System {
        /// The target, as it was named.
        target: String,
    },
}

/// errno(3): not the permissions of the file (that is EACCES), but something above them.
const EPERM: i32 = 1;

impl BenchError {
    /// An [`Option`](BenchError::Option) that cannot be.
    #[cfg(target_os = "linux")]
    pub(crate) fn option(option: &'static str, why: impl Into<String>) -> BenchError {
        BenchError::Option { option, why: why.into() }
    }

    /// The remedy: one sentence without a full stop.
    pub fn help(&self) -> String {
        let text = match self {
            // EACCES and EPERM are the same kind for the standard library (`PermissionDenied`),
            // so only the number tells them apart. The advice to run as root would be wrong for
            // EPERM.
            BenchError::Open { source, .. } if source.raw_os_error() == Some(EPERM) => {
                "even root cannot open it: the file is immutable (`lsattr`), or a container or a \
                 system policy (device cgroup) forbids access; run where access is allowed, or \
                 name a file on the device"
            }
            BenchError::Open { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "check the path",
                io::ErrorKind::PermissionDenied => {
                    "run as root, or as a user that may open it: the owner of a file, or a member of a device's group (`disk`)"
                }
                io::ErrorKind::ResourceBusy => {
                    "it is in use: unmount it, stop the program that uses it, or wait"
                }
                _ => "the system's message says why",
            },
            BenchError::Network { help, .. } => return help.clone(),
            BenchError::Busy { .. } => {
                "wait until it has ended: two runs at once would disturb each other"
            }
            BenchError::Kind { .. } => "name a block device such as /dev/nvme0n1, or a file",
            BenchError::Geometry { .. } => "the device may be gone or have no medium",
            BenchError::TooSmall { .. } => "use a larger file or device",
            BenchError::ReadOnly { .. } | BenchError::ReadOnlyJob { .. } => {
                "check what is on the target, then allow it with `write.allowed`; or use a workload \
                 that only reads (`ssdyno list workloads`)"
            }
            BenchError::Permit { .. } => "check the target and start again",
            BenchError::Workload(error) => {
                return error.help.clone().unwrap_or_else(|| "correct the workload".to_owned());
            }
            BenchError::Option { .. } => "leave the option out",
            // Kernels before 5.12 count the rings against RLIMIT_MEMLOCK; the threads have no
            // rings. The advice differs from that for an engine, whose registered buffers count
            // against the limit on every kernel.
            BenchError::Uring { source } if source.raw_os_error() == Some(OUT_OF_MEMORY) => {
                "the limit on locked memory is too low: raise `ulimit -l`, lower the depth, \
                 or use the engine `threads`"
            }
            #[cfg(target_os = "linux")]
            BenchError::Uring { source } => {
                let WhyNot { reason, remedy } = why_not(source);
                return format!("{reason}; {remedy}; or use the engine `threads`");
            }
            #[cfg(not(target_os = "linux"))]
            BenchError::Uring { .. } => "use the engine `threads`",
            BenchError::Engine { source, .. } if source.raw_os_error() == Some(OUT_OF_MEMORY) => {
                "the limit on locked memory is too low: raise `ulimit -l`, or lower the \
                 depth or the block size"
            }
            BenchError::Engine { .. } => "try the other engine (`io_uring` or `threads`)",
            BenchError::Gone { target, .. } => {
                return format!("{}; {UP_TO_THAT_POINT}", look_at_the_log(target));
            }
            BenchError::Hang { target, .. } => {
                return format!("{}; {UP_TO_THAT_POINT}", if_not_slow(target));
            }
            BenchError::Silent { target, .. } => {
                return format!("{}; nothing was measured", if_not_slow(target));
            }
            BenchError::Unprepared => "nothing was measured, so there is no result",
            BenchError::Lost { .. } => "please report this with the command that you ran",
            BenchError::Memory => {
                "the figures cover the requests up to that point; with `keep=summary`, memory does not grow with the number of requests"
            }
            BenchError::Interrupted => UP_TO_THAT_POINT,
            BenchError::System { .. } => "use a simulated target (`sim:NAME`)",
        };
        text.to_owned()
    }
}

/// What the figures of a run that ended early are.
const UP_TO_THAT_POINT: &str = "the figures cover the requests up to that point";

/// Where to look for what happened to `target`: a part of a sentence. The kernel has no part in the requests of a network target.
pub fn look_at_the_log(target: &str) -> &'static str {
    match is_network(target) {
        true => "look at the log of the server",
        false => "look at the kernel's log (`dmesg`)",
    }
}

/// The same for a target from which no completion comes.
fn if_not_slow(target: &str) -> String {
    let what = if is_network(target) { "server" } else { "device" };
    format!("{}; if the {what} is only slow, raise the timeout", look_at_the_log(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel of this machine has not seen the requests of a network target.
    #[test]
    fn the_log_is_that_of_the_one_who_failed() {
        let waited = Duration::from_secs(30);
        for (target, log, what) in [
            ("nbd://10.0.0.1/x", "log of the server", "if the server is only slow"),
            ("iscsi://10.0.0.1/iqn.2024-01.a:b/0", "log of the server", "if the server"),
            ("/dev/nvme0n1", "kernel's log (`dmesg`)", "if the device is only slow"),
        ] {
            let target = target.to_owned();
            let gone = BenchError::Gone {
                target: target.clone(),
                count: 1000,
                request: Request::read(0, 4096),
                source: io::Error::from_raw_os_error(5),
            };
            let hang = BenchError::Hang { target: target.clone(), outstanding: 4, waited };
            let silent = BenchError::Silent { target, waited };
            for error in [&gone, &hang, &silent] {
                assert!(error.help().contains(log), "{}", error.help());
            }
            assert!(hang.help().contains(what) && silent.help().contains(what), "{what}");
        }
    }

    #[test]
    fn what_not_even_root_may_is_told_from_what_root_may() {
        let help = |errno| {
            let source = io::Error::from_raw_os_error(errno);
            BenchError::Open { target: "/dev/x".to_owned(), source }.help()
        };
        assert!(help(EPERM).contains("policy"), "{}", help(EPERM));
        assert!(help(13).contains("run as root"), "EACCES: {}", help(13));
    }
}
