//! The meter of a device that declares its parts: a spindle and an arm, say.
//!
//! Each part draws its idle power except while it is busy, when it draws the power of its activity instead.

use ssdyno_block::units::Watts;
use ssdyno_block::{ConfigError, Time};
use ssdyno_engine::events::{Activity, Busy, FlashCause, PartKind};

use crate::breakdown::{Breakdown, BreakdownRow, BusyPart, Component, PowerPoint, PowerSeries};
use crate::config::error;
use crate::series::Series;

/// The power of a part of a device.
#[derive(Clone, PartialEq, Debug)]
pub struct PartPower {
    /// Its name in reports, such as `spindle`.
    pub name: String,
    /// Its power while it is idle.
    pub idle: Watts,
    /// Its activities and their powers, in the order of
    /// [`Activity::Declared`](ssdyno_engine::events::Activity::Declared).
    pub activities: Vec<(String, Watts)>,
    /// It does one thing at a time, so that its busy share shows how near it is to its limit. False for a state
    /// of the whole device, such as that of a spindle that turns, or of a controller with work inside.
    pub is_resource: bool,
}

/// Most watts of a part.
const WATTS_MOST: f64 = 1e6;

impl PartPower {
    fn check(&self) -> Result<(), ConfigError> {
        let idle = ("idle", self.idle);
        let all = self.activities.iter().map(|(name, watts)| (name.as_str(), *watts));
        for (name, watts) in all.chain([idle]) {
            if !(0.0..=WATTS_MOST).contains(&watts.0) {
                let problem = format!("{watts} is outside 0W to 1000000W");
                let key = format!("energy.{}.{name}", self.name);
                return Err(error(
                    &key,
                    problem,
                    "use the value of a data sheet, such as \"5.6W\"",
                ));
            }
        }
        Ok(())
    }
}

/// Time and operations of one activity.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    ps: u64,
    operations: u64,
}

/// As [`Meter`](crate::Meter), for declared parts. A part must not report overlapping intervals.
#[derive(Clone, Debug)]
pub(crate) struct PartsMeter {
    parts: Vec<PartPower>,
    /// Of each part the first of its cells, and of its classes of the series.
    first: Vec<usize>,
    cells: Vec<Cell>,
    series: Series,
    start: Time,
    settled: Time,
    held: Vec<Busy>,
    held_most: usize,
    strays: u64,
    /// The part and its activity that an idle device rests with, and from when.
    rest: Option<(u16, u8, Time)>,
}

/// Events that are held back before the meter looks which of them have settled.
const HELD_LEAST: usize = 1024;

/// By component: all of declared parts.
fn of_parts(all: f64) -> [f64; Component::ALL.len()] {
    Component::ALL.map(|component| if component == Component::Parts { all } else { 0.0 })
}

impl PartsMeter {
    pub(crate) fn new(parts: &[PartPower]) -> Result<PartsMeter, ConfigError> {
        parts.iter().try_for_each(PartPower::check)?;
        let mut cells = 0;
        let first = parts.iter().map(|part| {
            let first = cells;
            cells += part.activities.len();
            first
        });
        let first = first.collect();
        Ok(PartsMeter {
            parts: parts.to_vec(),
            first,
            cells: vec![Cell::default(); cells],
            series: Series::new(cells),
            start: Time::ZERO,
            settled: Time::ZERO,
            held: Vec::new(),
            held_most: HELD_LEAST,
            strays: 0,
            rest: None,
        })
    }

    /// If nothing were asked of the device, part `part` would do `activity` from `at` on: what the energy above idle is
    /// counted from.
    pub(crate) fn would_rest(&mut self, (part, activity): (u16, u8), at: Time) {
        self.rest = Some((part, activity, at));
    }

    /// What a device at rest saves up to `end`, against one that only idles.
    fn rest_saves(&self, end: Time) -> f64 {
        let saved = |(part, activity, at): (u16, u8, Time)| {
            let part = self.parts.get(usize::from(part))?;
            let (_, watts) = part.activities.get(usize::from(activity))?;
            let seconds = end.saturating_sub(at.max(self.start)).as_s_f64();
            Some((part.idle.0 - watts.0) * seconds)
        };
        self.rest.and_then(saved).unwrap_or(0.0)
    }

    pub(crate) fn reset(&mut self, at: Time) {
        self.settled = self.settled.max(at);
        self.settle();
        self.start = at;
        self.cells.fill(Cell::default());
        self.strays = 0;
        self.series.reset(at.as_ps());
    }

    pub(crate) fn advance(&mut self, now: Time) {
        self.settled = self.settled.max(now);
        if self.held.len() >= self.held_most {
            self.settle();
        }
    }

