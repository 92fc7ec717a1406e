//! How a command ended (base 2.0c, clause 3.3.3.2.1).

/// The status field of a completion: 15 bits, without the phase tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct NvmeStatus(u16);

/// Names of status values: code type, code, specification.
macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $kind:literal, $code:literal;)*) => {
        impl NvmeStatus {
            $($(#[$doc])* pub const $name: NvmeStatus = NvmeStatus($kind << 8 | $code);)*
        }
    };
}

statuses! {
    /// Generic: done.
    SUCCESS = 0, 0x00;
    /// Generic: the opcode is unknown or not allowed on this queue.
    INVALID_OPCODE = 0, 0x01;
    /// Generic: a field has a reserved or unsupported value.
    INVALID_FIELD = 0, 0x02;
    /// Generic: the command identifier is in use.
    COMMAND_ID_CONFLICT = 0, 0x03;
    /// Generic: data could not be moved.
    DATA_TRANSFER_ERROR = 0, 0x04;
    /// Generic: aborted because power is about to go.
    POWER_LOSS = 0, 0x05;
    /// Generic: something inside failed.
    INTERNAL_ERROR = 0, 0x06;
    /// Generic: aborted as asked.
    ABORT_REQUESTED = 0, 0x07;
    /// Generic: aborted because its submission queue was deleted.
    SUBMISSION_QUEUE_DELETED = 0, 0x08;
    /// Generic: there is no such namespace, or the format does not fit.
    INVALID_NAMESPACE = 0, 0x0b;
    /// Generic: commands came in a forbidden order.
    SEQUENCE_ERROR = 0, 0x0c;
    /// Generic: the offset of the first PRP entry is not whole dwords, or a later one has one.
    PRP_OFFSET_INVALID = 0, 0x13;
    /// The host sent no Keep Alive for too long.
    KEEP_ALIVE_EXPIRED = 0, 0x19;
    /// Generic: the last sanitize operation failed, and nothing has mended that.
    SANITIZE_FAILED = 0, 0x1c;
    /// Generic: a sanitize operation is in progress.
    SANITIZE_IN_PROGRESS = 0, 0x1d;
    /// Generic: the NVM is write protected.
    WRITE_PROTECTED = 0, 0x20;
    /// NVM: the range ends behind the namespace.
    LBA_OUT_OF_RANGE = 0, 0x80;
    /// NVM: it would exceed the capacity.
    CAPACITY_EXCEEDED = 0, 0x81;
    /// NVM: the namespace is not ready.
    NAMESPACE_NOT_READY = 0, 0x82;
    /// NVM: a format is in progress.
    FORMAT_IN_PROGRESS = 0, 0x84;
    /// Command: the completion queue does not exist.
    COMPLETION_QUEUE_INVALID = 1, 0x00;
    /// Command: the queue identifier is in use, zero or too large.
    QUEUE_ID_INVALID = 1, 0x01;
    /// Command: the queue size is zero or too large.
    QUEUE_SIZE_INVALID = 1, 0x02;
    /// Command: too many aborts outstanding.
    ABORT_LIMIT_EXCEEDED = 1, 0x03;
    /// Command: too many asynchronous event requests outstanding.
    ASYNCHRONOUS_EVENT_LIMIT_EXCEEDED = 1, 0x05;
    /// Command: the interrupt vector does not exist.
    INTERRUPT_VECTOR_INVALID = 1, 0x08;
    /// Command: there is no such log page.
    LOG_PAGE_INVALID = 1, 0x09;
    /// Command: the format is not supported.
    FORMAT_INVALID = 1, 0x0a;
    /// Command: queues must be deleted in the right order.
    QUEUE_DELETION_INVALID = 1, 0x0c;
    /// Command: the feature cannot be saved.
    FEATURE_NOT_SAVEABLE = 1, 0x0d;
    /// Command: the feature cannot be changed.
    FEATURE_NOT_CHANGEABLE = 1, 0x0e;
    /// Command: the feature does not belong to a namespace. Since version 1.1.
    FEATURE_NOT_NAMESPACE_SPECIFIC = 1, 0x0f;
    /// Command: ranges overlap. Since version 1.2.
    OVERLAPPING_RANGE = 1, 0x14;
    /// Command: there is not enough room for the namespace.
    NAMESPACE_INSUFFICIENT_CAPACITY = 1, 0x15;
    /// Command: no namespace identifier is left.
    NAMESPACE_ID_UNAVAILABLE = 1, 0x16;
    /// Command: the namespace is attached already.
    NAMESPACE_ALREADY_ATTACHED = 1, 0x18;
    /// Command: the namespace is not attached.
    NAMESPACE_NOT_ATTACHED = 1, 0x1a;
    /// Command: a namespace larger than its capacity needs thin provisioning, which there is not.
    THIN_PROVISIONING_NOT_SUPPORTED = 1, 0x1b;
    /// Command: the controller list is empty, or names a controller that there is not.
    CONTROLLER_LIST_INVALID = 1, 0x1c;
    /// Command: the controller has no such I/O command set.
    COMMAND_SET_NOT_SUPPORTED = 1, 0x29;
    /// Command: a dataset management attribute is contradictory.
    CONFLICTING_ATTRIBUTES = 1, 0x80;
    /// Command: write to a read-only range.
    READ_ONLY_RANGE = 1, 0x82;
    /// Media: write fault.
    WRITE_FAULT = 2, 0x80;
    /// Media: unrecovered read error.
    UNRECOVERED_READ = 2, 0x81;
    /// Media: compare failure.
    COMPARE_FAILURE = 2, 0x85;
    /// Media: access denied.
    ACCESS_DENIED = 2, 0x86;
    /// Media: deallocated or unwritten block.
    DEALLOCATED_BLOCK = 2, 0x87;
}

impl NvmeStatus {
    const MORE: u16 = 1 << 13;
    const DO_NOT_RETRY: u16 = 1 << 14;

    /// From the status field.
    pub const fn from_bits(bits: u16) -> NvmeStatus {
        NvmeStatus(bits & 0x7fff)
    }
    /// The status field.
    pub const fn bits(self) -> u16 {
        self.0
    }
    /// Status code type, 3 bits: 0 generic, 1 command specific, 2 media, 3 path, 7 vendor.
    pub const fn code_type(self) -> u8 {
        (self.0 >> 8 & 7) as u8
    }
    /// Status code.
    pub const fn code(self) -> u8 {
        self.0 as u8
    }
    /// Trying again cannot help (bit DNR).
    pub const fn do_not_retry(self) -> bool {
        self.0 & NvmeStatus::DO_NOT_RETRY != 0
    }
    /// The same with bit DNR set.
    #[must_use]
    pub const fn with_do_not_retry(self) -> NvmeStatus {
        NvmeStatus(self.0 | NvmeStatus::DO_NOT_RETRY)
    }
    /// There is more in the error log (bit M).
    pub const fn more(self) -> bool {
        self.0 & NvmeStatus::MORE != 0
    }
    /// Type and code alone: what [`NvmeStatus`]'s constants are compared with.
    #[must_use]
    pub const fn kind(self) -> NvmeStatus {
        NvmeStatus(self.0 & 0x7ff)
    }
    /// True for [`NvmeStatus::SUCCESS`].
    pub const fn is_success(self) -> bool {
        self.0 & 0x7ff == 0
    }
}
