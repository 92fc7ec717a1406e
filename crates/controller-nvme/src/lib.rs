//! The NVMe controller between the host and a [`Device`].
//!
//! **Two parts.** [`NvmeSubsystem`] (`subsystem/`) is controller, namespaces, features, log pages and commands over
//! any device; it knows no bus, and moves data through [`HostData`]. [`NvmeController`] is the PCI transport in front of
//! it: registers, doorbells, queues, arbitration, data in pages of host memory, interrupts.
//!
//! Key types: these two ([`NvmeController`] is a [`PciDevice`]), [`NvmeSetup`] (the `[nvme]` table, and what it must know of the
//! device), [`BehindLink`] (a device that has no link to the host, as an NVMe controller has one). The controller does
//! what NVM Express base 2.0c and NVM command set 1.0c ask of an I/O controller: registers, queues,
//! arbitration, admin and I/O commands, asynchronous events, interrupts.
//!
//! **What is charged where.** A command costs, in this order: `fetch_latency` and the time of its
//! entry on the wire (a burst of entries shares one read); for a PRP list once more for each of its
//! pages; then everything that the device charges: firmware, flash, DRAM, and the data on
//! the host link; then the completion entry on the wire and `completion_latency`; its interrupt
//! message follows on the wire. `host_link.latency` would charge the first and the last again, so a
//! device file with `[nvme]` leaves it at zero; [`NvmeController::in_front_of`] refuses it otherwise. Entries
//! queue behind entries on the wire, not behind data: they are 2 % of it with requests of 4 KiB.
//!
//! **Versions.** What the version that it reports lacks, the controller neither announces nor takes
//! (`subsystem/versions.rs`).
//!
//! Errors: [`ConfigError`] from a device file. Nothing that the host does panics: malformed commands
//! end with the status that the specification names, malformed set-up with CSTS.CFS, doorbells that
//! cannot be with an asynchronous event.
//!
//! Not modelled: scatter-gather lists, metadata and end-to-end protection, fused commands, several
//! controllers, firmware download, self-test, the controller memory buffer; energy and data
//! bandwidth that queue entries take from the link; throttling by temperature.
//!
//! **Power states** (S1-45). States after the first limit the average power of the device, and slow it if it would draw
//! more; `governor.rs` of `ssdyno-ssd` describes how. A state that allows no more than the device draws without work is
//! refused as an invalid field. The device's low-power states come after them.

mod admin;
mod admin_queues;
mod answer;
mod arbiter;
mod behind_link;
mod commands;
mod control;
mod faults;
mod fetch;
mod id_ctrl;
mod interrupts;
mod io;
mod pages;
mod pipe;
mod post;
mod prp;
mod queue_features;
mod queues;
mod registers;
mod subsystem;
mod timers;
mod wire;

use ssdyno_block::{ConfigError, FaultPlan, Time};
use ssdyno_pci::{BusMaster, FaultyDevice, Identity, PciDevice};
use ssdyno_spec::nvme::registers::DOORBELLS;

use ssdyno_device::Device;
use ssdyno_device::nvme::NvmeSetup;

pub use behind_link::BehindLink;
pub use faults::{ControllerFault, Effect, Stuck};
pub use id_ctrl::{IdCtrl, IdCtrlError, NotAscii, PowerStateFacts};
pub use subsystem::{
    AdminOutcome, FailedCommand, FeatureValue, HostData, NvmCommand, NvmStep, NvmeSubsystem,
    SanitizeOrder,
};

use arbiter::Arbiter;
use commands::Commands;

use control::Shutdown;
use faults::Faults;
use interrupts::Interrupts;
use pipe::Pipes;
use queues::Queues;
use registers::Registers;
use timers::Timers;
use wire::Wire;

/// The work of the controller since it was built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ControllerCounters {
    /// Reads of submission queues over the bus.
    pub fetches: u64,
    /// Entries that they brought.
    pub commands: u64,
    /// Pages of PRP lists read.
    pub list_reads: u64,
    /// Completion entries written.
    pub completions: u64,
    /// Interrupt messages sent.
    pub interrupts: u64,
    /// Doorbell writes that were refused.
    pub bad_doorbells: u64,
}

/// An NVMe controller in front of `D`.
#[derive(Debug)]
pub struct NvmeController<D> {
    subsystem: NvmeSubsystem<D>,
    wire: Wire,
    registers: Registers,
    queues: Queues,
    arbiter: Arbiter,
    commands: Commands,
    interrupts: Interrupts,
    faults: Faults,
    pipes: Pipes,
    timers: Timers,
    shutdown: Shutdown,
    counters: ControllerCounters,
}

