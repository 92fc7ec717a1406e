//! Injected faults: one plan of what goes wrong, for devices, links, networks and interrupts (S4-48).
//!
//! Whoever carries out a fault asks the plan what the next command, message or interrupt meets
//! ([`FaultPlan::meets`]), and when the whole hangs or is removed ([`FaultPlan::take_due`]). The plan draws, keeps
//! the times, and counts.

use alloc::vec::Vec;

use crate::{Rng, Time};

/// The faults of a command, a message or an interrupt, or of their path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It takes its time and ends with an error.
    Error,
    /// It begins, or arrives, so much later.
    Delay(Time),
    /// It never arrives, and is never completed.
    Drop,
    /// Nothing moves for so long; [`Time::MAX`]: until a reset.
    Hang(Time),
    /// A device is removed for good (surprise removal); a session breaks.
    Remove,
    /// It arrives damaged, which its digest shows.
    Corrupt,
}

/// What a fault hits. Each has random numbers of its own, so that a fault of one does not move those of
/// another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultSite {
    /// Commands of a device.
    Command,
    /// Interrupts.
    Interrupt,
    /// Messages of a network: a command with its data, or its answer.
    Message,
}

/// The names of the random streams, by site. They decide about results: changing one moves every fault.
const STREAMS: [&str; 3] = ["faults", "faults of interrupts", "faults of the network"];

/// Which of those that come to a site a fault hits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FaultTrigger {
    /// Each, with this probability.
    Share(f64),
    /// The one with this number, as whoever asks counts them.
    Number(u64),
    /// So many that come next.
    Next(u32),
}

/// The faults injected so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Injected {
    /// Commands that ended with an error.
    pub errors: u64,
    /// Commands or messages that came late.
    pub delays: u64,
    /// Commands that never completed, and messages that were lost.
    pub drops: u64,
    /// Messages that were damaged.
    pub corrupted: u64,
    /// Interrupts that never arrived.
    pub lost_interrupts: u64,
    /// When the device hung.
    pub hung_at: Option<Time>,
    /// When it was removed.
    pub removed_at: Option<Time>,
}

impl Injected {
    /// What two devices did together; of moments the first.
    pub fn with(self, other: Injected) -> Injected {
        let first = |a: Option<Time>, b: Option<Time>| a.into_iter().chain(b).min();
        Injected {
            errors: self.errors + other.errors,
            delays: self.delays + other.delays,
            drops: self.drops + other.drops,
            corrupted: self.corrupted + other.corrupted,
            lost_interrupts: self.lost_interrupts + other.lost_interrupts,
            hung_at: first(self.hung_at, other.hung_at),
            removed_at: first(self.removed_at, other.removed_at),
        }
    }
}

/// The faults of one site, and its random numbers.
#[derive(Clone, Debug)]
struct SitePlan {
    rules: Vec<(FaultTrigger, Fault)>,
    draws: Rng,
}

/// The planned faults, and those that have happened.
///
/// A command, message or interrupt meets one fault at most: the first rule that fits. All shares of a site are
/// decided by one draw, and a site without shares draws nothing.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    sites: [SitePlan; 3],
    /// What happens to the whole, by time and in the order of adding.
    scheduled: Vec<(Time, Fault)>,
    /// The work done so far, on the clock of the caller.
    pub injected: Injected,
}

impl FaultPlan {
    /// Nothing goes wrong yet. `seed` draws what hits shares.
    pub fn new(seed: u64) -> FaultPlan {
        FaultPlan {
            sites: STREAMS.map(|name| SitePlan { rules: Vec::new(), draws: Rng::new(seed, name) }),
            scheduled: Vec::new(),
            injected: Injected::default(),
        }
    }

    /// With `fault` for a share of all that come to `site`, 0 to 1. The shares of a site sum to 1 at most.
    #[must_use]
    pub fn share(mut self, site: FaultSite, fault: Fault, share: f64) -> FaultPlan {
        if share > 0.0 {
            self.add(site, fault, FaultTrigger::Share(share));
        }
        self
    }

    /// With `fault` for the whole at a time, if one is given.
    #[must_use]
    pub fn at(mut self, time: Option<Time>, fault: Fault) -> FaultPlan {
        self.scheduled.extend(time.map(|time| (time, fault)));
        self.scheduled.sort_by_key(|(time, _)| *time);
        self
    }

    /// From now on `fault` hits those at `site` that `trigger` names.
    pub fn add(&mut self, site: FaultSite, fault: Fault, trigger: FaultTrigger) {
        self.sites[site as usize].rules.push((trigger, fault));
    }

    /// Something may hit `site`.
    pub fn hits(&self, site: FaultSite) -> bool {
        !self.sites[site as usize].rules.is_empty()
    }

