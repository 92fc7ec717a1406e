//! Events in the order (time, sequence).

use std::marker::PhantomData;

use ssdyno_block::Time;

/// A four-ary heap: shallower than a binary one, and the four children share a cache line or two.
const ARITY: usize = 4;

/// What may be scheduled: anything that packs into 32 bits. Small entries are the speed of a heap.
pub trait Event: Copy {
    /// The event as a number.
    fn pack(self) -> u32;
    /// The event that was [packed](Event::pack) into `code`.
    fn unpack(code: u32) -> Self;
}

/// The pending events of one model.
///
/// Events at the same time come out in the order in which they were scheduled, so a run depends
/// on nothing but its inputs. The queue remembers the time of the last event taken; scheduling
/// before that is an error of the model.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    /// Time (64 bits), sequence (32), event (32): one comparison orders the first two.
    heap: Vec<u128>,
    /// The root was taken: an event that is scheduled next takes its place, which saves moving
    /// another one there. Nearly every event is followed by one that it schedules.
    hollow: bool,
    sequence: u32,
    last: Time,
    kind: PhantomData<E>,
}

impl<E: Event> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue {
            heap: Vec::with_capacity(256),
            hollow: false,
            sequence: 0,
            last: Time::ZERO,
            kind: PhantomData,
        }
    }
}

#[inline]
fn time_of(entry: u128) -> Time {
    Time::from_ps((entry >> 64) as u64)
}

impl<E: Event> EventQueue<E> {
    /// An empty queue at time zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `event` at `at`.
    ///
    /// # Panics
    /// If `at` lies before the last event taken: effects cannot precede causes.
    #[inline(always)]
    pub fn schedule(&mut self, at: Time, event: E) {
        assert!(at >= self.last, "event at {at:?} scheduled in the past of {:?}", self.last);
        if self.sequence == u32::MAX {
            self.renumber();
        }
        self.sequence += 1;
        let entry = u128::from(at.as_ps()) << 64
            | u128::from(self.sequence) << 32
            | u128::from(event.pack());
        if self.hollow {
            self.hollow = false;
            return self.sift_down_from_root(entry);
        }
        self.push(entry);
    }

    /// Adds `entry` where no place stands open.
    #[inline(never)]
    fn push(&mut self, entry: u128) {
        self.heap.push(entry);
        self.sift_up(self.heap.len() - 1);
    }

    /// Fills the place of an event that was taken.
    #[inline(always)]
    fn fill(&mut self) {
        if !self.hollow {
            return;
        }
        self.hollow = false;
        let Some(tail) = self.heap.pop() else { return };
        if !self.heap.is_empty() {
            self.sift_down_from_root(tail);
        }
    }

    /// Gives the pending events the sequence numbers from 1 on, in their order.
    #[cold]
    fn renumber(&mut self) {
        self.fill();
        self.heap.sort_unstable();
        self.sequence = 0;
        for entry in &mut self.heap {
            self.sequence += 1;
            let rest = *entry & !(u128::from(u32::MAX) << 32);
            *entry = rest | u128::from(self.sequence) << 32;
        }
        // A sorted array is a heap.
    }

    /// The time of the next event.
    #[inline(always)]
    pub fn next_time(&self) -> Option<Time> {
        if !self.hollow {
            return self.heap.first().map(|entry| time_of(*entry));
        }
        // One of the children of the root.
        match self.heap.get(1..=ARITY) {
            Some(&[a, b, c, d]) => Some(time_of(a.min(b).min(c.min(d)))),
            _ => self.heap.iter().skip(1).min().map(|entry| time_of(*entry)),
        }
    }

