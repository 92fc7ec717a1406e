//! Blocks, commands and responses.

use ssdyno_block::{Fault, FaultSite, Op, Request, Status, Time, Token};
use ssdyno_engine::events::{Activity, PartKind};
use ssdyno_pci::{BusMaster, DmaDirection};
use ssdyno_spec::ring as layout;
use ssdyno_spec::ring::{Descriptor, ErrorKind, RingCommandKind, RingFault};
use zerocopy::{FromZeros, IntoBytes};

use super::dma::{Transfer, Work};
use super::media::Access;
use super::{Job, RingCard, SLOT_BITS, Setup};

/// Where a command stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum State {
    /// Nothing here.
    #[default]
    Empty,
    /// Fetched or under way.
    Pending,
    /// The answer is known.
    Done,
    /// Handed to a return.
    Returning,
}

/// A descriptor in the card.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local {
    /// As fetched.
    pub(super) descriptor: Descriptor,
    pub(super) state: State,
    pub(super) error: Option<ErrorKind>,
    /// The medium fails it: its time is taken first.
    fails: bool,
}

impl Default for Local {
    fn default() -> Local {
        Local {
            descriptor: Descriptor::new_zeroed(),
            state: State::Empty,
            error: None,
            fails: false,
        }
    }
}

/// Numbers go round; `a` is before `b` if the shorter way leads up.
pub(super) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl RingCard {
    pub(super) fn slot(&self, number: u32) -> usize {
        number as usize & (self.local.len() - 1)
    }

    /// The descriptor in `slot`, as fetched.
    pub(super) fn descriptor(&self, slot: usize) -> &Descriptor {
        &self.local[slot].descriptor
    }

    /// Address of descriptor `number`, and how many from it on are contiguous.
    pub(super) fn place(setup: &Setup, number: u32) -> (u64, u32) {
        let index = number & (setup.size - 1);
        let address = setup.ring + u64::from(index) * u64::from(layout::DESCRIPTOR_BYTES);
        (address, setup.size - index)
    }

    /// Cuts `count` descriptors from `first` on where the ring wraps around, and queues a transfer
    /// for each piece; gives the number of pieces.
    fn queue_pieces(&mut self, first: u32, count: u32, make: fn(u32, u32) -> Work) -> u32 {
        let Some(setup) = self.setup else { return 0 };
        let (mut at, mut left, mut pieces) = (first, count, 0);
        while left > 0 {
            let (address, contiguous) = RingCard::place(&setup, at);
            let size = left.min(contiguous);
            let bytes = u64::from(size * layout::DESCRIPTOR_BYTES);
            self.descriptors.push_back(Transfer { work: make(at, size), address, bytes });
            at = at.wrapping_add(size);
            left -= size;
            pieces += 1;
        }
        pieces
    }

    /// The host gives a block (S0-13).
    pub(super) fn doorbell(&mut self, now: Time, offset: u32, size: u32) {
        let Some(setup) = self.setup else { return };
        if self.outstanding || self.early_doorbell.is_some() {
            return self.fail(RingFault::BlockOutstanding);
        }
        if self.prefetch_pieces > 0 {
            self.early_doorbell = Some((offset, size));
            return;
        }
        let held = self.fetched.wrapping_sub(self.end);
        let due = self.end & (setup.size - 1);
        let most = self.config.card.max_block.min(setup.size);
        let fits = (1..=most).contains(&size) && size >= held && offset < setup.size;
        if !fits || !self.fresh && offset != due {
            return self.fail(RingFault::BadBlock);
        }
        if self.fresh {
            // Numbers begin anywhere that agrees with the index; the first descriptor will say.
            (self.end, self.fetched, self.next_command) = (offset, offset, offset);
        }
        // Who gives a block has seen the end of the last one.
        self.forget_interrupts();
        self.busy(now);
        self.outstanding = true;
        self.first = self.end;
        self.answered = self.first;
        self.end = self.first.wrapping_add(size);
        self.returned = 0;
        self.traffic.prefetched += u64::from(held);
        self.fetch_due = true;
    }

    /// Gives the free engines something to do, then the free microprocessors: they prepare a transfer
    /// as soon as an engine takes the one before.
    pub(super) fn work(&mut self, now: Time) {
        self.start_engines(now);
        for at in 0..self.processors.len() {
            if self.processors[at].is_none() {
                let Some(job) = self.next_job() else { break };
                let card = &self.config.card;
                let length = match job {
                    Job::Fetch => card.doorbell_time,
                    Job::Return(..) => card.return_time,
                    Job::Command(_) => card.command_time,
                };
                self.processors[at] = Some((job, now));
                self.queue.schedule(now + length.0, super::Event::Processor(at as u32));
            }
        }
    }

    /// Returns go first: they free the host; then the doorbell; then the next command, which is
    /// prepared while the transfer of the last one runs, but not further ahead (S0-21).
    fn next_job(&mut self) -> Option<Job> {
        if let Some((first, count)) = self.returns.pop_front() {
            return Some(Job::Return(first, count));
        }
        if std::mem::take(&mut self.fetch_due) {
            return Some(Job::Fetch);
        }
        let ready = before(self.next_command, self.fetched);
        if !ready || self.data.len() >= self.config.dma.engines as usize {
            return None;
        }
        if self.hangs {
            return None;
        }
        let number = self.next_command;
        self.next_command = number.wrapping_add(1);
        if self.next_command == self.end && self.outstanding {
            self.prefetch();
        }
        Some(Job::Command(number))
    }

    /// The last command of the block begins: looks whether the next ones are there (S0-26).
    fn prefetch(&mut self) {
        let depth = self.setup.map_or(0, |setup| setup.prefetch);
        if depth > 0 && self.fetched == self.end {
            self.prefetch_pieces = self.queue_pieces(self.end, depth, Work::Prefetch);
        }
    }

    pub(super) fn job_done(&mut self, now: Time, at: usize, bus: &mut dyn BusMaster) {
        let Some((job, since)) = self.processors[at].take() else { return };
        self.log_part(PartKind::Core, at as u16, Activity::Execute, (since, now));
        match job {
            Job::Fetch => {
                let missing = self.end.wrapping_sub(self.fetched);
                self.fetch_pieces = self.queue_pieces(self.fetched, missing, Work::Fetch);
                self.collect();
            }
            Job::Return(first, count) => {
                self.queue_pieces(first, count, Work::Return);
            }
            Job::Command(number) => self.command(now, number, bus),
        }
    }

    /// Descriptors of a fetch are in the card.
    pub(super) fn fetched(&mut self, work: Work, bus: &mut dyn BusMaster) {
        let (first, count, prefetch) = match work {
            Work::Fetch(first, count) => (first, count, false),
            Work::Prefetch(first, count) => (first, count, true),
            Work::Return(..) | Work::Read(_) | Work::Write(_) => return,
        };
        let Some(setup) = self.setup else { return };
        // A prefetch takes what is there, from the first on, without a gap.
        let mut open = !prefetch || self.fetched == first;
        for at in 0..count {
            if !open {
                break;
            }
            let mut due = self.fetched;
            let mut descriptor = Descriptor::new_zeroed();
            let (address, _) = RingCard::place(&setup, first.wrapping_add(at));
            if bus.read(address, descriptor.as_mut_bytes()).is_err() {
                self.fail(RingFault::RingUnreachable);
                break;
            }
            if self.fresh {
                self.renumber(&setup, descriptor.number.get());
                due = self.fetched;
            }
            let right = descriptor.is_with_device()
                && descriptor.is_command()
                && descriptor.number.get() == due;
            if prefetch && !right {
                open = false;
                continue;
            }
            let error = (!right).then_some(ErrorKind::NotACommand);
            let slot = self.slot(due);
            self.local[slot] = Local { descriptor, state: State::Pending, error, fails: false };
            self.fetched = due.wrapping_add(1);
        }
        if prefetch {
            self.prefetch_pieces -= 1;
        } else {
            self.fetch_pieces -= 1;
        }
    }

    /// The first descriptor since the card was switched on says where numbers stand.
    fn renumber(&mut self, setup: &Setup, number: u32) {
        self.fresh = false;
        if number & (setup.size - 1) != self.first & (setup.size - 1) {
            return;
        }
        let shift = number.wrapping_sub(self.first);
        for place in [
            &mut self.first,
            &mut self.end,
            &mut self.fetched,
            &mut self.next_command,
            &mut self.answered,
        ] {
            *place = place.wrapping_add(shift);
        }
    }

    /// What comes after a fetch: commands, and the doorbell that waited for the prefetch.
    pub(super) fn after_fetch(&mut self, now: Time) {
        if self.prefetch_pieces == 0
            && let Some((offset, size)) = self.early_doorbell.take()
        {
            self.doorbell(now, offset, size);
        }
        if !self.outstanding && self.fetched == self.end {
            self.idle(now);
        }
    }

    /// The microprocessor has understood command `number`.
    fn command(&mut self, now: Time, number: u32, bus: &mut dyn BusMaster) {
        let ordinal = self.started;
        self.started += 1;
        let slot = self.slot(number);
        let Local { descriptor, error, .. } = self.local[slot];
        if let Some(error) = error.or_else(|| self.refuse(&descriptor)) {
            return self.done(slot, Some(error));
        }
        if self.faults.is_some() && self.is_hit(now, slot, ordinal) {
            return;
        }
        self.begin(now, slot, bus);
    }

    /// True if a fault hits the command in `slot`, which does not begin now.
    #[cold]
    fn is_hit(&mut self, now: Time, slot: usize, ordinal: u64) -> bool {
        let Some(plan) = &mut self.faults else { return false };
        match plan.meets(FaultSite::Command, ordinal) {
            Some(Fault::Error) => {
                self.local[slot].fails = true;
                false
            }
            Some(Fault::Delay(by)) => {
                self.queue.schedule(now + by, super::Event::Begin(slot as u32));
                true
            }
            // Its block never comes back: a reset ends it.
            Some(Fault::Drop) => true,
            Some(Fault::Hang(_)) => {
                self.hangs = true;
                true
            }
            Some(Fault::Remove | Fault::Corrupt) | None => false,
        }
    }

    /// The command in `slot` begins.
    pub(super) fn begin(&mut self, now: Time, slot: usize, bus: &mut dyn BusMaster) {
        match self.local[slot].descriptor.kind() {
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
        let inside = offset.is_multiple_of(page) && end.is_some_and(|end| end <= self.media.pages);
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
        let descriptor = self.local[slot].descriptor;
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
                // A descriptor of more than 4 GiB less a page is beyond what a request can say.
                let Ok(length_bytes) = u32::try_from(bytes) else {
                    return self.done(slot, Some(ErrorKind::OutOfRange));
                };
                let offset_bytes = descriptor.device_offset.get();
                if let Some(contents) = &mut self.contents {
                    contents.clear(offset_bytes, bytes);
                }
                Request { op: Op::Trim, offset_bytes, length_bytes }
            }
            RingCommandKind::Flush => Request::flush(),
        };
        let token = Token(slot as u32 | self.epoch << SLOT_BITS);
        match self.media.access(now, request, token, &mut self.log) {
            // Its data come out of it while they cross the link.
            Ok(Access::Now) if descriptor.kind() == RingCommandKind::Read => {
                self.queue_data(slot, bus, DmaDirection::ToHost);
            }
            Ok(Access::Now) => self.accessed(slot, bus),
            Ok(Access::At(at)) => self.queue.schedule(at, super::Event::Medium(slot as u32)),
            Ok(Access::Later) => {}
            Err(_) => self.done(slot, Some(ErrorKind::OutOfRange)),
        }
    }

    /// The medium has done its part.
    fn accessed(&mut self, slot: usize, bus: &mut dyn BusMaster) {
        match self.local[slot].descriptor.kind() {
            _ if self.local[slot].fails => self.done(slot, Some(ErrorKind::Medium)),
            RingCommandKind::Read => self.queue_data(slot, bus, DmaDirection::ToHost),
            RingCommandKind::Write | RingCommandKind::Trim | RingCommandKind::Flush => {
                self.done(slot, None)
            }
        }
    }

    pub(super) fn medium_done(&mut self, slot: u32, bus: &mut dyn BusMaster) {
        self.accessed(slot as usize, bus);
    }

    /// Takes what the flash has done up to `now`.
    pub(super) fn flash(&mut self, now: Time, bus: &mut dyn BusMaster) {
        let mut answers = std::mem::take(&mut self.answers);
        self.media.reap(now, &mut answers, &mut self.log);
        for answer in answers.drain(..) {
            // Answers to what was dropped by a reset are for nobody.
            if answer.token.0 >> SLOT_BITS != self.epoch {
                continue;
            }
            let slot = (answer.token.0 & ((1 << SLOT_BITS) - 1)) as usize;
            match answer.status {
                Status::Ok => self.accessed(slot, bus),
                Status::ReadOnly => self.done(slot, Some(ErrorKind::ReadOnly)),
                Status::Error | Status::Abandoned => self.done(slot, Some(ErrorKind::Medium)),
            }
        }
        self.answers = answers;
        self.work(now);
    }

    /// Queues the page of a command, unless it may not be touched.
    fn queue_data(&mut self, slot: usize, bus: &mut dyn BusMaster, way: DmaDirection) {
        let address = self.local[slot].descriptor.host_address.get();
        let bytes = u64::from(layout::PAGE_BYTES);
        // Where data is kept, moving it is the check.
        let checked = self.contents.is_some() || bus.touch(address, bytes, way).is_ok();
        if address.checked_add(bytes).is_none() || !checked {
            return self.done(slot, Some(ErrorKind::HostMemory));
        }
        let work = match way {
            DmaDirection::ToHost => Work::Read(slot as u32),
            DmaDirection::FromHost => Work::Write(slot as u32),
        };
        self.data.push_back(Transfer { work, address, bytes });
    }

    /// The page of a command has crossed the link.
    pub(super) fn data_done(&mut self, now: Time, work: Work, bus: &mut dyn BusMaster) {
        match work {
            Work::Read(slot) if self.local[slot as usize].fails => {
                self.done(slot as usize, Some(ErrorKind::Medium));
            }
            Work::Read(slot) => {
                let error = self.give_data(slot as usize, bus).err();
                self.done(slot as usize, error);
            }
            Work::Write(slot) => match self.take_data(slot as usize, bus) {
                Ok(()) => self.access(now, slot as usize, bus),
                Err(error) => self.done(slot as usize, Some(error)),
            },
            Work::Fetch(..) | Work::Prefetch(..) | Work::Return(..) => {}
        }
    }
}
