//! The cost of one request in the tool itself: CPU time of a short run of the load where the target costs nothing
//! (S4-45).
//!
//! The loop is that of a job and records the same data. Its rows go to memory of the same kind: reused memory if a
//! writer returns chunks, new memory from the system if rows stay in memory, where each page costs a fault. Its
//! statistics are as coarse as those of a run of some seconds. CPU time is read after every few thousand requests. The
//! first stretches warm caches and branch predictors up; of the others the middle one counts, so that one that is
//! interrupted does not.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ssdyno_block::Request;
use ssdyno_figures::Keep;
use ssdyno_record::Tape;
use ssdyno_workload::{Source, TargetFacts, WorkloadConfig};

use crate::cost::{Usage, thread_cpu_ns};
use crate::engine::null::Null;
use crate::engine::{Engine, Outcome};
use crate::error::BenchError;
use crate::job::{Job, drive};
use crate::method::Method;

/// Requests of a stretch, and how many stretches there are; in all a millisecond or two, which is part of what a
/// run costs.
const STRETCH: u64 = 4_096;
const STRETCHES: usize = 13;
/// The parts in which everything settles.
const SETTLING: usize = 4;
const REQUESTS: u64 = STRETCH * STRETCHES as u64;
/// Requests of a run of some seconds. To end a slice of the statistics takes microseconds, and a slice of 53 000
/// requests has a thousand of them: 8 of 27 ns, which a run pays only in its beginning.
const LONG_RUN: u64 = 1 << 24;

/// CPU time in ns of a request of `source` that costs nothing; `keep` decides what is kept of it; `written`: whether
/// rows are passed to a writer meanwhile.
pub(crate) fn ns_by_request(source: &Source, keep: Keep, written: bool) -> Result<f64, BenchError> {
    let depth = match source {
        Source::Generator(config) if config.is_closed_loop() => config.outstanding_limit(),
        _ => Some(32),
    };
    let depth = depth.unwrap_or(1).clamp(1, 1_024) as u32;
    let tape = Arc::new(Mutex::new(Some(tape(keep, written))));
    let stretches = stretches(depth, &tape)?;
    let mut costs: Vec<f64> = stretches.iter().skip(SETTLING).map(|cost| cost.ns).collect();
    // The middle stretch counts: one that an interrupt or another program hit is far off and
    // does not move the median.
    costs.sort_by(f64::total_cmp);
    Ok(costs.get(costs.len() / 2).copied().unwrap_or(0.0))
}

/// What is recorded to.
fn tape(keep: Keep, written: bool) -> Tape {
    let mut tape = Tape::new(keep, None, false);
    tape.grow_to(LONG_RUN);
    // Rows that stay in memory cost a page fault for each 256. Without fresh memory the overhead
    // was reported as 20.6 ns when a run paid 31.
    tape.take_fresh_memory();
    if written {
        // As the chunks that a writer gives back: used before.
        tape.prepare(REQUESTS as usize);
    }
    tape
}

/// The cost of a request in a stretch.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// CPU time.
    ns: f64,
    /// Pages of memory that were used for the first time.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test holds it against that of a run"))]
    page_faults: f64,
}

/// The cost of a request in each stretch of a load that `tape` records.
fn stretches(depth: u32, tape: &Arc<Mutex<Option<Tape>>>) -> Result<Vec<Cost>, BenchError> {
    // The mix costs next to nothing; depth decides, because the clock is read once a batch.
    let config = WorkloadConfig {
        depth: Some(depth),
        requests: Some(REQUESTS),
        ..WorkloadConfig::default()
    };
    let facts = TargetFacts { capacity_bytes: 1 << 40, sector_bytes: 512 };
    let workload = config.build(&facts, 1)?;
    let mut job = Job::alone(workload, depth, Method::Default.strategy(), Arc::clone(tape));
    let mut engine = Stretched {
        null: Null::default(),
        requests: 0,
        began_ns: thread_cpu_ns(),
        page_faults: Usage::of_thread().page_faults,
        costs: Vec::with_capacity(STRETCHES),
    };
    drive(&mut job, &mut engine);
    Ok(engine.costs)
}

/// A target that completes everything at once, and reads the CPU time of its thread now and then.
struct Stretched {
    null: Null,
    /// Of the present stretch.
    requests: u64,
    began_ns: u64,
    /// Of the thread, when it began.
    page_faults: u64,
    costs: Vec<Cost>,
}

impl Stretched {
    #[cold]
    fn end_stretch(&mut self) {
        // CPU time and not elapsed time: another program on the core must not look like a cost
        // of this one.
        let (now_ns, page_faults) = (thread_cpu_ns(), Usage::of_thread().page_faults);
        let each = |amount: u64| amount as f64 / self.requests as f64;
        self.costs.push(Cost {
            ns: each(now_ns.saturating_sub(self.began_ns)),
            page_faults: each(page_faults - self.page_faults),
        });
        (self.requests, self.began_ns, self.page_faults) = (0, now_ns, page_faults);
    }
}

