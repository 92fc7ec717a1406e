//! What allows writing to a real target, and the person at the terminal who is asked.

use std::io::{BufRead, IsTerminal};

#[cfg(target_os = "linux")]
use clap::Args;
#[cfg(target_os = "linux")]
use ssdyno_block::units::Bytes;
use ssdyno_session::Prompt;
#[cfg(target_os = "linux")]
use ssdyno_session::WriteSpec;

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
