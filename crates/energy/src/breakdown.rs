//! The distribution of a run's energy.

use std::borrow::Cow;

use ssdyno_block::Time;
use ssdyno_engine::events::{Activity, FlashCause, PartKind};

use crate::powers::FLASH_ACTIVITIES;
use crate::series::Series;

ssdyno_block::named! {
    /// The components that energy is reported for (S3-1), and the parts of devices that have others.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Component: name {
        // In the order of reports.
        /// All flash packages.
        Flash = "flash",
        /// The firmware's processor.
        Cpu = "cpu",
        /// The controller's DRAM.
        Dram = "dram",
        /// Flash channels and host link.
        Bus = "bus",
        /// Parts that devices declare: a spindle, say.
        Parts = "parts",
    }
}

/// Energy of one kind of part in one activity.
#[derive(Clone, PartialEq, Debug)]
pub struct BreakdownRow {
    /// What it counts to.
    pub component: Component,
    /// Which kind of part.
    pub part: PartKind,
    /// Its name in reports; where the device is made of others, its path.
    pub name: Cow<'static, str>,
    /// `read`, `program`, `erase`, `transfer`, `normal`, `slow`, `active`, `idle`, or
    /// `low_power_N`.
    pub activity: Cow<'static, str>,
    /// On whose behalf; [`FlashCause::None`] where the question has no meaning.
    pub cause: FlashCause,
    /// Energy in joules.
    pub joules: f64,
    /// Time, summed over the parts (two dies for one second: 2), in seconds.
    pub seconds: f64,
    /// Operations begun; 0 where the activity has none.
    pub operations: u64,
}

/// Energy and work of one flash package (S3-6).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PackageBreakdown {
    /// All energy of the package in joules.
    pub joules: f64,
    /// The part of it that was drawn as idle current or asleep.
    pub idle_joules: f64,
    /// Busy time by activity (read, program, erase, transfer), summed over the dies, in seconds.
    pub seconds: [f64; FLASH_ACTIVITIES],
    /// Operations by activity (read, program, erase, transfer).
    pub operations: [u64; FLASH_ACTIVITIES],
}

impl PackageBreakdown {
    /// How long the package was busy with `activity`, summed over its dies, in seconds; 0 for
    /// activities that are not flash's.
    pub fn seconds(&self, activity: Activity) -> f64 {
        self.seconds.get(activity.index()).copied().unwrap_or(0.0)
    }

    /// How many operations `activity` did; 0 for activities that are not flash's.
    pub fn operations(&self, activity: Activity) -> u64 {
        self.operations.get(activity.index()).copied().unwrap_or(0)
    }
}

/// Mean power over one stretch of time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PowerPoint {
    /// The stretch: the bucket length, or less for the last point.
    pub length: Time,
    /// The power of each component, in the order of [`Component::ALL`], in watts.
    pub watts: [f64; Component::ALL.len()],
}

impl PowerPoint {
    /// The whole device, in watts.
    pub fn total_watts(&self) -> f64 {
        self.watts.iter().sum()
    }

    /// The power of both stretches together while both last.
    fn plus(mut self, other: &PowerPoint) -> PowerPoint {
        self.watts.iter_mut().zip(other.watts).for_each(|(sum, more)| *sum += more);
        self
    }

    /// The same, of `share` as much power.
    fn times(self, share: f64) -> PowerPoint {
        PowerPoint { watts: self.watts.map(|watts| watts * share), ..self }
    }
}

/// Power over time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PowerSeries {
    /// Where the first point begins.
    pub start: Time,
    /// Length of every point but the last: 1 ms times a power of two.
    pub bucket_length: Time,
    /// Up to 512 points.
    pub points: Vec<PowerPoint>,
}

impl PowerSeries {
    /// The buckets of `series` between `start` and `end`; `point` is the power in a row of this length.
    pub(crate) fn of(
        series: &Series,
        (start, end): (Time, Time),
        point: impl Fn(&[u64], Time) -> PowerPoint,
    ) -> PowerSeries {
        let bucket_length = Time::from_ps(series.length());
        let mut left = end.saturating_sub(start);
        let mut points = Vec::new();
        for row in series.rows() {
            if left == Time::ZERO {
                break;
            }
            let length = left.min(bucket_length);
            points.push(point(row, length));
            left -= length;
        }
        PowerSeries { start, bucket_length, points }
    }

    /// The area under the curve, in joules.
    pub fn joules(&self) -> f64 {
        self.points.iter().map(|point| point.total_watts() * point.length.as_s_f64()).sum()
    }

    /// Points of twice the length.
    fn coarsen(&mut self) {
        let two = |points: &[PowerPoint]| {
            let length: Time = points.iter().map(|point| point.length).sum();
            let part =
                |point: &PowerPoint| point.times(point.length.as_s_f64() / length.as_s_f64());
            let none = PowerPoint { length, ..PowerPoint::default() };
            points.iter().map(part).fold(none, |sum, point| sum.plus(&point))
        };
        self.points = self.points.chunks(2).map(two).collect();
        self.bucket_length = self.bucket_length * 2;
    }

