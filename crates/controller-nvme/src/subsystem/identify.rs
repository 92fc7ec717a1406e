//! The Identify data of the controller (base 2.0c, clause 5.17).

use ssdyno_spec::nvme::{
    IdentifyController, IdentifyNamespace, IndependentNamespace, NamespaceDescriptor, NvmeStatus,
    PowerStateDescriptor, SubmissionEntry, admin, cns, feature, nvm, oacs, oncs,
};
use zerocopy::{FromZeros, IntoBytes};

use super::namespaces::{FORMAT_SHIFTS, Namespace};
use super::text::padded;
use super::versions::{Field, Part};
use super::{NvmeSubsystem, events, host_behavior, logs};
use crate::answer::Answer;
use ssdyno_device::{Device, DeviceReport};

/// The structures are all of this size.
const BYTES: usize = 4096;
/// The only controller's identifier.
pub(crate) const CONTROLLER_ID: u16 = 1;
/// Aborts outstanding at most.
pub(crate) const ABORTS_MAX: u8 = 4;

/// The meaning of the bits of ONCS.
pub(crate) const OPTIONAL: [(Part, u16); 6] = [
    (Part::Io(nvm::COMPARE), oncs::COMPARE),
    (Part::Io(nvm::WRITE_UNCORRECTABLE), oncs::WRITE_UNCORRECTABLE),
    (Part::Io(nvm::DATASET_MANAGEMENT), oncs::DATASET_MANAGEMENT),
    (Part::Io(nvm::WRITE_ZEROES), oncs::WRITE_ZEROES),
    (Part::Field(Field::SaveAndSelect), oncs::SAVE_AND_SELECT),
    (Part::Io(nvm::VERIFY), oncs::VERIFY),
];

/// Microseconds, rounded up.
fn us(time: ssdyno_block::Time) -> u32 {
    time.as_ps().div_ceil(1_000_000).min(u64::from(u32::MAX)) as u32
}

/// A power in 0.01 W, or finer where it is small and the version can say so.
fn set_power(state: &mut PowerStateDescriptor, watts: f64, fine: bool) {
    // MXPS selects units of 0.1 mW instead of 10 mW. A sleeping device draws a few milliwatts,
    // which the coarse unit rounds to zero.
    if watts < 1.0 && fine {
        state.flags |= PowerStateDescriptor::FINE_POWER;
        state.max_power = ((watts * 1e4).round() as u16).into();
    } else {
        state.max_power = ((watts * 1e2).round().min(65535.0) as u16).into();
    }
}

impl<D: Device> NvmeSubsystem<D> {
    /// The structure that an Identify command asks for.
    pub(crate) fn identify(&self, entry: &SubmissionEntry) -> Answer<Vec<u8>> {
        let id = entry.namespace_id.get();
        let dword10 = entry.dword10.get();
        let command_set = entry.dword11.get() >> 24;
        let invalid_field = NvmeStatus::INVALID_FIELD.with_do_not_retry();
        if !self.has(Part::Identify(dword10 as u8)) {
            return Err(invalid_field);
        }
        match dword10 as u8 {
            cns::NAMESPACE => self.identify_namespace(id, false),
            cns::ALLOCATED_NAMESPACE => self.identify_namespace(id, true),
            cns::CONTROLLER => Ok(self.identify_controller().as_bytes().to_vec()),
            cns::ACTIVE_NAMESPACES => self.list_namespaces(id, false),
            cns::ALLOCATED_NAMESPACES => self.list_namespaces(id, true),
            cns::NAMESPACE_DESCRIPTORS => self.describe_namespace(id),
            // The command set's own structures: all zero means that no further limit applies.
            cns::NAMESPACE_OF_COMMAND_SET if command_set == 0 => {
                self.identify_namespace(id, false).map(|_| vec![0; BYTES])
            }
            cns::ALLOCATED_NAMESPACE_OF_COMMAND_SET if command_set == 0 => {
                self.identify_namespace(id, true).map(|_| vec![0; BYTES])
            }
            cns::CONTROLLER_OF_COMMAND_SET if command_set == 0 => Ok(vec![0; BYTES]),
            cns::ACTIVE_NAMESPACES_OF_COMMAND_SET if command_set == 0 => {
                self.list_namespaces(id, false)
            }
            cns::ALLOCATED_NAMESPACES_OF_COMMAND_SET if command_set == 0 => {
                self.list_namespaces(id, true)
            }
            cns::INDEPENDENT_NAMESPACE => self.identify_independent(id),
            cns::ATTACHED_CONTROLLERS => {
                let namespace =
                    self.namespaces.get(id).ok_or_else(|| self.namespaces.refusal(id))?;
                Ok(list_controllers(dword10 >> 16, namespace.attached))
            }
            cns::CONTROLLERS => Ok(list_controllers(dword10 >> 16, true)),
            _ => Err(invalid_field),
        }
    }

