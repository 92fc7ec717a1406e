//! Where a logical block is: zone, track, sector, and the angle of the sector.

use ssdyno_block::ConfigError;

use crate::check::error;
use crate::config::{DiskTable, TrackOrder, ZoneTable, ZonesByRule};
use crate::seek::SeekCurve;

/// A track: where the arm and which head must be, and when what passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Track {
    pub(crate) cylinder: u32,
    pub(crate) head: u32,
    /// Angle of its first sector, as the time from the index mark, in picoseconds.
    pub(crate) origin: u64,
    /// Sectors on it.
    pub(crate) sectors: u32,
}

/// Sectors that lie behind one another on a track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) track: Track,
    /// The first one's number on the track.
    pub(crate) sector: u32,
    /// How many logical blocks follow one another from it on, without a gap.
    pub(crate) length: u32,
}

#[derive(Clone, Debug)]
struct Zone {
    first_block: u64,
    blocks: u64,
    first_cylinder: u32,
    cylinders: u32,
    sectors: u32,
    /// The number of sectors of a range with its own spares, and the number of sectors that hold
    /// data.
    range: u64,
    usable: u64,
    unused: u64,
    slips: Vec<u64>,
    /// Angle of the first track, and what each switch adds, in picoseconds.
    origin: u64,
    track_skew: u64,
    cylinder_skew: u64,
}

/// The whole drive.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    zones: Vec<Zone>,
    surfaces: u64,
    order: TrackOrder,
    band: u64,
    turn: u64,
    /// Logical blocks.
    pub(crate) blocks: u64,
}

/// No drive has more cylinders: the highest numbers are about 600 000.
const CYLINDERS_MOST: u32 = 1 << 24;

/// No drive has more sectors on a track.
const TRACK_SECTORS_MOST: u32 = 1 << 16;

impl Layout {
    /// The layout and the seek curve, which skews that are not given depend on.
    pub(crate) fn new(disk: &DiskTable) -> Result<(Layout, SeekCurve), ConfigError> {
        let tables = match (&disk.zones[..], &disk.zones_by_rule) {
            ([], Some(rule)) => by_rule(rule)?,
            ([_, ..], None) => disk.zones.clone(),
            ([], None) => return Err(error("zones", "there is none", ZONES_HELP)),
            _ => {
                return Err(error(
                    "zones",
                    "cannot be combined with zones_by_rule",
                    "keep one of the two",
                ));
            }
        };
        let mut next = 0_u32;
        let mut first_cylinders = Vec::with_capacity(tables.len());
        for (index, table) in tables.iter().enumerate() {
            let first = table.first_cylinder.unwrap_or(next);
            let end = first.checked_add(table.cylinders).filter(|end| *end <= CYLINDERS_MOST);
            let (true, Some(end)) = (first >= next && table.cylinders > 0, end) else {
                let problem = format!("begins at cylinder {first} and has {}", table.cylinders);
                let help = format!("list the zones in order; this zone begins at cylinder {next}");
                return Err(error(&format!("zones[{index}]"), problem, &help));
            };
            first_cylinders.push(first);
            next = end;
        }
        let curve = SeekCurve::new(disk, next)?;
        let turn = (60e12 / disk.rpm).round() as u64;
        let mut layout = Layout {
            zones: Vec::with_capacity(tables.len()),
            surfaces: disk.surfaces.into(),
            order: disk.order,
            band: disk.band.into(),
            turn,
            blocks: 0,
        };
        let switches = [disk.head_switch.0.as_ps(), curve.ps(1)];
        let switches = switches.map(|ps| ps + disk.write_settle.0.as_ps());
        for (index, (table, first)) in tables.iter().zip(first_cylinders).enumerate() {
            layout.add(index, table, first, switches)?;
        }
        if let Some(blocks) = disk.blocks {
            if blocks == 0 || blocks > layout.blocks {
                let problem = format!("{blocks}, but the zones hold {}", layout.blocks);
                let help = "use at most as many, or correct the zones";
                return Err(error("blocks", problem, help));
            }
            layout.blocks = blocks;
        }
        // Times on the bus and byte addresses are counted in 64 bits.
        if layout.blocks > 1 << 48 {
            return Err(error("zones", "hold more than 2^48 sectors", "correct the zones"));
        }
        Ok((layout, curve))
    }

