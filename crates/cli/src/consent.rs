//! What allows writing to a real target, and the person at the terminal who is asked.

use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal};

use clap::Args;
#[cfg(target_os = "linux")]
use ssdyno_block::units::Bytes;
use ssdyno_cluster::WorkerConsent;
use ssdyno_session::{Prompt, WriteSpec};

use crate::output::tell;

/// What allows writing to a real target.
#[cfg(target_os = "linux")]
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Writing to real targets")]
pub(crate) struct WriteArgs {
    /// Allow writing. Without it a real target is opened read-only.
    #[arg(long)]
    pub(crate) write: bool,
    /// For scripts: the serial number of the device whose contents may be destroyed; once for each
    /// device.
    #[arg(long, value_name = "SERIAL", requires = "write")]
    pub(crate) destroy: Vec<String>,
    /// Allow overwriting an existing file that ssdyno did not make.
    #[arg(long, requires = "write")]
    pub(crate) overwrite: bool,
    /// Make the target, a file, with this size where it does not exist.
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

/// Who sits at the terminal.
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
}

/// What the owner of this machine allows others who start runs on it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Consent to write")]
pub(crate) struct ConsentArgs {
    /// Let runs that others start write to this target, by the name that they use for it. May be given several times.
    /// Without it every target is opened read-only, whatever they say.
    #[arg(long, value_name = "TARGET")]
    pub(crate) write: Vec<String>,
    /// Serial numbers of the devices among them whose contents may be destroyed.
    #[arg(long, value_name = "SERIAL", requires = "write")]
    pub(crate) destroy: Vec<String>,
    /// Allow overwriting files among them that ssdyno did not make.
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
