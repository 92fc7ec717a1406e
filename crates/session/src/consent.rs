//! Permission to write to a real target, from what a spec and a person say.

use std::path::Path;

use ssdyno_block::SECTOR_BYTES;
use ssdyno_block::units::Bytes;
use ssdyno_safety::{self as safety, Access, Consent, SafetyError};

use crate::failure::{Failure, FailureKind};
use crate::prompt::Prompt;
use crate::spec::WriteSpec;

/// How the real target called `target` may be opened. If `spec` has no serial number and a person is at the terminal,
/// the program shows the device and asks for its serial number.
///
/// # Errors
/// There is no such target, or it may not be written to.
pub fn access(spec: &WriteSpec, target: &str, prompt: &mut dyn Prompt) -> Result<Access, Failure> {
    if target == ssdyno_bench::NULL {
        return Ok(Access::ReadOnly);
    }
    let remote = ssdyno_bench::is_network(target);
    if !remote && !Path::new(target).exists() {
        return make(spec, target, prompt);
    }
    if let Some(size) = spec.size {
        same_size(target, size)?;
    }
    if !spec.allowed {
        return Ok(Access::ReadOnly);
    }
    // A generic NVMe device has the contents of its block device.
    let block = ssdyno_bench::block_device_of(target);
    let target = block.as_deref().unwrap_or(target);
    let found = match remote {
        true => ssdyno_bench::inspect_export(target)
            .map_err(|error| Failure::usage(error.to_string()).with_help(error.help()))?,
        false => safety::inspect(target),
    };
    let found = found.map_err(|error| explain(&error))?;
    let wanted = found.confirmation();
    let given = spec.destroy.iter().find(|serial| wanted == Some(serial.as_str()));
    let mut typed = given.or(spec.destroy.first()).cloned();
    if let (Some(wanted), None, true) = (wanted, &typed, prompt.is_attended()) {
        // Refused whatever is typed: nothing to ask.
        let trial = Consent { typed: Some(wanted), overwrite: false };
        found.permit(trial).map_err(|error| explain(&error))?;
        prompt.tell(&found.text());
        let what = found.confirmed_by();
        let question = format!("Everything on it will be lost. Type its {what} to continue: ");
        typed = prompt.ask(&question);
    }
    let consent = Consent { typed: typed.as_deref(), overwrite: spec.overwrite };
    let permit = found.permit(consent);
    let shown = match &permit {
        Err(SafetyError::Serial { .. }) => true,
        // A device was shown when the serial number was asked for.
        Ok(_) | Err(SafetyError::Foreign { .. }) => found.is_file_with_signatures(),
        Err(_) => false,
    };
    if shown {
        prompt.tell(&found.text());
    }
    permit.map(Access::Write).map_err(|error| explain(&error))
}

/// Refuses a target that exists and is not as large as asked for: a size would stand in the result that it does not have.
fn same_size(target: &str, size: Bytes) -> Result<(), Failure> {
    let found = std::fs::metadata(target).ok().filter(std::fs::Metadata::is_file);
    let message = match found.map(|file| Bytes(file.len())) {
        Some(found) if found == size => return Ok(()),
        Some(found) => format!("{target} exists and has {found}, not {size}"),
        None => format!("{target} is not a file: its size is fixed"),
    };
    let help = "leave `write.size` out, or name a file that does not exist";
    Err(Failure::usage(message).with_help(help).with_key("write.size"))
}

/// Makes the file `target`, where that is asked for.
fn make(spec: &WriteSpec, target: &str, prompt: &mut dyn Prompt) -> Result<Access, Failure> {
    if target.starts_with("sim:") {
        return Err(Failure::usage(format!("{target} is simulated: it has no contents"))
            .with_help("name a device or a file"));
    }
    let missing = || Failure::usage(format!("there is no device or file `{target}`"));
    if safety::is_place_of_devices(Path::new(target)) {
        return Err(
            missing().with_help("check the path; ssdyno creates no file under /dev, /proc or /sys")
        );
    }
    let Some(size) = spec.size else {
        return Err(missing().with_help("check the path, or make a file with `write.size=1GiB`"));
    };
    if size.0 < u64::from(SECTOR_BYTES) {
        return Err(Failure::usage(format!("`write.size={size}` is less than one block"))
            .with_help("make the file larger, such as `write.size=1GiB`"));
    }
    prompt.tell(&format!("making {target}, {size}\n"));
    let permit = safety::create(target, size.0, &mut || !prompt.is_stopped())
        .map_err(|error| explain(&error))?;
    Ok(if spec.allowed { Access::Write(permit) } else { Access::ReadOnly })
}

fn explain(error: &SafetyError) -> Failure {
    let failure = match error {
        SafetyError::Stopped { .. } => Failure::new(FailureKind::Interrupted, error.to_string()),
        _ => Failure::usage(error.to_string()),
    };
    failure.with_help(error.help())
}
