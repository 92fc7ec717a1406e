//! `ssdyno show`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use ssdyno_block::Preset;
use ssdyno_device::nvme::IdCtrl;
use ssdyno_rig::NETWORKS;

use crate::diagnose::{Failure, nearest};
use crate::host::DeviceFile;
use crate::load::{self, is_toml};
use crate::output::Output;
use crate::overlay::Setting;
use crate::plan::settings;

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// sim:NAME, a host, a network, a workload, or FILE.toml with one of them.
    pub(crate) what: String,
    /// Give the simulated controller the identity of a real one: what `nvme id-ctrl` saved, as text,
    /// with -o json or with -b. Save what is shown as FILE.toml and run it as sim:FILE.toml.
    #[arg(long, value_name = "FILE")]
    pub(crate) id_ctrl: Option<PathBuf>,
    /// Set a key of the device or the workload; see below. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Serialize)]
struct Shown {
    /// `device`, `host`, `network` or `workload`.
    kind: &'static str,
    name: String,
    toml: String,
}

pub(crate) fn run(args: &ShowArgs, output: Output) -> Result<(), Failure> {
    let settings = settings(&args.set)?;
    if let Some(path) = &args.id_ctrl {
        return identified(args, &path.display().to_string(), settings, output);
    }
    let shown = if is_workload(&args.what)? {
        let known = is_toml(&args.what)
            || ssdyno_workload::presets::text(&args.what).is_some()
            || Path::new(&args.what).exists();
        if !known {
            return Err(nothing(&args.what));
        }
        let Some(workload) = load::workload(&args.what, &settings)? else {
            return Err(Failure::usage(format!("{} is a trace", args.what))
                .with_help("`show` prints devices and workloads that are written in TOML"));
        };
        // A structure of tables and plain values always has a TOML form.
        let toml = toml::to_string_pretty(&workload.config.resolved()).unwrap_or_default();
        Shown { kind: "workload", name: workload.name, toml }
    } else if is_host(&args.what)? {
        let host = load::host(&args.what)?;
        Shown { kind: "host", name: host.name, toml: host.config.to_toml() }
    } else if is_network(&args.what)? {
        let network = load::network(&args.what)?;
        Shown { kind: "network", name: network.name, toml: network.config.to_toml() }
    } else {
        let device = load::device(&args.what, &settings)?;
        Shown { kind: "device", name: device.name, toml: device.config.to_toml() }
    };
    output.either(|| shown.toml.clone(), || &shown)
}

/// Neither a file nor the name of anything.
fn nothing(what: &str) -> Failure {
    let names = ssdyno_device::presets::every()
        .map(|preset| preset.name)
        .chain(ssdyno_host::presets::ALL.iter().map(|preset| preset.name))
        .chain(NETWORKS.iter().map(|preset| preset.name))
        .chain(ssdyno_workload::presets::names());
    let help = match nearest(what, names) {
        Some(near) if ssdyno_device::presets::find(near).is_some() => {
            format!("did you mean `sim:{near}`?")
        }
        Some(near) => format!("did you mean `{near}`?"),
        None => "`ssdyno list` shows all presets; a FILE.toml will do too".to_owned(),
    };
    Failure::usage(format!("there is no device, host, network or workload `{what}`"))
        .with_help(help)
}

/// A device with the identity of a real controller; `--set` has the last word.
fn identified(
    args: &ShowArgs,
    path: &str,
    settings: Vec<Setting>,
    output: Output,
) -> Result<(), Failure> {
    if !matches!(load::device(&args.what, &[])?.config, DeviceFile::Ssd(_)) {
        return Err(Failure::usage(format!("{} has no NVMe controller", args.what))
            .with_help("name an SSD, such as sim:gen4-consumer"));
    }
    let dump = load::read_bytes(path)?;
    let id = IdCtrl::parse(&dump).map_err(|error| {
        Failure::usage(format!("cannot use {path}: {error}")).with_help(
            "save one controller with `nvme id-ctrl /dev/nvmeN`, with or without `-o json` or `-b`",
        )
    })?;
    let mut all = Vec::new();
    for setting in id.settings() {
        all.push(Setting::parse(&setting)?);
    }
    all.extend(settings);
    let device = load::device(&args.what, &all)?;
    let mut toml = format!("# {} with the controller of {path}.\n", device.name);
    id.notes().iter().for_each(|note| toml.push_str(&format!("# - {note}\n")));
    toml.push_str(&device.config.to_toml());
    let shown = Shown { kind: "device", name: device.name, toml };
    output.either(|| shown.toml.clone(), || &shown)
}

/// Host presets, and files with costs of one.
fn is_host(what: &str) -> Result<bool, Failure> {
    if what.starts_with("sim:") {
        return Ok(false);
    }
    if !is_toml(what) {
        return Ok(ssdyno_host::presets::find(what).is_some());
    }
    let table: Option<toml::Table> = toml::from_str(&load::read_text(what)?).ok();
    Ok(table.is_some_and(|table| table.contains_key("costs")))
}

/// Network presets, and files with a link and a target.
fn is_network(what: &str) -> Result<bool, Failure> {
    if what.starts_with("sim:") {
        return Ok(false);
    }
    if !is_toml(what) {
        return Ok(Preset::find(NETWORKS, what).is_some());
    }
    let table: Option<toml::Table> = toml::from_str(&load::read_text(what)?).ok();
    Ok(table.is_some_and(|table| table.contains_key("target")))
}

/// Names without `sim:` are workloads if there is one; files are devices if they have flash.
fn is_workload(what: &str) -> Result<bool, Failure> {
    if what.starts_with("sim:") {
        return Ok(false);
    }
    if !is_toml(what) {
        return Ok(ssdyno_device::presets::find(what).is_none()
            && ssdyno_host::presets::find(what).is_none()
            && !is_network(what)?);
    }
    let table: Option<toml::Table> = toml::from_str(&load::read_text(what)?).ok();
    let device = [
        "flash",
        "ftl",
        "host_link",
        "energy",
        "controller",
        "card",
        "cpu",
        "costs",
        "delay",
        "target",
    ];
    Ok(table.is_some_and(|table| !device.iter().any(|key| table.contains_key(*key))))
}
