//! The sessions of a network: commands and answers set out, arrive or do not; a session breaks, and its
//! commands begin again.

use ssdyno_block::{Request, Status, Time};
use ssdyno_host::ResentCommand;

use super::link_faults::Delivery;
use super::slots::{Event, Slot, Stage, of_session};
use super::{QueuedPort, Way};

impl QueuedPort {
    /// A command has reached the target machine.
    pub(super) fn arrive(&mut self, at: Time, slot: u32) {
        let Slot { request, queue, tries, .. } = self.slots[slot];
        let Way::Network(remote) = &mut self.way else { return };
        if tries == 0 {
            return self.slots.free(slot);
        }
        let end = remote.take(at, &request, queue);
        self.queue.schedule(end, Event::AtDevice(slot));
    }

    /// The target's work for a broken session is discarded.
    pub(super) fn forget(&mut self, slot: u32, queue: u16) {
        self.slots.free(slot);
        if let Way::Network(remote) = &mut self.way {
            remote.leave(queue);
        }
    }

    /// A command sets out over the network, or waits for its session.
    pub(super) fn send_command(&mut self, now: Time, slot: u32) {
        let Slot { request, queue, tries, .. } = self.slots[slot];
        let Way::Network(remote) = &mut self.way else { return };
        if tries == 0 {
            return self.slots.free(slot);
        }
        let down = remote.weather.as_ref().and_then(|w| w.down(now, queue.into()));
        if let Some(until) = down {
            // A command for a broken session waits for the reconnection without a try. It was never
            // sent, so it must not use up the tries of the command.
            return self.queue.schedule(until, Event::Again(slot));
        }
        self.slots[slot].stage = Stage::Sent;
        let delivery = remote.send_command(now, &request);
        self.sent(now, queue, delivery, [Event::AtTarget(slot), Event::Again(slot)]);
    }

    /// Schedules what the `delivery` of a message means: that it arrives, or that it is sent again.
    fn sent(&mut self, now: Time, queue: u16, delivery: Delivery, [arrives, again]: [Event; 2]) {
        match delivery {
            Delivery::Arrives(at) => self.queue.schedule(at, arrives),
            Delivery::Again(at) => self.queue.schedule(at, again),
            Delivery::Breaks => {
                // The event is scheduled although the session breaks. It fires for the old slot,
                // finds its tries at zero and frees it; without an event, the slot would stay in
                // use for ever.
                self.queue.schedule(now, again);
                self.break_session(now, queue);
            }
        }
    }

    /// An answer sets out over the network.
    pub(super) fn send_answer(&mut self, now: Time, slot: u32) {
        let Slot { request, queue, tries, .. } = self.slots[slot];
        let Way::Network(remote) = &mut self.way else { return };
        if tries == 0 {
            return self.slots.free(slot);
        }
        let delivery = remote.send_answer(now, &request);
        self.sent(now, queue, delivery, [Event::Told(slot), Event::AnswerAgain(slot)]);
    }

    /// The session of `queue` breaks: its requests on the way are discarded, and start again in their own slots; the
    /// device may execute them twice. Requests that wait for the session keep waiting.
    #[cold]
    fn break_session(&mut self, now: Time, queue: u16) {
        let Way::Network(remote) = &mut self.way else { return };
        let Some(weather) = &mut remote.weather else { return };
        let back = weather.break_session(now, queue.into());
        for old in of_session(&self.slots, queue) {
            let slot = self.slots[old];
            let begins = weather.may_begin_again(slot.tries);
            // The old slot stays until its last event has fired, and the command continues in a new
            // one. An answer of the first attempt can then not complete the second one.
            self.slots[old].tries = 0;
            if begins {
                let Request { op, length_bytes: bytes, .. } = slot.request;
                self.resent.push(ResentCommand { core: queue, op, bytes, completed: false });
            }
            let next = match begins {
                true => Slot { tries: slot.tries + 1, stage: Stage::Waiting, ..slot },
                false => Slot { status: Status::Error, stage: Stage::GivenUp, ..slot },
            };
            let at = self.slots.insert(next);
            let event = if begins { Event::Again(at) } else { Event::Told(at) };
            self.queue.schedule(back, event);
        }
    }

    /// The time when all sessions break; while nothing is on its way, this affects nothing.
    pub(super) fn break_at(&self) -> Time {
        match &self.way {
            // A break without traffic has no effect, so it is no event. It would otherwise keep an
            // idle run alive until the time of the break.
            Way::Network(remote) if self.taken > self.answered => {
                remote.weather.as_ref().map_or(Time::MAX, |weather| weather.break_at())
            }
            _ => Time::MAX,
        }
    }

    /// All sessions break, if it is time.
    pub(super) fn break_all(&mut self, now: Time) {
        let Way::Network(remote) = &mut self.way else { return };
        let at = remote.weather.as_mut().and_then(|weather| weather.take_break(now));
        let Some(at) = at else { return };
        (0..self.in_queue.len()).for_each(|queue| self.break_session(at, queue as u16));
    }
}
