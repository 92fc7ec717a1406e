//! The plan of a profile.

use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_engine::Rng;
use ssdyno_session::{
    Failure, KeptTarget, Prepared, Prompt, RunSpec, is_real, refuse_workload_keys, resolve,
    settings,
};
use ssdyno_workload::{AddressPattern, Pattern, TargetFacts, WorkloadConfig};

use crate::adaptive::Adaptive;
use crate::capacity;
use crate::error::refused;
use crate::full::Full;
use crate::map;
use crate::measure::{ProfileOp, ProfileTest};
use crate::method::Method;
use crate::serra::Serra;
use crate::sizes::{SizeInterval, Sizes, default_sizes};
use crate::solution;
use crate::strategy::{Slice, Strategy};

/// The span of the paper's last and largest file: 1200 MB, from which on curves are stable (S2-8).
pub const DEFAULT_SPAN: Bytes = Bytes(1200 << 20);

/// Errors that a map can have: its points are not nearer to each other than the least.
const MAP_ERROR: (f64, f64) = (0.01, 0.5);

/// The target that takes everything and keeps nothing.
const NULL: &str = "null:";

/// A profile and how it goes about it.
#[derive(Clone, PartialEq, Debug)]
pub struct ProfilePlan {
    /// Name of the target in results.
    pub target: String,
    /// How sizes are chosen.
    pub method: Method,
    /// Which ratios are wanted. Without [`ProfileOp::Write`] nothing is ever written.
    pub ops: Vec<ProfileOp>,
    /// Request sizes, as intervals.
    pub sizes: Vec<SizeInterval>,
    /// Bytes from the start of the target that every test accesses. Default: [`DEFAULT_SPAN`], or the whole of
    /// a smaller target.
    pub span: Option<Bytes>,
    /// Requests outstanding, 1 or more; 1 in the paper.
    pub depth: u32,
    /// Further depths, each profiled as well; empty with [`Method::Capacity`] and
    /// [`Method::Map`], which search for their own.
    pub more_depths: Vec<u32>,
    /// Name of the solution that the capacity stands for in systemd's hardware database: letters (a to z), digits, `-`
    /// and `_`. For [`Method::Capacity`]; `None` stands for `ssdyno`.
    pub solution: Option<String>,
    /// Time that the tests may take together on the clock of the device; `None`: as long as they need.
    pub time: Option<Time>,
    /// Ratios from which an optimisation pays, for the advice (S2-18); above 0.
    pub threshold: Option<f64>,
    /// Decides about everything random.
    pub seed: u64,
}

impl ProfilePlan {
    /// Reads and writes of `target` with the usual sizes, span and depth, without a time limit.
    pub fn new(target: impl Into<String>, method: Method) -> ProfilePlan {
        ProfilePlan {
            target: target.into(),
            method,
            ops: vec![ProfileOp::Read, ProfileOp::Write],
            sizes: default_sizes(),
            span: None,
            depth: 1,
            more_depths: Vec::new(),
            solution: None,
            time: None,
            threshold: None,
            seed: 1,
        }
    }

    /// Opens the target of the plan, as [`resolve`](ProfilePlan::resolve) prepares it.
    ///
    /// # Errors
    /// Those of [`resolve`](ProfilePlan::resolve), and the target cannot be opened.
    pub fn open(&self, spec: &RunSpec, prompt: &mut dyn Prompt) -> Result<KeptTarget, Failure> {
        self.resolve(spec, prompt)?.keep()
    }

    /// Prepares the target of the plan. `spec` sets the path before it, the way it is loaded and the permission to
    /// write; its load does not matter. Without writes in the plan the target is opened read-only.
    ///
    /// # Errors
    /// The plan is impossible, there is no such target, an option does not go with it, or it may not be written to.
    pub fn resolve(&self, spec: &RunSpec, prompt: &mut dyn Prompt) -> Result<Prepared, Failure> {
        // An impossible plan is refused first. The rest of this function may create a file or
        // ask for a serial number, and both would be in vain.
        self.check()?;
        let help = "its tests are fixed; `sizes`, `span` and `depth` set them";
        refuse_workload_keys(&settings(&spec.set)?, "the profile", help)?;
        // `capacity` and `map` search for their depth, so the target is prepared for the greatest
        // one.
        let depth = match self.method {
            Method::Capacity { .. } | Method::Map { .. } => capacity::DEPTH_MAX,
            _ => self.depths().into_iter().max().unwrap_or(1),
        };
        let writes = self.ops.contains(&ProfileOp::Write);
        let mut spec = spec.of_many_loads(&self.target, "profile", depth, self.seed);
        if is_real(&spec)? {
            if writes && !spec.write.allowed && self.target != NULL {
                let help = "add `ops=read` to measure reads alone, which writes nothing; or add `write.allowed`: \
                            everything in the span on the target will be lost";
                return Err(Failure::usage("the write tests overwrite the target")
                    .with_help(help)
                    .with_key("write.allowed"));
            }
            // Without write tests the target is opened read-only, also if the user
            // allowed writes. The system then refuses a write that a defect of this
            // program would issue.
            spec.write.allowed &= writes;
        }
        resolve(&spec, prompt)
    }

