//! The live view of the flash of a simulated SSD: busy time of channels and dies, the share of cleaning, and energy.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use ssdyno_block::Time;
use ssdyno_engine::events::{Activity, Busy, EventReader, FlashUnit, PartKind, UnitNames};

/// The shortest interval of updates of the page: that of the state of the run.
const TELL_EVERY: Duration = Duration::from_millis(250);

/// Sums since the start of the run.
#[derive(Clone, Default, Debug)]
struct Sums {
    /// Of the device's clock: the last start of anything.
    now: Time,
    channel_ps: Vec<u64>,
    die_ps: Vec<u64>,
    cleaning_ps: u64,
    /// Time of dies, by number of activity: read, program, erase, transfer.
    activity_ps: [u64; 4],
}

/// The snapshots of the simulation for the page.
#[derive(Default, Debug)]
struct Shared {
    /// The only SSD of the device; `None` if there is none, or several.
    flash: Option<FlashUnit>,
    sums: Sums,
}

/// Adds the events of a run up.
#[derive(Debug)]
pub(crate) struct FlashReader(Arc<Mutex<Shared>>);

impl EventReader for FlashReader {
    fn name_units(&mut self, units: &[UnitNames]) {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Several devices have channels with the same numbers. Their sums could not be told
        // apart, so there is no live view of an array.
        let [UnitNames { flash: Some(flash), .. }] = units else { return };
        shared.sums.channel_ps = vec![0; flash.channels as usize];
        shared.sums.die_ps = vec![0; flash.dies as usize];
        shared.flash = Some(*flash);
    }

    fn read(&mut self, events: &[Busy]) {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.flash.is_none() {
            return;
        }
        let sums = &mut shared.sums;
        for event in events {
            let (ps, index) = ((event.to - event.from).as_ps(), usize::from(event.part.index));
            match event.part.kind {
                PartKind::Channel => {
                    sums.channel_ps.get_mut(index).into_iter().for_each(|sum| *sum += ps);
                }
                PartKind::Die => {
                    let activity = event.activity.index();
                    if let Some(sum) = sums.activity_ps.get_mut(activity) {
                        *sum += ps;
                    }
                    // During a cache transfer the array of the die already works on the next command. Counting
                    // both would show a die as more than 100 % busy.
                    if event.activity != Activity::CacheTransfer {
                        sums.die_ps.get_mut(index).into_iter().for_each(|sum| *sum += ps);
                    }
                    if event.cause.follows_cleaning() {
                        sums.cleaning_ps += ps;
                    }
                }
                _ => {}
            }
            // The start of an operation is used and not its end. The ends of a long erase would let
            // the clock of the view run ahead of the run.
            sums.now = sums.now.max(event.from);
        }
    }
}

/// Energy since the start of the run, in joules. `read` to `transfer`: of the dies, above their idle power. `idle`: of the
/// whole device without work.
#[derive(Clone, Copy, PartialEq, Serialize, Debug)]
struct EnergyView {
    read: f64,
    program: f64,
    erase: f64,
    transfer: f64,
    idle: f64,
}

/// The flash as the page shows it.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub(crate) struct FlashView {
    pub(crate) run: u64,
    now_s: f64,
    /// Busy shares since the last view, 0 to 1.
    channels: Vec<f64>,
    /// For each channel those of its dies.
    dies: Vec<Vec<f64>>,
    /// Share of cleaning in the time in which dies were busy since the last view.
    gc_share: f64,
    energy_j: EnergyView,
}

/// The flash of one run, for all viewers.
#[derive(Debug)]
pub(crate) struct LiveFlash {
    shared: Arc<Mutex<Shared>>,
    before: Sums,
    told: Option<Instant>,
    /// Number of the view, and the view.
    latest: (u64, Option<FlashView>),
}

impl LiveFlash {
    /// With the reader that is given to the run.
    pub(crate) fn new() -> (LiveFlash, FlashReader) {
        let shared = Arc::new(Mutex::default());
        let live = LiveFlash {
            shared: Arc::clone(&shared),
            before: Sums::default(),
            told: None,
            latest: (0, None),
        };
        (live, FlashReader(shared))
    }

    /// Looks at what the run numbered `run` has done by now, where it is time for that or the run `is_over`.
    pub(crate) fn look(&mut self, run: u64, now: Instant, is_over: bool) {
        let is_early = self.told.is_some_and(|told| now.duration_since(told) < TELL_EVERY);
        if is_early && !is_over {
            return;
        }
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(flash) = shared.flash else { return };
        let sums = shared.sums.clone();
        drop(shared);
        // Without progress the shares would be 0/0. The last view
        // stays, and viewers get no message.
        if sums.now <= self.before.now {
            return;
        }
        self.latest = (self.latest.0 + 1, Some(view(run, &flash, &self.before, &sums)));
        (self.before, self.told) = (sums, Some(now));
    }

    /// The last view, for a viewer that has seen view number `seen`.
    pub(crate) fn news(&self, seen: &mut u64) -> Option<FlashView> {
        let (number, view) = &self.latest;
        (std::mem::replace(seen, *number) != *number).then(|| view.clone()).flatten()
    }
}

