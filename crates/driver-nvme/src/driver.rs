//! The driver: what its users call.

use alloc::boxed::Box;
use alloc::vec::Vec;

use ssdyno_block::{Time, Token};
use ssdyno_pci::{InterruptMode, PciFunction};
use ssdyno_spec::nvme::registers::Capabilities;
use ssdyno_spec::nvme::{AsynchronousEvent, IdentifyController, Status, oncs};

use crate::admin::{AdminQueue, Owner};
use crate::queue::IoQueue;
use crate::steps::Step;
use crate::{
    AdminCommand, AdminCompletion, AdminError, IoCommand, IoCompletion, IoError, IoOperation,
    Namespace, NvmeConfig, NvmeError, PriorityClass, QueueChoice, QueueSelector,
};

/// The least time limit and polling interval.
const LIMIT_MIN: Time = Time::from_ns(1);

/// What the driver is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriverState {
    /// It was not started, or was stopped.
    Stopped,
    /// It brings the controller up.
    Starting,
    /// It takes commands.
    Ready,
    /// It resets the controller and brings it up again.
    Recovering,
    /// It waits for the last commands and shuts the controller down.
    Stopping,
    /// It gave up.
    Failed(NvmeError),
}

/// Why the driver reset the controller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ResetCause {
    /// A command was not answered, and its abort did not help.
    CommandTimeout,
    /// An admin command was not answered.
    AdminTimeout,
    /// CSTS.CFS was set.
    Fatal,
    /// It did not come up after the reset before.
    NotReady,
}

/// Something that a driver's user may want to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriverEvent {
    /// The controller reported an event. It reports no further one of the kind until the log page that
    /// it names was read.
    Asynchronous(AsynchronousEvent),
    /// A feature of the configuration was refused; the driver goes on without.
    FeatureRefused {
        /// Its identifier.
        identifier: u8,
        /// Why.
        status: Status,
    },
    /// The controller is being reset.
    Reset(ResetCause),
}

/// What the driver did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NvmeCounters {
    /// I/O commands given to the controller; a long request counts as several.
    pub commands: u64,
    /// I/O completions taken.
    pub completions: u64,
    /// Writes of submission tail doorbells of I/O queues.
    pub submission_doorbells: u64,
    /// Writes of completion head doorbells of I/O queues.
    pub completion_doorbells: u64,
    /// Completions that the watchdog found, because no interrupt had come.
    pub lost_interrupts: u64,
    /// Aborts sent.
    pub aborts: u64,
    /// Resets.
    pub resets: u64,
    /// Completions that nobody asked for, or with a head that cannot be: faults of the controller.
    pub strays: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Stopped,
    /// CC.EN was cleared; CSTS.RDY is to follow.
    Disabling {
        until: Time,
    },
    /// CC.EN was set; CSTS.RDY is to follow.
    Enabling {
        until: Time,
    },
    /// Admin commands bring the controller up.
    Configuring,
    Ready,
    /// The last commands are waited for.
    Draining,
    /// Admin commands delete the queues.
    Deleting,
    /// CC.SHN was set; CSTS.SHST is to follow.
    ShuttingDown {
        until: Time,
    },
    /// CC.EN was cleared for the last time.
    Stopping {
        until: Time,
    },
    Failed(NvmeError),
}

impl Phase {
    /// CC.EN is, or may be, clear.
    pub(crate) fn is_disabled(self) -> bool {
        matches!(
            self,
            Phase::Stopped
                | Phase::Disabling { .. }
                | Phase::Enabling { .. }
                | Phase::Stopping { .. }
                | Phase::Failed(_)
        )
    }
}

