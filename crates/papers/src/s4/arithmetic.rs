//! Numbers of the text, worked out again.

use super::data::Printed;
use crate::printed::arithmetic;
use crate::{Cell, PaperError, Selector};

/// S4, table 2: Seagate's seek times of reads and writes in ms, its transfer of 16 KiB in ms at
/// some 47 MB/s, the mean of figure 4.
const SEEK_READ_MS: f64 = 3.6;
const SEEK_WRITE_MS: f64 = 4.2;
const TRANSFER_MS: f64 = 0.35;

/// Half a turn, in ms.
fn latency_ms(rpm: f64) -> f64 {
    60_000.0 / rpm / 2.0
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Workers at depth 1, of which each needs `overhead_us` beside the device's 100 us, that keep it
/// busy.
fn workers(overhead_us: f64) -> f64 {
    ((100.0 + overhead_us) / 100.0).ceil()
}

/// What IoMeter's switches and calls cost more than SPEK's, in us.
fn overhead_us() -> f64 {
    (4.85 - 2.01) * 4.27 + 14.0 * 0.440
}

/// What the formula called `name` gives.
fn value(name: &str, printed: &Printed) -> Option<f64> {
    let write_ms = SEEK_WRITE_MS + latency_ms(15_000.0) + TRANSFER_MS;
    let totals = printed.table4.totals;
    Some(match name {
        "ibm_rotational_latency_ms" => latency_ms(7_200.0),
        "seagate_rotational_latency_ms" => latency_ms(15_000.0),
        "seagate_random_write_16k_iops" | "iometer_random_write_16k_iops" => 1e3 / write_ms,
        "random_read_16k_milliseconds" => SEEK_READ_MS + latency_ms(15_000.0) + TRANSFER_MS,
        "client_cache_hits_percent" => 100.0 * 256.0 / 18e3,
        "delay_10us_iops" => 1e6 / 10.0,
        "ramsan_milliseconds" => 1e3 / 100_000.0,
        "iometer_iops_at_19_ms" => 1e3 / 19.0,
        "iometer_switches_mean" => mean(&printed.table3.iometer),
        "spek_switches_mean" => mean(&printed.table3.spek),
        "system_call_us_mean" => mean(&[0.352, 0.579, 0.517, 0.036, 0.696, 0.465]),
        "overhead_us_more_of_iometer" => overhead_us(),
        "workers_iometer_100us" => workers(4.85 * 4.27 + 14.0 * 0.440),
        "workers_spek_100us" => workers(2.01 * 4.27),
        "iscsi_two_clients_sum" => 15.488 + 13.519,
        "iscsi_three_clients_sum" => 9.035 + 7.645 + 6.534,
        "iscsi_fall_percent" => 100.0 * (1.0 - totals[2] / totals[1]),
        _ => return None,
    })
}

/// The selected cells.
pub(super) fn cells(printed: &Printed, selector: &Selector) -> Result<Vec<Cell>, PaperError> {
    arithmetic("S4", &printed.cells, selector, |name| Ok(value(name, printed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::assert_worked_out;

    #[test]
    fn every_number_is_worked_out_and_as_expected() {
        let printed = Printed::load().unwrap();
        let selector: Selector = "S4/arithmetic".parse().unwrap();
        let cells = cells(&printed, &selector).unwrap();
        assert_worked_out(&printed.cells, &cells);
    }

    /// S4-26, S4-31, S4-37, S4-41: what contradicts the paper.
    #[test]
    fn errors_of_the_paper_are_as_large_as_stated() {
        let printed = Printed::load().unwrap();
        let at = |name| value(name, &printed).unwrap();
        assert!((at("seagate_random_write_16k_iops") - 152.7).abs() < 0.1);
        assert!((at("random_read_16k_milliseconds") - 5.95).abs() < 0.01);
        assert!((at("overhead_us_more_of_iometer") - 18.29).abs() < 0.01);
        assert_eq!((at("workers_iometer_100us"), at("workers_spek_100us")), (2.0, 2.0));
        assert!((at("iometer_iops_at_19_ms") - 52.6).abs() < 0.1);
    }
}
