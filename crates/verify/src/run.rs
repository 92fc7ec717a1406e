//! Writing, reading back, and checking after a crash.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use ssdyno_engine::{Rng, Scatter};
use ssdyno_figures::KeepGoing;

use crate::journal::{self, Header, Journal};
use crate::medium::{Aligned, Medium};
use crate::stamp::Stamp;
use crate::table::{Right, judge};
use crate::{
    FINDINGS_MAX, Finding, JournalUse, PROGRESS_EVERY, VerifyError, VerifyFault, VerifyPlan,
    VerifyProgress, VerifyReport,
};

/// Writes and reads `medium` as `plan` says; all that was written is read in the end.
///
/// # Errors
/// A plan that cannot be, a journal that cannot be made. [`VerifyError::EndedEarly`]: a journal that cannot be written any
/// longer, a target that fails requests. Faults of the data are not errors: they are in the report.
pub fn verify(
    plan: &VerifyPlan,
    medium: &dyn Medium,
    progress: &mut dyn FnMut(&VerifyProgress) -> KeepGoing,
) -> Result<VerifyReport, VerifyError> {
    let blocks = plan.check()?;
    let header = Header {
        run: plan.run,
        block_bytes: u64::from(plan.block_bytes),
        blocks,
        capacity_bytes: plan.capacity_bytes,
        serial: plan.serial.clone().unwrap_or_default(),
    };
    let journal = plan.journal.as_deref().map(|path| Journal::create(path, &header)).transpose()?;
    carry_out(plan, blocks, medium, journal, progress)
}

/// [`verify`], with a journal that has begun; `blocks` is the size of the range.
pub(crate) fn carry_out(
    plan: &VerifyPlan,
    blocks: u64,
    medium: &dyn Medium,
    journal: Option<Journal>,
    progress: &mut dyn FnMut(&VerifyProgress) -> KeepGoing,
) -> Result<VerifyReport, VerifyError> {
    let threads = u64::from(plan.threads).min(blocks);
    let run = Run {
        plan,
        medium,
        journal: Mutex::new(journal),
        shared: Shared { range_blocks: blocks, ..Shared::default() },
        barrier: Barrier::new(threads as usize),
        end: AtomicBool::new(false),
    };
    let started = Instant::now();
    let job = |index| run.write_and_read(index, threads, blocks);
    run.shared.on_threads(threads, plan.writes, &job, progress);
    run.shared.report(started)
}

/// What is checked after a crash.
#[derive(Clone, Debug)]
pub struct Crashed<'a> {
    /// The journal of the run.
    pub journal: &'a Path,
    /// Size of the target.
    pub capacity_bytes: u64,
    /// Serial number of the target, where it has one.
    pub serial: Option<String>,
    /// Bytes that were stamped by themselves.
    pub sector_bytes: u32,
    /// Reads under way together.
    pub threads: u32,
}

/// Checks `medium` against the journal of a run that ended early. Nothing is written.
///
/// # Errors
/// A journal that cannot be read, is damaged or is of another target, a target that fails requests.
pub fn resume(
    crashed: &Crashed<'_>,
    medium: &dyn Medium,
    progress: &mut dyn FnMut(&VerifyProgress) -> KeepGoing,
) -> Result<VerifyReport, VerifyError> {
    let contents = journal::read(crashed.journal)?;
    let header = &contents.header;
    if header.capacity_bytes != crashed.capacity_bytes {
        let (journal_bytes, capacity_bytes) = (header.capacity_bytes, crashed.capacity_bytes);
        return Err(VerifyError::OtherTarget { journal_bytes, capacity_bytes });
    }
    if let Some(found) = crashed.serial.as_ref().filter(|found| **found != header.serial)
        && !header.serial.is_empty()
    {
        let (journal, found) = (header.serial.clone(), found.clone());
        return Err(VerifyError::OtherSerial { journal, found });
    }
    let shared = Shared { range_blocks: header.blocks, ..Shared::default() };
    let threads = u64::from(crashed.threads.max(1));
    let started = Instant::now();
    let job = |index| {
        let mut reader =
            Reader::new(medium, &shared, header.block_bytes, crashed.sector_bytes, header.run);
        for block in (index..header.blocks).step_by(threads as usize) {
            let expected = contents.expected[block as usize];
            // The tail of the journal may be lost: data newer than its last entry is not an error.
            let right = Right { least: expected.durable, most: u64::MAX };
            if expected.intended > 0 {
                shared.written_blocks.fetch_add(1, Ordering::Relaxed);
                if !reader.check(block, right) {
                    return;
                }
            }
            shared.done.fetch_add(1, Ordering::Relaxed);
        }
    };
    shared.on_threads(threads, header.blocks, &job, progress);
    let (promised, known) = (contents.promised(), shared.known.load(Ordering::Relaxed));
    let mut report = shared.report(started)?;
    if promised > 0 && known == 0 && !report.partial {
        return Err(VerifyError::NothingOfRun { blocks: promised });
    }
    report.journal = Some(JournalUse {
        writes: contents.writes,
        flushes: contents.marks,
        promised_blocks: promised,
        unused_bytes: contents.unused_bytes,
    });
    Ok(report)
}

