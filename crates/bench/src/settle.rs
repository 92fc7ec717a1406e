//! On which core a job stays, where nobody says.
//!
//! A closed loop with one job sleeps and wakes ten thousand times a second. Where it wakes matters,
//! and the scheduler does not know:
//!
//! - On a loop device threads of the kernel answer. Left to the scheduler the job wanders, and so do
//!   they: with two cores that costs 15 % more CPU time by request and 15 % of the rate. So it stays
//!   where it starts, unless other programs want the processors: bound to a core that is taken it
//!   would wait there (a sixth of the rate beside compilers), which the scheduler can mend.
//! - A disk with one queue interrupts one core, and waking a thread on another one takes time. Which is
//!   better, that core or another, a trial tells: so long as a core is faster than it is busy it is
//!   the one that is interrupted (99 k IOPS instead of 79 k on a virtual disk). Where the trial cannot
//!   tell, the scheduler decides.
//!
//! Several jobs, several queues, polled completions: the scheduler, or whoever binds them. An open loop
//! must not wait for a core that is taken.

mod interrupts;

use procfs::CurrentSI as _;
use rustix::thread::CpuSet;

pub(crate) use interrupts::{Counts, Interrupts};

use crate::engine::Engine;
use crate::error::BenchError;
use crate::options::Way;
use crate::trial::{EQUAL, Lead, ROUNDS, ROUNDS_LEAST, Trial, median};

/// Looks at who wants a processor, and the time between them: what runs for a moment is no neighbour.
const LOOKS: u32 = 4;
const BETWEEN_LOOKS: std::time::Duration = std::time::Duration::from_millis(1);

/// A core that a job stays on, and why.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) core: usize,
    why: Why,
}

#[derive(Clone, Debug)]
enum Why {
    /// Threads of the kernel that answer it follow it.
    Followed,
    /// The disk interrupts it.
    Interrupted {
        interrupts: Interrupts,
        at_start: Counts,
        rate: f64,
        other: usize,
        other_rate: f64,
    },
}

impl Home {
    /// The core that the thread is on now: the scheduler has just chosen it. `None` where it may not be
    /// bound, or should not.
    pub(crate) fn here() -> Option<Home> {
        if others_want_cores() {
            return None;
        }
        let core = rustix::thread::sched_getcpu();
        bind(&[core]).ok().map(|()| Home { core, why: Why::Followed })
    }

    /// As a part of the sentence about the job.
    pub(crate) fn text(&self) -> String {
        let core = self.core;
        match &self.why {
            Why::Followed => {
                format!("stays on core {core}, so that the kernel's threads for it do")
            }
            Why::Interrupted { rate, other, other_rate, .. } => format!(
                "stays on core {core}, which the disk interrupts (trial before the run: {} there, {} \
                 on core {other})",
                thousands(*rate),
                thousands(*other_rate),
            ),
        }
    }

    /// What is to be said after the run: whether the reason still holds.
    pub(crate) fn afterwards(&self) -> Option<String> {
        let Why::Interrupted { interrupts, at_start, .. } = &self.why else { return None };
        let now = at_start.core_until(&interrupts.counts());
        (now != Some(self.core)).then(|| {
            format!(
                "the disk's interrupts did not all come to core {} during the run (irqbalance, or \
                 another load on it?): --pin binds the job elsewhere",
                self.core
            )
        })
    }
}

/// Whether other programs want the processors right now.
pub(crate) fn others_want_cores() -> bool {
    is_crowded(runnable)
}

/// Whether others want a processor at every one of some looks; `runnable` tells how many threads run or
/// could, the one that asks among them.
fn is_crowded(mut runnable: impl FnMut() -> Option<u32>) -> bool {
    (0..LOOKS).all(|_| runnable().is_some_and(|threads| threads > 1))
}

/// Threads that run or could (`procs_running` of proc_stat(5)), a moment later.
fn runnable() -> Option<u32> {
    std::thread::sleep(BETWEEN_LOOKS);
    procfs::KernelStats::current().ok()?.procs_running
}