    /// Takes the next event if it is due at or before `now`.
    #[inline(always)]
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, E)> {
        // Nothing due: the place of the one taken last stays open.
        let at = self.next_time().filter(|at| *at <= now)?;
        self.fill();
        let first = *self.heap.first()?;
        self.last = at;
        self.hollow = true;
        Some((at, E::unpack(first as u32)))
    }

    /// Number of pending events.
    pub fn len(&self) -> usize {
        self.heap.len() - usize::from(self.hollow)
    }

    /// True when nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn sift_up(&mut self, mut at: usize) {
        let heap = &mut self.heap[..];
        let moving = heap[at];
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if heap[parent] <= moving {
                break;
            }
            heap[at] = heap[parent];
            at = parent;
        }
        heap[at] = moving;
    }

    #[inline(always)]
    fn sift_down_from_root(&mut self, moving: u128) {
        let heap = &mut self.heap[..];
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            let least = match heap.get(first..first + ARITY) {
                // The usual case without branches that depend on the keys: they would be
                // mispredicted every other time.
                Some(&[a, b, c, d]) => {
                    let (low, low_at) = least_of((a, 0), (b, 1));
                    let (high, high_at) = least_of((c, 2), (d, 3));
                    first + least_of((low, low_at), (high, high_at)).1
                }
                _ if first >= heap.len() => break,
                _ => {
                    let last = heap.len() - 1;
                    (first + 1..=last).fold(first, |least, child| {
                        if heap[child] < heap[least] { child } else { least }
                    })
                }
            };
            if heap[least] >= moving {
                break;
            }
            heap[at] = heap[least];
            at = least;
        }
        heap[at] = moving;
    }
}

/// The pair with the lesser key.
#[inline]
fn least_of(a: (u128, usize), b: (u128, usize)) -> (u128, usize) {
    let second = b.0 < a.0;
    let key = std::hint::select_unpredictable(second, b.0, a.0);
    (key, std::hint::select_unpredictable(second, b.1, a.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Event for u32 {
        fn pack(self) -> u32 {
            self
        }
        fn unpack(code: u32) -> u32 {
            code
        }
    }

    proptest! {
        #[test]
        fn comes_out_sorted_and_stable(times in prop::collection::vec(0u64..50, 0..300)) {
            let mut queue = EventQueue::new();
            for (t, index) in times.iter().zip(0u32..) {
                // Half-way the sequence runs out and starts again.
                if index == 20 {
                    queue.sequence = u32::MAX - 3;
                }
                queue.schedule(Time::from_ps(*t), index);
            }
            let mut expected: Vec<(u64, u32)> = times.iter().copied().zip(0..).collect();
            expected.sort();
            let mut got = Vec::new();
            while let Some((t, index)) = queue.pop_due(Time::MAX) {
                got.push((t.as_ps(), index));
            }
            prop_assert_eq!(got, expected);
        }
    }

    proptest! {
        /// Events taken and scheduled in any order, against a sorted list.
        #[test]
        fn is_a_sorted_list(steps in prop::collection::vec((0u64..20, 0u8..4), 0..300)) {
            let mut queue = EventQueue::new();
            let mut list: Vec<(Time, u32)> = Vec::new();
            let mut now = Time::ZERO;
            for ((delay, what), number) in steps.into_iter().zip(0u32..) {
                if number == 50 {
                    queue.sequence = u32::MAX - 3;
                }
                if what > 0 {
                    let at = now + Time::from_ps(delay);
                    queue.schedule(at, number);
                    list.push((at, number));
                    list.sort_by_key(|(at, _)| *at);
                } else {
                    now += Time::from_ps(delay);
                    while let Some((at, event)) = queue.pop_due(now) {
                        prop_assert_eq!((at, event), list.remove(0));
                        prop_assert_eq!(queue.len(), list.len());
                        prop_assert_eq!(queue.next_time(), list.first().map(|(at, _)| *at));
                        if event % 3 == 0 {
                            break;
                        }
                    }
                }
                prop_assert_eq!(queue.is_empty(), list.is_empty());
            }
        }
    }

    #[test]
    fn nothing_before_its_time() {
        let mut queue = EventQueue::new();
        queue.schedule(Time::from_ns(2), 7u32);
        assert_eq!(queue.pop_due(Time::from_ns(1)), None);
        assert_eq!(queue.next_time(), Some(Time::from_ns(2)));
        assert_eq!(queue.pop_due(Time::from_ns(2)), Some((Time::from_ns(2), 7u32)));
        assert!(queue.is_empty());
    }

    #[test]
    #[should_panic(expected = "in the past")]
    fn the_past_is_an_error() {
        let mut queue = EventQueue::new();
        queue.schedule(Time::from_ns(2), 0u32);
        queue.pop_due(Time::MAX);
        queue.schedule(Time::from_ns(1), 0);
    }
}
