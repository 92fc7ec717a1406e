//! Between the controller and the flash: operations out, completions in.

use ssdyno_block::Time;
use ssdyno_device::FlashWork;
use ssdyno_engine::EventQueue;
use ssdyno_engine::events::{Activity, EventLog, FlashCause};
use ssdyno_flash::{FlashArray, FlashEvent, FlashOp, Geometry, NO_OWNER, OpKind, PlanePort};
use ssdyno_ftl::{Ftl, FtlConfig, Placement, Plane, ReadOnly};

use super::Ssd;
use super::contents::Contents;
use super::event::Event;
use crate::task::{Goal, Owner};

/// Whose turn it is to be written among dies that are equally busy, and among the planes of a die.
///
/// Each die counts its planes on its own. With one counter for both, a die whose number shares a
/// factor with the number of its planes would get writes in some of them only.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    /// The die after the one that was written last.
    die: u32,
    /// The next plane of each die.
    planes: Vec<u32>,
}

impl Turns {
    /// The next plane of the die with the least `load`; of equals, of the first in turn.
    fn take(&mut self, geometry: &Geometry, load: impl Fn(u32) -> u32) -> u32 {
        let (dies, planes) = (geometry.dies(), geometry.planes_per_die);
        let (mut best, mut least) = (self.die, u32::MAX);
        for die in (self.die..dies).chain(0..self.die) {
            let load = load(die);
            if load < least {
                (best, least) = (die, load);
            }
            // No die can have less than zero, so the search ends at the first idle die. At light
            // load it examines one die instead of all of them for each page written.
            if load == 0 {
                break;
            }
        }
        self.die = if best + 1 < dies { best + 1 } else { 0 };
        self.planes.resize(dies as usize, 0);
        let next = &mut self.planes[best as usize];
        let plane = *next;
        *next = if plane + 1 < planes { plane + 1 } else { 0 };
        best * planes + plane
    }
}

/// The flash, and the FTL that decides what is done with it.
#[derive(Debug)]
pub(super) struct FlashSide {
    pub(super) ftl: Box<dyn Ftl>,
    pub(super) array: FlashArray,
    /// The last operations that the FTL requested.
    pub(super) ops: Vec<FlashOp>,
    /// Owners of operations that an event has ended.
    done: Vec<u32>,
    /// Whose turn it is, where the device chooses the plane of a write.
    turns: Option<Turns>,
    /// The FTL works while a die is quiet.
    background: bool,
    /// What was queued so far. An FTL that merges logs has no planes to count by, and warnings that
    /// compare programs with the size of the buffer need the count for every FTL.
    pub(super) work: FlashWork,
    /// Only in tests.
    pub(super) contents: Contents,
}

impl FlashSide {
    pub(super) fn new(ftl: Box<dyn Ftl>, array: FlashArray, config: &FtlConfig) -> FlashSide {
        FlashSide {
            ftl,
            array,
            // One write can start the cleaning of a block, which appends a read and a program per
            // valid page. The reserve avoids an allocation in the path of a request.
            ops: Vec::with_capacity(1024),
            done: Vec::with_capacity(64),
            turns: (config.placement == Placement::LeastBusy).then(Turns::default),
            background: config.free_blocks_background > 0.0,
            work: FlashWork::default(),
            contents: Contents::default(),
        }
    }

    /// Asks what must be done to read `page`; false if it holds no data.
    #[inline(always)]
    pub(super) fn read(&mut self, page: u32) -> bool {
        self.ops.clear();
        self.ftl.read(page, &mut self.ops)
    }

    /// Asks what must be done to write `page`: on the least busy die, if the FTL is to be told so.
    ///
    /// # Errors
    /// The flash is worn out.
    #[inline(always)]
    pub(super) fn write(&mut self, page: u32) -> Result<(), ReadOnly> {
        self.ops.clear();
        let plane = match &mut self.turns {
            Some(turns) => {
                let array = &self.array;
                Plane::Preferred(turns.take(array.geometry(), |die| array.load(die)))
            }
            None => Plane::Any,
        };
        self.ftl.write(page, plane, &mut self.ops)
    }