impl Engine for Stretched {
    const HANDS_OVER: bool = Null::HANDS_OVER;

    #[inline]
    fn push(&mut self, slot: u32, request: &Request) {
        self.null.push(slot, request);
    }

    #[inline]
    fn turn(&mut self, want: u32, wait: Option<Duration>) -> io::Result<()> {
        self.null.turn(want, wait)
    }

    fn ready(&mut self, want: u32) -> io::Result<bool> {
        self.null.ready(want)
    }

    #[inline]
    fn reap(&mut self, each: impl FnMut(u32, Outcome)) {
        if self.requests >= STRETCH {
            self.end_stretch();
        }
        self.requests += self.null.reapable();
        self.null.reap(each);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_overhead_is_found() {
        let source = Source::Generator(WorkloadConfig::default());
        for (keep, written) in [(Keep::All, true), (Keep::None, false), (Keep::Summary, false)] {
            let found = ns_by_request(&source, keep, written).unwrap();
            assert!(found > 1.0 && found < 100_000.0, "{found} ns");
        }
        assert_eq!(stretches(32, &shared(tape(Keep::None, false))).unwrap().len(), STRETCHES - 1);
    }

    fn shared(tape: Tape) -> Arc<Mutex<Option<Tape>>> {
        Arc::new(Mutex::new(Some(tape)))
    }

    /// A run of 2^24 requests ends 64 + 32 x 14 slices, one in 32 000 requests: hardly one in those of the
    /// overhead. So few requests by themselves end one in 215 (half of them are joined to others meanwhile).
    #[test]
    fn the_overhead_ends_as_few_slices_as_a_long_run() {
        let slices = |tape| {
            let tape = shared(tape);
            stretches(32, &tape).unwrap();
            tape.lock().unwrap().as_ref().unwrap().slices()
        };
        for keep in [Keep::Summary, Keep::All, Keep::None] {
            assert_eq!(slices(tape(keep, false)), 0, "{keep:?}");
        }
        let young = slices(Tape::new(Keep::Summary, None, false));
        assert!((32..=64).contains(&young), "{young}");
    }

    /// Page faults per request of a job on `null:` after its first `prepared` requests, whose memory was prepared: the
    /// difference between loads of four times and twice as many requests.
    fn faults_on_null(keep: Keep) -> f64 {
        let prepared = 1u64 << 18;
        let load = |requests: u64| {
            let config = WorkloadConfig {
                depth: Some(32),
                requests: Some(requests),
                ..WorkloadConfig::default()
            };
            let facts = TargetFacts { capacity_bytes: 1 << 40, sector_bytes: 512 };
            let mut tape = Tape::new(keep, None, false);
            tape.prepare(prepared as usize);
            let tape = Arc::new(Mutex::new(Some(tape)));
            let workload = config.build(&facts, 1).unwrap();
            let mut job = Job::alone(workload, 32, Method::Default.strategy(), Arc::clone(&tape));
            let before = Usage::of_thread().page_faults;
            drive(&mut job, &mut Null::default());
            (Usage::of_thread().page_faults - before) as f64
        };
        (load(4 * prepared) - load(2 * prepared)) / (2 * prepared) as f64
    }

    /// The overhead includes the cost of a run's memory for rows: the same number of page faults per request, one in
    /// 256 with pages of 4 KiB; and none if rows go to reused memory, or if there are no rows. Tolerance: a fifth.
    ///
    /// In a process of its own: memory that another test gave back costs no page fault any more.
    #[test]
    fn the_overhead_has_the_page_faults_of_a_run() {
        const ALONE: &str = "SSDYNO_TEST_ALONE";
        if std::env::var_os(ALONE).is_some() {
            return page_faults_of_the_overhead_and_of_a_run();
        }
        let name = "linux::overhead::tests::the_overhead_has_the_page_faults_of_a_run";
        let mut alone = Command::new(std::env::current_exe().unwrap());
        let alone = alone.args(["--exact", name]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&alone.stdout);
        assert!(alone.status.success() && said.contains("1 passed"), "{said}");
    }

    fn page_faults_of_the_overhead_and_of_a_run() {
        let found = |keep, written| {
            let costs = stretches(32, &shared(tape(keep, written))).unwrap();
            let settled = costs[SETTLING..].iter().map(|cost| cost.page_faults);
            settled.sum::<f64>() / (costs.len() - SETTLING) as f64
        };
        let (told, paid) = (found(Keep::All, false), faults_on_null(Keep::All));
        let each = 16.0 / rustix::param::page_size() as f64;
        assert!(paid > 0.8 * each && paid < 1.2 * each, "{paid} by request of a run");
        assert!(told > 0.8 * paid && told < 1.2 * paid, "{told} in the overhead, {paid} in a run");
        let (written, summary) = (found(Keep::All, true), found(Keep::Summary, false));
        assert!(written < 0.2 * each && summary < 0.2 * each, "{written} {summary}");
        assert!(faults_on_null(Keep::Summary) < 0.05 * each);
    }
}
