//! The driver in a system of drivers and classes (S1-21, S1-23, S1-24): a drive behind two bridges that
//! firmware did not recognise is found, gets addresses and a driver by its class, and is used.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use ssdyno_block::{Completion, MonotonicTime, Request, Status, SubmitError, Time, Token};
use ssdyno_driver_nvme::NvmeConfig;
use ssdyno_pci::capability::Link;
use ssdyno_pci::config::At;
use ssdyno_pci::driver::DriverFlags;
use ssdyno_pci::topology::{APERTURES, Firmware, PciMachine, Topology, boot};
use ssdyno_pci::{
    ConfigAccess, ConfigSpace, DeviceClass, DmaRegion, FunctionError, InterruptMode, PciAddress,
    PciDevice, PciFunction, RootBus, SimulatedPci, assign, scan,
};
use ssdyno_spec::pci::{BAR0, COMMAND, COMMAND_MEMORY};

use crate::double::{Double, Nature, namespace};
use crate::drivers::{ClassDriver, DriverError, NvmeType, Registry, Unit, Units, Volume};
use crate::rig::{config, double};

/// A function whose configuration space is that of the machine, and whose registers those of a device
/// behind the connector. Registers answer only where the machine decodes their addresses.
struct InMachine {
    topology: Rc<RefCell<Topology>>,
    address: PciAddress,
    pci: Rc<RefCell<SimulatedPci<Double>>>,
    modes: Rc<RefCell<Vec<(InterruptMode, u16)>>>,
}

impl InMachine {
    fn decodes(&self) {
        let topology = &mut *self.topology.borrow_mut();
        let mut space = At::new(topology, self.address);
        let placed = space.read32(BAR0) & !0xf != 0;
        assert!(placed && space.read16(COMMAND) & COMMAND_MEMORY != 0, "nobody answers there");
    }
}

impl PciFunction for InMachine {
    fn config_read(&mut self, offset: u16) -> u32 {
        self.topology.borrow_mut().read(self.address, offset)
    }
    fn config_write(&mut self, offset: u16, value: u32) {
        self.topology.borrow_mut().write(self.address, offset, value);
        if offset == COMMAND {
            self.pci.borrow_mut().config_write(offset, value);
        }
    }
    fn bar_bytes(&self, bar: u8) -> u64 {
        self.pci.borrow().bar_bytes(bar)
    }
    fn bar_read32(&mut self, bar: u8, offset: u32) -> u32 {
        self.decodes();
        self.pci.borrow_mut().bar_read32(bar, offset)
    }
    fn bar_write32(&mut self, bar: u8, offset: u32, value: u32) {
        self.decodes();
        self.pci.borrow_mut().bar_write32(bar, offset, value);
    }
    fn dma_allocate(&mut self, bytes: u32) -> Result<DmaRegion, FunctionError> {
        self.pci.borrow_mut().dma_allocate(bytes)
    }
    fn dma_free(&mut self, region: DmaRegion) {
        self.pci.borrow_mut().dma_free(region);
    }
    fn dma_read(&mut self, region: &DmaRegion, offset: u32, out: &mut [u8]) {
        self.pci.borrow_mut().dma_read(region, offset, out);
    }
    fn dma_write(&mut self, region: &DmaRegion, offset: u32, bytes: &[u8]) {
        self.pci.borrow_mut().dma_write(region, offset, bytes);
    }
    fn dma_load32(&mut self, region: &DmaRegion, offset: u32) -> u32 {
        self.pci.borrow_mut().dma_load32(region, offset)
    }
    fn enable_interrupts(
        &mut self,
        mode: InterruptMode,
        vectors: u16,
    ) -> Result<u16, FunctionError> {
        let granted = self.pci.borrow_mut().enable_interrupts(mode, vectors)?;
        self.modes.borrow_mut().push((mode, granted));
        Ok(granted)
    }
}

/// A machine with one drive that has a driver.
struct System {
    registry: Registry,
    unit: Unit,
    address: PciAddress,
    pci: Rc<RefCell<SimulatedPci<Double>>>,
    modes: Rc<RefCell<Vec<(InterruptMode, u16)>>>,
    now: Cell<Time>,
    done: Vec<Completion<MonotonicTime>>,
}

