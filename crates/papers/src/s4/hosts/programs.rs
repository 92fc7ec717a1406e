//! Programs that serve in the target's namespace, for as long as we live.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ssdyno_session::Failure;

use super::cpu::{Cores, is_in, link_of};
use super::lab::Lab;
use super::tools::refused;

/// How long the programs may take to listen.
const LISTEN_WITHIN: Duration = Duration::from_secs(5);

/// How long they may take to end.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Whatever ends the shell, it ends what runs in its namespace. tgtd takes no other signal while it has a target, and none of
/// them has anything to lose.
const BEFORE: &str = "trap 'for one in $(\"$IP\" netns pids \"$NAMESPACE\"); do [ \"$one\" = $$ ] || kill -9 \"$one\"; done' EXIT\n\
    set -e\n";

/// The shell waits for the end of its standard input: killed as we may be, nothing outlives us.
const AFTER: &str = "read -r _ || exit 0\n";

/// One of them.
pub(super) struct Program {
    pub(super) name: &'static str,
    /// Where it listens once it serves.
    pub(super) port: u16,
    /// Commands of a shell that start it.
    pub(super) start: String,
    /// Variables of these.
    pub(super) words: Vec<(&'static str, PathBuf)>,
}

/// The shell that has started them. Dropped, all are stopped.
pub(super) struct Programs {
    child: Child,
}

impl Programs {
    /// Starts all of `programs` on the target's core, and waits until they listen.
    pub(super) fn start(
        ip: &Path,
        lab: &Lab,
        cores: &Cores,
        programs: &[Program],
    ) -> Result<Programs, Failure> {
        let namespace = lab.target();
        let starts = programs.iter().map(|program| program.start.as_str());
        let script: String = [BEFORE].into_iter().chain(starts).chain([AFTER]).collect();
        let mut command = Command::new(ip);
        command
            .args(["netns", "exec", &namespace, "sh", "-c", &script])
            .env("IP", ip)
            .env("NAMESPACE", &namespace)
            .envs(programs.iter().flat_map(|program| program.words.clone()))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A separate process group does not receive Ctrl-C from the terminal. The targets stay
            // alive until the running load has ended and its partial results are read.
            .process_group(0);
        let child = cores.on_target(|| command.spawn());
        let child = child.map_err(|error| {
            Failure::failed(format!("the target's programs cannot be started: {error}"))
        })?;
        let mut started = Programs { child };
        for program in programs {
            started.wait_until_it_listens(&namespace, program)?;
        }
        Ok(started)
    }

    fn wait_until_it_listens(&mut self, namespace: &str, program: &Program) -> Result<(), Failure> {
        let process = PathBuf::from(format!("/proc/{}", self.child.id()));
        let begun = Instant::now();
        while begun.elapsed() < LISTEN_WITHIN {
            // At first it is outside, where another server may listen at this port.
            let is_in = link_of(namespace).is_some_and(|own| is_in(&process, &own));
            let sockets = std::fs::read_to_string(process.join("net/tcp"));
            if is_in && sockets.is_ok_and(|text| listens(&text, program.port)) {
                return Ok(());
            }
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let Program { name, .. } = program;
        Err(refused(
            format!("{name} does not listen within {} s", LISTEN_WITHIN.as_secs()),
            format!("start `{name}` by hand to see why"),
        ))
    }
}

/// Whether a socket of `text`, a /proc/…/net/tcp, listens at `port`.
fn listens(text: &str, port: u16) -> bool {
    let port = format!(":{port:04X}");
    text.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (local, state) = (words.next().unwrap_or(""), words.nth(1).unwrap_or(""));
        local.ends_with(&port) && state == "0A"
    })
}

impl Drop for Programs {
    fn drop(&mut self) {
        // The end of its standard input is the signal for the shell to stop everything in the
        // namespace. The kernel closes the pipe even if this process is killed.
        drop(self.child.stdin.take());
        let begun = Instant::now();
        while begun.elapsed() < END_WITHIN {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // It is gone, or cannot be stopped at all.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_listens_is_told_from_others() {
        let tcp = "  sl  local_address rem_address   st\n   0: 0153000A:2A39 00000000:0000 0A 00000000\n   1: 0100007F:0050 00000000:0000 01 0\n";
        assert!(listens(tcp, 10_809) && !listens(tcp, 80) && !listens(tcp, 22));
    }
}
