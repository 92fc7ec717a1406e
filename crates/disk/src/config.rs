//! The file of a hard disk.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::{Bandwidth, Bytes, Span, Watts};
use ssdyno_device::faults::FaultConfig;
use ssdyno_device::nvme::NvmeControllerConfig;

/// The order in which logical blocks fill the tracks of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrackOrder {
    /// All surfaces of a cylinder, from the first head to the last, then the next cylinder: drives
    /// until about 2000.
    #[default]
    Cylinder,
    /// All surfaces of a cylinder, in turn from the first head to the last and from the last to the
    /// first: no head switch between cylinders.
    CylinderSerpentine,
    /// `disk.band` cylinders of one surface inwards, the same cylinders of the next surface outwards, and so on:
    /// current drives, in which a step to a neighbouring track is faster than a head switch.
    SurfaceSerpentine,
}

/// Which waiting command the arm serves next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scheduler {
    /// First come, first served.
    Fcfs,
    /// The shortest seek first.
    Sstf,
    /// The shortest positioning time (seek and rotation) first, as in drives with tagged queueing.
    #[default]
    Sptf,
    /// The nearest command in the direction in which the arm moves; at the last command the arm turns round (LOOK).
    Elevator,
}

/// One zone: cylinders whose tracks hold the same number of sectors.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZoneTable {
    /// Number of the first cylinder, counted from the outermost [default: the cylinder after the last zone].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_cylinder: Option<u32>,
    /// Cylinders in the zone.
    pub cylinders: u32,
    /// Sectors of one track.
    pub sectors_per_track: u32,
    /// Offset in sectors between the first sectors of two successive tracks of a cylinder [default: follows from the
    /// head switch time].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_skew: Option<f64>,
    /// The same offset between the last track of a cylinder and the first track of the next [default: follows from the
    /// time of a seek of one cylinder].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cylinder_skew: Option<f64>,
    /// Sectors at the front of the zone without user data.
    #[serde(default)]
    pub unused: u64,
    /// Spare sectors at the end of each `spare_cylinders`.
    #[serde(default)]
    pub spares: u32,
    /// Cylinders that share spare sectors [default: the whole zone].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_cylinders: Option<u32>,
    /// Defective sectors, counted from the first sector of the zone in the order of logical blocks, ascending: later
    /// blocks slip by one sector each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slips: Vec<u64>,
}

/// A rule that creates the zones, for a drive of which only the outermost and innermost tracks are known. The number
/// of sectors per track falls in equal steps from zone to zone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZonesByRule {
    /// Number of zones, 1 to 1000.
    pub count: u32,
    /// Cylinders of the whole drive.
    pub cylinders: u32,
    /// Sectors per track in the outermost zone.
    pub outer: u32,
    /// Sectors per track in the innermost zone.
    pub inner: u32,
}

/// Seek times of the arm.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SeekTable {
    /// Measured points, `[cylinders, time]` with ascending distances; straight lines between them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<(u32, Span)>,
    /// Without points: time of a seek of one cylinder. With `average` and `full`, a curve a + b sqrt(d - 1) + c (d - 1)
    /// goes through all three (Lee and Katz, SIGMETRICS 1993).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub single: Option<Span>,
    /// Mean time between two random cylinders, as in data sheets (a third of all cylinders).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average: Option<Span>,
    /// Time from the first cylinder to the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full: Option<Span>,
}

/// Time of a command in the electronics before any other step, by the state of the cache. A write is a hit if it
/// overlaps or continues data in the cache.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OverheadTable {
    /// A read that the cache can serve.
    pub read_hit: Span,
    /// A read that the cache can serve and that does not continue the read before it [default: `read_hit`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_hit_apart: Option<Span>,
    /// A read from the medium.
    pub read_miss: Span,
    /// A write that overlaps or continues a segment, or continues the write before it.
    pub write_hit: Span,
    /// All other writes.
    pub write_miss: Span,
    /// Extra time of a read that follows a write.
    pub read_after_write: Span,
    /// Extra time of a write that follows a read.
    pub write_after_read: Span,
}