fn thousands(rate: f64) -> String {
    format!("{:.0} k IOPS", rate / 1e3)
}

/// Lets the thread run on `cores` alone.
pub(crate) fn bind(cores: &[usize]) -> rustix::io::Result<()> {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    rustix::thread::sched_setaffinity(None, &set)
}

/// Binds the thread to the core that the disk called `disk` interrupts, if it may run there and a trial of
/// `way` shows that it is faster there than on another core. Otherwise the thread may run where it might
/// before.
pub(crate) fn by_interrupts<E: Engine>(
    engine: &mut E,
    trial: &Trial,
    way: Way,
    disk: &str,
) -> Result<Option<Home>, BenchError> {
    let Some(interrupts) = Interrupts::of_disk(disk) else { return Ok(None) };
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else { return Ok(None) };
    let before = interrupts.counts();
    let Some(round) = trial.round(engine, way)? else { return Ok(None) };
    let Some(core) = before.core_until(&interrupts.counts()) else { return Ok(None) };
    let Some(other) = other_core(core, rustix::thread::sched_getcpu(), &allowed) else {
        return Ok(None);
    };
    let cores = [core, other];
    let mut rates = [Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS)];
    let faster = 'faster: {
        for index in 0..ROUNDS {
            // Now one first, now the other.
            for at in [index % 2, 1 - index % 2] {
                if bind(&[cores[at]]).is_err() {
                    break 'faster false;
                }
                rates[at].push(trial.rate(engine, way, round)?);
            }
            let Lead { share, error } = Lead::of(&rates[0], &rates[1]);
            if index + 1 >= ROUNDS_LEAST && (share - EQUAL).abs() > 2.0 * error {
                break;
            }
        }
        let Lead { share, error } = Lead::of(&rates[0], &rates[1]);
        share > EQUAL.max(error) && bind(&[core]).is_ok()
    };
    if !faster {
        // It was allowed a moment ago; a core that was taken away since is none to run on.
        let _ = rustix::thread::sched_setaffinity(None, &allowed);
        return Ok(None);
    }
    let [rate, other_rate] = rates.map(|rates| median(&rates));
    let at_start = interrupts.counts();
    Ok(Some(Home { core, why: Why::Interrupted { interrupts, at_start, rate, other, other_rate } }))
}

/// The core to compare `interrupted` with: the one that the thread is on, or the first other one;
/// `None` where there is no choice.
fn other_core(interrupted: usize, current: usize, allowed: &CpuSet) -> Option<usize> {
    let may = |core: &usize| *core != interrupted && allowed.is_set(*core);
    let any = (0..CpuSet::MAX_CPU).find(may);
    let other = Some(current).filter(may).or(any);
    other.filter(|_| interrupted < CpuSet::MAX_CPU && allowed.is_set(interrupted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_is_one_who_is_always_there() {
        let seen = |counts: [Option<u32>; 4]| {
            let mut counts = counts.into_iter();
            is_crowded(move || counts.next().flatten())
        };
        assert!(seen([Some(2), Some(3), Some(2), Some(5)]));
        assert!(!seen([Some(2), Some(3), Some(1), Some(5)]));
        assert!(!seen([None; 4]), "where nobody tells");
        assert!(runnable().is_some_and(|threads| threads >= 1), "this one runs");
    }

    #[test]
    fn a_choice_needs_two_cores_of_which_one_is_interrupted() {
        let mut allowed = CpuSet::new();
        [1, 4, 6].into_iter().for_each(|core| allowed.set(core));
        assert_eq!(other_core(4, 6, &allowed), Some(6));
        assert_eq!(other_core(4, 4, &allowed), Some(1));
        assert_eq!(other_core(2, 4, &allowed), None, "interrupted where we may not run");
        let mut one = CpuSet::new();
        one.set(4);
        assert_eq!(other_core(4, 4, &one), None);
    }
}