    pub(crate) fn identify_controller(&self) -> IdentifyController {
        let config = &self.config;
        let mut id = IdentifyController::new_zeroed();
        id.vendor = config.pci_vendor.into();
        id.subsystem_vendor = config.pci_vendor.into();
        id.serial = padded(&config.serial);
        id.model = padded(&config.model);
        id.firmware = padded(&config.firmware);
        id.arbitration_burst = config.arbitration_burst.exponent();
        id.max_transfer = (config.max_transfer.0 / 4096).trailing_zeros() as u8;
        id.admin_commands = oacs::FORMAT_NVM.into();
        id.abort_limit = ABORTS_MAX - 1;
        id.event_request_limit = events::REQUESTS_MAX as u8 - 1;
        // One firmware slot, read-only.
        id.firmware_updates = 1 << 1 | 1;
        id.log_attributes = self.log_attributes();
        id.error_log_entries = (logs::ERROR_ENTRIES - 1) as u8;
        id.autonomous_power = u8::from(self.has(Part::Feature(feature::AUTONOMOUS_POWER)));
        // Required and maximum size as powers of two: 2^6 = 64 bytes, and 2^4 = 16 bytes for
        // completions.
        id.submission_entry_size = 0x66;
        id.completion_entry_size = 0x44;
        id.namespaces = self.namespaces.count_max().into();
        let there = OPTIONAL.into_iter().filter(|(part, _)| self.has(*part));
        id.nvm_commands = there.fold(0, |bits, (_, bit)| bits | bit).into();
        id.volatile_write_cache = u8::from(self.limits.has_cache);
        self.fill_later_fields(&mut id);
        self.describe_power(&mut id);
        id
    }

    /// The fields that came after version 1.0.
    fn fill_later_fields(&self, id: &mut IdentifyController) {
        if self.has_field(Field::ControllerId) {
            id.controller_id = CONTROLLER_ID.into();
        }
        if self.has_field(Field::VersionOfController) {
            id.version = self.version.register().into();
        }
        if self.has_field(Field::NamespaceNotices) {
            id.asynchronous_events = (1 << 8).into();
        }
        if self.has_field(Field::ControllerType) {
            id.controller_type = 1;
        }
        if self.has(Part::Admin(admin::NAMESPACE_MANAGEMENT)) {
            id.admin_commands = (oacs::FORMAT_NVM | oacs::NAMESPACE_MANAGEMENT).into();
        }
        if self.has_field(Field::TemperatureLimits) {
            (id.warning_temperature, id.critical_temperature) = (343.into(), 353.into());
        }
        if self.has_field(Field::Capacities) {
            id.total_capacity = u128::from(self.namespaces.capacity_bytes).into();
            id.unallocated_capacity = u128::from(self.namespaces.unallocated_bytes()).into();
        }
        if self.has(Part::Admin(admin::KEEP_ALIVE)) {
            id.keep_alive = host_behavior::KEEP_ALIVE_UNITS.into();
        }
        if self.has(Part::Admin(admin::SANITIZE)) {
            id.sanitize = self.sanitize_capabilities().into();
        }
        if self.has_field(Field::FlushOfAll) {
            // Bits 2:1 = 3: Flush takes the identifier of all namespaces.
            id.volatile_write_cache |= 3 << 1;
        }
        if self.has_field(Field::SubsystemName) {
            let name = format!("nqn.2014-08.org.nvmexpress:uuid:{}", self.uuid());
            id.subsystem_name[..name.len()].copy_from_slice(name.as_bytes());
        }
    }

