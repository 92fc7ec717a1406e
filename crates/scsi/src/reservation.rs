//! Reservations: persistent ones (SPC-4, 5.13) and those of RESERVE (SPC-2, 5.5).
//!
//! They live in the translator, not in the controller: every initiator comes through it.

use alloc::vec::Vec;

use crate::Nexus;
use crate::commands::Access;

// Without a limit, an initiator that registers through ever new TransportIDs could use all memory
// of the target. SPC-4 has INSUFFICIENT REGISTRATION RESOURCES for this case.
/// Most registrations of a logical unit.
const REGISTRATIONS_MAX: usize = 256;

/// Type of a persistent reservation (SPC-4, table 224).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    WriteExclusive = 1,
    ExclusiveAccess = 3,
    WriteExclusiveRegistrantsOnly = 5,
    ExclusiveAccessRegistrantsOnly = 6,
    WriteExclusiveAllRegistrants = 7,
    ExclusiveAccessAllRegistrants = 8,
}

impl Kind {
    pub(crate) fn new(code: u8) -> Option<Kind> {
        Some(match code {
            1 => Kind::WriteExclusive,
            3 => Kind::ExclusiveAccess,
            5 => Kind::WriteExclusiveRegistrantsOnly,
            6 => Kind::ExclusiveAccessRegistrantsOnly,
            7 => Kind::WriteExclusiveAllRegistrants,
            8 => Kind::ExclusiveAccessAllRegistrants,
            _ => return None,
        })
    }
    /// Every registrant holds it.
    pub(crate) fn all_registrants(self) -> bool {
        matches!(self, Kind::WriteExclusiveAllRegistrants | Kind::ExclusiveAccessAllRegistrants)
    }
    /// Every registrant may write.
    pub(crate) fn registrants_write(self) -> bool {
        !matches!(self, Kind::WriteExclusive | Kind::ExclusiveAccess)
    }
    /// Everybody may read.
    fn open_to_readers(self) -> bool {
        matches!(
            self,
            Kind::WriteExclusive
                | Kind::WriteExclusiveRegistrantsOnly
                | Kind::WriteExclusiveAllRegistrants
        )
    }
}

/// A nexus and its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Registration {
    pub(crate) nexus: Nexus,
    pub(crate) key: u64,
}

/// A persistent reservation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reservation {
    /// Its holder; for some kinds, every registrant holds it.
    pub(crate) holder: Nexus,
    pub(crate) kind: Kind,
}

/// The reservations of a logical unit.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    /// PRGENERATION.
    pub(crate) generation: u32,
    pub(crate) registrations: Vec<Registration>,
    pub(crate) reservation: Option<Reservation>,
    /// The holder of the unit by RESERVE.
    legacy: Option<Nexus>,
}

/// The initiators affected by a change, which receive a unit attention.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Registrants that learn that the reservation is gone.
    pub(crate) released: Vec<Nexus>,
    /// Nexuses whose registration somebody else has removed.
    pub(crate) preempted: Vec<Nexus>,
}

/// Why a change was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Denied {
    /// RESERVATION CONFLICT.
    Conflict,
    /// INVALID RELEASE OF PERSISTENT RESERVATION.
    WrongKind,
    /// The key of all registrants cannot be preempted.
    ZeroKey,
    /// INSUFFICIENT REGISTRATION RESOURCES.
    Full,
}

impl Reservations {
    /// The key of `nexus`, where it is registered.
    pub(crate) fn key(&self, nexus: Nexus) -> Option<u64> {
        self.registrations.iter().find(|r| r.nexus == nexus).map(|r| r.key)
    }

    /// Whether `nexus` holds the persistent reservation.
    pub(crate) fn holds(&self, nexus: Nexus) -> bool {
        self.reservation.is_some_and(|reservation| {
            if reservation.kind.all_registrants() {
                self.key(nexus).is_some()
            } else {
                reservation.holder == nexus
            }
        })
    }

