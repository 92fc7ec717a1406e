//! Which submission queue is next (base 2.0c, clause 3.4.4).

use ssdyno_device::nvme::Burst;

/// Priority of a submission queue in weighted round robin, as in QPRIO (base 2.0c, figure 161), and
/// the admin queue before all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    Admin = 0,
    Urgent = 1,
    High = 2,
    Medium = 3,
    Low = 4,
}

impl Class {
    const ALL: [Class; 5] = [Class::Admin, Class::Urgent, Class::High, Class::Medium, Class::Low];

    /// From QPRIO.
    pub(super) fn from_priority(bits: u32) -> Class {
        Class::ALL[(bits & 3) as usize + 1]
    }
}

/// The queues of a class that have entries.
#[derive(Clone, Debug)]
struct Ring {
    pending: Vec<u64>,
    count: u32,
    /// The queue that was served last.
    last: u16,
    /// The rest of its burst.
    left: u32,
}

impl Ring {
    fn new(queues: usize) -> Ring {
        Ring { pending: vec![0; queues.div_ceil(64)], count: 0, last: 0, left: 0 }
    }
    #[inline]
    fn has(&self, queue: u16) -> bool {
        self.pending[usize::from(queue >> 6)] >> (queue & 63) & 1 == 1
    }
    /// The pending queue after `last`, around the ring.
    #[inline]
    fn after(&self, last: u16) -> Option<u16> {
        let words = self.pending.len();
        let start = usize::from(last >> 6);
        // Only queues above the last one are looked at in its word: all ones but the lowest,
        // shifted by the number. For queue 63 of a word the shift leaves nothing, and the search
        // goes on in the next word.
        let above = (!1u64) << (last & 63);
        let first = self.pending[start] & above;
        if first != 0 {
            return Some((start * 64) as u16 + first.trailing_zeros() as u16);
        }
        // The starting word again at the end, for what lies below.
        (1..=words).find_map(|step| {
            let word = (start + step) % words;
            let bits = self.pending[word];
            (bits != 0).then(|| (word * 64) as u16 + bits.trailing_zeros() as u16)
        })
    }
}

/// Permission to take entries from a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Grant {
    pub(super) queue: u16,
    /// At most this number, and at least 1.
    pub(super) limit: u32,
    class: Class,
}

/// Round robin, or weighted round robin with urgent class.
#[derive(Clone, Debug)]
pub(super) struct Arbiter {
    weighted: bool,
    burst: u32,
    /// Commands of a round for high, medium, low.
    weights: [u32; 3],
    /// The rest of the round.
    credits: [u32; 3],
    classes: [Ring; 5],
    /// Queues that have entries.
    pending: u32,
    class_of: Vec<Class>,
}

impl Arbiter {
    pub(super) fn new(io_queues: u16) -> Arbiter {
        let queues = usize::from(io_queues) + 1;
        Arbiter {
            weighted: false,
            burst: 1,
            weights: [1; 3],
            credits: [1; 3],
            classes: std::array::from_fn(|_| Ring::new(queues)),
            pending: 0,
            class_of: vec![Class::High; queues],
        }
    }

    /// As after a reset; `weighted` is CC.AMS.
    pub(super) fn reset(&mut self, weighted: bool) {
        let queues = self.class_of.len();
        self.weighted = weighted;
        self.classes = std::array::from_fn(|_| Ring::new(queues));
        self.pending = 0;
        self.class_of.fill(Class::High);
        // In round robin the admin queue is one of all (base 2.0c, clause 3.4.4.1).
        self.class_of[0] = if weighted { Class::Admin } else { Class::High };
    }

    /// The value of the arbitration feature (base 2.0c, figure 318).
    pub(super) fn set_feature(&mut self, value: u32) {
        // A burst exponent of 7 means no limit (base 2.0c, figure 318). The largest number
        // serves as one, because a grant is always reduced to the entries that are there.
        let exponent = value & 7;
        self.burst = if exponent == 7 { u32::MAX } else { 1 << exponent };
        self.weights = [value >> 24, value >> 16, value >> 8].map(|weight| (weight & 0xff) + 1);
        self.credits = self.weights;
    }

