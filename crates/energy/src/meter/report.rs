//! Joules out of busy times.

use std::borrow::Cow;

use ssdyno_block::Time;
use ssdyno_engine::events::{Activity, FlashCause, PartKind};

use super::{Cell, Meter, class};
use crate::breakdown::{
    Breakdown, BreakdownRow, BusySeconds, Component, PackageBreakdown, PowerPoint, PowerSeries,
};
use crate::powers::{FLASH_ACTIVITIES, Floor};

const ACTIVITIES: [Activity; FLASH_ACTIVITIES] =
    [Activity::Read, Activity::Program, Activity::Erase, Activity::Transfer];
const CAUSES: [FlashCause; 5] = FlashCause::ALL;

fn seconds(ps: u64) -> f64 {
    ps as f64 * 1e-12
}

impl Meter {
    /// For how long `die` did something; what it did at a time counts each for itself.
    fn work_ps(&self, die: usize) -> u64 {
        self.flash.iter().skip(die).step_by(self.dies.len()).map(|cell| cell.ps).sum()
    }

    /// In slow mode, all cores together.
    fn slow_s(&self) -> f64 {
        seconds(self.slow.iter().map(|cell| cell.ps).sum())
    }

    /// By how much the states of a part come to more than the `run` seconds that it had, of the part with most.
    fn overrun_s(&self, run: f64) -> f64 {
        let dies = (0..self.dies.len()).map(|die| self.displaced_s(die));
        let slow = self.slow.iter().map(|cell| cell.ps);
        let at_work: Vec<u64> = match self.rule {
            crate::CpuRule::InService => vec![self.in_service.ps],
            crate::CpuRule::Cores => self.cores.iter().map(|core| core.ps).collect(),
        };
        let cpus = at_work.into_iter().zip(slow).map(|(normal, slow)| seconds(normal + slow));
        let dram = std::iter::once(seconds(self.dram.ps));
        let most = dies.chain(cpus).chain(dram).fold(0.0, f64::max);
        (most + self.asleep_s() - run).max(0.0)
    }

    /// Time in which `die` draws no idle current because it is busy.
    fn displaced_s(&self, die: usize) -> f64 {
        seconds(self.work_ps(die) - self.dies[die].idle_too_ps)
    }
}

/// Collects rows and keeps the sums of the components.
#[derive(Default)]
struct Rows {
    rows: Vec<BreakdownRow>,
    joules: [f64; Component::ALL.len()],
    /// Smaller values are rounding residues of a difference, and not times.
    least_seconds: f64,
}

impl Rows {
    /// Enters `cell`s time at `watts`.
    fn push(
        &mut self,
        (component, part): (Component, PartKind),
        activity: impl Into<Cow<'static, str>>,
        cause: FlashCause,
        (seconds, operations): (f64, u64),
        watts: f64,
    ) {
        if seconds.abs() <= self.least_seconds && operations == 0 {
            return;
        }
        let joules = seconds * watts;
        self.joules[component as usize] += joules;
        let activity = activity.into();
        let name = part.name().into();
        self.rows.push(BreakdownRow {
            component,
            part,
            name,
            activity,
            cause,
            joules,
            seconds,
            operations,
        });
    }
}

const FLASH: (Component, PartKind) = (Component::Flash, PartKind::Die);
const CPU: (Component, PartKind) = (Component::Cpu, PartKind::Core);
const DRAM: (Component, PartKind) = (Component::Dram, PartKind::Dram);
const CHANNEL: (Component, PartKind) = (Component::Bus, PartKind::Channel);
const LINK: (Component, PartKind) = (Component::Bus, PartKind::HostLink);

