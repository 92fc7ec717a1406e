//! What a controller object tells its queue pairs, whoever owns them: a chain of notices.
//!
//! There is one writer, the controller object; each pair reads at its own pace and misses nothing.
//! Looking whether there is news is one load of a pointer, and nobody ever waits: the chain only grows
//! at its end, and a notice goes when the last pair has read past it.

use alloc::boxed::Box;
use alloc::sync::Arc;

use once_cell::race::OnceBox;

use crate::Namespace;

/// What pairs are to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// Take commands, for these namespaces.
    Run,
    /// Take no command; bring those that are outstanding to their end.
    Drain,
    /// Take what was answered, then touch neither rings nor doorbells: a reset follows.
    Hold,
    /// The controller is idle: give up what is outstanding, and empty the rings.
    Collect,
    /// The controller reaches no memory any more: give up everything and free it. The last notice.
    End,
}

#[derive(Debug)]
struct Notice {
    order: Order,
    /// Notices are numbered from 0.
    number: u64,
    namespaces: Arc<[Namespace]>,
    /// Optional commands: bits of ONCS.
    nvm_commands: u16,
    next: OnceBox<Arc<Notice>>,
}

/// Where the controller object writes.
#[derive(Debug)]
pub(crate) struct Board {
    last: Arc<Notice>,
}

impl Board {
    /// Begins with [`Order::Collect`]: pairs wait for the first [`Order::Run`].
    pub(crate) fn new() -> Board {
        let (order, namespaces) = (Order::Collect, Arc::new([]));
        let next = OnceBox::new();
        Board { last: Arc::new(Notice { order, number: 0, namespaces, nvm_commands: 0, next }) }
    }

    pub(crate) fn publish(
        &mut self,
        order: Order,
        namespaces: &Arc<[Namespace]>,
        nvm_commands: u16,
    ) {
        let (number, namespaces) = (self.last.number + 1, Arc::clone(namespaces));
        let next = OnceBox::new();
        let notice = Arc::new(Notice { order, number, namespaces, nvm_commands, next });
        let refused = self.last.next.set(Box::new(Arc::clone(&notice)));
        debug_assert!(refused.is_ok(), "somebody else wrote");
        self.last = notice;
    }

    /// The last order.
    pub(crate) fn order(&self) -> Order {
        self.last.order
    }

    /// Its number.
    pub(crate) fn number(&self) -> u64 {
        self.last.number
    }

    /// A reader that has read everything up to now.
    pub(crate) fn reader(&self) -> Reader {
        Reader { at: Arc::clone(&self.last) }
    }
}

/// Where a pair reads.
#[derive(Debug)]
pub(crate) struct Reader {
    at: Arc<Notice>,
}

impl Reader {
    /// There is a notice that was not read.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.at.next.get().is_some()
    }

    /// The order of the notice after this one, if any.
    pub(crate) fn coming(&self) -> Option<Order> {
        self.at.next.get().map(|next| next.order)
    }

    /// Goes to the next notice, and gives its order; `None` where there is none.
    pub(crate) fn advance(&mut self) -> Option<Order> {
        self.at = Arc::clone(self.at.next.get()?);
        Some(self.at.order)
    }

    /// The number of the notice that was read last.
    pub(crate) fn number(&self) -> u64 {
        self.at.number
    }

    /// What that notice says about namespaces and optional commands.
    pub(crate) fn namespaces(&self) -> (&Arc<[Namespace]>, u16) {
        (&self.at.namespaces, self.at.nvm_commands)
    }
}

impl Drop for Reader {
    /// Reads to the end, so that a long chain is freed link by link and not in a deep recursion.
    fn drop(&mut self) {
        while self.advance().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    extern crate std;

    use super::*;

    #[test]
    fn readers_see_every_notice_in_order_at_their_own_pace() {
        let none: Arc<[Namespace]> = Arc::new([]);
        let mut board = Board::new();
        let mut early = board.reader();
        assert!(!early.has_news());
        board.publish(Order::Run, &none, 4);
        let mut late = board.reader();
        board.publish(Order::Hold, &none, 4);
        assert_eq!((early.coming(), late.coming()), (Some(Order::Run), Some(Order::Hold)));
        assert_eq!(early.advance(), Some(Order::Run));
        assert_eq!(early.namespaces().1, 4);
        for reader in [&mut early, &mut late] {
            assert_eq!(reader.advance(), Some(Order::Hold));
            assert_eq!((reader.advance(), reader.number()), (None, 2));
        }
        assert_eq!((board.order(), board.number()), (Order::Hold, 2));
    }

    #[test]
    fn notices_go_when_all_have_read_past_them() {
        let seen: Arc<[Namespace]> = Arc::new([]);
        let mut board = Board::new();
        let mut reader = board.reader();
        for _ in 0..10 {
            board.publish(Order::Run, &seen, 0);
        }
        assert_eq!(Arc::strong_count(&seen), 11);
        while reader.advance().is_some() {}
        assert_eq!(Arc::strong_count(&seen), 2);
    }

    #[test]
    fn a_million_unread_notices_are_dropped_without_recursion() {
        let none: Arc<[Namespace]> = Arc::new([]);
        for reader_goes_last in [true, false] {
            let mut board = Board::new();
            let reader = board.reader();
            for _ in 0..1_000_000 {
                board.publish(Order::Run, &none, 0);
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
    fn threads_see_what_was_written_before_a_notice() {
        let mut board = Board::new();
        let mut readers: std::vec::Vec<_> = (0..3).map(|_| board.reader()).collect();
        std::thread::scope(|scope| {
            for reader in &mut readers {
                scope.spawn(move || {
                    let mut seen = 0;
                    while seen < 2000 {
                        if reader.advance().is_some() {
                            seen += 1;
                            assert_eq!(reader.number(), seen);
                            assert_eq!(u64::from(reader.namespaces().1), seen);
                        }
                    }
                });
            }
            let none: Arc<[Namespace]> = Arc::new([]);
            for number in 1..=2000 {
                board.publish(Order::Run, &none, number);
            }
        });
    }
}
