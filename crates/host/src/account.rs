//! The work of the host, and its cost.

use ssdyno_block::Time;

ssdyno_block::named! {
    /// The uses of a core's time.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum CpuCause: name {
        /// Into the kernel and out again.
        SystemCall = "system_call",
        /// The block layer: by request, and by piece (bio) of it.
        BlockLayer = "block_layer",
        /// Request to SCSI command to driver, and the answer back (S1-51).
        Scsi = "scsi",
        /// The driver: building and issuing a command.
        Driver = "driver",
        /// Taking locks: the uncontended cost, spinning, hand-over (S1-39).
        Lock = "lock",
        /// Register writes and reads.
        Registers = "registers",
        /// Data between the process and the buffers of the kernel.
        Copy = "copy",
        /// Interrupt entry, dispatch and exit.
        Interrupt = "interrupt",
        /// Handling of completed commands.
        Completion = "completion",
        /// Waking threads and switching to them.
        Switch = "switch",
        /// Looking for completions instead of being interrupted.
        Poll = "poll",
        /// The protocol stack, where the device is behind a network (S4-42).
        Network = "network",
        /// The page cache: finding, adding and marking pages.
        Cache = "cache",
        /// The file system: finding the place of a request's data.
        FileSystem = "file_system",
    }
}

/// Number of causes.
pub const CAUSES: usize = 14;

/// CPU time by core and cause.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CpuTime(Vec<[Time; CAUSES]>);

impl CpuTime {
    pub(crate) fn new(cores: usize) -> CpuTime {
        CpuTime(vec![[Time::ZERO; CAUSES]; cores])
    }

    #[inline]
    pub(crate) fn charge(&mut self, core: u16, cause: CpuCause, time: Time) {
        self.0[core as usize][cause as usize] += time;
    }

    /// The time of all cores for `cause`.
    pub fn of(&self, cause: CpuCause) -> Time {
        self.0.iter().map(|core| core[cause as usize]).sum()
    }

    /// How long `core` worked.
    pub fn of_core(&self, core: usize) -> Time {
        self.0.get(core).map_or(Time::ZERO, |causes| causes.iter().copied().sum())
    }

    /// How long all cores worked.
    pub fn total(&self) -> Time {
        (0..self.0.len()).map(|core| self.of_core(core)).sum()
    }

    /// The time since `before`.
    fn since(&self, before: &CpuTime) -> CpuTime {
        let core = |(now, before): (&[Time; CAUSES], &[Time; CAUSES])| {
            std::array::from_fn(|cause| now[cause].saturating_sub(before[cause]))
        };
        CpuTime(self.0.iter().zip(&before.0).map(core).collect())
    }

    /// Number of cores.
    pub fn cores(&self) -> usize {
        self.0.len()
    }
}

/// The work of the host since the start. Counts are of the whole run, ramp-up included; see [`Account::of_window`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Account {
    /// CPU time.
    pub cpu: CpuTime,
    /// Requests that threads handed in.
    pub requests: u64,
    /// Completed requests that their threads were informed of, by core of the thread.
    pub delivered_by_core: Vec<u64>,
    /// Of these, the requests that ended in an error.
    pub failed_by_core: Vec<u64>,
    /// Bytes that the others read or wrote, by core of the thread.
    pub bytes_by_core: Vec<u64>,
    /// Commands that went to the driver: a request may be several.
    pub commands: u64,
    /// Commands that the device completed until the last delivery, and their requests' bytes:
    /// where writes complete early this is less than what was delivered (S1-56).
    pub device_bytes_at_last_delivery: u64,
    /// When the window that figures are of began; 0 where all of the run is.
    pub window_start: Time,
    /// The same bytes that the device had completed by then.
    pub device_bytes_at_window_start: u64,
    /// Requests that had been delivered while the device still worked on them.
    pub delivered_early: u64,
    /// The last delivery.
    pub last_delivery: Time,
    /// Switches from one thread, or from idleness, to a thread.
    pub context_switches: u64,
    /// Switches of a core to idleness. Together with the switches to threads, this is Linux's count
    /// (S4-38).
    pub switches_to_idle: u64,
    /// System calls.
    pub system_calls: u64,
    /// The work of page cache and file system, if the host has them.
    pub cache: Option<CacheAccount>,
    /// Messages of the device that were taken as interrupts.
    pub interrupts: u64,
    /// Messages that found the interrupt of their vector still pending, and so merged with it.
    pub interrupts_merged: u64,
    /// Interrupts whose handler found nothing: an earlier one had done the work.
    pub interrupts_empty: u64,
    /// Messages that arrived.
    pub messages: u64,
    /// Register writes.
    pub register_writes: u64,
    /// Register reads.
    pub register_reads: u64,
    /// Locks taken.
    pub locks: u64,
    /// Locks that were held by another core when they were wanted.
    pub locks_contended: u64,
    /// Time spent waiting for them.
    pub lock_wait: Time,
    /// Times a thread had to wait because a queue of the driver was full or no buffer was free.
    pub queue_full: u64,
    /// The account when the window began; `None` where all of the run is the window.
    pub at_window_start: Option<Box<Account>>,
}

