//! The self-description of a device, for reports.

use std::ops::{Add, Sub};

use ssdyno_block::{BlockTarget, Injected, Time};
use ssdyno_energy::{Draw, EnergyConfig, Facts, PartPower, PowerModel};
use ssdyno_engine::events::{FlashUnit, UnitNames};
use ssdyno_engine::{Health, PlaneUse, Pool, Victims};

/// Numbers that every device has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceFacts {
    /// Size in bytes.
    pub capacity_bytes: u64,
    /// Unit of address and length, in bytes.
    pub sector_bytes: u32,
    /// Requests inside the device at most.
    pub queue_depth: u32,
    /// The bytes that the device takes before writes are as slow as its medium; 0 without a write
    /// buffer.
    pub write_buffer_bytes: u64,
    /// Directions of its link to the host that work independently: 1 or 2.
    pub link_ways: u32,
}

impl DeviceFacts {
    /// Those of `device`, which takes `queue_depth` requests: without a write buffer, and with one way to the host.
    pub fn of(device: &impl BlockTarget, queue_depth: u32) -> DeviceFacts {
        DeviceFacts {
            capacity_bytes: device.capacity_bytes(),
            sector_bytes: device.sector_bytes(),
            queue_depth,
            write_buffer_bytes: 0,
            link_ways: 1,
        }
    }
}

/// Additional facts about a device with flash, or with another memory in dies.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FlashReport {
    /// Channels.
    pub channels: u32,
    /// Dies, or banks.
    pub dies: u32,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Pages of a block that hold data.
    pub pages_per_block: u32,
    /// Utilisation for the closed forms of write amplification, where they apply.
    pub effective_utilisation: Option<f64>,
    /// The pools of an FTL that has one for each class of logical pages.
    pub pools: Vec<Pool>,
    /// The pages written to each plane so far, and its present pages; empty if unknown.
    pub planes: Vec<PlaneUse>,
    /// Pages programmed for the host, and blocks erased, so far; `None` if unknown.
    pub work: Option<FlashWork>,
    /// The blocks that garbage collection has cleaned so far, see [`Victims`]; `None` where it does not clean blocks of pages.
    pub victims: Option<Victims>,
    /// Pages that the host read so far, by where they were; all 0 where that is not known.
    pub pages_read: PagesRead,
    /// RAM for the mapping tables in a real controller.
    pub map_ram_bytes: u64,
    /// How worn the flash is.
    pub health: Health,
}

/// The work of a flash array, whatever its FTL.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlashWork {
    /// Pages programmed for the host.
    pub host_pages: u64,
    /// Blocks erased.
    pub erases: u64,
}

/// Pages that the host read, by where they were.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PagesRead {
    /// In the flash.
    pub flash: u64,
    /// In the buffer of the device.
    pub buffer: u64,
    /// Nowhere: they were never written, or were trimmed.
    pub blank: u64,
}

impl Add for PagesRead {
    type Output = PagesRead;

    fn add(self, other: PagesRead) -> PagesRead {
        PagesRead {
            flash: self.flash + other.flash,
            buffer: self.buffer + other.buffer,
            blank: self.blank + other.blank,
        }
    }
}

impl Sub for PagesRead {
    type Output = PagesRead;

    fn sub(self, before: PagesRead) -> PagesRead {
        PagesRead {
            flash: self.flash.saturating_sub(before.flash),
            buffer: self.buffer.saturating_sub(before.buffer),
            blank: self.blank.saturating_sub(before.blank),
        }
    }
}

/// What a limit of rate has saved for bursts above its baseline.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BurstCredits {
    /// Whether it counts bytes; otherwise requests.
    pub of_bytes: bool,
    /// Requests or bytes that are left beyond the baseline.
    pub left: f64,
    /// What it allows forever, per second.
    pub baseline: f64,
}