    fn add(
        &mut self,
        index: usize,
        table: &ZoneTable,
        first_cylinder: u32,
        [head_switch, seek]: [u64; 2],
    ) -> Result<(), ConfigError> {
        let wrong = |key: &str, problem: String, help: &str| {
            Err(error(&format!("zones[{index}].{key}"), problem, help))
        };
        let help = "set the number of sectors of a track, such as 390";
        let key = format!("disk.zones[{index}].sectors_per_track");
        ConfigError::within(key, table.sectors_per_track, 1..=TRACK_SECTORS_MOST, help)?;
        let sectors = u64::from(table.sectors_per_track);
        let skew = |given: Option<f64>, switch: u64| -> Option<u64> {
            let least = || (switch as f64 * sectors as f64 / self.turn as f64).ceil() + 1.0;
            let skew = given.unwrap_or_else(least);
            (0.0..=1e6).contains(&skew).then(|| (skew * self.turn as f64 / sectors as f64) as u64)
        };
        let no_count = || "is not a sector count".to_owned();
        let Some(track_skew) = skew(table.track_skew, head_switch) else {
            return wrong("track_skew", no_count(), "use a number such as 37");
        };
        let Some(cylinder_skew) = skew(table.cylinder_skew, seek) else {
            return wrong("cylinder_skew", no_count(), "use a number such as 52");
        };
        let whole = sectors * self.surfaces * u64::from(table.cylinders);
        let ranged = table.spare_cylinders.unwrap_or(table.cylinders);
        if ranged == 0 || ranged > table.cylinders {
            let problem = format!("{ranged} is not a part of {} cylinders", table.cylinders);
            return wrong("spare_cylinders", problem, "use a number of cylinders, such as 6");
        }
        let range = sectors * self.surfaces * u64::from(ranged);
        let slips = &table.slips;
        if slips.windows(2).any(|pair| pair[0] >= pair[1])
            || slips.last().is_some_and(|s| *s >= whole)
        {
            let help = "list sectors of the zone in ascending order, each once";
            let problem = format!("are not ascending, or are outside the {whole} sectors");
            return wrong("slips", problem, help);
        }
        // Every range reserves as many sectors as the range with the most defects, or its spares.
        let worst = slips.chunk_by(|a, b| a / range == b / range).map(<[u64]>::len).max();
        let lost = u64::from(table.spares).max(worst.unwrap_or(0) as u64);
        let usable = range.saturating_sub(lost).saturating_sub(table.unused);
        if usable == 0 {
            let key = if table.unused > lost { "unused" } else { "spares" };
            let problem = format!("leave none of {range} sectors for data");
            return wrong(key, problem, "use fewer spare or unused sectors");
        }
        if table.unused > 0 && range != whole {
            let help = "leave out spare_cylinders, or unused";
            return wrong("unused", "needs one range of spares for the whole zone".into(), help);
        }
        let rest = (whole % range).saturating_sub(lost);
        let blocks = whole / range * usable + rest;
        let (origin, first_block) = (self.next_origin(), self.blocks);
        self.zones.push(Zone {
            first_block,
            blocks,
            first_cylinder,
            cylinders: table.cylinders,
            sectors: table.sectors_per_track,
            range,
            usable,
            unused: table.unused,
            slips: slips.clone(),
            origin,
            track_skew,
            cylinder_skew,
        });
        self.blocks += blocks;
        Ok(())
    }

    /// The angle at which a zone after the last one begins: a cylinder's skew behind its last track.
    fn next_origin(&self) -> u64 {
        let Some(last) = self.zones.last() else { return 0 };
        let track = self.track(last, self.surfaces * u64::from(last.cylinders) - 1);
        (track.origin + last.cylinder_skew) % self.turn
    }

    /// Time of a turn in picoseconds.
    pub(crate) fn turn(&self) -> u64 {
        self.turn
    }

