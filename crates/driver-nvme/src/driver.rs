//! The driver with one owner: a controller object with its queue pairs.

use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use ssdyno_block::{MonotonicTime, Token};
use ssdyno_pci::PciFunction;
use ssdyno_pci::driver::DriverFlags;

use crate::state::Phase;
use crate::{
    Controller, IoCommand, IoCompletion, IoError, NvmeConfig, NvmeCounters, NvmeError,
    PriorityClass, QueueChoice, QueuePair,
};

/// A driver of one controller, with one owner: a [`Controller`] that keeps its [`QueuePair`]s, has them
/// obey at once, and looks after their timeouts. See the crate's documentation for how it is used.
///
/// The documentation of a part describes the calls of that part; queues are numbered from 1.
#[derive(Debug)]
pub struct NvmeDriver {
    pub(crate) controller: Controller,
    /// In order, from queue 1.
    pairs: Vec<QueuePair>,
    /// The counters of pairs that no longer exist.
    counters: NvmeCounters,
    /// No deadline of an I/O command is earlier.
    watch_at: MonotonicTime,
    /// A list for completions had no room for what was given up: the next call goes on.
    behind: bool,
}

/// The controller object: what is not here goes to it, and [`poll`](NvmeDriver::poll) goes on with it.
impl Deref for NvmeDriver {
    type Target = Controller;

    fn deref(&self) -> &Controller {
        &self.controller
    }
}

impl DerefMut for NvmeDriver {
    fn deref_mut(&mut self) -> &mut Controller {
        &mut self.controller
    }
}

impl NvmeDriver {
    /// A driver that was not started. Nothing is allocated for it.
    pub fn new(config: NvmeConfig) -> NvmeDriver {
        NvmeDriver {
            controller: Controller::new(config),
            pairs: Vec::new(),
            counters: NvmeCounters::default(),
            watch_at: MonotonicTime::MAX,
            behind: false,
        }
    }

    /// The parts, for many owners: say, when a system that started on one core has started the others.
    /// Commands may be outstanding.
    pub fn into_parts(self) -> (Controller, Vec<QueuePair>) {
        (self.controller, self.pairs)
    }

    /// The driver's description of itself for the system (S1-47).
    pub fn flags(&self) -> DriverFlags {
        let scsi = if self.config().scsi { DriverFlags::SCSI } else { DriverFlags::empty() };
        DriverFlags::BUS_MASTER | scsi
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

    /// Memory for DMA that the driver has pinned, in bytes: see [`Controller::pinned_bytes`] and
    /// [`QueuePair::pinned_bytes`].
    pub fn pinned_bytes(&self) -> u64 {
        let pairs = self.pairs.iter().map(QueuePair::pinned_bytes);
        self.controller.pinned_bytes() + pairs.sum::<u64>()
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

    /// See [`QueuePair::submit`], here to `queue`.
    ///
    /// # Errors
    /// The same; [`IoError::NoSuchQueue`].
    #[inline]
    pub fn submit<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: impl Into<MonotonicTime>,
        queue: u16,
        command: &IoCommand<'_>,
        token: Token,
    ) -> Result<(), IoError> {
        self.with_pair(queue, |pair| pair.submit(function, now, command, token))
    }

    /// See [`QueuePair::stage`], here to `queue`.
    ///
    /// # Errors
    /// The same; [`IoError::NoSuchQueue`].
    #[inline]
    pub fn stage<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: impl Into<MonotonicTime>,
        queue: u16,
        command: &IoCommand<'_>,
        token: Token,
    ) -> Result<(), IoError> {
        self.with_pair(queue, |pair| pair.stage(function, now, command, token))
    }

    /// See [`QueuePair::ring_doorbell`], here of `queue`.
    #[inline]
    pub fn ring_doorbell<F: PciFunction>(&mut self, function: &mut F, queue: u16) {
        if let Some(pair) = self.pairs.get_mut(usize::from(queue).wrapping_sub(1)) {
            pair.ring_doorbell(function);
        }
    }

    /// See [`QueuePair::poll`], here of `queue`.
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

    /// See [`QueuePair::has_more`], here of any queue.
    pub fn has_more(&self) -> bool {
        self.pairs.iter().any(QueuePair::has_more)
    }

