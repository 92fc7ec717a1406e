//! Permission to write to a real target, from what the user said.

use std::io::{BufRead, IsTerminal};
use std::path::Path;

use clap::Args;
use ssdyno_bench::Access;
use ssdyno_bench::safety::{self, Consent, SafetyError};
use ssdyno_block::SECTOR_BYTES;
use ssdyno_block::units::Bytes;

use crate::diagnose::Failure;
use crate::output::tell;

/// What allows writing to a real target.
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

impl WriteArgs {
    /// The options that were given, as they are typed.
    pub(crate) fn given(&self) -> Vec<(&'static str, Option<String>)> {
        let mut given = Vec::new();
        given.extend(self.write.then_some(("--write", None)));
        given.extend(self.destroy.iter().map(|serial| ("--destroy", Some(serial.clone()))));
        given.extend(self.overwrite.then_some(("--overwrite", None)));
        given.extend(self.size.map(|size| ("--size", Some(size.to_string()))));
        given
    }

    /// How the real target called `target` may be opened. A device is shown, and its serial number
    /// asked for, where nothing was given and somebody is there to answer.
    pub(crate) fn access(&self, target: &str) -> Result<Access, Failure> {
        if target == ssdyno_bench::NULL {
            return Ok(Access::ReadOnly);
        }
        if !Path::new(target).exists() {
            if target.starts_with("sim:") {
                return Err(Failure::usage(format!("{target} is simulated: it has no contents"))
                    .with_help("name a device or a file"));
            }
            let Some(size) = self.size else {
                return Err(Failure::usage(format!("there is no device or file `{target}`"))
                    .with_help("check the path, or make a file with --size 1GiB"));
            };
            if size.0 < u64::from(SECTOR_BYTES) {
                return Err(Failure::usage(format!("--size {size} is less than one block"))
                    .with_help("make the file larger, such as --size 1GiB"));
            }
            tell(&format!("making {target}, {size}\n"));
            let permit = safety::create(target, size.0).map_err(|error| explain(&error))?;
            return Ok(if self.write { Access::Write(permit) } else { Access::ReadOnly });
        }
        if !self.write {
            return Ok(Access::ReadOnly);
        }
        // A generic NVMe device has the contents of its block device.
        let block = ssdyno_bench::block_device_of(target);
        let target = block.as_deref().unwrap_or(target);
        let found = safety::inspect(target).map_err(|error| explain(&error))?;
        let wanted = found.confirmation();
        let given = self.destroy.iter().find(|serial| wanted == Some(serial.as_str()));
        let mut typed = given.or(self.destroy.first()).cloned();
        if let (Some(wanted), None, true) = (wanted, &typed, std::io::stdin().is_terminal()) {
            // Refused whatever is typed: nothing to ask.
            let trial = Consent { typed: Some(wanted), overwrite: false };
            found.permit(trial).map_err(|error| explain(&error))?;
            tell(&found.text());
            tell("Everything on it will be lost. Type its serial number to go on: ");
            let mut line = String::new();
            let read = std::io::stdin().lock().read_line(&mut line);
            typed = read.ok().map(|_| line.trim().to_owned());
        }
        let consent = Consent { typed: typed.as_deref(), overwrite: self.overwrite };
        let permit = found.permit(consent);
        let shown = match &permit {
            Err(SafetyError::Serial { .. }) => true,
            // A device was shown when the serial number was asked for.
            Ok(_) | Err(SafetyError::Foreign { .. }) => found.is_file_with_signatures(),
            Err(_) => false,
        };
        if shown {
            tell(&found.text());
        }
        permit.map(Access::Write).map_err(|error| explain(&error))
    }
}

fn explain(error: &SafetyError) -> Failure {
    Failure::usage(error.to_string()).with_help(error.help())
}
