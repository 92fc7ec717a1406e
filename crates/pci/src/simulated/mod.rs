//! A simulated device at the connector, with what lies between it and its driver: posted writes,
//! reads that wait, interrupts, and memory that forgives nothing.
//!
//! The order of calls: the runner says what time it is ([`SimulatedPci::set_now`]), calls the driver,
//! takes what the driver's core had to wait ([`SimulatedPci::take_stall`]), and later brings the
//! device to the times that [`SimulatedPci::next_event`] names.

mod interrupts;
mod memory;
mod run;
#[cfg(test)]
mod tests;
mod writes;

use alloc::boxed::Box;
use alloc::vec::Vec;

use ssdyno_block::{Fault, FaultPlan, FaultSite, FaultTrigger, Time};

use crate::{
    BusMaster, DmaDirection, DmaFault, DmaRegion, FunctionError, Identity, InterruptMode,
    MsixPlace, PciDevice, PciFunction, SlotConfig,
};
use interrupts::Interrupts;
use memory::Memory;
pub use memory::RecordedFault;
use writes::{Write, Writes};

/// What the connector costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PciTiming {
    /// From a register write of the host to its arrival at the device. The host does not wait.
    pub posted_write: Time,
    /// From a register read of the host to its answer. The host waits.
    pub read_round_trip: Time,
    /// From the device's interrupt to the first instruction of the host's handler.
    pub interrupt: Time,
}

/// What crossed the connector.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PciCounters {
    /// Register reads of the host.
    pub mmio_reads: u64,
    /// Register writes of the host.
    pub mmio_writes: u64,
    /// Interrupts that the device sent; those of a pin count by assertion.
    pub interrupts: u64,
    /// Bytes that the device read from host memory.
    pub dma_bytes_from_host: u64,
    /// Bytes that the device wrote to host memory.
    pub dma_bytes_to_host: u64,
}

/// A device of type `D`, as a [`PciFunction`] for its driver and a thing with events for the runner.
///
/// Stricter than hardware: memory decoding and bus mastering must be switched on before they are
/// used; a driver that leaves its region or uses a freed one panics; what a device touches that is not
/// its own is kept in [`faults`](SimulatedPci::faults), and whoever runs it must fail on that.
#[derive(Debug)]
pub struct SimulatedPci<D> {
    device: D,
    identity: Identity,
    timing: PciTiming,
    config: SlotConfig,
    msix: Option<MsixPlace>,
    bus: Bus,
    writes: Writes,
    /// The host's time: set by the runner, put forward by reads.
    now: Time,
    stall: Time,
    /// How far the device was brought.
    device_now: Time,
    /// The device's next event, [`Time::MAX`] for none, unless it is `stale`.
    device_due: Time,
    /// Somebody else had the device in hand.
    stale: bool,
    /// Register accesses since they were last taken, in one word: reads in its upper half.
    accesses: u64,
    /// Those that were taken.
    mmio_reads: u64,
    mmio_writes: u64,
    gone: bool,
    /// A removal or a standstill was requested: otherwise their times are not checked.
    faulty: bool,
    removal: Time,
    stuck: (Time, Time),
    /// How far the runner came while the device stood still, which `device_now` does not tell.
    stood: Time,
}

/// The device's view: memory and interrupts.
#[derive(Debug)]
struct Bus {
    memory: Memory,
    interrupts: Interrupts,
    masters: bool,
    /// The host looks into memory without being told to.
    watched: bool,
    /// Since this was reset the device sent an interrupt or wrote to memory that is watched.
    shown: bool,
    /// Bus mastering was on at some time: what the device does after that was cut off on purpose.
    mastered: bool,
    from_host: u64,
    to_host: u64,
}

impl<D: PciDevice> SimulatedPci<D> {
    /// `device` in a slot, after a reset: its driver has to switch on memory decoding and bus
    /// mastering.
    ///
    /// # Panics
    /// If the device's identity cannot be put into configuration space: a BAR that is no power of
    /// two, or none left for the MSI-X table.
    pub fn new(device: D, timing: PciTiming) -> SimulatedPci<D> {
        let identity = device.identity();
        let msix = identity.msix_place();
        SimulatedPci {
            device,
            identity,
            timing,
            config: SlotConfig::new(&identity),
            msix,
            bus: Bus {
                memory: Memory::new(),
                interrupts: Interrupts::new(timing.interrupt, identity.msix_vectors),
                masters: false,
                watched: true,
                shown: false,
                mastered: false,
                from_host: 0,
                to_host: 0,
            },
            writes: Writes::new(),
            now: Time::ZERO,
            stall: Time::ZERO,
            device_now: Time::ZERO,
            device_due: Time::ZERO,
            stale: true,
            accesses: 0,
            mmio_reads: 0,
            mmio_writes: 0,
            gone: false,
            faulty: false,
            removal: Time::MAX,
            stuck: (Time::MAX, Time::MAX),
            stood: Time::ZERO,
        }
    }

