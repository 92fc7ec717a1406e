//! A device in its slot: configuration space, registers, and the bus that it is master of.

use ssdyno_block::Time;
use ssdyno_pci::{
    BusMaster, DmaDirection, DmaFault, Identity, InterruptMode, MsixPlace, PciDevice, SlotConfig,
};
use ssdyno_serve::Served;
use ssdyno_spec::pci::EXTENDED_CONFIG_BYTES;
use ssdyno_spec::vfio_user as layout;

use super::interrupts::Interrupts;
use super::maps::Maps;

/// Events of the device in a row before somebody looks at the socket.
const STEPS: u32 = 256;

/// The work of the server so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServerCounters {
    /// Dwords of registers read by clients.
    pub register_reads: u64,
    /// Dwords of registers written by clients.
    pub register_writes: u64,
    /// Bytes that the device read from clients' memory.
    pub dma_bytes_from_host: u64,
    /// Bytes that the device wrote to clients' memory.
    pub dma_bytes_to_host: u64,
    /// Accesses of the device to memory outside its mappings, or that it could not reach.
    pub dma_faults: u64,
    /// Interrupts sent.
    pub interrupts: u64,
}

/// A device and what is around it.
#[derive(Debug)]
pub(super) struct Slot<D> {
    pub(super) device: D,
    identity: Identity,
    config: SlotConfig,
    msix: Option<MsixPlace>,
    /// The clients' entries in the MSI-X table, dword by dword. It has no effect: a client says
    /// with eventfds where interrupts go.
    table: Vec<u32>,
    pub(super) bus: Bus,
    /// How far the device was brought.
    reached: Time,
    counters: ServerCounters,
}

/// What the device sees.
#[derive(Debug)]
pub(super) struct Bus {
    pub(super) maps: Maps,
    pub(super) interrupts: Interrupts,
    masters: bool,
    from_host: u64,
    to_host: u64,
    faults: u64,
}

/// A dword of a region, and which of its bytes an access covers.
struct Lane {
    /// A multiple of 4.
    offset: u32,
    /// Where in the dword the access begins, and where in the access, in bytes.
    first: usize,
    done: usize,
    here: usize,
}

/// Cuts an access into dwords.
fn lanes(offset: u64, bytes: usize) -> impl Iterator<Item = Lane> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let first = (at % 4) as usize;
        let here = (4 - first).min(bytes - done);
        let lane = Lane { offset: (at - first as u64) as u32, first, done, here };
        done += here;
        (here > 0).then_some(lane)
    })
}

impl<D: PciDevice> Slot<D> {
    pub(super) fn new(device: D) -> Slot<D> {
        let identity = device.identity();
        Slot {
            device,
            identity,
            config: SlotConfig::new(&identity),
            msix: identity.msix_place(),
            table: vec![0; usize::from(identity.msix_vectors) * 4],
            bus: Bus {
                maps: Maps::default(),
                interrupts: Interrupts::new(&identity),
                masters: false,
                from_host: 0,
                to_host: 0,
                faults: 0,
            },
            reached: Time::ZERO,
            counters: ServerCounters::default(),
        }
    }

    pub(super) fn counters(&self) -> ServerCounters {
        ServerCounters {
            dma_bytes_from_host: self.bus.from_host,
            dma_bytes_to_host: self.bus.to_host,
            dma_faults: self.bus.faults,
            interrupts: self.bus.interrupts.sent,
            ..self.counters
        }
    }

    /// Size of a region, in bytes; `None`: there is no such region.
    pub(super) fn region_bytes(&self, region: u32) -> Option<u64> {
        match region {
            layout::REGION_CONFIG => Some(u64::from(EXTENDED_CONFIG_BYTES)),
            _ if self.is_table(region) => self.msix.map(|place| place.bytes),
            0 | 2 | 4 => Some(self.identity.bar_bytes[region as usize / 2]),
            _ if region < layout::REGIONS => Some(0),
            _ => None,
        }
    }

    fn is_table(&self, region: u32) -> bool {
        self.msix.is_some_and(|place| u32::from(place.bar) == region)
    }

