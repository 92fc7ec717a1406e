//! Admin commands as a caller puts them.

use alloc::vec;
use alloc::vec::Vec;

use ssdyno_pci::{DmaRegion, PciFunction};
use ssdyno_spec::nvme::{
    AutonomousTransition, IdentifyNamespace, PAGE_BYTES, SubmissionEntry, admin, cns, feature,
};
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

use crate::Weights;

/// Bit SV of Set Features.
const SAVE: u32 = 1 << 31;
/// Identifiers in a controller list.
const CONTROLLERS_MAX: usize = 2047;

/// An admin command with its data, which is the caller's: none is copied before it is submitted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdminCommand<'a> {
    pub(crate) entry: SubmissionEntry,
    pub(crate) send: Payload<'a>,
    pub(crate) receive_bytes: u32,
}

/// The data that goes with a command to the controller.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "a table of 256 bytes, so that nothing is allocated")]
pub(crate) enum Payload<'a> {
    None,
    Bytes(&'a [u8]),
    /// A controller list: how many, then the identifiers (base 2.0c, clause 4.4.1).
    Controllers(&'a [u16]),
    /// A table of autonomous transitions.
    Transitions([AutonomousTransition; 32]),
}

impl Payload<'_> {
    pub(crate) fn bytes(&self) -> u32 {
        match self {
            Payload::None => 0,
            Payload::Bytes(bytes) => bytes.len() as u32,
            Payload::Controllers(ids) if ids.len() > CONTROLLERS_MAX => u32::MAX,
            Payload::Controllers(_) => PAGE_BYTES,
            Payload::Transitions(table) => size_of_val(table) as u32,
        }
    }

    /// Writes it into a page.
    pub(crate) fn write<F: PciFunction>(&self, f: &mut F, page: &DmaRegion, at: u32) {
        match self {
            Payload::None => {}
            Payload::Bytes(bytes) => f.dma_write(page, at, bytes),
            Payload::Transitions(table) => f.dma_write(page, at, table.as_bytes()),
            Payload::Controllers(ids) => {
                let all = core::iter::once(ids.len() as u16).chain(ids.iter().copied());
                let mut all = all.chain(core::iter::repeat(0)).take(PAGE_BYTES as usize / 2);
                for stretch in (0..PAGE_BYTES).step_by(64) {
                    let words = [(); 32].map(|()| U16::new(all.next().unwrap_or(0)));
                    f.dma_write(page, at + stretch, words.as_bytes());
                }
            }
        }
    }
}

