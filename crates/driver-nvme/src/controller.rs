//! The controller object: everything of a driver that is not the I/O of one queue pair.

use alloc::boxed::Box;
use alloc::vec::Vec;

use ssdyno_block::{MonotonicTime, Time, Token, has_room};
use ssdyno_pci::{InterruptMode, PciFunction};
use ssdyno_spec::nvme::registers::ControllerCapabilities;
use ssdyno_spec::nvme::{IdentifyController, oncs};

use crate::admin::{AdminQueue, Owner};
use crate::control_log::{ControlLog, Order};
use crate::pair_mailbox::PairMailbox;
use crate::shared::{Shared, hand_out};
use crate::state::Phase;
use crate::step::{Step, Suspension};
use crate::{
    AdminCommand, AdminCompletion, AdminError, DriverEvent, DriverState, Namespace, NvmeConfig,
    NvmeCounters, PriorityClass, QueuePair, QueueSelector, Quirks,
};

/// The least timeout and polling interval.
const LIMIT_MIN: Time = Time::from_ns(1);
/// The limit of waiting events; further events are counted and dropped.
pub(crate) const EVENTS_MAX: usize = 64;

/// The controller object's record of a queue pair, which may be anywhere.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) desk: Shared<PairMailbox>,
    pub(crate) entries: u32,
    pub(crate) vector: Option<u16>,
    pub(crate) class: Option<PriorityClass>,
    /// Of its submission and its completion ring.
    pub(crate) addresses: (u64, u64),
    /// Its owner is to look after its timeouts.
    pub(crate) called: bool,
    /// For which timeout it was called last, and until when that was enough.
    pub(crate) called_for: (MonotonicTime, MonotonicTime),
}

impl Record {
    /// When the owner is to be called because of a timeout.
    fn call_at(&self) -> MonotonicTime {
        let at = self.desk.watch_at();
        // A pair that was called for this deadline gets some time to come. Without it every poll
        // would call the owner again, as long as the shared word shows the old deadline.
        let (called_for, enough_until) = self.called_for;
        if at == called_for { at.max(enough_until) } else { at }
    }
}

/// A driver of one controller without the I/O: start, admin queue, namespaces, timeouts, resets,
/// shutdown. The I/O goes through the [`QueuePair`]s that it makes, which may be on other cores.
///
/// # With queue pairs on many cores
/// 1. [`start`](Controller::start) and [`poll`](Controller::poll) until the
///    [`state`](Controller::state) is [`Ready`](DriverState::Ready); then
///    [`take_pairs`](Controller::take_pairs), and give each to its core
///    ([`QueueSelector::queues_of`]).
/// 2. Call [`poll`](Controller::poll) at [`next_deadline`](Controller::next_deadline), when
///    [`attend`](QueuePair::attend) of a pair requests it, and with vector 0
///    ([`on_interrupt`](Controller::on_interrupt)): from one core at a time, which may be any core.
/// 3. After each of these calls, and after [`reset`](Controller::reset),
///    [`shutdown`](Controller::shutdown) and [`removed`](Controller::removed), have the owners of the
///    queues that [`calls`](Controller::calls) names `attend` to them: by an interrupt between cores, or
///    by waking a thread. A reset waits for every one of them: a queue is created again only after its
///    owner has emptied its rings, so no late doorbell can reach the new queue.
///
/// For a core that does not come a reset waits for [`NvmeConfig::owner_timeout`] before the controller is
/// disabled all the same, and without limit before it is enabled again: [`calls`](Controller::calls)
/// names its queue meanwhile. Nothing waits for a pair that was dropped or went back.
#[derive(Debug)]
pub struct Controller {
    pub(crate) config: NvmeConfig,
    pub(crate) phase: Phase,
    /// The phases of a start follow a reset, not a call of `start`.
    pub(crate) recovering: bool,
    /// A reset ends the driver's work instead of bringing the controller up again.
    pub(crate) stopping: bool,
    /// The admin command of the driver's own that is with the controller.
    pub(crate) step: Option<Step>,
    pub(crate) capabilities: ControllerCapabilities,
    pub(crate) version: u32,
    pub(crate) interrupts: Option<InterruptMode>,
    pub(crate) vectors: u16,
    pub(crate) identity: Option<Box<[IdentifyController; 1]>>,
    /// The quirks of the PCI device, and then also those of its Identify data.
    pub(crate) quirks: Quirks,
    /// It is being suspended, or is.
    pub(crate) suspension: Option<Suspension>,
    pub(crate) transfer_bytes: u32,
    /// Identifiers and structures of a scan that goes on.
    pub(crate) scanned: (Vec<u32>, Vec<Namespace>),
    pub(crate) selector: QueueSelector,
    pub(crate) admin: Option<AdminQueue>,
    /// The queues, in order, from 1.
    pub(crate) records: Vec<Record>,
    /// Pairs without an owner.
    pub(crate) pairs: Vec<QueuePair>,
    /// From the first start on.
    pub(crate) board: Option<ControlLog>,
    /// Something was ordered since this was cleared.
    pub(crate) ordered: bool,
    /// The work of the controller object itself.
    pub(crate) counters: NvmeCounters,
    pub(crate) admin_done: Vec<AdminCompletion>,
    pub(crate) events: Vec<DriverEvent>,
    /// When a register, the admin queue or a pair is to be looked at.
    pub(crate) look_at: MonotonicTime,
    /// No deadline of an admin command is earlier.
    pub(crate) watch_at: MonotonicTime,
    /// Resets since the last completion, and how many completions there were then.
    pub(crate) resets_in_a_row: (u32, u64),
}

