//! The core that a job stays on, where the run does not name one.
//!
//! A closed loop with one job sleeps and wakes ten thousand times a second. On a loop device threads of
//! the kernel answer. Left to the scheduler the job wanders, and so do they: with two cores that costs
//! up to 10 % more CPU time a request and 10 % of the rate (4 KiB random reads of memory at depth 4, six
//! interleaved pairs; 2 % at depth 8). So the only job of such a loop stays where it starts.
//!
//! At depth 1 the opposite holds. The job and the thread that answers never run at the same time, and a
//! scheduler that is left alone keeps both on one core: 72 k IOPS and a p50 of 9.6 us, as with fio. A job
//! that stays drives the thread to the other core, which has to be woken for each request: 48 k IOPS and
//! 16.4 us. So a job with one request at a time is bound to no core.
//!
//! Elsewhere the scheduler decides, or whoever binds the jobs. A disk with one queue interrupts one core, and waking a
//! thread on another core takes time; the better core depends on the machine, so only a search finds it
//! ([`Interrupts`], `tuning`). An open loop must not wait for a core that is taken.

mod interrupts;

use rustix::thread::CpuSet;

pub(crate) use interrupts::Interrupts;

/// The core that the thread is on now, and stays on from here: the scheduler has just chosen it. `None`
/// where it may not be bound.
pub(crate) fn stay_here() -> Option<usize> {
    let core = rustix::thread::sched_getcpu();
    bind(&[core]).ok().map(|()| core)
}

/// Lets the thread run on `cores` alone.
pub(crate) fn bind(cores: &[usize]) -> rustix::io::Result<()> {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    rustix::thread::sched_setaffinity(None, &set)
}

/// The cores worth binding the only job of a loop to: the core that the disk interrupts, or else the present core of
/// the thread, and one other core. Fewer where this process may not run on them.
pub(crate) fn worth_binding(interrupted: Option<usize>) -> Vec<usize> {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    two_cores(interrupted, rustix::thread::sched_getcpu(), &allowed)
}

fn two_cores(interrupted: Option<usize>, current: usize, allowed: &CpuSet) -> Vec<usize> {
    let may = |core: &usize| *core < CpuSet::MAX_CPU && allowed.is_set(*core);
    let first = interrupted.filter(may).unwrap_or(current);
    let other = (0..CpuSet::MAX_CPU).find(|core| *core != first && allowed.is_set(*core));
    // With a single core there is nothing to choose.
    other.map_or_else(Vec::new, |other| vec![first, other])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_needs_two_cores() {
        let mut allowed = CpuSet::new();
        [1, 4, 6].into_iter().for_each(|core| allowed.set(core));
        assert_eq!(two_cores(Some(4), 6, &allowed), [4, 1]);
        assert_eq!(two_cores(Some(1), 1, &allowed), [1, 4]);
        assert_eq!(two_cores(Some(2), 6, &allowed), [6, 1], "interrupted where we may not run");
        assert_eq!(two_cores(None, 4, &allowed), [4, 1]);
        let mut one = CpuSet::new();
        one.set(4);
        assert!(two_cores(Some(4), 4, &one).is_empty());
    }
}
