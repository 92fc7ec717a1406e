//! The busy times of the controller's parts, and their power.

use ssdyno_block::Time;
use ssdyno_block::units::Watts;
use ssdyno_energy::PartPower;
use ssdyno_engine::events::{Activity, Busy, EventLog, EventReader, PartKind};

use super::config::ControllerTable;

/// The parts by number; `powers` declares them in this order.
const CONTROLLER: u16 = 0;
const LINK: u16 = 1;

/// What was busy when.
#[derive(Debug, Default)]
pub(super) struct Parts {
    log: EventLog,
    /// The time since which the controller has been busy without a report.
    busy_since: Option<Time>,
}

impl Parts {
    fn busy(&mut self, part: u16, from: Time, to: Time) {
        self.log.busy((PartKind::Declared, part), Activity::Declared(0), (from, to));
    }

    /// At `now` the controller begins to work, goes on, or ends.
    pub(super) fn work(&mut self, now: Time, goes_on: bool) {
        if let Some(since) = self.busy_since.filter(|since| *since < now) {
            self.busy(CONTROLLER, since, now);
            self.busy_since = None;
        }
        self.busy_since = if goes_on { self.busy_since.or(Some(now)) } else { None };
    }

    /// Core `core` executes a command. The cores stand behind the `ways` of the link.
    pub(super) fn execute(&mut self, core: u16, ways: u32, from: Time, to: Time) {
        self.busy(LINK + ways as u16 + core, from, to);
    }

    /// Data cross the link; `way` is 1 for the second of its ways.
    pub(super) fn transfer(&mut self, way: u16, from: Time, to: Time) {
        self.busy(LINK + way, from, to);
    }

    /// Hands over what was busy to `log`.
    pub(super) fn show_to(&mut self, log: &mut EventLog) {
        self.log.show_to(&mut Appended(log));
        self.log.clear();
    }
}

/// The parts and what they draw, for a link with so many ways.
pub(super) fn powers(table: &ControllerTable, ways: u32) -> Vec<PartPower> {
    let part = |name: &str, activity: &str, idle, active| PartPower {
        name: name.to_owned(),
        idle,
        activities: vec![(activity.to_owned(), active)],
        // The controller is active while anything is inside, for which a core may have done little.
        is_resource: name != "controller",
    };
    let none = Watts(0.0);
    let mut parts = vec![part("controller", "work", table.idle_power, table.active_power())];
    let names: &[&str] = if ways > 1 { &["link_to_device", "link_to_host"] } else { &["link"] };
    parts.extend(names.iter().map(|name| part(name, "transfer", none, none)));
    parts
        .extend((0..table.cores).map(|core| part(&format!("core[{core}]"), "execute", none, none)));
    parts
}

struct Appended<'a>(&'a mut EventLog);

impl EventReader for Appended<'_> {
    fn read(&mut self, events: &[Busy]) {
        events.iter().for_each(|event| self.0.push(*event));
    }
}
