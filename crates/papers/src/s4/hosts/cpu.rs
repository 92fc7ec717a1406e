//! The cores of the machine, and what the target's CPU does.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use ssdyno_session::Failure;

use super::lab::file_of;

/// The core of the target, and those of everything else.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    /// `None` where there is only one core.
    pub(super) target: Option<usize>,
    others: CpuSet,
    all: CpuSet,
}

impl Cores {
    pub(super) fn split() -> Result<Cores, Failure> {
        let all = sched_getaffinity(None)
            .map_err(|error| Failure::failed(format!("cannot determine the cores: {error}")))?;
        let mut others = all;
        let first = (0..CpuSet::MAX_CPU).find(|core| all.is_set(*core));
        // With a single core there is nothing to divide. Target and clients then share it, and the
        // report gives no share of a core.
        let target = first.filter(|_| all.count() > 1);
        if let Some(core) = target {
            others.unset(core);
        }
        Ok(Cores { target, others, all })
    }

    /// Runs `work`, and what it starts, on the core of the target.
    pub(super) fn on_target<T>(&self, work: impl FnOnce() -> T) -> T {
        if let Some(core) = self.target {
            let mut set = CpuSet::new();
            set.set(core);
            // A core that may not be chosen costs accuracy only.
            let _ = sched_setaffinity(None, &set);
        }
        let done = work();
        // The affinity of this thread is set back, while the started child keeps the one it has
        // inherited. `taskset` for each program would be one more tool to require.
        let _ = sched_setaffinity(None, &self.others);
        done
    }
}

/// Dropped, this thread may use all cores again.
impl Drop for Cores {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.all);
    }
}

/// CPU time so far, by two counts, at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuTime {
    at: Instant,
    /// Of what runs in the target's namespace.
    processes: Duration,
    /// During which the target's core was not idle, and altogether; in ticks.
    core: Option<(u64, u64)>,
    /// As a user on the target's core; in ticks.
    core_user: Option<u64>,
    /// As a user of what runs in the target's namespace, and of this program; in ticks.
    own_user: u64,
}

/// Shares of the CPU between two moments, 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct CpuShares {
    /// Of what serves: 1 is a whole core.
    pub(super) processes: f64,
    /// How busy the target's core was, with interrupts; NaN where it has none of its own.
    pub(super) core: f64,
    /// What other programs computed on that core, at the least: without their time in the kernel. NaN as above.
    pub(super) others: f64,
}

impl CpuTime {
    pub(super) fn now(target: &str, core: Option<usize>) -> CpuTime {
        let statistics = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let [all, user] = in_namespace(target);
        // Our own target is a part of this program. Its other threads and the clients have other cores.
        let own = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let own = ticks(&own).map_or(0, |[_, user]| user);
        let per_second = rustix::param::clock_ticks_per_second().max(1) as f64;
        CpuTime {
            at: Instant::now(),
            processes: Duration::from_secs_f64(all as f64 / per_second),
            core: core.and_then(|core| core_ticks(&statistics, core)),
            core_user: core.and_then(|core| user_ticks(&statistics, core)),
            own_user: user + own,
        }
    }

    pub(super) fn until(&self, later: &CpuTime) -> CpuShares {
        let wall = later.at.duration_since(self.at).as_secs_f64();
        let others = match (self.core, later.core, self.core_user.zip(later.core_user)) {
            (Some((_, all)), Some((_, all_later)), Some((user, user_later))) if all_later > all => {
                let own = later.own_user.saturating_sub(self.own_user);
                let others = user_later.saturating_sub(user).saturating_sub(own);
                others as f64 / (all_later - all) as f64
            }
            _ => f64::NAN,
        };
        let core = match (self.core, later.core) {
            (Some((busy, all)), Some((busy_later, all_later))) if all_later > all => {
                busy_later.saturating_sub(busy) as f64 / (all_later - all) as f64
            }
            _ => f64::NAN,
        };
        let processes = later.processes.saturating_sub(self.processes).as_secs_f64() / wall;
        CpuShares { processes, core, others }
    }
}

