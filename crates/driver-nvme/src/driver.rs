//! The driver with one owner: a controller object with its queue pairs.

use alloc::vec::Vec;

use ssdyno_block::{Time, Token};
use ssdyno_pci::{InterruptMode, PciFunction};
use ssdyno_spec::nvme::IdentifyController;

use crate::state::Phase;
use crate::{
    AdminCommand, AdminCompletion, AdminError, Controller, DriverEvent, DriverState, IoCommand,
    IoCompletion, IoError, Namespace, NvmeConfig, NvmeCounters, NvmeError, PriorityClass,
    QueueChoice, QueuePair,
};

/// A driver of one controller, with one owner: a [`Controller`] that keeps its [`QueuePair`]s, has them
/// obey at once, and looks after their time limits. See the crate's documentation for how it is used.
#[derive(Debug)]
pub struct NvmeDriver {
    pub(crate) controller: Controller,
    /// In order, from queue 1.
    pairs: Vec<QueuePair>,
    /// What pairs did that are no more.
    counters: NvmeCounters,
    /// No deadline of an I/O command is earlier.
    watch_at: Time,
}

impl NvmeDriver {
    /// A driver that was not started.
    pub fn new(config: NvmeConfig) -> NvmeDriver {
        NvmeDriver {
            controller: Controller::new(config),
            pairs: Vec::new(),
            counters: NvmeCounters::default(),
            watch_at: Time::MAX,
        }
    }

    /// The parts, for many owners: say, when a system that started on one core has started the others.
    /// Commands may be outstanding.
    pub fn into_parts(self) -> (Controller, Vec<QueuePair>) {
        (self.controller, self.pairs)
    }

    /// What the driver is doing.
    pub fn state(&self) -> DriverState {
        self.controller.state()
    }

    /// The configuration.
    pub fn config(&self) -> &NvmeConfig {
        self.controller.config()
    }

    /// What the controller says of itself; `None` before it was asked.
    pub fn controller(&self) -> Option<&IdentifyController> {
        self.controller.identity()
    }

    /// Whether the controller has an optional command: a bit of [`oncs`](ssdyno_spec::nvme::oncs).
    pub fn has(&self, command: u16) -> bool {
        self.controller.has(command)
    }

    /// The namespaces, by identifier.
    pub fn namespaces(&self) -> &[Namespace] {
        self.controller.namespaces()
    }

    /// The I/O queues in use are 1 to this.
    pub fn queues(&self) -> u16 {
        self.pairs.len() as u16
    }

    /// Commands that can be outstanding in all (S1-37).
    pub fn outstanding_limit(&self) -> u64 {
        self.pairs.iter().map(|pair| u64::from(pair.entries() - 1)).sum()
    }

    /// Commands that are outstanding on `queue`.
    pub fn outstanding(&self, queue: u16) -> u32 {
        self.pair(queue).map_or(0, QueuePair::outstanding)
    }

    /// The interrupt vector of I/O queue `queue`; vector 0 is the admin queue's (S1-32).
    pub fn vector(&self, queue: u16) -> Option<u16> {
        self.pair(queue).and_then(QueuePair::vector)
    }

    /// Which interrupts are in use; `None`: it is polled.
    pub fn interrupt_mode(&self) -> Option<InterruptMode> {
        self.controller.interrupt_mode()
    }

    /// Most data of one command of the controller, in bytes; more is split.
    pub fn transfer_bytes_max(&self) -> u32 {
        self.controller.transfer_bytes_max()
    }

    /// What the driver did.
    pub fn counters(&self) -> NvmeCounters {
        let mut all = self.counters;
        all += self.controller.counters();
        self.pairs.iter().for_each(|pair| all += pair.counters());
        all
    }

    /// The queue for the next command of `core` for a process of `class`, and the lock that the core
    /// has to hold while it [submits](NvmeDriver::submit).
    #[inline]
    pub fn choose(&mut self, core: u16, class: PriorityClass) -> QueueChoice {
        self.controller.selector.choose(core, class)
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
        self.with_pair(queue, |pair| pair.submit(function, now, command, token))
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
        self.with_pair(queue, |pair| pair.stage(function, now, command, token))
    }