    /// Reads a part of a region, which it has.
    pub(super) fn read(&mut self, now: Time, region: u32, offset: u64, out: &mut [u8]) {
        self.run(now);
        for lane in lanes(offset, out.len()) {
            let value = self.read_dword(region, lane.offset).to_le_bytes();
            out[lane.done..lane.done + lane.here]
                .copy_from_slice(&value[lane.first..lane.first + lane.here]);
        }
    }

    /// Writes a part of a region, which it has. Where a dword is not written as a whole, the rest of it
    /// is what it reads as.
    pub(super) fn write(&mut self, now: Time, region: u32, offset: u64, bytes: &[u8]) {
        self.run(now);
        for lane in lanes(offset, bytes.len()) {
            let mut value = [0; 4];
            if lane.here < 4 {
                value = self.read_dword(region, lane.offset).to_le_bytes();
            }
            value[lane.first..lane.first + lane.here]
                .copy_from_slice(&bytes[lane.done..lane.done + lane.here]);
            self.write_dword(region, lane.offset, u32::from_le_bytes(value));
        }
        self.bus.interrupts.send(now);
    }

    fn read_dword(&mut self, region: u32, offset: u32) -> u32 {
        if region == layout::REGION_CONFIG {
            return self.config.read(offset as u16);
        }
        self.counters.register_reads += 1;
        if !self.config.decodes() {
            return !0;
        }
        if self.is_table(region) {
            // No vector is ever pending here: behind the table are zeros.
            return self.table.get(offset as usize / 4).copied().unwrap_or(0);
        }
        self.device.bar_read(self.reached, region as u8, offset)
    }

    fn write_dword(&mut self, region: u32, offset: u32, value: u32) {
        if region == layout::REGION_CONFIG {
            self.config.write(offset as u16, value);
            self.bus.masters = self.config.masters();
            return self.bus.interrupts.set_pin_off(self.config.pin_off());
        }
        self.counters.register_writes += 1;
        if !self.config.decodes() {
            return;
        }
        if self.is_table(region) {
            if let Some(entry) = self.table.get_mut(offset as usize / 4) {
                *entry = value;
            }
            return;
        }
        self.device.bar_write(self.reached, region as u8, offset, value);
        self.device.advance(self.reached, &mut self.bus);
    }

    /// Brings the device to `now`, or some of the way: what is due happens at its own times, one after
    /// another. Gives when something is due next.
    pub(super) fn run(&mut self, now: Time) -> Option<Time> {
        let mut next = self.device.next_event();
        for _ in 0..STEPS {
            let Some(due) = next.filter(|due| *due <= now) else {
                self.reached = self.reached.max(now);
                break;
            };
            let from = due.max(self.reached);
            let (reached, due) = self.device.run(from, now.max(from), &mut self.bus);
            self.reached = reached.max(self.reached);
            next = (due < Time::MAX).then_some(due);
        }
        self.bus.interrupts.send(now);
        next.into_iter().chain(self.bus.interrupts.next()).min()
    }

    /// The client has set interrupts: configuration space says which kind is on, as behind the kernel's
    /// VFIO.
    pub(super) fn show_interrupts(&mut self) {
        let (msi, msix) = self.bus.interrupts.messages();
        self.config.enable_messages(msi, msix);
    }

    /// As after power-on. Mappings and interrupt targets belong to the client and stay.
    pub(super) fn reset(&mut self, now: Time) {
        self.run(now);
        self.device.reset(self.reached);
        self.config = SlotConfig::new(&self.identity);
        self.bus.masters = false;
        self.table.fill(0);
        self.bus.interrupts.silence();
        self.bus.interrupts.set_pin_off(false);
    }

    /// The client is gone: its memory can no longer be reached.
    pub(super) fn forget_client(&mut self) {
        self.bus.maps.clear();
        self.bus.interrupts.forget_client();
    }
}

impl<D: PciDevice> Served for Slot<D> {
    fn advance(&mut self, now: Time) {
        self.run(now);
    }

    fn next_event(&self) -> Option<Time> {
        self.device.next_event().into_iter().chain(self.bus.interrupts.next()).min()
    }
}

