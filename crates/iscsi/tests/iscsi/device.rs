//! A small simulated SSD that keeps its data, served.

use std::fmt;
use std::sync::Arc;

use ssdyno_block::Time;
use ssdyno_device::nvme::NvmeController;
use ssdyno_device::{Config, Ssd};
use ssdyno_iscsi::{NvmeUnits, Portal, Server, Target};
use ssdyno_pci::{PciTiming, SimulatedPci};

pub(crate) const NAME: &str = "iqn.2026-01.org.ssdyno:test";

const TIMING: PciTiming = PciTiming {
    posted_write: Time::from_ns(200),
    read_round_trip: Time::from_ns(800),
    interrupt: Time::from_us(2),
};

/// Size of a logical block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blocks {
    /// 512 bytes.
    Small,
    /// 4 KiB.
    Large,
}

impl Blocks {
    /// Keys of the device file, in its table `[nvme]`.
    pub(crate) fn keys(self) -> &'static str {
        match self {
            Blocks::Small => "",
            Blocks::Large => "namespaces = [{ block_size = \"4KiB\" }]",
        }
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Blocks::Small => "blocks of 512 bytes",
            Blocks::Large => "blocks of 4 KiB",
        })
    }
}

/// Units over the whole path: translation, driver, connector, controller, flash.
pub(crate) fn units(keys: &str) -> NvmeUnits<NvmeController<Ssd>> {
    units_of(keys, include_str!("../../../device/tests/small_nvme.toml"))
}

fn units_of(keys: &str, small: &str) -> NvmeUnits<NvmeController<Ssd>> {
    let text = format!("{small}\n[nvme]\nready_time = \"1ms\"\ncontents = true\n{keys}");
    let device = Config::parse(&text).unwrap();
    let ssd = Ssd::new(&device, 7).unwrap();
    let controller = NvmeController::new(&device, ssd).unwrap();
    NvmeUnits::start(SimulatedPci::new(controller, TIMING)).unwrap()
}

/// They, at a free port of the loopback address.
pub(crate) fn serve(keys: &str) -> Server {
    served(units(keys), Portal::OfConnection)
}

/// The same with a line of the device's file changed, for initiators behind an address translation.
pub(crate) fn serve_translated(keys: &str, (from, to): (&str, &str)) -> Server {
    let small = include_str!("../../../device/tests/small_nvme.toml");
    assert!(small.contains(from), "{from}");
    served(units_of(keys, &small.replace(from, to)), Portal::WhereAsked)
}

fn served(units: NvmeUnits<NvmeController<Ssd>>, portal: Portal) -> Server {
    let target = Target::new(NAME, Box::new(units)).unwrap().with_portal(portal);
    Server::start("127.0.0.1:0", Arc::new(target)).unwrap()
}
