//! An I/O queue pair that can be handed out to a core: what its owner calls.

mod check;
mod orders;

use alloc::vec::Vec;

use ssdyno_block::{MonotonicTime, Time, Token};
use ssdyno_pci::PciFunction;

use self::check::check;
use crate::control_log::{ControlLog, Reader};
use crate::pair_mailbox::PairMailbox;
use crate::queue::{IoQueue, NewQueue, Overdue};
use crate::shared::Shared;
use crate::{
    HeadDoorbell, IoCommand, IoCompletion, IoError, Namespace, NvmeConfig, NvmeCounters, NvmeError,
};

/// The permissions of a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Everything.
    Open,
    /// It takes no commands.
    Draining,
    /// It leaves rings and doorbells alone.
    Held,
    /// It has no memory any more.
    Ended,
}

/// One I/O submission queue and its completion queue, as a separate object: owned by its user, [`Send`], and without a
/// lock.
///
/// A [`Controller`](crate::Controller) makes them and hands them out once
/// ([`take_pairs`](crate::Controller::take_pairs)); an [`NvmeDriver`](crate::NvmeDriver) keeps them. Every method
/// touches the pair and the function that is lent to it: its registers are the pair's two doorbells, its memory the
/// pair's own. So each owner can have its own instance of [`PciFunction`], and two owners never write the same cache
/// line, except for the few words through which a pair and its controller object exchange resets and timeouts.
///
/// # What the owner owes
/// - One call at a time. An interrupt handler that polls and a task that submits on the same core are
///   kept apart with interrupts off, or by polling from a thread of that core.
/// - [`attend`](QueuePair::attend) when [`next_deadline`](QueuePair::next_deadline) has come, and soon
///   after the controller object [calls](crate::Controller::calls) the queue. [`poll`](QueuePair::poll) sees orders too, and a
///   core that polls all the time needs `attend` for timeouts only.
///
/// # What happens at a reset, a stop or a removal
/// The controller object puts up an order, and each pair obeys it in the owner's next call. Before a reset pairs take
/// what completed and then leave rings and doorbells alone; once the controller is idle each gives up what is
/// outstanding ([`IoResult::Abandoned`](crate::IoResult::Abandoned), in the `out` of that call) and empties its rings;
/// the controller object waits for all of them, creates the queues again, and commands are taken again. At the end, by
/// a stop, a failure or a removal, each pair gives up what is outstanding and frees its memory. A core completes only
/// its own commands: an accepted token comes back once, to the owner of its pair.
///
/// A pair that is dropped takes its outstanding tokens along, unanswered, and its memory stays lost to
/// the function; the controller object goes on without it. One that is not needed any more rather
/// [goes back](crate::Controller::give_back).
#[derive(Debug)]
pub struct QueuePair {
    queue: IoQueue,
    /// The orders of the controller object, and those read so far.
    orders: Reader,
    desk: Shared<PairMailbox>,
    mode: Mode,
    head_doorbell: HeadDoorbell,
    /// Optional commands: bits of ONCS.
    nvm_commands: u16,
    /// `None`: there are no interrupts.
    vector: Option<u16>,
    io_timeout: Time,
    counters: NvmeCounters,
    /// No deadline of a command is earlier.
    watch_at: MonotonicTime,
    /// Aborts were wished and may have become pointless.
    wished: bool,
}

/// The parameters of a new pair.
pub(crate) struct NewPair<'a> {
    pub(crate) queue: NewQueue,
    pub(crate) vector: Option<u16>,
    pub(crate) config: &'a NvmeConfig,
    pub(crate) board: &'a ControlLog,
}

impl QueuePair {
    /// A pair with all the memory that it will ever need, but for page lists. It accepts no command until it gets the
    /// order.
    pub(crate) fn new<F: PciFunction>(
        f: &mut F,
        new: &NewPair<'_>,
    ) -> Result<QueuePair, NvmeError> {
        let orders = new.board.reader();
        let desk = Shared::try_new(PairMailbox::new(orders.number()))?;
        Ok(QueuePair {
            queue: IoQueue::new(f, &new.queue)?,
            desk,
            orders,
            // The queue does not exist in the controller yet. A doorbell that was rung now would
            // be an error or would be lost.
            mode: Mode::Held,
            head_doorbell: new.config.head_doorbell,
            nvm_commands: 0,
            vector: new.vector,
            io_timeout: new.config.io_timeout,
            counters: NvmeCounters::default(),
            watch_at: MonotonicTime::MAX,
            wished: false,
        })
    }

    /// The number of the queue, from 1.
    pub fn id(&self) -> u16 {
        self.queue.id
    }

    /// Its interrupt vector (S1-32), perhaps shared with other queues; `None`: it is polled.
    pub fn vector(&self) -> Option<u16> {
        self.vector
    }

    /// Its entries; it holds one command less (S1-27).
    pub fn entries(&self) -> u32 {
        self.queue.entries
    }

    /// Commands that are outstanding.
    pub fn outstanding(&self) -> u32 {
        self.queue.outstanding()
    }