impl VerifyPlan {
    /// The number of blocks, if the plan can be carried out.
    fn check(&self) -> Result<u64, VerifyError> {
        let wrong = |key, problem: String| Err(VerifyError::Plan { key, problem });
        if self.sector_bytes < 64 || !self.block_bytes.is_multiple_of(self.sector_bytes) {
            let problem = format!(
                "{} B is not a multiple of the sector size, {} B",
                self.block_bytes, self.sector_bytes
            );
            return wrong("block_bytes", problem);
        }
        if self.range_bytes > self.capacity_bytes {
            let (range, size) = (self.range_bytes, self.capacity_bytes);
            return wrong("range_bytes", format!("{range} B exceed the target's {size} B"));
        }
        if self.threads == 0 || self.flush_every == 0 || self.read_percent >= 100 {
            let problem = "threads and flush_every must be 1 or more, read_percent below 100";
            return wrong("threads", problem.to_owned());
        }
        match self.range_bytes / u64::from(self.block_bytes.max(1)) {
            0 => wrong("range_bytes", "it holds no block".to_owned()),
            blocks => Ok(blocks),
        }
    }
}

/// The state that all threads share.
#[derive(Debug, Default)]
struct Shared {
    generation: AtomicU64,
    /// Blocks of this phase that are done, for progress.
    done: AtomicU64,
    writes: AtomicU64,
    reads: AtomicU64,
    flushes: AtomicU64,
    faults: AtomicU64,
    /// Blocks in the range, and those that were written at least once.
    range_blocks: u64,
    written_blocks: AtomicU64,
    /// Promised blocks in which something is of this run.
    known: AtomicU64,
    /// Asked to stop, or failed.
    stop: AtomicBool,
    findings: Mutex<Vec<Finding>>,
    error: Mutex<Option<VerifyError>>,
}

