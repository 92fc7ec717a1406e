//! A device with faults, where neither a controller nor a driver lies before it.

use std::collections::BTreeMap;

use ssdyno_block::{
    BlockTarget, Completion, Fault, FaultPlan, FaultSite, Request, Status, SubmitError, Time, Token,
};
use ssdyno_engine::events::EventLog;

use super::{FaultConfig, Slowed};
use crate::{Device, DeviceReport};

/// A request inside.
#[derive(Clone, Copy, Debug)]
struct Inside {
    fault: Option<Fault>,
    submitted: Time,
}

/// A device whose completions are wrong or late, or stop. A failing request takes its time, and fails in the end; a
/// late one keeps nobody else waiting; once the device is removed (surprise removal) what is inside is
/// [abandoned](Status::Abandoned), and what comes later fails at once.
///
/// Nobody here has a timeout or interrupts, so nothing may be dropped, lose its interrupt or stand
/// still: whoever builds it refuses those.
#[derive(Debug)]
pub struct Faulty {
    inner: Box<dyn Device>,
    plan: FaultPlan,
    gone: bool,
    /// By token, of requests that have not completed.
    inside: BTreeMap<u32, Inside>,
    /// Answers that are still to be given, by time and in order of coming.
    answers: BTreeMap<(Time, u64), Completion>,
    number: u64,
    batch: Vec<Completion>,
}

impl Faulty {
    /// `inner` with the faults of `config`, which were checked with the rest of its file; `seed` draws
    /// them.
    pub fn new(inner: Box<dyn Device>, config: &FaultConfig, seed: u64) -> Faulty {
        let slow = config.slow_by > 0.0;
        let inner = if slow { Box::new(Slowed::new(inner, config, seed)) } else { inner };
        Faulty {
            inner,
            plan: config.plan(seed, Time::ZERO),
            gone: false,
            inside: BTreeMap::new(),
            answers: BTreeMap::new(),
            number: 0,
            batch: Vec::new(),
        }
    }

    fn answer(&mut self, at: Time, token: Token, status: Status, accepted: Time) {
        self.number += 1;
        let completion = Completion { token, status, accepted, completed: at };
        self.answers.insert((at, self.number), completion);
    }

    /// Takes what the device has done up to `now`.
    fn collect(&mut self, now: Time) {
        let mut batch = std::mem::take(&mut self.batch);
        self.inner.reap(now, &mut batch);
        for done in batch.drain(..) {
            let inside = self.inside.get(&done.token.0);
            let (status, late) = match inside.and_then(|inside| inside.fault) {
                Some(Fault::Error) if done.status == Status::Ok => (Status::Error, Time::ZERO),
                Some(Fault::Delay(by)) => (done.status, by),
                _ => (done.status, Time::ZERO),
            };
            self.answer(done.completed + late, done.token, status, done.accepted);
        }
        self.batch = batch;
    }

    /// Gives the answers that are due by `now`.
    fn give(&mut self, now: Time, out: &mut Vec<Completion>) {
        while let Some(first) = self.answers.first_entry().filter(|first| first.key().0 <= now) {
            let completion = first.remove();
            self.inside.remove(&completion.token.0);
            out.push(completion);
        }
    }

    /// The device is removed (surprise removal): what is inside is given up.
    fn remove(&mut self) {
        self.gone = true;
        let at = self.plan.next_time();
        self.plan.take_due(at);
        self.answers.clear();
        let inside: Vec<_> = self.inside.iter().map(|(token, inside)| (*token, *inside)).collect();
        for (token, Inside { submitted, .. }) in inside {
            self.answer(at, Token(token), Status::Abandoned, submitted);
        }
    }
}

impl BlockTarget for Faulty {
    fn capacity_bytes(&self) -> u64 {
        self.inner.capacity_bytes()
    }

    fn sector_bytes(&self) -> u32 {
        self.inner.sector_bytes()
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.check(&request)?;
        if !self.gone && now >= self.plan.next_time() {
            self.remove();
        }
        if self.gone {
            self.inside.insert(token.0, Inside { fault: None, submitted: now });
            // It completes at once with an error. It never reached the device, so it has no latency.
            self.answer(now, token, Status::Error, now);
            return Ok(());
        }
        self.inner.submit(now, request, token)?;
        let fault = self.plan.meets(FaultSite::Command, 0);
        self.inside.insert(token.0, Inside { fault, submitted: now });
        Ok(())
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        if !self.gone {
            let remove_at = self.plan.next_time();
            let until = now.min(remove_at);
            self.collect(until);
            self.give(until, out);
            if now >= remove_at && !self.inside.is_empty() {
                self.remove();
            }
        }
        self.give(now, out);
    }

    fn next_event(&self) -> Option<Time> {
        let answer = self.answers.first_key_value().map(|((at, _), _)| *at);
        if self.gone {
            return answer;
        }
        // A removal that hits no request does not count.
        let removal =
            Some(self.plan.next_time()).filter(|at| !self.inside.is_empty() && *at < Time::MAX);
        [answer, removal, self.inner.next_event()].into_iter().flatten().min()
    }
}

