//! S1-21, S1-23, S1-24: drivers as parts, interrupts for the start and after it, and the device that
//! firmware did not know.

use std::cell::RefCell;
use std::rc::Rc;

use ssdyno_block::{Completion, MonotonicTime, Request, Status, SubmitError, Time, Token};
use ssdyno_pci::capability::Link;
use ssdyno_pci::config::ConfigAccess;
use ssdyno_pci::driver::DriverFlags;
use ssdyno_pci::interrupts::InterruptAbilities;
use ssdyno_pci::topology::{APERTURES, Firmware, PciMachine, Topology, boot};
use ssdyno_pci::{
    DeviceClass, DmaRegion, Function, FunctionError, Identity, InterruptMode, PciAddress,
    PciFunction, RootBus, assign, scan,
};

#[path = "../../../pci/tests/pci/decode.rs"]
mod decode;

use crate::drivers::{ClassDriver, DriverError, DriverType, PciDriver, Registry, Suits, Unit};

use decode::Decode;

/// `us` microseconds on the machine's clock.
fn us(us: u64) -> MonotonicTime {
    MonotonicTime::from_ns(us * 1000)
}

/// What happened to a function and its driver.
type Log = Rc<RefCell<Vec<String>>>;

/// A function over the configuration space of a simulated machine.
struct OnTopology {
    topology: Rc<RefCell<Topology>>,
    address: PciAddress,
    log: Log,
    /// Kinds of interrupts that the host has no vectors for.
    refused: Vec<InterruptMode>,
}

impl PciFunction for OnTopology {
    fn config_read(&mut self, offset: u16) -> u32 {
        self.topology.borrow_mut().read(self.address, offset)
    }
    fn config_write(&mut self, offset: u16, value: u32) {
        self.topology.borrow_mut().write(self.address, offset, value);
    }
    fn bar_bytes(&self, _bar: u8) -> u64 {
        1 << 14
    }
    fn bar_read32(&mut self, _bar: u8, _offset: u32) -> u32 {
        0
    }
    fn bar_write32(&mut self, _bar: u8, _offset: u32, value: u32) {
        self.log.borrow_mut().push(format!("heard {value}"));
    }
    fn dma_allocate(&mut self, bytes: u32) -> Result<DmaRegion, FunctionError> {
        match bytes {
            0..=4096 => Ok(DmaRegion { address: 0x1000, bytes, handle: 1 }),
            _ => Err(FunctionError::NoMemory { bytes }),
        }
    }
    fn dma_free(&mut self, region: DmaRegion) {
        self.log.borrow_mut().push(format!("free {}", region.handle));
    }
    fn dma_read(&mut self, _region: &DmaRegion, _offset: u32, out: &mut [u8]) {
        out.fill(0);
    }
    fn dma_write(&mut self, _region: &DmaRegion, _offset: u32, _bytes: &[u8]) {}
    fn dma_load32(&mut self, _region: &DmaRegion, _offset: u32) -> u32 {
        0
    }
    fn enable_interrupts(
        &mut self,
        mode: InterruptMode,
        vectors: u16,
    ) -> Result<u16, FunctionError> {
        if self.refused.contains(&mode) {
            return Err(FunctionError::NoInterrupt { mode });
        }
        self.log.borrow_mut().push(format!("{mode:?} {vectors}"));
        Ok(vectors)
    }
}

/// Becomes ready 5 us after the start; each request takes nothing.
struct Disk {
    address: PciAddress,
    function: Box<dyn PciFunction>,
    ready_at: Option<MonotonicTime>,
    ready: bool,
    done: Vec<Completion<MonotonicTime>>,
}

impl PciDriver for Disk {
    fn id(&self) -> PciAddress {
        self.address
    }
    fn flags(&self) -> DriverFlags {
        let start = if self.ready { DriverFlags::empty() } else { DriverFlags::PIN_AT_START };
        DriverFlags::BUS_MASTER | start
    }
    fn start(&mut self, now: MonotonicTime) -> Result<(), DriverError> {
        self.ready_at = Some(now + Time::from_us(5));
        Ok(())
    }
    fn is_ready(&self) -> bool {
        self.ready
    }
    fn stop(&mut self, _now: MonotonicTime) {
        self.ready = false;
        self.ready_at = None;
    }
    fn interrupt(&mut self, now: MonotonicTime, vector: u16) {
        self.function.bar_write32(0, 0, vector.into());
        self.watchdog(now);
    }
    fn read_write(
        &mut self,
        now: MonotonicTime,
        _request: Request,
        token: Token,
    ) -> Result<(), SubmitError> {
        if self.done.len() == 1 {
            return Err(SubmitError::Full);
        }
        self.done.push(Completion { token, status: Status::Ok, accepted: now, completed: now });
        Ok(())
    }
    fn reap(&mut self, _now: MonotonicTime, out: &mut Vec<Completion<MonotonicTime>>) {
        out.append(&mut self.done);
    }
    fn watchdog(&mut self, now: MonotonicTime) -> Option<MonotonicTime> {
        self.ready |= self.ready_at.is_some_and(|at| at <= now);
        self.ready_at.filter(|_| !self.ready)
    }
    fn function(&mut self) -> &mut dyn PciFunction {
        &mut *self.function
    }
}

