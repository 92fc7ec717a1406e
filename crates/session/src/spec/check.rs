//! Checks that types cannot express: values out of range, and keys that exclude each other.

use ssdyno_block::Time;
use ssdyno_block::units::Span;

use super::{HostSpec, RealSpec, RunSpec, SPEC_VERSION, TraceSpec, given};
use crate::failure::Failure;

/// A complaint, where it applies: whether it does, the key, what is wrong after its name, what to do.
type Complaint = (bool, &'static str, &'static str, &'static str);

const MORE: &str = "must be greater than zero";
const RANGE: &str = "is out of range";

impl RunSpec {
    /// Refuses values out of range and keys that exclude each other.
    ///
    /// # Errors
    /// The first of them, with its key.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.version != SPEC_VERSION {
            let what = format!("spec version {} is unknown", self.version);
            let help =
                "this program reads version 1; run the program that wrote it, or a newer one";
            return Err(Failure::usage(what).with_help(help).with_key("version"));
        }
        self.check_load()?;
        self.trace.check()?;
        self.host.check()?;
        self.real.check()?;
        let needs = "is for targets that may be written to";
        let (allowed, write) = (self.write.allowed, &self.write);
        let help = "add `write.allowed`, or leave it out";
        refuse([
            (!allowed && !write.destroy.is_empty(), "write.destroy", needs, help),
            (!allowed && write.overwrite, "write.overwrite", needs, help),
        ])
    }

    fn check_load(&self) -> Result<(), Failure> {
        if self.fio.is_some() {
            let of_trace = given("trace", &self.trace).into_iter().map(|(key, _)| key);
            let workload = self.workload.is_some().then(|| "workload".to_owned());
            let requests = self.requests.is_some().then(|| "requests".to_owned());
            if let Some(key) = workload.into_iter().chain(requests).chain(of_trace).next() {
                let what = format!("`{key}` has no effect on a job file");
                let help = "leave it out and set it in the file, or leave `fio` out";
                return Err(Failure::usage(what).with_help(help).with_key(key));
            }
        }
        let both = self.duration.is_some() && self.requests.is_some();
        if both {
            return Err(Failure::usage("`for` and `requests` exclude each other")
                .with_help("leave one of the two out")
                .with_key("requests"));
        }
        refuse([
            (is_zero(self.duration), "for", MORE, "use a time above zero, such as 10s"),
            (self.requests == Some(0), "requests", MORE, "use 1 or more"),
        ])
    }
}

impl TraceSpec {
    fn check(&self) -> Result<(), Failure> {
        refuse([
            (self.depth == Some(0), "trace.depth", MORE, "use 1 or more"),
            (
                self.slot.is_some_and(|slot| slot.0 == 0),
                "trace.slot",
                MORE,
                "use a size above zero, such as 100GiB",
            ),
        ])
    }
}

/// Whether an NVMe driver may wait this long for a completion: 1 ms to 1 h.
pub fn is_time_limit(limit: Time) -> bool {
    (Time::from_ms(1)..=Time::from_s(3600)).contains(&limit)
}

impl HostSpec {
    fn check(&self) -> Result<(), Failure> {
        let limit = self.time_limit.is_some_and(|limit| !is_time_limit(limit.0));
        refuse([
            (self.cores == Some(0), "host.cores", MORE, "use 1 or more"),
            (
                self.classes.iter().any(|class| *class > 3),
                "host.classes",
                RANGE,
                "use classes from 0 (served first) to 3",
            ),
            (
                self.power_state.is_some_and(|state| state > 31),
                "host.power_state",
                RANGE,
                "use a state from 0 to 31",
            ),
            (self.namespaces.contains(&0), "host.namespaces", RANGE, "namespaces count from 1"),
            (limit, "host.time_limit", RANGE, "use a time of 1ms to 1h"),
            (
                self.retries.is_some_and(|retries| retries > 1000),
                "host.retries",
                RANGE,
                "use 1000 at most",
            ),
        ])
    }
}

impl RealSpec {
    fn check(&self) -> Result<(), Failure> {
        let tuned = self.method.is_some()
            || self.batch.is_some()
            || self.submit.is_some()
            || self.wait.is_some();
        let one = "leave one of the two out";
        refuse([
            (self.jobs == Some(0), "real.jobs", MORE, "use 1 or more"),
            (is_zero(self.timeout), "real.timeout", MORE, "use a time such as 30s"),
            (
                is_zero(self.probe_interval),
                "real.probe_interval",
                MORE,
                "use a time such as 100ms, or set real.no_probes",
            ),
            (self.buffered && self.iopoll, "real.iopoll", "excludes `real.buffered`", one),
            (
                self.wait.is_some() && self.iopoll,
                "real.wait",
                "excludes `real.iopoll`",
                "leave one of the two out: with iopoll the kernel spins",
            ),
            (
                self.no_probes && self.probe_interval.is_some(),
                "real.probe_interval",
                "excludes `real.no_probes`",
                one,
            ),
            (
                self.tune && tuned,
                "real.tune",
                "excludes `method, batch, submit and wait`",
                "leave it out, or leave out the keys that it searches for",
            ),
        ])
    }
}

fn refuse<const N: usize>(complaints: [Complaint; N]) -> Result<(), Failure> {
    match complaints.into_iter().find(|(applies, ..)| *applies) {
        None => Ok(()),
        Some((_, key, what, help)) => {
            Err(Failure::usage(format!("`{key}` {what}")).with_help(help).with_key(key))
        }
    }
}

fn is_zero(span: Option<Span>) -> bool {
    span.is_some_and(|span| span.0 == Time::ZERO)
}