/// A panic elsewhere leaves lists that can still be read.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Runs `job` on `threads` threads, and tells how far they are meanwhile.
    fn on_threads(
        &self,
        threads: u64,
        of: u64,
        job: &(dyn Fn(u64) + Sync),
        progress: &mut dyn FnMut(&VerifyProgress) -> KeepGoing,
    ) {
        thread::scope(|scope| {
            let handles: Vec<_> =
                (0..threads).map(|index| scope.spawn(move || job(index))).collect();
            let mut told = Instant::now();
            while !handles.iter().all(thread::ScopedJoinHandle::is_finished) {
                thread::sleep(PROGRESS_EVERY / 50);
                if told.elapsed() < PROGRESS_EVERY {
                    continue;
                }
                told = Instant::now();
                let done = self.done.load(Ordering::Relaxed).min(of);
                let faults = self.faults.load(Ordering::Relaxed);
                let requests =
                    [&self.reads, &self.writes, &self.flushes].map(|n| n.load(Ordering::Relaxed));
                let requests = requests.iter().sum();
                if progress(&VerifyProgress { done, of, faults, requests }) == KeepGoing::Stop {
                    self.stop.store(true, Ordering::Relaxed);
                }
            }
        });
    }

    fn fail(&self, error: VerifyError) {
        self.stop.store(true, Ordering::Relaxed);
        locked(&self.error).get_or_insert(error);
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn found(&self, finding: Finding) {
        self.faults.fetch_add(1, Ordering::Relaxed);
        let mut findings = locked(&self.findings);
        if findings.len() < FINDINGS_MAX {
            findings.push(finding);
        }
    }

    fn report(self, started: Instant) -> Result<VerifyReport, VerifyError> {
        let cause = locked(&self.error).take();
        let mut findings = locked(&self.findings).clone();
        findings.sort_by_key(|finding| (finding.offset_bytes, finding.fault));
        let report = VerifyReport {
            writes: self.writes.into_inner(),
            reads: self.reads.into_inner(),
            flushes: self.flushes.into_inner(),
            faults: self.faults.into_inner(),
            range_blocks: self.range_blocks,
            written_blocks: self.written_blocks.into_inner(),
            findings,
            partial: self.stop.into_inner(),
            wall_seconds: started.elapsed().as_secs_f64(),
            journal: None,
        };
        match cause {
            None => Ok(report),
            Some(cause) => {
                let (report, cause) = (Box::new(report), Box::new(cause));
                Err(VerifyError::EndedEarly { report, cause })
            }
        }
    }
}

/// Reads blocks and judges them.
struct Reader<'a> {
    medium: &'a dyn Medium,
    shared: &'a Shared,
    block_bytes: u64,
    sector_bytes: u32,
    run: u64,
    buffer: Aligned,
}

impl<'a> Reader<'a> {
    fn new(
        medium: &'a dyn Medium,
        shared: &'a Shared,
        block_bytes: u64,
        sector_bytes: u32,
        run: u64,
    ) -> Reader<'a> {
        let buffer = Aligned::new(block_bytes as usize);
        Reader { medium, shared, block_bytes, sector_bytes, run, buffer }
    }

    fn read(&mut self, block: u64, right: Right) -> Option<Option<Finding>> {
        let offset_bytes = block * self.block_bytes;
        if let Err(source) = self.medium.read(offset_bytes, self.buffer.as_mut()) {
            self.shared.fail(VerifyError::Target { what: "read", offset_bytes, source });
            return None;
        }
        self.shared.reads.fetch_add(1, Ordering::Relaxed);
        Some(judge(self.buffer.as_mut(), self.sector_bytes, offset_bytes, self.run, right))
    }

    /// False if there is no point in going on.
    fn check(&mut self, block: u64, right: Right) -> bool {
        let Some(first) = self.read(block, right) else { return false };
        let foreign = |finding: &Finding| {
            matches!(
                finding.fault,
                VerifyFault::Unwritten | VerifyFault::Foreign | VerifyFault::Damaged
            )
        };
        if right.least > 0 && !first.as_ref().is_some_and(foreign) {
            self.shared.known.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(mut finding) = first {
            // Once more: what is right now was read too early.
            let Some(second) = self.read(block, right) else { return false };
            if second.is_none() && finding.fault == VerifyFault::Lost {
                finding.fault = VerifyFault::Stale;
            }
            self.shared.found(finding);
        }
        !self.shared.stopped()
    }
}

/// One verification under way.
struct Run<'a> {
    plan: &'a VerifyPlan,
    medium: &'a dyn Medium,
    journal: Mutex<Option<Journal>>,
    shared: Shared,
    /// Threads meet here before and after a flush: its mark covers all of them.
    barrier: Barrier,
    /// Set between the two meetings: this epoch is the last.
    end: AtomicBool,
}