/// A kind of driver for a class of which vendor 0x8086 may be a special case.
struct Disks(&'static str, Suits);

impl DriverType for Disks {
    fn name(&self) -> &'static str {
        self.0
    }
    fn suits(&self, function: &Function) -> Option<Suits> {
        let class = function.header.class == 0x01_0802;
        let device = self.1 == Suits::Class || function.header.vendor == 0x8086;
        (class && device).then_some(self.1)
    }
    fn bind(
        &self,
        address: PciAddress,
        function: Box<dyn PciFunction>,
    ) -> Result<Box<dyn PciDriver>, DriverError> {
        let (ready_at, ready, done) = (None, false, Vec::new());
        Ok(Box::new(Disk { address, function, ready_at, ready, done }))
    }
}

fn identity(vendor: u16) -> Identity {
    Identity {
        vendor,
        device: 0x0953,
        class: 0x01_0802,
        revision: 1,
        bar_bytes: [1 << 14, 0, 0],
        msix_vectors: 32,
        msi_vectors: 0,
        interrupt_pin: 1,
    }
}

const LINK: Link = Link { generation: 3, lanes: 4 };

/// A machine with a drive, whose firmware may not know it.
fn machine(vendor: u16, overlooked: bool) -> (Topology, PciAddress) {
    let (mut topology, function) = PciMachine::RootPort.with(&identity(vendor), LINK);
    let firmware = if overlooked { Firmware::Overlooks(function) } else { Firmware::Full };
    boot(&mut topology, firmware).unwrap();
    let address = topology.address(function).unwrap();
    (topology, address)
}

fn registry() -> Registry {
    Registry::new(vec![
        Box::new(Disks("any", Suits::Class)),
        Box::new(Disks("special", Suits::Device)),
        Box::new(Disks("late", Suits::Class)),
    ])
}

/// Attaches the drive of a machine that was set up.
fn attached(
    topology: Topology,
    address: PciAddress,
    refused: &[InterruptMode],
) -> (Registry, Unit, Log) {
    let topology = Rc::new(RefCell::new(topology));
    let tree = scan(&mut *topology.borrow_mut(), &[RootBus::FIRST]);
    let log = Log::default();
    let mut registry = registry();
    let function = &tree.functions[tree.find(address).unwrap()];
    let (log_, refused) = (log.clone(), refused.to_vec());
    let open =
        || Box::new(OnTopology { topology, address, log: log_, refused }) as Box<dyn PciFunction>;
    let (class, unit) = registry.attach(function, open).unwrap();
    assert_eq!(class, DeviceClass::Storage);
    (registry, unit, log)
}

#[test]
fn the_driver_that_suits_best_is_taken() {
    for (vendor, name) in [(0x8086, "special"), (0x144d, "any")] {
        let (mut topology, address) = machine(vendor, false);
        let tree = scan(&mut topology, &[RootBus::FIRST]);
        let registry = registry();
        let driver = |at: PciAddress| registry.driver_for(&tree.functions[tree.find(at).unwrap()]);
        assert_eq!(driver(address).map(DriverType::name), Some(name));
        assert!(driver("00:1c.0".parse().unwrap()).is_none());
    }
}

#[test]
fn bridges_are_units_without_driver_and_interrupts() {
    let (mut topology, _) = machine(0x8086, false);
    let tree = scan(&mut topology, &[RootBus::FIRST]);
    let port = &tree.functions[tree.find("00:1c.0".parse().unwrap()).unwrap()];
    let abilities = InterruptAbilities::of(&port.header, &port.capabilities);
    assert!(abilities.best().is_some(), "it could have some");
    let mut registry = registry();
    let (class, unit) = registry.attach(port, || panic!("a bridge is not touched")).unwrap();
    assert_eq!(class, DeviceClass::Bridge);
    let bridges = &mut registry.bridges;
    assert_eq!(bridges.flags(unit), Ok(DriverFlags::NO_INTERRUPTS));
    assert_eq!(abilities.wanted(bridges.flags(unit).unwrap()), None);
    assert_eq!(bridges.is_operational(unit), Ok(false));
    bridges.start(unit, MonotonicTime::ZERO).unwrap();
    assert_eq!((bridges.is_operational(unit), bridges.interrupts(unit)), (Ok(true), Ok(None)));
    let request = bridges.read_write(unit, MonotonicTime::ZERO, Request::flush(), Token(1));
    assert_eq!(request, Err(DriverError::NoDriver(port.address)));
    assert_eq!(bridges.stop(Unit(9), MonotonicTime::ZERO), Err(DriverError::NoUnit(9)));
    let host_bridge = &tree.functions[0];
    let nobody = registry.attach(host_bridge, || panic!("nobody drives it"));
    assert_eq!(nobody, Err(DriverError::NoDriver(host_bridge.address)));
}