impl<'a> AdminCommand<'a> {
    fn new(opcode: u8, namespace: u32, dword10: u32, dword11: u32) -> AdminCommand<'a> {
        let entry = SubmissionEntry {
            opcode,
            namespace_id: U32::new(namespace),
            dword10: U32::new(dword10),
            dword11: U32::new(dword11),
            ..SubmissionEntry::default()
        };
        AdminCommand { entry, send: Payload::None, receive_bytes: 0 }
    }

    fn receiving(self, receive_bytes: u32) -> AdminCommand<'a> {
        AdminCommand { receive_bytes, ..self }
    }

    fn sending(self, send: Payload<'a>) -> AdminCommand<'a> {
        AdminCommand { send, ..self }
    }

    /// Any command, with up to a page of data to send and to receive. Data pointer and command
    /// identifier are filled in.
    pub fn raw(entry: SubmissionEntry, send: &'a [u8], receive_bytes: u32) -> AdminCommand<'a> {
        AdminCommand { entry, send: Payload::Bytes(send), receive_bytes }
    }

    /// Identify: structure `what` (see [`cns`]) of `namespace`.
    pub fn identify(what: u8, namespace: u32) -> AdminCommand<'a> {
        let command = AdminCommand::new(admin::IDENTIFY, namespace, u32::from(what), 0);
        command.receiving(PAGE_BYTES)
    }

    /// Identify controller.
    pub fn identify_controller() -> AdminCommand<'a> {
        AdminCommand::identify(cns::CONTROLLER, 0)
    }

    /// `bytes` of log page `page` from `offset` on, both multiples of 4; `namespace` is 0xffff_ffff
    /// for the controller's.
    pub fn log_page(page: u8, namespace: u32, offset: u64, bytes: u32) -> AdminCommand<'a> {
        let dwords = (bytes / 4).max(1) - 1;
        let dword10 = u32::from(page) | (dwords & 0xffff) << 16;
        let mut command = AdminCommand::new(admin::GET_LOG_PAGE, namespace, dword10, dwords >> 16);
        command.entry.dword12 = U32::new(offset as u32);
        command.entry.dword13 = U32::new((offset >> 32) as u32);
        command.receiving(bytes)
    }

    /// Sets `feature`, until the next reset or forever (`save`).
    pub fn set_feature(feature: &Feature, save: bool) -> AdminCommand<'a> {
        let dword10 = u32::from(feature.identifier()) | if save { SAVE } else { 0 };
        let command = AdminCommand::new(admin::SET_FEATURES, 0, dword10, feature.dword11());
        command.sending(feature.data())
    }

    /// Gets value number `select` (see [`ssdyno_spec::nvme::select`]) of feature `identifier`: in
    /// dword 0 of the completion.
    pub fn get_feature(identifier: u8, select: u8) -> AdminCommand<'a> {
        let dword10 = u32::from(identifier) | u32::from(select) << 8;
        let receive = if identifier == feature::AUTONOMOUS_POWER { 256 } else { 0 };
        AdminCommand::new(admin::GET_FEATURES, 0, dword10, 0).receiving(receive)
    }

    /// Creates a namespace of `data`'s size, capacity, format and protection; its identifier is in
    /// dword 0 of the completion (base 2.0c, clause 5.23; S1-43).
    pub fn create_namespace(data: &'a IdentifyNamespace) -> AdminCommand<'a> {
        let command = AdminCommand::new(admin::NAMESPACE_MANAGEMENT, 0, 0, 0);
        command.sending(Payload::Bytes(data.as_bytes()))
    }

    /// Deletes `namespace`; 0xffff_ffff deletes all.
    pub fn delete_namespace(namespace: u32) -> AdminCommand<'a> {
        AdminCommand::new(admin::NAMESPACE_MANAGEMENT, namespace, 1, 0)
    }

    /// Attaches `namespace` to `controllers`, or detaches it (base 2.0c, clause 5.22). Have the driver
    /// look again with [`Controller::rescan`](crate::Controller::rescan).
    pub fn attach_namespace(namespace: u32, controllers: &'a [u16], attach: bool) -> Self {
        let dword10 = u32::from(!attach);
        let command = AdminCommand::new(admin::NAMESPACE_ATTACHMENT, namespace, dword10, 0);
        command.sending(Payload::Controllers(controllers))
    }

    /// Formats `namespace` with format number `format` (0 to 15), without protection: all data is
    /// lost.
    pub fn format(namespace: u32, format: u8) -> AdminCommand<'a> {
        AdminCommand::new(admin::FORMAT_NVM, namespace, u32::from(format & 0xf), 0)
    }

    pub(crate) fn number_of_queues(queues: u16) -> AdminCommand<'a> {
        // Both counts are zero-based. The driver makes queues in pairs, so it asks for the same
        // number of submission and completion queues.
        let n = u32::from(queues) - 1;
        let identifier = u32::from(feature::NUMBER_OF_QUEUES);
        AdminCommand::new(admin::SET_FEATURES, 0, identifier, n << 16 | n)
    }

    /// Bit 0 of dword 11: contiguous; bit 1: interrupts; bits 31:16 the vector.
    pub(crate) fn create_completion_queue(
        queue: u16,
        entries: u32,
        address: u64,
        vector: Option<u16>,
    ) -> AdminCommand<'a> {
        let dword10 = (entries - 1) << 16 | u32::from(queue);
        let dword11 = 1 | vector.map_or(0, |v| 1 << 1 | u32::from(v) << 16);
        let mut command = AdminCommand::new(admin::CREATE_COMPLETION_QUEUE, 0, dword10, dword11);
        command.entry.prp1 = U64::new(address);
        command
    }

    /// Bit 0 of dword 11: contiguous; bits 2:1 the class; bits 31:16 the completion queue.
    pub(crate) fn create_submission_queue(
        queue: u16,
        entries: u32,
        address: u64,
        class: u8,
    ) -> AdminCommand<'a> {
        let dword10 = (entries - 1) << 16 | u32::from(queue);
        let dword11 = 1 | u32::from(class) << 1 | u32::from(queue) << 16;
        let mut command = AdminCommand::new(admin::CREATE_SUBMISSION_QUEUE, 0, dword10, dword11);
        command.entry.prp1 = U64::new(address);
        command
    }

    pub(crate) fn delete_submission_queue(queue: u16) -> AdminCommand<'a> {
        AdminCommand::new(admin::DELETE_SUBMISSION_QUEUE, 0, u32::from(queue), 0)
    }

    pub(crate) fn delete_completion_queue(queue: u16) -> AdminCommand<'a> {
        AdminCommand::new(admin::DELETE_COMPLETION_QUEUE, 0, u32::from(queue), 0)
    }

    pub(crate) fn abort(queue: u16, command: u16) -> AdminCommand<'a> {
        let dword10 = u32::from(command) << 16 | u32::from(queue);
        AdminCommand::new(admin::ABORT, 0, dword10, 0)
    }

    pub(crate) fn asynchronous_event() -> AdminCommand<'a> {
        AdminCommand::new(admin::ASYNCHRONOUS_EVENT_REQUEST, 0, 0, 0)
    }
}

