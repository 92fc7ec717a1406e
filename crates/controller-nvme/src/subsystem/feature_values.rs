//! Values of the features of the controller, and their consequences.

use ssdyno_block::Time;
use ssdyno_spec::nvme::AutonomousTransition;

use super::versions::{Field, Part, Version};
use ssdyno_device::nvme::NvmeControllerConfig;
use ssdyno_device::nvme::PowerState;

/// Temperature of a model that has none, in kelvin: 40 °C.
pub(crate) const TEMPERATURE_KELVIN: u16 = 313;
/// Power states in the autonomous transition table.
pub(super) const STATES: usize = 32;

pub(super) type Transitions = [AutonomousTransition; STATES];

/// The values from the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct HostBehavior {
    /// Longest time without a Keep Alive command; 0: it sends none.
    pub(crate) keep_alive_ms: u32,
    /// ACRE: it knows delays of a retry, which no status here asks for.
    pub(super) retries_later: bool,
}

/// Values of the features of the controller.
#[derive(Clone, Debug)]
pub(crate) struct Features {
    pub(super) power_state: u8,
    /// WH: the host's hint on its load.
    pub(super) workload: u8,
    /// The host has put the device into a non-operational state; the next I/O command wakes it.
    pub(super) forced: Option<u8>,
    pub(super) over_temperature: u32,
    pub(super) under_temperature: u32,
    pub(super) write_cache: bool,
    pub(super) write_atomicity: u32,
    pub(super) events: u32,
    pub(super) autonomous: bool,
    /// The host's table; none = the device file's times.
    pub(super) transitions: Option<Transitions>,
    pub(super) operational: u8,
    pub(super) states: u8,
    pub(crate) host: HostBehavior,
}

impl Features {
    /// The values after a reset.
    pub(crate) fn new(
        config: &NvmeControllerConfig,
        version: Version,
        low_power: &[PowerState],
    ) -> Features {
        let operational = config.operational_states.len() as u8;
        let told = version.has(Part::Field(Field::NonOperational));
        Features {
            power_state: 0,
            workload: 0,
            forced: None,
            over_temperature: 343,
            under_temperature: 0,
            write_cache: true,
            write_atomicity: 0,
            events: 0,
            autonomous: !low_power.is_empty(),
            transitions: None,
            operational,
            states: operational + if told { low_power.len() as u8 } else { 0 },
            host: HostBehavior::default(),
        }
    }
    #[inline]
    pub(crate) fn write_cache(&self) -> bool {
        self.write_cache
    }
    #[inline]
    pub(crate) fn is_forced_to_sleep(&self) -> bool {
        self.forced.is_some()
    }
    /// Namespace attribute notices are wanted.
    pub(crate) fn wants_namespace_notices(&self) -> bool {
        self.events >> 8 & 1 == 1
    }
    /// The temperature is not between the thresholds.
    pub(crate) fn is_beyond_threshold(&self) -> bool {
        let temperature = u32::from(TEMPERATURE_KELVIN);
        temperature >= self.over_temperature || temperature <= self.under_temperature
    }
    /// Health events of this bit of the critical warning are wanted.
    pub(crate) fn wants_health(&self, warning: u8) -> bool {
        self.events as u8 & warning != 0
    }

    /// The table in force: the host's, or what the device file says, rounded up to milliseconds.
    pub(super) fn table(&self, low_power: &[PowerState]) -> Transitions {
        if let Some(table) = self.transitions {
            return table;
        }
        let mut table = [AutonomousTransition::default(); STATES];
        let mut before = Time::ZERO;
        for (number, state) in low_power.iter().enumerate() {
            // The device file counts idle time from the last command. The table counts from the
            // entry into the state before, so the difference goes in. Rounding up never sleeps
            // earlier than the file says.
            let wait = (state.idle_after.0 - before).as_ps().div_ceil(Time::from_ms(1).as_ps());
            let entry = AutonomousTransition::new(
                self.operational + number as u8,
                wait.clamp(1, (1 << 24) - 1) as u32,
            );
            match number {
                0 => table[..usize::from(self.operational)].fill(entry),
                _ => table[usize::from(self.operational) + number - 1] = entry,
            }
            before = state.idle_after.0;
        }
        table
    }

    /// Whether each transition leads to a state that processes no commands (base 2.0c, clause 5.27.1.9). An entry
    /// without a time does not count.
    pub(super) fn takes(&self, table: &Transitions) -> bool {
        let entries = table[..usize::from(self.states)].iter();
        let mut real = entries.filter(|entry| entry.idle_ms() != 0);
        real.all(|entry| (self.operational..self.states).contains(&entry.target()))
    }

    /// When the device enters which of its low-power states, as [`PowerControl::set_sleep`](ssdyno_device::PowerControl::set_sleep) wants it.
    pub(super) fn sleep_policy(&self, low_power: &[PowerState]) -> Vec<(u8, Time)> {
        let own = |(number, state): (usize, &PowerState)| (number as u8, state.idle_after.0);
        // The host has ordered the state. The device enters it as soon as it is idle, and the
        // table of autonomous transitions does not apply meanwhile.
        if let Some(state) = self.forced {
            return vec![(state - self.operational, Time::ZERO)];
        }
        if !self.autonomous {
            return Vec::new();
        }
        let Some(table) = self.transitions else {
            return low_power.iter().enumerate().map(own).collect();
        };
        let mut policy = Vec::new();
        let (mut state, mut idle) = (self.power_state, Time::ZERO);
        loop {
            let entry = table[usize::from(state)];
            // Only deeper: a table that goes round has an end all the same.
            if entry.idle_ms() == 0 || entry.target() <= state || entry.target() >= self.states {
                return policy;
            }
            idle += Time::from_ms(u64::from(entry.idle_ms()));
            state = entry.target();
            if let Some(number) = state.checked_sub(self.operational) {
                policy.push((number, idle));
            }
        }
    }
}
