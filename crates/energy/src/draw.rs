//! The power that single events add to a device, for a power limiter.

use ssdyno_block::ConfigError;
use ssdyno_engine::events::{Busy, PartKind};

use crate::config::CpuRule;
use crate::powers::{FLASH_ACTIVITIES, Powers};
use crate::{EnergyConfig, Facts};

/// The same watts as the [`Meter`](crate::Meter)'s, event by event as they are reported.
///
/// The meter's account differs by the idle current of dies that do two things at a time, and by what
/// slow mode saves: neither is here.
#[derive(Clone, Debug)]
pub struct Draw {
    powers: Powers,
    rule: CpuRule,
    idle_during_cleaning: bool,
}

impl Draw {
    /// For a device of these numbers.
    ///
    /// # Errors
    /// [`ConfigError`] where they do not fit together.
    pub fn new(config: &EnergyConfig, facts: &Facts) -> Result<Draw, ConfigError> {
        config.check()?;
        Ok(Draw {
            powers: Powers::new(config, facts),
            rule: config.cpu.rule,
            idle_during_cleaning: config.flash.idle_during_cleaning,
        })
    }

    /// The power of an awake device without work, in watts; with a CPU that works whenever a request is inside, as if a
    /// request were inside.
    pub fn base_watts(&self) -> f64 {
        let floor = self.powers.floor().sum();
        match self.rule {
            CpuRule::Cores => floor,
            CpuRule::InService => floor + self.powers.cpu - self.powers.cpu_idle,
        }
    }

    /// The power of a die above idle in watts, by the [index](ssdyno_engine::events::Activity::index) of its activity:
    /// read, program, erase, transfer.
    pub fn activity_watts(&self) -> [f64; FLASH_ACTIVITIES] {
        self.powers.die.map(|watts| watts - self.powers.die_idle)
    }

    /// The energy that `event` adds to that, in joules.
    pub fn joules(&self, event: &Busy) -> f64 {
        let watts = match event.part.kind {
            PartKind::Die => self.die_watts(event),
            PartKind::Channel => self.powers.channel,
            PartKind::HostLink => self.powers.host_link,
            PartKind::Dram => self.powers.dram - self.powers.dram_idle,
            PartKind::Core if self.rule == CpuRule::Cores => self.powers.cpu - self.powers.cpu_idle,
            PartKind::Core | PartKind::Controller | PartKind::HostCore | PartKind::Declared => 0.0,
        };
        watts * (event.to - event.from).as_s_f64()
    }

    fn die_watts(&self, event: &Busy) -> f64 {
        let index = event.activity.index();
        if index >= FLASH_ACTIVITIES {
            return 0.0;
        }
        let idles_too = self.idle_during_cleaning && event.cause.follows_cleaning();
        self.powers.die[index] - if idles_too { 0.0 } else { self.powers.die_idle }
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_block::Time;
    use ssdyno_engine::events::{Activity, EventReader, FlashCause, PartEvent};

    use super::*;
    use crate::Meter;
    use crate::meter::tests::s3_text;

    fn events() -> Vec<Busy> {
        let us = Time::from_us;
        let event = |kind, index, activity, cause, from, to| {
            let part = PartEvent::new(kind, index);
            Busy { part, activity, cause, operations: 1, from: us(from), to: us(to) }
        };
        vec![
            event(PartKind::Die, 0, Activity::Read, FlashCause::Host, 0, 50),
            event(PartKind::Die, 1, Activity::Program, FlashCause::Cleaning, 10, 600),
            event(PartKind::Die, 0, Activity::Erase, FlashCause::Mapping, 60, 900),
            event(PartKind::Die, 0, Activity::Transfer, FlashCause::Host, 900, 930),
            event(PartKind::Channel, 0, Activity::Transfer, FlashCause::Host, 900, 930),
            event(PartKind::HostLink, 1, Activity::Transfer, FlashCause::None, 930, 940),
            event(PartKind::Dram, 0, Activity::Transfer, FlashCause::None, 930, 935),
            event(PartKind::Core, 0, Activity::Execute, FlashCause::None, 0, 7),
            event(PartKind::Controller, 0, Activity::InService, FlashCause::None, 0, 1000),
        ]
    }

    /// The sum of what the events add, on top of the base, is what the meter finds.
    #[test]
    fn agrees_with_the_meter() {
        let facts =
            Facts { channels: 1, dies: 2, dies_per_package: 1, cores: 1, power_states: vec![] };
        let end = Time::from_us(1000);
        for rule in ["in-service", "cores"] {
            for also_idle in ["true", "false"] {
                let text = s3_text().replace("in-service", rule).replace(
                    "idle_during_cleaning = true",
                    &format!("idle_during_cleaning = {also_idle}"),
                );
                let config: EnergyConfig = toml::from_str(&text).unwrap();
                let draw = Draw::new(&config, &facts).unwrap();
                let mut meter = Meter::new(&config, &facts).unwrap();
                meter.read(&events());
                let metered = meter.finish(end).total_joules;
                let added: f64 = events().iter().map(|event| draw.joules(event)).sum();
                let sum = draw.base_watts() * end.as_s_f64() + added;
                assert!((sum / metered - 1.0).abs() < 1e-9, "{rule} {also_idle}: {sum} {metered}");
            }
        }
    }
}
