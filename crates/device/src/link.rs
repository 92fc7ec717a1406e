//! The link to the host.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::{Bandwidth, Bytes, Span};
use ssdyno_block::{ConfigError, SECTOR_BYTES, Time};
use ssdyno_engine::events::{Activity, EventLog, PartKind};
use ssdyno_engine::{FifoResource, LastTransferTime};

ssdyno_block::defaults! {
    payload: Bytes = Bytes(256);
    overhead: Bytes = Bytes(24);
    sata_rate: Bandwidth = Bandwidth(600e6);
}

/// The `[host_link]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LinkConfig {
    /// Transfers take no time.
    Ideal,
    /// PCI Express: full duplex, data cut into transaction-layer packets.
    Pcie {
        /// 1 to 6.
        generation: u32,
        /// 1, 2, 4, 8 or 16.
        lanes: u32,
        /// Maximum amount of data in a packet (PCIe base specification 6.0, clause 7.5.3.4).
        #[serde(default = "payload")]
        max_payload: Bytes,
        /// Framing, sequence number, header and LCRC of a packet: 24 B with a 3-DW header.
        #[serde(default = "overhead")]
        packet_overhead: Bytes,
        /// Time from doorbell to command plus time from last data to interrupt.
        #[serde(default)]
        latency: Span,
    },
    /// Serial ATA: half duplex.
    Sata {
        /// Data rate after 8b/10b: 600MB/s at 6 Gb/s.
        #[serde(default = "sata_rate")]
        rate: Bandwidth,
        /// Time of the command and status frames of a request.
        #[serde(default)]
        latency: Span,
    },
    /// One half-duplex bus with a time for each sector, as in the simulator behind S3 (S3-28): a request's data crosses
    /// in one transfer, finished requests go before new requests, and a new read command also waits until the bus is
    /// free. Firmware and DRAM take no time on this link.
    SectorBus {
        /// Time for 512 bytes.
        sector_time: Span,
    },
}

/// Which way data goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the host.
    ToDevice,
    /// From the device.
    ToHost,
}

/// Bandwidths of memory and links. Above, a byte takes less than the picosecond in
/// which time is counted.
pub const RATES: RangeInclusive<Bandwidth> = Bandwidth(1e6)..=Bandwidth(1e12);

fn up_to_a_second(key: &str, span: Span) -> Result<Time, ConfigError> {
    let (key, help) = (format!("host_link.{key}"), "use nanoseconds to microseconds");
    ConfigError::no_longer(key, span, Span(Time::from_s(1)), help)?;
    Ok(span.0)
}

/// The link's state.
#[derive(Clone, Debug)]
pub struct HostLink {
    to_device: FifoResource,
    to_host: FifoResource,
    half_duplex: bool,
    latency: Time,
    ps_per_byte: f64,
    payload: u64,
    overhead: u64,
    usual: LastTransferTime,
}

impl HostLink {
    /// From the `[host_link]` table.
    pub fn new(config: &LinkConfig) -> Result<HostLink, ConfigError> {
        let mut link = HostLink {
            to_device: FifoResource::default(),
            to_host: FifoResource::default(),
            half_duplex: false,
            latency: Time::ZERO,
            ps_per_byte: 0.0,
            payload: 1,
            overhead: 0,
            usual: LastTransferTime::default(),
        };
        match config {
            LinkConfig::Ideal => {}
            LinkConfig::Pcie { generation, lanes, max_payload, packet_overhead, latency } => {
                let (key, range) = ("host_link.max_payload", Bytes(64)..=Bytes(4096));
                let help = "use a power of two from 128B to 4KiB";
                ConfigError::within(key, *max_payload, range, help)?;
                let (key, range) = ("host_link.packet_overhead", Bytes(0)..=Bytes(64));
                let help = "use 24B, the overhead with a 3-DW header";
                ConfigError::within(key, *packet_overhead, range, help)?;
                link.ps_per_byte = 1e12 / pcie_bytes_per_second(*generation, *lanes)?;
                link.payload = max_payload.0;
                link.overhead = packet_overhead.0;
                link.latency = up_to_a_second("latency", *latency)?;
            }
            LinkConfig::Sata { rate, latency } => {
                let help = "use 150MB/s, 300MB/s or 600MB/s";
                ConfigError::within("host_link.rate", *rate, RATES, help)?;
                link.half_duplex = true;
                link.ps_per_byte = 1e12 / rate.0;
                link.latency = up_to_a_second("latency", *latency)?;
            }
            LinkConfig::SectorBus { sector_time } => {
                link.half_duplex = true;
                let sector_time = up_to_a_second("sector_time", *sector_time)?;
                link.ps_per_byte = sector_time.as_ps() as f64 / f64::from(SECTOR_BYTES);
            }
        }
        Ok(link)
    }

