//! Jobs that search for the depth at which latencies stay below a target (fio: `latency_target`).

use super::load::Load;
use super::reader::{Answer, Reader};
use super::values;
use super::values::percent;
use crate::LatencyTarget;

impl Reader<'_> {
    /// The latencies that the depth of the job is to meet.
    pub(super) fn latency_target(
        &mut self,
        load: &Load,
        notes: &mut Vec<String>,
    ) -> Answer<Option<LatencyTarget>> {
        let time = |text: &str| values::time(text, "us");
        let window = self.value(&["latency_window"], "a time in us, or such as 5s", time)?;
        let percentile = self.value(&["latency_percentile"], "0 to 100, such as 99.9", percent)?;
        let keeps_adapting = self.switch("latency_run")?;
        let latency = self.value(&["latency_target"], "a time in us, or such as 50ms", time)?;
        // 0 switches it off in fio.
        let Some(latency) = latency.filter(|latency| latency.as_ps() > 0) else {
            for name in ["latency_window", "latency_percentile", "latency_run"] {
                if self.find(&[name]).is_some() {
                    notes.push(format!("{name} has no effect without a latency_target"));
                }
            }
            return Ok(None);
        };
        let Some(window) = window else {
            let what = "latency_target needs a latency_window, the duration of a try";
            return self.wrong(what, "add latency_window=5s");
        };
        if load.arrivals.is_some() {
            let what = "a rate and a latency_target exclude each other: with a rate, the depth does not decide the load";
            return self.wrong(what, "leave one of the two out");
        }
        // `iodepth_low` takes effect when the queue was full. A search keeps the number outstanding
        // below the `iodepth`, so the queue would never be full and the option would be without
        // effect.
        if load.low.is_some() {
            let what = "iodepth_low and latency_target both decide how many are outstanding";
            return self.wrong(what, "leave one of the two out");
        }
        let percentile = percentile.unwrap_or(100.0);
        let target = LatencyTarget { latency, window, percentile, keeps_adapting };
        if let Some((key, what, help)) = target.fault() {
            let _ = self.find(&[&format!("latency_{key}")]);
            return self.wrong(what, help);
        }
        if load.depth == 1 {
            notes.push(
                "latency_target with an iodepth of 1: there is no other depth to try; the result says \
                 whether it is met"
                    .to_owned(),
            );
        }
        Ok(Some(target))
    }
}