    /// Forgets `page`; asks what must be done for that.
    pub(super) fn trim(&mut self, page: u32) {
        self.ops.clear();
        self.ftl.trim(page, &mut self.ops);
    }

    /// Asks what makes the mapping table durable.
    pub(super) fn flush(&mut self) {
        self.ops.clear();
        self.ftl.flush(&mut self.ops);
    }

    /// Tells the flash what the FTL has written behind its back.
    pub(super) fn agree(&mut self) {
        for block in 0..self.array.geometry().blocks() {
            self.array.set_written(block, self.ftl.pages_written(block));
        }
    }

    /// Queues `ops` of one plane, for which no request waits.
    fn enqueue_cleaning(
        &mut self,
        now: Time,
        ops: &[FlashOp],
        queue: &mut EventQueue<Event>,
        log: &mut EventLog,
    ) {
        self.work.erases += ops.iter().filter(|op| op.kind == OpKind::Erase).count() as u64;
        let mut port = PlanePort { now, queue, log, done: &mut self.done };
        self.array.enqueue_all(ops, &mut port);
    }

    #[inline]
    fn enqueue_op(
        &mut self,
        now: Time,
        op: FlashOp,
        owner: u32,
        queue: &mut EventQueue<Event>,
        log: &mut EventLog,
    ) {
        // The tag identifies the data of a page in tests. Cleaning moves pages without a tag of its
        // own, so that a moved page keeps the identity of the data it holds.
        if cfg!(debug_assertions) && op.cause == FlashCause::Host {
            self.array.tag_next(self.contents.tag());
        }
        match op.kind {
            OpKind::Program => self.work.host_pages += u64::from(op.cause == FlashCause::Host),
            OpKind::Erase => self.work.erases += 1,
            OpKind::Read | OpKind::Copy => {}
        }
        let mut port = PlanePort { now, queue, log, done: &mut self.done };
        self.array.enqueue(op, owner, &mut port);
    }

    /// Something happens in the array: the number of its die.
    #[inline(always)]
    fn handle(
        &mut self,
        now: Time,
        event: FlashEvent,
        queue: &mut EventQueue<Event>,
        log: &mut EventLog,
    ) -> u32 {
        let mut port = PlanePort { now, queue, log, done: &mut self.done };
        self.array.handle(event, &mut port)
    }
}

impl Ssd {
    /// Queues all of `self.flash.ops`; the request waits for what is not cleaning.
    pub(super) fn enqueue_for_request(&mut self, now: Time, slot: u32) {
        // A write does not wait for cleaning that it only triggered. It already pays for it: the
        // cleaning occupies the dies on which later operations queue.
        let waited = self.flash.ops.iter().filter(|op| !op.cause.follows_cleaning()).count();
        for _ in 0..waited {
            self.requests.hold(slot);
        }
        self.enqueue_ops(now, Owner::Request(slot));
    }

    /// Queues a single read in `self.flash.ops`, for which the owner holds one place already; mapping
    /// reads before it get a task of their own.
    #[inline(always)]
    pub(super) fn enqueue(&mut self, now: Time, owner: Owner, page: u32) {
        self.flash.contents.at(page);
        if let Owner::Task(task) = owner {
            self.tasks.add_pending(task);
        }
        if let [op] = self.flash.ops[..]
            && !op.after_mapping
        {
            return self.enqueue_op(now, op, owner.pack());
        }
        // A data read that depends on a mapping page cannot use the address that the FTL knows now:
        // cleaning can move the page meanwhile. The address is looked up again after the mapping
        // read.
        let waits = self.flash.ops.iter().any(|op| op.after_mapping);
        let locate = self.tasks.insert(Goal::Locate { then: owner.pack(), page });
        let mut ops = std::mem::take(&mut self.flash.ops);
        for op in ops.drain(..) {
            let data = op.cause == FlashCause::Host;
            if waits && op.cause == FlashCause::Mapping {
                self.tasks.add_pending(locate);
                self.enqueue_op(now, op, Owner::Task(locate).pack());
            } else if !(waits && data) {
                self.enqueue_op(now, op, if data { owner.pack() } else { NO_OWNER });
            }
        }
        self.flash.ops = ops;
        // The task was inserted before it was known to be needed, because the loop above drains the
        // operations. The common case of one operation returns before this point.
        if !waits {
            self.tasks.remove(locate);
        } else if self.tasks.pending(locate) == 0 {
            let goal = self.tasks.remove(locate);
            self.reach(now, goal);
        }
    }

