//! The meter of a whole device: one for each of the units that it is made of.

use ssdyno_block::{ConfigError, Time};
use ssdyno_engine::events::{Busy, EventReader};

use crate::breakdown::{Breakdown, BusyPart};
use crate::parts::PartsMeter;
use crate::{Meter, PowerModel};

/// The meter of one unit.
#[derive(Clone, Debug)]
enum UnitMeter {
    Controller(Box<Meter>),
    Parts(Box<PartsMeter>),
}

/// Turns the events of a device into joules, whatever it is made of. Used as a [`Meter`] is.
#[derive(Clone, Debug)]
pub struct DeviceMeter {
    units: Vec<(String, UnitMeter)>,
    /// Events of units that do not exist.
    strays: u64,
}

/// The energy of a device by place.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DeviceEnergy {
    /// All units together. Where there are several, the names of parts are paths.
    pub whole: Breakdown,
    /// Path and account of each unit, where there are several.
    pub units: Vec<(String, Breakdown)>,
}

impl From<Meter> for DeviceMeter {
    fn from(meter: Meter) -> DeviceMeter {
        let units = vec![(String::new(), UnitMeter::Controller(Box::new(meter)))];
        DeviceMeter { units, strays: 0 }
    }
}

impl DeviceMeter {
    /// A meter whose measurement starts at time zero, for units in the order of their numbers in events: of each
    /// its path, what stands before its keys, and what its parts draw.
    ///
    /// # Errors
    /// [`ConfigError`] where the numbers do not fit together.
    pub fn new<'a>(
        units: impl Iterator<Item = (&'a str, &'a str, &'a PowerModel)>,
    ) -> Result<DeviceMeter, ConfigError> {
        let units = units.map(|(path, key, model)| {
            let of_whole =
                |error: ConfigError| ConfigError { key: format!("{key}{}", error.key), ..error };
            let meter = match model {
                PowerModel::Controller { config, facts } => {
                    UnitMeter::Controller(Box::new(Meter::new(config, facts).map_err(of_whole)?))
                }
                PowerModel::Parts(parts) => {
                    UnitMeter::Parts(Box::new(PartsMeter::new(parts).map_err(of_whole)?))
                }
            };
            Ok((path.to_owned(), meter))
        });
        Ok(DeviceMeter { units: units.collect::<Result<_, _>>()?, strays: 0 })
    }

    /// See [`Meter::would_sleep`], of unit `unit`. Of a device of declared parts, the state is `part` with its activity.
    pub fn would_sleep(&mut self, unit: usize, states: &[(u8, Time)], part: Option<(u16, u8)>) {
        match (self.units.get_mut(unit), part, states) {
            (Some((_, UnitMeter::Controller(meter))), ..) => meter.would_sleep(states),
            (Some((_, UnitMeter::Parts(meter))), Some(part), [(_, at), ..]) => {
                meter.would_rest(part, *at);
            }
            _ => {}
        }
    }

    /// See [`Meter::reset`].
    pub fn reset(&mut self, at: Time) {
        self.strays = 0;
        for (_, unit) in &mut self.units {
            match unit {
                UnitMeter::Controller(meter) => meter.reset(at),
                UnitMeter::Parts(meter) => meter.reset(at),
            }
        }
    }

    /// See [`Meter::advance`].
    pub fn advance(&mut self, now: Time) {
        for (_, unit) in &mut self.units {
            match unit {
                UnitMeter::Controller(meter) => meter.advance(now),
                UnitMeter::Parts(meter) => meter.advance(now),
            }
        }
    }

    /// See [`Meter::pages_programmed`].
    pub fn pages_programmed(&self) -> u64 {
        let each = self.units.iter().map(|(_, unit)| match unit {
            UnitMeter::Controller(meter) => meter.pages_programmed(),
            UnitMeter::Parts(_) => 0,
        });
        each.sum()
    }

    /// See [`Meter::finish`].
    pub fn finish(&mut self, end: Time) -> DeviceEnergy {
        let mut units: Vec<(String, Breakdown)> = self
            .units
            .iter_mut()
            .map(|(path, unit)| {
                let energy = match unit {
                    UnitMeter::Controller(meter) => meter.finish(end),
                    UnitMeter::Parts(meter) => meter.finish(end),
                };
                (path.clone(), energy)
            })
            .collect();
        if units.len() == 1 {
            let whole = units.pop().map(|(_, energy)| energy).unwrap_or_default();
            return DeviceEnergy { whole, units };
        }
        let mut whole = Breakdown { stray_events: self.strays, ..Breakdown::default() };
        for (path, unit) in &units {
            whole.add(path, unit);
        }
        DeviceEnergy { whole, units }
    }
}

impl DeviceEnergy {
    /// How long each part of each unit was busy, by path, where it does not stand in the figures of the one
    /// controller that there is.
    pub fn busy_parts(&self) -> Vec<BusyPart> {
        let units = self.units.iter().flat_map(|(path, unit)| unit.busy_by_path(path));
        units
            .chain(self.whole.busy_parts.iter().filter(|_| self.units.is_empty()).cloned())
            .collect()
    }
}

impl EventReader for DeviceMeter {
    fn read(&mut self, events: &[Busy]) {
        if let [(_, UnitMeter::Controller(meter))] = &mut self.units[..] {
            return meter.read(events);
        }
        for events in events.chunk_by(|a, b| a.part.unit == b.part.unit) {
            let unit = events.first().and_then(|e| self.units.get_mut(usize::from(e.part.unit)));
            match unit {
                Some((_, UnitMeter::Controller(meter))) => meter.read(events),
                Some((_, UnitMeter::Parts(meter))) => meter.read(events),
                None => self.strays += events.len() as u64,
            }
        }
    }
}
