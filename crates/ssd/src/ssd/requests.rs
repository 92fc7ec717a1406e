//! Requests inside the device or waiting before it.

use ssdyno_block::{Request, Status, Time, Token};

/// One request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) token: Token,
    pub(super) request: Request,
    /// When it entered the device.
    pub(super) accepted: Time,
    /// Its answer cannot be at the host before this.
    pub(super) ready: Time,
    pub(super) status: Status,
    /// What must still happen before it completes.
    pub(super) parts: u32,
}

/// All requests; slots are used again.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    all: Vec<Slot>,
    free: Vec<u32>,
}

impl Requests {
    #[inline]
    pub(super) fn insert(&mut self, slot: Slot) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.all[at as usize] = slot;
                at
            }
            None => {
                self.all.push(slot);
                (self.all.len() - 1) as u32
            }
        }
    }
    #[inline]
    pub(super) fn get(&self, at: u32) -> &Slot {
        &self.all[at as usize]
    }
    #[inline]
    pub(super) fn get_mut(&mut self, at: u32) -> &mut Slot {
        &mut self.all[at as usize]
    }
    /// One more part to wait for.
    #[inline]
    pub(super) fn hold(&mut self, at: u32) {
        self.all[at as usize].parts += 1;
    }
    /// One part fewer; true if it was the last.
    #[inline]
    pub(super) fn release(&mut self, at: u32) -> bool {
        let parts = &mut self.all[at as usize].parts;
        *parts -= 1;
        *parts == 0
    }
    #[inline]
    pub(super) fn remove(&mut self, at: u32) -> Slot {
        self.free.push(at);
        self.all[at as usize]
    }
}