    /// Whether `nexus` may send a command now.
    pub(crate) fn allow(&self, nexus: Nexus, access: Access) -> bool {
        match access {
            Access::Free => return true,
            // SPC-2 forbids a mixture of both kinds of reservation. Otherwise RESERVE could lock
            // out an initiator that holds a valid persistent reservation, and neither would see a
            // conflict.
            Access::Legacy => return self.registrations.is_empty(),
            Access::Persistent => return self.legacy.is_none(),
            _ => {}
        }
        if self.legacy.is_some_and(|holder| holder != nexus) {
            return false;
        }
        let Some(reservation) = self.reservation else { return true };
        match access {
            Access::Free | Access::Status | Access::Legacy | Access::Persistent => true,
            Access::Read if reservation.kind.open_to_readers() => true,
            Access::Read | Access::Write | Access::Start => {
                self.holds(nexus)
                    || reservation.kind.registrants_write() && self.key(nexus).is_some()
            }
        }
    }

    /// RESERVE: `false` is a conflict with another holder.
    pub(crate) fn reserve_legacy(&mut self, nexus: Nexus) -> bool {
        let free = self.legacy.is_none_or(|holder| holder == nexus);
        // A second RESERVE of the holder succeeds (SPC-2): an initiator that lost the answer of the
        // first RESERVE repeats the command and must not lock itself out.
        if free {
            self.legacy = Some(nexus);
        }
        free
    }

    /// RELEASE by `nexus`, or by a reset: nothing happens when another holds the unit.
    pub(crate) fn release_legacy(&mut self, nexus: Option<Nexus>) {
        if nexus.is_none() || self.legacy == nexus {
            self.legacy = None;
        }
    }

    /// Registers `nexus` with `key`; zero removes the registration.
    pub(crate) fn register(&mut self, nexus: Nexus, key: u64) -> Result<Told, Denied> {
        let mut told = Told::default();
        let at = self.registrations.iter().position(|r| r.nexus == nexus);
        match (at, key) {
            (Some(index), 0) => {
                self.registrations.remove(index);
                self.unregistered(nexus, &mut told);
            }
            (Some(index), key) => self.registrations[index].key = key,
            // Key 0 from a nexus without registration succeeds and changes nothing. The early
            // return also leaves PRGENERATION as it is: a change would tell cluster software that
            // the registrations differ.
            (None, 0) => return Ok(told),
            (None, _) if self.registrations.len() >= REGISTRATIONS_MAX => return Err(Denied::Full),
            (None, key) => self.registrations.push(Registration { nexus, key }),
        }
        self.generation = self.generation.wrapping_add(1);
        Ok(told)
    }

    /// The reservation ends with its holder's registration (SPC-4, 5.13.11.3).
    fn unregistered(&mut self, nexus: Nexus, told: &mut Told) {
        let Some(reservation) = self.reservation else { return };
        // For the two all-registrants types every registrant is a holder, so `holder` (the first
        // one) has no special role: the reservation survives its departure and ends with the last
        // registration.
        let ends = if reservation.kind.all_registrants() {
            self.registrations.is_empty()
        } else {
            reservation.holder == nexus
        };
        if ends {
            self.reservation = None;
            if reservation.kind.registrants_write() {
                told.released.extend(self.registrations.iter().map(|r| r.nexus));
            }
        }
    }

    /// RESERVE of the persistent kind.
    pub(crate) fn reserve(&mut self, nexus: Nexus, kind: Kind) -> Result<(), Denied> {
        match self.reservation {
            None => self.reservation = Some(Reservation { holder: nexus, kind }),
            // A repeated RESERVE of the same type by a holder is GOOD. Another type is a conflict
            // even for the holder, because SPC-4 has no atomic change of type; PREEMPT serves this
            // purpose.
            Some(there) if self.holds(nexus) && there.kind == kind => {}
            Some(_) => return Err(Denied::Conflict),
        }
        Ok(())
    }

