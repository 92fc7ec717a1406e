//! A limit of the device's power (S1-45).
//!
//! The model: what an operational power state allows beyond what the awake device draws anyway is an
//! income of joules; all that happens in the device - for the host, for the mapping, for cleaning -
//! is paid from it, with the same watts that the energy report uses; a command begins once everything
//! before it is paid, or will be. So the mean power over any time long against [`SAVINGS`] stays at the
//! limit, and a device that would draw less is not slowed at all.
//!
//! That is what the specification promises of a state (base 2.0c, figure 276: MP is the sustained
//! maximum), by a budget that work waits for, as in drives. *Assumed*: that commands wait at their
//! beginning, not each flash operation - planes work together less often then, and an operation costs
//! more - and both times below. Work in the background is not delayed: the commands after it pay.

use ssdyno_block::{ConfigError, Time};
use ssdyno_energy::{Draw, Facts};
use ssdyno_engine::events::EventLog;

use crate::Config;

/// Commands that must wait begin together, in turns that are so far apart: planes and dies work
/// together within a turn as they do at full speed.
const TURN: Time = Time::from_ms(1);

/// Income that is saved up at most while nothing is to be paid, or as little as was foreseen too much.
const SAVINGS: Time = Time::from_ms(30);

/// The least that a limit must leave above what the awake device draws anyway: with less a command would
/// take hours.
pub(crate) const INCOME_WATTS_LEAST: f64 = 1e-3;

/// Pages over which the mean energy of a page is taken.
const PAGES_REMEMBERED: f64 = 4096.0;

/// Keeps the device's power under a limit by making commands wait.
#[derive(Clone, Debug)]
pub(crate) struct Governor {
    draw: Draw,
    /// Income in watts; none: no limit.
    income: Option<f64>,
    /// What follows, and when.
    next: Option<(Time, Option<f64>)>,
    /// When everything that was measured is paid.
    paid_at: Time,
    /// Events of the log that were seen.
    seen: u64,
    /// Joules measured, and pages of commands that ended meanwhile; old ones fade.
    joules: f64,
    pages: f64,
    /// Pages of commands that wait for their turn or are at work.
    pages_inside: u64,
}

impl Governor {
    /// No limit so far, for a device with these numbers that has reported what is in `log`.
    pub(crate) fn new(
        config: &Config,
        facts: &Facts,
        log: &EventLog,
    ) -> Result<Governor, ConfigError> {
        Ok(Governor {
            draw: Draw::new(&config.energy, facts)?,
            income: None,
            next: None,
            paid_at: Time::ZERO,
            seen: log.after(0).1,
            joules: 0.0,
            pages: 0.0,
            pages_inside: 0,
        })
    }

    /// From `from` on the device draws `watts` at most, or as much as it likes. False, and nothing
    /// changes, if it draws as much without any work.
    pub(crate) fn limit(&mut self, from: Time, watts: Option<f64>) -> bool {
        let income = watts.map(|watts| watts - self.draw.base_watts());
        if income.is_some_and(|watts| watts < INCOME_WATTS_LEAST) {
            return false;
        }
        self.next = Some((from, income));
        true
    }

    /// A command of `pages` pages could begin at `now`: gives when it may.
    pub(crate) fn admit(&mut self, now: Time, pages: u64, log: &EventLog) -> Time {
        if let Some((from, income)) = self.next.take_if(|(from, _)| *from <= now) {
            // Nothing is saved up from earlier time, except for the needs of the first commands.
            (self.income, self.paid_at) = (income, from.saturating_sub(TURN));
        }
        self.measure(now, log);
        let foreseen = match self.income {
            Some(watts) => time_to_earn(self.pages_inside as f64 * self.joules_of_page(), watts),
            None => Time::ZERO,
        };
        self.pages_inside += pages;
        let paid_at = self.paid_at.saturating_add(foreseen);
        if self.income.is_none() || paid_at <= now {
            return now;
        }
        // Rounding up to a common turn lets commands start together. Without it, each command would
        // start alone as soon as it is paid, and multi-plane operations would rarely occur.
        let turn = paid_at.as_ps().div_ceil(TURN.as_ps());
        Time::from_ps(turn.saturating_mul(TURN.as_ps()))
    }

    /// A command of `pages` pages has ended.
    pub(crate) fn ended(&mut self, pages: u64) {
        // Those that were inside before there was a limit were not counted.
        self.pages_inside = self.pages_inside.saturating_sub(pages);
        self.pages += pages as f64;
    }

    fn joules_of_page(&self) -> f64 {
        // What was measured is also of those inside.
        let pages = self.pages + self.pages_inside as f64;
        if pages > 0.0 { self.joules / pages } else { 0.0 }
    }

    /// Enters what was reported since the last look.
    fn measure(&mut self, now: Time, log: &EventLog) {
        let (events, seen) = log.after(self.seen);
        self.seen = seen;
        let joules: f64 = events.iter().map(|event| self.draw.joules(event)).sum();
        self.joules += joules;
        // Halving both sums keeps their ratio and lets old values fade. The mean then follows a
        // change of the workload, for example when cleaning begins and pages cost more.
        if self.pages > PAGES_REMEMBERED {
            self.joules /= 2.0;
            self.pages /= 2.0;
        }
        if let Some(watts) = self.income {
            let saved = now.saturating_sub(SAVINGS);
            self.paid_at = self.paid_at.max(saved).saturating_add(time_to_earn(joules, watts));
        }
    }