    /// Tells the controller what was staged in `queue`, with one register write.
    #[inline]
    pub fn ring_doorbell<F: PciFunction>(&mut self, function: &mut F, queue: u16) {
        if let Some(pair) = self.pairs.get_mut(usize::from(queue).wrapping_sub(1)) {
            pair.ring_doorbell(function);
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
        self.with_pair(queue, |pair| pair.submit_many(function, now, commands))
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
        match self.pairs.get_mut(usize::from(queue).wrapping_sub(1)) {
            Some(pair) => pair.poll(function, out),
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
        if vector != 0 && usize::from(self.controller.vectors) > self.pairs.len() {
            return self.poll_queue(function, vector, out);
        }
        self.on_shared_interrupt(function, now, vector, out)
    }

    /// The same of the admin queue's vector, or where vectors are fewer than queues.
    fn on_shared_interrupt<F: PciFunction>(
        &mut self,
        f: &mut F,
        now: Time,
        vector: u16,
        out: &mut Vec<IoCompletion>,
    ) -> u32 {
        if vector == 0 {
            self.controller.on_interrupt(f, now, vector);
            self.settle(f, now, out);
        }
        self.pairs.iter_mut().map(|pair| pair.on_interrupt(f, vector, out)).sum()
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
        self.controller.submit_admin(function, now, command, token)
    }

    /// Appends the admin commands that have ended.
    pub fn take_admin(&mut self, out: &mut Vec<AdminCompletion>) {
        self.controller.take_admin(out);
    }

    /// Appends what happened.
    pub fn take_events(&mut self, out: &mut Vec<DriverEvent>) {
        self.controller.take_events(out);
    }

    /// Looks again which namespaces there are; [`namespaces`](NvmeDriver::namespaces) changes when
    /// all were asked.
    ///
    /// # Errors
    /// The driver is not ready, or scans already.
    pub fn rescan<F: PciFunction>(&mut self, function: &mut F, now: Time) -> Result<(), NvmeError> {
        self.controller.rescan(function, now)
    }

    /// Begins to bring the controller up; [`poll`](NvmeDriver::poll) goes on until the state is
    /// [`Ready`](DriverState::Ready).
    ///
    /// # Errors
    /// The function is no controller that this driver can use, or the driver is in use already.
    pub fn start<F: PciFunction>(&mut self, function: &mut F, now: Time) -> Result<(), NvmeError> {
        self.controller.start(function, now)
    }

    /// Does what is due at `now`: start, stop, admin commands and watchdog. Completions that come
    /// to light are appended to `out`. I/O queues are not polled unless something was lost: that is
    /// [`poll_queue`](NvmeDriver::poll_queue)'s and [`on_interrupt`](NvmeDriver::on_interrupt)'s.
    pub fn poll<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: Time,
        out: &mut Vec<IoCompletion>,
    ) {
        self.controller.poll_admin(function, now);
        self.settle(function, now, out);
        if self.controller.phase == Phase::Draining && now >= self.controller.look_at {
            self.pairs.iter_mut().for_each(|pair| _ = pair.obey(function, out));
        }
        self.controller.look_if_due(function, now);
        self.settle(function, now, out);
        if now >= self.watch_at.min(self.controller.watch_at) {
            self.watch(function, now, out);
        }
    }

    /// When [`poll`](NvmeDriver::poll) is to be called next; `None` where nothing is awaited.
    #[inline]
    pub fn next_deadline(&self) -> Option<Time> {
        self.controller.deadline_with(self.watch_at)
    }

    /// Resets the controller and brings it up again. What is outstanding is given up once the
    /// controller is idle.
    ///
    /// # Errors
    /// The driver is not ready.
    pub fn reset<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: Time,
        out: &mut Vec<IoCompletion>,
    ) -> Result<(), NvmeError> {
        self.controller.reset(function, now)?;
        self.settle(function, now, out);
        Ok(())
    }

