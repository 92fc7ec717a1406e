//! The messages of a controller object to its queue pairs, whoever owns them: the last order, and
//! lists of namespaces.
//!
//! There is one writer, the controller object; each pair reads at its own pace. A check for news is one load of a word,
//! and no core ever waits. Only the last order counts, because an order is issued only after all pairs have obeyed the
//! orders before it. An order therefore takes no memory, and a necessary order (stop access, give up, end) can always
//! be issued. Namespaces are a chain that grows at its end; a list goes when the last pair has read past it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use once_cell::race::OnceBox;

use crate::Namespace;
use crate::shared::{NoHeap, Shared, try_box};

/// The orders to pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Order {
    /// Take commands, for the last namespaces.
    Run,
    /// Take no command; bring those that are outstanding to their end.
    Drain,
    /// Take what completed, then touch neither rings nor doorbells: a reset follows.
    Hold,
    /// The controller is idle: give up what is outstanding, and empty the rings.
    Collect,
    /// The controller reaches no memory any more: give up everything and free it. The last order.
    End,
}

/// An order with its number and the optional commands (bits of ONCS): bits 63:19, 2:0 and 18:3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ControlMessage(u64);

impl ControlMessage {
    fn new(number: u64, order: Order, nvm_commands: u16) -> ControlMessage {
        ControlMessage(number << 19 | u64::from(nvm_commands) << 3 | order as u64)
    }

    /// What is ordered.
    pub(crate) fn order(self) -> Order {
        match self.0 & 7 {
            0 => Order::Run,
            1 => Order::Drain,
            2 => Order::Hold,
            3 => Order::Collect,
            _ => Order::End,
        }
    }

    /// Orders are numbered from 0.
    pub(crate) fn number(self) -> u64 {
        self.0 >> 19
    }

    fn nvm_commands(self) -> u16 {
        (self.0 >> 3) as u16
    }
}

/// A list of namespaces in the chain.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) namespaces: Vec<Namespace>,
    next: OnceBox<[Shared<Listed>; 1]>,
}

impl Listed {
    fn new(namespaces: Vec<Namespace>) -> Result<Shared<Listed>, NoHeap> {
        Shared::try_new(Listed { namespaces, next: OnceBox::new() })
    }
}

/// Where the controller object writes.
#[derive(Debug)]
pub(crate) struct ControlLog {
    word: Shared<AtomicU64>,
    last: Shared<Listed>,
}

impl ControlLog {
    /// Begins with [`Order::Collect`]: pairs wait for the first [`Order::Run`].
    pub(crate) fn new() -> Result<ControlLog, NoHeap> {
        let word = Shared::try_new(AtomicU64::new(ControlMessage::new(0, Order::Collect, 0).0))?;
        Ok(ControlLog { word, last: Listed::new(Vec::new())? })
    }

    fn notice(&self) -> ControlMessage {
        // Nobody else writes.
        ControlMessage(self.word.load(Ordering::Relaxed))
    }

    /// The namespaces that hold from the next [`Order::Run`] on.
    pub(crate) fn list(&mut self, namespaces: Vec<Namespace>) -> Result<(), NoHeap> {
        let listed = Listed::new(namespaces)?;
        let link: Box<[Shared<Listed>; 1]> = try_box(listed.clone())?;
        let refused = self.last.next.set(link);
        debug_assert!(refused.is_ok(), "somebody else wrote");
        self.last = listed;
        Ok(())
    }

    /// The last namespaces.
    pub(crate) fn namespaces(&self) -> &[Namespace] {
        &self.last.namespaces
    }

    pub(crate) fn publish(&mut self, order: Order, nvm_commands: u16) {
        // The number makes two orders of the same kind different words. A pair that missed
        // nothing but the second still sees that there is news.
        let notice = ControlMessage::new(self.number() + 1, order, nvm_commands);
        // A core that sees the order sees the namespaces.
        self.word.store(notice.0, Ordering::Release);
    }

    /// The last order.
    pub(crate) fn order(&self) -> Order {
        self.notice().order()
    }

    /// Its number.
    pub(crate) fn number(&self) -> u64 {
        self.notice().number()
    }

    /// A reader that has read everything up to now.
    pub(crate) fn reader(&self) -> Reader {
        Reader { word: self.word.clone(), read: self.notice(), at: self.last.clone() }
    }
}

/// Where a pair reads.
#[derive(Debug)]
pub(crate) struct Reader {
    word: Shared<AtomicU64>,
    read: ControlMessage,
    at: Shared<Listed>,
}

