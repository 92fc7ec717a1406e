//! A block device behind a network: link, target machine, and the cost of the protocol at both
//! ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::{Bandwidth, Bytes, Span};
use ssdyno_block::{ConfigError, Preset, Time, presets};

use crate::faults::NetworkFaultConfig;

/// The file of a network block target (S4-7, S4-42, S4-46): iSCSI by its costs, not by its bytes.
///
/// Not modelled: congestion (the link is one server per direction), logins, more than one connection per session. Loss,
/// damage and broken sessions are modelled only if `[faults]` asks for them. A session is a queue of the host. Each
/// host core has one session, and thus represents a client machine with one core.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkConfig {
    /// One line about the network, and where its numbers come from.
    #[serde(default)]
    pub description: String,
    /// The network port of the server, which all sessions share.
    pub link: LinkTable,
    /// The storage server with the device.
    pub target: TargetTable,
    /// Costs of the protocol on the machine with the workload.
    pub initiator: EndTable,
    /// Faults to inject; if omitted, none.
    #[serde(default, skip_serializing_if = "NetworkFaultConfig::is_none")]
    pub faults: NetworkFaultConfig,
}

/// The `[link]` table: the directions are independent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkTable {
    /// Line rate, in bytes per second.
    pub rate: Bandwidth,
    /// Time from the last bit sent by one machine to its receipt by the other: cable, switch, adapter.
    pub latency: Span,
    /// Maximum amount of data in a segment (TCP's MSS).
    #[serde(default = "segment")]
    pub segment: Bytes,
    /// Headers, framing and gap of a segment: 78 B for TCP over IPv4 on Ethernet.
    #[serde(default = "overhead")]
    pub segment_overhead: Bytes,
    /// Header of a command and of a completion (RFC 7143, clause 11.2.1: 48 B).
    #[serde(default = "header")]
    pub header: Bytes,
}

ssdyno_block::defaults! {
    segment: Bytes = Bytes(1460);
    overhead: Bytes = Bytes(78);
    header: Bytes = Bytes(48);
}

/// Costs of the protocol on one end of the connection.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndTable {
    /// Time to receive or build a command.
    pub command: Span,
    /// Time to build or receive a completion.
    pub response: Span,
    /// Time of each segment, sent or received: interrupt share, TCP, IP, driver.
    pub segment: Span,
    /// Rate at which one core sends data: copies and checksums.
    pub send: Bandwidth,
    /// Rate at which one core receives data.
    pub receive: Bandwidth,
}

/// The `[target]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetTable {
    /// Number of server cores, 1 to 1024.
    #[serde(default = "one")]
    pub cores: u16,
    /// Time to receive a command: protocol, block layer, the device's driver.
    pub command: Span,
    /// Time to receive the completion from the device, and to build the completion for the host.
    pub response: Span,
    /// Time of each segment, sent or received: interrupt share, TCP, IP, driver.
    pub segment: Span,
    /// Rate at which one core sends data: copies and checksums.
    pub send: Bandwidth,
    /// Rate at which one core receives data.
    pub receive: Bandwidth,
    /// Number of switches between threads for one command (receiving, device, sending).
    #[serde(default)]
    pub switches: f64,
    /// Cost of a switch with one, two, three … active sessions; the last value also applies to more sessions.
    #[serde(default)]
    pub switch: Vec<Span>,
    /// Share by which all work of a command grows with each further active session: the loss in caches and between
    /// threads, in addition to switches.
    #[serde(default)]
    pub surcharge: f64,
}

ssdyno_block::defaults! {
    one: u16 = 1;
}

impl TargetTable {
    fn end(&self) -> EndTable {
        let TargetTable { command, response, segment, send, receive, .. } = *self;
        EndTable { command, response, segment, send, receive }
    }
}

