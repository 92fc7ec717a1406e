//! All threads, and their messages.

use std::ops::{Index, IndexMut};

use ssdyno_block::Completion;

use crate::config::{HostUse, ThreadMode};
use crate::jobs::Thread;

/// The class of threads that have none.
const MEDIUM: u8 = 2;

/// The threads: first those of the kernel, then those of processes, dealt to the cores in turn.
#[derive(Clone, Debug)]
pub(crate) struct Threads {
    all: Vec<Thread>,
    /// Threads that are not of processes: the one that writes back.
    kernel: u32,
    cores: u16,
    classes: Vec<u8>,
    /// Each token has a thread of its own, which exists once it is asked for.
    one_each: bool,
    /// Cores whose thread has just received a completion.
    pub(crate) users: Vec<u16>,
    /// Their completions that are not reaped yet.
    pub(crate) out: Vec<Completion>,
    /// The part of a switch that has not happened yet.
    switch_debt: f64,
}

impl Threads {
    /// `kernel` threads of the kernel, and the threads of `plan`.
    pub(crate) fn new(plan: &HostUse, kernel: u32) -> Threads {
        let mut threads = Threads {
            all: Vec::new(),
            kernel,
            cores: plan.cores,
            classes: plan.classes.clone(),
            one_each: plan.mode == ThreadMode::Sync,
            users: Vec::new(),
            out: Vec::with_capacity(64),
            switch_debt: 0.0,
        };
        let fixed = if threads.one_each { 0 } else { plan.threads.max(1) };
        threads.grow(kernel + fixed);
        threads
    }

    /// The thread of `token`.
    #[inline]
    pub(crate) fn of(&mut self, token: u32) -> u32 {
        if !self.one_each {
            return self.kernel + token % (self.all.len() as u32 - self.kernel);
        }
        self.grow(self.kernel + token + 1);
        self.kernel + token
    }

    /// Ensures that this number of threads exist.
    fn grow(&mut self, threads: u32) {
        for n in self.all.len()..threads as usize {
            // The threads of processes are dealt to the cores as if the kernel thread did not
            // exist. Otherwise a page cache would move each thread to another core and change
            // per-core figures.
            let n = n.saturating_sub(self.kernel as usize);
            let core = (n % usize::from(self.cores)) as u16;
            let class = match &self.classes[..] {
                [] => MEDIUM,
                classes => classes[n % classes.len()],
            };
            self.all.push(Thread::new(core, class));
        }
    }

    /// A request has `share` of a switch more; gives how many have come together.
    #[inline]
    pub(crate) fn switch_more(&mut self, share: f64) -> u64 {
        self.switch_debt += share;
        let whole = self.switch_debt as u64;
        // S4-38 prints means such as 4.85 switches per I/O. The fraction is carried over, so that
        // the count over a run has exactly this mean without a random draw.
        self.switch_debt = self.switch_debt.fract();
        whole
    }
}

impl Index<usize> for Threads {
    type Output = Thread;
    #[inline(always)]
    fn index(&self, thread: usize) -> &Thread {
        &self.all[thread]
    }
}

impl IndexMut<usize> for Threads {
    #[inline(always)]
    fn index_mut(&mut self, thread: usize) -> &mut Thread {
        &mut self.all[thread]
    }
}
