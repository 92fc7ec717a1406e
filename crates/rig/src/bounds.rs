//! The utilisation law: no part works longer than there was time.
//!
//! With X operations a second of S seconds each a part is busy for the share U = X S, which is its busy time
//! by the time that passed; whatever the load, U is at most 1. A part that breaks this has been charged
//! twice, or two things were done on it at a time.

use ssdyno_energy::{Breakdown, DeviceEnergy};
use ssdyno_figures::{Invariant, NetworkResult};

/// Room for the rounding of a division.
const ROUNDING: f64 = 1e-9;

/// Adds an invariant for each kind of part: of the device, of the host, whose cores worked for the given time out of
/// `seconds`, and of the network.
pub(crate) fn add(
    invariants: &mut Vec<Invariant>,
    device: &DeviceEnergy,
    (host_cores, seconds): (&[f64], f64),
    network: Option<&NetworkResult>,
) {
    // An array reports each member. The sum over all members would hide a member that is charged
    // twice behind another one that is idle.
    match &device.units[..] {
        [] => of_unit(invariants, "", &device.whole),
        units => {
            for (path, unit) in units {
                of_unit(invariants, &format!("{path}."), unit);
            }
        }
    }
    let mut within = |name: &str, busy: &[f64], seconds: f64| {
        if !busy.is_empty() && seconds > 0.0 {
            invariants.push(bound(name, busy, seconds));
        }
    };
    within("host_cores", host_cores, seconds);
    if let Some(network) = network {
        let NetworkResult { target_cpu_share, link_to_target_share, link_to_host_share, .. } =
            network;
        let shares = [*target_cpu_share, *link_to_target_share, *link_to_host_share];
        within("network", &shares, 1.0);
    }
}

/// An invariant for each kind of part of one unit; `path` stands before their names.
fn of_unit(invariants: &mut Vec<Invariant>, path: &str, unit: &Breakdown) {
    let busy = &unit.busy;
    let mut within = |name: &str, busy: &[f64]| {
        if !busy.is_empty() && unit.seconds > 0.0 {
            invariants.push(bound(&format!("{path}{name}"), busy, unit.seconds));
        }
    };
    for part in &unit.busy_parts {
        within(&part.name, &[part.seconds]);
    }
    // A device that names its own parts has no dies or channels. Their entries would be zero, and
    // the bound would hold without a check.
    if unit.all_declared {
        return;
    }
    for (name, parts) in [
        ("dies", &busy.dies[..]),
        ("channels", &busy.channels),
        ("cores", &busy.cores),
        ("host_link", &busy.host_links),
        ("dram", &[busy.dram]),
        ("in_service", &[busy.in_service]),
    ] {
        within(name, parts);
    }
}

fn bound(name: &str, busy: &[f64], seconds: f64) -> Invariant {
    // The maximum decides and not the mean: with a mean, one overcharged die among 64 would need 64
    // times its time to be found.
    let (index, most) = busy.iter().enumerate().fold(
        (0, 0.0),
        |most: (usize, f64), (index, busy)| {
            if *busy > most.1 { (index, *busy) } else { most }
        },
    );
    let share = most / seconds;
    Invariant {
        name: format!("bound_{name}"),
        holds: share <= 1.0 + ROUNDING,
        detail: format!("the busiest, number {index}, is busy {:.2} % of the time", share * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every part busy for the whole of a second, and the names of the invariants that `change` breaks.
    fn broken(change: impl Fn(&mut Breakdown, &mut [f64], &mut NetworkResult)) -> Vec<String> {
        let mut device = Breakdown { seconds: 1.0, ..Breakdown::default() };
        device.busy.dies = vec![1.0; 4];
        device.busy.channels = vec![1.0; 2];
        device.busy.cores = vec![1.0; 3];
        device.busy.host_links = [1.0; 2];
        device.busy.dram = 1.0;
        device.busy.in_service = 1.0;
        let mut cores = [1.0, 0.9];
        let mut network = NetworkResult {
            target_cpu_share: 1.0,
            link_to_target_share: 1.0,
            link_to_host_share: 1.0,
            ..NetworkResult::default()
        };
        change(&mut device, &mut cores, &mut network);
        let mut invariants = Vec::new();
        let device = DeviceEnergy { whole: device, units: Vec::new() };
        add(&mut invariants, &device, (&cores, 1.0), Some(&network));
        assert_eq!(invariants.len(), 8);
        invariants
            .into_iter()
            .filter(|invariant| !invariant.holds)
            .map(|invariant| invariant.name)
            .collect()
    }

    #[test]
    fn a_part_that_works_more_than_time_allows_is_caught() {
        assert_eq!(broken(|_, _, _| ()), [""; 0]);
        assert_eq!(broken(|device, _, _| device.busy.dies[3] += 1e-6), ["bound_dies"]);
        assert_eq!(broken(|device, _, _| device.busy.channels[1] += 1e-6), ["bound_channels"]);
        assert_eq!(broken(|device, _, _| device.busy.cores[0] += 1e-6), ["bound_cores"]);
        // One way too much, the other idle: the mean of both would not show it.
        let one_way = broken(|device, _, _| device.busy.host_links = [1.1, 0.0]);
        assert_eq!(one_way, ["bound_host_link"]);
        assert_eq!(broken(|device, _, _| device.busy.dram += 1e-6), ["bound_dram"]);
        assert_eq!(broken(|device, _, _| device.busy.in_service += 1e-6), ["bound_in_service"]);
        // Another core has time left.
        assert_eq!(broken(|_, cores, _| cores[0] += 1e-6), ["bound_host_cores"]);
        assert_eq!(broken(|_, cores, _| cores[1] += 1e-6), [""; 0]);
        assert_eq!(broken(|_, _, network| network.link_to_host_share = 1.01), ["bound_network"]);
        assert_eq!(broken(|_, _, network| network.target_cpu_share = 1.01), ["bound_network"]);
    }

    #[test]
    fn a_run_of_no_length_breaks_nothing() {
        let mut invariants = Vec::new();
        add(&mut invariants, &DeviceEnergy::default(), (&[0.0], 0.0), None);
        assert!(invariants.is_empty());
    }
}
