//! Devices, hosts, networks and workloads by name: a preset or a file, with settings over it.

use std::path::Path;

use ssdyno_bench::{NULL, is_network};
use ssdyno_block::Preset;
use ssdyno_device::DeviceSpec;
use ssdyno_rig::{NETWORKS, NetworkConfig};
use ssdyno_ssd::Config;
use ssdyno_workload::{WorkloadConfig, WorkloadError};
use toml::Table;

use crate::document::Document;
use crate::failure::{Failure, FailureKind, FailurePlace, nearest};
use crate::files;
use crate::kinds::DEVICE_KINDS;
use crate::overlay::{self, Setting};
use crate::schema_keys::{NETWORK, WORKLOAD};

/// A configuration and where it comes from.
#[derive(Clone, Debug)]
pub struct NamedConfig<T> {
    /// The user's name for it.
    pub name: String,
    /// All keys.
    pub config: T,
    /// For errors that show only when it is used.
    pub document: Document,
    /// The defaults chosen for the user, for the notes of the result.
    pub notes: Vec<String>,
}

/// The text of the `kind` of file that `name` names: `contents` if there are some, `FILE.toml`, or a preset, which messages
/// call by its label. `unknown` says that there is none.
fn document(
    kind: &str,
    contents: Option<&Table>,
    name: &str,
    preset: Option<(String, &str)>,
    unknown: impl FnOnce() -> Failure,
) -> Result<Document, Failure> {
    match (contents, preset) {
        (Some(table), _) => Ok(Document::contents(kind, table)),
        (None, _) if is_toml(name) => Document::file(name),
        (None, Some((label, text))) => Ok(Document::preset(label, text)),
        (None, None) => Err(unknown()),
    }
}

/// The device that `target` names: `sim:NAME`, `sim:FILE.toml` or `FILE.toml`, which has the contents of `contents` if there
/// are some.
///
/// # Errors
/// It does not exist, or a key of it is wrong.
pub fn device(
    contents: Option<&Table>,
    target: &str,
    settings: &[Setting],
) -> Result<NamedConfig<DeviceSpec>, Failure> {
    let name = target.strip_prefix("sim:").unwrap_or(target);
    let preset = DEVICE_KINDS.find(name).map(|preset| (format!("sim:{name}"), preset.text));
    let unknown = || unknown_device(target).with_key("target");
    let document = document("device", contents, name, preset, unknown)?;
    let document = document.with(settings, Setting::is_of_device);
    let keys = overlay::device_keys();
    let mut notes = Vec::new();
    let mut config = document.parse_with(keys, |text| DEVICE_KINDS.read(text))?;
    config.resolve(DEVICE_KINDS).map_err(|error| document.impossible(&error))?;
    if let Some(ssd) = config.get_mut::<Config>() {
        notes.extend(fit_ftl(ssd, settings));
    }
    Ok(NamedConfig { name: canonical(target, name), config, document, notes })
}

