//! Workers that ssh starts for one run, as git and rsync start theirs.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use ssdyno_session::Failure;
use tokio::io::{AsyncReadExt as _, Join, join};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

/// Bytes of what ssh and the worker print to standard error that are kept for a message.
const PRINTED_BYTES_MAX: usize = 4096;

/// How long a program that failed may take to end, so that its exit code is known.
const END_WITHIN: Duration = Duration::from_secs(1);

/// The exit code of a shell that does not find the program.
const NOT_FOUND: i32 = 127;

/// The exit code of ssh itself: it did not reach the host, or was not let in.
const SSH_FAILED: i32 = 255;

/// The settings for starting workers on other machines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteStart {
    /// The program that takes the place of ssh, with its first arguments.
    pub ssh: Vec<String>,
    /// The name of `ssdyno` on the other machines: a name or a path there.
    pub program: String,
}

impl Default for RemoteStart {
    fn default() -> RemoteStart {
        RemoteStart { ssh: vec!["ssh".to_owned()], program: "ssdyno".to_owned() }
    }
}

impl RemoteStart {
    /// Uses the user's values instead of the defaults; `ssh` is split at blanks.
    pub fn of(ssh: Option<&str>, program: Option<&str>) -> RemoteStart {
        // The options of ssh contain no quoted blanks in practice. A real shell would be needed for quotes,
        // and it would run whatever else the text contains.
        let words = |ssh: &str| ssh.split_whitespace().map(str::to_owned).collect();
        let default = RemoteStart::default();
        RemoteStart {
            ssh: ssh.map_or(default.ssh, words),
            program: program.map_or(default.program, str::to_owned),
        }
    }
}

/// A worker at the other end of an ssh. Dropped, ssh is killed; the worker sees the end of its input and ends.
#[derive(Debug)]
pub(crate) struct SshWorker {
    child: Child,
    printed: Arc<Mutex<Vec<u8>>>,
    /// Ends with standard error.
    listener: JoinHandle<()>,
    destination: String,
    program: String,
}

/// The stream to it.
pub(crate) type SshStream = TokioIo<Join<ChildStdout, ChildStdin>>;

impl SshWorker {
    /// Starts it. Whether that works is known with its first answer.
    pub(crate) fn start(
        destination: &str,
        port: Option<u16>,
        remote: &RemoteStart,
    ) -> Result<(SshWorker, SshStream), Failure> {
        let program = remote.ssh.first().map_or("ssh", String::as_str);
        let mut command = Command::new(program);
        command.args(remote.ssh.iter().skip(1));
        // Several hosts cannot ask for passwords at one terminal, and the page has no terminal at all. Only keys and
        // agents work, so `BatchMode` turns a prompt into an error. ssh uses the first value of an option, so the
        // user's own options, which stand before these, take precedence.
        command.args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]);
        // ssh ends after 30 s without an answer. A shorter limit would end the run of this host on a cut that TCP
        // itself survives, and a run over ssh cannot be resumed.
        command.args(["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=6"]);
        if let Some(port) = port {
            command.args(["-p", &port.to_string()]);
        }
        let worker = format!("{} worker --stdio", quoted(&remote.program));
        // `--` ends the options. A destination that begins with a hyphen would otherwise be read as an option,
        // and `-oProxyCommand=…` runs a program on this machine.
        command.args(["--", destination, &worker]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        // Ctrl-C at the terminal sends SIGINT to the whole process group. ssh gets its own group, because it
        // must stay alive to carry the stop and the records.
        #[cfg(unix)]
        command.process_group(0);
        let cannot = |why: String| {
            Failure::failed(format!("cannot start `{program}`: {why}"))
                .with_help("install an ssh client, or name a program that replaces it")
                .with_key("ssh")
        };
        let mut child = command.spawn().map_err(|error| cannot(error.to_string()))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(cannot("it has no standard streams".to_owned()));
        };
        let printed = Arc::new(Mutex::new(Vec::new()));
        let listener = tokio::spawn(listen(errors, Arc::clone(&printed)));
        let (destination, program) = (destination.to_owned(), remote.program.clone());
        let worker = SshWorker { child, printed, listener, destination, program };
        Ok((worker, TokioIo::new(join(output, input))))
    }

    /// Why it does not answer, as far as ssh and the other machine say.
    pub(crate) async fn explain(&mut self, failure: Failure) -> Failure {
        // The exit code gives the reason, and it exists only after ssh has ended. The wait has a limit: a
        // worker may have refused the message while ssh is healthy.
        let ended = tokio::time::timeout(END_WITHIN, self.child.wait()).await;
        let code = ended.ok().and_then(Result::ok).and_then(|status| status.code());
        let Some(code) = code else { return failure };
        // The last lines may still be in the pipe. A background process that ssh started (`ControlMaster`)
        // may hold the pipe open, so this wait has a limit, too.
        let _ = tokio::time::timeout(END_WITHIN, &mut self.listener).await;
        let SshWorker { destination, program, .. } = self;
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        let printed = String::from_utf8_lossy(&printed);
        let printed = printed.trim();
        let said = if printed.is_empty() { String::new() } else { format!(": {printed}") };
        match code {
            NOT_FOUND => Failure::failed(format!("{destination} has no `{program}`{said}"),
            )
            .with_help(format!(
                "copy this program to it (`scp \"$(command -v ssdyno)\" {destination}:`), and give its path there"
            ))
            .with_key("remote_program"),
            SSH_FAILED => Failure::failed(format!("ssh does not reach {destination}{said}"),
            )
            .with_help(format!(
                "make `ssh -o BatchMode=yes {destination} true` work first; it needs a key or an agent, because it cannot ask for a password"
            )),
            code => Failure::failed(format!("`{program} worker` on {destination} ended with code {code}{said}"),
            )
            .with_help("install the same version of ssdyno there"),
        }
    }
}

/// Keeps the last of what is printed.
async fn listen(mut errors: ChildStderr, printed: Arc<Mutex<Vec<u8>>>) {
    let mut part = [0; 1024];
    while let Ok(read @ 1..) = errors.read(&mut part).await {
        let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.extend_from_slice(&part[..read]);
        // Only the end is kept: a login banner may be long, and the error is the last line. The buffer
        // stays bounded if a remote program prints without end.
        let excess = printed.len().saturating_sub(PRINTED_BYTES_MAX);
        printed.drain(..excess);
    }
}

/// As the shell of the other machine reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./~".contains(c);
    // A leading tilde must stay unquoted, because the remote shell expands it. Everything
    // else that is not plain goes into single quotes.
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
