//! A small simulated SSD that keeps its data, served.

use std::sync::Arc;

use ssdyno_block::Time;
use ssdyno_device::nvme::NvmeController;
use ssdyno_device::{Config, Ssd};
use ssdyno_iscsi::{NvmeUnits, Server, Target};
use ssdyno_pci::{PciTiming, SimulatedPci};

pub(crate) const NAME: &str = "iqn.2026-01.org.ssdyno:test";

const TIMING: PciTiming = PciTiming {
    posted_write: Time::from_ns(200),
    read_round_trip: Time::from_ns(800),
    interrupt: Time::from_us(2),
};

/// Units over the whole path: translation, driver, connector, controller, flash.
pub(crate) fn units(keys: &str) -> NvmeUnits<NvmeController<Ssd>> {
    let small = include_str!("../../../device/tests/small_nvme.toml");
    let text = format!("{small}\n[nvme]\nready_time = \"1ms\"\ncontents = true\n{keys}");
    let device = Config::parse(&text).unwrap();
    let ssd = Ssd::new(&device, 7).unwrap();
    let controller = NvmeController::new(&device, ssd).unwrap();
    NvmeUnits::start(SimulatedPci::new(controller, TIMING)).unwrap()
}

/// They, at a free port of the loopback address.
pub(crate) fn serve(keys: &str) -> Server {
    let target = Target::new(NAME, Box::new(units(keys))).unwrap();
    Server::start("127.0.0.1:0", Arc::new(target)).unwrap()
}
