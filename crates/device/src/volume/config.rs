//! The file of a rented volume.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::{Bandwidth, Bytes, Span};
use ssdyno_block::{ConfigError, Time};

use super::Volume;
use crate::array::MemberSpec;
use crate::faults::FaultConfig;
use crate::nvme::NvmeControllerConfig;
use crate::{Device, DeviceConfig, DeviceKinds};

/// Where the device stands.
pub(super) const DEVICE: &str = "volume.device";

/// A limit of requests per second.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IopsLimit {
    /// Permanent rate in requests per second, of `unit` each; 1 to 1e9.
    pub baseline: f64,
    /// Requests per second while there are credits, at least the baseline; if omitted, no bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<f64>,
    /// Maximum number of credits in the bucket, 0 to 1e15: a request beyond the baseline takes one credit.
    #[serde(default)]
    pub bucket: f64,
    /// Credits per second that the bucket gains while the volume is idle, 0 to 1e9; below the baseline, it gains a
    /// proportional part. If omitted, the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refill: Option<f64>,
}

/// A limit of bytes per second.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BandwidthLimit {
    /// Permanent rate; 1KB/s to 1000GB/s.
    pub baseline: Bandwidth,
    /// Rate while there are credits, at least the baseline; if omitted, no bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Bandwidth>,
    /// Maximum number of bytes in the bucket, up to 1 PiB: bytes beyond the baseline are taken from it.
    #[serde(default)]
    pub bucket: Bytes,
    /// Rate at which the bucket fills while the volume is idle, up to 1000GB/s; below the baseline, it fills at a
    /// proportional rate. If omitted, the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refill: Option<Bandwidth>,
}

ssdyno_block::defaults! {
    full: f64 = 1.0;
    deep: u32 = 1024;
}

/// The `[volume]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeTable {
    /// The device behind the limits: its name, or a table with the contents of its file.
    pub device: MemberSpec,
    /// Limit of requests per second; if omitted, no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<IopsLimit>,
    /// Limit of bytes per second, for reads and writes together; if omitted, no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<BandwidthLimit>,
    /// Bytes that count as one request, 4 KiB or more: a larger request counts as several. If
    /// omitted, each request counts as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Bytes>,
    /// True: successive requests of the same kind count as one, up to `unit`, if each begins at the end of the last.
    #[serde(default)]
    pub merge: bool,
    /// Fill level of the buckets at the beginning, as a share from 0 to 1.
    #[serde(default = "full")]
    pub initial: f64,
    /// Maximum number of requests inside, including requests that wait for tokens, 1 to 65536; the
    /// volume refuses further requests as if its queue were full.
    #[serde(default = "deep")]
    pub depth: u32,
    /// Extra time of each request in addition to the time of the device, such as a network. Up to an hour.
    #[serde(default)]
    pub latency: Span,
}

/// The file of a rented volume: a device behind rate limits, with credits for bursts, such as cloud block
/// storage.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeConfig {
    /// One line about the volume, and where its numbers come from.
    #[serde(default)]
    pub description: String,
    /// The device and its limits.
    pub volume: VolumeTable,
    /// An NVMe controller in front of the volume, for `--driver nvme`; if omitted, every key has its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvme: Option<NvmeControllerConfig>,
    /// Faults injected into the volume; the device has a table of its own.
    #[serde(default, skip_serializing_if = "FaultConfig::is_none")]
    pub faults: FaultConfig,
}

impl DeviceConfig for VolumeConfig {
    const NAME: &'static str = "volume";
    const TABLE: &'static str = "volume";
    const WHAT: &'static str = "a rented volume";

    fn build(&self, seed: u64) -> Result<Box<dyn Device>, ConfigError> {
        Ok(Box::new(Volume::new(self, seed)?))
    }

    crate::common_tables!();

    fn sector_bytes(&self) -> u32 {
        self.volume.device.sector_bytes()
    }

    fn resolve(&mut self, kinds: DeviceKinds) -> Result<(), ConfigError> {
        self.volume.device.resolve(DEVICE, kinds)
    }
}

/// The numbers of a limit, whatever it counts: a second, and in the bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) baseline: f64,
    pub(super) burst: f64,
    pub(super) bucket: f64,
    pub(super) refill: f64,
}

