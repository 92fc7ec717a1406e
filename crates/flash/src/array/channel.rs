//! Channels: who goes next.
//!
//! First come, first served needs no list: a transfer is reserved on its channel's [`FifoResource`] at the moment it is
//! ready, and nothing that becomes ready later can change when it goes. Any other order is not known before the channel
//! falls free, so there the transfers wait in a [`Line`](super::line::Line) and an event chooses. Both end in
//! [`go_on`](FlashArray::go_on), which continues a transfer that has had its time.
//!
//! [`FifoResource`]: ssdyno_engine::FifoResource

use ssdyno_block::Time;
use ssdyno_engine::Event;
use ssdyno_engine::events::{Activity, Busy, PartEvent, PartKind};

use super::FlashArray;
use super::event::{FlashEvent, Kind, Other, PlanePort};
use super::line::{Step, Transfer};
use crate::die::{NIL, Phase};

impl FlashArray {
    /// `transfer` is ready for its channel.
    #[inline(always)]
    pub(super) fn ask<E: From<FlashEvent> + Event>(
        &mut self,
        transfer: Transfer,
        port: &mut PlanePort<'_, E>,
    ) {
        // First come, first served knows the end of a transfer at once. It needs neither a list
        // nor an event for the channel, which spares one event for each transfer of the default
        // path.
        if !self.lines.is_empty() {
            return self.wait_in_line(transfer, port);
        }
        let channel = self.channel_of_die[transfer.die as usize];
        let span = self.channels[channel as usize].reserve(port.now, transfer.length);
        log_transfer(&transfer, channel, span, port);
        self.go_on(transfer.step, transfer.die, span.1, port);
    }

    /// Asks for the command and address cycles of the operations that `die` begins, if those take
    /// time.
    #[inline(always)]
    pub(super) fn ask_command<E: From<FlashEvent> + Event>(
        &mut self,
        step: Step,
        die: u16,
        port: &mut PlanePort<'_, E>,
    ) {
        let group = &self.dies[die as usize].group;
        let (length, cause) = (self.timing.command * u64::from(group.len), group.cause);
        // A transfer of no length would still wait behind data on its channel. A device file
        // without `command_time` has no command cycles on the channel at all.
        if length == Time::ZERO {
            return self.go_on(step, die, port.now, port);
        }
        self.ask(Transfer { step, die, pages: 0, cause, length, array_to: Time::ZERO }, port);
    }

    /// A transfer of `die` ends at `end`.
    #[inline(always)]
    pub(super) fn go_on<E: From<FlashEvent> + Event>(
        &mut self,
        step: Step,
        die: u16,
        end: Time,
        port: &mut PlanePort<'_, E>,
    ) {
        match step {
            Step::ReadCommand => self.read_array(die, end, port),
            Step::EraseCommand => self.enter_array(die, end, self.timing.erase, port),
            Step::CopyCommand => self.read_to_copy(die, end, port),
            Step::Out => port.queue.schedule(end, self.event(Kind::PageOut, die).into()),
            Step::In => {
                let length = self.program_time(&self.dies[die as usize].group);
                self.enter_array(die, end, length, port);
            }
            Step::Through => {
                let length = self.program_time(&self.dies[die as usize].group);
                self.enter_array(die, end, length, port);
                // Reads that came during the first half of the copy found the phase `Busy` and
                // could not interrupt it. The program is the first phase that they can suspend.
                if self.dies[die as usize].reads.head != NIL {
                    self.want_suspension(die, port);
                }
            }
            Step::CacheCommand => self.move_registers(die, end, port),
            Step::CacheOut => {
                port.queue.schedule(end, FlashEvent::other(Other::CachedPageOut, die).into());
            }
            Step::Load => port.queue.schedule(end, FlashEvent::other(Other::Loaded, die).into()),
        }
    }

    /// Puts `transfer` into the line of its channel.
    fn wait_in_line<E: From<FlashEvent> + Event>(
        &mut self,
        transfer: Transfer,
        port: &mut PlanePort<'_, E>,
    ) {
        // When the transfer will end is not known here. A read that comes meanwhile cannot
        // compute when to suspend, so it is noted in `called` and the suspension is decided when
        // the transfer has begun.
        if matches!(transfer.step, Step::EraseCommand | Step::CopyCommand | Step::In) {
            self.dies[transfer.die as usize].phase = Phase::Asked;
        }
        let channel = self.channel_of_die[transfer.die as usize];
        let line = &mut self.lines[channel as usize];
        line.waiting.push_back(transfer);
        if !line.choosing {
            // One event at a time chooses for a channel. A second one would begin a second
            // transfer while the first is still under way.
            line.choosing = true;
            match line.free_at > port.now {
                true => port
                    .queue
                    .schedule(line.free_at, FlashEvent::other(Other::Free, channel).into()),
                false => {
                    port.queue.schedule(port.now, FlashEvent::other(Other::Choose, channel).into())
                }
            }
        }
    }

    /// Channel `channel` has fallen free: of what becomes ready at this very time, all is to have its
    /// say. Returns a die that waits.
    pub(super) fn channel_free<E: From<FlashEvent> + Event>(
        &mut self,
        channel: u16,
        port: &mut PlanePort<'_, E>,
    ) -> u16 {
        // Behind all other events of this time.
        port.queue.schedule(port.now, FlashEvent::other(Other::Choose, channel).into());
        self.lines[channel as usize].waiting.front().map_or(0, |transfer| transfer.die)
    }

    /// Begins the transfer whose turn it is; returns its die.
    pub(super) fn choose_transfer<E: From<FlashEvent> + Event>(
        &mut self,
        channel: u16,
        port: &mut PlanePort<'_, E>,
    ) -> u16 {
        let line = &mut self.lines[channel as usize];
        line.choosing = false;
        let Some(transfer) = line.take(self.rules.channel_order, self.rules.channel_burst) else {
            return 0;
        };
        let end = port.now + transfer.length;
        // A transfer that becomes ready before the end must not be served before it.
        // `wait_in_line` reads this time if the line is empty by then.
        line.free_at = end;
        if !line.waiting.is_empty() {
            line.choosing = true;
            port.queue.schedule(end, FlashEvent::other(Other::Free, channel).into());
        }
        log_transfer(&transfer, channel, (port.now, end), port);
        self.go_on(transfer.step, transfer.die, end, port);
        let die = &mut self.dies[transfer.die as usize];
        if die.phase == Phase::Array && std::mem::take(&mut die.called) {
            self.want_suspension(transfer.die, port);
        }
        transfer.die
    }
}

#[inline(always)]
fn log_transfer<E>(
    transfer: &Transfer,
    channel: u16,
    (from, to): (Time, Time),
    port: &mut PlanePort<'_, E>,
) {
    let Transfer { die, pages, cause, array_to, .. } = *transfer;
    let busy = |kind, index| Busy {
        part: PartEvent::new(kind, index),
        activity: Activity::Transfer,
        cause,
        operations: pages,
        from,
        to,
    };
    if array_to != Time::ZERO {
        // Cut where the array ends: until then the die was busy anyway.
        let cut = array_to.clamp(from, to);
        let whole = busy(PartKind::Die, die);
        port.log.push(Busy { activity: Activity::CacheTransfer, to: cut, ..whole });
        port.log.push(Busy { from: cut, operations: 0, ..whole });
    } else if pages > 0 {
        port.log.push(busy(PartKind::Die, die));
    }
    port.log.push(busy(PartKind::Channel, channel));
}
