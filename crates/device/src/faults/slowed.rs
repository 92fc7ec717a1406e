//! A device whose time passes more slowly than that of its host.
//!
//! Everything in it takes longer by the same share: the medium, reading ahead, writing a buffer back, cleaning. To
//! delay its answers alone would be another fault. A disk would read ahead at full speed meanwhile, so that streams would
//! not be slowed at all while random reads are: their ratio, which is what S2 measures, would be wrong by the share.

use std::collections::{BTreeMap, VecDeque};

use ssdyno_block::{BlockTarget, Completion, Request, SubmitError, Time, Token};
use ssdyno_engine::events::{Busy, EventLog, EventReader};

use super::FaultConfig;
use crate::{Device, DeviceReport, PowerControl, Sanitize, Sanitized};

/// Binary digits of a factor behind the point. With 32 a time of 24 hours is off by 20 us at most.
const FRACTION_BITS: u32 = 32;

/// Periods that are kept to look at times that are over: a device reports in the end what it did in an idle
/// stretch, for example. With the shortest periods they are a minute.
const KEPT: usize = 65_536;

/// A stretch of time with one factor.
#[derive(Clone, Copy, Debug)]
struct Period {
    number: u64,
    /// Its beginning on the clock of the host, and on that of the device.
    begins: Time,
    own_begins: Time,
    /// How long a second of the device is, in units of 2^-32.
    factor: u64,
}

impl Period {
    /// The time of the device, rounded down.
    fn own(&self, at: Time) -> Time {
        let inside = at.saturating_sub(self.begins).as_ps();
        self.own_begins.saturating_add(scaled(inside, 1 << FRACTION_BITS, self.factor, false))
    }

    /// The first time of the host at which that of the device is `own`.
    fn outside(&self, own: Time) -> Time {
        let inside = own.saturating_sub(self.own_begins).as_ps();
        self.begins.saturating_add(scaled(inside, self.factor, 1 << FRACTION_BITS, true))
    }
}

/// `ps` times `by` divided by `of`, rounded down or `up`; what does not fit is the end of time.
fn scaled(ps: u64, by: u64, of: u64, up: bool) -> Time {
    let product = u128::from(ps) * u128::from(by);
    let of = u128::from(of.max(1));
    let quotient = if up { product.div_ceil(of) } else { product / of };
    u64::try_from(quotient).map_or(Time::MAX, Time::from_ps)
}

/// The clock of a slow device. Both clocks begin at zero.
#[derive(Clone, Debug)]
struct SlowClock {
    faults: FaultConfig,
    seed: u64,
    /// Ascending and without gaps; the last stretch contains the latest time that the host requested. Never empty.
    periods: VecDeque<Period>,
}

impl SlowClock {
    fn new(faults: FaultConfig, seed: u64) -> SlowClock {
        let mut clock = SlowClock { faults, seed, periods: VecDeque::new() };
        let factor = clock.factor(Time::ZERO);
        clock.periods.push_back(Period {
            number: 0,
            begins: Time::ZERO,
            own_begins: Time::ZERO,
            factor,
        });
        clock
    }

    fn factor(&self, at: Time) -> u64 {
        let factor = self.faults.slowness(self.seed, at);
        // At most 1 + 100 x 44, the largest that is drawn: 45 bits in all.
        (factor * (1u64 << FRACTION_BITS) as f64) as u64
    }

    fn length(&self) -> Time {
        self.faults.slow_for.map_or(Time::MAX, |span| span.0)
    }

    fn last(&self) -> Period {
        // `new` adds the first period, and the last one is never dropped.
        self.periods.back().copied().unwrap_or(Period {
            number: 0,
            begins: Time::ZERO,
            own_begins: Time::ZERO,
            factor: 1 << FRACTION_BITS,
        })
    }

    /// The period after `period`.
    fn after(&self, period: &Period) -> Period {
        let begins = period.begins.saturating_add(self.length());
        Period {
            number: period.number + 1,
            begins,
            own_begins: period.own(begins),
            factor: self.factor(begins),
        }
    }

