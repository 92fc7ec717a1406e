//! The state of a command while it waits for its NVMe commands, and the power condition of the units.

use ssdyno_spec::scsi::AdditionalSense;

/// Power condition that START STOP UNIT has brought about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Condition {
    /// Active.
    #[default]
    Active,
    /// Idle or standby: REQUEST SENSE says which.
    Low(AdditionalSense),
    /// Stopped: nothing that needs the medium is done.
    Stopped,
}

/// A REQUEST SENSE that waits for the health log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenseRequest {
    pub(crate) descriptors: bool,
    pub(crate) allocation: usize,
}

/// PC: which values (SPC-4, table 148).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Control {
    Current,
    Changeable,
    Default,
    Saved,
}

/// A MODE SENSE whose pages are still to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModeRequest {
    pub(crate) unit: usize,
    pub(crate) ten: bool,
    pub(crate) block_descriptor: bool,
    pub(crate) long_lba: bool,
    pub(crate) control: Control,
    pub(crate) page: u8,
    pub(crate) allocation: usize,
}

/// A LOG SENSE whose page is still to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogRequest {
    pub(crate) page: u8,
    pub(crate) first_parameter: u16,
    pub(crate) allocation: usize,
}

/// The next step of a command that is related to a sanitize operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// NVMe Sanitize completes: the operation has begun.
    Begun { immediate: bool },
    /// The failure mode is left.
    Left,
    /// The log page is there, so many milliseconds after the beginning; SANITIZE ends with the operation.
    Wait { waited_ms: u32 },
    /// The log page is there: the command that is kept is done, or refused.
    Perform,
    /// The log page is there, for REQUEST SENSE.
    Sense(SenseRequest),
    /// The log page is there, for GET LBA STATUS.
    Blocks { lba: u64, allocation: u32 },
    /// The log page is there: the controller has refused the command.
    Refuse,
}