    /// Says in configuration space what link the device has: PCI Express `generation`, `lanes`. It
    /// is 3 and 4 otherwise. How fast data moves is the device's own affair.
    pub fn set_link(&mut self, generation: u8, lanes: u8) {
        self.config.set_link(generation, lanes);
    }

    /// Gives the driver at most `bytes` of DMA memory.
    pub fn set_memory_limit(&mut self, bytes: u64) {
        self.bus.memory.limit_bytes = bytes;
    }

    /// DMA memory that the driver holds, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.bus.memory.allocated_bytes()
    }

    /// Whether the host looks into memory without being told to, as one that polls does: then
    /// [`run`](SimulatedPci::run) stops when the device has written there. It does until this is called.
    pub fn watch_memory(&mut self, watch: bool) {
        self.bus.watched = watch;
    }

    /// The function hangs or is removed (surprise removal) at a time. While it hangs registers can be read, but
    /// writes wait, and nothing moves; once it is removed reads give ones, and writes are lost. One of each at a
    /// time: a later call replaces an earlier one. Where a hang under way is replaced by one that is over, or to
    /// come, what it had put off happens now.
    ///
    /// # Panics
    /// With any other fault: those hit commands or interrupts.
    pub fn inject(&mut self, at: Time, fault: Fault) {
        self.faulty = true;
        match fault {
            Fault::Remove => self.removal = at,
            Fault::Hang(length) => {
                let now = self.now.max(self.stood);
                if now >= self.stuck.0 && now < self.stuck.1 {
                    self.device_now = self.device_now.max(now);
                }
                self.stuck = (at, at.saturating_add(length));
            }
            fault => panic!("a function hangs or is removed, but meets no {fault:?}"),
        }
    }

    /// An interrupt meets `fault` on its way to the host: the one with this number, counted from 0 in the order of
    /// sending.
    pub fn inject_interrupt(&mut self, number: u64, fault: Fault) {
        let plan = self.bus.interrupts.faults.get_or_insert_with(|| Box::new(FaultPlan::new(0)));
        plan.add(FaultSite::Interrupt, fault, FaultTrigger::Number(number));
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device, for its own hooks.
    pub fn device_mut(&mut self) -> &mut D {
        self.stale = true;
        &mut self.device
    }

    /// The transfers over the connector so far.
    pub fn counters(&self) -> PciCounters {
        PciCounters {
            mmio_reads: self.mmio_reads + (self.accesses >> 32),
            mmio_writes: self.mmio_writes + u64::from(self.accesses as u32),
            interrupts: self.bus.interrupts.sent,
            dma_bytes_from_host: self.bus.from_host,
            dma_bytes_to_host: self.bus.to_host,
        }
    }

    /// The device's accesses to memory that is not its own. A run with any has failed.
    pub fn faults(&self) -> &[RecordedFault] {
        &self.bus.memory.faults
    }

    /// The time of the core that calls the driver next. It may lie before that of another core's call:
    /// their writes arrive in the order of the calls.
    #[inline]
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// The time that the host waited for reads since the last call.
    #[inline]
    pub fn take_stall(&mut self) -> Time {
        core::mem::take(&mut self.stall)
    }

    /// Register accesses since the last call: reads and writes.
    #[inline]
    pub fn take_accesses(&mut self) -> (u32, u32) {
        let accesses = core::mem::take(&mut self.accesses);
        let (reads, writes) = ((accesses >> 32) as u32, accesses as u32);
        self.mmio_reads += u64::from(reads);
        self.mmio_writes += u64::from(writes);
        (reads, writes)
    }

    /// Appends the vectors of the interrupts that reached the host by `now`.
    #[inline]
    pub fn take_interrupts(&mut self, now: Time, out: &mut Vec<u16>) {
        self.bus.interrupts.take(now, out);
    }

    /// True if the device has sent an interrupt of `vector` that the host has not
    /// [taken](SimulatedPci::take_interrupts).
    pub fn interrupt_is_coming(&self, vector: u16) -> bool {
        self.bus.interrupts.is_coming(vector)
    }

    /// True once the device was removed.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// True if nobody can tell whether this write arrives now or at its time. With a pin everybody
    /// can: what is read releases it.
    #[inline]
    fn may_come_early(&self, bar: u8, offset: u32, value: u32) -> bool {
        // A write comes early only if no other write is on its way: PCI keeps posted writes in
        // order, and an early write must not overtake an earlier one that waits for its time.
        self.writes.due() == Time::MAX
            && self.bus.interrupts.mode != InterruptMode::Pin
            && self.stuck.0 == Time::MAX
            && self.msix.is_none_or(|place| place.bar != bar)
            && self.device.may_come_early(bar, offset, value)
    }

    /// Panics where a driver forgot to switch on memory decoding, or leaves the BAR.
    #[inline]
    fn check_access(&self, bar: u8, offset: u32) {
        assert!(
            self.config.decodes(),
            "a register is accessed, but the function does not decode memory: set bit 1 of the \
             command register and power state D0 first"
        );
        assert!(
            offset.is_multiple_of(4) && u64::from(offset) < self.bar_bytes(bar),
            "register {offset:#x} is not in BAR {bar}"
        );
    }
}

