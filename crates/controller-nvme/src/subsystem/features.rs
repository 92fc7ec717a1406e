//! Set Features and Get Features (base 2.0c, clauses 5.15 and 5.27; S1-41, S1-45).

use ssdyno_block::Time;
use ssdyno_spec::nvme::{
    AsynchronousEvent, AutonomousTransition, NvmeStatus, RangeType, SmartLog, SubmissionEntry,
    feature, select,
};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::admin::AdminOutcome;
use super::feature_values::{Features, STATES};
use super::namespaces::RANGE_TYPES_BYTES;
use super::versions::{Field, Part};
use super::{HostData, NvmeSubsystem};
use crate::answer::Answer;
use ssdyno_device::Device;

/// In command dword 10 of Set Features: keep the value over a reset.
const SAVE: u32 = 1 << 31;
/// Features that the transport has the values of, and carries out.
const TRANSPORT_FEATURES: [u8; 4] = [
    feature::ARBITRATION,
    feature::NUMBER_OF_QUEUES,
    feature::INTERRUPT_COALESCING,
    feature::INTERRUPT_VECTOR,
];

/// Ranges lie within a namespace of this number of blocks and do not overlap (NVM 1.0c, clause
/// 4.1.3.1).
fn check_ranges(bytes: &[u8], blocks: u64) -> Answer {
    let mut ranges = Vec::new();
    for bytes in bytes.chunks_exact(size_of::<RangeType>()) {
        let Ok(range) = RangeType::read_from_bytes(bytes) else { continue };
        let (first, last) = (range.first.get(), range.first.get().checked_add(range.blocks.get()));
        let Some(last) = last.filter(|last| *last < blocks) else {
            return Err(NvmeStatus::LBA_OUT_OF_RANGE.with_do_not_retry());
        };
        ranges.push((first, last));
    }
    // After sorting, only neighbours can overlap. At most 64 ranges are compared, once for each
    // command.
    ranges.sort_unstable();
    let overlap = ranges.windows(2).any(|pair| pair[1].0 <= pair[0].1);
    if overlap { Err(NvmeStatus::OVERLAPPING_RANGE.with_do_not_retry()) } else { Ok(()) }
}

/// The result of Get Features for a feature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeatureValue {
    /// Dword 0 of the value in force.
    pub current: u32,
    /// Dword 0 of the value after a reset.
    pub default: u32,
    /// It belongs to a namespace.
    pub of_namespace: bool,
}

impl<D: Device> NvmeSubsystem<D> {
    /// Puts the features that other parts act on into force.
    pub(crate) fn apply_features(&mut self, now: Time) {
        self.apply_sleep(now);
        // The state after a reset is the first, which has no limit.
        // The first state has no limit even if the file names its power: it stands for the
        // device as the rest of the file describes it.
        let limit = self.power_limit(self.features.power_state);
        if let Some(power) = self.device.power() {
            power.limit_power(now, limit);
        }
    }
    /// The most that the device may draw in operational state `state`. The first does not limit it: the
    /// rest of the device file says what the device can at its best. Zero is not said (base 2.0c,
    /// figure 276).
    fn power_limit(&self, state: u8) -> Option<f64> {
        let state = self.config.operational_states.get(usize::from(state)).filter(|_| state > 0);
        state.map(|state| state.power.0).filter(|watts| *watts > 0.0)
    }
    /// Goes to operational state `state`: it is in force once the one before is left and this one
    /// entered.
    fn change_power_limit(&mut self, at: Time, state: u8) -> Answer {
        let latencies = |state: u8| &self.config.operational_states[usize::from(state)];
        let (old, new) = (latencies(self.features.power_state), latencies(state));
        // The transition takes the exit latency of the old state and the entry latency of the
        // new one (base 2.0c, clause 8.15). Until then the old limit holds.
        let from = at.saturating_add(old.exit_latency.0).saturating_add(new.entry_latency.0);
        let limit = self.power_limit(state);
        // One that cannot be limited keeps to no limit.
        let kept =
            self.device.power().map_or(limit.is_none(), |power| power.limit_power(from, limit));
        if kept {
            return Ok(());
        }
        Err(NvmeStatus::INVALID_FIELD.with_do_not_retry())
    }
    fn apply_sleep(&mut self, now: Time) {
        let policy = self.features.sleep_policy(&self.limits.low_power_states);
        if let Some(power) = self.device.power() {
            power.set_sleep(now, &policy);
        }
    }
    /// An I/O command has ended the sleep that the host had ordered.
    #[cold]
    pub(crate) fn wake(&mut self, now: Time) {
        self.features.forced = None;
        self.apply_sleep(now);
    }

