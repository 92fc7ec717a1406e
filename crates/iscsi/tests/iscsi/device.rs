//! A small simulated SSD that keeps its data, served.

use std::fmt;
use std::sync::Arc;

use ssdyno_block::Time;
use ssdyno_controller_nvme::NvmeController;
use ssdyno_iscsi::{
    IscsiServer, IscsiTarget, LogicalUnits, NvmeUnits, Portal, ScsiTask, ServedClock,
    TaskAttribute, TaskId, TaskResponse, UnitOptions,
};
use ssdyno_pci::{PciTiming, SimulatedPci};
use ssdyno_scsi::Nexus;
use ssdyno_ssd::{Config, Ssd};

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

    /// Their size.
    pub(crate) fn bytes(self) -> u32 {
        match self {
            Blocks::Small => 512,
            Blocks::Large => 4096,
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

const SMALL: &str = include_str!("../../../ssd/tests/small_nvme.toml");

/// Units over the whole path: translation, driver, connector, controller, flash.
pub(crate) fn units(keys: &str) -> NvmeUnits<NvmeController<Ssd>> {
    units_of(keys, SMALL, UnitOptions::default())
}

/// The same with a line of the device's file changed.
pub(crate) fn units_changed(
    keys: &str,
    (from, to): (&str, &str),
    options: UnitOptions,
) -> NvmeUnits<NvmeController<Ssd>> {
    assert!(SMALL.contains(from), "{from}");
    units_of(keys, &SMALL.replace(from, to), options)
}

fn units_of(keys: &str, small: &str, options: UnitOptions) -> NvmeUnits<NvmeController<Ssd>> {
    let text = format!("{small}\n[nvme]\nready_time = \"1ms\"\ncontents = true\n{keys}");
    let device = Config::parse(&text).unwrap();
    let ssd = Ssd::new(&device, 7).unwrap();
    let controller = NvmeController::in_front_of(ssd, device.nvme_setup().unwrap()).unwrap();
    let units = NvmeUnits::start_with(SimulatedPci::new(controller, TIMING), options).unwrap();
    if device.faults.is_none() { units } else { units.with_faults(|at| device.faults.plan(7, at)) }
}

/// They as a target, with another clock than that of the wall.
pub(crate) fn target(keys: &str, clock: ServedClock) -> IscsiTarget {
    IscsiTarget::new(NAME, Box::new(units(keys))).unwrap().with_clock(clock)
}

/// One command of `nexus` at LUN 0 to its end, as fast as the simulation goes.
pub(crate) fn execute(
    units: &mut dyn LogicalUnits,
    nexus: Nexus,
    cdb: &[u8],
    data_out: &[u8],
) -> (TaskResponse, Vec<u8>) {
    let mut bytes = [0; 16];
    bytes[..cdb.len()].copy_from_slice(cdb);
    let task = ScsiTask {
        id: TaskId(0),
        nexus,
        lun: 0,
        attribute: TaskAttribute::Simple,
        cdb: bytes,
        expected_out_bytes: data_out.len() as u64,
        data_out: data_out.to_vec(),
    };
    units.submit(Time::ZERO, task);
    let mut ended = Vec::new();
    loop {
        units.take_ended(&mut ended);
        if let Some(ended) = ended.pop() {
            return (ended.answer.unwrap(), ended.data_in);
        }
        let next = units.next_event().expect("a command ends");
        units.advance(next);
    }
}

/// The units at a free port of the loopback address.
pub(crate) fn serve(keys: &str) -> IscsiServer {
    served(units(keys), Portal::OfConnection)
}

/// Those units there; [`Portal::WhereAsked`] for initiators behind an address translation.
pub(crate) fn served(units: impl LogicalUnits + 'static, portal: Portal) -> IscsiServer {
    let target = IscsiTarget::new(NAME, Box::new(units)).unwrap().with_portal(portal);
    IscsiServer::start("127.0.0.1:0", Arc::new(target)).unwrap()
}