/// If `settings` replace the FTL of the device, the table of the old FTL is left out unless they set it, too; returns
/// the note about it.
fn fit_ftl(config: &mut Config, settings: &[Setting]) -> Option<String> {
    let sets = |key: &str| {
        let below = |setting: &Setting| setting.key.strip_prefix(key).map(str::to_owned);
        settings.iter().filter_map(below).any(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if !sets("ftl.name") {
        return None;
    }
    let left_out = config.ftl.leave_out_tables(|table| sets(&format!("ftl.{table}"))).join(", ");
    let name = &config.ftl.name;
    (!left_out.is_empty()).then(|| {
        format!("ignored {left_out} of the device file: the FTL `{name}` has no such keys")
    })
}

/// The host that `name` names: a preset or `FILE.toml`, which has the contents of `contents` if there are some.
///
/// # Errors
/// It does not exist, or a key of it is wrong.
pub fn host(
    contents: Option<&Table>,
    name: &str,
) -> Result<NamedConfig<ssdyno_host::HostConfig>, Failure> {
    let preset = ssdyno_host::presets::find(name);
    let preset = preset.map(|preset| (format!("host {name}"), preset.text));
    let document = document("host", contents, name, preset, || {
        let presets = ssdyno_host::presets::ALL.iter().map(|preset| preset.name);
        let help = match nearest(name, presets) {
            Some(near) => format!("did you mean `{near}`? `ssdyno list hosts` shows all"),
            None => "`ssdyno list hosts` shows all; a file.toml also works".to_owned(),
        };
        Failure::usage(format!("there is no host `{name}`")).with_help(help)
    })?;
    let config: ssdyno_host::HostConfig = document.parse(overlay::host_keys())?;
    config.check().map_err(|error| document.impossible(&error))?;
    Ok(NamedConfig { name: name.to_owned(), config, document, notes: Vec::new() })
}

/// The network that `name` names: a preset or `FILE.toml`, which has the contents of `contents` if there are some.
///
/// # Errors
/// It does not exist, or a key of it is wrong.
pub fn network(
    contents: Option<&Table>,
    name: &str,
    settings: &[Setting],
) -> Result<NamedConfig<NetworkConfig>, Failure> {
    let preset = Preset::find(NETWORKS, name);
    let preset = preset.map(|preset| (format!("network {name}"), preset.text));
    let document = document("network", contents, name, preset, || {
        let known: Vec<&str> = NETWORKS.iter().map(|preset| preset.name).collect();
        let help = format!("use one of {}, or a file that ends in .toml", known.join(", "));
        Failure::usage(format!("there is no network `{name}`")).with_help(help)
    })?;
    let document = document.with(settings, |s| s.key.starts_with(NETWORK));
    let config: NetworkConfig = document.parse(overlay::network_keys())?;
    config.check().map_err(|error| document.impossible(&error))?;
    Ok(NamedConfig { name: name.to_owned(), config, document, notes: Vec::new() })
}

/// `sim:NAME`, whether or not the prefix was written.
fn canonical(target: &str, name: &str) -> String {
    if target == name && !is_toml(name) { format!("sim:{name}") } else { target.to_owned() }
}

/// True if `name` is that of a configuration file.
pub fn is_toml(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e.eq_ignore_ascii_case("toml"))
}

/// Whether `target` names something real: `null:`, a network target, a path, or a file that is no configuration.
pub fn is_real(target: &str) -> bool {
    // A word without a slash may name a simulated device, even if a directory of that name exists.
    let is_path = target.contains('/')
        || Path::new(target).metadata().is_ok_and(|found| !found.file_type().is_dir());
    target == NULL
        || is_network(target)
        || (is_path && !target.starts_with("sim:") && !is_toml(target))
}

/// Where to look for why requests to `target` failed: a part of a sentence. Those of a simulated device fail only by its
/// configuration.
pub fn look_at_the_log(target: &str) -> &'static str {
    match is_real(target) {
        true => ssdyno_bench::look_at_the_log(target),
        false => "look at the keys `faults` of the device",
    }
}

