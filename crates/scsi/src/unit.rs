//! State of one logical unit.

use alloc::vec::Vec;

use ssdyno_spec::scsi::AdditionalSense;

use crate::Nexus;
use crate::facts::NamespaceFacts;
use crate::reservation::Reservations;
use crate::sense::Sense;

/// Something that a nexus must hear of before its next command (SAM-5, 5.14). The order is that of
/// reporting.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum Attention {
    PowerOn,
    DeviceReset,
    NexusLoss,
    CommandsCleared,
    ReservationsPreempted,
    ReservationsReleased,
    RegistrationsPreempted,
    CapacityChanged,
    ModeParametersChanged,
}

impl Attention {
    /// What each is reported as.
    const ALL: [(Attention, AdditionalSense); 9] = [
        (Attention::PowerOn, AdditionalSense::POWER_ON_OR_RESET),
        (Attention::DeviceReset, AdditionalSense::DEVICE_RESET),
        (Attention::NexusLoss, AdditionalSense::NEXUS_LOSS),
        (Attention::CommandsCleared, AdditionalSense::COMMANDS_CLEARED),
        (Attention::ReservationsPreempted, AdditionalSense::RESERVATIONS_PREEMPTED),
        (Attention::ReservationsReleased, AdditionalSense::RESERVATIONS_RELEASED),
        (Attention::RegistrationsPreempted, AdditionalSense::REGISTRATIONS_PREEMPTED),
        (Attention::CapacityChanged, AdditionalSense::CAPACITY_CHANGED),
        (Attention::ModeParametersChanged, AdditionalSense::MODE_PARAMETERS_CHANGED),
    ];

    /// It is reported even if the command meets a reservation conflict (SAM-5, 5.3.3).
    fn precedes_conflict(self) -> bool {
        self <= Attention::NexusLoss
    }

    /// As sense data.
    pub(crate) fn sense(self) -> Sense {
        Sense::new(ssdyno_spec::scsi::SenseKey::UnitAttention, Attention::ALL[self as usize].1)
    }
}

/// A unit's state for each nexus.
#[derive(Clone, Copy, Debug, Default)]
struct PerNexus {
    /// Pending unit attentions, one bit each.
    attentions: u16,
    /// Commands begun before it last changed are aborted.
    generation: u32,
}

/// One logical unit.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) facts: NamespaceFacts,
    nexuses: Vec<PerNexus>,
    /// Sense data in descriptor format (control mode page).
    pub(crate) descriptor_sense: bool,
    /// Software write protect (control mode page).
    pub(crate) software_write_protect: bool,
    /// Number of the format that MODE SELECT asked for and FORMAT UNIT shall use.
    pub(crate) next_format: Option<u8>,
    pub(crate) reservations: Reservations,
    /// Commands that write and have not ended.
    pub(crate) writers: u32,
    /// A command reads and writes as one.
    pub(crate) exclusive: bool,
}

impl Unit {
    pub(crate) fn new(facts: NamespaceFacts) -> Unit {
        Unit {
            facts,
            nexuses: Vec::new(),
            descriptor_sense: false,
            software_write_protect: false,
            next_format: None,
            reservations: Reservations::default(),
            writers: 0,
            exclusive: false,
        }
    }

    /// The LUN: namespace n is LUN n - 1.
    pub(crate) fn number(&self) -> u32 {
        self.facts.nsid - 1
    }

    pub(crate) fn add_nexus(&mut self, power_on: bool) {
        let attentions = u16::from(power_on) << Attention::PowerOn as u8;
        self.nexuses.push(PerNexus { attentions, generation: 0 });
    }

    /// Tells `nexus` of something.
    pub(crate) fn attend(&mut self, nexus: Nexus, attention: Attention) {
        self.nexuses[nexus.index()].attentions |= 1 << attention as u8;
    }

    /// Tells all but `except`.
    pub(crate) fn attend_others(&mut self, except: Option<Nexus>, attention: Attention) {
        for (index, state) in self.nexuses.iter_mut().enumerate() {
            if except.map(Nexus::index) != Some(index) {
                state.attentions |= 1 << attention as u8;
            }
        }
    }

    /// The first that is pending for `nexus`, which is then no longer pending.
    pub(crate) fn take_attention(&mut self, nexus: Nexus) -> Option<Attention> {
        let pending = &mut self.nexuses[nexus.index()].attentions;
        let (first, _) = *Attention::ALL.get(pending.trailing_zeros() as usize)?;
        // One bit per condition instead of a queue: SAM-5 allows a target to report a condition
        // once however often it occurred, and an idle initiator cannot make the state grow.
        *pending &= !(1 << first as u8);
        Some(first)
    }

    /// The same, but only what precedes a reservation conflict.
    pub(crate) fn take_first_attention(&mut self, nexus: Nexus) -> Option<Attention> {
        let first = self.nexuses[nexus.index()].attentions.trailing_zeros() as usize;
        let precedes = Attention::ALL.get(first).is_some_and(|(a, _)| a.precedes_conflict());
        if precedes { self.take_attention(nexus) } else { None }
    }

    /// A number that changes when the commands of `nexus` are aborted.
    pub(crate) fn generation(&self, nexus: Nexus) -> u32 {
        self.nexuses[nexus.index()].generation
    }

    /// Aborts the commands of `nexus`.
    pub(crate) fn abort(&mut self, nexus: Nexus) {
        let state = &mut self.nexuses[nexus.index()];
        state.generation = state.generation.wrapping_add(1);
    }

    /// Logical unit reset (SAM-5, 6.3.3): persistent reservations stay.
    pub(crate) fn reset(&mut self) {
        for state in &mut self.nexuses {
            state.generation = state.generation.wrapping_add(1);
            // One condition clears those that it implies (SAM-5, 5.14.3).
            state.attentions = 1 << Attention::DeviceReset as u8;
        }
        self.descriptor_sense = false;
        self.software_write_protect = false;
        self.next_format = None;
        // SPC-2 ends RESERVE with a reset, SPC-4 keeps persistent reservations. A reset would
        // otherwise be a way around the fence of a cluster.
        self.reservations.release_legacy(None);
    }

    /// The nexus is gone (SAM-5, 6.3.4): its commands and its RESERVE end, registrations stay.
    pub(crate) fn nexus_lost(&mut self, nexus: Nexus) {
        self.abort(nexus);
        self.attend(nexus, Attention::NexusLoss);
        self.reservations.release_legacy(Some(nexus));
    }

    /// Bits to shift a number of blocks by, for bytes.
    pub(crate) fn block_shift(&self) -> u8 {
        self.facts.block_bytes.trailing_zeros() as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attentions_come_once_and_in_order() {
        assert!(Attention::ALL.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(Attention::ALL.iter().enumerate().all(|(bit, (a, _))| *a as usize == bit));
        let mut unit = Unit::new(NamespaceFacts::plain(1, 8, 512));
        unit.add_nexus(true);
        unit.add_nexus(false);
        unit.attend_others(Some(Nexus(0)), Attention::ModeParametersChanged);
        unit.attend(Nexus(1), Attention::ReservationsReleased);
        assert_eq!(unit.take_attention(Nexus(0)), Some(Attention::PowerOn));
        assert_eq!(unit.take_attention(Nexus(0)), None);
        assert_eq!(unit.take_attention(Nexus(1)), Some(Attention::ReservationsReleased));
        assert_eq!(unit.take_attention(Nexus(1)), Some(Attention::ModeParametersChanged));
        assert_eq!(unit.take_attention(Nexus(1)), None);
    }
}