    /// What both draw together; they begin and end at the same time.
    fn add(&mut self, other: &PowerSeries) {
        if self.points.is_empty() {
            self.clone_from(other);
            return;
        }
        let mut other = other.clone();
        while self.bucket_length < other.bucket_length {
            self.coarsen();
        }
        while other.bucket_length < self.bucket_length && !other.points.is_empty() {
            other.coarsen();
        }
        for (sum, point) in self.points.iter_mut().zip(&other.points) {
            *sum = sum.plus(point);
        }
    }
}

/// How long each part was busy, in seconds.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BusySeconds {
    /// Per die, all activities.
    pub dies: Vec<f64>,
    /// Per channel, commands included.
    pub channels: Vec<f64>,
    /// Per firmware core.
    pub cores: Vec<f64>,
    /// Per host link; one that works both ways at once reports as two.
    pub host_links: [f64; 2],
    /// The DRAM.
    pub dram: f64,
    /// Time with at least one request inside the device.
    pub in_service: f64,
}

/// How long a part was busy.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BusyPart {
    /// Its name; where the device is made of others, its path.
    pub name: String,
    /// In seconds.
    pub seconds: f64,
}

/// Flash operations begun, by activity and cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlashOperationCounts(pub(crate) [[u64; CAUSES]; FLASH_ACTIVITIES]);

/// Values of [`FlashCause`].
pub(crate) const CAUSES: usize = FlashCause::ALL.len();

impl FlashOperationCounts {
    /// How many operations `activity` did for `cause`; 0 for activities that are not flash's.
    pub fn get(&self, activity: Activity, cause: FlashCause) -> u64 {
        self.0.get(activity.index()).map_or(0, |row| row[cause as usize])
    }

    /// How many operations `activity` did in all.
    pub fn total(&self, activity: Activity) -> u64 {
        self.0.get(activity.index()).map_or(0, |row| row.iter().sum())
    }
}

/// Where a run's energy went.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Breakdown {
    /// Length of the measurement in seconds.
    pub seconds: f64,
    /// All energy in joules.
    pub total_joules: f64,
    /// The share of each component, in the order of [`Component::ALL`], in joules.
    pub component_joules: [f64; Component::ALL.len()],
    /// What the same device would have drawn in the same time if nothing had been asked of it (S3-42): with
    /// its slow mode and its low-power states, entered as its policy says, and without work in the
    /// background.
    pub idle_joules: f64,
    /// Total less `idle_joules`: what the work cost. Below zero only where a part is said to draw less at
    /// work than idle, or awake than asleep.
    pub above_idle_joules: f64,
    /// The power of the idle, awake device, in watts.
    pub idle_watts: f64,
    /// Saved by the CPU's slow mode, against idling at its idle power (S3-15).
    pub slow_saved_joules: f64,
    /// By how many seconds the states of a part, idleness aside, last longer than the measurement, of the part with
    /// most. Above what rounding leaves it is a defect of the device or the meter: a part was in two states at
    /// once.
    pub overrun_seconds: f64,
    /// Saved by low-power states, against an idle device that stays awake, its CPU in slow mode after its patience
    /// (S3-15).
    pub low_power_saved_joules: f64,
    /// Everything by part, activity and cause; rows without time and operations are left out.
    pub rows: Vec<BreakdownRow>,
    /// Per package (S3-6).
    pub packages: Vec<PackageBreakdown>,
    /// Power over time.
    pub power_series: PowerSeries,
    /// Per part of a controller.
    pub busy: BusySeconds,
    /// Per declared part.
    pub busy_parts: Vec<BusyPart>,
    /// Flash operations begun.
    pub flash_operations: FlashOperationCounts,
    /// All its parts are declared ones: it has none of a controller's.
    pub all_declared: bool,
    /// Events of parts or states that the device did not declare; their energy is missing.
    pub stray_events: u64,
}

/// Two accounts of the same energy that differ.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("energy does not add up: {left_name} is {left}, {right_name} is {right}")]
pub struct Imbalance {
    /// The first account.
    pub left_name: &'static str,
    /// Its figure; joules, unless its name says otherwise.
    pub left: f64,
    /// The second account.
    pub right_name: &'static str,
    /// Its figure.
    pub right: f64,
}

/// Relative difference that rounding may cause.
const TOLERANCE: f64 = 1e-9;

impl Breakdown {
    /// Energy of `component` in joules.
    pub fn joules(&self, component: Component) -> f64 {
        self.component_joules[component as usize]
    }

