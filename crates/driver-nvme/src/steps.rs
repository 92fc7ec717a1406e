//! The admin commands that bring a controller up, look for its namespaces, and delete its queues: one
//! at a time, each with its successor (S1-26, S1-28).

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use ssdyno_block::MonotonicTime;
use ssdyno_pci::PciFunction;
use ssdyno_spec::nvme::{IdentifyController, IdentifyNamespace, PAGE_BYTES, cns, registers};
use zerocopy::FromBytes;

use crate::admin::{AdminAnswer, Owner};
use crate::board::Order;
use crate::controller::Record;
use crate::pair::NewPair;
use crate::state::Phase;
use crate::{
    AdminCommand, Controller, DriverEvent, Feature, Namespace, NvmeError, QueuePair, QueuePolicy,
    QueueSelector,
};

/// Version 1.1: the first with lists of namespaces (CNS 2).
const VERSION_1_1: u32 = 0x0001_0100;
/// Identifiers in a list of namespaces.
const LIST_ENTRIES: usize = 1024;

/// An admin command of the driver's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Identify,
    Queues,
    /// The policy's weights, then the features of the configuration.
    Feature(usize),
    CompletionQueue(u16),
    SubmissionQueue(u16),
    /// Identifiers above this one.
    Namespaces(u32),
    Namespace(usize),
    DeleteSubmissionQueue(u16),
    DeleteCompletionQueue(u16),
}

impl Controller {
    pub(crate) fn wanted_queues(&self) -> u16 {
        let config = &self.config;
        QueueSelector::new(config.policy, config.cores, config.queues_max).queues()
    }

    /// Sends the command of `step`, or what comes after it where there is none.
    pub(crate) fn begin<F: PciFunction>(&mut self, f: &mut F, now: MonotonicTime, step: Step) {
        if step == Step::Identify {
            self.phase = Phase::Configuring;
        }
        if let Err(error) = self.send(f, now, step) {
            self.fail(f, error);
        }
    }

    /// Sends the command of `step`; a step without a command goes on to the next.
    pub(crate) fn send<F: PciFunction>(
        &mut self,
        f: &mut F,
        now: MonotonicTime,
        step: Step,
    ) -> Result<(), NvmeError> {
        let command = match step {
            Step::Identify => AdminCommand::identify_controller(),
            Step::Queues => AdminCommand::number_of_queues(self.wanted_queues()),
            Step::Feature(index) => match self.feature(index) {
                Some(feature) => AdminCommand::set_feature(&feature, false),
                None => return self.send(f, now, Step::CompletionQueue(1)),
            },
            Step::CompletionQueue(queue) => {
                let Some(record) = self.records.get(usize::from(queue) - 1) else {
                    return self.send(f, now, Step::Namespaces(0));
                };
                let (address, vector) = (record.addresses.1, record.vector);
                AdminCommand::create_completion_queue(queue, record.entries, address, vector)
            }
            Step::SubmissionQueue(queue) => {
                let record = &self.records[usize::from(queue) - 1];
                let class = record.class.map_or(0, |class| class as u8);
                let address = record.addresses.0;
                AdminCommand::create_submission_queue(queue, record.entries, address, class)
            }
            Step::Namespaces(after) if self.version >= VERSION_1_1 => {
                AdminCommand::identify(cns::ACTIVE_NAMESPACES, after)
            }
            Step::Namespaces(_) => {
                self.number_namespaces();
                return self.send(f, now, Step::Namespace(0));
            }
            Step::Namespace(index) => match self.scanned.0.get(index) {
                Some(&id) => AdminCommand::identify(cns::NAMESPACE, id),
                None => {
                    self.scan_done(f);
                    return Ok(());
                }
            },
            Step::DeleteSubmissionQueue(0) => {
                let all = self.queues();
                return self.send(f, now, Step::DeleteCompletionQueue(all));
            }
            Step::DeleteSubmissionQueue(queue) => AdminCommand::delete_submission_queue(queue),
            Step::DeleteCompletionQueue(0) => {
                self.notify_shutdown(f, now);
                return Ok(());
            }
            Step::DeleteCompletionQueue(queue) => AdminCommand::delete_completion_queue(queue),
        };
        let Some(queue) = self.admin.as_mut() else { return Ok(()) };
        let deadline = now.after(self.config.admin_timeout);
        self.step = Some(step);
        self.watch_at = self.watch_at.min(deadline);
        let failed = NvmeError::AdminTimeout { opcode: command.entry.opcode };
        queue.submit(f, &command, Owner::Step, deadline).map_err(|_| failed)
    }