    /// The time of the device when it is `now` for the host, which never goes back by more than what is kept.
    fn own(&mut self, now: Time) -> Time {
        let mut last = self.last();
        while now >= last.begins.saturating_add(self.length()) && last.begins < Time::MAX {
            last = self.after(&last);
            self.periods.push_back(last);
            if self.periods.len() > KEPT {
                self.periods.pop_front();
            }
        }
        let later = self.periods.partition_point(|period| period.begins <= now);
        self.periods.get(later.saturating_sub(1)).map_or(now, |period| period.own(now))
    }

    /// The first time of the host at which that of the device is `own`, in the past or in the future.
    fn outside(&self, own: Time) -> Time {
        let later = self.periods.partition_point(|period| period.own_begins < own);
        let mut period = match self.periods.get(later.saturating_sub(1)) {
            Some(period) => *period,
            None => self.last(),
        };
        loop {
            let next = self.after(&period);
            if own <= next.own_begins || next.begins == Time::MAX {
                return period.outside(own);
            }
            period = next;
        }
    }
}

/// A device in which everything takes longer, as `slow_by` and `slow_for` of a table `[faults]` say.
#[derive(Debug)]
pub struct Slowed {
    inner: Box<dyn Device>,
    clock: SlowClock,
    events: EventLog,
    /// When the requests inside were submitted, by token.
    inside: BTreeMap<u32, Time>,
    least_watts: f64,
    batch: Vec<Completion>,
}

impl Slowed {
    /// `inner` with the slowness of `config`, which was checked with the rest of its file; `seed` draws it.
    pub fn new(inner: Box<dyn Device>, config: &FaultConfig, seed: u64) -> Slowed {
        Slowed {
            inner,
            clock: SlowClock::new(*config, seed),
            events: EventLog::default(),
            inside: BTreeMap::new(),
            least_watts: 0.0,
            batch: Vec::new(),
        }
    }
}

/// Writes events of the device's clock into a log of the host's.
struct Outside<'a> {
    clock: &'a SlowClock,
    log: &'a mut EventLog,
}

impl EventReader for Outside<'_> {
    fn read(&mut self, events: &[Busy]) {
        for event in events {
            let (from, to) = (self.clock.outside(event.from), self.clock.outside(event.to));
            self.log.push(Busy { from, to, ..*event });
        }
    }
}

impl BlockTarget for Slowed {
    fn capacity_bytes(&self) -> u64 {
        self.inner.capacity_bytes()
    }

    fn sector_bytes(&self) -> u32 {
        self.inner.sector_bytes()
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        let own = self.clock.own(now);
        self.inner.submit(own, request, token)?;
        self.inside.insert(token.0, now);
        Ok(())
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        let own = self.clock.own(now);
        let mut batch = std::mem::take(&mut self.batch);
        self.inner.reap(own, &mut batch);
        for done in batch.drain(..) {
            // The clock of the device is coarser: a request that is accepted at once would seem older than its submission.
            let submitted = self.inside.remove(&done.token.0).unwrap_or(Time::ZERO);
            let accepted = self.clock.outside(done.accepted).max(submitted);
            let completed = self.clock.outside(done.completed).max(accepted);
            out.push(Completion { accepted, completed, ..done });
        }
        self.batch = batch;
    }

    fn next_event(&self) -> Option<Time> {
        self.inner.next_event().map(|own| self.clock.outside(own))
    }
}

impl Device for Slowed {
    fn inner(&self) -> Option<&dyn Device> {
        Some(self.inner.as_ref())
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Device> {
        Some(self.inner.as_mut())
    }

    fn events(&mut self) -> &mut EventLog {
        let inner = self.inner.events();
        inner.show_to(&mut Outside { clock: &self.clock, log: &mut self.events });
        inner.clear();
        &mut self.events
    }

    fn report(&self, report: &mut DeviceReport) {
        let first = report.units().len();
        self.inner.report(report);
        for (_, at) in report.units_from(first).iter_mut().flat_map(|unit| &mut unit.idle_states) {
            *at = self.clock.outside(*at);
        }
    }

    fn power(&mut self) -> Option<&mut dyn PowerControl> {
        self.least_watts = self.inner.power()?.least_watts();
        Some(self)
    }

    fn sanitize(&mut self, now: Time, order: Sanitize) -> Option<Sanitized> {
        let own = self.clock.own(now);
        let Sanitized { ends, failed } = self.inner.sanitize(own, order)?;
        Some(Sanitized { ends: self.clock.outside(ends), failed })
    }

    fn sanitize_time(&self, order: Sanitize) -> Option<Time> {
        // The beginning is unknown, so the mean slowness represents that of its periods.
        let own = self.inner.sanitize_time(order)?;
        Some(Time::from_s_f64(own.as_s_f64() * (1.0 + self.clock.faults.slow_by)))
    }

    fn begin_window(&mut self, at: Time) {
        let own = self.clock.own(at);
        self.inner.begin_window(own);
    }
}

impl PowerControl for Slowed {
    fn set_sleep(&mut self, now: Time, policy: &[(u8, Time)]) {
        let own = self.clock.own(now);
        if let Some(power) = self.inner.power() {
            power.set_sleep(own, policy);
        }
    }

