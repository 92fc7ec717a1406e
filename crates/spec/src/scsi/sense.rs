//! Status codes, sense keys and additional sense codes.

/// Status codes (SAM-5, table 30).
pub mod status {
    /// Done.
    pub const GOOD: u8 = 0x00;
    /// Sense data says why not.
    pub const CHECK_CONDITION: u8 = 0x02;
    /// The logical unit cannot take the command now.
    pub const BUSY: u8 = 0x08;
    /// Another initiator has reserved the logical unit.
    pub const RESERVATION_CONFLICT: u8 = 0x18;
    /// The command was aborted.
    pub const TASK_ABORTED: u8 = 0x40;
}

/// Sense keys (SPC-4, table 48).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum SenseKey {
    /// Nothing to report.
    NoSense = 0x0,
    /// Done, with some recovery.
    RecoveredError = 0x1,
    /// The logical unit is not ready.
    NotReady = 0x2,
    /// The medium is flawed.
    MediumError = 0x3,
    /// The device failed.
    HardwareError = 0x4,
    /// The command or its parameters are wrong.
    IllegalRequest = 0x5,
    /// Something has happened that the initiator must know.
    UnitAttention = 0x6,
    /// The requested blocks are protected.
    DataProtect = 0x7,
    /// The device aborted the command; trying again may help.
    AbortedCommand = 0xb,
    /// Data did not match.
    Miscompare = 0xe,
}

/// Additional sense code and its qualifier: `code << 8 | qualifier` (SPC-4, annex E.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AdditionalSense(pub u16);

impl AdditionalSense {
    /// The code.
    pub const fn code(self) -> u8 {
        (self.0 >> 8) as u8
    }
    /// Its qualifier.
    pub const fn qualifier(self) -> u8 {
        self.0 as u8
    }
}

/// Names of additional sense codes.
macro_rules! additional {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl AdditionalSense {
            $($(#[$doc])* pub const $name: AdditionalSense = AdditionalSense($value);)*
        }
    };
}

additional! {
    /// No additional sense information.
    NONE = 0x0000;
    /// Peripheral device write fault.
    WRITE_FAULT = 0x0300;
    /// Logical unit not ready, cause not reportable.
    NOT_READY = 0x0400;
    /// Logical unit not ready, initializing command required.
    INITIALIZING_COMMAND_REQUIRED = 0x0402;
    /// Logical unit not ready, format in progress.
    FORMAT_IN_PROGRESS = 0x0404;
    /// Logical unit not ready, sanitize in progress.
    SANITIZE_IN_PROGRESS = 0x041b;
    /// Warning - power loss expected.
    POWER_LOSS_EXPECTED = 0x0b08;
    /// Invalid field in command information unit: less data than the command needs.
    INVALID_FIELD_IN_INFORMATION_UNIT = 0x0e03;
    /// Logical block guard check failed.
    GUARD_CHECK = 0x1001;
    /// Logical block application tag check failed.
    APPLICATION_TAG_CHECK = 0x1002;
    /// Logical block reference tag check failed.
    REFERENCE_TAG_CHECK = 0x1003;
    /// Unrecovered read error.
    UNRECOVERED_READ = 0x1100;
    /// Parameter list length error.
    PARAMETER_LIST_LENGTH = 0x1a00;
    /// Miscompare during verify operation.
    MISCOMPARE = 0x1d00;
    /// Invalid command operation code.
    INVALID_OPERATION_CODE = 0x2000;
    /// Access denied - no access rights.
    NO_ACCESS_RIGHTS = 0x2002;
    /// Access denied - invalid LU identifier.
    INVALID_LU_IDENTIFIER = 0x2009;
    /// Logical block address out of range.
    LBA_OUT_OF_RANGE = 0x2100;
    /// Invalid field in CDB.
    INVALID_FIELD_IN_CDB = 0x2400;
    /// Logical unit not supported.
    LOGICAL_UNIT_NOT_SUPPORTED = 0x2500;
    /// Invalid field in parameter list.
    INVALID_FIELD_IN_PARAMETER_LIST = 0x2600;
    /// Invalid release of persistent reservation.
    INVALID_RELEASE = 0x2604;
    /// Write protected.
    WRITE_PROTECTED = 0x2700;
    /// Logical unit software write protected.
    SOFTWARE_WRITE_PROTECTED = 0x2702;
    /// Power on, reset, or bus device reset occurred.
    POWER_ON_OR_RESET = 0x2900;
    /// Bus device reset function occurred.
    DEVICE_RESET = 0x2903;
    /// I_T nexus loss occurred.
    NEXUS_LOSS = 0x2907;
    /// Mode parameters changed.
    MODE_PARAMETERS_CHANGED = 0x2a01;
    /// Reservations preempted.
    RESERVATIONS_PREEMPTED = 0x2a03;
    /// Reservations released.
    RESERVATIONS_RELEASED = 0x2a04;
    /// Registrations preempted.
    REGISTRATIONS_PREEMPTED = 0x2a05;
    /// Capacity data has changed.
    CAPACITY_CHANGED = 0x2a09;
    /// Commands cleared by another initiator.
    COMMANDS_CLEARED = 0x2f00;
    /// Format command failed.
    FORMAT_FAILED = 0x3101;
    /// Sanitize command failed.
    SANITIZE_FAILED = 0x3103;
    /// Saving parameters not supported.
    SAVING_NOT_SUPPORTED = 0x3900;
    /// Reported LUNs data has changed.
    REPORTED_LUNS_CHANGED = 0x3f0e;
    /// Internal target failure.
    INTERNAL_TARGET_FAILURE = 0x4400;
    /// Insufficient registration resources.
    INSUFFICIENT_REGISTRATION_RESOURCES = 0x5504;
    /// Failure prediction threshold exceeded.
    FAILURE_PREDICTION = 0x5d00;
    /// Low power condition on.
    LOW_POWER_CONDITION = 0x5e00;
    /// Idle condition activated by command: idle_a.
    IDLE_A_BY_COMMAND = 0x5e03;
    /// Standby condition activated by command: standby_z.
    STANDBY_Z_BY_COMMAND = 0x5e04;
    /// Idle_b condition activated by command.
    IDLE_B_BY_COMMAND = 0x5e06;
    /// Idle_c condition activated by command.
    IDLE_C_BY_COMMAND = 0x5e08;
    /// Standby_y condition activated by command.
    STANDBY_Y_BY_COMMAND = 0x5e0a;
}