    /// The fault of the next event at `site`, which has number `number` there; counts it.
    pub fn meets(&mut self, site: FaultSite, number: u64) -> Option<Fault> {
        let SitePlan { rules, draws } = &mut self.sites[site as usize];
        let (mut lot, mut edge) = (None, 0.0);
        let fault = rules.iter_mut().find_map(|(trigger, fault)| {
            let hit = match trigger {
                FaultTrigger::Share(share) => {
                    edge += *share;
                    *lot.get_or_insert_with(|| draws.unit()) < edge
                }
                FaultTrigger::Number(hit) => *hit == number,
                FaultTrigger::Next(left) => {
                    let hit = *left > 0;
                    *left = left.saturating_sub(1);
                    hit
                }
            };
            hit.then_some(*fault)
        })?;
        let counts = &mut self.injected;
        match (fault, site) {
            (Fault::Error, _) => counts.errors += 1,
            (Fault::Delay(_), _) => counts.delays += 1,
            (Fault::Drop, FaultSite::Interrupt) => counts.lost_interrupts += 1,
            (Fault::Drop, _) => counts.drops += 1,
            (Fault::Corrupt, _) => counts.corrupted += 1,
            (Fault::Hang(_) | Fault::Remove, _) => {}
        }
        Some(fault)
    }

    /// When the whole hangs or is removed next; [`Time::MAX`]: never.
    pub fn next_time(&self) -> Time {
        self.scheduled.first().map_or(Time::MAX, |(time, _)| *time)
    }

    /// What happens to the whole up to `now`, one after the other. Nothing more happens to what was removed.
    pub fn take_due(&mut self, now: Time) -> Option<Fault> {
        if self.next_time() > now {
            return None;
        }
        let (_, fault) = self.scheduled.remove(0);
        match fault {
            Fault::Remove => {
                self.scheduled.clear();
                self.injected.removed_at = Some(now);
            }
            _ => self.injected.hung_at = Some(now),
        }
        Some(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 000 draws: each count within five standard deviations of a binomial, for three seeds.
    #[test]
    fn shares_are_what_was_asked_for() {
        let by = Fault::Delay(Time::from_us(3));
        let (command, interrupt) = (FaultSite::Command, FaultSite::Interrupt);
        let quiet = |seed| {
            let errors = FaultPlan::new(seed).share(command, Fault::Error, 0.1);
            errors.share(command, Fault::Drop, 0.005).share(command, by, 0.02)
        };
        let n = 100_000;
        for seed in [1, 2, 3] {
            let mut plan = quiet(seed).share(interrupt, Fault::Drop, 0.3);
            let met: Vec<_> = (0..n).map(|_| plan.meets(command, 0)).collect();
            let lost = (0..n).filter(|_| plan.meets(interrupt, 0).is_some()).count() as u64;
            let count = |fault| met.iter().filter(|other| **other == Some(fault)).count() as u64;
            let Injected { errors, delays, drops, lost_interrupts, .. } = plan.injected;
            let counted = [count(Fault::Error), count(by), count(Fault::Drop), lost];
            assert_eq!([errors, delays, drops, lost_interrupts], counted);
            for (count, share) in counted.into_iter().zip([0.1, 0.02, 0.005, 0.3]) {
                let (mean, n) = (share * f64::from(n), f64::from(n));
                let slack = 5.0 * (n * share * (1.0 - share)).sqrt();
                assert!((count as f64 - mean).abs() < slack, "seed {seed}: {count}, not {mean}");
            }
            // Interrupts have draws of their own: those of commands stay where they are.
            let mut quiet = quiet(seed);
            assert!(
                !quiet.hits(interrupt) && met.iter().all(|met| *met == quiet.meets(command, 0))
            );
        }
    }

    #[test]
    fn numbers_are_hit_once_and_the_next_as_often_as_told() {
        let mut plan = FaultPlan::new(1);
        plan.add(FaultSite::Interrupt, Fault::Drop, FaultTrigger::Number(2));
        plan.add(FaultSite::Command, Fault::Error, FaultTrigger::Next(2));
        let met: Vec<_> = (0..4).map(|n| plan.meets(FaultSite::Interrupt, n).is_some()).collect();
        assert_eq!(met, [false, false, true, false]);
        let met: Vec<_> = (0..4).map(|n| plan.meets(FaultSite::Command, n).is_some()).collect();
        assert_eq!(met, [true, true, false, false]);
        assert_eq!((plan.injected.lost_interrupts, plan.injected.errors), (1, 2));
    }

    #[test]
    fn what_is_scheduled_comes_once_and_in_order() {
        let at = |us| Some(Time::from_us(us));
        let hang = Fault::Hang(Time::MAX);
        let mut both = FaultPlan::new(1).at(at(15), hang).at(at(13), Fault::Remove);
        assert_eq!((both.next_time(), both.take_due(Time::from_us(12))), (Time::from_us(13), None));
        assert_eq!(both.take_due(Time::from_us(13)), Some(Fault::Remove));
        // What is removed hangs no more.
        assert_eq!((both.take_due(Time::from_s(1)), both.next_time()), (None, Time::MAX));
        let mut hangs = FaultPlan::new(1).at(at(15), hang).at(None, Fault::Remove);
        assert_eq!(hangs.take_due(Time::from_s(1)), Some(hang));
        assert_eq!(hangs.take_due(Time::from_s(1)), None);
        assert_eq!(hangs.injected.hung_at, Some(Time::from_s(1)));
        // Of one time the first that was added is the first.
        let mut tie = FaultPlan::new(1).at(at(1), hang).at(at(1), Fault::Remove);
        assert_eq!(tie.take_due(Time::from_us(1)), Some(hang));
        assert_eq!(tie.take_due(Time::from_us(1)), Some(Fault::Remove));
    }
}