    /// Queues all of `self.flash.ops`; host and mapping operations complete for `owner`.
    pub(super) fn enqueue_ops(&mut self, now: Time, owner: Owner) {
        let mut ops = std::mem::take(&mut self.flash.ops);
        // Cleaning of one plane arrives as a long run of operations. The array takes the run as one
        // batch, because no request waits for its parts and their single completions are not
        // needed.
        for ops in ops.chunk_by(|op, next| op.cause == next.cause && op.plane == next.plane) {
            if ops.first().is_some_and(|op| op.cause.follows_cleaning()) {
                self.flash.enqueue_cleaning(now, ops, &mut self.queue, &mut self.log);
                continue;
            }
            for op in ops {
                if let Owner::Task(task) = owner {
                    self.tasks.add_pending(task);
                }
                self.enqueue_op(now, *op, owner.pack());
            }
        }
        ops.clear();
        self.flash.ops = ops;
    }

    #[inline]
    pub(super) fn enqueue_op(&mut self, now: Time, op: FlashOp, owner: u32) {
        self.flash.enqueue_op(now, op, owner, &mut self.queue, &mut self.log);
    }

    #[inline(always)]
    pub(super) fn flash_event(&mut self, now: Time, event: FlashEvent) {
        let die = self.flash.handle(now, event, &mut self.queue, &mut self.log);
        if let Some(explain) = &mut self.explain
            && !self.flash.done.is_empty()
        {
            explain.ended(now, die, &self.log);
        }
        // The length is taken once and the loop uses an index: a completion can queue new
        // operations through `self`, which an iterator over `done` would not permit.
        for place in 0..self.flash.done.len() {
            match Owner::unpack(self.flash.done[place]) {
                Owner::Request(slot) => self.operation_done(now, slot),
                Owner::Task(task) => {
                    if let Some(goal) = self.tasks.complete_one(task) {
                        self.reach(now, goal);
                    }
                }
            }
        }
        self.flash.done.clear();
        if let Some(explain) = &mut self.explain {
            explain.settled();
        }
        // Background cleaning starts after the completions of this event, which can queue new work
        // for the same die. Work of the host therefore has precedence over background work.
        if self.flash.background && self.flash.array.is_quiet(die) {
            self.work_in_background(now, die);
        }
    }

    /// The mapping is known that `then` has waited for.
    fn explain_mapping(&mut self, then: u32) {
        let Some(explain) = &mut self.explain else { return };
        let slot = match Owner::unpack(then) {
            Owner::Request(slot) => Some(slot),
            Owner::Task(task) => self.tasks.request(task),
        };
        if let Some(slot) = slot {
            explain.before(slot, None);
        }
    }

    fn work_in_background(&mut self, now: Time, die: u32) {
        let planes = self.flash.array.geometry().planes_per_die;
        for plane in die * planes..(die + 1) * planes {
            self.flash.ops.clear();
            if self.flash.ftl.background(plane, &mut self.flash.ops) {
                let mut ops = std::mem::take(&mut self.flash.ops);
                for op in ops.drain(..) {
                    self.enqueue_op(now, op, NO_OWNER);
                }
                self.flash.ops = ops;
            }
        }
    }