/// A feature with its value (base 2.0c, clause 5.27.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Feature {
    /// The shares of the arbitration for each class.
    Arbitration(Weights),
    /// Interrupts are held back until this number of entries wait, or this time has passed.
    InterruptCoalescing {
        /// Entries, 1 to 256.
        entries: u16,
        /// Time, in units of 100 us.
        time_100us: u8,
    },
    /// The power state that the host chooses (S1-45).
    PowerState(u8),
    /// The volatile write cache is on.
    VolatileWriteCache(bool),
    /// Which asynchronous events are reported: see [`feature::ASYNCHRONOUS_EVENTS`].
    AsynchronousEvents(u32),
    /// For each power state, the next state and the idle time before it; none: the host chooses
    /// (S1-45).
    AutonomousPower(Vec<AutonomousTransition>),
}

impl Feature {
    /// Goes from each of the `operational` first states to state `target` after `idle_ms`.
    pub fn autonomous_power(operational: u8, target: u8, idle_ms: u32) -> Feature {
        let entry = AutonomousTransition::new(target, idle_ms);
        Feature::AutonomousPower(vec![entry; usize::from(operational.min(32))])
    }

    /// Its identifier: see [`feature`].
    pub const fn identifier(&self) -> u8 {
        match self {
            Feature::Arbitration(_) => feature::ARBITRATION,
            Feature::InterruptCoalescing { .. } => feature::INTERRUPT_COALESCING,
            Feature::PowerState(_) => feature::POWER_MANAGEMENT,
            Feature::VolatileWriteCache(_) => feature::VOLATILE_WRITE_CACHE,
            Feature::AsynchronousEvents(_) => feature::ASYNCHRONOUS_EVENTS,
            Feature::AutonomousPower(_) => feature::AUTONOMOUS_POWER,
        }
    }

    /// Its value as the controller takes it.
    pub fn dword11(&self) -> u32 {
        // The fields count from zero (base 2.0c, figures 318 and 325). The clamp keeps 0 from
        // becoming 65535 and 257 from spilling into the next field.
        let less_one = |n: u16| u32::from(n.clamp(1, 256) - 1);
        match self {
            Feature::Arbitration(w) => {
                u32::from(w.burst_shift & 7)
                    | less_one(w.low) << 8
                    | less_one(w.medium) << 16
                    | less_one(w.high) << 24
            }
            Feature::InterruptCoalescing { entries, time_100us } => {
                less_one(*entries) | u32::from(*time_100us) << 8
            }
            Feature::PowerState(state) => u32::from(state & 31),
            Feature::VolatileWriteCache(on) => u32::from(*on),
            Feature::AsynchronousEvents(bits) => *bits,
            Feature::AutonomousPower(table) => u32::from(!table.is_empty()),
        }
    }

    fn data(&self) -> Payload<'static> {
        let Feature::AutonomousPower(table) = self else { return Payload::None };
        let mut all = [AutonomousTransition::default(); 32];
        for (slot, entry) in all.iter_mut().zip(table) {
            *slot = *entry;
        }
        Payload::Transitions(all)
    }
}