impl<D: PciDevice> PciFunction for SimulatedPci<D> {
    fn config_read(&mut self, offset: u16) -> u32 {
        // No device answers the read after a removal, and the root complex returns ones. Drivers
        // detect a surprise removal by this value, so an error here would hide their own check.
        if self.gone { !0 } else { self.config.read(offset) }
    }

    fn config_write(&mut self, offset: u16, value: u32) {
        if self.gone {
            return;
        }
        // The mask is compared before and after the write. Pending vectors are sent only on a
        // change; a driver that rewrites the same value must not produce a second interrupt.
        let masked = self.config.function_masked();
        self.config.write(offset, value);
        self.bus.masters = self.config.masters();
        self.bus.mastered |= self.config.masters();
        if self.config.function_masked() != masked {
            self.bus.interrupts.mask_function(self.now, !masked);
        }
        self.bus.interrupts.set_pin_off(self.now, self.config.pin_off());
    }

    #[inline]
    fn bar_bytes(&self, bar: u8) -> u64 {
        match self.msix {
            Some(place) if place.bar == bar => place.bytes,
            _ if bar.is_multiple_of(2) => {
                self.identity.bar_bytes.get(usize::from(bar / 2)).copied().unwrap_or(0)
            }
            _ => 0,
        }
    }

    fn bar_read32(&mut self, bar: u8, offset: u32) -> u32 {
        self.accesses += 1 << 32;
        let asked = self.now;
        // A read pushes the writes before it along (PCIe 5.0, table 2-40): it is not there earlier.
        let arrives = asked + self.timing.read_round_trip / 2;
        let arrives = self.writes.after_all(arrives);
        self.now = arrives + self.timing.read_round_trip / 2;
        // A read is non-posted: the core waits for the completion. The thesis counts four
        // uncacheable reads per AHCI command as 8000 cycles (S1-4), so the model must charge this
        // wait to the host.
        self.stall += self.now - asked;
        self.advance(arrives);
        if self.gone {
            return !0;
        }
        self.check_access(bar, offset);
        // The device can already be ahead of this read, because another core with a later clock
        // called first. The maximum keeps the time of the device monotone.
        self.device_now = self.device_now.max(arrives);
        match self.msix {
            Some(place) if place.bar == bar => match offset.checked_sub(place.pending_offset) {
                Some(bits) => self.bus.interrupts.pending_read(bits),
                None => self.bus.interrupts.table_read(offset),
            },
            _ => self.device.bar_read(self.device_now, bar, offset),
        }
    }

    #[inline(always)]
    fn bar_write32(&mut self, bar: u8, offset: u32, value: u32) {
        self.accesses += 1;
        if self.gone {
            return;
        }
        self.check_access(bar, offset);
        // A posted write costs the core nothing: the store leaves the CPU and the core continues.
        // Only the arrival at the device is later by the latency of the link.
        let arrives = self.now + self.timing.posted_write;
        if self.may_come_early(bar, offset, value) {
            self.writes.set_out(arrives);
            return self.device.bar_write(self.device_now, bar, offset, value);
        }
        self.writes.push(Write { arrives, bar, offset, value });
    }