/// A driver of one controller. See the crate's documentation for how it is used.
#[derive(Debug)]
pub struct NvmeDriver {
    pub(crate) config: NvmeConfig,
    pub(crate) phase: Phase,
    /// The phases of a start follow a reset, not a call of `start`.
    pub(crate) recovering: bool,
    /// A reset ends the driver's work instead of bringing the controller up again.
    pub(crate) stopping: bool,
    /// The admin command of the driver's own that is with the controller.
    pub(crate) step: Option<Step>,
    pub(crate) capabilities: Capabilities,
    pub(crate) version: u32,
    pub(crate) interrupts: Option<InterruptMode>,
    pub(crate) vectors: u16,
    pub(crate) controller: Option<Box<IdentifyController>>,
    pub(crate) transfer_bytes: u32,
    pub(crate) namespaces: Vec<Namespace>,
    /// Identifiers and structures of a scan that goes on.
    pub(crate) scanned: (Vec<u32>, Vec<Namespace>),
    pub(crate) selector: QueueSelector,
    pub(crate) admin: Option<AdminQueue>,
    pub(crate) queues: Vec<IoQueue>,
    pub(crate) counters: NvmeCounters,
    pub(crate) admin_done: Vec<AdminCompletion>,
    pub(crate) events: Vec<DriverEvent>,
    /// When a register or the admin queue is to be looked at.
    pub(crate) look_at: Time,
    /// No deadline of a command is earlier.
    pub(crate) watch_at: Time,
    /// Resets since the last completion, and how many completions there were then.
    pub(crate) resets_in_a_row: (u32, u64),
}

impl NvmeDriver {
    /// A driver that was not started.
    pub fn new(mut config: NvmeConfig) -> NvmeDriver {
        // A time limit of nothing would be over before anything can happen.
        for limit in [&mut config.io_timeout, &mut config.admin_timeout] {
            *limit = (*limit).max(LIMIT_MIN);
        }
        config.start_poll = config.start_poll.map(|interval| interval.max(LIMIT_MIN));
        let selector = QueueSelector::new(config.policy, config.cores, config.queues_max);
        NvmeDriver {
            config,
            phase: Phase::Stopped,
            recovering: false,
            stopping: false,
            step: None,
            capabilities: Capabilities(0),
            version: 0,
            interrupts: None,
            vectors: 0,
            controller: None,
            transfer_bytes: 0,
            namespaces: Vec::new(),
            scanned: (Vec::new(), Vec::new()),
            selector,
            admin: None,
            queues: Vec::new(),
            counters: NvmeCounters::default(),
            admin_done: Vec::new(),
            events: Vec::new(),
            look_at: Time::MAX,
            watch_at: Time::MAX,
            resets_in_a_row: (0, 0),
        }
    }

    /// What the driver is doing.
    pub fn state(&self) -> DriverState {
        match self.phase {
            Phase::Stopped => DriverState::Stopped,
            Phase::Disabling { .. } | Phase::Enabling { .. } | Phase::Configuring => {
                if self.recovering { DriverState::Recovering } else { DriverState::Starting }
            }
            Phase::Ready => DriverState::Ready,
            Phase::Draining
            | Phase::Deleting
            | Phase::ShuttingDown { .. }
            | Phase::Stopping { .. } => DriverState::Stopping,
            Phase::Failed(error) => DriverState::Failed(error),
        }
    }

    /// The configuration.
    pub fn config(&self) -> &NvmeConfig {
        &self.config
    }

    /// What the controller says of itself; `None` before it was asked.
    pub fn controller(&self) -> Option<&IdentifyController> {
        self.controller.as_deref()
    }

    /// The namespaces, by identifier.
    pub fn namespaces(&self) -> &[Namespace] {
        &self.namespaces
    }

    /// The I/O queues in use are 1 to this.
    pub fn queues(&self) -> u16 {
        self.queues.len() as u16
    }

    /// Commands that can be outstanding in all (S1-37).
    pub fn outstanding_limit(&self) -> u64 {
        self.queues.iter().map(|queue| u64::from(queue.entries - 1)).sum()
    }

    /// Commands that are outstanding on `queue`.
    pub fn outstanding(&self, queue: u16) -> u32 {
        self.queue(queue).map_or(0, IoQueue::outstanding)
    }

    /// The interrupt vector of I/O queue `queue`; vector 0 is the admin queue's (S1-32).
    pub fn vector(&self, queue: u16) -> Option<u16> {
        self.interrupts?;
        self.queue(queue).map(|queue| queue.vector)
    }

