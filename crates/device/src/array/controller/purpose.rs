//! What is scheduled, and what requests to the members are for: each a kind and a number in 32 bits.

use ssdyno_block::Token;

/// Events and members know 30 bits of a number; the other two are the kind.
pub(super) const NUMBERS: u32 = (1 << 30) - 1;

/// What can happen inside, by place of the command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A core is done with it.
    Executed(u32),
    /// The data of a write are in the cache.
    Received(u32),
    /// It is complete.
    Done(u32),
}

impl ssdyno_engine::Event for Event {
    fn pack(self) -> u32 {
        match self {
            Event::Executed(slot) => slot,
            Event::Received(slot) => slot | 1 << 30,
            Event::Done(slot) => slot | 2 << 30,
        }
    }

    fn unpack(code: u32) -> Event {
        let slot = code & NUMBERS;
        match code >> 30 {
            0 => Event::Executed(slot),
            1 => Event::Received(slot),
            _ => Event::Done(slot),
        }
    }
}

/// What a request to the members is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// The command in this place.
    Command(u32),
    /// The destage with this lock.
    Destage(u32),
    /// This read-ahead.
    Fetch(u32),
}

impl Purpose {
    pub(super) fn token(self) -> Token {
        match self {
            Purpose::Command(slot) => Token(slot),
            Purpose::Destage(lock) => Token(lock | 1 << 30),
            Purpose::Fetch(fetch) => Token(fetch | 2 << 30),
        }
    }

    pub(super) fn of(Token(code): Token) -> Purpose {
        let number = code & NUMBERS;
        match code >> 30 {
            0 => Purpose::Command(number),
            1 => Purpose::Destage(number),
            _ => Purpose::Fetch(number),
        }
    }
}
