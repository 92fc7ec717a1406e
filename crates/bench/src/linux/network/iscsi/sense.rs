//! The target's report on a failed command, in words and as an error of the system.

use ssdyno_spec::scsi::{AdditionalSense, status};

/// All tasks of the logical unit are in use (SAM-5, table 30).
const TASK_SET_FULL: u8 = 0x28;

/// Sense keys by number (SPC-4, table 48).
const KEYS: [&str; 16] = [
    "no sense",
    "recovered error",
    "not ready",
    "medium error",
    "hardware error",
    "illegal request",
    "unit attention",
    "data protect",
    "blank check",
    "vendor specific",
    "copy aborted",
    "aborted command",
    "reserved",
    "volume overflow",
    "miscompare",
    "completed",
];

const NO_SENSE: u8 = 0;
const RECOVERED: u8 = 1;
const NOT_READY: u8 = 2;
const ILLEGAL_REQUEST: u8 = 5;
const UNIT_ATTENTION: u8 = 6;
const DATA_PROTECT: u8 = 7;

/// LOGICAL UNIT IS IN PROCESS OF BECOMING READY.
const BECOMING_READY: AdditionalSense = AdditionalSense(0x0401);
/// SPACE ALLOCATION FAILED WRITE PROTECT: a thin unit is full.
const NO_SPACE: AdditionalSense = AdditionalSense(0x2707);

/// Additional sense codes that disks send, in the words of SPC-4, annex E.2.
const CODES: [(AdditionalSense, &str); 34] = [
    (AdditionalSense::WRITE_FAULT, "peripheral device write fault"),
    (AdditionalSense::NOT_READY, "cause not reportable"),
    (BECOMING_READY, "becoming ready"),
    (AdditionalSense::INITIALIZING_COMMAND_REQUIRED, "initializing command required"),
    (AdditionalSense(0x0403), "manual intervention required"),
    (AdditionalSense::FORMAT_IN_PROGRESS, "format in progress"),
    (AdditionalSense::SANITIZE_IN_PROGRESS, "sanitize in progress"),
    (AdditionalSense(0x0800), "communication failure"),
    (AdditionalSense(0x0c00), "write error"),
    (AdditionalSense::INVALID_FIELD_IN_INFORMATION_UNIT, "invalid field in information unit"),
    (AdditionalSense::GUARD_CHECK, "guard check failed"),
    (AdditionalSense::APPLICATION_TAG_CHECK, "application tag check failed"),
    (AdditionalSense::REFERENCE_TAG_CHECK, "reference tag check failed"),
    (AdditionalSense::UNRECOVERED_READ, "unrecovered read error"),
    (AdditionalSense::PARAMETER_LIST_LENGTH, "parameter list length error"),
    (AdditionalSense::INVALID_OPERATION_CODE, "invalid command operation code"),
    (AdditionalSense::NO_ACCESS_RIGHTS, "no access rights"),
    (AdditionalSense::LBA_OUT_OF_RANGE, "logical block address out of range"),
    (AdditionalSense::INVALID_FIELD_IN_CDB, "invalid field in CDB"),
    (AdditionalSense::LOGICAL_UNIT_NOT_SUPPORTED, "logical unit not supported"),
    (AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST, "invalid field in parameter list"),
    (AdditionalSense::WRITE_PROTECTED, "write protected"),
    (AdditionalSense::SOFTWARE_WRITE_PROTECTED, "software write protected"),
    (NO_SPACE, "space allocation failed"),
    (AdditionalSense::POWER_ON_OR_RESET, "power on or reset"),
    (AdditionalSense::DEVICE_RESET, "device reset"),
    (AdditionalSense::NEXUS_LOSS, "I_T nexus loss"),
    (AdditionalSense::MODE_PARAMETERS_CHANGED, "mode parameters changed"),
    (AdditionalSense::RESERVATIONS_PREEMPTED, "reservations preempted"),
    (AdditionalSense::CAPACITY_CHANGED, "capacity data has changed"),
    (AdditionalSense::COMMANDS_CLEARED, "commands cleared by another initiator"),
    (AdditionalSense(0x3a00), "medium not present"),
    (AdditionalSense::REPORTED_LUNS_CHANGED, "reported LUNs data has changed"),
    (AdditionalSense::INTERNAL_TARGET_FAILURE, "internal target failure"),
];

/// Sense data: a key, and an additional code with its qualifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sense {
    key: u8,
    code: AdditionalSense,
}

impl Sense {
    /// Out of sense data of either format (SPC-4, 4.5); nothing is known of other bytes.
    pub(crate) fn of(data: &[u8]) -> Sense {
        let byte = |at: usize| data.get(at).copied().unwrap_or(0);
        // The highest bit of the fixed format says only whether the information field is valid.
        // 0x71 and 0x73 are deferred errors, whose fields lie at the same places.
        let (key, code, qualifier) = match byte(0) & 0x7f {
            0x70 | 0x71 => (byte(2), byte(12), byte(13)),
            0x72 | 0x73 => (byte(1), byte(2), byte(3)),
            _ => (0, 0, 0),
        };
        let code = AdditionalSense(u16::from(code) << 8 | u16::from(qualifier));
        Sense { key: key & 0xf, code }
    }

    fn words(self) -> String {
        let key = KEYS[usize::from(self.key)];
        let known = CODES.iter().find(|(code, _)| *code == self.code);
        let what = known.map_or(String::new(), |(_, words)| format!(", {words}"));
        let (code, qualifier) = (self.code.code(), self.code.qualifier());
        format!("{key}{what} ({:x}/{code:02x}/{qualifier:02x})", self.key)
    }

