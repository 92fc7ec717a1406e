//! The busy times of the parts, for energy and timelines.

use ssdyno_block::Time;
use ssdyno_block::units::Watts;
use ssdyno_energy::PartPower;
use ssdyno_engine::events::{Activity, EventLog, PartKind};

use crate::cache::Stretches;
use crate::config::DiskPower;
use crate::mechanics::Access;

/// The parts by number, with what each can do; `powers` declares them in this order.
const SPINDLE: u16 = 0;
const ARM: u16 = 1;
const CHANNEL: u16 = 2;
const ELECTRONICS: u16 = 3;
const BUS: u16 = 4;
const MECHANISM: u16 = 5;

const STANDBY: u8 = 0;
const SPIN_UP: u8 = 1;
const READ: u8 = 0;
const WRITE: u8 = 1;

/// The log of all parts.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    log: EventLog,
    /// How far the mechanism has been reported: it does one thing at a time.
    mechanism_until: Time,
}

impl Parts {
    pub(crate) fn log(&mut self) -> &mut EventLog {
        &mut self.log
    }

    fn busy(&mut self, part: u16, activity: u8, from: Time, to: Time) {
        if to > from {
            self.log.busy((PartKind::Declared, part), Activity::Declared(activity), (from, to));
        }
    }

    pub(crate) fn command(&mut self, from: Time, to: Time) {
        self.busy(ELECTRONICS, 0, from, to);
    }

    pub(crate) fn bus(&mut self, from: Time, to: Time) {
        self.busy(BUS, 0, from, to);
    }

    /// The spindle rests from `from` to `woken` and is at speed again at `ready`.
    pub(crate) fn standby(&mut self, from: Time, woken: Time, ready: Time) {
        self.busy(SPINDLE, STANDBY, from, woken);
        self.busy(SPINDLE, SPIN_UP, woken, ready);
    }

    /// The part and its activity of a drive that rests.
    pub(crate) fn resting() -> (u16, u8) {
        (SPINDLE, STANDBY)
    }

    /// The arm set out at `from`.
    pub(crate) fn access(&mut self, from: Time, access: &Access, write: bool) {
        self.busy(ARM, 0, from, access.arrived);
        let activity = if write { WRITE } else { READ };
        self.busy(CHANNEL, activity, access.from, access.end);
        // Arm and channel alone do not show that a disk is at its limit: for a half of the time it may
        // wait for a sector to come round.
        self.mechanism(from, access.end);
    }

    fn mechanism(&mut self, from: Time, to: Time) {
        self.busy(MECHANISM, 0, from.max(self.mechanism_until), to);
        self.mechanism_until = self.mechanism_until.max(to);
    }

    /// The data read ahead since the last call.
    pub(crate) fn read_ahead(&mut self, stretches: &mut Stretches) {
        self.read_on(Time::MAX, stretches);
    }

    /// The same, where a command waits since `asked` for what passes next: the wait for the sectors
    /// is time of the mechanism, too.
    pub(crate) fn read_on(&mut self, asked: Time, stretches: &mut Stretches) {
        for (from, to) in stretches.drain(..) {
            self.busy(CHANNEL, READ, from, to);
            self.mechanism(if to > asked { from.min(asked) } else { from }, to);
        }
    }

    /// The parts and what they draw.
    pub(crate) fn powers(power: &DiskPower) -> Vec<PartPower> {
        let part = |name: &str, idle: Watts, activities: &[(&str, Watts)]| PartPower {
            name: name.to_owned(),
            idle,
            activities: activities
                .iter()
                .map(|(name, watts)| ((*name).to_owned(), *watts))
                .collect(),
            // It turns, or it does not.
            is_resource: name != "spindle",
        };
        let none = Watts(0.0);
        vec![
            part(
                "spindle",
                power.spindle,
                &[("standby", power.standby), ("spin-up", power.spin_up)],
            ),
            part("arm", none, &[("seek", power.seek)]),
            part("channel", none, &[("read", power.read), ("write", power.write)]),
            part("electronics", power.electronics, &[("command", power.command)]),
            part("bus", none, &[("transfer", none)]),
            part("mechanism", none, &[("access", none)]),
        ]
    }
}
