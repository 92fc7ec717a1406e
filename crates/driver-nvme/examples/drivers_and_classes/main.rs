//! Drivers and classes of devices as exchangeable parts (S1-24): an NVMe drive behind two bridges gets its
//! driver by its class code, starts, and is read through the interface that all storage devices have.

mod drivers;

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;

use drivers::{ClassDriver, NvmeType, Registry};
use ssdyno_block::{MonotonicTime, Request, Time, Token};
use ssdyno_controller_nvme::NvmeController;
use ssdyno_driver_nvme::NvmeConfig;
use ssdyno_pci::capability::Link;
use ssdyno_pci::topology::{APERTURES, Firmware, PciMachine, boot};
use ssdyno_pci::{
    DmaRegion, FunctionError, InterruptMode, PciDevice, PciFunction, PciTiming, RootBus,
    SimulatedPci, assign, scan,
};
use ssdyno_ssd::{Config, Ssd};

const SMALL: &str = include_str!("../../../ssd/tests/small_nvme.toml");

/// A function that the machine and its driver share.
struct Slot(Rc<RefCell<SimulatedPci<NvmeController<Ssd>>>>);

impl PciFunction for Slot {
    fn config_read(&mut self, offset: u16) -> u32 {
        self.0.borrow_mut().config_read(offset)
    }
    fn config_write(&mut self, offset: u16, value: u32) {
        self.0.borrow_mut().config_write(offset, value);
    }
    fn bar_bytes(&self, bar: u8) -> u64 {
        self.0.borrow().bar_bytes(bar)
    }
    fn bar_read32(&mut self, bar: u8, offset: u32) -> u32 {
        self.0.borrow_mut().bar_read32(bar, offset)
    }
    fn bar_write32(&mut self, bar: u8, offset: u32, value: u32) {
        self.0.borrow_mut().bar_write32(bar, offset, value);
    }
    fn dma_allocate(&mut self, bytes: u32) -> Result<DmaRegion, FunctionError> {
        self.0.borrow_mut().dma_allocate(bytes)
    }
    fn dma_free(&mut self, region: DmaRegion) {
        self.0.borrow_mut().dma_free(region);
    }
    fn dma_read(&mut self, region: &DmaRegion, offset: u32, out: &mut [u8]) {
        self.0.borrow_mut().dma_read(region, offset, out);
    }
    fn dma_write(&mut self, region: &DmaRegion, offset: u32, bytes: &[u8]) {
        self.0.borrow_mut().dma_write(region, offset, bytes);
    }
    fn dma_load32(&mut self, region: &DmaRegion, offset: u32) -> u32 {
        self.0.borrow_mut().dma_load32(region, offset)
    }
    fn enable_interrupts(
        &mut self,
        mode: InterruptMode,
        vectors: u16,
    ) -> Result<u16, FunctionError> {
        self.0.borrow_mut().enable_interrupts(mode, vectors)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = Config::parse(&format!("{SMALL}\n[nvme]\nready_time = \"1ms\"\n"))?;
    let controller = NvmeController::in_front_of(
        Ssd::new(&device, 1)?,
        device.nvme_setup().ok_or("the file has no [nvme]")?,
    )?;
    let ns = Time::from_ns;
    let timing = PciTiming { posted_write: ns(300), read_round_trip: ns(800), interrupt: ns(2000) };
    let pci = SimulatedPci::new(controller, timing);
    let identity = pci.device().identity();
    let (mut machine, at) =
        PciMachine::TwoBridges.with(&identity, Link { generation: 3, lanes: 4 });
    // The bus is what is trusted, and not the table of interrupts that firmware left.
    let _ = boot(&mut machine, Firmware::Overlooks(at));
    let mut tree = scan(&mut machine, &[RootBus::FIRST]);
    assign(&mut machine, &mut tree, 0, &APERTURES);

    let pci = Rc::new(RefCell::new(pci));
    let mut registry = Registry::new(vec![Box::new(NvmeType::new(NvmeConfig::default(), 1 << 16))]);
    for function in &tree.functions {
        match registry.attach(function, || Box::new(Slot(Rc::clone(&pci)))) {
            Ok((class, unit)) => println!("{}: {class:?}, {unit:?}", function.address),
            Err(error) => println!("{error}"),
        }
    }

    let (storage, unit, mut now) = (&mut registry.storage, drivers::Unit(0), Time::ZERO);
    let (mut vectors, mut done) = (Vec::new(), Vec::new());
    storage.start(unit, now.into())?;
    let mut asked = false;
    while done.is_empty() {
        if storage.is_operational(unit)? && !asked {
            asked = true;
            storage.read_write(unit, now.into(), Request::read(0, 4096), Token(1))?;
        }
        let deadline = storage.watchdog(unit, now.into())?.map(MonotonicTime::time);
        let next = pci.borrow().next_event().into_iter().chain(deadline).min();
        now = next.ok_or("the drive does nothing any more")?.max(now);
        pci.borrow_mut().advance(now);
        pci.borrow_mut().set_now(now);
        pci.borrow_mut().take_interrupts(now, &mut vectors);
        for vector in vectors.drain(..) {
            storage.interrupt(unit, now.into(), vector)?;
        }
        storage.done(unit, now.into(), &mut done)?;
    }
    println!("{} reads 4 KiB: {:?} after {now}", storage.id(unit)?, done[0].status);
    Ok(())
}