    /// Set Features (base 2.0c, clause 5.27). Of a feature that is the transport's, only what all features have in
    /// common is checked.
    pub(crate) fn set_features(
        &mut self,
        at: Time,
        entry: &SubmissionEntry,
        data: &mut dyn HostData,
    ) -> Answer<AdminOutcome> {
        let id = entry.dword10.get() as u8;
        let value = entry.dword11.get();
        let namespace = entry.namespace_id.get();
        let invalid_field = NvmeStatus::INVALID_FIELD.with_do_not_retry();
        if !self.has(Part::Feature(id)) {
            return Err(invalid_field);
        }
        if entry.dword10.get() & SAVE != 0 {
            let known = self.has_field(Field::SaveAndSelect);
            let not_saveable = NvmeStatus::FEATURE_NOT_SAVEABLE.with_do_not_retry();
            return Err(if known { not_saveable } else { invalid_field });
        }
        // Error recovery of any namespace is the controller's in versions before 1.2.
        let of_namespace = [feature::LBA_RANGE_TYPE, feature::ERROR_RECOVERY].contains(&id);
        if !of_namespace && namespace != 0 && namespace != u32::MAX {
            return Err(NvmeStatus::FEATURE_NOT_NAMESPACE_SPECIFIC.with_do_not_retry());
        }
        match id {
            feature::POWER_MANAGEMENT => self.set_power_state(at, value)?,
            feature::LBA_RANGE_TYPE => self.set_range_types(entry, data)?,
            feature::TEMPERATURE_THRESHOLD => self.set_threshold(value)?,
            feature::ERROR_RECOVERY => self.set_error_recovery(namespace, value)?,
            feature::VOLATILE_WRITE_CACHE => {
                self.features.write_cache = value & 1 == 1;
            }
            feature::WRITE_ATOMICITY => self.features.write_atomicity = value & 1,
            feature::ASYNCHRONOUS_EVENTS => {
                let notices = u32::from(self.has_field(Field::NamespaceNotices));
                self.features.events = value & (0xff | notices << 8);
                self.tell_temperature();
            }
            feature::AUTONOMOUS_POWER => {
                let mut table = [AutonomousTransition::new_zeroed(); STATES];
                data.receive(table.as_mut_bytes())?;
                if !self.features.takes(&table) {
                    return Err(invalid_field);
                }
                self.features.autonomous = value & 1 == 1;
                self.features.transitions = Some(table);
                self.apply_sleep(at);
            }
            feature::KEEP_ALIVE => self.set_keep_alive(value),
            feature::HOST_BEHAVIOR => self.set_host_behavior(data)?,
            id if TRANSPORT_FEATURES.contains(&id) => return Ok(AdminOutcome::TransportFeature),
            _ => return Err(invalid_field),
        }
        Ok(AdminOutcome::Done(0))
    }

    /// Of one namespace, or of all; of all in versions where it was the controller's.
    fn set_error_recovery(&mut self, id: u32, value: u32) -> Answer {
        let every = id == u32::MAX || !self.has_field(Field::NamespaceErrorRecovery);
        if !every {
            self.namespaces.addressed(id)?;
        }
        let all: Vec<u32> =
            self.namespaces.ids(0, false).filter(|own| every || *own == id).collect();
        for id in all {
            if let Some(namespace) = self.namespaces.get_mut(id) {
                namespace.error_recovery = value & 0xffff;
            }
        }
        Ok(())
    }

    fn set_threshold(&mut self, value: u32) -> Answer {
        if value >> 16 != 0 && !self.has_field(Field::TemperatureSelect) {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        // Only the composite temperature has thresholds; 15: all sensors.
        match (value >> 16 & 0xf, value >> 20 & 3) {
            (0 | 15, 0) => self.features.over_temperature = value & 0xffff,
            (0 | 15, 1) => self.features.under_temperature = value & 0xffff,
            _ => return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry()),
        }
        self.tell_temperature();
        Ok(())
    }

    /// Reports a temperature that is at or beyond a threshold, if the host has enabled this (base 2.0c, clause
    /// 5.27.1.3). The temperature never changes; thresholds do.
    fn tell_temperature(&mut self) {
        if self.features.is_beyond_threshold() && self.features.wants_health(SmartLog::TEMPERATURE)
        {
            self.events.push(AsynchronousEvent::TEMPERATURE);
        }
    }