    /// A UUID of version 8 (RFC 9562) made of the serial number.
    fn uuid(&self) -> String {
        // FNV-1a, twice with different starts.
        let hash = |start: u64| {
            let step =
                |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            self.config.serial.bytes().fold(start, step)
        };
        let (a, b) = (hash(0xcbf2_9ce4_8422_2325), hash(0x9e37_79b9_7f4a_7c15));
        let (first, second, third) = (a >> 32, a >> 16 & 0xffff, a & 0xfff);
        let (fourth, fifth) = (b >> 48 & 0x3fff | 0x8000, b & 0xffff_ffff_ffff);
        format!("{first:08x}-{second:04x}-8{third:03x}-{fourth:04x}-{fifth:012x}")
    }

    fn describe_power(&self, id: &mut IdentifyController) {
        let operational = self.config.operational_states.iter();
        let operational =
            operational.map(|state| (state.power, state.entry_latency, state.exit_latency, 0));
        let non_operational = PowerStateDescriptor::NON_OPERATIONAL;
        let later = self.has_field(Field::NonOperational);
        let low = self.limits.low_power_states.iter().filter(|_| later);
        let low = low
            .map(|state| (state.power, state.entry_latency, state.exit_latency, non_operational));
        let mut count = 0;
        for (place, (power, entry, exit, flags)) in
            id.power_state.iter_mut().zip(operational.chain(low))
        {
            place.flags = flags;
            set_power(place, power.0, later);
            place.entry_latency_us = us(entry.0).into();
            place.exit_latency_us = us(exit.0).into();
            // Each state is slower than the one before it.
            let rank = count;
            [place.read_throughput, place.read_latency] = [rank; 2];
            [place.write_throughput, place.write_latency] = [rank; 2];
            count += 1;
        }
        id.power_states = count.saturating_sub(1);
    }

    fn identify_namespace(&self, id: u32, allocated: bool) -> Answer<Vec<u8>> {
        let mut structure = IdentifyNamespace::new_zeroed();
        structure.formats = FORMAT_SHIFTS.len() as u8 - 1;
        if self.has_field(Field::DeallocatedReads) {
            structure.deallocate = 1 | 1 << 3;
        }
        // A format whose place stays zero is not available (NVM 1.0c, figure 98: LBADS below 9).
        for (index, shift) in self.namespaces.formats() {
            let place = &mut structure.lba_format[index];
            place.data_shift = shift;
            place.performance = u8::from(shift == 9);
        }
        // The identifier for all namespaces requests their common properties.
        if id != u32::MAX {
            if id == 0 || id > self.namespaces.count_max() {
                return Err(invalid_namespace());
            }
            let found =
                if allocated { self.namespaces.get(id) } else { self.namespaces.active(id) };
            // One that could be there but is not: all zero.
            // An identifier that is valid but not in use gives a structure of zeroes and no
            // error (base 2.0c, clause 5.17). A host can therefore scan all identifiers.
            let Some(namespace) = found else { return Ok(vec![0; BYTES]) };
            self.fill_namespace(&mut structure, namespace);
        } else if allocated || !self.has(Part::Admin(admin::NAMESPACE_MANAGEMENT)) {
            return Err(invalid_namespace());
        }
        Ok(structure.as_bytes().to_vec())
    }

    fn fill_namespace(&self, structure: &mut IdentifyNamespace, namespace: &Namespace) {
        structure.size = namespace.blocks.into();
        structure.capacity = namespace.blocks.into();
        structure.used = namespace.blocks.into();
        structure.format = u8::from(namespace.shift == FORMAT_SHIFTS[1]);
        if self.has_field(Field::Capacities) {
            structure.nvm_capacity = u128::from(namespace.bytes()).into();
        }
        if self.has_field(Field::Guid) {
            structure.guid = self.guid(namespace);
        }
        if self.has_field(Field::Eui64) {
            structure.eui64 = self.eui64(namespace);
        }
        if self.has_field(Field::PreferredSizes) {
            self.fill_preferred_sizes(structure, namespace);
        }
    }

