//! Carries a map out.

use ssdyno_block::Time;
use ssdyno_engine::Rng;
use ssdyno_figures::RunResult;
use ssdyno_session::Failure;
use ssdyno_workload::WorkloadConfig;

use super::load::{MapLoad, READ_BYTES, Reached, WRITE_BYTES};
use super::mesh::{FRAME, Mesh, Node, Value, WHOLE, interpolate};
use super::report::result_of;
use super::result::MapPoint;
use crate::capacity::{DEPTH_MAX, DepthRate, LoadSlice, NextDepth};
use crate::loads::{Loads, Timed, ended};
use crate::result::ProfileResult;
use crate::stopped::StoppedBecause;

/// The end of the axis of reads that is not 0: without reads there is no latency.
const READS_LEAST: f64 = 0.02;
/// The smallest number of reads of a point, if they fit: the 95th percentile of this number is
/// within about 2 %.
const READS_MIN: f64 = 4000.0;
/// Units of time of a point at least and at most, and before it counts, as a share of its length.
const POINT: (f64, f64) = (0.5, 8.0);
pub(crate) const LEAD: f64 = 0.25;
/// A point writes so many times what the write buffers of the device hold, where the time allows. A rate that exceeds the
/// sustained rate by a quarter or more then fills the buffers.
const BUFFERS: f64 = 4.0;
/// Share of the time of a map that a point may take for that.
pub(crate) const FILLING_SHARE_MAX: f64 = 0.02;
/// A point whose latency is not known to a factor of two, with as many reads or more, is measured again, so many times as
/// long. Near saturation neighbouring requests wait for the same queue, and 4000 of them say little. If that is not
/// enough, the queue did not settle: such a latency depends on the length of the load, as that of an overloaded point
/// does. The points of a queue M/M/1 beyond 97 % are among them.
const SETTLED: f64 = std::f64::consts::LN_2;
const SETTLED_READS: u64 = 1000;
const LONGER: f64 = 4.0;
/// Half the width of an interval that a load with too few reads does not have.
const UNKNOWN: f64 = 0.5;
/// Units of time of the load that tells the highest rate of reads: the greatest of the rates that the search saw is
/// the one with the most luck.
const HIGHEST: f64 = 10.0;
/// Units of time of the long writes, and stretches of them.
const LONG: f64 = 40.0;
const BINS: usize = 40;
/// Points that are drawn to see how good the finished map is.
const CHECKS: usize = 8;
/// Draws for one of them: most of the square may be overloaded.
const DRAWS_MAX: u32 = 1000;
/// The approximate number of points of a map, for a waiting reader.
const POINTS_USUAL: u64 = 80;

/// Everything of a map that is under way.
pub(crate) struct MapRun<'a> {
    pub(crate) loads: Loads<'a>,
    pub(crate) load: MapLoad,
    /// Bytes of the write buffers of the device; 0 where none are known.
    pub(crate) buffer_bytes: u64,
    /// Requests per second at saturation, reads and writes.
    pub(crate) most: [f64; 2],
    pub(crate) depths: [Vec<DepthRate>; 2],
    pub(crate) mesh: Mesh,
    pub(crate) points: Vec<(Node, MapPoint)>,
    /// Differences of points that were drawn at random; `None` where one is overloaded against prediction.
    pub(crate) checks: Vec<Option<f64>>,
}

/// Carries the map out that `loads` belong to.
pub(crate) fn execute(
    loads: Loads<'_>,
    error: f64,
) -> Result<(ProfileResult, Option<Failure>), Failure> {
    let [read_bytes, write_bytes] =
        [READ_BYTES, WRITE_BYTES].map(|bytes| loads.request_bytes(bytes));
    loads.check_span(write_bytes)?;
    let mut run = MapRun {
        buffer_bytes: loads.target.write_buffer_bytes(),
        load: MapLoad { read_bytes, write_bytes, span: loads.span },
        loads,
        most: [0.0; 2],
        depths: [Vec::new(), Vec::new()],
        mesh: Mesh::new(error),
        points: Vec::new(),
        checks: Vec::new(),
    };
    let how = run.phases();
    let (stopped, failure) = ended(how, run.loads.done == 0, run.loads.plan.method.name())?;
    Ok((result_of(&run, stopped), failure))
}

/// Both rates at `node`, in requests per second, where these are the greatest.
pub(crate) fn rates(most: [f64; 2], node: Node) -> (f64, f64) {
    let share = |at: u32| f64::from(at) / f64::from(WHOLE);
    (most[0] * (READS_LEAST + (1.0 - READS_LEAST) * share(node.0)), most[1] * share(node.1))
}