    pub(crate) fn read(&mut self, events: &[Busy]) {
        for event in events {
            match event.to <= self.settled {
                true => self.apply(event, Time::MAX),
                false => self.held.push(*event),
            }
        }
    }

    #[cold]
    fn settle(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        let settled = self.settled;
        held.retain(|event| {
            if event.to <= settled {
                self.apply(event, Time::MAX);
            }
            event.to > settled
        });
        self.held_most = (held.len() * 2).max(HELD_LEAST);
        self.held = held;
    }

    /// Enters what of `event` lies between the start and `end`.
    fn apply(&mut self, event: &Busy, end: Time) {
        let part = usize::from(event.part.index);
        let cell = match (event.part.kind, event.activity) {
            (PartKind::Declared, Activity::Declared(activity)) => self
                .parts
                .get(part)
                .filter(|part| usize::from(activity) < part.activities.len())
                .map(|_| self.first[part] + usize::from(activity)),
            // The host has an account of its own.
            (PartKind::HostCore, _) => return,
            _ => None,
        };
        let Some(cell) = cell else {
            self.strays += 1;
            return;
        };
        let from = event.from.max(self.start);
        let to = event.to.min(end).max(from);
        self.cells[cell].ps += (to - from).as_ps();
        if event.from >= self.start {
            self.cells[cell].operations += u64::from(event.operations);
        }
        self.series.add(cell, from.as_ps(), to.as_ps());
    }

    pub(crate) fn finish(&mut self, end: Time) -> Breakdown {
        let held = std::mem::take(&mut self.held);
        for event in held.iter().filter(|event| event.from < end) {
            self.apply(event, end);
        }
        self.held = held;
        self.held.retain(|event| event.to > end || event.from >= end);
        self.series.cover(end.max(self.start).as_ps());
        self.report(end)
    }

    /// Cells of part `part`, each with the name of its activity and its watts.
    fn cells_of(&self, part: usize) -> impl Iterator<Item = (&str, f64, Cell)> {
        let activities = self.parts[part].activities.iter();
        let cells = &self.cells[self.first[part]..];
        activities.zip(cells).map(|((name, watts), cell)| (name.as_str(), watts.0, *cell))
    }

    fn report(&self, end: Time) -> Breakdown {
        let seconds = end.saturating_sub(self.start).as_s_f64();
        let (mut rows, mut busy) = (Vec::new(), Vec::new());
        for (index, part) in self.parts.iter().enumerate() {
            let mut row = |activity: &str, seconds: f64, operations, watts: f64| {
                if seconds.abs() > 1e-12 || operations > 0 {
                    rows.push(BreakdownRow {
                        component: Component::Parts,
                        part: PartKind::Declared,
                        name: part.name.clone().into(),
                        activity: activity.to_owned().into(),
                        cause: FlashCause::None,
                        joules: seconds * watts,
                        seconds,
                        operations,
                    });
                }
            };
            let mut at_work = 0.0;
            for (name, watts, cell) in self.cells_of(index) {
                let time = cell.ps as f64 * 1e-12;
                at_work += time;
                row(name, time, cell.operations, watts);
            }
            row("idle", seconds - at_work, 0, part.idle.0);
            if part.is_resource {
                busy.push(BusyPart { name: part.name.clone(), seconds: at_work });
            }
        }
        let total_joules = rows.iter().map(|row| row.joules).sum::<f64>();
        let idle_watts = self.parts.iter().map(|part| part.idle.0).sum::<f64>();
        let idle_joules = idle_watts * seconds - self.rest_saves(end);
        let above = total_joules - idle_joules;
        Breakdown {
            seconds,
            total_joules,
            component_joules: of_parts(total_joules),
            idle_joules,
            above_idle_joules: if above.abs() > 1e-12 * total_joules { above } else { 0.0 },
            idle_watts,
            rows,
            busy_parts: busy,
            all_declared: true,
            power_series: self.power_series(end, idle_watts),
            stray_events: self.strays,
            ..Breakdown::default()
        }
    }

    fn power_series(&self, end: Time, idle_watts: f64) -> PowerSeries {
        let more: Vec<f64> = (0..self.parts.len())
            .flat_map(|part| {
                let idle = self.parts[part].idle.0;
                self.cells_of(part).map(move |(_, watts, _)| watts - idle)
            })
            .collect();
        PowerSeries::of(&self.series, (self.start, end), |row, length| {
            let joules: f64 = row.iter().zip(&more).map(|(ps, w)| *ps as f64 * 1e-12 * w).sum();
            let watts = of_parts(idle_watts + joules / length.as_s_f64());
            PowerPoint { length, watts }
        })
    }
}
