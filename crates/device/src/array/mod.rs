//! A striped array (RAID-0) over devices of any kind: stripe by stripe the members take turns.
//!
//! A request goes to each member that it touches as one request, since its stripes lie one behind another there;
//! it completes with the last of them, and with an error if one of them has an error. What a member has no room
//! for waits before it, in order. The array costs no time of its own.
//!
//! Throughput has a closed form where the members are alike and a request touches one stripe: that of a member
//! times their number; the tests hold it to that.
//!
//! Not modelled: a controller with its own time, read-ahead, write-back or limit of requests.

mod config;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use ssdyno_block::{
    BlockTarget, Completion, ConfigError, Op, Request, Status, SubmitError, Time, Token,
};
use ssdyno_energy::PowerModel;
use ssdyno_engine::Rng;
use ssdyno_engine::events::{Busy, EventLog, EventReader, PartEvent};
use ssdyno_ftl::PrepareError;

use crate::{Device, DeviceConfig, DeviceFacts, DeviceReport};
pub(crate) use config::UNITS_MOST;
use config::key_of;
pub use config::{ArrayConfig, ArrayTable, MemberSpec};

/// One of the devices.
struct Member {
    device: Box<dyn Device>,
    /// The number of its first unit among those of the array.
    first_unit: u8,
    /// Pieces that it has had no room for.
    waiting: VecDeque<u32>,
}

/// What of a request goes to one member.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The request that it is of.
    whole: u32,
    request: Request,
}

/// A request of which a piece is under way.
#[derive(Clone, Copy, Debug)]
struct Whole {
    token: Token,
    /// When the first piece was taken.
    accepted: Time,
    /// When the last of those that are done was.
    completed: Time,
    status: Status,
    left: u32,
}

/// A list whose places are used again.
#[derive(Debug)]
struct Places<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Places<T> {
    fn insert(&mut self, value: T) -> u32 {
        let place = self.free.pop().unwrap_or(self.all.len() as u32);
        match self.all.get_mut(place as usize) {
            Some(old) => *old = value,
            None => self.all.push(value),
        }
        place
    }

    fn take(&mut self, place: u32) -> T {
        self.free.push(place);
        self.all[place as usize]
    }
}

impl<T> Default for Places<T> {
    fn default() -> Places<T> {
        Places { all: Vec::new(), free: Vec::new() }
    }
}

/// See the module.
pub struct StripedArray {
    members: Vec<Member>,
    stripe: u64,
    capacity_bytes: u64,
    sector_bytes: u32,
    pieces: Places<Piece>,
    wholes: Places<Whole>,
    /// The latest time that the members know.
    now: Time,
    log: EventLog,
    batch: Vec<Completion>,
}

impl StripedArray {
    /// The array that the file describes, its members as they leave the factory. Each draws its own numbers.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong, of members with their number: `array.members[1].delay.read`.
    pub fn new(config: &ArrayConfig, seed: u64) -> Result<StripedArray, ConfigError> {
        config.check()?;
        let mut members = Vec::with_capacity(config.array.members.len());
        // The array itself is a unit, too.
        let mut units = 1;
        for (index, member) in config.array.members.iter().enumerate() {
            let key = key_of(index);
            let own_seed = Rng::new(seed, &key).below(u64::MAX);
            let device = member
                .device(&key)?
                .build(own_seed)
                .map_err(|error| ConfigError { key: format!("{key}.{}", error.key), ..error })?;
            let first_unit = u8::try_from(units).unwrap_or(u8::MAX);
            units += DeviceReport::of(device.as_ref()).units().len();
            if units > UNITS_MOST {
                let problem =
                    format!("more than {UNITS_MOST} devices, with those of which they are made");
                return Err(ConfigError::new("array.members", problem, "take fewer members"));
            }
            members.push(Member { device, first_unit, waiting: VecDeque::new() });
        }
        let stripe = config.array.stripe.0;
        let sectors = members.iter().map(|member| member.device.sector_bytes());
        let sector_bytes = sectors.max().unwrap_or(ssdyno_block::SECTOR_BYTES);
        if !stripe.is_multiple_of(u64::from(sector_bytes)) {
            let problem =
                format!("{stripe} B is no multiple of the members' sector of {sector_bytes} B");
            let help = "write a multiple of it, such as \"64KiB\"";
            return Err(ConfigError::new("array.stripe", problem, help));
        }
        let smallest = members.iter().map(|member| member.device.capacity_bytes()).min();
        let stripes = smallest.unwrap_or(0) / stripe;
        let number = members.len() as u64;
        let Some(capacity_bytes) = (stripes * stripe).checked_mul(number).filter(|all| *all > 0)
        else {
            let problem = "the smallest member has no room for one stripe";
            return Err(ConfigError::new("array.stripe", problem, "write a smaller stripe"));
        };
        Ok(StripedArray {
            members,
            stripe,
            capacity_bytes,
            sector_bytes,
            pieces: Places::default(),
            wholes: Places::default(),
            now: Time::ZERO,
            log: EventLog::default(),
            batch: Vec::new(),
        })
    }

