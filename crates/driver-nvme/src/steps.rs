//! The admin commands that bring a controller up, look for its namespaces, and delete its queues: one
//! at a time, each with its successor (S1-26, S1-28).

use ssdyno_block::MonotonicTime;
use ssdyno_pci::PciFunction;
use ssdyno_spec::nvme::{
    IdentifyController, IdentifyNamespace, PAGE_BYTES, cns, feature, registers, select,
};
use zerocopy::FromBytes;

use crate::admin::{AdminAnswer, Owner};
use crate::control_log::Order;
use crate::controller::Record;
use crate::pair::NewPair;
use crate::queue::NewQueue;
use crate::shared::{NoHeap, try_box};
use crate::state::Phase;
use crate::step::Step;
use crate::{
    AdminCommand, AdminError, Controller, DriverEvent, Feature, Namespace, NvmeError,
    PriorityClass, QueuePair, QueuePolicy, QueueSelector, Quirks,
};

/// Version 1.1: the first with lists of namespaces (CNS 2).
const VERSION_1_1: u32 = 0x0001_0100;
/// Identifiers in a list of namespaces.
const LIST_ENTRIES: usize = 1024;

impl Controller {
    pub(crate) fn wanted_queues(&self) -> u16 {
        let config = &self.config;
        QueueSelector::idle(config.policy, config.cores, config.queues_max).queues()
    }

    /// Sends the command of `step`, or performs the next step if there is no command.
    pub(crate) fn begin<F: PciFunction>(&mut self, f: &mut F, now: MonotonicTime, step: Step) {
        if step == Step::Identify {
            self.phase = Phase::Configuring;
        }
        if let Err(error) = self.send(f, now, step) {
            self.step_failed(f, error);
        }
    }

    /// A step could not be done. A scan without memory leaves what was known; all else is the end.
    pub(crate) fn step_failed<F: PciFunction>(&mut self, f: &mut F, error: NvmeError) {
        // A running system must not lose its drive because a scan found no memory. The
        // namespaces that were known stay in use.
        let scan = self.phase == Phase::Ready || (self.recovering && !self.namespaces().is_empty());
        if error == NvmeError::NoMemory && scan {
            self.scanned = Default::default();
            self.tell(DriverEvent::ScanFailed);
            self.scanned_all(f);
        } else {
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
            Step::Feature(index) => match self.feature_command(index) {
                Some(Ok(command)) => command,
                Some(Err(identifier)) => {
                    self.tell(DriverEvent::FeatureWithheld { identifier });
                    return self.send(f, now, Step::Feature(index + 1));
                }
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
                let medium = self.quirks.contains(Quirks::MEDIUM_PRIORITY);
                let usual = if medium { PriorityClass::Medium } else { PriorityClass::Urgent };
                // QPRIO means something under weighted round robin only; otherwise the field is
                // 0, as in Linux. Some controllers want medium there, see the quirk.
                let class = record.class.unwrap_or(usual) as u8;
                let address = record.addresses.0;
                AdminCommand::create_submission_queue(queue, record.entries, address, class)
            }
            Step::Namespaces(after) if self.has_lists() => {
                AdminCommand::identify(cns::ACTIVE_NAMESPACES, after)
            }
            Step::Namespaces(_) => {
                self.number_namespaces()?;
                return self.send(f, now, Step::Namespace(0));
            }
            Step::Namespace(index) => match self.scanned.0.get(index) {
                Some(&id) => AdminCommand::identify(cns::NAMESPACE, id),
                None => return self.scan_done(f),
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
            Step::ReadPowerState => {
                AdminCommand::get_feature(feature::POWER_MANAGEMENT, select::CURRENT)
            }
            Step::Sleep | Step::Wake => {
                let suspension = self.suspension.as_ref();
                let sleep = suspension.and_then(|s| s.target).filter(|_| step == Step::Sleep);
                let state = sleep.or(suspension.map(|s| s.before)).unwrap_or(0);
                AdminCommand::set_feature(&Feature::PowerState(state), false)
            }
        };
        let Some(queue) = self.admin.as_mut() else { return Ok(()) };
        let deadline = now.after(self.config.admin_timeout);
        self.step = Some(step);
        self.watch_at = self.watch_at.min(deadline);
        queue.submit(f, &command, Owner::Step, deadline).map_err(|error| {
            self.step = None;
            match error {
                AdminError::NoMemory | AdminError::Full => NvmeError::NoMemory,
                _ => NvmeError::AdminTimeout { opcode: command.entry.opcode },
            }
        })
    }

    /// The controller has lists of namespaces.
    fn has_lists(&self) -> bool {
        self.version >= VERSION_1_1 && !self.quirks.contains(Quirks::NO_NAMESPACE_LIST)
    }

    /// Calls `of` with the feature of this index: the weights of the policy, then what the configuration
    /// wants.
    fn with_feature<T>(&self, index: usize, of: impl FnOnce(&Feature) -> T) -> Option<T> {
        let weights = match self.config.policy {
            QueuePolicy::Weighted { weights, .. } => Some(Feature::Arbitration(weights)),
            _ => None,
        };
        weights.iter().chain(&self.config.features).nth(index).map(of)
    }

    /// The command that sets this feature, or the feature's identifier where this controller cannot bear
    /// it.
    fn feature_command(&self, index: usize) -> Option<Result<AdminCommand<'static>, u8>> {
        let deepest = self.identity().map_or(0, |c| c.power_states);
        self.with_feature(index, |feature| match feature {
            Feature::AutonomousPower(_) if self.quirks.contains(Quirks::NO_AUTONOMOUS_POWER) => {
                Err(feature.identifier())
            }
            Feature::AutonomousPower(table)
                if self.quirks.contains(Quirks::NO_DEEPEST_POWER)
                    && table.iter().any(|entry| entry.target() == deepest) =>
            {
                Err(feature.identifier())
            }
            _ => Ok(AdminCommand::set_feature(feature, false)),
        })
    }

