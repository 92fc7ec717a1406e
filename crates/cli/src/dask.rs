//! `ssdyno sweep --dask ADDRESS`: the designs run on the workers of a Dask scheduler.
//!
//! The protocol of Dask has a client in Python only, so a child process talks to the scheduler: `python3 -m
//! ssdyno.workers`, of the Python package of the same version. The child reads the plan and the numbers of the designs,
//! and prints one row a line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use ssdyno_session::{Failure, FailureKind};
use ssdyno_sweep::{Sweep, SweepRow, Workers};

/// The interpreter: that of the virtual environment which is active, if one is.
const PYTHON: &str = "python3";
const MODULE: &str = "ssdyno.workers";

/// What the child reads.
#[derive(Serialize)]
struct Asked<'a> {
    plan: String,
    designs: &'a [u64],
    version: &'a str,
}

/// A line that the child prints.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Error { error: String, help: Option<String> },
    Row(Box<SweepRow>),
}

/// The child that talks to the scheduler. When this is dropped, the child cancels what Dask has not begun, and ends.
pub(crate) struct Dask {
    child: Child,
    lines: Receiver<String>,
}

impl Dask {
    /// Hands `designs` of the sweep to the scheduler at `address`.
    pub(crate) fn start(address: &str, sweep: &Sweep, designs: &[u64]) -> Result<Dask, Failure> {
        let plan = serde_json::to_string(sweep.plan()).map_err(|error| broken(&error))?;
        let asked = Asked { plan, designs, version: env!("CARGO_PKG_VERSION") };
        let asked = serde_json::to_vec(&asked).map_err(|error| broken(&error))?;
        let mut child = Command::new(PYTHON)
            .args(["-m", MODULE, address])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|error| no_python(&format!("{PYTHON} does not start ({error})")))?;
        let (told, lines) = channel();
        if let Some(output) = child.stdout.take() {
            // A thread of its own: the sweep has to hear Ctrl-C while no row comes.
            std::thread::spawn(move || {
                let all = BufReader::new(output).lines().map_while(Result::ok);
                all.take_while(|line| told.send(line.clone()).is_ok()).count()
            });
        }
        if let Some(mut input) = child.stdin.take() {
            // If the child has ended already, its exit status says why.
            let _ = input.write_all(&asked);
        }
        Ok(Dask { child, lines })
    }

    /// How the child ended.
    fn end(&mut self) -> Result<Option<Vec<SweepRow>>, Failure> {
        match self.child.wait() {
            Ok(status) if status.success() => Ok(None),
            Ok(status) => Err(no_python(&format!("{PYTHON} -m {MODULE} ended with {status}"))),
            Err(error) => Err(broken(&error)),
        }
    }
}

impl Workers for Dask {
    fn rows(&mut self, wait: Duration) -> Result<Option<Vec<SweepRow>>, Failure> {
        let first = match self.lines.recv_timeout(wait) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return Ok(Some(Vec::new())),
            Err(RecvTimeoutError::Disconnected) => return self.end(),
        };
        let mut rows = Vec::new();
        for line in std::iter::once(first).chain(self.lines.try_iter()) {
            match serde_json::from_str(&line) {
                Ok(Line::Row(row)) => rows.push(*row),
                // Rows of the same batch are dropped: `--resume` runs them again.
                Ok(Line::Error { error, help }) => {
                    let failure = Failure::new(FailureKind::Failed, format!("`--dask`: {error}"));
                    return Err(help.into_iter().fold(failure, Failure::with_help));
                }
                Err(error) => {
                    let what = format!(
                        "`--dask`: {PYTHON} -m {MODULE} printed a line that is not a row: {error}"
                    );
                    return Err(Failure::new(FailureKind::Failed, what));
                }
            }
        }
        Ok(Some(rows))
    }
}

impl Drop for Dask {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Ok(None) = self.child.try_wait() {
            // As Ctrl-C: Python then cancels what it has handed out.
            let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
            let ended =
                id.map(|id| rustix::process::kill_process(id, rustix::process::Signal::INT));
            if let Some(Ok(())) = ended {
                let _ = self.child.wait();
                return;
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn no_python(what: &str) -> Failure {
    Failure::new(FailureKind::Failed, format!("`--dask` does not work: {what}"))
        .with_help("the Python of this terminal needs the packages: pip install ssdyno distributed")
}

fn broken(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(FailureKind::Failed, format!("`--dask` does not work: {error}"))
}
