//! The paper's own parameters, taken literally.
//!
//! Latency is that of pages which never wait: the page times of table 2, one after another in the
//! busiest package. Energy is S3-2 to S3-5 with the currents and powers of tables 1 and 2 as they
//! are labelled. Counts of operations, time in service and the time of a sector on the host's bus
//! are not printed; they are those of the corrected run.

use ssdyno_energy::Component;
use ssdyno_engine::events::{Activity, FlashCause};
use ssdyno_session::Failure;

use super::data::Printed;
use super::simulate::Measured;
use crate::error::defect;

/// Time of a sector on the host's bus in s; the paper gives none (S3-28).
const SECTOR_SECONDS: f64 = 0.2384e-6;

/// The rows of tables 3 to 6 by their names.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Rows {
    pub(super) latency_ms: f64,
    pub(super) iops: f64,
    pub(super) seconds: f64,
    pub(super) flash: f64,
    pub(super) cpu: f64,
    pub(super) ram: f64,
    pub(super) bus: f64,
}

impl Rows {
    /// The figure of the row called `name`.
    pub(super) fn get(&self, name: &str) -> Option<f64> {
        Some(match name {
            "latency_ms" => self.latency_ms,
            "iops" => self.iops,
            "running_time_seconds" => self.seconds,
            "energy_joules" => self.flash + self.cpu + self.ram + self.bus,
            "flash_joules" => self.flash,
            "cpu_joules" => self.cpu,
            "ram_joules" => self.ram,
            "bus_joules" => self.bus,
            _ => return None,
        })
    }

    /// What the corrected model gives.
    pub(super) fn corrected(run: &Measured) -> Rows {
        Rows {
            latency_ms: run.summary.device_latency_ms,
            iops: run.summary.requests as f64 / run.seconds.max(f64::MIN_POSITIVE),
            seconds: run.seconds,
            flash: run.energy.joules(Component::Flash),
            cpu: run.energy.joules(Component::Cpu),
            ram: run.energy.joules(Component::Dram),
            bus: run.energy.joules(Component::Bus),
        }
    }

    /// What tables 1 and 2 give for `nand` (a column of table 2) and the counts of `run`.
    pub(super) fn as_printed(
        printed: &Printed,
        nand: &str,
        run: &Measured,
    ) -> Result<Rows, Failure> {
        let number = |table: &str, column: &str, row: &str| {
            let missing = || format!("{table}/{column}/{row} is missing");
            let value = printed.value(table, column, row);
            value.ok_or_else(|| defect("papers/s3/printed.toml", missing()))
        };
        let one = |row: &str| number("table1", "value", row);
        let chip = |row: &str| number("table2", nand, row);
        let volts = one("input_voltage_volts")?;
        let watts = |row: &str| Ok::<f64, Failure>(one(row)? * 1e-3 * volts);
        let read = chip("page_read_microseconds")? * 1e-6;
        let program = chip("page_program_microseconds")? * 1e-6;
        let transfer = chip("page_transfer_microseconds")? * 1e-6;
        let erase = chip("block_erase_milliseconds")? * 1e-3;

        let load = &run.load;
        let reads = run.energy.flash_operations.total(Activity::Read) as f64;
        let programs: u64 = FlashCause::ALL.iter().map(|cause| run.programs(*cause)).sum();
        let pages = (load.pages_read + load.pages_written) as f64;
        let read_seconds = reads * read;
        let program_seconds = programs as f64 * program;
        let erase_seconds = run.summary.erases as f64 * erase;
        let transfer_seconds = pages * transfer;
        // S3-18: 8 NAND packages on 8 channels. Idle current flows in each of them all the time,
        // less the time in which it works.
        let chips = 8.0;
        let idle_seconds =
            chips * run.seconds - read_seconds - program_seconds - erase_seconds - transfer_seconds;
        // S3-3: CPU power mode lasts while any request is in service. S3-31 shows that this union
        // of service times reproduces the printed CPU energy of all tables.
        let busy = run.busy_seconds();
        let idle = run.seconds - busy;
        let waited = load.rounds_read as f64 * (read + transfer)
            + load.rounds_written as f64 * (program + transfer);
        Ok(Rows {
            latency_ms: waited * 1e3 / load.requests.max(1) as f64,
            iops: load.requests as f64 / run.seconds.max(f64::MIN_POSITIVE),
            seconds: run.seconds,
            flash: watts("page_read_current_milliamperes")? * read_seconds
                + watts("page_write_current_milliamperes")? * program_seconds
                + watts("page_erase_current_milliamperes")? * erase_seconds
                + watts("flash_bus_current_milliamperes")? * transfer_seconds
                + watts("flash_idle_current_milliamperes")? * idle_seconds,
            cpu: 1e-3 * (one("cpu_normal_power_milliwatts")? * busy)
                + 1e-3 * (one("cpu_idle_power_milliwatts")? * idle),
            ram: 1e-3 * (one("dram_active_power_milliwatts")? * busy)
                + 1e-3 * (one("dram_idle_power_milliwatts")? * idle),
            bus: watts("ssd_bus_current_milliamperes")? * load.sectors as f64 * SECTOR_SECONDS,
        })
    }
}