    fn dma_allocate(&mut self, bytes: u32) -> Result<DmaRegion, FunctionError> {
        self.bus.memory.allocate(bytes)
    }

    fn dma_free(&mut self, region: DmaRegion) {
        self.bus.memory.free(region);
    }

    #[inline]
    fn dma_read(&mut self, region: &DmaRegion, offset: u32, out: &mut [u8]) {
        out.copy_from_slice(self.bus.memory.host(region, offset, out.len()));
    }

    #[inline]
    fn dma_write(&mut self, region: &DmaRegion, offset: u32, bytes: &[u8]) {
        self.bus.memory.host(region, offset, bytes.len()).copy_from_slice(bytes);
    }

    #[inline]
    fn dma_load32(&mut self, region: &DmaRegion, offset: u32) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.bus.memory.host(region, offset, 4));
        u32::from_le_bytes(bytes)
    }

    fn enable_interrupts(
        &mut self,
        mode: InterruptMode,
        vectors: u16,
    ) -> Result<u16, FunctionError> {
        if self.gone {
            return Err(FunctionError::Gone);
        }
        let has = match mode {
            InterruptMode::Pin => u16::from(self.identity.interrupt_pin != 0),
            InterruptMode::Msi => self.identity.msi_vectors,
            InterruptMode::MsiX => self.identity.msix_vectors,
        };
        if has == 0 {
            return Err(FunctionError::NoInterrupt { mode });
        }
        let granted = vectors.clamp(1, has);
        // MSI message control has a field of three bits for the exponent, so a function receives 1,
        // 2, 4, ... 32 vectors. MSI-X has one table entry per vector and no such restriction.
        let granted = if mode == InterruptMode::Msi { 1 << granted.ilog2() } else { granted };
        let msi = (mode == InterruptMode::Msi).then_some(granted);
        self.config.enable_messages(msi, mode == InterruptMode::MsiX);
        self.bus.interrupts.switch(mode, granted);
        Ok(granted)
    }
}

impl Bus {
    /// The function may not reach memory. That its driver forgot to let it is worth a record; that it
    /// shut it out is not.
    #[cold]
    fn refuse(&mut self, address: u64, bytes: u64, way: DmaDirection) -> DmaFault {
        // A driver that switches bus mastering off stops the device on purpose, for example before
        // a reset. Recording these accesses would make every orderly shutdown of a run fail.
        if self.mastered {
            return DmaFault { address, bytes };
        }
        self.memory.record(address, bytes, way)
    }
}

impl BusMaster for Bus {
    #[inline]
    fn read(&mut self, address: u64, out: &mut [u8]) -> Result<(), DmaFault> {
        if !self.masters {
            return Err(self.refuse(address, out.len() as u64, DmaDirection::FromHost));
        }
        // The counter changes only after a successful access. Otherwise it would include bytes of
        // rejected transfers, which no memory has sent or received.
        self.memory.read(address, out)?;
        self.from_host += out.len() as u64;
        Ok(())
    }

    #[inline]
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        if !self.masters {
            return Err(self.refuse(address, bytes.len() as u64, DmaDirection::ToHost));
        }
        self.memory.write(address, bytes)?;
        self.shown |= self.watched;
        self.to_host += bytes.len() as u64;
        Ok(())
    }

    #[inline]
    fn touch(&mut self, address: u64, bytes: u64, way: DmaDirection) -> Result<(), DmaFault> {
        if !self.masters {
            return Err(self.refuse(address, bytes, way));
        }
        self.memory.touch(address, bytes, way)?;
        match way {
            DmaDirection::FromHost => self.from_host += bytes,
            DmaDirection::ToHost => self.to_host += bytes,
        }
        Ok(())
    }

    #[inline]
    fn interrupt(&mut self, at: Time, vector: u16) -> bool {
        let pin = self.interrupts.mode == InterruptMode::Pin;
        // A message is a write of the device: without bus mastering it goes nowhere.
        if self.masters || pin {
            self.shown = true;
            self.interrupts.raise(at, vector);
        }
        pin
    }

    #[inline]
    fn deassert(&mut self, _at: Time) {
        self.interrupts.release_pin();
    }

    fn vectors(&self) -> u16 {
        self.interrupts.granted()
    }

    #[inline]
    fn is_shown(&self) -> bool {
        self.shown
    }
}