    fn fill_preferred_sizes(&self, structure: &mut IdentifyNamespace, namespace: &Namespace) {
        // Bit 4: preferred sizes are given: whole flash pages.
        let report = DeviceReport::of(&self.device);
        let Some(page_bytes) = report.flash().map(|flash| u64::from(flash.page_bytes)) else {
            return;
        };
        let blocks = (page_bytes >> namespace.shift).max(1) as u16 - 1;
        structure.features = 1 << 4;
        structure.write_granularity = blocks.into();
        structure.write_alignment = blocks.into();
        structure.deallocate_granularity = blocks.into();
        structure.deallocate_alignment = blocks.into();
        structure.optimal_write = blocks.into();
    }

    /// The properties of a namespace for any command set; for all namespaces, their common
    /// properties.
    fn identify_independent(&self, id: u32) -> Answer<Vec<u8>> {
        let mut structure = IndependentNamespace::new_zeroed();
        if id == 0 || id > self.namespaces.count_max() && id != u32::MAX {
            return Err(invalid_namespace());
        }
        if self.namespaces.active(id).is_some() {
            structure.status = IndependentNamespace::READY;
        }
        Ok(structure.as_bytes().to_vec())
    }

    /// Locally administered, because no authority has assigned it: serial number and namespace.
    fn eui64(&self, namespace: &Namespace) -> [u8; 8] {
        let sum = self
            .config
            .serial
            .bytes()
            .fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
        (0x02_u64 << 56 | u64::from(sum) << 24 | namespace.unique & 0xff_ffff).to_be_bytes()
    }
    fn guid(&self, namespace: &Namespace) -> [u8; 16] {
        let mut guid = [0; 16];
        guid[..8].copy_from_slice(&namespace.unique.to_be_bytes());
        guid[8..].copy_from_slice(&self.eui64(namespace));
        guid
    }

    fn list_namespaces(&self, above: u32, all: bool) -> Answer<Vec<u8>> {
        // The list begins after the given identifier. Nothing can follow the last two, and the
        // specification makes them an error.
        if above >= 0xffff_fffe {
            return Err(invalid_namespace());
        }
        let mut list = vec![0; BYTES];
        for (place, id) in list.chunks_exact_mut(4).zip(self.namespaces.ids(above, all)) {
            place.copy_from_slice(&id.to_le_bytes());
        }
        Ok(list)
    }

    fn describe_namespace(&self, id: u32) -> Answer<Vec<u8>> {
        let namespace = self.namespaces.addressed(id)?;
        let mut list = Vec::with_capacity(BYTES);
        let mut add = |kind: u8, identifier: &[u8]| {
            let head =
                NamespaceDescriptor { kind, bytes: identifier.len() as u8, reserved: [0; 2] };
            list.extend_from_slice(head.as_bytes());
            list.extend_from_slice(identifier);
        };
        add(NamespaceDescriptor::EUI64, &self.eui64(namespace));
        add(NamespaceDescriptor::NGUID, &self.guid(namespace));
        if self.has_field(Field::CommandSets) {
            add(NamespaceDescriptor::COMMAND_SET, &[0]);
        }
        list.resize(BYTES, 0);
        Ok(list)
    }
}

/// A controller list (base 2.0c, figure 137) of the only controller, from identifier `from` on.
fn list_controllers(from: u32, present: bool) -> Vec<u8> {
    let mut list = vec![0; BYTES];
    if present && from <= u32::from(CONTROLLER_ID) {
        list[..2].copy_from_slice(&1u16.to_le_bytes());
        list[2..4].copy_from_slice(&CONTROLLER_ID.to_le_bytes());
    }
    list
}

fn invalid_namespace() -> NvmeStatus {
    NvmeStatus::INVALID_NAMESPACE.with_do_not_retry()
}