impl Device for Faulty {
    fn inner(&self) -> Option<&dyn Device> {
        Some(self.inner.as_ref())
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Device> {
        Some(self.inner.as_mut())
    }

    fn events(&mut self) -> &mut EventLog {
        self.inner.events()
    }

    fn report(&self, report: &mut DeviceReport) {
        let first = report.units().len();
        self.inner.report(report);
        if let Some(unit) = report.units_from(first).first_mut() {
            unit.injected = Some(self.plan.injected);
        }
    }

    fn is_gone(&self) -> bool {
        self.gone
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_block::Injected;
    use ssdyno_block::conformance::check_target;
    use ssdyno_block::units::Span;

    use super::*;
    use crate::delay::{DelayConfig, DelayDevice};

    const READ: Time = Time::from_us(100);

    fn faulty(faults: FaultConfig, seed: u64) -> Faulty {
        let text = "[delay]\ncapacity = \"1GiB\"\nread = \"100us\"\nwrite = \"30us\"\nservers = 4";
        let device = DelayDevice::new(&DelayConfig::parse(text).unwrap(), seed).unwrap();
        Faulty::new(Box::new(device), &faults, seed)
    }

    fn injected(device: &Faulty) -> Injected {
        DeviceReport::of(device).injected().unwrap()
    }

    fn span(time: Time) -> Option<Span> {
        Some(Span(time))
    }

    #[test]
    fn keeps_the_contract_of_targets() {
        let delay = FaultConfig { delay: 0.3, delay_by: span(READ * 7), ..FaultConfig::default() };
        let removed = FaultConfig { remove_at: span(READ * 50), ..delay };
        for faults in [FaultConfig::default(), delay, removed] {
            check_target(|| faulty(faults, 1));
        }
    }

    /// One read at a time: what it took, and how it ended.
    fn one_by_one(device: &mut Faulty, reads: u32) -> Vec<(Time, Status)> {
        let (mut now, mut out, mut all) = (Time::ZERO, Vec::new(), Vec::new());
        for n in 0..reads {
            let began = now;
            device.submit(now, Request::read(u64::from(n) * 4096, 4096), Token(0)).unwrap();
            while out.is_empty() {
                now = device.next_event().unwrap();
                device.reap(now, &mut out);
            }
            assert_eq!(out.len(), 1);
            all.extend(out.drain(..).map(|done| (done.completed - began, done.status)));
        }
        all
    }

    /// Depth 1: the sum of all times is n times the delay of the device and `delay_by` for each that was
    /// late, to the picosecond; errors take their time.
    #[test]
    fn late_requests_are_late_by_what_was_said() {
        let by = Time::from_ms(3);
        for seed in [1, 2] {
            let share = FaultConfig { delay: 0.05, error: 0.02, ..FaultConfig::default() };
            let mut device = faulty(FaultConfig { delay_by: span(by), ..share }, seed);
            let all = one_by_one(&mut device, 4_000);
            let Injected { errors, delays, .. } = injected(&device);
            let sum: Time = all.iter().map(|(took, _)| *took).sum();
            assert_eq!(sum, READ * 4_000 + by * delays);
            let failed = all.iter().filter(|(_, status)| *status == Status::Error).count();
            assert_eq!(failed as u64, errors);
            // Five standard deviations of binomials: 200 +- 69 and 80 +- 44.
            assert!((131..269).contains(&delays) && (36..124).contains(&errors), "seed {seed}");
        }
    }

    /// Depth 1: every read of a period takes the same, 1 to some times the delay of the device; over many
    /// periods the mean is 1 + slow_by. Five standard deviations of 400 exponentials: 0.25 x 0.5.
    #[test]
    fn slowness_comes_and_goes() {
        let slow =
            FaultConfig { slow_by: 0.5, slow_for: span(READ * 10), ..FaultConfig::default() };
        check_target(|| faulty(slow, 1));
        let factors: Vec<f64> = (0..400).map(|n| slow.slowness(7, READ * 10 * n)).collect();
        let mean = factors.iter().sum::<f64>() / 400.0;
        assert!(factors.iter().all(|factor| *factor >= 1.0));
        assert!((mean - 1.5).abs() < 0.125, "{mean}");
        let all = one_by_one(&mut faulty(slow, 7), 5);
        let expected = READ.as_ps() as f64 * factors[0];
        assert!(all.iter().all(|(took, _)| (took.as_ps() as f64 / expected - 1.0).abs() < 1e-6));
    }

    #[test]
    fn what_is_pulled_answers_with_errors_alone() {
        let at = READ * 10 + READ / 2;
        let mut device = faulty(FaultConfig { remove_at: span(at), ..FaultConfig::default() }, 1);
        let all = one_by_one(&mut device, 14);
        assert!(device.is_gone());
        let (good, bad) = all.split_at(10);
        assert!(good.iter().all(|read| *read == (READ, Status::Ok)));
        let cut = (READ / 2, Status::Abandoned);
        assert_eq!(bad[0], cut);
        assert!(bad[1..].iter().all(|read| *read == (Time::ZERO, Status::Error)));
        assert_eq!(injected(&device).removed_at, Some(at));
    }
}