    /// Interrupt `vector` came: takes the completions of its queues, and gives how many commands
    /// they were. A call that finds nothing does no harm.
    #[inline]
    pub fn on_interrupt<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: impl Into<MonotonicTime>,
        vector: u16,
        out: &mut Vec<IoCompletion>,
    ) -> u32 {
        // Each queue has a vector of its own here, and vector q belongs to queue q (S1-32). No
        // search is needed.
        if vector != 0 && usize::from(self.controller.vectors) > self.pairs.len() {
            return self.poll_queue(function, vector, out);
        }
        self.on_shared_interrupt(function, now.into(), vector, out)
    }

    /// The same of the admin queue's vector, or where vectors are fewer than queues.
    fn on_shared_interrupt<F: PciFunction>(
        &mut self,
        f: &mut F,
        now: MonotonicTime,
        vector: u16,
        out: &mut Vec<IoCompletion>,
    ) -> u32 {
        if vector == 0 {
            self.controller.on_interrupt(f, now, vector);
            self.settle(f, now, out);
        }
        self.pairs.iter_mut().map(|pair| pair.on_interrupt(f, vector, out)).sum()
    }

    /// Does what is due at `now`: start, stop, admin commands and watchdog. Completions that come
    /// to light are appended to `out`. I/O queues are not polled unless something was lost: that is
    /// [`poll_queue`](NvmeDriver::poll_queue)'s and [`on_interrupt`](NvmeDriver::on_interrupt)'s.
    pub fn poll<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: impl Into<MonotonicTime>,
        out: &mut Vec<IoCompletion>,
    ) {
        let now = now.into();
        self.controller.poll_admin(function, now);
        // Pairs that could not give up everything need another call. Setting the flag makes
        // `settle` have them obey again with the list of this call.
        self.controller.ordered |= self.behind;
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

    /// When [`poll`](NvmeDriver::poll) is to be called next; `None` where nothing is awaited. At once where
    /// a list for completions had no room for what was given up.
    #[inline]
    pub fn next_deadline(&self) -> Option<MonotonicTime> {
        // Due since ever.
        if self.behind {
            return Some(MonotonicTime::ZERO);
        }
        self.controller.deadline_with(self.watch_at)
    }

    /// See [`Controller::reset`]. Commands that are given up are appended to `out`, now or by a
    /// later [`poll`](NvmeDriver::poll).
    ///
    /// # Errors
    /// The same.
    pub fn reset<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: impl Into<MonotonicTime>,
        out: &mut Vec<IoCompletion>,
    ) -> Result<(), NvmeError> {
        let now = now.into();
        self.controller.reset(function, now)?;
        self.settle(function, now, out);
        Ok(())
    }

    /// See [`Controller::removed`]; here everything completes at once, or as much as `out` has room for,
    /// and the rest by the next [`poll`](NvmeDriver::poll).
    pub fn removed<F: PciFunction>(&mut self, function: &mut F, out: &mut Vec<IoCompletion>) {
        self.controller.removed(function);
        self.obey(function, out);
    }

    /// Lets the pairs obey their orders, and the controller object continue, until nothing is new.
    #[inline]
    pub(crate) fn settle<F: PciFunction>(
        &mut self,
        f: &mut F,
        now: MonotonicTime,
        out: &mut Vec<IoCompletion>,
    ) {
        // An order that all pairs obey may let the controller object go on, and that may put up
        // the next order. Every phase puts up one order at most, so the loop ends.
        while self.controller.ordered {
            self.obey(f, out);
            self.controller.look_at_pairs(f, now);
        }
    }

    #[cold]
    pub(crate) fn obey<F: PciFunction>(&mut self, f: &mut F, out: &mut Vec<IoCompletion>) {
        // The flag is cleared first. An order that is put up while the pairs obey must not be
        // lost.
        self.controller.ordered = false;
        let new = &mut self.controller.pairs;
        if self.pairs.is_empty() {
            core::mem::swap(&mut self.pairs, new);
        } else if self.pairs.try_reserve(new.len()).is_ok() {
            self.pairs.append(new);
        }
        for pair in &mut self.pairs {
            pair.obey(f, out);
        }
        let counters = &mut self.counters;
        self.pairs.retain(|pair| {
            // The counters of a pair that ends are added to the driver's. Otherwise the sums
            // would go back when pairs end.
            if pair.is_over() {
                *counters += pair.counters();
            }
            !pair.is_over()
        });
        self.behind = self.pairs.iter().any(QueuePair::is_behind);
        self.rearm();
    }

    /// A deadline may have passed. First the queues are looked into, for an interrupt may be lost; then
    /// commands are aborted; when that does not help, the controller is reset.
    #[cold]
    fn watch<F: PciFunction>(
        &mut self,
        f: &mut F,
        now: MonotonicTime,
        out: &mut Vec<IoCompletion>,
    ) {
        let late = |pair: &mut QueuePair| pair.deadline().is_some_and(|at| at <= now);
        // `watch_at` is only a lower bound of the deadlines: commands that completed meanwhile
        // may have been the earliest. The lines tell the truth.
        let io = self.pairs.iter_mut().any(late);
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
        self.watch_at =
            self.pairs.iter().map(QueuePair::watch_at).min().unwrap_or(MonotonicTime::MAX);
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
        if pair.watch_at() < self.watch_at {
            self.watch_at = pair.watch_at();
        }
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
