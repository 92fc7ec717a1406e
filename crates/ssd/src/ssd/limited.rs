//! The SSD under a limit of its power (S1-45).

use ssdyno_block::{Op, Request, Time};
use ssdyno_energy::{Draw, Facts};

use super::Ssd;
use crate::governor::INCOME_WATTS_LEAST;

impl Ssd {
    /// The facts that a meter needs, except the low-power states.
    pub fn energy_facts(&self) -> Facts {
        let geometry = self.flash.array.geometry();
        Facts {
            channels: geometry.channels,
            dies: geometry.dies(),
            dies_per_package: geometry.dies_per_chip,
            cores: self.config.controller.cores,
            power_states: Vec::new(),
        }
    }

    /// See [`PowerControl::limit_power`](ssdyno_device::PowerControl::limit_power).
    pub(super) fn govern(&mut self, from: Time, watts: Option<f64>) -> bool {
        let facts = self.energy_facts();
        self.power.limit(from, watts, (&self.config, &facts), &self.log).unwrap_or(false)
    }

    /// See [`PowerControl::least_watts`](ssdyno_device::PowerControl::least_watts).
    pub(super) fn least_limit(&self) -> f64 {
        let draw = Draw::new(&self.config.energy, &self.energy_facts());
        draw.map_or(0.0, |draw| draw.base_watts()) + INCOME_WATTS_LEAST
    }

    /// When the request in `slot`, which could begin at `ready`, may.
    #[cold]
    pub(super) fn begin_limited(&mut self, ready: Time, slot: u32) -> Time {
        let pages = self.pages_governed(&self.requests.get(slot).request);
        self.power.admit(ready, pages, &self.log)
    }

    /// `request` completed.
    #[cold]
    pub(super) fn end_limited(&mut self, request: &Request) {
        let pages = self.pages_governed(request);
        self.power.ended(pages);
    }

    /// Pages whose data `request` moves.
    fn pages_governed(&self, request: &Request) -> u64 {
        if !matches!(request.op, Op::Read | Op::Write) {
            return 0;
        }
        let pages = self.pages.touched(request.offset_bytes, request.length_bytes);
        u64::from(pages.end - pages.start)
    }
}
