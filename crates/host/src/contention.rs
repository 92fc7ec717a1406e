//! The resources that threads compete for: locks, room in queues, buffers.

use crate::config::LockConfig;
use crate::lock::{Draw, SpinLock, Waiter};

/// Locks, and the threads that wait for room in a queue or for a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Contention {
    locks: Vec<SpinLock>,
    draw: Draw,
    /// Threads that wait for room, by group: those that may use the same queues.
    no_room: Vec<Vec<u32>>,
    /// Free buffers and the threads that wait for one.
    buffers: u32,
    no_buffer: Vec<u32>,
}

impl Contention {
    /// With `locks` locks and as many buffers; `seed` decides which core is favoured.
    pub(crate) fn new(
        config: &LockConfig,
        cores: u16,
        locks: u16,
        buffers: Option<u32>,
        seed: u64,
    ) -> Contention {
        Contention {
            locks: vec![SpinLock::default(); locks.into()],
            draw: Draw::new(config.order, config.favoured_weight, cores, seed),
            no_room: vec![Vec::new(); usize::from(cores)],
            buffers: buffers.unwrap_or(u32::MAX),
            no_buffer: Vec::new(),
        }
    }

    /// True if `waiter` has the lock now; else it spins.
    #[inline]
    pub(crate) fn acquire(&mut self, lock: u16, waiter: Waiter) -> bool {
        self.locks[lock as usize].acquire(waiter)
    }

    /// Releases the lock; returns its new owner. `away`: the core is inside an interrupt.
    #[inline]
    pub(crate) fn release(&mut self, lock: u16, away: impl Fn(u16) -> bool) -> Option<Waiter> {
        self.locks[lock as usize].release(&mut self.draw, away)
    }

    /// True if a thread of `group` waits for room.
    #[inline]
    pub(crate) fn waits_for_room(&self, group: usize) -> bool {
        !self.no_room[group].is_empty()
    }

    pub(crate) fn wait_for_room(&mut self, group: usize, thread: u32) {
        self.no_room[group].push(thread);
    }

    /// `thread` waits for room no more.
    pub(crate) fn leave_room(&mut self, group: usize, thread: u32) {
        self.no_room[group].retain(|other| *other != thread);
    }

    /// The thread of `group` that may have room; `None` if all have it. `core` says on which core a
    /// thread is.
    #[inline(always)]
    pub(crate) fn next_for_room(
        &mut self,
        group: usize,
        core: impl Fn(u32) -> u16 + Clone,
    ) -> Option<u32> {
        let waiting = &mut self.no_room[group];
        if waiting.is_empty() {
            return None;
        }
        // Room in a queue is given by the same draw as a lock. The thesis does not describe this
        // case; both are a race for one cache line, so the same bias is assumed (S1-39).
        let winner = self.draw.winner(waiting.iter().map(|thread| core(*thread)));
        Some(waiting.remove(winner))
    }

    /// Takes a buffer; false if there is none.
    #[inline]
    pub(crate) fn take_buffer(&mut self) -> bool {
        // `None` means that no buffer is free. The count stays at zero; a wrapped count would hand
        // out four billion buffers and remove the limit.
        let left = self.buffers.checked_sub(1);
        self.buffers = left.unwrap_or(0);
        left.is_some()
    }

    pub(crate) fn wait_for_buffer(&mut self, thread: u32) {
        self.no_buffer.push(thread);
    }

    /// `thread` waits for a buffer no more.
    pub(crate) fn leave_buffer(&mut self, thread: u32) {
        self.no_buffer.retain(|other| *other != thread);
    }

    /// A buffer is free: gives the thread that has waited longest, which has it from now on.
    #[inline]
    pub(crate) fn free_buffer(&mut self) -> Option<u32> {
        if self.no_buffer.is_empty() {
            self.buffers = self.buffers.saturating_add(1);
            return None;
        }
        // Nobody may overtake it.
        Some(self.no_buffer.remove(0))
    }

    /// True if no thread waits for room or for a buffer.
    #[cfg(test)]
    pub(crate) fn nobody_waits(&self) -> bool {
        self.no_buffer.is_empty() && self.no_room.iter().all(Vec::is_empty)
    }
}