/// The activity from `before` to `sums`.
fn view(run: u64, flash: &FlashUnit, before: &Sums, sums: &Sums) -> FlashView {
    let span_ps = (sums.now - before.now).as_ps().max(1) as f64;
    // The simulator announces an operation when it begins. One that ends after this view is
    // counted in it as a whole, so a share is limited to 1.
    let shares = |now: &[u64], before: &[u64]| -> Vec<f64> {
        let earlier = before.iter().copied().chain(std::iter::repeat(0));
        let shares = now.iter().zip(earlier).map(|(now, earlier)| (now - earlier) as f64 / span_ps);
        shares.map(|share| share.min(1.0)).collect()
    };
    let dies = shares(&sums.die_ps, &before.die_ps);
    let by_channel = (flash.dies / flash.channels.max(1)).max(1) as usize;
    let total = |sums: &Sums| sums.die_ps.iter().sum::<u64>();
    let busy_ps = (total(sums) - total(before)) as f64;
    let cleaning_ps = (sums.cleaning_ps - before.cleaning_ps) as f64;
    let joules = |activity: Activity| {
        let index = activity.index();
        let seconds = Time::from_ps(sums.activity_ps[index]).as_s_f64();
        flash.activity_watts[index] * seconds
    };
    FlashView {
        run,
        now_s: sums.now.as_s_f64(),
        channels: shares(&sums.channel_ps, &before.channel_ps),
        dies: dies.chunks(by_channel).map(<[f64]>::to_vec).collect(),
        gc_share: if busy_ps > 0.0 { (cleaning_ps / busy_ps).min(1.0) } else { 0.0 },
        energy_j: EnergyView {
            read: joules(Activity::Read),
            program: joules(Activity::Program),
            erase: joules(Activity::Erase),
            transfer: joules(Activity::Transfer),
            idle: flash.idle_watts * sums.now.as_s_f64(),
        },
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_engine::events::{FlashCause, PartEvent};

    use super::*;

    const FLASH: FlashUnit =
        FlashUnit { channels: 2, dies: 4, activity_watts: [1.0, 2.0, 4.0, 8.0], idle_watts: 0.5 };

    fn busy(kind: PartKind, index: u16, activity: Activity, from_ms: u64, to_ms: u64) -> Busy {
        let part = PartEvent::new(kind, index);
        let (from, to) = (Time::from_ms(from_ms), Time::from_ms(to_ms));
        Busy { part, activity, cause: FlashCause::Host, operations: 1, from, to }
    }

    fn unit(flash: Option<FlashUnit>) -> UnitNames {
        UnitNames { flash, ..UnitNames::default() }
    }

    /// Shares and energy by hand: a second in which die 3 reads for 0.2 s, die 0 is cleaned for 0.3 s, and channel 1
    /// transfers for half of it.
    #[test]
    fn shares_are_those_of_a_hand_count() {
        let (mut live, mut reader) = LiveFlash::new();
        reader.name_units(&[unit(Some(FLASH))]);
        let cleaned = busy(PartKind::Die, 0, Activity::Erase, 200, 500);
        let start = Instant::now();
        reader.read(&[
            busy(PartKind::Die, 3, Activity::Read, 0, 200),
            Busy { cause: FlashCause::Cleaning, ..cleaned },
            busy(PartKind::Channel, 1, Activity::Transfer, 500, 1000),
            busy(PartKind::Die, 3, Activity::CacheTransfer, 600, 700),
            busy(PartKind::Core, 0, Activity::Execute, 1000, 1000),
        ]);
        live.look(7, start, false);
        let mut seen = 0;
        let view = live.news(&mut seen).unwrap();
        assert_eq!((view.run, view.now_s, view.channels), (7, 1.0, vec![0.0, 0.5]));
        assert_eq!(view.dies, [[0.3, 0.0], [0.0, 0.2]]);
        assert!((view.gc_share - 0.6).abs() < 1e-12, "{}", view.gc_share);
        let energy = view.energy_j;
        assert!((energy.erase - 1.2).abs() < 1e-12 && (energy.transfer - 0.8).abs() < 1e-12);
        assert_eq!((energy.read, energy.program, energy.idle), (0.2, 0.0, 0.5));
        assert_eq!(live.news(&mut seen), None, "each view is told once");
        // A later view has the shares since the view before.
        reader.read(&[busy(PartKind::Die, 0, Activity::Program, 1500, 2500)]);
        live.look(7, start, false);
        assert_eq!(live.news(&mut seen), None, "too early");
        live.look(7, start, true);
        let view = live.news(&mut seen).unwrap();
        assert_eq!((view.dies, view.gc_share), (vec![vec![1.0, 0.0], vec![0.0, 0.0]], 0.0));
    }

    /// A device without flash, and one of several SSDs, of which the grid can show none.
    #[test]
    fn nothing_is_told_of_other_devices() {
        for units in [&[unit(None)][..], &[unit(None), unit(Some(FLASH)), unit(Some(FLASH))]] {
            let (mut live, mut reader) = LiveFlash::new();
            reader.name_units(units);
            reader.read(&[busy(PartKind::Die, 3, Activity::Read, 100, 200)]);
            live.look(1, Instant::now(), true);
            assert_eq!(live.news(&mut 0), None);
        }
    }
}
