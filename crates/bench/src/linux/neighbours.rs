//! Other programs beside loads that follow one another: one load of a profile is too short to tell.

use std::time::Instant;

use ssdyno_figures::Warning;
use ssdyno_prober::{Sources, SystemCounters};

use crate::believable::{Others, crowded};
use crate::cost::Usage;

/// A shorter time says nothing: the kernel counts the use of a CPU in ticks of 1 to 10 ms.
const SECONDS_LEAST: f64 = 0.5;

/// The machine from one moment on.
pub struct Neighbours {
    began: Instant,
    counters: SystemCounters,
    own: Usage,
}

impl Neighbours {
    /// The machine from now on.
    pub fn watch() -> Neighbours {
        let counters = SystemCounters::read(&Sources::default());
        Neighbours { began: Instant::now(), counters, own: Usage::of_process() }
    }

    /// The warning that other programs used the CPUs until now; `None` if they used little, or if that is not known.
    pub fn warning(&self) -> Option<Warning> {
        let seconds = self.began.elapsed().as_secs_f64();
        if seconds < SECONDS_LEAST {
            return None;
        }
        let now = SystemCounters::read(&Sources::default());
        let processors = now.cores()? as f64;
        let sample = now.since(&self.counters);
        let cpu = sample.cpu.as_ref()?;
        // Kernel time is left out, as in the verdict of a run: the kernel works for the target in whatever name.
        let own_ns = (Usage::of_process() - self.own).user_ns;
        let own = own_ns as f64 / 1e9 / (seconds * processors);
        let others =
            Others { share: cpu.user_fraction - own, processors, stolen: Some(cpu.steal_fraction) };
        crowded(false, others)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// What this process computes is no other program, on however many threads. Other tests are threads of this process.
    #[test]
    fn our_own_work_is_no_neighbour() {
        let watch = Neighbours::watch();
        assert_eq!(watch.warning(), None, "too short to tell");
        let before = Usage::of_process();
        let end = Instant::now() + Duration::from_millis(600);
        let mut sum = 0u64;
        while Instant::now() < end {
            sum = sum.wrapping_mul(31).wrapping_add(1);
        }
        assert!(std::hint::black_box(sum) != 1 && (Usage::of_process() - before).user_ns > 0);
        // A machine that is busy with something else may warn, and then names a share above a tenth.
        if let Some(warning) = watch.warning() {
            assert!(warning.message.starts_with("other programs used"), "{warning:?}");
        }
    }
}
