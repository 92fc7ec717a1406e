//! Commands: from the microprocessor that has understood one to its answer.

use ssdyno_block::{Fault, Op, Request, Status, Time};
use ssdyno_pci::{BusMaster, DmaDirection};
use ssdyno_spec::ring as layout;
use ssdyno_spec::ring::{Descriptor, ErrorKind, RingCommandKind};

use super::RingCard;
use super::block::Local;
use super::dma::Work;
use super::event::Event;
use super::media::Access;

impl RingCard {
    /// The microprocessor has understood command `number`.
    pub(super) fn command(&mut self, now: Time, number: u32, bus: &mut dyn BusMaster) {
        let ordinal = self.faults.start();
        let slot = self.block.slot(number);
        let Local { descriptor, error, .. } = *self.block.get(slot);
        if let Some(error) = error.or_else(|| self.refuse(&descriptor)) {
            return self.done(slot, Some(error));
        }
        if self.faults.is_armed() && self.is_hit(now, slot, ordinal) {
            return;
        }
        self.begin(now, slot, bus);
    }

    /// True if a fault hits the command in `slot`, which does not begin now.
    #[cold]
    fn is_hit(&mut self, now: Time, slot: usize, ordinal: u64) -> bool {
        match self.faults.of_command(ordinal) {
            Some(Fault::Error) => {
                self.block.get_mut(slot).fails = true;
                false
            }
            Some(Fault::Delay(by)) => {
                self.queue.schedule(now + by, Event::Begin(slot as u32));
                true
            }
            // Its block never comes back: a reset ends it.
            Some(Fault::Drop) => true,
            Some(Fault::Hang(_)) => {
                self.faults.hangs = true;
                true
            }
            Some(Fault::Remove | Fault::Corrupt) | None => false,
        }
    }

    /// The command in `slot` begins.
    pub(super) fn begin(&mut self, now: Time, slot: usize, bus: &mut dyn BusMaster) {
        match self.block.get(slot).descriptor.kind() {
            // The data of a write crosses the link before the medium is touched; that of a read
            // comes out of the medium first. Both directions therefore cost different sums
            // (S0-23).
            RingCommandKind::Write => self.queue_data(slot, bus, DmaDirection::FromHost),
            RingCommandKind::Read | RingCommandKind::Trim | RingCommandKind::Flush => {
                self.access(now, slot, bus)
            }
        }
    }

    /// Why a command cannot be.
    fn refuse(&self, descriptor: &Descriptor) -> Option<ErrorKind> {
        let page = u64::from(layout::PAGE_BYTES);
        let (offset, pages) = (descriptor.device_offset.get(), descriptor.pages.get());
        let end = (offset / page).checked_add(u64::from(pages));
        let inside =
            offset.is_multiple_of(page) && end.is_some_and(|end| end <= self.storage.media.pages);
        let (sector, sectors) = (descriptor.first_sector, descriptor.sectors);
        let per_page = (layout::PAGE_BYTES / layout::SECTOR_BYTES) as u8;
        let sound = match descriptor.kind() {
            RingCommandKind::Read | RingCommandKind::Write => {
                let end = sector.checked_add(sectors);
                pages == 1 && sectors > 0 && end.is_some_and(|end| end <= per_page)
            }
            RingCommandKind::Trim | RingCommandKind::Flush => true,
        };
        (!inside || !sound).then_some(ErrorKind::OutOfRange)
    }

