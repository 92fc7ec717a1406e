//! Numbers in the text, recalculated.

use ssdyno_device::nvme::{Burst, NvmeControllerConfig};
use ssdyno_driver_nvme::{QueuePolicy, QueueSelector};
use ssdyno_session::Failure;

use super::data::Printed;
use crate::printed::{arithmetic, quoted};
use crate::{FigureCell, Selector};

/// Cores of the machine (S1-68).
const CORES: u16 = 8;
/// Bytes a second and lane of a generation: transfers by line code.
const GEN3_LANE: f64 = 8e9 * 128.0 / 130.0 / 8.0;

/// What the formula called `name` gives.
fn value(name: &str, printed: &Printed) -> Option<f64> {
    let at = |name: &str| quoted(&printed.cells, name);
    let controller = controller()?;
    let (queues, entries) = (controller.io_queues, controller.queue_entries);
    let selector = |policy| QueueSelector::new(policy, CORES, queues);
    let limit = |policy| selector(policy).outstanding_limit(entries) as f64;
    let of_core = |policy| selector(policy).outstanding_limit_per_core(entries) as f64;
    Some(match name {
        "gen3_x1_aggregate_gigabytes_per_second" | "sata_express_x2_gigabytes_per_second" => {
            2.0 * GEN3_LANE / 1e9
        }
        "gen3_x1_per_direction_megabytes_per_second" => GEN3_LANE / 1e6,
        "overhead_8b10b_percent" => 100.0 * 2.0 / 10.0,
        // S1-2: the overhead relates to the bits on the wire (2 of 130) and not to the payload (2
        // of 128). The same convention gives 20 % for 8b/10b.
        "overhead_128b130b_percent" => 100.0 * 2.0 / 130.0,
        "pci_33_megabytes_per_second" => 4.0 * 100.0 / 3.0,
        "pcix_533_gigabytes_per_second" => 8.0 * 1.6 / 3.0,
        "pcix_1066_gigabytes_per_second" => 8.0 * 3.2 / 3.0,
        "sata_600_megabytes_per_second" => 6e9 * 0.8 / 8.0 / 1e6,
        "sas_1200_megabytes_per_second" => 12e9 * 0.8 / 8.0 / 1e6,
        "ahci_cycles_per_command" => return ahci_cycles(),
        "ahci_microseconds_per_command" => return ahci_us(),
        "nvme_queues_over_ahci_entries" => 65_536.0 / at("sata_queue_depth")?,
        // S1-5: the thesis prints 65 535 and 65 536 in two places. Queue identifier 0 is the admin
        // queue, so 65 535 identifiers remain for I/O queues.
        "nvme_io_queues" => 65_535.0,
        // S1-6: the factor of 150 compares the best seek of a disk with the best access of an SSD.
        // At 120 us it is only 25, and a seek without rotation is not an access.
        "ssd_speed_up" => at("hdd_seek_ms_least")? * 1e3 / at("ssd_access_us_least")?,
        "io_queue_pairs" => f64::from(queues),
        "queue_entries" => f64::from(entries),
        "arbitration_burst" => match controller.arbitration_burst {
            Burst::Commands(commands) => f64::from(commands),
            Burst::Unlimited => f64::INFINITY,
        },
        "namespaces" => f64::from(controller.namespaces_max),
        "outstanding_mfi" => limit(QueuePolicy::Single),
        "outstanding_round_robin" => limit(QueuePolicy::RoundRobin { as_printed: false }),
        "outstanding_per_core" => limit(QueuePolicy::PerCore),
        "outstanding_pool_of_a_core" => of_core(QueuePolicy::PerCorePool),
        "outstanding_pool" => limit(QueuePolicy::PerCorePool),
        "vortex_megabytes_per_second" => {
            at("ubuntu_burst_megabytes_per_second")? / at("ubuntu_over_vortex")?
        }
        "disk_pair_megabytes_per_second" => {
            at("vortex_megabytes_per_second")? / at("ssd_over_disks_eight_cores")?
        }
        "ubuntu_drop_percent" => {
            let large = at("ubuntu_large_megabytes_per_second")?;
            100.0 * (1.0 - large / at("ubuntu_burst_megabytes_per_second")?)
        }
        "iops_as_megabytes_per_second" => at("random_read_iops")? * 4096.0 / 1e6,
        // Little's law, N = X R: 8 threads with 1000 requests each at 50 000 IOPS wait 160 ms
        // (S1-65). The thesis does not print a latency to compare with.
        "batch_latency_milliseconds" => {
            f64::from(CORES) * at("requests_of_a_batch")? / at("random_read_iops")? * 1e3
        }
        "read_iops_of_maximum_percent" => {
            100.0 * at("random_read_iops")? / at("read_iops_theoretical_maximum")?
        }
        "write_iops_theoretical_maximum" => 56_000.0,
        "read_iops_theoretical_maximum" => 450_000.0,
        // S1-67: 649 MB/s in buffers of 32 KiB are 19 800 commands per second, far below the 50 000
        // IOPS of figure 5.7. The cost per command is not the limit of sequential loads.
        "sequential_commands_per_second" => at("vortex_megabytes_per_second")? * 1e6 / 32_768.0,
        _ => return None,
    })
}

/// The controller of the paper's SSD, by its preset.
fn controller() -> Option<NvmeControllerConfig> {
    let preset = ssdyno_session::DEVICE_KINDS.find("p3600")?;
    ssdyno_ssd::Config::parse(preset.text).ok()?.nvme
}

/// Four register reads on the preset of the paper's machine: seconds, and the clock.
fn ahci_reads() -> Option<(f64, f64)> {
    let preset = ssdyno_host::presets::find("e5430")?;
    let host = ssdyno_host::HostConfig::parse(preset.text).ok()?;
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
pub(super) fn cells(printed: &Printed, selector: &Selector) -> Result<Vec<FigureCell>, Failure> {
    arithmetic("S1", &printed.cells, selector, |name| Ok(value(name, printed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::assert_worked_out;

    #[test]
    fn every_number_is_worked_out_and_as_expected() {
        let printed = Printed::load().unwrap();
        let selector: Selector = "S1/arithmetic".parse().unwrap();
        let cells = cells(&printed, &selector).unwrap();
        assert_worked_out(&printed.cells, &cells);
    }
}