    /// Looks at the log before it may be cleared.
    pub(crate) fn look(&mut self, log: &EventLog) {
        // Nothing was saved up since `paid_at`, or it is looked after when the next command comes.
        self.measure(Time::ZERO, log);
    }
}

fn time_to_earn(joules: f64, watts: f64) -> Time {
    Time::from_ps((joules / watts * 1e12).clamp(0.0, 1e18) as u64)
}

#[cfg(test)]
mod tests {
    use ssdyno_engine::events::{Activity, Busy, FlashCause, PartEvent, PartKind};

    use super::*;

    const US: fn(u64) -> Time = Time::from_us;

    fn config() -> Config {
        crate::Config::parse(crate::presets::find("p3600").unwrap().text).unwrap()
    }

    fn governor(log: &EventLog) -> Governor {
        let facts =
            Facts { channels: 1, dies: 8, dies_per_package: 1, cores: 1, power_states: vec![] };
        Governor::new(&config(), &facts, log).unwrap()
    }

    fn read(log: &mut EventLog, from: Time) {
        let part = PartEvent::new(PartKind::Die, 0);
        let (activity, cause, to) = (Activity::Read, FlashCause::Host, from + US(100));
        log.push(Busy { part, activity, cause, operations: 1, from, to });
    }

    /// Commands one after another come as far apart as their energy takes to earn, also when the log is
    /// cleared in between, in whatever portions.
    #[test]
    fn commands_are_as_far_apart_as_their_energy() {
        for clear_every in [1, 3, 7, 1000] {
            let mut log = EventLog::default();
            let mut governor = governor(&log);
            let energy = {
                let mut one = EventLog::default();
                read(&mut one, Time::ZERO);
                governor.draw.joules(&one.after(0).0[0])
            };
            let base = governor.draw.base_watts();
            // A read every 400 us.
            assert!(governor.limit(Time::ZERO, Some(base + energy / 400e-6)));
            let mut now = Time::ZERO;
            for command in 0..500 {
                now = governor.admit(now, 1, &log);
                read(&mut log, now);
                now += US(100);
                governor.ended(1);
                if command % clear_every == 0 {
                    governor.look(&log);
                    log.clear();
                }
            }
            let each = now.as_s_f64() / 500.0;
            assert!((each - 400e-6).abs() < 4e-6, "{clear_every}: {each}");
        }
    }

    #[test]
    fn commands_that_come_together_are_spread_over_turns() {
        let mut log = EventLog::default();
        let mut governor = governor(&log);
        let base = governor.draw.base_watts();
        assert!(governor.limit(Time::ZERO, Some(base + 0.05)));
        let mut now = Time::ZERO;
        for _ in 0..1000 {
            now = governor.admit(now, 1, &log);
            read(&mut log, now);
            governor.ended(1);
        }
        let each = governor.joules / governor.pages / 0.05;
        let now = governor.admit(now, 1, &log);
        let begun: Vec<f64> = (0..200).map(|_| governor.admit(now, 1, &log).as_s_f64()).collect();
        for (number, at) in begun.iter().enumerate() {
            let earned = (number + 1) as f64 * each;
            let late = at - now.as_s_f64() - earned;
            // A page's mean sinks a little as more are inside that nothing was measured of.
            let least = -TURN.as_s_f64() - 0.15 * earned;
            assert!((least..TURN.as_s_f64()).contains(&late), "{number}: {late}");
            let turns = at / TURN.as_s_f64();
            assert!((turns - turns.round()).abs() < 1e-6, "between turns: {at}");
        }
    }

    #[test]
    fn idleness_saves_up_so_much_and_no_more() {
        let mut log = EventLog::default();
        let mut governor = governor(&log);
        let base = governor.draw.base_watts();
        assert!(governor.limit(Time::ZERO, Some(base + 2e-3)));
        let now = Time::from_s(5);
        assert_eq!(governor.admit(now, 0, &log), now);
        (0..100).for_each(|_| read(&mut log, now));
        let joules = 100.0 * governor.draw.joules(&log.after(0).0[0]);
        let next = governor.admit(now, 0, &log);
        let owed = joules / 2e-3 - SAVINGS.as_s_f64();
        let late = (next - now).as_s_f64() - owed;
        assert!(owed > 0.0 && (0.0..=TURN.as_s_f64()).contains(&late), "{late} after {owed}");
    }

    #[test]
    fn changes_when_it_is_told_and_refuses_the_impossible() {
        let log = EventLog::default();
        let mut governor = governor(&log);
        let base = governor.draw.base_watts();
        assert!(!governor.limit(Time::ZERO, Some(base)));
        assert!(governor.limit(US(100), Some(base + 1.0)));
        governor.admit(US(50), 1, &log);
        assert_eq!(governor.income, None, "not yet");
        governor.admit(US(100), 1, &log);
        assert!((governor.income.unwrap() - 1.0).abs() < 1e-9);
        assert!(governor.limit(US(200), None));
        assert_eq!(governor.admit(US(300), 1, &log), US(300));
        assert_eq!(governor.income, None);
    }
}
