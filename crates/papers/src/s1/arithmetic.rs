//! Numbers of the text, worked out again.

use ssdyno_driver_nvme::{QueuePolicy, QueueSelector};

use super::data::Printed;
use crate::printed::arithmetic;
use crate::{Cell, PaperError, Selector};

/// Queues and entries of the P3600 (S1-26), cores of the machine (S1-68).
const QUEUES: u16 = 31;
const ENTRIES: u32 = 4096;
const CORES: u16 = 8;
/// Bytes a second and lane of a generation: transfers by line code.
const GEN3_LANE: f64 = 8e9 * 128.0 / 130.0 / 8.0;

/// What the formula called `name` gives.
fn value(name: &str) -> Option<f64> {
    let selector = |policy| QueueSelector::new(policy, CORES, QUEUES);
    let limit = |policy| selector(policy).outstanding_limit(ENTRIES) as f64;
    let of_core = |policy| selector(policy).outstanding_limit_per_core(ENTRIES) as f64;
    Some(match name {
        "gen3_x1_aggregate_gigabytes_per_second" | "sata_express_x2_gigabytes_per_second" => {
            2.0 * GEN3_LANE / 1e9
        }
        "gen3_x1_per_direction_megabytes_per_second" => GEN3_LANE / 1e6,
        "overhead_8b10b_percent" => 100.0 * 2.0 / 10.0,
        "overhead_128b130b_percent" => 100.0 * 2.0 / 130.0,
        "pci_33_megabytes_per_second" => 4.0 * 100.0 / 3.0,
        "pcix_533_gigabytes_per_second" => 8.0 * 1.6 / 3.0,
        "pcix_1066_gigabytes_per_second" => 8.0 * 3.2 / 3.0,
        "sata_600_megabytes_per_second" => 6e9 * 0.8 / 8.0 / 1e6,
        "sas_1200_megabytes_per_second" => 12e9 * 0.8 / 8.0 / 1e6,
        "ahci_cycles_per_command" => return ahci_cycles(),
        "ahci_microseconds_per_command" => return ahci_us(),
        "nvme_queues_over_ahci_entries" => 65_536.0 / 32.0,
        "nvme_io_queues" => 65_535.0,
        "ssd_speed_up" => 3e-3 / 20e-6,
        "outstanding_mfi" => limit(QueuePolicy::Single),
        "outstanding_round_robin" => limit(QueuePolicy::RoundRobin { as_printed: false }),
        "outstanding_per_core" => limit(QueuePolicy::PerCore),
        "outstanding_pool_of_a_core" => of_core(QueuePolicy::PerCorePool),
        "outstanding_pool" => limit(QueuePolicy::PerCorePool),
        "vortex_megabytes_per_second" => 720.0 / 1.11,
        "disk_pair_megabytes_per_second" => 720.0 / 1.11 / 5.0,
        "ubuntu_drop_percent" => 100.0 * (1.0 - 560.0 / 720.0),
        "iops_as_megabytes_per_second" => 50_000.0 * 4096.0 / 1e6,
        "batch_latency_milliseconds" => f64::from(CORES) * 1000.0 / 50_000.0 * 1e3,
        "read_iops_of_maximum_percent" => 100.0 * 50_000.0 / 70_000.0,
        "write_iops_theoretical_maximum" => 56_000.0,
        "read_iops_theoretical_maximum" => 450_000.0,
        "sequential_commands_per_second" => 649e6 / 32_768.0,
        _ => return None,
    })
}

/// Four register reads on the preset of the paper's machine: seconds, and the clock.
fn ahci_reads() -> Option<(f64, f64)> {
    let preset = ssdyno_host::presets::find("e5430")?;
    let host = ssdyno_host::Config::parse(preset.text).ok()?;
    let read = host.costs.register_read.at(host.cpu.clock);
    Some((4.0 * read.as_s_f64(), host.cpu.clock.0))
}

/// What they take of CPU cycles.
fn ahci_cycles() -> Option<f64> {
    ahci_reads().map(|(seconds, clock)| seconds * clock)
}

/// What they take of CPU time, in us (S1-4).
pub(super) fn ahci_us() -> Option<f64> {
    ahci_reads().map(|(seconds, _)| seconds * 1e6)
}

/// The selected cells.
pub(super) fn cells(printed: &Printed, selector: &Selector) -> Result<Vec<Cell>, PaperError> {
    arithmetic("S1", &printed.cells, selector, |name| Ok(value(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::assert_worked_out;

    #[test]
    fn every_number_is_worked_out_and_as_expected() {
        let printed = Printed::load().unwrap();
        let selector: Selector = "S1/arithmetic".parse().unwrap();
        let cells = cells(&printed, &selector).unwrap();
        assert_worked_out(&printed.cells, &cells);
    }
}
