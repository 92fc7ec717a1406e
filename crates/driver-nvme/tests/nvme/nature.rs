//! The behaviour of the other controller, and its faults.

use ssdyno_spec::nvme::{IdentifyController, IdentifyNamespace, LbaFormat, SubmissionEntry, oncs};
use zerocopy::FromZeros;

/// What the controller is like.
#[derive(Clone, Debug)]
pub(crate) struct Nature {
    pub(crate) queues_max: u16,
    pub(crate) entries_max: u32,
    pub(crate) stride: u8,
    pub(crate) max_transfer: u8,
    pub(crate) version: u32,
    pub(crate) weighted: bool,
    pub(crate) abort_limit: u8,
    pub(crate) msix_vectors: u16,
    /// Block shift, metadata and other bits of each namespace.
    pub(crate) namespaces: Vec<IdentifyNamespace>,
    pub(crate) nvm_commands: u16,
    /// The rest of Identify Controller: the fields above overwrite it.
    pub(crate) identity: Box<IdentifyController>,
    pub(crate) seed: u64,
    /// CAP.TO.
    pub(crate) timeout_500ms: u8,
    /// PCI vendor and device.
    pub(crate) pci: (u16, u16),
    /// Set Features of a power state succeeds.
    pub(crate) power_states: bool,
    /// Slots of a queue that the controller tells commands apart by, as one does that takes no generation.
    pub(crate) identifiers_max: u16,
}

pub(crate) fn namespace(blocks: u64, data_shift: u8) -> IdentifyNamespace {
    let mut ns = IdentifyNamespace::new_zeroed();
    ns.size = blocks.into();
    ns.lba_format[0] = LbaFormat { data_shift, ..LbaFormat::default() };
    ns
}

impl Default for Nature {
    fn default() -> Nature {
        Nature {
            queues_max: 4,
            entries_max: 64,
            stride: 0,
            max_transfer: 5,
            version: 0x0002_0000,
            weighted: true,
            abort_limit: 1,
            msix_vectors: 8,
            namespaces: vec![namespace(1 << 14, 9)],
            nvm_commands: oncs::DATASET_MANAGEMENT | oncs::WRITE_ZEROES | oncs::COMPARE,
            identity: Box::new(IdentifyController::new_zeroed()),
            seed: 1,
            timeout_500ms: 2,
            pci: (0x1b36, 0x0010),
            power_states: false,
            identifiers_max: u16::MAX,
        }
    }
}

/// What shall go wrong with the n-th I/O command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mishap {
    Fails,
    /// It never completes; an abort ends it.
    Forgotten,
    /// It never completes, and aborts find nothing.
    LostForGood,
    /// It completes, and so many microseconds later once more, with an error.
    Twice {
        later_us: u32,
    },
}

/// An I/O command: its queue, its entry, and the pieces that its PRPs name, by address and bytes.
pub(crate) type Logged = (u16, SubmissionEntry, Vec<(u64, u64)>);