impl<D: Device> NvmeController<D> {
    /// A controller as `setup` says in front of `device`.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong.
    pub fn in_front_of(device: D, setup: NvmeSetup) -> Result<NvmeController<D>, ConfigError> {
        let NvmeSetup { nvme, host_link, depth, .. } = &setup;
        nvme.check()?;
        let wire = Wire::new(host_link, nvme.fetch_entries)?;
        // A list entry names one page of 4 KiB at least. The largest transfer therefore needs at
        // most this many entries, whatever page size the host chooses in CC.MPS.
        let (depth, list_entries) = (*depth, (nvme.max_transfer.0 / 4096) as usize);
        let subsystem = NvmeSubsystem::new(device, setup)?;
        let config = subsystem.config();
        let mut controller = NvmeController {
            wire,
            registers: Registers::new(config, subsystem.version()),
            queues: Queues::new(config),
            arbiter: Arbiter::new(config.io_queues),
            commands: Commands::new(depth, list_entries),
            interrupts: Interrupts::new(config.vectors().max(1)),
            faults: Faults::default(),
            pipes: Pipes::new(config.fetches, depth),
            timers: Timers::default(),
            shutdown: Shutdown::default(),
            counters: ControllerCounters::default(),
            subsystem,
        };
        // The arbiter and the interrupts start with neutral values. The features give them the
        // values that the device file asks for, as after every reset.
        controller.reset_queue_features();
        Ok(controller)
    }

    /// The device behind the controller: its events, facts and health.
    pub fn device(&self) -> &D {
        self.subsystem.device()
    }
    /// The device behind the controller.
    pub fn device_mut(&mut self) -> &mut D {
        self.subsystem.device_mut()
    }
    /// True if there are completions whose interrupt of `vector` is still to be sent, because others are
    /// waited for or because it is masked.
    pub fn interrupt_is_due(&self, vector: u16) -> bool {
        self.interrupts.is_due(vector)
    }
    /// The work of the controller since it was built.
    pub fn counters(&self) -> ControllerCounters {
        self.counters
    }
    /// When the entry in `place` of completion queue `queue` was last written to memory: the end of the
    /// command for the controller, before the interrupt and the host.
    #[inline]
    pub fn written_at(&self, queue: u16, place: u16) -> Option<Time> {
        self.queues.completion.get(usize::from(queue))?.as_ref()?.written_at(place)
    }
    /// Commands inside the controller that their host waits for, without asynchronous event requests.
    pub fn commands_in_flight(&self) -> usize {
        let parked = |slot: &u32| self.commands.get(*slot).state != commands::State::Parked;
        self.commands.waiting().filter(parked).count()
    }
    /// The hints that Dataset Management gave for `namespace`, the latest last; the newest 256 are
    /// kept (S1-44). No model acts on them.
    pub fn hints(&self, namespace: u32) -> &[ssdyno_spec::nvme::DatasetRange] {
        self.subsystem.hints(namespace)
    }

    /// From now on `fault` hits the commands that it fits.
    pub fn inject(&mut self, fault: ControllerFault) {
        self.faults.add(fault);
    }
    /// The next `count` interrupt messages are lost.
    pub fn lose_interrupts(&mut self, count: u32) {
        self.faults.lose_interrupts(count);
    }
    /// The controller hangs from now on.
    pub fn hang(&mut self, how: Stuck) {
        self.faults.stuck = Some(how);
    }
    /// No fault is left; a hanging controller goes on.
    pub fn clear_faults(&mut self) {
        self.faults.clear();
    }
    /// The controller breaks: CSTS.CFS is set, and nothing moves until it is reset (base 2.0c,
    /// clause 9.5).
    pub fn fail(&mut self) {
        self.registers.set_fatal();
    }

    /// Nothing moves.
    #[inline]
    fn is_halted(&self) -> bool {
        self.faults.stuck.is_some()
            || self.registers.status & ssdyno_spec::nvme::registers::CSTS_FATAL != 0
    }

    /// Everything that is due at `at`.
    fn step(&mut self, at: Time, bus: &mut dyn BusMaster) {
        // The order within one instant is fixed: what comes from the host, then the device, then
        // timers, then what goes to the host. Two runs with the same seed therefore post
        // completions alike.
        while let Some(fetch) = self.pipes.fetches.take_due(at) {
            self.arrive(at, fetch, bus);
        }
        while let Some(slot) = self.pipes.lists.take_due(at) {
            self.begin(at, slot, bus);
        }
        if self.subsystem.device().next_event().is_some_and(|due| due <= at) {
            self.subsystem.device_mut().reap(at, &mut self.pipes.answers);
            self.take_answers(at, bus);
        }
        while let Some(timer) = self.timers.pop_due(at) {
            self.timer(at, timer, bus);
        }
        while let Some(slot) = self.pipes.posts.take_due(at) {
            self.post(at, slot, bus);
        }
        // Interrupts follow all completions of this instant, so that entries that are posted
        // together share one message. Fetches come last: completions have freed their places by
        // now.
        self.signal(at, bus);
        self.start_fetches(at);
    }

    /// The next time at which something but the device is due, [`Time::MAX`] for none.
    #[inline]
    fn next_own(&self) -> Time {
        self.pipes.due().min(self.timers.next_time())
    }

