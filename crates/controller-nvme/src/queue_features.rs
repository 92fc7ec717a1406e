//! Features that are the PCI transport's: arbitration, number of queues, interrupts (base 2.0c, clause 5.27.1), and the
//! timer of Keep Alive (clause 3.9).

use ssdyno_block::Time;
use ssdyno_spec::nvme::{NvmeStatus, SubmissionEntry, feature};

use super::NvmeController;
use super::pages::HostPages;
use super::queues::QueueFeatures;
use super::subsystem::{AdminOutcome, FeatureValue};
use super::timers::Timer;
use crate::answer::Answer;
use ssdyno_device::Device;
use ssdyno_pci::BusMaster;

impl<D: Device> NvmeController<D> {
    /// Puts the values after a reset into force.
    pub(super) fn reset_queue_features(&mut self) {
        self.queues.features = QueueFeatures::new(self.subsystem.config());
        self.arbiter.set_feature(self.queues.features.arbitration);
        self.interrupts.set_coalescing(self.queues.features.coalescing);
    }

    /// Set Features of a feature that the subsystem leaves to the transport; gives dword 0.
    pub(super) fn set_own_feature(&mut self, entry: &SubmissionEntry) -> Answer<u32> {
        let value = entry.dword11.get();
        match entry.dword10.get() as u8 {
            feature::ARBITRATION => {
                self.queues.features.arbitration = value & 0xffff_ff07;
                self.arbiter.set_feature(self.queues.features.arbitration);
            }
            feature::NUMBER_OF_QUEUES => return self.set_number_of_queues(value),
            feature::INTERRUPT_COALESCING => {
                self.queues.features.coalescing = value & 0xffff;
                self.interrupts.set_coalescing(value);
            }
            feature::INTERRUPT_VECTOR => {
                let vector = value & 0xffff;
                if !self.interrupts.exists(vector) {
                    return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
                }
                let at_once = value >> 16 & 1 == 1;
                self.interrupts.set_at_once(vector as u16, at_once);
                if at_once {
                    self.timers.cancel(Timer::Coalesced(vector as u16));
                    self.interrupts.time_is_up(vector as u16);
                }
            }
            _ => return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry()),
        }
        Ok(0)
    }

    /// How many queues there will be; only before the first is created, also if that is gone again
    /// (base 2.0c, 5.27.1.5).
    fn set_number_of_queues(&mut self, value: u32) -> Answer<u32> {
        let (submission, completion) = (value & 0xffff, value >> 16);
        if submission == 0xffff || completion == 0xffff {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        if self.queues.had_io {
            return Err(NvmeStatus::SEQUENCE_ERROR.with_do_not_retry());
        }
        let most = u32::from(self.subsystem.config().io_queues - 1);
        self.queues.features.queues = completion.min(most) << 16 | submission.min(most);
        Ok(self.queues.features.queues)
    }

    /// Get Features.
    pub(super) fn get_features(
        &mut self,
        entry: &SubmissionEntry,
        bus: &mut dyn BusMaster,
    ) -> Answer<AdminOutcome> {
        let own = self.describe_feature(entry.dword10.get() as u8, entry.dword11.get());
        let data = &mut HostPages { entry, registers: &self.registers, bus };
        self.subsystem.get_features(entry, own, data).map(AdminOutcome::Done)
    }

    /// The value of a feature that is the transport's; `None` where it is not, or where there is no such vector.
    fn describe_feature(&self, id: u8, dword11: u32) -> Option<FeatureValue> {
        let features = &self.queues.features;
        let fresh = QueueFeatures::new(self.subsystem.config());
        let plain = |of: fn(&QueueFeatures) -> u32| FeatureValue {
            current: of(features),
            default: of(&fresh),
            of_namespace: false,
        };
        Some(match id {
            feature::ARBITRATION => plain(|f| f.arbitration),
            feature::NUMBER_OF_QUEUES => plain(|f| f.queues),
            feature::INTERRUPT_COALESCING => plain(|f| f.coalescing),
            feature::INTERRUPT_VECTOR => {
                let vector = dword11 & 0xffff;
                if !self.interrupts.exists(vector) {
                    return None;
                }
                let at_once = u32::from(self.interrupts.is_at_once(vector as u16));
                let current = at_once << 16 | vector;
                FeatureValue { current, default: vector, of_namespace: false }
            }
            _ => return None,
        })
    }

    /// The host is alive: its time begins anew.
    pub(super) fn keep_alive(&mut self, at: Time) {
        self.timers.cancel(Timer::KeepAlive);
        if let Some(time) = self.subsystem.keep_alive_time() {
            self.timers.set(at + time, Timer::KeepAlive);
        }
    }

    /// It was not for too long: nothing is processed any more until a reset (base 2.0c, clause 3.9.3).
    pub(super) fn keep_alive_expired(&mut self) {
        self.subsystem.keep_alive_expired();
        self.registers.set_fatal();
    }
}
