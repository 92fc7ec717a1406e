//! How a pair obeys the orders that its controller object puts up.

use alloc::vec::Vec;

use ssdyno_block::MonotonicTime;
use ssdyno_pci::PciFunction;

use super::{Mode, QueuePair};
use crate::control_log::Order;
use crate::{IoCompletion, IoError};

impl QueuePair {
    /// Obeys what was ordered, and takes completions where that is allowed; gives how many. Where `out` has
    /// no room for all that is given up, the order stays news, and the next call goes on.
    #[cold]
    pub(crate) fn obey<F: PciFunction>(&mut self, f: &mut F, out: &mut Vec<IoCompletion>) -> u32 {
        let mut found = 0;
        while self.mode != Mode::Ended
            && let Some(notice) = self.orders.coming()
        {
            match notice.order() {
                Order::Run => {}
                Order::Drain => self.mode = Mode::Draining,
                Order::Hold => {
                    // Completions from before the order are taken now. After the reset the rings
                    // are empty, and those completions would be reported as abandoned although they
                    // succeeded.
                    if self.mode != Mode::Held {
                        found += self.take(f, out);
                    }
                    self.mode = Mode::Held;
                    // Outstanding commands will be given up: timeouts no longer count.
                    self.set_watch_at(MonotonicTime::MAX);
                }
                Order::Collect | Order::End => {
                    self.mode = Mode::Held;
                    // The order stays unread while tokens are left. The controller object must
                    // not reuse the queue before each of them came back.
                    if !self.give_up(out) {
                        return found;
                    }
                    if notice.order() == Order::Collect {
                        // The rings are emptied by their owner and not by the controller object.
                        // No doorbell of this pair can follow, so none reaches the new queue.
                        self.queue.clear(f);
                    } else {
                        self.queue.release(f);
                        self.mode = Mode::Ended;
                    }
                }
            }
            self.orders.read(notice);
            if notice.order() == Order::Run {
                self.open();
            }
        }
        if self.mode == Mode::Draining {
            // A command that was staged but not reported could not complete, and the drain would
            // wait for it forever.
            self.queue.ring(f, &mut self.counters);
        }
        if matches!(self.mode, Mode::Open | Mode::Draining) {
            found += self.take(f, out);
        }
        if self.mode == Mode::Draining {
            if self.queue.outstanding() > 0 {
                return found;
            }
            // The queue is to be deleted, or to rest.
            self.mode = Mode::Held;
        }
        // This comes last. A reader of the number may assume that rings and doorbells are left
        // alone.
        self.desk.obey(self.orders.number(), self.counters.completions);
        found
    }

    /// There is an order that was not obeyed to its end, because a list for completions had no room.
    pub(crate) fn is_behind(&self) -> bool {
        self.orders.has_news() && self.mode != Mode::Ended
    }

    /// [`Order::Run`] was read.
    fn open(&mut self) {
        self.nvm_commands = self.orders.nvm_commands();
        self.mode = Mode::Open;
    }

    /// Completes everything with *abandoned*; false where `out` had no room for all.
    fn give_up(&mut self, out: &mut Vec<IoCompletion>) -> bool {
        let before = self.queue.unanswered();
        let all = self.queue.abandon(out);
        self.counters.abandoned += before - self.queue.unanswered();
        self.desk.withdraw_aborts(|_| true);
        self.desk.wish_reset(false);
        self.wished = false;
        self.set_watch_at(MonotonicTime::MAX);
        all
    }

    /// Reads orders that need no more than being read.
    #[cold]
    pub(super) fn reopen(&mut self) -> Result<(), IoError> {
        // Only `Run` can be obeyed without a list for completions. All other orders wait for a
        // call that brings one, and the command is refused until then.
        let coming = self.orders.coming();
        match coming.filter(|notice| notice.order() == Order::Run) {
            Some(notice) if self.mode != Mode::Ended => {
                self.orders.read(notice);
                self.open();
                self.desk.obey(self.orders.number(), self.counters.completions);
                Ok(())
            }
            _ if self.mode == Mode::Ended => Err(IoError::Gone),
            _ => match coming.map(|notice| notice.order()) {
                None if self.mode == Mode::Open => Ok(()),
                Some(Order::End) => Err(IoError::Gone),
                _ => Err(IoError::NotReady),
            },
        }
    }

    /// Doorbells may be written although something is unusual.
    #[cold]
    pub(super) fn may_ring(&self) -> bool {
        let coming = self.orders.coming().map(|notice| notice.order());
        // Between an order to hold and its obeying a doorbell would reach a queue that is about
        // to go. During a drain doorbells are wanted, because the staged commands must end.
        let lets = matches!(coming, None | Some(Order::Run | Order::Drain));
        lets && matches!(self.mode, Mode::Open | Mode::Draining)
    }
}