    /// The span in bytes on a target of `facts`; `notes` says where it is not the usual one.
    ///
    /// # Errors
    /// Something of the plan is impossible, or does not go with the target.
    pub(crate) fn span_on(
        &self,
        facts: &TargetFacts,
        notes: &mut Vec<String>,
    ) -> Result<u64, Failure> {
        self.check()?;
        let sector = u64::from(facts.sector_bytes);
        let capacity = facts.capacity_bytes / sector * sector;
        let span = match self.span {
            Some(span) if span.0 > capacity => {
                let what = format!("`span={span}` is larger than the target, {capacity} bytes");
                let help = "make the span smaller, or leave `span` out to use the whole target";
                return Err(refused(what, help));
            }
            Some(span) if !span.0.is_multiple_of(sector) || span.0 == 0 => {
                let what = format!("`span={span}` is not a positive multiple of the sector");
                return Err(refused(what, format!("the sector has {sector} bytes")));
            }
            Some(span) => span.0,
            // A capacity is that of the whole target. Seeks over a part of a disk are short,
            // and a part of an SSD has all of its spare blocks, so a part would be too fast.
            None if matches!(self.method, Method::Capacity { .. } | Method::Map { .. }) => capacity,
            None if capacity < DEFAULT_SPAN.0 => {
                notes.push(format!(
                    "the target is smaller than the usual span of {DEFAULT_SPAN}: the tests use all of it, \
                     {capacity} bytes"
                ));
                capacity
            }
            None => DEFAULT_SPAN.0,
        };
        for interval in &self.sizes {
            for size in interval.sizes() {
                if !size.is_multiple_of(sector) {
                    let what = format!(
                        "`sizes={interval}` has requests of {}, which is not a multiple of the sector",
                        Bytes(size)
                    );
                    let help = format!("use multiples of {} B, for the gap too", sector);
                    return Err(refused(what, help));
                }
                if size > span {
                    let what = format!(
                        "`sizes={interval}` has requests of {}, larger than the span of {}",
                        Bytes(size),
                        Bytes(span)
                    );
                    let help = "end the interval at a smaller size, or make `span` larger";
                    return Err(refused(what, help));
                }
            }
        }
        let largest = self.sizes.iter().flat_map(SizeInterval::sizes).max();
        // A test accesses every record once. With fewer records than outstanding requests the
        // queue would never be full, and the figure would be that of another depth.
        if let (Some(largest), Some(depth)) = (largest, self.depths().into_iter().max())
            && u64::from(depth) > span / largest
        {
            let what = format!(
                "`depth={depth}` is more than the {} requests of {} that fit into the span of {}",
                span / largest,
                Bytes(largest),
                Bytes(span)
            );
            let help = "use a smaller depth, leave large `sizes` out, or make `span` larger";
            return Err(refused(what, help));
        }
        Ok(span)
    }

