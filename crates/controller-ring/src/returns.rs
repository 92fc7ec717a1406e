//! The answers of commands, and their way back to host memory (S0-15 to S0-18).

use ssdyno_block::Time;
use ssdyno_pci::BusMaster;
use ssdyno_spec::ring as layout;
use ssdyno_spec::ring::{Descriptor, ErrorKind, ResponseMode, RingFault};
use zerocopy::little_endian::U32;
use zerocopy::{FromZeros, IntoBytes};

use super::RingCard;
use super::block::{Local, State, before};

impl RingCard {
    /// The answer of a command is known.
    pub(super) fn done(&mut self, slot: usize, error: Option<ErrorKind>) {
        let local = &mut self.local[slot];
        local.state = State::Done;
        local.error = error;
        self.traffic.commands += 1;
        let number = local.descriptor.number.get();
        if self.setup.is_some_and(|setup| setup.mode == ResponseMode::Each) {
            // One that was held goes when its block is given; a wrong number stands at its slot.
            let number = self.number_of(slot, number);
            if self.outstanding && before(number, self.end) {
                self.hand_over(number, 1);
            }
        } else {
            self.collect();
        }
    }

    /// The number whose slot this is: what the descriptor says, unless it lies.
    fn number_of(&self, slot: usize, said: u32) -> u32 {
        if self.local[slot].error != Some(ErrorKind::NotACommand) {
            return said;
        }
        let mask = self.local.len() as u32 - 1;
        self.first.wrapping_add((slot as u32).wrapping_sub(self.first) & mask)
    }

    fn hand_over(&mut self, first: u32, count: u32) {
        for at in 0..count {
            let slot = self.slot(first.wrapping_add(at));
            self.local[slot].state = State::Returning;
        }
        self.returns.push_back((first, count));
    }

    /// Hands what is due to a return.
    pub(super) fn collect(&mut self) {
        let Some(setup) = self.setup else { return };
        if !self.outstanding {
            return;
        }
        let is_done = |card: &RingCard, number| card.local[card.slot(number)].state == State::Done;
        if setup.mode == ResponseMode::Each {
            for at in 0..self.end.wrapping_sub(self.first) {
                let number = self.first.wrapping_add(at);
                if before(number, self.fetched) && is_done(self, number) {
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
            let there = rest > 0 && !before(self.fetched, stop);
            let all = there && (0..size).all(|at| is_done(self, self.answered.wrapping_add(at)));
            if !all {
                return;
            }
            self.hand_over(self.answered, size);
            self.answered = stop;
        }
    }

    /// Responses reach host memory (S0-15): `count` descriptors from `slot` on.
    pub(super) fn landed(&mut self, now: Time, slot: u32, count: u32, bus: &mut dyn BusMaster) {
        let Some(setup) = self.setup else { return };
        let mut urgent = false;
        for at in 0..count {
            let slot = (slot + at) as usize & (self.local.len() - 1);
            let Local { descriptor, error, .. } = self.local[slot];
            let number = self.number_of(slot, descriptor.number.get());
            let (address, _) = RingCard::place(&setup, number);
            urgent |= descriptor.is_urgent();
            // The host must have left it alone (S0-14). Hardware would not look.
            let mut now_there = Descriptor::new_zeroed();
            let seen = bus.read(address, now_there.as_mut_bytes());
            let error = if now_there == descriptor {
                error
            } else {
                self.fail(if seen.is_ok() {
                    RingFault::Ownership
                } else {
                    RingFault::RingUnreachable
                });
                Some(ErrorKind::Ownership)
            };
            let mut response = descriptor;
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
            self.local[slot].state = State::Empty;
        }
        self.returned += count;
        let over = self.returned == self.end.wrapping_sub(self.first);
        if over {
            self.outstanding = false;
            self.traffic.blocks += 1;
            if self.fetched == self.end && self.prefetch_pieces == 0 {
                self.idle(now);
            }
        }
        self.returned_to_host(now, count, urgent || over, bus);
    }
}
