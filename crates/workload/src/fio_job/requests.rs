//! The requests of a job: directions, and the files that they go to in turn (fio's `io_u.c`,
//! `get_next_file` and `set_io_u_file`, read for their behaviour; the code is ours).

use ssdyno_block::{Op, Request};
use ssdyno_engine::Rng;

use super::places::Places;
use crate::generator::Draw;
use crate::generator::place::happens;

/// Which file of several is next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// One after the other, again and again (`roundrobin`).
    InTurn,
    /// Any that is not done, each as likely (`random`).
    Random,
    /// The next when one is done (`sequential`).
    OneByOne,
}

/// How files are served (`file_service_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Service {
    pub(super) order: Order,
    /// Requests to one file before another is looked for.
    pub(super) each: u64,
}

impl Default for Service {
    fn default() -> Service {
        Service { order: Order::InTurn, each: 1 }
    }
}

/// The files of a job, and whose turn it is.
#[derive(Clone, Debug)]
pub(super) struct Files {
    all: Vec<Places>,
    /// The passes that are complete.
    done: Vec<bool>,
    service: Service,
    /// The one at work, and how many more requests it has before another is looked for.
    at: usize,
    left: u64,
    /// Where the search for another begins.
    next: usize,
}

impl Files {
    /// One or more, served by `service`.
    pub(super) fn new(all: Vec<Places>, service: Service) -> Files {
        let done = vec![false; all.len()];
        Files { all, done, service, at: 0, left: 0, next: 0 }
    }

    /// The file that the next request goes to; `None` where all have been gone through.
    fn turn(&mut self, rng: &mut Rng) -> Option<usize> {
        // One file is the usual case. It needs no turns, and the short path avoids a search and two
        // counters per request.
        if let [done] = self.done[..] {
            return (!done).then_some(0);
        }
        if self.left == 0 || self.done[self.at] {
            self.at = self.search(rng)?;
            self.next = (self.at + 1) % self.all.len();
            self.left = match self.service.order {
                Order::OneByOne => u64::MAX,
                Order::InTurn | Order::Random => self.service.each,
            };
        }
        self.left -= 1;
        Some(self.at)
    }

    fn search(&self, rng: &mut Rng) -> Option<usize> {
        let count = self.all.len();
        let mut open =
            (0..count).map(|step| (self.next + step) % count).filter(|at| !self.done[*at]);
        match self.service.order {
            Order::Random => {
                // The draw is among the files that are not done. A draw among all files with
                // repetitions would take longer the fewer files are left.
                let choices = open.clone().count() as u64;
                if choices == 0 { None } else { open.nth(rng.below(choices) as usize) }
            }
            Order::InTurn | Order::OneByOne => open.next(),
        }
    }

    /// A place and length in file `at`; `None` where it has been gone through. One of several begins again
    /// by itself where holes lead around its end, and where places are random and time decides
    /// (`by_time`).
    fn take(
        &mut self,
        at: usize,
        (way, fresh): (usize, bool),
        by_time: bool,
        rng: &mut Rng,
    ) -> Option<(u64, u64)> {
        let several = self.all.len() > 1;
        let places = &mut self.all[at];
        let found = places.take(way, fresh, rng);
        if found.is_some() || !several || !(places.wraps || by_time && places.random) {
            return found;
        }
        places.restart(None);
        places.take(way, fresh, rng)
    }

    /// Begins all of them again; only the direction `way` if time decides.
    fn restart(&mut self, way: usize, by_time: bool) {
        // With one file and a time limit, only the direction that reached the end begins again, as
        // in fio. The other direction keeps its place in the range.
        let way = (by_time && self.all.len() == 1).then_some(way);
        self.done.fill(false);
        self.all.iter_mut().for_each(|places| places.restart(way));
    }

    fn longest(&self) -> u64 {
        let ways = self.all.iter().flat_map(|places| &places.ways);
        ways.map(|way| way.sizes.max()).max().unwrap_or(0)
    }
}

/// Makes the requests of a job.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    /// Probability of a read, and of a write where it is not one.
    pub(super) read: u64,
    pub(super) write: u64,
    /// The directions in turn, where each has a constant rate of its own.
    pub(super) turns: Option<Turns>,
    pub(super) files: Files,
    /// Requests from one random place to the next (`rw=randread:8`), and how many are left.
    pub(super) run: u64,
    pub(super) run_left: u64,
    /// Bytes that are still to be moved; `u64::MAX` where time decides.
    pub(super) left: u64,
    /// A completed pass begins again.
    pub(super) again: bool,
    /// The number of bytes after which a pass ends, whatever the state of its directions, and the remaining bytes;
    /// `u64::MAX` where it ends with the range.
    pub(super) pass: u64,
    pub(super) pass_left: u64,
}

/// Directions in constant proportions: 900 reads and 100 writes a second are nine reads for each write, without
/// chance. Drawn at random, 2 s of them had 173 to 207 writes, where fio has 200.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// Shares that sum to 1, and how far each direction is behind its own.
    shares: [f64; 3],
    behind: [f64; 3],
}

impl Turns {
    pub(super) fn new(mix: [f64; 3]) -> Turns {
        let all: f64 = mix.iter().sum();
        Turns { shares: mix.map(|part| part / all), behind: [0.0; 3] }
    }

    fn next(&mut self) -> usize {
        for (behind, share) in self.behind.iter_mut().zip(self.shares) {
            *behind += share;
        }
        let further = |most, way| if self.behind[way] > self.behind[most] { way } else { most };
        let most = (1..3).fold(0, further);
        self.behind[most] -= 1.0;
        most
    }
}

impl Draw for Requests {
    fn draw(&mut self, rng: &mut Rng) -> Option<Request> {
        if self.left == 0 {
            return None;
        }
        let way = self.direction(rng);
        let by_time = self.left == u64::MAX;
        if self.pass_left == 0 {
            self.pass_left = self.pass;
            self.files.restart(way, by_time);
        }
        let mut begun_again = false;
        loop {
            let Some(at) = self.files.turn(rng) else {
                // A second restart in one call means that no place fits at all, so the loop would
                // never end. At the end of a pass, a rest that is shorter than the longest request
                // ends the job.
                if begun_again || !self.again || self.left < self.files.longest() {
                    return None;
                }
                begun_again = true;
                self.files.restart(way, by_time);
                continue;
            };
            let fresh = self.is_fresh();
            let Some((offset_bytes, length)) = self.files.take(at, (way, fresh), by_time, rng)
            else {
                self.files.done[at] = true;
                continue;
            };
            if !by_time {
                // The bytes of the last request of a pass beyond its end belong to no pass.
                let moved = length.min(self.pass_left);
                self.left = self.left.saturating_sub(moved);
                self.pass_left -= if self.pass == u64::MAX { 0 } else { moved };
            }
            let op = [Op::Read, Op::Write, Op::Trim][way];
            return Some(Request { op, offset_bytes, length_bytes: length as u32 });
        }
    }
}

impl Requests {
    fn direction(&mut self, rng: &mut Rng) -> usize {
        if let Some(turns) = &mut self.turns {
            return turns.next();
        }
        if happens(self.read, rng) {
            0
        } else if happens(self.write, rng) {
            1
        } else {
            2
        }
    }

    /// Whether the next request has a new place, instead of following the last one.
    fn is_fresh(&mut self) -> bool {
        if self.run <= 1 {
            return true;
        }
        self.run_left -= 1;
        let fresh = self.run_left == 0;
        if fresh {
            self.run_left = self.run;
        }
        fresh
    }
}