    fn set_power_state(&mut self, at: Time, value: u32) -> Answer {
        let state = (value & 31) as u8;
        if state >= self.features.states {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        // In the state already, by itself or told to.
        let unchanged = state == self.features.power_state && self.features.forced.is_none();
        // A non-operational state limits nothing: the device sleeps in it. The operational state
        // that it returns to stays the one that was chosen last.
        if state >= self.features.operational {
            self.features.forced = Some(state);
        } else if !unchanged {
            if state != self.features.power_state {
                self.change_power_limit(at, state)?;
            }
            self.features.power_state = state;
            self.features.forced = None;
        }
        if self.has_field(Field::WorkloadHint) {
            self.features.workload = (value >> 5 & 7) as u8;
        }
        if !unchanged {
            self.apply_sleep(at);
        }
        Ok(())
    }

    fn set_range_types(&mut self, entry: &SubmissionEntry, data: &mut dyn HostData) -> Answer {
        let id = entry.namespace_id.get();
        let blocks = self.namespaces.addressed(id)?.blocks;
        let last = entry.dword11.get() & 0x3f;
        let mut ranges = vec![0; RANGE_TYPES_BYTES].into_boxed_slice();
        let bytes = &mut ranges[..(last as usize + 1) * size_of::<RangeType>()];
        data.receive(bytes)?;
        check_ranges(bytes, blocks)?;
        if let Some(namespace) = self.namespaces.get_mut(id) {
            namespace.range_types = Some((last, ranges));
        }
        Ok(())
    }

    /// Get Features (base 2.0c, clause 5.15); gives dword 0. `of_transport` is the value of a feature that is the
    /// transport's.
    ///
    /// # Errors
    /// The status with which the command ends.
    pub fn get_features(
        &self,
        entry: &SubmissionEntry,
        of_transport: Option<FeatureValue>,
        data: &mut dyn HostData,
    ) -> Result<u32, NvmeStatus> {
        let dword10 = entry.dword10.get();
        let id = dword10 as u8;
        let what = (dword10 >> 8 & 7) as u8;
        if what != select::CURRENT && !self.has_field(Field::SaveAndSelect) {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        let FeatureValue { current, default, of_namespace } =
            self.describe_feature(entry, of_transport)?;
        if what == select::CAPABILITIES {
            // Nothing can be saved, everything can be changed.
            return Ok(u32::from(of_namespace) << 1 | 1 << 2);
        }
        if what > select::CAPABILITIES {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        match id {
            feature::AUTONOMOUS_POWER => {
                // The default value of the table is computed and not stored: it follows from the
                // device file and is asked for rarely.
                let fresh = self.fresh_features();
                let source = if what == select::CURRENT { &self.features } else { &fresh };
                let table = source.table(&self.limits.low_power_states);
                data.send(table.as_bytes())?;
            }
            feature::LBA_RANGE_TYPE => {
                let ns = self.namespaces.active(entry.namespace_id.get());
                let stored = ns.and_then(|ns| ns.range_types.as_ref());
                let stored = stored.filter(|_| what == select::CURRENT);
                let ranges = stored.map_or_else(|| vec![0; RANGE_TYPES_BYTES], |(_, r)| r.to_vec());
                data.send(&ranges)?;
            }
            feature::HOST_BEHAVIOR => {
                self.get_host_behavior(what == select::CURRENT, data)?;
            }
            _ => {}
        }
        Ok(if what == select::CURRENT { current } else { default })
    }

    fn describe_feature(
        &self,
        entry: &SubmissionEntry,
        of_transport: Option<FeatureValue>,
    ) -> Answer<FeatureValue> {
        let features = &self.features;
        let fresh = self.fresh_features();
        let plain = |of: fn(&Features) -> u32| FeatureValue {
            current: of(features),
            default: of(&fresh),
            of_namespace: false,
        };
        // The command requests one value: there is no value for all namespaces.
        let namespace = || match entry.namespace_id.get() {
            u32::MAX => Err(NvmeStatus::INVALID_NAMESPACE.with_do_not_retry()),
            id => self.namespaces.addressed(id),
        };
        let invalid_field = NvmeStatus::INVALID_FIELD.with_do_not_retry();
        let (id, dword11) = (entry.dword10.get() as u8, entry.dword11.get());
        if !self.has(Part::Feature(id)) {
            return Err(invalid_field);
        }
        Ok(match id {
            feature::POWER_MANAGEMENT => {
                plain(|f| u32::from(f.workload) << 5 | u32::from(f.forced.unwrap_or(f.power_state)))
            }
            feature::LBA_RANGE_TYPE => FeatureValue {
                current: namespace()?.range_types.as_ref().map_or(0, |(last, _)| *last),
                default: 0,
                of_namespace: true,
            },
            feature::TEMPERATURE_THRESHOLD => match (dword11 >> 16 & 0xf, dword11 >> 20 & 3) {
                (0, 0) => plain(|f| f.over_temperature),
                (0, 1) => plain(|f| f.under_temperature),
                _ => return Err(invalid_field),
            },
            feature::ERROR_RECOVERY if self.has_field(Field::NamespaceErrorRecovery) => {
                let current = namespace()?.error_recovery;
                FeatureValue { current, default: 0, of_namespace: true }
            }
            // Once it was the controller's, and the same for all namespaces.
            feature::ERROR_RECOVERY => {
                let any = self.namespaces.ids(0, false).next();
                let any = any.and_then(|id| self.namespaces.get(id));
                let current = any.map_or(0, |namespace| namespace.error_recovery);
                FeatureValue { current, default: 0, of_namespace: false }
            }
            feature::VOLATILE_WRITE_CACHE => plain(|f| u32::from(f.write_cache)),
            feature::WRITE_ATOMICITY => plain(|f| f.write_atomicity),
            feature::ASYNCHRONOUS_EVENTS => plain(|f| f.events),
            feature::AUTONOMOUS_POWER => plain(|f| u32::from(f.autonomous)),
            feature::KEEP_ALIVE => plain(|f| f.host.keep_alive_ms),
            feature::HOST_BEHAVIOR => plain(|_| 0),
            id if TRANSPORT_FEATURES.contains(&id) => return of_transport.ok_or(invalid_field),
            _ => return Err(invalid_field),
        })
    }
}