    /// The namespaces, by identifier, as of the last call.
    pub fn namespaces(&self) -> &[Namespace] {
        self.orders.namespaces()
    }

    /// Memory for DMA that the pair has pinned, in bytes: its rings, 80 bytes an entry, and
    /// [page lists](NvmeConfig::lists_at_start).
    pub fn pinned_bytes(&self) -> u64 {
        self.queue.pinned_bytes()
    }

    /// The counters of this pair; aborts and resets are counted by the controller object.
    pub fn counters(&self) -> NvmeCounters {
        NvmeCounters { watchdog_steps: self.queue.watchdog_steps(), ..self.counters }
    }

    /// The pair is at its end: it will never take a command again.
    pub fn is_over(&self) -> bool {
        self.mode == Mode::Ended
    }

    pub(crate) fn desk(&self) -> &Shared<PairMailbox> {
        &self.desk
    }

    pub(crate) fn addresses(&self) -> (u64, u64) {
        self.queue.addresses()
    }

    /// Enters `command` and notifies the controller. `token` comes back once, with the completion;
    /// it should be unique among the outstanding ones of this pair.
    ///
    /// # Errors
    /// The command was not taken.
    #[inline]
    pub fn submit<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: impl Into<MonotonicTime>,
        command: &IoCommand<'_>,
        token: Token,
    ) -> Result<(), IoError> {
        self.stage(function, now, command, token)?;
        // Staging and ringing are apart so that several commands can share one register write.
        // This call is for callers with one command.
        self.ring_doorbell(function);
        Ok(())
    }

    /// Puts `command` in; the controller sees it with the next
    /// [`ring_doorbell`](QueuePair::ring_doorbell).
    ///
    /// # Errors
    /// The command was not taken.
    #[inline(always)]
    pub fn stage<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: impl Into<MonotonicTime>,
        command: &IoCommand<'_>,
        token: Token,
    ) -> Result<(), IoError> {
        // One load of a shared word and one comparison: all that the usual path pays for resets.
        // No lock is taken.
        if self.orders.has_news() || self.mode != Mode::Open {
            self.reopen()?;
        }
        let Some(namespace) = find(self.orders.namespaces(), command.namespace) else {
            return Err(IoError::NoSuchNamespace { namespace: command.namespace });
        };
        check(command, namespace, self.nvm_commands)?;
        let deadline = now.into().after(self.io_timeout);
        let commands = self.queue.stage(function, command, namespace, deadline, token)?;
        self.counters.commands += u64::from(commands);
        // The timeout is the same for all commands, so only the first of an idle queue has an
        // earlier deadline. The shared word is written then and not for each command.
        if deadline < self.watch_at {
            self.set_watch_at(deadline);
        }
        Ok(())
    }

    /// Tells the controller what was staged, with one register write.
    #[inline(always)]
    pub fn ring_doorbell<F: PciFunction>(&mut self, function: &mut F) {
        let unusual = self.orders.has_news() || self.mode != Mode::Open;
        if unusual && !self.may_ring() {
            return;
        }
        self.queue.ring(function, &mut self.counters);
    }

    /// Takes what completed, and appends it to `out`; gives how many commands that were. Obeys the
    /// controller object, which may bring more.
    ///
    /// Completions that fit neither into `out` nor into the heap stay in place until the next call. With room for as
    /// many as are outstanding nothing is allocated, with [`ListGrowth::Fixed`](ssdyno_block::ListGrowth::Fixed) never:
    /// [`has_more`](QueuePair::has_more) returns whether something stayed.
    #[inline(always)]
    pub fn poll<F: PciFunction>(&mut self, function: &mut F, out: &mut Vec<IoCompletion>) -> u32 {
        if self.orders.has_news() || self.mode != Mode::Open {
            return self.obey(function, out);
        }
        self.take(function, out)
    }

    /// The last call had completions for which its list had no room: [poll](QueuePair::poll) again, with one
    /// that has some. No interrupt comes for what was left.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.queue.has_more() || self.is_behind()
    }

    /// Interrupt `vector` came: [polls](QueuePair::poll) if it is this pair's. A call that finds nothing does no harm.
    #[inline]
    pub fn on_interrupt<F: PciFunction>(
        &mut self,
        function: &mut F,
        vector: u16,
        out: &mut Vec<IoCompletion>,
    ) -> u32 {
        if self.vector == Some(vector) { self.poll(function, out) } else { 0 }
    }

    /// Does what is due at `now`: obeys the controller object, and looks after commands whose time is up. Completions
    /// that it finds are appended to `out`. True: the controller object waits for this, or is to send an abort or reset
    /// the controller: have its [`poll`](crate::Controller::poll) called soon.
    pub fn attend<F: PciFunction>(
        &mut self,
        function: &mut F,
        now: impl Into<MonotonicTime>,
        out: &mut Vec<IoCompletion>,
    ) -> bool {
        // The comparison at the end shows whether an order was obeyed in this call. The controller
        // object waits for that and must then be polled.
        let (now, before) = (now.into(), self.desk.obeyed());
        if self.orders.has_news() || self.mode != Mode::Open {
            self.obey(function, out);
        }
        if now >= self.watch_at && matches!(self.mode, Mode::Open | Mode::Draining) {
            let (desk, until) = (self.desk.clone(), now.after(self.io_timeout));
            let abort = |_: &mut F, command| desk.request_abort(command);
            let lost = self.look_after(function, now, out, abort);
            self.wished = true;
            self.rearm();
            if lost {
                // A pair cannot reset the controller: the other pairs must leave their rings
                // first. Only the controller object knows all of them.
                self.desk.wish_reset(true);
                // The reset will come; nothing else helps.
                self.set_watch_at(until);
            }
        }
        self.desk.obeyed() != before || self.desk.has_wishes()
    }

    /// When [`attend`](QueuePair::attend) is to be called at the latest; `None` where nothing is
    /// outstanding.
    #[inline]
    pub fn next_deadline(&self) -> Option<MonotonicTime> {
        (self.watch_at < MonotonicTime::MAX).then_some(self.watch_at)
    }

    /// No deadline of a command is earlier.
    #[inline]
    pub(crate) fn watch_at(&self) -> MonotonicTime {
        self.watch_at
    }

    #[cold]
    fn set_watch_at(&mut self, at: MonotonicTime) {
        self.watch_at = at;
        self.desk.set_watch_at(at);
    }

    /// The first deadline of an outstanding command, while they can complete.
    pub(crate) fn deadline(&mut self) -> Option<MonotonicTime> {
        let answered = matches!(self.mode, Mode::Open | Mode::Draining);
        if answered { self.queue.deadline() } else { None }
    }

    /// No deadline is earlier than the first.
    pub(crate) fn rearm(&mut self) {
        let at = self.deadline().unwrap_or(MonotonicTime::MAX);
        self.set_watch_at(at);
    }

    /// Looks for late commands: an interrupt or a doorbell may be lost. Then it calls `abort` for the commands to
    /// abort, and `abort` returns whether this was possible. True: that did not help.
    pub(crate) fn look_after<F: PciFunction>(
        &mut self,
        f: &mut F,
        now: MonotonicTime,
        out: &mut Vec<IoCompletion>,
        mut abort: impl FnMut(&mut F, u16) -> bool,
    ) -> bool {
        if self.queue.overdue(now).is_none() {
            return false;
        }
        // It may have been staged and never told; then telling helps.
        // The doorbell comes before the poll, so that a command which was staged and never told
        // gets its chance. The completions that are taken next are counted as lost interrupts.
        self.ring_doorbell(f);
        self.counters.lost_interrupts += u64::from(self.poll(f, out));
        if self.queue.has_more() {
            // A late command may be among those that did not fit into `out`.
            return false;
        }
        let until = now.after(self.io_timeout);
        while let Some(overdue) = self.queue.overdue(now) {
            match overdue {
                Overdue::Late(tag) => {
                    let asked = abort(f, self.queue.identifier(tag));
                    // The timer of the command starts again, as in Linux (`nvme_timeout` in
                    // drivers/nvme/host/pci.c: BLK_EH_RESET_TIMER after the abort, reset when it
                    // expires again). The abort has a timeout of its own, that of admin commands;
                    // waiting for that one made the reset come after three timeouts.
                    self.queue.extend(tag, until, asked);
                }
                Overdue::Lost => return true,
            }
        }
        false
    }

    /// Takes all new completions.
    #[inline]
    fn take<F: PciFunction>(&mut self, f: &mut F, out: &mut Vec<IoCompletion>) -> u32 {
        let strays = self.counters.strays;
        let found = self.queue.poll(f, self.head_doorbell, &mut self.counters, out);
        if self.counters.strays != strays {
            self.report_strays();
        }
        if self.wished {
            self.withdraw_wishes();
        }
        found
    }

    /// Tells the controller object of completions that were dropped.
    #[cold]
    fn report_strays(&mut self) {
        if let Some(command) = self.queue.take_stray() {
            self.desk.note_stray(command);
        }
    }

    /// An identifier that is used again must not be aborted for its predecessor's sake.
    #[cold]
    fn withdraw_wishes(&mut self) {
        // The command may have completed while its abort waited to be sent. Its identifier may
        // name another command by the time that the controller gets the abort.
        self.desk.withdraw_aborts(|command| !self.queue.is_aborting(command));
        self.wished = self.desk.has_wishes();
    }
}

/// The namespace with identifier `id`. Identifiers are mostly 1, 2, 3 …
#[inline(always)]
fn find(all: &[Namespace], id: u32) -> Option<&Namespace> {
    let guess = all.get((id as usize).wrapping_sub(1));
    guess.filter(|n| n.id == id).or_else(|| all.iter().find(|n| n.id == id))
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        // A reset waits for every pair. It must not wait for one that does not exist any more;
        // its memory stays lost to the function.
        self.desk.set_dropped();
    }
}
