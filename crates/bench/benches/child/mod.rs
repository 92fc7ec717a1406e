//! A program that is run to its end, and its cost.

use std::io::Read;
use std::process::{Command, Stdio};

/// What became of it.
pub(crate) struct Ended {
    /// Its standard output.
    pub(crate) output: Vec<u8>,
    pub(crate) user_ns: f64,
    pub(crate) system_ns: f64,
    /// Voluntary and not.
    pub(crate) switches: f64,
}

/// Runs `command`; `None`, with a word, where it cannot be started. The cost is that of the process and
/// of the children that it waited for, from the first instruction to the last: what time(1) prints.
#[expect(unsafe_code, reason = "no safe wrapper of wait4 in the libraries that we use")]
pub(crate) fn run(mut command: Command) -> Option<Ended> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            println!("{}: {error}", command.get_program().display());
            return None;
        }
    };
    let mut output = Vec::new();
    let read = child.stdout.take()?.read_to_end(&mut output);
    // SAFETY: `rusage` is a plain structure of integers, for which zero is a valid value; wait4(2)
    // writes into it and the status alone. The child is ours and no other code waits for it.
    let usage = unsafe {
        let (mut status, mut usage) = (0, std::mem::zeroed::<libc::rusage>());
        libc::wait4(child.id() as libc::pid_t, &raw mut status, 0, &raw mut usage);
        usage
    };
    read.ok()?;
    let ns = |t: libc::timeval| t.tv_sec as f64 * 1e9 + t.tv_usec as f64 * 1e3;
    Some(Ended {
        output,
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        switches: (usage.ru_nvcsw + usage.ru_nivcsw) as f64,
    })
}