impl System {
    fn new(pci: SimulatedPci<Double>, driver: NvmeType) -> System {
        let link = Link { generation: 3, lanes: 4 };
        let identity = pci.device().identity();
        let (mut topology, function) = PciMachine::TwoBridges.with(&identity, link);
        boot(&mut topology, Firmware::Overlooks(function)).unwrap();
        let mut tree = scan(&mut topology, &[RootBus::FIRST]);
        let address: PciAddress = "02:03.0".parse().unwrap();
        let index = tree.find(address).unwrap();
        assert_eq!(tree.functions[index].firmware_knew_it(), Some(false));
        assert_eq!(assign(&mut topology, &mut tree, 0, &APERTURES).failures, []);
        let (topology, pci) = (Rc::new(RefCell::new(topology)), Rc::new(RefCell::new(pci)));
        let mut registry = Registry::new(vec![Box::new(driver)]);
        let modes = Rc::default();
        let function =
            InMachine { topology, address, pci: Rc::clone(&pci), modes: Rc::clone(&modes) };
        let attached = registry.attach(&tree.functions[index], || Box::new(function));
        let (class, unit) = attached.unwrap();
        assert_eq!(class, DeviceClass::Storage);
        assert!(modes.borrow().is_empty() && pci.borrow().counters().mmio_reads == 0, "untouched");
        System { registry, unit, address, pci, modes, now: Cell::new(Time::ZERO), done: vec![] }
    }

    fn flags(&self) -> DriverFlags {
        self.registry.storage.flags(self.unit).unwrap()
    }

    fn is_operational(&self) -> bool {
        self.registry.storage.is_operational(self.unit).unwrap()
    }

    fn start(&mut self) {
        self.registry.storage.start(self.unit, self.now.get().into()).unwrap();
        while !self.is_operational() {
            assert!(self.step(), "it never becomes ready");
        }
    }

    /// The system's reaction to the next event; false if there is none.
    fn step(&mut self) -> bool {
        let (storage, unit) = (&mut self.registry.storage, self.unit);
        let deadline = storage.watchdog(unit, self.now.get().into()).unwrap();
        let deadline = deadline.map(MonotonicTime::time);
        let next = self.pci.borrow().next_event().into_iter().chain(deadline).min();
        let Some(at) = next else { return false };
        let now = self.now.get().max(at);
        self.now.set(now);
        let mut vectors = Vec::new();
        self.pci.borrow_mut().advance(now);
        self.pci.borrow_mut().set_now(now);
        self.pci.borrow_mut().take_interrupts(now, &mut vectors);
        for vector in vectors {
            storage.interrupt(unit, now.into(), vector).unwrap();
        }
        storage.watchdog(unit, now.into()).unwrap();
        storage.done(unit, now.into(), &mut self.done).unwrap();
        true
    }

    fn submit(&mut self, request: Request, token: u32) -> Result<(), DriverError> {
        self.registry.storage.read_write(self.unit, self.now.get().into(), request, Token(token))
    }
}

