//! Sanitize: destroys all data that the SSD ever held, in spare and retired blocks, too (NVM Express base 2.0c, clause
//! 8.21).
//!
//! **How long it takes.** All channels work at the same time and alike. The dies of a channel go on
//! together: the bus serves one after another, and none is a step ahead of the others. With `D` dies on a
//! channel, `b` on the bus for a die and `a` in its array, a step of all of them takes the greater of `D b`
//! (the bus is busy throughout) and `b + a` (each die is).
//! - *Erase of everything*: a step for each block of a plane; `b` are command cycles, `a` is tBERS.
//! - *Overwrite pass*: everything is erased, then programmed: a step for each page, by its page type.
//!   The last pass is followed by an erase, as flash cannot be written again otherwise.
//! - *Crypto erase*: [`KEY_CHANGE`]; then no logical page is mapped, and what the flash holds is rubbish that
//!   cleaning erases when it needs the room.
//! - *No deallocation*: the logical pages are written once more, so that they can be read.
//!
//! Planes join where `flash.multi_plane` lets them. Each erase wears.
//!
//! Not modelled: a limit of power, which does not slow it; read back and compare.

use ssdyno_block::Time;
use ssdyno_device::{Sanitize, SanitizeMethod, Sanitized};
use ssdyno_engine::events::{Activity, Busy, FlashCause, PartEvent, PartKind};
use ssdyno_flash::{FlashTiming, Geometry, MultiPlane, NO_OWNER};
use ssdyno_ftl::buffer::WriteBuffer;
use ssdyno_ftl::{Ftl, FtlFacts, Plane};

use super::Ssd;

/// A new key for the data, and all tables without entries: *assumed*; drives take from milliseconds to
/// seconds.
const KEY_CHANGE: Time = Time::from_ms(100);
/// The largest number of operations that one event represents.
const OPERATIONS_MAX: u64 = u8::MAX as u64;

/// The same done by all dies of all channels at once, so often.
#[derive(Clone, Copy, Debug)]
struct Step {
    activity: Activity,
    /// On the bus, for each die.
    bus: Time,
    /// In the array.
    array: Time,
    times: u64,
}

/// How the flash goes about it.
#[derive(Clone, Copy, Debug)]
struct Work {
    geometry: Geometry,
    timing: FlashTiming,
    /// Planes that work together.
    joined: u32,
}

impl Work {
    /// Times that a die does something for all of its blocks of one number.
    fn turns(&self) -> u64 {
        u64::from(self.geometry.planes_per_die / self.joined)
    }
    fn dies_of_channel(&self) -> u64 {
        u64::from(self.geometry.dies() / self.geometry.channels)
    }

    fn erase(&self) -> Step {
        Step {
            activity: Activity::Erase,
            bus: self.timing.command * u64::from(self.joined),
            array: self.timing.erase,
            times: u64::from(self.geometry.blocks_per_plane) * self.turns(),
        }
    }

    /// Programs of the pages of each type in `blocks` blocks of every plane.
    fn program(&self, blocks: u64) -> impl Iterator<Item = Step> + '_ {
        let pages = u64::from(self.geometry.pages_per_block.get());
        let types = u64::from(self.timing.page_types());
        (0..types.min(pages)).map(move |kind| Step {
            activity: Activity::Program,
            bus: (self.timing.command + self.timing.transfer) * u64::from(self.joined),
            array: self.timing.program(kind as u32),
            times: (pages - kind).div_ceil(types) * blocks * self.turns(),
        })
    }

    /// The flash operations of `order`; `logical_blocks` of a plane hold the logical pages.
    fn steps(&self, order: Sanitize, logical_blocks: u64) -> Vec<Step> {
        let mut steps = Vec::new();
        if let SanitizeMethod::Overwrite { passes } = order.method {
            for _ in 0..passes {
                steps.push(self.erase());
                steps.extend(self.program(u64::from(self.geometry.blocks_per_plane)));
            }
        }
        // A page that is to be written again must be erased.
        if order.method != SanitizeMethod::CryptoErase || order.stays_allocated {
            steps.push(self.erase());
        }
        if order.stays_allocated {
            steps.extend(self.program(logical_blocks));
        }
        steps
    }

    fn time(&self, step: &Step) -> Time {
        (step.bus * self.dies_of_channel()).max(step.bus + step.array) * step.times
    }
}

impl Ssd {
    fn sanitize_work(&self) -> Work {
        let (geometry, timing) = (*self.flash.array.geometry(), *self.flash.array.timing());
        let joined = match self.config.flash.multi_plane {
            MultiPlane::Off => 1,
            MultiPlane::SamePage | MultiPlane::Any => geometry.planes_per_die,
        };
        Work { geometry, timing, joined }
    }

    fn sanitize_steps(&self, order: Sanitize) -> (Work, Vec<Step>) {
        let work = self.sanitize_work();
        let of_plane =
            u64::from(self.flash.ftl.logical_pages()).div_ceil(work.geometry.planes().into());
        let blocks = of_plane.div_ceil(work.geometry.pages_per_block.get().into());
        (work, work.steps(order, blocks))
    }

    /// How long `order` takes once the SSD is idle.
    pub(super) fn time_to_sanitize(&self, order: Sanitize) -> Time {
        let key = match order.method {
            SanitizeMethod::CryptoErase => KEY_CHANGE,
            _ => Time::ZERO,
        };
        let (work, steps) = self.sanitize_steps(order);
        steps.iter().fold(key, |time, step| time + work.time(step))
    }