    /// RELEASE of the persistent kind (SPC-4, 5.13.11.2).
    pub(crate) fn release(&mut self, nexus: Nexus, kind: Kind) -> Result<Told, Denied> {
        let mut told = Told::default();
        let Some(there) = self.reservation else { return Ok(told) };
        // RELEASE by a registrant that holds nothing is GOOD without an effect. A conflict here
        // would break initiators that release unconditionally when they shut down.
        if !self.holds(nexus) {
            return Ok(told);
        }
        if there.kind != kind {
            return Err(Denied::WrongKind);
        }
        self.reservation = None;
        if kind.registrants_write() {
            // The types with registrants-only access tell the other registrants about the release,
            // because their rights change. Under the two plain types a registrant had no more
            // rights than a stranger.
            let others = self.registrations.iter().map(|r| r.nexus).filter(|&n| n != nexus);
            told.released.extend(others);
        }
        Ok(told)
    }

    /// CLEAR (SPC-4, 5.13.11.6): everybody else learns it as *reservations preempted*.
    pub(crate) fn clear(&mut self, nexus: Nexus) -> Told {
        let others = self.registrations.drain(..).map(|r| r.nexus).filter(|&n| n != nexus);
        let told = Told { released: Vec::new(), preempted: others.collect() };
        self.reservation = None;
        self.generation = self.generation.wrapping_add(1);
        told
    }

