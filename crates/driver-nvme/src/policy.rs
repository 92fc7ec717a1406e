//! Which queue a command goes to (S1-34 to S1-42).

use alloc::collections::TryReserveError;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use ssdyno_block::try_list;

/// The most entries of a queue, as with Linux: so that 4 bits of an identifier at least count the uses of a
/// slot.
const ENTRIES_MAX: u32 = 1 << 12;
/// Commands that the limits of MFI allow to be outstanding (S1-38, thesis clause 5.4).
pub const MFI_COMMANDS: u32 = 128;

/// How important a process is. The order is that of QPRIO (base 2.0c, figure 106): the first is
/// served first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(u8)]
pub enum PriorityClass {
    /// Before everything but admin commands; may starve the others.
    Urgent = 0,
    /// The first of the weighted classes.
    High = 1,
    /// The second of the weighted classes.
    #[default]
    Medium = 2,
    /// The last of the weighted classes.
    Low = 3,
}

impl PriorityClass {
    /// All, the first to be served first.
    pub const ALL: [PriorityClass; 4] =
        [PriorityClass::Urgent, PriorityClass::High, PriorityClass::Medium, PriorityClass::Low];
}

/// The commands of each class that the controller serves in a turn (base 2.0c, clause 3.4.4.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Weights {
    /// Commands of a queue in a row, as 2^n; 7 is no limit (base 2.0c, figure 318; S1-40).
    pub burst_shift: u8,
    /// Commands of the high class in a turn, 1 to 256.
    pub high: u16,
    /// Commands of the medium class in a turn, 1 to 256.
    pub medium: u16,
    /// Commands of the low class in a turn, 1 to 256.
    pub low: u16,
}

/// How commands are spread over the I/O queues.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum QueuePolicy {
    /// All queues in turn, by every core, each under its lock (S1-34).
    RoundRobin {
        /// The policy as printed in the thesis (code snippet 4.7): it starts with the lock of the admin queue, and puts
        /// each command into the queue after the one that it locked.
        as_printed: bool,
    },
    /// Queue = core + 1, without a lock (S1-35). Where queues are fewer than cores, cores share one,
    /// and it has a lock.
    PerCore,
    /// Each core has floor(queues / cores) queues, and takes them in turn (S1-36). Where that is 0 it
    /// is [`PerCore`](QueuePolicy::PerCore).
    PerCorePool,
    /// One queue with a lock, and no more than [`MFI_COMMANDS`] outstanding (S1-38).
    Single,
    /// Queues of four classes, served by weighted round robin with an urgent class (S1-41).
    Weighted {
        /// Queues of each class, in the order of [`PriorityClass::ALL`].
        queues: [u16; 4],
        /// What the classes get.
        weights: Weights,
    },
    /// Priority without help of the controller: the more important class has more queues (S1-42).
    MoreQueues {
        /// Queues of each class, in the order of [`PriorityClass::ALL`].
        queues: [u16; 4],
    },
}

/// The queue of a command, and the lock that its core must hold meanwhile. The cost of a lock
/// belongs to the host.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QueueChoice {
    /// The I/O queue, from 1.
    pub queue: u16,
    /// The queue whose lock the core must take first: the same queue, or (as printed) another.
    pub lock: Option<u16>,
}

/// The first queue and the number of queues of each class.
type Shares = [(u16, u16); 4];

/// A policy on a number of queues and cores.
#[derive(Clone, Debug)]
pub struct QueueSelector {
    policy: QueuePolicy,
    cores: u16,
    /// I/O queues in use: 1 to this.
    queues: u16,
    /// The next of each turn: one turn in all, or one a class.
    turns: [u16; 4],
    /// The same of each core, where each has its own queues.
    core_turns: Vec<u16>,
    /// The queues that each class uses, and those that only this class uses.
    classes: Shares,
    own: Shares,
}

impl QueueSelector {
    /// `policy` for `cores` cores where the controller has `available` I/O queues, both 1 at least.
    pub fn new(policy: QueuePolicy, cores: u16, available: u16) -> QueueSelector {
        let mut selector = QueueSelector::idle(policy, cores, available);
        selector.core_turns = vec![0; selector.turning_cores()];
        selector
    }

    /// The same where the heap may have no room.
    pub(crate) fn try_new(
        policy: QueuePolicy,
        cores: u16,
        available: u16,
    ) -> Result<QueueSelector, TryReserveError> {
        let mut selector = QueueSelector::idle(policy, cores, available);
        selector.core_turns = try_list(0, selector.turning_cores())?;
        Ok(selector)
    }