impl Controller {
    /// A driver that was not started. Nothing is allocated for it.
    pub fn new(mut config: NvmeConfig) -> Controller {
        // A timeout of nothing would be over before anything can happen.
        let limits = [&mut config.io_timeout, &mut config.admin_timeout, &mut config.owner_timeout];
        for limit in limits {
            *limit = (*limit).max(LIMIT_MIN);
        }
        config.start_poll = config.start_poll.map(|interval| interval.max(LIMIT_MIN));
        // The number of queues is not known before the controller answers. This selector only
        // serves callers that ask before the start.
        let selector = QueueSelector::idle(config.policy, config.cores, config.queues_max);
        Controller {
            config,
            phase: Phase::Stopped,
            recovering: false,
            stopping: false,
            step: None,
            capabilities: ControllerCapabilities(0),
            version: 0,
            interrupts: None,
            vectors: 0,
            identity: None,
            quirks: Quirks::NONE,
            suspension: None,
            transfer_bytes: 0,
            scanned: (Vec::new(), Vec::new()),
            selector,
            admin: None,
            records: Vec::new(),
            pairs: Vec::new(),
            board: None,
            ordered: false,
            counters: NvmeCounters::default(),
            admin_done: Vec::new(),
            events: Vec::new(),
            look_at: MonotonicTime::MAX,
            watch_at: MonotonicTime::MAX,
            resets_in_a_row: (0, 0),
        }
    }

    /// The state of the driver.
    pub fn state(&self) -> DriverState {
        match self.phase {
            Phase::Stopped => DriverState::Stopped,
            Phase::Holding { .. }
            | Phase::Settling { .. }
            | Phase::Disabling { .. }
            | Phase::Collecting
            | Phase::Enabling { .. }
            | Phase::Waking
            | Phase::Configuring => {
                if self.recovering || self.phase == Phase::Waking {
                    DriverState::Recovering
                } else {
                    DriverState::Starting
                }
            }
            Phase::Ready => DriverState::Ready,
            Phase::Suspended { .. } => DriverState::Suspended,
            Phase::Draining
            | Phase::Sleeping
            | Phase::Deleting
            | Phase::ShuttingDown { .. }
            | Phase::Stopping { .. } => DriverState::Stopping,
            Phase::Failed(error) => DriverState::Failed(error),
        }
    }

    /// The configuration.
    pub fn config(&self) -> &NvmeConfig {
        &self.config
    }

    /// The Identify data of the controller; `None` before it was asked.
    pub fn identity(&self) -> Option<&IdentifyController> {
        self.identity.as_deref().map(|[identity]| identity)
    }

    /// What is done differently for this controller: by the [table](Quirks), or as
    /// [configured](NvmeConfig::quirks).
    pub fn quirks(&self) -> Quirks {
        self.quirks
    }

    /// Whether the controller has an optional command: a bit of [`oncs`](ssdyno_spec::nvme::oncs).
    pub fn has(&self, command: u16) -> bool {
        self.nvm_commands() & command != 0
    }

    pub(crate) fn nvm_commands(&self) -> u16 {
        let all = self.identity().map_or(0, |c| c.nvm_commands.get());
        let none =
            if self.quirks.contains(Quirks::NO_WRITE_ZEROES) { oncs::WRITE_ZEROES } else { 0 };
        all & !none
    }

