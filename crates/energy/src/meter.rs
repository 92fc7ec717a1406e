//! Reads device events and keeps busy times.

use ssdyno_block::units::Watts;
use ssdyno_block::{ConfigError, Time};
use ssdyno_engine::events::{Activity, Busy, EventReader, PartKind};

use crate::breakdown::{CAUSES, FlashOperationCounts};
use crate::config::{CpuRule, error};
use crate::cpu::Idleness;
use crate::powers::{FLASH_ACTIVITIES, Powers};
use crate::series::Series;
use crate::{Breakdown, EnergyConfig};

mod report;
#[cfg(test)]
pub(crate) mod tests;

/// The facts about the device that the meter needs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Facts {
    /// Flash channels.
    pub channels: u32,
    /// Flash dies; die n is in package n / `dies_per_package`.
    pub dies: u32,
    /// Dies in a package; at least 1.
    pub dies_per_package: u32,
    /// Firmware cores; 0 where the firmware takes no time.
    pub cores: u32,
    /// The power of the whole device in each low-power state; up to 32.
    pub power_states: Vec<Watts>,
}

/// Classes of the series: what draws a power of its own.
mod class {
    use super::FLASH_ACTIVITIES;
    /// First of the flash activities.
    pub(super) const DIE: usize = 0;
    /// Busy time of dies during which the idle current flows as well.
    pub(super) const DIE_IDLE_TOO: usize = FLASH_ACTIVITIES;
    pub(super) const CHANNEL: usize = DIE_IDLE_TOO + 1;
    pub(super) const HOST_LINK: usize = CHANNEL + 1;
    pub(super) const DRAM: usize = HOST_LINK + 1;
    pub(super) const CPU: usize = DRAM + 1;
    pub(super) const CPU_SLOW: usize = CPU + 1;
    /// First of the low-power states.
    pub(super) const ASLEEP: usize = CPU_SLOW + 1;
}

/// Time and operations of one activity for one cause.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    ps: u64,
    operations: u64,
}

#[derive(Clone, Debug, Default)]
struct DieAccount {
    /// Busy time during which the idle current flows as well.
    idle_too_ps: u64,
    /// Time in which data crossed the bus while the array worked.
    twice_ps: u64,
    /// The latest interval: another one that overlaps it must not displace idleness twice.
    last: (Time, Time),
}

/// Turns device events into joules.
///
/// Made once for a device; [`reset`](Meter::reset) starts a measurement and
/// [`finish`](Meter::finish) ends it. Events may lie in the future when they are reported, so the
/// meter holds back those that end after the last [`advance`](Meter::advance), in order to cut
/// them off at the end of the measurement. What begins before the end counts as an operation.
///
/// Each part must report in the order in which its intervals begin, and low-power states before
/// the work that ends them; the device closes its open intervals (requests in service, sleep)
/// before the end. Parts other than dies must not report overlapping intervals.
#[derive(Clone, Debug)]
pub struct Meter {
    powers: Powers,
    rule: CpuRule,
    idle_during_cleaning: bool,
    dies_per_package: usize,
    /// Idle time after which the CPU is slow; [`Time::MAX`] = never.
    patience: Time,
    start: Time,
    dies: Vec<DieAccount>,
    /// A row of dies for each activity and cause: few rows are in use, and those lie close together.
    flash: Vec<Cell>,
    channels: Vec<Cell>,
    cores: Vec<Cell>,
    host_links: [Cell; 2],
    dram: Cell,
    in_service: Cell,
    /// In slow mode, as [`idleness`](Meter::idleness).
    slow: Vec<Cell>,
    asleep: Vec<Cell>,
    /// Time asleep that the cores would have spent in slow mode, all cores together, in picoseconds.
    slow_if_awake_ps: u64,
    /// One per core, or one for the CPU, as the rule says.
    idleness: Vec<Idleness>,
    /// The states that an idle device would enter, and their times, in order.
    idle_states: Vec<(u8, Time)>,
    series: Series,
    strays: u64,
    /// In the order in which they were reported.
    held: Vec<Busy>,
    held_most: usize,
    /// So many are held back when [`advance`](Meter::advance) looks which of them have settled.
    held_some: usize,
    /// By [`line`](Meter::line): an event is held back, and later reports must wait for it.
    waits: Vec<bool>,
    settled: Time,
    latest: Time,
}

