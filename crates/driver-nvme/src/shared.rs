//! A value with several owners, as [`Arc`](alloc::sync::Arc), whose making can fail: a kernel that is out
//! of memory gets an error and goes on. The standard one would end the program.

use alloc::alloc::{alloc, dealloc};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering, fence};

/// The heap has no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NoHeap;

impl From<alloc::collections::TryReserveError> for NoHeap {
    fn from(_: alloc::collections::TryReserveError) -> NoHeap {
        NoHeap
    }
}

/// `value` on the heap. (An array of one is the box that can be made without ending the program.)
pub(crate) fn try_box<T>(value: T) -> Result<Box<[T; 1]>, NoHeap> {
    let mut one = Vec::new();
    one.try_reserve_exact(1)?;
    one.push(value);
    // The capacity is the length, so nothing moves.
    Box::try_from(one).map_err(|_| NoHeap)
}

/// Appends `from` to `out`, as much as there is room for; the rest stays.
pub(crate) fn hand_out<T>(from: &mut Vec<T>, out: &mut Vec<T>) {
    let room = match out.try_reserve(from.len()) {
        Ok(()) => from.len(),
        // Without memory the list still takes what fits into its capacity. The rest waits for
        // the next call and is not lost.
        Err(_) => from.len().min(out.capacity() - out.len()),
    };
    out.extend(from.drain(..room));
}

struct Inner<T> {
    owners: AtomicUsize,
    value: T,
}

/// A value with several owners, on whatever cores; the last one drops it.
pub(crate) struct Shared<T> {
    inner: NonNull<Inner<T>>,
    /// It drops a `T`.
    owns: PhantomData<Inner<T>>,
}

#[expect(unsafe_code, reason = "an allocation that may fail has no safe interface that is stable")]
mod proven {
    use super::*;

    // What makes this sound: `inner` comes from `Shared::try_new`, is valid and initialised until the owner that takes
    // the count to 0 frees it, and each `Shared` is counted once. So every owner of a `Shared` has a valid `inner`.

    // SAFETY: as for `Arc`: owners on several threads share a `&T` (`Sync`), and any may drop it (`Send`).
    unsafe impl<T: Send + Sync> Send for Shared<T> {}
    // SAFETY: the same, for a `&Shared` can be cloned.
    unsafe impl<T: Send + Sync> Sync for Shared<T> {}

    impl<T> Shared<T> {
        /// Of `value`, with one owner.
        pub(crate) fn try_new(value: T) -> Result<Shared<T>, NoHeap> {
            // SAFETY: the layout is not empty, for there is a counter in it.
            let memory = unsafe { alloc(Layout::new::<Inner<T>>()) };
            let inner = NonNull::new(memory.cast::<Inner<T>>()).ok_or(NoHeap)?;
            // SAFETY: the memory is ours, aligned and large enough by its layout.
            unsafe { inner.write(Inner { owners: AtomicUsize::new(1), value }) };
            Ok(Shared { inner, owns: PhantomData })
        }

        fn inner(&self) -> &Inner<T> {
            // SAFETY: valid while `self` is an owner; only shared references are ever made of it.
            unsafe { self.inner.as_ref() }
        }

        /// Both are the same value.
        pub(crate) fn is_same(&self, other: &Shared<T>) -> bool {
            self.inner == other.inner
        }

        #[cfg(test)]
        pub(crate) fn owners(&self) -> usize {
            self.inner().owners.load(Ordering::Relaxed)
        }
    }

    impl<T> Deref for Shared<T> {
        type Target = T;
        #[inline(always)]
        fn deref(&self) -> &T {
            &self.inner().value
        }
    }

    impl<T> Clone for Shared<T> {
        fn clone(&self) -> Shared<T> {
            // A new owner comes from an old one, which keeps the value: nothing to order.
            let before = self.inner().owners.fetch_add(1, Ordering::Relaxed);
            // A count that overflows would free what is in use; so many owners do not fit in memory.
            assert!(before < usize::MAX / 2, "owners were forgotten, not dropped");
            Shared { inner: self.inner, owns: PhantomData }
        }
    }

    impl<T> Drop for Shared<T> {
        fn drop(&mut self) {
            // Every owner's actions on the value come before its end.
            if self.inner().owners.fetch_sub(1, Ordering::Release) != 1 {
                return;
            }
            fence(Ordering::Acquire);
            // SAFETY: this was the last owner, so nothing else reaches `inner`; it was initialised by `try_new`, is
            // dropped once, and its memory came from `alloc` with this layout.
            unsafe {
                self.inner.drop_in_place();
                dealloc(self.inner.as_ptr().cast(), Layout::new::<Inner<T>>());
            }
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    extern crate std;

    use super::*;

    #[test]
    fn the_last_owner_drops_the_value() {
        let watched = std::sync::Arc::new(());
        let first = Shared::try_new(watched.clone()).unwrap();
        let second = first.clone();
        assert!(first.is_same(&second) && second.owners() == 2);
        drop(first);
        assert_eq!(std::sync::Arc::strong_count(&watched), 2, "one owner is left");
        drop(second);
        assert_eq!(std::sync::Arc::strong_count(&watched), 1);
    }

    #[test]
    fn owners_on_many_threads_end_once() {
        let watched = std::sync::Arc::new(());
        for _ in 0..50 {
            let shared = Shared::try_new(watched.clone()).unwrap();
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    let own = shared.clone();
                    scope.spawn(move || (0..100).for_each(|_| drop(own.clone())));
                }
                drop(shared);
            });
            assert_eq!(std::sync::Arc::strong_count(&watched), 1);
        }
    }

    #[test]
    fn boxes_are_what_they_are_made_of() {
        assert_eq!(try_box(7_u64).unwrap()[0], 7);
        let (mut from, mut to) = (std::vec![1, 2, 3], std::vec![0]);
        hand_out(&mut from, &mut to);
        assert_eq!((from.len(), to), (0, std::vec![0, 1, 2, 3]));
    }
}