    pub(crate) fn check(&self) -> Result<(), Failure> {
        let refuse = |what: &str, help: &str| Err(refused(what, help));
        match self.method {
            Method::Serra { points, .. } if points < 2 => {
                return refuse("`points` is below 2", "a line needs two points: use 2 or more");
            }
            Method::Serra { repeat: 0, .. } => {
                return refuse("`repeat` is 0", "measure each test once or more");
            }
            Method::Full { error } | Method::Adaptive { error } | Method::Capacity { error }
                if !(error > 0.0 && error < 1.0) =>
            {
                let help = "use a percentage above 0 and below 100, such as 10%";
                return refuse("`error` is not between 0 % and 100 %", help);
            }
            Method::Map { error } if !(MAP_ERROR.0..=MAP_ERROR.1).contains(&error) => {
                let help = "use a percentage from 1 to 50, such as 10%";
                return refuse("`error` of a map is not between 1 % and 50 %", help);
            }
            Method::Map { .. } if self.ops.len() < 2 => {
                let help = "leave `ops` out; it writes over the span, so a real target needs \
                            `write.allowed`";
                return refuse("`method=map` needs reads and writes", help);
            }
            Method::Map { .. } if self.time.is_some_and(|time| time < map::TIME_MIN) => {
                let help = "allow 1s or more; 3min is the default";
                return refuse("`time` is too short for a map", help);
            }
            _ => {}
        }
        if self.ops.is_empty() {
            return refuse("`ops` is empty", "use read, write or read,write");
        }
        let capacity = matches!(self.method, Method::Capacity { .. });
        let map = matches!(self.method, Method::Map { .. });
        if capacity && !self.ops.contains(&ProfileOp::Read) {
            let help = "use `ops=read`, or leave it out";
            return refuse("`method=capacity` without reads has too few figures", help);
        }
        if let Some(name) = &self.solution {
            if !capacity {
                let help = "leave it out, or profile with `method=capacity`";
                return refuse("`solution` is for `method=capacity`", help);
            }
            solution::check(name)?;
        }
        if self.sizes.is_empty() && !capacity && !map {
            return refuse("`sizes` is empty", "use an interval, such as 8KiB..64KiB/8KiB");
        }
        let depths = self.depths();
        if depths.contains(&0) {
            return refuse("`depth` is 0", "depth must be at least 1");
        }
        if let Some(depth) = (1..depths.len()).find(|at| depths[..*at].contains(&depths[*at])) {
            let what = format!("`depth` has {} twice", depths[depth]);
            return refuse(&what, "give each depth once, such as 1,8");
        }
        if self.time == Some(Time::ZERO) {
            return refuse("`time` is 0", "allow some time, such as 3min");
        }
        if self.threshold.is_some_and(|ratio| !(ratio > 0.0 && ratio.is_finite())) {
            return refuse("`threshold` is not a ratio", "use a number above 0, such as 1.5");
        }
        Ok(())
    }

    /// All depths, in the order that was given.
    pub fn depths(&self) -> Vec<u32> {
        [&[self.depth], &self.more_depths[..]].concat()
    }

    /// A plan for each depth.
    pub(crate) fn of_depths(&self) -> Vec<ProfilePlan> {
        let of = |depth| ProfilePlan { depth, more_depths: Vec::new(), ..self.clone() };
        self.depths().into_iter().map(of).collect()
    }

    /// The decisions of its method, where a whole test has `span` bytes. [`Method::Capacity`] and [`Method::Map`] have
    /// loads of their own; their goal is that of `adaptive`.
    pub(crate) fn strategy(&self, span: u64) -> Box<dyn Strategy> {
        let (sizes, tests) = (Sizes::new(&self.sizes), ProfileTest::of(&self.ops));
        match self.method {
            Method::Adaptive { error } | Method::Capacity { error } | Method::Map { error } => {
                Box::new(Adaptive::new(sizes, tests, self.ops.clone(), error, span, self.seed))
            }
            Method::Serra { points, repeat } => {
                Box::new(Serra::new(sizes, tests, points, repeat, self.seed))
            }
            Method::Full { error } => Box::new(Full::new(sizes, tests, error)),
        }
    }

    /// The load of a test: every record of the span once (S2-7). A rest of the span that is less than a record is left
    /// out.
    pub(crate) fn load(&self, test: ProfileTest, size: u64, span: u64) -> WorkloadConfig {
        // A rest of the span below one record is left out. A shorter last request would mix two
        // sizes in one access time.
        let records = span / size;
        let reads = test.op() == ProfileOp::Read;
        WorkloadConfig {
            depth: Some(self.depth),
            read_percent: Some(if reads { 100.0 } else { 0.0 }),
            write_percent: Some(if reads { 0.0 } else { 100.0 }),
            block_size: Some(Bytes(size)),
            address: AddressPattern {
                pattern: if test.is_random() { Pattern::RandomOnce } else { Pattern::Sequential },
                length: Some(Bytes(records * size)),
                ..AddressPattern::default()
            },
            requests: Some(records),
            ..WorkloadConfig::default()
        }
    }