/// How far in the future events may lie where nobody calls [`Meter::advance`].
const LOOK_AHEAD: Time = Time::from_ms(250);

/// Events that are held back before the meter takes it that nobody calls [`Meter::advance`].
const HELD_LEAST: usize = 4096;

/// Events that are held back before [`Meter::advance`] looks which of them have settled. As many stay uncounted,
/// and each is looked at twice on the average.
const HELD_SOME: usize = 512;

impl Meter {
    /// A meter whose measurement starts at time zero.
    ///
    /// # Errors
    /// [`ConfigError`] where the numbers do not fit together.
    pub fn new(config: &EnergyConfig, facts: &Facts) -> Result<Meter, ConfigError> {
        config.check()?;
        if facts.dies_per_package == 0 {
            return Err(error("flash.dies_per_chip", "0 dies in a package", "use at least 1"));
        }
        if facts.power_states.len() > 32 {
            let problem = format!("{} states", facts.power_states.len());
            return Err(error("power.states", problem, "NVMe knows up to 32"));
        }
        let patience = config.cpu.slow_when_idle_after.map_or(Time::MAX, |span| span.0);
        let cpus = match config.cpu.rule {
            CpuRule::Cores => facts.cores as usize,
            CpuRule::InService => 1,
        };
        let states = facts.power_states.len();
        Ok(Meter {
            powers: Powers::new(config, facts),
            rule: config.cpu.rule,
            idle_during_cleaning: config.flash.idle_during_cleaning,
            dies_per_package: facts.dies_per_package as usize,
            patience,
            start: Time::ZERO,
            dies: vec![DieAccount::default(); facts.dies as usize],
            flash: vec![Cell::default(); FLASH_ACTIVITIES * CAUSES * facts.dies as usize],
            channels: vec![Cell::default(); facts.channels as usize],
            cores: vec![Cell::default(); facts.cores as usize],
            host_links: [Cell::default(); 2],
            dram: Cell::default(),
            in_service: Cell::default(),
            slow: vec![Cell::default(); cpus],
            asleep: vec![Cell::default(); states],
            slow_if_awake_ps: 0,
            idleness: vec![Idleness::new(patience); cpus],
            idle_states: Vec::new(),
            series: Series::new(class::ASLEEP + states),
            strays: 0,
            held: Vec::with_capacity(HELD_LEAST),
            held_most: HELD_LEAST,
            held_some: HELD_SOME,
            waits: vec![false; facts.dies as usize + 1],
            settled: Time::ZERO,
            latest: Time::ZERO,
        })
    }

    /// If nothing were asked of the device, it would enter these low-power states at these times, in order: what
    /// the energy above idle is counted from. Without this call it would stay awake.
    pub fn would_sleep(&mut self, states: &[(u8, Time)]) {
        let known = |(state, _): &&(u8, Time)| usize::from(*state) < self.asleep.len();
        self.idle_states = states.iter().filter(known).copied().collect();
    }

    /// Measuring starts here: what lies before `at` (ramp-up) is forgotten, what reaches across it
    /// is cut. Also starts the next measurement after [`finish`](Meter::finish).
    pub fn reset(&mut self, at: Time) {
        self.advance(at);
        self.start = at;
        for die in &mut self.dies {
            *die = DieAccount { last: die.last, ..DieAccount::default() };
        }
        self.flash.fill(Cell::default());
        self.channels.fill(Cell::default());
        self.cores.fill(Cell::default());
        self.asleep.fill(Cell::default());
        self.slow_if_awake_ps = 0;
        self.host_links = [Cell::default(); 2];
        self.dram = Cell::default();
        self.in_service = Cell::default();
        self.slow.fill(Cell::default());
        self.strays = 0;
        self.series.reset(at.as_ps());
        for core in &mut self.idleness {
            core.end(at);
        }
    }

    /// States that the measurement will not end before `now`. Optional, but it saves memory: call
    /// it with the current time before each batch of events.
    pub fn advance(&mut self, now: Time) {
        self.settled = self.settled.max(now);
        if self.held.len() >= self.held_some {
            self.settle();
        }
    }

