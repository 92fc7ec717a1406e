//! A device in its slot: configuration space, registers, and the bus that it is master of.

use ssdyno_block::Time;
use ssdyno_pci::{
    BusMaster, DmaDirection, DmaFault, Identity, InterruptMode, MsixPlace, PciDevice, SlotConfig,
};
use ssdyno_spec::pci::EXTENDED_CONFIG_BYTES;
use ssdyno_spec::vfio_user as layout;

use super::interrupts::Interrupts;
use super::maps::Maps;

/// Events of the device in a row before somebody looks at the socket.
const STEPS: u32 = 256;

/// What the server did so far.
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
    /// Accesses of the device to memory that nobody gave it, or that it could not reach.
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
    /// What clients put into the MSI-X table, dword by dword. It has no effect: a client says with
    /// eventfds where interrupts go.
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

    /// As after power-on. What is mapped and where interrupts go is the client's affair and stays.
    pub(super) fn reset(&mut self, now: Time) {
        self.run(now);
        self.device.reset(self.reached);
        self.config = SlotConfig::new(&self.identity);
        self.bus.masters = false;
        self.table.fill(0);
        self.bus.interrupts.silence();
        self.bus.interrupts.set_pin_off(false);
    }

    /// The client is gone: nothing of it can be reached any more.
    pub(super) fn forget_client(&mut self) {
        self.bus.maps.clear();
        self.bus.interrupts.forget_client();
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
