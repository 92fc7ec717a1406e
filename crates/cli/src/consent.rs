//! The permission to write to a real target, and the person at the terminal who is asked.

use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal};

use clap::Args;
#[cfg(target_os = "linux")]
use ssdyno_block::units::Bytes;
use ssdyno_cluster::WorkerConsent;
use ssdyno_session::{Prompt, WriteSpec};

use crate::output::tell;

/// Permissions to write to a real target.
#[cfg(target_os = "linux")]
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Writing to real targets")]
pub(crate) struct WriteArgs {
    /// Allow writing. Without it a real target is opened read-only.
    #[arg(long)]
    pub(crate) write: bool,
    /// For scripts: serial number of a device whose contents may be destroyed. May be repeated.
    #[arg(long, value_name = "SERIAL", requires = "write")]
    pub(crate) destroy: Vec<String>,
    /// Allow overwriting an existing file that ssdyno did not create.
    #[arg(long, requires = "write")]
    pub(crate) overwrite: bool,
    /// Create the target file with this size if it does not exist.
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,
}

#[cfg(target_os = "linux")]
impl WriteArgs {
    /// As a spec has it.
    pub(crate) fn spec(&self) -> WriteSpec {
        WriteSpec {
            allowed: self.write,
            destroy: self.destroy.clone(),
            overwrite: self.overwrite,
            size: self.size,
        }
    }
}

/// The person at the terminal.
pub(crate) struct Terminal;

impl Prompt for Terminal {
    fn is_attended(&self) -> bool {
        std::io::stdin().is_terminal()
    }

    fn tell(&mut self, text: &str) {
        tell(text);
    }

    fn ask(&mut self, question: &str) -> Option<String> {
        tell(question);
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        read.ok().map(|_| line.trim().to_owned())
    }

    fn is_stopped(&self) -> bool {
        crate::progress::interrupted()
    }
}

/// Permissions of the owner of this machine for runs that are started elsewhere.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Consent to write")]
pub(crate) struct ConsentArgs {
    /// Allow runs started from other machines or from the page to write to this target. Give the target's
    /// name as in these runs. May be repeated. All other targets are opened read-only.
    #[arg(long, value_name = "TARGET")]
    pub(crate) write: Vec<String>,
    /// Serial number of a --write device whose contents may be destroyed. May be repeated.
    #[arg(long, value_name = "SERIAL", requires = "write")]
    pub(crate) destroy: Vec<String>,
    /// Allow overwriting --write files that ssdyno did not create.
    #[arg(long, requires = "write")]
    pub(crate) overwrite: bool,
}

impl ConsentArgs {
    pub(crate) fn consent(&self) -> WorkerConsent {
        let write = WriteSpec {
            allowed: true,
            destroy: self.destroy.clone(),
            overwrite: self.overwrite,
            ..WriteSpec::default()
        };
        let targets: BTreeMap<_, _> =
            self.write.iter().map(|name| (name.clone(), write.clone())).collect();
        WorkerConsent { targets }
    }
}