    /// The load of a slice of a test. A random slice takes records of the whole span; a sequential one begins at a
    /// random record. All records where the span has no more. Its lead is in the same load: between two loads a device
    /// may empty its cache.
    pub(crate) fn slice(
        &self,
        test: ProfileTest,
        size: u64,
        span: u64,
        slice: Slice,
        seed: u64,
    ) -> WorkloadConfig {
        let mut load = self.load(test, size, span);
        let (all, records) = (slice.lead.saturating_add(slice.requests), span / size);
        // The slice is the whole test then. A record that is accessed twice could come
        // from a cache (S2-7).
        if all >= records {
            return load;
        }
        load.requests = Some(all);
        if !test.is_random() {
            // Slices that all begin at the start of the span would measure one zone of a disk,
            // and would find their data in the cache.
            let start = Rng::new(seed, "profile slice").below(records - all + 1) * size;
            load.address.start = Bytes(start);
            load.address.length = Some(Bytes(all * size));
        }
        load
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const FACTS: TargetFacts = TargetFacts { capacity_bytes: 64 << 20, sector_bytes: 4096 };

    /// Reads of all default sizes of `sim:x`.
    pub(crate) fn plan() -> ProfilePlan {
        let method = Method::Serra { points: 2, repeat: 1 };
        ProfilePlan { ops: vec![ProfileOp::Read], ..ProfilePlan::new("sim:x", method) }
    }

    #[test]
    fn the_span_is_that_of_the_paper_or_the_target() {
        let mut notes = Vec::new();
        assert_eq!(plan().span_on(&FACTS, &mut notes).unwrap(), 64 << 20);
        assert!(notes[0].contains("smaller than the usual span of 1200MiB"), "{notes:?}");
        let large = TargetFacts { capacity_bytes: 1 << 40, ..FACTS };
        assert_eq!(plan().span_on(&large, &mut Vec::new()).unwrap(), 1200 << 20);
        let load = plan().load(ProfileTest::RandomRead, 24 << 10, 64 << 20);
        assert_eq!(load.requests, Some(2730));
        assert_eq!(load.address.length, Some(Bytes(2730 * (24 << 10))));
        assert!(load.build(&FACTS, 1).is_ok());
    }

    #[test]
    fn what_is_impossible_is_said_with_its_key() {
        let sizes = |text: &str| vec![text.parse().unwrap()];
        let cases = [
            (ProfilePlan { span: Some(Bytes(1 << 30)), ..plan() }, "`span=1GiB` is larger"),
            (ProfilePlan { span: Some(Bytes(5000)), ..plan() }, "`span=5000B` is not a positive"),
            (ProfilePlan { span: Some(Bytes(0)), ..plan() }, "`span=0B` is not a positive"),
            (ProfilePlan { span: Some(Bytes(1 << 20)), ..plan() }, "larger than the span of 1MiB"),
            (ProfilePlan { sizes: sizes("1KiB..4KiB/1KiB"), ..plan() }, "multiple of the sector"),
            (ProfilePlan { sizes: Vec::new(), ..plan() }, "`sizes`"),
            (ProfilePlan { ops: Vec::new(), ..plan() }, "`ops`"),
            (ProfilePlan { depth: 0, ..plan() }, "`depth`"),
            (ProfilePlan { more_depths: vec![0], ..plan() }, "`depth` is 0"),
            (ProfilePlan { more_depths: vec![8, 8], ..plan() }, "`depth` has 8 twice"),
            (ProfilePlan { time: Some(Time::ZERO), ..plan() }, "`time`"),
            (ProfilePlan { threshold: Some(f64::NAN), ..plan() }, "`threshold`"),
            (ProfilePlan { method: Method::Serra { points: 1, repeat: 1 }, ..plan() }, "`points`"),
            (ProfilePlan { method: Method::Serra { points: 2, repeat: 0 }, ..plan() }, "`repeat`"),
            (ProfilePlan { method: Method::Full { error: 0.0 }, ..plan() }, "`error`"),
            (ProfilePlan { method: Method::Full { error: 1.0 }, ..plan() }, "`error`"),
        ];
        for (plan, said) in cases {
            let error = plan.span_on(&FACTS, &mut Vec::new()).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
            assert!(error.help.is_some_and(|help| !help.is_empty()));
        }
    }
}