    /// The namespaces, by identifier.
    pub fn namespaces(&self) -> &[Namespace] {
        let board = self.board.as_ref().filter(|_| !self.phase.is_over());
        board.map_or(&[], ControlLog::namespaces)
    }

    /// The I/O queues in use are 1 to this.
    pub fn queues(&self) -> u16 {
        if self.phase.is_over() { 0 } else { self.records.len() as u16 }
    }

    /// Which queues a core uses.
    pub fn selector(&self) -> &QueueSelector {
        &self.selector
    }

    /// Which interrupts are in use; `None`: it is polled.
    pub fn interrupt_mode(&self) -> Option<InterruptMode> {
        self.interrupts
    }

    /// Most data of one command of the controller, in bytes; more is split.
    pub fn transfer_bytes_max(&self) -> u32 {
        self.transfer_bytes
    }

    /// Memory for DMA that the controller object has pinned, in bytes: the admin queue, and a page for each of
    /// its commands with data, of as many as were ever outstanding, 1 to 31. Each pair [has its
    /// own](QueuePair::pinned_bytes).
    pub fn pinned_bytes(&self) -> u64 {
        self.admin.as_ref().map_or(0, AdminQueue::pinned_bytes)
    }

    /// Counters of the controller object: unexpected admin completions, aborts, resets. The rest is [counted by each
    /// pair](QueuePair::counters).
    pub fn counters(&self) -> NvmeCounters {
        self.counters
    }

    /// Takes the queue pairs without an owner, by number. They come with a start, not with a reset: after that the old
    /// ones go on. A pair without an owner obeys on its own.
    pub fn take_pairs(&mut self) -> Vec<QueuePair> {
        self.pairs.sort_unstable_by_key(QueuePair::id);
        core::mem::take(&mut self.pairs)
    }

    /// Takes a pair back, say from a core that goes offline, until somebody
    /// [takes](Controller::take_pairs) it again.
    ///
    /// # Errors
    /// It stays with its owner if commands are outstanding that nothing would complete, if it
    /// belongs to another start or controller, or if the heap has no room.
    #[expect(clippy::result_large_err, reason = "a pair moves by value, as it came")]
    pub fn give_back(&mut self, pair: QueuePair) -> Result<(), QueuePair> {
        let own = |record: &Record| record.desk.is_same(pair.desk());
        let known = self.records.iter().any(own);
        // Tokens that are outstanding belong to the old owner. Its completions would be lost here.
        if pair.outstanding() > 0 || pair.is_over() || !known || !has_room(&mut self.pairs) {
            return Err(pair);
        }
        self.pairs.push(pair);
        Ok(())
    }