    /// The blocks from `block` on that lie together.
    pub(crate) fn run(&self, block: u64) -> Run {
        let after = self.zones.partition_point(|zone| zone.first_block <= block);
        let zone = &self.zones[after - 1];
        let inside = block - zone.first_block;
        let base = zone.unused + inside / zone.usable * zone.range;
        let mut offset = inside % zone.usable;
        let mut length = (zone.usable - offset).min(zone.blocks - inside);
        if !zone.slips.is_empty() {
            let first = zone.slips.partition_point(|slip| *slip < base);
            let slips = &zone.slips[first..];
            let before = partition_by(slips, |index, slip| slip - base - index as u64 <= offset);
            offset += before as u64;
            if let Some(next) = slips.get(before) {
                length = length.min(next - base - offset);
            }
        }
        let physical = base + offset;
        let sectors = u64::from(zone.sectors);
        let (track, sector) = (physical / sectors, physical % sectors);
        Run {
            track: self.track(zone, track),
            sector: sector as u32,
            length: length.min(sectors - sector) as u32,
        }
    }

    /// Track number `track` of a zone, in the order of logical blocks.
    fn track(&self, zone: &Zone, track: u64) -> Track {
        let (cylinder, head, head_switches) = match self.order {
            TrackOrder::Cylinder => {
                let cylinder = track / self.surfaces;
                (cylinder, track % self.surfaces, track - cylinder)
            }
            TrackOrder::CylinderSerpentine => {
                let (cylinder, head) = (track / self.surfaces, track % self.surfaces);
                let back = cylinder % 2 == 1;
                let head = if back { self.surfaces - 1 - head } else { head };
                (cylinder, head, track - cylinder)
            }
            TrackOrder::SurfaceSerpentine => {
                let cylinders = u64::from(zone.cylinders);
                let band = track / (self.band * self.surfaces);
                let width = self.band.min(cylinders - band * self.band);
                let inside = track - band * self.band * self.surfaces;
                let (head, step) = (inside / width, inside % width);
                let step = if head % 2 == 1 { width - 1 - step } else { step };
                (band * self.band + step, head, band * (self.surfaces - 1) + head)
            }
        };
        let skew = head_switches * zone.track_skew + (track - head_switches) * zone.cylinder_skew;
        Track {
            cylinder: zone.first_cylinder + cylinder as u32,
            head: head as u32,
            origin: (zone.origin + skew) % self.turn,
            sectors: zone.sectors,
        }
    }

    /// Time from the first sector of a track to sector number `sector`, in picoseconds.
    #[inline]
    pub(crate) fn along(&self, track: &Track, sector: u32) -> u64 {
        // The same division for the end of one sector and the beginning of the next: they are one
        // moment, and a sequential transfer waits for nothing.
        u64::from(sector) * self.turn / u64::from(track.sectors)
    }
}

/// Like `partition_point`, for a condition that sees the index.
fn partition_by(slips: &[u64], holds: impl Fn(usize, u64) -> bool) -> usize {
    let (mut low, mut high) = (0, slips.len());
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle, slips[middle]) { low = middle + 1 } else { high = middle }
    }
    low
}

const ZONES_HELP: &str = "set [[disk.zones]] with cylinders and sectors_per_track, or zones_by_rule = { count = 16, cylinders = 60000, outer = 1200, inner = 600 }";

fn by_rule(rule: &ZonesByRule) -> Result<Vec<ZoneTable>, ConfigError> {
    let ZonesByRule { count, cylinders, outer, inner } = *rule;
    let possible = (1..=1000).contains(&count) && (count..=CYLINDERS_MOST).contains(&cylinders);
    if !possible || inner > outer || inner == 0 || outer > TRACK_SECTORS_MOST {
        let problem = format!("{count} zones of {cylinders} cylinders, {outer} to {inner} sectors");
        return Err(error("zones_by_rule", problem, "use 1 to 1000 zones, with inner <= outer"));
    }
    let zone = |index: u32| {
        let (from, to) = [index, index + 1]
            .map(|i| (u64::from(cylinders) * u64::from(i) / u64::from(count)) as u32)
            .into();
        let share = if count == 1 { 0.5 } else { f64::from(index) / f64::from(count - 1) };
        let sectors = f64::from(outer) - share * f64::from(outer - inner);
        ZoneTable {
            first_cylinder: None,
            cylinders: to - from,
            sectors_per_track: sectors.round() as u32,
            track_skew: None,
            cylinder_skew: None,
            unused: 0,
            spares: 0,
            spare_cylinders: None,
            slips: Vec::new(),
        }
    };
    Ok((0..count).map(zone).collect())
}
