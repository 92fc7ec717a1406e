//! NVMe status to SCSI status and sense (S1-50; translation reference 1.5, clause 7).

use ssdyno_spec::nvme::NvmeStatus;
use ssdyno_spec::scsi::{AdditionalSense, SenseKey, status};

use crate::sense::Sense;

/// How a failed NVMe command looks to the initiator: SCSI status, and sense data where that status
/// has some.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Translated {
    /// SAM-5 status code.
    pub status: u8,
    /// Sense data: with CHECK CONDITION and TASK ABORTED.
    pub sense: Option<Sense>,
}

/// SCSI status and sense for `status`.
///
/// Codes that no clause names end as the nearest of their type: generic ones as HARDWARE ERROR,
/// INTERNAL TARGET FAILURE; command specific ones as ILLEGAL REQUEST; media ones as MEDIUM ERROR;
/// path and vendor ones as ABORTED COMMAND, which invites another try, or HARDWARE ERROR where bit
/// DNR says that it cannot help.
pub fn translate(status: NvmeStatus) -> Translated {
    use AdditionalSense as A;
    use SenseKey as K;
    if status.is_success() {
        return Translated { status: status::GOOD, sense: None };
    }
    let (key, additional) = match (status.code_type(), status.code()) {
        // Reservation conflict.
        (0, 0x83) => return Translated { status: status::RESERVATION_CONFLICT, sense: None },
        // Power loss; abort requested; queue deleted; fused pair failed or incomplete; preempted.
        (0, 0x05) => return aborted(A::POWER_LOSS_EXPECTED),
        (0, 0x07..=0x0a | 0x1b) => return aborted(A::NONE),
        (0, code) => generic(code),
        (1, 0x0a) => (K::IllegalRequest, A::FORMAT_FAILED),
        (1, 0x0d) => (K::IllegalRequest, A::SAVING_NOT_SUPPORTED),
        (1, 0x80) => (K::IllegalRequest, A::INVALID_FIELD_IN_CDB),
        (1, 0x81) => (K::IllegalRequest, A::INVALID_FIELD_IN_CDB),
        (1, 0x82) => (K::DataProtect, A::WRITE_PROTECTED),
        (1, _) => (K::IllegalRequest, A::NONE),
        (2, code) => media(code),
        _ if status.do_not_retry() => (K::HardwareError, A::INTERNAL_TARGET_FAILURE),
        _ => (K::AbortedCommand, A::NONE),
    };
    Translated { status: status::CHECK_CONDITION, sense: Some(Sense::new(key, additional)) }
}

fn aborted(additional: AdditionalSense) -> Translated {
    let sense = Sense::new(SenseKey::AbortedCommand, additional);
    Translated { status: status::TASK_ABORTED, sense: Some(sense) }
}

/// Generic command status (base 2.0c, figure 94; NVM 1.0c, figure 8).
fn generic(code: u8) -> (SenseKey, AdditionalSense) {
    use AdditionalSense as A;
    use SenseKey as K;
    match code {
        0x01 => (K::IllegalRequest, A::INVALID_OPERATION_CODE),
        // Invalid field; PRP offset; SGL; the atomic write unit is exceeded.
        0x02 | 0x0d..=0x14 | 0x16 => (K::IllegalRequest, A::INVALID_FIELD_IN_CDB),
        // The identifier is in use; commands in a forbidden order: the path is at fault.
        0x03 | 0x0c => (K::AbortedCommand, A::NONE),
        // Data transfer error; capacity exceeded.
        0x04 | 0x81 => (K::MediumError, A::NONE),
        0x06 => (K::HardwareError, A::INTERNAL_TARGET_FAILURE),
        0x0b => (K::IllegalRequest, A::INVALID_LU_IDENTIFIER),
        0x15 => (K::IllegalRequest, A::NO_ACCESS_RIGHTS),
        // Sanitize failed: only another sanitize helps.
        0x1c => (K::MediumError, A::SANITIZE_FAILED),
        0x1d => (K::NotReady, A::SANITIZE_IN_PROGRESS),
        0x20 => (K::DataProtect, A::WRITE_PROTECTED),
        // Interrupted; transport error: to be tried again.
        0x21 | 0x22 => (K::AbortedCommand, A::NONE),
        // Media not ready for an admin command.
        0x24 => (K::NotReady, A::NOT_READY),
        0x80 => (K::IllegalRequest, A::LBA_OUT_OF_RANGE),
        0x82 => (K::NotReady, A::NOT_READY),
        0x84 => (K::NotReady, A::FORMAT_IN_PROGRESS),
        _ => (K::HardwareError, A::INTERNAL_TARGET_FAILURE),
    }
}

