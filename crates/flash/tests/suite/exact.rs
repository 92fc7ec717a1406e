//! The array against an exact small model of one channel: every order of transfers, dies with and without cache
//! registers, to the picosecond.
//!
//! The model knows nothing of events. Dies of one plane serve their operations in order, and nothing is
//! interrupted, so of every die one transfer at most is ready or will be, and its time is known: [`Model::run`]
//! gives the channel to one after another.

use crate::machine;

use machine::{Job, Machine, simulate};
use proptest::prelude::*;
use ssdyno_flash::{ChannelOrder, OpKind};

/// What a die wants of the channel, and when it is ready for that.
#[derive(Clone, Copy, Debug)]
enum Wish {
    /// Command of the operation whose turn it is.
    Command,
    /// 31h with the read that is next.
    Next,
    /// 3Fh
    Last,
    Out,
    In,
}

#[derive(Clone, Default)]
struct Die {
    /// Times and kinds of its operations; those before `next` have begun.
    jobs: Vec<(u64, OpKind, usize)>,
    next: usize,
    wish: Option<(u64, Wish)>,
    /// The operation whose data goes out or in.
    moving: usize,
    /// Until when the array works, at what, and whether that came with 31h.
    array_to: u64,
    reading: Option<usize>,
}

struct Model<'a> {
    machine: &'a Machine,
    dies: Vec<Die>,
    done: Vec<u64>,
}

impl Model<'_> {
    /// When each of `jobs` is complete; `None` if two transfers became ready at the same picosecond and their order
    /// mattered: the model does not define which of them is earlier.
    fn run(machine: &Machine, jobs: &[Job]) -> Option<Vec<u64>> {
        let mut dies = vec![Die::default(); machine.dies as usize];
        for (number, job) in jobs.iter().enumerate() {
            dies[job.die as usize].jobs.push((job.at, job.kind, number));
        }
        let mut model = Model { machine, dies, done: vec![0; jobs.len()] };
        for die in 0..model.dies.len() {
            model.begin(die, 0);
        }
        let (mut free, mut overtakes) = (0, 0);
        loop {
            let wishes = || model.dies.iter().filter_map(|die| die.wish);
            let Some(first) = wishes().map(|(at, _)| at).min() else { break };
            let now = first.max(free);
            let ready = || {
                let dies = model.dies.iter().enumerate();
                dies.filter_map(|(die, d)| Some((d.wish?, die))).filter(|((at, _), _)| *at <= now)
            };
            let age = |((at, _), _): &((u64, Wish), usize)| *at;
            let key = |((at, wish), _): &((u64, Wish), usize)| (model.rank(*wish), *at);
            let oldest = ready().min_by_key(age).unwrap();
            let best = ready().min_by_key(key).unwrap();
            let as_old = ready().filter(|one| age(one) == age(&oldest)).count();
            let as_good = ready().filter(|one| key(one) == key(&best)).count();
            if as_good > 1 || machine.burst > 0 && as_old > 1 {
                return None;
            }
            let turn = machine.burst > 0 && overtakes >= machine.burst;
            let ((_, wish), die) = if turn { oldest } else { best };
            overtakes = if die == oldest.1 { 0 } else { overtakes + 1 };
            free = model.go(die, wish, now);
        }
        Some(model.done)
    }

    fn rank(&self, wish: Wish) -> u32 {
        use ChannelOrder::{CommandsFirst, CommandsThenDataOut, DataOutFirst, Fcfs};
        match (self.machine.order, wish) {
            (Fcfs, _) => 0,
            (DataOutFirst, Wish::Out) => 0,
            (_, Wish::Command | Wish::Next | Wish::Last) => 1,
            (CommandsThenDataOut, Wish::Out) => 2,
            (CommandsFirst | CommandsThenDataOut | DataOutFirst, _) => 3,
        }
    }

    /// The kind of what comes next on `die`, if it has come by `now`.
    fn waits(&self, die: usize, now: u64) -> Option<OpKind> {
        let d = &self.dies[die];
        d.jobs.get(d.next).filter(|(at, ..)| *at <= now).map(|(_, kind, _)| *kind)
    }

    /// The die is free from `now` on.
    fn begin(&mut self, die: usize, now: u64) {
        let d = &mut self.dies[die];
        d.reading = None;
        d.wish = d.jobs.get(d.next).map(|(at, kind, _)| {
            let wish = if *kind == OpKind::Program { Wish::In } else { Wish::Command };
            ((*at).max(now), wish)
        });
    }

    fn take(&mut self, die: usize) -> (usize, OpKind) {
        let d = &mut self.dies[die];
        let (_, kind, number) = d.jobs[d.next];
        d.next += 1;
        (number, kind)
    }

    /// Gives the channel to `die` at `now`; returns when it is free again.
    fn go(&mut self, die: usize, wish: Wish, now: u64) -> u64 {
        let [command, page, read, program, erase, read_busy, program_busy] = self.machine.times;
        match wish {
            Wish::Command => {
                let end = now + command;
                let (number, kind) = self.take(die);
                if kind == OpKind::Erase {
                    self.done[number] = end + erase;
                    self.begin(die, end + erase);
                    return end;
                }
                let array_to = end + read;
                let follows =
                    self.machine.cache_read && self.waits(die, array_to) == Some(OpKind::Read);
                let d = &mut self.dies[die];
                (d.reading, d.array_to, d.moving) = (Some(number), array_to, number);
                d.wish = Some((array_to, if follows { Wish::Next } else { Wish::Out }));
                if !follows {
                    d.reading = None;
                }
                end
            }
            Wish::Next | Wish::Last => {
                let end = now + command;
                let moved = end.max(self.dies[die].array_to) + read_busy;
                let next = matches!(wish, Wish::Next).then(|| self.take(die).0);
                let d = &mut self.dies[die];
                d.moving = d.reading.unwrap();
                (d.reading, d.wish) = (next, Some((moved, Wish::Out)));
                if next.is_some() {
                    d.array_to = moved + read;
                }
                end
            }
            Wish::Out => {
                let end = now + page;
                self.done[self.dies[die].moving] = end;
                if self.dies[die].reading.is_none() {
                    self.begin(die, end);
                    return end;
                }
                // At once, or once the array has done; by then the host may have sent more.
                let later = end.max(self.dies[die].array_to);
                let waits = |at| self.waits(die, at) == Some(OpKind::Read);
                let wish = match (waits(end), waits(later)) {
                    (true, _) => (end, Wish::Next),
                    (false, true) => (later, Wish::Next),
                    (false, false) => (later, Wish::Last),
                };
                self.dies[die].wish = Some(wish);
                end
            }
            Wish::In => {
                let end = now + command + page;
                let number = self.take(die).0;
                let follows =
                    self.machine.cache_program && self.waits(die, end) == Some(OpKind::Program);
                let busy = if follows { program_busy } else { 0 };
                let from = end.max(self.dies[die].array_to) + busy;
                self.done[number] = from + program;
                self.dies[die].array_to = from + program;
                match follows {
                    true => self.dies[die].wish = Some((from, Wish::In)),
                    false => self.begin(die, from + program),
                }
                end
            }
        }
    }
}