/// S1-21: the pin first; MSI-X with the table's size when the controller is ready.
#[test]
fn the_pin_first_then_msix() {
    let (topology, address) = machine(0x8086, false);
    let (mut registry, unit, log) = attached(topology, address, &[]);
    let disks = &mut registry.storage;
    disks.start(unit, MonotonicTime::ZERO).unwrap();
    assert_eq!(*log.borrow(), ["Pin 1"]);
    let early = disks.read_write(unit, MonotonicTime::ZERO, Request::flush(), Token(1));
    assert_eq!(early, Err(DriverError::NotOperational(address)));
    let mut out = Vec::new();
    assert_eq!(disks.watchdog(unit, us(1)), Ok(Some(us(5))));
    disks.done(unit, us(1), &mut out).unwrap();
    assert_eq!(log.borrow().len(), 1, "not ready yet");
    disks.interrupt(unit, us(5), 0).unwrap();
    disks.done(unit, us(5), &mut out).unwrap();
    disks.done(unit, us(6), &mut out).unwrap();
    assert_eq!(log.borrow()[..4], ["Pin 1", "heard 0", "MsiX 32", "heard 0"]);
    assert_eq!(log.borrow().len(), 3 + 32, "once; of each new vector, for the old ones are lost");
    assert_eq!(disks.interrupts(unit), Ok(Some((InterruptMode::MsiX, 32))));
    disks.read_write(unit, us(7), Request::flush(), Token(1)).unwrap();
    let full = disks.read_write(unit, us(7), Request::flush(), Token(2));
    assert_eq!(full, Err(DriverError::Submit(SubmitError::Full)));
    disks.done(unit, us(8), &mut out).unwrap();
    assert_eq!(out.iter().map(|completion| completion.token).collect::<Vec<_>>(), [Token(1)]);
    let region = disks.allocate(unit, 512).unwrap();
    disks.free(unit, region).unwrap();
    assert_eq!(log.borrow().last().map(String::as_str), Some("free 1"));
    assert!(disks.allocate(unit, 8192).is_err());
    disks.stop(unit, us(9)).unwrap();
    assert_eq!((disks.is_operational(unit), disks.id(unit)), (Ok(false), Ok(address)));
}

#[test]
fn without_vectors_for_the_best_kind_the_next_is_taken() {
    let (topology, address) = machine(0x8086, false);
    let (mut registry, unit, log) = attached(topology, address, &[InterruptMode::Pin]);
    registry.storage.start(unit, MonotonicTime::ZERO).unwrap();
    assert_eq!(*log.borrow(), ["MsiX 32"], "a start without the pin it asked for");
    let (topology, address) = machine(0x8086, false);
    let all = [InterruptMode::Pin, InterruptMode::MsiX];
    let (mut registry, unit, _) = attached(topology, address, &all);
    let refused = registry.storage.start(unit, MonotonicTime::ZERO);
    assert!(matches!(refused, Err(DriverError::Function(FunctionError::NoInterrupt { .. }))));
}

/// S1-23: a drive that firmware does not know has no addresses; it is found, set up and used.
#[test]
fn a_drive_that_firmware_did_not_recognise_is_usable() {
    let (mut topology, address) = machine(0x8086, true);
    let mut tree = scan(&mut topology, &[RootBus::FIRST]);
    let index = tree.find(address).expect("it is found all the same");
    assert_eq!(tree.functions[index].firmware_knew_it(), Some(false));
    assert_eq!(tree.functions[index].header.command & 7, 0);
    // One that answers was set up, even at address 0.
    let mut answering = tree.functions[index].clone();
    answering.header.command |= 1;
    assert_eq!(answering.firmware_knew_it(), Some(true));
    let done = assign(&mut topology, &mut tree, 0, &APERTURES);
    assert_eq!((done.failures.len(), topology.decode_faults().len()), (0, 0));
    assert_eq!(topology.faults, []);
    assert_eq!(tree.functions[index].header.command & 3, 2, "it answers now");
    assert!(tree.functions[index].header.bars[0] & !0xf != 0);
    let kept = done.resources.iter().filter(|resource| resource.address != address);
    assert!(kept.clone().count() > 0 && kept.clone().all(|resource| resource.kept));
    let (mut registry, unit, log) = attached(topology, address, &[]);
    registry.storage.start(unit, MonotonicTime::ZERO).unwrap();
    assert_eq!(*log.borrow(), ["Pin 1"]);
    let (mut topology, address) = machine(0x8086, false);
    let tree = scan(&mut topology, &[RootBus::FIRST]);
    assert_eq!(tree.functions[tree.find(address).unwrap()].firmware_knew_it(), Some(true));
}