/// One device: the whole, or one of those that it is made of.
#[derive(Clone, PartialEq, Debug)]
pub struct UnitReport {
    /// Where it stands: `ssd`, or `array.disk[1]` for the second member of an array.
    pub path: String,
    /// The prefix of its keys in the file of the whole device: `array.members[1].`, or nothing.
    pub key: String,
    /// What every device has.
    pub facts: DeviceFacts,
    /// What its parts draw.
    pub power: PowerModel,
    /// Low-power states that it enters, and when, in order, if nothing more is asked of it. Before a load
    /// this is what its energy above idle is counted from.
    pub idle_states: Vec<(u8, Time)>,
    /// For a device of declared parts, whose `idle_states` have one entry: the part that rests, and its activity (a spindle
    /// in standby). `None` for a device with power states.
    pub idle_part: Option<(u16, u8)>,
    /// Bytes in its write buffer or write-back cache that are not on its medium yet.
    pub buffered_bytes: u64,
    /// Writes that had to wait for room in that cache so far, whichever of its limits they met; 0 for a device with flash, whose
    /// programs say what left its buffer.
    pub buffer_waits: u64,
    /// Its flash, where it has some.
    pub flash: Option<FlashReport>,
    /// Its limits of rate that have credits for bursts.
    pub credits: Vec<BurstCredits>,
    /// What of its table `[faults]` it has done; `None` if it requests nothing.
    pub injected: Option<Injected>,
}

/// The self-description of a device, and of the devices that it consists of: each is a *unit*. The device that was
/// asked is the first; the units of a member follow one another.
///
/// A section that a kind of device does not have is `None`: nothing has to be made up.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DeviceReport {
    units: Vec<UnitReport>,
    /// The path of the device that the next unit is a member of, its number there, and its [key](UnitReport::key).
    within: Option<(String, usize, String)>,
}

impl DeviceReport {
    /// What `device` says now.
    pub fn of(device: &(impl crate::Device + ?Sized)) -> DeviceReport {
        let mut report = DeviceReport::default();
        device.report(&mut report);
        report
    }

    /// Adds a device of the kind `kind`, and gives it for its sections.
    pub fn unit(&mut self, kind: &str, facts: DeviceFacts, power: PowerModel) -> &mut UnitReport {
        let (path, key) = match self.within.take() {
            None => (kind.to_owned(), String::new()),
            Some((parent, index, key)) => (format!("{parent}.{kind}[{index}]"), key),
        };
        self.units.push(UnitReport {
            path,
            key,
            facts,
            power,
            idle_states: Vec::new(),
            idle_part: None,
            buffered_bytes: 0,
            buffer_waits: 0,
            flash: None,
            credits: Vec::new(),
            injected: None,
        });
        let last = self.units.len() - 1;
        &mut self.units[last]
    }

    /// Adds what `member`, which is number `index` of the device that is unit `parent`, says of itself. Its file
    /// is the value of `key` in the parent's: `array.members[1]`.
    pub fn member(&mut self, parent: usize, index: usize, key: &str, member: &dyn crate::Device) {
        let within = |unit: &UnitReport| (unit.path.clone(), index, format!("{}{key}.", unit.key));
        self.within = self.units.get(parent).map(within);
        member.report(self);
    }

    /// The names of the units and their declared parts.
    pub fn names(&self) -> Vec<UnitNames> {
        let names = |unit: &UnitReport| {
            let (flash, parts) = match &unit.power {
                PowerModel::Controller { config, facts } => (flash_unit(config, facts), Vec::new()),
                PowerModel::Parts(parts) => (None, parts.iter().map(part_names).collect()),
            };
            UnitNames { path: unit.path.clone(), flash, parts }
        };
        self.units.iter().map(names).collect()
    }

    /// Every unit, by its number in events.
    pub fn units(&self) -> &[UnitReport] {
        &self.units
    }

    /// The units from number `first` on, for callers that extend them.
    pub fn units_from(&mut self, first: usize) -> &mut [UnitReport] {
        self.units.get_mut(first..).unwrap_or_default()
    }

    /// The device that was asked; `None` if it said nothing.
    pub fn whole(&self) -> Option<&UnitReport> {
        self.units.first()
    }

