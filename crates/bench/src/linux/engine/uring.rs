//! io_uring: many requests with one system call (io_uring(7), io_uring_enter(2)).

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::squeue::Entry;
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use ssdyno_block::{Op, Request};

use super::{Engine, Outcome, discard};
use crate::buffers::Buffers;
use crate::content::Content;
use crate::target::RealTarget;

/// Most slots of a ring: what the kernel takes (IORING_MAX_ENTRIES).
// A ring with more entries is refused by the kernel. Deeper loads need several jobs, each with a
// ring of its own.
pub(crate) const SLOTS_MAX: u32 = 32_768;

/// The files of the target are registered in the order of their addresses; its buffers are one
/// registered buffer.
const BUFFER: u16 = 0;

/// Milliseconds after which the kernel's polling thread goes to sleep.
const SQPOLL_IDLE_MS: u32 = 100;

/// The used features of io_uring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Setup {
    /// Completions are polled for, without interrupts (IORING_SETUP_IOPOLL).
    pub(crate) iopoll: bool,
    /// A thread of the kernel takes submissions (IORING_SETUP_SQPOLL).
    pub(crate) sqpoll: bool,
    /// Reads and writes that would wait in the kernel fail with EAGAIN (RWF_NOWAIT).
    pub(crate) nowait: bool,
}

impl Setup {
    /// preadv2(2): flags of a read or write.
    fn flags(self) -> i32 {
        if self.nowait { libc::RWF_NOWAIT } else { 0 }
    }
}

/// A ring of its own for one job. It must be made and used by one thread.
pub(crate) struct Uring {
    // The ring comes first: it is dropped before the file and the memory that requests use.
    ring: Ring<Entry, cqueue::Entry>,
    buffers: Buffers,
    registered: bool,
    /// Of each read and write.
    flags: i32,
    target: Arc<RealTarget>,
    /// How trims are carried out, for each file.
    trims: Vec<Trim>,
}

/// How a trim of a file is carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trim {
    /// A hole in a file.
    Hole,
    /// A discard, on its way beside other requests.
    Discard,
    /// A discard that the job waits for, as fio does: the kernel is older than 6.12.
    BlockingDiscard,
}

impl Uring {
    /// For `slots` requests (up to [`SLOTS_MAX`]) of up to `length_bytes` to `target`, which is
    /// not `null:`; writes carry `content`.
    pub(crate) fn new(
        target: Arc<RealTarget>,
        slots: u32,
        length_bytes: u32,
        content: Option<Content>,
        setup: Setup,
    ) -> io::Result<Uring> {
        let files: Vec<_> = target.descriptors().iter().map(AsRawFd::as_raw_fd).collect();
        if files.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let ring = Ring::new(slots, &files, setup)?;
        let mut buffers = Buffers::new(slots, length_bytes, content);
        let registered = register(&ring.kernel, &mut buffers);
        let discard = match discard::is_asynchronous() {
            true => Trim::Discard,
            false => Trim::BlockingDiscard,
        };
        let files = target.descriptors().into_iter();
        let trims =
            files.map(|file| if discard::is_for(file) { discard } else { Trim::Hole }).collect();
        Ok(Uring { ring, buffers, registered, flags: setup.flags(), target, trims })
    }

    /// Whether io_uring can be used at all, tested with a ring of one entry: a sandbox may permit its creation, but
    /// forbid to register a file (here none: -1), or to submit requests.
    pub(crate) fn available() -> io::Result<()> {
        let ring = IoUring::new(1)?;
        ring.submitter().register_files(&[-1])?;
        ring.submit().map(|_| ())
    }

    /// Whether the buffers are registered: not where too little memory may be locked.
    pub(crate) fn registered(&self) -> bool {
        self.registered
    }

    fn entry(&mut self, request: &Request, slot: u32) -> Entry {
        let (place, own) = self.buffers.place(slot, request);
        let (memory, length) = (place.as_mut_ptr(), request.length_bytes);
        let (index, offset) = self.target.locate(request.offset_bytes);
        let file = types::Fixed(index as u32);
        // A registered buffer is pinned once. For other memory the kernel pins and releases the
        // pages for every request.
        let fixed = own && self.registered;
        match request.op {
            Op::Read if fixed => opcode::ReadFixed::new(file, memory, length, BUFFER)
                .offset(offset)
                .rw_flags(self.flags)
                .build(),
            Op::Read => {
                opcode::Read::new(file, memory, length).offset(offset).rw_flags(self.flags).build()
            }
            Op::Write if fixed => opcode::WriteFixed::new(file, memory, length, BUFFER)
                .offset(offset)
                .rw_flags(self.flags)
                .build(),
            Op::Write => {
                opcode::Write::new(file, memory, length).offset(offset).rw_flags(self.flags).build()
            }
            Op::Trim if self.trims[index] == Trim::Discard => {
                discard::entry(file, offset, u64::from(length))
            }
            Op::Trim => opcode::Fallocate::new(file, u64::from(length))
                .offset(offset)
                .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                .build(),
            Op::Flush => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
        }
    }