impl EndTable {
    fn check(&self, table: &str) -> Result<(), ConfigError> {
        let second = Time::from_s(1);
        for (key, span) in
            [("command", self.command), ("response", self.response), ("segment", self.segment)]
        {
            if span.0 > second {
                let help = "protocols take microseconds";
                return Err(error(&format!("{table}.{key}"), "longer than 1s", help));
            }
        }
        for (key, rate) in [("send", self.send), ("receive", self.receive)] {
            // A rate of zero would make a transfer take infinite time, and very small ones leave
            // the range of the clock. 100 kB/s is far below any network for storage.
            if rate.0 < 1e5 {
                let help =
                    "set the rate at which one core copies and checksums data, such as \"200MB/s\"";
                return Err(error(&format!("{table}.{key}"), "below 100kB/s", help));
            }
        }
        Ok(())
    }

    /// Work for a command: with its data outwards (`out`) or inwards, or without.
    fn work(&self, fixed: Span, data: Data, link: &LinkTable) -> Time {
        let moved = |bytes: u64, rate: Bandwidth| {
            // The cost per segment is separate from the cost per byte: interrupts and headers occur
            // per segment, while copies and checksums depend on the bytes.
            let segments = bytes.div_ceil(link.segment.0);
            rate.time_for(bytes) + self.segment.0 * segments
        };
        fixed.0
            + match data {
                Data::None => Time::ZERO,
                Data::Sent(bytes) => moved(bytes, self.send),
                Data::Received(bytes) => moved(bytes, self.receive),
            }
    }
}

/// Data that goes with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Data {
    /// None.
    None,
    /// Out of this machine.
    Sent(u64),
    /// Into it.
    Received(u64),
}

fn error(key: &str, problem: &str, help: &str) -> ConfigError {
    ConfigError::new(key, problem, help)
}

ssdyno_block::toml_file!(NetworkConfig);

impl NetworkConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// [`ConfigError`] names the key.
    pub fn check(&self) -> Result<(), ConfigError> {
        let LinkTable { rate, latency, segment, segment_overhead, header } = &self.link;
        if rate.0 < 1e5 {
            return Err(error("link.rate", "below 100kB/s", "use a rate such as \"125MB/s\""));
        }
        if latency.0 > Time::from_s(1) {
            return Err(error(
                "link.latency",
                "longer than 1s",
                "use the latency of one direction, such as \"50us\"",
            ));
        }
        if !(64..=1 << 20).contains(&segment.0) || segment_overhead.0 > 4096 || header.0 > 4096 {
            let help = "set segment = \"1460B\", segment_overhead = \"78B\", header = \"48B\"";
            return Err(error("link.segment", "the segment sizes are out of range", help));
        }
        let TargetTable { cores, switches, switch, surcharge, .. } = &self.target;
        if !(1..=1024).contains(cores) {
            return Err(error(
                "target.cores",
                "outside 1 to 1024",
                "set the number of cores of the target",
            ));
        }
        // Switches without a cost would have no effect, although the file asks for them. S4-39
        // gives 1.14 to 7.41 us for a switch.
        if !(0.0..=1e4).contains(switches) || (*switches > 0.0 && switch.is_empty()) {
            let help =
                "set the context switches per command in `switches` and their times in `switch`";
            return Err(error(
                "target.switches",
                "outside 0 to 10000, or `switch` is missing",
                help,
            ));
        }
        if switch.len() > 1024 || switch.iter().any(|span| span.0 > Time::from_ms(100)) {
            let help = "use times in microseconds; the first applies to one working session";
            return Err(error(
                "target.switch",
                "more than 1024 times, or a time longer than 100ms",
                help,
            ));
        }
        if !(0.0..=100.0).contains(surcharge) {
            let help = "use a share such as 0.1, or 0";
            return Err(error("target.surcharge", "outside 0 to 100", help));
        }
        self.target.end().check("target")?;
        self.initiator.check("initiator")?;
        self.faults.check()
    }

    /// Time on the wire of a header with `bytes` of data.
    pub(crate) fn wire(&self, bytes: u64) -> Time {
        // The header shares the first segment with the data. 32 KiB therefore need 23 segments and
        // not 24, which the test below computes by hand.
        let all = self.link.header.0 + bytes;
        let segments = all.div_ceil(self.link.segment.0);
        self.link.rate.time_for(all + segments * self.link.segment_overhead.0)
    }

    /// Work of the initiator before a command leaves, or (`done`) once its answer is there.
    pub(crate) fn initiator_work(&self, data: Data, done: bool) -> Time {
        let end = &self.initiator;
        end.work(if done { end.response } else { end.command }, data, &self.link)
    }

    /// Work of the target for a command, or (`answer`) for its answer, with `sessions` at work.
    pub(crate) fn target_work(&self, data: Data, answer: bool, sessions: usize) -> Time {
        let end = self.target.end();
        let mut work = end.work(if answer { end.response } else { end.command }, data, &self.link);
        if answer && let Some(last) = self.target.switch.len().checked_sub(1) {
            // S4-46: the total of one, two and three clients is 18, 29 and 23 MB/s. A constant cost
            // would give a plateau, so a switch costs more with more sessions, within the 1.14 to
            // 7.41 us of S4-39.
            let each = self.target.switch[sessions.saturating_sub(1).min(last)].0;
            work += scaled(each, self.target.switches);
        }
        // The loss in shared caches affects the whole command, so the surcharge multiplies the sum
        // with the switches. An addend would not grow with the amount of data.
        scaled(work, 1.0 + self.target.surcharge * sessions.saturating_sub(1) as f64)
    }
}

