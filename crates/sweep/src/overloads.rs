//! Overloaded designs: what a reader of their table must know.

use ssdyno_block::counted;
use ssdyno_figures::DEPTH_ENOUGH;

use crate::designs::Sampling;
use crate::latencies::needs_capacity;
use crate::plan::SweepPlan;
use crate::row::{DesignState, SweepRow};

/// How many designs with figures are overloaded.
pub(crate) fn overloaded(rows: &[SweepRow]) -> u64 {
    let is_over = |row: &&SweepRow| row.overloaded && row.state == DesignState::Done;
    rows.iter().filter(is_over).count() as u64
}

/// The note about overloaded designs; `None` without any, and for a bisection, which loads beyond the limit on purpose.
pub(crate) fn note(plan: &SweepPlan, rows: &[SweepRow]) -> Option<String> {
    let count = overloaded(rows);
    if count == 0 || plan.sampling == Sampling::Bisection {
        return None;
    }
    let what = match needs_capacity(&plan.objectives, &plan.require) {
        true => {
            "The front leaves these designs out, and so do the effects on figures other than rates and costs: \
             the means at two values can then cover different designs. Lower the rate to rank them"
        }
        false => "All objectives are rates or costs, so these designs are ranked like the others",
    };
    let overloaded = if count == 1 { "is overloaded" } else { "are overloaded" };
    // The depth of a load may be the limit, and not the target. The smallest one is the first to ask about.
    let limits = rows.iter().filter(|row| row.overloaded).filter_map(|row| row.outstanding_limit);
    let limit = limits.min().filter(|limit| *limit < DEPTH_ENOUGH);
    let limit = limit.map_or_else(String::new, |limit| {
        let requests = counted(limit, "request is", "requests are");
        format!(". At most {requests} outstanding: a greater depth (`-d`) may raise the rates")
    });
    Some(format!(
        "{} {overloaded}: requests arrive faster than the target completes them, so latencies grow with the length of \
         the run{limit}. {what}",
        counted(count, "design", "designs")
    ))
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::KeepGoing;

    use crate::plan::SweepPlan;
    use crate::row::{Standing, SweepResult};
    use crate::{html, text};

    /// One request each 10 µs: the device serves 100 000 a second, and the third rate is half as much again.
    fn swept(objectives: &str, more: &str) -> SweepResult {
        let plan = format!(
            "vary = [\"workload.arrivals.rate=30000,50000,150000\"]\nobjectives = {objectives}\n{more}\n[run]\n\
             target = \"sim:delay-10us\"\nrequests = 5000\n\
             set = [\"workload.arrivals.kind=poisson\", \"workload.depth=100000\"]\n"
        );
        let plan = SweepPlan::from_toml("plan.toml", &plan).unwrap();
        let sweep = plan.prepare(&mut ssdyno_session::Unattended).unwrap();
        sweep.execute(&mut |_| KeepGoing::Continue).unwrap().0
    }

    fn standings(result: &SweepResult) -> Vec<Standing> {
        result.rows.iter().filter_map(|row| row.standing).collect()
    }

    #[test]
    fn an_overloaded_design_is_on_no_front_by_a_latency() {
        use Standing::{Dominated, Front, Overloaded};
        // By IOPS the overloaded rate is the best of all.
        let result = swept("[\"p99\", \"iops\"]", "");
        assert_eq!(standings(&result), [Front, Front, Overloaded], "{:?}", result.rows);
        assert_eq!(result.overloaded, 1);
        let levels = |figure: &str| {
            let effect = result.effects.iter().find(|effect| effect.figure == figure);
            effect.map(|effect| effect.levels.len())
        };
        assert_eq!((levels("latency_ns.p99"), levels("iops")), (Some(2), Some(3)));
        let [text, page] = [text(&result, 5), html(&result, &|_| None)];
        for told in [&text, &page] {
            assert!(told.contains("1 design is overloaded: requests arrive faster"), "{told}");
            assert!(told.contains("leaves these designs out"), "{told}");
        }
        assert!(text.contains("; 1 overloaded"), "{text}");
        assert!(page.contains("<td>overloaded</td>"), "{page}");
        // A bound of a latency is a latency, too.
        let result = swept("[\"iops\"]", "require = [\"p99<10s\"]");
        assert_eq!(standings(&result), [Dominated, Front, Overloaded]);
    }

    #[test]
    fn throughput_alone_ranks_overloaded_designs_with_a_warning() {
        let result = swept("[\"iops\"]", "");
        assert_eq!(result.front()[0].design, 2);
        assert!(text(&result, 5).contains("ranked like the others"));
    }
}
