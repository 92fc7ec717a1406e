//! Interrupts on their way from the device to the host.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use ssdyno_block::{Fault, FaultPlan, FaultSite, Time};

use crate::InterruptMode;

/// A pin that stays asserted interrupts again after this, at the earliest: a handler has run.
const PIN_AGAIN: Time = Time::from_ns(100);

/// Vector control of an MSI-X table entry: masked, as after a reset (PCI 3.0, clause 6.8.2.9).
const MASKED: u32 = 1;
/// Where messages go on the machines of the papers (Intel SDM volume 3, clause 11.11.1).
const MESSAGE_ADDRESS: u32 = 0xfee0_0000;

/// Interrupts sent, masked and pending.
#[derive(Debug)]
pub(super) struct Interrupts {
    pub(super) mode: InterruptMode,
    vectors: u16,
    latency: Time,
    /// By arrival.
    on_their_way: VecDeque<(Time, u16)>,
    /// When the first of them arrives, [`Time::MAX`] if there is none.
    next: Time,
    /// The MSI-X table: address, upper address, data, control (PCI 3.0, clause 6.8.2).
    table: Vec<[u32; 4]>,
    pending: Vec<bool>,
    function_masked: bool,
    pin_asserted: bool,
    /// The command register keeps the pin from the host.
    pin_off: bool,
    pub(super) sent: u64,
    pub(super) faults: Option<Box<FaultPlan>>,
}

impl Interrupts {
    pub(super) fn new(latency: Time, table: u16) -> Interrupts {
        Interrupts {
            mode: InterruptMode::Pin,
            vectors: 1,
            latency,
            on_their_way: VecDeque::with_capacity(64),
            next: Time::MAX,
            table: vec![[0, 0, 0, MASKED]; usize::from(table)],
            pending: vec![false; usize::from(table)],
            function_masked: false,
            pin_asserted: false,
            pin_off: false,
            sent: 0,
            faults: None,
        }
    }

    /// See [`BusMaster::vectors`](crate::BusMaster::vectors).
    pub(super) fn granted(&self) -> u16 {
        match self.mode {
            InterruptMode::Pin => 1,
            InterruptMode::Msi => self.vectors,
            InterruptMode::MsiX => u16::MAX,
        }
    }

    /// Changes the mode; what is on its way by the old one is dropped.
    pub(super) fn switch(&mut self, mode: InterruptMode, vectors: u16) {
        self.mode = mode;
        self.vectors = vectors;
        self.silence();
        for (vector, entry) in self.table.iter_mut().enumerate() {
            let used = mode == InterruptMode::MsiX && vector < usize::from(vectors);
            *entry = if used { [MESSAGE_ADDRESS, 0, vector as u32, 0] } else { [0, 0, 0, MASKED] };
        }
    }

    /// The device asks for `vector` at `at`.
    #[inline]
    pub(super) fn raise(&mut self, at: Time, vector: u16) {
        match self.mode {
            InterruptMode::Pin => {
                // A pin is level triggered: a second request while it is asserted changes nothing
                // on the wire. The handler must therefore check all causes before it returns.
                if self.pin_asserted {
                    return;
                }
                self.pin_asserted = true;
                if !self.pin_off {
                    self.send(at, 0);
                }
            }
            // Messages of a vector that the host did not set up go nowhere.
            _ if vector >= self.vectors => {}
            // PCI sets the pending bit while a vector is masked and sends one message after the
            // unmask. A dropped request would lose the completion of a driver that masks during its
            // handler.
            InterruptMode::MsiX if self.function_masked || self.masked(vector) => {
                self.pending[usize::from(vector)] = true;
            }
            _ => self.send(at, vector),
        }
    }

    /// The device releases the pin. Messages on the way still arrive, and find nothing.
    pub(super) fn release_pin(&mut self) {
        self.pin_asserted = false;
    }

