//! The configuration as watts.

use ssdyno_block::units::Watts;

use crate::config::CpuRule;
use crate::{EnergyConfig, Facts};

/// Flash activities that draw power: read, program, erase, transfer, in the order of
/// [`Activity::index`](ssdyno_engine::events::Activity::index).
pub(crate) const FLASH_ACTIVITIES: usize = 4;

/// Watts per part and activity.
#[derive(Clone, Debug)]
pub(crate) struct Powers {
    /// Of a die, per activity.
    pub(crate) die: [f64; FLASH_ACTIVITIES],
    /// Of a die.
    pub(crate) die_idle: f64,
    pub(crate) dies: f64,
    /// Of a core, or of the CPU, as the rule says.
    pub(crate) cpu: f64,
    pub(crate) cpu_idle: f64,
    pub(crate) cpu_slow: f64,
    /// Things that `cpu` is the power of.
    pub(crate) cpus: f64,
    pub(crate) dram: f64,
    pub(crate) dram_idle: f64,
    /// Of one channel.
    pub(crate) channel: f64,
    /// Of one host link.
    pub(crate) host_link: f64,
    /// Of the whole device, per low-power state.
    pub(crate) states: Vec<f64>,
}

/// Watts of idleness by component.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Floor {
    pub(crate) flash: f64,
    pub(crate) cpu: f64,
    pub(crate) dram: f64,
}

impl Floor {
    pub(crate) fn sum(self) -> f64 {
        self.flash + self.cpu + self.dram
    }
}

impl Powers {
    pub(crate) fn new(config: &EnergyConfig, facts: &Facts) -> Powers {
        let volts = config.flash.voltage.0;
        let flash = &config.flash;
        let idle = config.cpu.idle_power;
        Powers {
            die: [
                volts * flash.read_current.0,
                volts * flash.program_current.0,
                volts * flash.erase_current.0,
                volts * flash.transfer_current.0,
            ],
            die_idle: volts * flash.idle_current.0,
            dies: f64::from(facts.dies),
            cpu: config.cpu.normal_power.0,
            cpu_idle: idle.0,
            cpu_slow: config.cpu.slow_power.unwrap_or(idle).0,
            cpus: match config.cpu.rule {
                CpuRule::Cores => f64::from(facts.cores),
                CpuRule::InService => 1.0,
            },
            dram: config.dram.active_power.0,
            dram_idle: config.dram.idle_power.0,
            channel: config.bus.voltage.0 * config.bus.channel_current.0,
            host_link: config.bus.voltage.0 * config.bus.host_link_current.0,
            states: facts.power_states.iter().map(|Watts(watts)| *watts).collect(),
        }
    }

    /// The power of the device when nothing happens and it does not sleep.
    pub(crate) fn floor(&self) -> Floor {
        Floor {
            flash: self.dies * self.die_idle,
            cpu: self.cpus * self.cpu_idle,
            dram: self.dram_idle,
        }
    }

    /// The power of the device in low-power state `state`, distributed in proportion to the idle
    /// powers that it replaces; all of it to the CPU if those are zero.
    pub(crate) fn asleep(&self, state: usize) -> Floor {
        let floor = self.floor();
        let watts = self.states[state];
        if floor.sum() == 0.0 {
            return Floor { cpu: watts, ..Floor::default() };
        }
        let share = watts / floor.sum();
        Floor { flash: floor.flash * share, cpu: floor.cpu * share, dram: floor.dram * share }
    }
}
