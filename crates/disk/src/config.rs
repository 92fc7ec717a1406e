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
    /// `disk.band` cylinders of one surface inwards, the same cylinders of the next surface outwards,
    /// and so on: current drives, whose heads settle faster on a neighbouring track than another
    /// head settles on its own.
    SurfaceSerpentine,
}

/// Which waiting command the arm serves next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scheduler {
    /// In order of arrival.
    Fcfs,
    /// The shortest seek first.
    Sstf,
    /// The shortest positioning time (seek and rotation) first: what drives with tagged queueing do.
    #[default]
    Sptf,
    /// The nearest in the direction in which the arm moves; at the last one it turns round (LOOK).
    Elevator,
}

/// One zone: cylinders whose tracks hold the same number of sectors.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZoneTable {
    /// Number of the first cylinder, counted from the outermost [default: the one after the last zone].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_cylinder: Option<u32>,
    /// Cylinders in the zone.
    pub cylinders: u32,
    /// Sectors of one track.
    pub sectors_per_track: u32,
    /// Sectors by which the first sector of a track is behind that of the track before it, where only
    /// the head changes [default: what the head switch needs].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_skew: Option<f64>,
    /// The same where the cylinder changes [default: what a seek of one cylinder needs].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cylinder_skew: Option<f64>,
    /// Sectors at the front of the zone without data of the user.
    #[serde(default)]
    pub unused: u64,
    /// Spare sectors at the end of each `spare_cylinders`.
    #[serde(default)]
    pub spares: u32,
    /// Cylinders that share spare sectors [default: the whole zone].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_cylinders: Option<u32>,
    /// Defective sectors, counted from the first sector of the zone in the order of logical blocks,
    /// rising: later blocks slip by one sector each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slips: Vec<u64>,
}

/// Zones by rule, for a drive of which only the outermost and innermost track are known. The number of
/// sectors per track falls in equal steps from zone to zone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZonesByRule {
    /// How many zones, 1 to 1000.
    pub count: u32,
    /// Cylinders of the whole drive.
    pub cylinders: u32,
    /// Sectors per track in the outermost zone.
    pub outer: u32,
    /// Sectors per track in the innermost zone.
    pub inner: u32,
}

/// How long the arm takes.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SeekTable {
    /// Measured points, `[cylinders, time]` with rising distances; straight lines between them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<(u32, Span)>,
    /// Without points: a seek of one cylinder. With `average` and `full`, a curve
    /// a + b sqrt(d - 1) + c (d - 1) goes through all three (Lee and Katz, SIGMETRICS 1993).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub single: Option<Span>,
    /// The mean over two random cylinders, as data sheets have it (a third of all cylinders).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average: Option<Span>,
    /// From the first cylinder to the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full: Option<Span>,
}

/// Time of a command in the electronics before anything else happens, by what the command finds in
/// the cache. A write hits where it touches or continues what the cache holds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OverheadTable {
    /// A read that the cache has.
    pub read_hit: Span,
    /// A read that the cache has and that does not continue the one before it [default: `read_hit`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_hit_apart: Option<Span>,
    /// A read from the medium.
    pub read_miss: Span,
    /// A write that touches or continues what a segment holds, or continues the write before it.
    pub write_hit: Span,
    /// Another write.
    pub write_miss: Span,
    /// What is added to a read that follows a write.
    pub read_after_write: Span,
    /// What is added to a write that follows a read.
    pub write_after_read: Span,
}

/// The cache. The segments of reads and the data that wait to be written share it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheTable {
    /// Segments, each for one stream of sequential reads, 1 to 1024.
    pub segments: u32,
    /// Size of a segment, a multiple of the sector.
    pub segment: Bytes,
    /// How far the drive reads ahead beyond what was asked for; at most a segment. `"0B"`: no
    /// read-ahead. It ends where a command needs the arm.
    pub read_ahead: Bytes,
    /// Data that the host wrote and that are not on the medium yet, at most; `"0B"`: write-through,
    /// a write completes when it is on the medium.
    pub write_back: Bytes,
    /// Separate extents in `write_back` at most; a write that continues one joins it.
    pub write_extents: u32,
    /// True: written data take a segment, too, and can be read from there.
    #[serde(default)]
    pub keep_written: bool,
}

/// What the drive draws. Idle is with the spindle at speed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DiskPower {
    /// The spindle at speed.
    pub spindle: Watts,
    /// The spindle while it accelerates.
    pub spin_up: Watts,
    /// The electronics, always.
    pub electronics: Watts,
    /// The electronics while they work on a command.
    pub command: Watts,
    /// The arm while it seeks, beside the rest.
    pub seek: Watts,
    /// Head and channel while they read.
    pub read: Watts,
    /// Head and channel while they write.
    pub write: Watts,
    /// After so long without a command the spindle stops; left out: never.
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
    /// Logical blocks; no more than the zones have [default: as many].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
    /// Turns a minute, 1000 to 50000.
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
    /// Zones by rule, in place of `zones`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones_by_rule: Option<ZonesByRule>,
    /// Seek times.
    pub seek: SeekTable,
    /// Time to change the head within a cylinder.
    pub head_switch: Span,
    /// Extra settling time of the head before a write.
    #[serde(default)]
    pub write_settle: Span,
    /// With true, a transfer begins with the sector of it that reaches the head first; with false, with
    /// its first sector.
    #[serde(default)]
    pub zero_latency: bool,
    /// Rate of the bus.
    pub bus: Bandwidth,
    /// Times of the electronics.
    #[serde(default)]
    pub overhead: OverheadTable,
    /// Commands in the drive at most: 32 with NCQ (Serial ATA 3.3, 13.6), 1 without queueing.
    #[serde(default = "depth")]
    pub depth: u32,
    /// Order of the commands that wait.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// The cache; left out: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheTable>,
    /// Power of each part; a part that is left out draws nothing.
    #[serde(default)]
    pub power: DiskPower,
}

fn sector() -> Bytes {
    Bytes(512)
}

fn band() -> u32 {
    64
}

fn depth() -> u32 {
    32
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
    /// An NVMe controller in front of it, for `--driver nvme`; left out: with that driver every key has its
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvme: Option<NvmeControllerConfig>,
    /// Injected faults; left out: none.
    #[serde(default, skip_serializing_if = "FaultConfig::is_none")]
    pub faults: FaultConfig,
}

ssdyno_block::toml_file!(DiskConfig);
