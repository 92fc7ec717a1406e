//! The driver's recovery from a card that does not respond.
//!
//! A block that is late is looked for: its interrupt may be lost. If it is not back, the card is
//! reset; what it had completes as abandoned. A card that does not come out of the reset in as
//! long a time, whose registers read as ones, or of which the slot says that it was removed, is gone: it
//! may not touch memory any more, and every request completes with an error.

use alloc::vec::Vec;

use ssdyno_block::{Completion, MonotonicTime, Status, Time, has_room};
use ssdyno_pci::PciFunction;
use ssdyno_spec::pci;
use ssdyno_spec::ring as layout;

use crate::RingDriver;
use crate::options::CompletionPolicy;

/// Where the card's life stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// It works.
    Up,
    /// It was told to stop, at that time.
    Resetting(MonotonicTime),
    /// It is given up.
    Gone,
}

impl Phase {
    pub(crate) fn is_gone(self) -> bool {
        self == Phase::Gone
    }
}

/// A reset is looked after so often in the time it is given.
const LOOKS: u64 = 16;

impl<F: PciFunction> RingDriver<F> {
    /// When something must be looked after because the card is not up.
    pub(crate) fn phase_deadline(&self) -> Option<MonotonicTime> {
        match self.phase {
            Phase::Up => None,
            // A reset gives no interrupt. The status register is read a few times within the
            // time limit, so that a card that is quick is used again soon.
            Phase::Resetting(_) => {
                let step = (self.options.timeout / LOOKS).max(Time::from_ns(1));
                Some(self.last_poll().after(step))
            }
            Phase::Gone => (self.requests.len() > 0).then(|| self.last_poll()),
        }
    }

    /// Looks after a late block, a reset, and the requests of a card that is gone; true if
    /// everything that is back must complete now.
    pub(crate) fn watch(
        &mut self,
        now: MonotonicTime,
        out: &mut Vec<Completion<MonotonicTime>>,
    ) -> bool {
        match self.phase {
            Phase::Up => {
                let late = |since: MonotonicTime| now >= since.after(self.options.timeout);
                match self.ring.block {
                    Some(block) if late(block.since) => self.late(now),
                    _ => return false,
                }
            }
            Phase::Resetting(since) => self.after_reset(now, since),
            Phase::Gone => {}
        }
        if self.phase.is_gone() {
            self.answer_all(now, out);
        }
        true
    }

    /// The card was removed, as its slot says: nothing is waited for. The next poll, which
    /// [`next_deadline`](RingDriver::next_deadline) asks for at `now`, answers every request with an error.
    pub fn removed(&mut self, now: impl Into<MonotonicTime>) {
        if !self.phase.is_gone() {
            self.give_up();
            self.polled_at(now.into());
        }
    }

    /// True, and the card is given up, if its registers read as ones: it is not there any more.
    pub(crate) fn finds_it_gone(&mut self) -> bool {
        let gone = self.function.bar_read32(0, layout::STATUS) == u32::MAX;
        if gone {
            self.give_up();
        }
        gone
    }

    /// The block is late.
    fn late(&mut self, now: MonotonicTime) {
        // The descriptors in memory tell more than a missing interrupt. A block that is back
        // only lost its interrupt, and a reset would throw away work that is done.
        self.ring.look(&mut self.function);
        if self.ring.take_returned().is_some() {
            let polls = matches!(self.options.completion, CompletionPolicy::HybridPolling { .. });
            self.counters.lost_interrupts += u64::from(!polls && !self.was_interrupted());
            return;
        }
        if self.finds_it_gone() {
            return;
        }
        self.counters.resets += 1;
        // Switching off is the reset of this card: it drops every command and every event. Its
        // memory of the ring is gone, too.
        self.function.bar_write32(0, layout::CONTROL, 0);
        self.phase = Phase::Resetting(now);
        self.after_reset(now, now);
    }

    /// The card was told to stop at `since`.
    fn after_reset(&mut self, now: MonotonicTime, since: MonotonicTime) {
        let status = self.function.bar_read32(0, layout::STATUS);
        if status == u32::MAX || now > since.after(self.options.timeout) {
            return self.give_up();
        }
        // The card has not stopped. Its engines may still write, so descriptors must not be
        // given up and their pages not be used again.
        if status & layout::STATUS_ENABLED != 0 {
            return;
        }
        // Descriptors that came back before the reset keep their status. Only those that the
        // card still had end as abandoned.
        self.ring.abandon_block(&mut self.function);
        self.switch_on();
        let status = self.function.bar_read32(0, layout::STATUS);
        if status == u32::MAX {
            self.give_up();
        } else if status & layout::STATUS_ENABLED != 0 {
            self.phase = Phase::Up;
        }
    }

    fn give_up(&mut self) {
        // Whatever it still has in hand must not land in memory that belongs to somebody else.
        let command = self.function.config_read(pci::COMMAND) & 0xffff;
        let master = u32::from(pci::COMMAND_BUS_MASTER);
        self.function.config_write(pci::COMMAND, command & !master);
        self.phase = Phase::Gone;
        self.ring.abandon_all(&mut self.function);
    }

    /// Every request of a card that is gone ends: what is in the ring first, then what waits.
    fn answer_all(&mut self, now: MonotonicTime, out: &mut Vec<Completion<MonotonicTime>>) {
        self.ring.abandon_all(&mut self.function);
        // Requests end in the order in which they came, also here: those in the ring are older
        // than those that wait.
        self.generate_responses(now, u32::MAX, out);
        // Those that find no room in the list wait for the next poll.
        while has_room(out)
            && let Some((slot, bios)) = self.requests.drop_waiting()
        {
            for _ in 0..bios {
                self.counters.errors += 1;
                out.extend(self.requests.answered(slot, Status::Error, now));
            }
        }
    }
}