impl Meter {
    pub(super) fn report(&self, end: Time) -> Breakdown {
        let run = end.saturating_sub(self.start).as_s_f64();
        // A few units in the last place of the longest sum.
        let parts = self.powers.dies.max(self.powers.cpus).max(1.0);
        let mut rows = Rows { least_seconds: 1e-14 * run * parts, ..Rows::default() };
        self.flash_rows(run, &mut rows);
        self.cpu_rows(run, &mut rows);
        self.other_rows(run, &mut rows);
        let total_joules = rows.joules.iter().sum::<f64>();
        let idle_watts = self.powers.floor().sum();
        let asleep = self.asleep.iter().zip(&self.powers.states);
        let against_idle: f64 =
            asleep.map(|(cell, watts)| (idle_watts - watts) * seconds(cell.ps)).sum();
        // Awake, the CPU would have entered slow mode: that part is not saved by sleep.
        let slow_watts = self.powers.cpu_idle - self.powers.cpu_slow;
        let against_slow = slow_watts * seconds(self.slow_if_awake_ps);
        let idle_joules = self.idle_joules(end);
        let above = total_joules - idle_joules;
        Breakdown {
            seconds: run,
            total_joules,
            component_joules: rows.joules,
            idle_joules,
            // Without work both are the same, but for the order of their sums.
            above_idle_joules: if above.abs() > 1e-12 * total_joules { above } else { 0.0 },
            idle_watts,
            slow_saved_joules: slow_watts * self.slow_s(),
            overrun_seconds: self.overrun_s(run),
            low_power_saved_joules: against_idle - against_slow,
            rows: rows.rows,
            packages: self.packages(run),
            power_series: PowerSeries::of(&self.series, (self.start, end), |row, length| {
                self.power(row, length)
            }),
            busy: self.busy_seconds(),
            busy_parts: Vec::new(),
            all_declared: false,
            flash_operations: self.flash_operations(),
            stray_events: self.strays,
        }
    }

    /// What the device would have drawn up to `end` if nothing had been asked of it since time zero: idle,
    /// in slow mode after the CPU's patience, in its low-power states from when they are entered.
    fn idle_joules(&self, end: Time) -> f64 {
        let within =
            |from: Time, to: Time| to.min(end).saturating_sub(from.max(self.start)).as_s_f64();
        let powers = &self.powers;
        let asleep_from = self.idle_states.first().map_or(end, |(_, at)| *at);
        let mut joules = powers.floor().sum() * within(Time::ZERO, asleep_from);
        let slow = powers.cpus * (powers.cpu_idle - powers.cpu_slow);
        joules -= slow * within(self.patience, asleep_from);
        for (index, (state, from)) in self.idle_states.iter().enumerate() {
            let to = self.idle_states.get(index + 1).map_or(end, |(_, at)| *at);
            joules += powers.states[usize::from(*state)] * within(*from, to);
        }
        joules
    }

    fn asleep_s(&self) -> f64 {
        seconds(self.asleep.iter().map(|cell| cell.ps).sum())
    }

    /// Enters the time asleep of `parts` parts, at the share of their component.
    fn asleep_rows(
        &self,
        part: (Component, PartKind),
        parts: f64,
        share: impl Fn(Floor) -> f64,
        rows: &mut Rows,
    ) {
        if parts == 0.0 {
            return;
        }
        for (state, cell) in self.asleep.iter().enumerate() {
            let watts = share(self.powers.asleep(state)) / parts;
            let name = format!("low_power_{state}");
            let time = (seconds(cell.ps) * parts, cell.operations);
            rows.push(part, name, FlashCause::None, time, watts);
        }
    }

    fn flash_rows(&self, run: f64, rows: &mut Rows) {
        for (number, activity) in ACTIVITIES.iter().enumerate() {
            for cause in CAUSES {
                let cells = self.row(number, cause as usize).iter();
                let sum = cells.fold((0.0, 0), |sum, cell| {
                    (sum.0 + seconds(cell.ps), sum.1 + cell.operations)
                });
                rows.push(FLASH, activity.name(), cause, sum, self.powers.die[number]);
            }
        }
        let displaced: f64 = (0..self.dies.len()).map(|die| self.displaced_s(die)).sum();
        let idle = self.powers.dies * (run - self.asleep_s()) - displaced;
        rows.push(FLASH, "idle", FlashCause::None, (idle, 0), self.powers.die_idle);
        self.asleep_rows(FLASH, self.powers.dies, |share| share.flash, rows);
    }

    fn cpu_rows(&self, run: f64, rows: &mut Rows) {
        let work = match self.rule {
            crate::CpuRule::InService => self.in_service,
            crate::CpuRule::Cores => self.cores.iter().fold(Cell::default(), |sum, core| Cell {
                ps: sum.ps + core.ps,
                operations: sum.operations + core.operations,
            }),
        };
        let (normal, slow) = (seconds(work.ps), self.slow_s());
        let powers = &self.powers;
        rows.push(CPU, "normal", FlashCause::None, (normal, work.operations), powers.cpu);
        rows.push(CPU, "slow", FlashCause::None, (slow, 0), powers.cpu_slow);
        let idle = powers.cpus * (run - self.asleep_s()) - normal - slow;
        rows.push(CPU, "idle", FlashCause::None, (idle, 0), powers.cpu_idle);
        // The controller takes what a state draws even where the firmware has no core.
        self.asleep_rows(CPU, powers.cpus.max(1.0), |share| share.cpu, rows);
    }

