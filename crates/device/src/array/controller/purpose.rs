//! The purposes of scheduled events and of requests to the members: each a kind and a number in 32 bits.

use ssdyno_block::Token;
use ssdyno_engine::Event as _;

/// Events and members know 30 bits of a number; the other two are the kind.
pub(super) const NUMBERS: u32 = (1 << 30) - 1;

ssdyno_engine::event_kinds! {
    /// The possible events inside, by place of the command.
    #[derive(Clone, Copy, Debug)]
    pub(super) enum Event << 30 {
        /// A core is done with it.
        Executed(u32) = 0,
        /// The data of a write are in the cache.
        Received(u32) = 1,
        /// It is complete.
        Done(u32) = 2,
    }
}

ssdyno_engine::event_kinds! {
    /// The purpose of a request to the members.
    #[derive(Clone, Copy, Debug)]
    pub(super) enum Purpose << 30 {
        /// The command in this place.
        Command(u32) = 0,
        /// The destage with this lock.
        Destage(u32) = 1,
        /// This read-ahead.
        Fetch(u32) = 2,
    }
}

impl Purpose {
    pub(super) fn token(self) -> Token {
        Token(self.pack())
    }

    pub(super) fn of(Token(code): Token) -> Purpose {
        Purpose::unpack(code)
    }
}
