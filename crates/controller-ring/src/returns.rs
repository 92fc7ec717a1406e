//! The answers of commands, and their way back to host memory (S0-15 to S0-18).

use ssdyno_block::Time;
use ssdyno_pci::BusMaster;
use ssdyno_spec::ring as layout;
use ssdyno_spec::ring::{Descriptor, ErrorKind, ResponseMode, RingFault};
use zerocopy::little_endian::U32;
use zerocopy::{FromZeros, IntoBytes};

use super::RingCard;
use super::block::{Block, Local, State, before};
use super::registers::Setup;

impl Block {
    /// The number whose slot this is: the number in the descriptor, unless it is invalid.
    pub(super) fn number_of(&self, slot: usize) -> u32 {
        let Local { descriptor, error, .. } = self.local[slot];
        if error != Some(ErrorKind::NotACommand) {
            return descriptor.number.get();
        }
        // A descriptor that is not a command may carry any number. Its place in the card tells the
        // true one, because numbers follow one another in the local memory.
        let mask = self.local.len() as u32 - 1;
        self.first.wrapping_add((slot as u32).wrapping_sub(self.first) & mask)
    }

    /// The answer of the command in `slot` is known; hands what is due then to a return.
    pub(super) fn done(&mut self, setup: Option<&Setup>, slot: usize, error: Option<ErrorKind>) {
        let local = &mut self.local[slot];
        local.state = State::Done;
        local.error = error;
        match setup {
            Some(setup) if setup.mode == ResponseMode::Each => {
                // One that was held goes when its block is given; a wrong number stands at its slot.
                let number = self.number_of(slot);
                if self.outstanding && before(number, self.end) {
                    self.hand_over(number, 1);
                }
            }
            Some(setup) => self.collect(setup),
            None => {}
        }
    }

    fn hand_over(&mut self, first: u32, count: u32) {
        for at in 0..count {
            let slot = self.slot(first.wrapping_add(at));
            self.local[slot].state = State::Returning;
        }
        self.returns.push_back((first, count));
    }

    fn is_done(&self, number: u32) -> bool {
        self.local[self.slot(number)].state == State::Done
    }

    /// Hands what is due to a return.
    pub(super) fn collect(&mut self, setup: &Setup) {
        if !self.outstanding {
            return;
        }
        if setup.mode == ResponseMode::Each {
            for at in 0..self.end.wrapping_sub(self.first) {
                let number = self.first.wrapping_add(at);
                if before(number, self.fetched) && self.is_done(number) {
                    self.hand_over(number, 1);
                }
            }
            return;
        }
        loop {
            let rest = self.end.wrapping_sub(self.answered);
            let size =
                if setup.mode == ResponseMode::Block { rest } else { setup.subset.min(rest) };
            let stop = self.answered.wrapping_add(size);
            // Descriptors that were not fetched yet cannot be done. Without this test the state
            // of an older command in the same slot would be taken for theirs.
            let there = rest > 0 && !before(self.fetched, stop);
            let all = there && (0..size).all(|at| self.is_done(self.answered.wrapping_add(at)));
            if !all {
                return;
            }
            self.hand_over(self.answered, size);
            self.answered = stop;
        }
    }

    /// `count` descriptors are back with the host; true if they were the last of the block.
    fn are_back(&mut self, count: u32) -> bool {
        self.returned += count;
        let over = self.returned == self.end.wrapping_sub(self.first);
        // Only the return of the last descriptor frees the block. Until then a doorbell is a
        // fault (S0-14).
        self.outstanding &= !over;
        over
    }
}

impl RingCard {
    /// The answer of a command is known.
    pub(super) fn done(&mut self, slot: usize, error: Option<ErrorKind>) {
        self.block.done(self.registers.setup.as_ref(), slot, error);
        self.traffic.commands += 1;
    }

    /// Responses reach host memory (S0-15): `count` descriptors from `slot` on.
    pub(super) fn landed(&mut self, now: Time, slot: u32, count: u32, bus: &mut dyn BusMaster) {
        let Some(setup) = self.registers.setup else { return };
        let mut urgent = false;
        for at in 0..count {
            let slot = self.block.slot(slot + at);
            let Local { descriptor, error, .. } = *self.block.get(slot);
            let number = self.block.number_of(slot);
            let (address, _) = setup.place(number);
            urgent |= descriptor.is_urgent();
            // The host must have left it alone (S0-14). Hardware would not look.
            let mut now_there = Descriptor::new_zeroed();
            let seen = bus.read(address, now_there.as_mut_bytes());
            let error = if now_there == descriptor {
                error
            } else {
                self.registers.fail(if seen.is_ok() {
                    RingFault::Ownership
                } else {
                    RingFault::RingUnreachable
                });
                Some(ErrorKind::Ownership)
            };
            let mut response = descriptor;
            // The host gets the number that belongs to the place, also if the descriptor was
            // wrong. It finds its request by it.
            response.number.set(number);
            let kept = layout::RESPONSE_FLAG | (descriptor.kind() as u32) << 2;
            response.control.set(kept);
            response.status =
                if error.is_some() { layout::STATUS_ERROR } else { layout::STATUS_SUCCESS };
            response.error = error.map_or(0, |error| error as u8);
            // Control last: the host may look at any time, and a write of several dwords is seen
            // in the order of addresses (PCIe 5.0, clause 2.4.3). Where it cannot be written,
            // reading failed and was reported.
            let (control, rest) = response.as_bytes().split_at(size_of::<U32>());
            let _ = bus.write(address + control.len() as u64, rest);
            let _ = bus.write(address, control);
            self.block.get_mut(slot).state = State::Empty;
        }
        let over = self.block.are_back(count);
        if over {
            self.traffic.blocks += 1;
            if self.block.holds_nothing() && !self.prefetch.is_under_way() {
                self.block.idle(now, &mut self.log);
            }
        }
        self.returned_to_host(now, count, urgent || over, bus);
    }
}
