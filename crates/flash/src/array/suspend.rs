//! Programs and erases that give way to reads.

use ssdyno_engine::Event;
use ssdyno_engine::events::Activity;

use super::FlashArray;
use super::event::{FlashEvent, Kind, Other, PlanePort};
use crate::OpKind;
use crate::die::{Die, Phase, Suspended};

impl FlashArray {
    /// A read came while a program or erase is under way: suspend it where the rules allow.
    pub(super) fn want_suspension<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        port: &mut PlanePort<'_, E>,
    ) {
        let d = &self.dies[die as usize];
        let allowed = match d.group.kind {
            OpKind::Program | OpKind::Copy => self.rules.program_suspend,
            OpKind::Erase => self.rules.erase_suspend,
            OpKind::Read => false,
        };
        // A die keeps one suspended operation. A read whose page is not programmed yet would
        // suspend the very program that it waits for, and gain nothing.
        if !allowed || d.suspended.is_some() || !self.read_is_ready(die) {
            return;
        }
        // The data read would have no register for its output.
        if self.registers.get(die as usize).is_some_and(|registers| !registers.are_free()) {
            self.dies[die as usize].called = true;
            return;
        }
        if port.now >= d.array_from {
            self.suspend(die, port);
        } else {
            // The array phase begins later, after its data has crossed the channel. The event
            // carries the generation, so that it is void if the operation has changed by then.
            let at = d.array_from;
            port.queue.schedule(at, self.event(Kind::Suspend, die).into());
        }
    }

    pub(super) fn suspend<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        port: &mut PlanePort<'_, E>,
    ) {
        let Die { group, array_from, array_to, .. } = self.dies[die as usize];
        let remaining = array_to.saturating_sub(port.now);
        // Not worth it when it ends before the read could start.
        if remaining <= self.timing.suspend {
            return;
        }
        let activity =
            if group.kind == OpKind::Erase { Activity::Erase } else { Activity::Program };
        // The array time so far is logged now. The operation itself counts when it ends, so the
        // number of operations here is 0.
        self.log_die(die, activity, (array_from, port.now), 0, port);
        let d = &mut self.dies[die as usize];
        d.generation = d.generation.wrapping_add(1);
        d.suspended = Some(Suspended { group, remaining });
        d.phase = Phase::Busy;
        let at = port.now + self.timing.suspend;
        port.queue.schedule(at, FlashEvent::other(Other::Suspended, die).into());
    }
}
