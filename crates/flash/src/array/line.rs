//! The transfers that wait for a channel, and which of them goes next.

use std::collections::VecDeque;

use ssdyno_block::Time;
use ssdyno_engine::events::FlashCause;

use crate::ChannelOrder;

/// The purpose of a transfer, which decides the next step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Command and address of a read: the array reads.
    ReadCommand,
    /// Command and address of an erase: the array erases.
    EraseCommand,
    /// Command and address of a copy: the array reads.
    CopyCommand,
    /// A page that was read: one operation is complete.
    Out,
    /// Command, address and data of a program: the array programs.
    In,
    /// Pages of copies out to the controller and in again: the array programs.
    Through,
    /// 31h or 3Fh: the cache registers take over what was read.
    CacheCommand,
    /// A page from a cache register: one operation is complete.
    CacheOut,
    /// Command, address and data of a program into the cache registers.
    Load,
}

/// The kinds of transfer that an order distinguishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Command,
    DataOut,
    DataIn,
}

impl Step {
    fn class(self) -> Class {
        match self {
            Step::ReadCommand | Step::EraseCommand | Step::CopyCommand | Step::CacheCommand => {
                Class::Command
            }
            Step::Out | Step::CacheOut => Class::DataOut,
            Step::In | Step::Through | Step::Load => Class::DataIn,
        }
    }
}

impl ChannelOrder {
    /// The lower goes first; equal ranks go as they came.
    fn rank(self, class: Class) -> u8 {
        let ranks = match self {
            ChannelOrder::Fcfs => [0, 0, 0],
            ChannelOrder::CommandsFirst => [0, 1, 1],
            ChannelOrder::DataOutFirst => [1, 0, 2],
            ChannelOrder::CommandsThenDataOut => [0, 1, 2],
        };
        ranks[class as usize]
    }
}

/// A transfer that a die wants of its channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) step: Step,
    pub(super) die: u16,
    /// Pages that cross; 0 = command and address cycles only.
    pub(super) pages: u8,
    pub(super) cause: FlashCause,
    pub(super) length: Time,
    /// Into or out of cache registers: until when the array of the die works meanwhile; else zero.
    pub(super) array_to: Time,
}

/// The transfers that wait for one channel.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// In the order in which they became ready.
    pub(super) waiting: VecDeque<Transfer>,
    pub(super) free_at: Time,
    /// An event is on its way that will choose the next.
    pub(super) choosing: bool,
    /// Transfers in a row that went before the oldest.
    overtakes: u32,
}

impl Line {
    /// Takes out the transfer that goes next.
    ///
    /// Nothing waits forever: with a `burst` of b the oldest goes after b others at most, so a
    /// transfer that found n before it goes as one of the next (n + 1) x (b + 1).
    pub(super) fn take(&mut self, order: ChannelOrder, burst: u32) -> Option<Transfer> {
        // `min_by_key` returns the first of equal ranks. Transfers of one class therefore go in
        // the order in which they became ready, and every run with the same seed chooses the
        // same one.
        let chosen = match burst > 0 && self.overtakes >= burst {
            true => 0,
            false => {
                let waiting = self.waiting.iter().enumerate();
                waiting.min_by_key(|(_, transfer)| order.rank(transfer.step.class()))?.0
            }
        };
        self.overtakes = if chosen == 0 { 0 } else { self.overtakes + 1 };
        // The removal moves the entries behind the chosen one. A line holds a few transfers for
        // each die of one channel, so this costs less than a list for each class would.
        self.waiting.remove(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ORDERS: [ChannelOrder; 4] = [
        ChannelOrder::Fcfs,
        ChannelOrder::CommandsFirst,
        ChannelOrder::DataOutFirst,
        ChannelOrder::CommandsThenDataOut,
    ];
    const STEPS: [Step; 3] = [Step::ReadCommand, Step::Out, Step::In];

    fn transfer(step: Step) -> Transfer {
        let (cause, length) = (FlashCause::Host, Time::from_ns(1));
        Transfer { step, die: 0, pages: 1, cause, length, array_to: Time::ZERO }
    }

    /// The steps that go next of a line into which `steps` came in this order.
    fn order_of(order: ChannelOrder, steps: &[Step]) -> Vec<Step> {
        let mut line = Line::default();
        line.waiting.extend(steps.iter().map(|step| transfer(*step)));
        std::iter::from_fn(|| line.take(order, 0)).map(|transfer| transfer.step).collect()
    }

    #[test]
    fn orders_are_what_they_are_called() {
        let came = [Step::In, Step::Out, Step::ReadCommand, Step::Through, Step::EraseCommand];
        let [data_in, out, read, through, erase] = came;
        assert_eq!(order_of(ChannelOrder::Fcfs, &came), came);
        let expected = [read, erase, data_in, out, through];
        assert_eq!(order_of(ChannelOrder::CommandsFirst, &came), expected);
        let expected = [out, read, erase, data_in, through];
        assert_eq!(order_of(ChannelOrder::DataOutFirst, &came), expected);
        let expected = [read, erase, out, data_in, through];
        assert_eq!(order_of(ChannelOrder::CommandsThenDataOut, &came), expected);
    }

    proptest! {
        /// However many come after it, and of whatever kind: a transfer goes as one of the next
        /// (n + 1) x (b + 1), with n in the line before it.
        #[test]
        fn nothing_waits_for_ever(
            order in prop::sample::select(ORDERS.to_vec()),
            burst in 1u32..6,
            before in prop::collection::vec(prop::sample::select(STEPS.to_vec()), 0..8),
            own in prop::sample::select(STEPS.to_vec()),
            after in prop::collection::vec(prop::sample::select(STEPS.to_vec()), 70..80),
            overtakes in 0u32..6,
        ) {
            let mut line = Line { overtakes: overtakes.min(burst), ..Line::default() };
            line.waiting.extend(before.iter().map(|step| transfer(*step)));
            line.waiting.push_back(Transfer { die: 1, ..transfer(own) });
            let mut after = after.into_iter();
            let most = (before.len() + 1) * (burst as usize + 1);
            let mut turns = 0;
            loop {
                line.waiting.extend(after.by_ref().take(2).map(transfer));
                turns += 1;
                if line.take(order, burst).unwrap().die == 1 {
                    break;
                }
            }
            prop_assert!(turns <= most, "{} and not {}", turns, most);
        }
    }

    /// Without a bound data in waits as long as others come.
    #[test]
    fn without_a_bound_data_in_starves() {
        for (burst, expected) in [(0, None), (3, Some(3))] {
            let mut line = Line::default();
            line.waiting.push_back(Transfer { die: 1, ..transfer(Step::In) });
            let turn = (0..1000).position(|_| {
                line.waiting.push_back(transfer(Step::Out));
                line.take(ChannelOrder::DataOutFirst, burst).unwrap().die == 1
            });
            assert_eq!(turn, expected);
        }
    }
}
