//! Items on their way that arrive in the order in which they were sent.

use std::collections::VecDeque;

use ssdyno_block::{Completion, Time};

/// Things on their way, each with its arrival. When the first arrives is always at hand: the
/// controller is asked for it several times a command.
#[derive(Clone, Debug)]
pub(super) struct Pipe<T> {
    items: VecDeque<(Time, T)>,
    /// When the first arrives, [`Time::MAX`] if there is none.
    due: Time,
}

impl<T> Pipe<T> {
    pub(super) fn with_capacity(places: u32) -> Pipe<T> {
        let items = VecDeque::with_capacity(places as usize);
        Pipe { items, due: Time::MAX }
    }

    /// When the first arrives, [`Time::MAX`] if there is none.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.due
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Sends `item`, to arrive at `at`, or with those that set out earlier if they arrive later.
    #[inline]
    pub(super) fn send(&mut self, at: Time, item: T) {
        // Items arrive in the order in which they set out, as packets on a link do. An item with
        // a shorter latency does not overtake.
        let at = self.items.back().map_or(at, |(last, _)| at.max(*last));
        self.due = self.due.min(at);
        self.items.push_back((at, item));
    }

    /// The first, if it is there at `now`.
    #[inline]
    pub(super) fn take_due(&mut self, now: Time) -> Option<T> {
        // The time at hand spares a look at the queue. The controller checks its pipes several
        // times for each command, and mostly nothing is due.
        if self.due > now {
            return None;
        }
        let (_, item) = self.items.pop_front()?;
        self.look();
        Some(item)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut().map(|(_, item)| item)
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.items.retain(|(_, item)| keep(item));
        self.look();
    }

    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.due = Time::MAX;
    }

    #[inline]
    fn look(&mut self) {
        self.due = self.items.front().map_or(Time::MAX, |(at, _)| *at);
    }
}

/// A read of a submission queue under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetch {
    pub(super) queue: u16,
    pub(super) count: u32,
}

/// The items on their way between host, controller and device.
#[derive(Debug)]
pub(super) struct Pipes {
    pub(super) fetches: Pipe<Fetch>,
    /// Commands whose PRP list is on the way.
    pub(super) lists: Pipe<u32>,
    /// Completions on the way to the host.
    pub(super) posts: Pipe<u32>,
    /// The device's completions within one step.
    pub(super) answers: Vec<Completion>,
}

impl Pipes {
    pub(super) fn new(fetches: u32, depth: u32) -> Pipes {
        Pipes {
            fetches: Pipe::with_capacity(fetches),
            lists: Pipe::with_capacity(depth),
            posts: Pipe::with_capacity(depth),
            answers: Vec::with_capacity(64),
        }
    }
    /// When the next arrives, [`Time::MAX`] if there is none.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.fetches.due().min(self.lists.due()).min(self.posts.due())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overtakes_and_the_first_is_known() {
        let ns = Time::from_ns;
        let mut pipe = Pipe::with_capacity(4);
        assert_eq!((pipe.due(), pipe.take_due(Time::MAX)), (Time::MAX, None));
        for (at, item) in [(3, 'a'), (2, 'b'), (5, 'c'), (6, 'd')] {
            pipe.send(ns(at), item);
        }
        assert_eq!((pipe.due(), pipe.take_due(ns(2))), (ns(3), None));
        assert_eq!([(); 3].map(|()| pipe.take_due(ns(3))), [Some('a'), Some('b'), None]);
        pipe.retain(|item| *item != 'c');
        assert_eq!((pipe.due(), pipe.len()), (ns(6), 1));
        pipe.clear();
        assert_eq!((pipe.due(), pipe.take_due(Time::MAX)), (Time::MAX, None));
        pipe.send(ns(1), 'e');
        assert_eq!(pipe.take_due(ns(1)), Some('e'));
    }
}
