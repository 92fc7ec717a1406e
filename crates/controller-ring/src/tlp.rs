//! PCI Express at the level of packets (PCIe base specification 6.0, clause 2.2; S0-23 … S0-25).
//!
//! A write into host memory is posted: packets of at most the maximum payload go up. A read of host
//! memory is a request for each maximum read request, which goes up, and completions, which come
//! down, cut at the read completion boundary; so the same data takes more packets and a way there
//! and back. Not modelled: flow control credits, acknowledgements, errors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::{Bytes, Span};
use ssdyno_block::{ConfigError, Time};
use ssdyno_engine::FifoResource;

use ssdyno_device::link::pcie_bytes_per_second;

/// The `[link]` table of a ring card.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlpConfig {
    /// 1 to 6.
    pub generation: u32,
    /// 1, 2, 4, 8 or 16.
    pub lanes: u32,
    /// Maximum amount of data in a packet (clause 7.5.3.4): 128 B to 4 KiB, a power of two.
    pub max_payload: Bytes,
    /// Maximum amount of data per read request (clause 7.5.3.4): 128 B to 4 KiB, a power of two.
    pub max_read_request: Bytes,
    /// Boundary at which the root complex splits completions (clause 2.3.1.1): a power of two, 64 B
    /// up to `max_payload`. The standard allows longer completions; many root complexes do not send
    /// them.
    pub read_completion_boundary: Bytes,
    /// Framing, sequence number, header and LCRC of a request with a 64-bit address: 24 B.
    pub request_overhead: Bytes,
    /// Framing, sequence number, header and LCRC of a completion, whose header has 3 DW: 20 B.
    pub completion_overhead: Bytes,
    /// One-way latency through link and root complex.
    pub latency: Span,
    /// Time from the arrival of a read request in the root complex to its first completion.
    pub host_read_time: Span,
    /// Maximum number of read requests in progress.
    pub read_tags: u32,
}

/// Packets and bytes on the wire, one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Direction {
    /// Packets.
    pub packets: u64,
    /// Bytes with overhead.
    pub bytes: u64,
}

impl Direction {
    fn add(&mut self, packets: u64, bytes: u64) {
        self.packets += packets;
        self.bytes += bytes;
    }
}

/// What crossed the link for one purpose (S0-24).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Transactions: a posted write packet is one, a read request with its completions is one.
    pub transactions: u64,
    /// Device to host: posted writes and read requests.
    pub to_host: Direction,
    /// Host to device: completions.
    pub to_device: Direction,
}

impl Traffic {
    /// Packets, both directions.
    pub fn packets(&self) -> u64 {
        self.to_host.packets + self.to_device.packets
    }
}

/// The packets of one transfer, and what they take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cut {
    /// Posted writes, or read requests: they go up.
    up: Direction,
    /// Completions: they come down.
    down: Direction,
}

/// A link that counts packets.
#[derive(Clone, Debug)]
pub struct TlpLink {
    config: TlpConfig,
    ps_per_byte: f64,
    up: FifoResource,
    down: FifoResource,
}

/// Windows of `size` bytes that the range touches.
fn windows(address: u64, bytes: u64, size: u64) -> u64 {
    // Packets are cut at multiples of their size and not at the start of the data. Data that is
    // not aligned may therefore need one packet more.
    if bytes == 0 { 0 } else { (address + bytes - 1) / size - address / size + 1 }
}

impl TlpLink {
    /// From the `[link]` table.
    ///
    /// # Errors
    /// A link that does not exist.
    pub fn new(config: &TlpConfig) -> Result<TlpLink, ConfigError> {
        let power = |size: Bytes, least: u64, most: u64| {
            size.0.is_power_of_two() && (least..=most).contains(&size.0)
        };
        let wrong = |key: &str, problem: String, help: &str| {
            Err(ConfigError::new(format!("link.{key}"), problem, help))
        };
        if !power(config.max_payload, 128, 4096) {
            let problem = format!("{} is not a maximum payload", config.max_payload);
            return wrong("max_payload", problem, "use a power of two from 128B to 4KiB");
        }
        if !power(config.max_read_request, 128, 4096) {
            let problem = format!("{} is not a maximum read request", config.max_read_request);
            return wrong("max_read_request", problem, "use a power of two from 128B to 4KiB");
        }
        if !power(
            config.read_completion_boundary,
            64,
            config.max_payload.0.min(config.max_read_request.0),
        ) {
            let problem = format!("{} is not a boundary", config.read_completion_boundary);
            return wrong(
                "read_completion_boundary",
                problem,
                "use a power of two from 64B up to the smaller of max_payload and max_read_request",
            );
        }
        for (key, overhead) in [
            ("request_overhead", config.request_overhead),
            ("completion_overhead", config.completion_overhead),
        ] {
            if overhead.0 > 64 {
                let problem = format!("{overhead} is outside 0B to 64B around a packet's data");
                return wrong(key, problem, "use 24B, and 20B for completions");
            }
        }
        if !(1..=1024).contains(&config.read_tags) {
            let problem = format!("{} is outside 1 to 1024", config.read_tags);
            return wrong(
                "read_tags",
                problem,
                "set the number of reads that may be outstanding at a time",
            );
        }
        if config.latency.0.max(config.host_read_time.0) > Time::from_ms(1) {
            let problem = "longer than 1ms".to_owned();
            return wrong("latency", problem, "a link takes much less than a microsecond");
        }
        // The same rules as those of `[host_link]`, in another table.
        let rate = pcie_bytes_per_second(config.generation, config.lanes).map_err(|error| {
            ConfigError { key: error.key.replace("host_link.", "link."), ..error }
        })?;
        Ok(TlpLink {
            config: config.clone(),
            ps_per_byte: 1e12 / rate,
            up: FifoResource::default(),
            down: FifoResource::default(),
        })
    }