    /// PREEMPT (SPC-4, 5.13.11.4).
    pub(crate) fn preempt(&mut self, nexus: Nexus, key: u64, kind: Kind) -> Result<Told, Denied> {
        let all = self.reservation.is_some_and(|there| there.kind.all_registrants());
        if key == 0 && !all {
            return Err(Denied::ZeroKey);
        }
        let holder_key = self.reservation.and_then(|there| self.key(there.holder));
        // For the all-registrants types, key 0 means that the caller takes over from everybody. A
        // key other than 0 only removes registrations, and the reservation stays with the remaining
        // registrants.
        let take_over = if all { key == 0 } else { holder_key == Some(key) };
        let (mut gone, mut told) = (Vec::new(), Told::default());
        self.registrations.retain(|r| {
            // An initiator can preempt its own key. If this takes over the reservation, its own
            // registration must stay: the new holder needs a registration.
            let goes = (key == 0 || r.key == key) && (!take_over || r.nexus != nexus);
            if goes {
                gone.push(r.nexus);
            }
            !goes
        });
        if gone.is_empty() && !take_over {
            return Err(Denied::Conflict);
        }
        if take_over {
            let before = self.reservation.replace(Reservation { holder: nexus, kind });
            if before.is_some_and(|before| before.kind != kind) {
                let left = self.registrations.iter().map(|r| r.nexus).filter(|&n| n != nexus);
                told.released.extend(left);
            }
        } else {
            for &nexus in &gone {
                self.unregistered(nexus, &mut told);
            }
        }
        gone.retain(|&n| n != nexus);
        told.preempted = gone;
        self.generation = self.generation.wrapping_add(1);
        Ok(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Nexus = Nexus(1);
    const B: Nexus = Nexus(2);
    const C: Nexus = Nexus(3);

    fn two(kind: Kind) -> Reservations {
        let mut unit = Reservations::default();
        unit.register(A, 10).unwrap();
        unit.register(B, 20).unwrap();
        unit.reserve(A, kind).unwrap();
        unit
    }

    /// SPC-4, table 66: who reads and who writes, for holder, registrant and stranger.
    #[test]
    fn who_may_do_what() {
        use Kind::*;
        for (kind, read, write) in [
            (WriteExclusive, [true, true, true], [true, false, false]),
            (ExclusiveAccess, [true, false, false], [true, false, false]),
            (WriteExclusiveRegistrantsOnly, [true, true, true], [true, true, false]),
            (ExclusiveAccessRegistrantsOnly, [true, true, false], [true, true, false]),
            (WriteExclusiveAllRegistrants, [true, true, true], [true, true, false]),
            (ExclusiveAccessAllRegistrants, [true, true, false], [true, true, false]),
        ] {
            let unit = two(kind);
            for (index, nexus) in [A, B, C].into_iter().enumerate() {
                assert_eq!(unit.allow(nexus, Access::Read), read[index], "{kind:?} {nexus:?}");
                assert_eq!(unit.allow(nexus, Access::Write), write[index], "{kind:?} {nexus:?}");
                assert!(unit.allow(nexus, Access::Status));
            }
        }
    }

    #[test]
    fn the_reservation_ends_with_its_holder_or_with_the_last_registrant() {
        let mut unit = two(Kind::WriteExclusive);
        assert_eq!(unit.register(A, 0), Ok(Told::default()));
        assert_eq!(unit.reservation, None);

        let mut unit = two(Kind::WriteExclusiveRegistrantsOnly);
        assert_eq!(unit.register(A, 0).unwrap().released, [B]);
        assert_eq!(unit.reservation, None);

        let mut unit = two(Kind::ExclusiveAccessAllRegistrants);
        unit.register(A, 0).unwrap();
        assert!(unit.holds(B) && !unit.holds(A));
        unit.register(B, 0).unwrap();
        assert_eq!(unit.reservation, None);
    }

    #[test]
    fn release_needs_the_kind_and_tells_registrants() {
        let mut unit = two(Kind::ExclusiveAccessRegistrantsOnly);
        assert_eq!(unit.release(B, Kind::WriteExclusive), Ok(Told::default()), "not the holder");
        assert_eq!(unit.release(A, Kind::WriteExclusive), Err(Denied::WrongKind));
        let told = unit.release(A, Kind::ExclusiveAccessRegistrantsOnly).unwrap();
        assert_eq!(told.released, [B]);
    }

    #[test]
    fn preempt_takes_over_or_only_removes() {
        let mut unit = two(Kind::WriteExclusive);
        let told = unit.preempt(B, 10, Kind::ExclusiveAccess).unwrap();
        assert_eq!((told.preempted, told.released), (alloc::vec![A], alloc::vec![]));
        assert_eq!(unit.reservation, Some(Reservation { holder: B, kind: Kind::ExclusiveAccess }));

        let mut unit = two(Kind::WriteExclusive);
        unit.register(C, 30).unwrap();
        let generation = unit.generation;
        assert_eq!(unit.preempt(B, 30, Kind::ExclusiveAccess).unwrap().preempted, [C]);
        assert_eq!(unit.generation, generation + 1);
        assert!(unit.holds(A), "only the registration went");
        assert_eq!(unit.preempt(B, 99, Kind::ExclusiveAccess), Err(Denied::Conflict));
        assert_eq!(unit.preempt(B, 0, Kind::ExclusiveAccess), Err(Denied::ZeroKey));

        let mut unit = two(Kind::WriteExclusiveAllRegistrants);
        assert_eq!(unit.preempt(B, 0, Kind::WriteExclusive).unwrap().preempted, [A]);
        assert_eq!(unit.reservation, Some(Reservation { holder: B, kind: Kind::WriteExclusive }));
    }

    #[test]
    fn reserve_excludes_all_others() {
        let mut unit = Reservations::default();
        assert!(unit.reserve_legacy(A) && unit.reserve_legacy(A) && !unit.reserve_legacy(B));
        unit.release_legacy(Some(B));
        assert!(!unit.allow(B, Access::Status) && unit.allow(B, Access::Free));
        assert!(unit.allow(B, Access::Legacy), "RESERVE conflicts by itself; RELEASE does nothing");
        unit.release_legacy(Some(A));
        assert!(unit.allow(B, Access::Write));
        assert!(unit.allow(B, Access::Legacy) && unit.allow(B, Access::Persistent));
        assert!(unit.reserve_legacy(A));
        assert!(!unit.allow(A, Access::Persistent) && !unit.allow(B, Access::Persistent));
        unit.release_legacy(Some(A));
        unit.register(A, 1).unwrap();
        assert!(!unit.allow(A, Access::Legacy) && !unit.allow(B, Access::Legacy));
    }

    #[test]
    fn registrations_are_bounded() {
        let mut unit = Reservations::default();
        for n in 0..REGISTRATIONS_MAX as u16 {
            unit.register(Nexus(n), 1).unwrap();
        }
        assert_eq!(unit.register(Nexus(999), 1), Err(Denied::Full));
    }
}
