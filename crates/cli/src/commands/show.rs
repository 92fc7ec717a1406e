//! `ssdyno show`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use ssdyno_block::Preset;
use ssdyno_controller_nvme::{IdCtrl, IdCtrlError};
use ssdyno_rig::NETWORKS;
use ssdyno_session::{
    DEVICE_KINDS, Failure, Setting, files,
    named::{self, is_toml},
    nearest, settings,
};
use ssdyno_ssd::Config;

use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// sim:NAME, a host, a network, a workload, or FILE.toml with one of them.
    pub(crate) what: String,
    /// Give the simulated controller the identity of a real controller, from the saved output of `nvme
    /// id-ctrl` (text, -o json or -b). Save the printed file as FILE.toml and run it as sim:FILE.toml.
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
    let shown = match kind(&args.what)? {
        Kind::Workload => shown_workload(&args.what, &settings)?,
        Kind::Host => {
            let host = named::host(None, &args.what)?;
            Shown { kind: "host", name: host.name, toml: host.config.to_toml() }
        }
        Kind::Network => {
            let network = named::network(None, &args.what, &settings)?;
            Shown { kind: "network", name: network.name, toml: network.config.to_toml() }
        }
        Kind::Device => {
            let device = named::device(None, &args.what, &settings)?;
            let notes: String = device.notes.iter().map(|note| format!("# {note}\n")).collect();
            let toml = notes + &device.config.to_toml();
            Shown { kind: "device", name: device.name, toml }
        }
    };
    output.either(|| shown.toml.clone(), || &shown)
}

fn shown_workload(what: &str, settings: &[Setting]) -> Result<Shown, Failure> {
    let known =
        is_toml(what) || ssdyno_workload::presets::text(what).is_some() || Path::new(what).exists();
    if !known {
        return Err(nothing(what));
    }
    let Some(workload) = named::workload(None, what, settings)? else {
        return Err(Failure::usage(format!("{what} is a trace"))
            .with_help("`show` prints devices and workloads that are written in TOML"));
    };
    // A structure of tables and plain values always has a TOML form.
    let toml = toml::to_string_pretty(&workload.config.resolved()).unwrap_or_default();
    Ok(Shown { kind: "workload", name: workload.name, toml })
}

/// Neither a file nor the name of anything.
fn nothing(what: &str) -> Failure {
    let names = DEVICE_KINDS
        .presets()
        .map(|preset| preset.name)
        .chain(ssdyno_host::presets::ALL.iter().map(|preset| preset.name))
        .chain(NETWORKS.iter().map(|preset| preset.name))
        .chain(ssdyno_workload::presets::names());
    let help = match nearest(what, names) {
        Some(near) if DEVICE_KINDS.find(near).is_some() => {
            format!("did you mean `sim:{near}`?")
        }
        Some(near) => format!("did you mean `{near}`?"),
        None => "`ssdyno list` shows all presets; a FILE.toml also works".to_owned(),
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
    if named::device(None, &args.what, &[])?.config.get::<Config>().is_none() {
        return Err(Failure::usage(format!("{} has no NVMe controller", args.what))
            .with_help("name an SSD, such as sim:gen4-consumer"));
    }
    let dump = files::read_bytes(path)?;
    let id = IdCtrl::parse(&dump).map_err(|error| {
        let help = if matches!(error, IdCtrlError::Unfilled { .. }) {
            "check with `nvme list` that the drive responds, then save it again with `nvme id-ctrl`"
        } else {
            "save one controller with `nvme id-ctrl /dev/nvmeN`, with or without `-o json` or `-b`"
        };
        Failure::usage(format!("cannot use {path}: {error}")).with_help(help)
    })?;
    let own = id.settings();
    let mut all = own.iter().map(|own| Setting::parse(own)).collect::<Result<Vec<_>, _>>()?;
    all.extend(settings);
    let device = named::device(None, &args.what, &all)?;
    let mut toml = format!("# {} with the controller of {path}.\n", device.name);
    let notes = id.notes().into_iter().chain(device.notes);
    notes.for_each(|note| toml.push_str(&format!("# - {note}\n")));
    toml.push_str(&device.config.to_toml());
    let shown = Shown { kind: "device", name: device.name, toml };
    output.either(|| shown.toml.clone(), || &shown)
}

/// What can be shown.
enum Kind {
    Device,
    Host,
    Network,
    Workload,
}

/// Tables of which the file of an SSD has one at least, where it does not have the one of its kind.
const DEVICE_TABLES: [&str; 5] = ["ftl", "host_link", "energy", "controller", "cpu"];

/// The kind of `what`: by its prefix, by the presets of that name, or by the tables of the file.
fn kind(what: &str) -> Result<Kind, Failure> {
    if what.starts_with("sim:") {
        return Ok(Kind::Device);
    }
    if !is_toml(what) {
        return Ok(if ssdyno_host::presets::find(what).is_some() {
            Kind::Host
        } else if Preset::find(NETWORKS, what).is_some() {
            Kind::Network
        } else if DEVICE_KINDS.find(what).is_some() {
            Kind::Device
        } else {
            Kind::Workload
        });
    }
    // A file that is not TOML gets the error of a device file.
    let Ok(table) = toml::from_str::<toml::Table>(&files::read_text(what)?) else {
        return Ok(Kind::Device);
    };
    if table.is_empty() {
        return Err(Failure::usage(format!("{what} contains no file"))
            .with_help("`ssdyno show sim:nvme-tlc` and `ssdyno show mixed` print complete files"));
    }
    let has = |key: &str| table.contains_key(key);
    let kinds = DEVICE_KINDS.all().iter();
    Ok(if table.contains_key("costs") {
        Kind::Host
    } else if table.contains_key("target") {
        Kind::Network
    } else if DEVICE_TABLES.into_iter().chain(kinds.map(|kind| kind.table)).any(has) {
        Kind::Device
    } else {
        Kind::Workload
    })
}