    #[inline(always)]
    fn send(&mut self, at: Time, vector: u16) {
        let number = self.sent;
        self.sent += 1;
        let mut arrives = at + self.latency;
        match self.faults.as_mut().and_then(|plan| plan.meets(FaultSite::Interrupt, number)) {
            Some(Fault::Delay(by)) => arrives += by,
            Some(_) => return,
            None => {}
        }
        // Only an injected delay puts an interrupt out of order, so the search starts from the
        // back. In a run without faults it compares one element, and the insertion is a push.
        let after = self.on_their_way.iter().rev().take_while(|(t, _)| *t > arrives).count();
        if after == 0 {
            self.on_their_way.push_back((arrives, vector));
        } else {
            self.on_their_way.insert(self.on_their_way.len() - after, (arrives, vector));
        }
        self.next = self.next.min(arrives);
    }

    /// When the next one arrives, [`Time::MAX`] if none is on its way.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Vector `vector` is on its way to the host, or waits for its mask to go.
    pub(super) fn is_coming(&self, vector: u16) -> bool {
        let pending = self.pending.get(usize::from(vector)).is_some_and(|pending| *pending);
        pending || self.on_their_way.iter().any(|(_, coming)| *coming == vector)
    }

    /// What has arrived by `now`.
    #[inline]
    pub(super) fn take(&mut self, now: Time, out: &mut Vec<u16>) {
        // The runner calls this at every event, and most events carry no interrupt. The cached time
        // makes the common case one comparison without a look at the queue.
        if now < self.next {
            return;
        }
        while let Some(&(_, vector)) = self.on_their_way.front().filter(|(at, _)| *at <= now) {
            self.on_their_way.pop_front();
            if self.mode == InterruptMode::Pin {
                if !self.pin_asserted || self.pin_off {
                    continue;
                }
                // Level triggered: it comes again until the device lets go.
                self.on_their_way.push_front((now + self.latency.max(PIN_AGAIN), 0));
            }
            out.push(vector);
        }
        self.next = self.on_their_way.front().map_or(Time::MAX, |(at, _)| *at);
    }

    /// The pin is masked from the host, or unmasked: then a pending interrupt arrives.
    pub(super) fn set_pin_off(&mut self, now: Time, off: bool) {
        let on_again = self.pin_off && !off;
        self.pin_off = off;
        // An interrupt that was asserted while the pin was disabled would otherwise be lost: the
        // device does not assert it again, because from its side the pin is still asserted.
        if on_again && self.pin_asserted && self.on_their_way.is_empty() {
            self.send(now, 0);
        }
    }

    pub(super) fn mask_function(&mut self, now: Time, masked: bool) {
        self.function_masked = masked;
        for vector in 0..self.table.len() as u16 {
            self.send_pending(now, vector);
        }
    }

    #[inline]
    fn masked(&self, vector: u16) -> bool {
        self.table[usize::from(vector)][3] & MASKED != 0
    }

    /// The dword at `offset` of the table; 0 behind its end.
    pub(super) fn table_read(&self, offset: u32) -> u32 {
        let entry = self.table.get(offset as usize / 16);
        entry.map_or(0, |entry| entry[offset as usize / 4 % 4])
    }

    /// Sets the dword at `offset` of the table.
    pub(super) fn table_write(&mut self, now: Time, offset: u32, value: u32) {
        let vector = offset as usize / 16;
        if let Some(entry) = self.table.get_mut(vector) {
            let part = offset as usize / 4 % 4;
            // Only the mask bit of Vector Control is implemented; bits 31:1 are reserved here and
            // read as zero. A driver that writes them back cannot change the state of the entry.
            entry[part] = if part == 3 { value & MASKED } else { value };
            // Every write to an entry can unmask it, so the pending bit is examined here. A driver
            // that unmasks with a pending vector receives the message at once.
            self.send_pending(now, vector as u16);
        }
    }

    /// 32 pending bits from `offset` of their array.
    pub(super) fn pending_read(&self, offset: u32) -> u32 {
        let bits = self.pending.iter().skip(offset as usize * 8).take(32);
        bits.enumerate().fold(0, |word, (bit, &set)| word | u32::from(set) << bit)
    }

    fn send_pending(&mut self, now: Time, vector: u16) {
        let index = usize::from(vector);
        if self.pending[index] && !self.masked(vector) && !self.function_masked {
            self.pending[index] = false;
            self.send(now, vector);
        }
    }

    /// The function is gone: nothing arrives any more.
    pub(super) fn silence(&mut self) {
        self.on_their_way.clear();
        self.next = Time::MAX;
        self.pending.fill(false);
        self.pin_asserted = false;
    }
}