    /// Time on the wire of `bytes`.
    pub fn time_for(&self, bytes: u64) -> Time {
        let packets = if self.overhead == 0 { 0 } else { bytes.div_ceil(self.payload) };
        let wire = bytes + packets * self.overhead;
        Time::from_ps((wire as f64 * self.ps_per_byte).round() as u64)
    }

    /// When a command that comes at `ready` reaches the controller.
    pub fn command(&self, ready: Time) -> Time {
        ready + self.latency
    }

    /// Takes the wire for `bytes` that are ready at `ready`: from when to when, or nothing where that takes no time.
    #[inline(always)]
    pub fn reserve(
        &mut self,
        direction: Direction,
        ready: Time,
        bytes: u64,
    ) -> Option<(Time, Time)> {
        let length = match self.usual.known(bytes) {
            Some(length) => length,
            None => self.usual.learn(bytes, self.time_for(bytes)),
        };
        if length == Time::ZERO {
            return None;
        }
        let server = match direction {
            Direction::ToHost if !self.half_duplex => &mut self.to_host,
            _ => &mut self.to_device,
        };
        Some(server.reserve(ready, length))
    }

    /// Sends `bytes` that are ready at `ready`; gives the time of arrival.
    #[inline(always)]
    pub fn send(
        &mut self,
        direction: Direction,
        ready: Time,
        bytes: u64,
        log: &mut EventLog,
    ) -> Time {
        let Some((from, to)) = self.reserve(direction, ready, bytes) else { return ready };
        let way = u16::from(direction == Direction::ToHost && !self.half_duplex);
        log.busy((PartKind::HostLink, way), Activity::Transfer, (from, to));
        to
    }

    /// Directions that work independently.
    pub fn ways(&self) -> u32 {
        if self.half_duplex { 1 } else { 2 }
    }
}

/// Data rate of one direction after line coding: 8b/10b for generations 1 and 2, 128b/130b for 3 to
/// 5, 242/256 (FLIT) for 6 (PCIe base specification 6.0, clauses 4.2.1 to 4.2.3).
///
/// # Errors
/// The generation does not exist, or a link cannot have this number of lanes.
pub fn pcie_bytes_per_second(generation: u32, lanes: u32) -> Result<f64, ConfigError> {
    let transfers = match generation {
        1 => 2.5e9,
        2 => 5e9,
        3 => 8e9,
        4 => 16e9,
        5 => 32e9,
        6 => 64e9,
        _ => {
            return Err(ConfigError::new(
                "host_link.generation",
                format!("PCIe generation {generation} is not known"),
                "use 1 to 6",
            ));
        }
    };
    if ![1, 2, 4, 8, 16].contains(&lanes) {
        return Err(ConfigError::new(
            "host_link.lanes",
            format!("a PCIe link cannot have {lanes} lanes"),
            "use 1, 2, 4, 8 or 16",
        ));
    }
    let coding = match generation {
        1 | 2 => 8.0 / 10.0,
        6 => 242.0 / 256.0,
        _ => 128.0 / 130.0,
    };
    Ok(transfers * coding / 8.0 * f64::from(lanes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S1-1: Gen3 x1 gives 984.6 MB/s; S0-48: Gen2 x4 gives 2.0 GB/s and 411 184 pages of 4 KiB a
    /// second with 128 B payload and 24 B overhead.
    #[test]
    fn rates_are_those_of_the_standard() {
        assert!((pcie_bytes_per_second(3, 1).unwrap() / 1e6 - 984.6).abs() < 0.1);
        let link = HostLink::new(&LinkConfig::Pcie {
            generation: 2,
            lanes: 4,
            max_payload: Bytes(128),
            packet_overhead: Bytes(24),
            latency: Span::default(),
        })
        .unwrap();
        assert_eq!((1.0 / link.time_for(4096).as_s_f64()).round(), 411_184.0);
    }

    #[test]
    fn refuses_links_that_do_not_exist() {
        assert!(pcie_bytes_per_second(7, 4).is_err());
        assert!(pcie_bytes_per_second(4, 3).is_err());
    }
}