    /// Ends the measurement at `end` and says where the energy went; not before the latest
    /// [`advance`](Meter::advance). A run of no length gives 0 J.
    pub fn finish(&mut self, end: Time) -> Breakdown {
        let held = std::mem::take(&mut self.held);
        for event in &held {
            // Those that come later belong to the next measurement.
            if event.from < end {
                self.apply(event, end);
            }
        }
        self.held = held;
        self.held.retain(|event| event.to > end || event.from >= end);
        self.waits.fill(false);
        for event in &self.held {
            if let Some(line) = self.line(event) {
                self.waits[line] = true;
            }
        }
        for core in 0..self.idleness.len() {
            if let Some(stretch) = self.idleness[core].end(end) {
                self.run_slowly(core, stretch);
            }
        }
        self.series.cover(end.max(self.start).as_ps());
        self.report(end)
    }

    /// What is entered in the order of its reports, because it is held against what was entered last: each die, whose
    /// intervals may overlap; and all that decides about slow mode.
    #[inline]
    fn line(&self, event: &Busy) -> Option<usize> {
        let index = usize::from(event.part.index);
        match event.part.kind {
            PartKind::Die => (index < self.dies.len()).then_some(index),
            PartKind::Core | PartKind::Controller => Some(self.dies.len()),
            _ => None,
        }
    }

    /// An event that was reported before this event and must not be overtaken is held back.
    #[inline]
    fn has_to_wait(&self, event: &Busy) -> bool {
        self.line(event).is_some_and(|line| self.waits[line])
    }

    fn hold(&mut self, event: &Busy) {
        if let Some(line) = self.line(event) {
            self.waits[line] = true;
        }
        self.latest = self.latest.max(event.to);
        self.held.push(*event);
        if self.held.len() >= self.held_most {
            self.settled = self.settled.max(self.latest.saturating_sub(LOOK_AHEAD));
            self.settle();
        }
    }

    /// Takes the held events that end before what is settled.
    #[cold]
    fn settle(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        let settled = self.settled;
        self.waits.fill(false);
        held.retain(|event| {
            let line = self.line(event);
            let stays = event.to > settled || line.is_some_and(|line| self.waits[line]);
            match (stays, line) {
                (true, Some(line)) => self.waits[line] = true,
                (true, None) => {}
                (false, _) => self.apply(event, Time::MAX),
            }
            stays
        });
        self.held_most = (held.len() * 2).max(HELD_LEAST);
        self.held_some = (held.len() * 2).max(HELD_SOME);
        self.held = held;
    }

    /// Enters what of `event` lies between the start and `end`.
    #[inline(always)]
    fn apply(&mut self, event: &Busy, end: Time) {
        let from = event.from.max(self.start);
        let to = event.to.min(end).max(from);
        let counts = event.from >= self.start;
        let length = (to - from).as_ps();
        let operations = if counts { u64::from(event.operations) } else { 0 };
        let cell = Cell { ps: length, operations };
        let index = usize::from(event.part.index);
        let known = match event.part.kind {
            PartKind::Die => self.die(event, index, (from, to), cell),
            PartKind::Channel => {
                self.series.add(class::CHANNEL, from.as_ps(), to.as_ps());
                add(self.channels.get_mut(index), cell)
            }
            PartKind::HostLink => {
                self.series.add(class::HOST_LINK, from.as_ps(), to.as_ps());
                add(self.host_links.get_mut(index), cell)
            }
            PartKind::Dram => {
                self.series.add(class::DRAM, from.as_ps(), to.as_ps());
                add(Some(&mut self.dram), cell)
            }
            PartKind::Core => {
                let known = add(self.cores.get_mut(index), cell);
                if known && self.rule == CpuRule::Cores {
                    self.work(index, event, (from, to));
                }
                known
            }
            PartKind::Controller => self.controller(event, (from, to), cell),
            // The host has an account of its own.
            PartKind::HostCore => true,
            PartKind::Declared => false,
        };
        if !known {
            self.strays += 1;
        }
    }

