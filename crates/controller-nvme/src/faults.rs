//! Injected faults: what a test or an experiment wants to go wrong.

use std::ops::Range;

use ssdyno_block::{Fault, FaultPlan, FaultSite, FaultTrigger};
use ssdyno_spec::nvme::NvmeStatus;

/// The effect of a fault on a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It ends with this status, and the medium is not touched.
    Fail(NvmeStatus),
    /// It meets this fault: with [`Fault::Error`] it is done, and ends with an error of the medium all the
    /// same; with [`Fault::Drop`] Abort or a reset ends it.
    Meet(Fault),
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
    plan: Option<Box<FaultPlan>>,
    /// Commands are to be looked at.
    hits_commands: bool,
    pub(super) stuck: Option<Stuck>,
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
    pub(super) fn arm(&mut self, plan: FaultPlan) {
        // The flags remember what the plan can hit. Sites that it leaves alone cost one test of
        // a flag. The plan itself is not looked at there.
        self.hits_commands |= plan.hits(FaultSite::Command);
        self.hits_interrupts |= plan.hits(FaultSite::Interrupt);
        self.plan = Some(Box::new(plan));
    }
    pub(super) fn plan(&self) -> Option<&FaultPlan> {
        self.plan.as_deref()
    }
    pub(super) fn plan_mut(&mut self) -> &mut FaultPlan {
        self.plan.get_or_insert_with(|| Box::new(FaultPlan::new(0)))
    }
    pub(super) fn lose_interrupts(&mut self, count: u32) {
        let next = FaultTrigger::Next(count);
        self.plan_mut().add(FaultSite::Interrupt, Fault::Drop, next);
        self.hits_interrupts = true;
    }
    pub(super) fn clear(&mut self) {
        *self = Faults::default();
    }
    /// The fault of a command on `blocks` of `namespace`: the first that fits. No blocks: it has no range, or many.
    pub(super) fn hit(&mut self, opcode: u8, namespace: u32, blocks: Range<u64>) -> Option<Effect> {
        let fits = |fault: &ControllerFault| {
            let named = fault.opcode == Some(opcode);
            let meets = fault.blocks.start < blocks.end && blocks.start < fault.blocks.end;
            let hit = if blocks.is_empty() { named } else { meets };
            hit && (named || fault.opcode.is_none()) && fault.namespace == namespace
        };
        // Faults that name a command come before the plan. Otherwise a draw of the plan would
        // use up a command that a test has chosen.
        match self.list.iter().position(fits) {
            Some(at) => Some(self.take(at)),
            None => self.plan.as_mut()?.meets(FaultSite::Command, 0).map(Effect::Meet),
        }
    }
    /// The fault of an admin command for the whole subsystem. The plan is for I/O commands.
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
    /// True if this interrupt is lost.
    #[inline]
    pub(super) fn loses_interrupt(&mut self) -> bool {
        self.hits_interrupts && self.loses_this_interrupt()
    }
    #[cold]
    fn loses_this_interrupt(&mut self) -> bool {
        let plan = self.plan.as_mut();
        plan.is_some_and(|plan| plan.meets(FaultSite::Interrupt, 0).is_some())
    }
}
