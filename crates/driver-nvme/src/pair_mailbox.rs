//! The messages of a queue pair to the controller object, from any core.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use ssdyno_block::MonotonicTime;

/// Aborts that one pair can wish for before the controller object has looked. A controller accepts about this number at
/// a time (ACL); the others follow one timeout later.
const WISHES: usize = 4;
/// Marks a wish that is there: identifiers have 16 bits.
const WISHED: u32 = 1 << 16;

/// Each field has one writer, except that a wish is taken off by either side.
#[derive(Debug)]
pub(crate) struct PairMailbox {
    /// The number of the last notice that the pair has obeyed.
    obeyed: AtomicU64,
    /// I/O completions, as of that notice.
    completions: AtomicU64,
    /// No command's deadline is earlier by a nanosecond; `u64::MAX`: there is none.
    watch_at: AtomicU64,
    /// The pair was dropped: nothing waits for it.
    dropped: AtomicBool,
    /// Aborts did not help.
    reset: AtomicBool,
    aborts: [AtomicU32; WISHES],
    /// The last identifier that completed and was not outstanding.
    stray: AtomicU32,
}

impl PairMailbox {
    /// Of a pair that has read the notices up to `number`.
    pub(crate) fn new(number: u64) -> PairMailbox {
        PairMailbox {
            obeyed: AtomicU64::new(number),
            completions: AtomicU64::new(0),
            watch_at: AtomicU64::new(u64::MAX),
            dropped: AtomicBool::new(false),
            reset: AtomicBool::new(false),
            aborts: Default::default(),
            stray: AtomicU32::new(0),
        }
    }

    /// The pair's side: notice `number` is obeyed. Earlier actions of the pair are visible to a reader of this value.
    pub(crate) fn obey(&self, number: u64, completions: u64) {
        // The count is stored before the release store of the number. A reader of the number with
        // `Acquire` sees this count, too.
        self.completions.store(completions, Ordering::Relaxed);
        self.obeyed.store(number, Ordering::Release);
    }

    /// The number of the last notice that is obeyed.
    pub(crate) fn obeyed(&self) -> u64 {
        self.obeyed.load(Ordering::Acquire)
    }

    /// Notice `number` is obeyed, or there is no owner to obey it.
    pub(crate) fn has_obeyed(&self, number: u64) -> bool {
        // Equality and not "at least": no pair is ahead of the log, and one that has obeyed an
        // older order has not obeyed this one.
        self.obeyed() == number || self.dropped.load(Ordering::Acquire)
    }

    pub(crate) fn completions(&self) -> u64 {
        self.completions.load(Ordering::Relaxed)
    }

    /// The pair's side: no deadline is earlier than this.
    pub(crate) fn set_watch_at(&self, at: MonotonicTime) {
        self.watch_at.store(at.as_ns_ceil(), Ordering::Relaxed);
    }

    /// Rounded up: whoever is called then is not called in vain.
    pub(crate) fn watch_at(&self) -> MonotonicTime {
        match self.watch_at.load(Ordering::Relaxed) {
            u64::MAX => MonotonicTime::MAX,
            ns => MonotonicTime::from_ns(ns),
        }
    }

    pub(crate) fn set_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// The pair's side: wishes that `command` be aborted; false where too many wishes wait.
    pub(crate) fn request_abort(&self, command: u16) -> bool {
        let wish = WISHED | u32::from(command);
        // Several wishes may be put in and taken out at the same time. A compare-and-exchange on
        // an empty place cannot overwrite a wish that is still there.
        let put = |place: &AtomicU32| {
            place.compare_exchange(0, wish, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        self.aborts.iter().any(put)
    }

    /// The pair's side: takes back the wishes that are in `stale`.
    pub(crate) fn withdraw_aborts(&self, stale: impl Fn(u16) -> bool) {
        for place in &self.aborts {
            let wish = place.load(Ordering::Relaxed);
            if wish != 0 && stale(wish as u16) {
                // If it was taken meanwhile, the controller gets a superfluous abort.
                let _ = place.compare_exchange(wish, 0, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    /// The controller object's side: takes a wish.
    pub(crate) fn take_abort(&self) -> Option<u16> {
        let mut taken = self.aborts.iter().map(|place| place.swap(0, Ordering::AcqRel));
        taken.find(|wish| *wish != 0).map(|wish| wish as u16)
    }

    /// The pair's side: `command` completed and was not outstanding.
    pub(crate) fn note_stray(&self, command: u16) {
        self.stray.store(WISHED | u32::from(command), Ordering::Relaxed);
    }

    /// The controller object's side: the last such command, if there was one since.
    pub(crate) fn take_stray(&self) -> Option<u16> {
        // Most calls find nothing: no write then.
        let none = self.stray.load(Ordering::Relaxed) == 0;
        let stray = if none { 0 } else { self.stray.swap(0, Ordering::Relaxed) };
        (stray != 0).then_some(stray as u16)
    }

    /// The pair's side: wishes a reset, or no longer.
    pub(crate) fn wish_reset(&self, wished: bool) {
        self.reset.store(wished, Ordering::Release);
    }

    pub(crate) fn wishes_reset(&self) -> bool {
        self.reset.load(Ordering::Acquire)
    }

    /// Something is wished.
    pub(crate) fn has_wishes(&self) -> bool {
        self.wishes_reset() || self.aborts.iter().any(|a| a.load(Ordering::Relaxed) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_taken_once_and_can_be_withdrawn() {
        let desk = PairMailbox::new(3);
        assert!(desk.has_obeyed(3) && !desk.has_obeyed(4) && !desk.has_wishes());
        for command in [0, 9, 0xffff, 5] {
            assert!(desk.request_abort(command));
        }
        assert!(!desk.request_abort(6), "there are four places");
        desk.withdraw_aborts(|command| command == 9);
        assert_eq!(desk.take_abort(), Some(0));
        assert!(desk.request_abort(7) && desk.has_wishes());
        let mut rest: [_; 3] = core::array::from_fn(|_| desk.take_abort());
        rest.sort_unstable();
        assert_eq!(rest, [Some(5), Some(7), Some(0xffff)]);
        assert_eq!((desk.take_abort(), desk.has_wishes()), (None, false));
        desk.wish_reset(true);
        assert!(desk.has_wishes());
    }

    #[test]
    fn nobody_waits_for_a_pair_that_was_dropped() {
        let desk = PairMailbox::new(0);
        assert!(!desk.has_obeyed(7));
        desk.set_dropped();
        assert!(desk.has_obeyed(7));
    }
}
