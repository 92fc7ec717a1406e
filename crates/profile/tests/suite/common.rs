//! Parts that several tests share.

use ssdyno_figures::{KeepGoing, RunProgress};
use ssdyno_session::{DriverSpec, HostSpec, Observer, RunSpec, Stage};

/// Stops a profile at a call with this number.
pub(crate) struct Watch(pub(crate) u64);

impl<R> Observer<R> for Watch {
    fn under_way(&mut self, stage: &Stage, _: &RunProgress) -> KeepGoing {
        assert!(stage.done < stage.of, "{stage:?}");
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 { KeepGoing::Stop } else { KeepGoing::Continue }
    }
}

/// Stops when so many tests or loads are done.
pub(crate) struct Until(pub(crate) u64);

impl<R> Observer<R> for Until {
    fn under_way(&mut self, stage: &Stage, _: &RunProgress) -> KeepGoing {
        assert!(stage.done < stage.of, "{stage:?}");
        if stage.done >= self.0 { KeepGoing::Stop } else { KeepGoing::Continue }
    }
}

/// Requests reach the device without a driver.
pub(crate) fn direct(set: &[&str]) -> RunSpec {
    let host = HostSpec { driver: Some(DriverSpec::Direct), ..HostSpec::default() };
    RunSpec { host, set: set.iter().map(|one| (*one).to_owned()).collect(), ..RunSpec::default() }
}