    /// What of `request` is member `member`'s, at its own addresses.
    fn part_of(&self, request: &Request, member: usize) -> Option<Request> {
        if request.op == Op::Flush {
            return Some(*request);
        }
        let (count, member) = (self.members.len() as u64, member as u64);
        let last_byte = (request.offset_bytes + u64::from(request.length_bytes)).checked_sub(1)?;
        let (first, last) = (request.offset_bytes / self.stripe, last_byte / self.stripe);
        // The first and the last stripe of it that are the member's.
        let own_first = first + (member + count - first % count) % count;
        let own_last = last.checked_sub((last % count + count - member) % count)?;
        if own_first > own_last {
            return None;
        }
        let inside = |own: bool, inside: u64, other: u64| if own { inside } else { other };
        let from = own_first / count * self.stripe
            + inside(own_first == first, request.offset_bytes % self.stripe, 0);
        let to = own_last / count * self.stripe
            + inside(own_last == last, last_byte % self.stripe + 1, self.stripe);
        Some(Request { offset_bytes: from, length_bytes: (to - from) as u32, ..*request })
    }

    /// Gives member `index` what waits before it, as far as it takes it.
    fn feed(&mut self, now: Time, index: usize) {
        let member = &mut self.members[index];
        while let Some(piece) = member.waiting.front().copied() {
            let request = self.pieces.all[piece as usize].request;
            match member.device.submit(now, request, Token(piece)) {
                Ok(()) => member.waiting.pop_front(),
                Err(SubmitError::Full) => return,
                Err(error) => unreachable!("member {index} refuses a checked request: {error}"),
            };
        }
    }

    /// The member at which something happens first, and when.
    fn next(&self) -> Option<(Time, usize)> {
        let times = self.members.iter().enumerate();
        times.filter_map(|(index, member)| Some((member.device.next_event()?, index))).min()
    }

    /// A piece is done; with the last, its request.
    fn piece_done(&mut self, done: &Completion, out: &mut Vec<Completion>) {
        let number = self.pieces.take(done.token.0).whole;
        let whole = &mut self.wholes.all[number as usize];
        whole.accepted = whole.accepted.min(done.accepted);
        whole.completed = whole.completed.max(done.completed);
        if whole.status == Status::Ok {
            whole.status = done.status;
        }
        whole.left -= 1;
        if whole.left == 0 {
            let Whole { token, accepted, completed, status, .. } = self.wholes.take(number);
            out.push(Completion { token, status, accepted, completed });
        }
    }
}

impl BlockTarget for StripedArray {
    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.check(&request)?;
        self.now = self.now.max(now);
        let (accepted, status) = (Time::MAX, Status::Ok);
        let whole = self.wholes.insert(Whole { token, accepted, completed: now, status, left: 0 });
        let count = self.members.len();
        let first = (request.offset_bytes / self.stripe % count as u64) as usize;
        for index in (first..count).chain(0..first) {
            let Some(request) = self.part_of(&request, index) else { continue };
            self.wholes.all[whole as usize].left += 1;
            let piece = self.pieces.insert(Piece { whole, request });
            self.members[index].waiting.push_back(piece);
            self.feed(self.now, index);
        }
        Ok(())
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        let mut batch = std::mem::take(&mut self.batch);
        while let Some((at, index)) = self.next().filter(|(at, _)| *at <= now) {
            // A request may have ended as it was submitted.
            self.now = self.now.max(at);
            self.members[index].device.reap(self.now, &mut batch);
            for done in batch.drain(..) {
                self.piece_done(&done, out);
            }
            self.feed(self.now, index);
        }
        self.now = self.now.max(now);
        self.batch = batch;
    }

    fn next_event(&self) -> Option<Time> {
        self.next().map(|(at, _)| at)
    }
}

/// Passes on what a member's parts did, under the numbers that its units have in the array.
pub(crate) struct Renumber<'a> {
    pub(crate) log: &'a mut EventLog,
    pub(crate) first_unit: u8,
}

impl EventReader for Renumber<'_> {
    fn read(&mut self, events: &[Busy]) {
        for event in events {
            let unit = event.part.unit + self.first_unit;
            self.log.push(Busy { part: PartEvent { unit, ..event.part }, ..*event });
        }
    }
}

impl Device for StripedArray {
    fn events(&mut self) -> &mut EventLog {
        for Member { device, first_unit, .. } in &mut self.members {
            let events = device.events();
            if !events.is_empty() {
                events.show_to(&mut Renumber { log: &mut self.log, first_unit: *first_unit });
                events.clear();
            }
        }
        &mut self.log
    }

    fn report(&self, report: &mut DeviceReport) {
        let number = report.units().len();
        let depth = self.members.iter().map(|member| {
            DeviceReport::of(member.device.as_ref())
                .whole()
                .map_or(0, |unit| unit.facts.queue_depth)
        });
        let facts = DeviceFacts {
            capacity_bytes: self.capacity_bytes,
            sector_bytes: self.sector_bytes,
            queue_depth: depth.sum(),
            write_buffer_bytes: 0,
            link_ways: 1,
        };
        report.unit(ArrayConfig::NAME, facts, PowerModel::Parts(Vec::new()));
        for (index, member) in self.members.iter().enumerate() {
            let key = format!("array.members[{index}]");
            report.member(number, index, &key, member.device.as_ref());
        }
    }

    fn precondition(&mut self, watcher: &mut dyn FnMut(f64) -> bool) -> Result<(), PrepareError> {
        let count = self.members.len() as f64;
        for (index, member) in self.members.iter_mut().enumerate() {
            member.device.precondition(&mut |share| watcher((index as f64 + share) / count))?;
        }
        Ok(())
    }

    fn begin_window(&mut self, at: Time) {
        self.members.iter_mut().for_each(|member| member.device.begin_window(at));
    }

    fn volatile_cache(&self) -> bool {
        self.members.iter().any(|member| member.device.volatile_cache())
    }

    fn is_gone(&self) -> bool {
        self.members.iter().all(|member| member.device.is_gone())
    }
}