#[test]
fn a_drive_that_firmware_overlooked_is_driven_behind_two_bridges() {
    let wanted = NvmeConfig { pin_first: true, cores: 2, ..config() };
    let mut system =
        System::new(double(Nature::default()), NvmeType::new(wanted, 1 << 16).behind_scsi());
    let at_start = DriverFlags::BUS_MASTER | DriverFlags::PIN_AT_START | DriverFlags::SCSI;
    assert_eq!(system.flags(), at_start);
    let early = system.submit(Request::flush(), 0);
    assert_eq!(early, Err(DriverError::NotOperational(system.address)));
    system.start();
    assert_eq!(system.flags(), DriverFlags::BUS_MASTER | DriverFlags::SCSI);
    // S1-21: by class and driver first the pin, at the end every vector of the table.
    let modes = system.modes.borrow().clone();
    let table = system.pci.borrow().device().identity().msix_vectors;
    assert_eq!(modes[..2], [(InterruptMode::Pin, 1); 2]);
    assert_eq!(modes.last(), Some(&(InterruptMode::MsiX, table)));
    let last = system.registry.storage.interrupts(system.unit);
    assert_eq!(last, Ok(Some((InterruptMode::MsiX, table))));
    let requests = [Request::write(0, 1 << 20), Request::read(4096, 512), Request::flush()];
    for token in 0..30 {
        while let Err(refused) = system.submit(requests[token as usize % 3], token) {
            assert_eq!(refused, DriverError::Submit(SubmitError::Full));
            assert!(system.step());
        }
    }
    while system.done.len() < 30 {
        assert!(system.step());
    }
    let mut tokens: Vec<u32> = system.done.iter().map(|done| done.token.0).collect();
    tokens.sort_unstable();
    assert!(tokens.into_iter().eq(0..30));
    assert!(system.done.iter().all(|d| d.status == Status::Ok && d.accepted <= d.completed));
    let beyond = system.submit(Request::read(1 << 40, 512), 0);
    assert!(matches!(beyond, Err(DriverError::Submit(SubmitError::OutOfRange { .. }))));
    let odd = system.submit(Request::read(1, 512), 0);
    assert!(matches!(odd, Err(DriverError::Submit(SubmitError::Misaligned { .. }))));
    assert!(system.now.get() < Time::from_ms(10), "nothing waited for a watchdog");
    assert_eq!(system.pci.borrow().device().violations, Vec::<String>::new());
}

/// A stop answers what is outstanding and gives everything back; then it can be started again.
#[test]
fn a_stopped_unit_leaves_nothing_and_starts_again() {
    let mut system = System::new(double(Nature::default()), NvmeType::new(config(), 4096));
    assert_eq!(system.flags(), DriverFlags::BUS_MASTER);
    for round in 1..=2 {
        system.start();
        // More than the queue takes: one waits in the unit.
        system.submit(Request::read(0, 64 << 10), 7).unwrap();
        system.submit(Request::read(0, 512), 8).unwrap();
        system.registry.storage.stop(system.unit, system.now.get().into()).unwrap();
        assert!(!system.is_operational());
        while system.step() {}
        assert_eq!(system.done.len(), 2 * round, "both were answered, well or not");
        assert_eq!(system.pci.borrow().memory_bytes(), 0);
        assert_eq!(system.pci.borrow().faults(), []);
    }
}

/// A suspended unit keeps what it has not begun, and goes on with it after the resume; nothing is lost or done
/// twice.
#[test]
fn a_suspended_unit_goes_on_after_the_resume() {
    for keeps_power in [false, true] {
        let nature = Nature { power_states: keeps_power, ..Nature::default() };
        let mut system = System::new(double(nature), NvmeType::new(config(), 4096));
        let unit = system.unit;
        let early = system.registry.storage.suspend(unit, MonotonicTime::ZERO, keeps_power);
        assert_eq!(early, Err(DriverError::NotOperational(system.address)));
        system.start();
        let resumed = system.registry.storage.resume(unit, system.now.get().into());
        assert!(matches!(resumed, Err(DriverError::Unfit { .. })), "it is not suspended");
        // Longer than the buffer: done piece by piece.
        system.submit(Request::read(0, 64 << 10), 7).unwrap();
        system.submit(Request::read(0, 512), 8).unwrap();
        system.registry.storage.suspend(unit, system.now.get().into(), keeps_power).unwrap();
        assert!(!system.is_operational());
        let late = system.submit(Request::read(0, 512), 9);
        assert_eq!(late, Err(DriverError::NotOperational(system.address)));
        while !system.registry.storage.is_suspended(unit).unwrap() {
            assert!(system.step(), "it never sleeps");
        }
        while system.step() {}
        let before = system.done.len();
        assert!(before < 2, "what was not begun waits");
        system.registry.storage.resume(unit, system.now.get().into()).unwrap();
        while system.done.len() < 2 {
            assert!(system.step(), "what waited is forgotten");
        }
        assert!(system.is_operational());
        system.submit(Request::write(4096, 4096), 9).unwrap();
        while system.done.len() < 3 {
            assert!(system.step());
        }
        let mut tokens: Vec<u32> = system.done.iter().map(|done| done.token.0).collect();
        tokens.sort_unstable();
        assert_eq!(tokens, [7, 8, 9]);
        assert!(system.done.iter().all(|done| done.status == Status::Ok));
        assert_eq!(system.pci.borrow().device().violations, Vec::<String>::new());
    }
}