    /// Carries out a discard that has to be waited for; says whether `request` is one.
    #[cold]
    fn discard_now(&mut self, slot: u32, request: &Request) -> bool {
        let (index, offset) = self.target.locate(request.offset_bytes);
        // Kernels before 6.12 take no discards through a ring. The job waits for each discard
        // then, as a job of fio does.
        if self.trims[index] != Trim::BlockingDiscard {
            return false;
        }
        let Some(file) = self.target.descriptor(index) else { return false };
        let outcome = discard::now(file, offset, u64::from(request.length_bytes));
        self.ring.ended.push((slot, outcome));
        self.ring.system_calls += 1;
        true
    }
}

/// A ring of the kernel, for one thread. Its entries are of the kinds `S` and `C`.
pub(super) struct Ring<S: squeue::EntryMarker, C: cqueue::EntryMarker> {
    pub(super) kernel: IoUring<S, C>,
    /// Requests that ended without an entry, until they are reaped.
    pub(super) ended: Vec<(u32, Outcome)>,
    pub(super) system_calls: u64,
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Ring<S, C> {
    /// For `slots` requests to `files`, which entries name by their place in the list.
    pub(super) fn new(slots: u32, files: &[RawFd], setup: Setup) -> io::Result<Ring<S, C>> {
        // The kernel wants a power of two. The ring has an entry for each slot, so a push never
        // finds it full.
        let kernel = build(slots.next_power_of_two(), setup)?;
        // With a registered file the kernel need not look up and count the descriptor for each
        // request. Several files of one target are one table, in the order of their addresses.
        kernel.submitter().register_files(files)?;
        // Saves a look-up in every call; older kernels do not know it.
        let _ = kernel.submitter().register_ring_fd();
        Ok(Ring { kernel, ended: Vec::new(), system_calls: 0 })
    }

    fn reapable(&mut self) -> usize {
        self.kernel.completion().len() + self.ended.len()
    }

    /// Submits, and waits for `want` completions, for at most `wait` if there is one.
    fn enter(&mut self, want: u32, wait: Option<Duration>) -> io::Result<()> {
        // A polling thread of the kernel that is awake needs no call to submit.
        let polled = self.kernel.params().is_setup_sqpoll();
        // The count is part of the tool's overhead (S4-45). With SQPOLL a submission is a write
        // to memory, and counting it as a system call would be wrong.
        let called = want > 0 || !polled || self.kernel.submission().need_wakeup();
        self.system_calls += u64::from(called);
        let submitter = self.kernel.submitter();
        let entered = match wait {
            Some(wait) => {
                let time = types::Timespec::from(wait);
                let arguments = types::SubmitArgs::new().timespec(&time);
                submitter.submit_with_args(want as usize, &arguments)
            }
            None => submitter.submit_and_wait(want as usize),
        };
        match entered {
            Ok(_) => Ok(()),
            // A signal, the end of the wait, or a full completion queue: the caller reaps and
            // comes again.
            Err(e) => match e.raw_os_error() {
                Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(e),
            },
        }
    }

    /// As [`Engine::turn`].
    pub(super) fn turn(&mut self, want: u32, wait: Option<Duration>) -> io::Result<()> {
        // Enough is there already. The call is made only to submit, and without waiting: a wait
        // would add the time of a switch to each latency.
        if self.reapable() >= want as usize {
            let nothing = self.kernel.submission().is_empty();
            return if nothing { Ok(()) } else { self.enter(0, None) };
        }
        self.enter(want.saturating_sub(self.ended.len() as u32), wait)
    }

    /// As [`Engine::ready`].
    pub(super) fn ready(&mut self, want: u32) -> io::Result<bool> {
        if self.reapable() >= want as usize {
            return Ok(true);
        }
        // With IOPOLL or deferred work completions appear only when the kernel is asked.
        // Otherwise they appear in the ring by themselves, and looking costs no call.
        let (polled, deferred) =
            (self.kernel.params().is_setup_iopoll(), self.kernel.submission().taskrun());
        if polled || deferred {
            self.enter(0, None)?;
        }
        Ok(self.reapable() >= want as usize)
    }
}

/// A ring with all that makes it cheaper, or without where the kernel is older. Its entries are of the kinds `S`
/// and `C`.
fn build<S, C>(entries: u32, setup: Setup) -> io::Result<IoUring<S, C>>
where
    S: squeue::EntryMarker,
    C: cqueue::EntryMarker,
{
    let basic = || {
        let mut builder = IoUring::<S, C>::builder();
        if setup.iopoll {
            builder.setup_iopoll();
        }
        if setup.sqpoll {
            builder.setup_sqpoll(SQPOLL_IDLE_MS);
        }
        builder
    };
    let mut modern = basic();
    // One thread uses the ring, and the kernel may count on that. SUBMIT_ALL goes on after a
    // request that fails at once; without it the rest of the batch would wait for the next call.
    modern.setup_single_issuer().setup_submit_all().setup_no_sqarray();
    if !setup.sqpoll {
        // Completions are worked on when we ask for them, and not by interrupting us (Linux 6.1).
        modern.setup_defer_taskrun().setup_taskrun_flag();
    }
    match modern.build(entries) {
        // A kernel that does not know one of the flags refuses all of them with EINVAL. The figures
        // are then those of a plain ring, as on any such kernel.
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => basic().build(entries),
        other => other,
    }
}

#[expect(unsafe_code, reason = "the kernel is told the address of memory")]
fn register(ring: &IoUring, buffers: &mut Buffers) -> bool {
    let (memory, length) = buffers.registrable();
    let all = libc::iovec { iov_base: memory.cast(), iov_len: length };
    // SAFETY: the memory belongs to `buffers`, which never moves it or gives it back before it is
    // dropped; `Uring` drops the ring, and with it the registration, before the buffers.
    unsafe { ring.submitter().register_buffers(&[all]).is_ok() }
}

impl Engine for Uring {
    #[inline]
    #[expect(unsafe_code, reason = "the kernel is told the address of memory")]
    fn push(&mut self, slot: u32, request: &Request) {
        if request.op == Op::Trim && self.discard_now(slot, request) {
            return;
        }
        let entry = self.entry(request, slot).user_data(u64::from(slot));
        // SAFETY: the entry names a registered file, which stays open until the ring is dropped,
        // and memory of `buffers`, which is neither moved nor given back before that and is long
        // enough for the request. It is not accessed before the completion: a slot is not used
        // again until then, and shared buffers are never read.
        let pushed = unsafe { self.ring.kernel.submission().push(&entry) };
        // A ring has an entry for each slot, and `turn` empties it.
        debug_assert!(pushed.is_ok(), "more requests than slots");
    }