    /// The medium's part of the command in `slot` begins.
    fn access(&mut self, now: Time, slot: usize, bus: &mut dyn BusMaster) {
        let descriptor = self.block.get(slot).descriptor;
        let sector = u64::from(layout::SECTOR_BYTES);
        let start = descriptor.device_offset.get() + u64::from(descriptor.first_sector) * sector;
        let length = u32::from(descriptor.sectors) * layout::SECTOR_BYTES;
        let request = match descriptor.kind() {
            RingCommandKind::Read => Request::read(start, length),
            RingCommandKind::Write => Request::write(start, length),
            RingCommandKind::Trim => {
                let bytes = u64::from(descriptor.pages.get()) * u64::from(layout::PAGE_BYTES);
                if bytes == 0 {
                    return self.accessed(slot, bus);
                }
                // A descriptor of more than 4 GiB less a page exceeds the range of a request.
                let Ok(length_bytes) = u32::try_from(bytes) else {
                    return self.done(slot, Some(ErrorKind::OutOfRange));
                };
                let offset_bytes = descriptor.device_offset.get();
                self.storage.clear(offset_bytes, bytes);
                Request { op: Op::Trim, offset_bytes, length_bytes }
            }
            RingCommandKind::Flush => Request::flush(),
        };
        match self.storage.access(now, slot, request, &mut self.log) {
            // Its data come out of it while they cross the link.
            Ok(Access::Now) if descriptor.kind() == RingCommandKind::Read => {
                self.queue_data(slot, bus, DmaDirection::ToHost);
            }
            Ok(Access::Now) => self.accessed(slot, bus),
            Ok(Access::At(at)) => self.queue.schedule(at, Event::Medium(slot as u32)),
            Ok(Access::Later) => {}
            Err(_) => self.done(slot, Some(ErrorKind::OutOfRange)),
        }
    }

    /// The medium has done its part.
    pub(super) fn accessed(&mut self, slot: usize, bus: &mut dyn BusMaster) {
        match self.block.get(slot).descriptor.kind() {
            _ if self.block.get(slot).fails => self.done(slot, Some(ErrorKind::Medium)),
            RingCommandKind::Read => self.queue_data(slot, bus, DmaDirection::ToHost),
            RingCommandKind::Write | RingCommandKind::Trim | RingCommandKind::Flush => {
                self.done(slot, None)
            }
        }
    }

    /// Takes what the flash has done up to `now`.
    pub(super) fn flash(&mut self, now: Time, bus: &mut dyn BusMaster) {
        let mut answers = self.storage.reap(now, &mut self.log);
        for answer in answers.drain(..) {
            // Answers to what was dropped by a reset are for nobody.
            let Some(slot) = self.storage.slot(answer.token) else { continue };
            match answer.status {
                Status::Ok => self.accessed(slot, bus),
                Status::ReadOnly => self.done(slot, Some(ErrorKind::ReadOnly)),
                Status::Error | Status::Abandoned => self.done(slot, Some(ErrorKind::Medium)),
            }
        }
        self.storage.reaped(answers);
        self.work(now);
    }

    /// Queues the page of a command, unless it may not be touched.
    fn queue_data(&mut self, slot: usize, bus: &mut dyn BusMaster, way: DmaDirection) {
        let address = self.block.get(slot).descriptor.host_address.get();
        let bytes = u64::from(layout::PAGE_BYTES);
        // Where data is kept, moving it is the check.
        let checked = self.storage.keeps_contents() || bus.touch(address, bytes, way).is_ok();
        if address.checked_add(bytes).is_none() || !checked {
            return self.done(slot, Some(ErrorKind::HostMemory));
        }
        let work = match way {
            DmaDirection::ToHost => Work::Read(slot as u32),
            DmaDirection::FromHost => Work::Write(slot as u32),
        };
        self.dma.queue_data(work, address, bytes);
    }

    /// The page of a command has crossed the link.
    pub(super) fn data_done(&mut self, now: Time, work: Work, bus: &mut dyn BusMaster) {
        match work {
            Work::Read(slot) if self.block.get(slot as usize).fails => {
                self.done(slot as usize, Some(ErrorKind::Medium));
            }
            Work::Read(slot) => {
                let read = &self.block.get(slot as usize).descriptor;
                let error = self.storage.give_data(read, bus).err();
                self.done(slot as usize, error);
            }
            Work::Write(slot) => {
                let write = &self.block.get(slot as usize).descriptor;
                match self.storage.take_data(write, bus) {
                    Ok(()) => self.access(now, slot as usize, bus),
                    Err(error) => self.done(slot as usize, Some(error)),
                }
            }
            Work::Fetch(..) | Work::Prefetch(..) | Work::Return(..) => {}
        }
    }
}
