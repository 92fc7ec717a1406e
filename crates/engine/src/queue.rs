//! Events in the order (time, sequence).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::marker::PhantomData;

use ssdyno_block::Time;

use crate::few::Few;
use crate::wheel::Wheel;

/// The events that may be scheduled: any type that packs into 32 bits. Small entries are the speed
/// of a queue.
pub trait Event: Copy {
    /// The event as a number.
    fn pack(self) -> u32;
    /// The event that was [packed](Event::pack) into `code`.
    fn unpack(code: u32) -> Self;
}

impl Event for u32 {
    #[inline]
    fn pack(self) -> u32 {
        self
    }
    #[inline]
    fn unpack(code: u32) -> u32 {
        code
    }
}

impl Event for u16 {
    #[inline]
    fn pack(self) -> u32 {
        u32::from(self)
    }
    #[inline]
    fn unpack(code: u32) -> u16 {
        code as u16
    }
}

impl Event for bool {
    #[inline]
    fn pack(self) -> u32 {
        u32::from(self)
    }
    #[inline]
    fn unpack(code: u32) -> bool {
        code != 0
    }
}

/// An enum that is an [`Event`](crate::Event). Each value has the number of its kind behind it, which takes the
/// bits from the one behind the enum's name on; what it carries, an event itself, has the bits below.
#[macro_export]
macro_rules! event_kinds {
    (
        $(#[$meta:meta])*
        $vis:vis enum $event:ident << $bits:literal {
            $($(#[$doc:meta])* $value:ident $(($payload:ty))? = $kind:literal,)*
        }
    ) => {
        $(#[$meta])*
        $vis enum $event {
            $($(#[$doc])* $value $(($payload))?,)*
        }

        impl $crate::Event for $event {
            #[inline]
            fn pack(self) -> u32 {
                match self {
                    $($event::$value $(($crate::event_kinds!(@as rest, $payload)))? => {
                        $kind << $bits $(| <$payload as $crate::Event>::pack(rest))?
                    })*
                }
            }

            #[inline]
            fn unpack(code: u32) -> $event {
                match code >> $bits {
                    $($kind => $event::$value $((
                        <$payload as $crate::Event>::unpack(code & ((1 << $bits) - 1))
                    ))?,)*
                    kind => unreachable!("{kind} is not a kind of event"),
                }
            }
        }
    };
    (@as $name:ident, $payload:ty) => { $name };
}

/// The pending events of one model.
///
/// Events at the same time come out in the order in which they were scheduled, so a run depends
/// on nothing but its inputs. The queue remembers the time of the last event taken; scheduling
/// before that is an error of the model.
///
/// Each is a key: time (64 bits), sequence (32), event (32), so that one comparison orders the first two.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    /// The least key of all, [`NONE`] if nothing is pending: it is asked for far more often than it changes.
    first: u128,
    /// The others, while they are few.
    few: Few,
    /// They are not: they are in the wheel and in the heap.
    many: bool,
    /// The others that come soon.
    wheel: Wheel,
    /// The others that the wheel does not take.
    later: BinaryHeap<Reverse<u128>>,
    sequence: u32,
    last: Time,
    kind: PhantomData<E>,
}

/// Greater than all keys: sequence numbers stay below.
const NONE: u128 = u128::MAX;

impl<E: Event> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue {
            first: NONE,
            few: Few::NONE,
            many: false,
            wheel: Wheel::new(),
            later: BinaryHeap::new(),
            sequence: 0,
            last: Time::ZERO,
            kind: PhantomData,
        }
    }
}

#[inline(always)]
fn time_of(key: u128) -> Time {
    Time::from_ps((key >> 64) as u64)
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
        if self.sequence == u32::MAX - 1 {
            self.renumber();
        }
        self.sequence += 1;
        let key = u128::from(at.as_ps()) << 64
            | u128::from(self.sequence) << 32
            | u128::from(event.pack());
        let other = if key < self.first { std::mem::replace(&mut self.first, key) } else { key };
        if other != NONE {
            self.keep(other);
        }
    }

    /// Puts away `key`, which is not the first.
    #[inline(always)]
    fn keep(&mut self, key: u128) {
        if !self.many {
            if self.few.insert(key) {
                return;
            }
            self.become_many();
        }
        if !self.wheel.insert(key, self.last.as_ps()) {
            self.keep_for_later(key);
        }
        if self.wheel.is_period_over() {
            self.judge_width();
        }
    }

    #[cold]
    fn keep_for_later(&mut self, key: u128) {
        self.later.push(Reverse(key));
    }

    #[cold]
    fn take_later(&mut self) -> u128 {
        self.later.pop().map_or(NONE, |key| key.0)
    }

    /// Puts the few, who are too many now, into the wheel.
    #[cold]
    fn become_many(&mut self) {
        let keys = self.take_all_but_first(self.wheel.shift());
        self.many = true;
        self.spread(keys);
    }

    /// Gives the slots of the wheel another width where that is better, or does without the wheel.
    #[cold]
    fn judge_width(&mut self) {
        let shift = self.wheel.better_width();
        let least = self.wheel.slots_filled() + self.later.len();
        if shift.is_none() && !self.few.has_ample_room_for(least) {
            return;
        }
        let keys = self.take_all_but_first(shift.unwrap_or(self.wheel.shift()));
        if self.few.has_ample_room_for(keys.len()) {
            self.many = false;
            return keys.into_iter().for_each(|key| self.keep(key));
        }
        self.spread(keys);
    }

    /// Puts `keys` into the empty wheel and heap.
    fn spread(&mut self, keys: Vec<u128>) {
        self.wheel.begin_period(keys.len());
        for key in keys {
            if !self.wheel.insert(key, self.last.as_ps()) {
                self.keep_for_later(key);
            }
        }
    }

    /// The least key but the first leaves wheel or heap.
    #[inline(always)]
    fn take_second(&mut self) -> u128 {
        if !self.many {
            return self.few.take_first().unwrap_or(NONE);
        }
        let later = self.later.peek().map_or(NONE, |key| key.0);
        match self.wheel.first(self.last.as_ps()) {
            Some((key, slot)) if key < later => {
                self.wheel.remove(slot);
                key
            }
            _ => self.take_later(),
        }
    }

    /// Takes all but the first out of where they are; from now on a slot of the wheel is `1 << shift` picoseconds.
    fn take_all_but_first(&mut self, shift: u32) -> Vec<u128> {
        let mut keys: Vec<u128> = self.later.drain().map(|key| key.0).collect();
        self.few.drain(&mut keys);
        self.wheel.drain(shift, &mut keys);
        keys
    }

    /// Gives the pending events the sequence numbers from 1 on, in their order.
    #[cold]
    fn renumber(&mut self) {
        let mut keys = self.take_all_but_first(self.wheel.shift());
        keys.push(std::mem::replace(&mut self.first, NONE));
        keys.retain(|key| *key != NONE);
        keys.sort_unstable();
        self.sequence = 0;
        for key in keys {
            self.schedule(time_of(key), E::unpack(key as u32));
        }
    }

    /// The time of the next event.
    #[inline(always)]
    pub fn next_time(&self) -> Option<Time> {
        (self.first != NONE).then(|| time_of(self.first))
    }

    /// Takes the next event if it is due at or before `now`.
    #[inline(always)]
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, E)> {
        let first = self.first;
        let at = time_of(first);
        // The time of `NONE` is used only if nothing is pending.
        if at > now || (at == Time::MAX && first == NONE) {
            return None;
        }
        self.last = at;
        self.first = self.take_second();
        Some((at, E::unpack(first as u32)))
    }

    /// True when nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Rng;
    use proptest::prelude::*;

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
        fn is_a_sorted_list(
            reach in prop::sample::select(vec![20u64, 1 << 17, 1 << 25, 1 << 40]),
            steps in prop::collection::vec((0.0f64..1.0, 0u8..4), 0..300),
        ) {
            let mut queue = EventQueue::new();
            let mut list: Vec<(Time, u32)> = Vec::new();
            let mut now = Time::ZERO;
            for ((share, what), number) in steps.into_iter().zip(0u32..) {
                let delay = (share * reach as f64) as u64;
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

    /// Many events, near and far, alone and in crowds, against a sorted set: the width of the slots
    /// changes on the way, and the order never.
    #[test]
    fn the_width_of_slots_decides_nothing() {
        let delays: [fn(&mut Rng) -> u64; 5] = [
            |rng| rng.below(1 << 10),
            |rng| rng.below(1 << 33),
            |rng| 80_000_000 + rng.below(4) * 1000,
            |rng| if rng.below(20) == 0 { 3_500_000_000 } else { rng.below(2_000_000) },
            |_| 0,
        ];
        let mut rng = Rng::new(5, "queue");
        let mut queue = EventQueue::new();
        let mut oracle = BTreeSet::new();
        let (mut now, mut number, mut widths) = (Time::ZERO, 0u32, BTreeSet::new());
        for round in 0..60_000u32 {
            let delay = delays[(round / 12_000) as usize];
            // A thousand pending, later a few, then a thousand again.
            let pending = if (round / 6000) % 2 == 0 { 1000 } else { 7 };
            while oracle.len() < pending {
                let at = now + Time::from_ps(delay(&mut rng));
                queue.schedule(at, number);
                oracle.insert((at, number));
                number += 1;
            }
            let next = oracle.pop_first();
            assert_eq!(queue.next_time(), next.map(|(at, _)| at));
            assert_eq!(queue.pop_due(Time::MAX), next);
            now = next.map_or(now, |(at, _)| at);
            widths.insert(queue.wheel.shift());
        }
        assert!(widths.len() > 5, "the slots had the widths {widths:?} only");
    }

    /// Events scheduled for the end of time come out there.
    #[test]
    fn the_last_moment_is_a_time() {
        let mut queue = EventQueue::new();
        assert_eq!(queue.pop_due(Time::MAX), None);
        queue.schedule(Time::MAX, 3u32);
        queue.schedule(Time::MAX, 4u32);
        assert_eq!(queue.pop_due(Time::MAX), Some((Time::MAX, 3)));
        assert_eq!(queue.pop_due(Time::MAX), Some((Time::MAX, 4)));
        assert_eq!((queue.pop_due(Time::MAX), queue.is_empty()), (None, true));
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