impl Run<'_> {
    /// The life of thread `index`: the blocks whose number leaves `index` when divided by `threads`.
    fn write_and_read(&self, index: u64, threads: u64, blocks: u64) {
        let plan = self.plan;
        let own = (blocks - index).div_ceil(threads);
        let mut generations = vec![0u64; own as usize];
        let mut rng = Rng::new(plan.seed, &format!("verify {index}"));
        // The first writes visit each block once. As many random writes as there are blocks would leave 37 % of them (1/e)
        // unwritten, and a fault there would not be found.
        let first_pass = Scatter::new(own, &mut rng);
        let mut done = 0;
        let block_bytes = u64::from(plan.block_bytes);
        let mut reader =
            Reader::new(self.medium, &self.shared, block_bytes, plan.sector_bytes, plan.run);
        let mut buffer = Aligned::new(plan.block_bytes as usize);
        // Every thread has the same number of epochs, so that all meet at each barrier.
        let most = plan.writes.div_ceil(threads);
        let own_writes = plan.writes / threads + u64::from(index < plan.writes % threads);
        for epoch in 0..most.div_ceil(plan.flush_every) {
            let left = own_writes.saturating_sub(epoch * plan.flush_every);
            let writes = plan.flush_every.min(left);
            for _ in 0..writes {
                if self.shared.stopped() {
                    break;
                }
                // Only a written block can be checked. Reads of any block would do nothing in half of the first pass, and there
                // would be fewer of them than the plan says.
                while done > 0 && rng.below(100) < u64::from(plan.read_percent) {
                    let at = first_pass.map(rng.below(done.min(own)));
                    let generation = generations[at as usize];
                    let right = Right { least: generation, most: generation };
                    if !reader.check(at * threads + index, right) {
                        break;
                    }
                }
                let at = if done < own { first_pass.map(done) } else { rng.below(own) };
                done += 1;
                let Some(generation) = self.write(at * threads + index, buffer.as_mut()) else {
                    break;
                };
                generations[at as usize] = generation;
            }
            if self.meet() {
                break;
            }
        }
        let written = generations.iter().filter(|generation| **generation > 0).count();
        self.shared.written_blocks.fetch_add(written as u64, Ordering::Relaxed);
        for (generation, at) in generations.iter().zip(0u64..) {
            let right = Right { least: *generation, most: *generation };
            if *generation > 0 && !reader.check(at * threads + index, right) {
                return;
            }
        }
    }

    /// Writes `block`; gives its generation.
    fn write(&self, block: u64, buffer: &mut [u8]) -> Option<u64> {
        let generation = self.shared.generation.fetch_add(1, Ordering::Relaxed) + 1;
        let offset_bytes = block * u64::from(self.plan.block_bytes);
        let sector_bytes = self.plan.sector_bytes;
        for (sector, index) in buffer.chunks_mut(sector_bytes as usize).zip(0u64..) {
            let address = offset_bytes + index * u64::from(sector_bytes);
            Stamp { address, generation, run: self.plan.run }.write(sector);
        }
        if let Some(journal) = locked(&self.journal).as_mut()
            && let Err(error) = journal.intend(block, generation)
        {
            self.shared.fail(error.into());
            return None;
        }
        if let Err(source) = self.medium.write(offset_bytes, buffer) {
            self.shared.fail(VerifyError::Target { what: "write", offset_bytes, source });
            return None;
        }
        self.shared.writes.fetch_add(1, Ordering::Relaxed);
        self.shared.done.fetch_add(1, Ordering::Relaxed);
        Some(generation)
    }

    /// Waits until nobody writes; one flushes for all. True if the run is to end.
    fn meet(&self) -> bool {
        if self.barrier.wait().is_leader() {
            self.flush();
            // Decided by one, for all: a thread that went on alone would wait forever.
            self.end.store(self.shared.stopped(), Ordering::Relaxed);
        }
        self.barrier.wait();
        self.end.load(Ordering::Relaxed)
    }

    /// Flushes the target and marks it in the journal.
    fn flush(&self) {
        if locked(&self.shared.error).is_some() {
            return;
        }
        let flushed = self.medium.flush();
        self.shared.flushes.fetch_add(1, Ordering::Relaxed);
        let generation = self.shared.generation.load(Ordering::Relaxed);
        if let Err(source) = flushed {
            let error = VerifyError::Target { what: "flush", offset_bytes: 0, source };
            return self.shared.fail(error);
        }
        if let Some(journal) = locked(&self.journal).as_mut()
            && let Err(error) = journal.mark(generation)
        {
            self.shared.fail(error.into());
        }
    }
}
