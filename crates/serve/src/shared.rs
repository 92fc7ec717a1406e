//! A device that many clients use, and the thread that keeps its time.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ssdyno_block::Time;

use crate::{Paced, Served, ServedClock};

/// A device behind a lock. A thread that panics with it leaves it as it was.
#[derive(Debug)]
pub struct Shared<S> {
    paced: Mutex<Paced<S>>,
    /// Something may be due earlier than it was, or the time keeper is to end.
    alarm: Condvar,
}

impl<S: Served> Shared<S> {
    /// `served` at time 0 of `clock`.
    pub fn new(served: S, clock: ServedClock) -> Shared<S> {
        Shared { paced: Mutex::new(Paced::new(served, clock)), alarm: Condvar::new() }
    }

    /// The device as it is: nothing happens on it before.
    pub fn lock(&self) -> MutexGuard<'_, Paced<S>> {
        self.paced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Processes the due events, then calls `act` with the time; wakes the time keeper, because an event may now be due
    /// earlier.
    pub fn with<R>(&self, act: impl FnOnce(&mut S, Time) -> R) -> R {
        let mut paced = self.lock();
        // What fell due before this request happens first. The request would
        // otherwise meet a device in a state of the past.
        paced.catch_up();
        let now = paced.now();
        let result = act(&mut paced.served, now);
        drop(paced);
        // The notification comes after the lock is released. The woken thread would
        // otherwise run into the lock and sleep again.
        self.alarm.notify_all();
        result
    }

    /// Lets happen what is due; gives when something is due next, from now on; `None`: nothing is.
    pub fn catch_up(&self) -> Option<Duration> {
        self.lock().catch_up()
    }

    /// Wakes the time keeper: its owner changed something behind [`lock`](Shared::lock).
    pub fn wake(&self) {
        // The lock is taken although nothing is changed under it. Otherwise the notification could fall
        // between the time keeper's test and its wait, and be lost.
        let _paced = self.lock();
        self.alarm.notify_all();
    }

    /// Lets happen what is due when it is due, until `over`.
    fn run_until(&self, over: &AtomicBool) {
        let mut paced = self.lock();
        while !over.load(Ordering::Acquire) {
            let next = paced.catch_up();
            // A clock that its holder sets moves without time passing. Sleeping for a duration on it would mean
            // nothing, so only a notification wakes the thread.
            let next = next.filter(|_| paced.clock().goes_by_itself());
            paced = match next {
                None => self.alarm.wait(paced).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => {
                    // The simulation is behind its time. The lock is released for a moment, so that clients
                    // get their turn even if it never catches up.
                    drop(paced);
                    thread::yield_now();
                    self.lock()
                }
                Some(left) => {
                    let waited = self.alarm.wait_timeout(paced, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl<S: Served + Send + 'static> Shared<S> {
    /// Starts the thread that lets happen what is due when it is due, until its keeper is dropped.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn keep_time(self: &Arc<Self>, name: &str) -> io::Result<TimeKeeper> {
        let over = Arc::new(AtomicBool::new(false));
        let (shared, until) = (self.clone(), over.clone());
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            // The default slack of a thread lets a sleep last up to 50 us longer than asked. On a system
            // without this call the sleep is only less exact.
            #[cfg(target_os = "linux")]
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
            shared.run_until(&until);
        })?;
        let shared = self.clone();
        Ok(TimeKeeper { over, wake: Box::new(move || shared.wake()), thread: Some(thread) })
    }
}

/// The thread that keeps a device's time. Dropped, it ends; the device stays as it is.
pub struct TimeKeeper {
    over: Arc<AtomicBool>,
    wake: Box<dyn Fn() + Send + Sync>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for TimeKeeper {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        (self.wake)();
        if let Some(thread) = self.thread.take() {
            // It panics only if a model does, which the thread has said already.
            let _ended = thread.join();
        }
    }
}

impl std::fmt::Debug for TimeKeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TimeKeeper").finish_non_exhaustive()
    }
}
