//! Injected faults: what a test or an experiment wants to go wrong.

use std::ops::Range;

use ssdyno_block::Time;
use ssdyno_spec::nvme::NvmeStatus;

use crate::faults::{FaultDraw, FaultOutcome, Injected};

/// What happens to a command that a fault hits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It ends with this status, and the medium is not touched.
    Fail(NvmeStatus),
    /// It begins so much later.
    Delay(Time),
    /// It is taken and never completes; Abort, or a reset, ends it.
    Lose,
    /// It is done, and ends with an error of the medium all the same.
    Spoil,
}

/// A fault for I/O commands, and for Sanitize, which is for the whole subsystem: namespace 0, no blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControllerFault {
    /// The opcode, as in [`ssdyno_spec::nvme::nvm`]; none = every command with one range of blocks.
    /// Flush and Dataset Management are hit only where they are named, whatever the blocks.
    pub opcode: Option<u8>,
    /// The namespace.
    pub namespace: u32,
    /// Commands that touch these logical blocks.
    pub blocks: Range<u64>,
    /// How many commands it hits before it is gone.
    pub times: u32,
    /// What happens to them.
    pub effect: Effect,
}

/// How a controller hangs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stuck {
    /// Nothing moves until CC.EN is cleared.
    UntilReset,
    /// CSTS.RDY does not move either.
    ForGood,
}

/// The faults that are left.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    list: Vec<ControllerFault>,
    /// The faults of the device's file.
    draw: Option<Box<FaultDraw>>,
    /// Commands are to be looked at.
    hits_commands: bool,
    pub(super) stuck: Option<Stuck>,
    interrupts_to_lose: u32,
    /// Interrupts are to be looked at.
    hits_interrupts: bool,
}

impl Faults {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        !self.hits_commands
    }
    pub(super) fn add(&mut self, fault: ControllerFault) {
        if fault.times > 0 {
            self.list.push(fault);
            self.hits_commands = true;
        }
    }
    pub(super) fn arm(&mut self, draw: FaultDraw) {
        self.hits_commands = true;
        self.hits_interrupts |= draw.hits_interrupts();
        self.draw = Some(Box::new(draw));
    }
    pub(super) fn injected(&self) -> Option<Injected> {
        self.draw.as_ref().map(|draw| draw.injected)
    }
    pub(super) fn lose_interrupts(&mut self, count: u32) {
        self.interrupts_to_lose = count;
        self.hits_interrupts |= count > 0;
    }
    pub(super) fn clear(&mut self) {
        *self = Faults::default();
    }
    /// What a command on `blocks` of `namespace` meets: the first fault that fits. No blocks: it has
    /// no range, or many.
    pub(super) fn hit(&mut self, opcode: u8, namespace: u32, blocks: Range<u64>) -> Option<Effect> {
        let fits = |fault: &ControllerFault| {
            let named = fault.opcode == Some(opcode);
            let meets = fault.blocks.start < blocks.end && blocks.start < fault.blocks.end;
            let hit = if blocks.is_empty() { named } else { meets };
            hit && (named || fault.opcode.is_none()) && fault.namespace == namespace
        };
        match self.list.iter().position(fits) {
            Some(at) => Some(self.take(at)),
            None => self.drawn(),
        }
    }
    /// What an admin command meets that is for the whole subsystem. The lots are for I/O commands.
    pub(super) fn hit_admin(&mut self, opcode: u8) -> Option<Effect> {
        let fits = |fault: &ControllerFault| fault.opcode == Some(opcode) && fault.namespace == 0;
        self.list.iter().position(fits).map(|at| self.take(at))
    }
    fn take(&mut self, at: usize) -> Effect {
        let fault = &mut self.list[at];
        fault.times -= 1;
        let effect = fault.effect;
        if fault.times == 0 {
            self.list.remove(at);
        }
        effect
    }
    /// What the lot says.
    fn drawn(&mut self) -> Option<Effect> {
        let draw = self.draw.as_mut()?;
        let (count, effect) = match draw.command() {
            FaultOutcome::Spared => return None,
            FaultOutcome::Error => (&mut draw.injected.errors, Effect::Spoil),
            FaultOutcome::Delay(by) => (&mut draw.injected.delays, Effect::Delay(by)),
            FaultOutcome::Drop => (&mut draw.injected.drops, Effect::Lose),
        };
        *count += 1;
        Some(effect)
    }
    /// True if this interrupt is lost.
    #[inline]
    pub(super) fn loses_interrupt(&mut self) -> bool {
        self.hits_interrupts && self.loses_this_interrupt()
    }
    #[cold]
    fn loses_this_interrupt(&mut self) -> bool {
        if self.interrupts_to_lose > 0 {
            self.interrupts_to_lose -= 1;
            return true;
        }
        self.draw.as_mut().is_some_and(|draw| draw.loses_interrupt())
    }
}