impl IopsLimit {
    pub(super) fn numbers(&self) -> Numbers {
        let IopsLimit { baseline, burst, bucket, refill } = *self;
        let (burst, refill) = (burst.unwrap_or(baseline), refill.unwrap_or(baseline));
        Numbers { baseline, burst, bucket, refill }
    }
}

impl BandwidthLimit {
    pub(super) fn numbers(&self) -> Numbers {
        let rate = |rate: Option<Bandwidth>| rate.unwrap_or(self.baseline).0;
        Numbers {
            baseline: self.baseline.0,
            burst: rate(self.burst),
            bucket: self.bucket.0 as f64,
            refill: rate(self.refill),
        }
    }
}

/// The range of a limit: smallest and largest rate, largest bucket, and their texts.
struct Bounds {
    rate: (f64, f64),
    bucket: f64,
    rates: &'static str,
    buckets: &'static str,
}

impl Numbers {
    fn check(&self, limit: &str, bounds: &Bounds, bursts: bool) -> Result<(), ConfigError> {
        let error = |key: &str, problem: String, help: &str| {
            Err(ConfigError::new(format!("volume.{limit}{key}"), problem, help))
        };
        let (least, most) = bounds.rate;
        for (key, value, least) in [
            (".baseline", self.baseline, least),
            (".burst", self.burst, least),
            (".refill", self.refill, 0.0),
        ] {
            if !(least..=most).contains(&value) {
                return error(
                    key,
                    format!("{value} is outside {}", bounds.rates),
                    "use a rate within these bounds",
                );
            }
        }
        if !(0.0..=bounds.bucket).contains(&self.bucket) {
            let problem = format!("{} is outside {}", self.bucket, bounds.buckets);
            return error(".bucket", problem, "set the size of the bucket");
        }
        if self.burst < self.baseline {
            return error("", "the burst is below the baseline".into(), "use a higher burst");
        }
        if self.bucket > 0.0 && !bursts {
            let problem = "there are credits, but no burst that uses them".into();
            return error(".bucket", problem, "set the rate of the burst, too");
        }
        Ok(())
    }
}

impl VolumeConfig {
    /// Checks what can be known before the device is built.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.faults.check()?;
        let volume = &self.volume;
        let error = |key: &str, problem: String, help: &str| {
            Err(ConfigError::new(format!("volume.{key}"), problem, help))
        };
        if let Some(iops) = &volume.iops {
            let (rates, buckets) = ("1 to 1e9 requests a second", "0 to 1e15 requests");
            let bounds = Bounds { rate: (1.0, 1e9), bucket: 1e15, rates, buckets };
            iops.numbers().check("iops", &bounds, iops.burst.is_some())?;
        }
        if let Some(bandwidth) = &volume.bandwidth {
            let (rates, buckets) = ("1e3 to 1e12 bytes a second", "0 to 1 PiB");
            let bounds = Bounds { rate: (1e3, 1e12), bucket: (1u64 << 50) as f64, rates, buckets };
            bandwidth.numbers().check("bandwidth", &bounds, bandwidth.burst.is_some())?;
        }
        if let Some(unit) = volume.unit.filter(|unit| !(4096..=1 << 40).contains(&unit.0)) {
            let help =
                "set the size that counts as one request, such as \"256KiB\", or leave the key out";
            return error("unit", format!("{unit} is outside 4 KiB to 1 TiB"), help);
        }
        if volume.merge && volume.unit.is_none() {
            let help = "use a size such as \"256KiB\"";
            return error("merge", "the size limit for merging is missing".into(), help);
        }
        let help = "use a share such as 1.0";
        ConfigError::within("volume.initial", volume.initial, 0.0..=1.0, help)?;
        let help = "set the number of requests that the volume holds, such as 1024";
        ConfigError::within("volume.depth", volume.depth, 1..=1 << 16, help)?;
        if volume.latency.0 > Time::from_s(3600) {
            let help = "use a time such as \"200us\"";
            return error("latency", "longer than an hour".into(), help);
        }
        volume.device.checked(DEVICE, "the volume").map(|_| ())
    }
}
