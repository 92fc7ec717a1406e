//! Which of the waiting jobs the arm takes next.

use ssdyno_block::Time;

use crate::config::Scheduler;
use crate::layout::Run;
use crate::mechanics::Mechanics;

/// The commands that wait for the arm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// Its number among commands (a slot), or among extents to be written back.
    pub(crate) id: u32,
    pub(crate) write: bool,
    pub(crate) block: u64,
    pub(crate) blocks: u32,
    /// Where its first blocks are: computed once, compared at each choice.
    pub(crate) run: Run,
    /// Order of arrival.
    pub(crate) order: u64,
}

/// A policy with what it remembers.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    policy: Scheduler,
    /// The elevator moves to higher cylinders.
    inwards: bool,
}

impl Schedule {
    pub(crate) fn new(policy: Scheduler) -> Schedule {
        Schedule { policy, inwards: true }
    }

    /// The index of the job that is served at `now`; `jobs` are in order of arrival.
    pub(crate) fn choose(
        &mut self,
        now: Time,
        jobs: &[Job],
        mechanics: &Mechanics,
    ) -> Option<usize> {
        if jobs.len() < 2 {
            return if jobs.is_empty() { None } else { Some(0) };
        }
        let here = mechanics.cylinder();
        let least = |cost: &dyn Fn(&Job) -> u64| {
            let costs = jobs.iter().enumerate().map(|(index, job)| (cost(job), index));
            costs.min().map(|(_, index)| index)
        };
        match self.policy {
            Scheduler::Fcfs => Some(0),
            Scheduler::Sstf => least(&|job| job.run.track.cylinder.abs_diff(here).into()),
            Scheduler::Sptf => least(&|job| mechanics.positioning(now, &job.run, job.write)),
            Scheduler::Elevator => {
                let inwards = self.inwards;
                let ahead = |job: &Job, inwards: bool| {
                    let cylinder = job.run.track.cylinder;
                    if inwards { cylinder >= here } else { cylinder <= here }
                };
                if !jobs.iter().any(|job| ahead(job, inwards)) {
                    self.inwards = !inwards;
                }
                let inwards = self.inwards;
                least(&|job| match ahead(job, inwards) {
                    true => job.run.track.cylinder.abs_diff(here).into(),
                    false => u64::MAX,
                })
            }
        }
    }
}