impl Reader {
    /// There is an order that was not read.
    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        // Relaxed suffices for the question. A pair that finds news loads again with `Acquire`
        // before using it, in `coming`.
        self.word.load(Ordering::Relaxed) != self.read.0
    }

    /// The last order, if it was not read.
    pub(crate) fn coming(&self) -> Option<ControlMessage> {
        let notice = ControlMessage(self.word.load(Ordering::Acquire));
        (notice != self.read).then_some(notice)
    }

    /// `notice`, which was [coming](Reader::coming), is read; with the namespaces that were there.
    pub(crate) fn read(&mut self, notice: ControlMessage) {
        self.read = notice;
        // Lists that came since the last order are skipped: only the newest holds. Moving on
        // drops the reference to the old list, and the last reader frees it.
        while let Some(next) = self.at.next.get().map(|next| next[0].clone()) {
            self.at = next;
        }
    }

    /// The number of the order that was read last.
    pub(crate) fn number(&self) -> u64 {
        self.read.number()
    }

    /// The optional commands of that order.
    pub(crate) fn nvm_commands(&self) -> u16 {
        self.read.nvm_commands()
    }

    /// The namespaces that were read last.
    #[inline(always)]
    pub(crate) fn namespaces(&self) -> &[Namespace] {
        &self.at.namespaces
    }
}

impl Drop for Reader {
    /// Reads to the end, so that a long chain is freed link by link and not in a deep recursion.
    fn drop(&mut self) {
        self.read(self.read);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    extern crate std;

    use std::vec::Vec;

    use ssdyno_spec::nvme::IdentifyNamespace;
    use zerocopy::FromZeros;

    use super::*;

    fn some(n: u32) -> Vec<Namespace> {
        let raw = IdentifyNamespace::new_zeroed();
        (1..=n).map(|id| Namespace::new(id, &raw)).collect()
    }

    #[test]
    fn readers_see_the_last_order_at_their_own_pace() {
        let mut board = ControlLog::new().unwrap();
        let mut early = board.reader();
        assert!(!early.has_news() && early.coming().is_none());
        board.list(some(2)).unwrap();
        assert!(early.namespaces().is_empty(), "not before an order");
        board.publish(Order::Run, 0xffff);
        let run = early.coming().unwrap();
        assert_eq!((run.order(), run.number()), (Order::Run, 1));
        early.read(run);
        assert_eq!((early.nvm_commands(), early.namespaces().len()), (0xffff, 2));
        let mut late = board.reader();
        board.publish(Order::Hold, 4);
        board.publish(Order::Collect, 4);
        for reader in [&mut early, &mut late] {
            assert!(reader.has_news());
            let notice = reader.coming().unwrap();
            assert_eq!((notice.order(), notice.number()), (Order::Collect, 3));
            reader.read(notice);
            assert!(!reader.has_news() && reader.coming().is_none());
            assert_eq!((reader.number(), reader.nvm_commands()), (3, 4));
        }
        assert_eq!((board.order(), board.number()), (Order::Collect, 3));
        for order in [Order::Run, Order::Drain, Order::Hold, Order::Collect, Order::End] {
            board.publish(order, 0);
            assert_eq!(board.order(), order);
        }
    }

    #[test]
    fn lists_go_when_all_have_read_past_them() {
        let mut board = ControlLog::new().unwrap();
        let mut reader = board.reader();
        let first = reader.at.clone();
        for n in 0..10 {
            board.list(some(n)).unwrap();
            board.publish(Order::Run, 0);
        }
        assert_eq!(first.owners(), 2, "the reader holds it");
        let notice = reader.coming().unwrap();
        reader.read(notice);
        assert_eq!((first.owners(), reader.namespaces().len()), (1, 9));
    }

    #[test]
    fn many_unread_lists_are_dropped_without_recursion() {
        for reader_goes_last in [true, false] {
            let mut board = ControlLog::new().unwrap();
            let reader = board.reader();
            for _ in 0..300_000 {
                board.list(Vec::new()).unwrap();
            }
            if reader_goes_last {
                drop(board);
                drop(reader);
            } else {
                drop(reader);
                drop(board);
            }
        }
    }

    #[test]
    fn threads_see_what_was_written_before_an_order() {
        let mut board = ControlLog::new().unwrap();
        let mut readers: Vec<_> = (0..3).map(|_| board.reader()).collect();
        std::thread::scope(|scope| {
            for reader in &mut readers {
                scope.spawn(move || {
                    while reader.number() < 2000 {
                        if let Some(notice) = reader.coming() {
                            reader.read(notice);
                            // The list of this order, or already that of a later one.
                            let seen = reader.namespaces().len() as u64;
                            assert!(seen >= reader.number().min(50));
                        }
                    }
                });
            }
            for number in 1..=2000 {
                board.list(some(number.min(50))).unwrap();
                board.publish(Order::Run, 0);
            }
        });
    }
}
