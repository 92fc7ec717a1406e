//! The SSD's interfaces to the outside: as a target, and as a device.

use ssdyno_block::{BlockTarget, Completion, Request, SubmitError, Time, Token};
use ssdyno_device::{
    Device, DeviceConfig, DeviceFacts, DeviceReport, ExplainedRequest, FlashReport, Medium,
    PowerControl, Sanitize, Sanitized,
};
use ssdyno_energy::{Facts, PowerModel};
use ssdyno_engine::PrepareError;
use ssdyno_engine::events::EventLog;
use ssdyno_ftl::buffer::WriteBuffer;
use ssdyno_ftl::{FtlFacts, Precondition, PrepareWatch};

use super::{Explain, STEPS, Ssd};
use crate::Config;

impl BlockTarget for Ssd {
    fn capacity_bytes(&self) -> u64 {
        self.pages.capacity_bytes
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.check(&request)?;
        let (slot, enters) = self.requests.arrive(now, request, token);
        if let Some(explain) = &mut self.explain {
            explain.arrived(now, slot);
        }
        if enters {
            self.accept(now, slot);
            self.power.last_activity = now;
        }
        Ok(())
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        while self.step(now).is_some() {}
        out.append(&mut self.requests.completions);
    }

    fn next_event(&self) -> Option<Time> {
        // Some requests (a trim on an idle sector bus) complete as they are submitted.
        self.requests.answered().or_else(|| self.queue.next_time())
    }
}

impl Device for Ssd {
    fn volatile_cache(&self) -> bool {
        self.config.volatile_cache()
    }

    fn medium(&self) -> Medium {
        Medium { solid_state: true, trims: true, ..Medium::default() }
    }

    fn events(&mut self) -> &mut EventLog {
        // Its reader may clear it.
        self.power.look(&self.log);
        if let Some(explain) = &mut self.explain {
            explain.look(&self.log);
        }
        &mut self.log
    }

    fn report(&self, report: &mut DeviceReport) {
        let geometry = self.flash.array.geometry();
        let page_bytes = u64::from(geometry.page_bytes);
        let buffer = self.buffer.pages.as_ref().map_or(0, |pages| u64::from(pages.capacity()));
        let facts = DeviceFacts {
            write_buffer_bytes: buffer * page_bytes,
            link_ways: self.path.link.ways(),
            ..DeviceFacts::of(self, self.config.queue.depth)
        };
        let states = self.config.power.states.iter().map(|state| state.power).collect();
        let power = PowerModel::Controller {
            config: Box::new(self.config.energy.clone()),
            facts: Facts { power_states: states, ..self.energy_facts() },
        };
        let unit = report.unit(Config::NAME, facts, power);
        // Pages that were handed out wait for their die: with many they are as much as the dirty ones.
        let waiting =
            self.buffer.pages.as_ref().map_or(0, |pages| pages.dirty() + pages.in_write_back());
        unit.buffered_bytes = u64::from(waiting) * page_bytes;
        unit.idle_states = self.power.sleep.entered(self.power.last_activity);
        unit.flash = Some(FlashReport {
            channels: geometry.channels,
            dies: geometry.dies(),
            page_bytes: geometry.page_bytes,
            pages_per_block: geometry.pages_per_block.get() - self.config.ftl.summary_pages,
            effective_utilisation: self.flash.ftl.effective_utilisation(),
            pools: self.flash.ftl.pools(),
            planes: self.flash.ftl.planes(),
            work: Some(self.flash.work),
            victims: self.flash.ftl.victims(),
            pages_read: self.pages_read,
            map_ram_bytes: self.flash.ftl.map_ram_bytes(),
            health: self.flash.ftl.health(),
        });
    }

    fn power(&mut self) -> Option<&mut dyn PowerControl> {
        Some(self)
    }

    fn explain(&mut self) -> bool {
        let dies = self.flash.array.geometry().dies();
        self.explain = Some(Box::new(Explain::new(dies, &self.log)));
        true
    }

    fn explained(&mut self, out: &mut Vec<ExplainedRequest>) {
        if let Some(explain) = &mut self.explain {
            explain.take(out);
        }
    }

    fn precondition(&mut self, watcher: &mut dyn FnMut(f64) -> bool) -> Result<(), PrepareError> {
        // Random writes of the host reach the flash as the buffer writes them back.
        let together = self.buffer.pages.as_ref().map_or(1, WriteBuffer::pages_together);
        // Pages that the buffer writes back together lie next to each other in a block.
        // Preconditioning page by page would give another distribution of valid pages per block.
        let how = Precondition { together, ..self.config.precondition.clone() };
        let Config { flash, ftl: config, .. } = &self.config;
        let geometry = *self.flash.array.geometry();
        let facts = FtlFacts { geometry, flash, config, seed: self.seed };
        let watch = &mut PrepareWatch::new(watcher);
        ssdyno_ftl::precondition(&mut self.flash.ftl, &facts, &how, watch)?;
        self.flash.agree();
        Ok(())
    }

    fn sanitize(&mut self, now: Time, order: Sanitize) -> Option<Sanitized> {
        Some(self.sanitize_all(now, order))
    }

    fn sanitize_time(&self, order: Sanitize) -> Option<Time> {
        Some(self.time_to_sanitize(order))
    }

    fn run_until_completion(
        &mut self,
        limit: Option<Time>,
        out: &mut Vec<Completion>,
    ) -> Option<Time> {
        let limit_or_end = limit.unwrap_or(Time::MAX);
        let mut reached = None;
        // The limit returns control to the runner, which has to react to an interruption by the
        // user. Cleaning alone can cause thousands of events before the next completion.
        for _ in 0..STEPS {
            if let Some(at) = self.requests.answered() {
                // All that happens at this time belongs together.
                let at = reached.unwrap_or(at).max(at);
                // All completions of one instant are returned in one call. The runner would
                // otherwise submit a new request between two of them, and the result would depend
                // on the size of a batch.
                if self.queue.next_time().is_some_and(|next| next <= at) {
                    self.reap(at, out);
                }
                out.append(&mut self.requests.completions);
                return Some(at);
            }
            match self.step(limit_or_end) {
                Some(at) => reached = Some(at),
                None => return limit.or(reached),
            }
        }
        reached
    }

    fn expect(&self, upcoming: &[Request]) {
        self.flash.look_ahead(&self.pages, upcoming);
    }
}

impl PowerControl for Ssd {
    fn set_sleep(&mut self, now: Time, policy: &[(u8, Time)]) {
        let idle = self.requests.nobody_is_inside();
        self.power.set_policy(now, policy, idle, &mut self.log);
    }

    fn limit_power(&mut self, from: Time, watts: Option<f64>) -> bool {
        self.govern(from, watts)
    }

    fn least_watts(&self) -> f64 {
        self.least_limit()
    }
}