    /// The same before there are commands: turns of cores stay where they are.
    pub(crate) fn idle(policy: QueuePolicy, cores: u16, available: u16) -> QueueSelector {
        let (cores, available) = (cores.max(1), available.max(1));
        let mut classes = [(1, available); 4];
        let mut own = classes;
        let queues = match policy {
            QueuePolicy::RoundRobin { .. } => available,
            QueuePolicy::PerCore => cores.min(available),
            QueuePolicy::PerCorePool if available < cores => available,
            // Queues that do not divide evenly stay unused: 31 queues for 8 cores give 3 each
            // and 24 in all (S1-36).
            QueuePolicy::PerCorePool => available / cores * cores,
            QueuePolicy::Single => 1,
            QueuePolicy::Weighted { queues, .. } | QueuePolicy::MoreQueues { queues } => {
                (own, classes) = share(queues, available);
                classes.iter().map(|(first, n)| first + n - 1).max().unwrap_or(1)
            }
        };
        let (turns, core_turns) = ([0; 4], Vec::new());
        QueueSelector { policy, cores, queues, turns, core_turns, classes, own }
    }

    /// Each core has queues of its own.
    #[inline]
    fn has_pools(&self) -> bool {
        self.policy == QueuePolicy::PerCorePool && self.queues >= self.cores
    }

    /// Cores with a turn of their own.
    fn turning_cores(&self) -> usize {
        if self.has_pools() { usize::from(self.cores) } else { 0 }
    }

    /// The policy.
    pub fn policy(&self) -> QueuePolicy {
        self.policy
    }

    /// I/O queues that the policy uses: 1 to this.
    pub fn queues(&self) -> u16 {
        self.queues
    }

    /// The queues that `core` uses under a policy of queues for each core ([`QueuePolicy::PerCore`],
    /// [`QueuePolicy::PerCorePool`]); under the others every core uses every queue of a class. Where
    /// cores share a queue its pair needs a lock.
    pub fn queues_of(&self, core: u16) -> RangeInclusive<u16> {
        let core = core % self.cores;
        match self.policy {
            QueuePolicy::PerCorePool if self.has_pools() => {
                let pool = self.queues / self.cores;
                1 + core * pool..=(core + 1) * pool
            }
            QueuePolicy::PerCore | QueuePolicy::PerCorePool => {
                let queue = 1 + core % self.queues;
                queue..=queue
            }
            _ => 1..=self.queues,
        }
    }

    /// The class that a queue is created with; `None` where the controller does not weigh.
    pub fn class_of(&self, queue: u16) -> Option<PriorityClass> {
        let QueuePolicy::Weighted { .. } = self.policy else { return None };
        let class = |c: &&PriorityClass| {
            let (first, n) = self.own[**c as usize];
            (first..first + n).contains(&queue)
        };
        PriorityClass::ALL.iter().find(class).copied()
    }

    /// The queue for the next command of `core` for a process of `class`.
    #[inline]
    pub fn choose(&mut self, core: u16, class: PriorityClass) -> QueueChoice {
        match self.policy {
            QueuePolicy::RoundRobin { as_printed: false } => {
                let queue = 1 + turn(&mut self.turns[0], self.queues);
                QueueChoice { queue, lock: Some(queue) }
            }
            QueuePolicy::RoundRobin { as_printed: true } => {
                // `lock(queue_id); if (++queue_id > queues) queue_id = 1; submit(queue_id)`.
                let lock = self.turns[0];
                let queue = if lock >= self.queues { 1 } else { lock + 1 };
                self.turns[0] = queue;
                QueueChoice { queue, lock: Some(lock) }
            }
            QueuePolicy::PerCorePool if self.has_pools() => {
                let core = core % self.cores;
                let pool = self.queues / self.cores;
                let at = self.core_turns.get_mut(usize::from(core));
                let queue = 1 + core * pool + at.map_or(0, |at| turn(at, pool));
                QueueChoice { queue, lock: None }
            }
            QueuePolicy::PerCore | QueuePolicy::PerCorePool => {
                let queue = 1 + core % self.queues;
                // Several cores use the queue only if there are fewer queues than cores.
                // Otherwise no other core ever touches it, and a lock would cost time for
                // nothing (S1-35).
                QueueChoice { queue, lock: (self.queues < self.cores).then_some(queue) }
            }
            QueuePolicy::Single => QueueChoice { queue: 1, lock: Some(1) },
            QueuePolicy::Weighted { .. } | QueuePolicy::MoreQueues { .. } => {
                let (first, n) = self.classes[class as usize];
                let queue = first + turn(&mut self.turns[class as usize], n);
                QueueChoice { queue, lock: Some(queue) }
            }
        }
    }