/// The ticks of `core` by kind, from a /proc/stat.
fn ticks_by_kind(statistics: &str, core: usize) -> Option<Vec<u64>> {
    let name = format!("cpu{core}");
    let line = statistics.lines().find(|line| line.split(' ').next() == Some(&name))?;
    // Time of guests is in that of users.
    Some(line.split_whitespace().skip(1).take(8).filter_map(|n| n.parse().ok()).collect())
}

/// Ticks of `core` as a user, nice or not.
fn user_ticks(statistics: &str, core: usize) -> Option<u64> {
    Some(ticks_by_kind(statistics, core)?.iter().take(2).sum())
}

/// Ticks of `core` that were not idle, and all.
fn core_ticks(statistics: &str, core: usize) -> Option<(u64, u64)> {
    let ticks = ticks_by_kind(statistics, core)?;
    let all: u64 = ticks.iter().sum();
    // Fields 4 and 5 of a `cpu` line are idle and waiting for I/O. A core that waits for I/O can
    // run other work, so both count as not busy.
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some((all - idle, all))
}

/// What `/proc/…/ns/net` of the processes in `namespace` points to.
pub(super) fn link_of(namespace: &str) -> Option<String> {
    let own = std::fs::metadata(file_of(namespace)).ok()?;
    Some(format!("net:[{}]", own.ino()))
}

pub(super) fn is_in(process: &Path, link: &str) -> bool {
    std::fs::read_link(process.join("ns/net")).is_ok_and(|own| own.to_str() == Some(link))
}

/// CPU time of the processes in a namespace, with that of their children that have ended: ticks as in [`ticks`].
fn in_namespace(namespace: &str) -> [u64; 2] {
    let Some(own) = link_of(namespace) else { return [0; 2] };
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let inside = all.map(|entry| entry.path()).filter(|process| is_in(process, &own));
    let text = |process: PathBuf| std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    let all = inside.filter_map(|process| ticks(&text(process)));
    all.fold([0; 2], |[all, user], [more, more_user]| [all + more, user + more_user])
}

/// Ticks from a /proc/…/stat, with those of children that have ended: as user and in the kernel together, and as user.
fn ticks(text: &str) -> Option<[u64; 2]> {
    // The name before it may have blanks and brackets.
    // The name of a process is in brackets and may contain brackets. Only the last one ends it, so
    // the split is from the right.
    let (_, fields) = text.rsplit_once(')')?;
    // utime, stime, cutime and cstime are fields 14 to 17 of proc(5); the state is field 3.
    // nbd-server forks per connection, so the times of ended children count, too.
    let numbers = fields.split_whitespace().skip(11).take(4);
    let numbers: Vec<u64> = numbers.map(|n| n.parse().ok()).collect::<Option<_>>()?;
    Some([numbers.iter().sum(), numbers.iter().step_by(2).sum()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_proc_are_read() {
        let stat = "cpu  9 9 9 9\ncpu0 100 5 50 800 20 3 2 1 7 0\ncpu10 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(core_ticks(stat, 0), Some((161, 981)));
        assert_eq!(core_ticks(stat, 10), Some((6, 8)));
        assert_eq!(core_ticks(stat, 1), None);
        let process = "12 (a b) c) S 1 12 12 0 -1 0 1 2 3 4 500 60 7 8 20 0 1 0 99";
        assert_eq!((ticks(process), ticks("nothing")), (Some([575, 507]), None));
        assert_eq!(user_ticks(stat, 0), Some(105));
    }

    #[test]
    fn shares_are_differences() {
        let at = Instant::now();
        let before = CpuTime {
            at,
            processes: Duration::from_secs(1),
            core: Some((10, 100)),
            core_user: Some(5),
            own_user: 20,
        };
        let later = CpuTime {
            at: at + Duration::from_secs(2),
            processes: Duration::from_secs(2),
            core: Some((190, 300)),
            // 120 ticks as user, 40 of them of the target and this program.
            core_user: Some(125),
            own_user: 60,
        };
        assert_eq!(before.until(&later), CpuShares { processes: 0.5, core: 0.9, others: 0.4 });
        assert!(before.until(&CpuTime { core: None, ..later }).core.is_nan());
    }
}