    /// Which interrupts are in use; `None`: it is polled.
    pub fn interrupt_mode(&self) -> Option<InterruptMode> {
        self.interrupts
    }

    /// Most data of one command of the controller, in bytes; more is split.
    pub fn transfer_bytes_max(&self) -> u32 {
        self.transfer_bytes
    }

    /// What the driver did.
    pub fn counters(&self) -> NvmeCounters {
        self.counters
    }

    /// The queue for the next command of `core` for a process of `class`, and the lock that the core
    /// has to hold while it [submits](NvmeDriver::submit).
    #[inline]
    pub fn choose(&mut self, core: u16, class: PriorityClass) -> QueueChoice {
        self.selector.choose(core, class)
    }

    /// Puts `command` into `queue` and tells the controller. `token` comes back once, with the
    /// completion; it should be unique among the outstanding ones.
    ///
    /// # Errors
    /// The command was not taken.
    #[inline]
    pub fn submit<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: Time,
        queue: u16,
        command: &IoCommand<'_>,
        token: Token,
    ) -> Result<(), IoError> {
        self.stage(function, now, queue, command, token)?;
        self.ring_doorbell(function, queue);
        Ok(())
    }

    /// Puts `command` into `queue`; the controller sees it with the next
    /// [`ring_doorbell`](NvmeDriver::ring_doorbell) of the queue.
    ///
    /// # Errors
    /// The command was not taken.
    #[inline]
    pub fn stage<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: Time,
        queue: u16,
        command: &IoCommand<'_>,
        token: Token,
    ) -> Result<(), IoError> {
        if self.phase != Phase::Ready {
            return Err(self.not_ready());
        }
        let Some(&namespace) = self.namespace(command.namespace) else {
            return Err(IoError::NoSuchNamespace { namespace: command.namespace });
        };
        self.check(command, &namespace)?;
        let Some(pair) = self.queues.get_mut(usize::from(queue).wrapping_sub(1)) else {
            return Err(IoError::NoSuchQueue { queue });
        };
        let deadline = now.saturating_add(self.config.io_timeout);
        let commands = pair.stage(function, command, &namespace, deadline, token)?;
        self.counters.commands += u64::from(commands);
        self.watch_at = self.watch_at.min(deadline);
        Ok(())
    }

    /// Tells the controller what was staged in `queue`, with one register write.
    #[inline]
    pub fn ring_doorbell<F: PciFunction>(&mut self, function: &mut F, queue: u16) {
        if let Some(pair) = self.queues.get_mut(usize::from(queue).wrapping_sub(1)) {
            pair.ring(function, &mut self.counters);
        }
    }

    /// Puts `commands` into `queue` with one register write, and gives how many were taken: all, or
    /// those before the first that was not.
    ///
    /// # Errors
    /// Why the first command of all was not taken.
    pub fn submit_many<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: Time,
        queue: u16,
        commands: &[(IoCommand<'_>, Token)],
    ) -> Result<usize, IoError> {
        let mut taken = 0;
        for (command, token) in commands {
            match self.stage(function, now, queue, command, *token) {
                Ok(()) => taken += 1,
                Err(error) if taken == 0 => return Err(error),
                Err(_) => break,
            }
        }
        self.ring_doorbell(function, queue);
        Ok(taken)
    }

    /// Takes the completions of `queue` and appends them to `out`; gives how many commands they
    /// were.
    #[inline]
    pub fn poll_queue<F: PciFunction>(
        &mut self,
        function: &mut F,
        queue: u16,
        out: &mut Vec<IoCompletion>,
    ) -> u32 {
        if !matches!(self.phase, Phase::Ready | Phase::Draining) {
            return 0;
        }
        let head_doorbell = self.config.head_doorbell;
        match self.queues.get_mut(usize::from(queue).wrapping_sub(1)) {
            Some(pair) => pair.poll(function, head_doorbell, &mut self.counters, out),
            None => 0,
        }
    }

    /// Interrupt `vector` came: takes the completions of its queues, and gives how many commands
    /// they were. One that finds nothing does no harm.
    #[inline]
    pub fn on_interrupt<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: Time,
        vector: u16,
        out: &mut Vec<IoCompletion>,
    ) -> u32 {
        let works = matches!(self.phase, Phase::Ready | Phase::Draining);
        if vector == 0 {
            // Configured but ignored while the start polls (S1-22).
            if works || self.config.start_poll.is_none() {
                self.poll_admin(function, now, out);
            }
        } else if works && usize::from(self.vectors) > self.queues.len() {
            return self.poll_queue(function, vector, out);
        }
        let mut found = 0;
        for queue in 1..=self.queues() {
            if self.vector(queue) == Some(vector) {
                found += self.poll_queue(function, queue, out);
            }
        }
        found
    }

    /// Sends an admin command; its end comes with [`take_admin`](NvmeDriver::take_admin).
    ///
    /// # Errors
    /// The command was not taken.
    pub fn submit_admin<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: Time,
        command: &AdminCommand,
        token: Token,
    ) -> Result<(), AdminError> {
        let (Phase::Ready, Some(queue)) = (self.phase, self.admin.as_mut()) else {
            return Err(AdminError::NotReady);
        };
        let deadline = now.saturating_add(self.config.admin_timeout);
        queue.submit(function, command, Owner::Caller(token), deadline)?;
        self.watch_at = self.watch_at.min(deadline);
        Ok(())
    }

    /// Appends the admin commands that have ended.
    pub fn take_admin(&mut self, out: &mut Vec<AdminCompletion>) {
        out.append(&mut self.admin_done);
    }

    /// Appends what happened.
    pub fn take_events(&mut self, out: &mut Vec<DriverEvent>) {
        out.append(&mut self.events);
    }

    fn queue(&self, queue: u16) -> Option<&IoQueue> {
        self.queues.get(usize::from(queue).wrapping_sub(1))
    }

    /// The namespace with identifier `id`. Identifiers are mostly 1, 2, 3 …
    #[inline]
    fn namespace(&self, id: u32) -> Option<&Namespace> {
        let guess = self.namespaces.get((id as usize).wrapping_sub(1));
        guess.filter(|n| n.id == id).or_else(|| self.namespaces.iter().find(|n| n.id == id))
    }

    #[inline]
    fn check(&self, command: &IoCommand<'_>, namespace: &Namespace) -> Result<(), IoError> {
        if let Some(reason) = namespace.unusable {
            return Err(reason.into());
        }
        let needed = match command.operation {
            IoOperation::Read | IoOperation::Write => 0,
            IoOperation::Flush => return Ok(()),
            IoOperation::Dataset { .. } => oncs::DATASET_MANAGEMENT,
            IoOperation::Compare => oncs::COMPARE,
            IoOperation::WriteZeroes => oncs::WRITE_ZEROES,
            IoOperation::Verify => oncs::VERIFY,
        };
        if needed != 0 && !self.has(needed) {
            return Err(IoError::Unsupported { opcode: command.operation.opcode() });
        }
        let fits = match command.operation {
            IoOperation::Dataset { ranges, .. } => {
                let inside = |first: u64, n: u32| within(first, n, namespace.blocks);
                !ranges.is_empty() && ranges.iter().all(|r| inside(r.first.get(), r.blocks.get()))
            }
            _ => command.blocks > 0 && within(command.block, command.blocks, namespace.blocks),
        };
        if fits { Ok(()) } else { Err(IoError::OutOfRange { blocks: namespace.blocks }) }
    }

    /// Whether the controller has an optional command: a bit of [`oncs`].
    pub fn has(&self, command: u16) -> bool {
        self.controller.as_ref().is_some_and(|c| c.nvm_commands.get() & command != 0)
    }

    #[cold]
    fn not_ready(&self) -> IoError {
        match self.phase {
            Phase::Failed(_) | Phase::Stopped => IoError::Gone,
            _ => IoError::NotReady,
        }
    }
}

#[inline]
fn within(first: u64, blocks: u32, size: u64) -> bool {
    first.checked_add(u64::from(blocks)).is_some_and(|end| end <= size)
}