/// Media and data integrity errors (NVM 1.0c, figure 10).
fn media(code: u8) -> (SenseKey, AdditionalSense) {
    use AdditionalSense as A;
    use SenseKey as K;
    match code {
        0x80 => (K::MediumError, A::WRITE_FAULT),
        0x81 => (K::MediumError, A::UNRECOVERED_READ),
        0x82 => (K::MediumError, A::GUARD_CHECK),
        0x83 => (K::MediumError, A::APPLICATION_TAG_CHECK),
        0x84 => (K::MediumError, A::REFERENCE_TAG_CHECK),
        0x85 => (K::Miscompare, A::MISCOMPARE),
        0x86 => (K::DataProtect, A::NO_ACCESS_RIGHTS),
        // Deallocated or unwritten, and the host asked for an error.
        0x87 => (K::MediumError, A::UNRECOVERED_READ),
        _ => (K::MediumError, A::NONE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: u16, code: u16) -> (u8, Option<(u8, u16)>) {
        let translated = translate(NvmeStatus::from_bits(kind << 8 | code));
        (translated.status, translated.sense.map(|s| (s.key as u8, s.additional.0)))
    }

    /// Rows of clause 7 of the translation reference.
    #[test]
    fn rows_of_the_reference() {
        assert_eq!(of(0, 0x00), (0x00, None));
        assert_eq!(of(0, 0x01), (0x02, Some((0x5, 0x2000))));
        assert_eq!(of(0, 0x02), (0x02, Some((0x5, 0x2400))));
        assert_eq!(of(0, 0x04), (0x02, Some((0x3, 0x0000))));
        assert_eq!(of(0, 0x05), (0x40, Some((0xb, 0x0b08))));
        assert_eq!(of(0, 0x06), (0x02, Some((0x4, 0x4400))));
        assert_eq!(of(0, 0x07), (0x40, Some((0xb, 0x0000))));
        assert_eq!(of(0, 0x08), (0x40, Some((0xb, 0x0000))));
        assert_eq!(of(0, 0x0b), (0x02, Some((0x5, 0x2009))));
        assert_eq!(of(0, 0x80), (0x02, Some((0x5, 0x2100))));
        assert_eq!(of(0, 0x82), (0x02, Some((0x2, 0x0400))));
        assert_eq!(of(0, 0x83), (0x18, None));
        assert_eq!(of(0, 0x84), (0x02, Some((0x2, 0x0404))));
        assert_eq!(of(1, 0x0a), (0x02, Some((0x5, 0x3101))));
        assert_eq!(of(1, 0x80), (0x02, Some((0x5, 0x2400))));
        assert_eq!(of(2, 0x80), (0x02, Some((0x3, 0x0300))));
        assert_eq!(of(2, 0x81), (0x02, Some((0x3, 0x1100))));
        assert_eq!(of(2, 0x85), (0x02, Some((0xe, 0x1d00))));
        assert_eq!(of(2, 0x82), (0x02, Some((0x3, 0x1001))));
        assert_eq!(of(2, 0x86), (0x02, Some((0x7, 0x2002))));
    }

    /// Codes that no row of the reference has: as the nearest that has one, see [`translate`].
    #[test]
    fn rows_beyond_the_reference() {
        let check = |key, additional| (0x02, Some((key, additional)));
        for (kind, codes, row) in [
            // Identifier conflict, sequence error; transport and interrupted commands: another try.
            (0, &[0x03, 0x0c, 0x21, 0x22][..], check(0xb, 0x0000)),
            (0, &[0x09, 0x0a, 0x1b], (0x40, Some((0xb, 0x0000)))),
            // Data pointers and lists, and the atomic write unit.
            (0, &[0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x16], check(0x5, 0x2400)),
            (0, &[0x15], check(0x5, 0x2002)),
            (0, &[0x81], check(0x3, 0x0000)),
            (0, &[0x1c], check(0x3, 0x3103)),
            (0, &[0x1d], check(0x2, 0x041b)),
            (0, &[0x20], check(0x7, 0x2700)),
            (0, &[0x24], check(0x2, 0x0400)),
            (0, &[0x17, 0x1e, 0x1f, 0x23, 0x30, 0x7f, 0x85, 0xc0], check(0x4, 0x4400)),
            (1, &[0x0d], check(0x5, 0x3900)),
            (1, &[0x81], check(0x5, 0x2400)),
            // The range is read only.
            (1, &[0x82], check(0x7, 0x2700)),
            (1, &[0x00, 0x01, 0x05, 0x09, 0x0b, 0x7f, 0x83, 0xff], check(0x5, 0x0000)),
            (2, &[0x83], check(0x3, 0x1002)),
            (2, &[0x84], check(0x3, 0x1003)),
            (2, &[0x87], check(0x3, 0x1100)),
            (2, &[0x00, 0x88, 0xff], check(0x3, 0x0000)),
            (3, &[0x00, 0x60, 0x70], check(0xb, 0x0000)),
            (7, &[0x00, 0xff], check(0xb, 0x0000)),
        ] {
            for code in codes {
                assert_eq!(of(kind, *code), row, "type {kind}, code {code:#04x}");
            }
        }
    }

    #[test]
    fn every_failure_has_a_status_and_every_check_condition_a_key() {
        for bits in 0..0x8000_u16 {
            let status = NvmeStatus::from_bits(bits);
            let translated = translate(status);
            assert_eq!(translated.status == status::GOOD, status.is_success(), "{bits:#x}");
            if translated.status == status::CHECK_CONDITION {
                let sense = translated.sense.expect("CHECK CONDITION has sense data");
                assert_ne!(sense.key, SenseKey::NoSense, "{bits:#x}");
            }
        }
    }

    #[test]
    fn path_errors_invite_another_try_unless_it_cannot_help() {
        let path = NvmeStatus::from_bits(3 << 8 | 0x70);
        assert_eq!(translate(path).sense.map(|s| s.key), Some(SenseKey::AbortedCommand));
        let fatal = path.with_do_not_retry();
        assert_eq!(translate(fatal).sense.map(|s| s.key), Some(SenseKey::HardwareError));
    }
}