    #[inline(always)]
    fn die(&mut self, event: &Busy, index: usize, (from, to): (Time, Time), cell: Cell) -> bool {
        let activity = event.activity.index();
        let row = (activity * CAUSES + event.cause as usize) * self.dies.len();
        let Some(die) = self.dies.get_mut(index) else { return false };
        if !add(self.flash.get_mut(row + index), cell) {
            return false;
        }
        self.series.add(class::DIE + activity, from.as_ps(), to.as_ps());
        if event.activity == Activity::CacheTransfer {
            die.twice_ps += cell.ps;
            die.idle_too_ps += cell.ps;
            self.series.add(class::DIE_IDLE_TOO, from.as_ps(), to.as_ps());
            return true;
        }
        if self.idle_during_cleaning && event.cause.follows_cleaning() {
            die.idle_too_ps += cell.ps;
            self.series.add(class::DIE_IDLE_TOO, from.as_ps(), to.as_ps());
            return true;
        }
        if from < die.last.1 {
            let both = (from.max(die.last.0), to.min(die.last.1));
            if both.0 < both.1 {
                die.idle_too_ps += (both.1 - both.0).as_ps();
                self.series.add(class::DIE_IDLE_TOO, both.0.as_ps(), both.1.as_ps());
            }
        }
        if to > die.last.1 {
            die.last = (from, to);
        }
        true
    }

    fn controller(&mut self, event: &Busy, (from, to): (Time, Time), cell: Cell) -> bool {
        match event.activity {
            Activity::InService => {
                add(Some(&mut self.in_service), cell);
                if self.rule == CpuRule::InService {
                    self.work(0, event, (from, to));
                }
                true
            }
            Activity::LowPower(state) => {
                if !add(self.asleep.get_mut(usize::from(state)), cell) {
                    return false;
                }
                let class = class::ASLEEP + usize::from(state);
                self.series.add(class, from.as_ps(), to.as_ps());
                for core in 0..self.idleness.len() {
                    self.slow_if_awake_ps += self.idleness[core].slow_if_awake(from, to).as_ps();
                    if let Some(stretch) = self.idleness[core].sleep(event.from, event.to) {
                        self.run_slowly(core, stretch);
                    }
                }
                true
            }
            _ => false,
        }
    }

    /// The CPU or core `index` works at normal power from `from` to `to`.
    #[inline(always)]
    fn work(&mut self, index: usize, event: &Busy, (from, to): (Time, Time)) {
        self.series.add(class::CPU, from.as_ps(), to.as_ps());
        if self.patience != Time::MAX
            && let Some(stretch) = self.idleness[index].work(event.from, event.to, self.patience)
        {
            self.run_slowly(index, stretch);
        }
    }

    fn run_slowly(&mut self, core: usize, (from, to): (Time, Time)) {
        let from = from.max(self.start);
        if from < to {
            self.slow[core].ps += (to - from).as_ps();
            self.series.add(class::CPU_SLOW, from.as_ps(), to.as_ps());
        }
    }

    /// The operations of the dies with `activity` for `cause`, by their numbers.
    fn row(&self, activity: usize, cause: usize) -> &[Cell] {
        let dies = self.dies.len();
        &self.flash[(activity * CAUSES + cause) * dies..][..dies]
    }

    /// Pages programmed so far, for whatever cause; those of events that are held back are not counted
    /// yet.
    pub fn pages_programmed(&self) -> u64 {
        let rows = (0..CAUSES).map(|cause| self.row(Activity::Program.index(), cause));
        rows.flatten().map(|cell| cell.operations).sum()
    }

    fn flash_operations(&self) -> FlashOperationCounts {
        let mut sum = FlashOperationCounts::default();
        for (activity, causes) in sum.0.iter_mut().enumerate() {
            for (cause, to) in causes.iter_mut().enumerate() {
                *to = self.row(activity, cause).iter().map(|cell| cell.operations).sum();
            }
        }
        sum
    }
}

#[inline]
fn add(to: Option<&mut Cell>, cell: Cell) -> bool {
    let Some(to) = to else { return false };
    to.ps += cell.ps;
    to.operations += cell.operations;
    true
}

impl EventReader for Meter {
    fn read(&mut self, events: &[Busy]) {
        for event in events {
            if event.to <= self.settled && !self.has_to_wait(event) {
                self.apply(event, Time::MAX);
            } else {
                self.hold(event);
            }
        }
    }
}