    /// One-way latency through link and root complex.
    pub fn latency(&self) -> Time {
        self.config.latency.0
    }

    fn wire(&self, bytes: u64) -> Time {
        Time::from_ps((bytes as f64 * self.ps_per_byte).round() as u64)
    }

    /// What a write of host memory becomes (S0-23: a user's read).
    pub fn write_traffic(&self, address: u64, bytes: u64) -> Traffic {
        let Cut { up, down } = self.cut_write(address, bytes);
        Traffic { transactions: up.packets, to_host: up, to_device: down }
    }

    /// What a read of host memory becomes (S0-23: a user's write).
    pub fn read_traffic(&self, address: u64, bytes: u64) -> Traffic {
        let Cut { up, down } = self.cut_read(address, bytes);
        Traffic { transactions: up.packets, to_host: up, to_device: down }
    }

    fn cut_write(&self, address: u64, bytes: u64) -> Cut {
        let packets = windows(address, bytes, self.config.max_payload.0);
        let up = Direction { packets, bytes: bytes + packets * self.config.request_overhead.0 };
        Cut { up, down: Direction::default() }
    }

    fn cut_read(&self, address: u64, bytes: u64) -> Cut {
        let TlpConfig { request_overhead, completion_overhead, .. } = self.config;
        let requests = windows(address, bytes, self.config.max_read_request.0);
        // Completions are cut at the boundary even if a packet could hold more. The boundary is
        // no larger than a packet, so a read has no fewer packets than a write.
        let completions = windows(address, bytes, self.config.read_completion_boundary.0);
        Cut {
            up: Direction { packets: requests, bytes: requests * request_overhead.0 },
            down: Direction {
                packets: completions,
                bytes: bytes + completions * completion_overhead.0,
            },
        }
    }

    /// How long a write of host memory keeps an otherwise unused link.
    pub fn write_time(&self, address: u64, bytes: u64) -> Time {
        self.wire(self.cut_write(address, bytes).up.bytes)
    }

    /// From the first request of a read of host memory to its last completion, on an otherwise
    /// unused link: each request waits for a free tag, completions come in order.
    pub fn read_time(&self, address: u64, bytes: u64) -> Time {
        let size = self.config.max_read_request.0;
        let tags = self.config.read_tags as usize;
        let request = self.wire(self.config.request_overhead.0);
        let way = self.way();
        if windows(address, bytes, size) <= self.config.read_tags.into() {
            let data = self.wire(self.cut_read(address, bytes).down.bytes);
            return if bytes == 0 { Time::ZERO } else { request + way + data };
        }
        let mut done: Vec<Time> = Vec::new();
        let (mut at, end, mut issued) = (address, address + bytes, Time::ZERO);
        while at < end {
            let stop = (at / size * size + size).min(end);
            // With n tags request i waits for the end of request i - n. Few tags on a link with
            // a long way keep it partly idle.
            let tag = done.len().checked_sub(tags).map_or(Time::ZERO, |free| done[free]);
            issued = issued.max(tag) + request;
            let before = done.last().copied().unwrap_or(Time::ZERO);
            let data = self.wire(self.cut_read(at, stop - at).down.bytes);
            done.push(before.max(issued + way) + data);
            at = stop;
        }
        done.last().copied().unwrap_or(Time::ZERO)
    }

    /// Sends a write of host memory that is ready at `ready`: when its packets are on the wire.
    pub(super) fn write(
        &mut self,
        ready: Time,
        address: u64,
        bytes: u64,
    ) -> ((Time, Time), Traffic) {
        let traffic = self.write_traffic(address, bytes);
        (self.up.reserve(ready, self.wire(traffic.to_host.bytes)), traffic)
    }

    /// Sends the requests of a read of host memory: when they are on the wire, and when the first
    /// completion is there.
    pub(super) fn request(
        &mut self,
        ready: Time,
        address: u64,
        bytes: u64,
    ) -> ((Time, Time), Time) {
        let cut = self.cut_read(address, bytes);
        let sent = self.up.reserve(ready, self.wire(cut.up.bytes));
        let first = sent.0 + self.wire(self.config.request_overhead.0);
        (sent, first + self.way())
    }

    /// Receives the completions of a read whose first one is there at `first`: when they are on
    /// the wire, and when the last one is there at the earliest, for want of tags.
    pub(super) fn receive(
        &mut self,
        first: Time,
        address: u64,
        bytes: u64,
    ) -> ((Time, Time), Time) {
        let cut = self.cut_read(address, bytes);
        let wire = self.down.reserve(first, self.wire(cut.down.bytes));
        let before_first = self.wire(self.config.request_overhead.0) + self.way();
        // The reservation knows the bandwidth only. The time that a lack of tags costs is added
        // here, from the closed form of an otherwise unused link.
        let slowest = first + self.read_time(address, bytes).saturating_sub(before_first);
        (wire, slowest)
    }

    /// From a request on the wire to its first completion.
    fn way(&self) -> Time {
        self.config.latency.0 * 2 + self.config.host_read_time.0
    }
}

impl std::ops::AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        self.transactions += other.transactions;
        self.to_host.add(other.to_host.packets, other.to_host.bytes);
        self.to_device.add(other.to_device.packets, other.to_device.bytes);
    }
}