    /// Begins to stop: no command is taken any more, the outstanding ones are waited for, queues are
    /// deleted, the controller is told (CC.SHN) and disabled, all memory is given back.
    /// [`poll`](NvmeDriver::poll) goes on until the state is [`Stopped`](DriverState::Stopped).
    ///
    /// # Errors
    /// The driver is not ready.
    pub fn shutdown<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: Time,
    ) -> Result<(), NvmeError> {
        self.controller.shutdown(function, now)
    }

    /// The device was pulled, as the slot says: everything is answered at once.
    pub fn removed<F: PciFunction>(&mut self, function: &mut F, out: &mut Vec<IoCompletion>) {
        self.controller.removed(function);
        self.obey(function, out);
    }

    /// Has the pairs obey what was ordered, and the controller object go on, until nothing is new.
    #[inline]
    pub(crate) fn settle<F: PciFunction>(
        &mut self,
        f: &mut F,
        now: Time,
        out: &mut Vec<IoCompletion>,
    ) {
        while self.controller.ordered {
            self.obey(f, out);
            self.controller.look_at_pairs(f, now);
        }
    }

    #[cold]
    pub(crate) fn obey<F: PciFunction>(&mut self, f: &mut F, out: &mut Vec<IoCompletion>) {
        self.controller.ordered = false;
        self.pairs.append(&mut self.controller.pairs);
        for pair in &mut self.pairs {
            pair.obey(f, out);
        }
        let counters = &mut self.counters;
        self.pairs.retain(|pair| {
            if pair.is_over() {
                *counters += pair.counters();
            }
            !pair.is_over()
        });
        self.rearm();
    }

    /// A deadline may have passed. First the queues are looked into, for an interrupt may be lost; then
    /// commands are aborted; when that does not help, the controller is reset.
    #[cold]
    fn watch<F: PciFunction>(&mut self, f: &mut F, now: Time, out: &mut Vec<IoCompletion>) {
        let late = |pair: &QueuePair| pair.deadline().is_some_and(|at| at <= now);
        let io = self.pairs.iter().any(late);
        if self.controller.check(f, now, io) && io {
            let NvmeDriver { controller, pairs, .. } = self;
            let lost = pairs.iter_mut().any(|pair| {
                let queue = pair.id();
                let abort = |f: &mut F, command| controller.abort(f, now, queue, command);
                pair.look_after(f, now, out, abort)
            });
            if lost {
                controller.begin_reset(f, now, crate::ResetCause::CommandTimeout);
            }
        }
        self.settle(f, now, out);
        self.controller.rearm();
        self.pairs.iter_mut().for_each(QueuePair::rearm);
        self.rearm();
    }

    fn rearm(&mut self) {
        self.watch_at = self.pairs.iter().map(QueuePair::watch_at).min().unwrap_or(Time::MAX);
    }

    fn pair(&self, queue: u16) -> Option<&QueuePair> {
        self.pairs.get(usize::from(queue).wrapping_sub(1))
    }

    /// Puts something into `queue`, whose first deadline may be a new one.
    #[inline(always)]
    fn with_pair<T>(
        &mut self,
        queue: u16,
        put: impl FnOnce(&mut QueuePair) -> Result<T, IoError>,
    ) -> Result<T, IoError> {
        let Some(pair) = self.pairs.get_mut(usize::from(queue).wrapping_sub(1)) else {
            return Err(self.no_such(queue));
        };
        let taken = put(pair)?;
        self.watch_at = self.watch_at.min(pair.watch_at());
        Ok(taken)
    }

    #[cold]
    fn no_such(&self, queue: u16) -> IoError {
        match self.controller.phase {
            Phase::Failed(_) | Phase::Stopped => IoError::Gone,
            Phase::Ready => IoError::NoSuchQueue { queue },
            _ => IoError::NotReady,
        }
    }
}