    fn other_rows(&self, run: f64, rows: &mut Rows) {
        let active = seconds(self.dram.ps);
        let operations = self.dram.operations;
        rows.push(DRAM, "active", FlashCause::None, (active, operations), self.powers.dram);
        let idle = run - self.asleep_s() - active;
        rows.push(DRAM, "idle", FlashCause::None, (idle, 0), self.powers.dram_idle);
        self.asleep_rows(DRAM, 1.0, |share| share.dram, rows);
        for (part, cells, watts) in [
            (CHANNEL, &self.channels[..], self.powers.channel),
            (LINK, &self.host_links[..], self.powers.host_link),
        ] {
            let time = cells.iter().map(|cell| seconds(cell.ps)).sum();
            let operations = cells.iter().map(|cell| cell.operations).sum();
            rows.push(part, "transfer", FlashCause::None, (time, operations), watts);
        }
    }

    fn packages(&self, run: f64) -> Vec<PackageBreakdown> {
        let asleep = self.asleep.iter().enumerate();
        let asleep_joules: f64 =
            asleep.map(|(state, cell)| self.powers.asleep(state).flash * seconds(cell.ps)).sum();
        let awake = run - self.asleep_s();
        let package = |first: usize| {
            let mut package = PackageBreakdown::default();
            for die in first..self.dies.len().min(first + self.dies_per_package) {
                let idle = (awake - self.displaced_s(die)) * self.powers.die_idle;
                package.idle_joules += idle + asleep_joules / self.powers.dies;
                for number in 0..FLASH_ACTIVITIES {
                    let cells = (0..CAUSES.len()).map(|cause| self.row(number, cause)[die]);
                    let busy = seconds(cells.clone().map(|cell| cell.ps).sum());
                    package.seconds[number] += busy;
                    package.joules += busy * self.powers.die[number];
                    package.operations[number] += cells.map(|cell| cell.operations).sum::<u64>();
                }
            }
            package.joules += package.idle_joules;
            package
        };
        (0..self.dies.len()).step_by(self.dies_per_package).map(package).collect()
    }

    fn busy_seconds(&self) -> BusySeconds {
        let all = |cells: &[Cell]| cells.iter().map(|cell| seconds(cell.ps)).collect();
        BusySeconds {
            dies: (0..self.dies.len())
                .map(|die| seconds(self.work_ps(die) - self.dies[die].twice_ps))
                .collect(),
            channels: all(&self.channels),
            cores: all(&self.cores),
            host_links: self.host_links.map(|cell| seconds(cell.ps)),
            dram: seconds(self.dram.ps),
            in_service: seconds(self.in_service.ps),
        }
    }

    /// Mean power over one bucket: the idle floor, and what each busy second adds to it.
    fn power(&self, row: &[u64], length: Time) -> PowerPoint {
        let powers = &self.powers;
        let floor = powers.floor();
        let whole = length.as_s_f64();
        let share = |class: usize| seconds(row[class]) / whole;
        let mut flash = floor.flash + share(class::DIE_IDLE_TOO) * powers.die_idle;
        let mut cpu = floor.cpu
            + share(class::CPU) * (powers.cpu - powers.cpu_idle)
            + share(class::CPU_SLOW) * (powers.cpu_slow - powers.cpu_idle);
        let mut dram = floor.dram + share(class::DRAM) * (powers.dram - powers.dram_idle);
        let bus =
            share(class::CHANNEL) * powers.channel + share(class::HOST_LINK) * powers.host_link;
        for (activity, watts) in powers.die.iter().enumerate() {
            flash += share(class::DIE + activity) * (watts - powers.die_idle);
        }
        for state in 0..powers.states.len() {
            let (asleep, share) = (powers.asleep(state), share(class::ASLEEP + state));
            flash += share * (asleep.flash - floor.flash);
            cpu += share * (asleep.cpu - floor.cpu);
            dram += share * (asleep.dram - floor.dram);
        }
        PowerPoint { length, watts: [flash, cpu, dram, bus, 0.0] }
    }
}