    /// The next time at which something is due, [`Time::MAX`] for none.
    #[inline]
    fn due(&self) -> Time {
        if self.is_halted() {
            return Time::MAX;
        }
        self.next_own().min(self.subsystem.device().next_event().unwrap_or(Time::MAX))
    }

    /// The device alone, until `until` or until it answers; gives the time reached, and whether it
    /// has answered.
    #[inline(always)]
    fn run_device(&mut self, until: Time, bus: &mut dyn BusMaster) -> (Time, bool) {
        // If nothing is waited for, the time reached is that of the device's last event: the next event must not
        // precede it.
        let limit = (until < Time::LAST).then_some(until);
        let at = self
            .subsystem
            .device_mut()
            .run_until_completion(limit, &mut self.pipes.answers)
            .unwrap_or(until);
        // Only a completion can make room for a fetch or make an interrupt due. Without one,
        // nothing in the controller has changed while the device ran alone.
        let answered = !self.pipes.answers.is_empty();
        if answered {
            self.take_answers(at, bus);
            self.signal(at, bus);
            self.start_fetches(at);
        }
        (at, answered)
    }

    /// Completions of the device go on their way to the host.
    #[inline(always)]
    fn take_answers(&mut self, at: Time, bus: &mut dyn BusMaster) {
        for place in 0..self.pipes.answers.len() {
            self.device_done(at, self.pipes.answers[place], bus);
        }
        self.pipes.answers.clear();
    }
}

/// The plan hits I/O commands, and interrupts, those of the admin queue too.
impl<D: Device> FaultyDevice for NvmeController<D> {
    fn arm(&mut self, plan: FaultPlan) {
        self.faults.arm(plan);
    }

    fn fault_plan(&self) -> Option<&FaultPlan> {
        self.faults.plan()
    }

    fn fault_plan_mut(&mut self) -> &mut FaultPlan {
        self.faults.plan_mut()
    }

    fn hang_until_reset(&mut self) {
        self.hang(Stuck::UntilReset);
    }
}

impl<D: Device> PciDevice for NvmeController<D> {
    fn identity(&self) -> Identity {
        self.subsystem.config().identity()
    }

    fn bar_read(&mut self, _now: Time, bar: u8, offset: u32) -> u32 {
        if bar == 0 { self.registers.read(offset) } else { 0 }
    }

    #[inline(always)]
    fn bar_write(&mut self, now: Time, bar: u8, offset: u32, value: u32) {
        if bar != 0 {
            return;
        }
        if offset >= DOORBELLS {
            return self.doorbell(now, offset, value);
        }
        self.write_register(now, offset, value);
    }

    #[inline(always)]
    fn may_come_early(&self, bar: u8, offset: u32, value: u32) -> bool {
        bar == 0
            && offset >= DOORBELLS
            && self.makes_needless_room(offset - DOORBELLS, value & 0xffff)
    }

    fn reset(&mut self, now: Time) {
        self.function_level_reset(now);
    }

    #[inline(always)]
    fn advance(&mut self, now: Time, bus: &mut dyn BusMaster) {
        if self.is_halted() {
            return;
        }
        // A register write changes state at once but has no bus to act on. Completions that
        // waited for room and interrupts that a mask held back go out here.
        self.after_writes(now, bus);
        // Events that were due while the bus stood still happen now.
        while self.next_event().is_some_and(|due| due <= now) {
            self.step(now, bus);
        }
    }

    fn next_event(&self) -> Option<Time> {
        let due = self.due();
        (due < Time::MAX).then_some(due)
    }

    #[inline(always)]
    fn run(&mut self, from: Time, until: Time, bus: &mut dyn BusMaster) -> (Time, Time) {
        let mut at = from;
        loop {
            if self.is_halted() {
                return (at, Time::MAX);
            }
            let own = self.next_own();
            let device = self.subsystem.device().next_event().unwrap_or(Time::MAX);
            let next = own.min(device);
            if next > until {
                return (at, next);
            }
            // The device has an event in the past if something else moved the time on. Running
            // it alone would give a time before `at`, so the whole step is made.
            let late = at > device;
            at = at.max(next);
            if at >= own || late {
                self.step(at, bus);
            } else {
                // The device may run up to the last instant before the controller itself has
                // something to do. At that instant the order of `step` decides, and the device
                // must not be ahead of it.
                let alone = own.saturating_sub(Time::from_ps(1)).min(until);
                match self.run_device(alone, bus) {
                    (reached, true) => at = reached,
                    // A long way without a completion: others may have to look after things.
                    (reached, false) if reached < alone => return (reached, self.due()),
                    (_, false) => continue,
                }
            }
            // The host has to see what was just written, such as an interrupt, before time goes
            // on. Its reaction may come earlier than the next event here.
            if bus.is_shown() {
                return (at, self.due());
            }
        }
    }
}