    /// Holds the accounts against each other (S3-44): parts and whole, rows and parts, packages and flash, and the area
    /// under power over time, each within 1e-9 of the total and the idle floor. No part has negative time or energy in
    /// a state, or is in its states for longer than the elapsed time, within the same share: an excess in one state may
    /// hide a deficit in another, and all sums be right.
    ///
    /// # Errors
    /// The first pair that differs. A defect of the device or the meter, never of the workload.
    pub fn check(&self) -> Result<(), Imbalance> {
        let parts: f64 = Component::ALL.iter().map(|part| self.joules(*part)).sum();
        self.same(("the total", self.total_joules), ("the sum of the components", parts))?;
        let rows: f64 = self.rows.iter().map(|row| row.joules).sum();
        self.same(("the total", self.total_joules), ("the sum of the rows", rows))?;
        let packages: f64 = self.packages.iter().map(|package| package.joules).sum();
        self.same(("flash", self.joules(Component::Flash)), ("the sum of the packages", packages))?;
        let area = self.power_series.joules();
        self.same(("the total", self.total_joules), ("power integrated over time", area))?;
        for component in Component::ALL {
            let watts = |point: &PowerPoint| point.watts[component as usize];
            let points = self.power_series.points.iter();
            let area = points.map(|point| watts(point) * point.length.as_s_f64()).sum();
            let left = (component.name(), self.joules(component));
            self.same(left, ("its power integrated over time", area))?;
        }
        self.each_is_possible()?;
        let strays = self.stray_events as f64;
        if self.stray_events > 0 {
            return Err(Imbalance {
                left_name: "the number of events of undeclared parts",
                left: strays,
                right_name: "the number allowed",
                right: 0.0,
            });
        }
        Ok(())
    }

    /// No time or energy is negative, and no part is busy for longer than the elapsed time.
    fn each_is_possible(&self) -> Result<(), Imbalance> {
        let least_seconds = -TOLERANCE * self.seconds;
        let least_joules = -TOLERANCE * (self.total_joules.abs() + self.idle_watts * self.seconds);
        // Not `<`: NaN must fail.
        let at_least = |left_name, left: f64, right: f64| match left >= right {
            true => Ok(()),
            false => {
                Err(Imbalance { left_name, left, right_name: "the least there can be", right: 0.0 })
            }
        };
        for row in &self.rows {
            at_least("a part's time in a state, in seconds", row.seconds, least_seconds)?;
            at_least("a part's energy in a state", row.joules, least_joules)?;
        }
        for package in &self.packages {
            at_least("a package's energy", package.joules, least_joules)?;
            at_least("a package's idle energy", package.idle_joules, least_joules)?;
        }
        at_least("time left to the busiest part, in seconds", -self.overrun_seconds, least_seconds)
    }

    /// Adds the account of the unit `path`; parts have that before their names.
    pub(crate) fn add(&mut self, path: &str, unit: &Breakdown) {
        self.seconds = self.seconds.max(unit.seconds);
        self.total_joules += unit.total_joules;
        let components = self.component_joules.iter_mut();
        components.zip(unit.component_joules).for_each(|(sum, more)| *sum += more);
        self.idle_joules += unit.idle_joules;
        self.above_idle_joules += unit.above_idle_joules;
        self.idle_watts += unit.idle_watts;
        self.slow_saved_joules += unit.slow_saved_joules;
        self.overrun_seconds = self.overrun_seconds.max(unit.overrun_seconds);
        self.low_power_saved_joules += unit.low_power_saved_joules;
        let named = |row: &BreakdownRow| BreakdownRow {
            name: format!("{path}.{}", row.name).into(),
            ..row.clone()
        };
        self.rows.extend(unit.rows.iter().map(named));
        self.packages.extend_from_slice(&unit.packages);
        self.power_series.add(&unit.power_series);
        let operations = self.flash_operations.0.as_flattened_mut().iter_mut();
        for (sum, more) in operations.zip(unit.flash_operations.0.as_flattened()) {
            *sum += more;
        }
        self.stray_events += unit.stray_events;
    }

    /// How long each part was busy; `path` stands before their names.
    pub(crate) fn busy_by_path(&self, path: &str) -> Vec<BusyPart> {
        let BusySeconds { dies, channels, cores, host_links, dram, in_service } = &self.busy;
        let mut all = Vec::new();
        let numbered = [("die", &dies[..]), ("channel", channels), ("core", cores)];
        for (name, parts) in numbered {
            all.extend(parts.iter().enumerate().map(|(n, busy)| (format!("{name}[{n}]"), *busy)));
        }
        let links = host_links.iter().enumerate();
        let links = links.map(|(n, busy)| (format!("host_link[{n}]"), *busy));
        let single = [("dram".to_owned(), *dram), ("in_service".to_owned(), *in_service)];
        // Of these nothing says whether they are there, but that they work.
        all.extend(links.chain(single).filter(|(_, busy)| *busy > 0.0));
        all.extend(self.busy_parts.iter().map(|part| (part.name.clone(), part.seconds)));
        let named = |(name, seconds)| BusyPart { name: format!("{path}.{name}"), seconds };
        all.into_iter().map(named).collect()
    }

    fn same(
        &self,
        (left_name, left): (&'static str, f64),
        (right_name, right): (&'static str, f64),
    ) -> Result<(), Imbalance> {
        // Not `>`: NaN must fail. The idle floor counts too: savings may leave almost none of it.
        let scale = self.total_joules.abs() + self.idle_watts * self.seconds;
        let near = (left - right).abs() <= TOLERANCE * scale;
        if near { Ok(()) } else { Err(Imbalance { left_name, left, right_name, right }) }
    }
}