    /// The command of the current step completed.
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
                if !good || !self.take_controller(&answer.data)? {
                    return Err(failed);
                }
                self.check_entry_sizes()?;
                Step::Queues
            }
            Step::Queues if good => {
                let n = answer.dword0;
                self.take_queues(f, (n as u16).min((n >> 16) as u16).saturating_add(1))?;
                Step::Feature(0)
            }
            Step::Feature(index) => {
                let identifier = self.with_feature(index, Feature::identifier);
                if let (false, Some(identifier)) = (good, identifier) {
                    let status = answer.status;
                    self.tell(DriverEvent::FeatureRefused { identifier, status });
                }
                // A feature that the controller refuses is reported as an event and is not a reason
                // to give up the drive.
                Step::Feature(index + 1)
            }
            Step::CompletionQueue(queue) if good => Step::SubmissionQueue(queue),
            Step::SubmissionQueue(queue) if good => Step::CompletionQueue(queue + 1),
            Step::Namespaces(_) => self.take_list(good, &answer.data)?,
            Step::Namespace(index) => {
                if let (true, Some(&id)) = (good, self.scanned.0.get(index)) {
                    self.take_namespace(id, &answer.data)?;
                }
                Step::Namespace(index + 1)
            }
            // A queue that cannot be deleted goes with the reset that follows.
            Step::DeleteSubmissionQueue(queue) => Step::DeleteSubmissionQueue(queue - 1),
            Step::DeleteCompletionQueue(queue) => Step::DeleteCompletionQueue(queue - 1),
            Step::ReadPowerState => self.power_state_read(good, (answer.dword0 & 31) as u8),
            Step::Sleep if good => {
                self.suspended(f);
                return Ok(());
            }
            Step::Sleep => self.not_asleep(),
            Step::Wake => {
                self.woken(f, now, good);
                return Ok(());
            }
            Step::Queues | Step::CompletionQueue(_) | Step::SubmissionQueue(_) => {
                return Err(failed);
            }
        };
        self.send(f, now, next)
    }

    /// Takes over the Identify data of the controller; false if it is incomplete.
    fn take_controller(&mut self, data: &[u8]) -> Result<bool, NoHeap> {
        let Ok(controller) = IdentifyController::read_from_bytes(data) else { return Ok(false) };
        if self.config.quirks.is_none() {
            self.quirks |= Quirks::of_identity(&controller);
        }
        // The limit is cut to whole pages, at least one, because page lists are made for a whole
        // number of pages.
        let wanted = (self.config.transfer_bytes_max / PAGE_BYTES).max(1) * PAGE_BYTES;
        // MDTS counts in pages of CAP.MPSMIN, which is 4096 here.
        self.transfer_bytes = match u32::from(controller.max_transfer) {
            0 => wanted,
            shift => wanted.min(PAGE_BYTES.checked_shl(shift).filter(|&b| b > 0).unwrap_or(wanted)),
        };
        match &mut self.identity {
            Some(identity) => identity[0] = controller,
            None => self.identity = Some(try_box(controller)?),
        }
        Ok(true)
    }

    /// The stripe of a drive with [`Quirks::STRIPE_IS_MAX_TRANSFER`], in bytes: its largest transfer.
    fn stripe_bytes(&self) -> Option<u32> {
        let stripes = self.quirks.contains(Quirks::STRIPE_IS_MAX_TRANSFER);
        let shift = self.identity().map_or(0, |c| c.max_transfer);
        let bytes = PAGE_BYTES.checked_shl(shift.into()).filter(|bytes| *bytes > 0);
        bytes.filter(|_| stripes && shift > 0)
    }

    /// Entries are as large as CC.IOSQES and CC.IOCQES say, which the controller must allow (base
    /// 2.0c, figure 275). The most that it allows is not looked at: some report nothing there.
    fn check_entry_sizes(&self) -> Result<(), NvmeError> {
        let sizes = |c: &IdentifyController| (c.submission_entry_size, c.completion_entry_size);
        let (submission, completion) = self.identity().map_or((0, 0), sizes);
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
            // Pairs may be with their owners on other cores. A controller that grants fewer
            // queues after a reset than before would leave some of them without a queue.
            if granted < before {
                return Err(NvmeError::FewerQueues { granted, before });
            }
            return Ok(());
        }
        let config = &self.config;
        let available = granted.min(config.queues_max);
        self.selector = QueueSelector::try_new(config.policy, config.cores, available)?;
        let queues = self.selector.queues();
        let stride = self.capabilities.doorbell_stride();
        // The last doorbell must lie inside the BAR. A short BAR would make register accesses
        // fault later, on the path of I/O.
        let needed = u64::from(registers::completion_doorbell(queues, stride)) + 4;
        let bytes = f.bar_bytes(0);
        if bytes < needed {
            return Err(NvmeError::RegistersMissing { bytes, needed });
        }
        let entries_max = match self.quirks.contains(Quirks::ONE_COMMAND) {
            true => 2,
            false => self.capabilities.queue_entries_max(),
        };
        let entries = self.selector.entries(config.entries, entries_max);
        self.records.try_reserve_exact(queues.into())?;
        self.pairs.try_reserve_exact(queues.into())?;
        if config.pin_first {
            // With MSI-X the mask registers must not be touched (base 2.0c, clause 3.1.3.3). The
            // mask is cleared while the pin is in use, and set again only if the final
            // interrupts allow that.
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
            // Vector 0 stays with the admin queue (S1-32). If there are fewer vectors than
            // queues, queues share the others evenly.
            n => 1 + (id - 1) % (n - 1),
        });
        let list_bytes_min = match self.quirks.contains(Quirks::LISTS_OF_512_BYTES) {
            true => 512,
            false => 0,
        };
        let queue = NewQueue {
            id,
            entries,
            stride: self.capabilities.doorbell_stride(),
            transfer_bytes: self.transfer_bytes,
            lists: self.config.lists_at_start.max(1),
            list_bytes_min,
            generations: !self.quirks.contains(Quirks::NO_GENERATION),
            growth: self.config.completion_lists,
        };
        let Some(board) = &self.board else {
            return Err(NvmeError::WrongState { state: "not started" });
        };
        let new = NewPair { queue, vector, config: &self.config, board };
        let pair = QueuePair::new(f, &new)?;
        self.records.push(Record {
            desk: pair.desk().clone(),
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
    fn number_namespaces(&mut self) -> Result<(), NoHeap> {
        let n = self.identity().map_or(0, |c| c.namespaces.get()).min(LIST_ENTRIES as u32);
        self.scanned = Default::default();
        self.scanned.0.try_reserve_exact(n as usize)?;
        self.scanned.0.extend(1..=n);
        Ok(())
    }

    fn take_list(&mut self, good: bool, data: &[u8]) -> Result<Step, NoHeap> {
        if !good {
            self.number_namespaces()?;
            return Ok(Step::Namespace(0));
        }
        let ids = &mut self.scanned.0;
        let before = ids.len();
        let dwords = data.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]));
        // Identifiers are in ascending order (base 2.0c, clause 5.17.2.2); otherwise the scan would
        // never end.
        let mut least = ids.last().copied().unwrap_or(0);
        ids.try_reserve(LIST_ENTRIES)?;
        ids.extend(dwords.take_while(|&id| id > core::mem::replace(&mut least, id)));
        Ok(match ids.last() {
            Some(&last) if ids.len() - before == LIST_ENTRIES => Step::Namespaces(last),
            _ => Step::Namespace(0),
        })
    }

    fn take_namespace(&mut self, id: u32, data: &[u8]) -> Result<(), NoHeap> {
        let Ok(structure) = IdentifyNamespace::read_from_bytes(data) else { return Ok(()) };
        // A size of 0: the identifier is not active.
        if structure.size.get() == 0 {
            return Ok(());
        }
        // A namespace that the driver cannot use is kept with the reason. The caller sees that
        // it exists and why commands are refused.
        let mut namespace = Namespace::new(id, &structure);
        if let Some(bytes) = self.stripe_bytes() {
            namespace.boundary_blocks = bytes / namespace.block_bytes;
        }
        self.scanned.1.try_reserve(1)?;
        self.scanned.1.push(namespace);
        Ok(())
    }

    /// All namespaces are known: the start is over, or a rescan is.
    fn scan_done<F: PciFunction>(&mut self, f: &mut F) -> Result<(), NvmeError> {
        let (_, namespaces) = core::mem::take(&mut self.scanned);
        if let Some(board) = &mut self.board {
            board.list(namespaces)?;
        }
        self.scanned_all(f);
        Ok(())
    }

    /// The start goes on with the namespaces that are known.
    fn scanned_all<F: PciFunction>(&mut self, f: &mut F) {
        // While the last commands are waited for, none begins.
        if matches!(self.phase, Phase::Configuring | Phase::Ready) {
            self.order(Order::Run);
        }
        // After a rescan the new list is all that changes. Only a start or a reset goes on to
        // `Ready`.
        if self.phase != Phase::Configuring {
            return;
        }
        self.phase = Phase::Ready;
        self.recovering = false;
        self.look_at = MonotonicTime::MAX;
        if self.masks() {
            f.bar_write32(0, registers::INTMC, !0);
        }
        let limit = self.identity().map_or(0, |c| c.event_request_limit);
        // Each event needs a request that waits for it. More than AERL allows would end with an
        // error.
        for _ in 0..self.config.event_requests.min(limit.saturating_add(1)) {
            self.request_event(f);
        }
    }

    pub(crate) fn request_event<F: PciFunction>(&mut self, f: &mut F) {
        if let Some(queue) = self.admin.as_mut() {
            // Without room there is one request less: events are reported later, and none is lost.
            let _ = queue.submit(
                f,
                &AdminCommand::asynchronous_event(),
                Owner::Event,
                MonotonicTime::MAX,
            );
        }
    }

    /// Looks again which namespaces there are; [`namespaces`](Controller::namespaces) changes when
    /// the scan has identified all of them; the pairs receive them with the next call of each
    /// owner.
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
        self.scanned = Default::default();
        self.send(function, now.into(), Step::Namespaces(0))
    }

    /// A [`rescan`](Controller::rescan) has not ended.
    pub fn is_scanning(&self) -> bool {
        self.phase == Phase::Ready && self.step.is_some()
    }
}
