//! Injected faults of a network: what it does to messages.

use ssdyno_block::{Fault, FaultPlan, FaultSite, Injected, Time};
use ssdyno_figures::NetworkFaults;

use crate::faults::NetworkFaultConfig;

/// The fate of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Delivery {
    /// It arrives.
    Arrives(Time),
    /// It does not, and is sent again.
    Again(Time),
    /// Its session breaks with it.
    Breaks,
}

/// The faults of messages, and the sessions that are down.
#[derive(Debug)]
pub(super) struct LinkFaults {
    config: NetworkFaultConfig,
    plan: FaultPlan,
    /// Until when each session takes no commands.
    down_until: Vec<Time>,
    /// The events of sessions and their commands.
    counts: NetworkFaults,
}

impl LinkFaults {
    /// None if no faults are configured.
    pub(super) fn new(
        config: &NetworkFaultConfig,
        sessions: usize,
        seed: u64,
    ) -> Option<Box<LinkFaults>> {
        (!config.is_none()).then(|| {
            Box::new(LinkFaults {
                config: *config,
                plan: config.plan(seed),
                down_until: vec![Time::ZERO; sessions],
                counts: NetworkFaults::default(),
            })
        })
    }

    /// What becomes of a message that sets out at `sent` and would arrive at `arrives`; word that it was
    /// damaged takes `back` to its sender.
    pub(super) fn fate(&mut self, sent: Time, arrives: Time, back: Time) -> Delivery {
        match self.plan.meets(FaultSite::Message, 0) {
            // A damaged message is noticed when it arrives: its sender hears of it one way later. A
            // lost one is noticed by nobody, so only the timer of the sender repeats it.
            Some(Fault::Corrupt) => Delivery::Again(arrives + back),
            Some(Fault::Drop) => Delivery::Again(sent + self.config.resend_after.0),
            Some(Fault::Remove) => Delivery::Breaks,
            Some(Fault::Delay(by)) => Delivery::Arrives(arrives + by),
            _ => Delivery::Arrives(arrives),
        }
    }

    /// When all sessions break; [`Time::MAX`]: not any more.
    pub(super) fn break_at(&self) -> Time {
        self.plan.next_time()
    }

    /// When all sessions break, if that is by `now`; once.
    pub(super) fn take_break(&mut self, now: Time) -> Option<Time> {
        let at = self.break_at();
        self.plan.take_due(now).map(|_| at)
    }

    /// The work done so far.
    pub(super) fn counts(&self) -> NetworkFaults {
        let Injected { delays, drops, corrupted, .. } = self.plan.injected;
        NetworkFaults { delays, drops, errors: corrupted, ..self.counts }
    }

    /// A session breaks at `at`; gives when it is back.
    pub(super) fn break_session(&mut self, at: Time, session: usize) -> Time {
        self.counts.session_resets += 1;
        self.down_until[session] = at + self.config.reconnect.0;
        self.down_until[session]
    }

    /// Until when a session takes no commands, if that is after `now`.
    pub(super) fn down(&self, now: Time, session: usize) -> Option<Time> {
        Some(self.down_until[session]).filter(|until| *until > now)
    }

    /// A command that was begun `tries` times lost its session; true if it may begin again.
    pub(super) fn may_begin_again(&mut self, tries: u32) -> bool {
        let may = tries < self.config.tries;
        let counts = &mut self.counts;
        // The initiator gives a command up after a number of tries. Without a limit, a session that
        // breaks with every message would keep the run going for ever.
        *(if may { &mut counts.commands_resent } else { &mut counts.commands_given_up }) += 1;
        may
    }
}
