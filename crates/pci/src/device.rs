//! A simulated device's view of the host, and the host's view of it.

use ssdyno_block::{FaultPlan, Time};

/// Why a device could not access host memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the device accessed {bytes} bytes at {address:#x}, which are not in any mapped memory")]
pub struct DmaFault {
    /// Where.
    pub address: u64,
    /// How much.
    pub bytes: u64,
}

/// Which way a device moves data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DmaDirection {
    /// Out of host memory.
    FromHost,
    /// Into host memory.
    ToHost,
}

/// The bus as a device sees it: it is master, host memory is the slave.
pub trait BusMaster {
    /// Copies out of host memory.
    ///
    /// # Errors
    /// The range, or a part of it, is not shared with the device.
    fn read(&mut self, address: u64, out: &mut [u8]) -> Result<(), DmaFault>;
    /// Copies into host memory.
    ///
    /// # Errors
    /// As for [`read`](BusMaster::read).
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DmaFault>;
    /// Checks an access as [`read`](BusMaster::read) and [`write`](BusMaster::write) do, and moves
    /// nothing: for devices whose contents nobody looks at.
    ///
    /// # Errors
    /// As for [`read`](BusMaster::read).
    fn touch(&mut self, address: u64, bytes: u64, way: DmaDirection) -> Result<(), DmaFault>;
    /// Sends interrupt `vector` at `at`, not before the time of the call. In pin mode vector 0 is
    /// the pin: it stays asserted until [`deassert`](BusMaster::deassert), which is told by true.
    fn interrupt(&mut self, at: Time, vector: u16) -> bool;
    /// The pin is released.
    fn deassert(&mut self, at: Time);
    /// How many vectors the device may use: 1 with the pin, what the host granted with MSI; with MSI-X as
    /// many as the device's table has, which it knows itself.
    fn vectors(&self) -> u16 {
        u16::MAX
    }
    /// Something has happened after which [`PciDevice::run`] stops: the host may answer.
    fn is_shown(&self) -> bool {
        true
    }
}

/// A device's part of its configuration space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Vendor identifier.
    pub vendor: u16,
    /// Device identifier.
    pub device: u16,
    /// Base class, subclass, programming interface, as in 0x010802 for NVMe.
    pub class: u32,
    /// Revision.
    pub revision: u8,
    /// Size of each base address register, in bytes: a power of two, or 0. All are 64-bit memory
    /// in pairs (0, 2, 4).
    pub bar_bytes: [u64; 3],
    /// Vectors of MSI-X; 0 if there is none.
    pub msix_vectors: u16,
    /// Vectors of MSI: 0 or a power of two to 32.
    pub msi_vectors: u16,
    /// 0 none, 1 to 4: INTA to INTD.
    pub interrupt_pin: u8,
}

/// Where a function has its MSI-X table; the pending bits follow it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MsixPlace {
    /// Its base address register: 0, 2 or 4.
    pub bar: u8,
    /// Where the pending bits begin, in bytes.
    pub pending_offset: u32,
    /// Size of the register's memory, in bytes.
    pub bytes: u64,
}

impl Identity {
    /// The first pair of registers that the device leaves free holds the table; `None` without
    /// MSI-X.
    ///
    /// # Panics
    /// If the device leaves none free.
    pub fn msix_place(&self) -> Option<MsixPlace> {
        if self.msix_vectors == 0 {
            return None;
        }
        let Some(free) = self.bar_bytes.iter().position(|&bytes| bytes == 0) else {
            panic!("{self:?} leaves no base address register for the MSI-X table");
        };
        let pending_offset = u32::from(self.msix_vectors) * 16;
        let pending_bytes = u32::from(self.msix_vectors.div_ceil(64)) * 8;
        let bytes = u64::from(pending_offset + pending_bytes).next_power_of_two().max(4096);
        Some(MsixPlace { bar: free as u8 * 2, pending_offset, bytes })
    }
}

/// A device behind the connector.
///
/// The device owes: nothing happens but in [`bar_write`](PciDevice::bar_write), whose effect shows
/// with the next [`advance`](PciDevice::advance), and in `advance`; it touches host memory in
/// `advance` alone; malformed input ends in an error status, never in a panic.
///
/// The bus owes: `now` never goes back; `advance` is called after each `bar_write` that did not [come
/// early](PciDevice::may_come_early), and at every time that [`next_event`](PciDevice::next_event) names.
pub trait PciDevice {
    /// Identity of the device.
    fn identity(&self) -> Identity;
    /// Reads 4 bytes of `bar`.
    fn bar_read(&mut self, now: Time, bar: u8, offset: u32) -> u32;
    /// Writes 4 bytes of `bar`: they arrive at `now`.
    fn bar_write(&mut self, now: Time, bar: u8, offset: u32, value: u32);
    /// True if nobody could tell whether this write arrives at its time or now, before it: the bus
    /// may then deliver it at once, without an [`advance`](PciDevice::advance). No other write is on its
    /// way. Most registers are not like that; a doorbell that makes room where there is enough is.
    #[inline]
    fn may_come_early(&self, bar: u8, offset: u32, value: u32) -> bool {
        let _ = (bar, offset, value);
        false
    }
    /// A function level reset (PCIe 5.0, clause 6.6.2): registers are as after power-on, and nothing that was under way
    /// reaches host memory or interrupts any more. The data on the medium stays. The device was brought to `now`
    /// before; its configuration space is the bus's affair.
    fn reset(&mut self, now: Time);
    /// Brings the device to `now`.
    fn advance(&mut self, now: Time, bus: &mut dyn BusMaster);
    /// The next time at which `advance` may find something to do.
    fn next_event(&self) -> Option<Time>;
    /// Does what is due up to `until` in the order of time, as `advance` at each of its events would;
    /// gives the time of the last thing done, and that of the next event ([`Time::MAX`] for none). It
    /// may stop anywhere in between, and does so where [`BusMaster::is_shown`] becomes true. What was
    /// due before `from` happens at `from`, which is given back also when nothing was due.
    fn run(&mut self, from: Time, until: Time, bus: &mut dyn BusMaster) -> (Time, Time) {
        let mut at = from;
        if let Some(due) = self.next_event().filter(|due| *due <= until) {
            at = due.max(from);
            self.advance(at, bus);
        }
        (at, self.next_event().unwrap_or(Time::MAX))
    }
}

/// A device in which faults can be injected.
///
/// It carries out what commands and interrupts meet; [`SimulatedPci::inject_due`](crate::SimulatedPci::inject_due),
/// what happens to the whole.
pub trait FaultyDevice: PciDevice {
    /// From now on `plan` hits commands and interrupts, instead of any before.
    fn arm(&mut self, plan: FaultPlan);
    /// The plan that hits it; `None` where nothing is injected.
    fn fault_plan(&self) -> Option<&FaultPlan>;
    /// As [`fault_plan`](FaultyDevice::fault_plan), to change it; an empty one where there was none.
    fn fault_plan_mut(&mut self) -> &mut FaultPlan;
    /// It hangs until it is reset.
    fn hang_until_reset(&mut self);
}