    fn limit_power(&mut self, from: Time, watts: Option<f64>) -> bool {
        let own = self.clock.own(from);
        self.inner.power().is_some_and(|power| power.limit_power(own, watts))
    }

    fn least_watts(&self) -> f64 {
        self.least_watts
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_block::Rng;
    use ssdyno_block::conformance::check_target;
    use ssdyno_block::units::Span;

    use super::*;
    use crate::delay::{DelayConfig, DelayDevice};

    fn config(slow_by: f64, slow_for: Time) -> FaultConfig {
        FaultConfig { slow_by, slow_for: Some(Span(slow_for)), ..FaultConfig::default() }
    }

    fn slowed(config: &FaultConfig, seed: u64) -> Slowed {
        let text = "[delay]\ncapacity = \"1GiB\"\nread = \"100us\"\nwrite = \"30us\"\nservers = 1";
        let device = DelayDevice::new(&DelayConfig::parse(text).unwrap(), seed).unwrap();
        Slowed::new(Box::new(device), config, seed)
    }

    #[test]
    fn keeps_the_contract_of_targets() {
        for period in [Time::from_ms(1), Time::from_s(1200)] {
            check_target(|| slowed(&config(0.5, period), 1));
        }
    }

    /// Random times of up to 20 days, periods of 1 ms to 24 h: the first time of the host at which the device has some time
    /// is found, exactly, and a time that goes on never goes back.
    #[test]
    fn both_clocks_agree() {
        for (seed, period) in
            [(1, Time::from_ms(1)), (2, Time::from_s(7)), (3, Time::from_s(86_400))]
        {
            let mut clock = SlowClock::new(config(2.0, period), seed);
            let mut random = Rng::new(seed, "times");
            let (mut now, mut last) = (Time::ZERO, Time::ZERO);
            for _ in 0..1000 {
                now += Time::from_ps(random.below(period.as_ps() * 3));
                if now > Time::from_s(20 * 86_400) {
                    break;
                }
                let own = clock.own(now);
                assert!(own >= last && own <= now);
                last = own;
                let future = own + Time::from_ps(random.below(period.as_ps() * 2));
                for asked in [own, future] {
                    let first = clock.outside(asked);
                    let mut later = clock.clone();
                    assert!(later.own(first) >= asked, "{asked} at {first}");
                    let before = Time::from_ps(first.as_ps() - 1);
                    assert!(later.own(before) < asked, "{asked} before {first}");
                }
            }
        }
    }

    /// One server that needs 100 us, 10 requests at once, a factor f: the last one is done after 1000 us x f. A device
    /// with late completions would finish all of them at (1000 us) + its own lateness, and would accept the next ones
    /// at full speed.
    #[test]
    fn a_queue_is_slowed_too() {
        let slow = config(0.5, Time::from_s(3600));
        let factor = slow.slowness(7, Time::ZERO);
        let mut device = slowed(&slow, 7);
        for token in 0..10 {
            device.submit(Time::ZERO, Request::read(0, 4096), Token(token)).unwrap();
        }
        let mut out = Vec::new();
        while out.len() < 10 {
            let now = device.next_event().unwrap();
            device.reap(now, &mut out);
        }
        for (at, done) in out.iter().enumerate() {
            let expected = 100e-6 * factor * (at + 1) as f64;
            assert!((done.completed.as_s_f64() / expected - 1.0).abs() < 1e-6, "{done:?}");
        }
    }
}
