//! Injected faults of a network: what it does to messages.

use ssdyno_block::Time;
use ssdyno_block::units::Span;
use ssdyno_engine::Rng;
use ssdyno_result::NetworkFaults;

use crate::faults::NetworkFaultConfig;

/// What becomes of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Delivery {
    /// It arrives.
    Arrives(Time),
    /// It does not, and is sent again.
    Again(Time),
    /// Its session breaks with it.
    Breaks,
}

/// Draws the fates of messages, and knows which sessions are down.
#[derive(Debug)]
pub(super) struct LinkFaults {
    config: NetworkFaultConfig,
    rng: Rng,
    /// Until when each session takes no commands.
    down_until: Vec<Time>,
    /// When all sessions break; [`Time::MAX`]: not any more.
    pub(super) break_at: Time,
    pub(super) counts: NetworkFaults,
}

impl LinkFaults {
    /// None where nothing is asked for.
    pub(super) fn new(
        config: &NetworkFaultConfig,
        sessions: usize,
        seed: u64,
    ) -> Option<Box<LinkFaults>> {
        (!config.is_none()).then(|| {
            Box::new(LinkFaults {
                config: *config,
                rng: Rng::new(seed, "faults of the network"),
                down_until: vec![Time::ZERO; sessions],
                break_at: config.reset_at.map_or(Time::MAX, |Span(at)| at),
                counts: NetworkFaults::default(),
            })
        })
    }

    /// What becomes of a message that sets out at `sent` and would arrive at `arrives`; word that it was
    /// damaged takes `back` to its sender.
    pub(super) fn fate(&mut self, sent: Time, arrives: Time, back: Time) -> Delivery {
        let NetworkFaultConfig { error, delay, delay_by, drop, resend_after, reset, .. } =
            self.config;
        if error + delay + drop + reset <= 0.0 {
            return Delivery::Arrives(arrives);
        }
        let lot = self.rng.unit();
        if lot < error {
            self.counts.errors += 1;
            return Delivery::Again(arrives + back);
        }
        if lot < error + drop {
            self.counts.drops += 1;
            return Delivery::Again(sent + resend_after.0);
        }
        if lot < error + drop + reset {
            return Delivery::Breaks;
        }
        match delay_by {
            Some(Span(by)) if lot < error + drop + reset + delay => {
                self.counts.delays += 1;
                Delivery::Arrives(arrives + by)
            }
            _ => Delivery::Arrives(arrives),
        }
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
        *(if may { &mut counts.commands_resent } else { &mut counts.commands_given_up }) += 1;
        may
    }
}
