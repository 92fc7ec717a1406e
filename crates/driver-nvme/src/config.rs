//! The configuration of a driver before its start.

use alloc::vec::Vec;

use ssdyno_block::{ListGrowth, Time};
use ssdyno_pci::InterruptMode;

use crate::{Feature, QueuePolicy, Quirks};

/// Which interrupts the driver uses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InterruptChoice {
    /// The best that the function has: MSI-X, MSI, pin (S1-21).
    Best,
    /// This kind and no other.
    Only(InterruptMode),
    /// None: the user of the driver polls it.
    Polling,
}

/// The time when the head of a completion queue is reported to the controller (S1-31).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HeadDoorbell {
    /// Once for all completions that one call finds.
    PerBatch,
    /// For each completion, inside the loop, as the thesis does.
    PerCompletion,
}

/// The configuration of a driver before its start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NvmeConfig {
    /// Cores that submit.
    pub cores: u16,
    /// How commands are spread over the queues.
    pub policy: QueuePolicy,
    /// I/O queues to ask for, at most. The policy may use fewer, and the controller grant fewer.
    pub queues_max: u16,
    /// Entries of an I/O queue, 4096 at most; fewer where the controller has fewer. One stays empty.
    pub entries: u32,
    /// Most data of a command, in bytes; less where the controller's MDTS says so. Rounded down to
    /// whole pages. A command of more than two pages has a list of its pages: 8 bytes for each, rounded up
    /// to a power of two, 512 bytes for 256 KiB.
    pub transfer_bytes_max: u32,
    /// Page lists of each queue to pin at the start, at least 1. More are pinned when more are needed at a
    /// time than ever before, in stretches of 16 KiB, up to one for each command of the queue: with the
    /// defaults (1023 commands, 512 bytes) 16 KiB at the start and 512 KiB at most. `u32::MAX` pins all at
    /// the start, and no memory is asked for later.
    pub lists_at_start: u32,
    /// Which interrupts.
    pub interrupts: InterruptChoice,
    /// Start with the pin and go to the better kind when the controller answers, for machines whose
    /// firmware set up the pin alone (S1-21).
    pub pin_first: bool,
    /// Start by polling this often, interrupts masked (S1-22). `None` waits for interrupts; registers
    /// are polled every millisecond then.
    pub start_poll: Option<Time>,
    /// The driver reports that its requests come through the SCSI resource
    /// ([`DriverFlags::SCSI`](ssdyno_pci::driver::DriverFlags::SCSI), S1-47).
    pub scsi: bool,
    /// The time when completion heads are reported.
    pub head_doorbell: HeadDoorbell,
    /// The behaviour if a list for completions has no room. With [`ListGrowth::Fixed`] no call for I/O asks the heap,
    /// however short the list is: it takes what fits, and [`has_more`](crate::QueuePair::has_more) says that
    /// completions are left.
    pub completion_lists: ListGrowth,
    /// Features set at each start and after each reset.
    pub features: Vec<Feature>,
    /// Asynchronous event requests to keep outstanding, at most.
    pub event_requests: u8,
    /// After this a command is looked after: its queue is polled, then the command is aborted. If the command
    /// is still outstanding after the same time again, the controller is reset, as in Linux.
    pub io_timeout: Time,
    /// After this an admin command, such as an abort, has failed and the controller is reset.
    pub admin_timeout: Time,
    /// Most time that a reset waits for the owners of queue pairs to take what completed. Commands of
    /// one that comes later are given up, also those that the controller had answered.
    pub owner_timeout: Time,
    /// Most time for a shutdown (base 2.0c, clause 3.6.1 leaves it to RTD3E and the host).
    pub shutdown_timeout: Time,
    /// What to do differently for this controller; `None`: the quirks in the [table](Quirks) for its kind.
    pub quirks: Option<Quirks>,
    /// Resets in a row without any completion between, before the driver gives up.
    pub resets_max: u32,
}

impl Default for NvmeConfig {
    /// One queue a core for one core, 1024 entries, 256 KiB a command, the best interrupts, the time
    /// limits of common systems: 30 s for I/O, 60 s for admin commands; 1 s for a core to come, which
    /// takes microseconds where it is not lost.
    fn default() -> NvmeConfig {
        NvmeConfig {
            cores: 1,
            policy: QueuePolicy::PerCore,
            queues_max: 64,
            entries: 1024,
            transfer_bytes_max: 256 * 1024,
            lists_at_start: 1,
            interrupts: InterruptChoice::Best,
            pin_first: false,
            start_poll: Some(Time::from_us(100)),
            scsi: false,
            head_doorbell: HeadDoorbell::PerBatch,
            completion_lists: ListGrowth::Grow,
            features: Vec::new(),
            event_requests: 4,
            io_timeout: Time::from_s(30),
            admin_timeout: Time::from_s(60),
            owner_timeout: Time::from_s(1),
            shutdown_timeout: Time::from_s(10),
            quirks: None,
            resets_max: 3,
        }
    }
}