    /// Entries of an I/O queue if the controller allows `entries_max` and the driver wants `entries`. A ring holds one
    /// command less than it has entries, and has at most 4096 entries (S1-26), because a command identifier has 12 bits
    /// for the slot.
    pub fn entries(&self, entries: u32, entries_max: u32) -> u32 {
        let single = self.policy == QueuePolicy::Single;
        // A ring of n entries holds n - 1 commands (S1-27). The limit of 128 commands of MFI
        // therefore needs 129 entries.
        let limit = if single { MFI_COMMANDS + 1 } else { ENTRIES_MAX };
        entries.min(entries_max).min(limit).max(2)
    }

    /// Commands that can be outstanding in all, with queues of `entries` entries (S1-37).
    pub fn outstanding_limit(&self, entries: u32) -> u64 {
        u64::from(self.queues) * u64::from(self.entries(entries, u32::MAX) - 1)
    }

    /// Commands that one core can have outstanding (S1-37).
    pub fn outstanding_limit_per_core(&self, entries: u32) -> u64 {
        let all = self.outstanding_limit(entries);
        match self.policy {
            QueuePolicy::PerCore | QueuePolicy::PerCorePool => {
                let queues = u64::from((self.queues / self.cores).max(1));
                all / u64::from(self.queues) * queues
            }
            _ => all,
        }
    }
}

/// The next of `n`, from 0.
#[inline]
fn turn(at: &mut u16, n: u16) -> u16 {
    let taken = *at;
    *at = if taken + 1 >= n { 0 } else { taken + 1 };
    taken
}