    /// The weights of the policy, then what the configuration wants.
    fn feature(&self, index: usize) -> Option<Feature> {
        let weights = match self.config.policy {
            QueuePolicy::Weighted { weights, .. } => Some(Feature::Arbitration(weights)),
            _ => None,
        };
        weights.iter().chain(&self.config.features).nth(index).cloned()
    }

    /// The command of the current step was answered.
    pub(crate) fn step_done<F: PciFunction>(
        &mut self,
        f: &mut F,
        now: MonotonicTime,
        answer: &AdminAnswer,
    ) -> Result<(), NvmeError> {
        let Some(step) = self.step.take() else { return Ok(()) };
        let failed = NvmeError::AdminFailed { opcode: answer.opcode, status: answer.status };
        let good = answer.status.is_success();
        let next = match step {
            Step::Identify => {
                self.take_controller(&answer.data).filter(|()| good).ok_or(failed)?;
                self.check_entry_sizes()?;
                Step::Queues
            }
            Step::Queues if good => {
                let n = answer.dword0;
                self.take_queues(f, (n as u16).min((n >> 16) as u16).saturating_add(1))?;
                Step::Feature(0)
            }
            Step::Feature(index) => {
                if let (false, Some(feature)) = (good, self.feature(index)) {
                    let (identifier, status) = (feature.identifier(), answer.status);
                    self.events.push(DriverEvent::FeatureRefused { identifier, status });
                }
                Step::Feature(index + 1)
            }
            Step::CompletionQueue(queue) if good => Step::SubmissionQueue(queue),
            Step::SubmissionQueue(queue) if good => Step::CompletionQueue(queue + 1),
            Step::Namespaces(_) => self.take_list(good, &answer.data),
            Step::Namespace(index) => {
                if let (true, Some(&id)) = (good, self.scanned.0.get(index)) {
                    self.take_namespace(id, &answer.data);
                }
                Step::Namespace(index + 1)
            }
            // A queue that cannot be deleted goes with the reset that follows.
            Step::DeleteSubmissionQueue(queue) => Step::DeleteSubmissionQueue(queue - 1),
            Step::DeleteCompletionQueue(queue) => Step::DeleteCompletionQueue(queue - 1),
            Step::Queues | Step::CompletionQueue(_) | Step::SubmissionQueue(_) => {
                return Err(failed);
            }
        };
        self.send(f, now, next)
    }

    fn take_controller(&mut self, data: &[u8]) -> Option<()> {
        let controller = IdentifyController::read_from_bytes(data).ok()?;
        let wanted = (self.config.transfer_bytes_max / PAGE_BYTES).max(1) * PAGE_BYTES;
        // MDTS counts in pages of CAP.MPSMIN, which is 4096 here.
        self.transfer_bytes = match u32::from(controller.max_transfer) {
            0 => wanted,
            shift => wanted.min(PAGE_BYTES.checked_shl(shift).filter(|&b| b > 0).unwrap_or(wanted)),
        };
        self.identity = Some(Box::new(controller));
        Some(())
    }

    /// Entries are as large as CC.IOSQES and CC.IOCQES say, which the controller must allow (base
    /// 2.0c, figure 275). The most that it allows is not looked at: some report nothing there.
    fn check_entry_sizes(&self) -> Result<(), NvmeError> {
        let sizes = |c: &IdentifyController| (c.submission_entry_size, c.completion_entry_size);
        let (submission, completion) = self.identity.as_deref().map_or((0, 0), sizes);
        let (submission, completion) = (submission & 0xf, completion & 0xf);
        // 2^6 and 2^4 bytes.
        if submission > 6 || completion > 4 {
            return Err(NvmeError::EntrySizes { submission, completion });
        }
        Ok(())
    }

    /// The controller has `granted` I/O queues: interrupts for them, and their memory.
    fn take_queues<F: PciFunction>(&mut self, f: &mut F, granted: u16) -> Result<(), NvmeError> {
        let before = self.queues();
        if before > 0 {
            if granted < before {
                return Err(NvmeError::FewerQueues { granted, before });
            }
            return Ok(());
        }
        let config = &self.config;
        let available = granted.min(config.queues_max);
        self.selector = QueueSelector::new(config.policy, config.cores, available);
        let queues = self.selector.queues();
        let stride = self.capabilities.doorbell_stride();
        let needed = u64::from(registers::completion_doorbell(queues, stride)) + 4;
        let bytes = f.bar_bytes(0);
        if bytes < needed {
            return Err(NvmeError::RegistersMissing { bytes, needed });
        }
        let entries = self.selector.entries(config.entries, self.capabilities.queue_entries_max());
        if config.pin_first {
            if self.masks() {
                f.bar_write32(0, registers::INTMC, !0);
            }
            self.final_interrupts(f, queues + 1)?;
            if self.masks() {
                f.bar_write32(0, registers::INTMS, !0);
            }
        }
        for id in 1..=queues {
            self.new_pair(f, id, entries)?;
        }
        Ok(())
    }