    /// The system's number, as Linux gives it where it has one that says more than EIO.
    fn errno(self) -> i32 {
        match (self.key, self.code) {
            (_, NO_SPACE) => libc::ENOSPC,
            (ILLEGAL_REQUEST, AdditionalSense::INVALID_OPERATION_CODE) => libc::EOPNOTSUPP,
            (ILLEGAL_REQUEST, AdditionalSense::LOGICAL_UNIT_NOT_SUPPORTED) => libc::ENXIO,
            (ILLEGAL_REQUEST, _) => libc::EINVAL,
            (DATA_PROTECT, _) => libc::EPERM,
            _ => libc::EIO,
        }
    }
}

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// The command was carried out.
    Good,
    Check(Sense),
    /// A status without sense data.
    Status(u8),
    /// The target did not get as far as a status: the response of RFC 7143, clause 11.4.3.
    Failed(u8),
}

impl Ended {
    /// From the fields of a response; `data` is its data segment.
    pub(crate) fn of(response: u8, code: u8, data: &[u8]) -> Ended {
        match (response, code) {
            (0, status::GOOD) => Ended::Good,
            (0, status::CHECK_CONDITION) => {
                // The data segment begins with the length of the sense data (RFC 7143, clause
                // 11.4.7). A target may send less data than it announces, or none.
                let length = data.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes));
                let sense = data.get(2..).unwrap_or(&[]);
                Ended::Check(Sense::of(&sense[..sense.len().min(length.into())]))
            }
            (0, code) => Ended::Status(code),
            (response, _) => Ended::Failed(response),
        }
    }

    /// Something happened to the logical unit before the command, which was not carried out.
    pub(crate) fn is_attention(self) -> bool {
        matches!(self, Ended::Check(Sense { key: UNIT_ATTENTION, .. }))
    }

    /// The logical unit will be ready by itself.
    pub(crate) fn is_passing(self) -> bool {
        let code = BECOMING_READY;
        self == Ended::Check(Sense { key: NOT_READY, code }) || self == Ended::Status(status::BUSY)
    }

    /// The logical unit has no room for the command now: it is to be sent again later (SAM-5, 5.3.1).
    pub(crate) fn is_for_later(self) -> bool {
        matches!(self, Ended::Status(status::BUSY | TASK_SET_FULL))
    }

    /// The command was carried out, perhaps with something to say.
    pub(crate) fn is_good(self) -> bool {
        matches!(self, Ended::Good | Ended::Check(Sense { key: NO_SENSE | RECOVERED, .. }))
    }

    pub(crate) fn words(self) -> String {
        match self {
            Ended::Good => "good".to_owned(),
            Ended::Check(sense) => sense.words(),
            Ended::Status(status::BUSY) => "the logical unit is busy".to_owned(),
            Ended::Status(TASK_SET_FULL) => "the task set is full: lower the depth".to_owned(),
            Ended::Status(status::RESERVATION_CONFLICT) => {
                "reservation conflict: another initiator has reserved the logical unit".to_owned()
            }
            Ended::Status(status::TASK_ABORTED) => "another initiator aborted it".to_owned(),
            Ended::Status(code) => format!("status {code:#04x}"),
            Ended::Failed(response) => format!("the target failed (response {response:#04x})"),
        }
    }

    pub(crate) fn errno(self) -> i32 {
        match self {
            Ended::Check(sense) => sense.errno(),
            Ended::Status(status::BUSY | TASK_SET_FULL) => libc::EBUSY,
            // As Linux has it.
            Ended::Status(status::RESERVATION_CONFLICT) => libc::EBADE,
            Ended::Good | Ended::Status(_) | Ended::Failed(_) => libc::EIO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_are_told_in_words() {
        let fixed = [0, 18, 0x70, 0, 3, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0];
        let ended = Ended::of(0, 2, &fixed);
        assert_eq!(ended.words(), "medium error, unrecovered read error (3/11/00)");
        assert_eq!(ended.errno(), libc::EIO);
        let descriptor = Ended::of(0, 2, &[0, 8, 0x72, 7, 0x27, 7, 0, 0, 0, 0]);
        assert_eq!(descriptor.words(), "data protect, space allocation failed (7/27/07)");
        assert_eq!(descriptor.errno(), libc::ENOSPC);
        assert!(Ended::of(0, 2, &[0, 4, 0x72, 6, 0x29, 0]).is_attention());
        assert!(Ended::of(0, 2, &[0, 4, 0x72, 2, 4, 1]).is_passing());
        assert!(Ended::of(0, 2, &[0, 4, 0x72, 1, 0x17, 1]).is_good());
        let unknown = Ended::of(0, 2, &[0, 4, 0x72, 9, 0x80, 0x1f]);
        assert_eq!(unknown.words(), "vendor specific (9/80/1f)");
        // Sense data that is cut off, or longer than it is.
        assert_eq!(Ended::of(0, 2, &[]).words(), "no sense (0/00/00)");
        assert_eq!(Ended::of(0, 2, &[0xff, 0xff, 0x72]).words(), "no sense (0/00/00)");
        assert!(Ended::of(0, 0x18, &[]).words().contains("reserved"));
        assert!(Ended::of(1, 0, &[]).words().contains("failed"));
    }
}