impl Bus {
    fn check<T>(&mut self, moved: Result<T, DmaFault>) -> Result<T, DmaFault> {
        self.faults += u64::from(moved.is_err());
        moved
    }

    /// Without bus mastering nothing can be reached.
    fn refuse(&self, address: u64, bytes: u64) -> Result<(), DmaFault> {
        if self.masters { Ok(()) } else { Err(DmaFault { address, bytes }) }
    }
}

impl BusMaster for Bus {
    fn read(&mut self, address: u64, out: &mut [u8]) -> Result<(), DmaFault> {
        let bytes = out.len() as u64;
        let moved = self.refuse(address, bytes).and_then(|()| self.maps.read(address, out));
        self.check(moved)?;
        self.from_host += bytes;
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        let length = bytes.len() as u64;
        let moved = self.refuse(address, length).and_then(|()| self.maps.write(address, bytes));
        self.check(moved)?;
        self.to_host += length;
        Ok(())
    }

    fn touch(&mut self, address: u64, bytes: u64, way: DmaDirection) -> Result<(), DmaFault> {
        let moved = self.refuse(address, bytes).and_then(|()| self.maps.touch(address, bytes, way));
        self.check(moved)?;
        match way {
            DmaDirection::FromHost => self.from_host += bytes,
            DmaDirection::ToHost => self.to_host += bytes,
        }
        Ok(())
    }

    fn interrupt(&mut self, at: Time, vector: u16) -> bool {
        let pin = self.interrupts.mode() == InterruptMode::Pin;
        // A message is a write of the device: without bus mastering it goes nowhere.
        if self.masters || pin {
            self.interrupts.raise(at, vector);
        }
        pin
    }

    fn deassert(&mut self, _at: Time) {
        self.interrupts.release();
    }

    fn vectors(&self) -> u16 {
        self.interrupts.granted()
    }

    fn is_shown(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use rustix::event::{EventfdFlags, eventfd};
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use ssdyno_spec::pci::{COMMAND, COMMAND_BUS_MASTER, COMMAND_MEMORY};
    use ssdyno_spec::vfio_user::{DmaMap, SetInterrupts};

    use super::*;

    /// Each write of register 0 begins a chain of three events, 10 us apart; each copies the time into memory at
    /// 0 and interrupts.
    #[derive(Default)]
    struct Chain {
        due: Vec<Time>,
        log: Vec<Time>,
        written: Vec<(Time, u32)>,
    }

    const STEP: Time = Time::from_us(10);

    impl PciDevice for Chain {
        fn identity(&self) -> Identity {
            Identity {
                vendor: 1,
                device: 2,
                class: 3,
                revision: 4,
                bar_bytes: [4096, 0, 0],
                msix_vectors: 1,
                msi_vectors: 0,
                interrupt_pin: 1,
            }
        }
        fn bar_read(&mut self, _: Time, _: u8, _: u32) -> u32 {
            self.log.len() as u32
        }
        fn bar_write(&mut self, now: Time, _: u8, _: u32, value: u32) {
            self.written.push((now, value));
            self.due = vec![now + STEP * 3, now + STEP * 2, now + STEP];
        }
        fn reset(&mut self, _: Time) {
            *self = Chain::default();
        }
        fn advance(&mut self, now: Time, bus: &mut dyn BusMaster) {
            while self.due.pop_if(|due| *due <= now).is_some() {
                self.log.push(now);
                let _ = bus.write(0, &now.as_ps().to_le_bytes());
                bus.interrupt(now, 0);
            }
        }
        fn next_event(&self) -> Option<Time> {
            self.due.last().copied()
        }
    }

    fn map(slot: &mut Slot<Chain>) {
        let file = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 4096).unwrap();
        let asked = DmaMap { bytes: 4096.into(), flags: 3.into(), ..DmaMap::default() };
        slot.bus.maps.map(&asked, Some(file)).unwrap();
    }

    fn command(slot: &mut Slot<Chain>, command: u16) {
        slot.write(Time::ZERO, layout::REGION_CONFIG, COMMAND.into(), &command.to_le_bytes());
    }