    /// The pair of queue `id`, with its memory.
    fn new_pair<F: PciFunction>(
        &mut self,
        f: &mut F,
        id: u16,
        entries: u32,
    ) -> Result<(), NvmeError> {
        let vector = self.interrupts.map(|_| match self.vectors {
            0 | 1 => 0,
            n => 1 + (id - 1) % (n - 1),
        });
        let new = NewPair {
            id,
            entries,
            stride: self.capabilities.doorbell_stride(),
            transfer_bytes: self.transfer_bytes,
            vector,
            config: &self.config,
            board: &self.board,
        };
        let pair = QueuePair::new(f, &new)?;
        self.records.push(Record {
            desk: Arc::clone(pair.desk()),
            entries,
            vector,
            class: self.selector.class_of(id),
            addresses: pair.addresses(),
            called: false,
            called_for: (MonotonicTime::MAX, MonotonicTime::MAX),
        });
        self.pairs.push(pair);
        Ok(())
    }

    /// Before version 1.1 there are no lists: identifiers are 1 to NN.
    fn number_namespaces(&mut self) {
        let n = self.identity.as_ref().map_or(0, |c| c.namespaces.get());
        self.scanned = ((1..=n.min(LIST_ENTRIES as u32)).collect(), Vec::new());
    }

    fn take_list(&mut self, good: bool, data: &[u8]) -> Step {
        if !good {
            self.number_namespaces();
            return Step::Namespace(0);
        }
        let before = self.scanned.0.len();
        let dwords = data.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]));
        let last = self.scanned.0.last().copied().unwrap_or(0);
        // In ascending order (base 2.0c, clause 5.17.2.2); what is not would be asked for ever.
        let mut least = last;
        self.scanned.0.extend(dwords.take_while(|&id| id > core::mem::replace(&mut least, id)));
        match self.scanned.0.last() {
            Some(&last) if self.scanned.0.len() - before == LIST_ENTRIES => Step::Namespaces(last),
            _ => Step::Namespace(0),
        }
    }

    fn take_namespace(&mut self, id: u32, data: &[u8]) {
        if let Ok(structure) = IdentifyNamespace::read_from_bytes(data) {
            // A size of 0: the identifier is not active.
            if structure.size.get() != 0 {
                self.scanned.1.push(Namespace::new(id, &structure));
            }
        }
    }

    /// All namespaces are known: the start is over, or a rescan is.
    fn scan_done<F: PciFunction>(&mut self, f: &mut F) {
        self.namespaces = core::mem::take(&mut self.scanned.1).into();
        self.scanned.0.clear();
        // While the last commands are waited for, none begins.
        if matches!(self.phase, Phase::Configuring | Phase::Ready) {
            self.order(Order::Run);
        }
        if self.phase != Phase::Configuring {
            return;
        }
        self.phase = Phase::Ready;
        self.recovering = false;
        self.look_at = MonotonicTime::MAX;
        if self.masks() {
            f.bar_write32(0, registers::INTMC, !0);
        }
        let limit = self.identity.as_ref().map_or(0, |c| c.event_request_limit);
        for _ in 0..self.config.event_requests.min(limit.saturating_add(1)) {
            self.request_event(f);
        }
    }

    pub(crate) fn request_event<F: PciFunction>(&mut self, f: &mut F) {
        if let Some(queue) = self.admin.as_mut() {
            // Without room there is one request less: events are told later, none is lost.
            let _ = queue.submit(
                f,
                &AdminCommand::asynchronous_event(),
                Owner::Event,
                MonotonicTime::MAX,
            );
        }
    }

    /// Looks again which namespaces there are; [`namespaces`](Controller::namespaces) changes when
    /// all were asked, and what the pairs know of them with the next call of each owner.
    ///
    /// # Errors
    /// The driver is not ready, or scans already.
    pub fn rescan<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: impl Into<MonotonicTime>,
    ) -> Result<(), NvmeError> {
        if self.phase != Phase::Ready || self.step.is_some() {
            return Err(NvmeError::WrongState { state: "not ready, or scanning" });
        }
        self.scanned = (Vec::new(), Vec::new());
        self.send(function, now.into(), Step::Namespaces(0))
    }
}