/// S1-43: a unit is the namespace that was chosen, or the first that can be used, and says which.
#[test]
fn a_unit_says_which_namespace_it_is() {
    // The first cannot be used; the others have blocks of 512 B and of 4 KiB.
    let drive = || {
        let namespaces = vec![namespace(100, 0), namespace(1 << 14, 9), namespace(1 << 10, 12)];
        double(Nature { namespaces, ..Nature::default() })
    };
    let driver = || NvmeType::new(config(), 1 << 16);
    for (driver, number, far) in [(driver(), 2, 4 << 20), (driver().serving(3), 3, 2 << 20)] {
        let mut system = System::new(drive(), driver);
        assert_eq!(system.registry.storage.volume(system.unit), Ok(None), "not yet");
        system.start();
        let volume = Some(Volume { number, of: 2 });
        assert_eq!(system.registry.storage.volume(system.unit), Ok(volume));
        // Its size and its block are those of this namespace.
        system.submit(Request::read(far, 4096), 1).unwrap();
        assert_eq!(system.submit(Request::read(0, 512), 2).is_ok(), number == 2);
        system.registry.storage.stop(system.unit, system.now.get().into()).unwrap();
        assert_eq!(system.registry.storage.volume(system.unit), Ok(None), "stopped");
    }
    for missing in [1, 4] {
        let mut system = System::new(drive(), driver().serving(missing));
        system.registry.storage.start(system.unit, MonotonicTime::ZERO).unwrap();
        while system.now.get() < Time::from_ms(50) && system.step() {}
        assert!(!system.is_operational(), "{missing} cannot be served");
        assert_eq!(system.registry.storage.volume(system.unit), Ok(None));
    }
    let nobody = Units::new(DeviceClass::Storage).volume(Unit(0));
    assert_eq!(nobody, Err(DriverError::NoUnit(0)));
}

/// A device that cannot be driven is reported at the start, or never becomes operational.
#[test]
fn units_that_cannot_be_used_say_so() {
    let policy = ssdyno_driver_nvme::QueuePolicy::Weighted {
        queues: [1; 4],
        weights: ssdyno_driver_nvme::Weights { burst_shift: 0, high: 1, medium: 1, low: 1 },
    };
    let plain = double(Nature { weighted: false, ..Nature::default() });
    let driver = NvmeType::new(NvmeConfig { policy, ..config() }, 4096);
    let mut system = System::new(plain, driver);
    let refused = system.registry.storage.start(system.unit, MonotonicTime::ZERO);
    assert!(
        matches!(refused, Err(DriverError::Unfit { reason, .. }) if reason.contains("CAP.AMS"))
    );
    // Its only namespace has blocks that nobody can use.
    let namespaces = vec![namespace(100, 0)];
    let odd = double(Nature { namespaces, ..Nature::default() });
    let mut system = System::new(odd, NvmeType::new(config(), 4096));
    system.registry.storage.start(system.unit, MonotonicTime::ZERO).unwrap();
    while system.now.get() < Time::from_ms(50) && system.step() {}
    assert!(!system.is_operational());
    // A controller that is removed answers what it had.
    let mut system = System::new(double(Nature::default()), NvmeType::new(config(), 4096));
    system.start();
    system.submit(Request::read(0, 512), 1).unwrap();
    system.pci.borrow_mut().inject(system.now.get(), ssdyno_block::Fault::Remove);
    while system.done.is_empty() {
        assert!(system.step(), "the request hangs");
    }
    assert_ne!(system.done[0].status, Status::Ok);
}