fn unknown_device(target: &str) -> Failure {
    if Path::new(target).is_dir() {
        return Failure::usage(format!("{target} is a directory"))
            .with_help("name a device or a file in it, or sim:NAME (see `ssdyno list devices`)");
    }
    let presets: Vec<String> = DEVICE_KINDS.presets().map(|p| format!("sim:{}", p.name)).collect();
    let help = match nearest(target, presets.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`? `ssdyno list devices` shows all"),
        // All names would be a line of 700 characters.
        None => format!(
            "`ssdyno list devices` shows all; for a real device or file give a path with a slash, such as ./{}",
            target.trim_start_matches("sim:")
        ),
    };
    Failure::usage(format!("there is no target `{target}`")).with_help(help)
}

/// Whether the workload `name` is neither a preset nor a generator's file.
pub fn is_trace(name: &str) -> bool {
    ssdyno_workload::presets::text(name).is_none() && !is_toml(name)
}

/// The generator that `name` names (a preset or `FILE.toml`, which has the contents of `contents` if there are some); `None` if
/// it should be a trace.
///
/// # Errors
/// It does not exist, or a key of it is wrong.
pub fn workload(
    contents: Option<&Table>,
    name: &str,
    settings: &[Setting],
) -> Result<Option<NamedConfig<WorkloadConfig>>, Failure> {
    if contents.is_none() && is_trace(name) && Path::new(name).exists() {
        return Ok(None);
    }
    let preset = ssdyno_workload::presets::text(name);
    let preset = preset.map(|text| (format!("preset {name}"), text));
    let document = document("workload", contents, name, preset, || unknown_workload(name))?;
    let document = document.with(settings, |s| s.key.starts_with(WORKLOAD));
    let config = document.parse(overlay::workload_keys())?;
    Ok(Some(NamedConfig { name: name.to_owned(), config, document, notes: Vec::new() }))
}

fn unknown_workload(name: &str) -> Failure {
    if name == "pts" {
        return Failure::usage("`pts` is a test with many loads, not a workload")
            .with_help("`ssdyno pts TARGET` runs it");
    }
    if name.contains(['/', '\\', '.']) {
        return files::cannot(
            name,
            "there is no such file",
            "check the path of the workload or trace",
        );
    }
    let help = match nearest(name, ssdyno_workload::presets::names()) {
        Some(near) => format!("did you mean `{near}`? `ssdyno list workloads` shows all"),
        None => "`ssdyno list workloads` shows all presets; a file.toml or a trace also works"
            .to_owned(),
    };
    Failure::usage(format!("there is no workload `{name}`")).with_help(help)
}

/// An error of a workload or a trace, at its place; `kind` is what it means for the run.
pub fn workload_failure(
    kind: FailureKind,
    error: &WorkloadError,
    document: Option<&Document>,
) -> Failure {
    let help = error.help.clone().unwrap_or_else(|| "check the workload".to_owned());
    let mut failure = match (&error.key, document, &error.at) {
        (Some(key), Some(document), _) => {
            let message = format!("`{key}`: {}", error.what);
            document.about(key, message, help, "this value")
        }
        (_, _, Some(at)) if at.number > 0 => {
            let place = FailurePlace {
                name: at.file.display().to_string(),
                text: at.text.clone(),
                span: 0..at.text.len(),
                first_line: usize::try_from(at.number).unwrap_or(usize::MAX),
                label: "this line".to_owned(),
                is_file: true,
            };
            let message = format!("{}:{}: {}", at.file.display(), at.number, error.what);
            Failure::usage(message).with_help(help).at(Some(place))
        }
        (_, _, Some(at)) => {
            let file = at.file.display().to_string();
            Failure::usage(format!("{file}: {}", error.what)).with_help(help).in_file(file)
        }
        _ => Failure::usage(error.what.clone()).with_help(help),
    };
    failure.kind = kind;
    failure.key = failure.key.or_else(|| error.key.clone());
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error in a member of an array is reported with the key of the member, at its line in the file.
    #[test]
    fn members_that_cannot_be_are_told_at_their_place() {
        let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        let delay = |read: &str| {
            format!("{{ delay = {{ capacity = \"1MiB\", {read} = \"1us\", write = \"1us\" }} }}")
        };
        for (member, key, says) in [
            ("\"delay-10ms\"".to_owned(), "array.members[1]", "no device \"delay-10ms\""),
            (delay("raed"), "array.members[1]", "unknown field `raed`"),
        ] {
            let good = delay("read");
            let text = format!("[array]\nmembers = [\n  {good},\n  {member},\n]\n");
            std::fs::write(file.path(), text).unwrap();
            let body = device(None, file.path().to_str().unwrap(), &[]).unwrap_err().body();
            assert_eq!((body.key.as_deref(), body.line), (Some(key), Some(4)), "{}", body.message);
            assert!(body.message.contains(says), "{}", body.message);
        }
    }

    #[test]
    fn paths_are_real_and_presets_are_not() {
        for real in ["null:", "/dev/nvme0n1", "./x", "images/a.img", "nbd://h", "nbd://h/x.toml"] {
            assert!(is_real(real), "{real}");
        }
        for simulated in ["sim:nvme-tlc", "nvme-tlc", "sim:./x.toml", "./x.toml", "X.TOML"] {
            assert!(!is_real(simulated), "{simulated}");
        }
    }
}
