//! The SSD under a limit of its power (S1-45).

use ssdyno_block::{Op, Request, Time};
use ssdyno_energy::{Draw, Facts};

use super::Ssd;
use crate::governor::{Governor, INCOME_WATTS_LEAST};

impl Ssd {
    /// What a meter must know of it, but for the low-power states.
    pub fn energy_facts(&self) -> Facts {
        let geometry = self.flash.geometry();
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
        if self.governor.is_none() {
            if watts.is_none() {
                return true;
            }
            let governor = Governor::new(&self.config, &self.energy_facts(), &self.log);
            let Ok(governor) = governor else { return false };
            self.governor = Some(Box::new(governor));
        }
        self.governor.as_mut().is_some_and(|governor| governor.limit(from, watts))
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
        match &mut self.governor {
            Some(governor) => governor.admit(ready, pages, &self.log),
            None => ready,
        }
    }

    /// `request` completed.
    #[cold]
    pub(super) fn end_limited(&mut self, request: &Request) {
        let pages = self.pages_governed(request);
        if let Some(governor) = &mut self.governor {
            governor.ended(pages);
        }
    }

    /// Pages whose data `request` moves.
    fn pages_governed(&self, request: &Request) -> u64 {
        if !matches!(request.op, Op::Read | Op::Write) {
            return 0;
        }
        let pages = self.pages_of(request.offset_bytes, request.length_bytes);
        u64::from(pages.end - pages.start)
    }
}
