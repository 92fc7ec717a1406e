//! The arguments of `ssdyno pci`.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct PciArgs {
    /// Source: sys (this machine), FILE (saved with lspci -xxxx), or sim:NAME
    /// and sim:FILE.toml (a simulated machine with that device).
    pub(crate) target: String,
    /// File with an MP table: the table itself, or a memory image with the floating pointer (the
    /// first MiB, or its last 64 KiB).
    #[arg(long, value_name = "FILE")]
    pub(crate) mp_table: Option<String>,
    /// Also route interrupts with the mistakes of the printed code (S1-19), next to the correct way.
    #[arg(long)]
    pub(crate) vortex_quirks: bool,
    /// How the simulated device is connected [default: root-port].
    #[arg(long, value_name = "MACHINE", help_heading = "Simulated machines")]
    pub(crate) machine: Option<MachineArg>,
    /// How much the simulated firmware configured before the scan [default: full].
    #[arg(long, value_name = "FIRMWARE", help_heading = "Simulated machines")]
    pub(crate) firmware: Option<FirmwareArg>,
}

/// See [`ssdyno_pci::topology::PciMachine`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum MachineArg {
    /// Behind a PCI Express root port.
    RootPort,
    /// Behind a conventional bridge, at 01:03.0.
    Bridge,
    /// Behind two conventional bridges, at 02:03.0.
    TwoBridges,
    /// Behind a root port and a switch.
    Switch,
}

/// See [`ssdyno_pci::topology::Firmware`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum FirmwareArg {
    /// The firmware configured every device.
    Full,
    /// The firmware configured every device except the target, which it does not support.
    OverlooksDevice,
    /// The firmware configured nothing.
    None,
}