    /// Interrupt `vector` came. Vector 0 is the admin queue's (S1-32), and perhaps also that of queue
    /// pairs; those of other vectors do not concern the controller object.
    pub fn on_interrupt<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: impl Into<MonotonicTime>,
        vector: u16,
    ) {
        // Configured but ignored while the start polls (S1-22).
        // A start that polls is not helped by interrupts. It takes the completions itself, and
        // an interrupt that comes meanwhile is ignored (S1-22).
        if vector == 0 && (self.phase.takes_completions() || self.config.start_poll.is_none()) {
            self.poll_admin(function, now.into());
        }
    }

    /// Sends an admin command; its end comes with [`take_admin`](Controller::take_admin).
    ///
    /// # Errors
    /// The command was not taken.
    pub fn submit_admin<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: impl Into<MonotonicTime>,
        command: &AdminCommand<'_>,
        token: Token,
    ) -> Result<(), AdminError> {
        let (Phase::Ready, Some(queue)) = (self.phase, self.admin.as_mut()) else {
            return Err(AdminError::NotReady);
        };
        // Each one that is outstanding has room for its end.
        // The room for the end of the command is made before it is sent. When it ends, perhaps
        // in an interrupt handler, no memory is needed.
        let room = self.admin_done.try_reserve(queue.of_callers() + 1);
        room.map_err(|_| AdminError::NoMemory)?;
        let deadline = now.into().after(self.config.admin_timeout);
        queue.submit(function, command, Owner::Caller(token), deadline)?;
        self.watch_at = self.watch_at.min(deadline);
        Ok(())
    }

    /// Appends the admin commands that have ended.
    pub fn take_admin(&mut self, out: &mut Vec<AdminCompletion>) {
        hand_out(&mut self.admin_done, out);
    }

    /// Appends what happened.
    pub fn take_events(&mut self, out: &mut Vec<DriverEvent>) {
        for index in 0..self.records.len() {
            // Pairs on other cores leave the last stray identifier in a shared word. It becomes
            // an event only when somebody asks, so pairs need no list of events.
            if let Some(command) = self.records[index].desk.take_stray() {
                let queue = index as u16 + 1;
                self.tell(DriverEvent::StrayCompletion { queue, command });
            }
        }
        hand_out(&mut self.events, out);
    }

    /// Keeps `event` until it is taken.
    pub(crate) fn tell(&mut self, event: DriverEvent) {
        // The start has reserved room for this number. Events may come faster than they are taken,
        // and the list must not grow without bound. Lost ones are counted, so that the caller knows
        // that the list has a gap.
        if self.events.len() < EVENTS_MAX.min(self.events.capacity()) {
            self.events.push(event);
        } else {
            self.counters.events_lost += 1;
        }
    }

    /// Puts up `order` for all pairs.
    pub(crate) fn order(&mut self, order: Order) {
        // The optional commands go with the order in one word. A pair therefore reads both at
        // once, without a lock.
        let commands = self.nvm_commands();
        if let Some(board) = &mut self.board {
            board.publish(order, commands);
        }
        self.ordered = true;
    }

    /// All pairs have obeyed the last order. Pairs without an owner do so now: nothing is
    /// outstanding there.
    pub(crate) fn all_obeyed<F: PciFunction>(&mut self, f: &mut F) -> bool {
        for pair in &mut self.pairs {
            // Nothing is outstanding, so nothing is appended.
            pair.obey(f, &mut Vec::new());
        }
        let number = self.number();
        self.records.iter().all(|record| record.desk.has_obeyed(number))
    }

    /// The number of the last order.
    pub(crate) fn number(&self) -> u64 {
        self.board.as_ref().map_or(0, ControlLog::number)
    }

    /// The last order.
    pub(crate) fn last_order(&self) -> Order {
        self.board.as_ref().map_or(Order::End, ControlLog::order)
    }

    /// Appends the queues whose owners are to [`attend`](QueuePair::attend) to them now: an order waits for them, or a
    /// timeout is over. Pairs that do not fit into `out` follow with the next call.
    pub fn calls(&mut self, out: &mut Vec<u16>) {
        // `Run` waits for no pair: a pair reads it with its next command. The other orders have a
        // waiter, and a sleeping owner must be woken for them.
        let (number, waits) = (self.number(), self.last_order() != Order::Run);
        for (queue, record) in (1..).zip(&mut self.records) {
            if record.called || (waits && !record.desk.has_obeyed(number)) {
                if !self.config.completion_lists.has_room(out) {
                    return;
                }
                record.called = false;
                out.push(queue);
            }
        }
    }

    /// The first time at which a pair's timeouts are to be looked after, while they count.
    fn pairs_watch_at(&self) -> MonotonicTime {
        let counts = self.phase.takes_completions();
        let records = self.records.iter().filter(|_| counts);
        records.map(Record::call_at).min().unwrap_or(MonotonicTime::MAX)
    }

    /// Has the owners of pairs called whose timeouts are over. They may do it on their own; this is for
    /// a core that sleeps because an interrupt was lost.
    pub(crate) fn call_late(&mut self, now: MonotonicTime) {
        if self.pairs_watch_at() > now {
            return;
        }
        let again = now.after(self.config.admin_timeout);
        for record in &mut self.records {
            if record.call_at() <= now {
                (record.called, record.called_for) = (true, (record.desk.watch_at(), again));
            }
        }
    }

    /// When [`poll`](Controller::poll) is to be called next; `None` where nothing is awaited.
    pub fn next_deadline(&self) -> Option<MonotonicTime> {
        self.deadline_with(self.pairs_watch_at())
    }

    /// The same, where the timeouts of the pairs are kept elsewhere.
    #[inline]
    pub(crate) fn deadline_with(&self, pairs: MonotonicTime) -> Option<MonotonicTime> {
        let watch_at = self.watch_at.min(pairs);
        let at = match self.phase {
            Phase::Ready => watch_at,
            Phase::Stopped | Phase::Suspended { .. } | Phase::Failed(_) => return None,
            // Admin commands answer with an interrupt, unless the start polls.
            // These phases wait for the completion of an admin command. Its interrupt comes in
            // time, so looking regularly would only cost register reads.
            Phase::Configuring | Phase::Deleting | Phase::Sleeping | Phase::Waking
                if self.config.start_poll.is_none() =>
            {
                watch_at
            }
            _ => watch_at.min(self.look_at),
        };
        (at < MonotonicTime::MAX).then_some(at)
    }
}
