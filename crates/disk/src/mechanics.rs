//! Arm and rotation: how long it takes until what is wanted is under its head.

use ssdyno_block::{ConfigError, Rng, Time};

use crate::config::DiskTable;
use crate::layout::{Layout, Run, Track};
use crate::seek::SeekCurve;

/// One access of the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Access {
    /// When the arm is where it must be, on the first track.
    pub(crate) arrived: Time,
    /// When the first sector begins to pass.
    pub(crate) from: Time,
    /// When its end has passed.
    pub(crate) first: Time,
    /// When the last sector has passed.
    pub(crate) end: Time,
}

/// The moving parts. The angle of the spindle follows from the time alone: it turns forever.
#[derive(Clone, Debug)]
pub(crate) struct Mechanics {
    pub(crate) layout: Layout,
    curve: SeekCurve,
    head_switch: u64,
    write_settle: u64,
    zero_latency: bool,
    /// The angle at time 0.
    phase: u64,
    cylinder: u32,
    head: u32,
}

impl Mechanics {
    pub(crate) fn new(disk: &DiskTable, seed: u64) -> Result<Mechanics, ConfigError> {
        let (layout, curve) = Layout::new(disk)?;
        let phase = Rng::new(seed, "spindle").below(layout.turn());
        Ok(Mechanics {
            layout,
            curve,
            head_switch: disk.head_switch.0.as_ps(),
            write_settle: disk.write_settle.0.as_ps(),
            zero_latency: disk.zero_latency,
            phase,
            cylinder: 0,
            head: 0,
        })
    }

    /// Where the arm is.
    pub(crate) fn cylinder(&self) -> u32 {
        self.cylinder
    }

    /// Time from one track to another. A head switch happens while the arm moves.
    fn switch(&self, track: &Track, write: bool) -> u64 {
        let seek = self.curve.ps(track.cylinder.abs_diff(self.cylinder));
        let head = if track.head == self.head { 0 } else { self.head_switch };
        match seek.max(head) {
            0 => 0,
            moved if write => moved + self.write_settle,
            moved => moved,
        }
    }

    /// From `at` on, the time until sector `sector` of `track` begins.
    fn rotation(&self, at: u64, track: &Track, sector: u32) -> u64 {
        let turn = self.layout.turn();
        let here = (at + self.phase) % turn;
        let there = track.origin + self.layout.along(track, sector);
        (there + turn - here) % turn
    }

    /// The time from `at` on until `run` begins to pass: what a scheduler compares.
    pub(crate) fn positioning(&self, at: Time, run: &Run, write: bool) -> u64 {
        let switch = self.switch(&run.track, write);
        switch + self.rotation(at.as_ps() + switch, &run.track, run.sector)
    }

    /// Moves the arm to `track`; gives the time at which it is there.
    pub(crate) fn move_to(&mut self, at: Time, track: &Track, write: bool) -> Time {
        let arrived = at + Time::from_ps(self.switch(track, write));
        (self.cylinder, self.head) = (track.cylinder, track.head);
        arrived
    }

    /// When sector `run.sector` begins to pass a head that is on its track at `at`.
    pub(crate) fn begins(&self, at: Time, run: &Run) -> Time {
        at + Time::from_ps(self.rotation(at.as_ps(), &run.track, run.sector))
    }

    /// The time in which `sectors` from the beginning of `run` on pass.
    pub(crate) fn passes(&self, run: &Run, sectors: u32) -> Time {
        let layout = &self.layout;
        let (from, to) = (run.sector, run.sector + sectors);
        Time::from_ps(layout.along(&run.track, to) - layout.along(&run.track, from))
    }

    /// Reads or writes `blocks` from `block` on, whose first run is `first`.
    pub(crate) fn access(
        &mut self,
        at: Time,
        first: &Run,
        block: u64,
        blocks: u32,
        write: bool,
    ) -> Access {
        let turn = Time::from_ps(self.layout.turn());
        let (mut run, mut block, mut left) = (*first, block, blocks);
        let mut access: Option<Access> = None;
        let mut end = at;
        loop {
            let arrived = self.move_to(end, &run.track, write);
            let from = self.begins(arrived, &run);
            let sectors = left.min(run.length);
            end = from + self.passes(&run, sectors);
            if self.zero_latency && end > arrived + turn {
                // The head came down among the sectors that are wanted: after one turn it has them all.
                end = arrived + turn;
            }
            access.get_or_insert_with(|| {
                let first = (from + self.passes(&run, 1)).min(end);
                Access { arrived, from: from.min(end), first, end }
            });
            left -= sectors;
            block += u64::from(sectors);
            if left == 0 {
                break;
            }
            run = self.layout.run(block);
        }
        let access = access.unwrap_or(Access { arrived: at, from: at, first: at, end: at });
        Access { end, ..access }
    }
}