/// First queue and number of queues of each class: its own, and those that it uses. A class without queues shares those
/// of the next class that has some, or else of the previous class.
fn share(wanted: [u16; 4], available: u16) -> (Shares, Shares) {
    let mut first = 1;
    let mut own = [(0, 0); 4];
    for (class, n) in own.iter_mut().zip(wanted) {
        // Classes are served in their order: a controller with few queues gives them to the
        // important classes first. Classes without a queue use that of a neighbour.
        let n = n.min(available + 1 - first);
        *class = (first, n);
        first += n;
    }
    let mut classes = own;
    for (i, class) in classes.iter_mut().enumerate() {
        if class.1 == 0 {
            let later = own[i..].iter().find(|c| c.1 > 0);
            let earlier = own[..i].iter().rev().find(|c| c.1 > 0);
            *class = later.or(earlier).copied().unwrap_or((1, 1));
        }
    }
    (own, classes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const P3600_QUEUES: u16 = 31;
    const P3600_ENTRIES: u32 = 4096;
    const CORES: u16 = 8;

    fn on_p3600(policy: QueuePolicy) -> QueueSelector {
        QueueSelector::new(policy, CORES, P3600_QUEUES)
    }

    #[test]
    fn a_core_draws_from_its_queues_only() {
        for (policy, cores, available) in [
            (QueuePolicy::PerCore, 8, 31),
            (QueuePolicy::PerCore, 8, 3),
            (QueuePolicy::PerCorePool, 8, 31),
            (QueuePolicy::PerCorePool, 8, 5),
            (QueuePolicy::Single, 4, 31),
            (QueuePolicy::RoundRobin { as_printed: false }, 4, 31),
        ] {
            let mut selector = QueueSelector::new(policy, cores, available);
            for core in 0..cores {
                let own = selector.queues_of(core);
                let mut drawn: Vec<u16> =
                    draw(&mut selector, core, 100).iter().map(|choice| choice.queue).collect();
                drawn.sort_unstable();
                drawn.dedup();
                assert!(own.eq(drawn.iter().copied()), "{policy:?}, core {core}: {drawn:?}");
            }
        }
    }

    fn draw(selector: &mut QueueSelector, core: u16, n: usize) -> Vec<QueueChoice> {
        (0..n).map(|_| selector.choose(core, PriorityClass::Medium)).collect()
    }

    /// S1-37: every printed limit.
    #[test]
    fn outstanding_limits_are_those_of_the_thesis() {
        let limits = |policy| {
            let s = on_p3600(policy);
            (s.outstanding_limit(P3600_ENTRIES), s.outstanding_limit_per_core(P3600_ENTRIES))
        };
        let round_robin = QueuePolicy::RoundRobin { as_printed: false };
        assert_eq!(limits(round_robin), (126_945, 126_945));
        assert_eq!(limits(QueuePolicy::PerCore), (32_760, 4095));
        assert_eq!(limits(QueuePolicy::PerCorePool), (98_280, 12_285));
        assert_eq!(limits(QueuePolicy::Single), (128, 128));
    }

    /// S1-34.
    #[test]
    fn round_robin_takes_each_queue_under_its_own_lock() {
        let mut s = on_p3600(QueuePolicy::RoundRobin { as_printed: false });
        let seen = draw(&mut s, 5, 62);
        for (i, choice) in seen.iter().enumerate() {
            let queue = i as u16 % 31 + 1;
            assert_eq!(*choice, QueueChoice { queue, lock: Some(queue) });
        }
    }

    /// S1-34 (E): code snippet 4.7.
    #[test]
    fn round_robin_as_printed_locks_the_queue_before() {
        let mut s = on_p3600(QueuePolicy::RoundRobin { as_printed: true });
        let seen = draw(&mut s, 0, 33);
        assert_eq!(seen[0], QueueChoice { queue: 1, lock: Some(0) });
        assert_eq!(seen[1], QueueChoice { queue: 2, lock: Some(1) });
        assert_eq!(seen[30], QueueChoice { queue: 31, lock: Some(30) });
        assert_eq!(seen[31], QueueChoice { queue: 1, lock: Some(31) });
        assert_eq!(seen[32], QueueChoice { queue: 2, lock: Some(1) });
    }

    /// S1-35, and fewer queues than cores.
    #[test]
    fn per_core_needs_locks_only_where_queues_are_short() {
        let mut s = on_p3600(QueuePolicy::PerCore);
        assert_eq!(s.queues(), 8);
        assert_eq!(s.choose(7, PriorityClass::Low), QueueChoice { queue: 8, lock: None });
        let mut short = QueueSelector::new(QueuePolicy::PerCore, 8, 3);
        assert_eq!(short.choose(7, PriorityClass::Low), QueueChoice { queue: 2, lock: Some(2) });
        let mut short = QueueSelector::new(QueuePolicy::PerCorePool, 8, 3);
        assert_eq!(short.choose(4, PriorityClass::Low), QueueChoice { queue: 2, lock: Some(2) });
    }

    /// S1-36.
    #[test]
    fn pools_do_not_overlap() {
        let mut s = on_p3600(QueuePolicy::PerCorePool);
        assert_eq!(s.queues(), 24);
        let mut owner = [None; 25];
        for core in 0..CORES {
            for choice in draw(&mut s, core, 7) {
                assert_eq!(choice.lock, None);
                let before = owner[usize::from(choice.queue)].replace(core);
                assert!(before.is_none_or(|b| b == core));
            }
        }
        assert!(owner[1..].iter().all(Option::is_some));
    }

    /// S1-41, S1-42.
    #[test]
    fn classes_have_their_own_queues() {
        let weights = Weights { burst_shift: 0, high: 8, medium: 4, low: 1 };
        let mut s =
            QueueSelector::new(QueuePolicy::Weighted { queues: [0, 4, 2, 2], weights }, 4, 31);
        assert_eq!(s.queues(), 8);
        let queue = |s: &mut QueueSelector, class| s.choose(0, class).queue;
        assert_eq!(queue(&mut s, PriorityClass::Urgent), 1, "shares those of the next class");
        assert_eq!(queue(&mut s, PriorityClass::Medium), 5);
        assert_eq!(queue(&mut s, PriorityClass::Medium), 6);
        assert_eq!(queue(&mut s, PriorityClass::Medium), 5);
        assert_eq!(queue(&mut s, PriorityClass::Low), 7);
        assert_eq!(s.class_of(4), Some(PriorityClass::High));
        assert_eq!(s.class_of(8), Some(PriorityClass::Low));
        let more = QueueSelector::new(QueuePolicy::MoreQueues { queues: [0, 3, 1, 0] }, 4, 31);
        assert_eq!((more.queues(), more.class_of(2)), (4, None));
    }

    proptest::proptest! {
        /// For any numbers, every choice is an existing queue.
        #[test]
        fn choices_exist(
            kind in 0..6_u8,
            cores in 0..70_u16,
            available in 0..70_u16,
            queues in proptest::array::uniform4(0..40_u16),
            calls in proptest::collection::vec((0..100_u16, 0..4_usize), 1..50),
        ) {
            let weights = Weights { burst_shift: 7, high: 1, medium: 1, low: 1 };
            let policy = match kind {
                0 => QueuePolicy::RoundRobin { as_printed: false },
                1 => QueuePolicy::PerCore,
                2 => QueuePolicy::PerCorePool,
                3 => QueuePolicy::Single,
                4 => QueuePolicy::Weighted { queues, weights },
                _ => QueuePolicy::MoreQueues { queues },
            };
            let mut s = QueueSelector::new(policy, cores, available);
            proptest::prop_assert!(s.queues() >= 1 && s.queues() <= available.max(1));
            for (core, class) in calls {
                let choice = s.choose(core, PriorityClass::ALL[class]);
                proptest::prop_assert!((1..=s.queues()).contains(&choice.queue));
                proptest::prop_assert!(choice.lock.is_none_or(|l| l == choice.queue));
                let unlocked = choice.lock.is_none();
                proptest::prop_assert!(!unlocked || s.queues() >= cores.max(1));
            }
        }
    }
}
