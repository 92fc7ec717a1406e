//! io_uring: many requests with one system call (io_uring(7), io_uring_enter(2)).

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use io_uring::squeue::Entry;
use io_uring::{IoUring, opcode, types};
use ssdyno_block::{Op, Request};

use super::{Engine, Outcome};
use crate::buffers::Buffers;
use crate::target::Target;

/// Most slots of a ring: what the kernel takes (IORING_MAX_ENTRIES).
pub(crate) const SLOTS_MAX: u32 = 32_768;

/// The files of the target are registered in the order of their addresses; its buffers are one
/// registered buffer.
const BUFFER: u16 = 0;

/// Milliseconds after which the kernel's polling thread goes to sleep.
const SQPOLL_IDLE_MS: u32 = 100;

/// What of io_uring is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Setup {
    /// Completions are polled for, without interrupts (IORING_SETUP_IOPOLL).
    pub(crate) iopoll: bool,
    /// A thread of the kernel takes submissions (IORING_SETUP_SQPOLL).
    pub(crate) sqpoll: bool,
}

/// A ring of its own for one job. It must be made and used by one thread.
pub(crate) struct Uring {
    // The ring comes first: it is dropped before the file and the memory that requests use.
    ring: IoUring,
    buffers: Buffers,
    registered: bool,
    system_calls: u64,
    target: Arc<Target>,
}

impl Uring {
    /// For `slots` requests (up to [`SLOTS_MAX`]) of up to `length_bytes` to `target`, which is
    /// not `null:`.
    pub(crate) fn new(
        target: Arc<Target>,
        slots: u32,
        length_bytes: u32,
        setup: Setup,
    ) -> io::Result<Uring> {
        let files: Vec<_> = target.descriptors().iter().map(AsRawFd::as_raw_fd).collect();
        if files.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut ring = build(slots.next_power_of_two(), setup)?;
        ring.submitter().register_files(&files)?;
        // Saves a look-up in every call; older kernels do not know it.
        let _ = ring.submitter().register_ring_fd();
        let mut buffers = Buffers::new(slots, length_bytes, target.writable);
        let registered = register(&mut ring, &mut buffers);
        Ok(Uring { ring, buffers, registered, system_calls: 0, target })
    }

    /// Whether io_uring can be used at all, found out with a ring of one.
    pub(crate) fn available() -> io::Result<()> {
        IoUring::new(1).map(|_| ())
    }

    /// Whether the buffers are registered: not where too little memory may be locked.
    pub(crate) fn registered(&self) -> bool {
        self.registered
    }

    fn entry(&mut self, request: &Request, slot: u32) -> Entry {
        let (place, own) = self.buffers.place(slot, request);
        let (memory, length) = (place.as_mut_ptr(), request.length_bytes);
        let (file, offset) = self.target.locate(request.offset_bytes);
        let file = types::Fixed(file as u32);
        let fixed = own && self.registered;
        match request.op {
            Op::Read if fixed => {
                opcode::ReadFixed::new(file, memory, length, BUFFER).offset(offset).build()
            }
            Op::Read => opcode::Read::new(file, memory, length).offset(offset).build(),
            Op::Write if fixed => {
                opcode::WriteFixed::new(file, memory, length, BUFFER).offset(offset).build()
            }
            Op::Write => opcode::Write::new(file, memory, length).offset(offset).build(),
            Op::Trim => opcode::Fallocate::new(file, u64::from(length))
                .offset(offset)
                .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                .build(),
            Op::Flush => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
        }
    }

    /// Submits, and waits for `want` completions, for at most `wait` if there is one.
    fn enter(&mut self, want: u32, wait: Option<Duration>) -> io::Result<()> {
        // A polling thread of the kernel that is awake needs no call to submit.
        let polled = self.ring.params().is_setup_sqpoll();
        let called = want > 0 || !polled || self.ring.submission().need_wakeup();
        self.system_calls += u64::from(called);
        let submitter = self.ring.submitter();
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
}

/// A ring with all that makes it cheaper, or without where the kernel is older.
fn build(entries: u32, setup: Setup) -> io::Result<IoUring> {
    let basic = || {
        let mut builder = IoUring::builder();
        if setup.iopoll {
            builder.setup_iopoll();
        }
        if setup.sqpoll {
            builder.setup_sqpoll(SQPOLL_IDLE_MS);
        }
        builder
    };
    let mut modern = basic();
    modern.setup_single_issuer().setup_submit_all().setup_no_sqarray();
    if !setup.sqpoll {
        // Completions are worked on when we ask for them, and not by interrupting us (Linux 6.1).
        modern.setup_defer_taskrun().setup_taskrun_flag();
    }
    match modern.build(entries) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => basic().build(entries),
        other => other,
    }
}

#[expect(unsafe_code, reason = "the kernel is told the address of memory")]
fn register(ring: &mut IoUring, buffers: &mut Buffers) -> bool {
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
        let entry = self.entry(request, slot).user_data(u64::from(slot));
        // SAFETY: the entry names a registered file, which stays open until the ring is
        // dropped, and memory of `buffers`, which is neither moved nor given back before that
        // and is long enough for the request. Nobody reads or writes it before the completion:
        // a slot is not used again until then, and shared places are never looked at.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        // A ring has an entry for each slot, and `turn` empties it.
        debug_assert!(pushed.is_ok(), "more requests than slots");
    }

    fn turn(&mut self, want: u32, wait: Option<Duration>) -> io::Result<()> {
        let ready = self.ring.completion().len();
        if ready >= want as usize {
            let nothing = self.ring.submission().is_empty();
            return if nothing { Ok(()) } else { self.enter(0, None) };
        }
        self.enter(want, wait)
    }

    fn ready(&mut self) -> io::Result<bool> {
        if !self.ring.completion().is_empty() {
            return Ok(true);
        }
        let (polled, deferred) =
            (self.ring.params().is_setup_iopoll(), self.ring.submission().taskrun());
        if polled || deferred {
            self.enter(0, None)?;
        }
        Ok(!self.ring.completion().is_empty())
    }

    #[inline]
    fn reap(&mut self, mut each: impl FnMut(u32, Outcome)) {
        for entry in self.ring.completion() {
            each(entry.user_data() as u32, entry.result());
        }
    }

    fn system_calls(&self) -> u64 {
        self.system_calls
    }
}
