//! How a pair obeys the orders that its controller object puts up.

use alloc::sync::Arc;
use alloc::vec::Vec;

use ssdyno_block::MonotonicTime;
use ssdyno_pci::PciFunction;

use super::{Mode, QueuePair};
use crate::board::Order;
use crate::{IoCompletion, IoError};

impl QueuePair {
    /// Obeys what was ordered, and takes completions where that is allowed; gives how many.
    #[cold]
    pub(crate) fn obey<F: PciFunction>(&mut self, f: &mut F, out: &mut Vec<IoCompletion>) -> u32 {
        let mut found = 0;
        while self.mode != Mode::Ended
            && let Some(order) = self.orders.advance()
        {
            match order {
                Order::Run => self.open(),
                Order::Drain => self.mode = Mode::Draining,
                Order::Hold => {
                    // An older order may have been overtaken by its time limit.
                    if !self.orders.has_news() && self.mode != Mode::Held {
                        found += self.take(f, out);
                    }
                    self.mode = Mode::Held;
                    // What is still outstanding will be given up: no time limit counts any more.
                    self.set_watch_at(MonotonicTime::MAX);
                }
                Order::Collect => {
                    self.give_up(out);
                    self.queue.clear(f);
                    self.mode = Mode::Held;
                }
                Order::End => {
                    self.give_up(out);
                    self.queue.release(f);
                    self.mode = Mode::Ended;
                }
            }
        }
        if self.mode == Mode::Draining {
            self.queue.ring(f, &mut self.counters);
        }
        if matches!(self.mode, Mode::Open | Mode::Draining) {
            found += self.take(f, out);
        }
        if self.mode == Mode::Draining {
            if self.queue.outstanding() > 0 {
                return found;
            }
            // The queue is to be deleted.
            self.mode = Mode::Held;
        }
        self.desk.obey(self.orders.number(), self.counters.completions);
        found
    }

    /// [`Order::Run`] was read.
    fn open(&mut self) {
        let (namespaces, nvm_commands) = self.orders.namespaces();
        (self.namespaces, self.nvm_commands) = (Arc::clone(namespaces), nvm_commands);
        self.mode = Mode::Open;
    }

    /// Answers everything with *abandoned*.
    fn give_up(&mut self, out: &mut Vec<IoCompletion>) {
        self.queue.abandon(out);
        self.desk.withdraw_aborts(|_| true);
        self.desk.wish_reset(false);
        self.wished = false;
        self.set_watch_at(MonotonicTime::MAX);
    }

    /// Reads orders that need no more than being read.
    #[cold]
    pub(super) fn reopen(&mut self) -> Result<(), IoError> {
        while self.mode != Mode::Ended && self.orders.coming() == Some(Order::Run) {
            self.orders.advance();
            self.open();
            self.desk.obey(self.orders.number(), self.counters.completions);
        }
        let over = self.mode == Mode::Ended || self.orders.coming() == Some(Order::End);
        match self.mode {
            Mode::Open if self.orders.coming().is_none() => Ok(()),
            _ if over => Err(IoError::Gone),
            _ => Err(IoError::NotReady),
        }
    }

    /// Doorbells may be written although something is unusual.
    #[cold]
    pub(super) fn may_ring(&self) -> bool {
        let coming = matches!(self.orders.coming(), None | Some(Order::Run | Order::Drain));
        coming && matches!(self.mode, Mode::Open | Mode::Draining)
    }
}