    /// The value of the feature for a burst with all weights 1.
    pub(super) fn feature(burst: Burst) -> u32 {
        u32::from(burst.exponent())
    }

    pub(super) fn set_class(&mut self, queue: u16, class: Class) {
        self.class_of[usize::from(queue)] = if self.weighted { class } else { Class::High };
    }

    /// No queue has entries.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.pending == 0
    }

    /// `queue` has entries.
    #[inline(always)]
    pub(super) fn pend(&mut self, queue: u16) {
        let ring = &mut self.classes[self.class_of[usize::from(queue)] as usize];
        let new = u32::from(!ring.has(queue));
        ring.count += new;
        self.pending += new;
        ring.pending[usize::from(queue >> 6)] |= 1 << (queue & 63);
    }

    /// `queue` has no more entries.
    #[inline]
    pub(super) fn unpend(&mut self, queue: u16) {
        let ring = &mut self.classes[self.class_of[usize::from(queue)] as usize];
        let gone = u32::from(ring.has(queue));
        ring.count -= gone;
        self.pending -= gone;
        ring.pending[usize::from(queue >> 6)] &= !(1 << (queue & 63));
        // A queue that ran empty gives up the rest of its burst. If it has entries again, it
        // waits for its turn like the others.
        if ring.last == queue {
            ring.left = 0;
        }
    }

    /// The queue to take from next. Where `admin` or `io` is false there is no room for commands of
    /// that kind of queue.
    #[inline(always)]
    pub(super) fn grant(&mut self, admin: bool, io: bool) -> Option<Grant> {
        if !self.weighted {
            return self.grant_in(Class::High, admin, io);
        }
        // These two classes have strict priority over the weighted ones (base 2.0c, clause
        // 3.4.4.2). An urgent queue that never runs empty starves the rest, and the
        // specification allows that (S1-41).
        for class in [Class::Admin, Class::Urgent] {
            if self.classes[class as usize].count > 0
                && let Some(grant) = self.grant_in(class, admin, io)
            {
                return Some(grant);
            }
        }
        let ready = |class: Class| self.classes[class as usize].count > 0;
        let weighted = [Class::High, Class::Medium, Class::Low];
        let has_credit = |at: &usize| ready(weighted[*at]) && self.credits[*at] > 0;
        let at = (0..3).find(has_credit).or_else(|| {
            // Every queue with entries has had its share: the next round begins.
            let any = (0..3).find(|at| ready(weighted[*at]))?;
            self.credits = self.weights;
            Some(any)
        })?;
        let mut grant = self.grant_in(weighted[at], admin, io)?;
        // A burst ends with the credits of its class, or a large burst would give a class more
        // commands a round than its weight.
        grant.limit = grant.limit.min(self.credits[at]);
        Some(grant)
    }

    #[inline(always)]
    fn grant_in(&mut self, class: Class, admin: bool, io: bool) -> Option<Grant> {
        let ring = &self.classes[class as usize];
        if ring.count == 0 {
            return None;
        }
        let may = |queue: u16| if queue == 0 { admin } else { io };
        // The queue that was served last goes on until its burst is used up. Only then is the
        // turn of the next queue.
        if ring.left > 0 && ring.has(ring.last) && may(ring.last) {
            return Some(Grant { queue: ring.last, limit: ring.left, class });
        }
        let queue = match (admin, io) {
            (_, true) => {
                ring.after(ring.last).filter(|queue| may(*queue)).or_else(|| ring.after(0))?
            }
            (true, false) => 0,
            (false, false) => return None,
        };
        if !(may(queue) && ring.has(queue)) {
            return None;
        }
        Some(Grant { queue, limit: self.burst, class })
    }

    /// `count` entries were taken under `grant`.
    #[inline]
    pub(super) fn charge(&mut self, grant: Grant, count: u32) {
        let weighted = (grant.class as usize).checked_sub(Class::High as usize);
        let mut left = grant.limit - count;
        if let (true, Some(at)) = (self.weighted, weighted) {
            self.credits[at] -= count;
            left = if self.credits[at] == 0 { 0 } else { left };
        }
        let ring = &mut self.classes[grant.class as usize];
        ring.last = grant.queue;
        ring.left = left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes one entry at a time from queues that never run dry; gives the queues.
    fn take(arbiter: &mut Arbiter, count: usize) -> Vec<u16> {
        let one = |_| {
            let grant = arbiter.grant(true, true).unwrap();
            arbiter.charge(grant, 1);
            grant.queue
        };
        (0..count).map(one).collect()
    }

    fn share(order: &[u16], queue: u16) -> usize {
        order.iter().filter(|q| **q == queue).count()
    }

    #[test]
    fn round_robin_takes_bursts_in_turn() {
        let mut arbiter = Arbiter::new(70);
        arbiter.reset(false);
        for (burst, expected) in [(0, [1, 2, 69, 1, 2, 69, 1, 2]), (1, [1, 1, 2, 2, 69, 69, 1, 1])]
        {
            arbiter.reset(false);
            arbiter.set_feature(burst);
            for queue in [1, 2, 69] {
                arbiter.pend(queue);
            }
            assert_eq!(take(&mut arbiter, 8), expected, "burst 2^{burst}");
        }
        // Without a limit no other queue has a turn until the queue is empty.
        arbiter.reset(false);
        arbiter.set_feature(7);
        for queue in [1, 2] {
            arbiter.pend(queue);
        }
        assert_eq!(share(&take(&mut arbiter, 1000), 1), 1000);
        arbiter.unpend(1);
        assert_eq!(take(&mut arbiter, 2), [2, 2]);
    }

    #[test]
    fn round_robin_serves_the_admin_queue_as_any_other_but_without_its_room() {
        let mut arbiter = Arbiter::new(3);
        arbiter.reset(false);
        arbiter.set_feature(0);
        for queue in [0, 1, 3] {
            arbiter.pend(queue);
        }
        assert_eq!(take(&mut arbiter, 4), [1, 3, 0, 1]);
        let mut io_only = |admin, io| {
            let grant = arbiter.grant(admin, io)?;
            arbiter.charge(grant, 1);
            Some(grant.queue)
        };
        assert_eq!([(); 3].map(|()| io_only(false, true)), [Some(3), Some(1), Some(3)]);
        assert_eq!(io_only(true, false), Some(0));
        assert_eq!(io_only(true, false), Some(0));
        assert_eq!(io_only(false, false), None);
    }

    #[test]
    fn weights_are_exact_shares_and_urgent_starves() {
        let mut arbiter = Arbiter::new(5);
        arbiter.reset(true);
        // High 8, medium 4, low 2; bursts of 2.
        arbiter.set_feature(7 << 24 | 3 << 16 | 1 << 8 | 1);
        let classes = [Class::High, Class::Medium, Class::Low, Class::Low, Class::Urgent];
        for (queue, class) in (1..).zip(classes) {
            arbiter.set_class(queue, class);
        }
        for queue in [1, 2, 3, 4] {
            arbiter.pend(queue);
        }
        let order = take(&mut arbiter, 14 * 10);
        assert_eq!([1, 2, 3, 4].map(|queue| share(&order, queue)), [80, 40, 10, 10]);
        arbiter.pend(5);
        assert_eq!(share(&take(&mut arbiter, 100), 5), 100);
        arbiter.pend(0);
        assert_eq!(take(&mut arbiter, 2), [0, 0], "admin goes before urgent");
        arbiter.unpend(0);
        arbiter.unpend(5);
        arbiter.unpend(1);
        let order = take(&mut arbiter, 60);
        assert_eq!([2, 3, 4].map(|queue| share(&order, queue)), [40, 10, 10]);
    }
}