    /// The flash of a device that is not made of others.
    pub fn flash(&self) -> Option<&FlashReport> {
        match &self.units[..] {
            [alone] => alone.flash.as_ref(),
            _ => None,
        }
    }

    /// The sum of all write buffers, in bytes.
    pub fn write_buffer_bytes(&self) -> u64 {
        self.units.iter().map(|unit| unit.facts.write_buffer_bytes).sum()
    }

    /// Bytes in all write buffers and write-back caches that are not on their media yet.
    pub fn buffered_bytes(&self) -> u64 {
        self.units.iter().map(|unit| unit.buffered_bytes).sum()
    }

    /// Writes of the host that had to wait for room in a write-back cache so far. The caches behind another one do not count:
    /// the host does not wait for them.
    pub fn buffer_waits(&self) -> u64 {
        let is_in_front = |front: &UnitReport, unit: &UnitReport| {
            let rest = unit.path.strip_prefix(&front.path);
            front.facts.write_buffer_bytes > 0 && rest.is_some_and(|rest| rest.starts_with('.'))
        };
        let units = self.units.iter();
        let counted = units.filter(|unit| !self.units.iter().any(|front| is_in_front(front, unit)));
        counted.map(|unit| unit.buffer_waits).sum()
    }

    /// How worn all flash is: the worst of each figure, and the sum of the bad blocks.
    pub fn health(&self) -> Health {
        let all =
            self.units.iter().filter_map(|unit| unit.flash.as_ref()).map(|flash| flash.health);
        all.reduce(|a, b| Health {
            read_only: a.read_only || b.read_only,
            bad_blocks: a.bad_blocks + b.bad_blocks,
            erases_min: a.erases_min.min(b.erases_min),
            erases_max: a.erases_max.max(b.erases_max),
        })
        .unwrap_or_default()
    }

    /// The victims of garbage collection in all units; `None` without an FTL that cleans blocks of pages.
    pub fn victims(&self) -> Option<Victims> {
        let flash = self.units.iter().filter_map(|unit| unit.flash.as_ref());
        flash.filter_map(|flash| flash.victims).reduce(Victims::with)
    }

    /// What all units did of their tables `[faults]`; `None` if none was requested.
    pub fn injected(&self) -> Option<Injected> {
        self.units.iter().filter_map(|unit| unit.injected).reduce(Injected::with)
    }
}

/// The facts about the flash of a device with these powers that readers of events need.
fn flash_unit(config: &EnergyConfig, facts: &Facts) -> Option<FlashUnit> {
    let Facts { channels, dies, .. } = *facts;
    // The meter reports powers that do not fit.
    let draw = Draw::new(config, facts).ok()?;
    let (activity_watts, idle_watts) = (draw.activity_watts(), draw.base_watts());
    let flash = FlashUnit { channels, dies, activity_watts, idle_watts };
    (channels > 0 && dies > 0).then_some(flash)
}

/// The name of a part, and the names of its activities.
fn part_names(part: &PartPower) -> (String, Vec<String>) {
    (part.name.clone(), part.activities.iter().map(|(name, _)| name.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_behind_another_cache_do_not_make_the_host_wait() {
        let facts = |write_buffer_bytes| DeviceFacts {
            capacity_bytes: 1 << 30,
            sector_bytes: 512,
            queue_depth: 1,
            write_buffer_bytes,
            link_ways: 1,
        };
        let waits = |write_buffer_bytes, of_controller| {
            let mut report = DeviceReport::default();
            let array = facts(write_buffer_bytes);
            report.unit("array", array, PowerModel::Parts(Vec::new())).buffer_waits = of_controller;
            report.within = Some(("array".to_owned(), 0, String::new()));
            report.unit("disk", facts(1 << 20), PowerModel::Parts(Vec::new())).buffer_waits = 40;
            report.buffer_waits()
        };
        assert_eq!(waits(1 << 20, 3), 3);
        assert_eq!(waits(0, 0), 40);
    }
}
