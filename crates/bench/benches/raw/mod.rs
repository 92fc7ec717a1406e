//! fio's `t/io_uring`: the loop that its author shows the kernel with. It prints whole thousands of
//! requests a second and no cost; so the device's own counter and getrusage(2) tell.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::Figures;

/// Runs `program` on the block device `target` with batches as deep as the queue; `None`, with a
/// word, where that fails.
pub(crate) fn run(program: &Path, target: &str, depth: u32, seconds: u64) -> Option<Figures> {
    let before = (reads(target)?, Usage::of_children(), Instant::now());
    let status = Command::new(program)
        .args(["-p0", "-B1", "-F1", "-n1"])
        .args([format!("-d{depth}"), format!("-s{depth}"), format!("-c{depth}")])
        .args([format!("-r{seconds}"), target.to_owned()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    // It ends by its own alarm, with whatever code.
    if let Err(error) = status {
        println!("{}: {error}", program.display());
        return None;
    }
    let (requests, after) = ((reads(target)? - before.0) as f64, Usage::of_children());
    Some(Figures {
        iops: requests / before.2.elapsed().as_secs_f64(),
        user_ns: (after.user_ns - before.1.user_ns) / requests,
        system_ns: (after.system_ns - before.1.system_ns) / requests,
        switches: (after.switches - before.1.switches) / requests,
        calls: None,
    })
}

/// Reads that the block device has completed (Linux, Documentation/block/stat.rst); `None` for a
/// file.
fn reads(target: &str) -> Option<u64> {
    let name = target.strip_prefix("/dev/")?;
    let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

struct Usage {
    user_ns: f64,
    system_ns: f64,
    switches: f64,
}

impl Usage {
    #[expect(unsafe_code, reason = "no safe wrapper of getrusage in the libraries that we use")]
    fn of_children() -> Usage {
        // SAFETY: `rusage` is a plain structure of integers, for which zero is a valid value, and
        // getrusage(2) only writes into the one it is given.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
            usage
        };
        let ns = |t: libc::timeval| t.tv_sec as f64 * 1e9 + t.tv_usec as f64 * 1e3;
        Usage {
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            switches: (usage.ru_nvcsw + usage.ru_nivcsw) as f64,
        }
    }
}
