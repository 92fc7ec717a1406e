//! How far a run has to go.

use ssdyno_block::Time;
use ssdyno_figures::RunProgress;
use ssdyno_workload::Source;

/// The goal of a run; `None`: it is not known when it ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Goal {
    /// Requests, with those of a ramp-up.
    pub requests: Option<u64>,
    /// Time on the clock of the device.
    pub duration: Option<Time>,
}

impl Goal {
    /// The goal of a run of `source`.
    pub fn of(source: &Source) -> Goal {
        let (requests, duration) = source.bounds();
        Goal { requests, duration }
    }

    /// How much of it is done, 0 to 1.
    pub fn share(&self, progress: &RunProgress) -> Option<f64> {
        let by_requests = self.requests.map(|all| progress.completed as f64 / all.max(1) as f64);
        let by_time = self.duration.map(|end| progress.now.as_s_f64() / end.as_s_f64());
        let share =
            by_requests.into_iter().chain(by_time).fold(None, |most: Option<f64>, share| {
                Some(most.map_or(share, |most| most.max(share)))
            });
        share.map(|share| share.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearer_goal_counts() {
        let progress = RunProgress {
            now: Time::from_s(1),
            issued: 30,
            completed: 25,
            ..RunProgress::default()
        };
        let goal =
            |requests, seconds: Option<u64>| Goal { requests, duration: seconds.map(Time::from_s) };
        assert_eq!(goal(Some(100), Some(2)).share(&progress), Some(0.5));
        assert_eq!(goal(Some(20), None).share(&progress), Some(1.0));
        assert_eq!(goal(None, None).share(&progress), None);
    }
}
