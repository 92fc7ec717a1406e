//! The faults of a simulated run, mostly injected, and the recovery from them (S4-48).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format::{counts_in_words, seconds};
use ssdyno_block::counted;

/// Faults of the run and the recovery: faults from the tables `[faults]` of device and network, and timeouts of the
/// driver that were shorter than the time of the device. Counts cover the whole run, with ramp-up; for several hosts they
/// are sums over the whole runs of all hosts.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct FaultsResult {
    /// Faults that the device injected; `null` if its file has none.
    pub device: Option<DeviceFaults>,
    /// Faults that the network injected; `null` if its file has none, or without a network.
    pub network: Option<NetworkFaults>,
    /// Recovery by the driver.
    pub driver: DriverRecovery,
    /// The first 100 aborts and resets of the driver, in the order of their times.
    #[serde(default)]
    pub driver_actions: Vec<DriverAction>,
    /// Number of commands that ended with sense data of the SCSI stack, by sense key and additional sense, such as
    /// `MEDIUM ERROR 11h/00h`; empty without that stack.
    #[serde(default)]
    pub sense: BTreeMap<String, u64>,
    /// Requests that ended in an error for the workload.
    pub requests_failed: u64,
}

/// Faults that a device injected.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DeviceFaults {
    /// Commands that ended with an error.
    pub errors: u64,
    /// Commands that completed late.
    pub delays: u64,
    /// Commands that never completed.
    pub drops: u64,
    /// Interrupts that never arrived.
    pub lost_interrupts: u64,
    /// Time at which the device hung, from the start of the run; `null` if it did not. For several hosts, the time of
    /// the first device; the same for `removed_at_seconds`.
    pub hung_at_seconds: Option<f64>,
    /// Time at which the device was removed, from the start of the run; `null` if it was not.
    pub removed_at_seconds: Option<f64>,
    /// Mean slowdown over the run, in percent (`slow_by`); `null` if the file sets none. For several hosts, the mean over
    /// the devices with a slowdown.
    #[serde(default)]
    pub slowed_percent: Option<f64>,
}

/// Faults that a network injected. A command and its completion are one message each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NetworkFaults {
    /// Messages that arrived late.
    pub delays: u64,
    /// Messages that were lost, and sent again.
    pub drops: u64,
    /// Messages that arrived damaged, were rejected, and sent again.
    pub errors: u64,
    /// Number of broken sessions.
    pub session_resets: u64,
    /// Commands that were sent to the target again because their session had broken.
    pub commands_resent: u64,
    /// Commands that were given up because their session broke too often.
    pub commands_given_up: u64,
}

/// Actions of a driver when a completion is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DriverRecovery {
    /// Completions that the driver found at the timeout, because the interrupt was missing.
    pub interrupts_missed: u64,
    /// Commands that the driver asked the device to abort.
    pub aborts: u64,
    /// Resets of the device.
    pub resets: u64,
    /// Commands that the driver gave up in a reset, or because the device was gone.
    pub abandoned: u64,
    /// Failed commands that the driver retried (`--retries`).
    pub retries: u64,
}

/// An abort or a reset of the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DriverAction {
    /// When the driver sent the abort or began the reset, from the start of the run.
    pub time_ns: u64,
    /// Abort or reset.
    pub kind: DriverActionKind,
}

/// The kind of a [`DriverAction`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriverActionKind {
    /// The driver asked the device to abort one command.
    Abort,
    /// The driver reset the device.
    Reset,
}

impl DeviceFaults {
    /// Adds the counts of another device, and takes the earlier times.
    fn add(&mut self, other: &DeviceFaults) {
        let earlier = |one: Option<f64>, other| one.into_iter().chain(other).reduce(f64::min);
        self.errors += other.errors;
        self.delays += other.delays;
        self.drops += other.drops;
        self.lost_interrupts += other.lost_interrupts;
        self.hung_at_seconds = earlier(self.hung_at_seconds, other.hung_at_seconds);
        self.removed_at_seconds = earlier(self.removed_at_seconds, other.removed_at_seconds);
    }
}

impl NetworkFaults {
    fn add(&mut self, other: &NetworkFaults) {
        self.delays += other.delays;
        self.drops += other.drops;
        self.errors += other.errors;
        self.session_resets += other.session_resets;
        self.commands_resent += other.commands_resent;
        self.commands_given_up += other.commands_given_up;
    }
}

impl DriverRecovery {
    fn add(&mut self, other: &DriverRecovery) {
        self.interrupts_missed += other.interrupts_missed;
        self.aborts += other.aborts;
        self.resets += other.resets;
        self.abandoned += other.abandoned;
        self.retries += other.retries;
    }