/// Of the logarithm of `p95`, which comes from `reads`. Of a queue that is nearly full often the lower end alone is known.
fn half_width(p95: f64, low: Option<f64>, high: Option<f64>, reads: u64) -> f64 {
    match (low, high) {
        (Some(low), Some(high)) => (high / low).ln() / 2.0,
        // So many reads have no upper end only if nearly all of them waited in one long queue.
        (_, None) if reads >= SETTLED_READS => f64::INFINITY,
        // The lower half stands for both if the upper end is not known. With a width of zero an
        // uncertain point would count as exact.
        (Some(low), None) => (p95 / low).ln(),
        _ => UNKNOWN,
    }
    .max(0.0)
}

/// Whether the latency of `point`, with this half width of its logarithm, depends on the length of the load.
fn is_unsettled(half: f64, point: &MapPoint) -> bool {
    half > SETTLED && point.reads >= SETTLED_READS
}

impl MapRun<'_> {
    fn phases(&mut self) -> Result<StoppedBecause, Failure> {
        // Reads of parts that were never written may not access the medium and would be too
        // fast. So the writes come first.
        for writes in [true, false] {
            if self.greatest(writes)?.is_none() {
                return Ok(StoppedBecause::TimeLimit);
            }
        }
        while let Some(node) = self.mesh.next() {
            let Some(value) = self.point(node)? else { return Ok(StoppedBecause::TimeLimit) };
            self.mesh.add(node, value);
        }
        self.check()
    }

    /// The least length of a load: 0.45 s of 3 minutes.
    fn unit(&self) -> f64 {
        self.loads.plan.time.map_or(0.45, |time| (time.as_s_f64() / 400.0).clamp(0.0025, 0.45))
    }

    /// Finds the greatest rate of reads or writes alone.
    fn greatest(&mut self, writes: bool) -> Timed<()> {
        let most = self.load.depth_most(writes, DEPTH_MAX);
        let mut search = NextDepth::default();
        let mut next = Some(1);
        let what = if writes { "writes alone" } else { "reads alone" };
        while let Some(depth) = next {
            let length = self.unit();
            let config = self.load.closed(writes, depth, self.loads.seed());
            let Some(result) = self.carry(what, &config, length)? else { return Ok(None) };
            let rate = LoadSlice::new(length, &result).rate(length / 4.0);
            next = search.take(depth, rate).filter(|next| *next <= most);
            let at = usize::from(writes);
            // The rates are kept after every load. A map that is interrupted during the search then
            // contains the findings so far.
            (self.depths[at], self.most[at]) = (search.depths.clone(), search.best());
        }
        if !writes {
            let length = HIGHEST * self.unit();
            let config = self.load.closed(false, search.depth, self.loads.seed());
            let Some(result) = self.carry(what, &config, length)? else { return Ok(None) };
            self.most[0] = LoadSlice::new(length, &result).rate(length / 4.0);
            return Ok(Some(()));
        }
        let length = LONG * self.unit();
        let config = self.load.closed(true, search.depth, self.loads.seed());
        let Some(result) = self.carry("long writes", &config, length)? else { return Ok(None) };
        let slice = LoadSlice::new(length, &result);
        self.loads.filled = slice.requests * self.load.write_bytes;
        // A write cache may absorb the first half of the long write. The second half is nearer
        // to what the device sustains.
        self.most[1] = slice.rate(length / 2.0);
        if crate::capacity::still_falls(&slice.rates(BINS)) {
            self.loads.notes.push(
                "the write rate was still falling when its maximum was measured: points near it \
                 may be overloaded in longer loads; allow more `time`"
                    .to_owned(),
            );
        }
        Ok(Some(()))
    }

    /// Loads the target at `node`. A point that seems overloaded is measured again: a pause of the device must not hide
    /// the area beyond it. So is a point whose latency is uncertain.
    fn point(&mut self, node: Node) -> Timed<Value> {
        let Some((mut point, mut value)) = self.load_once(node, 1.0)? else { return Ok(None) };
        let times = match value {
            Value::Overloaded => Some(1.0),
            Value::Latency(_, half) => is_unsettled(half, &point).then_some(LONGER),
        };
        if let Some(times) = times {
            let Some(again) = self.load_once(node, times)? else { return Ok(None) };
            (point, value) = again;
        }
        if let Value::Latency(_, half) = value
            && is_unsettled(half, &point)
        {
            (point, value) = (point.without_latency(), Value::Overloaded);
        }
        self.points.push((node, point));
        if self.loads.checkpoint.is_due() {
            let result = result_of(self, StoppedBecause::Interrupted);
            self.loads.observer.checkpoint(&result);
        }
        Ok(Some(value))
    }

    /// Seconds in which writes at this rate fill the buffers of the device several times, as far as the time of the map allows;
    /// rates below the coarse grid get no more time than its lowest rate.
    fn filling(&self, writes: f64) -> f64 {
        // All loads begin with an empty buffer. It takes the writes of a short point at any rate, and
        // a rate that the device does not sustain would not seem overloaded.
        if writes <= 0.0 || self.buffer_bytes == 0 {
            return 0.0;
        }
        let rate = writes.max(self.most[1] / f64::from(FRAME)) * self.load.write_bytes as f64;
        let time = self.loads.plan.time.map_or(f64::INFINITY, Time::as_s_f64);
        (BUFFERS * self.buffer_bytes as f64 / rate).min(FILLING_SHARE_MAX * time)
    }

    /// A load of `times` the usual length.
    fn load_once(&mut self, node: Node, times: f64) -> Timed<(MapPoint, Value)> {
        let (reads, writes) = rates(self.most, node);
        let unit = self.unit();
        // A percentile needs a number of reads and not a time. The bounds keep a slow point
        // from using up the time, and make a fast point long enough to show a queue that grows.
        let usual = (READS_MIN / reads).clamp(POINT.0 * unit, POINT.1 * unit);
        let length = times * usual.max(self.filling(writes));
        let lead = LEAD * length;
        let config = self.load.open(reads, writes, lead, self.loads.seed());
        let bytes = self.load.write_bytes as f64;
        let what = format!(
            "{} reads/s, {} written",
            ssdyno_figures::rate(reads),
            ssdyno_figures::bytes_per_second(writes * bytes)
        );
        let Some(result) = self.carry(&what, &config, lead + length)? else { return Ok(None) };
        let reached = Reached::new(&result, reads + writes, lead, length);
        let latency = reached.p95_us.filter(|_| !reached.overloaded);
        let point = MapPoint {
            read_iops: reads,
            write_bytes_per_second: writes * bytes,
            overloaded: latency.is_none(),
            measured: true,
            read_iops_reached: Some(reached.reads),
            write_bytes_per_second_reached: Some(reached.writes * bytes),
            read_p95_us: latency.map(|latency| latency.0),
            low_us: latency.and_then(|latency| latency.1),
            high_us: latency.and_then(|latency| latency.2),
            reads: reached.counted,
        };
        let value = match latency {
            Some((p95, low, high)) => {
                Value::Latency(p95.ln(), half_width(p95, low, high, reached.counted))
            }
            None => Value::Overloaded,
        };
        Ok(Some((point, value)))
    }

    /// Measures points that took no part in the choice of others.
    fn check(&mut self) -> Result<StoppedBecause, Failure> {
        let triangles = self.mesh.triangles();
        let place = |node: Node| (f64::from(node.0), f64::from(node.1));
        let mut rng = Rng::new(self.loads.plan.seed, "map checks");
        for _ in 0..CHECKS {
            let drawn = (0..DRAWS_MAX).find_map(|_| {
                let mut at = || rng.below(u64::from(WHOLE) + 1) as u32;
                let node = (at(), at());
                let log = |node| self.mesh.value(node).and_then(Value::latency);
                // A point that decided about a triangle agrees with the map by construction.
                // Only a new point can show an error of the map.
                let is_new = self.mesh.value(node).is_none();
                let log = interpolate(&triangles, place, log, place(node)).filter(|_| is_new)?;
                Some((node, log))
            });
            let Some((node, log)) = drawn else { break };
            let Some(value) = self.point(node)? else { break };
            self.checks.push(match value {
                Value::Latency(found, _) => Some((found - log).abs()),
                Value::Overloaded => None,
            });
        }
        Ok(StoppedBecause::WithinError)
    }

    /// Loads the target for `length` seconds; nothing where the time limit comes first.
    fn carry(&mut self, what: &str, config: &WorkloadConfig, length: f64) -> Timed<RunResult> {
        // The lead of a point is not recorded but takes time on the device. So the whole length
        // counts at least.
        self.loads.carry(what.to_owned(), POINTS_USUAL, config, length, length)
    }
}
