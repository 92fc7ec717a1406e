//! PERSISTENT RESERVE IN and OUT (SPC-4, 6.15 and 6.16).

use alloc::vec::Vec;

use ssdyno_spec::scsi::AdditionalSense;
use ssdyno_spec::scsi::opcode::{persistent_reserve_in as input, persistent_reserve_out as output};

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::job::ScsiJob;
use crate::request::{Call, ScsiRequest};
use crate::reservation::{Denied, Kind, Told};
use crate::sense::{Checked, Refusal, Sense};
use crate::target::ScsiTarget;
use crate::unit::Attention;

/// Length of the parameter list without TransportIDs.
const PARAMETER_BYTES: u32 = 24;

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Refusal {
        match denied {
            Denied::Conflict => Refusal::Conflict,
            Denied::WrongKind => Sense::illegal(AdditionalSense::INVALID_RELEASE).into(),
            // The service action reservation key.
            Denied::ZeroKey => Sense::parameter(8).into(),
            Denied::Full => {
                Sense::illegal(AdditionalSense::INSUFFICIENT_REGISTRATION_RESOURCES).into()
            }
        }
    }
}

impl ScsiTarget {
    pub(crate) fn persistent_in(&self, job: &mut ScsiJob, unit: usize, cdb: &[u8]) {
        let reservations = &self.units[unit].reservations;
        let mut data = Vec::new();
        data.extend_from_slice(&reservations.generation.to_be_bytes());
        match cdb[1] & 0x1f {
            input::READ_KEYS => {
                data.extend_from_slice(
                    &(8 * reservations.registrations.len() as u32).to_be_bytes(),
                );
                for registration in &reservations.registrations {
                    data.extend_from_slice(&registration.key.to_be_bytes());
                }
            }
            input::READ_RESERVATION => {
                let length: u32 = if reservations.reservation.is_some() { 16 } else { 0 };
                data.extend_from_slice(&length.to_be_bytes());
                if let Some(there) = reservations.reservation {
                    let all = there.kind.all_registrants();
                    // All registrants hold the all-registrants types, so no single key identifies
                    // the holder. SPC-4 requires a reservation key of 0 in this case.
                    let key = if all { None } else { reservations.key(there.holder) };
                    data.extend_from_slice(&key.unwrap_or(0).to_be_bytes());
                    data.extend_from_slice(&[0, 0, 0, 0, 0, there.kind as u8, 0, 0]);
                }
            }
            input::REPORT_CAPABILITIES => {
                // Length 8; nothing of the first flags; TMV; the six types (SPC-4, table 227).
                data.clear();
                data.extend_from_slice(&[0, 8, 0, 0x80, 0xea, 0x01, 0, 0]);
            }
            _ => self.full_status(unit, &mut data),
        }
        job.answer(&data, usize::from(u16_at(cdb, 7)));
    }

    /// READ FULL STATUS (SPC-4, 6.15.5).
    fn full_status(&self, unit: usize, data: &mut Vec<u8>) {
        let reservations = &self.units[unit].reservations;
        let start = data.len() + 4;
        data.extend_from_slice(&[0; 4]);
        for registration in &reservations.registrations {
            // R_HOLDER is computed per registration and not compared with `holder`: for the
            // all-registrants types every registrant must show as a holder, with scope and type.
            let holds = reservations.holds(registration.nexus);
            let kind = reservations.reservation.filter(|_| holds).map_or(0, |r| r.kind as u8);
            let transport_id = self.nexuses[registration.nexus.index()].as_slice();
            data.extend_from_slice(&registration.key.to_be_bytes());
            // Reserved; R_HOLDER; scope and type; reserved; relative target port 1.
            data.extend_from_slice(&[0, 0, 0, 0, u8::from(holds), kind, 0, 0, 0, 0, 0, 1]);
            data.extend_from_slice(&(transport_id.len() as u32).to_be_bytes());
            data.extend_from_slice(transport_id);
        }
        let length = (data.len() - start) as u32;
        data[start - 4..start].copy_from_slice(&length.to_be_bytes());
    }

    pub(crate) fn persistent_out(&mut self, call: Call<'_>) -> Checked {
        let Call { unit, request, cdb } = call;
        let (nexus, action) = (request.nexus, cdb[1] & 0x1f);
        let list = request.data_out;
        if u32_at(cdb, 5) != PARAMETER_BYTES || list.len() < PARAMETER_BYTES as usize {
            return Err(Sense::illegal(AdditionalSense::PARAMETER_LIST_LENGTH).into());
        }
        let (key, new_key) = (u64_at(list, 0), u64_at(list, 8));
        // SPEC_I_PT, ALL_TG_PT and APTPL: capabilities that are not claimed. The last two mean nothing
        // where nothing is registered (SPC-4, 6.16.3).
        let registers =
            matches!(action, output::REGISTER | output::REGISTER_AND_IGNORE_EXISTING_KEY);
        if list[20] & if registers { 0x0d } else { 0x08 } != 0 {
            return Err(Sense::parameter(20).into());
        }
        let scoped = matches!(
            action,
            output::RESERVE | output::RELEASE | output::PREEMPT | output::PREEMPT_AND_ABORT
        );
        let kind = match Kind::new(cdb[2] & 0xf) {
            Some(kind) if cdb[2] >> 4 == 0 => kind,
            // Scope and type are ignored otherwise (SPC-4, table 231).
            _ if !scoped => Kind::WriteExclusive,
            _ => return Err(Sense::cdb(2, if cdb[2] >> 4 == 0 { 3 } else { 7 }).into()),
        };
        let reservations = &mut self.units[unit].reservations;
        let registered = reservations.key(nexus);
        let keyed = match action {
            // A nexus without registration must send key 0 in REGISTER. This check detects an
            // initiator that believes to be registered but was preempted meanwhile.
            output::REGISTER => registered.unwrap_or(0) == key,
            output::REGISTER_AND_IGNORE_EXISTING_KEY => true,
            _ => registered == Some(key),
        };
        if !keyed {
            return Err(Refusal::Conflict);
        }
        let mut removed = Attention::RegistrationsPreempted;
        let told = match action {
            output::RESERVE => reservations.reserve(nexus, kind).map(|()| Told::default())?,
            output::RELEASE => reservations.release(nexus, kind)?,
            output::CLEAR => {
                removed = Attention::ReservationsPreempted;
                reservations.clear(nexus)
            }
            output::PREEMPT | output::PREEMPT_AND_ABORT => {
                reservations.preempt(nexus, new_key, kind)?
            }
            _ => reservations.register(nexus, new_key)?,
        };
        let unit = &mut self.units[unit];
        for &other in &told.released {
            unit.attend(other, Attention::ReservationsReleased);
        }
        for &other in &told.preempted {
            unit.attend(other, removed);
            if action == output::PREEMPT_AND_ABORT {
                // The abort comes before the attention. The preempted nexus then learns with its
                // next command that its commands were cleared, and no command of it can end as GOOD
                // after the preemption.
                unit.abort(other);
                unit.attend(other, Attention::CommandsCleared);
            }
        }
        Ok(())
    }

    /// RESERVE (6) and (10).
    pub(crate) fn reserve(&mut self, unit: usize, request: &ScsiRequest<'_>) -> Checked {
        let free = self.units[unit].reservations.reserve_legacy(request.nexus);
        if free { Ok(()) } else { Err(Refusal::Conflict) }
    }
}
