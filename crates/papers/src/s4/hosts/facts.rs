//! Figures of what was measured, and of the simulator's answer to the same question.

use super::lab::Link;
use super::measure::{Load, Outcome, WORKERS};
use super::target::Server;
use crate::mean::Mean;
use crate::s4::data::Plan;
use crate::s4::figures::{client_case, worker_case};
use crate::s4::simulate::Measured;

/// Share of the limit of a storage at which it counts as saturated.
pub(super) const ENOUGH: f64 = 0.95;

/// What tables, drawings and claims are made from.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) outcome: &'a Outcome,
    pub(super) plan: &'a Plan,
    pub(super) simulated: &'a Measured,
}

/// The value in the middle, and the least and the most.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Spread {
    /// `None` where there are no values.
    pub(super) fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => (values[middle - 1] + values[middle]) / 2.0,
        };
        Some(Spread { median, least, most })
    }

    /// `least to most`.
    pub(super) fn range(self, digits: usize) -> String {
        format!("{:.digits$} to {:.digits$}", self.least, self.most)
    }
}

impl Facts<'_> {
    /// The loads of table 4.
    pub(super) fn loads(&self, server: Server, link: Link, clients: u16) -> &[Load] {
        self.outcome.table4.get(&(server, link, clients)).map_or(&[], Vec::as_slice)
    }

    /// Those of figure 7.
    pub(super) fn worker_loads(&self, delay: u32, workers: u16) -> &[Load] {
        self.outcome.figure7.get(&(delay, workers)).map_or(&[], Vec::as_slice)
    }

    /// `figure` of table 4, over its repetitions.
    pub(super) fn table(
        &self,
        server: Server,
        link: Link,
        clients: u16,
        figure: impl Fn(&Load) -> f64,
    ) -> Option<Mean> {
        Mean::of(&self.loads(server, link, clients).iter().map(figure).collect::<Vec<f64>>())
    }

    pub(super) fn megabytes(&self, server: Server, link: Link, clients: u16) -> Option<Mean> {
        self.table(server, link, clients, |load| load.megabytes)
    }

    pub(super) fn iops(&self, delay: u32, workers: u16) -> Option<Mean> {
        let loads = self.worker_loads(delay, workers);
        Mean::of(&loads.iter().map(|load| load.iops).collect::<Vec<f64>>())
    }

    /// How many workers are needed for [`ENOUGH`] of the storage's limit; `Some(None)`: more than were tried, `None`: not
    /// measured.
    #[allow(clippy::option_option, reason = "not measured differs from not reached")]
    pub(super) fn needed(&self, delay: u32) -> Option<Option<u16>> {
        let limit = 1e6 / f64::from(delay);
        // Medians: what else the machine does now and then makes no worker necessary.
        let all = WORKERS.map(|n| {
            let loads = self.worker_loads(delay, n);
            // S4-36 asks for a number of workers, so one disturbed repetition must not change it.
            // The median of the repetitions ignores a single outlier.
            let spread = Spread::of(loads.iter().map(|load| load.iops).collect());
            spread.map(|spread| (n, spread.median))
        });
        fewest(&all.into_iter().collect::<Option<Vec<_>>>()?, limit)
    }

    /// The same of the simulator, whose workers are SPEK's.
    #[allow(clippy::option_option, reason = "as of what is needed here")]
    pub(super) fn simulated_needed(&self, figure: &str) -> Option<Option<u16>> {
        // The limits are 1 / 100 us and 1 / 10 us. They belong to the figure and not to a
        // measurement, as otherwise a slow simulation would always reach its own limit.
        let limit = if figure == "figure7a" { 1e4 } else { 1e5 };
        let iops = |n: &u16| self.simulated_iops(figure, *n).map(|iops| (*n, iops.mean));
        fewest(&self.plan.figure7.workers.iter().map(iops).collect::<Option<Vec<_>>>()?, limit)
    }

    pub(super) fn simulated_iops(&self, figure: &str, workers: u16) -> Option<Mean> {
        self.simulated.iops(&worker_case(figure, self.plan, "spek", workers))
    }

    pub(super) fn simulated_megabytes(&self, variant: &'static str, clients: u16) -> Option<Mean> {
        self.simulated.megabytes(&client_case(self.plan, variant, clients))
    }

    /// How far apart the clients of each load began, where there are several, in us.
    pub(super) fn skews(&self) -> Vec<f64> {
        let several = self.outcome.table4.values().flatten().filter(|load| load.clients.len() > 1);
        several.map(skew).collect()
    }
}

/// How long after the first client the last one began, in us.
pub(super) fn skew(load: &Load) -> f64 {
    load.clients.iter().map(|client| client.skew_us).fold(0.0, f64::max)
}

#[allow(clippy::option_option, reason = "as of what is needed")]
fn fewest(iops: &[(u16, f64)], limit: f64) -> Option<Option<u16>> {
    if iops.is_empty() {
        return None;
    }
    Some(iops.iter().find(|(_, iops)| *iops >= ENOUGH * limit).map(|(n, _)| *n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_ends() {
        let spread = Spread::of(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!((spread.median, spread.range(1)), (2.0, "1.0 to 3.0".to_owned()));
        assert_eq!(Spread::of(vec![4.0, 1.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn fewest_workers_that_are_enough() {
        let iops = [(1, 6000.0), (2, 9400.0), (3, 9500.0), (4, 9900.0)];
        assert_eq!(fewest(&iops, 1e4), Some(Some(3)));
        assert_eq!(fewest(&iops, 1e5), Some(None));
        assert_eq!(fewest(&[], 1e4), None);
    }
}