    /// Does `order` from `now` on. Requests inside end first.
    pub(super) fn sanitize_all(&mut self, now: Time, order: Sanitize) -> Sanitized {
        if self.requests.nobody_is_inside() {
            self.power.wake(now, &mut self.log);
        }
        // Operations in progress end first: cleaning that continued after the erase would copy data
        // that no longer exist, and the FTL's tables would describe the old state.
        let begins = self.drain(now.max(self.power.awake_at));
        let deallocates_only =
            order.method == SanitizeMethod::CryptoErase && !order.stays_allocated;
        let emptied = if deallocates_only {
            self.forget_all(begins);
            Ok(())
        } else {
            self.start_anew(order)
        };
        let done = self.log_steps(begins, order);
        let ends = self.drain(done);
        self.log.busy((PartKind::Controller, 0), Activity::InService, (begins, ends));
        self.power.last_activity = ends;
        Sanitized { ends, failed: emptied.is_err() }
    }

    /// Lets all operations in progress end; returns the end of the last, or `from` if that is
    /// later.
    fn drain(&mut self, from: Time) -> Time {
        let mut at = from;
        while let Some(reached) = self.step(Time::MAX) {
            at = at.max(reached);
        }
        at
    }

    /// No logical page is mapped any more; the FTL may erase what that leaves without data.
    fn forget_all(&mut self, now: Time) {
        for page in 0..self.flash.ftl.logical_pages() {
            self.buffer.trim(page);
            self.flash.trim(page);
            for op in std::mem::take(&mut self.flash.ops) {
                self.enqueue_op(now, op, NO_OWNER);
            }
        }
    }

    /// All blocks are erased, as often as `order` requires; then the logical pages are written, if they stay allocated.
    ///
    /// # Errors
    /// Too few blocks are left for that.
    fn start_anew(&mut self, order: Sanitize) -> Result<(), ssdyno_ftl::ReadOnly> {
        let erases = match order.method {
            SanitizeMethod::Overwrite { passes } => u32::from(passes) + 1,
            SanitizeMethod::BlockErase | SanitizeMethod::CryptoErase => 1,
        };
        let geometry = *self.flash.array.geometry();
        let worn: Vec<u32> =
            (0..geometry.blocks()).map(|block| self.flash.ftl.erases(block) + erases).collect();
        let (flash, config) = (&self.config.flash, &self.config.ftl);
        let facts = FtlFacts { geometry, flash, config, seed: self.seed };
        // They are made as they were before: neither can be refused.
        let pages_per_block = geometry.pages_per_block.get();
        let mut ftl = ssdyno_ftl::build(&facts).map_err(|_| ssdyno_ftl::ReadOnly)?;
        let pages = ftl.logical_pages();
        self.buffer.pages =
            WriteBuffer::new(&self.config.buffer, geometry.page_bytes, pages_per_block, pages)
                .map_err(|_| ssdyno_ftl::ReadOnly)?;
        ftl.start_worn(&worn);
        self.buffer.read_only = false;
        let filled = if order.stays_allocated { fill(ftl.as_mut()) } else { Ok(()) };
        self.flash.ftl = ftl;
        self.flash.agree();
        self.flash.contents_start_anew();
        filled
    }

    /// Reports what dies and channels do for `order` from `begins` on; gives the time when they have
    /// done it.
    fn log_steps(&mut self, begins: Time, order: Sanitize) -> Time {
        let (work, steps) = self.sanitize_steps(order);
        let mut at = begins;
        if order.method == SanitizeMethod::CryptoErase {
            at += KEY_CHANGE;
        }
        let (dies, channels) = (work.geometry.dies() as u16, work.geometry.channels as u16);
        for step in steps {
            let ends = at + work.time(&step);
            let on_bus = step.bus * step.times;
            for index in 0..channels {
                let busy = (at, at + on_bus * work.dies_of_channel());
                self.log.busy((PartKind::Channel, index), Activity::Transfer, (busy.0, busy.1));
            }
            for index in 0..dies {
                let part = PartEvent::new(PartKind::Die, index);
                self.log.busy((PartKind::Die, index), Activity::Transfer, (at, at + on_bus));
                self.log_array(part, at + on_bus, &step, work.joined);
            }
            at = ends;
        }
        at
    }

    /// What the array of one die does in `step`, without pauses, from `from` on.
    fn log_array(&mut self, part: PartEvent, mut from: Time, step: &Step, joined: u32) {
        let (activity, cause) = (step.activity, FlashCause::Host);
        let at_once = (OPERATIONS_MAX / u64::from(joined)).max(1);
        let mut left = step.times;
        while left > 0 {
            let times = left.min(at_once);
            let to = from + step.array * times;
            let operations = (times * u64::from(joined)).min(OPERATIONS_MAX) as u8;
            self.log.push(Busy { part, activity, cause, operations, from, to });
            (from, left) = (to, left - times);
        }
    }
}

/// Writes every logical page, at once.
fn fill(ftl: &mut dyn Ftl) -> Result<(), ssdyno_ftl::ReadOnly> {
    let mut ops = Vec::new();
    for page in 0..ftl.logical_pages() {
        ops.clear();
        ftl.write(page, Plane::Any, &mut ops)?;
    }
    Ok(())
}
