//! The host's view of the device behind its port.

use ssdyno_block::{Completion, Op, Status, Time};

use crate::jobs::Command;
use crate::port::HostPort;

/// The time of the device's next work, its events, and its completed work.
#[derive(Clone, Debug)]
pub(crate) struct DeviceView {
    /// The device's next event, and whether it may have changed.
    at: Time,
    pub(crate) touched: bool,
    /// Room for the vectors of interrupts, and for commands that are done.
    pub(crate) vectors: Vec<u16>,
    pub(crate) done: Vec<Completion>,
    /// By vector: its interrupt is under way to its handler.
    pending: Vec<bool>,
    /// Bytes of the reads and writes that it has completed.
    pub(crate) bytes: u64,
    /// Mean time of a command, for [`Waiting::Hybrid`](crate::CompletionWait::Hybrid).
    pub(crate) mean: Time,
    /// Failed commands that no request waited for.
    pub(crate) late_errors: u64,
}

impl DeviceView {
    pub(crate) fn new() -> DeviceView {
        DeviceView {
            at: Time::MAX,
            touched: true,
            vectors: Vec::with_capacity(16),
            done: Vec::with_capacity(64),
            pending: Vec::new(),
            bytes: 0,
            mean: Time::ZERO,
            late_errors: 0,
        }
    }

    /// When the device has something to do; asked again only after something was done to it.
    #[inline]
    pub(crate) fn next(&mut self, port: &impl HostPort) -> Time {
        // The next event of the device is computed by walking through its parts. Most steps of the
        // host do not touch the device, so the cached time avoids this walk.
        if self.touched {
            self.touched = false;
            self.at = port.next_event().unwrap_or(Time::MAX);
        }
        self.at
    }

    /// The message of `vector` has arrived: false if it merges with one that is under way.
    #[inline(always)]
    pub(crate) fn raise(&mut self, vector: u16) -> bool {
        if self.pending.len() <= usize::from(vector) {
            self.pending.resize(usize::from(vector) + 1, false);
        }
        !std::mem::replace(&mut self.pending[vector as usize], true)
    }

    /// The handler of `vector` begins.
    #[inline(always)]
    pub(crate) fn handled(&mut self, vector: u16) {
        self.pending[vector as usize] = false;
    }

    /// `command` is done: its handler saw it at `seen`.
    #[inline(always)]
    pub(crate) fn completed(&mut self, command: &Command, status: Status, seen: Time) {
        self.bytes += match command.op {
            Op::Read | Op::Write => u64::from(command.bytes),
            Op::Trim | Op::Flush => 0,
        };
        // The mean that a poller sleeps by is what the kernel can measure: until the handler.
        let took = seen.saturating_sub(command.issued);
        self.mean =
            if self.mean == Time::ZERO { took } else { self.mean - self.mean / 8 + took / 8 };
        self.late_errors += u64::from(command.detached && status != Status::Ok);
    }
}