    /// Its faults, in words; empty if there are none.
    pub fn words(&self) -> Vec<String> {
        counts_in_words(&[
            (self.interrupts_missed, "completion found late", "completions found late"),
            (self.aborts, "abort", "aborts"),
            (self.resets, "reset", "resets"),
            (self.abandoned, "command given up", "commands given up"),
            (self.retries, "retry", "retries"),
        ])
    }
}

impl FaultsResult {
    /// Actions in `driver_actions` at most: the first ones.
    pub const ACTIONS_MOST: usize = 100;

    /// The faults of several hosts together; `None` if no host has some.
    pub fn of_hosts(hosts: &[&FaultsResult]) -> Option<FaultsResult> {
        if hosts.is_empty() {
            return None;
        }
        let mut all = FaultsResult::default();
        for host in hosts {
            if let Some(device) = &host.device {
                all.device.get_or_insert_default().add(device);
            }
            if let Some(network) = &host.network {
                all.network.get_or_insert_default().add(network);
            }
            all.driver.add(&host.driver);
            all.driver_actions.extend(&host.driver_actions);
            for (sense, count) in &host.sense {
                *all.sense.entry(sense.clone()).or_default() += count;
            }
            all.requests_failed += host.requests_failed;
        }
        if let Some(device) = &mut all.device {
            let slowed: Vec<f64> =
                hosts.iter().filter_map(|host| host.device?.slowed_percent).collect();
            let mean = || slowed.iter().sum::<f64>() / slowed.len() as f64;
            device.slowed_percent = (!slowed.is_empty()).then(mean);
        }
        // Each list has the first actions of its host, so the first ones of all are among them.
        all.driver_actions.sort_by_key(|action| action.time_ns);
        all.driver_actions.truncate(FaultsResult::ACTIONS_MOST);
        Some(all)
    }

    /// When the first aborts and resets were, such as `4 aborts at 31.20 s, reset at 61.20 s`; none if there were none.
    /// Successive actions of one kind are one item.
    pub fn driver_acted_at(&self) -> Option<String> {
        const SHOWN: usize = 4;
        let mut items: Vec<(DriverAction, DriverAction, u64)> = Vec::new();
        for action in &self.driver_actions {
            match items.last_mut() {
                Some((first, last, count)) if first.kind == action.kind => {
                    (*last, *count) = (*action, *count + 1);
                }
                _ => items.push((*action, *action, 1)),
            }
        }
        let shown = |&(first, last, count): &(DriverAction, DriverAction, u64)| {
            let (one, more) = match first.kind {
                DriverActionKind::Abort => ("abort", "aborts"),
                DriverActionKind::Reset => ("reset", "resets"),
            };
            // One action needs no number: `abort at 31.20 s`.
            let what = if count == 1 { one.to_owned() } else { counted(count, one, more) };
            let [first, last] = [first, last].map(|action| seconds(action.time_ns as f64 / 1e9));
            match first == last {
                true => format!("{what} at {first}"),
                false => format!("{what} from {first} to {last}"),
            }
        };
        let mut words: Vec<String> = items.iter().take(SHOWN).map(shown).collect();
        let all = self.driver.aborts + self.driver.resets;
        if items.len() > SHOWN {
            words.push("…".to_owned());
        } else if all > self.driver_actions.len() as u64 {
            // The list of actions is limited, so the last item may go on after it.
            words.push(format!("… (the first {} of {all})", self.driver_actions.len()));
        }
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// The driver's actions, in words; empty if there are none.
    pub fn driver_did(&self) -> Option<String> {
        let what = self.driver.words();
        (!what.is_empty()).then(|| what.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_hosts_are_summed() {
        let host = |drops, hung_at_seconds, slowed_percent, time_ns| FaultsResult {
            device: Some(DeviceFaults {
                drops,
                hung_at_seconds,
                slowed_percent,
                ..DeviceFaults::default()
            }),
            driver: DriverRecovery { aborts: 1, ..DriverRecovery::default() },
            driver_actions: vec![DriverAction { time_ns, kind: DriverActionKind::Abort }],
            sense: BTreeMap::from([("MEDIUM ERROR 11h/00h".to_owned(), drops)]),
            requests_failed: drops,
            ..FaultsResult::default()
        };
        let hosts = [host(2, Some(3.0), Some(10.0), 9), host(5, None, None, 4)];
        let all = FaultsResult::of_hosts(&hosts.each_ref()).unwrap();
        let device = all.device.unwrap();
        assert_eq!((device.drops, all.requests_failed, all.driver.aborts), (7, 7, 2));
        assert_eq!((device.hung_at_seconds, device.slowed_percent), (Some(3.0), Some(10.0)));
        assert_eq!(all.sense["MEDIUM ERROR 11h/00h"], 7);
        let times: Vec<u64> = all.driver_actions.iter().map(|action| action.time_ns).collect();
        assert_eq!((times, all.network), (vec![4, 9], None));
        assert_eq!(FaultsResult::of_hosts(&[]), None);
    }
}
