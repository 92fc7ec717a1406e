//! A striped array (RAID-0) over devices of any kind: stripe by stripe the members take turns.
//!
//! A request goes to each member that it touches as one request, since its stripes lie one behind another there; it
//! completes with the last of them, and with an error if one of them has an error. Requests that do not fit into a
//! member wait before it, in order. Without a [controller] the array costs no time of its own.
//!
//! If the members are alike and a request touches one stripe, throughput has a closed form, that of a member times
//! their number; the tests compare with it.
//!
//! Not modelled: redundancy, rebuilding, links between the controller and its members, other than those that the
//! members have.

mod config;
pub mod controller;
mod kind;
mod striping;
#[cfg(test)]
mod tests;

use ssdyno_block::{BlockTarget, Completion, ConfigError, Request, SubmitError, Time, Token};
use ssdyno_energy::PowerModel;
use ssdyno_engine::PrepareError;
use ssdyno_engine::events::{Busy, EventLog, EventReader, PartEvent};

use crate::{Device, DeviceConfig, DeviceFacts, DeviceReport, Medium};
pub(crate) use config::UNITS_MOST;
pub use config::{ArrayConfig, ArrayTable, MemberSpec};
use controller::Controller;
use striping::{Member, Striping, build_members};

/// See the module.
pub struct StripedArray {
    striping: Striping,
    controller: Option<Box<Controller>>,
    log: EventLog,
}

impl StripedArray {
    /// The array that the file describes, its members as they leave the factory. Each draws its own numbers.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong, of members with their number: `array.members[1].delay.read`.
    pub fn new(config: &ArrayConfig, seed: u64) -> Result<StripedArray, ConfigError> {
        config.check()?;
        StripedArray::of(config, build_members(config, seed)?)
    }

    /// The array of `members`, whatever the file has for them.
    fn of(config: &ArrayConfig, members: Vec<Member>) -> Result<StripedArray, ConfigError> {
        let table = config.array.controller.as_ref();
        let member_depth = table.and_then(|table| table.member_depth);
        let striping = Striping::new(members, config.array.stripe.0, member_depth)?;
        let controller = match table {
            Some(table) => Some(Box::new(Controller::new(table, &striping)?)),
            None => None,
        };
        Ok(StripedArray { striping, controller, log: EventLog::default() })
    }
}

impl BlockTarget for StripedArray {
    fn capacity_bytes(&self) -> u64 {
        self.striping.capacity_bytes
    }

    fn sector_bytes(&self) -> u32 {
        self.striping.sector_bytes
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.check(&request)?;
        match &mut self.controller {
            Some(controller) => controller.submit(now, request, token),
            None => {
                self.striping.submit(now, request, token);
                Ok(())
            }
        }
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        match &mut self.controller {
            Some(controller) => controller.reap(&mut self.striping, now, out),
            None => self.striping.reap(now, out),
        }
    }

    fn next_event(&self) -> Option<Time> {
        let own = self.controller.as_ref().and_then(|controller| controller.next_event());
        [own, self.striping.next_event()].into_iter().flatten().min()
    }
}

/// Passes on what a member's parts did, under the numbers that its units have in the array.
pub(crate) struct Renumber<'a> {
    pub(crate) log: &'a mut EventLog,
    pub(crate) first_unit: u8,
}

impl EventReader for Renumber<'_> {
    fn read(&mut self, events: &[Busy]) {
        for event in events {
            let unit = event.part.unit + self.first_unit;
            self.log.push(Busy { part: PartEvent { unit, ..event.part }, ..*event });
        }
    }
}

impl Device for StripedArray {
    fn events(&mut self) -> &mut EventLog {
        if let Some(controller) = &mut self.controller {
            controller.show_events(&mut self.log);
        }
        for Member { device, first_unit, .. } in &mut self.striping.members {
            let events = device.events();
            if !events.is_empty() {
                events.show_to(&mut Renumber { log: &mut self.log, first_unit: *first_unit });
                events.clear();
            }
        }
        &mut self.log
    }

    fn report(&self, report: &mut DeviceReport) {
        let number = report.units().len();
        let members = &self.striping.members;
        let depth = members.iter().map(|member| {
            DeviceReport::of(member.device.as_ref())
                .whole()
                .map_or(0, |unit| unit.facts.queue_depth)
        });
        let mut facts = DeviceFacts::of(self, depth.sum());
        let controller = self.controller.as_ref();
        let parts = controller.map_or(Vec::new(), |controller| controller.describe(&mut facts));
        let unit = report.unit(ArrayConfig::NAME, facts, PowerModel::Parts(parts));
        unit.buffered_bytes = controller.map_or(0, |controller| controller.buffered_bytes());
        unit.buffer_waits = controller.map_or(0, |controller| controller.buffer_waits());
        for (index, member) in members.iter().enumerate() {
            let key = format!("array.members[{index}]");
            report.member(number, index, &key, member.device.as_ref());
        }
    }

    fn precondition(&mut self, watcher: &mut dyn FnMut(f64) -> bool) -> Result<(), PrepareError> {
        let count = self.striping.members.len() as f64;
        for (index, member) in self.striping.members.iter_mut().enumerate() {
            member.device.precondition(&mut |share| watcher((index as f64 + share) / count))?;
        }
        Ok(())
    }

    fn begin_window(&mut self, at: Time) {
        self.striping.members.iter_mut().for_each(|member| member.device.begin_window(at));
    }

    fn volatile_cache(&self) -> bool {
        // Where a flush completes at once, the controller vouches for the data.
        let vouches = self.controller.as_ref().is_some_and(|controller| controller.is_durable());
        let members = &self.striping.members;
        !vouches && members.iter().any(|member| member.device.volatile_cache())
    }

    fn medium(&self) -> Medium {
        let Striping { members, stripe, .. } = &self.striping;
        let mut media = members.iter().map(|member| member.device.medium());
        let first = media.next().unwrap_or_default();
        let of_all = media.fold(first, |all, medium| Medium {
            // Members that differ have no common fact.
            rotation_rpm: if all.rotation_rpm == medium.rotation_rpm {
                all.rotation_rpm
            } else {
                0
            },
            solid_state: all.solid_state && medium.solid_state,
            trims: all.trims && medium.trims,
            ..all
        });
        let stripe_bytes = stripe.saturating_mul(members.len() as u64);
        Medium { chunk_bytes: *stripe, stripe_bytes, ..of_all }
    }

    fn is_gone(&self) -> bool {
        self.striping.members.iter().all(|member| member.device.is_gone())
    }
}