impl Account {
    /// The work since the window began. The ramp-up of a run is in none of its other figures either.
    #[must_use]
    pub fn of_window(&self) -> Account {
        let Some(before) = &self.at_window_start else { return self.clone() };
        let less = |count: fn(&Account) -> u64| count(self) - count(before);
        let each = |now: &[u64], before: &[u64]| {
            now.iter().zip(before).map(|(now, before)| now - before).collect()
        };
        Account {
            cpu: self.cpu.since(&before.cpu),
            requests: less(|account| account.requests),
            delivered_by_core: each(&self.delivered_by_core, &before.delivered_by_core),
            failed_by_core: each(&self.failed_by_core, &before.failed_by_core),
            bytes_by_core: each(&self.bytes_by_core, &before.bytes_by_core),
            commands: less(|account| account.commands),
            device_bytes_at_last_delivery: self.device_bytes_at_last_delivery,
            window_start: self.window_start,
            device_bytes_at_window_start: self.device_bytes_at_window_start,
            delivered_early: less(|account| account.delivered_early),
            last_delivery: self.last_delivery,
            context_switches: less(|account| account.context_switches),
            switches_to_idle: less(|account| account.switches_to_idle),
            system_calls: less(|account| account.system_calls),
            cache: self.cache.zip(before.cache).map(|(now, before)| now.since(&before)),
            interrupts: less(|account| account.interrupts),
            interrupts_merged: less(|account| account.interrupts_merged),
            interrupts_empty: less(|account| account.interrupts_empty),
            messages: less(|account| account.messages),
            register_writes: less(|account| account.register_writes),
            register_reads: less(|account| account.register_reads),
            locks: less(|account| account.locks),
            locks_contended: less(|account| account.locks_contended),
            lock_wait: self.lock_wait.saturating_sub(before.lock_wait),
            queue_full: less(|account| account.queue_full),
            at_window_start: None,
        }
    }

    pub(crate) fn new(cores: usize) -> Account {
        Account {
            cpu: CpuTime::new(cores),
            delivered_by_core: vec![0; cores],
            failed_by_core: vec![0; cores],
            bytes_by_core: vec![0; cores],
            ..Account::default()
        }
    }
}

/// The work of page cache and file system. Pages are those of the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheAccount {
    /// Pages requested by reads.
    pub pages_read: u64,
    /// Of these, found there or on their way.
    pub pages_hit: u64,
    /// Pages read ahead of their use.
    pub pages_ahead: u64,
    /// Pages that became dirty.
    pub pages_dirtied: u64,
    /// Pages written back.
    pub pages_written: u64,
    /// Commands that wrote them.
    pub write_commands: u64,
    /// Pages written to the journal.
    pub journal_pages: u64,
    /// Pages of metadata read.
    pub metadata_reads: u64,
    /// Number of times a writer had to wait because too many pages were dirty.
    pub throttled: u64,
    /// Maximum number of pages dirty or being written at the same time.
    pub dirty_pages_max: u64,
}

impl CacheAccount {
    /// The work since `before`; the maximum is that of the whole run.
    fn since(&self, before: &CacheAccount) -> CacheAccount {
        CacheAccount {
            pages_read: self.pages_read - before.pages_read,
            pages_hit: self.pages_hit - before.pages_hit,
            pages_ahead: self.pages_ahead - before.pages_ahead,
            pages_dirtied: self.pages_dirtied - before.pages_dirtied,
            pages_written: self.pages_written - before.pages_written,
            write_commands: self.write_commands - before.write_commands,
            journal_pages: self.journal_pages - before.journal_pages,
            metadata_reads: self.metadata_reads - before.metadata_reads,
            throttled: self.throttled - before.throttled,
            dirty_pages_max: self.dirty_pages_max,
        }
    }
}
