//! One request at a time, by pread(2) and pwrite(2): a job, which is a thread, is the unit of
//! concurrency. The engine for a file in memory, where io_uring would pass every request to a
//! kernel worker.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::FallocateFlags;
use ssdyno_block::{Op, Request};

use super::{Engine, Outcome, discard};
use crate::buffers::Buffers;
use crate::content::Content;
use crate::target::RealTarget;

/// Carries a request out in [`turn`](Engine::turn).
#[derive(Debug)]
pub(crate) struct Threads {
    target: Arc<RealTarget>,
    buffers: Buffers,
    pushed: Vec<(u32, Request)>,
    done: Vec<(u32, Outcome)>,
    system_calls: u64,
    /// Which of the files are devices, whose trims are discards.
    discards: Vec<bool>,
}

/// Gives the calling thread a table of descriptors of its own. In a shared one the kernel counts
/// every use of a file, on one cache line for all cores: a sixth of the cost of a read from memory.
#[expect(unsafe_code, reason = "descriptors are not seen by other threads any more")]
fn own_descriptors() {
    // SAFETY: a job opens nothing that another thread uses, and the target that it uses was opened
    // before: it is in both tables under the same number, and `Arc` keeps it open in ours until
    // the thread ends. Where this is refused the table stays shared, which is safe as well.
    let _ = unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FILES) };
}

impl Threads {
    /// For requests of up to `length_bytes` to `target`, which is not `null:`. It must be made by
    /// the thread that uses it.
    pub(crate) fn new(
        target: Arc<RealTarget>,
        length_bytes: u32,
        content: Option<Content>,
    ) -> Threads {
        own_descriptors();
        let buffers = Buffers::new(1, length_bytes, content);
        let discards = target.descriptors().into_iter().map(discard::is_for).collect();
        let (pushed, done) = (Vec::new(), Vec::new());
        Threads { target, buffers, pushed, done, system_calls: 0, discards }
    }

    fn carry_out(&mut self, request: &Request) -> Outcome {
        self.system_calls += 1;
        // One request at a time: all use the first place.
        let (place, _) = self.buffers.place(0, request);
        let (index, offset) = self.target.locate(request.offset_bytes);
        let Some(file) = self.target.descriptor(index) else { return 0 };
        let length = u64::from(request.length_bytes);
        let moved = match request.op {
            Op::Read => rustix::io::pread(file, place, offset),
            Op::Write => rustix::io::pwrite(file, place, offset),
            Op::Trim if self.discards[index] => return discard::now(file, offset, length),
            Op::Trim => rustix::fs::fallocate(
                file,
                FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
                offset,
                length,
            )
            .map(|()| 0),
            Op::Flush => rustix::fs::fdatasync(file).map(|()| 0),
        };
        moved.map_or_else(|error| -error.raw_os_error(), |bytes| bytes as Outcome)
    }
}

impl Engine for Threads {
    #[inline]
    fn push(&mut self, slot: u32, request: &Request) {
        self.pushed.push((slot, *request));
    }

    fn turn(&mut self, _want: u32, _wait: Option<Duration>) -> io::Result<()> {
        // One request at a time: the job has one slot with this engine. A loop would only hide a
        // mistake in the plan.
        if let Some((slot, request)) = self.pushed.pop() {
            let outcome = self.carry_out(&request);
            self.done.push((slot, outcome));
        }
        Ok(())
    }

    fn ready(&mut self, _want: u32) -> io::Result<bool> {
        Ok(!self.done.is_empty() || !self.pushed.is_empty())
    }

    #[inline]
    fn reap(&mut self, mut each: impl FnMut(u32, Outcome)) {
        for (slot, outcome) in self.done.drain(..) {
            each(slot, outcome);
        }
    }

    fn system_calls(&self) -> u64 {
        self.system_calls
    }
}