    fn msix(slot: &mut Slot<Chain>) -> OwnedFd {
        let event = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let asked = SetInterrupts {
            flags: (layout::SET_DATA_EVENTFD | layout::SET_ACTION_TRIGGER).into(),
            index: layout::MSIX.into(),
            count: 1.into(),
            ..SetInterrupts::default()
        };
        slot.bus.interrupts.set(&asked, &[], vec![event.try_clone().unwrap()]).unwrap();
        event
    }

    /// A server that sleeps too long lets nothing take longer than the sleep: what was due happens at its
    /// own times.
    #[test]
    fn late_events_catch_up() {
        let mut slot = Slot::new(Chain::default());
        let event = msix(&mut slot);
        map(&mut slot);
        command(&mut slot, COMMAND_MEMORY | COMMAND_BUS_MASTER);
        let start = Time::from_us(7);
        slot.write(start, 0, 0, &1_u32.to_le_bytes());
        assert_eq!(slot.run(Time::from_us(8)), Some(start + STEP));
        assert_eq!(slot.run(Time::from_us(1000)), None);
        assert_eq!(slot.device.log, [1, 2, 3].map(|step| start + STEP * step));
        let mut time = [0; 8];
        slot.bus.maps.read(0, &mut time).unwrap();
        assert_eq!(u64::from_le_bytes(time), (start + STEP * 3).as_ps());
        let mut came = [0; 8];
        rustix::io::read(&event, &mut came).unwrap();
        assert_eq!((u64::from_ne_bytes(came), slot.counters().interrupts), (3, 3));
        // A register write comes when it comes, and a read brings the device up to it.
        slot.write(Time::from_us(1001), 0, 4, &5_u32.to_le_bytes());
        assert_eq!(slot.device.written.last(), Some(&(Time::from_us(1001), 5)));
        let mut read = [0; 4];
        slot.read(Time::from_us(1025), 0, 0, &mut read);
        assert_eq!(u32::from_le_bytes(read), 5);
    }

    #[test]
    fn without_bus_mastering_nothing_leaves_the_function() {
        let mut slot = Slot::new(Chain::default());
        let event = msix(&mut slot);
        map(&mut slot);
        command(&mut slot, COMMAND_MEMORY);
        slot.write(Time::ZERO, 0, 0, &[0; 4]);
        slot.run(Time::from_us(100));
        let counters = slot.counters();
        assert_eq!(
            (counters.dma_faults, counters.dma_bytes_to_host, counters.interrupts),
            (3, 0, 0)
        );
        assert!(rustix::io::read(&event, &mut [0; 8]).is_err());
    }

    /// Accesses of the device after its client has left hit nothing.
    #[test]
    fn a_client_that_is_gone_is_out_of_reach() {
        let mut slot = Slot::new(Chain::default());
        let event = msix(&mut slot);
        map(&mut slot);
        command(&mut slot, COMMAND_MEMORY | COMMAND_BUS_MASTER);
        slot.write(Time::ZERO, 0, 0, &[0; 4]);
        slot.run(STEP);
        slot.forget_client();
        slot.run(Time::from_us(100));
        assert_eq!((slot.device.log.len(), slot.counters().dma_faults), (3, 2));
        let mut came = [0; 8];
        rustix::io::read(&event, &mut came).unwrap();
        assert_eq!(u64::from_ne_bytes(came), 1);
    }

    #[test]
    fn a_reset_leaves_what_the_client_gave() {
        let mut slot = Slot::new(Chain::default());
        let event = msix(&mut slot);
        map(&mut slot);
        let on = COMMAND_MEMORY | COMMAND_BUS_MASTER;
        command(&mut slot, on);
        slot.write(Time::ZERO, 0, 0, &[0; 4]);
        slot.reset(Time::from_us(1));
        assert_eq!((slot.run(Time::from_us(100)), slot.device.log.len()), (None, 0));
        command(&mut slot, on);
        slot.write(Time::from_us(200), 0, 0, &[0; 4]);
        slot.run(Time::from_us(300));
        assert_eq!(slot.counters().dma_bytes_to_host, 24);
        assert!(rustix::io::read(&event, &mut [0; 8]).is_ok());
    }
}