fn scaled(time: Time, by: f64) -> Time {
    Time::from_ps((time.as_ps() as f64 * by).round() as u64)
}

/// All networks that come with the program, as `--network` takes them; the first is the default.
pub const NETWORKS: &[Preset] = presets!["../presets/networks": "s4-iscsi", "iscsi-25g"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_sound_and_complete() {
        for preset in NETWORKS {
            let config = NetworkConfig::parse(preset.text).unwrap();
            config.check().unwrap();
            assert!(!config.description.is_empty(), "{}", preset.name);
            assert_eq!(NetworkConfig::parse(&config.to_toml()).unwrap(), config);
        }
    }

    #[test]
    fn impossible_values_are_named() {
        let good = NetworkConfig::parse(NETWORKS[0].text).unwrap();
        let key = |change: fn(&mut NetworkConfig)| {
            let mut bad = good.clone();
            change(&mut bad);
            bad.check().unwrap_err().key
        };
        assert_eq!(key(|c| c.link.rate = Bandwidth(1.0)), "link.rate");
        assert_eq!(key(|c| c.link.segment = Bytes(0)), "link.segment");
        assert_eq!(key(|c| c.target.cores = 0), "target.cores");
        assert_eq!(key(|c| c.target.switch.clear()), "target.switches");
        assert_eq!(key(|c| c.target.surcharge = f64::NAN), "target.surcharge");
        assert_eq!(key(|c| c.target.send = Bandwidth(0.0)), "target.send");
        assert_eq!(key(|c| c.initiator.segment = Span(Time::from_s(2))), "initiator.segment");
    }

    /// 32 KiB with its header are 23 segments: 32 816 + 23 x 78 bytes at 125 MB/s.
    #[test]
    fn wire_time_counts_headers() {
        let config = NetworkConfig::parse(NETWORKS[0].text).unwrap();
        let expected = (32_816.0 + 23.0 * 78.0) / 125e6;
        assert!((config.wire(32 << 10).as_s_f64() - expected).abs() < 1e-9);
    }

    #[test]
    fn switches_cost_more_with_more_sessions() {
        let config = NetworkConfig::parse(NETWORKS[0].text).unwrap();
        let at = |n| config.target_work(Data::Sent(32 << 10), true, n);
        let (one, two, three) = (at(1), at(2), at(3));
        assert!(one < two && two < three && three == at(4));
        let each = Time::from_ps(((7.41 - 1.14) * 1e6 * config.target.switches).round() as u64);
        assert_eq!(three - one, each);
    }
}