/// The cache. The segments of reads and the dirty data share it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheTable {
    /// Segments, each for one stream of sequential reads, 1 to 1024.
    pub segments: u32,
    /// Size of a segment, a multiple of the sector.
    pub segment: Bytes,
    /// Amount of data that the drive reads ahead beyond the request; at most a segment. `"0B"`: no read-ahead.
    /// Read-ahead ends when a command needs the arm.
    pub read_ahead: Bytes,
    /// Maximum amount of dirty data in the cache. `"0B"`: write-through, so that a write completes when it is on the
    /// medium.
    pub write_back: Bytes,
    /// Maximum number of separate extents in `write_back`; a write that continues an extent joins it.
    pub write_extents: u32,
    /// True: written data takes a segment, too, and can be read from there.
    #[serde(default)]
    pub keep_written: bool,
}

/// Powers of the drive. An idle drive keeps its spindle at full speed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DiskPower {
    /// The spindle at full speed.
    pub spindle: Watts,
    /// The spindle while it accelerates.
    pub spin_up: Watts,
    /// The electronics, at all times.
    pub electronics: Watts,
    /// The electronics while they work on a command.
    pub command: Watts,
    /// The arm while it seeks, in addition to the other parts.
    pub seek: Watts,
    /// Head and channel while they read.
    pub read: Watts,
    /// Head and channel while they write.
    pub write: Watts,
    /// Idle time after which the spindle stops; if omitted, it never stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standby_after: Option<Span>,
    /// The spindle at rest, with its driver.
    pub standby: Watts,
    /// Time from rest to ready.
    pub spin_up_time: Span,
}

impl Default for DiskPower {
    fn default() -> DiskPower {
        let none = Watts(0.0);
        DiskPower {
            spindle: none,
            spin_up: none,
            electronics: none,
            command: none,
            seek: none,
            read: none,
            write: none,
            standby_after: None,
            standby: none,
            spin_up_time: Span::default(),
        }
    }
}

/// The `[disk]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskTable {
    /// Size of a sector: 512 B or 4 KiB.
    #[serde(default = "sector")]
    pub sector: Bytes,
    /// Logical blocks, at most the number in the zones [default: all].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
    /// Revolutions per minute, 1000 to 50000.
    pub rpm: f64,
    /// Surfaces with data, each with a head, 1 to 64.
    pub surfaces: u32,
    /// The order of tracks.
    #[serde(default)]
    pub order: TrackOrder,
    /// Cylinders of a band, for `order = "surface-serpentine"`.
    #[serde(default = "band")]
    pub band: u32,
    /// The zones, from the outermost inwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<ZoneTable>,
    /// A rule that creates the zones, instead of `zones`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones_by_rule: Option<ZonesByRule>,
    /// Seek times.
    pub seek: SeekTable,
    /// Time to change the head within a cylinder.
    pub head_switch: Span,
    /// Extra settling time of the head before a write.
    #[serde(default)]
    pub write_settle: Span,
    /// True: a transfer begins with the first of its sectors that reaches the head. False: it begins with its first
    /// sector.
    #[serde(default)]
    pub zero_latency: bool,
    /// Rate of the bus.
    pub bus: Bandwidth,
    /// Times of the electronics.
    #[serde(default)]
    pub overhead: OverheadTable,
    /// Maximum number of commands in the drive: 32 with NCQ (Serial ATA 3.3, 13.6), 1 without queueing.
    #[serde(default = "depth")]
    pub depth: u32,
    /// Order of the waiting commands.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// The cache; if omitted, the drive has no cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheTable>,
    /// Power of each part; a part that is left out has no power.
    #[serde(default)]
    pub power: DiskPower,
}

ssdyno_block::defaults! {
    sector: Bytes = Bytes(512);
    band: u32 = 64;
    depth: u32 = 32;
}

/// The file of a hard disk: one drive with its geometry, times, cache and powers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskConfig {
    /// One line about the drive, and where its numbers come from.
    #[serde(default)]
    pub description: String,
    /// The drive.
    pub disk: DiskTable,
    /// An NVMe controller in front of the drive, for `--driver nvme`; if omitted, every key has its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvme: Option<NvmeControllerConfig>,
    /// Injected faults; if omitted, none.
    #[serde(default, skip_serializing_if = "FaultConfig::is_none")]
    pub faults: FaultConfig,
}

ssdyno_block::toml_file!(DiskConfig);