    fn turn(&mut self, want: u32, wait: Option<Duration>) -> io::Result<()> {
        self.ring.turn(want, wait)
    }

    fn ready(&mut self, want: u32) -> io::Result<bool> {
        self.ring.ready(want)
    }

    #[inline]
    fn reap(&mut self, mut each: impl FnMut(u32, Outcome)) {
        for entry in self.ring.kernel.completion() {
            each(entry.user_data() as u32, entry.result());
        }
        if !self.ring.ended.is_empty() {
            self.ring.ended.drain(..).for_each(|(slot, outcome)| each(slot, outcome));
        }
    }

    fn system_calls(&self) -> u64 {
        self.ring.system_calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssdyno_safety::Access;

    /// The awaited completions are reaped like the others, also if no other request is outstanding.
    #[test]
    fn discards_that_are_waited_for_are_reaped() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let target = RealTarget::open(file.path().to_str().unwrap(), &Access::ReadOnly).unwrap();
        if Uring::available().is_err() {
            eprintln!("skipped: no io_uring here");
            return;
        }
        let mut ring = Uring::new(Arc::new(target), 4, 4096, None, Setup::default()).unwrap();
        assert_eq!(ring.trims, [Trim::Hole]);
        ring.trims = vec![Trim::BlockingDiscard];
        ring.push(2, &Request::trim(4096, 4096));
        assert!(ring.ready(1).unwrap());
        ring.turn(1, None).unwrap();
        ring.push(1, &Request::read(0, 4096));
        ring.turn(2, None).unwrap();
        let mut reaped = Vec::new();
        while reaped.len() < 2 {
            ring.turn(1, None).unwrap();
            ring.reap(|slot, outcome| reaped.push((slot, outcome)));
        }
        reaped.sort_unstable();
        // A file does not take discards, and this one is open for reading only.
        assert!(matches!(reaped[..], [(1, 4096), (2, error)] if error < 0), "{reaped:?}");
    }
}
