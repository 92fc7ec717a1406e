//! Samples of machines, as the page draws them.

use serde::Serialize;
use ssdyno_prober::{CpuFractions, DiskRates, NetworkRates, SystemSample};

/// Processors by what they do, in shares.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct CpuView {
    user: f64,
    system: f64,
    iowait: f64,
    irq: f64,
    other: f64,
}

impl CpuView {
    fn of(cpu: &CpuFractions) -> CpuView {
        CpuView {
            user: cpu.user_fraction + cpu.nice_fraction,
            system: cpu.system_fraction,
            iowait: cpu.iowait_fraction,
            irq: cpu.irq_fraction + cpu.softirq_fraction,
            other: cpu.steal_fraction,
        }
    }
}

/// One sample.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct SampleView {
    unix_ms: u64,
    /// On the clock of the run; `None` where that is not the clock on the wall.
    run_s: Option<f64>,
    cpu: Option<CpuView>,
    interrupts_per_s: Option<f64>,
    context_switches_per_s: Option<f64>,
    memory_available_bytes: Option<f64>,
    swap_bytes: Option<f64>,
    network_in_bytes_per_s: Option<f64>,
    network_out_bytes_per_s: Option<f64>,
    disk_read_bytes_per_s: Option<f64>,
    disk_write_bytes_per_s: Option<f64>,
    power_w: Option<f64>,
}

impl SampleView {
    fn of(sample: &SystemSample, run_s: Option<f64>) -> SampleView {
        let activity = sample.activity.as_ref();
        let memory = sample.memory.as_ref();
        // Loopback is no network. A controller on this machine reaches its workers over it, and
        // their traffic would hide that of the real cards.
        let cards: Vec<&NetworkRates> = sample
            .interfaces
            .iter()
            .filter(|(name, _)| *name != "lo")
            .map(|(_, card)| card)
            .collect();
        let network = |figure: fn(&NetworkRates) -> f64| {
            (!cards.is_empty()).then(|| cards.iter().map(|card| figure(card)).sum())
        };
        // The busiest device is shown and not the sum: a disk and its
        // partitions report the same requests.
        let disk = |figure: fn(&DiskRates) -> f64| {
            sample.disks.values().map(figure).max_by(f64::total_cmp)
        };
        SampleView {
            unix_ms: sample.unix_ns / 1_000_000,
            run_s,
            cpu: sample.cpu.as_ref().map(CpuView::of),
            interrupts_per_s: activity.map(|all| all.interrupts_per_second),
            context_switches_per_s: activity.map(|all| all.context_switches_per_second),
            memory_available_bytes: memory.map(|all| all.available_bytes),
            swap_bytes: memory.map(|all| all.swap_total_bytes - all.swap_free_bytes),
            network_in_bytes_per_s: network(|card| card.receive_bytes_per_second),
            network_out_bytes_per_s: network(|card| card.transmit_bytes_per_second),
            disk_read_bytes_per_s: disk(|disk| disk.read_bytes_per_second),
            disk_write_bytes_per_s: disk(|disk| disk.write_bytes_per_second),
            power_w: None,
        }
    }
}

/// Samples of one machine that a viewer has not seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SystemNews {
    run: Option<u64>,
    host: String,
    samples: Vec<SampleView>,
}

/// Samples that are kept at most of a machine: ten minutes.
const KEPT: usize = 600;

/// The last samples of the machines of a run.
#[derive(Debug, Default)]
pub(crate) struct LiveSystems {
    machines: Vec<Machine>,
}

#[derive(Debug)]
struct Machine {
    name: String,
    /// Number of the newest sample, as its machine counts.
    newest: u64,
    /// How many there were before the first that is kept.
    before: usize,
    samples: Vec<SampleView>,
}

impl LiveSystems {
    /// Takes in the newest sample of each machine; the run's clock is at `run_s`, if it is that on the wall.
    pub(crate) fn add<'a>(
        &mut self,
        newest: impl Iterator<Item = (&'a str, &'a SystemSample)>,
        run_s: Option<f64>,
    ) {
        for (name, sample) in newest {
            let at = self.machines.iter().position(|machine| machine.name == name);
            let at = at.unwrap_or_else(|| {
                let (name, samples) = (name.to_owned(), Vec::new());
                self.machines.push(Machine { name, newest: 0, before: 0, samples });
                self.machines.len() - 1
            });
            let machine = &mut self.machines[at];
            if sample.sequence > machine.newest {
                machine.newest = sample.sequence;
                machine.samples.push(SampleView::of(sample, run_s));
                if machine.samples.len() > KEPT {
                    machine.samples.remove(0);
                    machine.before += 1;
                }
            }
        }
    }

    /// The samples that a viewer with this number of samples of each machine has not seen; `seen` is brought forward.
    pub(crate) fn news(&self, run: Option<u64>, seen: &mut Vec<usize>) -> Vec<SystemNews> {
        seen.resize(self.machines.len(), 0);
        let news = self.machines.iter().zip(seen).filter_map(|(machine, seen)| {
            let new = seen.saturating_sub(machine.before).min(machine.samples.len());
            *seen = machine.before + machine.samples.len();
            let samples = machine.samples[new..].to_vec();
            let host = machine.name.clone();
            (!samples.is_empty()).then_some(SystemNews { run, host, samples })
        });
        news.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_viewer_sees_each_sample_once() {
        let mut systems = LiveSystems::default();
        let (mut early, mut late) = (Vec::new(), Vec::new());
        let mut count = 0;
        for sequence in 1..=KEPT as u64 + 50 {
            let sample = SystemSample { sequence, ..SystemSample::default() };
            // The same sample is sent again until there is a newer one.
            for _ in 0..3 {
                systems.add([("a", &sample)].into_iter(), Some(sequence as f64));
            }
            count +=
                systems.news(None, &mut early).iter().map(|news| news.samples.len()).sum::<usize>();
        }
        assert_eq!(count, KEPT + 50);
        let news = systems.news(Some(3), &mut late);
        assert_eq!((news.len(), news[0].samples.len(), news[0].run), (1, KEPT, Some(3)));
        assert_eq!(news[0].samples[0].run_s, Some(51.0));
        assert!(systems.news(None, &mut late).is_empty());
    }
}