    #[inline(always)]
    fn reach(&mut self, now: Time, goal: Goal) {
        match goal {
            Goal::Modify { slot, page } => {
                if let Some(explain) = &mut self.explain {
                    explain.before(slot, Some(Activity::Read));
                }
                self.write_through(now, slot, page);
                self.request_part_done(now, slot);
            }
            Goal::Locate { then, page } => match self.flash.ftl.locate(page) {
                Some(physical) => {
                    self.explain_mapping(then);
                    let geometry = self.flash.array.geometry();
                    let plane = geometry.block_of_page(physical) / geometry.blocks_per_plane;
                    let op = FlashOp::read(plane, physical, FlashCause::Host);
                    self.flash.contents.at(page);
                    self.enqueue_op(now, op, then);
                }
                // The page was trimmed meanwhile: there is nothing to read.
                None => match Owner::unpack(then) {
                    Owner::Request(slot) => self.operation_done(now, slot),
                    Owner::Task(task) => {
                        if let Some(goal) = self.tasks.complete_one(task) {
                            self.reach(now, goal);
                        }
                    }
                },
            },
            Goal::Fill { slot, page } => {
                self.buffer.fill(page);
                self.operation_done(now, slot);
            }
            Goal::Pad { page } => {
                self.write_back_page(now, page);
                self.after_write_back(now);
            }
            Goal::WrittenBack { page } => self.written_back(now, page),
        }
    }
}

impl FlashSide {
    /// See [`Ssd::check_contents`].
    fn check_contents(&mut self) {
        let pages = self.ftl.logical_pages();
        self.array.keep_contents();
        self.contents.newest = vec![1; pages as usize];
        self.contents.stored = vec![1; pages as usize];
        for page in 0..pages {
            if let Some(physical) = self.ftl.locate(page) {
                self.contents.at(page);
                self.array.set_content(physical, self.contents.tag());
            }
        }
    }

    /// After everything was erased behind the FTL's back: what the flash holds now is right.
    pub(super) fn contents_start_anew(&mut self) {
        if cfg!(debug_assertions) && !self.contents.newest.is_empty() {
            self.check_contents();
        }
    }
}

impl Ssd {
    /// From now on every read of the host that reaches the flash is compared, at the end of its
    /// array phase, with the last data of that page that the FTL had been given when the read was
    /// queued - whatever was cleaned, suspended, joined or overtaken meanwhile - and none newer may
    /// wait in the buffer. A difference panics. For tests: it works only in
    /// builds with debug assertions, and is to be called before the first request.
    pub fn check_contents(&mut self) {
        self.flash.check_contents();
    }

    /// Reads compared since [`check_contents`](Ssd::check_contents).
    pub fn contents_compared(&self) -> u64 {
        self.flash.array.contents_compared()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ssdyno_flash::Divisor;

    fn geometry(dies: u32, planes: u32) -> Geometry {
        Geometry {
            channels: dies,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: planes,
            blocks_per_plane: 1,
            pages_per_block: Divisor::new(1),
            page_bytes: 512,
        }
    }

    proptest! {
        /// Whichever parts are busy, a die that is written goes through its planes; if nothing is
        /// busy, all planes are written equally often.
        #[test]
        fn planes_take_turns(
            dies in 1u32..40,
            planes in 1u32..9,
            loads in prop::collection::vec(0u32..4, 40),
            writes in 1u32..400,
        ) {
            let geometry = geometry(dies, planes);
            for busy in [true, false] {
                let mut turns = Turns::default();
                let mut written = vec![0u32; (dies * planes) as usize];
                let load = |die: u32| if busy { loads[die as usize] } else { 0 };
                let least = (0..dies).map(load).min().unwrap();
                for _ in 0..writes {
                    let plane = turns.take(&geometry, load);
                    prop_assert_eq!(load(plane / planes), least);
                    written[plane as usize] += 1;
                }
                let uneven = |written: &[u32]| {
                    written.iter().max().unwrap() - written.iter().min().unwrap()
                };
                for die in written.chunks(planes as usize) {
                    prop_assert!(uneven(die) <= 1, "{written:?}");
                }
                let of_dies: Vec<u32> =
                    written.chunks(planes as usize).map(|die| die.iter().sum()).collect();
                let idlest: Vec<u32> =
                    (0..dies).filter(|d| load(*d) == least).map(|d| of_dies[d as usize]).collect();
                prop_assert!(uneven(&idlest) <= 1, "{of_dies:?}");
            }
        }
    }
}