fn orders() -> impl Strategy<Value = ChannelOrder> {
    use ChannelOrder::{CommandsFirst, CommandsThenDataOut, DataOutFirst, Fcfs};
    prop::sample::select(vec![Fcfs, CommandsFirst, DataOutFirst, CommandsThenDataOut])
}

fn machines() -> impl Strategy<Value = Machine> {
    let times = (1_000u64..2_000_000, 100u64..4_000, 1_000u64..90_000_000, 1_000u64..900_000_000);
    let busy = (1_000u64..90_000_000, 0u64..5_000_000, 0u64..5_000_000);
    let rules = (orders(), 0u32..4, any::<bool>(), any::<bool>());
    (1u32..9, rules, times, busy).prop_map(|(dies, rules, times, busy)| {
        let (order, burst, cache_read, cache_program) = rules;
        let (command, byte, read, program) = times;
        let (erase, read_busy, program_busy) = busy;
        let times = [command, byte * 4096, read, program, erase, read_busy, program_busy];
        Machine { dies, planes: 1, order, burst, cache_read, cache_program, times }
    })
}

/// Mostly reads, mostly programs, or all alike; all at once, or one after another.
fn jobs(dies: u32) -> impl Strategy<Value = Vec<Job>> {
    let kind = |reads: u32, programs: u32| {
        prop_oneof![
            reads => Just(OpKind::Read),
            programs => Just(OpKind::Program),
            1 => Just(OpKind::Erase),
        ]
    };
    let mix = prop_oneof![Just((20, 1)), Just((1, 20)), Just((3, 3))];
    (mix, prop_oneof![Just(1u64), Just(1_000_000_000), Just(10_000_000_000)]).prop_flat_map(
        move |((reads, programs), within)| {
            let job = (0..within.max(1_000), 0..dies, kind(reads, programs));
            prop::collection::vec(job, 1..120).prop_map(|jobs| {
                let mut jobs: Vec<Job> = jobs
                    .into_iter()
                    .map(|(at, die, kind)| Job { at, die, plane: 0, kind })
                    .collect();
                // Different times: at the same one the order would be chance.
                jobs.sort_by_key(|job| job.at);
                for at in 1..jobs.len() {
                    jobs[at].at = jobs[at].at.max(jobs[at - 1].at + 1);
                }
                jobs
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, max_global_rejects: 100_000, ..ProptestConfig::default() })]
    #[test]
    fn transfers_begin_and_end_when_the_exact_model_says(
        (machine, jobs) in machines().prop_flat_map(|m| { let d = m.dies; (Just(m), jobs(d)) }),
    ) {
        let exact = Model::run(&machine, &jobs);
        // One case in thirty is refused.
        prop_assume!(exact.is_some());
        let exact = exact.unwrap();
        let found = simulate(&machine, &jobs);
        prop_assert!(found.iter().all(|at| *at > 0), "all complete: {:?}", found);
        prop_assert_eq!(found, exact);
    }
}
